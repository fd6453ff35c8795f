//! Markers: may there be a prefix of this length, or of one of those that a binary search
//! would look at after it?
//!
//! Source: Waldvogel et al. 1997 (binary search over lengths, markers at the lengths where
//! it has to go on to longer ones); Yuan15 chapter 3 for names. Deviations: a marker is a
//! count in a filter and not an entry, so it costs 2 bits and may be there by chance; and
//! it does not remember the longest match up to itself: a search that was led astray goes
//! back, by the same markers.
//!
//! The order of the search is that of the bits of a length, highest first: from 4 it goes
//! on to 6 or back to 2. So a prefix of length 7 = 4 + 2 + 1 has markers at 4, at 6 and at
//! its own length 7, and the search for the longest of 7 components asks three times.
//!
//! ```text
//!  hash of a prefix ─► counter, 2 bits │ 0 nobody │ 1, 2 so many │ 3 many, never lowered │
//! ```
//!
//! Cost: a line per question. Bytes: [`COUNTERS_PER_ENTRY`] / 4 per prefix of the capacity.
//! Full: never; the more counters stand above 0, the more questions are answered yes by
//! chance, which costs time and no answer. Who may write: the FIB's writer. A marker is
//! counted before its prefix is published and taken back after it was unlinked, so that
//! a prefix that is there throughout a search is never left out.

use crate::name_hash::NameHashes;
use crate::pages::{PageArray, PageSize};
use crate::prefetch::prefetch;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters for each entry of the capacity. Prefixes of 2 to 6 components have 1.6 markers.
const COUNTERS_PER_ENTRY: usize = 8;
const COUNTERS_PER_WORD: usize = 32;
/// The count that is never lowered, because it may stand for more.
const MANY: u64 = 3;

/// Counts of markers.
pub(super) struct Markers {
    words: PageArray<AtomicU64>,
}

impl Markers {
    pub(super) fn new(entries: usize, pages: PageSize) -> io::Result<Self> {
        let words = (entries * COUNTERS_PER_ENTRY).div_ceil(COUNTERS_PER_WORD).max(1);
        Ok(Self { words: PageArray::zeroed(words, pages)? })
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.mapped_bytes()
    }

    /// Counts the markers of a whole name. To be called before it is published.
    pub(super) fn add(&self, hashes: &NameHashes) {
        self.change(hashes, |count| count + 1);
    }

    /// Takes them back. To be called after it was unlinked.
    pub(super) fn subtract(&self, hashes: &NameHashes) {
        self.change(hashes, |count| count - 1);
    }

    fn change(&self, hashes: &NameHashes, changed: impl Fn(u64) -> u64) {
        let mut components = hashes.components();
        while components > 0 {
            let (word, shift) = self.place(hashes.prefix_hash(components));
            let counts = word.load(Ordering::Relaxed); // the only writer, so load and store need not be one step
            let count = counts >> shift & MANY;
            if count != MANY {
                word.store(counts & !(MANY << shift) | changed(count) << shift, Ordering::Release);
            }
            components = without_last_bit(components);
        }
    }

    /// The longest length, at most `longest`, that the markers lead to. No longer prefix exists.
    #[inline]
    pub(super) fn longest_up_to(&self, longest: usize, hashes: &NameHashes) -> usize {
        self.refine(0, usize::BITS - longest.leading_zeros(), longest, hashes)
    }

    /// The longest length below `components` that the markers lead to, if there is any.
    #[inline]
    pub(super) fn shorter(&self, components: usize, hashes: &NameHashes) -> Option<usize> {
        let last_bit = components.trailing_zeros();
        (components > 0).then(|| self.refine(without_last_bit(components), last_bit, components - 1, hashes))
    }

    /// Decides the lowest `bits` bits of `components`, which are 0 so far.
    #[inline]
    fn refine(&self, mut components: usize, bits: u32, longest: usize, hashes: &NameHashes) -> usize {
        for bit in (0..bits).rev() {
            components = self.decide(components, bit, longest, hashes);
        }
        components
    }

    /// One step of the search: sets the bit if a marker says so.
    #[inline(always)]
    pub(super) fn decide(&self, components: usize, bit: u32, longest: usize, hashes: &NameHashes) -> usize {
        let longer = components | 1 << bit;
        if longer <= longest && self.is_marked(hashes.prefix_hash(longer)) { longer } else { components }
    }

    /// Begins to fetch what [`Markers::decide`] reads.
    #[inline(always)]
    pub(super) fn prefetch_step(&self, components: usize, bit: u32, longest: usize, hashes: &NameHashes) {
        let longer = components | 1 << bit;
        if longer <= longest {
            prefetch(self.place(hashes.prefix_hash(longer)).0);
        }
    }

    #[inline(always)]
    fn is_marked(&self, hash: u64) -> bool {
        let (word, shift) = self.place(hash);
        word.load(Ordering::Acquire) >> shift & MANY != 0
    }

    #[inline(always)]
    fn place(&self, hash: u64) -> (&AtomicU64, u32) {
        let word = (u128::from(hash) * self.words.len() as u128) >> 64;
        (&self.words[word as usize], hash as u32 % COUNTERS_PER_WORD as u32 * 2)
    }
}

/// The next shorter length on the way of the search to this one.
fn without_last_bit(components: usize) -> usize {
    components & components.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name_hash::HashKey;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Prefixes of one long name, so crowded that counters saturate: every present one is
        /// found by going from the longest to ever shorter ones, in that order.
        #[test]
        fn no_present_length_is_left_out(present in prop::collection::btree_set(0_usize..40, 0..12),
                                         gone in prop::collection::vec(0_usize..40, 0..40),
                                         longest in 0_usize..40) {
            let key = HashKey::from_seed(3);
            let name: Vec<u8> = (0..40).flat_map(|number| [8, 1, number]).collect();
            let hashes_of = |components: usize| {
                let mut hashes = NameHashes::default();
                hashes.compute(&key, &name[..components * 3]).unwrap();
                hashes
            };
            let markers = Markers::new(4, PageSize::Base).unwrap();
            gone.iter().for_each(|&components| markers.add(&hashes_of(components)));
            present.iter().for_each(|&components| markers.add(&hashes_of(components)));
            gone.iter().for_each(|&components| markers.subtract(&hashes_of(components)));
            let hashes = hashes_of(39);
            let first = markers.longest_up_to(longest, &hashes);
            let listed: Vec<usize> = std::iter::successors(Some(first), |&c| markers.shorter(c, &hashes)).collect();
            prop_assert!(listed.is_sorted_by(|a, b| a > b) && first <= longest);
            prop_assert!(present.iter().filter(|&&c| c <= longest).all(|c| listed.contains(c)));
        }
    }

    #[test]
    fn a_prefix_alone_is_found_at_once() {
        let (key, name) = (HashKey::from_seed(1), [8, 1, b'a'].repeat(9));
        for components in 0..=9 {
            let (mut own, mut all) = (NameHashes::default(), NameHashes::default());
            own.compute(&key, &name[..components * 3]).unwrap();
            all.compute(&key, &name).unwrap();
            let markers = Markers::new(100_000, PageSize::Base).unwrap();
            markers.add(&own);
            assert_eq!(markers.longest_up_to(9, &all), components);
            markers.subtract(&own);
            assert_eq!(markers.longest_up_to(9, &all), 0);
        }
    }
}
