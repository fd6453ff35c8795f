//! Candidates: what a word of a command line may be, as a running router or the file of named routers says.
//!
//! A shell asks while its user waits, so the answer comes within [`PATIENCE`], or there is none. Nothing is printed
//! about what goes wrong, because the user did not run a command yet.

use namewire_client::Client;
use namewire_configuration::text::strategy_names;
use namewire_packet::{
    NameBuf,
    nfd::{FibEntry, Part, RibEntry},
};
use namewire_routers::RoutersFile;
use namewire_tools::Global;
use std::{ffi::OsString, sync::mpsc::channel, thread, time::Duration};

/// The longest wait for a router. With the start of the program, a candidate is there within 300 ms.
pub const PATIENCE: Duration = Duration::from_millis(220);
/// The most candidates.
pub const CANDIDATES_MAX: usize = 1000;

/// What a word may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidates {
    /// Named routers.
    Routers,
    /// Faces, by number and by remote FaceUri.
    Faces,
    /// Faces, by number.
    FaceNumbers,
    /// Prefixes of routes.
    RoutePrefixes,
    /// Prefixes of the FIB.
    FibPrefixes,
    /// Prefixes with a strategy choice.
    ChoicePrefixes,
    /// Strategies.
    Strategies,
}

/// A word, and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The word.
    pub value: String,
    /// For people. Empty: the word says it.
    pub help: String,
}

impl Candidates {
    /// The candidates that begin with `current`. `words` is the whole command line, which may name the router to ask.
    pub fn beginning_with(self, current: &str, words: &[OsString]) -> Vec<Candidate> {
        let mut found = match self {
            Candidates::Routers => named_routers(),
            Candidates::Strategies => strategy_names().map(|name| candidate(name, "")).collect(),
            _ => self.of_router(words),
        };
        found.retain(|candidate| candidate.value.starts_with(current));
        found.truncate(CANDIDATES_MAX);
        found
    }

    /// Asks on a thread of its own: a look-up of a host name may hang there, and nobody waits for it.
    fn of_router(self, words: &[OsString]) -> Vec<Candidate> {
        let (sender, answer) = channel();
        let global = Global::to_complete(words);
        thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            let found = runtime.block_on(async {
                let client = global.open().await.ok()?;
                self.fetch(&client).await
            });
            let _ = sender.send(found.unwrap_or_default());
            runtime.shutdown_background();
        });
        answer.recv_timeout(PATIENCE).unwrap_or_default()
    }

    async fn fetch(self, client: &Client) -> Option<Vec<Candidate>> {
        // In the order of their text: that of NDN is by length first.
        let prefixes = |names: Vec<NameBuf>| {
            let mut texts: Vec<String> = names.iter().map(ToString::to_string).collect();
            texts.sort();
            texts.into_iter().map(|text| candidate(text, "")).collect()
        };
        match self {
            Candidates::Faces | Candidates::FaceNumbers => {
                let faces = client.state(&[Part::Faces]).await.ok()?.faces;
                let numbers = faces.iter().map(|face| candidate(face.face_id, &face.uri));
                let uris = faces.iter().filter(|_| self == Candidates::Faces).filter(|face| can_be_named(&face.uri));
                let uris = uris.map(|face| candidate(&face.uri, &format!("face {}", face.face_id)));
                Some(numbers.chain(uris).collect())
            }
            Candidates::RoutePrefixes => {
                let routes: Vec<RibEntry> = client.list().await.ok()?;
                Some(prefixes(routes.into_iter().map(|entry| entry.name).collect()))
            }
            Candidates::FibPrefixes => {
                let entries: Vec<FibEntry> = client.list().await.ok()?;
                Some(prefixes(entries.into_iter().map(|entry| entry.name).collect()))
            }
            Candidates::ChoicePrefixes => {
                let choices = client.state(&[Part::Strategies]).await.ok()?.strategies;
                Some(prefixes(choices.into_iter().map(|choice| choice.name).collect()))
            }
            Candidates::Routers | Candidates::Strategies => None,
        }
    }
}

fn candidate(value: impl ToString, help: &str) -> Candidate {
    Candidate { value: value.to_string(), help: help.to_owned() }
}

/// Whether commands take this FaceUri: not those of the router's own faces and of applications.
fn can_be_named(uri: &str) -> bool {
    !["internal:", "contentstore:", "null:", "fd:"].iter().any(|scheme| uri.starts_with(scheme))
}

fn named_routers() -> Vec<Candidate> {
    let routers = RoutersFile::of_user().and_then(|file| file.read()).unwrap_or_default().routers;
    routers.iter().map(|(name, router)| candidate(name, &router.transport.to_string())).collect()
}
