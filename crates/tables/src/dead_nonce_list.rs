//! Dead nonce list: was this (name, Nonce) forwarded a short while ago, although
//! the PIT has forgotten it?
//!
//! Source: NFD developer guide (NDN-0021). Without it an Interest that
//! loops longer than its PIT entry lives would be forwarded again and again.
//! What to insert, and when, is the forwarder's business.
//!
//! An entry is a 64-bit keyed digest of (name hash, Nonce) with its end of life,
//! in one queue, oldest first; an index finds digests. A pair inserted again lives
//! from its last insertion.
//!
//! The digest is one step of the name hash ([`crate::hash_key`]) with the name hash
//! and the Nonce as its two words, under a key that nothing else uses. Whoever
//! chooses names and Nonces without seeing hashes gets two different pairs of words
//! to the same digest, or to one place in the index, no more often than by chance:
//! 2⁻⁶⁴ for the digest, and an Interest then counts as a loop. Two names with one
//! hash are one name to this list, which is 2⁻⁶⁴ again.
//!
//! Deviation: NFD estimates the capacity with marks in the queue; here entries
//! carry their end of life and the capacity is a limit.
//!
//! Cost: `contains` nothing while the list is empty; else 1 control line, on a match 1
//! line of indices and 1 of the queue. Bytes per entry: 16 + about 6 of index; memory grows by doubling up to
//! the capacity. Full: the oldest entry goes early and
//! [`DeadNonceList::evicted_early`] moves. Who may write: the owner.

use crate::hash_key::{HashKey, PairHash};
use hashbrown::HashTable;
use std::collections::VecDeque;

/// NFD's lifetime of an entry, 6 s.
pub const DEFAULT_LIFETIME_NS: u64 = 6_000_000_000;
/// The largest capacity: positions in the queue are 32-bit numbers that wrap.
pub const MAX_CAPACITY: usize = 1 << 30;
/// Expired entries that one insertion removes at most: more than it adds, so
/// that the queue drains, and few, so that no packet pays for a whole burst.
const EXPIRED_PER_INSERT: usize = 4;

/// The list of dead Nonces.
pub struct DeadNonceList {
    digest: PairHash,
    capacity: usize,
    lifetime_ns: u64,
    queue: VecDeque<Entry>,
    /// Sequence numbers of queue entries, found by digest.
    index: HashTable<u32>,
    /// The sequence number of the queue's front.
    front: u32,
    evicted_early: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    digest: u64,
    expires_ns: u64,
}

const _: () = assert!(size_of::<Entry>() == 16);

impl DeadNonceList {
    /// An empty list of at most `capacity` (1 to [`MAX_CAPACITY`]) entries that live `lifetime_ns`.
    pub fn new(capacity: usize, lifetime_ns: u64, key: HashKey) -> Self {
        Self {
            digest: key.pair_hash(),
            capacity: capacity.clamp(1, MAX_CAPACITY),
            lifetime_ns,
            queue: VecDeque::new(),
            index: HashTable::new(),
            front: 0,
            evicted_early: 0,
        }
    }

    /// Whether the pair was inserted less than a lifetime before `now_ns`, and not evicted.
    #[inline]
    pub fn contains(&self, name_hash: u64, nonce: u32, now_ns: u64) -> bool {
        if self.queue.is_empty() {
            return false; // the usual case, and then not even the digest is needed
        }
        self.find(self.digest(name_hash, nonce)).is_some_and(|entry| now_ns < entry.expires_ns)
    }

    /// Remembers the pair until `now_ns` plus the lifetime. `now_ns` must not run backwards.
    pub fn insert(&mut self, name_hash: u64, nonce: u32, now_ns: u64) {
        self.expire(now_ns, EXPIRED_PER_INSERT);
        if self.queue.len() == self.capacity {
            self.pop_front();
            self.evicted_early += 1;
        }
        if self.queue.len() == self.queue.capacity() {
            let grown = (self.queue.len() * 2).clamp(16, self.capacity.max(16));
            self.queue.reserve_exact(grown - self.queue.len());
        }
        let digest = self.digest(name_hash, nonce);
        let sequence = self.front.wrapping_add(self.queue.len() as u32);
        let expires_ns = now_ns.saturating_add(self.lifetime_ns);
        self.queue.push_back(Entry { digest, expires_ns });

        let (queue, front) = (&self.queue, self.front);
        let at = |sequence: u32| &queue[sequence.wrapping_sub(front) as usize];
        match self.index.find_mut(digest, |&other| at(other).digest == digest) {
            // The older one stays in the queue, unindexed, until its time is up.
            Some(known) => *known = sequence,
            None => {
                self.index.insert_unique(digest, sequence, |&other| at(other).digest);
            }
        }
    }

    /// Removes at most `limit` expired entries; insertions do a little of it anyway.
    pub fn expire(&mut self, now_ns: u64, limit: usize) {
        for _ in 0..limit {
            match self.queue.front() {
                Some(oldest) if oldest.expires_ns <= now_ns => self.pop_front(),
                _ => return,
            }
        }
    }

    /// Entries held, expired ones that were not yet removed included.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many entries had to go before their time because the list was full.
    pub fn evicted_early(&self) -> u64 {
        self.evicted_early
    }

    fn pop_front(&mut self) {
        let Some(oldest) = self.queue.pop_front() else {
            return;
        };
        let sequence = self.front;
        self.front = self.front.wrapping_add(1);
        if let Ok(found) = self.index.find_entry(oldest.digest, |&other| other == sequence) {
            found.remove();
        }
    }

    #[inline]
    fn find(&self, digest: u64) -> Option<&Entry> {
        let at = |sequence: u32| &self.queue[sequence.wrapping_sub(self.front) as usize];
        self.index.find(digest, |&sequence| at(sequence).digest == digest).map(|&found| at(found))
    }

    #[inline]
    fn digest(&self, name_hash: u64, nonce: u32) -> u64 {
        self.digest.of(name_hash, nonce.into())
    }
}
