//! Frequency sketch: about how often was this name requested lately?
//!
//! Source: Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy" (2017), §3: a
//! count-min sketch of small counters with conservative update (§3.3, "minimal increment"), all halved
//! after every window of W requests (§3.2, "reset"). Takemasa19 §4.2.3 describes it as a counting Bloom
//! filter.
//!
//! A name has one line, and in this line one counter in each of four rows. The smallest of its four
//! counters is its frequency. A request adds one to those of the four that equal the smallest.
//!
//! ```text
//! line, 64 bytes: nibbles 0-30    31-61   62-92   93-123   124-127
//!                 | row 0       | row 1 | row 2 | row 3  | epoch u16 |
//! hash:           line = upper 32 bits scaled to the lines; counter of row r = byte r scaled to 31
//! ```
//!
//! *Ageing*: halving all counters at once would delay a packet by a walk through the table. Instead the
//! sketch has an epoch number, which grows by one when all counters should be halved. At the next write, a
//! line is halved once per epoch missed; a read computes the halved value. The counts are the same. One
//! exception: a line that was not written for 65,536 epochs counts as current. Its counts are then at most
//! 15 too high, once.
//!
//! Deviations: counters end at 15, the paper's at W/C (C: entries of the store); all higher frequencies
//! count as equal. All rows lie in one line, so that a name costs one line, not four. Two names of one line
//! are therefore more likely to share several counters.
//!
//! Cost: a request or a read touches 1 line. Bytes: the sketch takes [`BYTES_PER_ENTRY`] per entry of the
//! store. Full: names share counters; then counts are too high, never too low. Writers: the owner.

use crate::pages::{PageArray, PageSize};
use crate::prefetch::prefetch;
use bytemuck::Zeroable;
use std::io;

/// A smaller store gets the sketch and the window of this many entries: fewer requests say too little.
pub const FEWEST_COUNTED: u32 = 512;
/// W, the requests in one window, for each entry.
pub const WINDOW_PER_ENTRY: u64 = 10;

/// Bytes of sketch for each entry that the store may hold.
pub const BYTES_PER_ENTRY: usize = 8;
/// The highest frequency that is counted.
pub const MAX_FREQUENCY: u8 = 15;

const ROWS: u32 = 4;
const COUNTERS_PER_ROW: u32 = 31;
const COUNTERS_PER_WORD: u32 = 16;
const EPOCH_SHIFT: u32 = 48;
/// The lowest bit of every nibble.
const ONES: u64 = 0x1111_1111_1111_1111;

#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
struct Line {
    words: [u64; 8],
}

const _: () = assert!(size_of::<Line>() == 64);
const _: () = assert!(ROWS * COUNTERS_PER_ROW * 4 + u16::BITS == 8 * u64::BITS);

/// The sketch.
pub struct FrequencySketch {
    lines: PageArray<Line>,
    epoch: u16,
    /// Requests until all counters are halved.
    until_ageing: u64,
    /// W, in requests.
    window: u64,
    pages: PageSize,
}

