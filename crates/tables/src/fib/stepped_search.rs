//! Stepped search: the longest prefixes of a batch of names, a step at a time.
//!
//! The caller drives the search through the [`steps`] of a batch and does its own work between them. So the
//! fetches of one group of names hide behind the work on others:
//!
//! ```text
//!  step   ready       begin            look                                   finish
//!  0      group 0
//!  2      group 2     group 0, its
//!                     buckets fetched
//!  4      group 4     group 2          group 0: tags; entries fetched, and
//!                                      the next buckets of those that go on
//!  …                                                                          what still goes on
//! ```
//!
//! The search fetches only the buckets that a scalar search would read, those of chains included. Hashing
//! one group at a time hides fetches: it gives 9.3 to 10.5 million look-ups per second. If all 64 names are
//! hashed first, it gives 8.7 to 9.7 (13.5 million prefixes, three runs in turn).
//!
// N.B. Zen 4 drops prefetches once some 22 lines are under way: of 24 to 64 requested at a time 8 to 23 %
// were still in memory when read. A prefetch of a page that is not in the TLB stops the processor until the
// page walk is done, unless other walks are under way: 130 cycles for the index, 490 for the entries, on a
// virtual machine whose host has base pages. Hence groups: few enough lines to be kept, prefetched in loops
// of their own.
// 13.5 million prefixes, cycles per look-up without hashing, variants in turn. One run: each line as soon
// as it is known 269; groups of 4, 5, 6, 7, 8, 10, 12, 13: 211, 207, 202, 204, 204, 202, 207, 217. Other
// runs: as soon as known 259, entries after the whole batch 292; groups of 8 205, of 16 236. With hashing:
// one name at a time through stages 4 apart 278, groups of 4 269.
//! For the cost see [`super`]. Limit: a search takes at most [`MAX_SEARCHED_NAMES`] names at once. Writers:
//! none.

use super::bucket_view::{BucketView, Progress, Search};
use super::entries::FibEntryRef;
use super::hint::{FibHint, FibMatch, Hint};
use crate::name_hash::NameHashes;
use arrayvec::ArrayVec;
use std::ops::Range;

/// The most names of one search.
pub const MAX_SEARCHED_NAMES: usize = 64;

/// Names whose lines are prefetched together.
const GROUP_NAMES: usize = 8;

/// Groups between prefetching a group's first buckets and looking at them.
const GROUPS_AHEAD: usize = 2;

/// Groups between making a group ready and prefetching its first buckets.
const GROUPS_READY: usize = 2;

/// What to do next, each for the names of one group or of none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchStep {
    /// Names for the caller to hash; it may also prefetch what tells whether they are to be looked up.
    pub ready: Range<usize>,
    /// For [`SteppedSearch::begin`].
    pub begin: Range<usize>,
    /// For [`SteppedSearch::look`].
    pub look: Range<usize>,
}

/// The steps of a search for `count` names.
#[inline(always)]
pub fn steps(count: usize) -> impl Iterator<Item = SearchStep> {
    let group = move |number: Option<usize>| {
        let group = |number: usize| count.min(number * GROUP_NAMES)..count.min((number + 1) * GROUP_NAMES);
        number.map_or(0..0, group)
    };
    let groups = count.div_ceil(GROUP_NAMES);
    (0..groups + GROUPS_READY + GROUPS_AHEAD).map(move |step| SearchStep {
        ready: group(Some(step)),
        begin: group(step.checked_sub(GROUPS_READY)),
        look: group(step.checked_sub(GROUPS_READY + GROUPS_AHEAD)),
    })
}

/// A search for up to [`MAX_SEARCHED_NAMES`] names, which it is given in order. Each call gets the hashes of all names
/// that are ready.
///
/// N.B. No list is filled before it is used: that took 24 instructions per name in batches of 16.
pub struct SteppedSearch<'a> {
    view: BucketView<'a>,
    /// The first search of each name; `None` if it is not wanted or the FIB is too empty.
    begun: ArrayVec<Option<Search>, MAX_SEARCHED_NAMES>,
    /// Searches that go on. Each name has one at most.
    waiting: ArrayVec<Search, MAX_SEARCHED_NAMES>,
    /// The group that was looked at last: the rest of its entries is still to be fetched.
    looked_at: Range<usize>,
    found: ArrayVec<Option<FibHint<'a>>, MAX_SEARCHED_NAMES>,
}

impl<'a> SteppedSearch<'a> {
    #[inline(always)]
    pub(super) fn new(view: BucketView<'a>) -> Self {
        Self { view, begun: ArrayVec::new(), waiting: ArrayVec::new(), looked_at: 0..0, found: ArrayVec::new() }
    }

    /// Begins to fetch the first bucket of each of `names` that is wanted: its bit in `wanted` is set.
    #[inline(always)]
    pub fn begin(&mut self, names: Range<usize>, wanted: u64, hashes: &[NameHashes]) {
        for name in names.clone() {
            let is_wanted = wanted >> name & 1 != 0;
            self.begun.push(if is_wanted { self.view.first_search(name, &hashes[name]) } else { None });
        }
        for search in self.begun[names].iter().flatten() {
            self.view.index.prefetch_step(search.walk);
        }
    }

