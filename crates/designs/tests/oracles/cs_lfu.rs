//! LFU and perfect LFU against a list that is searched for the least count.

use crate::cs_policy::{Operation, equals_the_model, operations};
use namewire_designs::policies::catalogue::{EvictionName, PolicyChoice, PolicyOptions};
use namewire_designs::policies::request_history::RequestHistoryOptions;
use namewire_designs::policies::simulated_store::{Outcome, Request, SimulatedStore};
use std::collections::HashMap;

/// A stored name and its count; the list begins with the least recently used.
struct Stored {
    name: u64,
    count: u32,
}

/// `is_perfect`: names that are not stored are counted too.
fn model(capacity: usize, is_perfect: bool) -> impl FnMut(Operation) -> Outcome {
    let mut list: Vec<Stored> = Vec::new();
    let mut requests: HashMap<u64, u32> = HashMap::new();
    move |operation| {
        let (name, is_request) = match operation {
            Operation::Request(name) => (name, true),
            Operation::Erase(name) => (name, false),
        };
        let place = list.iter().position(|stored| stored.name == name);
        if !is_request {
            place.map(|place| list.remove(place));
            return Outcome::NotAdmitted;
        }
        let so_far = requests.entry(name).or_default();
        *so_far += 1;
        if let Some(place) = place {
            let Stored { count, .. } = list.remove(place);
            list.push(Stored { name, count: count + 1 });
            return Outcome::Hit;
        }
        if list.len() == capacity {
            let least = (0..capacity).min_by_key(|&place| (list[place].count, place)).unwrap();
            list.remove(least);
        }
        list.push(Stored { name, count: if is_perfect { *so_far } else { 1 } });
        Outcome::Stored
    }
}

#[test]
fn lfu_equals_a_list() {
    let policy = PolicyChoice { eviction: EvictionName::Lfu, ..PolicyChoice::default() };
    for capacity in [1, 2, 25, 100] {
        for seed in 0..10 {
            equals_the_model(policy, capacity, &operations(4_000, 200, seed), model(capacity as usize, false));
        }
    }
}

/// Up to 16 names for each entry, and more with a longer history.
#[test]
fn perfect_lfu_equals_a_list() {
    for (capacity, names, history) in [(60, 150, None), (25, 400, None), (9, 144, None), (1, 4_000, Some(4_000))] {
        let options =
            PolicyOptions { perfect_lfu: RequestHistoryOptions { names: history }, ..PolicyOptions::default() };
        let policy = PolicyChoice { eviction: EvictionName::PerfectLfu, options, ..PolicyChoice::default() };
        for seed in 0..20 {
            equals_the_model(policy, capacity, &operations(8_000, names, seed), model(capacity as usize, true));
        }
    }
}

/// A thousand names for each entry, Zipf 0.8: as many hits as a simulator that counts every name and, when the store is
/// full, sorts it by count and then by last use.
#[test]
fn perfect_lfu_hits_as_often_as_exact_lfu() {
    const NAMES: usize = 50_000;
    const CAPACITY: usize = 50;
    const REQUESTS: usize = 150_000;
    let mut sum = 0.0;
    let up_to: Vec<f64> = (1..=NAMES)
        .map(|rank| {
            sum += (rank as f64).powf(-0.8);
            sum
        })
        .collect();
    let mut rng = fastrand::Rng::with_seed(5);
    let mut one = || {
        let at = rng.f64() * sum;
        up_to.partition_point(|&up_to| up_to < at).min(NAMES - 1)
    };
    let requests: Vec<usize> = (0..REQUESTS).map(|_| one()).collect();

    let (mut counts, mut last_uses) = (vec![0_u32; NAMES], vec![0; NAMES]);
    let (mut stored, mut expected): (Vec<usize>, usize) = (Vec::new(), 0);
    for (time, &name) in requests.iter().enumerate() {
        counts[name] += 1;
        last_uses[name] = time;
        if stored.contains(&name) {
            expected += 1;
            continue;
        }
        if stored.len() == CAPACITY {
            stored.sort_by_key(|&name| (counts[name], last_uses[name]));
            stored.remove(0);
        }
        stored.push(name);
    }

    let perfect_lfu = RequestHistoryOptions { names: Some(NAMES as u64) };
    let options = PolicyOptions { perfect_lfu, ..PolicyOptions::default() };
    let policy = PolicyChoice { eviction: EvictionName::PerfectLfu, options, ..PolicyChoice::default() };
    let mut store = SimulatedStore::new(policy, CAPACITY as u32, u64::MAX, 1).expect("a small store");
    let hits = requests.iter().filter(|&&name| {
        let mixed = (name as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        store.request(&Request { hash, account_bytes: 1, requests: 1 }) == Outcome::Hit
    });
    assert_eq!(hits.count(), expected);
    assert!(expected > REQUESTS / 50, "{expected} hits");
}

/// A newcomer's first count is the Interests that it answers. Counts have an end; from there on the least
/// recently used goes.
#[test]
fn counts_begin_and_end() {
    for eviction in [EvictionName::Lfu, EvictionName::PerfectLfu] {
        let policy = PolicyChoice { eviction, ..PolicyChoice::default() };
        let mut store = SimulatedStore::new(policy, 3, u64::MAX, 1).unwrap();
        let mut ask =
            |hash: u64, requests| store.request(&Request { hash: hash << 59 | hash, account_bytes: 1, requests });
        for (hash, requests) in [(1, 100_000), (2, 65_534), (3, 65_535)] {
            assert_eq!(ask(hash, requests), Outcome::Stored);
        }
        assert_eq!(ask(1, 1), Outcome::Hit);
        assert_eq!(ask(2, 1), Outcome::Hit); // all have the last count now
        assert_eq!(ask(4, 100_000), Outcome::Stored); // for 3, the least recently used
        assert_eq!(ask(5, 1), Outcome::Stored); // for 1
        assert_eq!(ask(6, 1), Outcome::Stored); // for 5
        assert_eq!([2, 4, 6].map(|hash| ask(hash, 1)), [Outcome::Hit; 3], "{eviction:?}");
    }
}
