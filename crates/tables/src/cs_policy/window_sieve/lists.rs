//! The model of a [`WindowSieve`](super::WindowSieve): two lists of names, and a hand.

use crate::cs_policy::frequency_sketch::FrequencySketch;

/// Lists of names, oldest first, each with one bit of use, and the place of the hand in the second list.
#[derive(Default)]
pub(in crate::cs_policy) struct Lists {
    pub(super) window: Vec<(u64, bool)>,
    main: Vec<(u64, bool)>,
    hand: usize,
}

impl Lists {
    pub(in crate::cs_policy) fn names(&self) -> Vec<u64> {
        let mut names: Vec<u64> = self.window.iter().chain(&self.main).map(|entry| entry.0).collect();
        names.sort_unstable();
        names
    }

    /// Uses a name; false if it is not stored.
    pub(in crate::cs_policy) fn hit(&mut self, name: u64) -> bool {
        let found = self.window.iter_mut().chain(&mut self.main).find(|entry| entry.0 == name);
        found.map(|entry| entry.1 = true).is_some()
    }

    pub(in crate::cs_policy) fn take(&mut self, name: u64) {
        self.window.retain(|other| other.0 != name);
        if let Some(place) = self.main.iter().position(|other| other.0 == name) {
            self.main.remove(place);
            self.hand -= usize::from(place < self.hand);
            self.hand = if self.hand == self.main.len() { 0 } else { self.hand };
        }
    }

    /// Makes room in a store of this capacity and stores the name, or refuses it; a limited number of names
    /// go.
    pub(in crate::cs_policy) fn miss(
        &mut self,
        name: u64,
        percent: usize,
        (capacity, most_evicted): (usize, usize),
        sketch: &FrequencySketch,
    ) {
        let len = self.window.len() + self.main.len();
        if len >= capacity {
            if percent == 0
                && let Some(victim) = self.main_victim()
                && !self.defeats(name, 1, victim, sketch)
            {
                return;
            }
            (0..most_evicted.min(len + 1 - capacity)).for_each(|_| self.evict(percent, sketch));
        }
        if percent == 0 { &mut self.main } else { &mut self.window }.push((name, false));
        if self.window.len() > self.window_entries(percent) {
            let oldest = self.window.remove(0).0;
            self.main.push((oldest, false));
        }
    }

    fn evict(&mut self, percent: usize, sketch: &FrequencySketch) {
        let candidate = (self.window.len() >= self.window_entries(percent) && !self.window.is_empty()).then(|| {
            while self.window[0].1 {
                self.window[0].1 = false;
                self.window.rotate_left(1);
            }
            self.window[0].0
        });
        let goes = match (candidate, self.main_victim()) {
            (Some(candidate), Some(victim)) if self.defeats(candidate, u8::from(percent == 0), victim, sketch) => {
                self.window.remove(0);
                self.main.push((candidate, false));
                victim
            }
            (candidate, victim) => candidate.or(victim).unwrap(),
        };
        self.take(goes);
    }

    fn window_entries(&self, percent: usize) -> usize {
        if percent == 0 { 0 } else { ((self.window.len() + self.main.len()) * percent / 100).max(1) }
    }

    fn main_victim(&mut self) -> Option<u64> {
        while self.main.get(self.hand)?.1 {
            self.main[self.hand].1 = false;
            self.go_on();
        }
        Some(self.main[self.hand].0)
    }

    fn go_on(&mut self) {
        self.hand = (self.hand + 1) % self.main.len();
    }

    fn defeats(&mut self, challenger: u64, lead: u8, victim: u64, sketch: &FrequencySketch) -> bool {
        let (asked, victim_asked) = (sketch.frequency(challenger), sketch.frequency(victim));
        if victim_asked > asked + 1 {
            self.go_on();
        }
        asked > victim_asked + lead
    }
}
