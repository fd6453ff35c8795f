//! Serves one file that may change: each content under its own version.
//!
//! ```text
//!              path ──look──► another size or time ──► a new version, which discovery names
//!                                                      │
//!   Interest ──► N/v=<version> ──► current version ◄───┘
//!            │                 └─► one of the last OLD_VERSIONS_MAX versions, from its open descriptor
//!            └─► discovery: looks at the path, then the current version
//! ```
//!
//! The version is the file's modification time in microseconds, so a server that starts again serves the same version.
//! A file that was replaced by an older one gets the next number after the version before: versions only grow.
//!
//! What happens to a version when the file changes:
//! - The file was replaced (a new file under the path, as editors and `mv` do): it is served as before.
//! - The file was written to: the bytes of this version are gone. Segments that are kept are served; the others get an
//!   application Nack ([`SegmentPublisher::has_changed`]).
//! - The file was removed: the last version is served as before.
//!
//! The kernel's clock for modification times ticks every few milliseconds. A file can change twice within one tick and
//! have one time. So a file is opened, and a change announced, when its time is [`SETTLED`] old. A file that is written
//! to all the time is announced when it rests; to serve it while it grows is the task of [`crate::stream_server`].
//!
//! Limits: changes are seen at a discovery Interest, after a read, and every [`PATH_PAUSE`].

use crate::standing::{Place, Registration, Standing, StandingChange};
use namewire_client::{
    Interest, NackReason, NameBuf, PublishCounters, PublishError, PublishOptions, Reply, ReplyBatch, RespondError,
    SegmentPublisher, object_protocol::Asked, segment_publish::version_of_time,
};
use std::{
    collections::VecDeque,
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    pin::pin,
    time::{Duration, SystemTime},
};
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Versions that are served besides the current one.
pub const OLD_VERSIONS_MAX: usize = 2;
/// Pause between two looks at the path without an Interest.
pub const PATH_PAUSE: Duration = Duration::from_secs(1);
/// Age of a modification time that a later write would change: more than a tick of any kernel's clock (10 ms).
pub const SETTLED: Duration = Duration::from_millis(20);

/// A file that is written to all the time is opened after this many attempts.
const SETTLE_ATTEMPTS: u32 = 5;
/// Interests that are answered with one call.
const SERVED_TOGETHER_MAX: usize = 64;

/// What happens while a file is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEvent {
    /// The file has changed, and [`FileServer::current`] is another version now.
    NewVersion,
    /// Another producer has a newer version, or has it no more.
    Standing(StandingChange),
}

/// Tells whether a path leads to the same content.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size_bytes: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Stamp { size_bytes: metadata.len(), modified_s: metadata.mtime(), modified_ns: metadata.mtime_nsec() }
    }
}

/// A file, ready to be served.
pub struct FileServer {
    path: PathBuf,
    object: NameBuf,
    options: PublishOptions,
    version: u64,
    stamp: Stamp,
    current: SegmentPublisher,
    /// With their versions, the latest first.
    old: VecDeque<(u64, SegmentPublisher)>,
    /// Counters of versions that are served no more.
    gone: PublishCounters,
    /// The current version has no route yet.
    is_new: bool,
    /// Versions that still have a route and are served no more.
    forgotten: Vec<u64>,
}

impl FileServer {
    /// Opens a regular file, to be served under `object`. Its version is that of the options, or its modification time
    /// in microseconds since 1970. Takes up to [`SETTLED`] if the file has just been written.
    ///
    /// # Errors
    /// If the file cannot be opened or the options do not fit.
    pub async fn open(path: &Path, object: &NameBuf, options: PublishOptions) -> Result<Self, PublishError> {
        let failed = |error| PublishError::File { path: path.display().to_string(), error };
        let (file, metadata) = open_settled(path).await.map_err(failed)?;
        let version = options.version.unwrap_or_else(|| version_at(&metadata));
        let options = PublishOptions { version: Some(version), is_versioned: true, ..options };
        Ok(FileServer {
            path: path.to_owned(),
            object: object.clone(),
            version,
            stamp: Stamp::of(&metadata),
            current: SegmentPublisher::of_open_file(file, &metadata, object, options.clone())?,
            options,
            old: VecDeque::new(),
            gone: PublishCounters::default(),
            is_new: false,
            forgotten: Vec::new(),
        })
    }

    /// The version that discovery names.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// That version as an object.
    pub fn current(&self) -> &SegmentPublisher {
        &self.current
    }

    /// The counters of all versions.
    pub fn counters(&self) -> PublishCounters {
        let mut sum = self.gone;
        sum += self.current.counters();
        self.old.iter().for_each(|(_, old)| sum += old.counters());
        sum
    }

