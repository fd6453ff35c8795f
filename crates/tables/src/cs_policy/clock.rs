//! CLOCK: the entry that was stored first goes first, unless it was used since; then it is
//! given a second chance.
//!
//! Source: Corbató 1968, "A paging experiment with the Multics system". The clock is a FIFO
//! queue: what the hand passes goes to the newest end, so that the hand is the oldest end, and
//! what it comes to next stands side by side ([`crate::eviction_queue`]).
//!
//! | Corbató | here |
//! | --- | --- |
//! | use bit | [`PolicyMark::uses`](super::PolicyMark::uses), 0 or 1 |
//! | hand | the oldest end of the queue |
//!
//! Deviation: one victim costs at most [`MAX_SECOND_CHANCES`].
//!
//! Cost: a hit writes the entry's own line if it is the first since the hand was there, and
//! else nothing; an insertion 1 line that is in cache; a victim the line of its own mark, which
//! goes anyway, and of each entry that is given a second chance: one per hit at most (0.1 to 1.3
//! per victim under Zipf requests), and fetched ahead by the batch. Bytes: 5 per entry, more only
//! where entries are erased. Who may write: the owner.

use super::{Eviction, Leaving, Marks, Newcomer};
use crate::eviction_queue::EvictionQueue;
use crate::pages::PageSize;
use std::io;

/// How many second chances are given for one victim at most; the entry after that goes although
/// it was used. Each is paid for by a hit, but all of them could fall due at once: whoever asks
/// for everything that is stored and then for something else would stop the router for as long
/// as a walk through the whole store takes. So of a store that was used throughout 1 entry in 65
/// goes in vain, and no packet pays for more than the victims of a batch cost together anyway.
///
/// N.B. A throw-away simulation (2 · 10⁶ Zipf requests, exponents 0.8, 0.9 and 1.1, stores of 1 to
/// 50 % of the names) saw at most 34 second chances for one victim of CLOCK, 7 of SIEVE and 474 of
/// S3-FIFO; the limit took nothing from the hit ratios of the first two and 0.0001 of the third.
pub const MAX_SECOND_CHANCES: usize = 64;

/// The order of insertion, and of second chances.
pub struct Clock {
    queue: EvictionQueue,
}

impl Clock {
    /// For so many entries at once.
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
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: Leaving) {
        self.queue.remove(marks.mark(slot).place);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        slots.extend(self.queue.iter().take(count + count / 2));
        self.queue.prefetch(3 * count);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.queue.grow(entries)
    }

    fn bytes(&self) -> usize {
        self.queue.bytes()
    }
}
