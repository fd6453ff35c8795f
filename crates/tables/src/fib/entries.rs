//! Entries: the octets of every FIB entry, its name inline.
//!
//! ```text
//! unit (4 octets)  u            u+1                u+2 …
//! plain          | set number | octets           | name, filled to 4 |
//! encoded        | set number | code of the name, zeros up to 4 …    |
//! ```
//!
//! An entry is named by its first unit. Its name never changes; `set number` does, by one
//! store, while readers look. `octets` is stored highest first and below 2²⁰, so that unit u+1 begins
//! with the 12 zero bits that no code begins with ([`super::name_code`]): an entry itself
//! tells its form. With [`NameStorage::Encoded`] a name has the form that takes fewer units.
//!
//! Cost of a read: 1 line for names up to 56 octets if the entry does not straddle lines;
//! 1.75 for 44 octets, on average over the 16 places where an entry may begin. Bytes per
//! entry: plain 8 + name + 0 to 3 of fill; encoded 4 + code + 0 to 3 of fill, where the code has 53 % of the
//! octets of domain names and 59 % of those of addresses.
//! Limit: 2³² units, 16 GiB; which units are whose: [`super::space`].
//! Who may write: the FIB's writer, and only units that no reader can reach.
#![allow(unsafe_code, reason = "leaf: octets of an array of words as a slice")]

use super::name_code::{self, Uncoded};
#[cfg(doc)]
use super::space::Space;
use super::{MAX_PREFIX_OCTETS, NameStorage};
use crate::pages::{PageArray, PageSize};
use crate::prefetch::{LINE_BYTES, prefetch, prefetch_range};
use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Octets of a unit.
pub(super) const UNIT_OCTETS: usize = 4;
/// Units before a plain name.
pub(super) const HEADER_UNITS: usize = 2;
/// Units before a code.
const CODE_UNIT: usize = 1;

const _: () = assert!(MAX_PREFIX_OCTETS < 1 << (32 - name_code::PLAIN_BITS));

/// Octets of a code that is compared without much ado.
const SHORT_CODE_OCTETS: usize = 136;

/// All entries.
pub(super) struct Entries {
    words: PageArray<AtomicU32>,
    names: NameStorage,
}

