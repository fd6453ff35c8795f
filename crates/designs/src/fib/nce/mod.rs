//! NCE: which prefix is the longest, with a code for every component?
//!
//! Source: Wang et al., "Scalable Name Lookup in NDN Using Effective Name Component Encoding" (ICDCS 2012), one of the
//! two tries that NameTrie18 §II.B and §V compares with. Paper's terms → ours: *Component Character Trie* (CCT) →
//! `cct`, *Encoded Name Prefix Trie* (ENPT) → `enpt`, *State Transition Arrays* (STA: base array, transition arrays) →
//! `transition_arrays`, *code allocation* and management → `code_allocation`.
//!
//! ```text
//! /com/google ──► com │ CCT: c─o─m = 0      ENPT: ( )─0─( )─3─( ) = port
//!                 google │ g─o─o─g─l─e = 3
//! ```
//!
//! Components are stored once, however many prefixes have them. An edge of the trie of names is a code of a fixed
//! size. So the transitions of a state are an array that is searched in log2 steps without following a pointer. Two
//! components share a code if no state has both of them, which keeps codes small.
//!
//! Cost: for each component, a look-up reads 2 lines of the CCT for each byte (often the same lines, mostly warm), 2
//! lines of the ENPT, and the lines of the binary search. Bytes: see `cct` (16 per byte that no other component begins
//! with), `enpt` (28 to 36 per component of a prefix that is not shared), `code_allocation` (24, for changes only).
//!
//! **A reconstruction**. What we know of the paper: its abstract, the terms above and what NameTrie18 says of it
//! (sorted transitions and binary search, arrays that are resized and rearranged by updates). The content of a node,
//! room by powers of two, and how codes change are ours.
//!
//! Deviations:
//! - Components are TLVs of any type and content.
//! - An ENPT state knows its component, and a look-up compares it. A component that does not lead away from a state
//!   may have the code of one that does; without the comparison, a name without a prefix would seem to have one.
//! - The number of a prefix is in its state, not in a separate list.
//! - A component is encoded when the search comes to it, not before.
//! - "Simplified STA" (He et al., in NameTrie18 §II.B) has a hash table in the place of the CCT. It is not built.
//!
//! Limits: the capacity, 2^27 states with one number of transitions. Writers: the owner.

mod cct;
mod code_allocation;
mod enpt;
mod transition_arrays;
mod walk;

use super::BatchPrefetch;
use super::trie_walk::walk_batch;
use cct::{ComponentCharacterTrie, Encoding, Spelling};
use code_allocation::Management;
use enpt::EncodedNamePrefixTrie;
use namewire_tables::fib::{FibRefusal, MAX_PREFIX_BYTES};
use namewire_tables::fib::{PrefixMatch, PrefixTable};
use namewire_tables::name_hash::{MAX_NAME_COMPONENTS, components_of};
use namewire_tables::pages::PageSize;
use std::io;

/// A FIB by name component encoding.
pub struct NameComponentEncoding {
    cct: ComponentCharacterTrie,
    enpt: EncodedNamePrefixTrie,
    management: Management,
    entries: usize,
    capacity_entries: usize,
    prefetch: BatchPrefetch,
}

impl NameComponentEncoding {
    /// An empty table for this many prefixes, on these pages.
    ///
    /// # Errors
    /// If the kernel maps no memory.
    pub fn new(capacity_entries: usize, prefetch: BatchPrefetch, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            cct: ComponentCharacterTrie::new(pages)?,
            enpt: EncodedNamePrefixTrie::new(pages)?,
            management: Management::new(pages)?,
            entries: 0,
            capacity_entries,
            prefetch,
        })
    }

    /// The state that a component leads to.
    fn next_state(&self, from: u32, spelling: Spelling<'_>) -> Option<u32> {
        let (_, Encoding { code, component }) = self.cct.find(spelling)?;
        let to = self.enpt.next(from, code)?;
        (self.enpt.node(to).component() == component).then_some(to)
    }

    /// The states that a prefix leads through, as far as there are any; the root is the first.
    fn path(&self, prefix: &[u8]) -> Path {
        let mut path = Path::from_slice(&[enpt::ROOT]);
        let mut components = components_of(prefix);
        while let Some(next) =
            components.next().and_then(|component| self.next_state(path[path.len() - 1], Spelling::of(component)))
        {
            path.push(next);
        }
        path
    }

    /// Removes the states at the end of a path that lead nowhere and have no number.
    fn prune(&mut self, prefix: &[u8], mut path: Path) {
        let components: smallvec::SmallVec<[&[u8]; 16]> = components_of(prefix).collect();
        while let [.., from, to] = path[..] {
            let node = self.enpt.node(to);
            if node.number().is_some() || node.transition_count() > 0 {
                break;
            }
            self.remove_edge(from, to, Spelling::of(components[path.len() - 2]));
            path.pop();
        }
    }
}

type Path = smallvec::SmallVec<[u32; 16]>;

