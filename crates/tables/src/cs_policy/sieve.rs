//! SIEVE: of what was not used since the hand passed, what was stored first behind the hand
//! goes; what was used stays where it is.
//!
//! Source: Zhang et al., NSDI 2024, "SIEVE is simpler than LRU". Their queue is in the order of
//! insertion, and the hand moves through the middle of it, from the oldest to the newest and
//! then to the oldest again. Entries that the hand has passed are all older than those that it
//! has not, so the queue is two here, and the hand is the oldest end of the second:
//!
//! ```text
//! tail                      hand                  head
//!  | passed: b d e           | ahead: f g h i      |  <- insertion
//! ```
//!
//! An entry that stays is taken from the oldest end of *ahead* and added to the newest end of
//! *passed*, which is the place that it had. When nothing is ahead, the hand goes to the tail:
//! the two change their names. So nothing is ever removed from the middle, except what is
//! erased, and what the hand comes to next stands side by side ([`crate::eviction_queue`]).
//!
//! | Zhang | here |
//! | --- | --- |
//! | visited | [`PolicyMark::uses`](super::PolicyMark::uses), 0 or 1 |
//! | hand | the oldest end of `ahead` |
//!
//! Deviation: one victim costs at most [`MAX_SECOND_CHANCES`] entries that stay; see there.
//!
//! Cost: that of [CLOCK](super::clock), with fewer second chances, because what stays is asked
//! again only after everything else: 0.001 to 0.2 per victim under Zipf requests. Bytes: 5 per entry, more only where entries are erased.
//! Who may write: the owner.

use super::clock::MAX_SECOND_CHANCES;
use super::{Eviction, Leaving, Marks, Newcomer};
use crate::eviction_queue::EvictionQueues;
use crate::pages::PageSize;
use std::io;

/// The order of insertion, and a hand.
pub struct Sieve {
    queues: EvictionQueues<2>,
    /// Which of the queues the hand has not passed; it is empty only if both are.
    ahead: u8,
}

impl Sieve {
    /// For so many entries at once.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self { queues: EvictionQueues::new(entries, pages)?, ahead: 0 })
    }

    /// The entry at the hand.
    #[inline]
    fn at_hand(&self) -> Option<u32> {
        self.queues.oldest_of(self.ahead.into())
    }

    /// Takes the entry out of its queue.
    #[inline]
    fn take(&mut self, list: u8, place: u32) {
        self.queues.remove_of(list.into(), place);
        if list == self.ahead && self.at_hand().is_none() {
            self.ahead = 1 - self.ahead;
        }
    }
}

impl Eviction for Sieve {
    #[inline]
    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        if marks.mark(slot).uses == 0 {
            marks.mark_mut(slot).uses = 1;
        }
    }

    #[inline]
    fn victim(&mut self, marks: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        for _ in 0..MAX_SECOND_CHANCES {
            let slot = self.at_hand()?;
            let mark = marks.mark_mut(slot);
            if mark.uses == 0 {
                return Some(slot);
            }
            let passed = 1 - self.ahead;
            self.take(mark.list, mark.place);
            (mark.uses, mark.list, mark.place) = (0, passed, self.queues.push_newest_of(passed.into(), slot));
        }
        let slot = self.at_hand()?;
        marks.mark_mut(slot).uses = 0;
        Some(slot)
    }

    #[inline]
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        let mark = marks.mark_mut(slot);
        (mark.list, mark.place) = (self.ahead, self.queues.push_newest_of(self.ahead.into(), slot));
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: Leaving) {
        let mark = marks.mark(slot);
        self.take(mark.list, mark.place);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        slots.extend(self.queues.iter_of(self.ahead.into()).take(count));
        self.queues.prefetch_of(self.ahead.into(), 2 * count);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.queues.grow(entries)
    }

    fn bytes(&self) -> usize {
        self.queues.bytes()
    }
}
