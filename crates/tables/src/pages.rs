//! Pages: the memory mappings that hold the large arrays of the tables.
//!
//! Source: Yuan15 Fig. 3.6 and Takemasa19 §3.1.1 (tables on huge pages, so that a random access does not
//! pay for a page walk as well). An array is mapped at its full length, zeroed by the kernel. Memory that
//! is never touched costs nothing, except with explicit huge pages: these are all taken at once.
//!
//! ```text
//! PageArray<T>:  | T 0 | T 1 | … | T len-1 | rest of the last page |
//!                ^ page-aligned, so every T whose size divides 64 lies in one line
//! PageVec<T>:    | T 0 | … | T len-1 | room for capacity - len more |
//! ```
//!
//! Cost: an access costs nothing extra. Bytes: an array takes its length rounded up to pages. Limits: the
//! kernel decides how much it maps. A refusal is an [`std::io::Error`] at start-up. A system that
//! overcommits may map memory that the machine does not have; touching it then ends the process. A new
//! array of [`LARGE_BYTES`] or more is also refused if less than the reserve of [`crate::head_room`] would
//! be left.
//! Writers: the owner.
#![allow(unsafe_code, reason = "leaf: memory from mmap as a slice")]

use crate::head_room;
use bytemuck::Zeroable;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap};
use std::io;
use std::marker::PhantomData;
use std::num::NonZero;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// With transparent pages, arrays below this size stay on base pages. Their page table entries fit the
/// caches, and the first entry of a table must not cost a whole huge page: a process with hundreds of small
/// routers (the simulator) would hold gigabytes.
const JOINED_FROM_BYTES: usize = 32 << 20;

const BASE_PAGE_BYTES: usize = 4 << 10;

/// Smaller arrays do not ask for head room.
pub const LARGE_BYTES: usize = 1 << 20;

namewire_packet::names! {
    /// Which pages an array asks for.
    #[derive(Default)]
    pub enum PageSize {
        /// The processor's base pages (4 KiB), and nothing larger.
        Base = "4KiB",
        /// Base pages that the kernel may join to huge ones (`madvise`). The default.
        #[default]
        Transparent = "transparent",
        /// 2 MiB pages, reserved beforehand (`vm.nr_hugepages`), for arrays of 1 MiB and more.
        Huge2MiB = "2MiB",
        /// 1 GiB pages, reserved beforehand (kernel option `hugepagesz=1G`, or the
        /// `nr_hugepages` file of that size), for arrays of 512 MiB and more.
        Huge1GiB = "1GiB",
    }
}

impl PageSize {
    /// The pages for an array that may stay nearly empty: explicit huge pages are taken at once, and would
    /// be wasted on it.
    pub const fn for_sparse(self) -> Self {
        match self {
            Self::Base => Self::Base,
            _ => Self::Transparent,
        }
    }

    /// The pages for an array of this many bytes: explicit huge ones if it fills half of one.
    const fn for_bytes(self, bytes: usize) -> Self {
        if bytes < self.bytes() / 2 { self.for_sparse() } else { self }
    }

    const fn is_explicit(self) -> bool {
        matches!(self, Self::Huge2MiB | Self::Huge1GiB)
    }

    /// Bytes of one page; for transparent pages, of a joined one.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Base => BASE_PAGE_BYTES,
            Self::Transparent | Self::Huge2MiB => 2 << 20,
            Self::Huge1GiB => 1 << 30,
        }
    }
}

