//! Stepped search: the longest prefixes of a batch of names, a step at a time.
//!
//! The caller drives the search through the [`steps`] of a batch and does its own work between them. So the
//! fetches of one group of names hide behind the work on others:
//!
//! ```text
//!  step   ready     begin     step                                                    finish
//!  0      group 0
//!  2      group 2   group 0   group 0: first buckets fetched
//!  4      group 4   group 2   group 2: first buckets fetched; group 0: tags, entries
//!                             fetched, and the next buckets of those that go on
//!  …                                                                                  the rest
//! ```
//!
//! A name that is not begun costs nothing.
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

use super::bucket_view::{Begin, BucketView, Progress, Search};
use super::config::TOGETHER_COMPONENTS;
use super::flow_cache::{FlowCache, FlowPlace, Use};
use super::hint::{Candidate, FibHint, FibMatch};
use crate::name_hash::NameHashes;
use arrayvec::ArrayVec;
use std::ops::Range;

/// The most names of one search.
pub const MAX_SEARCHED_NAMES: usize = 64;

/// Names whose lines are prefetched together.
const GROUP_NAMES: usize = 8;

/// Steps between prefetching a name's first bucket and looking at it.
const STEPS_AHEAD: usize = 2;

/// Groups between making a group ready and beginning its search.
const GROUPS_READY: usize = 2;

/// What to do before the next [`SteppedSearch::step`], each for the names of one group or of none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchStep {
    /// Names for the caller to hash; it may also prefetch what tells whether they are to be looked up.
    pub ready: Range<usize>,
    /// Names for [`SteppedSearch::begin`].
    pub begin: Range<usize>,
}

/// The steps of a search for `count` names.
#[inline(always)]
pub fn steps(count: usize) -> impl Iterator<Item = SearchStep> {
    let (mut ready, mut begun) = (0, 0);
    std::iter::from_fn(move || {
        if begun == count {
            return None;
        }
        let (was_ready, was_begun) = (ready, begun);
        ready = count.min(ready + GROUP_NAMES);
        if ready == count || ready > begun + GROUPS_READY * GROUP_NAMES {
            begun = count.min(begun + GROUP_NAMES);
        }
        Some(SearchStep { ready: was_ready..ready, begin: was_begun..begun })
    })
}

/// A search for up to [`MAX_SEARCHED_NAMES`] names. Each call gets the hashes of all names that are ready.
///
/// N.B. No list is filled before it is used: that took 24 instructions per name in batches of 16.
pub struct SteppedSearch<'a> {
    view: BucketView<'a>,
    begun: ArrayVec<Begin<'a>, MAX_SEARCHED_NAMES>,
    /// How many of `begun` were looked at.
    looked_at: usize,
    /// How many of `begun` there were before each of the last steps, the oldest first.
    before_steps: [usize; STEPS_AHEAD],
    /// Searches that go on. Each name has one at most.
    waiting: ArrayVec<Search<'a>, MAX_SEARCHED_NAMES>,
    found: ArrayVec<Found<'a>, MAX_SEARCHED_NAMES>,
    /// Those of `found` whose entries are fetched in part.
    half_fetched: Range<usize>,
    /// That of the FIB, read when the search was made.
    version: Option<u64>,
    notes_flows: bool,
    /// By name: the place of its flow.
    places: ArrayVec<Option<FlowPlace>, MAX_SEARCHED_NAMES>,
}

/// What is known of a name's flow.
#[derive(Clone, Copy, Debug)]
pub enum Flow<'a> {
    /// The answer, unless [`SteppedSearch::found`] has another. The name must not be begun.
    Known(FibHint<'a>),
    /// Nothing. It came before, so [`SteppedSearch::note_flow`] should be called after the search.
    ToBeNoted,
    /// Nothing.
    Unknown,
}

struct Found<'a> {
    candidate: Candidate<'a>,
    name: u32,
}

