//! Fetches a folder with all that is in it, from a producer that speaks the file server protocol.
//!
//! 1. The metadata of the folder name its listing; the listing names its entries.
//! 2. Each entry is a job (file `entry_fetch.rs`): metadata, then segments or another listing. Many jobs run at the
//!    same time, the deeper entries first, so that few paths wait.
//! 3. Files are written below a [`Target`]. An entry that cannot be fetched or written is told to the caller, and the
//!    others go on.
//! 4. If a validator is given and the folder has a manifest, its one signature covers all that is in it
//!    (file `folder_manifest.rs`). Otherwise each Data has its own.
//! 5. If the caller wants it, files and folders get the producer's permissions and times. A file whose size and time
//!    are those of the metadata already is not fetched again.
//!
//! A large file that is cut short leaves its unfinished copy, which the next fetch into the same target goes on with.
//! An entry whose name could be that of such a copy's index is refused, because that index is believed.
//!
//! The fetch ends early if the folder itself cannot be fetched, or if [`SILENT_ENTRIES_MAX`] entries in a row get no
//! answer.
//!
//! Limits: [`FolderFetchOptions`]. Memory: the windows of the jobs that run, the listings that are on their way, and
//! for each entry that waits its own name and some 100 bytes, with a manifest some 250. (A million names of 255 bytes:
//! 350 to 500 MB, whatever the depth.)

use crate::{
    entry_fetch::{EntryFetcher, Fetched, FolderFound, Job},
    entry_name::{EntryPath, printable},
    listing::{EntryError, LISTING_BYTES_MAX},
    metadata::MetadataError,
    part_place::{PartName, is_index_name},
    target::{Attributes, Target, TargetError},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use namewire_client::{Client, ExpressError, FetchError, FetchOptions, NameBuf};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

/// The fetch ends when this many entries in a row got no answer: the producer has gone.
pub const SILENT_ENTRIES_MAX: u32 = 16;
/// Time between two reports of the progress while no entry ends.
const PROGRESS_PERIOD: Duration = Duration::from_millis(100);

/// How a folder is fetched.
#[derive(Clone, Debug)]
pub struct FolderFetchOptions {
    /// How each file is fetched. The version, the size limit, and the first and last segment come from the metadata.
    pub fetch: FetchOptions,
    /// Give files and folders the producer's permissions and times.
    pub is_preserving: bool,
    /// Metadata may be old, as those in a repository are.
    pub accepts_stale: bool,
    /// What segments are checked against, in one line of text: an unfinished copy that was checked by something else
    /// counts for nothing.
    pub checked_by: String,
    /// Entries that are fetched at the same time.
    pub jobs_max: usize,
    /// Interests in flight for segments of all files together; at least the largest window.
    pub interests_max: usize,
    /// Folders around an entry.
    pub depth_max: usize,
    /// Entries of all folders together.
    pub entries_max: u64,
    /// Bytes of the listing of one folder.
    pub listing_bytes_max: usize,
}

impl Default for FolderFetchOptions {
    fn default() -> Self {
        FolderFetchOptions {
            fetch: FetchOptions::default(),
            is_preserving: false,
            accepts_stale: false,
            checked_by: "digests".to_owned(),
            jobs_max: 64,
            interests_max: 4096,
            depth_max: 64,
            entries_max: 1_000_000,
            listing_bytes_max: LISTING_BYTES_MAX,
        }
    }
}

/// Why a folder or one of its entries is not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Metadata or content did not come, or are not to be believed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The metadata are not those of a file or folder.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// It cannot be written.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The listing holds what is no entry.
    #[error("{0}; it is not fetched")]
    Entry(#[from] EntryError),
    /// An index of an unfinished copy must not come from a producer.
    #[error("its name is that of the index of an unfinished file; it is not fetched")]
    Index,
    /// Other entries have the names that its unfinished copy could have.
    #[error("other entries have the names that its unfinished file could have; it is not fetched")]
    NoPartName,
    /// The manifest of its folder covers something else.
    #[error("the signed manifest of its folder does not list it as it is: it was changed since, or forged")]
    NotListed,
    /// The content has another size than the metadata say.
    #[error("{received} bytes came, and the metadata announce {announced}")]
    SizeDiffers {
        /// By the metadata.
        announced: u64,
        /// What came.
        received: u64,
    },
    /// The name is that of a file.
    #[error("it is a file, not a folder")]
    NotAFolder,
    /// More folders around it than [`FolderFetchOptions::depth_max`].
    #[error("it is in more than {0} folders")]
    TooDeep(usize),
    /// More entries than [`FolderFetchOptions::entries_max`].
    #[error("{0} of its entries are over the limit of entries")]
    TooManyEntries(u64),
}

impl FolderError {
    /// No answer came, however often it was asked for.
    fn is_silence(&self) -> bool {
        matches!(
            self,
            FolderError::Fetch(
                FetchError::NotFound { cause: ExpressError::Timeout(_), .. } | FetchError::SegmentTimeout { .. }
            )
        )
    }
}

/// How far a fetch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FolderProgress {
    /// Folders made, or there already.
    pub folders: u64,
    /// Files in the listings seen so far.
    pub files_found: u64,
    /// Files written.
    pub files_written: u64,
    /// Files that were there already.
    pub files_present: u64,
    /// Entries that were not fetched.
    pub refused: u64,
    /// Bytes of the files whose metadata came, without those present.
    pub bytes_announced: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes of the files written that an earlier fetch had left.
    pub bytes_resumed: u64,
    /// Segments whose signature was not checked.
    pub unverified_segments: u64,
    /// Interests sent again.
    pub retransmissions: u64,
    /// Time since the first Interest.
    pub elapsed: Duration,
}

