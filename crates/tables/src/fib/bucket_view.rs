//! Bucket view: the router's own table as one batch sees it, and the search for the longest prefix.
//!
//! [`BucketView::longest_prefix_match`] is the papers' "Naive" (Takemasa19 §4.4.1): one probe per length,
//! longest first. The other calls are the stages of this search. Schedules use them to hide the fetches of
//! one name behind the work on others (Takemasa19 §4.3). [`super::stepped_search`] takes a whole batch
//! through the stages instead of a pair of packets:
//!
//! | stage | reads | call |
//! | --- | --- | --- |
//! | 1 | nothing | [`BucketView::prefetch_buckets`]: the bucket of all lengths, or one per length |
//! | 2 | buckets | [`BucketView::candidate`]: the longest length with an equal tag; [`BucketView::prefetch_entry`] |
//! | 3 | the entry | [`BucketView::longest_prefix_match_hinted`]: compares names; searches on if only the tag was equal |
//!
//! Stage 2 has a fast path: [`BucketView::look_first`] compares the tags of four lengths at once in the bucket where
//! nearly every search ends. [`BucketView::advance`] is the general search. It takes over at another bucket, for
//! prefixes of more than 16 components, and for [`FibSearch::LongestFirst`]. If a longer prefix may lie in a later
//! bucket, the search keeps the shorter candidate that it has found, so that it need not read this bucket again.

use super::bucket_writer::{Index, IndexLook, Shared, key_hash};
#[cfg(doc)]
use super::config::FibSearch;
use super::config::TOGETHER_COMPONENTS;
use super::entries::FibEntryRef;
use super::entry::FibEntry;
use super::flow_cache::{FlowCache, FlowEntry};
use super::hint::{Candidate, FibHint, FibMatch, Hint};
use crate::name_hash::{HashKey, INLINE_COMPONENTS, NameHashes};
use crate::tag_index::{FirstBucket, IndexKey, Step, Walk};

/// Where the search for a name begins.
#[derive(Clone, Copy)]
pub(super) struct Begin<'a> {
    pub(super) bucket: FirstBucket<'a>,
    /// The longest length that the FIB has and the name too; with [`ONLY`] if the shorter ones are known already.
    longest: u32,
    pub(super) name: u32,
}

/// A bit beyond all lengths. So one test in [`BucketView::look_first`] tells the lengths that are searched one by one.
const ONLY: u32 = 1 << 31;

/// By the longest of four consecutive lengths (the last element is for all longer ones): 16 bits for each length that
/// begins in the same bucket as the longest.
const PLACES: [u64; TOGETHER_COMPONENTS + 4] = {
    let mut places = [u64::MAX; TOGETHER_COMPONENTS + 4];
    let mut longest = 0;
    while longest < places.len() {
        let (first, last) = (longest.saturating_sub(3), longest);
        let mut length = first;
        while length < first + 4 {
            let is_together = length == longest || (length >= TOGETHER_COMPONENTS && length < last);
            if !is_together {
                places[longest] &= !(0xffff << (16 * (length - first)));
            }
            length += 1;
        }
        longest += 1;
    }
    places
};

/// The first of the four lengths that are compared together.
#[inline(always)]
fn shortest_of_four(longest: usize) -> usize {
    longest.max(3) - 3
}

/// The hashes of four consecutive lengths; 0 for those that the name does not have.
#[cold]
#[inline(never)]
fn four_hashes(hashes: &NameHashes, shortest: usize) -> [u64; 4] {
    let hash = |length| if length <= hashes.components() { hashes.prefix_hash(length) } else { 0 };
    std::array::from_fn(|place| hash(shortest + place))
}

/// One name's search, at one bucket.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) walk: Walk,
    components: u16,
    pub(super) name: u16,
    /// The result if there is no prefix of `components` components.
    otherwise: Option<Candidate<'a>>,
}

/// The result of looking at a bucket.
pub(super) enum Progress<'a> {
    Found(Candidate<'a>),
    /// The search continues in another bucket, which should be prefetched.
    GoesOn(Search<'a>),
    /// No prefix of the name is in the FIB.
    Ended,
}

/// The table while nothing that it shows can go away: its owner does not write, or a reader is pinned.
#[derive(Clone, Copy)]
pub(super) struct BucketView<'a> {
    pub(super) shared: &'a Shared,
    pub(super) index: Index<'a>,
}