impl<'a> SteppedSearch<'a> {
    #[inline(always)]
    pub(super) fn new(view: BucketView<'a>) -> Self {
        Self {
            version: view.shared.version.read(),
            notes_flows: false,
            places: ArrayVec::new(),
            view,
            begun: ArrayVec::new(),
            looked_at: 0,
            before_steps: [0; STEPS_AHEAD],
            waiting: ArrayVec::new(),
            found: ArrayVec::new(),
            half_fetched: 0..0,
        }
    }

    /// Lets the search use the flows of this cache, if this FIB searches its lengths together.
    #[inline(always)]
    pub(super) fn use_flows(&mut self, flows: &mut FlowCache) {
        let is_together = self.view.shared.together_components == TOGETHER_COMPONENTS;
        match flows.is_used_by_next(self.version) {
            Use::All if is_together => self.notes_flows = true,
            Use::Recall if is_together => {}
            _ => self.version = None,
        }
    }

    /// Begins to fetch the flows of the names of [`SearchStep::ready`], after they were hashed: of those whose bit is
    /// set in `wanted`.
    #[inline(always)]
    pub fn fetch_flows(&mut self, ready: Range<usize>, wanted: u64, hashes: &[NameHashes], flows: &mut FlowCache) {
        if self.version.is_some() && !ready.is_empty() {
            self.fetch_ready(ready, wanted, hashes, flows);
        }
    }

    #[inline(never)]
    fn fetch_ready(&mut self, ready: Range<usize>, wanted: u64, hashes: &[NameHashes], flows: &mut FlowCache) {
        for name in ready {
            let number = if wanted >> name & 1 != 0 { hashes[name].parent_number() } else { None };
            self.places.push(number.and_then(|number| flows.fetch(number)));
        }
    }

