//! Search: which name prefix entry has the longest prefix of a name?
//!
//! Source: Yuan15 §3.3.1 (binary search), §3.4.2 (linear), §3.2.1 (two stages), §3.3.2 (string matching always or at
//! the end). One step looks one length up; all searches, matchings and ways of prefetching share it.
//!
//! *Always*: a fingerprint counts if the name matches. *At the end*: a fingerprint counts without a comparison, unless
//! it is marked as collided (another entry of the chain has it too); then the name is compared. Of the fingerprints
//! that counted, only the last is compared at the end. If the name does not match, the search is done again with
//! *always*. The answer is still right. A chance match can only send the search to longer lengths, never to shorter
//! ones. If no longer length matches, the chance match is the one compared at the end, and the comparison rejects it.
//! If a prefix of the name is found at a longer length, that prefix is a real match. A mismatch of fingerprints is
//! never wrong.
//!
//! A batch first hashes all names and fetches their first buckets. Then the names take their steps in turn. While the
//! other names take their steps, the bucket or name prefix entry for a name's next step is fetched.
//!
//! A caller that already knows a name's matches at short lengths (level pulling, §4.1) leaves those lengths out: binary
//! search treats them as matches; shortest-first begins above them; longest-first and two-stage search stop before they
//! reach them.
//!
//! Cost: a search reads a line per length looked up, and two per name compared. Writers: none during a search.

use super::fingerprint_table::{Candidate, Matches};
use super::name_entries::{Forwarding, NOTHING, SlotRef};
use super::prefix_hashes::{PrefixHashes, Prefixes};
use super::search_order::HashSearch;
use super::{HashTables, StringMatching};
use arrayvec::ArrayVec;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch};

/// How far the search for one name has come.
#[derive(Clone, Copy)]
pub(super) struct Progress {
    /// The length to look up next; 0: the search has ended.
    pub(super) next: usize,
    /// No prefix that matters is longer.
    limit: usize,
    /// Two stages: the length where the way down from MD ends. 0 if there is no marker.
    floor: usize,
    /// Lengths up to this need no look-up: the caller knows the matches there.
    known: usize,
    /// The longest match, if it has components.
    best: SlotRef,
    best_components: usize,
}

/// What a name waits for in a batch.
#[derive(Clone, Copy)]
enum Wait {
    Bucket,
    Entry(Candidate, Matches),
}

impl HashTables {
    /// The beginning of a search for the longest prefix of at most `components`, and more than `known`.
    #[inline(always)]
    pub(super) fn begin(&self, components: usize, known: usize) -> Progress {
        let limit = components.min(self.longest_in_use);
        let (next, floor) = match self.order.search() {
            HashSearch::Binary => (self.order.longer_than(self.order.middle_up_to(limit), known, limit), 0),
            HashSearch::LongestFirst => (self.down_from(limit, known), 0),
            HashSearch::ShortestFirst => (if known < limit { known + 1 } else { 0 }, 0),
            HashSearch::TwoStage { first_components } => match usize::from(first_components) {
                first if limit > first && first > known => (first, first),
                _ => (self.down_from(limit, known), 0),
            },
        };
        Progress { next, limit, floor, known, best: SlotRef { name_entry: 0, slot: 0 }, best_components: 0 }
    }

    /// The longest length that has entries, from `length` down but above `floor`; 0 if there is none.
    #[inline(always)]
    fn down_from(&self, mut length: usize, floor: usize) -> usize {
        while length > floor && self.tables[length].len() == 0 {
            length -= 1;
        }
        if length > floor { length } else { 0 }
    }