impl FrequencySketch {
    /// For a store of at most `entries`, with a window of `window` requests.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, window: u64, pages: PageSize) -> io::Result<Self> {
        let lines = PageArray::zeroed(lines_for(entries), pages)?;
        let window = window.max(2);
        Ok(Self { lines, epoch: 0, until_ageing: window, window, pages })
    }

    /// Counts a request for the name; returns its frequency after it.
    #[inline]
    pub fn increment(&mut self, hash: u64) -> u8 {
        let line = self.line(hash);
        let line = &mut self.lines[line];
        line.age(self.epoch);
        let frequency = line.increment(hash);
        self.until_ageing -= 1;
        if self.until_ageing == 0 {
            self.epoch = self.epoch.wrapping_add(1);
            // What was counted until now counts half.
            self.until_ageing = self.window.div_ceil(2);
        }
        frequency
    }

    /// About how often the name was requested, never too low.
    #[inline]
    pub fn frequency(&self, hash: u64) -> u8 {
        let line = &self.lines[self.line(hash)];
        line.smallest(hash).checked_shr(line.behind(self.epoch)).unwrap_or(0)
    }

    /// Begins to fetch what [`Self::increment`] and [`Self::frequency`] read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.lines[self.line(hash)]);
    }

    /// Adapts to a store of `entries` and another window. A sketch that becomes larger forgets its counts.
    /// A store limited by packets is not full then, and asks nothing until it is. A store limited by bytes
    /// may be full again at once, and decides by what has been counted since.
    ///
    /// # Errors
    /// If the kernel does not map the memory; the sketch is then what it was.
    pub fn resize(&mut self, entries: u32, window: u64) -> io::Result<()> {
        if lines_for(entries) > self.lines.len() {
            *self = Self::new(entries, window, self.pages)?;
        }
        self.set_window(window);
        Ok(())
    }

    /// Uses a window of `window` requests from now on.
    pub fn set_window(&mut self, window: u64) {
        self.window = window.max(2);
        self.until_ageing = self.until_ageing.min(self.window);
    }

    /// Bytes of memory mapped for the sketch.
    pub fn bytes(&self) -> usize {
        self.lines.mapped_bytes()
    }

    #[inline]
    fn line(&self, hash: u64) -> usize {
        (((hash >> 32) * self.lines.len() as u64) >> 32) as usize
    }
}

impl Line {
    /// Epochs since this line was written, 8 at most: that many halvings leave nothing.
    #[inline]
    fn behind(&self, epoch: u16) -> u32 {
        u32::from(epoch.wrapping_sub((self.words[7] >> EPOCH_SHIFT) as u16)).min(u8::BITS)
    }

    #[inline]
    fn age(&mut self, epoch: u16) {
        let behind = self.behind(epoch);
        if behind == 0 {
            return;
        }
        // The shift moves bits of each nibble into its neighbour; the mask removes them.
        let kept = ONES * (u64::from(MAX_FREQUENCY) >> behind);
        for word in &mut self.words {
            *word = *word >> behind & kept;
        }
        let counters = self.words[7] & ((1 << EPOCH_SHIFT) - 1);
        self.words[7] = u64::from(epoch) << EPOCH_SHIFT | counters;
    }

    #[inline(always)]
    fn smallest(&self, hash: u64) -> u8 {
        // N.B. Plain loops: `map` over an array of four was a call, which took 87 instructions.
        let mut smallest = u64::from(MAX_FREQUENCY);
        for row in 0..ROWS {
            let (word, shift) = place(hash, row);
            smallest = smallest.min(self.words[word] >> shift & u64::from(MAX_FREQUENCY));
        }
        smallest as u8
    }

    /// Adds one to the smallest counters of the name; returns their new value.
    #[inline(always)]
    fn increment(&mut self, hash: u64) -> u8 {
        let smallest = self.smallest(hash);
        if smallest == MAX_FREQUENCY {
            return smallest;
        }
        for row in 0..ROWS {
            let (word, shift) = place(hash, row);
            let is_smallest = self.words[word] >> shift & u64::from(MAX_FREQUENCY) == u64::from(smallest);
            self.words[word] += u64::from(is_smallest) << shift;
        }
        smallest + 1
    }
}

/// The counter of a name in this row of its line: its word, and the shift within the word.
#[inline(always)]
fn place(hash: u64, row: u32) -> (usize, u32) {
    let byte = (hash >> (8 * row)) as u32 & 0xff;
    let place = row * COUNTERS_PER_ROW + ((byte * COUNTERS_PER_ROW) >> 8);
    ((place / COUNTERS_PER_WORD) as usize, place % COUNTERS_PER_WORD * 4)
}

fn lines_for(entries: u32) -> usize {
    (entries as usize * BYTES_PER_ENTRY).div_ceil(size_of::<Line>()).max(1)
}

