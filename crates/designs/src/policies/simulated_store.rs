//! A store without Data: which names would this policy have kept?
//!
//! For tests and experiments: names are their hashes, Data is its size. The order of calls is as in the [Content
//! Store](namewire_tables::content_store). First the policy learns of every request. Then the entry is hit; or Data
//! arrives, is admitted if the store is full, and others are evicted for it. Do not use it for packets: it allocates,
//! and two names with one hash are one.

use super::catalogue::{CachePolicy, PolicyChoice};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use namewire_tables::content_store::MAX_EVICTED_PER_BATCH;
use namewire_tables::cs_policy::named_entry::NamedEntry;
use namewire_tables::cs_policy::{Marks, Newcomer, RemovalReason};
use namewire_tables::pages::PageSize;
use std::io;

/// One Interest of a simulation, and the Data that would answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The hash of the name.
    pub hash: u64,
    /// What the Data adds to the account of the store.
    pub account_bytes: u64,
    /// Interests that arrived before the Data; 1 = only this one.
    pub requests: u32,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The name was stored.
    Hit,
    /// The name was not stored, and is now.
    Stored,
    /// The name was not stored, and still is not.
    NotAdmitted,
}

/// The first slot number. It is high because a policy may see slots above its number of entries: in the
/// Content Store, while evicted Data waits for the end of its batch.
const FIRST_SLOT: u32 = MAX_EVICTED_PER_BATCH + 1;

/// The store.
pub struct SimulatedStore {
    index: HashTable<u32>,
    /// Each with what it adds to the account.
    names: Vec<NamedEntry<u64>>,
    free: Vec<u32>,
    policy: CachePolicy,
    capacity_packets: u32,
    capacity_bytes: u64,
    bytes: u64,
    evictions: u64,
}

impl SimulatedStore {
    /// An empty store for at most this many Data, and this many bytes together.
    ///
    /// # Errors
    /// If the kernel does not map the memory of the policy.
    pub fn new(policy: PolicyChoice, capacity_packets: u32, capacity_bytes: u64, seed: u64) -> io::Result<Self> {
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

    /// Handles an Interest and, unless it is a hit, its Data.
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
            self.take_out(victim, RemovalReason::Evicted);
        }
        let Some(slot) = self.free.pop() else { return Outcome::NotAdmitted };
        self.names[slot as usize] = NamedEntry::new(hash, account_bytes);
        let names = &self.names;
        self.index.insert_unique(hash, slot, |&slot| names[slot as usize].hash);
        self.bytes += account_bytes;
        self.policy.insert(&mut self.names, slot, &newcomer);
        Outcome::Stored
    }

    /// Removes a name, as `cs/erase` does; false if it is not stored.
    pub fn erase(&mut self, hash: u64) -> bool {
        let slot = self.find(hash);
        if let Some(slot) = slot {
            self.take_out(slot, RemovalReason::Erased);
        }
        slot.is_some()
    }

    /// Changes the policy. All names stay stored, in the order in which they would have gone. Does nothing
    /// if this policy, with these options, is in force already.
    ///
    /// # Errors
    /// If the kernel does not map the memory of the policy; then the former one stays.
    pub fn set_policy(&mut self, policy: PolicyChoice, seed: u64) -> io::Result<()> {
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

    /// The account of the stored Data.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many entries were evicted.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// The policy and the entries that it works on, for measurements.
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

    fn take_out(&mut self, slot: u32, why: RemovalReason) {
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
