//! LFU: the entry that the fewest Interests asked for goes first, of equal ones the least
//! recently used.
//!
//! Source: Yuan15 §6.1.3 (a counter with each entry); Takemasa19 §5.4.2 draws it as the best of
//! Fig. 5.6. That Interests take one use each makes every step one of a list to the next, so that
//! nothing is sorted (Matani, Shah and Mitra 2010, "An O(1) algorithm for implementing the LFU
//! cache eviction scheme").
//!
//! There are two, which differ in the count that a newcomer begins with:
//!
//! | name | counted are | a newcomer begins with |
//! | --- | --- | --- |
//! | `lfu`, [`WhileStored`] | uses since the entry came | the Interests that it answers, mostly 1 |
//! | `perfect-lfu`, [`RequestHistory`] | requests of every name, stored or not | all so far for its name, estimated |
//!
//! The paper does not say which its LFU is. It must be the second: on its web workload (10^7
//! names, a store of 10^5, α = 0.8) the first comes to 0.342, below the paper's TinyLFU and ARC,
//! and only counts that outlive the entry come near the optimum 0.376 that the paper's LFU reaches.
//!
//! ```text
//! ends:   | of uses 0 | 1 | 2 | … | 65535 |    one queue for each count, least recently used first
//! queues: unrolled, as those of LRU, all of the same blocks
//! in use: the counts whose queue is not empty, a bitmap of bitmaps
//! ```
//!
//! Nothing ages: a name that was asked for often stays when nobody asks any more. That is what
//! LFU is; where popularity changes, take TinyLFU. Counts end at 65,535; entries that have come
//! so far are LRU among themselves.
//!
//! Cost: a hit writes 1 line of the queue that the entry leaves, 1 (in cache for small counts) of
//! the one that it joins, and the ends of both; to find the victim 3 words of the bitmap and 1 line.
//! `perfect-lfu` adds 1 line for each request. Bytes per entry: 5 of the queues at best, at worst
//! 128; 520 KiB for all; `perfect-lfu` 64 more. Full: made for a number of entries; the owner
//! adds no more. Who may write: the owner.

use super::number_set::NumberSet;
use super::request_history::RequestHistory;
use super::{Eviction, Leaving, Marks, Newcomer};
use crate::eviction_queue::{Ends, QueueBlocks};
use crate::pages::{PageArray, PageSize};
use std::io;

/// Counts are below this.
const COUNTS: u32 = 1 << 16;

/// What a newcomer's count begins with.
pub trait FirstCount: Sized {
    /// For a store of so many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    fn new(entries: u32, pages: PageSize) -> io::Result<Self>;
    /// See [`Eviction::request`].
    fn request(&mut self, hash: u64);
    /// See [`Eviction::prefetch_request`].
    fn prefetch(&self, hash: u64);
    /// The count of a newcomer.
    fn of(&self, newcomer: &Newcomer) -> u16;
    /// Follows the number of entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory; then nothing has changed that matters.
    fn grow(&mut self, entries: u32) -> io::Result<()>;
    /// Octets of memory that were mapped for it.
    fn bytes(&self) -> usize;
}

/// The Interests that the newcomer answers: what was before is not known.
#[derive(Debug)]
pub struct WhileStored;

impl FirstCount for WhileStored {
    fn new(_: u32, _: PageSize) -> io::Result<Self> {
        Ok(Self)
    }

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
    fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        RequestHistory::new(entries, pages)
    }

    #[inline]
    fn request(&mut self, hash: u64) {
        self.count(hash);
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        RequestHistory::prefetch(self, hash);
    }

    /// No less than what the newcomer answers, if requests are not said.
    #[inline]
    fn of(&self, newcomer: &Newcomer) -> u16 {
        self.estimate(newcomer.hash).max(WhileStored.of(newcomer))
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        RequestHistory::grow(self, entries)
    }

    fn bytes(&self) -> usize {
        RequestHistory::bytes(self)
    }
}

/// A queue for each count; see the module. The count of an entry is
/// [`PolicyMark::other`](super::PolicyMark::other).
pub struct Lfu<F> {
    queues: QueueBlocks,
    /// The queue of each count; what is there if the count is not in use means nothing.
    ends: PageArray<Ends>,
    in_use: NumberSet,
    first_count: F,
}

impl<F: FirstCount> Lfu<F> {
    /// For so many entries at once.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            queues: QueueBlocks::new(entries, queues_for(entries), pages)?,
            ends: PageArray::zeroed(COUNTS as usize, pages)?,
            in_use: NumberSet::new(COUNTS, pages)?,
            first_count: F::new(entries, pages)?,
        })
    }

    /// Gives the place of the entry in the queue of a count.
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

    /// Of the least count.
    #[inline]
    fn first_queue(&self) -> Option<Ends> {
        self.in_use.first_from(0).map(|count| self.ends[count as usize])
    }
}

/// No queue in use is empty.
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
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: Leaving) {
        let mark = marks.mark(slot);
        self.take(mark.other, mark.place);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        if let Some(queue) = self.first_queue() {
            slots.extend(self.queues.iter(queue).take(count));
            self.queues.prefetch(queue, 2 * count);
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