/// What a fetch tells while it runs.
#[derive(Debug)]
pub enum FolderEvent<'a> {
    /// How far it is.
    Progress(&'a FolderProgress),
    /// An entry is not fetched.
    Refused {
        /// Where it would be, below the target; fit for a terminal.
        path: &'a str,
        /// Why.
        why: &'a FolderError,
    },
}

/// A fetch of a folder that has not begun.
pub struct FolderFetch<'a> {
    /// The connection.
    pub client: &'a Client,
    /// Name of the folder.
    pub name: NameBuf,
    /// Where it goes.
    pub target: &'a Target,
    /// How.
    pub options: FolderFetchOptions,
}

impl FolderFetch<'_> {
    /// Fetches the folder. Tells `listener` about progress and refused entries; it should return soon. Dropping the
    /// future removes unfinished files, but for those that a later fetch can go on with.
    ///
    /// # Errors
    /// If the folder itself cannot be fetched, or the producer has gone.
    pub async fn run(self, listener: impl FnMut(FolderEvent<'_>)) -> Result<FolderProgress, FolderError> {
        let fetcher = EntryFetcher::new(self.client, &self.name, self.target, &self.options);
        let mut walk = Walk::new(&self.options, listener);
        let root = Job::default();
        match fetcher.fetch(&root).await? {
            Fetched::Folder(found) => walk.take_folder(&root.path, found),
            Fetched::File | Fetched::Present => return Err(FolderError::NotAFolder),
        }
        let mut jobs = FuturesUnordered::new();
        let mut ticks = tokio::time::interval(PROGRESS_PERIOD);
        loop {
            while jobs.len() < self.options.jobs_max
                && let Some(job) = walk.waiting.pop()
            {
                let fetcher = &fetcher;
                jobs.push(async move {
                    let fetched = fetcher.fetch(&job).await;
                    (job.path, fetched)
                });
            }
            tokio::select! {
                done = jobs.next() => match done {
                    Some((path, fetched)) => walk.take(&path, fetched)?,
                    None => break,
                },
                _ = ticks.tick() => {}
            }
            walk.tell_progress(&fetcher);
        }
        if self.options.is_preserving {
            walk.set_folder_attributes(self.target);
        }
        walk.tell_progress(&fetcher);
        Ok(walk.progress)
    }
}

/// What a fetch has found and has still to do.
struct Walk<'a, Listener> {
    options: &'a FolderFetchOptions,
    listener: Listener,
    start: Instant,
    waiting: Vec<Job>,
    /// Each after the folder around it.
    folders: Vec<(EntryPath, Attributes)>,
    entries: u64,
    silent_entries: u32,
    progress: FolderProgress,
}