    /// Answers Interests until the connection is lost and cannot be opened again. Calls `tell` after each event.
    ///
    /// # Errors
    /// If an answer cannot be sent.
    pub async fn serve(
        &mut self,
        registration: &mut Registration,
        mut tell: impl FnMut(&FileServer, FileEvent),
    ) -> Result<(), RespondError> {
        let Registration { standing, interests } = registration;
        let client = interests.client().clone();
        let (mut batch, mut replies) = (Vec::new(), ReplyBatch::default());
        let mut looks = interval(PATH_PAUSE);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let received = {
                // It is not dropped at other events, because they would interrupt the pauses of a lost connection.
                let mut next = pin!(interests.next_batch(&mut batch, SERVED_TOGETHER_MAX));
                loop {
                    tokio::select! {
                        received = &mut next => break received,
                        change = standing.change() => {
                            standing.settle_cost().await;
                            tell(self, FileEvent::Standing(change));
                        }
                        _ = looks.tick() => {
                            self.look();
                            self.announce(standing, &mut tell).await;
                        }
                    }
                }
            };
            if received == 0 {
                return Ok(());
            }
            for incoming in batch.drain(..) {
                let reply = self.answer(&incoming.interest(), standing.place());
                replies.push(&incoming, &reply);
            }
            // Before the answer that names the version.
            self.announce(standing, &mut tell).await;
            match client.send_replies(&mut replies).await {
                // The stream comes back with other Interests, or ends.
                Ok(()) | Err(RespondError::Closed(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn announce(&mut self, standing: &mut Standing, tell: &mut impl FnMut(&FileServer, FileEvent)) {
        if std::mem::take(&mut self.is_new) {
            standing.announce(self.version).await;
            for version in self.forgotten.drain(..) {
                standing.forget(version).await;
            }
            tell(self, FileEvent::NewVersion);
        }
    }

    fn answer(&mut self, interest: &Interest<'_>, place: Place) -> Reply {
        let name = interest.name();
        let version = name.get(self.object.len()).and_then(|component| component.version());
        let is_of_object = self.object.as_name().is_prefix_of(&name);
        if let Some(version) = version.filter(|version| is_of_object && *version != self.version) {
            if let Some((_, old)) = self.old.iter_mut().find(|(old, _)| *old == version) {
                return old.answer(interest);
            }
            if place.other_version == Some(version) {
                return Reply::Nack(NackReason::NoRoute);
            }
        }
        let is_discovery = match Asked::of(interest, &self.object, self.current.versioned_name()) {
            Asked::Metadata => true,
            Asked::AnySegment => version.is_none(),
            _ => false,
        };
        if is_discovery {
            if place.is_superseded {
                return Reply::Nack(NackReason::NoRoute);
            }
            self.look();
        }
        let reply = self.current.answer(interest);
        if self.current.has_changed() {
            self.look();
        }
        reply
    }

    /// Makes a new version if the file has changed and rests.
    fn look(&mut self) {
        let is_another = |metadata: &Metadata| metadata.is_file() && Stamp::of(metadata) != self.stamp;
        // A path that leads nowhere now may lead to a file again soon.
        if !fs::metadata(&self.path).is_ok_and(|metadata| is_another(&metadata)) {
            return;
        }
        let Ok((file, metadata)) = open(&self.path) else { return };
        if !is_another(&metadata) || unsettled_for(&metadata).is_some() {
            return;
        }
        let version = version_at(&metadata).max(self.version + 1);
        let options = PublishOptions { version: Some(version), ..self.options.clone() };
        // The options fitted the last version, and the name has the same length.
        let Ok(next) = SegmentPublisher::of_open_file(file, &metadata, &self.object, options) else { return };
        self.old.push_front((self.version, std::mem::replace(&mut self.current, next)));
        (self.version, self.stamp, self.is_new) = (version, Stamp::of(&metadata), true);
        while self.old.len() > OLD_VERSIONS_MAX {
            let Some((version, last)) = self.old.pop_back() else { break };
            self.gone += last.counters();
            self.forgotten.push(version);
        }
    }
}

fn version_at(metadata: &Metadata) -> u64 {
    metadata.modified().map_or(0, version_of_time)
}

/// How long until the modification time is old enough; `None` if it is. A time in the future is: the next write sets
/// another one.
fn unsettled_for(metadata: &Metadata) -> Option<Duration> {
    let age = SystemTime::now().duration_since(metadata.modified().ok()?).ok()?;
    SETTLED.checked_sub(age).filter(|rest| !rest.is_zero())
}

fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

async fn open_settled(path: &Path) -> io::Result<(File, Metadata)> {
    let mut opened = open(path)?;
    for _ in 0..SETTLE_ATTEMPTS {
        let Some(rest) = unsettled_for(&opened.1) else { break };
        sleep(rest).await;
        opened = open(path)?;
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_client::{Data, InterestBuilder, packet::content_type};

    fn interest(uri: &str, is_prefix: bool) -> Vec<u8> {
        InterestBuilder::new(uri.parse::<NameBuf>().unwrap()).can_be_prefix(is_prefix).build()
    }

    fn ask_in(server: &mut FileServer, place: Place, uri: &str) -> Reply {
        server.answer(&Interest::parse(&interest(uri, uri.ends_with("metadata"))).unwrap(), place)
    }

    /// The content; `None` for an application Nack.
    fn ask(server: &mut FileServer, uri: &str) -> Option<Vec<u8>> {
        match ask_in(server, Place::default(), uri) {
            Reply::Data(wire) => Some(Data::parse(&wire).unwrap().content().to_vec()),
            Reply::UncachedData(wire) => {
                assert_eq!(Data::parse(&wire).unwrap().content_type(), content_type::NACK);
                None
            }
            other => panic!("{other:?}"),
        }
    }

    /// Lets the file have a modification time that is old enough, without waiting for it.
    fn age(path: &Path, age_s: u64) -> u64 {
        let time = SystemTime::now() - Duration::from_secs(age_s);
        File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
        version_of_time(fs::metadata(path).unwrap().modified().unwrap())
    }

    async fn serve(path: &Path, content: &[u8]) -> (FileServer, u64) {
        fs::write(path, content).unwrap();
        let version = age(path, 100);
        let options = PublishOptions { segment_bytes: 4, cache_bytes: 0, ..PublishOptions::default() };
        (FileServer::open(path, &"/f".parse().unwrap(), options).await.unwrap(), version)
    }

    #[tokio::test]
    async fn the_version_is_the_modification_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let (mut server, version) = serve(&path, b"12345").await;
        assert_eq!((server.version(), server.current().segments()), (version, 2));
        assert_eq!(ask(&mut server, &format!("/f/v={version}/seg=1")), Some(b"5".to_vec()));
        assert_eq!(ask(&mut server, &format!("/f/v={version}/seg=2")), None);
        assert_eq!(ask(&mut server, "/f/v=1/seg=0"), None);
        let (again, _) = (FileServer::open(&path, &"/f".parse().unwrap(), PublishOptions::default()).await.unwrap(), 0);
        assert_eq!(again.version(), version);
    }

    #[tokio::test]
    async fn a_file_that_was_written_just_now_is_opened_when_it_rests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"new").unwrap();
        let (_, metadata) = open_settled(&path).await.unwrap();
        assert_eq!(unsettled_for(&metadata), None);
    }

    #[tokio::test]
    async fn a_file_that_is_written_to_is_another_version_and_the_old_one_gets_nacks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let (mut server, first) = serve(&path, b"12345").await;
        fs::write(&path, b"abcde").unwrap();
        let second = age(&path, 50);
        // A segment of the old version tells that the file has changed.
        assert_eq!(ask(&mut server, &format!("/f/v={first}/seg=0")), None);
        assert_eq!((server.version(), server.is_new), (second, true));
        assert_eq!(ask(&mut server, &format!("/f/v={second}/seg=0")), Some(b"abcd".to_vec()));
        assert_eq!(ask(&mut server, &format!("/f/v={first}/seg=1")), None);
        // Discovery sees a change, too.
        fs::write(&path, b"third").unwrap();
        let third = age(&path, 20);
        let named = ask(&mut server, "/f/32=metadata").unwrap();
        assert_eq!(
            namewire_client::object_protocol::name_in_metadata(&named).unwrap().to_string(),
            format!("/f/v={third}")
        );
    }

    #[tokio::test]
    async fn a_file_that_was_replaced_keeps_its_old_versions() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        let (mut server, first) = serve(&path, b"first").await;
        let mut versions = vec![first];
        for (content, age_s) in [("2nd..", 80), ("3rd..", 90), ("4th..", 70)] {
            fs::write(&other, content).unwrap();
            age(&other, age_s);
            fs::rename(&other, &path).unwrap();
            server.look();
            versions.push(server.version());
        }
        assert!(
            versions.is_sorted() && versions[2] == versions[1] + 1,
            "an older file is a newer version: {versions:?}"
        );
        let mut first_bytes = |version: &u64| {
            ask(&mut server, &format!("/f/v={version}/seg=0")).map(|got| String::from_utf8(got).unwrap())
        };
        let got: Vec<_> = versions.iter().map(&mut first_bytes).collect();
        assert_eq!(got, [None, Some("2nd.".to_owned()), Some("3rd.".to_owned()), Some("4th.".to_owned())]);
        assert_eq!(server.forgotten, [first]);
        fs::remove_file(&path).unwrap();
        server.look();
        assert_eq!(ask(&mut server, &format!("/f/v={}/seg=1", versions[3])), Some(b".".to_vec()));
    }

    #[tokio::test]
    async fn a_superseded_server_leaves_discovery_and_the_newer_version_to_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let (mut server, version) = serve(&folder.path().join("file"), b"12345").await;
        let newer = version + 1;
        let place = Place { is_superseded: true, other_version: Some(newer) };
        for name in ["/f/32=metadata".to_owned(), format!("/f/v={newer}/seg=0")] {
            assert_eq!(ask_in(&mut server, place, &name), Reply::Nack(NackReason::NoRoute), "{name}");
        }
        let prefix = interest("/f", true);
        assert_eq!(server.answer(&Interest::parse(&prefix).unwrap(), place), Reply::Nack(NackReason::NoRoute));
        assert_eq!(ask(&mut server, &format!("/f/v={version}/seg=0")), Some(b"1234".to_vec()));
        assert!(matches!(ask_in(&mut server, place, "/f/v=1/seg=0"), Reply::UncachedData(_)));
    }
}
