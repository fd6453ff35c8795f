//! LFU: evicts the entry with the fewest requests; among equals, the least recently used.
//!
//! Source: Yuan15 §6.1.3 (a counter with each entry); Takemasa19 §5.4.2 draws it as the best of Fig. 5.6. Each use
//! adds one to a count, so an entry moves only to the next list, and nothing is sorted (Matani, Shah and Mitra 2010,
//! "An O(1) algorithm for implementing the LFU cache eviction scheme").
//!
//! There are two policies, which differ in the first count of a newcomer:
//!
//! | name | what is counted | first count of a newcomer |
//! | --- | --- | --- |
//! | `lfu`, [`WhileStored`] | uses since the entry was stored | the Interests that it answers, mostly 1 |
//! | `perfect-lfu`, [`RequestHistory`] | requests of every name, stored or not | all so far for its name |
//!
//! The paper does not state which of them is its LFU. It must be the second. On the paper's web workload (10^7 names, a
//! store of 10^5, α = 0.8) the first reaches 0.342, below the paper's TinyLFU and ARC. Only counts that outlive the
//! entry get near the optimum 0.376 that the paper's LFU reaches.
//!
//! `perfect-lfu` is exact LFU with full history, but for two limits. Counts are exact for 16 names per entry of the
//! store; of more names, those requested least are forgotten ([`super::request_history`]). The lab makes the history as
//! long as there are names. And counts end at 65,535.
//!
//! ```text
//! ends:   | of uses 0 | 1 | 2 | … | 65535 |    one queue for each count, least recently used first
//! queues: unrolled, as those of LRU, all of the same blocks
//! in use: a bitmap of bitmaps: one bit for each count with a queue that is not empty
//! ```
//!
//! Counts do not age: a name that was once requested often stays when it is no longer requested. That is LFU; where
//! popularity changes, use TinyLFU. Entries with the last count, 65,535, are evicted among themselves by LRU.
//!
//! Cost: a hit writes 1 line of the queue that the entry leaves, 1 (in cache for small counts) of the queue that it
//! joins, and the ends of both. Finding the victim reads 3 words of the bitmap and 1 line. `perfect-lfu` adds 1 line
//! for each request.
//! Bytes: an entry takes 5 for the queues at best, at worst 128, and `perfect-lfu` 205 more; all counts take 520 KiB.
//! Full: the policy is made for a number of entries; the owner adds no more. Writers: the owner.

use super::number_set::NumberSet;
use super::request_history::RequestHistory;
use namewire_tables::cs_policy::{Eviction, Marks, Newcomer, RemovalReason};
use namewire_tables::eviction_queue::{Ends, QueueBlocks};
use namewire_tables::pages::{PageArray, PageSize};
use std::io;

/// Counts are below this.
const COUNTS: u32 = 1 << 16;

/// The first count of a newcomer.
pub trait FirstCount {
    /// See [`Eviction::request`].
    fn request(&mut self, hash: u64);
    /// See [`Eviction::prefetch_request`].
    fn prefetch(&self, hash: u64);
    /// The count of a newcomer.
    fn of(&self, newcomer: &Newcomer) -> u16;
    /// Follows the number of entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then the policy works as before.
    fn grow(&mut self, entries: u32) -> io::Result<()>;
    /// Bytes of memory mapped for the counts.
    fn bytes(&self) -> usize;
}

/// The Interests that the newcomer answers: earlier requests are not known.
#[derive(Debug)]
pub struct WhileStored;

impl FirstCount for WhileStored {
    #[inline]
    fn request(&mut self, _: u64) {}

    #[inline]
    fn prefetch(&self, _: u64) {}

    #[inline]
    fn of(&self, newcomer: &Newcomer) -> u16 {
        newcomer.requests.min(COUNTS - 1) as u16
    }

    fn grow(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> usize {
        0
    }
}

impl FirstCount for RequestHistory {
    #[inline]
    fn request(&mut self, hash: u64) {
        self.count(hash);
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        RequestHistory::prefetch(self, hash);
    }

    /// At least the Interests that the newcomer answers, even if its requests were not counted.
    #[inline]
    fn of(&self, newcomer: &Newcomer) -> u16 {
        self.requests(newcomer.hash).max(WhileStored.of(newcomer))
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        RequestHistory::grow(self, entries)
    }

    fn bytes(&self) -> usize {
        RequestHistory::bytes(self)
    }
}

/// A queue for each count; see the module. The count of an entry is
/// [`PolicyMark::other`](namewire_tables::cs_policy::PolicyMark::other).
pub struct Lfu<F> {
    queues: QueueBlocks,
    /// The queue of each count; meaningless if the count is not in use.
    ends: PageArray<Ends>,
    in_use: NumberSet,
    first_count: F,
}

impl<F: FirstCount> Lfu<F> {
    /// A policy for this many entries; so is `first_count`.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, first_count: F, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            queues: QueueBlocks::new(entries, queues_for(entries), pages)?,
            ends: PageArray::zeroed(COUNTS as usize, pages)?,
            in_use: NumberSet::new(COUNTS, pages)?,
            first_count,
        })
    }

    /// Adds an entry to the queue of a count; returns its place there.
    #[inline]
    fn add(&mut self, count: u16, slot: u32) -> u32 {
        let ends = &mut self.ends[usize::from(count)];
        if self.in_use.insert(count.into()) {
            *ends = Ends::NONE;
        }
        self.queues.push_newest(ends, slot)
    }

    #[inline]
    fn take(&mut self, count: u16, place: u32) {
        let ends = &mut self.ends[usize::from(count)];
        self.queues.remove(ends, place);
        if self.queues.release_if_empty(ends) {
            self.in_use.remove(count.into());
        }
    }

    /// The queue of the least count in use.
    #[inline]
    fn first_queue(&self) -> Option<Ends> {
        self.in_use.first_from(0).map(|count| self.ends[count as usize])
    }
}

/// Enough queues: no queue in use is empty.
fn queues_for(entries: u32) -> u32 {
    entries.min(COUNTS)
}

impl<F: FirstCount> Eviction for Lfu<F> {
    #[inline]
    fn request(&mut self, hash: u64) {
        self.first_count.request(hash);
    }

    #[inline]
    fn prefetch_request(&self, hash: u64) {
        self.first_count.prefetch(hash);
    }

    #[inline]
    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        let mark = marks.mark_mut(slot);
        self.take(mark.other, mark.place);
        mark.other = mark.other.saturating_add(1);
        mark.place = self.add(mark.other, slot);
    }

    #[inline]
    fn victim(&mut self, _: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        let place = self.queues.oldest_place(self.first_queue()?)?;
        Some(self.queues.get(place))
    }

    #[inline]
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, newcomer: &Newcomer) {
        let count = self.first_count.of(newcomer);
        let mark = marks.mark_mut(slot);
        (mark.other, mark.place) = (count, self.add(count, slot));
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        let mark = marks.mark(slot);
        self.take(mark.other, mark.place);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        if let Some(queue) = self.first_queue() {
            self.queues.upcoming(queue, count, slots);
        }
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.queues.grow(entries, queues_for(entries))?;
        self.first_count.grow(entries)
    }

    fn bytes(&self) -> usize {
        self.queues.bytes() + self.ends.mapped_bytes() + self.in_use.bytes() + self.first_count.bytes()
    }
}
