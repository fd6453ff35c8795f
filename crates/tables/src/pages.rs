//! Pages: where do the large arrays of the tables live?
//!
//! Source: Yuan15 Fig. 3.6 and Takemasa19 §3.1.1 (tables on huge pages, so that a
//! random access does not pay for a page walk as well). An array is mapped once, at
//! its full length, zeroed by the kernel; what is never touched costs no memory
//! (with explicit huge pages: all is taken at once).
//!
//! ```text
//! PageArray<T>:  | T 0 | T 1 | … | T len-1 | rest of the last page |
//!                ^ page-aligned, so every T whose size divides 64 lies in one line
//! ```
//!
//! Cost: none per access. Bytes: the length rounded up to pages. Limits: what the
//! kernel maps; a refusal is an [`std::io::Error`], at start-up, never a crash later
//! (but memory that the machine does not have ends the process when it is touched,
//! as on every system that overcommits). Who may write: the owner.
#![allow(unsafe_code, reason = "leaf: memory from mmap as a slice")]

use bytemuck::Zeroable;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Which pages an array asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PageSize {
    /// The processor's base pages (4 KiB), and nothing larger.
    Base,
    /// Base pages that the kernel may join to huge ones (`madvise`). The default.
    #[default]
    Transparent,
    /// 2 MiB pages, reserved beforehand (`vm.nr_hugepages`).
    Huge2MiB,
    /// 1 GiB pages, reserved beforehand (kernel option `hugepagesz=1G`, or the
    /// `nr_hugepages` file of that size).
    Huge1GiB,
}

impl PageSize {
    /// Every choice, in the order of size.
    pub const ALL: [Self; 4] = [Self::Base, Self::Transparent, Self::Huge2MiB, Self::Huge1GiB];

    /// The name in configuration and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base => "4KiB",
            Self::Transparent => "transparent",
            Self::Huge2MiB => "2MiB",
            Self::Huge1GiB => "1GiB",
        }
    }

    /// Octets of one page; of a transparent one if it was joined.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Base => 4 << 10,
            Self::Transparent | Self::Huge2MiB => 2 << 20,
            Self::Huge1GiB => 1 << 30,
        }
    }
}

/// A fixed array of `T` on pages of its own, all zero at first.
pub struct PageArray<T> {
    first: NonNull<T>,
    len: usize,
    mapped_bytes: usize,
}

// SAFETY: the array owns its mapping alone, like a `Box<[T]>`.
unsafe impl<T: Send> Send for PageArray<T> {}
// SAFETY: as above; `&PageArray<T>` gives `&[T]` and nothing more.
unsafe impl<T: Sync> Sync for PageArray<T> {}

impl<T: Zeroable> PageArray<T> {
    /// `len` zeroed elements.
    ///
    /// # Errors
    /// If the kernel does not map them: not enough reserved huge pages, or a limit.
    ///
    /// # Panics
    /// If `T` needs dropping or is aligned to more than a page: a mistake of the caller.
    pub fn zeroed(len: usize, pages: PageSize) -> io::Result<Self> {
        Self::map(len, pages, false)
    }

    /// `len` zeroed elements that are going to be used from the front on, most of them
    /// perhaps never: with transparent pages the first 2 MiB are base pages, so that an
    /// array that is nearly empty holds some KiB and not a huge page.
    ///
    /// # Errors
    /// As [`PageArray::zeroed`].
    pub fn zeroed_for_growth(len: usize, pages: PageSize) -> io::Result<Self> {
        Self::map(len, pages, true)
    }

