//! Fetches one entry of a folder: what is it, and what is in it?
//!
//! The metadata come first. They say whether the entry is a file or a folder, and name the version that is fetched
//! then. If the producer answers that this version is gone (the file changed meanwhile), or the connection to the
//! router is lost, the entry is tried again with new metadata, at most [`ATTEMPTS_MAX`] times.
//!
//! A file of [`RESUMED_BYTES_MIN`] or more goes on within its unfinished copy, if an earlier fetch has left one of this
//! version ([`crate::part`]).
//!
//! What has no end is not fetched: a stream would never be whole.
//!
//! Limits: all files together have as many Interests in flight as the semaphore has permits. A file takes as many as
//! its window may get.

use crate::{
    entry_name::EntryPath,
    folder_fetch::{FolderError, FolderFetchOptions},
    folder_manifest::ListedEntries,
    listing::Listing,
    metadata::{FileKind, FileMetadata, MetadataError},
    part::{Held, PartFile, RECORD_BYTES},
    part_place::PartName,
    request::{METADATA, is_version_of, name_of},
    target::{Attributes, Target},
};
use namewire_client::{
    Client, DataBuf, Discovery, ExpressError, FetchError, FetchOptions, FetchProgress, InterestBuilder, NackReason,
    NameBuf, SegmentFetch, manifest::Manifest, rtt_estimator::RttEstimator,
};
use namewire_packet::{content_type, signature::signature_type};
use std::{
    cell::{Cell, RefCell},
    fs::File,
    io::{self, Write},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::AsyncWrite,
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

/// Smallest file whose unfinished copy is kept, in bytes. Of smaller ones there is little to lose, and their fetch
/// should need no more than a write and a rename.
pub(crate) const RESUMED_BYTES_MIN: u64 = 4 * RECORD_BYTES;

/// How often an entry is begun.
const ATTEMPTS_MAX: u32 = 3;
/// Pause before an entry is begun again; longer than metadata are fresh, so that no cache answers with the old ones.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// How long each Interest for the folder's own metadata may take: 3.5 s together, then there is no producer.
const FIRST_WAITS: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_millis(1000), Duration::from_millis(2000)];
/// An entry's metadata are asked for again after the RTO, which doubles up to this,
const WAIT_LAST: Duration = Duration::from_secs(2);
/// until this long has passed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Nacks of the metadata's Interest before giving up, and the pause after the first.
const NACKS_MAX: u32 = 3;
const NACK_PAUSE: Duration = Duration::from_millis(50);
/// How often a connection is opened again, and the pause before the first attempt; each is twice as long as the one
/// before.
const CONNECTIONS_MAX: u32 = 7;
const CONNECTION_PAUSE: Duration = Duration::from_millis(100);

/// An entry to fetch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    pub(crate) path: EntryPath,
    /// The name of its unfinished file.
    pub(crate) part: PartName,
    /// What the manifest of the folder around it lists, if that has one.
    pub(crate) listed: Option<Arc<ListedEntries>>,
}

/// A folder whose listing has come.
pub(crate) struct FolderFound {
    pub(crate) listing: Listing,
    pub(crate) attributes: Attributes,
    /// What its manifest lists, if it has one.
    pub(crate) listed: Option<Arc<ListedEntries>>,
}

/// What became of an entry.
pub(crate) enum Fetched {
    Folder(FolderFound),
    /// Written.
    File,
    /// A file of this size and time is there already.
    Present,
}

/// Sums over all files.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Bytes that the metadata seen so far announce.
    pub(crate) bytes_announced: Cell<u64>,
    pub(crate) bytes_received: Cell<u64>,
    /// Bytes that unfinished copies had.
    pub(crate) bytes_resumed: Cell<u64>,
    pub(crate) unverified_segments: Cell<u64>,
    pub(crate) retransmissions: Cell<u64>,
}

fn add(cell: &Cell<u64>, more: u64) {
    cell.set(cell.get().saturating_add(more));
}

fn subtract(cell: &Cell<u64>, less: u64) {
    cell.set(cell.get().saturating_sub(less));
}

/// The bytes of one file in the sums. Dropped before the file is written, it takes them out again.
struct Counted<'a> {
    totals: &'a Totals,
    announced: u64,
    received: u64,
}

