//! Entries: the bytes of every FIB entry, its name inline.
//!
//! ```text
//! unit (4 bytes)  u            u+1                u+2 …
//! plain          | set number | bytes           | name, filled to 4 |
//! encoded        | set number | code of the name, zeros up to 4 …    |
//! ```
//!
//! The number of an entry is the number of its first unit. Its name never changes; one store changes its
//! `set number` while readers look. `bytes` is stored highest byte first and is below 2²⁰, so unit u+1 of a
//! plain entry begins with 12 zero bits. No code begins with 12 zero bits ([`super::name_code`]), so these
//! bits distinguish the two forms. With [`NameStorage::Encoded`] a name has the form that takes fewer
//! units.
//!
//! Cost: reading an entry with a name of up to 56 bytes takes 1 line if the entry does not straddle lines.
//! For 44 bytes it takes 1.75 lines, on average over the 16 places where an entry may begin.
//! Bytes: a plain entry takes 8 + name + 0 to 3 of fill, an encoded one 4 + code + 0 to 3 of fill. The code
//! takes 53 % of the bytes of domain names and 59 % of the bytes of addresses.
//! Limit: 2³² units, 16 GiB; [`super::space`] allocates the units.
//! Writers: the FIB's writer, and only units that no reader can reach.
#![allow(unsafe_code, reason = "leaf: entries by address, bytes of an array of words as a slice")]

use super::config::NameStorage;
use super::entry::MAX_PREFIX_BYTES;
use super::name_code::{self, Uncoded};
#[cfg(doc)]
use super::space::Space;
use super::unit::{HEADER_UNITS, UNIT_BYTES};
use crate::pages::{PageArray, PageSize};
use crate::prefetch::{LINE_BYTES, prefetch_address, prefetch_range};
use std::borrow::Cow;
use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Units before a code.
const CODE_UNIT: usize = 1;

const _: () = assert!(MAX_PREFIX_BYTES < 1 << (32 - name_code::PLAIN_BITS));

/// Codes up to this many bytes are compared inline.
const SHORT_CODE_BYTES: usize = 136;

/// All entries.
pub(super) struct Entries {
    words: PageArray<AtomicU32>,
    names: NameStorage,
}

/// A name in its stored form.
#[derive(Clone, Copy, Debug)]
pub(super) enum StoredName<'n> {
    Plain(&'n [u8]),
    /// The code, in whole units.
    Encoded(&'n [u8]),
}

impl StoredName<'_> {
    /// Units of an entry with this name.
    pub(super) fn units(self) -> usize {
        match self {
            Self::Plain(bytes) => HEADER_UNITS + bytes.len().div_ceil(UNIT_BYTES),
            Self::Encoded(code) => CODE_UNIT + code.len() / UNIT_BYTES,
        }
    }
}

/// An entry that stays valid during `'a`: the FIB is not written, or the reader is pinned.
///
/// It proves nothing about the name: code that got it as a candidate must compare.
///
/// N.B. An address, because a hint for each packet holds it. With the rest of the array as a slice, hints had 24 bytes
/// instead of 16.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct FibEntryRef<'a> {
    /// The entry's first unit. All units of the entry lie in the same array.
    first: NonNull<AtomicU32>,
    entries: PhantomData<&'a [AtomicU32]>,
}

// SAFETY: what a shared slice of atomic words allows.
unsafe impl Send for FibEntryRef<'_> {}
// SAFETY: as above.
unsafe impl Sync for FibEntryRef<'_> {}

impl Entries {
    pub(super) fn new(units: usize, names: NameStorage, pages: PageSize) -> io::Result<Self> {
        Ok(Self { words: PageArray::zeroed_for_growth(units, pages)?, names })
    }

    /// How many units there are.
    pub(super) fn units(&self) -> usize {
        self.words.len()
    }

    /// Bytes of memory if only the first `units` units were ever used.
    pub(super) fn touched_bytes(&self, units: usize) -> usize {
        self.words.touched_bytes(units)
    }

