//! View: the house's table as one batch sees it, and the search for the longest prefix.
//!
//! [`HouseView::longest_prefix_match`] is the papers' "Naive" (Takemasa19 §4.4.1): one probe
//! per length, longest first. The other calls are its stages, for schedules that hide the
//! fetches of one name behind those of others (Takemasa19 §4.3; here a whole batch at a
//! time instead of a pair of packets):
//!
//! | stage | reads | call |
//! | --- | --- | --- |
//! | 1 | nothing | [`HouseView::prefetch_buckets`]: the bucket of all lengths, or one per length |
//! | 2 | buckets | [`HouseView::candidate`]: the longest length with an equal tag; [`HouseView::prefetch_entry`] |
//! | 3 | the entry | [`HouseView::longest_prefix_match_hinted`]: compares, goes on if it was chance |

use super::FibEntry;
use super::entries::FibEntryRef;
use super::look_up::{FibHint, FibMatch, Hint, NameBatch};
use super::markers::Markers;
use super::shared::{Index, IndexLook, Shared, key_hash};
use crate::name_hash::{HashKey, INLINE_COMPONENTS, NameHashes};
use crate::tag_index::{IndexKey, Step, Walk};
use std::ops::Range;

/// Names that [`HouseView::longest_prefix_match_batch`] takes through a stage before the next.
const BATCH_NAMES: usize = 64;

/// The most names of one [`HouseView::candidates`].
const MOST_CANDIDATES: usize = 64;

/// Names whose lines are asked for in one go; see [`HouseView::candidates`].
const GROUP_NAMES: usize = 8;

/// Groups whose first buckets are asked for before they are looked at.
const GROUPS_AHEAD: usize = 2;

/// Groups that are made ready before their first buckets are asked for.
const GROUPS_READY: usize = 2;

/// Names that are ready, and all wanted.
struct Ready<'n>(&'n [(&'n [u8], &'n NameHashes)]);

impl NameBatch for Ready<'_> {
    #[inline(always)]
    fn make_ready(&mut self, _: Range<usize>) {}

    #[inline(always)]
    fn is_wanted(&mut self, _: usize) -> bool {
        true
    }

    #[inline(always)]
    fn hashes(&self, name: usize) -> &NameHashes {
        self.0[name].1
    }

    #[inline(always)]
    fn name_value(&self, name: usize) -> &[u8] {
        self.0[name].0
    }
}

/// One name's search, at one bucket.
#[derive(Clone, Copy, Default)]
struct Search {
    walk: Walk,
    components: u16,
    name: u16,
}

/// What a look at a bucket brought.
enum Progress<'a> {
    Found(FibHint<'a>),
    /// To be continued, in a bucket that is to be prefetched.
    GoesOn(Search),
    /// No prefix of the name is in the FIB.
    Ended,
}

/// Searches that go on, oldest first; each name has one at most.
struct Waiting {
    ring: [Search; MOST_CANDIDATES],
    taken: usize,
    put: usize,
}

/// The table while nothing that it shows can go away: its owner does not write, or a reader is pinned.
#[derive(Clone, Copy)]
pub(super) struct HouseView<'a> {
    pub(super) shared: &'a Shared,
    pub(super) index: Index<'a>,
}

