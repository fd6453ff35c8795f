//! Lists: the window and the main part of W-TinyLFU.
//!
//! The window is in the order of use. So are both lists of the main part: *probation* for entries that came from the
//! window, and *protected* for those that were used since. The caller keeps the frequencies, because trials of several
//! windows share them with the store.

use namewire_tables::cs_policy::Marks;
use namewire_tables::cs_policy::frequency_sketch::FrequencySketch;
use namewire_tables::eviction_queue::EvictionQueues;
use namewire_tables::pages::PageSize;
use namewire_tables::slab::NIL;
use std::io;

/// The largest part of the main part that is protected.
const PROTECTED_PERCENT: u32 = 80;

const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;

pub(super) struct Lists {
    queues: EvictionQueues<3>,
    /// The window's share of the entries held: bytes may limit the store.
    window_percent: u8,
    /// The victim, once it was asked for and until something changes; `NIL` = not known.
    chosen: u32,
}

impl Lists {
    /// Lists for this many entries.
    pub(super) fn new(entries: u32, window_percent: u8, pages: PageSize) -> io::Result<Self> {
        Ok(Self { queues: EvictionQueues::new(entries, pages)?, window_percent, chosen: NIL })
    }

    pub(super) fn window_percent(&self) -> u8 {
        self.window_percent
    }

    /// The window shrinks by one entry for each that is inserted; it grows as fast as the main part loses victims.
    pub(super) fn set_window_percent(&mut self, window_percent: u8) {
        self.window_percent = window_percent;
        self.chosen = NIL;
    }

    /// How many entries are held.
    #[inline]
    pub(super) fn held(&self) -> u32 {
        self.queues.len()
    }

    #[inline]
    pub(super) fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
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

    #[inline]
    pub(super) fn victim(&mut self, marks: &mut impl Marks, sketch: &FrequencySketch) -> Option<u32> {
        if self.chosen == NIL {
            self.chosen = self.choose(marks, sketch)?;
        }
        Some(self.chosen)
    }

    #[inline]
    pub(super) fn insert(&mut self, marks: &mut impl Marks, slot: u32) {
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
    pub(super) fn take_over(&mut self, marks: &mut impl Marks, slot: u32) {
        self.chosen = NIL;
        self.add(marks, PROBATION, slot);
    }

    #[inline]
    pub(super) fn remove(&mut self, marks: &impl Marks, slot: u32) {
        self.chosen = NIL;
        self.take(marks, slot);
    }

    pub(super) fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        for list in [WINDOW, PROBATION] {
            self.queues.upcoming_of(list.into(), count, slots);
        }
    }

    pub(super) fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.queues.grow(entries)
    }

    pub(super) fn bytes(&self) -> usize {
        self.queues.bytes()
    }

    /// The window's entries, at least one: newcomers come into the window.
    #[inline]
    fn window_entries(&self) -> u32 {
        ((u64::from(self.queues.len()) * u64::from(self.window_percent) / 100) as u32).max(1)
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

    fn choose(&mut self, marks: &mut impl Marks, sketch: &FrequencySketch) -> Option<u32> {
        let candidate = if self.queues.len_of(WINDOW.into()) >= self.window_entries() {
            self.queues.oldest_of(WINDOW.into())
        } else {
            None
        };
        let victim = self.queues.oldest_of(PROBATION.into()).or_else(|| self.queues.oldest_of(PROTECTED.into()));
        let (Some(candidate), Some(victim)) = (candidate, victim) else { return candidate.or(victim) };
        if sketch.frequency(marks.hash(candidate)) <= sketch.frequency(marks.hash(victim)) {
            return Some(candidate);
        }
        self.shift(marks, PROBATION, candidate);
        Some(victim)
    }
}