    /// The stored form of this name, always the same. `buffer` needs [`name_code::CODE_BUFFER_BYTES`] if
    /// names are encoded.
    pub(super) fn stored_name<'n>(&self, name_value: &'n [u8], buffer: &'n mut [u8]) -> StoredName<'n> {
        let plain = StoredName::Plain(name_value);
        if self.names == NameStorage::Inline {
            return plain;
        }
        match name_code::encode(name_value, buffer) {
            Ok(units) if CODE_UNIT + units < plain.units() => StoredName::Encoded(&buffer[..units * UNIT_BYTES]),
            Ok(_) | Err(_) => plain,
        }
    }

    /// How many bytes of a stored name are worth fetching early.
    #[inline(always)]
    pub(super) fn expected_bytes(&self, name_bytes: usize) -> usize {
        match self.names {
            NameStorage::Inline => name_bytes,
            NameStorage::Encoded => name_bytes / 2,
        }
    }

    /// Writes a whole entry. Later its number is put in the index, which publishes it.
    ///
    /// # Safety
    /// No [`FibEntryRef`] to any of these units is left, and none is made before this returns: [`Space`]
    /// allocated them.
    pub(super) unsafe fn write(&self, unit: u32, name: StoredName<'_>, set: u32) {
        let words = &self.words[unit as usize..];
        words[0].store(set, Ordering::Relaxed);
        let (first_unit, bytes) = match name {
            StoredName::Plain(bytes) => {
                words[CODE_UNIT].store((bytes.len() as u32).to_be(), Ordering::Relaxed);
                (HEADER_UNITS, bytes)
            }
            StoredName::Encoded(code) => (CODE_UNIT, code),
        };
        for (word, bytes) in words[first_unit..].iter().zip(bytes.chunks(UNIT_BYTES)) {
            let mut whole = [0; UNIT_BYTES];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u32::from_ne_bytes(whole), Ordering::Relaxed);
        }
    }

    /// Changes the set that a published entry leads to.
    ///
    /// # Safety
    /// An entry begins at `unit`.
    pub(super) unsafe fn change(&self, unit: u32, set: u32) {
        self.words[unit as usize].store(set, Ordering::Release);
    }

    /// The entry with this number.
    ///
    /// # Safety
    /// The calling thread sees that an entry was written at `unit` before. While the entry is borrowed, its
    /// units are not written again.
    #[inline(always)]
    pub(super) unsafe fn entry(&self, unit: u32) -> FibEntryRef<'_> {
        // SAFETY: `write` wrote to this unit, so it lies in the array.
        let first = unsafe { NonNull::from(&*self.words).cast::<AtomicU32>().add(unit as usize) };
        FibEntryRef { first, entries: PhantomData }
    }

    /// The number of an entry of these entries; anything for others.
    pub(super) fn unit(&self, entry: FibEntryRef<'_>) -> u32 {
        (entry.first.addr().get().wrapping_sub(self.words.as_ptr().addr()) / UNIT_BYTES) as u32
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

/// Names of entries of these entries.
impl Entries {
    /// Whether the entry is for this prefix.
    #[inline(always)]
    pub(super) fn is(&self, entry: FibEntryRef<'_>, name_value: &[u8]) -> bool {
        match entry.plain_name() {
            Some(plain) => plain == name_value,
            None => self.has_code_of(entry, name_value),
        }
    }

    /// The prefix: bytes of a Name TLV-VALUE.
    pub(super) fn name_value<'a>(&self, entry: FibEntryRef<'a>) -> Cow<'a, [u8]> {
        entry.plain_name().map_or_else(
            || {
                let mut decoded = Vec::new();
                self.decode(entry, &mut decoded);
                decoded.into()
            },
            Cow::Borrowed,
        )
    }

    /// The same without an allocation for each name: uses `buffer` if needed.
    pub(super) fn name_in<'n, 'a: 'n>(&self, entry: FibEntryRef<'a>, buffer: &'n mut Vec<u8>) -> &'n [u8] {
        if let Some(plain) = entry.plain_name() {
            return plain;
        }
        buffer.clear();
        self.decode(entry, buffer);
        buffer
    }

    /// The units of an entry after its first, and all after them.
    fn code(&self, entry: FibEntryRef<'_>) -> &[AtomicU32] {
        self.words.get(self.unit(entry) as usize + CODE_UNIT..).unwrap_or_default()
    }

    fn decode(&self, entry: FibEntryRef<'_>, out: &mut Vec<u8>) {
        let code = self.code(entry);
        let unit = |place: usize| code.get(place).map_or(0, |word| u32::from_be(word.load(Ordering::Relaxed)));
        name_code::decode(unit, out);
    }

    // N.B. Not inlined: it would take registers from callers that compare plain names.
    #[inline(never)]
    fn has_code_of(&self, entry: FibEntryRef<'_>, name_value: &[u8]) -> bool {
        let mut buffer = [0; SHORT_CODE_BYTES];
        match name_code::encode(name_value, &mut buffer) {
            Ok(units) => self.has_code(entry, &buffer[..units * UNIT_BYTES]),
            Err(Uncoded::NoCode) => false,
            Err(Uncoded::NoRoom) => self.has_long_code_of(entry, name_value),
        }
    }

    #[cold]
    #[inline(never)]
    fn has_long_code_of(&self, entry: FibEntryRef<'_>, name_value: &[u8]) -> bool {
        let mut buffer = [0; name_code::CODE_BUFFER_BYTES];
        let encoded = name_code::encode(name_value, &mut buffer);
        encoded.is_ok_and(|units| self.has_code(entry, &buffer[..units * UNIT_BYTES]))
    }

    /// Whether the stored code is this one. A shorter stored code ends differently, because no code is the
    /// beginning of another; so what comes after it does not matter.
    #[inline(always)]
    fn has_code(&self, entry: FibEntryRef<'_>, code: &[u8]) -> bool {
        let units = code.as_chunks::<UNIT_BYTES>().0;
        self.code(entry).get(..units.len()).is_some_and(|words| {
            words.iter().zip(units).all(|(word, unit)| word.load(Ordering::Relaxed) == u32::from_ne_bytes(*unit))
        })
    }
}

