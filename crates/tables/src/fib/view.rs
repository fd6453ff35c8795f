//! View: the FIB as one batch sees it, and the search for the longest prefix.
//!
//! [`FibView::longest_prefix_match`] is the papers' "Naive" (Takemasa19 §4.4.1): one probe
//! per length, longest first. The other calls are its stages, for schedules that hide the
//! fetches of one name behind those of others (Takemasa19 §4.3; here a whole batch at a
//! time instead of a pair of packets):
//!
//! | stage | reads | call |
//! | --- | --- | --- |
//! | 1 | nothing | [`FibView::prefetch_buckets`]: a bucket per length |
//! | 2 | buckets | [`FibView::candidate`]: the longest length with an equal tag; [`FibView::prefetch_entry`] |
//! | 3 | the entry | [`FibView::longest_prefix_match_hinted`]: compares, goes on if it was chance |

use super::FibEntry;
use super::entries::FibEntryRef;
use super::shared::{Index, Shared};
use crate::name_hash::{HashKey, NameHashes};
use crate::tag_index::{Step, Walk};

/// Names that [`FibView::longest_prefix_match_batch`] takes through a stage before the next.
const BATCH_NAMES: usize = 64;

/// The most names of one [`FibView::candidates`].
const MOST_CANDIDATES: usize = 64;

/// One name's search, at one bucket.
#[derive(Clone, Copy, Default)]
struct Search {
    walk: Walk,
    components: u16,
    name: u16,
}

/// The FIB while nothing that it shows can go away: its owner does not write, or a reader is pinned.
#[derive(Clone, Copy)]
pub struct FibView<'a> {
    pub(super) shared: &'a Shared,
    pub(super) index: Index<'a>,
}

/// An entry whose tag is that of a prefix of a name: very probably its longest match.
#[derive(Clone, Copy, Debug)]
pub struct FibHint<'a> {
    entry: FibEntryRef<'a>,
    components: u16,
    prefix_octets: u16,
}