    /// One step: takes what was found at `progress.next` and says where to look next.
    #[inline(always)]
    fn step(&self, progress: &mut Progress, found: Option<Candidate>, matching: StringMatching) {
        let length = progress.next;
        let search = self.order.search();
        if let Some(Candidate { name_entry, is_leaf, .. }) = found {
            let at = SlotRef { name_entry, slot: self.order.slot(length) as u8 };
            let is_match = search != HashSearch::ShortestFirst
                || matching == StringMatching::AtEnd
                || self.names.forwarding(at).matched_bytes != NOTHING;
            if is_match {
                (progress.best, progress.best_components) = (at, length);
            }
            progress.next = match search {
                _ if is_leaf => 0,
                HashSearch::Binary => self.order.longer(length, progress.limit),
                HashSearch::LongestFirst => 0,
                HashSearch::ShortestFirst if length < progress.limit => length + 1,
                HashSearch::TwoStage { first_components } if length == progress.floor => {
                    self.down_from(self.names.deepest(at).min(progress.limit), first_components.into())
                }
                HashSearch::ShortestFirst | HashSearch::TwoStage { .. } => 0,
            };
            return;
        }
        progress.next = match search {
            HashSearch::Binary => self.order.longer_than(self.order.shorter(length), progress.known, progress.limit),
            HashSearch::LongestFirst => self.down_from(length - 1, progress.known),
            HashSearch::ShortestFirst => 0,
            HashSearch::TwoStage { .. } => {
                if length == progress.floor {
                    progress.floor = 0; // no prefix of that length or longer
                }
                self.down_from(length - 1, progress.floor.max(progress.known))
            }
        };
    }

    /// Looks a length up: the candidate that counts, if there is one.
    #[inline(always)]
    pub(super) fn look_up(
        &self,
        name: &[u8],
        prefixes: Prefixes<'_>,
        length: usize,
        matching: StringMatching,
    ) -> Option<Candidate> {
        let table = &self.tables[length];
        let mut matches = table.matches(prefixes.hash(length));
        let candidate = table.next(&mut matches)?;
        if counts_at_once(candidate, matching) {
            return Some(candidate);
        }
        self.first_of(candidate, matches, length, &name[..prefixes.bytes(length)])
    }

    /// The whole search for one name.
    #[inline(always)]
    fn search(
        &self,
        name: &[u8],
        prefixes: Prefixes<'_>,
        mut progress: Progress,
        matching: StringMatching,
    ) -> Progress {
        while progress.next != 0 {
            let found = self.look_up(name, prefixes, progress.next, matching);
            self.step(&mut progress, found, matching);
        }
        progress
    }

    /// What the prefix or marker that a search ended at leads to.
    #[inline(always)]
    fn conclude(&self, name: &[u8], prefixes: Prefixes<'_>, mut progress: Progress) -> Option<PrefixMatch> {
        if self.options.matching == StringMatching::AtEnd && progress.best_components > 0 {
            let prefix = &name[..prefixes.bytes(progress.best_components)];
            if !self.names.begins_with(progress.best.name_entry, prefix) {
                let again = self.begin(prefixes.components(), progress.known);
                progress = self.search(name, prefixes, again, StringMatching::Always);
            } else if self.order.search() == HashSearch::ShortestFirst {
                self.go_back_to_a_prefix(name, prefixes, &mut progress);
            }
        }
        if progress.best_components == 0 {
            return self.root_match();
        }
        let forwarding = self.keeper.resolve(self.names.forwarding(progress.best));
        if forwarding.matched_bytes == NOTHING {
            return self.root_match();
        }
        Some(PrefixMatch { number: forwarding.number, prefix_bytes: forwarding.matched_bytes })
    }

    /// Shortest first, names compared at the end: only the name prefix entry tells that the last
    /// match is a marker, and a marker inherits nothing.
    fn go_back_to_a_prefix(&self, name: &[u8], prefixes: Prefixes<'_>, progress: &mut Progress) {
        while progress.best_components > 0 && self.names.forwarding(progress.best).matched_bytes == NOTHING {
            progress.best_components -= 1;
            if progress.best_components <= progress.known {
                progress.best_components = 0;
            }
            if let Some(found) = (progress.best_components > 0)
                .then(|| self.look_up(name, prefixes, progress.best_components, StringMatching::Always))
                .flatten()
            {
                let slot = self.order.slot(progress.best_components) as u8;
                progress.best = SlotRef { name_entry: found.name_entry, slot };
            }
        }
    }

    fn root_match(&self) -> Option<PrefixMatch> {
        self.root.map(|number| PrefixMatch { number, prefix_bytes: 0 })
    }

    /// One name whose prefixes are at hand.
    #[inline(always)]
    pub(super) fn longest_prefix(&self, name: &[u8], prefixes: Prefixes<'_>, known: usize) -> Option<PrefixMatch> {
        let progress = self.begin(prefixes.components(), known);
        let progress = self.search(name, prefixes, progress, self.options.matching);
        self.conclude(name, prefixes, progress)
    }

