//! Number set: a set of numbers that finds its first member from a given number on.
//!
//! Source: a bitmap with bitmaps over it, 64 to one (a van Emde Boas tree of fixed fan-out). Policies use it to find
//! the next list or bucket that is not empty, even with many empty ones before it.
//!
//! ```text
//! level 2:  | bit n = word n of level 1 is not 0 |
//! level 1:  | bit n = word n of level 0 is not 0 | … |
//! level 0:  | bit n = the number n is in the set |     …     |
//! ```
//!
//! Cost: adding or removing a number writes 1 word, and one more of each level where that word was 0 or became 0.
//! [`NumberSet::first_from`] reads at most 2 words of each of [`LEVELS`] levels. Bytes: a number takes one bit and a
//! 63rd part more. Writers: the owner.

use namewire_tables::pages::{PageArray, PageSize};
use std::io;

/// Enough for every number of 32 bits.
const LEVELS: usize = 6;

/// A set of numbers below a limit; see the module.
pub(crate) struct NumberSet {
    /// All levels, the numbers themselves first.
    words: PageArray<u64>,
    /// The first word of each level.
    levels: [usize; LEVELS],
    limit: u32,
    pages: PageSize,
}

impl NumberSet {
    /// An empty set of numbers below `limit`.
    pub(crate) fn new(limit: u32, pages: PageSize) -> io::Result<Self> {
        let mut levels = [0; LEVELS];
        let (mut words, mut numbers) = (0, limit as usize);
        for first in &mut levels {
            numbers = numbers.div_ceil(64).max(1);
            *first = words;
            words += numbers;
        }
        Ok(Self { words: PageArray::zeroed(words, pages)?, levels, limit, pages })
    }

    /// Makes room for numbers below `limit`, if there is less.
    pub(crate) fn grow(&mut self, limit: u32) -> io::Result<()> {
        if limit <= self.limit {
            return Ok(());
        }
        let mut grown = Self::new(limit, self.pages)?;
        let mut next = self.first_from(0);
        while let Some(number) = next {
            grown.insert(number);
            next = self.first_from(number + 1);
        }
        *self = grown;
        Ok(())
    }

    /// Bytes of memory mapped for the set.
    pub(crate) fn bytes(&self) -> usize {
        self.words.mapped_bytes()
    }

    /// Adds the number; returns whether it was not in the set.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let word = &mut self.words[number as usize / 64];
        let (before, bit) = (*word, 1 << (number % 64));
        *word |= bit;
        if before == 0 {
            self.insert_above(number as usize / 64);
        }
        before & bit == 0
    }

    /// A word of level 0 was 0 and no longer is: sets the bits above it.
    fn insert_above(&mut self, mut number: usize) {
        for &first in &self.levels[1..] {
            let word = &mut self.words[first + number / 64];
            let before = *word;
            *word |= 1 << (number % 64);
            if before != 0 {
                return;
            }
            number /= 64;
        }
    }

    /// Removes the number.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let mut number = number as usize;
        for first in self.levels {
            let word = &mut self.words[first + number / 64];
            *word &= !(1 << (number % 64));
            if *word != 0 {
                return;
            }
            number /= 64;
        }
    }

    /// The least number that is in the set and not below `from`.
    #[inline]
    pub(crate) fn first_from(&self, from: u32) -> Option<u32> {
        if from >= self.limit {
            return None;
        }
        let mut from = from as usize;
        for level in 0..LEVELS {
            let word = self.word(level, from / 64)?;
            let rest = word >> (from % 64) << (from % 64);
            if rest != 0 {
                return Some(self.least_under(level, from / 64 * 64 + rest.trailing_zeros() as usize));
            }
            from = from / 64 + 1; // of the level above: the words after this one
        }
        None
    }

    /// The word of a level, if the level has one there.
    #[inline]
    fn word(&self, level: usize, index: usize) -> Option<u64> {
        let end = self.levels.get(level + 1).copied().unwrap_or(self.words.len());
        (self.levels[level] + index < end).then(|| self.words[self.levels[level] + index])
    }

    /// The least number in the set under a bit of a level.
    fn least_under(&self, level: usize, bit: usize) -> u32 {
        let least = |bit: usize, first: &usize| bit * 64 + self.words[first + bit].trailing_zeros() as usize;
        self.levels[..level].iter().rev().fold(bit, least) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_equals_a_tree(
            limit in prop_oneof![1_u32..200, 3_000_u32..9_000, Just(300_000)],
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..200),
            grown in 0_u32..400_000,
        ) {
            let mut set = NumberSet::new(limit, PageSize::Base).unwrap();
            let mut tree = BTreeSet::new();
            for (comes, index) in steps {
                let number = index.index(limit as usize) as u32;
                if comes {
                    prop_assert_eq!(set.insert(number), tree.insert(number));
                } else {
                    set.remove(number);
                    tree.remove(&number);
                }
                for from in [0, number.saturating_sub(70), number, number + 1, limit - 1, limit] {
                    prop_assert_eq!(set.first_from(from), tree.range(from..).next().copied());
                }
            }
            set.grow(grown).unwrap();
            for from in [0, 1, limit / 2, limit, grown] {
                prop_assert_eq!(set.first_from(from), tree.range(from..).next().copied());
            }
        }
    }
}
