//! SIEVE: evicts the oldest entry ahead of the hand that was not used; used entries keep their place.
//!
//! Source: Zhang et al., NSDI 2024, "SIEVE is simpler than LRU". Their queue is in the order of insertion. The hand
//! moves through the middle of it, from the oldest to the newest and then to the oldest again. Entries that the hand
//! has passed are all older than the others. So here there are two queues, and the hand is the oldest end of the
//! second:
//!
//! ```text
//! tail                      hand                  head
//!  | passed: b d e           | ahead: f g h i      |  <- insertion
//! ```
//!
//! An entry that stays is taken from the oldest end of *ahead* and added to the newest end of *passed*: the same place
//! in the order. When nothing is ahead, the hand moves to the tail: the two queues exchange their names. So only
//! erased entries leave from the middle, and the entries that the hand meets next lie side by side
//! ([`namewire_tables::eviction_queue`]).
//!
//! | Zhang | here |
//! | --- | --- |
//! | visited | [`PolicyMark::uses`](namewire_tables::cs_policy::PolicyMark::uses), 0 or 1 |
//! | hand | the oldest end of `ahead` |
//!
//! Deviation: one victim costs at most [`MAX_SECOND_CHANCES`] entries that stay; see there. In the mean SIEVE needs no
//! limit: a hit pays for each entry that stays. But hits cost the consumer nothing. One that requests everything
//! stored, and then one other name, would stop the worker for a walk through the store: 10⁶ entries, each a line from
//! memory at some 50 ns, are 50 ms. With the limit, the next victims share the walk, and each of them costs at most 64
//! entries.
//!
//! The walks are real. A simulator without the limit (a list and a hand, no code in common) ran the seven recorded
//! traces with stores of 0.1, 1 and 10 % of the objects. 0.03 to 1.5 entries stay for each victim, but for one victim
//! 4,571 of 27,517 stayed (`trace-cloudphysics-w106`), and 3,430 of 8,646 (`trace-orm-night`). The limit applies to at
//! most 1.0 % of the victims. It changes the hits by -0.26 (`trace-orm-busy`, 7,634 Data) to +0.67 percentage points
//! (`trace-orm-night`, 864 Data), +0.03 in the mean of the 21 cases. With the limit, both programs hit equally often in
//! all cases. A limit of 16 applies to up to 2.6 % of the victims, and takes up to 0.38 points (`trace-adaptsize`,
//! 368).
//!
//! Cost: as for [CLOCK](super::clock), but there are fewer second chances: 0.001 to 0.2 per victim under Zipf
//! requests. The reason is that an entry that stays is looked at again only after all others. Bytes: an entry takes 5,
//! more only where entries are erased. Writers: the owner.

use namewire_tables::cs_policy::MAX_SECOND_CHANCES;
use namewire_tables::cs_policy::{Eviction, Marks, Newcomer, RemovalReason};
use namewire_tables::eviction_queue::EvictionQueues;
use namewire_tables::pages::PageSize;
use std::io;

/// The order of insertion, and a hand.
pub struct Sieve {
    queues: EvictionQueues<2>,
    /// The queue that the hand has not passed; it is empty only if both are.
    ahead: u8,
}

impl Sieve {
    /// A policy for this many entries.
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

    /// Removes the entry from its queue.
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
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        let mark = marks.mark(slot);
        self.take(mark.list, mark.place);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        self.queues.upcoming_of(self.ahead.into(), count, slots);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.queues.grow(entries)
    }

    fn bytes(&self) -> usize {
        self.queues.bytes()
    }
}