/// An array of `T` on pages of its own, all zero at first.
pub struct PageArray<T> {
    mapping: Mapping,
    len: usize,
    holds: PhantomData<T>,
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
        const { assert!(!std::mem::needs_drop::<T>() && align_of::<T>() <= BASE_PAGE_BYTES) };
        let bytes = bytes_of::<T>(len)?;
        leave_reserve(bytes)?;
        Ok(Self { mapping: Mapping::new(bytes, pages)?, len, holds: PhantomData })
    }

    /// [`PageArray::zeroed`] for a part of a structure that grows: transparent pages where too few explicit ones are
    /// reserved.
    ///
    /// # Errors
    /// If the kernel does not map them.
    pub fn zeroed_preferably(len: usize, pages: PageSize) -> io::Result<Self> {
        leave_reserve(bytes_of::<T>(len)?)?;
        Self::zeroed_from_reserve(len, pages)
    }

    /// [`PageArray::zeroed_preferably`] for an owner that has already asked for head room and may take the reserve.
    ///
    /// # Errors
    /// If the kernel does not map them.
    pub fn zeroed_from_reserve(len: usize, pages: PageSize) -> io::Result<Self> {
        Ok(Self { mapping: Mapping::preferring(bytes_of::<T>(len)?, pages)?, len, holds: PhantomData })
    }

    /// `len` zeroed elements, used from the front on, most perhaps never. With transparent pages the first
    /// 2 MiB are base pages, so that a nearly empty array holds some KiB and not a huge page.
    ///
    /// # Errors
    /// As [`PageArray::zeroed`].
    pub fn zeroed_for_growth(len: usize, pages: PageSize) -> io::Result<Self> {
        let array = Self::zeroed(len, pages)?;
        array.mapping.keep_front_on_base_pages();
        Ok(array)
    }

    /// From now on the array grows on transparent pages where too few explicit ones are reserved.
    pub fn or_transparent(mut self) -> Self {
        self.mapping.or_transparent = true;
        self
    }

    /// Lengthens the array (never shortens it) by zeroed elements. It may move in the address space, not in
    /// memory: nothing is copied. On explicit huge pages everything is copied, and both arrays must be
    /// reserved meanwhile, because the kernel lengthens no mapping of such pages.
    ///
    /// # Errors
    /// If the kernel refuses; the array is then what it was.
    pub fn grow(&mut self, len: usize) -> io::Result<()> {
        if len > self.len {
            self.mapping.grow(bytes_of::<T>(len)?)?;
            self.len = len;
        }
        Ok(())
    }
}

impl<T> PageArray<T> {
    /// Bytes of address space, padding to whole pages included.
    pub fn mapped_bytes(&self) -> usize {
        self.mapping.bytes
    }

    /// The most memory that an array of [`PageArray::zeroed_for_growth`] holds if only its first `len`
    /// elements were ever touched.
    pub fn touched_bytes(&self, len: usize) -> usize {
        let bytes = len.saturating_mul(size_of::<T>()).min(self.mapping.bytes);
        let page_bytes = match self.mapping.pages {
            PageSize::Huge2MiB | PageSize::Huge1GiB => return self.mapping.bytes,
            PageSize::Transparent if self.mapping.is_joined() && bytes > PageSize::Transparent.bytes() => {
                PageSize::Transparent.bytes()
            }
            PageSize::Base | PageSize::Transparent => BASE_PAGE_BYTES,
        };
        bytes.next_multiple_of(page_bytes)
    }
}

