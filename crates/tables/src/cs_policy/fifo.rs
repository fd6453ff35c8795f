//! FIFO: the entry that was stored first is evicted first.
//!
//! Source: Takemasa19 §5.2.3 combines FIFO with its admission. The queue is unrolled, as for
//! [`Lru`](super::lru::Lru). Unlike LRU's, the lines of this queue stay in the order of memory.
//!
//! Cost: a hit writes nothing; an insertion writes 1 line that is in cache. Bytes: an entry takes 5; it
//! takes more only where other entries were erased.

use super::{Eviction, Marks, Newcomer, RemovalReason};
use crate::eviction_queue::EvictionQueue;
use crate::pages::PageSize;
use std::io;

/// The order of insertion.
pub struct Fifo {
    queue: EvictionQueue,
}

impl Fifo {
    /// A policy for this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self { queue: EvictionQueue::new(entries, pages)? })
    }
}

impl Eviction for Fifo {
    #[inline]
    fn hit(&mut self, _: &mut impl Marks, _: u32) {}

    #[inline]
    fn victim(&mut self, _: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        self.queue.oldest()
    }

    #[inline]
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        marks.mark_mut(slot).place = self.queue.push_newest(slot);
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        self.queue.remove(marks.mark(slot).place);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        slots.extend(self.queue.iter().take(count));
        self.queue.prefetch(2 * count);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.queue.grow(entries)
    }

    fn bytes(&self) -> usize {
        self.queue.bytes()
    }
}