/// A name in the form in which it is stored.
#[derive(Clone, Copy, Debug)]
pub(super) enum StoredName<'n> {
    Plain(&'n [u8]),
    /// Whole units.
    Encoded(&'n [u8]),
}

impl StoredName<'_> {
    /// Units of an entry with this name.
    pub(super) fn units(self) -> usize {
        match self {
            Self::Plain(octets) => HEADER_UNITS + octets.len().div_ceil(UNIT_OCTETS),
            Self::Encoded(code) => CODE_UNIT + code.len() / UNIT_OCTETS,
        }
    }
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
    pub(super) fn new(units: usize, names: NameStorage, pages: PageSize) -> io::Result<Self> {
        Ok(Self { words: PageArray::zeroed_for_growth(units, pages)?, names })
    }

    /// How many units there are.
    pub(super) fn units(&self) -> usize {
        self.words.len()
    }

    /// Octets of memory if only the first `units` units were ever used.
    pub(super) fn touched_bytes(&self, units: usize) -> usize {
        self.words.touched_bytes(units)
    }

    /// The form of this name, always the same. `buffer` needs [`name_code::CODE_BUFFER_OCTETS`]
    /// if names are encoded.
    pub(super) fn stored_name<'n>(&self, name_value: &'n [u8], buffer: &'n mut [u8]) -> StoredName<'n> {
        let plain = StoredName::Plain(name_value);
        if self.names == NameStorage::Inline {
            return plain;
        }
        match name_code::encode(name_value, buffer) {
            Ok(units) if CODE_UNIT + units < plain.units() => StoredName::Encoded(&buffer[..units * UNIT_OCTETS]),
            Ok(_) | Err(_) => plain,
        }
    }

    /// How many octets of a stored name are worth fetching early.
    #[inline(always)]
    pub(super) fn expected_octets(&self, name_octets: usize) -> usize {
        match self.names {
            NameStorage::Inline => name_octets,
            NameStorage::Encoded => name_octets / 2,
        }
    }

    /// Writes a whole entry. It is published by whatever leads readers to its number.
    ///
    /// # Safety
    /// No [`FibEntryRef`] to any of these units is left, and none is made before this
    /// returned: [`Space`] gave them.
    pub(super) unsafe fn write(&self, unit: u32, name: StoredName<'_>, set: u32) {
        let words = &self.words[unit as usize..];
        words[0].store(set, Ordering::Relaxed);
        let (first_unit, octets) = match name {
            StoredName::Plain(octets) => {
                words[CODE_UNIT].store((octets.len() as u32).to_be(), Ordering::Relaxed);
                (HEADER_UNITS, octets)
            }
            StoredName::Encoded(code) => (CODE_UNIT, code),
        };
        for (word, octets) in words[first_unit..].iter().zip(octets.chunks(UNIT_OCTETS)) {
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
    /// Whether the prefix is this one.
    #[inline(always)]
    pub(super) fn is(&self, name_value: &[u8]) -> bool {
        match self.plain_name() {
            Some(plain) => plain == name_value,
            None => self.has_code_of(name_value),
        }
    }

    /// The prefix: octets of a Name TLV-VALUE.
    pub(super) fn name_value(&self) -> Cow<'a, [u8]> {
        self.plain_name().map_or_else(
            || {
                let mut decoded = Vec::new();
                self.decode(&mut decoded);
                decoded.into()
            },
            Cow::Borrowed,
        )
    }

    /// The same without an allocation for each: `buffer` is used if need be.
    pub(super) fn name_in<'n>(&self, buffer: &'n mut Vec<u8>) -> &'n [u8]
    where
        'a: 'n,
    {
        if let Some(plain) = self.plain_name() {
            return plain;
        }
        buffer.clear();
        self.decode(buffer);
        buffer
    }

    fn decode(&self, out: &mut Vec<u8>) {
        let code = &self.words[CODE_UNIT..];
        let unit = |place: usize| code.get(place).map_or(0, |word| u32::from_be(word.load(Ordering::Relaxed)));
        name_code::decode(unit, out);
    }

    // N.B. Not inlined: it would take registers from who compares plain names.
    #[inline(never)]
    fn has_code_of(&self, name_value: &[u8]) -> bool {
        let mut buffer = [0; SHORT_CODE_OCTETS];
        match name_code::encode(name_value, &mut buffer) {
            Ok(units) => self.has_code(&buffer[..units * UNIT_OCTETS]),
            Err(Uncoded::NoCode) => false,
            Err(Uncoded::NoRoom) => self.has_long_code_of(name_value),
        }
    }

    #[cold]
    #[inline(never)]
    fn has_long_code_of(&self, name_value: &[u8]) -> bool {
        let mut buffer = [0; name_code::CODE_BUFFER_OCTETS];
        name_code::encode(name_value, &mut buffer).is_ok_and(|units| self.has_code(&buffer[..units * UNIT_OCTETS]))
    }

    /// Whether the stored code is this one. If it is shorter it ends differently, no code being
    /// the beginning of another, and what comes after it does not matter.
    #[inline(always)]
    fn has_code(&self, code: &[u8]) -> bool {
        let units = code.as_chunks::<UNIT_OCTETS>().0;
        self.words[CODE_UNIT..].get(..units.len()).is_some_and(|words| {
            words.iter().zip(units).all(|(word, unit)| word.load(Ordering::Relaxed) == u32::from_ne_bytes(*unit))
        })
    }

    /// The octets of the name if they are stored as they are.
    #[inline(always)]
    fn plain_name(&self) -> Option<&'a [u8]> {
        let octets = u32::from_be(self.words[CODE_UNIT].load(Ordering::Acquire));
        if octets >> (32 - name_code::PLAIN_BITS) != 0 {
            return None;
        }
        let octets = octets as usize;
        let words = &self.words[HEADER_UNITS..][..octets.div_ceil(UNIT_OCTETS)];
        // SAFETY:
        // - `words` are at least `octets` octets of one live allocation, initialised (zeroed
        //   by the kernel or stored), and any octet is a valid `u8`.
        // - The stores of `write` happened before, and nobody writes them during `'a`: promised
        //   by the callers of `Entries::entry`, of `write`, `change` (whose word is not one of
        //   a name) and `set_link`.
        Some(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), octets) })
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
