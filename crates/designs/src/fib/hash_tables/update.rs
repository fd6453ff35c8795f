//! Update: inserts, changes or removes a prefix, and its markers with it.
//!
//! Source: Yuan15, one section per line:
//!
//! - §3.3.1: a marker at every length that the search for the prefix visits on its way to longer ones, with the
//!   forwarding information of its longest prefix;
//! - §3.3.1 too: changes of prefixes that markers inherit from;
//! - §3.4.2: reference counters;
//! - §3.4.1: population in two phases.
//!
//! A *table entry* is a fingerprint with a slot of a name prefix entry: a prefix, a marker or both. A table entry stays
//! while it is a prefix or its slot counts markers. Its leaf bit is set if its slot counts no markers. All checks that
//! may refuse run before the first change.
//!
//! Cost: an insertion reads 2 lines for each marker that exists and 3 or more for each new marker. The insertion also
//! searches for what each new marker inherits, and runs [`super::maintenance`]. Writers: the owner.

use super::maintenance::{Everything, Marker};
use super::name_entries::{Forwarding, SlotRef};
use super::prefix_hashes::{PrefixHashes, Prefixes, first_components};
use super::search_order::HashSearch;
use super::{HashTables, StringMatching};
use crate::fib::hash_tables::fingerprint_table::{Candidate, FingerprintTable};
use namewire_tables::fib::{FibRefusal, MAX_PREFIX_BYTES};
use std::io;

impl HashTables {
    pub(super) fn insert_prefix(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        let hashes = self.hashes_of(prefix).ok_or(FibRefusal::PrefixTooLong)?;
        let prefixes = hashes.of(0);
        let components = prefixes.components();
        let present = self.find(prefix, prefixes, components);
        if components == 0 && self.root.is_some() {
            return Ok(self.root.replace(number));
        }
        let forwarding = Forwarding { number, matched_bytes: prefix.len() as u16 };
        if let Some((at, _)) = present
            && self.names.forwarding(at).matched_bytes == forwarding.matched_bytes
        {
            let before = self.names.forwarding(at).number;
            self.names.set(at, forwarding);
            self.hand_over(prefix, components, forwarding, forwarding);
            return Ok(Some(before));
        }
        if self.len == self.capacity {
            return Err(FibRefusal::Full);
        }
        if components == 0 {
            self.root = Some(number);
        } else {
            self.add(prefix, prefixes, forwarding, present).map_err(|_| FibRefusal::NoMemory)?;
        }
        self.len += 1;
        self.review_first_stage();
        Ok(None)
    }

    /// A prefix that is not in the table, except perhaps as a marker.
    fn add(
        &mut self,
        prefix: &[u8],
        prefixes: Prefixes<'_>,
        forwarding: Forwarding,
        present: Option<(SlotRef, Candidate)>,
    ) -> io::Result<()> {
        let components = prefixes.components();
        let at = match present {
            Some((at, _)) => at,
            None => {
                self.reserve(prefix, prefixes, marker_lengths(self, components).into_iter().chain([components]))?;
                let name_entry = self.names.add(prefix, self.order.slot(components) + 1)?;
                SlotRef { name_entry, slot: self.order.slot(components) as u8 }
            }
        };
        let above = self.inherited(prefix, prefixes, components - 1);
        match present {
            Some(_) if self.order.markers_inherit() => self.keeper.leave(&mut self.names, marker(at, prefix.len())),
            Some(_) => {}
            None => self.tables[components].put(prefixes.hash(components), at.name_entry, true),
        }
        self.names.set(at, forwarding);
        self.longest_in_use = self.longest_in_use.max(components);
        self.hand_over(prefix, components, above, forwarding);
        for length in marker_lengths(self, components) {
            self.add_marker(prefix, prefixes, length, at.name_entry);
        }
        Ok(())
    }

    /// Counts a marker of the prefix in the table entry of that length. If there is no such table entry, makes it in
    /// the prefix's name prefix entry.
    fn add_marker(&mut self, prefix: &[u8], prefixes: Prefixes<'_>, length: usize, name_entry: u32) {
        let at = match self.find(prefix, prefixes, length) {
            Some((at, candidate)) => {
                self.tables[length].set_leaf(candidate.at, false);
                at
            }
            None => self.put_marker(prefix, prefixes, length, name_entry),
        };
        self.names.set_markers(at, self.names.markers(at) + 1);
        if let HashSearch::TwoStage { .. } = self.order.search() {
            self.names.set_deepest(at, self.names.deepest(at).max(prefixes.components()));
        }
    }