impl PrefixTable for NameComponentEncoding {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        let components = components_of(prefix).count();
        if prefix.len() > MAX_PREFIX_BYTES || components > MAX_NAME_COMPONENTS {
            return Err(FibRefusal::PrefixTooLong);
        }
        let mut path = self.path(prefix);
        let known = path.len() - 1;
        let before = if known == components { self.enpt.node(path[known]).number() } else { None };
        if before.is_none() && self.entries == self.capacity_entries {
            return Err(FibRefusal::Full);
        }
        for component in components_of(prefix).skip(known) {
            let Ok(next) = self.add_edge(path[path.len() - 1], Spelling::of(component)) else {
                self.prune(prefix, path);
                return Err(FibRefusal::NoMemory);
            };
            path.push(next);
        }
        self.enpt.set_number(path[components], Some(number));
        self.entries += usize::from(before.is_none());
        Ok(before)
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let path = self.path(prefix);
        if path.len() - 1 < components_of(prefix).count() {
            return None;
        }
        let state = path[path.len() - 1];
        let before = self.enpt.node(state).number()?;
        self.enpt.set_number(state, None);
        self.entries -= 1;
        self.prune(prefix, path);
        Some(before)
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        walk_batch(self, self.prefetch, names, out);
    }

    fn len(&self) -> usize {
        self.entries
    }

    fn bytes(&self) -> usize {
        self.forwarding_bytes() + self.management.bytes()
    }

    /// Without the management part.
    fn forwarding_bytes(&self) -> usize {
        self.cct.bytes() + self.enpt.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::radix_trie::tests::example;

    fn code(nce: &NameComponentEncoding, component: &str) -> Option<u32> {
        nce.cct.find(Spelling::of(&example(component))).map(|(_, encoding)| encoding.code)
    }

    fn with(names: &[&str]) -> NameComponentEncoding {
        let mut nce = NameComponentEncoding::new(10, BatchPrefetch::Batch, PageSize::Base).unwrap();
        for (number, name) in names.iter().enumerate() {
            nce.insert(&example(name), number as u32).unwrap();
        }
        nce
    }

    fn find(nce: &NameComponentEncoding, name: &str) -> Option<PrefixMatch> {
        let mut found = [None];
        nce.longest_prefix_match_batch(&[&example(name)], &mut found);
        found[0]
    }

    #[test]
    fn components_of_different_states_share_codes() {
        let nce = with(&["/com/yahoo/news", "/com/yahoo/maps/uk", "/com/google/maps", "/cn/google"]);
        let codes = ["/com", "/cn", "/yahoo", "/google", "/news", "/maps", "/uk"].map(|name| code(&nce, name).unwrap());
        assert_eq!(codes, [0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(code(&nce, "/org"), None);
    }

    /// `/uk` has the code of `/yahoo`, but does not lead away from `/com`.
    #[test]
    fn a_shared_code_is_not_taken_for_the_component() {
        let nce = with(&["/com/yahoo", "/com/google/maps/uk", "/com"]);
        assert_eq!(code(&nce, "/uk"), code(&nce, "/yahoo"));
        assert_eq!(find(&nce, "/com/uk"), Some(PrefixMatch { number: 2, prefix_bytes: 5 }));
        assert_eq!(find(&nce, "/com/google/maps/uk/x"), Some(PrefixMatch { number: 1, prefix_bytes: 23 }));
    }

    #[test]
    fn of_two_components_that_meet_the_rarer_gets_another_code() {
        let mut nce = with(&["/a/x", "/b/x", "/c/y"]);
        assert_eq!((code(&nce, "/x"), code(&nce, "/y")), (Some(0), Some(0)));
        nce.insert(&example("/c/x"), 7).unwrap();
        assert_eq!((code(&nce, "/x"), code(&nce, "/y")), (Some(0), Some(1)));
        nce.insert(&example("/a/y"), 8).unwrap();
        nce.insert(&example("/a/z"), 9).unwrap();
        assert_eq!(code(&nce, "/z"), Some(2));
        for (name, number) in [("/a/x", 0), ("/b/x", 1), ("/c/y", 2), ("/c/x", 7), ("/a/y", 8), ("/a/z", 9)] {
            assert_eq!(find(&nce, name).map(|found| found.number), Some(number), "{name}");
        }
        assert_eq!(find(&nce, "/b/y"), None);
    }

    #[test]
    fn the_last_prefix_with_a_component_takes_it_along() {
        let mut nce = with(&["/a/x", "/b/x"]);
        let bytes = nce.bytes();
        assert_eq!(nce.remove(&example("/a/x")), Some(0));
        assert!(code(&nce, "/x").is_some() && code(&nce, "/a").is_none());
        assert_eq!(nce.remove(&example("/b/x")), Some(1));
        assert!(code(&nce, "/x").is_none() && code(&nce, "/b").is_none());
        for number in 0..1000 {
            nce.insert(&example("/b/x/y"), number).unwrap();
            nce.remove(&example("/b/x/y"));
        }
        assert!(nce.bytes() <= bytes * 2, "{bytes} bytes grew to {}", nce.bytes());
    }
}
