//! Exact table: where does exactly this string lead?
//!
//! Source: Yuan15 §4.3.4, the collision table (CT): a 4-left hash table at 75 % load, whose entries are a 64-bit
//! fingerprint, a 48-bit pointer to the full name and an 8-bit port, 15 bytes. Our entry has 31 bits of pointer (a
//! block of the crate's arena) and 33 bits for what the string leads to: 16 bytes. The fingerprints of a bucket are one
//! cache line. Pointers and leads are another line, read only if a fingerprint fits. The same kind of table keeps the
//! suffixes below root rules ([`super::suffixes`]); there, equal suffixes of different groups differ by their group.
//!
//! ```text
//! fingerprints │ 8 × 64 bits │          one line per bucket; 0 = vacant
//! pointers     │ 8 × (block, 31 bits │ leads, 33 bits) │
//! block        │ group u32 │ bytes u16 │ string … │
//! ```
//!
//! Deviation: our table grows (by half), and so never refuses an entry; the paper sizes its table so that it need not
//! grow.
//! Cost: a look-up reads 4 lines that do not depend on each other, and 2 more if the string is present. Bytes: a bucket
//! takes 128 at 50 to 75 % load; a string takes its own bytes and 14 more, in blocks of 16. Writers: the owner.

use super::differentiator::Leads;
use namewire_tables::arena::{Arena, block_bytes};
use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::prefetch;
use std::io;

const SUBTABLES: usize = 4;
const BUCKET_ENTRIES: usize = 8;
/// Bytes before the string in its block.
const HEADER: usize = 6;
const MULTIPLIERS: [u64; SUBTABLES] = [1, 0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];

type Bucket = [u64; BUCKET_ENTRIES];

const _: () = assert!(size_of::<Bucket>() == namewire_tables::prefetch::LINE_BYTES);

/// Strings, and what each leads to.
pub struct ExactTable {
    fingerprints: PageArray<Bucket>,
    pointers: PageArray<Bucket>,
    /// B, buckets of a subtable.
    buckets: usize,
    len: usize,
    strings: Arena,
    string_bytes: u64,
    string_room: u64,
    pages: PageSize,
}

/// A string and what is hashed of it.
#[derive(Clone, Copy)]
pub(super) struct Key<'s> {
    /// 64 bits of a keyed hash.
    pub(super) hash: u64,
    /// What the string is a suffix of; 0 if it is whole.
    pub(super) group: u32,
    pub(super) bytes: &'s [u8],
}

impl ExactTable {
    /// One with room for this many entries at 75 % load.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub(super) fn for_entries(entries: usize, pages: PageSize) -> io::Result<Self> {
        let buckets = (entries * 4).div_ceil(3 * SUBTABLES * BUCKET_ENTRIES).max(1);
        let string_room = 4096;
        Ok(Self {
            fingerprints: PageArray::zeroed(SUBTABLES * buckets, pages)?,
            pointers: PageArray::zeroed(SUBTABLES * buckets, pages)?,
            buckets,
            len: 0,
            strings: Arena::new(string_room, pages)?.or_transparent(),
            string_bytes: 0,
            string_room,
            pages,
        })
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory, as allocated; of the room for strings, what is used.
    pub fn bytes(&self) -> usize {
        self.fingerprints.mapped_bytes() + self.pointers.mapped_bytes() + self.string_bytes.max(4096) as usize
    }

    /// Where exactly this string leads.
    #[inline]
    pub(super) fn find(&self, key: Key<'_>) -> Option<Leads> {
        if self.len == 0 {
            return None;
        }
        let (bucket, entry) = self.place_of(key)?;
        Some(Leads::from_bits(self.pointers[bucket][entry]))
    }

