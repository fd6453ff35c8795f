//! Fingerprint table: which name prefix entries may hold a prefix with this hash?
//!
//! Source: Yuan15 §3.3.2. There is one table per number of components. Symbols: n is the number of prefixes for which
//! a table is made. It has n/4 buckets ([`PREFIXES_PER_BUCKET`]) and 10 % more for chains
//! ([`PREALLOCATED_OVERFLOW_PERCENT`]).
//!
//! ```text
//!  hash ─► bucket = ⌊hash · primary / 2⁶⁴⌋
//!  buckets: | 0 … primary - 1 | overflow: in chains, or in a list of free ones |
//! ```
//!
//! Deviations:
//! - A table that holds more than n is doubled, and its overflow grows when 10 % do not suffice.
//! - Chains have no holes: the last entry of the chain replaces one that is taken out. Whatever the hashes, there are
//!   at most n/7 overflow buckets: 57 % of the n/4 primary buckets ([`OVERFLOW_LIMIT_PERCENT`]). The overflow reaches
//!   this limit only if an attacker makes names that collide: the reason for SipHash (§3.3.2).
//!
//! Cost: a look-up reads 1 line, and one per chained bucket; a doubling reads and writes everything once.
//! Bytes per prefix: it takes 17.6 in a table that holds n prefixes, and up to 35 after a doubling.
//! Writers: the owner.

use super::bucket::{BUCKET_ENTRIES, Bucket, fingerprint};
use bytemuck::Zeroable;
use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::prefetch;
use std::io;

/// Prefixes for each primary bucket: 4 of the 7 entries.
const PREFIXES_PER_BUCKET: usize = 4;
/// Overflow buckets made with the table, in percent of the primary ones.
const PREALLOCATED_OVERFLOW_PERCENT: usize = 10;
/// The most overflow: every overflow bucket follows at least seven prefixes.
const OVERFLOW_LIMIT_PERCENT: usize = (100 * PREFIXES_PER_BUCKET).div_ceil(BUCKET_ENTRIES);
/// Primary buckets of a table that begins small: with their overflow buckets, they fill a page.
const FIRST_BUCKETS: usize = 58;

/// The hash table of one length.
pub(super) struct FingerprintTable {
    buckets: PageArray<Bucket>,
    primary: usize,
    /// The first of the free overflow buckets; 0 is none.
    free: usize,
    len: usize,
    /// Buckets above were never used.
    end: usize,
    pages: PageSize,
}

/// Where a fingerprint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    bucket: u32,
    place: u8,
}

/// A fingerprint that matches.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    /// Its name prefix entry.
    pub(super) name_entry: u32,
    pub(super) at: Place,
    /// Another entry of its chain has the same fingerprint.
    pub(super) is_collided: bool,
    /// The entry is no marker.
    pub(super) is_leaf: bool,
}

/// The fingerprints of a chain that match and were not looked at yet.
#[derive(Clone, Copy)]
pub(super) struct Matches {
    bucket: u32,
    places: u32,
    fingerprint: u32,
}

impl FingerprintTable {
    /// A table for `prefixes`, on these pages; nothing is allocated for none.
    pub(super) fn new(prefixes: usize, pages: PageSize) -> io::Result<Self> {
        let primary = prefixes.div_ceil(PREFIXES_PER_BUCKET);
        let buckets = PageArray::zeroed_preferably(primary + preallocated_overflow(primary), pages)?;
        Ok(Self { buckets, primary, free: 0, len: 0, end: primary, pages })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.mapped_bytes()
    }