impl<'a> HouseView<'a> {
    /// The key for [`NameHashes::compute`].
    pub(super) fn key(&self) -> &'a HashKey {
        &self.shared.key
    }

    /// The entry of the longest prefix of `name_value`, the root included.
    ///
    /// `hashes` must be those of `name_value` under [`HouseView::key`].
    #[inline]
    pub(super) fn longest_prefix_match(&self, name_value: &[u8], hashes: &NameHashes) -> Option<FibMatch<'a>> {
        self.longest_from(hashes.components(), name_value, hashes)
    }

    /// [`HouseView::longest_prefix_match`] of every name of a batch, with the fetches of one
    /// name behind those of the others.
    ///
    /// # Panics
    /// If `out` is shorter than `names`.
    pub(super) fn longest_prefix_match_batch(&self, names: &[(&[u8], &NameHashes)], out: &mut [Option<FibMatch<'a>>]) {
        assert!(out.len() >= names.len(), "one result per name");
        for (names, out) in names.chunks(BATCH_NAMES).zip(out.chunks_mut(BATCH_NAMES)) {
            let mut candidates = [None; BATCH_NAMES];
            self.candidates(names.len(), &mut Ready(names), &mut candidates);
            for ((&(name_value, hashes), candidate), found) in names.iter().zip(&candidates).zip(out) {
                *found = candidate.and_then(|hint| self.verify(name_value, hashes, hint));
            }
        }
    }

    /// Stage 1: begins to fetch the bucket of every length that exists.
    #[inline]
    pub(super) fn prefetch_buckets(&self, hashes: &NameHashes) {
        let mut before = None;
        for components in self.shared.lengths.descending_from(hashes.components()) {
            let first = self.shared.index_key(hashes, components).first;
            if before.replace(first) != Some(first) {
                self.index.prefetch(first);
            }
        }
    }

    /// Stage 2: the entry that the longest prefix with an equal tag leads to, none touched
    /// and none compared. `None`: no prefix of the name is in the FIB.
    #[inline]
    pub(super) fn candidate(&self, hashes: &NameHashes) -> Option<FibHint<'a>> {
        let mut search = self.search(self.longest_length(hashes.components(), hashes)?, 0, hashes);
        loop {
            match self.advance(search, hashes) {
                Progress::Found(hint) => return Some(hint),
                Progress::GoesOn(next) => search = next,
                Progress::Ended => return None,
            }
        }
    }

    /// Stages 1 and 2 and the prefetch of the entries for `count` names. Only the buckets that
    /// a scalar search would read are fetched, also those of chains.
    ///
    /// Names go through in groups: one is made ready, two later its buckets are asked for, two
    /// later they are looked at; then its entries are asked for, and the buckets of those that
    /// go on. So hashing hides fetches: 9.3 to 10.5 million look-ups per second where hashing all 64
    /// names first had 8.7 to 9.7 (13.5 million prefixes, three runs in turn).
    ///
    // N.B. Zen 4 drops prefetches once some 22 lines are under way: of 24 to 64 asked for at a
    // time 8 to 23 % were still in memory when read. And a prefetch whose page is not in the
    // TLB holds the processor up until the page walk is done (130 cycles for the index, 490 for
    // the entries, on a virtual machine whose host has base pages), unless others walk
    // meanwhile. Hence groups: few enough to be kept, asked for in loops of their own.
    // 13.5 million prefixes, cycles per look-up without hashing, variants in turn. One run: a
    // line as soon as it is known 269; groups of 4, 5, 6, 7, 8, 10, 12, 13: 211, 207, 202, 204,
    // 204, 202, 207, 217. Others: as soon as known 259, entries after the whole batch 292;
    // groups of 8 205, of 16 236; one name at a time through stages 4 apart 278 with hashing
    // where groups of 4 had 269.
    //
    /// # Panics
    /// If there are more names than `out` has places, or more than 64.
    pub(super) fn candidates(&self, count: usize, names: &mut impl NameBatch, out: &mut [Option<FibHint<'a>>]) {
        let groups = count.div_ceil(GROUP_NAMES);
        let group = |number: usize| number * GROUP_NAMES..count.min((number + 1) * GROUP_NAMES);
        let marked = self.index.markers().map(|markers| {
            names.make_ready(0..count);
            let mut lengths = [0; MOST_CANDIDATES];
            self.marked_lengths(markers, names, &mut lengths[..count]);
            lengths
        });
        let mut searches = [None; MOST_CANDIDATES];
        let mut waiting = Waiting { ring: [Search::default(); MOST_CANDIDATES], taken: 0, put: 0 };
        for step in 0..groups + GROUPS_READY + GROUPS_AHEAD {
            if step < groups && marked.is_none() {
                names.make_ready(group(step));
            }
            if let Some(begun) = step.checked_sub(GROUPS_READY).filter(|&begun| begun < groups) {
                for name in group(begun) {
                    searches[name] = self.begin(name, marked.as_ref(), names);
                }
                let begun = searches[group(begun)].iter().flatten();
                begun.for_each(|search| self.index.prefetch_step(search.walk));
            }
            let Some(now) = step.checked_sub(GROUPS_READY + GROUPS_AHEAD) else { continue };
            let before = waiting.put;
            for name in group(now) {
                let progress =
                    searches[name].map_or(Progress::Ended, |search| self.advance(search, names.hashes(name)));
                out[name] = waiting.put_or_take(progress);
            }
            for (entry, _) in entries(&out[group(now)]) {
                entry.prefetch_first();
            }
            waiting.prefetch_from(before, self);
            // A group later, when the page is known and so many lines are not under way.
            if let Some(former) = now.checked_sub(1) {
                for (entry, prefix_octets) in entries(&out[group(former)]) {
                    entry.prefetch_rest(self.shared.entries.expected_octets(prefix_octets));
                }
            }
            self.advance_waiting(&mut waiting, before, names, out);
        }
        if let Some(last) = groups.checked_sub(1) {
            for (entry, prefix_octets) in entries(&out[group(last)]) {
                entry.prefetch_rest(self.shared.entries.expected_octets(prefix_octets));
            }
        }
        while waiting.taken < waiting.put {
            let round = waiting.put;
            self.advance_waiting(&mut waiting, round, names, out);
        }
    }

    /// The search of a name, if it is wanted and there can be a prefix of it.
    #[inline(always)]
    fn begin(
        &self,
        name: usize,
        marked: Option<&[u16; MOST_CANDIDATES]>,
        names: &mut impl NameBatch,
    ) -> Option<Search> {
        if !names.is_wanted(name) {
            return None;
        }
        let hashes = names.hashes(name);
        let components = match marked {
            Some(lengths) => usize::from(lengths[name]),
            None => self.shared.lengths.longest_up_to(hashes.components())?,
        };
        Some(self.search(components, name, hashes))
    }

    /// Continues the searches that waited before `end`.
    #[inline(always)]
    fn advance_waiting(
        &self,
        waiting: &mut Waiting,
        end: usize,
        names: &impl NameBatch,
        out: &mut [Option<FibHint<'a>>],
    ) {
        let before = waiting.put;
        while waiting.taken < end {
            let search = waiting.ring[waiting.taken % MOST_CANDIDATES];
            waiting.taken += 1;
            let name = usize::from(search.name);
            out[name] = waiting.put_or_take(self.advance(search, names.hashes(name)));
            if let Some(hint) = out[name] {
                self.prefetch_entry(hint);
            }
        }
        waiting.prefetch_from(before, self);
    }

    /// The length that the search of each name begins with: a step of all names before the next.
    fn marked_lengths(&self, markers: &Markers, names: &impl NameBatch, out: &mut [u16]) {
        let most = (0..out.len()).map(|name| names.hashes(name).components()).max().unwrap_or(0);
        for bit in (0..usize::BITS - most.leading_zeros()).rev() {
            let longest = |name: usize| self.shared.lengths.longest_up_to(names.hashes(name).components()).unwrap_or(0);
            let prefetch = |out: &[u16], first: usize| {
                for (name, &length) in out.iter().enumerate().skip(first).take(GROUP_NAMES) {
                    markers.prefetch_step(length.into(), bit, longest(name), names.hashes(name));
                }
            };
            prefetch(out, 0);
            for first in (0..out.len()).step_by(GROUP_NAMES) {
                prefetch(out, first + GROUP_NAMES);
                for (name, length) in out.iter_mut().enumerate().skip(first).take(GROUP_NAMES) {
                    *length = markers.decide((*length).into(), bit, longest(name), names.hashes(name)) as u16;
                }
            }
        }
    }

    /// The length that a search among those up to `longest` begins with.
    #[inline(always)]
    fn longest_length(&self, longest: usize, hashes: &NameHashes) -> Option<usize> {
        let longest = self.shared.lengths.longest_up_to(longest)?;
        Some(self.index.markers().map_or(longest, |markers| markers.longest_up_to(longest, hashes)))
    }

    /// The next length, after one that was in vain.
    #[inline(always)]
    fn shorter_length(&self, components: usize, hashes: &NameHashes) -> Option<usize> {
        match self.index.markers() {
            Some(markers) => markers.shorter(components, hashes),
            None => self.shared.lengths.longest_up_to(components.checked_sub(1)?),
        }
    }

    #[inline(always)]
    fn search(&self, components: usize, name: usize, hashes: &NameHashes) -> Search {
        let walk = self.index.walk(self.shared.index_key(hashes, components));
        Search { walk, components: components as u16, name: name as u16 }
    }

    /// Looks at the bucket that a search has come to.
    #[inline(always)]
    fn advance(&self, mut search: Search, hashes: &NameHashes) -> Progress<'a> {
        let together = self.shared.together_components;
        loop {
            let look = self.index.look(search.walk);
            let mut components = usize::from(search.components);
            if search.walk.is_shared() {
                components = self.longest_trace(look, components, hashes).unwrap_or(together);
                search.components = components as u16;
                if components == together {
                    search.walk = search.walk.of_own_hash();
                }
            }
            match look.step(search.walk, key_hash(hashes.prefix_hash(components), components)) {
                Step::Found(entry) => return Progress::Found(self.hint(entry, components, hashes)),
                Step::Next(walk) => return Progress::GoesOn(Search { walk, ..search }),
                Step::Absent => {}
            }
            let Some(shorter) = self.shorter_length(components, hashes) else { return Progress::Ended };
            search = self.search(shorter, usize::from(search.name), hashes);
            // Else the bucket of all lengths was looked at just now, before that of one. (Of use to
            // crowds: 751 cycles per look-up where a round of its own for that bucket had 774.)
            if shorter < together {
                return Progress::GoesOn(search);
            }
        }
    }

    /// Of the prefixes that begin in this bucket and have no more than `longest` components,
    /// the longest that the bucket has a trace of.
    ///
    // N.B. All lengths are asked, without a branch that depends on the answer: with a loop
    // that ends at the first trace `candidates` took 91 cycles in place of 72 (tables in the
    // second-level cache).
    #[inline(always)]
    fn longest_trace(&self, look: IndexLook<'_>, longest: usize, hashes: &NameHashes) -> Option<usize> {
        let shortest = self.shared.together_components;
        if longest > INLINE_COMPONENTS {
            let lengths = self.shared.lengths.descending_from(longest).take_while(|&components| components >= shortest);
            return lengths
                .into_iter()
                .find(|&components| look.has_trace(key_hash(hashes.prefix_hash(components), components)));
        }
        let prefix_hashes = hashes.first_hashes();
        let (mut bits, mut traces) = (self.shared.lengths.bits(shortest, longest), 0_u64);
        while bits != 0 {
            let components = bits.trailing_zeros() as usize;
            traces |= u64::from(look.has_trace(key_hash(prefix_hashes[components], components))) << components;
            bits &= bits - 1;
        }
        (traces != 0).then(|| traces.ilog2() as usize)
    }

    #[inline(always)]
    fn hint(&self, entry: FibEntryRef<'a>, components: usize, hashes: &NameHashes) -> FibHint<'a> {
        let prefix_octets = hashes.prefix_octets(components) as u16;
        FibHint(Hint::Entry { entry, components: components as u16, prefix_octets })
    }

    /// Begins to fetch the lines that [`HouseView::longest_prefix_match_hinted`] will compare.
    #[inline]
    pub(super) fn prefetch_entry(&self, hint: FibHint<'a>) {
        if let Hint::Entry { entry, prefix_octets, .. } = hint.0 {
            entry.prefetch(self.shared.entries.expected_octets(usize::from(prefix_octets)));
        }
    }

    /// Stage 3: [`HouseView::longest_prefix_match`], which it equals, beginning with what
    /// [`HouseView::candidate`] found in this view for these hashes, if anything.
    #[inline]
    pub(super) fn longest_prefix_match_hinted(
        &self,
        name_value: &[u8],
        hashes: &NameHashes,
        hint: Option<FibHint<'a>>,
    ) -> Option<FibMatch<'a>> {
        match hint {
            Some(hint) => self.verify(name_value, hashes, hint),
            None => self.longest_from(hashes.components(), name_value, hashes),
        }
    }

    /// What the entry of a prefix of so many octets leads to.
    #[inline]
    pub(super) fn found(&self, entry: FibEntryRef<'a>, prefix_octets: usize) -> FibMatch<'a> {
        let Some(set) = self.index.set(entry) else { no_such_set() };
        FibMatch::new(prefix_octets, set)
    }

    /// What the entry leads to.
    ///
    /// # Panics
    /// If the entry is one of another FIB.
    #[inline]
    pub(super) fn entry(&self, entry: FibEntryRef<'a>) -> FibEntry<'a> {
        let Some(set) = self.index.set(entry) else { no_such_set() };
        FibEntry { name_value: entry.name_value(), nexthops: &set.nexthops, strategy: set.strategy, hidden: set.hidden }
    }

    #[inline]
    fn verify(&self, name_value: &[u8], hashes: &NameHashes, hint: FibHint<'a>) -> Option<FibMatch<'a>> {
        let Hint::Entry { entry, components, prefix_octets } = hint.0 else {
            return self.longest_from(hashes.components(), name_value, hashes);
        };
        if let Some(prefix) = name_value.get(..usize::from(prefix_octets))
            && entry.is(prefix)
        {
            return Some(self.found(entry, prefix.len()));
        }
        self.longest_from(usize::from(components), name_value, hashes)
    }

    /// The entry of the longest prefix with no more than `longest` components.
    #[inline]
    fn longest_from(&self, longest: usize, name_value: &[u8], hashes: &NameHashes) -> Option<FibMatch<'a>> {
        let mut length = self.longest_length(longest.min(hashes.components()), hashes);
        while let Some(components) = length {
            let prefix = name_value.get(..hashes.prefix_octets(components))?;
            let found = self.find(self.shared.index_key(hashes, components), prefix);
            if let Some(entry) = found {
                return Some(self.found(entry, prefix.len()));
            }
            length = self.shorter_length(components, hashes);
        }
        None
    }

    /// The entry of exactly this name, which `hashes` are of.
    pub(super) fn find_name(&self, hashes: &NameHashes, name_value: &[u8]) -> Option<FibEntryRef<'a>> {
        self.find(self.shared.name_key(hashes), name_value)
    }

    #[inline]
    fn find(&self, key: IndexKey, name_value: &[u8]) -> Option<FibEntryRef<'a>> {
        self.index.find(key, |entry| entry.is(name_value))
    }
}

