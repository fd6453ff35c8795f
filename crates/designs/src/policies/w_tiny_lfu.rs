//! W-TinyLFU: a window for the newest entries, and a main part for those that are requested more often.
//!
//! Source: Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy" (2017), §4; the climbing
//! is from Einziger et al., Middleware 2018, "Adaptive software cache management", §4.1.
//!
//! ```text
//! newcomer ──> window, LRU ── requested more often than the victim ──> probation
//!                 └────────── not ──> evicted
//! probation, LRU ── used ──> protected, LRU, at most 80 % of the main part ── the oldest ──> probation
//! ```
//!
//! | Einziger | here |
//! | --- | --- |
//! | window cache, 1 % | [`DEFAULT_WINDOW_PERCENT`], then as it climbs |
//! | main cache, SLRU 20/80 | `PROBATION`, `PROTECTED`, [`PROTECTED_PERCENT`] |
//! | TinyLFU, W = 10 C | [`FrequencySketch`], [`WINDOW_PER_ENTRY`](namewire_tables::cs_policy::frequency_sketch::WINDOW_PER_ENTRY) |
//!
//! *Climbing*: after every 10 C requests the hit ratio is compared with the hit ratio of the 10 C before. If it fell,
//! the window changes direction. The window moves by [`FIRST_STEP`] of the entries, then a little less each time,
//! until the hit ratio changes by [`RESTARTS_AT`] or more. Deviation: the newcomer is compared when it leaves the
//! window because another newcomer needs room, one comparison for each.
//!
//! Cost: B2 reads 1 line of the sketch. A hit writes 1 or 2 lines of the queues ([`namewire_tables::eviction_queue`]).
//! A victim costs 2 entries and 2 lines of the sketch. Bytes: an entry takes 5 for the queues if nothing leaves from
//! the middle, at worst 64, and 8 for the sketch. Writers: the owner.

use namewire_tables::cs_policy::frequency_sketch::{FEWEST_COUNTED, FrequencySketch, window};
use namewire_tables::cs_policy::{Eviction, Marks, Newcomer, RemovalReason};
use namewire_tables::eviction_queue::EvictionQueues;
use namewire_tables::pages::PageSize;
use namewire_tables::slab::NIL;
use std::io;

/// The window's share of the entries; if it climbs, its first share.
pub const DEFAULT_WINDOW_PERCENT: u8 = 1;
/// The largest part of the main part that is protected.
pub const PROTECTED_PERCENT: u32 = 80;
/// The first step, as a share of the entries.
pub const FIRST_STEP: f64 = 0.0625;
/// A change of the hit ratio after which the steps are large again.
pub const RESTARTS_AT: f64 = 0.05;

/// Each step is this share of the step before.
const STEP_DECAY: f64 = 0.98;
/// The largest share of the entries that a climbing window may have.
const LARGEST_SHARE: f64 = 0.8;

const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;

/// The options of a W-TinyLFU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WTinyLfuOptions {
    /// The window always has this percentage of the entries; by default it climbs.
    pub window_percent: Option<u8>,
}

/// Three lists and a sketch.
pub struct WTinyLfu {
    sketch: FrequencySketch,
    queues: EvictionQueues<3>,
    /// The window's share of the entries held: bytes may limit the store.
    window_share: f64,
    climb: Option<Climb>,
    /// The store has been full with as many entries as it may now have.
    is_full: bool,
    /// The victim, once it was asked for and until something changes; `NIL` = not known.
    chosen: u32,
}

