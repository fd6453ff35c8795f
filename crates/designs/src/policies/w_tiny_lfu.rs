//! W-TinyLFU: a window for the newest entries, and a main part for those that are requested more often.
//!
//! Source: Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy" (2017), §4; the choice of
//! the window ("mini-sim") is from Einziger et al., Middleware 2018, "Adaptive software cache management".
//!
//! ```text
//! newcomer ──> window, LRU ── requested more often than the victim ──> probation
//!                 └────────── not ──> evicted
//! probation, LRU ── used ──> protected, LRU, at most 80 % of the main part ── the oldest ──> probation
//! ```
//!
//! | Einziger | here |
//! | --- | --- |
//! | window cache, 1 % | [`DEFAULT_WINDOW_PERCENT`], then the percentage that `trials.rs` finds |
//! | main cache, SLRU 20/80 | `lists.rs` |
//! | TinyLFU, W = 10 C | [`FrequencySketch`], [`WINDOW_PER_ENTRY`](namewire_tables::cs_policy::frequency_sketch::WINDOW_PER_ENTRY) |
//! | mini-sim | `trials.rs` |
//!
//! Deviation: the newcomer is compared when it leaves the window because another newcomer needs room, one comparison
//! for each.
//!
//! Cost: B2 reads 1 line of the sketch and, for the names that the trials see, some lines in cache. A hit writes 1 or 2
//! lines of the queues ([`namewire_tables::eviction_queue`]). A victim costs 2 entries and 2 lines of the sketch.
//! Bytes: an entry takes 5 for the queues if nothing leaves from the middle, at worst 64, and 8 for the sketch; the
//! trials take some 120 KiB. Writers: the owner.
//!
//! N.B. *Hill climbing*, the other way of the paper of 2018 and Caffeine's, was here before: after 10 C requests the
//! window takes a step of 6.25 % of the entries, in the same direction if the hit ratio rose, else in the other.
//! Requests of a recorded trace differ from one such period to the next by far more than any window changes (at
//! `trace-cloudphysics-sample`, 489 Data: hit ratios of 0.01 to 0.56). So the window walked at random, and it stayed
//! where it could walk no further: at an end, a rise by chance meant to go on, into the wall. The lower end was one
//! entry, less than any fixed window has. Tried, in hit ratios of that case (fixed windows of 1, 20, 50 and 80 %:
//! 0.1665, 0.1725, 0.1721, 0.1689):
//! - as it was: 0.1615, below all of them, and 9.3 points below a fixed window of 80 % at `trace-orm-night`, 86 Data;
//! - a lower end of 1 %: 0.1663;
//! - that, and a turn at each end: 0.1693, but 0.8 points less on video, 1,000 Data;
//! - that, and the first window 20 %: 0.1725, but 1 % is best where requests are independent;
//! - periods half as long: 0.1710, but 0.5 points less at 48 Data of that trace;
//! - two windows in turn (A, B, B, A), then a step towards the better: 0.1690, and less elsewhere.
//!
//! Trials compare windows at the same requests: 0.1698, and 1.6 points more than as it was in the mean of 21 cases.
//! `namewire-lab run cache-policies` compares all traces.

mod lists;
mod trials;

use lists::Lists;
use namewire_tables::cs_policy::frequency_sketch::{FEWEST_COUNTED, FrequencySketch, window};
use namewire_tables::cs_policy::{Eviction, Marks, Newcomer, RemovalReason};
use namewire_tables::pages::PageSize;
use std::io;
use trials::Trials;

/// The window's share of the entries; if it adapts, its first share.
pub const DEFAULT_WINDOW_PERCENT: u8 = 1;
/// The windows that an adaptive one may have, in percent of the entries.
pub const WINDOW_PERCENTS: [u8; 4] = [DEFAULT_WINDOW_PERCENT, 20, 50, 80];

/// The options of a W-TinyLFU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WTinyLfuOptions {
    /// The window always has this percentage of the entries; by default it adapts.
    pub window_percent: Option<u8>,
}

/// Three lists, a sketch, and trials of other windows.
pub struct WTinyLfu {
    sketch: FrequencySketch,
    lists: Lists,
    trials: Option<Box<Trials>>,
}

impl WTinyLfu {
    /// A policy for this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, options: WTinyLfuOptions, pages: PageSize) -> io::Result<Self> {
        let percent = options.window_percent.unwrap_or(DEFAULT_WINDOW_PERCENT).min(100);
        Ok(Self {
            sketch: FrequencySketch::new(entries.max(FEWEST_COUNTED), window(entries), pages)?,
            lists: Lists::new(entries, percent, pages)?,
            trials: if options.window_percent.is_none() { Some(Box::new(Trials::new(pages)?)) } else { None },
        })
    }

    /// The present window, in percent of the entries.
    pub fn window_percent(&self) -> u8 {
        self.lists.window_percent()
    }
}

impl Eviction for WTinyLfu {
    #[inline]
    fn request(&mut self, hash: u64) {
        self.sketch.increment(hash);
        if let Some(trials) = &mut self.trials
            && trials.request(hash, &self.sketch)
        {
            self.lists.set_window_percent(trials.best(self.lists.window_percent()));
            trials.begin_epoch(self.lists.held());
        }
    }

    #[inline]
    fn prefetch_request(&self, hash: u64) {
        self.sketch.prefetch(hash);
    }

    #[inline]
    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        self.lists.hit(marks, slot);
    }

    /// The store is full: earlier requests do not count. Bytes may limit it, so the number of entries that
    /// it holds counts.
    #[inline]
    fn admits(&mut self, _: &mut impl Marks, _: &Newcomer) -> bool {
        let held = self.lists.held();
        self.sketch.set_window(window(held));
        if let Some(trials) = &mut self.trials
            && !trials.have_begun()
        {
            trials.begin_epoch(held);
        }
        true
    }

    #[inline]
    fn victim(&mut self, marks: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        self.lists.victim(marks, &self.sketch)
    }

    #[inline]
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        self.lists.insert(marks, slot);
    }

    fn take_over(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        self.lists.take_over(marks, slot);
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        self.lists.remove(marks, slot);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        self.lists.upcoming(count, slots);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.lists.grow(entries)?;
        self.sketch.resize(entries.max(FEWEST_COUNTED), window(entries))
    }

    fn bytes(&self) -> usize {
        self.sketch.bytes() + self.lists.bytes() + self.trials.as_deref().map_or(0, Trials::bytes)
    }
}