impl<'a> FibView<'a> {
    /// The key for [`NameHashes::compute`].
    pub fn key(&self) -> &'a HashKey {
        &self.shared.key
    }

    /// The entry of the longest prefix of `name_value`, the root included.
    ///
    /// `hashes` must be those of `name_value` under [`FibView::key`].
    #[inline]
    pub fn longest_prefix_match(&self, name_value: &[u8], hashes: &NameHashes) -> Option<FibEntry<'a>> {
        self.longest_from(hashes.components(), name_value, hashes).map(|entry| self.entry(entry))
    }

    /// [`FibView::longest_prefix_match`] of every name of a batch, with the fetches of one
    /// name behind those of the others. [`FibView::entry`] tells what was found.
    ///
    /// # Panics
    /// If `out` is shorter than `names`.
    pub fn longest_prefix_match_batch(&self, names: &[(&[u8], &NameHashes)], out: &mut [Option<FibEntryRef<'a>>]) {
        assert!(out.len() >= names.len(), "one result per name");
        for (names, out) in names.chunks(BATCH_NAMES).zip(out.chunks_mut(BATCH_NAMES)) {
            let mut candidates = [None; BATCH_NAMES];
            self.candidates(names.len(), |place| names[place].1, &mut candidates);
            for ((&(name_value, hashes), candidate), found) in names.iter().zip(&candidates).zip(out) {
                *found = candidate.and_then(|hint| self.verify(name_value, hashes, hint));
            }
        }
    }

    /// Stage 1: begins to fetch the bucket of every length that exists.
    #[inline]
    pub fn prefetch_buckets(&self, hashes: &NameHashes) {
        for components in self.shared.lengths.descending_from(hashes.components()) {
            self.index.prefetch(hashes.prefix_hash(components));
        }
    }

    /// Stage 2: the entry that the longest prefix with an equal tag leads to, none touched
    /// and none compared. `None`: no prefix of the name is in the FIB.
    #[inline]
    pub fn candidate(&self, hashes: &NameHashes) -> Option<FibHint<'a>> {
        self.shared.lengths.descending_from(hashes.components()).find_map(|components| {
            let entry = self.index.candidate(hashes.prefix_hash(components))?;
            Some(self.hint(entry, components, hashes))
        })
    }

    #[inline(always)]
    fn hint(&self, entry: FibEntryRef<'a>, components: usize, hashes: &NameHashes) -> FibHint<'a> {
        FibHint { entry, components: components as u16, prefix_octets: hashes.prefix_octets(components) as u16 }
    }

    /// Stages 1 and 2 and the prefetch of the entries for `count` names, of which `hashes_of`
    /// gives the hashes: every name reads one bucket a round, the next one is prefetched
    /// while the others read theirs, and a name that found its candidate is out. So only
    /// the buckets that a scalar search would read are fetched, also those of chains.
    ///
    /// # Panics
    /// If there are more names than `out` has places, or more than 64.
    pub fn candidates<'h>(
        &self,
        count: usize,
        hashes_of: impl Fn(usize) -> &'h NameHashes,
        out: &mut [Option<FibHint<'a>>],
    ) {
        let lengths = &self.shared.lengths;
        let mut searches = [Search::default(); MOST_CANDIDATES];
        let mut going = 0;
        for (name, out) in out[..count].iter_mut().enumerate() {
            *out = None;
            let hashes = hashes_of(name);
            if let Some(components) = lengths.longest_up_to(hashes.components()) {
                let walk = self.index.walk(hashes.prefix_hash(components));
                self.index.prefetch_step(walk);
                searches[going] = Search { walk, components: components as u16, name: name as u16 };
                going += 1;
            }
        }
        while going > 0 {
            let mut kept = 0;
            for place in 0..going {
                let mut search = searches[place];
                if let Some(hint) = out[usize::from(search.name)] {
                    hint.entry.prefetch_rest(usize::from(hint.prefix_octets));
                    continue;
                }
                let hashes = hashes_of(usize::from(search.name));
                match self.index.step(&mut search.walk) {
                    Step::Found(entry) => {
                        let hint = self.hint(entry, usize::from(search.components), hashes);
                        // N.B. The rest a round later. At 13.5 million prefixes half of the samples
                        // of a profile fall on the prefetch of an entry's first line; why is not
                        // known (page walks are a guess: prefetches in tight loops of their own,
                        // so that walks overlap, gained nothing). Two interleaved runs on a busy
                        // machine, cycles per look-up: all lines at once 399 and 398, this 358
                        // and 383.
                        hint.entry.prefetch_first();
                        out[usize::from(search.name)] = Some(hint);
                        searches[kept] = search;
                        kept += 1;
                        continue;
                    }
                    Step::Next => {}
                    Step::Absent => {
                        let shorter = search.components.checked_sub(1);
                        let shorter = shorter.and_then(|longest| lengths.longest_up_to(usize::from(longest)));
                        let Some(components) = shorter else { continue };
                        search.components = components as u16;
                        search.walk = self.index.walk(hashes.prefix_hash(components));
                    }
                }
                self.index.prefetch_step(search.walk);
                searches[kept] = search;
                kept += 1;
            }
            going = kept;
        }
    }

    /// Begins to fetch the lines that [`FibView::longest_prefix_match_hinted`] will compare.
    #[inline]
    pub fn prefetch_entry(&self, hint: FibHint<'a>) {
        hint.entry.prefetch(usize::from(hint.prefix_octets));
    }

    /// Stage 3: [`FibView::longest_prefix_match`], which it equals, beginning with what
    /// [`FibView::candidate`] found in this view for these hashes, if anything.
    #[inline]
    pub fn longest_prefix_match_hinted(
        &self,
        name_value: &[u8],
        hashes: &NameHashes,
        hint: Option<FibHint<'a>>,
    ) -> Option<FibEntry<'a>> {
        let found = match hint {
            Some(hint) => self.verify(name_value, hashes, hint),
            None => self.longest_from(hashes.components(), name_value, hashes),
        };
        found.map(|entry| self.entry(entry))
    }

    /// What the entry leads to.
    ///
    /// # Panics
    /// If the entry is one of another FIB.
    #[inline]
    pub fn entry(&self, entry: FibEntryRef<'a>) -> FibEntry<'a> {
        let Some(set) = self.index.set(entry) else { no_such_set() };
        FibEntry { name_value: entry.name_value(), nexthops: &set.nexthops, strategy: set.strategy, hidden: set.hidden }
    }

    #[inline]
    fn verify(&self, name_value: &[u8], hashes: &NameHashes, hint: FibHint<'a>) -> Option<FibEntryRef<'a>> {
        if name_value.get(..usize::from(hint.prefix_octets)) == Some(hint.entry.name_value()) {
            return Some(hint.entry);
        }
        self.longest_from(usize::from(hint.components), name_value, hashes)
    }

    /// The entry of the longest prefix with no more than `longest` components.
    #[inline]
    fn longest_from(&self, longest: usize, name_value: &[u8], hashes: &NameHashes) -> Option<FibEntryRef<'a>> {
        let longest = longest.min(hashes.components());
        self.shared.lengths.descending_from(longest).find_map(|components| {
            let prefix = name_value.get(..hashes.prefix_octets(components))?;
            self.find(hashes.prefix_hash(components), prefix)
        })
    }

    /// The entry of exactly this name.
    #[inline]
    pub(super) fn find(&self, hash: u64, name_value: &[u8]) -> Option<FibEntryRef<'a>> {
        self.index.find(hash, |entry| entry.name_value() == name_value)
    }
}

#[cold]
#[inline(never)]
fn no_such_set() -> ! {
    panic!("the entry belongs to another FIB")
}

impl std::fmt::Debug for FibView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FibView").finish_non_exhaustive()
    }
}
