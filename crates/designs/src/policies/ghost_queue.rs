//! Ghost queue: which names were evicted not long ago?
//!
//! Source: the ghost entries of ARC (Megiddo and Modha, FAST 2003: the lists B1 and B2) and of S3-FIFO (Yang et al.,
//! SOSP 2023: the queue G). They are names without their Data. With them a policy recognizes a name that returns soon
//! after its eviction.
//!
//! The queue keeps only the hash of a name. It cannot distinguish two names with one hash; then a policy makes a wrong
//! guess. The hashes lie in an [unrolled queue](namewire_tables::eviction_queue), oldest first, and an
//! [index](namewire_tables::tag_index) finds them:
//!
//! ```text
//! index: hash -> place           queue: | h h h h h h | … | h h h h h h |
//!                                         oldest                newest
//! ```
//!
//! Deviation: S3-FIFO's authors find their ghosts by a bucketed table of fingerprints and times of insertion, which
//! forgets some early when a bucket is full. Here every ghost stays exactly as long as it should, so a policy equals
//! its paper's.
//!
//! Cost, in lines from memory:
//! - [`GhostQueue::contains`] reads 1 of the index (1.2 at full load) and, only if the name is present, 1 of the queue.
//! - [`GhostQueue::push`] takes the same, 1 of the index for the name that is forgotten in its place, and 1 of the
//!   queue that is in cache in 5 of 6 cases.
//! - [`GhostQueue::remove`] reads the lines of a look-up that finds.
//!
//! Bytes: a name takes 8 in the index, and in the queue 11 that are touched if mostly the oldest leave; 64 are mapped.
//! Full: the oldest name is forgotten. Only [`GhostQueue::grow`] allocates. Writers: the owner.

use namewire_tables::eviction_queue::{EvictionQueue, HASHES};
use namewire_tables::pages::PageSize;
use namewire_tables::tag_index::TagIndex;
use std::io;

/// Hashes of evicted names, the oldest first; see the module.
pub struct GhostQueue {
    queue: EvictionQueue<u64, HASHES>,
    /// Places in the queue, found by hash.
    index: TagIndex,
    pages: PageSize,
    /// The most names.
    entries: u32,
}

impl GhostQueue {
    /// Room for this many names.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        // Most blocks are never touched: see the module of the queue.
        let queue = EvictionQueue::new(entries, pages.for_sparse())?;
        let index = TagIndex::new(entries as usize, pages)?;
        Ok(Self { queue, index, pages, entries })
    }

    /// Remembers an evicted name, as the newest. If there is no room, the oldest is forgotten. A queue for
    /// no names remembers nothing.
    pub fn push(&mut self, hash: u64) {
        self.remove(hash);
        if self.len() >= self.entries && self.pop_oldest().is_none() {
            return;
        }
        self.index.insert(hash, self.queue.push_newest(hash));
    }

    /// Whether the name is remembered.
    #[inline]
    pub fn contains(&self, hash: u64) -> bool {
        self.place(hash).is_some()
    }

    /// Forgets the name; returns whether it was remembered.
    pub fn remove(&mut self, hash: u64) -> bool {
        let place = self.place(hash);
        if let Some(place) = place {
            self.forget(hash, place);
        }
        place.is_some()
    }

    /// Forgets the oldest name and returns its hash.
    pub fn pop_oldest(&mut self) -> Option<u64> {
        let place = self.queue.oldest_place_of(0)?;
        let hash = self.queue.get(place);
        self.forget(hash, place);
        Some(hash)
    }

    /// How many names are remembered.
    pub fn len(&self) -> u32 {
        self.queue.len_of(0)
    }

    /// Whether no name is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes room for `entries` names, if there is less.
    ///
    /// # Errors
    /// If the kernel does not map the memory; everything is still remembered.
    pub fn grow(&mut self, entries: u32) -> io::Result<()> {
        if entries <= self.entries {
            return Ok(());
        }
        let index = TagIndex::new(entries as usize, self.pages)?;
        self.queue.grow(entries)?;
        self.queue.places_of(0).for_each(|place| index.insert(self.queue.get(place), place));
        (self.index, self.entries) = (index, entries);
        Ok(())
    }

    /// Begins to fetch the line that [`GhostQueue::contains`] reads first.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// Begins to fetch what the next `count` calls of [`GhostQueue::pop_oldest`] will write.
    pub fn prefetch_oldest(&self, count: usize) {
        self.queue.iter().take(count).for_each(|hash| self.index.prefetch(hash));
        self.queue.prefetch(2 * count);
    }

    /// Bytes of memory mapped for the queue.
    pub fn bytes(&self) -> usize {
        self.queue.bytes() + self.index.bytes()
    }

    #[inline]
    fn place(&self, hash: u64) -> Option<u32> {
        self.index.find(hash, |place| self.queue.get(place) == hash)
    }

    fn forget(&mut self, hash: u64, place: u32) {
        self.index.remove(hash, place);
        self.queue.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A list of the newest names; some of them share index buckets and tags.
        #[test]
        fn the_queue_equals_a_list(operations in prop::collection::vec((0_u8..16, 0_u64..40), 0..600)) {
            let mut ghosts = GhostQueue::new(20, PageSize::Base).unwrap();
            let (mut list, mut room) = (Vec::new(), 20);
            for (kind, number) in operations {
                let hash = (number % 5) << 48 | (number / 5) << 46;
                match kind {
                    0..8 => {
                        ghosts.push(hash);
                        list.retain(|&other| other != hash);
                        list.push(hash);
                        list.drain(..list.len().saturating_sub(room));
                    }
                    8..13 => {
                        prop_assert_eq!(ghosts.remove(hash), list.contains(&hash));
                        list.retain(|&other| other != hash);
                    }
                    13 => prop_assert_eq!(ghosts.pop_oldest(), (!list.is_empty()).then(|| list.remove(0))),
                    _ => {
                        ghosts.grow(number as u32).unwrap();
                        room = room.max(number as usize);
                    }
                }
                prop_assert_eq!(ghosts.len() as usize, list.len());
                prop_assert!(ghosts.queue.iter().eq(list.iter().copied()));
                prop_assert_eq!(ghosts.contains(hash), list.contains(&hash));
                ghosts.prefetch(hash);
                ghosts.prefetch_oldest(3);
            }
            prop_assert!(list.iter().all(|&hash| ghosts.contains(hash)));
            prop_assert_eq!(ghosts.index.values().count(), list.len());
        }
    }

    /// Names come and go for as long as a router runs. The blocks of the queue do not run out, whatever
    /// leaves from the middle.
    #[test]
    fn holes_are_used_again() {
        let mut ghosts = GhostQueue::new(100, PageSize::Base).unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        let hashes: Vec<u64> = (0..300).map(|_| random.u64(..)).collect();
        for _ in 0..100_000 {
            ghosts.push(*random.choice(&hashes).unwrap());
            ghosts.remove(*random.choice(&hashes).unwrap());
        }
        assert!(ghosts.len() > 50);
    }
}
