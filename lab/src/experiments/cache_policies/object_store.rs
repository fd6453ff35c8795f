//! A store of numbered objects under a policy: the outcome of each request and the time of each block.
//!
//! It calls the policy in the same order as the store without Data in the tables crate (`cs_policy::simulated_store`);
//! a test compares the two. It differs in two ways. Objects are numbers without gaps, so an array finds them. And a
//! watcher sees where each block of Takemasa19 (Figs. 5.1 and 5.2) begins and ends.
//!
//! Cost: a hit reads one line of the array and one of the entry. Memory: it takes 4 bytes per object of the workload,
//! 28 per entry, and the policy's own.

use std::io;

use namewire_designs::policies::catalogue::{CachePolicy, PolicyChoice};
use namewire_tables::PageSize;
use namewire_tables::cs_policy::named_entry::NamedEntry;
use namewire_tables::cs_policy::{Marks, Newcomer, RemovalReason};
use namewire_tables::prefetch::prefetch;

use crate::requests::{Request, object_hash};

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The object was in the store.
    Hit,
    /// The object is in the store now.
    Stored,
    /// The policy refused the object.
    NotAdmitted,
}

/// A function block of Takemasa19 that belongs to the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// B2: the history of requests.
    Request,
    /// B4, the policy's part: an entry was hit.
    Hit,
    /// B13: may the object enter?
    Admission,
    /// B12: selects and removes the victim.
    Eviction,
    /// B10, the policy's part: adds the new entry.
    Insertion,
}

/// A watcher of the blocks.
pub(super) trait Watch {
    /// Before a block.
    fn begin(&mut self);
    /// After it.
    fn end(&mut self, block: Block);
}

/// Watches nothing.
pub(super) struct Unwatched;

impl Watch for Unwatched {
    #[inline]
    fn begin(&mut self) {}
    #[inline]
    fn end(&mut self, _: Block) {}
}

const ABSENT: u32 = u32::MAX;

/// The store. It counts packets, not bytes.
pub(super) struct ObjectStore {
    slot_of: Vec<u32>,
    /// The policy's view of the entries, each with its object.
    entries: Vec<NamedEntry<u32>>,
    free: Vec<u32>,
    policy: CachePolicy,
    /// The result of the last call of [`ObjectStore::prefetch_victims`].
    upcoming: Vec<u32>,
}

impl ObjectStore {
    /// An empty store for `capacity` of `objects` objects. Perfect LFU counts all of them exactly.
    ///
    /// # Errors
    /// If the kernel does not map the memory of the policy.
    pub(super) fn new(mut policy: PolicyChoice, objects: u32, capacity: u32, seed: u64) -> io::Result<Self> {
        policy.options.perfect_lfu.names = Some(objects.into());
        Ok(Self {
            slot_of: vec![ABSENT; objects as usize],
            entries: vec![NamedEntry::default(); capacity as usize],
            free: (0..capacity).rev().collect(),
            policy: CachePolicy::new(policy, capacity, seed, PageSize::default())?,
            upcoming: Vec::new(),
        })
    }

    /// An Interest and, unless it hits, its Data.
    #[inline]
    pub(super) fn request(&mut self, request: Request, watch: &mut impl Watch) -> Outcome {
        if self.interest(request, watch) {
            return Outcome::Hit;
        }
        self.data(request, 1, watch)
    }

    /// An Interest; returns whether it hit.
    #[inline]
    pub(super) fn interest(&mut self, request: Request, watch: &mut impl Watch) -> bool {
        watch.begin();
        self.update_history(request);
        watch.end(Block::Request);
        self.look_up(request, watch)
    }

    /// The policy's history gets an Interest.
    #[inline]
    pub(super) fn update_history(&mut self, request: Request) {
        self.policy.request(object_hash(request.object));
    }

    /// The rest of an Interest; returns whether it hit.
    #[inline]
    pub(super) fn look_up(&mut self, request: Request, watch: &mut impl Watch) -> bool {
        let slot = self.slot_of[request.object as usize];
        if slot == ABSENT {
            return false;
        }
        watch.begin();
        self.policy.hit(&mut self.entries, slot);
        watch.end(Block::Hit);
        true
    }

