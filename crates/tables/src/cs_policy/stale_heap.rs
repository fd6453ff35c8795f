//! Stale heap: which entry became stale first?
//!
//! This is a heap with four children to a node (Johnson 1975). Members are numbers of the owner. When a
//! member moves, the heap tells the owner its new place. So the owner can remove a member from the middle.
//!
//! ```text
//! entry, 16 bytes, four to a line: | stale from (ns) 8 | order 4 | member 4 |
//! children of i: 4i + 1 … 4i + 4
//! ```
//!
//! Cost: adding the member that becomes stale last writes 1-2 lines. Another addition or a removal costs at
//! most log₄(entries) × 1-2 lines, plus the owner's write per moved member. Bytes: an entry takes 16. Full:
//! the heap is made for a number of entries; the owner adds no more.

use crate::pages::{PageArray, PageSize};
use bytemuck::Zeroable;
use std::io;

const CHILDREN: usize = 4;

/// A member, and the keys that it is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable)]
#[repr(C)]
pub(super) struct StaleFrom {
    pub(super) stale_from_ns: u64,
    /// Counts up and wraps: of members that become stale in the same nanosecond the earlier is first.
    pub(super) order: u32,
    pub(super) member: u32,
}

const _: () = assert!(size_of::<StaleFrom>() == 16);

impl StaleFrom {
    fn is_before(&self, other: &Self) -> bool {
        let earlier = || (self.order.wrapping_sub(other.order) as i32) < 0;
        self.stale_from_ns < other.stale_from_ns || self.stale_from_ns == other.stale_from_ns && earlier()
    }
}

pub(super) struct StaleHeap {
    entries: PageArray<StaleFrom>,
    len: usize,
}

impl StaleHeap {
    pub(super) fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self { entries: PageArray::zeroed(entries as usize, pages)?, len: 0 })
    }

    pub(super) fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.entries.grow(entries as usize)
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.mapped_bytes()
    }

    /// Every member; the first is the one that becomes, or became, stale first.
    pub(super) fn entries(&self) -> &[StaleFrom] {
        &self.entries[..self.len]
    }

    /// Adds a member. `placed` is told the place of every member that gets a new one.
    pub(super) fn push(&mut self, entry: StaleFrom, placed: impl FnMut(u32, u32)) {
        self.len += 1;
        self.rise(self.len - 1, entry, placed);
    }

    /// Removes the member at `place`.
    pub(super) fn remove(&mut self, place: u32, placed: impl FnMut(u32, u32)) {
        let hole = place as usize;
        self.len -= 1;
        let last = self.entries[self.len];
        if hole == self.len {
            return;
        }
        if hole > 0 && last.is_before(&self.entries[(hole - 1) / CHILDREN]) {
            self.rise(hole, last, placed);
        } else {
            self.sink(hole, last, placed);
        }
    }

    fn rise(&mut self, mut hole: usize, entry: StaleFrom, mut placed: impl FnMut(u32, u32)) {
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if !entry.is_before(&self.entries[parent]) {
                break;
            }
            self.put(hole, self.entries[parent], &mut placed);
            hole = parent;
        }
        self.put(hole, entry, &mut placed);
    }

    fn sink(&mut self, mut hole: usize, entry: StaleFrom, mut placed: impl FnMut(u32, u32)) {
        loop {
            let children = CHILDREN * hole + 1..(CHILDREN * hole + 1 + CHILDREN).min(self.len);
            let first = children.reduce(|a, b| if self.entries[b].is_before(&self.entries[a]) { b } else { a });
            match first.filter(|&child| self.entries[child].is_before(&entry)) {
                Some(child) => {
                    self.put(hole, self.entries[child], &mut placed);
                    hole = child;
                }
                None => return self.put(hole, entry, &mut placed),
            }
        }
    }

    fn put(&mut self, place: usize, entry: StaleFrom, placed: &mut impl FnMut(u32, u32)) {
        self.entries[place] = entry;
        placed(entry.member, place as u32);
    }
}
