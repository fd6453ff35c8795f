//! Sent names: has Data of this name been sent since an Interest last asked for it?
//!
//! Source: ours. Some Data arrives more than once, although each Interest has one answer:
//!
//! * An entry marked collided stays until it expires, even if Data arrives several times (Yuan15 §5.4.1). Cores may ask
//!   each other (multicast, an ad hoc link). They would then pass copies of the first Data to each other, in growing
//!   numbers, until the entries expire. A neighbour could also send one Data again and again to make it multiply.
//! * An Interest kept by name may have been sent twice (a retransmission). Its name, or a prefix of it, may also have
//!   been requested by fingerprint. The second Data finds no pending name, and would remove the fingerprint of another
//!   name.
//! * An Interest went to several next hops at once (`multicast`).
//!
//! So the table keeps the whole hash of such a name. Once its Data is sent, further Data of that name matches no
//! fingerprint until an Interest asks for the name again. That Interest is answered as usual, and the name stays in the
//! table.
//!
//! ```text
//! name hash, upper bits ─► bucket │ name hash, sent or asked for since │ × 8    1 line; the latest first
//!                                                                    a new name pushes out the eighth
//! ```
//!
//! Data of a displaced name is sent once more, and the name is inserted again. A copy can circulate only if every
//! router on its way displaces the name before the copy returns. Each router hashes with a different key. Buckets are
//! ordered by arrival: a name stays until eight others arrive in its bucket. With n names in N places, eight others
//! share its bucket with a probability of 1 in 10⁵ for n = N/8, and of 1 in 10³ for N/4.
//!
//! Cost: an Interest or a Data touches one cache line. Memory: a place takes 8 bytes; there is one place for each 16
//! fingerprints, and at least 65,536 (512 KiB). Limit: the places. Writer: the worker.

use namewire_tables::{PageArray, PageSize, prefetch::prefetch};
use std::io;

const BUCKET_NAMES: usize = 8;
const MIN_NAMES: usize = 1 << 16;
const FINGERPRINTS_PER_NAME: u64 = 16;

/// Lowest bit of a name hash: Data of the name has left since an Interest last asked for it.
const SENT: u64 = 1;

/// Name hashes, the latest first; 0 means none. The array begins at a page, so that each bucket is one cache line.
type Bucket = [u64; BUCKET_NAMES];

const _: () = assert!(size_of::<Bucket>() == 64);

/// See the module.
pub(crate) struct SentNames {
    /// The number of buckets is a power of two.
    buckets: PageArray<Bucket>,
    /// The bucket is the hash shifted right by this.
    shift: u32,
}

impl SentNames {
    /// For a table of `fingerprints` entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub(crate) fn new(fingerprints: u64, pages: PageSize) -> io::Result<Self> {
        let names = ((fingerprints / FINGERPRINTS_PER_NAME) as usize).max(MIN_NAMES).next_power_of_two();
        let buckets = names / BUCKET_NAMES;
        Ok(SentNames { buckets: PageArray::zeroed(buckets, pages)?, shift: u64::BITS - buckets.ilog2() })
    }

    /// Prefetches what the other methods read.
    #[inline]
    pub(crate) fn prefetch(&self, name_hash: u64) {
        prefetch(&self.buckets[self.place(name_hash)][0]);
    }

    /// Data of this name leaves, and may come again.
    #[inline]
    pub(crate) fn send(&mut self, name_hash: u64) {
        self.remember(name_hash | SENT);
    }

    /// Whether Data left since an Interest last asked for it.
    #[inline]
    pub(crate) fn is_sent(&self, name_hash: u64) -> bool {
        self.buckets[self.place(name_hash)].contains(&(name_hash | SENT))
    }

    /// Whether Data of this name is known to come more than once.
    #[inline]
    pub(crate) fn is_known(&self, name_hash: u64) -> bool {
        self.buckets[self.place(name_hash)].iter().any(|&name| name | SENT == name_hash | SENT)
    }

    /// An Interest asks for this name.
    #[inline]
    pub(crate) fn ask(&mut self, name_hash: u64) {
        let place = self.place(name_hash);
        if let Some(name) = self.buckets[place].iter_mut().find(|name| **name == name_hash | SENT) {
            *name &= !SENT;
        }
    }

    /// An Interest asks for this name, and several will answer.
    #[inline]
    pub(crate) fn ask_several(&mut self, name_hash: u64) {
        self.remember(name_hash & !SENT);
    }

    #[inline]
    fn remember(&mut self, newest: u64) {
        let place = self.place(newest);
        let names = &mut self.buckets[place];
        // Shifts up to the name's own place, if it has one, so that it is not listed twice.
        let end = names.iter().position(|&name| name | SENT == newest | SENT).unwrap_or(BUCKET_NAMES - 1);
        names.copy_within(..end, 1);
        names[0] = newest;
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
        near ^ (number + 1) << 1
    }

    #[test]
    fn a_name_is_sent_until_it_is_asked_for_and_stays_known() {
        let mut sent = sent_names();
        for name in [0, 1 << 63, u64::MAX] {
            assert!(!sent.is_sent(name) && !sent.is_known(beside(name, 7)));
            sent.ask(name);
            assert!(!sent.is_sent(name), "what is not known is not remembered for being asked for");
            sent.send(name);
            sent.send(name);
            assert!(sent.is_sent(name) && sent.is_known(name) && !sent.is_known(beside(name, 7)));
            sent.ask(name);
            sent.ask(name);
            assert!(!sent.is_sent(name) && (sent.is_known(name) || name == 0));
            sent.send(name);
            assert!(sent.is_sent(name));
            sent.ask_several(name);
            assert!(!sent.is_sent(name) && (sent.is_known(name) || name == 0));
        }
    }

    #[test]
    fn seven_others_push_nothing_out_and_the_eighth_the_oldest() {
        let mut sent = sent_names();
        let first = 0xabcd << 40;
        sent.send(first);
        for number in 0..7 {
            sent.send(beside(first, number));
            sent.ask(beside(first, 0));
            sent.ask_several(beside(first, 0));
        }
        assert!(sent.is_sent(first));
        sent.send(beside(first, 7));
        assert!(!sent.is_known(first));
        assert!((0..8).all(|number| sent.is_known(beside(first, number))));
        assert!(!sent.is_sent(beside(first, 0)) && (1..8).all(|number| sent.is_sent(beside(first, number))));
    }

    #[test]
    fn a_place_for_each_16_fingerprints() {
        for (fingerprints, buckets) in [(1, 8192), (1 << 20, 8192), ((1 << 20) + 16, 16384), (1 << 24, 131_072)] {
            assert_eq!(SentNames::new(fingerprints, PageSize::default()).unwrap().buckets.len(), buckets);
        }
    }
}
