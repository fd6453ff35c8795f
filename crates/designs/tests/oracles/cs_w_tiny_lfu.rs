//! W-TinyLFU against plain lists, with fixed windows and with trials of several, and what an adaptive window reaches.

use crate::cs_adaptive_window::{CAPACITY, bursts, independent, run};
use crate::cs_policy::{Operation, equals_the_model, operations};
use namewire_designs::policies::catalogue::{EvictionName, PolicyChoice, PolicyOptions};
use namewire_designs::policies::simulated_store::{Outcome, SimulatedStore};
use namewire_designs::policies::w_tiny_lfu::{WINDOW_PERCENTS, WTinyLfuOptions};
use namewire_tables::PageSize;
use namewire_tables::cs_policy::frequency_sketch::{FEWEST_COUNTED, FrequencySketch};

fn policy(window_percent: Option<u8>) -> PolicyChoice {
    let options = PolicyOptions { w_tiny_lfu: WTinyLfuOptions { window_percent }, ..PolicyOptions::default() };
    PolicyChoice { eviction: EvictionName::WTinyLfu, options, ..PolicyChoice::default() }
}

fn sketch() -> FrequencySketch {
    FrequencySketch::new(FEWEST_COUNTED, u64::from(FEWEST_COUNTED) * 10, PageSize::Base).unwrap()
}

/// Names; in each list the first goes next.
#[derive(Default)]
struct Lists {
    window: Vec<u64>,
    probation: Vec<u64>,
    protected: Vec<u64>,
    percent: usize,
}

impl Lists {
    fn held(&self) -> usize {
        self.window.len() + self.probation.len() + self.protected.len()
    }

    fn window_entries(&self) -> usize {
        (self.held() * self.percent / 100).max(1)
    }

    fn erase(&mut self, hash: u64) {
        for list in [&mut self.window, &mut self.probation, &mut self.protected] {
            list.retain(|&other| other != hash);
        }
    }

    fn contains(&self, hash: u64) -> bool {
        [&self.window, &self.probation, &self.protected].into_iter().any(|list| list.contains(&hash))
    }

    /// Whether it hits.
    fn request(&mut self, hash: u64, capacity: usize, sketch: &FrequencySketch) -> bool {
        let held = self.held();
        let in_window = self.window.contains(&hash);
        self.erase(hash);
        if self.held() < held {
            if in_window { &mut self.window } else { &mut self.protected }.push(hash);
            if self.protected.len() * 100 > (held - self.window_entries()) * 80 {
                self.probation.push(self.protected.remove(0));
            }
            return true;
        }
        if held == capacity {
            let is_full = self.window.len() >= self.window_entries();
            let main = if self.probation.is_empty() { &mut self.protected } else { &mut self.probation };
            match (is_full, main.first()) {
                (true, Some(&victim)) if sketch.frequency(self.window[0]) > sketch.frequency(victim) => {
                    main.remove(0);
                    self.probation.push(self.window.remove(0));
                }
                (false, Some(_)) => _ = main.remove(0),
                _ => _ = self.window.remove(0),
            }
        }
        self.window.push(hash);
        if self.window.len() > self.window_entries() {
            self.probation.push(self.window.remove(0));
        }
        false
    }
}

fn fixed(capacity: usize, percent: usize) -> impl FnMut(Operation) -> Outcome {
    let (mut lists, mut sketch) = (Lists { percent, ..Lists::default() }, sketch());
    move |operation| match operation {
        Operation::Erase(hash) => {
            lists.erase(hash);
            Outcome::NotAdmitted
        }
        Operation::Request(hash) => {
            sketch.increment(hash);
            if lists.request(hash, capacity, &sketch) { Outcome::Hit } else { Outcome::Stored }
        }
    }
}

/// A store, and a trial of each window with half as many names.
struct Adaptive {
    store: Lists,
    trials: [Lists; 4],
    hits: [u64; 4],
    scores: [u64; 4],
    sketch: FrequencySketch,
    /// Requests until the windows are compared; `None` until the store is full.
    left: Option<u32>,
    /// The window that was better at the end of the last epoch.
    better: Option<usize>,
    /// All windows that the store had.
    windows: Vec<usize>,
}

impl Adaptive {
    const CAPACITY: usize = 101;
    const TRIAL: usize = 51;
    /// 5 for each entry.
    const EPOCH: u32 = 505;

