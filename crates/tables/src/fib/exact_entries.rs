//! Exact entries: the entries that a FIB with a lossy table keeps outside this table, in full.
//!
//! A lossy table may mistake a name without a route for a name with a route ([`super::PrefixTable`]). A core router
//! accepts that for routes. It cannot accept it for strategies and the forwarder's own prefixes: names would be
//! forwarded by a strategy that was not chosen for them, and packets of other hosts would reach management. So a lossy
//! table has only routes ([`FibEntryKind`]), and this table has the other entries. A look-up combines both:
//!
//! ```text
//!  longest exact entry                        longest route of the lossy table     next hops of    strategy of
//!  the forwarder's own                        any                                  exact entry     exact entry
//!  any other                                  none, or not longer                  exact entry     exact entry
//!  any other                                  longer                               lossy table     exact entry
//! ```
//!
//! Like every entry of a FIB, an exact entry has the next hops that its prefix inherits.
//!
//! Cost: a look-up hashes a prefix of the name for each length that exact entries have; usually there are three, of two
//! components at most. Bytes: an entry takes its prefix, and about 40. Limit: the caller limits the number of entries.
//! Writers: the owner.

use super::entry::FibEntryKind;
use super::next_hop_sets::{NextHopSet, OwnedSets};
use crate::name_hash::{MAX_NAME_COMPONENTS, components_of};
use hashbrown::HashMap;

/// A prefix and what it leads to, to keep in [`ExactEntries`].
#[derive(Clone)]
pub(super) struct ExactEntry {
    pub(super) prefix: Box<[u8]>,
    pub(super) content: NextHopSet,
    pub(super) kind: FibEntryKind,
}

/// The longest exact entry of a name.
#[derive(Clone, Copy)]
pub(super) struct ExactMatch<'a> {
    pub(super) set: &'a NextHopSet,
    pub(super) prefix_bytes: usize,
    pub(super) is_own: bool,
}

#[derive(Clone, Copy)]
struct Kept {
    set: u32,
    is_own: bool,
}

/// See the module.
pub(super) struct ExactEntries {
    entries: HashMap<Box<[u8]>, Kept>,
    sets: OwnedSets,
    /// Element n: how many entries have n components.
    lengths: Box<[u32; MAX_NAME_COMPONENTS + 1]>,
    /// Components of the longest entry.
    longest: usize,
    prefix_bytes: usize,
}

impl ExactEntries {
    pub(super) fn new() -> Self {
        Self {
            entries: HashMap::new(),
            sets: OwnedSets::new(),
            lengths: Box::new([0; MAX_NAME_COMPONENTS + 1]),
            longest: 0,
            prefix_bytes: 0,
        }
    }

    /// Whether there is exactly this prefix.
    pub(super) fn contains(&self, prefix: &[u8]) -> bool {
        self.entries.contains_key(prefix)
    }

    /// Adds the entry, or replaces the one of the same prefix; returns whether it was there. The prefix has at most
    /// [`MAX_NAME_COMPONENTS`].
    pub(super) fn insert(&mut self, ExactEntry { prefix, content, kind }: &ExactEntry) -> bool {
        let kept = Kept { set: self.sets.acquire(content.clone()), is_own: *kind == FibEntryKind::Own };
        let before = self.entries.insert(prefix.clone(), kept);
        match before {
            Some(before) => self.sets.release(before.set),
            None => {
                let components = components_of(prefix).count();
                self.lengths[components] += 1;
                self.longest = self.longest.max(components);
                self.prefix_bytes += prefix.len();
            }
        }
        before.is_some()
    }

    /// Removes the prefix; returns whether it was there.
    pub(super) fn remove(&mut self, prefix: &[u8]) -> bool {
        let Some(before) = self.entries.remove(prefix) else { return false };
        self.sets.release(before.set);
        self.lengths[components_of(prefix).count()] -= 1;
        self.longest = self.lengths.iter().rposition(|entries| *entries > 0).unwrap_or(0);
        self.prefix_bytes -= prefix.len();
        true
    }

    /// The longest entry that is a prefix of this name.
    pub(super) fn longest(&self, name_value: &[u8]) -> Option<ExactMatch<'_>> {
        let (mut longest, mut bytes) = (None, 0);
        let ends = components_of(name_value).map(|component| {
            bytes += component.len();
            bytes
        });
        let ends = std::iter::once(0).chain(ends);
        for (end, entries) in ends.zip(&self.lengths[..=self.longest]) {
            if *entries > 0
                && let Some(kept) = self.entries.get(&name_value[..end])
            {
                longest = Some((end, *kept));
            }
        }
        let (prefix_bytes, Kept { set, is_own }) = longest?;
        Some(ExactMatch { set: self.sets.get(set)?, prefix_bytes, is_own })
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.entries.allocation_size() + self.sets.bytes() + self.prefix_bytes + size_of_val(&*self.lengths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(prefix: &[u8], strategy: u32) -> ExactEntry {
        let content = NextHopSet { nexthops: [].into_iter().collect(), strategy, hidden: true };
        ExactEntry { prefix: prefix.into(), content, kind: FibEntryKind::Strategy }
    }

    #[test]
    fn the_longest_prefix_is_found_among_all_lengths_while_entries_come_and_go() {
        let mut exact = ExactEntries::new();
        let names: [&[u8]; 4] = [b"", b"\x08\x01a", b"\x08\x01a\x08\x01b\x08\x00", b"\x08\x01b"];
        let found = |exact: &ExactEntries, name: &[u8]| {
            exact.longest(name).map(|found| (found.set.strategy, found.prefix_bytes))
        };
        assert_eq!(found(&exact, names[2]), None);
        for (strategy, name) in (1..).zip(names) {
            assert!(!exact.insert(&entry(name, 9)) && exact.insert(&entry(name, strategy)) && exact.contains(name));
        }
        assert_eq!(found(&exact, b"\x08\x01a\x08\x01b\x08\x00\x08\x00"), Some((3, 8)));
        assert_eq!(found(&exact, b"\x08\x01a\x08\x01b"), Some((2, 3)), "not a longer one");
        assert!(exact.remove(names[2]) && !exact.remove(names[2]));
        assert_eq!(found(&exact, names[2]), Some((2, 3)));
        assert!(exact.remove(names[1]) && exact.remove(names[3]));
        assert_eq!((found(&exact, names[2]), exact.longest), (Some((1, 0)), 0));
    }
}
