//! Learned codes: which strings get one code in a router, whose routes nobody knows beforehand?
//!
//! Source: NameTrie18 §IV-A, codes 4 to 31, which the paper leaves open; the choice of groups is that of
//! [`FrequentGroups::learned`]. A table begins with the groups of the web, and keeps a list of its routes beside the
//! trie. When these have [`LEARNED_FROM_BYTES`] bytes, groups are learned from them, and a trie with these groups is
//! built from the list and takes the place of the first. From then on there is no list, and the codes stay. A table
//! that has lost all its routes begins a list again, and learns from it in the same way.
//!
//! ```text
//! few routes                       enough                      many
//! trie, groups of the web   ──►    groups of these routes ──►  trie, learned groups
//! list of all routes               trie built anew
//! ```
//!
//! Cost: learning takes some 100 ms, once, on the thread that changes routes; readers do not wait. Bytes: the list
//! takes up to [`LEARNED_FROM_BYTES`] and some 60 for each of its routes, until groups are learned. If the kernel
//! grants no memory for the second trie, the first stays, and nothing is learned. Limits and writers: as of
//! [`NameTrie`].

use super::super::min_ascii::{FrequentGroups, MinAscii};
use super::{NameTrie, NameTrieOptions};
use namewire_tables::fib::{FibRefusal, PrefixMatch, PrefixTable};
use std::collections::BTreeMap;
use std::io;

/// Bytes of routes' names from which groups are learned.
pub const LEARNED_FROM_BYTES: usize = 16 << 10;
/// Of an entry of the list beside its name, roughly.
const LISTED_BYTES: usize = 60;

/// NameTrie whose codes are learned from its routes.
pub struct LearnedNameTrie {
    trie: NameTrie,
    seed: u64,
    options: NameTrieOptions,
    /// Until groups are learned.
    list: Option<List>,
}

/// All routes of a table that has few.
#[derive(Default)]
struct List {
    routes: BTreeMap<Box<[u8]>, u32>,
    /// Of the names.
    bytes: usize,
}

impl LearnedNameTrie {
    /// An empty trie for this many prefixes; the options' coding is that of the time before groups are learned.
    ///
    /// # Errors
    /// If the kernel does not map its arrays.
    pub fn new(capacity_entries: usize, seed: u64, options: NameTrieOptions) -> io::Result<Self> {
        let trie = NameTrie::new(capacity_entries, seed, options.clone())?;
        Ok(Self { trie, seed, options, list: Some(List::default()) })
    }

    /// Whether the codes are those of the routes.
    pub fn has_learned(&self) -> bool {
        self.list.is_none()
    }

    /// Learns from the list, and builds the trie anew.
    fn learn(&mut self) {
        let Some(List { routes, .. }) = self.list.take() else { return };
        let coding = MinAscii::with_groups(&FrequentGroups::learned(routes.keys().map(|name| &**name)));
        let options = NameTrieOptions { coding, ..self.options.clone() };
        let Ok(mut learned) = NameTrie::new(self.trie.capacity_entries, self.seed, options) else { return };
        if routes.iter().all(|(prefix, &number)| learned.insert(prefix, number).is_ok()) {
            self.trie = learned;
        }
    }
}

impl PrefixTable for LearnedNameTrie {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        let before = self.trie.insert(prefix, number)?;
        if let Some(list) = &mut self.list {
            list.bytes += if before.is_none() { prefix.len() } else { 0 };
            list.routes.insert(prefix.into(), number);
            if list.bytes >= LEARNED_FROM_BYTES {
                self.learn();
            }
        }
        Ok(before)
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let before = self.trie.remove(prefix)?;
        match &mut self.list {
            Some(list) => {
                list.routes.remove(prefix);
                list.bytes -= prefix.len();
            }
            None if self.trie.is_empty() => self.list = Some(List::default()),
            None => {}
        }
        Some(before)
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        self.trie.longest_prefix_match_batch(names, out);
    }

    fn len(&self) -> usize {
        self.trie.len()
    }

    fn bytes(&self) -> usize {
        let listed = self.list.as_ref().map_or(0, |list| list.bytes + list.routes.len() * LISTED_BYTES);
        size_of::<Self>() - size_of::<NameTrie>() + self.trie.bytes() + listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::min_ascii::NameCodes;

    fn name(number: u32) -> Vec<u8> {
        let site = format!("{:08x}-sensor", number.wrapping_mul(0x9e37_79b9));
        [&[8, site.len() as u8], site.as_bytes(), &b"\x08\x0btemperature"[..]].concat()
    }

    fn trie() -> LearnedNameTrie {
        let options = NameTrieOptions { coding: NameCodes::Learned.coding(), ..NameTrieOptions::default() };
        LearnedNameTrie::new(100_000, 1, options).unwrap()
    }

    fn found(trie: &LearnedNameTrie, name: &[u8]) -> Option<u32> {
        let (longer, mut found) = ([name, b"\x08\x01x"].concat(), [None]);
        trie.longest_prefix_match_batch(&[&longer], &mut found);
        found[0].filter(|found| usize::from(found.prefix_bytes) == name.len()).map(|found| found.number)
    }

    /// Routes come, change and go on both sides of the change of codes; each has its last number throughout.
    #[test]
    fn codes_are_learned_from_the_first_routes_and_no_route_is_lost() {
        let mut trie = trie();
        let enough = (LEARNED_FROM_BYTES / name(0).len()) as u32 + 1;
        for number in 0..enough + 9 {
            // Ten more than counted are removed below.
            assert_eq!(trie.insert(&name(number), number), Ok(None));
            assert_eq!(trie.insert(&name(number), number + 7), Ok(Some(number)));
            if number < 10 {
                assert_eq!(trie.remove(&name(number)), Some(number + 7));
                assert_eq!(trie.remove(&name(number)), None);
            }
            assert_eq!(trie.has_learned(), number + 1 >= enough + 10);
        }
        assert_eq!(trie.insert(&name(enough + 9), enough + 16), Ok(None));
        assert!(trie.has_learned());
        assert_eq!(trie.len(), enough as usize);
        assert!((0..10).all(|number| found(&trie, &name(number)).is_none()));
        assert!((10..enough + 10).all(|number| found(&trie, &name(number)) == Some(number + 7)));
        for number in 10..enough + 10 {
            assert_eq!(trie.remove(&name(number)), Some(number + 7));
        }
        // An empty table learns anew.
        assert!(!trie.has_learned() && trie.is_empty());
        (0..enough).for_each(|number| assert_eq!(trie.insert(&name(number), number), Ok(None)));
        assert!(trie.has_learned() && (0..enough).all(|number| found(&trie, &name(number)) == Some(number)));
    }

    #[test]
    fn learned_codes_take_less_memory_than_none() {
        let (mut learned, mut plain) = (trie(), NameTrie::new(100_000, 1, NameTrieOptions::default()).unwrap());
        let before = learned.bytes();
        assert_eq!(learned.insert(&name(0), 0), Ok(None));
        assert!(learned.bytes() >= before + LISTED_BYTES, "the list counts");
        for number in 0..30_000 {
            learned.insert(&name(number), number).unwrap();
            plain.insert(&name(number), number).unwrap();
        }
        let (learned, plain) = (learned.trie.name_nodes_bytes(), plain.name_nodes_bytes());
        assert!(learned * 10 < plain * 7, "{learned} bytes with learned groups, {plain} without");
    }
}
