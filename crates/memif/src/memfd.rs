//! Memory files: the one that a client makes, and the checks of one that a peer gives.
//!
//! A process that touches a page past the end of a mapped file is killed (SIGBUS). So a peer's file is used only if it
//! can never get shorter: it has the seal `F_SEAL_SHRINK`, which no process can remove. DPDK, libmemif and VPP set it.
//! Files in huge pages are refused too: there, a touch can fail when the system has no page left. (A client of DPDK
//! with `zero-copy=yes` shares such files, without seals; it must use `zero-copy=no`.)
//!
//! Source: memfd_create(2), fcntl(2), "File Sealing".

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate, memfd_create};

use crate::Broken;

/// The file system of memory files in normal pages (`TMPFS_MAGIC` of linux/magic.h).
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// A new file of this length, full of zeroes. Nobody can change its length.
///
/// # Errors
/// Those of the kernel, for example when no memory is left.
pub(crate) fn create(bytes: u64) -> io::Result<OwnedFd> {
    let file = memfd_create("memif region", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Makes sure that the first `bytes` of a peer's file can be mapped and touched as long as this process lives.
///
/// # Errors
/// The rule that the file breaks.
pub(crate) fn check(file: BorrowedFd<'_>, bytes: u64) -> Result<(), Broken> {
    // Other files than memory files have no seals: EINVAL.
    let seals = fcntl_get_seals(file).map_err(|_| Broken("region is no memory file"))?;
    if !seals.contains(SealFlags::SHRINK) {
        return Err(Broken("region is not sealed against shrinking"));
    }
    let system = fstatfs(file).map_err(|_| Broken("region is no memory file"))?;
    if system.f_type as u64 != TMPFS_MAGIC {
        return Err(Broken("region is in huge pages"));
    }
    let length = fstat(file).map_err(|_| Broken("region is no memory file"))?.st_size;
    if u64::try_from(length).is_ok_and(|length| length >= bytes) {
        return Ok(());
    }
    Err(Broken("region file is shorter than the region"))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn only_sealed_memory_files_that_are_long_enough_are_taken() {
        let file = create(8_192).expect("a file");
        assert_eq!(check(file.as_fd(), 8_192), Ok(()));
        assert!(check(file.as_fd(), 8_193).is_err());
        assert!(ftruncate(&file, 4_096).is_err(), "sealed");

        let unsealed = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a file");
        ftruncate(&unsealed, 8_192).expect("long enough");
        assert_eq!(check(unsealed.as_fd(), 8_192), Err(Broken("region is not sealed against shrinking")));

        let on_disk = tempfile::tempfile().expect("a file");
        on_disk.set_len(8_192).expect("long enough");
        assert!(check(on_disk.as_fd(), 8_192).is_err());
    }
}
