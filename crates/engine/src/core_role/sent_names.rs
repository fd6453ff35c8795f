//! Sent names: was Data of this name sent since an Interest last asked for it?
//!
//! Source: ours. An entry that is marked collided stays to its expiry, however much Data comes (Yuan15 §5.4.1). Where
//! cores ask each other (multicast, an ad hoc link), the first Data would be handed round among such entries until
//! they expire, in growing numbers; and whoever has one Data could send it again and again for them to multiply. So
//! Data that leaves for an entry that stays is remembered by its whole name hash, and goes that way once for each
//! Interest: the next Interest for the name makes it forgotten.
//!
//! ```text
//! name hash, upper bits ─► bucket │ name hash │ × 8    1 line; the latest first, and what comes pushes out the eighth
//! ```
//!
//! What was pushed out is sent once more, and remembered again. A copy goes round only if that happens at every router
//! of its way, before it is back, each of them with a hash of its own key. Buckets are kept in order of coming, so
//! that a name is there until eight others came to its bucket: of n that come to N places that is one in 10⁵ for
//! n = N/8, and one in 10³ for N/4.
//!
//! Cost: 1 line for an Interest, 1 for Data. Bytes: 8 a place, of which there is one
//! for each 16 fingerprints, at least 65,536 (512 KiB). Limit: that. Who may write: the worker.

use namewire_tables::{PageArray, PageSize, prefetch::prefetch};
use std::io;

const BUCKET_NAMES: usize = 8;
const MIN_NAMES: usize = 1 << 16;
const FINGERPRINTS_PER_NAME: u64 = 16;

/// Name hashes, the latest first; 0: none. The first is at a page's start, so that each is one line.
type Bucket = [u64; BUCKET_NAMES];

const _: () = assert!(size_of::<Bucket>() == 64);

/// See the module.
pub(crate) struct SentNames {
    /// A power of two of them.
    buckets: PageArray<Bucket>,
    /// The bucket is above so many bits of a hash.
    shift: u32,
}

impl SentNames {
    /// For a table of so many fingerprints.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub(crate) fn new(fingerprints: u64, pages: PageSize) -> io::Result<Self> {
        let names = ((fingerprints / FINGERPRINTS_PER_NAME) as usize).max(MIN_NAMES).next_power_of_two();
        let buckets = names / BUCKET_NAMES;
        Ok(SentNames { buckets: PageArray::zeroed(buckets, pages)?, shift: u64::BITS - buckets.ilog2() })
    }

    /// Begins to fetch what the others read.
    #[inline]
    pub(crate) fn prefetch(&self, name_hash: u64) {
        prefetch(&self.buckets[self.place(name_hash)][0]);
    }

    /// Data of this name leaves.
    #[inline]
    pub(crate) fn insert(&mut self, name_hash: u64) {
        let place = self.place(name_hash);
        let names = &mut self.buckets[place];
        let newest = name_hash.max(1);
        // Up to its own place, if it has one, so that it is not there twice.
        let end = names.iter().position(|&name| name == newest).unwrap_or(BUCKET_NAMES - 1);
        names.copy_within(..end, 1);
        names[0] = newest;
    }

    /// Whether it left since [`SentNames::remove`].
    #[inline]
    pub(crate) fn contains(&self, name_hash: u64) -> bool {
        self.buckets[self.place(name_hash)].contains(&name_hash.max(1))
    }

    /// An Interest asks for this name.
    #[inline]
    pub(crate) fn remove(&mut self, name_hash: u64) {
        let place = self.place(name_hash);
        let names = &mut self.buckets[place];
        if let Some(at) = names.iter().position(|&name| name == name_hash.max(1)) {
            names.copy_within(at + 1.., at);
            names[BUCKET_NAMES - 1] = 0;
        }
    }

    #[inline]
    fn place(&self, name_hash: u64) -> usize {
        (name_hash >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_names() -> SentNames {
        SentNames::new(1, PageSize::default()).unwrap()
    }

    /// The hash of another name in the bucket of `near`.
    fn beside(near: u64, number: u64) -> u64 {
        near ^ (number + 1)
    }

    #[test]
    fn a_name_is_sent_until_it_is_asked_for() {
        let mut sent = sent_names();
        for name in [0, 1 << 63, u64::MAX] {
            assert!(!sent.contains(name));
            sent.insert(name);
            sent.insert(name);
            assert!(sent.contains(name) && !sent.contains(beside(name, 7)));
            sent.remove(name);
            sent.remove(name);
            assert!(!sent.contains(name), "and was there once");
        }
    }

    #[test]
    fn seven_others_push_nothing_out_and_the_eighth_the_oldest() {
        let mut sent = sent_names();
        let first = 0xabcd << 40;
        sent.insert(first);
        for number in 0..7 {
            sent.insert(beside(first, number));
            sent.insert(beside(first, 0));
        }
        assert!(sent.contains(first));
        sent.insert(beside(first, 7));
        assert!(!sent.contains(first));
        assert!((0..8).all(|number| sent.contains(beside(first, number))));
        sent.remove(beside(first, 3));
        sent.insert(first);
        assert!([0, 1, 2, 4, 5, 6, 7].into_iter().all(|number| sent.contains(beside(first, number))));
        assert!(!sent.contains(beside(first, 3)) && sent.contains(first));
    }

    #[test]
    fn a_place_for_each_16_fingerprints() {
        for (fingerprints, buckets) in [(1, 8192), (1 << 20, 8192), ((1 << 20) + 16, 16384), (1 << 24, 131_072)] {
            assert_eq!(SentNames::new(fingerprints, PageSize::default()).unwrap().buckets.len(), buckets);
        }
    }
}
