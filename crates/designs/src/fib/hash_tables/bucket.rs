//! Bucket: one cache line of seven fingerprints and where their name prefix entries are.
//!
//! Source: Yuan15 Fig. 3.3. Symbols: E is [`BUCKET_ENTRIES`]. Deviation: pointers are offsets. The offset of an entry
//! is in units of 16 bytes; for a chained bucket it is a number of buckets.
//!
//! ```text
//!  byte 0      bits 0-6      7-13         14-20    21-62                    63
//!             │ occupied × 7 │ collided × 7 │ leaf × 7 │ chained bucket, 0 = none │ 0 │
//!  byte 8, 16 … 56, seven times
//!             │ bits 0-43: name prefix entry │ bits 44-63: fingerprint │
//! ```
//!
//! *Collided*: another entry of the chain has the same fingerprint, so only a comparison of names distinguishes them.
//! *Leaf*: the entry is no marker of a longer prefix, so a search can end at it.
//! Cost: a bucket is 1 line. Writers: the owner of the table.

use bytemuck::{Pod, Zeroable};

/// E, the entries of a bucket.
pub(super) const BUCKET_ENTRIES: usize = 7;
const FINGERPRINT_BITS: u32 = 20;
const POINTER_BITS: u32 = 44;
const CHAIN_BITS: u32 = 42;
const COLLIDED_AT: u32 = 7;
const LEAF_AT: u32 = 14;
const CHAIN_AT: u32 = 21;
const ALL: u32 = (1 << BUCKET_ENTRIES) - 1;

const _: () = assert!(size_of::<Bucket>() == 64 && align_of::<Bucket>() == 64);
const _: () = assert!(FINGERPRINT_BITS + POINTER_BITS == 64 && CHAIN_AT + CHAIN_BITS + 1 == 64);

/// Fig. 3.3.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    header: u64,
    entries: [u64; BUCKET_ENTRIES],
}

/// The fingerprint of a hash: its lowest bits; the highest choose the bucket.
#[inline(always)]
pub(super) fn fingerprint(hash: u64) -> u32 {
    hash as u32 & ((1 << FINGERPRINT_BITS) - 1)
}

impl Bucket {
    /// One bit per occupied entry with this fingerprint.
    #[inline(always)]
    pub(super) fn equal(&self, fingerprint: u32) -> u32 {
        let mut equal = 0;
        for (place, entry) in self.entries.iter().enumerate() {
            equal |= u32::from((entry >> POINTER_BITS) as u32 == fingerprint) << place;
        }
        equal & self.occupied()
    }

    /// One bit per occupied entry.
    #[inline(always)]
    pub(super) fn occupied(&self) -> u32 {
        self.header as u32 & ALL
    }

    /// The first free place.
    pub(super) fn free_place(&self) -> Option<usize> {
        let free = !self.occupied() & ALL;
        (free != 0).then(|| free.trailing_zeros() as usize)
    }

    /// Where the name prefix entry is, in units.
    #[inline(always)]
    pub(super) fn name_entry(&self, place: usize) -> u32 {
        self.entries[place] as u32
    }

    pub(super) fn fingerprint(&self, place: usize) -> u32 {
        (self.entries[place] >> POINTER_BITS) as u32
    }

    #[inline(always)]
    pub(super) fn is_collided(&self, place: usize) -> bool {
        self.header >> (COLLIDED_AT + place as u32) & 1 != 0
    }

    #[inline(always)]
    pub(super) fn is_leaf(&self, place: usize) -> bool {
        self.header >> (LEAF_AT + place as u32) & 1 != 0
    }

    /// The next bucket of the chain.
    #[inline(always)]
    pub(super) fn chained(&self) -> Option<usize> {
        let bucket = (self.header >> CHAIN_AT) as usize;
        (bucket != 0).then_some(bucket)
    }

    pub(super) fn set_chained(&mut self, bucket: Option<usize>) {
        let number = bucket.unwrap_or(0) as u64;
        debug_assert!(number < 1 << CHAIN_BITS);
        self.header = self.header & ((1 << CHAIN_AT) - 1) | number << CHAIN_AT;
    }

    pub(super) fn set_collided(&mut self, place: usize, collided: bool) {
        self.set_bit(COLLIDED_AT + place as u32, collided);
    }

    pub(super) fn set_leaf(&mut self, place: usize, leaf: bool) {
        self.set_bit(LEAF_AT + place as u32, leaf);
    }

    /// Fills a free place.
    pub(super) fn put(&mut self, place: usize, fingerprint: u32, name_entry: u32, collided: bool, leaf: bool) {
        self.entries[place] = u64::from(fingerprint) << POINTER_BITS | u64::from(name_entry);
        self.set_bit(place as u32, true);
        self.set_collided(place, collided);
        self.set_leaf(place, leaf);
    }

    pub(super) fn clear(&mut self, place: usize) {
        self.put(place, 0, 0, false, false);
        self.set_bit(place as u32, false);
    }

    fn set_bit(&mut self, bit: u32, value: bool) {
        self.header = self.header & !(1 << bit) | u64::from(value) << bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let mut bucket = Bucket::zeroed();
        bucket.set_chained(Some((1 << CHAIN_BITS) - 1));
        for place in 0..BUCKET_ENTRIES {
            assert_eq!(bucket.free_place(), Some(place));
            bucket.put(place, fingerprint(u64::MAX - place as u64), u32::MAX, place == 2, place == 4);
        }
        assert_eq!((bucket.occupied(), bucket.free_place()), (ALL, None));
        assert_eq!(bucket.header >> 63, 0, "the reserved bit");
        for place in 0..BUCKET_ENTRIES {
            assert_eq!(bucket.equal(bucket.fingerprint(place)), 1 << place);
            assert_eq!((bucket.is_collided(place), bucket.is_leaf(place)), (place == 2, place == 4));
            assert_eq!(bucket.name_entry(place), u32::MAX);
        }
        bucket.clear(4);
        assert_eq!((bucket.free_place(), bucket.is_leaf(4), bucket.equal(0)), (Some(4), false, 0));
        assert_eq!(bucket.chained(), Some((1 << CHAIN_BITS) - 1));
        bucket.set_chained(None);
        assert_eq!((bucket.chained(), bucket.occupied()), (None, ALL & !(1 << 4)));
    }
}