    /// Looks a name up in a cache, before [`SteppedSearch::begin`]: what its flow knows need not be searched for. Its
    /// flow was fetched by [`SteppedSearch::fetch_flows`].
    #[inline(always)]
    pub fn recall(&mut self, name: usize, hashes: &NameHashes, flows: &mut FlowCache) -> Flow<'a> {
        let Some(version) = self.version else { return Flow::Unknown };
        let Some(&Some(place)) = self.places.get(name) else { return Flow::Unknown };
        match self.recall_at(place, version, name, hashes, flows) {
            Some(found) => Flow::Known(found.known()),
            None if self.notes_flows => Flow::ToBeNoted,
            None => Flow::Unknown,
        }
    }

    /// N.B. Not inlined, for registers of its own.
    #[inline(never)]
    fn recall_at(
        &mut self,
        place: FlowPlace,
        version: u64,
        name: usize,
        hashes: &NameHashes,
        flows: &mut FlowCache,
    ) -> Option<Candidate<'a>> {
        let flow = flows.recall(place, version, hashes.parent())?;
        if let Some(begin) = self.view.begin_whole(name, hashes, flow) {
            self.begun.push(begin);
        }
        Some(self.view.match_of_flow(flow))
    }

    /// Notes what this search found for a name, for [`Flow::ToBeNoted`].
    #[cold]
    pub fn note_flow(&self, flows: &mut FlowCache, hashes: &NameHashes, found: FibHint<'a>) {
        if let Some(version) = self.version {
            self.view.note_flow(flows, version, hashes, found);
        }
    }

    /// Begins to look a name up, which must be a new one. The next step fetches its first bucket.
    ///
    /// # Panics
    /// If there are more than [`MAX_SEARCHED_NAMES`].
    #[inline(always)]
    pub fn begin(&mut self, name: usize, hashes: &NameHashes) {
        if let Some(begin) = self.view.begin(name, hashes) {
            self.begun.push(begin);
        }
    }

    /// Begins to fetch the first buckets of the names begun since the last step. Looks at those fetched some steps ago,
    /// and begins to fetch the lines that they lead to.
    #[inline(always)]
    pub fn step(&mut self, hashes: &[NameHashes]) {
        let [ready, last] = self.before_steps;
        for begin in &self.begun[last..] {
            begin.bucket.prefetch();
        }
        self.before_steps = [last, self.begun.len()];
        if ready > self.looked_at {
            self.look(ready, hashes);
        }
    }

    /// Looks at the first buckets of `begun` up to `end`.
    ///
    /// N.B. Not inlined, for registers of its own. Within a function of the engine it took a third more instructions.
    #[inline(never)]
    fn look(&mut self, end: usize, hashes: &[NameHashes]) {
        let (view, waited, found) = (self.view, self.waiting.len(), self.found.len());
        for &begin in &self.begun[self.looked_at..end] {
            match view.look_first(begin, &hashes[begin.name as usize]) {
                Progress::Found(candidate) => self.found.push(Found { candidate, name: begin.name }),
                Progress::GoesOn(search) => self.waiting.push(search),
                Progress::Ended => {}
            }
        }
        self.looked_at = end;
        let found = found..self.found.len();
        for found in &self.found[found.clone()] {
            found.candidate.entry.prefetch_first();
        }
        self.prefetch_buckets(waited..self.waiting.len());
        // A group later: now the page is known and fewer lines are under way.
        self.prefetch_rest();
        self.half_fetched = found;
        if waited > 0 {
            self.advance_waiting(waited, hashes);
        }
    }

    /// Ends all searches.
    #[inline(always)]
    pub fn finish(&mut self, hashes: &[NameHashes]) {
        if !self.begun.is_empty() {
            self.finish_begun(hashes);
        }
    }

    #[inline(never)]
    fn finish_begun(&mut self, hashes: &[NameHashes]) {
        while self.looked_at < self.begun.len() {
            self.step(hashes);
        }
        self.prefetch_rest();
        while !self.waiting.is_empty() {
            self.advance_waiting(self.waiting.len(), hashes);
        }
    }

    /// The names begun, each with what was found for it, in no particular order. A name is missing if no prefix of it
    /// is in the FIB, or only that which [`SteppedSearch::recall`] returned.
    #[inline(always)]
    pub fn found(&self) -> impl Iterator<Item = (usize, FibHint<'a>)> {
        self.found.iter().map(|found| (found.name as usize, found.candidate.into()))
    }

    /// Begins to fetch the rest of the entries of the names that were looked at last.
    #[inline(always)]
    fn prefetch_rest(&self) {
        for Found { candidate: Candidate { entry, prefix_bytes }, .. } in &self.found[self.half_fetched.clone()] {
            entry.prefetch_rest(self.view.shared.entries.expected_bytes(usize::from(*prefix_bytes)));
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
    #[inline(never)]
    fn advance_waiting(&mut self, count: usize, hashes: &[NameHashes]) {
        let mut kept = 0;
        for place in 0..count {
            let search = self.waiting[place];
            match self.view.advance(search, &hashes[usize::from(search.name)]) {
                Progress::Found(candidate) => {
                    self.view.prefetch_entry(candidate.into());
                    self.found.push(Found { candidate, name: search.name.into() });
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
            step.begin.for_each(|name| search.begin(name, &hashes[name]));
            search.step(hashes);
        }
        search.finish(hashes);
        out[..names.len()].fill(None);
        for (name, hint) in search.found() {
            out[name] = view.longest_prefix_match_hinted(names[name], &hashes[name], Some(hint));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_ready_before_it_is_begun() {
        for count in [0, 1, 8, 9, 63, 64] {
            let [mut ready, mut begun] = [0; 2];
            for step in steps(count) {
                assert_eq!((step.ready.start, step.begin.start), (ready, begun));
                (ready, begun) = (step.ready.end, step.begin.end);
                assert!(begun <= ready);
            }
            assert_eq!((ready, begun), (count, count));
        }
    }
}
