//! Reserve: room on the disk that only deletions may use.
//!
//! Question: how can a store on a full disk make room, if each change writes new pages before it frees any?
//!
//! A separate file takes [`RESERVE_BYTES`] of the disk. When the disk is full, a deletion removes this file and
//! continues. Later insertions wait until the file exists again.

use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes of the disk that are kept for deletions.
pub(super) const RESERVE_BYTES: u64 = 16 << 20;
/// Its name in the folder of the store.
pub(super) const RESERVE_FILE: &str = "reserve";
/// Bytes of one write where a file system cannot reserve.
const CHUNK_BYTES: usize = 1 << 20;

/// The reserve of one store.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    may_be_spent: AtomicBool,
}

impl Reserve {
    /// The reserve of the store in this folder; [`Reserve::make`] makes it.
    pub(super) fn new(folder: &Path) -> Self {
        Reserve { path: folder.join(RESERVE_FILE), may_be_spent: AtomicBool::new(false) }
    }

    /// Makes it, if it is not there.
    ///
    /// # Errors
    /// If the disk has no room for it, or its folder cannot be written.
    pub(super) fn make(&self) -> io::Result<()> {
        if self.path.metadata().is_ok_and(|metadata| metadata.len() >= RESERVE_BYTES) {
            return Ok(());
        }
        let file = File::create(&self.path)?;
        let made = match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => fill(&file),
            outcome => outcome.map_err(io::Error::from),
        };
        if made.is_err() {
            // A part of it is of no use. If it stays, it is made again: its length tells.
            let _ = std::fs::remove_file(&self.path);
        }
        made
    }

    /// Does some work, during which the reserve may be spent.
    pub(super) fn open_during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.may_be_spent.store(true, Relaxed);
        let done = work();
        self.may_be_spent.store(false, Relaxed);
        done
    }

    /// Gives its room to the disk. False if there is none, or it may not be spent now.
    pub(super) fn spend(&self) -> bool {
        self.may_be_spent.load(Relaxed) && std::fs::remove_file(&self.path).is_ok()
    }
}

fn fill(mut file: &File) -> io::Result<()> {
    let chunk = vec![0xa5; CHUNK_BYTES];
    (0..RESERVE_BYTES / CHUNK_BYTES as u64).try_for_each(|_| file.write_all(&chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_removed_only_when_this_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::new(folder.path());
        assert!(!reserve.open_during(|| reserve.spend()), "there is none");
        reserve.make().unwrap();
        assert_eq!(reserve.path.metadata().unwrap().len(), RESERVE_BYTES);
        assert!(!reserve.spend());
        assert!(reserve.open_during(|| reserve.spend()));
        assert!(!reserve.path.exists());
        reserve.make().unwrap();
        reserve.make().unwrap();
    }
}