/// W of a store of this many entries.
pub fn window(entries: u32) -> u64 {
    WINDOW_PER_ENTRY * u64::from(entries.max(FEWEST_COUNTED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counters one by one, all halved at once.
    struct Plain {
        counters: Vec<[[u8; 31]; 4]>,
        window: u64,
        requests: u64,
    }

    impl Plain {
        fn places(&self, hash: u64) -> [(usize, usize, usize); 4] {
            let line = ((hash >> 32) as u128 * self.counters.len() as u128 / (1 << 32)) as usize;
            [0, 1, 2, 3].map(|row| (line, row, usize::from(hash.to_le_bytes()[row]) * 31 / 256))
        }

        fn frequency(&self, hash: u64) -> u8 {
            self.places(hash).map(|(line, row, index)| self.counters[line][row][index]).into_iter().min().unwrap()
        }

        fn increment(&mut self, hash: u64) {
            let smallest = self.frequency(hash);
            for (line, row, index) in self.places(hash) {
                let counter = &mut self.counters[line][row][index];
                *counter = (*counter).max((smallest + 1).min(15));
            }
            self.requests += 1;
            if self.requests == self.window {
                self.counters.as_flattened_mut().as_flattened_mut().iter_mut().for_each(|counter| *counter /= 2);
                self.requests = self.window / 2;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_sketch_equals_plain_counters(
            entries in 0..60_u32,
            window in 1..40_u64,
            names in 1..60_u64,
            draws in prop::collection::vec((any::<u64>(), 1..8_u8), 0..600),
        ) {
            let window = window * 2;
            let mut sketch = FrequencySketch::new(entries, window, PageSize::Base).unwrap();
            let mut plain =
                Plain { counters: vec![[[0; 31]; 4]; lines_for(entries)], window, requests: 0 };
            for (draw, times) in draws {
                let hash = (draw % names).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                for _ in 0..times {
                    plain.increment(hash);
                    // (It returns the frequency before the halving that it may cause.)
                    prop_assert!(sketch.increment(hash) >= sketch.frequency(hash));
                }
                for other in 0..names {
                    let other = other.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    prop_assert_eq!(sketch.frequency(other), plain.frequency(other));
                }
            }
        }
    }

    #[test]
    fn a_name_alone_is_counted_exactly_to_the_end() {
        let mut sketch = FrequencySketch::new(100, 1000, PageSize::Base).unwrap();
        for asked in 1..100_u8 {
            assert_eq!(sketch.increment(u64::MAX), asked.min(MAX_FREQUENCY));
        }
        assert_eq!((sketch.frequency(u64::MAX), sketch.frequency(5)), (MAX_FREQUENCY, 0));
    }

    /// Neighbouring counters, one full and one empty, over all epochs that leave something and many that
    /// leave nothing.
    #[test]
    fn a_line_that_is_far_behind_is_empty() {
        for behind in [0_u16, 1, 2, 3, 4, 5, 8, 63, 64, 65, 1000, u16::MAX] {
            let mut sketch = FrequencySketch::new(8, 1 << 40, PageSize::Base).unwrap();
            (0..15).for_each(|_| _ = sketch.increment(0));
            sketch.epoch = behind;
            let expected = if behind < 4 { 15 >> behind } else { 0 };
            assert_eq!(sketch.frequency(0), expected, "{behind} behind");
            assert_eq!(sketch.increment(0), (expected + 1).min(MAX_FREQUENCY), "{behind} behind");
            assert_eq!((sketch.frequency(0x1010_1010), sketch.frequency(0xffff_ffff)), (0, 0));
        }
    }

    #[test]
    fn a_larger_sketch_starts_empty_and_a_smaller_one_keeps_its_counts() {
        let mut sketch = FrequencySketch::new(100, 50, PageSize::Base).unwrap();
        (0..9).for_each(|_| _ = sketch.increment(1 << 40));
        sketch.resize(10, 6).unwrap();
        assert_eq!(sketch.frequency(1 << 40), 9);
        (0..6).for_each(|_| _ = sketch.increment(1 << 63));
        assert_eq!(sketch.frequency(1 << 40), 4);
        let bytes = sketch.bytes();
        sketch.resize(1000, 100).unwrap();
        assert_eq!(sketch.frequency(1 << 40), 0);
        assert!(sketch.bytes() > bytes);
    }
}