    /// Adds the string or lets it lead elsewhere.
    pub(super) fn insert(&mut self, key: Key<'_>, leads: Leads) {
        if let Some((bucket, entry)) = self.place_of(key) {
            let block = self.pointers[bucket][entry] >> Leads::BITS;
            self.pointers[bucket][entry] = block << Leads::BITS | leads.bits();
            return;
        }
        let block = self.keep(key);
        if (self.len + 1) * 4 > self.buckets * SUBTABLES * BUCKET_ENTRIES * 3 {
            self.grow();
        }
        self.len += 1;
        let pointer = u64::from(block) << Leads::BITS | leads.bits();
        while !self.put(fingerprint(key.hash), pointer) {
            self.grow();
        }
    }

    /// Takes the string out, if it is there.
    pub(super) fn remove(&mut self, key: Key<'_>) {
        let Some((bucket, entry)) = self.place_of(key) else { return };
        let block = (self.pointers[bucket][entry] >> Leads::BITS) as u32;
        self.strings.free(block);
        self.string_bytes -= block_bytes(key.bytes.len() + HEADER);
        (self.fingerprints[bucket][entry], self.pointers[bucket][entry]) = (0, 0);
        self.len -= 1;
    }

    /// Begins to fetch the fingerprints that [`ExactTable::find`] reads.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        if self.len > 0 {
            for bucket in self.buckets_of(fingerprint(hash)) {
                prefetch(&self.fingerprints[bucket]);
            }
        }
    }

    #[inline(always)]
    fn buckets_of(&self, fingerprint: u64) -> [usize; SUBTABLES] {
        std::array::from_fn(|subtable| {
            let spread = u128::from(fingerprint.wrapping_mul(MULTIPLIERS[subtable]));
            subtable * self.buckets + ((spread * self.buckets as u128) >> u64::BITS) as usize
        })
    }

    #[inline]
    fn place_of(&self, key: Key<'_>) -> Option<(usize, usize)> {
        let wanted = fingerprint(key.hash);
        for bucket in self.buckets_of(wanted) {
            let fingerprints = &self.fingerprints[bucket];
            // Without a branch for each: seldom is any equal.
            if !fingerprints.iter().fold(false, |any, &fingerprint| any | (fingerprint == wanted)) {
                continue;
            }
            let is_it =
                |&entry: &usize| fingerprints[entry] == wanted && self.is_string(self.pointers[bucket][entry], key);
            if let Some(entry) = (0..BUCKET_ENTRIES).find(is_it) {
                return Some((bucket, entry));
            }
        }
        None
    }

    fn is_string(&self, pointer: u64, key: Key<'_>) -> bool {
        let block = (pointer >> Leads::BITS) as u32;
        let header = self.strings.get(block, HEADER);
        header == self::header(key) && self.strings.get(block, HEADER + key.bytes.len())[HEADER..] == *key.bytes
    }

    /// Writes the entry into the least full of its buckets; false if all are full.
    fn put(&mut self, fingerprint: u64, pointer: u64) -> bool {
        let vacant = |bucket: usize| self.fingerprints[bucket].iter().filter(|&&fingerprint| fingerprint == 0).count();
        let buckets = self.buckets_of(fingerprint);
        let bucket = buckets.into_iter().rev().max_by_key(|&bucket| vacant(bucket)).unwrap_or(buckets[0]);
        let Some(entry) = self.fingerprints[bucket].iter().position(|&fingerprint| fingerprint == 0) else {
            return false;
        };
        (self.fingerprints[bucket][entry], self.pointers[bucket][entry]) = (fingerprint, pointer);
        true
    }

    /// Half as many buckets more. What goes where depends on fingerprints only: no string is read.
    fn grow(&mut self) {
        let mut buckets = self.buckets;
        loop {
            buckets += buckets.div_ceil(2);
            // As with a `Vec`, a kernel that maps no more ends the process: `GrowthGuard` refuses before.
            let zeroed =
                || PageArray::zeroed_from_reserve(SUBTABLES * buckets, self.pages).expect("memory for an exact table");
            let mut larger = Self {
                fingerprints: zeroed(),
                pointers: zeroed(),
                buckets,
                len: self.len,
                strings: Arena::new(0, self.pages).expect("no memory is needed"),
                string_bytes: self.string_bytes,
                string_room: self.string_room,
                pages: self.pages,
            };
            let entries = self.fingerprints.iter().flatten().zip(self.pointers.iter().flatten());
            let mut entries = entries.filter(|&(&fingerprint, _)| fingerprint != 0);
            if entries.all(|(&fingerprint, &pointer)| larger.put(fingerprint, pointer)) {
                std::mem::swap(&mut larger.strings, &mut self.strings);
                *self = larger;
                return;
            }
        }
    }

    fn keep(&mut self, key: Key<'_>) -> u32 {
        let string = [&header(key)[..], key.bytes].concat();
        self.string_bytes += block_bytes(string.len());
        loop {
            if let Some(block) = self.strings.allocate(&string) {
                return block;
            }
            self.string_room = (self.string_room * 2).max(self.string_bytes * 2);
            self.strings.grow(self.string_room).expect("memory for the strings of an exact table");
        }
    }
}

