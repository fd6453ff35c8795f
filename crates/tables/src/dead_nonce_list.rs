//! Dead nonce list: was this (name, Nonce) forwarded a short while ago, by a PIT entry that is gone?
//!
//! Source: NFD developer's guide (NDN-0021). Without the list, an Interest that loops longer than its PIT
//! entry lives would be forwarded again and again. The forwarder decides what to insert, and when.
//!
//! An entry is a 64-bit keyed digest of (name hash, Nonce) and its end of life. Entries lie in one ring,
//! oldest first; an index finds digests. A pair inserted again lives from its last insertion.
//!
//! The digest is a keyed hash of two words ([`crate::hash_key`]), the name hash and the Nonce, under a key
//! that nothing else uses. A sender that does not see hashes cannot make digests collide: two different
//! pairs share a digest with probability 2⁻⁶⁴. Such a sender cannot crowd one place of the index either. If
//! two digests collide, the router mistakes an Interest for a loop. Two names with one hash, which have
//! probability 2⁻⁶¹, have the same effect.
//!
//! Deviation: NFD estimates the capacity with marks in the queue. Here entries carry their end of life and
//! the capacity is a limit.
//!
//! Cost: `contains` costs nothing while the list is empty. Otherwise it reads 1 line of the index, and on a
//! match 1 of the ring.
//! Bytes per entry: 16 in the ring, whose length is the capacity rounded up to a power of two, and 8 in the
//! index. Both are mapped at the start and touched when used; no operation allocates.
//! Full: the oldest entry is evicted early, and [`DeadNonceList::evicted_early`] counts it.
//! Writers: the owner.

use crate::hash_key::{HashKey, PairHash};
use crate::pages::{PageArray, PageSize};
use crate::tag_index::TagIndex;
use bytemuck::Zeroable;
use std::io;

/// NFD's lifetime of an entry, 6 s.
pub const DEFAULT_LIFETIME_NS: u64 = 6_000_000_000;
/// The largest capacity: places in the ring are 32-bit numbers that wrap.
pub const MAX_CAPACITY: usize = 1 << 30;
/// The most expired entries that one insertion removes. More than it adds, so that the queue drains; few,
/// so that no packet pays for a whole burst.
const EXPIRED_PER_INSERT: usize = 4;

/// The list of dead Nonces.
pub struct DeadNonceList {
    digest: PairHash,
    capacity: usize,
    lifetime_ns: u64,
    /// A power of two of places.
    ring: PageArray<Entry>,
    /// Places in the ring, found by digest.
    index: TagIndex,
    /// The place of the oldest entry.
    front: u32,
    len: usize,
    evicted_early: u64,
}

#[derive(Clone, Copy, Zeroable)]
struct Entry {
    digest: u64,
    expires_ns: u64,
}

const _: () = assert!(size_of::<Entry>() == 16);

impl DeadNonceList {
    /// An empty list of at most `capacity` (1 to [`MAX_CAPACITY`]) entries that live `lifetime_ns`.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(capacity: usize, lifetime_ns: u64, key: HashKey, pages: PageSize) -> io::Result<Self> {
        let capacity = capacity.clamp(1, MAX_CAPACITY);
        Ok(Self {
            digest: key.pair_hash(),
            capacity,
            lifetime_ns,
            ring: PageArray::zeroed(capacity.next_power_of_two(), pages)?,
            index: TagIndex::new(capacity, pages)?,
            front: 0,
            len: 0,
            evicted_early: 0,
        })
    }

    /// Whether the pair was inserted less than a lifetime before `now_ns`, and not evicted.
    #[inline(always)]
    pub fn contains(&self, name_hash: u64, nonce: u32, now_ns: u64) -> bool {
        // The list is nearly always empty, and then not even the digest is needed.
        self.len != 0 && self.holds(name_hash, nonce, now_ns)
    }

    #[inline(never)]
    fn holds(&self, name_hash: u64, nonce: u32, now_ns: u64) -> bool {
        let digest = self.digest(name_hash, nonce);
        self.find(digest).is_some_and(|place| now_ns < self.ring[place as usize].expires_ns)
    }

    /// Remembers the pair until `now_ns` plus the lifetime. `now_ns` must not run backwards.
    pub fn insert(&mut self, name_hash: u64, nonce: u32, now_ns: u64) {
        self.expire(now_ns, EXPIRED_PER_INSERT);
        if self.len == self.capacity {
            self.pop_front();
            self.evicted_early += 1;
        }
        let digest = self.digest(name_hash, nonce);
        let place = self.place(self.len);
        self.ring[place as usize] = Entry { digest, expires_ns: now_ns.saturating_add(self.lifetime_ns) };
        self.len += 1;
        match self.find(digest) {
            // The older one stays in the ring, unindexed, until its time is up.
            Some(older) => {
                self.index.replace(digest, older, place);
            }
            None => self.index.insert(digest, place),
        }
    }

    /// Removes at most `limit` expired entries; each insertion removes a few as well.
    pub fn expire(&mut self, now_ns: u64, limit: usize) {
        for _ in 0..limit {
            if self.len == 0 || self.ring[self.front as usize].expires_ns > now_ns {
                return;
            }
            self.pop_front();
        }
    }

    /// Begins to fetch the line that [`DeadNonceList::contains`] reads first.
    #[inline]
    pub fn prefetch(&self, name_hash: u64, nonce: u32) {
        if self.len > 0 {
            self.index.prefetch(self.digest(name_hash, nonce));
        }
    }

    /// Entries held, expired ones included until they are removed.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many entries were removed before their end of life because the list was full.
    pub fn evicted_early(&self) -> u64 {
        self.evicted_early
    }

    /// Removes the oldest entry; there must be one.
    fn pop_front(&mut self) {
        // The index has this entry no more if the pair was inserted again since.
        self.index.remove(self.ring[self.front as usize].digest, self.front);
        self.len -= 1;
        // An empty list begins anew, so that a list of few entries stays in few lines.
        self.front = if self.len == 0 { 0 } else { self.place(1) };
    }

    /// The place of entry number `number`, counted from the oldest.
    fn place(&self, number: usize) -> u32 {
        ((self.front as usize + number) & (self.ring.len() - 1)) as u32
    }

    #[inline]
    fn find(&self, digest: u64) -> Option<u32> {
        self.index.find(digest, |place| self.ring[place as usize].digest == digest)
    }

    #[inline]
    fn digest(&self, name_hash: u64, nonce: u32) -> u64 {
        self.digest.of(name_hash, nonce.into())
    }
}
