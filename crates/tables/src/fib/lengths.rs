//! Lengths: which prefix lengths, in components, does any entry have?
//!
//! A search skips the other lengths. The writer counts entries per length; readers see one bit per length.
//! The writer sets the bit before it publishes the first entry of the length, and clears it after it
//! unlinks the last one. So a prefix that is in the FIB throughout a search is never skipped.

use crate::name_hash::MAX_NAME_COMPONENTS;
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = MAX_NAME_COMPONENTS / 64 + 1;

/// The bits, as readers see them.
#[derive(Default)]
pub(super) struct Lengths {
    present: [AtomicU64; WORDS],
}

impl Lengths {
    /// The lengths in use that are at most `longest`, longest first.
    #[inline(always)]
    pub(super) fn descending_from(&self, longest: usize) -> impl Iterator<Item = usize> + '_ {
        let longest = longest.min(MAX_NAME_COMPONENTS);
        let mut word = longest / 64;
        let mut bits = self.present[word].load(Ordering::Acquire) & (u64::MAX >> (63 - longest % 64));
        std::iter::from_fn(move || {
            while bits == 0 {
                word = word.checked_sub(1)?;
                bits = self.present[word].load(Ordering::Acquire);
            }
            let bit = bits.ilog2() as usize;
            bits &= !(1 << bit);
            Some(word * 64 + bit)
        })
    }

    /// The longest length in use that is at most `longest`.
    #[inline(always)]
    pub(super) fn longest_up_to(&self, longest: usize) -> Option<usize> {
        if longest < 64 {
            // True for nearly every name.
            let bits = self.bits(0, longest);
            return (bits != 0).then(|| bits.ilog2() as usize);
        }
        self.descending_from(longest).next()
    }

    /// One bit for each length in use from `shortest` to `longest`, which is below 64.
    #[inline(always)]
    pub(super) fn bits(&self, shortest: usize, longest: usize) -> u64 {
        self.present[0].load(Ordering::Acquire) & (u64::MAX >> (63 - longest)) & (u64::MAX << shortest)
    }

    fn store(&self, components: usize, present: bool) {
        let word = &self.present[components / 64];
        let bit = 1 << (components % 64);
        let others = word.load(Ordering::Relaxed) & !bit;
        word.store(if present { others | bit } else { others }, Ordering::Release);
    }
}

/// How many prefixes each length has; only the writer has it.
pub(super) struct LengthCounts(Box<[u32; MAX_NAME_COMPONENTS + 1]>);

impl LengthCounts {
    pub(super) fn new() -> Self {
        Self(Box::new([0; MAX_NAME_COMPONENTS + 1]))
    }

    /// Must be called before the entry is published.
    pub(super) fn add(&mut self, lengths: &Lengths, components: usize) {
        self.0[components] += 1;
        if self.0[components] == 1 {
            lengths.store(components, true);
        }
    }

    /// Must be called after the entry is unlinked.
    pub(super) fn subtract(&mut self, lengths: &Lengths, components: usize) {
        self.0[components] -= 1;
        if self.0[components] == 0 {
            lengths.store(components, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_and_go_with_their_prefixes() {
        let (lengths, mut counts) = (Lengths::default(), LengthCounts::new());
        for components in [0, 3, 63, 64, 64, 200, 256] {
            counts.add(&lengths, components);
        }
        let listed = |longest| lengths.descending_from(longest).collect::<Vec<_>>();
        assert_eq!(listed(1000), [256, 200, 64, 63, 3, 0]);
        assert_eq!((listed(199), listed(2), listed(63)), (vec![64, 63, 3, 0], vec![0], vec![63, 3, 0]));
        for longest in [0, 2, 3, 62, 63, 64, 199, 256] {
            assert_eq!(lengths.longest_up_to(longest), listed(longest).first().copied());
        }
        assert_eq!((lengths.bits(0, 63), lengths.bits(1, 62), lengths.bits(4, 3)), (1 << 63 | 1 << 3 | 1, 1 << 3, 0));
        counts.subtract(&lengths, 64);
        counts.subtract(&lengths, 0);
        assert_eq!(lengths.longest_up_to(2), None);
        assert_eq!(listed(200), [200, 64, 63, 3]);
        counts.subtract(&lengths, 64);
        assert_eq!(listed(200), [200, 63, 3]);
    }
}
