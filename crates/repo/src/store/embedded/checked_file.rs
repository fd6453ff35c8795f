//! Checked file: a file of numbered blocks, each with a checksum, as the storage under redb.
//!
//! Question: how does the store detect that its file has changed, before the database above uses it?
//!
//! redb has checksums of its pages, but compares them only when it repairs. When it reads, it trusts the file, and may
//! panic on a page that makes no sense (see the documentation of its `Database::open`). So this layer checks each block
//! that it reads. It returns the bytes that redb once wrote to this place, or an error.
//!
//! ```text
//!   block 0       0 .......... 319   320 ...... 495   496 ... 503   504 ... 511   512 ......... 4111
//!                 redb's header      zeros            generation    checksum      zeros
//!   block n       0 ...................................... 4095     4096 . 4103   4104 ....... 4111
//!                 a page of redb, or a part of a larger one         generation    checksum
//! ```
//!
//! A checksum is CityHash64 of the bytes before it, with the number of the block as its seed. So the layer detects
//! blocks that have changed places, and blocks of zeros. The header lies in one sector with its checksum, because redb
//! writes it in place. redb writes all other pages only to places that no commit reaches.
//!
//! Each write of the header begins a generation, and a block has the generation of the header that will reach it. So a
//! block that is younger than the header was written after it. There are two causes. The commit that wrote the block
//! did not finish, and nothing reaches the block. Or the store wrote while another program copied the file, from its
//! header on to its end.
//!
//! Not detected: an earlier state of the same block, which remains if the disk loses a write.
//!
//! Cost: one hash of 4 KiB for each block read or written, 0.4 % of the file.

use super::reserve::Reserve;
use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of redb's pages.
const BLOCK_BYTES: usize = 4096;
/// Bytes of a generation and of a checksum.
const WORD_BYTES: usize = 8;
/// Bytes of a block in the file.
const STRIDE_BYTES: usize = BLOCK_BYTES + 2 * WORD_BYTES;
/// Bytes of the sector that holds redb's header.
const SECTOR_BYTES: usize = 512;
/// Bytes for redb's header in it.
const HEADER_BYTES: usize = SECTOR_BYTES - 2 * WORD_BYTES;

/// A file whose blocks are checked when they are read.
#[derive(Debug)]
pub(super) struct CheckedFile {
    file: File,
    /// The same file, for its locks.
    locks: FileBackend,
    reserve: Arc<Reserve>,
    /// False: the kernel decides when what was written reaches the disk.
    syncs: bool,
    /// The generation of the last header that was read or written.
    generation: AtomicU64,
    /// The youngest block that was written here. redb may read it before its header is written.
    youngest: AtomicU64,
}

impl CheckedFile {
    /// Opens a file, or makes a new one.
    ///
    /// # Errors
    /// If it cannot be opened; [`ErrorKind::InvalidData`] if it is empty and ought not to be.
    pub(super) fn open(path: &Path, is_new: bool, syncs: bool, reserve: Arc<Reserve>) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(is_new).open(path)?;
        // redb takes an empty file for a new store.
        if !is_new && file.metadata()?.len() == 0 {
            return Err(damage("it is empty".to_owned()));
        }
        let locks = FileBackend::new(file.try_clone()?).map_err(io::Error::other)?;
        Ok(CheckedFile { file, locks, reserve, syncs, generation: AtomicU64::new(0), youngest: AtomicU64::new(0) })
    }

    /// Reads a part of redb's header.
    fn read_header(&self, out: &mut [u8]) -> io::Result<()> {
        let mut sector = [0; SECTOR_BYTES];
        self.read_whole(&mut sector, 0)?;
        let Some((header, generation)) = open_seal(&sector, 0) else {
            return Err(damage("its header (byte 0 of the file) is not what was written".to_owned()));
        };
        self.generation.fetch_max(generation, Ordering::AcqRel);
        out.copy_from_slice(&header[..out.len()]);
        Ok(())
    }

    fn write_header(&self, header: &[u8]) -> io::Result<()> {
        // One thread of one process has redb's lock of the header, and has read the header since it took the lock.
        let generation = self.generation.load(Ordering::Acquire) + 1;
        let mut sector = [0; SECTOR_BYTES];
        sector[..header.len()].copy_from_slice(header);
        seal(&mut sector, 0, generation);
        self.write_whole(&sector, 0)?;
        self.generation.fetch_max(generation, Ordering::AcqRel);
        Ok(())
    }

    /// What a block holds.
    fn open_block<'b>(&self, stored: &'b [u8], number: u64) -> io::Result<&'b [u8]> {
        let refused = |what| {
            let at = number * STRIDE_BYTES as u64;
            Err(damage(format!("block {number} (byte {at} of the file) {what}")))
        };
        let Some((block, generation)) = open_seal(stored, number) else { return refused("is not what was written") };
        let youngest = self.generation.load(Ordering::Acquire).max(self.youngest.load(Ordering::Acquire));
        if generation > youngest {
            return refused("is younger than the header: the file was copied while it was written");
        }
        Ok(block)
    }

    fn read_whole(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(out, at).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => damage(format!("it ends before byte {}", at + out.len() as u64)),
            _ => error,
        })
    }

    /// Writes, and gives the reserve for it if the disk is full and it may.
    fn write_whole(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        match self.file.write_all_at(bytes, at) {
            Err(error) if is_full(&error) && self.reserve.spend() => self.file.write_all_at(bytes, at),
            outcome => outcome,
        }
    }
}

