//! TinyLFU: Data is admitted if its name is requested more often than the name of the victim.
//!
//! Source: Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy" (2017); Takemasa19
//! §4.2.3 (chosen for forwarding) and §5.4.2 (compared with Filter, over Random).
//!
//! | Takemasa19 | here |
//! | --- | --- |
//! | counting Bloom filter of frequencies | [`FrequencySketch`] |
//! | W, the window; 50 C in its simulation | `window`, [`DEFAULT_WINDOW_PER_ENTRY`] C |
//! | B2 | [`Admission::request`] |
//! | B13 | [`Admission::admits`] |
//!
//! The sketch has room for the names of a window: 8 bytes for every ten requests of W, but at least 8 and at most 64
//! bytes for each entry of the store.
//!
//! Deviation: there is no doorkeeper, which is optional in the source.
//!
//! N.B. Over FIFO the victim stays the same until a newcomer is admitted. If the victim's name is popular, no newcomer
//! is admitted. Over Random each newcomer meets another victim.
//!
//! Cost: B2 reads 1 line of the sketch. B13 reads that line again, which is in cache. Then it reads, one after the
//! other, the line of the victim and the victim's line of the sketch. Bytes: the sketch takes 8 per entry if W is 10
//! C.
//! Writers: the worker that owns the store.

use super::admission::Admission;
use namewire_tables::cs_policy::Newcomer;
use namewire_tables::cs_policy::frequency_sketch::FrequencySketch;
use namewire_tables::pages::PageSize;
use std::io;

/// The default W: this many requests for each entry that the full store holds.
pub const DEFAULT_WINDOW_PER_ENTRY: u64 = 10;

/// The sketch is at most this many times as large as for the default window.
const LARGEST_SKETCH: u64 = 8;

/// The options of a TinyLFU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TinyLfuOptions {
    /// W, requests after which all frequencies are halved (then again after each half of it). By default
    /// [`DEFAULT_WINDOW_PER_ENTRY`] for each entry that the full store holds.
    pub window: Option<u64>,
}

impl TinyLfuOptions {
    fn window(&self, entries: u32) -> u64 {
        self.window.unwrap_or(DEFAULT_WINDOW_PER_ENTRY * u64::from(entries))
    }

    /// Entries of a store that would have this window by default.
    fn sketch_entries(&self, entries: u32) -> u32 {
        let by_window = self.window(entries) / DEFAULT_WINDOW_PER_ENTRY;
        by_window.clamp(entries.into(), u64::from(entries) * LARGEST_SKETCH).min(u32::MAX.into()) as u32
    }
}

/// Frequencies of names, stored or not.
pub struct TinyLfu {
    sketch: FrequencySketch,
    options: TinyLfuOptions,
}

impl TinyLfu {
    /// For a store of at most `entries`.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, options: TinyLfuOptions, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            sketch: FrequencySketch::new(options.sketch_entries(entries), options.window(entries), pages)?,
            options,
        })
    }
}

impl Admission for TinyLfu {
    #[inline]
    fn request(&mut self, hash: u64) {
        self.sketch.increment(hash);
    }

    #[inline]
    fn prefetch_request(&self, hash: u64) {
        self.sketch.prefetch(hash);
    }

    #[inline]
    fn prefetch_victim(&self, hash: u64) {
        self.sketch.prefetch(hash);
    }

    #[inline]
    fn full_with(&mut self, held: u32) {
        self.sketch.set_window(self.options.window(held));
    }

    #[inline]
    fn admits(&mut self, newcomer: &Newcomer, victim_hash: impl FnOnce() -> Option<u64>) -> bool {
        match self.sketch.frequency(newcomer.hash) {
            0 => false, // no Interest asked for it
            asked => victim_hash().is_none_or(|victim| asked > self.sketch.frequency(victim)),
        }
    }

    /// See [`FrequencySketch::resize`].
    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.sketch.resize(self.options.sketch_entries(entries), self.options.window(entries))
    }

    fn bytes(&self) -> usize {
        self.sketch.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_frequent_of_two_stays() {
        let mut admission = TinyLfu::new(10, TinyLfuOptions::default(), PageSize::Base).unwrap();
        let [victim, newcomer] = [1_u64 << 33, 1 << 62 | 0x7070_7070];
        for _ in 0..3 {
            admission.request(victim);
        }
        let admits = |admission: &mut TinyLfu| {
            let newcomer = Newcomer { hash: newcomer, ..Newcomer::default() };
            admission.admits(&newcomer, || Some(victim))
        };
        for asked in 0..6 {
            assert!((0..2).all(|_| admits(&mut admission) == (asked > 3)), "asked {asked} times");
            admission.request(newcomer);
        }
    }

    #[test]
    fn a_longer_window_has_a_larger_sketch_within_limits() {
        let bytes = |window| TinyLfu::new(10_000, TinyLfuOptions { window }, PageSize::Base).unwrap().bytes();
        let usual = bytes(None);
        for (window, times) in [(1, 1), (100_000, 1), (500_000, 5), (800_000, 8), (u64::MAX, 8)] {
            let bytes = bytes(Some(window));
            assert!(bytes.abs_diff(times * usual) <= 4096 * times, "{window}: {bytes} of {usual}");
        }
    }

    /// Bytes limit this store: it is full long before it holds its most entries.
    #[test]
    fn the_window_is_that_of_what_is_held() {
        let options = TinyLfuOptions::default();
        for (options, window) in [(options, 20), (TinyLfuOptions { window: Some(500) }, 500)] {
            let mut admission = TinyLfu::new(1000, options, PageSize::Base).unwrap();
            admission.full_with(2);
            let [name, other] = [0, 1 << 63];
            (0..15).for_each(|_| admission.request(name));
            let halved_after = (16..).find(|_| {
                admission.request(other);
                admission.sketch.frequency(name) < 15
            });
            assert_eq!(halved_after, Some(window));
        }
    }

    /// The victim is looked for only where it matters; if there is none, the Data is admitted.
    #[test]
    fn data_is_admitted_without_a_victim_but_not_without_a_request() {
        let mut admission = TinyLfu::new(10, TinyLfuOptions::default(), PageSize::Base).unwrap();
        assert!(!admission.admits(&Newcomer::default(), || unreachable!("it does not matter")));
        admission.request(0);
        assert!(admission.admits(&Newcomer::default(), || None));
    }
}
