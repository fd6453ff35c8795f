//! FIFO and LRU: the entry that was stored first is evicted first (FIFO), or the one that was stored or used
//! longest ago (LRU).
//!
//! Source: Takemasa19 §5.2.3 combines FIFO with its admission; Yuan15 §6.1.3 has LRU (a doubly linked list in
//! addition to the hash table). Here the list is unrolled ([`crate::eviction_queue`]), and an entry's mark
//! stores its place in the queue. With FIFO, the lines of the queue stay in the order of memory.
//!
//! Cost: with FIFO a hit writes nothing; with LRU it writes 1 line of the queue, or none if the entry is the
//! newest already. An insertion writes 1 line that is in cache. Bytes: an entry takes 5 if no entry is removed
//! from the middle of the queue, and 64 at worst.

use super::{Eviction, Marks, Newcomer, RemovalReason};
use crate::eviction_queue::EvictionQueue;
use crate::pages::PageSize;
use std::io;

/// The order of insertion.
pub type Fifo = Queue<false>;
/// The order of last use.
pub type Lru = Queue<true>;

/// The order of insertion, or of last use if a hit makes an entry the newest.
pub struct Queue<const HIT_IS_NEWEST: bool> {
    queue: EvictionQueue,
}

impl<const HIT_IS_NEWEST: bool> Queue<HIT_IS_NEWEST> {
    /// A policy for this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self { queue: EvictionQueue::new(entries, pages)? })
    }
}

impl<const HIT_IS_NEWEST: bool> Eviction for Queue<HIT_IS_NEWEST> {
    #[inline]
    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        if !HIT_IS_NEWEST {
            return;
        }
        let mark = marks.mark_mut(slot);
        if !self.queue.is_newest(mark.place) {
            self.queue.remove(mark.place);
            mark.place = self.queue.push_newest(slot);
        }
    }

    #[inline]
    fn victim(&mut self, _: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        self.queue.oldest()
    }

    #[inline(always)]
    fn evict(&mut self, _: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        self.queue.take_oldest()
    }

    #[inline(always)]
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        marks.mark_mut(slot).place = self.queue.push_newest(slot);
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        self.queue.remove(marks.mark(slot).place);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        self.queue.upcoming(count, slots);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.queue.grow(entries)
    }

    fn bytes(&self) -> usize {
        self.queue.bytes()
    }
}
