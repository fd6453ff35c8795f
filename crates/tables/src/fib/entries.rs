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
//! bits tell the two forms apart. With [`NameStorage::Encoded`] a name has the form that takes fewer units.
//!
//! Cost: reading an entry with a name of up to 56 bytes takes 1 line if the entry does not straddle lines.
//! For 44 bytes it takes 1.75 lines, on average over the 16 places where an entry may begin.
//! Bytes: a plain entry takes 8 + name + 0 to 3 of fill, an encoded one 4 + code + 0 to 3 of fill. The code
//! takes 53 % of the bytes of domain names and 59 % of the bytes of addresses.
//! Limit: 2³² units, 16 GiB; [`super::space`] allocates the units.
//! Writers: the FIB's writer, and only units that no reader can reach.
#![allow(unsafe_code, reason = "leaf: bytes of an array of words as a slice")]

use super::config::NameStorage;
use super::entry::MAX_PREFIX_BYTES;
use super::name_code::{self, Uncoded};
#[cfg(doc)]
use super::space::Space;
use crate::pages::{PageArray, PageSize};
use crate::prefetch::{LINE_BYTES, prefetch, prefetch_range};
use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a unit.
pub(super) const UNIT_BYTES: usize = 4;
/// Units before a plain name.
pub(super) const HEADER_UNITS: usize = 2;
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
    /// Whether the entry is for this prefix.
    #[inline(always)]
    pub(super) fn is(&self, name_value: &[u8]) -> bool {
        match self.plain_name() {
            Some(plain) => plain == name_value,
            None => self.has_code_of(name_value),
        }
    }

    /// The prefix: bytes of a Name TLV-VALUE.
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

    /// The same without an allocation for each name: uses `buffer` if needed.
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

    // N.B. Not inlined: it would take registers from callers that compare plain names.
    #[inline(never)]
    fn has_code_of(&self, name_value: &[u8]) -> bool {
        let mut buffer = [0; SHORT_CODE_BYTES];
        match name_code::encode(name_value, &mut buffer) {
            Ok(units) => self.has_code(&buffer[..units * UNIT_BYTES]),
            Err(Uncoded::NoCode) => false,
            Err(Uncoded::NoRoom) => self.has_long_code_of(name_value),
        }
    }

    #[cold]
    #[inline(never)]
    fn has_long_code_of(&self, name_value: &[u8]) -> bool {
        let mut buffer = [0; name_code::CODE_BUFFER_BYTES];
        name_code::encode(name_value, &mut buffer).is_ok_and(|units| self.has_code(&buffer[..units * UNIT_BYTES]))
    }

    /// Whether the stored code is this one. A shorter stored code ends differently, because no code is the
    /// beginning of another; so what comes after it does not matter.
    #[inline(always)]
    fn has_code(&self, code: &[u8]) -> bool {
        let units = code.as_chunks::<UNIT_BYTES>().0;
        self.words[CODE_UNIT..].get(..units.len()).is_some_and(|words| {
            words.iter().zip(units).all(|(word, unit)| word.load(Ordering::Relaxed) == u32::from_ne_bytes(*unit))
        })
    }

    /// The bytes of the name if it is stored as it is.
    #[inline(always)]
    fn plain_name(&self) -> Option<&'a [u8]> {
        let bytes = u32::from_be(self.words[CODE_UNIT].load(Ordering::Acquire));
        if bytes >> (32 - name_code::PLAIN_BITS) != 0 {
            return None;
        }
        let bytes = bytes as usize;
        let words = &self.words[HEADER_UNITS..][..bytes.div_ceil(UNIT_BYTES)];
        // SAFETY:
        // - `words` are at least `bytes` bytes of one live allocation, initialised (zeroed
        //   by the kernel or stored), and any byte is a valid `u8`.
        // - The stores of `write` happened before, and nothing writes the bytes during `'a`: promised by
        //   the callers of `Entries::entry`, `write`, `change` (its word is not part of a name) and
        //   `set_link`.
        Some(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), bytes) })
    }

    /// Begins to fetch the header and `name_bytes` bytes of name.
    #[inline(always)]
    pub(super) fn prefetch(&self, name_bytes: usize) {
        self.prefetch_first();
        self.prefetch_rest(name_bytes);
    }

    /// Begins to fetch the first line.
    #[inline(always)]
    pub(super) fn prefetch_first(&self) {
        prefetch(&self.words[0]);
    }

    /// Begins to fetch the lines after the first. If the entry lies in one line, that line again: a quarter
    /// of the entries with names of 44 bytes do, and a branch could not be predicted.
    #[inline(always)]
    pub(super) fn prefetch_rest(&self, name_bytes: usize) {
        let (first, bytes) = (self.words.as_ptr().cast::<u8>(), HEADER_UNITS * UNIT_BYTES + name_bytes);
        prefetch_range(first.wrapping_add(bytes - 1), 1);
        if bytes > LINE_BYTES {
            prefetch_range(first.wrapping_add(LINE_BYTES), bytes - LINE_BYTES);
        }
    }

    /// The number of the set that the entry leads to.
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