    /// A new marker, which no prefix needs yet.
    fn put_marker(&mut self, prefix: &[u8], prefixes: Prefixes<'_>, length: usize, name_entry: u32) -> SlotRef {
        let at = SlotRef { name_entry, slot: self.order.slot(length) as u8 };
        self.enter_marker(prefix, prefixes, length, at);
        self.tables[length].put(prefixes.hash(length), name_entry, false);
        self.longest_in_use = self.longest_in_use.max(length);
        at
    }

    /// Lets a marker inherit.
    fn enter_marker(&mut self, prefix: &[u8], prefixes: Prefixes<'_>, length: usize, at: SlotRef) {
        if self.order.markers_inherit() {
            let inherited = self.inherited(prefix, prefixes, length - 1);
            self.keeper.enter(&mut self.names, marker(at, prefixes.bytes(length)), inherited);
        } else {
            self.names.set(at, Forwarding::NOTHING);
        }
    }

    pub(super) fn remove_prefix(&mut self, prefix: &[u8]) -> Option<u32> {
        let hashes = self.hashes_of(prefix)?;
        let prefixes = hashes.of(0);
        let components = prefixes.components();
        if components == 0 {
            let before = self.root.take();
            self.len -= usize::from(before.is_some());
            return before;
        }
        let (at, candidate) = self.find(prefix, prefixes, components)?;
        let forwarding = self.names.forwarding(at);
        if usize::from(forwarding.matched_bytes) != prefix.len() {
            return None; // a marker
        }
        let above = self.inherited(prefix, prefixes, components - 1);
        self.hand_over(prefix, components, forwarding, above);
        if self.names.markers(at) > 0 {
            self.enter_marker(prefix, prefixes, components, at);
        } else {
            self.drop_entry(prefixes, components, (at, candidate));
        }
        for length in marker_lengths(self, components) {
            self.remove_marker(prefix, prefixes, length);
        }
        while self.longest_in_use > 0 && self.tables[self.longest_in_use].len() == 0 {
            self.longest_in_use -= 1;
        }
        self.len -= 1;
        self.expect_growth_from_here();
        Some(forwarding.number)
    }

    /// Counts one marker less. Without markers, the table entry is removed too, unless it is a prefix.
    fn remove_marker(&mut self, prefix: &[u8], prefixes: Prefixes<'_>, length: usize) {
        let Some((at, candidate)) = self.find(prefix, prefixes, length) else {
            unreachable!("a prefix has its markers");
        };
        let markers = self.names.markers(at) - 1;
        self.names.set_markers(at, markers);
        if markers > 0 {
            return;
        }
        let bytes = prefixes.bytes(length);
        if usize::from(self.names.forwarding(at).matched_bytes) == bytes {
            self.tables[length].set_leaf(candidate.at, true);
            self.names.set_deepest(at, 0);
            return;
        }
        if self.order.markers_inherit() {
            self.keeper.leave(&mut self.names, marker(at, bytes));
        }
        self.drop_entry(prefixes, length, (at, candidate));
    }

    fn drop_entry(&mut self, prefixes: Prefixes<'_>, length: usize, (at, candidate): (SlotRef, Candidate)) {
        self.tables[length].remove(prefixes.hash(length), candidate.at);
        self.names.release(at, &self.order, length);
        if self.tables[length].len() == 0 && self.tables_begin_small {
            // A population that moves from length to length leaves no tables behind. Without memory
            // for a mapping this one is good as well.
            if let Ok(empty) = FingerprintTable::new(0, self.options.pages) {
                self.tables[length] = empty;
            }
        }
    }