    #[inline(always)]
    fn primary_bucket(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.primary as u128) >> 64) as usize
    }

    /// Begins to fetch the bucket of this hash.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(bucket) = self.buckets.get(self.primary_bucket(hash)) {
            prefetch(bucket);
        }
    }

    /// Reads the bucket of this hash.
    #[inline(always)]
    pub(super) fn matches(&self, hash: u64) -> Matches {
        let (bucket, fingerprint) = (self.primary_bucket(hash), fingerprint(hash));
        let places = self.buckets.get(bucket).map_or(0, |bucket| bucket.equal(fingerprint));
        Matches { bucket: bucket as u32, places, fingerprint }
    }

    /// The next of the matches, if there is one more.
    #[inline(always)]
    pub(super) fn next(&self, matches: &mut Matches) -> Option<Candidate> {
        while matches.places == 0 {
            let next = self.buckets.get(matches.bucket as usize)?.chained()?;
            *matches = Matches {
                bucket: next as u32,
                places: self.buckets[next].equal(matches.fingerprint),
                fingerprint: matches.fingerprint,
            };
        }
        let (bucket, place) = (&self.buckets[matches.bucket as usize], matches.places.trailing_zeros() as usize);
        matches.places &= matches.places - 1;
        Some(Candidate {
            name_entry: bucket.name_entry(place),
            at: Place { bucket: matches.bucket, place: place as u8 },
            is_collided: bucket.is_collided(place),
            is_leaf: bucket.is_leaf(place),
        })
    }

    /// Every name prefix entry of the table.
    pub(super) fn name_entries(&self) -> impl Iterator<Item = u32> + '_ {
        self.buckets[..self.end].iter().flat_map(|bucket| {
            (0..BUCKET_ENTRIES)
                .filter(|&place| bucket.occupied() >> place & 1 != 0)
                .map(|place| bucket.name_entry(place))
        })
    }

    /// Makes sure that one more prefix can be put in; `hash_of` tells the hash of the prefix of an entry.
    ///
    /// # Errors
    /// If the kernel has no memory for the prefix; the table is then what it was.
    pub(super) fn reserve_one(&mut self, hash_of: impl Fn(u32) -> u64) -> io::Result<()> {
        if self.len >= self.primary * PREFIXES_PER_BUCKET {
            let primary = (2 * self.primary).max(FIRST_BUCKETS);
            let mut larger = Self::new(primary * PREFIXES_PER_BUCKET, self.pages)?;
            for bucket in &self.buckets[..self.end] {
                for place in (0..BUCKET_ENTRIES).filter(|place| bucket.occupied() >> place & 1 != 0) {
                    larger.reserve_overflow()?;
                    larger.put(hash_of(bucket.name_entry(place)), bucket.name_entry(place), bucket.is_leaf(place));
                }
            }
            *self = larger;
        }
        self.reserve_overflow()
    }

    fn reserve_overflow(&mut self) -> io::Result<()> {
        if self.free == 0 && self.end == self.buckets.len() {
            let overflow = self.end - self.primary;
            debug_assert!(overflow <= self.primary * OVERFLOW_LIMIT_PERCENT / 100 + 1);
            self.buckets.grow(self.end + preallocated_overflow(self.primary))?;
        }
        Ok(())
    }

    /// Puts a prefix in, which must not be there; room was made by [`FingerprintTable::reserve_one`].
    pub(super) fn put(&mut self, hash: u64, name_entry: u32, leaf: bool) {
        let fingerprint = fingerprint(hash);
        let mut number = self.primary_bucket(hash);
        let (mut collided, mut free) = (false, None);
        loop {
            let bucket = &mut self.buckets[number];
            collided |= mark_collided(bucket, fingerprint, true);
            free = free.or_else(|| bucket.free_place().map(|place| (number, place)));
            match bucket.chained() {
                Some(next) => number = next,
                None => break,
            }
        }
        let (bucket, place) = free.unwrap_or_else(|| (self.chain(number), 0));
        self.buckets[bucket].put(place, fingerprint, name_entry, collided, leaf);
        self.len += 1;
    }

    /// Lengthens a chain by an overflow bucket.
    fn chain(&mut self, last: usize) -> usize {
        let bucket = if self.free != 0 { self.free } else { self.end };
        if bucket == self.end {
            self.end += 1;
        } else {
            self.free = self.buckets[bucket].chained().unwrap_or(0);
        }
        self.buckets[bucket] = Bucket::zeroed();
        self.buckets[last].set_chained(Some(bucket));
        bucket
    }

    /// Says whether a marker may lead on from there.
    pub(super) fn set_leaf(&mut self, at: Place, leaf: bool) {
        self.buckets[at.bucket as usize].set_leaf(at.place.into(), leaf);
    }

    /// Takes out what is at `at`, a prefix of this hash; places of its chain change.
    pub(super) fn remove(&mut self, hash: u64, at: Place) {
        let (hole, hole_place) = (at.bucket as usize, usize::from(at.place));
        let first = self.primary_bucket(hash);
        let (mut before, mut last) = (first, first);
        while let Some(next) = self.buckets[last].chained() {
            (before, last) = (last, next);
        }
        let occupied = self.buckets[last].occupied();
        let last_place = occupied.ilog2() as usize; // not empty: chains have no holes
        let moved = self.buckets[last];
        let (print, entry) = (moved.fingerprint(last_place), moved.name_entry(last_place));
        self.buckets[hole].clear(hole_place);
        if (hole, hole_place) != (last, last_place) {
            let (collided, leaf) = (moved.is_collided(last_place), moved.is_leaf(last_place));
            self.buckets[last].clear(last_place);
            self.buckets[hole].put(hole_place, print, entry, collided, leaf);
        }
        if last != first && self.buckets[last].occupied() == 0 {
            self.buckets[before].set_chained(None);
            self.buckets[last].set_chained((self.free != 0).then_some(self.free));
            self.free = last;
        }
        self.len -= 1;
        self.forget_collision(first, fingerprint(hash));
    }

    /// If only one entry of the chain has this fingerprint, that entry does not collide any more.
    fn forget_collision(&mut self, first: usize, fingerprint: u32) {
        let chain = |buckets: &[Bucket], number: usize| buckets[number].chained();
        let (mut number, mut equal) = (Some(first), 0);
        while let Some(bucket) = number {
            equal += self.buckets[bucket].equal(fingerprint).count_ones();
            number = chain(&self.buckets, bucket);
        }
        if equal == 1 {
            number = Some(first);
            while let Some(bucket) = number {
                mark_collided(&mut self.buckets[bucket], fingerprint, false);
                number = chain(&self.buckets, bucket);
            }
        }
    }
}

