//! Miniature: the hits that a store would have with another window, estimated on a small store without
//! Data.
//!
//! Source: Waldspurger et al., USENIX ATC 2017, "Cache modeling and optimization using miniature
//! simulations". A scaled-down store sees only the requests for names whose hash is below a limit. It hits
//! about as often as the large store. Einziger et al., Middleware 2018, "Adaptive software cache
//! management", choose a window in this way ("mini-sim").
//!
//! A miniature is a [`WindowSieve`] over names without Data: a name is offered to the policy as soon as it
//! is requested. The miniature has its own index and marks, and uses the frequencies of its owner.
//!
//! Cost: a request that it sees touches 1 line of the index and the lines of the policy, all in cache.
//! Bytes: a miniature takes some 30 KiB. Full: its policy evicts. Writers: the owner.

use super::frequency_sketch::FrequencySketch;
use super::named_entry::NamedEntry;
use super::window_sieve::WindowSieve;
use super::{Marks, Newcomer};
use crate::pages::PageSize;
use crate::tag_index::TagIndex;
use std::io;

/// Entries of a miniature, if the store is large enough.
pub(super) const MOST_ENTRIES: u32 = 256;
/// The most entries evicted for one that is inserted, when a miniature must shrink.
const MOST_EVICTED: u32 = 4;

/// A small store without Data.
pub(super) struct Miniature {
    index: TagIndex,
    entries: Vec<NamedEntry>,
    free: Vec<u32>,
    policy: WindowSieve,
    hits: u64,
}

impl Miniature {
    /// A miniature with a window of this percentage of its entries.
    pub(super) fn new(window_percent: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            index: TagIndex::new(MOST_ENTRIES as usize, pages)?,
            entries: vec![NamedEntry::default(); MOST_ENTRIES as usize],
            free: (0..MOST_ENTRIES).rev().collect(),
            policy: WindowSieve::new(MOST_ENTRIES, window_percent, pages)?,
            hits: 0,
        })
    }

    pub(super) fn window_percent(&self) -> u32 {
        self.policy.window_percent()
    }

    /// Handles an Interest for a name, in a store of at most `capacity` entries (at most [`MOST_ENTRIES`]).
    pub(super) fn request(&mut self, hash: u64, capacity: u32, sketch: &FrequencySketch) {
        let Self { index, entries, free, policy, hits } = self;
        if let Some(slot) = index.find(hash, |slot| entries.hash(slot) == hash) {
            policy.hit(entries, slot);
            *hits += 1;
            return;
        }
        if policy.len() >= capacity {
            if !policy.admits(entries, &Newcomer { hash, ..Newcomer::default() }, sketch) {
                return;
            }
            for _ in 0..MOST_EVICTED.min(policy.len() + 1 - capacity) {
                let Some(victim) = policy.victim(entries, sketch) else { break };
                policy.remove(entries, victim);
                index.remove(entries.hash(victim), victim);
                free.push(victim);
            }
        }
        let Some(slot) = free.pop() else { return };
        entries[slot as usize] = NamedEntry::new(hash, ());
        index.insert(hash, slot);
        policy.insert(entries, slot);
    }

    /// Forgets names that it no longer sees: they would never be requested again.
    pub(super) fn retain(&mut self, is_sampled: impl Fn(u64) -> bool) {
        let mut is_free = [false; MOST_ENTRIES as usize];
        self.free.iter().for_each(|&slot| is_free[slot as usize] = true);
        for slot in (0..MOST_ENTRIES).filter(|&slot| !is_free[slot as usize]) {
            let hash = self.entries.hash(slot);
            if !is_sampled(hash) {
                self.policy.remove(&self.entries, slot);
                self.index.remove(hash, slot);
                self.free.push(slot);
            }
        }
    }

    /// Hits since the last call.
    pub(super) fn take_hits(&mut self) -> u64 {
        std::mem::take(&mut self.hits)
    }

    pub(super) fn bytes(&self) -> usize {
        self.index.bytes() + size_of_val(&*self.entries) + size_of_val(&*self.free) + self.policy.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cs_policy::window_sieve::lists::Lists;

    impl Miniature {
        fn names(&self) -> Vec<u64> {
            let held = (0..MOST_ENTRIES).filter(|slot| !self.free.contains(slot));
            let mut names: Vec<u64> = held.map(|slot| self.entries.hash(slot)).collect();
            names.sort_unstable();
            names
        }
    }

    /// Requests, a capacity that changes now and then, and names that are no longer requested.
    #[test]
    fn it_equals_two_lists() {
        for (seed, percent) in (0..30).zip([20, 0, 100].into_iter().cycle()) {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut sketch = FrequencySketch::new(200, 400, PageSize::Base).unwrap();
            let mut miniature = Miniature::new(percent, PageSize::Base).unwrap();
            let (mut lists, mut hits) = (Lists::default(), 0);
            let (mut capacity, mut sampled_below) = (40, u64::MAX);
            for step in 1..6_000 {
                if step % 300 == 0 {
                    capacity = random.u32(2..=40);
                }
                if step % 700 == 0 {
                    sampled_below = u64::MAX / 4 * random.u64(1..=3);
                    miniature.retain(|hash| hash < sampled_below);
                    lists.names().into_iter().filter(|&name| name >= sampled_below).for_each(|name| lists.take(name));
                    assert_eq!(miniature.names(), lists.names(), "seed {seed}, step {step}");
                }
                let name = (1 + random.u64(..=random.clone().u64(..90))).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                if name >= sampled_below {
                    continue;
                }
                sketch.increment(name);
                miniature.request(name, capacity, &sketch);
                if lists.hit(name) {
                    hits += 1;
                } else {
                    let limits = (capacity as usize, MOST_EVICTED as usize);
                    lists.miss(name, percent as usize, limits, &sketch);
                }
                assert_eq!(miniature.names(), lists.names(), "seed {seed}, step {step}");
            }
            assert!(hits > 500, "seed {seed}: {hits}");
            assert_eq!((miniature.take_hits(), miniature.take_hits()), (hits, 0));
        }
    }
}