impl<'a> BucketView<'a> {
    /// The key for [`NameHashes::compute`].
    pub(super) fn key(&self) -> &'a HashKey {
        &self.shared.key
    }

    /// The entry of the longest prefix of `name_value`, the root included.
    ///
    /// `hashes` must be made of `name_value` under [`BucketView::key`].
    #[inline(never)]
    pub(super) fn longest_prefix_match(&self, name_value: &[u8], hashes: &NameHashes) -> Option<FibMatch<'a>> {
        let hint = self.candidate(hashes)?;
        self.verified(name_value, hint).or_else(|| self.longest_of(name_value, hashes))
    }

    /// Stage 1: begins to fetch the bucket of every prefix length in the FIB.
    #[inline]
    pub(super) fn prefetch_buckets(&self, hashes: &NameHashes) {
        let mut length = self.shared.lengths.longest_up_to(hashes.components());
        while let Some(components) = length {
            let first = components.min(self.shared.together_components);
            self.index.first_bucket(hashes.prefix_hash(first)).prefetch();
            length = self.shorter_length(first);
        }
    }

    /// Stage 2: the entry of the longest prefix with an equal tag. Touches and compares no entry. `None`:
    /// no prefix of the name is in the FIB.
    #[inline]
    pub(super) fn candidate(&self, hashes: &NameHashes) -> Option<FibHint<'a>> {
        let mut progress = self.look_first(self.begin(0, hashes)?, hashes);
        loop {
            match progress {
                Progress::Found(candidate) => return Some(candidate.into()),
                Progress::GoesOn(search) => progress = self.advance(search, hashes),
                Progress::Ended => return None,
            }
        }
    }

    /// Where the search for a name begins, if the FIB may have a prefix of it.
    #[inline(always)]
    pub(super) fn begin(&self, name: usize, hashes: &NameHashes) -> Option<Begin<'a>> {
        let longest = self.shared.lengths.longest_up_to(hashes.components())?;
        let first = longest.min(self.shared.together_components);
        let bucket = self.index.first_bucket(hashes.prefix_hash(first));
        Some(Begin { bucket, longest: longest as u32, name: name as u32 })
    }

    /// The longest match of a name of this flow that is not itself in the FIB.
    #[inline(always)]
    pub(super) fn match_of_flow(&self, flow: FlowEntry) -> Candidate<'a> {
        let entry = self.index.entry_of_flow(flow);
        entry.prefetch_first();
        Candidate { entry, prefix_bytes: flow.prefix_bytes.into() }
    }

    /// Where to look for the whole name, for a name of this flow, if the FIB may have it.
    #[inline(always)]
    pub(super) fn begin_whole(&self, name: usize, hashes: &NameHashes, flow: FlowEntry) -> Option<Begin<'a>> {
        let components = hashes.components();
        let is_there = flow.may_have_children && self.shared.lengths.bits(components, components) != 0;
        let bucket = self.index.first_bucket(flow.first);
        is_there.then_some(Begin { bucket, longest: components as u32 | ONLY, name: name as u32 })
    }

    /// Notes in `flows` what a look-up of this name found, if that is good for other names of its flow, too.
    pub(super) fn note_flow(&self, flows: &mut FlowCache, version: u64, hashes: &NameHashes, found: FibHint<'a>) {
        let Hint::Entry { entry, prefix_bytes } = found.0 else { return };
        let (Some(number), parent) = (hashes.parent_number(), hashes.parent()) else { return };
        // Without a prefix of that length, the name itself is in the FIB.
        let Some(prefix) = parent.get(..usize::from(prefix_bytes)) else { return };
        if !flows.knows(number, version, parent) && self.shared.entries.is(entry, prefix) {
            let first = hashes.prefix_hash(TOGETHER_COMPONENTS);
            let entry = FlowEntry {
                first,
                unit: self.shared.entries.unit(entry),
                prefix_bytes: prefix.len() as u8,
                parent_bytes: parent.len() as u8,
                may_have_children: self.may_have_children(first, parent),
            };
            flows.note(number, version, parent, entry);
        }
    }

    /// Whether longer prefixes than this name may be in the FIB. `first` selects the bucket where they begin.
    #[cold]
    fn may_have_children(&self, first: u64, name_value: &[u8]) -> bool {
        let look = self.index.look_at_first(self.index.first_bucket(first));
        let mut buffer = Vec::new();
        let mut is_child = |entry| {
            let entry = self.shared.entries.name_in(entry, &mut buffer);
            entry.len() > name_value.len() && entry.starts_with(name_value)
        };
        look.is_passed() || look.entries().any(&mut is_child)
    }

    /// Of the four lengths up to `longest`, the longest with an equal tag in the bucket where `longest` begins. At most
    /// [`INLINE_COMPONENTS`].
    ///
    /// Hashes of lengths that the FIB lacks may be those of another name. An equal tag by such a hash gives a candidate
    /// of another name, which the comparison of names refuses.
    #[inline(always)]
    fn longest_of_four(
        &self,
        look: IndexLook<'a>,
        longest: usize,
        hashes: &NameHashes,
    ) -> Option<(usize, FibEntryRef<'a>)> {
        let shortest = shortest_of_four(longest);
        let computed;
        let four = if hashes.knows(self.shared.lengths.bits(shortest, longest)) {
            hashes.first_hashes().get(shortest..).and_then(<[u64]>::first_chunk)?
        } else {
            computed = four_hashes(hashes, shortest);
            &computed
        };
        let (place, entry) = look.longest_of_four(four, shortest, PLACES[longest.min(PLACES.len() - 1)])?;
        Some((shortest + place, entry))
    }

    /// Looks at the bucket where a search begins.
    ///
    /// N.B. The counters of a bucket tell by the lowest bits of the tags which lengths (modulo 4) passed it. To search
    /// on only if one of the lengths beyond the found one may have passed saved 16 instructions of the searches that go
    /// on, and cost 26 in all others: 1,922 for an Interest that misses, 1,914 without.
    #[inline(always)]
    pub(super) fn look_first(&self, begin: Begin<'a>, hashes: &NameHashes) -> Progress<'a> {
        let Begin { bucket, longest, name } = begin;
        let look = self.index.look_at_first(bucket);
        if look.is_passed()
            || longest > INLINE_COMPONENTS as u32
            || self.shared.together_components != TOGETHER_COMPONENTS
        {
            return self.look_further(bucket, longest, name, hashes);
        }
        match self.longest_of_four(look, longest as usize, hashes) {
            Some((components, entry)) => Progress::Found(self.candidate_of(entry, components, hashes)),
            None => self.go_on_shorter(bucket, longest, name, hashes),
        }
    }

    /// The same for the whole name only.
    fn look_for_whole(
        &self,
        bucket: FirstBucket<'a>,
        components: usize,
        name: usize,
        hashes: &NameHashes,
    ) -> Progress<'a> {
        let (look, search) = (self.index.look_at_first(bucket), self.search(components, name, hashes));
        match look.step(search.walk, key_hash(hashes.full_hash(), components)) {
            Step::Found(entry) => Progress::Found(self.candidate_of(entry, components, hashes)),
            Step::Next(_) => self.advance(search, hashes),
            Step::Absent => Progress::Ended,
        }
    }

    /// The same, if no value passed the bucket and it has none of the longest four lengths.
    ///
    /// N.B. It reads the bucket again. With the look as an argument, every search wrote it to memory.
    #[inline(never)]
    fn go_on_shorter(&self, bucket: FirstBucket<'a>, longest: u32, name: u32, hashes: &NameHashes) -> Progress<'a> {
        let (look, mut length) = (self.index.look_at_first(bucket), longest as usize);
        loop {
            let beyond = shortest_of_four(length).max(length.min(TOGETHER_COMPONENTS));
            let Some(shorter) = self.shorter_length(beyond) else { return Progress::Ended };
            if shorter < TOGETHER_COMPONENTS {
                return Progress::GoesOn(self.search(shorter, name as usize, hashes));
            }
            if shorter == TOGETHER_COMPONENTS {
                return self.go_on(look, self.search(shorter, name as usize, hashes), hashes);
            }
            if let Some((components, entry)) = self.longest_of_four(look, shorter, hashes) {
                return Progress::Found(self.candidate_of(entry, components, hashes));
            }
            length = shorter;
        }
    }

    /// The same in general.
    #[inline(never)]
    fn look_further(&self, bucket: FirstBucket<'a>, longest: u32, name: u32, hashes: &NameHashes) -> Progress<'a> {
        if longest & ONLY != 0 {
            return self.look_for_whole(bucket, (longest & !ONLY) as usize, name as usize, hashes);
        }
        let (longest, name) = (longest as usize, name as usize);
        if longest > INLINE_COMPONENTS || self.shared.together_components != TOGETHER_COMPONENTS {
            return self.advance(self.search(longest, name, hashes), hashes);
        }
        let look = self.index.look_at_first(bucket);
        let found = self.longest_of_four(look, longest, hashes);
        let first = longest.min(TOGETHER_COMPONENTS);
        let shortest = found.map_or(shortest_of_four(longest).max(first), |(components, _)| components + 1);
        let otherwise = found.map(|(components, entry)| self.candidate_of(entry, components, hashes));
        let lengths = self.shared.lengths.bits(shortest, longest);
        match (self.longest_passed(look, lengths, hashes), otherwise) {
            (Some(passed), _) => {
                // If a shorter one passed too, the search comes back for it.
                let shorter = lengths & !(u64::MAX << passed);
                let is_last = shorter == 0 || self.longest_passed(look, shorter, hashes).is_none();
                let otherwise = otherwise.filter(|_| is_last);
                if passed <= TOGETHER_COMPONENTS {
                    return self.go_on(look, Search { otherwise, ..self.search(passed, name, hashes) }, hashes);
                }
                let walk = self.index.walk(key_hash(hashes.prefix_hash(passed), passed).into());
                Progress::GoesOn(Search { walk, components: passed as u16, name: name as u16, otherwise })
            }
            (None, Some(candidate)) => Progress::Found(candidate),
            // Shorter ones may have passed as well.
            (None, None) if shortest > first => self.advance(self.search(shortest - 1, name, hashes), hashes),
            (None, None) => match self.shorter_length(first) {
                Some(shorter) => Progress::GoesOn(self.search(shorter, name, hashes)),
                None => Progress::Ended,
            },
        }
    }

    /// The longest of these lengths with a prefix that seems to have passed the bucket.
    #[inline(always)]
    fn longest_passed(&self, look: IndexLook<'a>, mut lengths: u64, hashes: &NameHashes) -> Option<usize> {
        while let Some(length) = lengths.checked_ilog2() {
            lengths ^= 1 << length;
            let length = length as usize;
            if look.has_passed(key_hash(hashes.prefix_hash(length), length)) {
                return Some(length);
            }
        }
        None
    }

    /// The next length after a search in vain.
    #[inline(always)]
    fn shorter_length(&self, components: usize) -> Option<usize> {
        self.shared.lengths.longest_up_to(components.checked_sub(1)?)
    }

    #[inline(always)]
    fn search(&self, components: usize, name: usize, hashes: &NameHashes) -> Search<'a> {
        let walk = self.index.walk(self.shared.index_key(hashes, components));
        Search { walk, components: components as u16, name: name as u16, otherwise: None }
    }

    /// Looks at the bucket that a search has come to.
    #[inline(never)]
    pub(super) fn advance(&self, mut search: Search<'a>, hashes: &NameHashes) -> Progress<'a> {
        let together = self.shared.together_components;
        loop {
            let look = self.index.look(search.walk);
            if search.walk.is_shared() {
                search.components = self.longest_trace(look, search.components.into(), hashes) as u16;
                if usize::from(search.components) == together {
                    search.walk = search.walk.of_own_hash();
                }
            }
            // A shorter prefix of `together` or more components begins in the bucket of all lengths, which was read
            // just now. (For crowds: 751 cycles per look-up; 774 where the search gave that bucket a step of its own.)
            match self.go_on(look, search, hashes) {
                Progress::GoesOn(next)
                    if next.components < search.components && usize::from(next.components) >= together =>
                {
                    search = next;
                }
                progress => return progress,
            }
        }
    }

    /// The longest prefix with at most `longest` components that this bucket has a trace of. Without any, the prefix
    /// that all of them share, which is looked up next.
    fn longest_trace(&self, look: IndexLook<'_>, longest: usize, hashes: &NameHashes) -> usize {
        let together = self.shared.together_components;
        let lengths = self.shared.lengths.descending_from(longest).take_while(|&components| components > together);
        let has_trace = |&components: &usize| look.has_trace(key_hash(hashes.prefix_hash(components), components));
        lengths.into_iter().find(has_trace).unwrap_or(together)
    }

    /// What a look at a bucket tells the search for the prefix of `search.components` components.
    #[inline(always)]
    fn go_on(&self, look: IndexLook<'a>, search: Search<'a>, hashes: &NameHashes) -> Progress<'a> {
        let components = usize::from(search.components);
        match look.step(search.walk, key_hash(hashes.prefix_hash(components), components)) {
            Step::Found(entry) => Progress::Found(self.candidate_of(entry, components, hashes)),
            Step::Next(walk) => Progress::GoesOn(Search { walk, ..search }),
            Step::Absent => match (search.otherwise, self.shorter_length(components)) {
                (Some(candidate), _) => Progress::Found(candidate),
                (None, Some(shorter)) => Progress::GoesOn(self.search(shorter, search.name.into(), hashes)),
                (None, None) => Progress::Ended,
            },
        }
    }

    #[inline(always)]
    fn candidate_of(&self, entry: FibEntryRef<'a>, components: usize, hashes: &NameHashes) -> Candidate<'a> {
        Candidate { entry, prefix_bytes: hashes.prefix_bytes(components) as u16 }
    }

    /// Begins to fetch the lines that [`BucketView::longest_prefix_match_hinted`] will compare.
    #[inline]
    pub(super) fn prefetch_entry(&self, hint: FibHint<'a>) {
        if let Hint::Entry { entry, prefix_bytes, .. } = hint.0 {
            entry.prefetch(self.shared.entries.expected_bytes(usize::from(prefix_bytes)));
        }
    }

    /// Stage 3: the same result as [`BucketView::longest_prefix_match`]. Begins with what
    /// [`BucketView::candidate`] found in this view for these hashes, if anything.
    ///
    /// N.B. Inlined up to the comparison of names: each call that returns a match by memory takes 40 instructions.
    #[inline(always)]
    pub(super) fn longest_prefix_match_hinted(
        &self,
        name_value: &[u8],
        hashes: &NameHashes,
        hint: Option<FibHint<'a>>,
    ) -> Option<FibMatch<'a>> {
        match hint.and_then(|hint| self.verified(name_value, hint)) {
            Some(found) => Some(found),
            None => self.longest_prefix_match(name_value, hashes),
        }
    }

    /// What the candidate leads to, if it is a prefix of the name or known to be the match.
    #[inline(always)]
    pub(super) fn verified(&self, name_value: &[u8], hint: FibHint<'a>) -> Option<FibMatch<'a>> {
        let (entry, prefix_bytes) = match hint.0 {
            Hint::Entry { entry, prefix_bytes } => (entry, prefix_bytes),
            Hint::Known { entry, prefix_bytes } => return Some(self.found(entry, prefix_bytes.into())),
            Hint::Resolved { .. } => return None,
        };
        let prefix = name_value.get(..usize::from(prefix_bytes))?;
        self.shared.entries.is(entry, prefix).then(|| self.found(entry, prefix.len()))
    }

    /// What the entry of a prefix of this many bytes leads to.
    #[inline(always)]
    pub(super) fn found(&self, entry: FibEntryRef<'a>, prefix_bytes: usize) -> FibMatch<'a> {
        let Some(set) = self.index.set(entry) else { no_such_set() };
        FibMatch::new(prefix_bytes, set)
    }

    /// What the entry leads to.
    ///
    /// # Panics
    /// If the entry belongs to another FIB.
    #[inline]
    pub(super) fn entry(&self, entry: FibEntryRef<'a>) -> FibEntry<'a> {
        let Some(set) = self.index.set(entry) else { no_such_set() };
        let name_value = self.shared.entries.name_value(entry);
        FibEntry { name_value, nexthops: &set.nexthops, strategy: set.strategy, hidden: set.hidden }
    }

    /// [`BucketView::longest_prefix_match`], one length after the other: if the candidate was another prefix with the
    /// same tag.
    #[cold]
    fn longest_of(&self, name_value: &[u8], hashes: &NameHashes) -> Option<FibMatch<'a>> {
        let mut length = self.shared.lengths.longest_up_to(hashes.components());
        while let Some(components) = length {
            let prefix = name_value.get(..hashes.prefix_bytes(components))?;
            let found = self.find(self.shared.index_key(hashes, components), prefix);
            if let Some(entry) = found {
                return Some(self.found(entry, prefix.len()));
            }
            length = self.shorter_length(components);
        }
        None
    }

    /// The entry of exactly this name; `hashes` must be made of it.
    pub(super) fn find_name(&self, hashes: &NameHashes, name_value: &[u8]) -> Option<FibEntryRef<'a>> {
        self.find(self.shared.name_key(hashes), name_value)
    }

    #[inline]
    fn find(&self, key: IndexKey, name_value: &[u8]) -> Option<FibEntryRef<'a>> {
        self.index.find(key, |entry| self.shared.entries.is(entry, name_value))
    }
}

#[cold]
#[inline(never)]
fn no_such_set() -> ! {
    panic!("the entry belongs to another FIB")
}
