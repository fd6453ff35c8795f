//! Admission policies against plain models, over FIFO: a list of stored names, and the paper's rule for
//! what comes in.

use crate::cs_policy::{Operation, equals_the_model, operations};
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice, PolicyOptions};
use namewire_designs::policies::filter::FilterOptions;
use namewire_designs::policies::simulated_store::Outcome;
use namewire_designs::policies::tiny_lfu::TinyLfuOptions;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

/// FIFO of `capacity` names. When it is full, a newcomer comes in only if `admits` agrees, given the
/// newcomer and the name that would go. `request` sees every request first.
fn fifo(
    capacity: usize,
    mut request: impl FnMut(u64),
    mut admits: impl FnMut(u64, u64) -> bool,
) -> impl FnMut(Operation) -> Outcome {
    let mut stored: VecDeque<u64> = VecDeque::new();
    move |operation| {
        let hash = match operation {
            Operation::Request(hash) => hash,
            Operation::Erase(hash) => {
                stored.retain(|&other| other != hash);
                return Outcome::NotAdmitted;
            }
        };
        request(hash);
        if stored.contains(&hash) {
            return Outcome::Hit;
        }
        if stored.len() == capacity {
            if !admits(hash, stored[0]) {
                return Outcome::NotAdmitted;
            }
            stored.pop_front();
        }
        stored.push_back(hash);
        Outcome::Stored
    }
}

/// The counters of a name, one or two: of 32 in a row, chosen by the upper bits of its hash.
fn cells(hash: u64, counters: u64, per_name: usize) -> Vec<u64> {
    let row = hash % (counters / 32) * 32;
    let first = (hash >> 54) % 32;
    let both = [row + first, row + (first + 1 + (hash >> 59) % 31) % 32];
    both[..per_name].to_vec()
}

/// A list of the last names, counted at every decision.
#[test]
fn filter_equals_a_list_of_names() {
    const CAPACITY: usize = 25;
    for (seed, history, counters_log2, threshold, counters_per_name) in [
        (1, None, None, None, None),
        (2, Some(7), Some(5), Some(2), Some(2)),
        (3, Some(200), Some(5), Some(9), None),
        (4, Some(90), Some(27), Some(3), None),
        (5, Some(200), Some(5), Some(9), Some(1)),
        (6, None, Some(8), None, Some(1)),
    ] {
        let filter = FilterOptions { history, counters_log2, threshold, counters_per_name };
        let per_name = usize::from(counters_per_name.unwrap_or(2));
        let policy = PolicyChoice {
            eviction: EvictionName::Fifo,
            admission: AdmissionName::Filter,
            options: PolicyOptions { filter, ..PolicyOptions::default() },
        };
        let counters = 1_u64 << counters_log2.unwrap_or(24);
        let names = RefCell::new(VecDeque::new());
        let request = |hash: u64| {
            let mut names = names.borrow_mut();
            names.push_back(cells(hash, counters, per_name));
            if names.len() > history.map_or(CAPACITY, |history| history as usize) {
                names.pop_front();
            }
        };
        let admits = |hash: u64, _| {
            let names = names.borrow();
            let count = |cell| names.iter().filter(|cells| cells.contains(&cell)).count();
            cells(hash, counters, per_name).into_iter().all(|cell| count(cell) >= usize::from(threshold.unwrap_or(2)))
        };
        equals_the_model(policy, CAPACITY as u32, &operations(20_000, 100, seed), fifo(CAPACITY, request, admits));
    }
}

/// Counts that no other name adds to (with few names no two share all four counters), exact up to 15, all
/// halved after a window and then after each half of it.
#[test]
fn tiny_lfu_equals_counts() {
    const CAPACITY: usize = 25;
    for (seed, window) in [(1, None), (2, Some(60)), (3, Some(1_000_000))] {
        let tiny_lfu = TinyLfuOptions { window };
        let options = PolicyOptions { tiny_lfu, ..PolicyOptions::default() };
        let policy = PolicyChoice { eviction: EvictionName::Fifo, admission: AdmissionName::TinyLfu, options };
        let window = window.unwrap_or(10 * CAPACITY as u64);
        let counts = RefCell::new((HashMap::<u64, u8>::new(), 0));
        let request = |hash| {
            let (counts, requests) = &mut *counts.borrow_mut();
            let count = counts.entry(hash).or_default();
            *count = (*count + 1).min(15);
            *requests += 1;
            if *requests == window {
                counts.values_mut().for_each(|count| *count /= 2);
                *requests /= 2;
            }
        };
        let count = |hash| counts.borrow().0.get(&hash).copied().unwrap_or(0);
        let admits = |hash, victim| count(hash) > count(victim);
        equals_the_model(policy, CAPACITY as u32, &operations(20_000, 40, seed), fifo(CAPACITY, request, admits));
    }
}