    /// Data that is not in the store; `requests` Interests requested it.
    pub(super) fn data(&mut self, request: Request, requests: u32, watch: &mut impl Watch) -> Outcome {
        let Request { object, bytes } = request;
        let newcomer =
            Newcomer { hash: object_hash(object), account_bytes: bytes.into(), requests, ..Newcomer::default() };
        if self.is_full() {
            watch.begin();
            let admitted = self.policy.admits(&mut self.entries, &newcomer);
            watch.end(Block::Admission);
            if !admitted {
                return Outcome::NotAdmitted;
            }
        }
        if self.is_full() {
            watch.begin();
            self.policy.arriving(&newcomer);
            let victim = self.policy.victim(&mut self.entries, &newcomer);
            if let Some(victim) = victim {
                self.policy.remove(&mut self.entries, victim, RemovalReason::Evicted);
            }
            watch.end(Block::Eviction);
            if let Some(victim) = victim {
                self.slot_of[self.entries[victim as usize].owners as usize] = ABSENT;
                self.free.push(victim);
            }
        } else {
            self.policy.arriving(&newcomer);
        }
        let Some(slot) = self.free.pop() else { return Outcome::NotAdmitted };
        self.entries[slot as usize] = NamedEntry::new(newcomer.hash, object);
        self.slot_of[object as usize] = slot;
        watch.begin();
        self.policy.insert(&mut self.entries, slot, &newcomer);
        watch.end(Block::Insertion);
        Outcome::Stored
    }

    /// Whether an object is stored.
    #[inline]
    pub(super) fn contains(&self, object: u32) -> bool {
        self.slot_of[object as usize] != ABSENT
    }

    /// Whether the store is full.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Prefetches what an Interest for this object, and its Data, will touch.
    pub(super) fn prefetch_request(&self, object: u32) {
        self.policy.prefetch_request(object_hash(object));
        prefetch(&self.slot_of[object as usize]);
    }

    /// Prefetches the entry of an object in the store.
    pub(super) fn prefetch_entry(&self, object: u32) {
        let slot = self.slot_of[object as usize];
        if slot != ABSENT {
            self.entries.prefetch(slot);
        }
    }

    /// Prefetches the entries that the next `count` Data will probably evict.
    pub(super) fn prefetch_victims(&mut self, count: usize) {
        self.upcoming.clear();
        self.policy.upcoming(count, &mut self.upcoming);
        self.upcoming.iter().for_each(|&slot| self.entries.prefetch(slot));
    }

    /// Prefetches the policy's history of these victims.
    pub(super) fn prefetch_victims_history(&self) {
        for &slot in &self.upcoming {
            if let Some(entry) = self.entries.get(slot as usize) {
                self.policy.prefetch_request(entry.hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_designs::policies::catalogue::{AdmissionName, EvictionName};
    use namewire_designs::policies::simulated_store::{self, SimulatedStore};

    #[test]
    fn every_policy_keeps_what_the_tables_own_store_keeps() -> io::Result<()> {
        for eviction in EvictionName::ALL {
            for admission in AdmissionName::ALL {
                let policy = PolicyChoice { eviction, admission, ..PolicyChoice::default() };
                let mut ours = ObjectStore::new(policy, 500, 40, 7)?;
                let mut reference = SimulatedStore::new(policy, 40, u64::MAX, 7)?;
                let mut random = fastrand::Rng::with_seed(1);
                for step in 0..20_000 {
                    let object = random.u32(..500).min(random.u32(..500));
                    let request = Request { object, bytes: 1 };
                    let expected = reference.request(&simulated_store::Request {
                        hash: object_hash(object),
                        account_bytes: 1,
                        requests: 1,
                    });
                    let expected = match expected {
                        simulated_store::Outcome::Hit => Outcome::Hit,
                        simulated_store::Outcome::Stored => Outcome::Stored,
                        simulated_store::Outcome::NotAdmitted => Outcome::NotAdmitted,
                    };
                    assert_eq!(ours.request(request, &mut Unwatched), expected, "{policy:?}, step {step}");
                }
            }
        }
        Ok(())
    }
}