/// Vacant entries have fingerprint 0.
#[inline(always)]
fn fingerprint(hash: u64) -> u64 {
    hash.max(1)
}

#[inline(always)]
fn header(key: Key<'_>) -> [u8; HEADER] {
    let ([g0, g1, g2, g3], [o0, o1]) = (key.group.to_le_bytes(), (key.bytes.len() as u16).to_le_bytes());
    [g0, g1, g2, g3, o0, o1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// A hash that up to a dozen strings share: they decide.
    fn key(group: u32, bytes: &[u8]) -> Key<'_> {
        let number = bytes.iter().fold(0_u64, |number, &byte| number.wrapping_mul(10) + u64::from(byte));
        Key { hash: (number / 6).wrapping_mul(0x9e37_79b9_7f4a_7c15), group, bytes }
    }

    #[test]
    fn strings_lead_where_they_were_set_to_whatever_their_hash() {
        let mut table = ExactTable::for_entries(0, PageSize::Base).expect("4 KiB");
        let mut model: HashMap<(u32, Vec<u8>), Leads> = HashMap::new();
        let mut rng = fastrand::Rng::with_seed(6);
        let mut bytes = 0;
        for round in 0..60_000 {
            let string = rng.u32(..2_000).to_string();
            let string = string.repeat(rng.usize(..3)).into_bytes();
            let group = rng.u32(..2) * u32::MAX;
            assert_eq!(table.find(key(group, &string)), model.get(&(group, string.clone())).copied());
            if rng.bool() {
                let leads = Leads::from_bits(rng.u64(..));
                table.insert(key(group, &string), leads);
                model.insert((group, string), leads);
            } else {
                table.remove(key(group, &string));
                model.remove(&(group, string));
            }
            assert_eq!(table.len(), model.len());
            if round == 20_000 {
                bytes = table.bytes();
            }
        }
        assert!(table.bytes() < bytes * 2, "{bytes} bytes became {}", table.bytes());
        for ((group, string), leads) in &model {
            assert_eq!(table.find(key(*group, string)), Some(*leads));
            table.remove(key(*group, string));
        }
        assert_eq!((table.len(), table.string_bytes), (0, 0));
    }

    #[test]
    fn it_is_made_for_three_quarters_and_holds_them_without_growing() {
        let mut table = ExactTable::for_entries(3_000, PageSize::Base).expect("small");
        let buckets = table.buckets;
        assert_eq!(buckets * SUBTABLES * BUCKET_ENTRIES, 4_000);
        let mut rng = fastrand::Rng::with_seed(1);
        for number in 0..3_000_u32 {
            table.insert(Key { hash: rng.u64(..), group: 0, bytes: &number.to_le_bytes() }, Leads::to_number(number));
        }
        assert_eq!(table.buckets, buckets, "no overflow of the CT at 75 % (§4.3.4)");
    }
}
