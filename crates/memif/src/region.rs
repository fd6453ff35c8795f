//! Regions: memory that both ends have mapped.
//!
//! This file needs `unsafe`, because Rust has no safe call for `mmap`, and no type for memory that another process may
//! write at any time. It never makes a reference to such bytes. A [`Span`] is a checked place: its only operations copy
//! bytes in, copy bytes out and prefetch. The copied bytes may have any values, also a mix of two writes.
//!
//! *Is such a copy sound?* To Rust, a write by another process is like a write by a device. The copies are calls of
//! `ptr::copy_nonoverlapping` on raw pointers, which compile to `memcpy`; no value with an invariant is read. Other
//! Rust software does the same with memory of guests and devices (Firecracker, crosvm).
//!
//! Cost: a span is one comparison of bounds; a copy is one `memcpy`.
#![allow(unsafe_code, reason = "leaf: memory shared with another process")]

use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// One mapped file.
#[derive(Debug)]
struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a Region is an address and a length; the memory belongs to the process, not to a thread.
unsafe impl Send for Region {}
// SAFETY: no method of a shared Region changes it, and its memory is only copied, by `Span`, or accessed atomically.
unsafe impl Sync for Region {}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY:
        // - `map` made the mapping with this length, and nothing else unmaps it;
        // - spans borrow the Memory that owns the Region, and a ring holds an Arc of it, so no pointer is left.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "the mapping is ours");
    }
}

/// Where the bytes of a buffer are, as a descriptor says. Not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) region: u16,
    /// Bytes from the start of the region.
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// All regions of a connection, in the order of their index.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    regions: Vec<Region>,
}

impl Memory {
    /// Number of regions.
    pub(crate) fn regions(&self) -> usize {
        self.regions.len()
    }

    /// Bytes of all regions.
    pub(crate) fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.bytes as u64).sum()
    }

    /// Maps the first `bytes` of a file as the next region. The file must never get shorter (`memfd::check`).
    /// `populate`: make all pages present now, so that no packet waits for one.
    ///
    /// # Errors
    /// Those of the kernel.
    pub(crate) fn map(&mut self, file: BorrowedFd<'_>, bytes: usize, populate: bool) -> io::Result<()> {
        let flags = if populate { MapFlags::SHARED | MapFlags::POPULATE } else { MapFlags::SHARED };
        // SAFETY: the kernel chooses the address, so no memory in use is replaced.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        self.regions.push(Region { start, bytes });
        Ok(())
    }

    /// The place of a part; `None` if it is not wholly in a region.
    #[inline]
    pub(crate) fn span(&self, part: Part) -> Option<Span<'_>> {
        let region = self.regions.get(usize::from(part.region))?;
        let end = u64::from(part.offset) + u64::from(part.bytes);
        if end > region.bytes as u64 {
            return None;
        }
        // SAFETY: `offset` is at most the length of the mapping, which is one object.
        let start = unsafe { region.start.add(part.offset as usize) };
        Some(Span { start, bytes: part.bytes as usize, memory: PhantomData })
    }

    /// A pointer to `bytes` bytes, aligned to `align`; `None` if they are not wholly in the region.
    pub(crate) fn place(&self, region: u16, offset: u32, bytes: u32, align: usize) -> Option<NonNull<u8>> {
        let span = self.span(Part { region, offset, bytes })?;
        (span.start.addr().get().is_multiple_of(align)).then_some(span.start)
    }
}

/// A place in shared memory, checked. The peer may write it at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    start: NonNull<u8>,
    bytes: usize,
    memory: PhantomData<&'a Memory>,
}

impl Span<'_> {
    /// Copies the start of the span to `out`: as much as both have. Returns how many bytes.
    #[inline]
    pub(crate) fn copy_to(&self, out: &mut [u8]) -> usize {
        let bytes = self.bytes.min(out.len());
        // SAFETY:
        // - `Memory::span` checked that the bytes are in the mapping, which lives longer than the span;
        // - the mapping's file cannot get shorter (`memfd`), so the access does not fail;
        // - `out` is a Rust object, so no part of the mapping: the ranges do not overlap;
        // - the peer may write the bytes meanwhile. Then the copy holds any bytes, which `u8` allows (see the module).
        unsafe { self.start.as_ptr().copy_to_nonoverlapping(out.as_mut_ptr(), bytes) };
        bytes
    }

    /// Copies `bytes` to the start of the span, and returns what did not fit.
    #[inline]
    pub(crate) fn copy_from<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let (fits, rest) = bytes.split_at(self.bytes.min(bytes.len()));
        // SAFETY: as for `copy_to`. The peer may read the bytes meanwhile: it gets any bytes, which is its affair.
        unsafe { self.start.as_ptr().copy_from_nonoverlapping(fits.as_ptr(), fits.len()) };
        rest
    }

    /// What follows the first `bytes` bytes.
    #[inline]
    pub(crate) fn skip(&self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        // SAFETY: the result is at most the end of the span, which is in the mapping.
        let start = unsafe { self.start.add(bytes) };
        Span { start, bytes: self.bytes - bytes, memory: PhantomData }
    }

    /// Bytes of the span.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Asks the processor to bring the first two cache lines near. Only a hint; does nothing on other processors than
    /// x86-64.
    #[inline]
    pub(crate) fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch reads nothing and cannot fail, whatever the address is.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(self.start.as_ptr().cast());
                _mm_prefetch::<_MM_HINT_T0>(self.start.as_ptr().wrapping_add(64).cast());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::memfd;

    fn memory() -> Memory {
        let mut memory = Memory::default();
        for bytes in [4_096, 8_192] {
            let file = memfd::create(bytes).expect("a file");
            memory.map(file.as_fd(), bytes as usize, false).expect("mapped");
        }
        memory
    }

    #[test]
    fn spans_are_within_their_region() {
        let memory = memory();
        let is_span = |region, offset, bytes| memory.span(Part { region, offset, bytes }).is_some();
        assert!(is_span(0, 0, 4_096) && is_span(0, 4_096, 0) && is_span(1, 4_096, 4_096));
        assert!(!is_span(0, 1, 4_096) && !is_span(0, 4_097, 0) && !is_span(2, 0, 0));
        assert!(!is_span(1, u32::MAX, u32::MAX) && !is_span(u16::MAX, 0, 1));
        assert!(memory.place(1, 128, 144, 16).is_some() && memory.place(1, 130, 144, 16).is_none());
        assert_eq!((memory.regions(), memory.bytes()), (2, 12_288));
    }

    #[test]
    fn copies_take_what_fits() {
        let memory = memory();
        let span = memory.span(Part { region: 1, offset: 100, bytes: 5 }).expect("in the region");
        assert_eq!(span.copy_from(b"abcdefg"), b"fg");
        let mut out = [0; 8];
        assert_eq!((span.copy_to(&mut out), &out), (5, b"abcde\0\0\0"));
        assert_eq!((span.copy_to(&mut out[..2]), span.skip(3).len(), span.skip(9).len()), (2, 2, 0));
        assert_eq!((span.skip(3).copy_to(&mut out), &out[..2]), (2, &b"de"[..]));
        span.prefetch();
    }
}