impl Waiting {
    /// Keeps a search that goes on, and gives what another one found.
    #[inline(always)]
    fn put_or_take<'a>(&mut self, progress: Progress<'a>) -> Option<FibHint<'a>> {
        match progress {
            Progress::Found(hint) => return Some(hint),
            Progress::GoesOn(search) => {
                self.ring[self.put % MOST_CANDIDATES] = search;
                self.put += 1;
            }
            Progress::Ended => {}
        }
        None
    }

    /// Begins to fetch the buckets of those that were put since.
    #[inline(always)]
    fn prefetch_from(&self, put: usize, view: &HouseView<'_>) {
        for place in put..self.put {
            view.index.prefetch_step(self.ring[place % MOST_CANDIDATES].walk);
        }
    }
}

/// The entries of these candidates, and the octets of their names.
#[inline(always)]
fn entries<'a>(candidates: &[Option<FibHint<'a>>]) -> impl Iterator<Item = (FibEntryRef<'a>, usize)> {
    candidates.iter().flatten().filter_map(|hint| match hint.0 {
        Hint::Entry { entry, prefix_octets, .. } => Some((entry, usize::from(prefix_octets))),
        Hint::Resolved { .. } => None,
    })
}

#[cold]
#[inline(never)]
fn no_such_set() -> ! {
    panic!("the entry belongs to another FIB")
}