    /// Inserts prefixes whose markers have name prefix entries of their own, in the second phase of
    /// the paper's worst case (§3.4.1): a look-up then compares with a different entry at every
    /// length. All markers of one length are stored together, so that those of one prefix
    /// are far apart.
    ///
    /// # Errors
    /// As of an insertion; prefixes before the refused one are there.
    pub fn insert_with_marker_entries(&mut self, prefixes: &[(&[u8], u32)]) -> Result<(), FibRefusal> {
        let hashes: Option<Vec<PrefixHashes>> = prefixes.iter().map(|(prefix, _)| self.hashes_of(prefix)).collect();
        let hashes = hashes.ok_or(FibRefusal::PrefixTooLong)?;
        if self.len + prefixes.len() > self.capacity {
            return Err(FibRefusal::Full);
        }
        for length in 1..=self.order.longest() {
            for ((prefix, _), hashes) in prefixes.iter().zip(&hashes) {
                let of_prefix = hashes.of(0);
                let is_marker = self.order.marker_lengths(of_prefix.components()).any(|marker| marker == length);
                if is_marker && self.find(prefix, of_prefix, length).is_none() {
                    self.reserve(prefix, of_prefix, [length].into_iter()).map_err(|_| FibRefusal::NoMemory)?;
                    let own = &prefix[..of_prefix.bytes(length)];
                    let name_entry =
                        self.names.add(own, self.order.slot(length) + 1).map_err(|_| FibRefusal::NoMemory)?;
                    self.put_marker(prefix, of_prefix, length, name_entry);
                }
            }
        }
        prefixes.iter().try_for_each(|&(prefix, number)| self.insert_prefix(prefix, number).map(drop))
    }

    /// The hashes of all prefixes of a prefix, if it is none too long.
    fn hashes_of(&self, prefix: &[u8]) -> Option<PrefixHashes> {
        let mut hashes = PrefixHashes::default();
        if prefix.len() <= MAX_PREFIX_BYTES {
            hashes.add(&self.hasher, prefix, self.order.longest(), |_, _, _| ());
            let prefixes = hashes.of(0);
            return (prefixes.bytes(prefixes.components()) == prefix.len()).then_some(hashes);
        }
        None
    }

    /// The table entry of exactly the first `length` components.
    fn find(&self, prefix: &[u8], prefixes: Prefixes<'_>, length: usize) -> Option<(SlotRef, Candidate)> {
        if length == 0 {
            return None;
        }
        let candidate = self.look_up(prefix, prefixes, length, StringMatching::Always)?;
        Some((SlotRef { name_entry: candidate.name_entry, slot: self.order.slot(length) as u8 }, candidate))
    }

    /// What a marker inherits from its longest prefix of at most `components`.
    fn inherited(&self, prefix: &[u8], prefixes: Prefixes<'_>, components: usize) -> Forwarding {
        if components == 0 || !self.order.markers_inherit() {
            return Forwarding::NOTHING;
        }
        self.forwarding_above(prefix, prefixes, components)
    }

    /// Room for the table entries of the prefix at those of these lengths where there is none.
    fn reserve(
        &mut self,
        prefix: &[u8],
        prefixes: Prefixes<'_>,
        lengths: impl Iterator<Item = usize>,
    ) -> io::Result<()> {
        for length in lengths {
            if self.find(prefix, prefixes, length).is_none() {
                let (names, hasher) = (&self.names, &self.hasher);
                let hash_of = |name_entry| hasher.hash(first_components(names.string(name_entry), length));
                self.tables[length].reserve_one(hash_of)?;
            }
        }
        // Every prefix may become a marker when it is removed, which cannot be refused.
        self.keeper.reserve(self.len + 1 + prefixes.components())
    }

    fn hand_over(&mut self, prefix: &[u8], components: usize, from: Forwarding, to: Forwarding) {
        if components < self.longest_in_use && self.order.markers_inherit() {
            debug_assert!(from != Forwarding::NOTHING || to != Forwarding::NOTHING);
            let everything = Everything { tables: &self.tables, order: &self.order };
            self.keeper.hand_over(&mut self.names, everything, prefix, components, from.matched_bytes, to);
        }
    }
}

fn marker(at: SlotRef, bytes: usize) -> Marker {
    Marker { name_entry: at.name_entry, bytes: bytes as u16, slot: at.slot }
}

/// The lengths at which a prefix has markers, for who changes the tables meanwhile.
fn marker_lengths(
    tables: &HashTables,
    components: usize,
) -> arrayvec::ArrayVec<usize, { namewire_tables::MAX_NAME_COMPONENTS }> {
    tables.order.marker_lengths(components).collect()
}