impl<T> Deref for PageArray<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY:
        // - The address is page-aligned (or dangling, aligned to a page, with no bytes) and
        //   the mapping holds `len` elements: `zeroed` and `grow`.
        // - Every element was valid as zeros (`Zeroable`) and since then only written as `T`.
        // - The mapping lives until `drop`; `&self` keeps `&mut` slices away.
        unsafe { std::slice::from_raw_parts(self.mapping.address.cast().as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PageArray<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` keeps every other slice away.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.address.cast().as_ptr(), self.len) }
    }
}

/// A vector of a fixed capacity on pages of its own, for elements that are not valid as zeros.
pub struct PageVec<T> {
    mapping: Mapping,
    len: usize,
    capacity: usize,
    holds: PhantomData<T>,
}

// SAFETY: the vector owns its mapping alone, like a `Vec<T>`.
unsafe impl<T: Send> Send for PageVec<T> {}
// SAFETY: as above; `&PageVec<T>` gives `&[T]` and nothing more.
unsafe impl<T: Sync> Sync for PageVec<T> {}

impl<T> PageVec<T> {
    /// An empty vector with room for `capacity` elements.
    ///
    /// # Errors
    /// As [`PageArray::zeroed`].
    ///
    /// # Panics
    /// If `T` is aligned to more than a page: a mistake of the caller.
    pub fn with_capacity(capacity: usize, pages: PageSize) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= BASE_PAGE_BYTES) };
        let bytes = bytes_of::<T>(capacity)?;
        leave_reserve(bytes)?;
        Ok(Self { mapping: Mapping::new(bytes, pages)?, len: 0, capacity, holds: PhantomData })
    }

    /// See [`PageArray::or_transparent`].
    pub fn or_transparent(mut self) -> Self {
        self.mapping.or_transparent = true;
        self
    }

    /// Bytes of memory mapped for the vector.
    pub fn mapped_bytes(&self) -> usize {
        self.mapping.bytes
    }

    /// Makes room for `capacity` elements, if there is less; see [`PageArray::grow`].
    ///
    /// # Errors
    /// If the kernel refuses; the vector is then what it was.
    pub fn grow(&mut self, capacity: usize) -> io::Result<()> {
        if capacity > self.capacity {
            self.mapping.grow(bytes_of::<T>(capacity)?)?;
            self.capacity = capacity;
        }
        Ok(())
    }

    /// How many elements there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Appends an element.
    ///
    /// # Panics
    /// If the vector is full.
    pub fn push(&mut self, value: T) {
        assert!(self.len < self.capacity, "a vector of {} elements is full", self.capacity);
        // SAFETY: the place is within the mapping (asserted), aligned (see `deref`), and no
        // element is there yet that would have to be dropped.
        unsafe { self.mapping.address.cast::<T>().add(self.len).write(value) };
        self.len += 1;
    }
}

impl<T> Deref for PageVec<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY:
        // - The address is page-aligned (or dangling, aligned to a page, if there is no room or
        //   `T` takes none) and the first `len` elements were written by `push`.
        // - The mapping lives until `drop`; `&self` keeps `&mut` slices away.
        unsafe { std::slice::from_raw_parts(self.mapping.address.cast().as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PageVec<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` keeps every other slice away.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.address.cast().as_ptr(), self.len) }
    }
}

impl<T> Drop for PageVec<T> {
    fn drop(&mut self) {
        if std::mem::needs_drop::<T>() {
            // SAFETY: these elements were pushed and not dropped yet; the mapping still exists.
            unsafe { std::ptr::drop_in_place::<[T]>(&mut **self) };
        }
    }
}

/// Bytes of `len` elements.
fn bytes_of<T>(len: usize) -> io::Result<usize> {
    len.checked_mul(size_of::<T>()).ok_or_else(too_large)
}

fn too_large() -> io::Error {
    io::ErrorKind::OutOfMemory.into()
}

/// Anonymous memory that is ours alone.
struct Mapping {
    address: NonNull<u8>,
    bytes: usize,
    /// The pages that it lies on.
    pages: PageSize,
    /// The pages that its owner asked for; explicit huge ones are used from some size on.
    asked: PageSize,
    /// Where too few of these are reserved, transparent ones will do.
    or_transparent: bool,
}

