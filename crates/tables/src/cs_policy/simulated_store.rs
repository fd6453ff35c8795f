//! A store without Data: what would this policy have kept?
//!
//! For tests and experiments: names are their hashes, Data is its size. The order of calls is
//! that of the [Content Store](crate::content_store): every request is said first, then the
//! entry is hit, or else Data comes, is admitted if the store is full, and others go for it.
//! Not for packets: it allocates, and two names with one hash are one.

use super::catalogue::{CachePolicy, CsPolicy};
use super::named_entry::NamedEntry;
use super::{Leaving, Marks, Newcomer};
use crate::content_store::MAX_EVICTED_PER_BATCH;
use crate::pages::PageSize;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::io;

/// One Interest of a simulation, and the Data that would answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The hash of the name.
    pub hash: u64,
    /// What the Data adds to the account of the store.
    pub account_bytes: u64,
    /// Interests that had come before the Data, 1 for this one.
    pub requests: u32,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was stored.
    Hit,
    /// It was not, and is now.
    Stored,
    /// It was not, and is not.
    NotAdmitted,
}

/// A slot is not below the number of entries, here never: the Content Store's are so at times,
/// while what a batch evicted waits for its end.
const FIRST_SLOT: u32 = MAX_EVICTED_PER_BATCH + 1;

/// The store.
pub struct SimulatedStore {
    index: HashTable<u32>,
    /// With what each adds to the account.
    names: Vec<NamedEntry<u64>>,
    free: Vec<u32>,
    policy: CachePolicy,
    capacity_packets: u32,
    capacity_bytes: u64,
    bytes: u64,
    evictions: u64,
}

impl SimulatedStore {
    /// An empty store for so many Data, of so many octets together.
    ///
    /// # Errors
    /// If the kernel does not map the memory of the policy.
    pub fn new(policy: CsPolicy, capacity_packets: u32, capacity_bytes: u64, seed: u64) -> io::Result<Self> {
        Ok(Self {
            index: HashTable::with_capacity(capacity_packets as usize),
            names: vec![NamedEntry::default(); (FIRST_SLOT + capacity_packets) as usize],
            free: (FIRST_SLOT..FIRST_SLOT + capacity_packets).rev().collect(),
            policy: CachePolicy::new(policy, capacity_packets, seed, PageSize::default())?,
            capacity_packets,
            capacity_bytes,
            bytes: 0,
            evictions: 0,
        })
    }

    /// An Interest, and unless it is a hit, its Data.
    pub fn request(&mut self, request: &Request) -> Outcome {
        let Request { hash, account_bytes, requests } = *request;
        self.policy.request(hash);
        if let Some(slot) = self.find(hash) {
            self.policy.hit(&mut self.names, slot);
            return Outcome::Hit;
        }
        let newcomer = Newcomer { hash, account_bytes, requests, ..Newcomer::default() };
        if account_bytes > self.capacity_bytes || self.capacity_packets == 0 {
            return Outcome::NotAdmitted;
        }
        if !self.fits(&newcomer) && !self.policy.admits(&mut self.names, &newcomer) {
            return Outcome::NotAdmitted;
        }
        self.policy.arriving(&newcomer);
        while !self.fits(&newcomer) {
            let Some(victim) = self.policy.victim(&mut self.names, &newcomer) else { break };
            self.evictions += 1;
            self.take_out(victim, Leaving::Evicted);
        }
        let Some(slot) = self.free.pop() else { return Outcome::NotAdmitted };
        self.names[slot as usize] = NamedEntry::new(hash, account_bytes);
        let names = &self.names;
        self.index.insert_unique(hash, slot, |&slot| names[slot as usize].hash);
        self.bytes += account_bytes;
        self.policy.insert(&mut self.names, slot, &newcomer);
        Outcome::Stored
    }

    /// Takes a name out, as `cs/erase` does; false if it is not stored.
    pub fn erase(&mut self, hash: u64) -> bool {
        let slot = self.find(hash);
        if let Some(slot) = slot {
            self.take_out(slot, Leaving::Erased);
        }
        slot.is_some()
    }

    /// Another policy, from now on; everything stays stored, in the order in which it would have gone.
    /// Does nothing if it is the policy in force, options and all.
    ///
    /// # Errors
    /// If the kernel does not map the memory of the policy; then the former one stays.
    pub fn set_policy(&mut self, policy: CsPolicy, seed: u64) -> io::Result<()> {
        if policy.in_effect() == self.policy.name().in_effect() {
            return Ok(());
        }
        let policy = CachePolicy::new(policy, self.capacity_packets, seed, PageSize::default())?;
        let former = std::mem::replace(&mut self.policy, policy);
        self.policy.take_over(former, &mut self.names, 0, |names, slot| {
            let NamedEntry { hash, owners: account_bytes, .. } = names[slot as usize];
            Newcomer { hash, account_bytes, requests: 1, ..Newcomer::default() }
        });
        Ok(())
    }

    /// Whether a name is stored.
    pub fn contains(&self, hash: u64) -> bool {
        self.find(hash).is_some()
    }

    /// How many Data are stored.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Their account.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many went to make room.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// The policy, and the entries that it works on, to be measured.
    pub fn policy_mut(&mut self) -> (&mut CachePolicy, &mut impl Marks) {
        (&mut self.policy, &mut self.names)
    }

    /// The slot of a stored name.
    pub fn find(&self, hash: u64) -> Option<u32> {
        self.index.find(hash, |&slot| self.names[slot as usize].hash == hash).copied()
    }

    fn fits(&self, newcomer: &Newcomer) -> bool {
        self.index.len() < self.capacity_packets as usize && self.bytes + newcomer.account_bytes <= self.capacity_bytes
    }

    fn take_out(&mut self, slot: u32, why: Leaving) {
        self.policy.remove(&mut self.names, slot, why);
        let NamedEntry { hash, owners: account_bytes, .. } = self.names[slot as usize];
        let names = &self.names;
        match self.index.entry(hash, |&other| other == slot, |&other| names[other as usize].hash) {
            Entry::Occupied(entry) => drop(entry.remove()),
            Entry::Vacant(_) => unreachable!("slot {slot} is not stored"),
        }
        self.bytes -= account_bytes;
        self.free.push(slot);
    }
}
