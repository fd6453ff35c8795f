//! CLOCK: the oldest entry is evicted, unless it was used since; then it gets a second chance.
//!
//! Source: Corbató 1968, "A paging experiment with the Multics system". The clock is a FIFO queue: an entry that the
//! hand passes moves to the newest end, so the hand is the oldest end. The entries that the hand meets next lie side
//! by side ([`namewire_tables::eviction_queue`]).
//!
//! | Corbató | here |
//! | --- | --- |
//! | use bit | [`PolicyMark::uses`](namewire_tables::cs_policy::PolicyMark::uses), 0 or 1 |
//! | hand | the oldest end of the queue |
//!
//! Deviation: one victim costs at most [`MAX_SECOND_CHANCES`].
//!
//! Cost: the first hit after the hand has passed writes the entry's own line; later hits write nothing. An insertion
//! writes 1 line that is in cache. A victim costs the line of its own mark, which is evicted anyway, and the line of
//! each entry that gets a second chance. There is at most one second chance per hit (0.1 to 1.3 per victim under Zipf
//! requests), and the batch prefetches these lines. Bytes: an entry takes 5, more only where entries are erased.
//! Writers: the owner.

use namewire_tables::cs_policy::MAX_SECOND_CHANCES;
use namewire_tables::cs_policy::{Eviction, Marks, Newcomer, RemovalReason};
use namewire_tables::eviction_queue::EvictionQueue;
use namewire_tables::pages::PageSize;
use std::io;

/// The order of insertion, and of second chances.
pub struct Clock {
    queue: EvictionQueue,
}

impl Clock {
    /// A policy for this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self { queue: EvictionQueue::new(entries, pages)? })
    }
}

impl Eviction for Clock {
    #[inline]
    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        if marks.mark(slot).uses == 0 {
            marks.mark_mut(slot).uses = 1;
        }
    }

    #[inline]
    fn victim(&mut self, marks: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        for _ in 0..MAX_SECOND_CHANCES {
            let slot = self.queue.oldest()?;
            let mark = marks.mark_mut(slot);
            if mark.uses == 0 {
                return Some(slot);
            }
            self.queue.remove(mark.place);
            (mark.uses, mark.place) = (0, self.queue.push_newest(slot));
        }
        let slot = self.queue.oldest()?;
        marks.mark_mut(slot).uses = 0;
        Some(slot)
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
        self.queue.upcoming(count + count / 2, slots);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.queue.grow(entries)
    }

    fn bytes(&self) -> usize {
        self.queue.bytes()
    }
}
