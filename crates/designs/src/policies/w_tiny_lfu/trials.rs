//! Trials: small stores of names, each with another window; the store takes the window of the best.
//!
//! Source: Waldspurger et al., USENIX ATC 2017, "Cache modeling and optimization using miniature simulations"; Einziger
//! et al., Middleware 2018, choose the window in this way ("mini-sim"). A store of 1/n of the entries
//! that sees 1/n of the names hits about as often as the whole store. All trials see the same requests, so it does not
//! matter that requests differ from one time to another.
//!
//! An epoch has [`EPOCH_PER_ENTRY`] requests for each entry. At its end each trial loses a twentieth of its score and
//! adds its hits. Another window must be better by more than 1 in [`BETTER_BY`]. No score stays more than a third
//! behind the best. All of this is as in [`AdaptiveWindow`](namewire_tables::cs_policy::adaptive_window), which tells
//! what else was tried. Here the store begins with a small window, so another must be the best at the ends of two
//! epochs in a row: in the first, the trials are still empty, and large windows fill with what is requested again.
//!
//! Cost: a request of a name that the trials see touches a few lines for each trial, all in cache. They see 1 name in 2
//! with 512 entries or fewer, 1 in 400 with 10⁵. Bytes: 30 KiB for each trial. Full: each trial evicts by its lists.
//!
//! N.B. Tried at the recorded traces, in points of hits:
//! - The best of one epoch: 2.2 less on video with 10 % of the objects, 2.0 on web; 0.85 more at `trace-adaptsize`,
//!   3,681 Data, where there are three epochs; elsewhere within 0.4.
//! - The same without the first epoch: 0.44 less at `trace-web07`, 2,048 Data.
//! - Trials that begin while the store fills: no help on video.
//! - An advantage of one standard deviation of the hits: 0.6 less at `trace-web07`, 204 Data.
//! - Trials that see 1 name in 4 (as the default policy's): 0.40 less at `trace-cloudphysics-sample`, 48 Data, and 0.46
//!   at `trace-nasa`, 213 Data, where a trial then has 54 entries. All names: within 0.3.
//! - Epochs of 10 requests for each entry: 0.85 less at `trace-adaptsize`, 3,681 Data.
//! - Windows of 1, 10, 30 and 80 %, or 1, 10, 50 and 80 %: 0.1 less in the mean of the four short traces. A fifth
//!   trial, of 5 %: no difference.
//!
//! What remains: 0.25 points less than climbing had at `trace-nasa`, 213 Data, where a trial has 107 entries.

use super::lists::Lists;
use super::{DEFAULT_WINDOW_PERCENT, WINDOW_PERCENTS};
use namewire_tables::cs_policy::Marks;
use namewire_tables::cs_policy::frequency_sketch::FrequencySketch;
use namewire_tables::cs_policy::named_entry::NamedEntry;
use namewire_tables::pages::PageSize;
use namewire_tables::tag_index::TagIndex;
use std::io;

/// Requests in an epoch, for each entry.
const EPOCH_PER_ENTRY: u64 = 5;
/// The shortest epoch, in requests.
const SHORTEST_EPOCH: u64 = 500;
/// Another window must be better by one part in this number.
const BETTER_BY: u64 = 200;
/// In an epoch a score forgets one part in this number.
const FORGETS: u64 = 20;
/// A score is behind the best by at most one part in this number.
const BEHIND_MOST: u64 = 3;
/// What one hit adds to a score: large, so that divisions lose little.
const SCORE_OF_HIT: u64 = 256;
/// Entries of a trial, if the store is large enough.
const MOST_ENTRIES: u32 = 256;
/// The store has at least this many times the entries of a trial.
const SMALLEST_SCALE: u32 = 2;
/// The most entries evicted for one that is inserted, when a trial must shrink.
const MOST_EVICTED: u32 = 4;

