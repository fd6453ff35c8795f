//! W-TinyLFU: a window of what came last, and a main part for what is asked for more often.
//!
//! Source: Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy"
//! (2017), §4; the climbing is from Einziger et al., Middleware 2018, "Adaptive software cache
//! management", §4.1.
//!
//! ```text
//! newcomer ──> window, LRU ── asked for more often than what would go ──> probation
//!                 └────────── not ──> goes
//! probation, LRU ── used ──> protected, LRU, at most 80 % of the main part ── the oldest ──> probation
//! ```
//!
//! | Einziger | here |
//! | --- | --- |
//! | window cache, 1 % | [`DEFAULT_WINDOW_PERCENT`], then as it climbs |
//! | main cache, SLRU 20/80 | `PROBATION`, `PROTECTED`, [`PROTECTED_PERCENT`] |
//! | TinyLFU, W = 10 C | [`FrequencySketch`], [`WINDOW_PER_ENTRY`] |
//!
//! *Climbing*: after every 10 C requests the hit ratio is compared with that of the 10 C before; if it fell,
//! the window turns round; it moves by [`FIRST_STEP`] of the entries, a little less each time, until the hit ratio
//! changes by [`RESTARTS_AT`] or more. Deviation: the newcomer is compared when it leaves the window
//! and there is a newcomer to make room for, one comparison for each.
//!
//! Cost: B2 1 line of the sketch; a hit 1 or 2 lines of the queues ([`crate::eviction_queue`]); a victim 2 entries
//! and 2 lines of the sketch. Bytes per entry: 5 of the queues if nothing leaves from the
//! middle, at worst 64, and 8 of the sketch. Who may write: the owner.

use super::frequency_sketch::FrequencySketch;
use super::{Eviction, Leaving, Marks, Newcomer};
use crate::eviction_queue::EvictionQueues;
use crate::pages::PageSize;
use crate::slab::NIL;
use std::io;

/// The window's share of the entries, at first if it climbs.
pub const DEFAULT_WINDOW_PERCENT: u8 = 1;
/// The most of the main part that is protected.
pub const PROTECTED_PERCENT: u32 = 80;
/// W, and the requests between two steps, for each entry.
pub const WINDOW_PER_ENTRY: u64 = 10;
/// The first step, as a share of the entries.
pub const FIRST_STEP: f64 = 0.0625;
/// A change of the hit ratio after which the steps are large again.
pub const RESTARTS_AT: f64 = 0.05;

/// What a step is of the one before it.
const STEP_DECAY: f64 = 0.98;
/// The most that the window may have of the entries when it climbs.
const LARGEST_SHARE: f64 = 0.8;
/// Of a smaller store, the sketch and its window are those of so many entries: too few requests tell nothing.
pub const FEWEST_COUNTED: u32 = 512;

const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;

/// What a W-TinyLFU is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WTinyLfuOptions {
    /// The window has so many percent of the entries, always; if it is not said, it climbs.
    pub window_percent: Option<u8>,
}

/// Three lists and a sketch.
pub struct WTinyLfu {
    sketch: FrequencySketch,
    queues: EvictionQueues<3>,
    /// The window's share of the entries that are held: octets may limit the store.
    window_share: f64,
    climb: Option<Climb>,
    /// The store has been full with the entries that it may have now.
    is_full: bool,
    /// The victim, from when it was asked for until something changes; `NIL` = not known.
    chosen: u32,
}

/// The way up.
#[derive(Default)]
struct Climb {
    requests: u64,
    hits: u64,
    /// Of the requests before these.
    hit_ratio: Option<f64>,
    step: f64,
}

impl WTinyLfu {
    /// For so many entries at once.
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

    /// At least one: newcomers come into the window.
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

    /// A step, if it is time for one.
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

    /// The store is full: the time before does not count. Octets may limit it, so what counts is how many entries it holds.
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

    /// Past the window: nobody has counted it yet, and from the window it would go before those that should
    /// go first.
    fn take_over(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        self.chosen = NIL;
        self.add(marks, PROBATION, slot);
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: Leaving) {
        self.chosen = NIL;
        self.take(marks, slot);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        for list in [WINDOW, PROBATION] {
            slots.extend(self.queues.iter_of(list.into()).take(count));
            self.queues.prefetch_of(list.into(), 2 * count);
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

/// W of a store that holds so many.
pub(super) fn window(entries: u32) -> u64 {
    WINDOW_PER_ENTRY * u64::from(entries.max(FEWEST_COUNTED))
}