impl<'a> FibEntryRef<'a> {
    /// Unit `place` of the entry.
    ///
    /// # Safety
    /// The entry has that many units.
    #[inline(always)]
    unsafe fn unit(self, place: usize) -> &'a AtomicU32 {
        // SAFETY: the caller's promise. The array lives during `'a`, and is shared as atomic words.
        unsafe { self.first.add(place).as_ref() }
    }

    /// The bytes of the name if it is stored as it is.
    #[inline(always)]
    fn plain_name(self) -> Option<&'a [u8]> {
        // SAFETY: every entry has a set number and at least one unit of name, plain or in code.
        let bytes = u32::from_be(unsafe { self.unit(CODE_UNIT) }.load(Ordering::Acquire));
        if bytes >> (32 - name_code::PLAIN_BITS) != 0 {
            return None;
        }
        // SAFETY:
        // - `write` wrote a name of `bytes` bytes after the header, so they lie in the live array. They are
        //   initialised, and any byte is a valid `u8`.
        // - The stores of `write` happened before, and nothing writes the bytes during `'a`: promised by
        //   the callers of `Entries::entry`, `write`, `change` (its word is not part of a name) and
        //   `set_link`.
        Some(unsafe { std::slice::from_raw_parts(self.first.add(HEADER_UNITS).as_ptr().cast(), bytes as usize) })
    }

    /// Begins to fetch the header and `name_bytes` bytes of name.
    #[inline(always)]
    pub(super) fn prefetch(self, name_bytes: usize) {
        self.prefetch_first();
        self.prefetch_rest(name_bytes);
    }

    /// Begins to fetch the first line.
    #[inline(always)]
    pub(super) fn prefetch_first(self) {
        prefetch_address(self.first.as_ptr().cast());
    }

    /// Begins to fetch the lines after the first. If the entry lies in one line, that line again: a quarter
    /// of the entries with names of 44 bytes do, and a branch could not be predicted.
    #[inline(always)]
    pub(super) fn prefetch_rest(self, name_bytes: usize) {
        let (first, bytes) = (self.first.as_ptr().cast::<u8>(), HEADER_UNITS * UNIT_BYTES + name_bytes);
        prefetch_address(first.wrapping_add(bytes - 1));
        if bytes > LINE_BYTES {
            prefetch_range(first.wrapping_add(LINE_BYTES), bytes - LINE_BYTES);
        }
    }

    /// The number of the set that the entry leads to.
    #[inline(always)]
    pub(super) fn set(self) -> u32 {
        // SAFETY: every entry has a first unit.
        unsafe { self.unit(0) }.load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for FibEntryRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FibEntryRef").finish_non_exhaustive()
    }
}