/// True if the disk has no room, or its user may have no more.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// The file is not what was written.
fn damage(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// Writes the generation and the checksum of a block into its last bytes.
fn seal(block: &mut [u8], number: u64, generation: u64) {
    let (sealed, sum) = block.split_at_mut(block.len() - WORD_BYTES);
    let at = sealed.len() - WORD_BYTES;
    sealed[at..].copy_from_slice(&generation.to_le_bytes());
    sum.copy_from_slice(&cityhasher::hash_with_seed::<u64>(&*sealed, number).to_le_bytes());
}

/// What stands before the generation and the checksum, and the generation. `None` if the checksum is wrong.
fn open_seal(block: &[u8], number: u64) -> Option<(&[u8], u64)> {
    let (sealed, sum) = block.split_last_chunk::<WORD_BYTES>()?;
    let (content, generation) = sealed.split_last_chunk::<WORD_BYTES>()?;
    let is_right = u64::from_le_bytes(*sum) == cityhasher::hash_with_seed::<u64>(sealed, number);
    is_right.then_some((content, u64::from_le_bytes(*generation)))
}

/// The number of the first of these blocks, and how many there are.
fn blocks(offset: u64, bytes: usize) -> io::Result<(u64, usize)> {
    let unit = BLOCK_BYTES as u64;
    if offset < unit || !offset.is_multiple_of(unit) || !bytes.is_multiple_of(BLOCK_BYTES) {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("{bytes} bytes at {offset} are no whole blocks")));
    }
    Ok((offset / unit, bytes / BLOCK_BYTES))
}

impl StorageBackend for CheckedFile {
    fn len(&self) -> io::Result<u64> {
        let (bytes, stride) = (self.file.metadata()?.len(), STRIDE_BYTES as u64);
        if !bytes.is_multiple_of(stride) {
            return Err(damage(format!("its {bytes} bytes are no whole number of blocks")));
        }
        Ok(bytes / stride * BLOCK_BYTES as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset == 0 && out.len() <= HEADER_BYTES {
            return self.read_header(out);
        }
        let (first, count) = blocks(offset, out.len())?;
        let mut one = [0; STRIDE_BYTES];
        let mut several = vec![0; if count > 1 { count * STRIDE_BYTES } else { 0 }];
        let read = if count > 1 { &mut several[..] } else { &mut one[..count * STRIDE_BYTES] };
        self.read_whole(read, first * STRIDE_BYTES as u64)?;
        let stored = read.chunks_exact(STRIDE_BYTES).zip(first..);
        for ((stored, number), out) in stored.zip(out.chunks_exact_mut(BLOCK_BYTES)) {
            out.copy_from_slice(self.open_block(stored, number)?);
        }
        Ok(())
    }

    /// New blocks get their room on the disk at once: redb uses blocks that were never written before those that it has
    /// freed, so a sparse file on a full disk would have no room although much was deleted. A deletion on a full disk
    /// makes do with the reserve.
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let (former, wanted) = (self.file.metadata()?.len(), bytes / BLOCK_BYTES as u64 * STRIDE_BYTES as u64);
        if wanted > former {
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), former, wanted - former) {
                Ok(()) => return Ok(()),
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(error) if is_full(&error.into()) && self.reserve.spend() => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.file.set_len(wanted)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.syncs { self.file.sync_data() } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset == 0 && data.len() <= HEADER_BYTES {
            return self.write_header(data);
        }
        let (first, count) = blocks(offset, data.len())?;
        let generation = self.generation.load(Ordering::Acquire) + 1;
        let mut stored = vec![0; count * STRIDE_BYTES];
        let blocks = stored.chunks_exact_mut(STRIDE_BYTES).zip(first..);
        for ((stored, number), block) in blocks.zip(data.chunks_exact(BLOCK_BYTES)) {
            stored[..BLOCK_BYTES].copy_from_slice(block);
            seal(stored, number, generation);
        }
        self.youngest.fetch_max(generation, Ordering::AcqRel);
        self.write_whole(&stored, first * STRIDE_BYTES as u64)
    }

