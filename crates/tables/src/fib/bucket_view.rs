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

use super::bucket_writer::{Index, IndexLook, Shared, key_hash};
use super::entries::FibEntryRef;
use super::entry::FibEntry;
use super::hint::{FibHint, FibMatch, Hint};
use crate::name_hash::{HashKey, INLINE_COMPONENTS, NameHashes};
use crate::tag_index::{IndexKey, Step, Walk};

/// One name's search, at one bucket.
#[derive(Clone, Copy, Default)]
pub(super) struct Search {
    pub(super) walk: Walk,
    components: u16,
    pub(super) name: u16,
}

/// The result of looking at a bucket.
pub(super) enum Progress<'a> {
    Found(FibHint<'a>),
    /// The search continues in another bucket, which should be prefetched.
    GoesOn(Search),
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
    #[inline]
    pub(super) fn longest_prefix_match(&self, name_value: &[u8], hashes: &NameHashes) -> Option<FibMatch<'a>> {
        self.longest_from(hashes.components(), name_value, hashes)
    }

    /// Stage 1: begins to fetch the bucket of every prefix length in the FIB.
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

    /// Stage 2: the entry of the longest prefix with an equal tag. Touches and compares no entry. `None`:
    /// no prefix of the name is in the FIB.
    #[inline]
    pub(super) fn candidate(&self, hashes: &NameHashes) -> Option<FibHint<'a>> {
        let mut search = self.first_search(0, hashes)?;
        loop {
            match self.advance(search, hashes) {
                Progress::Found(hint) => return Some(hint),
                Progress::GoesOn(next) => search = next,
                Progress::Ended => return None,
            }
        }
    }

    /// The first search of a name, if the FIB may have a prefix of it.
    #[inline(always)]
    pub(super) fn first_search(&self, name: usize, hashes: &NameHashes) -> Option<Search> {
        let components = self.shared.lengths.longest_up_to(hashes.components())?;
        Some(self.search(components, name, hashes))
    }

    /// The next length after a search in vain.
    #[inline(always)]
    fn shorter_length(&self, components: usize) -> Option<usize> {
        self.shared.lengths.longest_up_to(components.checked_sub(1)?)
    }

    #[inline(always)]
    fn search(&self, components: usize, name: usize, hashes: &NameHashes) -> Search {
        let walk = self.index.walk(self.shared.index_key(hashes, components));
        Search { walk, components: components as u16, name: name as u16 }
    }

    /// Looks at the bucket that a search has come to.
    #[inline(always)]
    pub(super) fn advance(&self, mut search: Search, hashes: &NameHashes) -> Progress<'a> {
        let together = self.shared.together_components;
        loop {
            let look = self.index.look(search.walk);
            let mut components = usize::from(search.components);
            if search.walk.is_shared() {
                components = self.longest_trace(look, components, hashes);
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
            let Some(shorter) = self.shorter_length(components) else { return Progress::Ended };
            search = self.search(shorter, usize::from(search.name), hashes);
            // A longer one begins in the bucket of all lengths, which was read just now. (For crowds: 751
            // cycles per look-up; 774 where the search gave that bucket a step of its own.)
            if shorter < together {
                return Progress::GoesOn(search);
            }
        }
    }

    /// The longest prefix with at most `longest` components that this bucket has a trace of. Without any, the prefix
    /// that all of them share, which is looked up next.
    ///
    // N.B. All lengths are tested, without a branch that depends on the answer. With a loop that ends at
    // the first trace `candidates` took 91 cycles instead of 72 (tables in the second-level cache).
    #[inline(always)]
    fn longest_trace(&self, look: IndexLook<'_>, longest: usize, hashes: &NameHashes) -> usize {
        let together = self.shared.together_components;
        if longest > INLINE_COMPONENTS {
            let lengths = self.shared.lengths.descending_from(longest).take_while(|&components| components > together);
            return lengths
                .into_iter()
                .find(|&components| look.has_trace(key_hash(hashes.prefix_hash(components), components)))
                .unwrap_or(together);
        }
        let prefix_hashes = hashes.first_hashes();
        let (mut bits, mut found) = (self.shared.lengths.bits(together + 1, longest), together);
        while bits != 0 {
            let components = bits.trailing_zeros() as usize;
            found = match look.has_trace(key_hash(prefix_hashes[components], components)) {
                true => components,
                false => found,
            };
            bits &= bits - 1;
        }
        found
    }

    #[inline(always)]
    fn hint(&self, entry: FibEntryRef<'a>, components: usize, hashes: &NameHashes) -> FibHint<'a> {
        let prefix_bytes = hashes.prefix_bytes(components) as u16;
        FibHint(Hint::Entry { entry, components: components as u16, prefix_bytes })
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

    /// What the entry of a prefix of this many bytes leads to.
    #[inline]
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
        FibEntry { name_value: entry.name_value(), nexthops: &set.nexthops, strategy: set.strategy, hidden: set.hidden }
    }

    #[inline]
    pub(super) fn verify(&self, name_value: &[u8], hashes: &NameHashes, hint: FibHint<'a>) -> Option<FibMatch<'a>> {
        let Hint::Entry { entry, components, prefix_bytes } = hint.0 else {
            return self.longest_from(hashes.components(), name_value, hashes);
        };
        if let Some(prefix) = name_value.get(..usize::from(prefix_bytes))
            && entry.is(prefix)
        {
            return Some(self.found(entry, prefix.len()));
        }
        self.longest_from(usize::from(components), name_value, hashes)
    }

    /// The entry of the longest prefix with at most `longest` components.
    #[inline]
    fn longest_from(&self, longest: usize, name_value: &[u8], hashes: &NameHashes) -> Option<FibMatch<'a>> {
        let mut length = self.shared.lengths.longest_up_to(longest.min(hashes.components()));
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
        self.index.find(key, |entry| entry.is(name_value))
    }
}

#[cold]
#[inline(never)]
fn no_such_set() -> ! {
    panic!("the entry belongs to another FIB")
}