impl<'a> Counted<'a> {
    fn new(totals: &'a Totals, announced: u64) -> Self {
        add(&totals.bytes_announced, announced);
        Counted { totals, announced, received: 0 }
    }

    fn received(&mut self, bytes: u64) {
        add(&self.totals.bytes_received, bytes.saturating_sub(self.received));
        self.received = bytes;
    }

    fn keep(mut self) {
        (self.announced, self.received) = (0, 0);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        subtract(&self.totals.bytes_announced, self.announced);
        subtract(&self.totals.bytes_received, self.received);
    }
}

/// What the fetches of all entries share.
pub(crate) struct EntryFetcher<'a> {
    client: &'a Client,
    name: &'a NameBuf,
    target: &'a Target,
    options: &'a FolderFetchOptions,
    interests: Semaphore,
    /// Of Interests for metadata.
    rtt: RefCell<RttEstimator>,
    pub(crate) totals: Totals,
}

impl<'a> EntryFetcher<'a> {
    pub(crate) fn new(
        client: &'a Client,
        name: &'a NameBuf,
        target: &'a Target,
        options: &'a FolderFetchOptions,
    ) -> Self {
        let permits = options.interests_max.max(options.fetch.window_max).min(Semaphore::MAX_PERMITS);
        let rtt = RefCell::new(RttEstimator::new(options.fetch.rto_min, WAIT_LAST));
        let (interests, totals) = (Semaphore::new(permits), Totals::default());
        EntryFetcher { client, name, target, options, interests, rtt, totals }
    }

