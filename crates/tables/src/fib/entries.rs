//! Entries: the octets of every FIB entry, its name inline.
//!
//! ```text
//! unit (4 octets)  u            u+1                        u+2 …
//!                | set number | octets | name, filled to 4 |
//! ```
//!
//! An entry is named by its first unit. Its name never changes; `set number` does, by one
//! store, while readers look.
//!
//! Cost of a read: 1 line for names up to 56 octets if the entry does not straddle lines;
//! 1.75 for 44 octets, on average over the 16 places where an entry may begin. Bytes per
//! entry: 8 + name + 0 to 3 of fill.
//! Limit: 2³² units, 16 GiB; which units are whose: [`super::space`].
//! Who may write: the FIB's writer, and only units that no reader can reach.
#![allow(unsafe_code, reason = "leaf: octets of an array of words as a slice")]

#[cfg(doc)]
use super::space::Space;
use crate::pages::{PageArray, PageSize};
use crate::prefetch::{LINE_BYTES, prefetch, prefetch_range};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Octets of a unit.
pub(super) const UNIT_OCTETS: usize = 4;
/// Units before the name.
pub(super) const HEADER_UNITS: usize = 2;

/// All entries.
pub(super) struct Entries {
    words: PageArray<AtomicU32>,
}

/// An entry that stays whole as long as `'a`: the FIB is not written, or the reader is pinned.
///
/// Says nothing about names: whoever got it as a candidate compares.
#[derive(Clone, Copy)]
pub(super) struct FibEntryRef<'a> {
    /// From the entry's first unit to the end of the array.
    words: &'a [AtomicU32],
}

impl Entries {
    pub(super) fn new(units: usize, pages: PageSize) -> io::Result<Self> {
        Ok(Self { words: PageArray::zeroed_for_growth(units, pages)? })
    }

    /// How many units there are.
    pub(super) fn units(&self) -> usize {
        self.words.len()
    }

    /// Octets of memory if only the first `units` units were ever used.
    pub(super) fn touched_bytes(&self, units: usize) -> usize {
        self.words.touched_bytes(units)
    }

    /// Units of an entry with a name of this size.
    pub(super) fn units_for(name_octets: usize) -> usize {
        HEADER_UNITS + name_octets.div_ceil(UNIT_OCTETS)
    }

    /// Writes a whole entry. It is published by whatever leads readers to its number.
    ///
    /// # Safety
    /// No [`FibEntryRef`] to any of these units is left, and none is made before this
    /// returned: [`Space`] gave them.
    pub(super) unsafe fn write(&self, unit: u32, name_value: &[u8], set: u32) {
        let words = &self.words[unit as usize..];
        words[0].store(set, Ordering::Relaxed);
        words[1].store(name_value.len() as u32, Ordering::Relaxed);
        for (word, octets) in words[HEADER_UNITS..].iter().zip(name_value.chunks(UNIT_OCTETS)) {
            let mut whole = [0; UNIT_OCTETS];
            whole[..octets.len()].copy_from_slice(octets);
            word.store(u32::from_ne_bytes(whole), Ordering::Relaxed);
        }
    }

    /// Lets a published entry lead elsewhere.
    ///
    /// # Safety
    /// An entry begins at `unit`.
    pub(super) unsafe fn change(&self, unit: u32, set: u32) {
        self.words[unit as usize].store(set, Ordering::Release);
    }

    /// The entry with this number.
    ///
    /// # Safety
    /// An entry was written at `unit` before, as the calling thread sees it, and as long as
    /// the entry is borrowed, its units are not written again.
    #[inline(always)]
    pub(super) unsafe fn entry(&self, unit: u32) -> FibEntryRef<'_> {
        FibEntryRef { words: &self.words[unit as usize..] }
    }

    /// The number of an entry of these entries.
    #[inline(always)]
    pub(super) fn unit(&self, entry: FibEntryRef<'_>) -> u32 {
        (self.words.len() - entry.words.len()) as u32
    }

    /// What [`Space`] noted in a free unit.
    pub(super) fn link(&self, unit: u32) -> u32 {
        self.words[unit as usize].load(Ordering::Relaxed)
    }

    /// Notes something in a free unit, for [`Space`].
    ///
    /// # Safety
    /// No [`FibEntryRef`] to this unit is left.
    pub(super) unsafe fn set_link(&self, unit: u32, link: u32) {
        self.words[unit as usize].store(link, Ordering::Relaxed);
    }
}

impl<'a> FibEntryRef<'a> {
    /// The prefix: octets of a Name TLV-VALUE.
    #[inline(always)]
    pub(super) fn name_value(&self) -> &'a [u8] {
        let octets = self.words[1].load(Ordering::Acquire) as usize;
        let words = &self.words[HEADER_UNITS..][..octets.div_ceil(UNIT_OCTETS)];
        // SAFETY:
        // - `words` are at least `octets` octets of one live allocation, initialised (zeroed
        //   by the kernel or stored), and any octet is a valid `u8`.
        // - The stores of `write` happened before, and nobody writes them during `'a`: promised
        //   by the callers of `Entries::entry`, of `write`, `change` (whose word is not one of
        //   a name) and `set_link`.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), octets) }
    }

    /// Begins to fetch the header and `name_octets` octets of name.
    #[inline(always)]
    pub(super) fn prefetch(&self, name_octets: usize) {
        self.prefetch_first();
        self.prefetch_rest(name_octets);
    }

    /// Begins to fetch the first line.
    #[inline(always)]
    pub(super) fn prefetch_first(&self) {
        prefetch(&self.words[0]);
    }

    /// Begins to fetch the lines after the first. Of an entry that lies in one line that line
    /// again: a quarter of those with names of 44 octets do, and no branch would foresee which.
    #[inline(always)]
    pub(super) fn prefetch_rest(&self, name_octets: usize) {
        let (first, octets) = (self.words.as_ptr().cast::<u8>(), HEADER_UNITS * UNIT_OCTETS + name_octets);
        prefetch_range(first.wrapping_add(octets - 1), 1);
        if octets > LINE_BYTES {
            prefetch_range(first.wrapping_add(LINE_BYTES), octets - LINE_BYTES);
        }
    }

    /// The number of the set it leads to.
    #[inline(always)]
    pub(super) fn set(&self) -> u32 {
        self.words[0].load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for FibEntryRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FibEntryRef").field("name_value", &self.name_value()).finish_non_exhaustive()
    }
}

/// The same entry, not only an equal one.
impl PartialEq for FibEntryRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.words, other.words)
    }
}

impl Eq for FibEntryRef<'_> {}
