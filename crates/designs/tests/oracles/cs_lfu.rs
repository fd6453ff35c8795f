//! LFU and perfect LFU against a list that is searched for the least count.

use crate::cs_policy::{Operation, equals_the_model, operations};
use namewire_designs::policies::catalogue::{EvictionName, PolicyChoice};
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

/// With so few names each has a counter of its own, nearly always: with these seeds, always.
#[test]
fn perfect_lfu_equals_a_list() {
    let policy = PolicyChoice { eviction: EvictionName::PerfectLfu, ..PolicyChoice::default() };
    for seed in 0..20 {
        equals_the_model(policy, 60, &operations(4_000, 150, seed), model(60, true));
    }
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