/// A trial of each window, and its score.
pub(super) struct Trials {
    trials: [Trial; WINDOW_PERCENTS.len()],
    scores: [u64; WINDOW_PERCENTS.len()],
    /// Trials see a name if its [`number`] is below this; 0 until the store is full.
    sampled_below: u64,
    /// Entries of each trial.
    entries: u32,
    until_epoch: u64,
    /// The window that was the best at the end of the last epoch, if it was better by enough.
    better: Option<u8>,
}

impl Trials {
    pub(super) fn new(pages: PageSize) -> io::Result<Self> {
        let [first, second, third, fourth] = WINDOW_PERCENTS.map(|percent| Trial::new(percent, pages));
        let trials = [first?, second?, third?, fourth?];
        Ok(Self { trials, scores: Default::default(), sampled_below: 0, entries: 0, until_epoch: 0, better: None })
    }

    /// Whether the store has been full.
    #[inline]
    pub(super) fn have_begun(&self) -> bool {
        self.sampled_below > 0
    }

    /// Handles a request of the store; returns whether an epoch is over.
    #[inline]
    pub(super) fn request(&mut self, hash: u64, sketch: &FrequencySketch) -> bool {
        if !self.have_begun() {
            return false;
        }
        if number(hash) < self.sampled_below {
            self.trials.iter_mut().for_each(|trial| trial.request(hash, self.entries, sketch));
        }
        self.until_epoch -= 1;
        self.until_epoch == 0
    }

    /// Ends an epoch: the best window, unless it is hardly better than the `present` one, or was not so before.
    #[cold]
    pub(super) fn best(&mut self, present: u8) -> u8 {
        let (mut own, mut best) = (0, (0, DEFAULT_WINDOW_PERCENT));
        for ((trial, score), percent) in self.trials.iter_mut().zip(&mut self.scores).zip(WINDOW_PERCENTS) {
            *score = *score - *score / FORGETS + SCORE_OF_HIT * std::mem::take(&mut trial.hits);
            if percent == present {
                own = *score;
            }
            if *score > best.0 {
                best = (*score, percent);
            }
        }
        let least = best.0 - best.0 / BEHIND_MOST;
        self.scores.iter_mut().for_each(|score| *score = least.max(*score));
        let better = (best.0 > own + own / BETTER_BY).then_some(best.1);
        let was_better = std::mem::replace(&mut self.better, better);
        if better == was_better { better.unwrap_or(present) } else { present }
    }

    /// Begins an epoch of a store that holds this many entries.
    #[cold]
    pub(super) fn begin_epoch(&mut self, held: u32) {
        self.entries = held.div_ceil(SMALLEST_SCALE).min(MOST_ENTRIES);
        let sampled_below = (u64::from(self.entries) << 32) / u64::from(held.max(1));
        if sampled_below < self.sampled_below {
            self.trials.iter_mut().for_each(|trial| trial.retain(|hash| number(hash) < sampled_below));
        }
        self.sampled_below = sampled_below;
        self.until_epoch = (EPOCH_PER_ENTRY * u64::from(held)).max(SHORTEST_EPOCH);
    }

    pub(super) fn bytes(&self) -> usize {
        self.trials.iter().map(Trial::bytes).sum()
    }
}

/// A small store without Data: a name comes in as soon as it is requested.
struct Trial {
    index: TagIndex,
    entries: Vec<NamedEntry>,
    free: Vec<u32>,
    lists: Lists,
    /// Hits in this epoch.
    hits: u64,
}