impl Mapping {
    fn new(bytes: usize, asked: PageSize) -> io::Result<Self> {
        let pages = asked.for_bytes(bytes);
        if bytes == 0 {
            // Aligned, as every address of a mapping is.
            let address = NonNull::without_provenance(const { NonZero::new(BASE_PAGE_BYTES).unwrap() });
            return Ok(Self { address, bytes, pages, asked, or_transparent: false });
        }
        let bytes = whole_pages(bytes, pages)?;
        let flags = match pages {
            PageSize::Base | PageSize::Transparent => MapFlags::PRIVATE | MapFlags::NORESERVE,
            PageSize::Huge2MiB => MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB,
            PageSize::Huge1GiB => MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_1GB,
        };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches
        // nothing that exists.
        let address = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, flags) }?;
        let address = NonNull::new(address.cast()).ok_or_else(too_large)?;
        let mapping = Self { address, bytes, pages, asked, or_transparent: false };
        mapping.advise();
        Ok(mapping)
    }

    /// On transparent pages if the kernel has too few explicit ones.
    fn preferring(bytes: usize, asked: PageSize) -> io::Result<Self> {
        let mut mapping = Self::new(bytes, asked).or_else(|_| Self::new(bytes, asked.for_sparse()))?;
        (mapping.asked, mapping.or_transparent) = (asked, true);
        Ok(mapping)
    }

    /// Lengthens the mapping to at least `bytes` bytes, the new ones zero; unchanged if the kernel refuses.
    fn grow(&mut self, bytes: usize) -> io::Result<()> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let moves = self.bytes == 0 || self.pages.is_explicit() || self.asked.for_bytes(bytes).is_explicit();
        let larger = moves.then(|| Self::new(bytes, self.asked)).transpose();
        let larger = match larger {
            Err(_) if self.or_transparent && (self.bytes == 0 || self.pages.is_explicit()) => {
                Some(Self::new(bytes, self.asked.for_sparse())?)
            }
            Err(_) if self.or_transparent => None, // it lies on transparent pages already
            larger => larger?,
        };
        if let Some(mut larger) = larger {
            (larger.asked, larger.or_transparent) = (self.asked, self.or_transparent);
            // SAFETY: the mappings are different and both ours alone, and the second is longer. The kernel
            // initialised the bytes of the first, if nothing else did.
            unsafe { larger.address.copy_from_nonoverlapping(self.address, self.bytes) };
            *self = larger;
            return Ok(());
        }
        let bytes = whole_pages(bytes, self.pages)?;
        // SAFETY: the range is exactly our mapping, and `&mut self` excludes every other reference into it.
        // If it moves, the old addresses are used no more.
        let address = unsafe { mremap(self.address.as_ptr().cast(), self.bytes, bytes, MremapFlags::MAYMOVE) }?;
        (self.address, self.bytes) = (NonNull::new(address.cast()).ok_or_else(too_large)?, bytes);
        self.advise();
        Ok(())
    }

    fn keep_front_on_base_pages(&self) {
        let front_bytes = PageSize::Transparent.bytes();
        if self.pages == PageSize::Transparent && self.bytes >= front_bytes {
            // SAFETY: the range lies in our mapping; the advice does not change its content,
            // and where the kernel refuses it, the page is merely larger.
            let _ = unsafe { madvise(self.address.as_ptr().cast(), front_bytes, Advice::LinuxNoHugepage) };
        }
    }

    /// Whether transparent pages of this array are to be joined.
    fn is_joined(&self) -> bool {
        self.bytes >= JOINED_FROM_BYTES
    }

    fn advise(&self) {
        let advice = match self.pages {
            PageSize::Transparent if self.is_joined() => Advice::LinuxHugepage,
            PageSize::Base | PageSize::Transparent => Advice::LinuxNoHugepage,
            PageSize::Huge2MiB | PageSize::Huge1GiB => return,
        };
        // SAFETY: the range is our mapping; neither advice changes its content.
        // A kernel without transparent huge pages refuses, and base pages do as well.
        let _ = unsafe { madvise(self.address.as_ptr().cast(), self.bytes, advice) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the mapping is ours alone, and no slice of it outlives its owner.
            let unmapped = unsafe { munmap(self.address.as_ptr().cast(), self.bytes) };
            debug_assert!(unmapped.is_ok());
        }
    }
}

/// Refuses a large array if it would leave less than the reserve.
fn leave_reserve(bytes: usize) -> io::Result<()> {
    let is_allowed = bytes < LARGE_BYTES || head_room::is_there(bytes);
    is_allowed.then_some(()).ok_or(rustix::io::Errno::NOMEM.into())
}

/// Whether the kernel maps this many bytes now; they are given back at once.
pub(crate) fn can_map(bytes: usize) -> bool {
    Mapping::new(bytes.max(1), PageSize::Base).is_ok()
}