    /// Looks at the first buckets of `names`, and begins to fetch the lines that they lead to.
    #[inline(always)]
    pub fn look(&mut self, names: Range<usize>, hashes: &[NameHashes]) {
        if names.is_empty() {
            return;
        }
        let waited = self.waiting.len();
        for name in names.clone() {
            // N.B. Not by `map_or`: its closure became a call of its own.
            let progress = match self.begun[name] {
                Some(search) => self.view.advance(search, &hashes[name]),
                None => Progress::Ended,
            };
            self.found.push(match progress {
                Progress::Found(hint) => Some(hint),
                Progress::GoesOn(search) => {
                    self.waiting.push(search);
                    None
                }
                Progress::Ended => None,
            });
        }
        for (entry, _) in entries(&self.found[names.clone()]) {
            entry.prefetch_first();
        }
        self.prefetch_buckets(waited..self.waiting.len());
        // A group later: now the page is known and fewer lines are under way.
        self.prefetch_rest();
        self.looked_at = names;
        self.advance_waiting(waited, hashes);
    }

    /// Ends the searches that still go on.
    #[inline(always)]
    pub fn finish(&mut self, hashes: &[NameHashes]) {
        self.prefetch_rest();
        while !self.waiting.is_empty() {
            self.advance_waiting(self.waiting.len(), hashes);
        }
    }

    /// What was found for each name. `None`: the name is not wanted, or no prefix of it is in the FIB.
    #[inline(always)]
    pub fn found(&self) -> &[Option<FibHint<'a>>] {
        &self.found
    }

    /// Begins to fetch the rest of the entries of the group that was looked at last.
    #[inline(always)]
    fn prefetch_rest(&self) {
        for (entry, prefix_bytes) in entries(&self.found[self.looked_at.clone()]) {
            entry.prefetch_rest(self.view.shared.entries.expected_bytes(prefix_bytes));
        }
    }

    /// Begins to fetch the next buckets of these waiting searches.
    #[inline(always)]
    fn prefetch_buckets(&self, waiting: Range<usize>) {
        for search in &self.waiting[waiting] {
            self.view.index.prefetch_step(search.walk);
        }
    }

    /// Continues the first `count` of the waiting searches.
    #[inline(always)]
    fn advance_waiting(&mut self, count: usize, hashes: &[NameHashes]) {
        let mut kept = 0;
        for place in 0..count {
            let search = self.waiting[place];
            let name = usize::from(search.name);
            match self.view.advance(search, &hashes[name]) {
                Progress::Found(hint) => {
                    self.found[name] = Some(hint);
                    self.view.prefetch_entry(hint);
                }
                Progress::GoesOn(search) => {
                    self.waiting[kept] = search;
                    kept += 1;
                }
                Progress::Ended => {}
            }
        }
        self.prefetch_buckets(0..kept);
        self.waiting.drain(kept..count);
    }
}

/// The entries of these candidates, and the bytes of their names.
#[inline(always)]
fn entries<'a>(candidates: &[Option<FibHint<'a>>]) -> impl Iterator<Item = (FibEntryRef<'a>, usize)> {
    candidates.iter().flatten().filter_map(|hint| match hint.0 {
        Hint::Entry { entry, prefix_bytes, .. } => Some((entry, usize::from(prefix_bytes))),
        Hint::Resolved { .. } => None,
    })
}

/// [`BucketView::longest_prefix_match`] of every name of a batch; the fetches of one name hide behind the
/// work on the others.
///
/// # Panics
/// If `hashes` or `out` are shorter than `names`.
pub(super) fn longest_prefix_match_batch<'a>(
    view: BucketView<'a>,
    names: &[&[u8]],
    hashes: &[NameHashes],
    out: &mut [Option<FibMatch<'a>>],
) {
    assert!(out.len() >= names.len() && hashes.len() >= names.len(), "hashes and one result per name");
    let parts =
        names.chunks(MAX_SEARCHED_NAMES).zip(hashes.chunks(MAX_SEARCHED_NAMES)).zip(out.chunks_mut(MAX_SEARCHED_NAMES));
    for ((names, hashes), out) in parts {
        let mut search = SteppedSearch::new(view);
        for step in steps(names.len()) {
            search.begin(step.begin, u64::MAX, hashes);
            search.look(step.look, hashes);
        }
        search.finish(hashes);
        for (((name_value, hashes), candidate), found) in names.iter().zip(hashes).zip(search.found()).zip(out) {
            *found = candidate.and_then(|hint| view.verify(name_value, hashes, hint));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_ready_then_begun_then_looked_at() {
        for count in [0, 1, 8, 9, 63, 64] {
            let [mut ready, mut begun, mut looked_at] = [0; 3];
            for step in steps(count) {
                assert_eq!((step.ready.start, step.begin.start, step.look.start), (ready, begun, looked_at));
                (ready, begun, looked_at) = (step.ready.end, step.begin.end, step.look.end);
                assert!(ready >= begun && begun >= looked_at);
            }
            assert_eq!((ready, begun, looked_at), (count, count, count));
        }
    }
}
