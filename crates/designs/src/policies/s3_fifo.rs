//! S3-FIFO: new entries are evicted soon unless they are used. Used entries stay longer, and so do entries whose names
//! return soon after eviction.
//!
//! Source: Yang et al., SOSP 2023, "FIFO queues are all you need for cache eviction", Algorithm 1.
//!
//! ```text
//! newcomer ──────────> small ── used less than twice ──> evicted, its name to ghosts
//!    │                   └───── used twice or more ────> main
//!    └─ among ghosts ──> main ── not used ─────────────> evicted
//!                          ^└─── used ─┐
//!                          └───────────┘ one use less
//! ```
//!
//! | Yang | here |
//! | --- | --- |
//! | S, M | the two queues |
//! | G | [`GhostTable`]: the last names evicted from S, as many as M has its share of entries, with the newcomer |
//! | freq | [`PolicyMark::uses`](namewire_tables::cs_policy::PolicyMark::uses), at most 3; 0 when it comes into M |
//! | 10 % | 1 / [`SMALL_SHARE`] of the entries that are held: bytes may limit the store |
//!
//! The next victim comes from S if S has its share or more, else from M. An entry that moves on from S to M, and one
//! that stays in M, gets a second chance; the shares are compared again after each. Deviation: for one victim there
//! are at most [`MAX_SECOND_CHANCES`]; see there.
//!
//! *Against a simulator* of Algorithm 1 that was written for this comparison (three lists, no code in common), at the
//! seven recorded traces and three sizes each:
//! - The share of G was once that of the entries without the newcomer: of 2 Data, G had one name instead of two. At
//!   `trace-nasa`, 2 Data, that took 3.7 points of hits (0.033 instead of 0.070), with 20 Data and more up
//!   to 0.1 points. It counts the newcomer now.
//! - G as a queue keeps names until others push them out, and a name that returns leaves room for another. G as the
//!   paper's table of times forgets names by age. At `trace-cloudphysics-sample`, 4,897 Data, the queue hits 0.248 and
//!   the table 0.243; elsewhere the difference is below 0.15 points. The table stays: it costs one line, not three.
//! - S has its share at 10 % of the entries or more: of 36 Data that is 4, where a simulator that rounds down has 3
//!   (0.159 instead of 0.156 at `trace-adaptsize`). A lookup in G after the eviction, as in Algorithm 1, or before it,
//!   is worth up to 0.5 points with 2 Data and less than 0.1 with 20 or more.
//!
//! Cost: a hit writes the entry's own line, from the third hit on nothing. An insertion writes 1 line that is in cache
//! and 1 of the ghosts. A victim costs as much as with [CLOCK](super::clock) (0.1 to 1.1 second chances under Zipf
//! requests) and, from S, 1 line of the ghosts; the batch prefetches all of them. Bytes: an entry takes 5 for the
//! queues, and 5.8 for the ghosts. Writers: the owner.

use super::ghost_table::GhostTable;
use namewire_tables::cs_policy::MAX_SECOND_CHANCES;
use namewire_tables::cs_policy::{Eviction, Marks, Newcomer, RemovalReason};
use namewire_tables::eviction_queue::EvictionQueues;
use namewire_tables::pages::PageSize;
use std::io;

/// The small queue has one in this many entries.
pub const SMALL_SHARE: u32 = 10;
/// Uses are counted up to here.
const MAX_USES: u8 = 3;
/// Uses in the small queue that move an entry to the main one.
const USES_FOR_MAIN: u8 = 2;

const SMALL: u8 = 0;
const MAIN: u8 = 1;

/// Two queues, and the names of evicted entries.
pub struct S3Fifo {
    queues: EvictionQueues<2>,
    ghosts: GhostTable,
}

impl S3Fifo {
    /// A policy for this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        let ghosts = GhostTable::new(main_share(entries), pages)?;
        Ok(Self { queues: EvictionQueues::new(entries, pages)?, ghosts })
    }

    /// The queue of the next victim.
    #[inline]
    fn next_queue(&self) -> u8 {
        if u64::from(self.queues.len_of(SMALL.into())) * u64::from(SMALL_SHARE) >= self.queues.len().into() {
            SMALL
        } else {
            MAIN
        }
    }

    /// The oldest entry of that queue.
    #[inline]
    fn candidate(&self) -> Option<u32> {
        self.queues.oldest_of(self.next_queue().into())
    }
}

/// The main queue's share of this many entries.
fn main_share(entries: u32) -> u32 {
    entries - entries / SMALL_SHARE
}

impl Eviction for S3Fifo {
    #[inline]
    fn prefetch_request(&self, hash: u64) {
        self.ghosts.prefetch(hash);
    }

    #[inline]
    fn prefetch_victim(&self, hash: u64) {
        self.ghosts.prefetch(hash);
    }

    #[inline]
    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        if marks.mark(slot).uses < MAX_USES {
            marks.mark_mut(slot).uses += 1;
        }
    }

    #[inline]
    fn victim(&mut self, marks: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        for _ in 0..MAX_SECOND_CHANCES {
            let slot = self.candidate()?;
            let mark = marks.mark_mut(slot);
            let uses = match mark.list {
                SMALL if mark.uses >= USES_FOR_MAIN => 0,
                MAIN if mark.uses > 0 => mark.uses - 1,
                _ => return Some(slot),
            };
            self.queues.remove_of(mark.list.into(), mark.place);
            (mark.list, mark.uses, mark.place) = (MAIN, uses, self.queues.push_newest_of(MAIN.into(), slot));
        }
        let slot = self.candidate()?;
        marks.mark_mut(slot).uses = 0;
        Some(slot)
    }

    #[inline]
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, newcomer: &Newcomer) {
        // The victim has left and the newcomer is not counted yet.
        let ghosts = main_share(self.queues.len() + 1);
        let list = if self.ghosts.remove(newcomer.hash, ghosts) { MAIN } else { SMALL };
        let mark = marks.mark_mut(slot);
        (mark.list, mark.place) = (list, self.queues.push_newest_of(list.into(), slot));
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, why: RemovalReason) {
        let mark = marks.mark(slot);
        if mark.list == SMALL && why == RemovalReason::Evicted {
            self.ghosts.push(marks.hash(slot));
        }
        self.queues.remove_of(mark.list.into(), mark.place);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        let next = self.next_queue();
        for (queue, count) in [(next, count), (1 - next, count / 2)] {
            self.queues.upcoming_of(queue.into(), count, slots);
        }
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.queues.grow(entries)?;
        self.ghosts.grow(main_share(entries))
    }

    fn bytes(&self) -> usize {
        self.queues.bytes() + self.ghosts.bytes()
    }
}
