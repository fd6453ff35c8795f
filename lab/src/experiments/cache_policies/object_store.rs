//! A store of numbered objects under a policy: what became of a request, and what did each block take?
//!
//! The calls of the policy are those of the tables' own store without Data (`cs_policy::simulated_store`), in its
//! order, and a test holds the two together. Two things differ. Objects are numbers without gaps, so that an array
//! finds them; and whoever looks on is told where each block of Takemasa19 (Figs. 5.1 and 5.2) begins and ends.
//!
//! Cost: a line of the array and one of the entry for a request that hits. Memory: 4 octets an object of the workload,
//! 28 an entry, and the policy's own.

use std::io;

use namewire_tables::PageSize;
use namewire_tables::cs_policy::catalogue::{CachePolicy, CsPolicy};
use namewire_tables::cs_policy::named_entry::NamedEntry;
use namewire_tables::cs_policy::{Leaving, Marks, Newcomer};
use namewire_tables::prefetch::prefetch;

use crate::requests::{Request, object_hash};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was stored.
    Hit,
    /// It was not, and is now.
    Stored,
    /// It was not, and is not.
    NotAdmitted,
}

/// A function block of Takemasa19 that is the policy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// B2: the history of requests.
    Request,
    /// B4's share: the entry answered.
    Hit,
    /// B13: may it come in?
    Admission,
    /// B12: who goes, and its leaving.
    Eviction,
    /// B10's share: the newcomer among the entries.
    Insertion,
}

/// Somebody who looks on.
pub(super) trait Watch {
    /// Before a block.
    fn begin(&mut self);
    /// After it.
    fn end(&mut self, block: Block);
}

/// Nobody does.
pub(super) struct Unwatched;

impl Watch for Unwatched {
    #[inline]
    fn begin(&mut self) {}
    #[inline]
    fn end(&mut self, _: Block) {}
}

const ABSENT: u32 = u32::MAX;

/// The store. It counts packets, not octets.
pub(super) struct ObjectStore {
    slot_of: Vec<u32>,
    /// With the object that each is.
    entries: Vec<NamedEntry<u32>>,
    free: Vec<u32>,
    policy: CachePolicy,
    /// Of the last call of [`ObjectStore::prefetch_victims`].
    upcoming: Vec<u32>,
}

impl ObjectStore {
    /// An empty store for `capacity` of `objects` objects.
    ///
    /// # Errors
    /// If the kernel does not map the memory of the policy.
    pub(super) fn new(policy: CsPolicy, objects: u32, capacity: u32, seed: u64) -> io::Result<Self> {
        Ok(Self {
            slot_of: vec![ABSENT; objects as usize],
            entries: vec![NamedEntry::default(); capacity as usize],
            free: (0..capacity).rev().collect(),
            policy: CachePolicy::new(policy, capacity, seed, PageSize::default())?,
            upcoming: Vec::new(),
        })
    }

    /// An Interest, and unless it hits, its Data.
    #[inline]
    pub(super) fn request(&mut self, request: Request, watch: &mut impl Watch) -> Outcome {
        if self.interest(request, watch) {
            return Outcome::Hit;
        }
        self.data(request, 1, watch)
    }

    /// An Interest: whether its Data is here.
    #[inline]
    pub(super) fn interest(&mut self, request: Request, watch: &mut impl Watch) -> bool {
        watch.begin();
        self.policy.request(object_hash(request.object));
        watch.end(Block::Request);
        let slot = self.slot_of[request.object as usize];
        if slot == ABSENT {
            return false;
        }
        watch.begin();
        self.policy.hit(&mut self.entries, slot);
        watch.end(Block::Hit);
        true
    }

    /// Data that is not here, and that so many Interests had asked for.
    pub(super) fn data(&mut self, request: Request, requests: u32, watch: &mut impl Watch) -> Outcome {
        let Request { object, octets } = request;
        let newcomer =
            Newcomer { hash: object_hash(object), account_bytes: octets.into(), requests, ..Newcomer::default() };
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
                self.policy.remove(&mut self.entries, victim, Leaving::Evicted);
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

    /// Whether there is no room.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Begins to fetch what an Interest for this object will touch, and its Data.
    pub(super) fn prefetch_request(&self, object: u32) {
        self.policy.prefetch_request(object_hash(object));
        prefetch(&self.slot_of[object as usize]);
    }

    /// Begins to fetch the entry of an object that is stored.
    pub(super) fn prefetch_entry(&self, object: u32) {
        let slot = self.slot_of[object as usize];
        if slot != ABSENT {
            self.entries.prefetch(slot);
        }
    }

    /// Begins to fetch the entries that `count` Data will probably evict.
    pub(super) fn prefetch_victims(&mut self, count: usize) {
        self.upcoming.clear();
        self.policy.upcoming(count, &mut self.upcoming);
        self.upcoming.iter().for_each(|&slot| self.entries.prefetch(slot));
    }

    /// Begins to fetch what the policy knows of them.
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
    use namewire_tables::cs_policy::catalogue::{AdmissionName, EvictionName};
    use namewire_tables::cs_policy::simulated_store::{self, SimulatedStore};

    #[test]
    fn every_policy_keeps_what_the_tables_own_store_keeps() -> io::Result<()> {
        for &eviction in EvictionName::ALL {
            for &admission in AdmissionName::ALL {
                let policy = CsPolicy { eviction, admission, ..CsPolicy::default() };
                let mut ours = ObjectStore::new(policy, 500, 40, 7)?;
                let mut reference = SimulatedStore::new(policy, 40, u64::MAX, 7)?;
                let mut random = fastrand::Rng::with_seed(1);
                for step in 0..20_000 {
                    let object = random.u32(..500).min(random.u32(..500));
                    let request = Request { object, octets: 1 };
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
