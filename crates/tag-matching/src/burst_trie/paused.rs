//! Paused: a search for one query that stops after a number of steps and goes on later.
//!
//! The table may change meanwhile; the search finds every descriptor that is in the table from the first step to the
//! last. But blocks that it has seen must not be reused, so the reader must keep the table pinned for this time
//! ([`BurstTrieReader::hold`](super::BurstTrieReader::hold)).
//!
//! Layout: some 8 kB, which are used again for the next search.

use super::{All, BurstTrieView, Largest, Search};
use crate::{Entry, permutation::Key};
use namewire_packet::descriptor::Descriptor;
use std::{fmt, ops::ControlFlow, task::Poll};

/// A search that has begun and not ended; none at first.
#[derive(Default)]
pub struct PausedSearch {
    all: Option<Box<Search<(), 1>>>,
    largest: Option<Box<Search<Key, 1>>>,
    /// What the search for the largest subset has found.
    wanted: u8,
    best: Option<Entry>,
    is_under_way: bool,
}

impl PausedSearch {
    /// True from the first step until the search ends.
    pub fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Gives the search up.
    pub fn give_up(&mut self) {
        self.is_under_way = false;
    }
}

impl fmt::Debug for PausedSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PausedSearch").field("is_under_way", &self.is_under_way).finish_non_exhaustive()
    }
}

/// The search in its place: the one that is under way, or a new one.
fn begun<P: Copy + Default>(
    place: &mut Option<Box<Search<P, 1>>>,
    is_under_way: bool,
    new: impl FnOnce() -> Search<P, 1>,
) -> &mut Search<P, 1> {
    match place {
        Some(search) => {
            if !is_under_way {
                **search = new();
            }
            search
        }
        None => place.insert(Box::new(new())),
    }
}

impl BurstTrieView<'_> {
    /// As [`find_all`](crate::SubsetTable::find_all), but makes about so many steps, which it takes from
    /// `steps`. If it is not over then, it goes on with the next call, which must be for the same query and table.
    pub fn find_all_within(
        &self,
        query: &Descriptor,
        paused: &mut PausedSearch,
        steps: &mut usize,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Poll<()> {
        let new = || Search::new(self.shared, std::slice::from_ref(query));
        let search = begun(&mut paused.all, paused.is_under_way, new);
        let is_over = search.run(self.shared, &mut All(|_, value| visit(value)), steps);
        paused.is_under_way = !is_over;
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }

    /// As [`find_largest_of`](crate::SubsetTable::find_largest_of), in steps as
    /// [`BurstTrieView::find_all_within`].
    pub fn find_largest_within(
        &self,
        query: &Descriptor,
        paused: &mut PausedSearch,
        steps: &mut usize,
        mut accepts: impl FnMut(u32) -> bool,
    ) -> Poll<Option<Entry>> {
        if !paused.is_under_way {
            (paused.wanted, paused.best) = (0, None);
        }
        let mut goal = Largest::<_, 1>::new(&self.shared.order, |_, value| accepts(value));
        (goal.wanted, goal.best) = ([paused.wanted], [paused.best]);
        let new = || Search::new(self.shared, std::slice::from_ref(query));
        let search = begun(&mut paused.largest, paused.is_under_way, new);
        let is_over = search.run(self.shared, &mut goal, steps);
        (paused.wanted, paused.best, paused.is_under_way) = (goal.wanted[0], goal.best[0], !is_over);
        if is_over { Poll::Ready(paused.best) } else { Poll::Pending }
    }
}