    /// Fetches an entry: writes a file, or makes a folder and reads its listing.
    pub(crate) async fn fetch(&self, job: &Job) -> Result<Fetched, FolderError> {
        let name = name_of(self.name, &job.path);
        let is_first = job.path.depth() == 0;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let metadata = self.metadata(&name, job).await?;
            let kind = metadata.kind()?;
            if !is_version_of(metadata.versioned_name.as_name(), name.as_name(), kind == FileKind::Folder) {
                return Err(MetadataError::OtherName.into());
            }
            let manifest = match &job.listed {
                Some(listed) => listed.manifest_of(&metadata)?,
                None => Manifest::default(),
            };
            let fetched = match kind {
                FileKind::Folder => self.folder(job, &metadata, manifest).await,
                FileKind::File if is_first => Err(FolderError::NotAFolder),
                FileKind::File => self.file(job, &metadata, manifest).await,
            };
            match fetched {
                Err(FolderError::Fetch(error)) if attempts < ATTEMPTS_MAX && may_pass(&error) => {
                    sleep(RETRY_PAUSE * attempts).await;
                }
                fetched => return fetched,
            }
        }
    }

    async fn folder(&self, job: &Job, metadata: &FileMetadata, mut manifest: Manifest) -> Result<Fetched, FolderError> {
        self.target.make_folder(&job.path)?;
        let size_bytes_max = self.options.listing_bytes_max as u64;
        let mut content = Vec::new();
        let done = self.segments(metadata, size_bytes_max, 0, &mut manifest, &mut content, |_, _| Ok(())).await?;
        let entries_max = usize::try_from(self.options.entries_max).unwrap_or(usize::MAX);
        let listed = match manifest.exists() {
            true => {
                let (options, versioned_name) = (&self.options.fetch, &metadata.versioned_name);
                let segments = usize::try_from(done.written_segments).unwrap_or(usize::MAX);
                let names = content.iter().filter(|byte| **byte == 0).count();
                let digests = manifest.rest(self.client, options, versioned_name, segments, 2 * names).await?;
                Some(Arc::new(ListedEntries::new(digests)))
            }
            false => None,
        };
        let (listing, attributes) = (Listing::parse(&content, entries_max), attributes(metadata));
        Ok(Fetched::Folder(FolderFound { listing, attributes, listed }))
    }

    async fn file(&self, job: &Job, metadata: &FileMetadata, mut manifest: Manifest) -> Result<Fetched, FolderError> {
        let attributes = self.options.is_preserving.then(|| attributes(metadata));
        match metadata.size_bytes {
            Some(size_bytes) if self.target.has_file(&job.path, size_bytes, metadata.mtime_ns) => {
                return Ok(Fetched::Present);
            }
            Some(size_bytes) if size_bytes >= RESUMED_BYTES_MIN => {
                self.large_file(job, metadata, size_bytes, manifest, attributes).await?;
            }
            _ => {
                let mut file = self.target.begin(&job.path, job.part)?;
                let mut counted = Counted::new(&self.totals, metadata.size_bytes.unwrap_or(0));
                let size_bytes_max = metadata.size_bytes.unwrap_or(u64::MAX);
                let note = |progress: &FetchProgress, _: &mut InPlace<'_>| {
                    counted.received(progress.bytes);
                    Ok(())
                };
                let mut sink = InPlace(file.file());
                let done = self.segments(metadata, size_bytes_max, 0, &mut manifest, &mut sink, note).await?;
                require_size(metadata.size_bytes, done.bytes)?;
                file.keep(attributes)?;
                counted.keep();
            }
        }
        Ok(Fetched::File)
    }

    /// Fetches what is not in the unfinished copy yet.
    async fn large_file(
        &self,
        job: &Job,
        metadata: &FileMetadata,
        size_bytes: u64,
        manifest: Manifest,
        attributes: Option<Attributes>,
    ) -> Result<(), FolderError> {
        let mut file = self.target.resume(&job.path, job.part, &self.options.checked_by)?;
        loop {
            let Some(part) = file.part() else { return Ok(()) };
            let held_bytes = part.held_of(&metadata.versioned_name).map_or(0, Held::bytes_before_last);
            let segments_held = match part.start(&metadata.versioned_name) {
                Ok(segments) => segments,
                Err(error) => return Err(file.failed(error).into()),
            };
            let mut counted = Counted::new(&self.totals, size_bytes.saturating_sub(held_bytes));
            let note = |progress: &FetchProgress, part: &mut PartFile| {
                counted.received(progress.bytes);
                part.note(progress)
            };
            let mut manifest = manifest.clone();
            match self.segments(metadata, size_bytes, segments_held, &mut manifest, part, note).await {
                // The copy counts for nothing now, and the next round asks for all of the file.
                Err(_) if part.is_contradicted() => {}
                Err(error) => return Err(error),
                Ok(done) => {
                    if let Err(error) = require_size(Some(size_bytes), held_bytes + done.bytes) {
                        file.discard()?;
                        return Err(error);
                    }
                    file.keep(attributes)?;
                    counted.keep();
                    add(&self.totals.bytes_resumed, held_bytes);
                    return Ok(());
                }
            }
        }
    }

    /// Fetches the content that `metadata` names, without its first `segments_held` segments. Returns what
    /// came.
    async fn segments<W: AsyncWrite + Unpin>(
        &self,
        metadata: &FileMetadata,
        size_bytes_max: u64,
        segments_held: u64,
        manifest: &mut Manifest,
        sink: &mut W,
        note: impl FnMut(&FetchProgress, &mut W) -> io::Result<()>,
    ) -> Result<FetchProgress, FolderError> {
        let general = &self.options.fetch;
        let segments = metadata.last_segment.map_or(u64::MAX, |last| last.saturating_add(1));
        let window_max = usize::try_from(segments).unwrap_or(usize::MAX).min(general.window_max).max(1);
        // Never closed; without a permit the client's own limit still holds.
        let _permits = self.interests.acquire_many(u32::try_from(window_max).unwrap_or(u32::MAX)).await.ok();
        let options = FetchOptions {
            discovery: Discovery::None,
            window_max,
            // A segment beyond the end would be answered, perhaps before the segment that says where the end is.
            window_initial: metadata.last_segment.map_or(1, |_| general.window_initial.min(window_max)),
            size_bytes_max,
            last_segment: metadata.last_segment,
            must_end: true,
            ..general.clone()
        };
        let fetch = SegmentFetch::new(self.client, metadata.versioned_name.clone(), options);
        let found = fetch.find().await?;
        let done = fetch.run_listed(found, segments_held, manifest, sink, note).await?;
        add(&self.totals.unverified_segments, done.unverified_segments);
        add(&self.totals.retransmissions, done.retransmissions);
        Ok(done)
    }

    /// Asks for the metadata of `name`, again and again while no answer comes. `is_first`: no answer of this producer
    /// has come yet.
    async fn metadata(&self, name: &NameBuf, job: &Job) -> Result<FileMetadata, FolderError> {
        let interest = InterestBuilder::new(name.join(METADATA))
            .can_be_prefix(true)
            .must_be_fresh(!self.options.accepts_stale)
            .lifetime_ms(self.options.fetch.lifetime_ms);
        let not_found = |cause| FolderError::Fetch(FetchError::NotFound { name: name.clone(), cause });
        let mut waits = self.waits(job.path.depth() == 0).into_iter();
        let mut wait = waits.next().unwrap_or(WAIT_LAST);
        let (since, mut attempts, mut nacks, mut connections) = (Instant::now(), 0, 0, 0);
        loop {
            attempts += 1;
            let sent_at = Instant::now();
            let answer = timeout(wait, self.client.express(&interest)).await;
            match answer.unwrap_or(Err(ExpressError::Timeout(wait.as_millis() as u64))) {
                Ok(data) => {
                    if attempts == 1 {
                        self.rtt.borrow_mut().add_sample(sent_at.elapsed());
                    }
                    return self.read_metadata(&data, job).await;
                }
                Err(ExpressError::Timeout(_)) => match waits.next() {
                    Some(next) => wait = next,
                    None => return Err(not_found(ExpressError::Timeout(since.elapsed().as_millis() as u64))),
                },
                Err(cause @ ExpressError::Nack(reason)) => {
                    nacks += 1;
                    if nacks == NACKS_MAX {
                        return Err(not_found(cause));
                    }
                    if reason != NackReason::Duplicate {
                        sleep(NACK_PAUSE * nacks).await;
                    }
                }
                Err(ExpressError::Closed(_)) if connections < CONNECTIONS_MAX => {
                    sleep(CONNECTION_PAUSE * (1 << connections)).await;
                    connections += 1;
                }
                Err(error) => return Err(FetchError::Connection(error).into()),
            }
        }
    }

    /// How long each Interest for metadata waits for its answer.
    fn waits(&self, is_first: bool) -> Vec<Duration> {
        if is_first {
            return FIRST_WAITS.to_vec();
        }
        let (mut waits, mut sum, mut next) = (Vec::new(), Duration::ZERO, self.rtt.borrow().rto());
        while sum < PATIENCE {
            waits.push(next);
            sum += next;
            next = (next * 2).min(WAIT_LAST);
        }
        waits
    }

    /// Metadata that a manifest must list need no signature.
    async fn read_metadata(&self, data: &DataBuf, job: &Job) -> Result<FileMetadata, FolderError> {
        let view = data.data();
        let name = || view.name().to_buf();
        if job.listed.is_some() {
            // The caller looks it up.
        } else if let Some(validator) = &self.options.fetch.validator {
            let judged = validator.check(self.client, &view).await;
            judged.map_err(|denial| FetchError::NotTrusted { name: name(), denial })?;
        } else if view.signature_info().signature_type() == signature_type::DIGEST_SHA256
            && self.options.fetch.verify_digests
            && !view.verify_digest_sha256()
        {
            return Err(FetchError::BadDigest(name()).into());
        }
        match view.content_type() {
            content_type::NACK => Err(FetchError::ApplicationNack(name()).into()),
            content_type::LINK => Err(FetchError::Link(name()).into()),
            _ => Ok(FileMetadata::parse(view.content())?),
        }
    }
}

fn require_size(announced: Option<u64>, received: u64) -> Result<(), FolderError> {
    match announced {
        Some(announced) if announced != received => Err(FolderError::SizeDiffers { announced, received }),
        _ => Ok(()),
    }
}

/// True if the entry may be there at the next attempt.
fn may_pass(error: &FetchError) -> bool {
    matches!(error, FetchError::ApplicationNack(_) | FetchError::Connection(ExpressError::Closed(_)))
}

fn attributes(metadata: &FileMetadata) -> Attributes {
    Attributes { permissions: metadata.permissions(), mtime_ns: metadata.mtime_ns }
}

/// Writes at once: the page cache takes a segment faster than another thread could.
struct InPlace<'a>(&'a mut File);

impl AsyncWrite for InPlace<'_> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.0.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