impl<'a, Listener: FnMut(FolderEvent<'_>)> Walk<'a, Listener> {
    fn new(options: &'a FolderFetchOptions, listener: Listener) -> Self {
        Walk {
            options,
            listener,
            start: Instant::now(),
            waiting: Vec::new(),
            folders: Vec::new(),
            entries: 0,
            silent_entries: 0,
            progress: FolderProgress::default(),
        }
    }

    fn take(&mut self, path: &EntryPath, fetched: Result<Fetched, FolderError>) -> Result<(), FolderError> {
        self.silent_entries =
            if fetched.as_ref().is_err_and(FolderError::is_silence) { self.silent_entries + 1 } else { 0 };
        match fetched {
            Ok(Fetched::File) => self.progress.files_written += 1,
            Ok(Fetched::Present) => self.progress.files_present += 1,
            Ok(Fetched::Folder(found)) => self.take_folder(path, found),
            Err(error) if self.silent_entries >= SILENT_ENTRIES_MAX => return Err(error),
            Err(error) => self.refuse(&path.to_string(), &error),
        }
        Ok(())
    }

    fn take_folder(&mut self, path: &EntryPath, FolderFound { listing, attributes, listed }: FolderFound) {
        self.progress.folders += 1;
        if self.options.is_preserving {
            self.folders.push((path.clone(), attributes));
        }
        let inside = |name: &[u8]| match path.depth() {
            0 => printable(name),
            _ => format!("{path}/{}", printable(name)),
        };
        for (name, why) in &listing.refused {
            self.refuse(&inside(name), &(*why).into());
        }
        if path.depth() > self.options.depth_max {
            return self.refuse(&path.to_string(), &FolderError::TooDeep(self.options.depth_max));
        }
        let room = usize::try_from(self.options.entries_max - self.entries).unwrap_or(usize::MAX);
        let left_out = listing.left_out + listing.entries.len().saturating_sub(room) as u64;
        if left_out > 0 {
            self.refuse(&path.to_string(), &FolderError::TooManyEntries(left_out));
        }
        let names: HashSet<&[u8]> = listing.entries.iter().map(|entry| entry.name.as_bytes()).collect();
        // The first of the listing is fetched first.
        for entry in listing.entries.iter().take(room).rev() {
            self.entries += 1;
            self.progress.files_found += u64::from(!entry.is_folder);
            let name = entry.name.as_bytes();
            let part = PartName::free(name, |part| names.contains(part));
            match part {
                _ if is_index_name(name) && !entry.is_folder => self.refuse(&inside(name), &FolderError::Index),
                None => self.refuse(&inside(name), &FolderError::NoPartName),
                Some(part) => {
                    self.waiting.push(Job { path: path.join(entry.name.clone()), part, listed: listed.clone() })
                }
            }
        }
    }

    fn set_folder_attributes(&mut self, target: &Target) {
        for (path, attributes) in std::mem::take(&mut self.folders).into_iter().rev() {
            if let Err(error) = target.set_folder_attributes(&path, attributes) {
                self.refuse(&path.to_string(), &error.into());
            }
        }
    }

    fn refuse(&mut self, path: &str, why: &FolderError) {
        self.progress.refused += 1;
        (self.listener)(FolderEvent::Refused { path, why });
    }

    fn tell_progress(&mut self, fetcher: &EntryFetcher<'_>) {
        let totals = &fetcher.totals;
        self.progress.bytes_announced = totals.bytes_announced.get();
        self.progress.bytes_received = totals.bytes_received.get();
        self.progress.bytes_resumed = totals.bytes_resumed.get();
        self.progress.unverified_segments = totals.unverified_segments.get();
        self.progress.retransmissions = totals.retransmissions.get();
        self.progress.elapsed = self.start.elapsed();
        (self.listener)(FolderEvent::Progress(&self.progress));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silence() -> Result<Fetched, FolderError> {
        Err(FetchError::SegmentTimeout { segment: 0, attempts: 1 }.into())
    }

    #[test]
    fn a_fetch_ends_when_the_producer_has_gone_and_not_for_single_entries() {
        let options = FolderFetchOptions::default();
        let mut told = 0;
        let mut walk = Walk::new(&options, |_| told += 1);
        let path = EntryPath::default();
        for _ in 1..SILENT_ENTRIES_MAX {
            walk.take(&path, silence()).unwrap();
        }
        walk.take(&path, Ok(Fetched::File)).unwrap();
        for _ in 1..SILENT_ENTRIES_MAX {
            walk.take(&path, silence()).unwrap();
        }
        walk.take(&path, Err(FolderError::NotAFolder)).unwrap();
        for _ in 1..SILENT_ENTRIES_MAX {
            walk.take(&path, silence()).unwrap();
        }
        assert!(walk.take(&path, silence()).is_err());
        let progress = walk.progress;
        assert_eq!((progress.files_written, progress.refused), (1, u64::from(3 * (SILENT_ENTRIES_MAX - 1) + 1)));
        assert_eq!(told, progress.refused);
    }
}