impl Trial {
    fn new(window_percent: u8, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            index: TagIndex::new(MOST_ENTRIES as usize, pages)?,
            entries: vec![NamedEntry::default(); MOST_ENTRIES as usize],
            free: (0..MOST_ENTRIES).rev().collect(),
            lists: Lists::new(MOST_ENTRIES, window_percent, pages)?,
            hits: 0,
        })
    }

    /// Handles a request, in a store of at most `capacity` entries (at most [`MOST_ENTRIES`]).
    fn request(&mut self, hash: u64, capacity: u32, sketch: &FrequencySketch) {
        let Self { index, entries, free, lists, hits } = self;
        if let Some(slot) = index.find(hash, |slot| entries.hash(slot) == hash) {
            lists.hit(entries, slot);
            *hits += 1;
            return;
        }
        for _ in 0..MOST_EVICTED.min((lists.held() + 1).saturating_sub(capacity)) {
            let Some(victim) = lists.victim(entries, sketch) else { break };
            lists.remove(entries, victim);
            index.remove(entries.hash(victim), victim);
            free.push(victim);
        }
        let Some(slot) = free.pop() else { return };
        entries[slot as usize] = NamedEntry::new(hash, ());
        index.insert(hash, slot);
        lists.insert(entries, slot);
    }

    /// Forgets names that it no longer sees: they would never be requested again.
    fn retain(&mut self, is_sampled: impl Fn(u64) -> bool) {
        let mut is_free = [false; MOST_ENTRIES as usize];
        self.free.iter().for_each(|&slot| is_free[slot as usize] = true);
        for slot in (0..MOST_ENTRIES).filter(|&slot| !is_free[slot as usize]) {
            let hash = self.entries.hash(slot);
            if !is_sampled(hash) {
                self.lists.remove(&self.entries, slot);
                self.index.remove(hash, slot);
                self.free.push(slot);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.index.bytes() + size_of_val(&*self.entries) + size_of_val(&*self.free) + self.lists.bytes()
    }
}

/// A number below 2³², independent of the bits that place the hash in a table.
#[inline]
fn number(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores by hand: a twentieth is forgotten in each epoch, the best must be better by more than 1 in 200, twice in
    /// a row, and the others are at most a third behind it.
    #[test]
    fn another_window_must_be_better_by_enough() {
        let mut trials = Trials::new(PageSize::Base).unwrap();
        let mut present = DEFAULT_WINDOW_PERCENT;
        let mut epoch = |hits: [u64; 4]| {
            for (trial, hits) in trials.trials.iter_mut().zip(hits) {
                trial.hits = hits;
            }
            present = trials.best(present);
            (trials.scores, present)
        };
        assert_eq!(epoch([0; 4]), ([0; 4], 1));
        assert_eq!(epoch([200, 201, 0, 200]), ([51_200, 51_456, 34_304, 51_200], 1), "better by 1 in 200");
        assert_eq!(epoch([0, 1, 0, 0]), ([48_640, 49_140, 32_760, 48_640], 1), "better by more, once");
        assert_eq!(epoch([0, 0, 0, 200]), ([64_939, 64_939, 64_939, 97_408], 1), "another one is better, once");
        assert_eq!(epoch([0; 4]), ([61_693, 61_693, 61_693, 92_538], 80), "twice");
        assert_eq!(epoch([200, 0, 0, 0]), ([109_809, 73_206, 73_206, 87_912], 80), "once");
        assert_eq!(epoch([0; 4]), ([104_319, 69_546, 69_546, 83_517], 1), "and back");
    }

    /// Of the names requested, a trial keeps those that it sees; when the store holds more, it sees fewer.
    #[test]
    fn trials_keep_only_names_that_they_see() {
        let mut trials = Trials::new(PageSize::Base).unwrap();
        let sketch = FrequencySketch::new(100, 1_000, PageSize::Base).unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        for (held, entries) in [(400, 200), (100, 50), (3_000, 256), (60_000, 256), (1, 1), (0, 0)] {
            trials.begin_epoch(held);
            assert_eq!((trials.entries, trials.have_begun()), (entries, held > 0));
            for request in 1..=(5 * u64::from(held)).max(500) {
                let is_over = trials.request(random.u64(..), &sketch);
                assert_eq!(is_over, held > 0 && request == (5 * u64::from(held)).max(500));
            }
            for trial in &trials.trials {
                let names = trial.entries.iter().enumerate().filter(|(slot, _)| !trial.free.contains(&(*slot as u32)));
                let names: Vec<u64> = names.map(|(_, entry)| entry.hash).collect();
                assert_eq!((names.len() as u32, trial.lists.held()), (entries, entries));
                assert!(names.iter().all(|&hash| number(hash) < trials.sampled_below), "{held} held");
            }
        }
    }
}