fn whole_pages(bytes: usize, pages: PageSize) -> io::Result<usize> {
    let joins = pages != PageSize::Transparent || bytes >= JOINED_FROM_BYTES;
    let page_bytes = if joins { pages.bytes() } else { BASE_PAGE_BYTES };
    bytes.checked_next_multiple_of(page_bytes).ok_or_else(too_large)
}

impl<T> std::fmt::Debug for PageArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageArray").field("len", &self.len).field("mapped_bytes", &self.mapped_bytes()).finish()
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

    /// Few machines have reserved pages of a gibibyte; then a structure that grows goes on without.
    #[test]
    fn growing_arrays_do_without_explicit_pages_that_are_not_reserved() {
        let words = 600 << 17;
        let strict = PageArray::<u64>::zeroed(words, PageSize::Huge1GiB);
        let mut grown = PageArray::<u64>::zeroed(8, PageSize::Huge1GiB).unwrap().or_transparent();
        grown[7] = 9;
        grown.grow(words).unwrap();
        assert_eq!((grown.len(), grown[7], grown[words - 1]), (words, 9, 0));
        let whole = PageArray::<u64>::zeroed_preferably(words, PageSize::Huge1GiB).unwrap();
        let explicit = |array: &PageArray<u64>| array.mapping.pages == PageSize::Huge1GiB;
        assert!(strict.is_ok() || !explicit(&grown) && !explicit(&whole));
        grown.grow(words + 8).unwrap();
        assert_eq!((grown.mapping.asked, grown[7]), (PageSize::Huge1GiB, 9));
        let mut empty = PageArray::<u64>::zeroed(0, PageSize::Huge1GiB).unwrap().or_transparent();
        empty.grow(words).unwrap();
        let mut strict = PageArray::<u64>::zeroed(8, PageSize::Huge1GiB).unwrap();
        assert!(strict.grow(words).is_ok() || !explicit(&whole), "without leave it is refused");
    }

    #[test]
    fn an_array_grows_and_keeps_what_it_holds() {
        let mut array = PageArray::<u64>::zeroed(0, PageSize::Transparent).unwrap();
        for len in [1, 600, 5_000_000, 20_000_000] {
            array.grow(len).unwrap();
            assert_eq!((array.len(), array[len - 1]), (len, 0));
            array[len - 1] = len as u64;
        }
        assert_eq!([array[0], array[599], array[4_999_999]], [1, 600, 5_000_000]);
        assert!(array.grow(usize::MAX / 16).is_err());
        assert_eq!((array.len(), array[599]), (20_000_000, 600), "a refusal changes nothing");
    }

    #[test]
    fn a_vector_drops_each_element_once() {
        let counted = std::rc::Rc::new(());
        let mut vector = PageVec::with_capacity(3, PageSize::Base).unwrap();
        assert!(vector.is_empty());
        for _ in 0..3 {
            vector.push(counted.clone());
        }
        vector.grow(100_000).unwrap();
        vector.push(counted.clone());
        assert_eq!((vector.len(), vector.capacity(), std::rc::Rc::strong_count(&counted)), (4, 100_000, 5));
        drop(vector);
        assert_eq!(std::rc::Rc::strong_count(&counted), 1);
    }

    #[test]
    #[should_panic(expected = "is full")]
    fn a_full_vector_takes_no_more() {
        let mut vector = PageVec::with_capacity(1, PageSize::Base).unwrap();
        vector.push(1_u8);
        vector.push(2);
    }

    #[test]
    fn a_mapping_that_fails_is_an_error() {
        assert!(PageArray::<u64>::zeroed(usize::MAX / 4, PageSize::Base).is_err());
        assert!(PageArray::<u64>::zeroed(usize::MAX / 16, PageSize::Transparent).is_err());
    }

    #[test]
    fn touched_bytes_are_those_of_the_pages_that_an_array_has() {
        let touched = |array: &PageArray<u8>, len| array.touched_bytes(len);
        let small = PageArray::<u8>::zeroed_for_growth(JOINED_FROM_BYTES / 2, PageSize::Transparent).unwrap();
        assert_eq!([0, 1, 4097, 3 << 20].map(|len| touched(&small, len)), [0, 4096, 8192, 3 << 20], "never joined");
        let large = PageArray::<u8>::zeroed_for_growth(JOINED_FROM_BYTES, PageSize::Transparent).unwrap();
        assert_eq!([1, 2 << 20, (2 << 20) + 1].map(|len| touched(&large, len)), [4096, 2 << 20, 4 << 20]);
        let base = PageArray::<u8>::zeroed_for_growth(JOINED_FROM_BYTES, PageSize::Base).unwrap();
        assert_eq!([(2 << 20) + 1, usize::MAX].map(|len| touched(&base, len)), [(2 << 20) + 4096, JOINED_FROM_BYTES]);
    }

    /// More 2 MiB pages than before while it lives. Only one test at a time on the whole machine may hold
    /// one.
    struct Reserved {
        setting: std::fs::File,
        before: u64,
    }

    impl Reserved {
        fn more(pages: u64) -> io::Result<Self> {
            use std::io::{Error, Read};
            let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
            let setting = std::fs::File::options().read(true).write(true).open(path)?;
            setting.lock()?;
            let number = || -> io::Result<u64> {
                let mut text = String::new();
                std::fs::File::open(path)?.read_to_string(&mut text)?;
                text.trim().parse().map_err(Error::other)
            };
            let reserved = Self { before: number()?, setting };
            reserved.set(reserved.before + pages)?;
            let enough = number()? >= reserved.before + pages;
            if enough { Ok(reserved) } else { Err(Error::other("the kernel found too few free ones")) }
        }

        fn set(&self, pages: u64) -> io::Result<()> {
            use std::os::unix::fs::FileExt;
            self.setting.write_at(pages.to_string().as_bytes(), 0).map(drop)
        }
    }

    impl Drop for Reserved {
        fn drop(&mut self) {
            self.set(self.before).unwrap();
        }
    }

    /// A Content Store on explicit huge pages could not be enlarged: `mremap` refuses to lengthen them.
    #[test]
    fn an_array_on_explicit_huge_pages_grows_and_keeps_what_it_holds() {
        let _reserved = match Reserved::more(8) {
            Ok(reserved) => reserved,
            Err(error) => return eprintln!("SKIPPED, nothing was tested: no huge pages can be reserved: {error}"),
        };
        const PAGE: usize = 2 << 20;
        // At first the array is too small for such a page.
        let mut array = PageArray::<u8>::zeroed(1000, PageSize::Huge2MiB).unwrap();
        assert_eq!(array.mapped_bytes(), 4096);
        for len in [PAGE / 2 + 1, PAGE, PAGE + 1, 3 * PAGE] {
            let last = array.len() - 1;
            array[last] = 7;
            array.grow(len).unwrap();
            assert_eq!((array.mapped_bytes(), array.len()), (len.next_multiple_of(PAGE), len));
            assert_eq!((array[last], array[len - 1]), (7, 0));
        }
        assert!(array.grow(1 << 46).is_err());
        assert_eq!((array.len(), array[999], array[2 * PAGE]), (3 * PAGE, 7, 0), "a refusal changes nothing");
    }

    /// Either the machine has such pages reserved, or the refusal is an error and not a signal.
    #[test]
    fn explicit_huge_pages_are_granted_or_refused() {
        for pages in [PageSize::Huge2MiB, PageSize::Huge1GiB] {
            let len = pages.bytes() / 16; // an array of half a page
            if let Ok(mut array) = PageArray::<u64>::zeroed(len, pages) {
                array[9] = 1;
                assert_eq!((array[8], array[9], array.mapped_bytes()), (0, 1, pages.bytes()));
            }
            let small = PageArray::<u64>::zeroed(len - 1, pages).unwrap();
            assert!(small.mapped_bytes() < pages.bytes(), "a small array takes no page of its own");
        }
    }
}