    fn close(&self) -> io::Result<()> {
        self.locks.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.locks.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.locks.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.locks.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.locks.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.locks.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.locks.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(path: &Path, is_new: bool) -> CheckedFile {
        CheckedFile::open(path, is_new, true, Arc::new(Reserve::new(path.parent().unwrap()))).unwrap()
    }

    /// Reads as redb does: the header first.
    fn read(path: &Path, number: usize, count: usize) -> io::Result<Vec<u8>> {
        let file = checked(path, false);
        let mut out = vec![0; count * BLOCK_BYTES];
        file.read(0, &mut [0; 320])?;
        file.read((number * BLOCK_BYTES) as u64, &mut out)?;
        Ok(out)
    }

    fn is_refused(path: &Path, number: usize) -> bool {
        read(path, number, 1).is_err_and(|error| error.kind() == ErrorKind::InvalidData)
    }

    #[test]
    fn blocks_that_are_not_what_was_written_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = checked(&path, true);
        file.set_len(5 * BLOCK_BYTES as u64).unwrap();
        let pages: Vec<u8> = (0..3 * BLOCK_BYTES).map(|place| (place / 99) as u8).collect();
        file.write(BLOCK_BYTES as u64, &pages).unwrap();
        file.write(0, &[7; 320]).unwrap();
        assert_eq!(file.len().unwrap(), 5 * BLOCK_BYTES as u64);
        let mut header = [0; 320];
        file.read(0, &mut header).unwrap();
        assert_eq!(header, [7; 320]);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(read(&path, 1, 3).unwrap(), pages);
        assert!(is_refused(&path, 4), "what was never written");
        for place in [0, 319, 500, 511, STRIDE_BYTES, 2 * STRIDE_BYTES - 9, 2 * STRIDE_BYTES - 1] {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert!(is_refused(&path, 1), "byte {place}");
            assert_eq!(is_refused(&path, 2), place < 512, "byte {place}");
        }
        let mut swapped = whole.clone();
        let (first, second) = swapped[STRIDE_BYTES..].split_at_mut(STRIDE_BYTES);
        first.swap_with_slice(&mut second[..STRIDE_BYTES]);
        std::fs::write(&path, &swapped).unwrap();
        assert!(is_refused(&path, 1) && is_refused(&path, 2) && !is_refused(&path, 3));
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(checked(&path, false).len().is_err());
        std::fs::write(&path, []).unwrap();
        let none = CheckedFile::open(&path, false, true, Arc::new(Reserve::new(folder.path()))).unwrap_err();
        assert_eq!(none.to_string(), "it is empty");
    }

    #[test]
    fn a_block_that_is_younger_than_the_header_is_refused_except_where_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = checked(&path, true);
        file.set_len(2 * BLOCK_BYTES as u64).unwrap();
        file.write(0, &[1; 320]).unwrap();
        file.write(BLOCK_BYTES as u64, &[2; BLOCK_BYTES]).unwrap();
        file.read(BLOCK_BYTES as u64, &mut [0; BLOCK_BYTES]).unwrap();
        assert!(is_refused(&path, 1));
        file.write(0, &[1; 320]).unwrap();
        assert!(!is_refused(&path, 1));
    }
}
