//! W-TinyLFU against three plain lists, and its climbing window against a fixed one.

use crate::cs_adaptive_window::{CAPACITY, bursts, run};
use crate::cs_policy::{Operation, equals_the_model, operations};
use namewire_designs::policies::catalogue::{EvictionName, PolicyChoice, PolicyOptions};
use namewire_designs::policies::simulated_store::{Outcome, SimulatedStore};
use namewire_designs::policies::w_tiny_lfu::WTinyLfuOptions;
use namewire_tables::PageSize;
use namewire_tables::cs_policy::frequency_sketch::{FEWEST_COUNTED, FrequencySketch};

fn policy(window_percent: Option<u8>) -> PolicyChoice {
    let options = PolicyOptions { w_tiny_lfu: WTinyLfuOptions { window_percent }, ..PolicyOptions::default() };
    PolicyChoice { eviction: EvictionName::WTinyLfu, options, ..PolicyChoice::default() }
}

/// Names; the first goes next.
fn lists(capacity: usize, percent: usize) -> impl FnMut(Operation) -> Outcome {
    let [mut window, mut probation, mut protected]: [Vec<u64>; 3] = Default::default();
    let window_size = u64::from(FEWEST_COUNTED) * 10;
    let mut sketch = FrequencySketch::new(FEWEST_COUNTED, window_size, PageSize::Base).unwrap();
    move |operation| {
        let hash = match operation {
            Operation::Request(hash) => hash,
            Operation::Erase(hash) => {
                for list in [&mut window, &mut probation, &mut protected] {
                    list.retain(|&other| other != hash);
                }
                return Outcome::NotAdmitted;
            }
        };
        sketch.increment(hash);
        let window_entries = |held: usize| (held * percent / 100).max(1);
        let held = window.len() + probation.len() + protected.len();
        let was_in = |list: &mut Vec<u64>| {
            let place = list.iter().position(|&other| other == hash);
            place.map(|place| list.remove(place)).is_some()
        };
        let (in_window, in_main) = (was_in(&mut window), was_in(&mut probation) || was_in(&mut protected));
        if in_window || in_main {
            if in_window { &mut window } else { &mut protected }.push(hash);
            if protected.len() * 100 > (held - window_entries(held)) * 80 {
                probation.push(protected.remove(0));
            }
            return Outcome::Hit;
        }
        if held == capacity {
            let is_full = window.len() >= window_entries(held);
            let main = if probation.is_empty() { &mut protected } else { &mut probation };
            match (is_full, main.first()) {
                (true, Some(&victim)) if sketch.frequency(window[0]) > sketch.frequency(victim) => {
                    main.remove(0);
                    probation.push(window.remove(0));
                }
                (false, Some(_)) => _ = main.remove(0),
                _ => _ = window.remove(0),
            }
        }
        window.push(hash);
        if window.len() > window_entries(window.len() + probation.len() + protected.len()) {
            probation.push(window.remove(0));
        }
        Outcome::Stored
    }
}

#[test]
fn w_tiny_lfu_equals_three_lists() {
    for (seed, percent) in [(1, 1), (2, 20), (3, 50), (4, 100)] {
        equals_the_model(policy(Some(percent)), 25, &operations(20_000, 90, seed), lists(25, percent.into()));
    }
}

#[test]
fn the_window_climbs() {
    let store = |window_percent| SimulatedStore::new(policy(window_percent), CAPACITY, u64::MAX, 1).unwrap();
    let (mut fixed, mut climbing) = (store(Some(1)), store(None));
    for seed in 0..3 {
        run(&mut fixed, bursts(seed));
        run(&mut climbing, bursts(seed));
    }
    let (fixed, climbing) = (run(&mut fixed, bursts(3)).0, run(&mut climbing, bursts(3)).0);
    assert!(climbing > fixed + 0.1, "{climbing} climbing, {fixed} not");
}