    fn map(len: usize, pages: PageSize, fine_front: bool) -> io::Result<Self> {
        const { assert!(!std::mem::needs_drop::<T>() && align_of::<T>() <= 4096) };
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        if bytes == 0 {
            return Ok(Self { first: NonNull::dangling(), len, mapped_bytes: 0 });
        }
        // A small array does not gain from a huge page; it would only hold one.
        let joins = pages == PageSize::Transparent && bytes >= PageSize::Transparent.bytes();
        let page_bytes = if pages == PageSize::Transparent && !joins { PageSize::Base.bytes() } else { pages.bytes() };
        let mapped_bytes = bytes.checked_next_multiple_of(page_bytes).ok_or_else(too_large)?;
        let flags = match pages {
            PageSize::Base | PageSize::Transparent => MapFlags::PRIVATE | MapFlags::NORESERVE,
            PageSize::Huge2MiB => MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB,
            PageSize::Huge1GiB => MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_1GB,
        };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches
        // nothing that exists.
        let address = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_bytes, access, flags) }?;
        let advice = if joins { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        if matches!(pages, PageSize::Base | PageSize::Transparent) {
            // SAFETY: the range is the mapping made above; neither advice changes its content.
            // A kernel without transparent huge pages refuses, and base pages do as well.
            let _ = unsafe { madvise(address, mapped_bytes, advice) };
        }
        if joins && fine_front {
            // SAFETY: the mapping is at least these 2 MiB long; the advice changes no content.
            let _ = unsafe { madvise(address, PageSize::Transparent.bytes(), Advice::LinuxNoHugepage) };
        }
        let first = NonNull::new(address.cast()).ok_or_else(too_large)?;
        Ok(Self { first, len, mapped_bytes })
    }
}

impl<T> PageArray<T> {
    /// Octets of address space taken, padding to whole pages included.
    pub fn mapped_bytes(&self) -> usize {
        self.mapped_bytes
    }
}

impl<T> Deref for PageArray<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY:
        // - `first` is page-aligned (or dangling with `len * size_of::<T>() == 0`) and the
        //   mapping holds `len` elements: `zeroed`.
        // - Every element was valid as zeros (`Zeroable`) and since then only written as `T`.
        // - The mapping lives until `drop`; `&self` keeps `&mut` slices away.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PageArray<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` keeps every other slice away.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T> Drop for PageArray<T> {
    fn drop(&mut self) {
        if self.mapped_bytes > 0 {
            // SAFETY: the mapping is ours alone, and no slice of it outlives `self`;
            // elements need no drop (asserted in `zeroed`).
            let unmapped = unsafe { munmap(self.first.as_ptr().cast(), self.mapped_bytes) };
            debug_assert!(unmapped.is_ok());
        }
    }
}

impl<T> std::fmt::Debug for PageArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageArray").field("len", &self.len).field("mapped_bytes", &self.mapped_bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_zero_and_keeps_what_is_written() {
        for pages in [PageSize::Base, PageSize::Transparent] {
            for len in [0, 1, 1000, 600_000] {
                let mut array = PageArray::<u64>::zeroed_for_growth(len, pages).unwrap();
                assert_eq!(PageArray::<u64>::zeroed(len, pages).unwrap()[..], array[..]);
                assert_eq!(array.len(), len);
                assert!(array.iter().all(|&word| word == 0));
                for (index, word) in array.iter_mut().enumerate() {
                    *word = index as u64;
                }
                assert!(array.iter().enumerate().all(|(index, &word)| word == index as u64));
                assert!(array.mapped_bytes() >= len * 8);
                assert!(array.as_ptr().addr().is_multiple_of(64) || len == 0);
            }
        }
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        assert!(PageArray::<u64>::zeroed(usize::MAX / 4, PageSize::Base).is_err());
        assert!(PageArray::<u64>::zeroed(usize::MAX / 16, PageSize::Transparent).is_err());
    }

    /// Either the machine has such pages reserved, or the refusal is an error and not a signal.
    #[test]
    fn explicit_huge_pages_are_granted_or_refused() {
        for pages in [PageSize::Huge2MiB, PageSize::Huge1GiB] {
            if let Ok(mut array) = PageArray::<u64>::zeroed(10, pages) {
                array[9] = 1;
                assert_eq!((array[8], array[9]), (0, 1));
            }
        }
    }
}