    /// What the longest prefix of at most `components` leads to, if there is one beside the root. For updates: names
    /// are always compared.
    pub(super) fn forwarding_above(&self, name: &[u8], prefixes: Prefixes<'_>, components: usize) -> Forwarding {
        let progress = self.search(name, prefixes, self.begin(components, 0), StringMatching::Always);
        match progress.best_components {
            0 => Forwarding::NOTHING,
            _ => self.keeper.resolve(self.names.forwarding(progress.best)),
        }
    }

    /// How many tables a search asks, names compared at every match. For the lab.
    pub(super) fn count_look_ups(&self, name: &[u8], prefixes: Prefixes<'_>, known: usize) -> usize {
        let mut progress = self.begin(prefixes.components(), known);
        let mut look_ups = 0;
        while progress.next != 0 {
            look_ups += 1;
            let found = self.look_up(name, prefixes, progress.next, StringMatching::Always);
            self.step(&mut progress, found, StringMatching::Always);
        }
        look_ups
    }

    /// A batch of names, step by step in turn; their first buckets are being fetched. Of name `i`
    /// the lengths up to `known(i)` are left out.
    pub(super) fn search_in_turn(
        &self,
        names: &[&[u8]],
        hashes: &PrefixHashes,
        known: impl Fn(usize) -> usize,
        out: &mut [Option<PrefixMatch>],
    ) {
        let matching = self.options.matching;
        let mut searches = ArrayVec::<_, DESIGN_BATCH_NAMES>::new();
        for name in 0..names.len() {
            searches.push((self.begin(hashes.of(name).components(), known(name)), Wait::Bucket));
        }
        let mut active: ArrayVec<u8, DESIGN_BATCH_NAMES> = (0..names.len() as u8).collect();
        while !active.is_empty() {
            active.retain(|&mut number| {
                let number = usize::from(number);
                let (progress, wait) = &mut searches[number];
                self.step_in_turn(names[number], hashes.of(number), progress, wait, matching)
            });
        }
        for (number, (progress, _)) in searches.iter().enumerate() {
            out[number] = self.conclude(names[number], hashes.of(number), *progress);
        }
    }

    /// One step of one name; fetches what the next step reads. False: there is no next step.
    #[inline(always)]
    fn step_in_turn(
        &self,
        name: &[u8],
        prefixes: Prefixes<'_>,
        progress: &mut Progress,
        wait: &mut Wait,
        matching: StringMatching,
    ) -> bool {
        if progress.next == 0 {
            return false;
        }
        let length = progress.next;
        let found = match *wait {
            Wait::Bucket => {
                let table = &self.tables[length];
                let mut matches = table.matches(prefixes.hash(length));
                match table.next(&mut matches) {
                    Some(candidate) if !counts_at_once(candidate, matching) => {
                        self.names.prefetch(candidate.name_entry);
                        *wait = Wait::Entry(candidate, matches);
                        return true;
                    }
                    found => found,
                }
            }
            Wait::Entry(candidate, matches) => {
                self.first_of(candidate, matches, length, &name[..prefixes.bytes(length)])
            }
        };
        self.step(progress, found, matching);
        *wait = Wait::Bucket;
        if progress.next != 0 {
            self.tables[progress.next].prefetch(prefixes.hash(progress.next));
        } else if matching == StringMatching::AtEnd && progress.best_components > 0 {
            self.names.prefetch(progress.best.name_entry);
        }
        progress.next != 0
    }

    /// The first of these candidates whose name prefix entry begins with `prefix`.
    #[inline(always)]
    fn first_of(&self, candidate: Candidate, mut matches: Matches, length: usize, prefix: &[u8]) -> Option<Candidate> {
        let mut next = Some(candidate);
        while let Some(candidate) = next {
            if self.names.begins_with(candidate.name_entry, prefix) {
                return next;
            }
            next = self.tables[length].next(&mut matches);
        }
        None
    }
}

#[inline(always)]
fn counts_at_once(candidate: Candidate, matching: StringMatching) -> bool {
    matching == StringMatching::AtEnd && !candidate.is_collided
}
