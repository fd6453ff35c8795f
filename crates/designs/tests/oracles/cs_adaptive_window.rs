//! The adaptive window finds the best window for a workload, and another one when the workload changes.

use namewire_designs::policies::catalogue::{EvictionName, PolicyChoice};
use namewire_designs::policies::simulated_store::{Outcome, Request, SimulatedStore};

pub(crate) const CAPACITY: u32 = 1_500;

/// Hits and insertions of one request, on average.
pub(crate) fn run(store: &mut SimulatedStore, names: impl Iterator<Item = u64>) -> (f64, f64) {
    let (mut requests, mut hits, mut stored) = (0, 0, 0);
    for name in names {
        let hash = (name + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        requests += 1;
        match store.request(&Request { hash, account_bytes: 1, requests: 1 }) {
            Outcome::Hit => hits += 1,
            Outcome::Stored => stored += 1,
            Outcome::NotAdmitted => {}
        }
    }
    (f64::from(hits) / f64::from(requests), f64::from(stored) / f64::from(requests))
}

/// Some names are requested more often than others, at all times.
pub(crate) fn independent(seed: u64) -> impl Iterator<Item = u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..200_000).map(move |_| (60_000.0 * random.f64().powi(4)) as u64)
}

/// Every name is requested several times within some thousand requests, and never again.
pub(crate) fn bursts(seed: u64) -> impl Iterator<Item = u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..200_000_u64).map(move |now| 1_000_000 + now / 4 + random.u64(..700))
}

#[test]
fn it_finds_the_window() {
    let store = |eviction| {
        SimulatedStore::new(PolicyChoice { eviction, ..PolicyChoice::default() }, CAPACITY, u64::MAX, 1).unwrap()
    };
    let (mut adaptive, mut lru) = (store(EvictionName::AdaptiveWindow), store(EvictionName::Lru));
    for seed in 0..2 {
        run(&mut adaptive, independent(seed));
        run(&mut lru, independent(seed));
        let (hits, stored) = run(&mut adaptive, independent(seed + 2));
        let (lru_hits, _) = run(&mut lru, independent(seed + 2));
        assert!(hits > lru_hits + 0.05 && stored < 0.1, "{hits} hits, LRU {lru_hits}, {stored} stored");

        run(&mut adaptive, bursts(seed));
        run(&mut lru, bursts(seed));
        let (hits, _) = run(&mut adaptive, bursts(seed + 2));
        let (lru_hits, _) = run(&mut lru, bursts(seed + 2));
        assert!(hits > lru_hits - 0.02, "{hits} hits, LRU {lru_hits}");
    }
}