/// Marks every entry of the bucket with this fingerprint; says whether there is such an entry.
fn mark_collided(bucket: &mut Bucket, fingerprint: u32, collided: bool) -> bool {
    let equal = bucket.equal(fingerprint);
    for place in (0..BUCKET_ENTRIES).filter(|place| equal >> place & 1 != 0) {
        bucket.set_collided(place, collided);
    }
    equal != 0
}

fn preallocated_overflow(primary: usize) -> usize {
    (primary * PREALLOCATED_OVERFLOW_PERCENT).div_ceil(100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matching(table: &FingerprintTable, hash: u64) -> Vec<Candidate> {
        let mut matches = table.matches(hash);
        std::iter::from_fn(|| table.next(&mut matches)).collect()
    }

    #[test]
    fn the_paper_s_memory_for_512_million_names_of_seven_components() {
        let buckets = |prefixes: usize| {
            let primary = prefixes.div_ceil(PREFIXES_PER_BUCKET);
            primary + preallocated_overflow(primary)
        };
        // "27.0 GB of hash tables": three of them, each for all names.
        let gigabytes = 3.0 * buckets(512_000_000) as f64 * 64.0 / 1e9;
        assert!((gigabytes - 27.03).abs() < 0.01, "{gigabytes}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Hashes of few buckets and few fingerprints, so that chains are long and nearly everything
        /// collides; a twin that is a list.
        #[test]
        fn equals_a_list(operations in prop::collection::vec((0_u64..12, 0_u64..3, any::<bool>(), any::<prop::sample::Index>()), 1..400)) {
            let mut table = FingerprintTable::new(0, PageSize::Base).unwrap();
            let mut hashes = Vec::new(); // of entry number
            let mut list: Vec<u32> = Vec::new();
            for (bucket, print, put, index) in operations {
                if put || list.is_empty() {
                    let entry = hashes.len() as u32;
                    hashes.push((bucket % 3) << 61 | print);
                    table.reserve_one(|entry| hashes[entry as usize]).unwrap();
                    table.put(hashes[entry as usize], entry, entry.is_multiple_of(2));
                    list.push(entry);
                } else {
                    let entry = list.swap_remove(index.index(list.len()));
                    let hash = hashes[entry as usize];
                    let candidate = matching(&table, hash).into_iter().find(|candidate| candidate.name_entry == entry);
                    table.remove(hash, candidate.unwrap().at);
                }
                prop_assert_eq!(table.len(), list.len());
                let mut all: Vec<u32> = table.name_entries().collect();
                all.sort_unstable();
                list.sort_unstable();
                prop_assert_eq!(&all, &list);
                prop_assert!(table.end - table.primary <= table.primary * OVERFLOW_LIMIT_PERCENT / 100 + 1);
            }
            for &hash in &hashes {
                let same_chain = |other: u64| table.primary_bucket(other) == table.primary_bucket(hash);
                let mut expected: Vec<u32> = list.iter().copied().filter(|&entry| {
                    let other = hashes[entry as usize];
                    same_chain(other) && fingerprint(other) == fingerprint(hash)
                }).collect();
                let mut found = matching(&table, hash);
                prop_assert!(found.iter().all(|candidate| candidate.is_collided == (found.len() > 1)));
                prop_assert!(found.iter().all(|candidate| candidate.is_leaf == candidate.name_entry.is_multiple_of(2)));
                found.sort_unstable_by_key(|candidate| candidate.name_entry);
                expected.sort_unstable();
                prop_assert!(found.iter().map(|candidate| candidate.name_entry).eq(expected));
            }
        }
    }
}