/// The state of climbing.
#[derive(Default)]
struct Climb {
    requests: u64,
    hits: u64,
    /// The hit ratio of the requests before these.
    hit_ratio: Option<f64>,
    step: f64,
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
            queues: EvictionQueues::new(entries, pages)?,
            window_share: f64::from(percent) / 100.0,
            climb: options.window_percent.is_none().then(|| Climb { step: FIRST_STEP, ..Climb::default() }),
            is_full: false,
            chosen: NIL,
        })
    }

    /// The window's entries, at least one: newcomers come into the window.
    #[inline]
    fn window_entries(&self) -> u32 {
        ((f64::from(self.queues.len()) * self.window_share) as u32).max(1)
    }

    #[inline]
    fn add(&mut self, marks: &mut impl Marks, list: u8, slot: u32) {
        let place = self.queues.push_newest_of(list.into(), slot);
        let mark = marks.mark_mut(slot);
        (mark.list, mark.place) = (list, place);
    }

    #[inline]
    fn take(&mut self, marks: &impl Marks, slot: u32) {
        let mark = marks.mark(slot);
        self.queues.remove_of(mark.list.into(), mark.place);
    }

    #[inline]
    fn shift(&mut self, marks: &mut impl Marks, list: u8, slot: u32) {
        self.take(marks, slot);
        self.add(marks, list, slot);
    }

    fn choose(&mut self, marks: &mut impl Marks) -> Option<u32> {
        let candidate = if self.queues.len_of(WINDOW.into()) >= self.window_entries() {
            self.queues.oldest_of(WINDOW.into())
        } else {
            None
        };
        let victim = self.queues.oldest_of(PROBATION.into()).or_else(|| self.queues.oldest_of(PROTECTED.into()));
        let (Some(candidate), Some(victim)) = (candidate, victim) else { return candidate.or(victim) };
        if self.sketch.frequency(marks.hash(candidate)) <= self.sketch.frequency(marks.hash(victim)) {
            return Some(candidate);
        }
        self.shift(marks, PROBATION, candidate);
        Some(victim)
    }

    /// Makes a step, if it is time for one.
    fn climb(&mut self) {
        let requests = window(self.queues.len());
        let Some(climb) = &mut self.climb else { return };
        if climb.requests < requests {
            return;
        }
        let hit_ratio = climb.hits as f64 / climb.requests as f64;
        (climb.requests, climb.hits) = (0, 0);
        let Some(former) = climb.hit_ratio.replace(hit_ratio) else { return };
        if hit_ratio < former {
            climb.step = -climb.step;
        }
        self.window_share = (self.window_share + climb.step).clamp(0.0, LARGEST_SHARE);
        let large = (hit_ratio - former).abs() >= RESTARTS_AT;
        climb.step = if large { FIRST_STEP.copysign(climb.step) } else { climb.step * STEP_DECAY };
    }
}

impl Eviction for WTinyLfu {
    #[inline]
    fn request(&mut self, hash: u64) {
        self.sketch.increment(hash);
        if let Some(climb) = &mut self.climb {
            climb.requests += 1;
        }
    }

    #[inline]
    fn prefetch_request(&self, hash: u64) {
        self.sketch.prefetch(hash);
    }

    #[inline]
    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        if let Some(climb) = &mut self.climb {
            climb.hits += 1;
        }
        if self.chosen == slot {
            self.chosen = NIL;
        }
        match marks.mark(slot).list {
            WINDOW => self.shift(marks, WINDOW, slot),
            _ => self.shift(marks, PROTECTED, slot),
        }
        let main = self.queues.len().saturating_sub(self.window_entries());
        if u64::from(self.queues.len_of(PROTECTED.into())) * 100 > u64::from(main) * u64::from(PROTECTED_PERCENT)
            && let Some(oldest) = self.queues.oldest_of(PROTECTED.into())
        {
            self.shift(marks, PROBATION, oldest);
        }
    }

    /// The store is full: earlier requests do not count. Bytes may limit it, so the number of entries that
    /// it holds counts.
    #[inline]
    fn admits(&mut self, _: &mut impl Marks, _: &Newcomer) -> bool {
        self.sketch.set_window(window(self.queues.len()));
        if let (false, Some(climb)) = (self.is_full, &mut self.climb) {
            (climb.requests, climb.hits) = (0, 0);
        }
        self.is_full = true;
        self.climb();
        true
    }

    #[inline]
    fn victim(&mut self, marks: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        if self.chosen == NIL {
            self.chosen = self.choose(marks)?;
        }
        Some(self.chosen)
    }

    #[inline]
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        self.chosen = NIL;
        self.add(marks, WINDOW, slot);
        if self.queues.len_of(WINDOW.into()) > self.window_entries()
            && let Some(oldest) = self.queues.oldest_of(WINDOW.into())
        {
            self.shift(marks, PROBATION, oldest);
        }
    }

    /// Adds the entry to the main part, not to the window. It has no count yet, and from the window it
    /// would go before entries that should go first.
    fn take_over(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        self.chosen = NIL;
        self.add(marks, PROBATION, slot);
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        self.chosen = NIL;
        self.take(marks, slot);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        for list in [WINDOW, PROBATION] {
            self.queues.upcoming_of(list.into(), count, slots);
        }
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.queues.grow(entries)?;
        self.sketch.resize(entries.max(FEWEST_COUNTED), window(entries))?;
        self.is_full = false;
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.sketch.bytes() + self.queues.bytes()
    }
}
