//! Request history: about how often was this name ever requested?
//!
//! Source: a count-min sketch with conservative update (Estan and Varghese 2002), with all counters of a name in one
//! line (the blocks of Putze et al. 2007). An estimate is never too low, except where counters end. It is too high
//! only if the name shares each of its counters with a name that was requested more often.
//!
//! ```text
//! line, 64 bytes:  | 32 counters of 16 bits |     one line for each entry of the store
//! hash:            | line ← the upper bits … | counter 5 bits | 5 | 5 | 5 |
//! ```
//!
//! With a counter line per entry of the store, LFU by these counts is within 0.001 of LFU by exact ones where there
//! are a hundred names for each entry (Zipf 0.8). With one counter for each name instead of [`COUNTERS_OF_NAME`], LFU
//! loses 0.05, with two 0.01. Counts do not age; counters end at 65,535.
//!
//! Cost: a request or an estimate takes 1 line. Bytes: an entry of the store takes 64. Writers: the owner.

use bytemuck::Zeroable;
use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::prefetch;
use std::io;

const COUNTERS_OF_LINE: usize = 32;
const COUNTERS_OF_NAME: usize = 4;

#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
struct Line([u16; COUNTERS_OF_LINE]);

const _: () = assert!(size_of::<Line>() == 64);

/// The counters; see the module.
pub struct RequestHistory {
    lines: PageArray<Line>,
    pages: PageSize,
}

impl RequestHistory {
    /// For a store of this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self { lines: PageArray::zeroed(entries.max(1) as usize, pages)?, pages })
    }

    /// Counts one more request for the name.
    #[inline]
    pub fn count(&mut self, hash: u64) {
        let line = self.line(hash);
        let counters = &mut self.lines[line].0;
        let least = counters_of(hash).map(|counter| counters[counter]).into_iter().min().unwrap_or(0);
        for counter in counters_of(hash) {
            if counters[counter] == least {
                counters[counter] = least.saturating_add(1);
            }
        }
    }

    /// How often the name was requested, or more.
    #[inline]
    pub fn estimate(&self, hash: u64) -> u16 {
        let counters = &self.lines[self.line(hash)].0;
        counters_of(hash).map(|counter| counters[counter]).into_iter().min().unwrap_or(0)
    }

    /// Begins to fetch what [`RequestHistory::count`] writes.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.lines[self.line(hash)]);
    }

    /// Adapts to a store of this many entries, if it was for fewer; then it forgets all counts.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then nothing is forgotten.
    pub fn grow(&mut self, entries: u32) -> io::Result<()> {
        if entries as usize > self.lines.len() {
            *self = Self::new(entries, self.pages)?;
        }
        Ok(())
    }

    /// Bytes of memory mapped for the counters.
    pub fn bytes(&self) -> usize {
        self.lines.mapped_bytes()
    }

    #[inline]
    fn line(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.lines.len() as u128) >> 64) as usize
    }
}

#[inline]
fn counters_of(hash: u64) -> [usize; COUNTERS_OF_NAME] {
    [0, 5, 10, 15].map(|shift| (hash >> shift) as usize % COUNTERS_OF_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(name: u32) -> u64 {
        let mixed = u64::from(name + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    /// Name `n` of many is requested 1,000 / (n + 1) times, in any order. No estimate is too low; popular
    /// names have exact ones; with few lines hardly any of the others is far too high.
    #[test]
    fn estimates_are_close() {
        for (names, wrong_at_most) in [(20, 0), (10_000, 100)] {
            let mut counts = RequestHistory::new(600, PageSize::Base).unwrap();
            let times = |name: u32| 1_000 / (name + 1);
            let mut requests: Vec<u32> =
                (0..names).flat_map(|name| (0..times(name).max(1)).map(move |_| name)).collect();
            fastrand::Rng::with_seed(1).shuffle(&mut requests);
            requests.iter().for_each(|&name| counts.count(hash(name)));
            let estimate = |name: u32| u32::from(counts.estimate(hash(name)));
            assert!((0..names).all(|name| estimate(name) >= times(name).max(1)));
            assert!((0..20).all(|name| estimate(name) == times(name)));
            let wrong = (0..names).filter(|&name| estimate(name) > times(name).max(1) + 2).count();
            assert!(wrong <= wrong_at_most, "{wrong} of {names}");
        }
    }

    #[test]
    fn a_counter_ends() {
        let mut counts = RequestHistory::new(1, PageSize::Base).unwrap();
        (0..70_000).for_each(|_| counts.count(7));
        assert_eq!(counts.estimate(7), u16::MAX);
        counts.grow(1).unwrap();
        assert_eq!(counts.estimate(7), u16::MAX);
        counts.grow(2).unwrap();
        assert_eq!(counts.estimate(7), 0);
    }
}
