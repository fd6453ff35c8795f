//! A repository inside the router's process: `namewire run --repo PATH`.
//!
//! It has a separate thread and runtime, so that its store does not delay the router, and the router's files do not
//! delay the store. Its face is one end of a socket pair; the router has the other end.
//!
//! The router continues if the store cannot be opened or read. Then a repository without Data takes its place, and
//! reports the reason ([`ClosedStore`]). It serves no prefix, and tries to open the store every [`RETRY`].

use super::{run::what_runs, settings};
use crate::{ExitCode, Failure};
use namewire_client::Client;
use namewire_configuration::Configuration;
use namewire_repo::{
    Repo, RepoError, RepoSettings,
    store::{self, Store, StoreError, StoreSettings, closed::ClosedStore},
};
use namewire_security::Signer;
use std::{
    io,
    os::unix::net::UnixStream,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{runtime, sync::oneshot, task::spawn_blocking, time::sleep};

/// Between two attempts to open a store.
const RETRY: Duration = Duration::from_secs(30);

/// A repository that runs. Dropping it does not stop it; [`HostedRepo::stop`] does.
pub struct HostedRepo {
    thread: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    /// What `namewire run` prints about the repository.
    pub line: String,
}

impl HostedRepo {
    /// Starts the repository of the configuration on this end of a face. When it returns, the repository can be used,
    /// or says why its store cannot.
    ///
    /// # Errors
    /// In words, what could not be opened. A store is none of these.
    pub async fn start(configuration: &Configuration, router: io::Result<UnixStream>) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot start the repository: {error}"));
        let settings = settings::repo_settings(configuration, Signer::digest())?;
        let store = settings::store_settings(&configuration.settings.repo)?;
        let stream = router.map_err(failed)?;
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let serve = async move {
            match Host::start(settings, store, stream).await {
                Ok(host) => {
                    let _ = ready.send(Ok(host.line.clone())); // or the router ends already
                    host.run(stopped).await;
                }
                Err(failure) => drop(ready.send(Err(failure))),
            }
        };
        let thread = thread::Builder::new().name("repo".to_owned()).spawn(move || runtime.block_on(serve));
        let thread = thread.map_err(failed)?;
        let ended = || Failure::new(ExitCode::Failed, "the repository did not start");
        let line = is_ready.await.map_err(|_| ended())??;
        Ok(HostedRepo { thread, stop, line })
    }

    /// Ends it: what was accepted is written.
    pub fn stop(self) {
        let _ = self.stop.send(()); // or it has ended
        let _ = self.thread.join(); // a thread that panicked has nothing left to do
    }
}

/// The repository, as its thread has it.
struct Host {
    settings: RepoSettings,
    store: StoreSettings,
    client: Client,
    repo: Repo,
    /// True: the store cannot be used, and is tried again.
    is_closed: bool,
    line: String,
}

impl Host {
    async fn start(settings: RepoSettings, store: StoreSettings, stream: UnixStream) -> Result<Host, Failure> {
        stream.set_nonblocking(true)?;
        let client = Client::from_stream(tokio::net::UnixStream::from_std(stream)?, true);
        let begun = begin(&settings, &client, &store, open(&store).await).await;
        let (repo, line, is_closed) = begun.map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
        let host = Host { settings, store, client, repo, is_closed, line };
        host.tell();
        Ok(host)
    }

    fn tell(&self) {
        match self.is_closed {
            true => tracing::error!(target: "repo", "{}", self.line),
            false => tracing::info!(target: "repo", "{}", self.line),
        }
        for warning in self.repo.warnings() {
            tracing::warn!(target: "repo", "{warning}");
        }
    }

    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                () = self.repo.disconnected() => {
                    tracing::error!(target: "repo", "the repository has lost its face and ends");
                    break;
                }
                _ = &mut stopped => break,
                () = sleep(RETRY), if self.is_closed => {
                    let Ok(opened) = open(&self.store).await else { continue };
                    match self.open_again(opened).await {
                        Some(host) => self = host,
                        None => return,
                    }
                }
            }
        }
        self.repo.stop().await;
    }

    /// The repository with its store in the place of the closed one.
    async fn open_again(self, opened: Arc<dyn Store>) -> Option<Host> {
        let Host { settings, store, client, repo, .. } = self;
        repo.stop().await;
        match begin(&settings, &client, &store, Ok(opened)).await {
            Ok((repo, line, is_closed)) => {
                let host = Host { settings, store, client, repo, is_closed, line };
                host.tell();
                Some(host)
            }
            Err(error) => {
                tracing::error!(target: "repo", "the repository ends: {error}");
                None
            }
        }
    }
}

/// Opens a store, in a thread where that may take its time.
async fn open(store: &StoreSettings) -> Result<Arc<dyn Store>, StoreError> {
    let settings = store.clone();
    let opened = spawn_blocking(move || store::open(&settings)).await;
    opened.unwrap_or_else(|error| Err(StoreError::Other(error.to_string())))
}

/// Starts a repository: its line, and whether it is closed, because the store cannot be opened or read.
async fn begin(
    settings: &RepoSettings,
    client: &Client,
    store: &StoreSettings,
    opened: Result<Arc<dyn Store>, StoreError>,
) -> Result<(Repo, String, bool), RepoError> {
    let started = match opened {
        Ok(opened) => {
            let repo = Repo::start(settings.clone(), client.clone(), Arc::clone(&opened)).await;
            repo.map(|repo| (what_runs(&repo, settings, &*opened), repo))
        }
        Err(error) => Err(error.into()),
    };
    let why = match started {
        Ok((line, repo)) => return Ok((repo, line, false)),
        Err(RepoError::Store(why)) => why,
        Err(error) => return Err(error),
    };
    let nothing = RepoSettings { prefixes: vec![], groups: vec![], bulk: None, retention: vec![], ..settings.clone() };
    let closed = Arc::new(ClosedStore::new(store.kind(), why.to_string()));
    let repo = Repo::start(nothing, client.clone(), closed).await?;
    Ok((repo, format!("repository {} is closed, the router goes on: {why}", settings.name), true))
}
