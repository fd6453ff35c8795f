//! Memory from `mmap`: the rings that the kernel shares with us, and the frames.
//!
//! This file needs `unsafe`, because Rust has no safe call for `mmap`. A [`Mapping`] owns its bytes and gives them back
//! when it is dropped. [`Mapping::place`] gives pointers into it only after a check of bounds and alignment, so that we
//! never trust offsets from the kernel.
//!
//! Cost: one system call each way. All pages are present from the start (`MAP_POPULATE`), so that no packet waits for
//! one. Limit: the memory of the system; `open` fails if it has too little.
#![allow(unsafe_code, reason = "leaf: memory from mmap")]

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

const READ_AND_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// See the module.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a Mapping is an address and a length; the memory belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: no method reads or writes the memory, and no method changes the Mapping.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroes that only this process knows.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address, so no memory in use is replaced.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, READ_AND_WRITE, MapFlags::PRIVATE | MapFlags::POPULATE)
        };
        Self::owned(start?, bytes)
    }

    /// What a socket shares at `offset`, for example a ring.
    pub(crate) fn of_socket(socket: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Self> {
        // SAFETY: as above. Both sides may write the memory; callers reach it only by pointers from `place`.
        let start = unsafe {
            let flags = MapFlags::SHARED | MapFlags::POPULATE;
            mmap(std::ptr::null_mut(), bytes, READ_AND_WRITE, flags, socket, offset)
        };
        Self::owned(start?, bytes)
    }

    fn owned(start: *mut c_void, bytes: usize) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, bytes })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Address of the first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Where `count` values of type `T` start that are `offset` bytes from the start of the mapping. `None` if they are
    /// not within it or not aligned. The pointer is good while the mapping is alive.
    pub(crate) fn place<T>(&self, offset: u64, count: usize) -> Option<NonNull<T>> {
        let offset = usize::try_from(offset).ok()?;
        let end = count.checked_mul(size_of::<T>())?.checked_add(offset)?;
        if end > self.bytes {
            return None;
        }
        // SAFETY: `offset` is at most the length of the mapping, which is one object.
        let place: NonNull<T> = unsafe { self.start.add(offset) }.cast();
        place.is_aligned().then_some(place)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY:
        // - the mapping was made by `mmap` with this length, and nothing else unmaps it;
        // - who holds pointers into it also holds the Mapping (the rings and the frames of this crate).
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "the mapping is ours");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_within_the_mapping_and_aligned() {
        let mapping = Mapping::anonymous(4_096).expect("one page");
        assert!(mapping.place::<u64>(0, 512).is_some());
        assert!(mapping.place::<u64>(4_088, 1).is_some());
        assert!(mapping.place::<u64>(4_088, 2).is_none());
        assert!(mapping.place::<u64>(4_092, 1).is_none());
        assert!(mapping.place::<u64>(4, 1).is_none(), "not aligned");
        assert!(mapping.place::<u64>(u64::MAX, 1).is_none());
        assert!(mapping.place::<u64>(8, usize::MAX).is_none());
    }
}