    fn new() -> Self {
        let with_window = |percent: u8| Lists { percent: percent.into(), ..Lists::default() };
        Self {
            store: with_window(1),
            trials: WINDOW_PERCENTS.map(with_window),
            hits: [0; 4],
            scores: [0; 4],
            sketch: sketch(),
            left: None,
            better: None,
            windows: vec![1],
        }
    }

    fn request(&mut self, hash: u64) -> Outcome {
        self.sketch.increment(hash);
        if let Some(left) = self.left {
            let number = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            if number < ((Self::TRIAL as u64) << 32) / Self::CAPACITY as u64 {
                for (trial, hits) in self.trials.iter_mut().zip(&mut self.hits) {
                    *hits += u64::from(trial.request(hash, Self::TRIAL, &self.sketch));
                }
            }
            self.left = Some(left - 1);
            if left == 1 {
                self.compare();
                self.left = Some(Self::EPOCH);
            }
        } else if self.store.held() == Self::CAPACITY && !self.store.contains(hash) {
            self.left = Some(Self::EPOCH);
        }
        if self.store.request(hash, Self::CAPACITY, &self.sketch) { Outcome::Hit } else { Outcome::Stored }
    }

    /// A twentieth of each score is forgotten; the best must be better by 1 in 200, twice; none is a third behind.
    fn compare(&mut self) {
        for (score, hits) in self.scores.iter_mut().zip(&mut self.hits) {
            *score = *score - *score / 20 + 256 * std::mem::take(hits);
        }
        let most = self.scores.into_iter().max().unwrap();
        let best = self.scores.iter().position(|&score| score == most).unwrap();
        let own = self.trials.iter().position(|trial| trial.percent == self.store.percent).unwrap();
        let is_better = most > self.scores[own] + self.scores[own] / 200;
        if is_better && self.better == Some(best) {
            self.store.percent = self.trials[best].percent;
            self.windows.push(self.store.percent);
        }
        self.better = is_better.then_some(best);
        self.scores = self.scores.map(|score| score.max(most - most / 3));
    }
}

#[test]
fn w_tiny_lfu_equals_three_lists() {
    for (seed, percent) in [(1, 1), (2, 20), (3, 50), (4, 100)] {
        equals_the_model(policy(Some(percent)), 25, &operations(20_000, 90, seed), fixed(25, percent.into()));
    }
}

/// Popular names and bursts in turn, so that the best window changes.
#[test]
fn the_window_is_that_of_the_best_trial() {
    let mut windows = Vec::new();
    for seed in 0..4 {
        let mut random = fastrand::Rng::with_seed(seed);
        let names = (0..60_000_u64).map(|now| match now / 15_000 {
            0 | 2 => random.u64(..=random.clone().u64(..900)),
            _ => 1_000 + now / 4 + random.u64(..20 << random.clone().u64(..4)),
        });
        let names: Vec<Operation> =
            names.map(|name| Operation::Request((name + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9))).collect();
        let mut model = Adaptive::new();
        equals_the_model(policy(None), Adaptive::CAPACITY as u32, &names, |operation| match operation {
            Operation::Request(hash) => model.request(hash),
            Operation::Erase(_) => unreachable!(),
        });
        windows.extend(model.windows);
    }
    assert!(WINDOW_PERCENTS.iter().all(|&percent| windows.contains(&percent.into())), "{windows:?}");
}

/// Bursts do best with a window of 80 %, independent requests with one of 1 %. After each change of the requests, the
/// adaptive window has 400,000 of them to follow, 53 epochs; then it is near the better one.
#[test]
fn the_window_follows_the_best_fixed_one() {
    let store = |window_percent| SimulatedStore::new(policy(window_percent), CAPACITY, u64::MAX, 1).unwrap();
    let mut stores = [Some(1), Some(80), None].map(store);
    for is_burst in [true, false, true] {
        let hits = |store: &mut SimulatedStore| {
            let hits = |seed| if is_burst { run(store, bursts(seed)).0 } else { run(store, independent(seed)).0 };
            (0..3).map(hits).last().unwrap()
        };
        let [small, large, adaptive] = stores.each_mut().map(hits);
        let (best, worst) = if is_burst { (large, small) } else { (small, large) };
        assert!(best > worst + 0.05 && adaptive > best - 0.01, "{small} {large} {adaptive}");
    }
}
