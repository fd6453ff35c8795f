//! NPT: which prefix is the longest, one component after the other?
//!
//! Source: Wang et al., "Parallel Name Lookup for Named Data Networking" (GLOBECOM 2011), whose *Name Prefix Trie* is
//! the component trie of NDN; NameTrie18 §II.B and §V compares with it. Paper's terms → ours: logical tree → this
//! trie; node (a *state* of the look-up) → node; edge, labelled with one component → the child's label.
//!
//! **A reconstruction**: we know the paper's abstract and what NameTrie18 says of it. How nodes and children are stored
//! is ours.
//!
//! Every node is for one component. No path is compressed: also nodes that are no prefix and have one child are kept.
//! The whole component is stored where the edge ends, once for each edge of that name. Children are sorted, so a node
//! with very many (`/com`) is searched in log2(children) steps. Each step follows two pointers, and most of the time
//! of a look-up is spent there, as NameTrie18 §V.B.2 says. A new child moves half of its siblings' pointers.
//!
//! Layout, limits: `radix_trie`. Cost per component: it reads the lines of one node and of log2(children) pointers and
//! siblings. Deviations: the paper's subject is how nodes are spread over the memories of parallel hardware, so that
//! several look-ups run at the same time (PNL). Here there is one memory, and several look-ups run at the same time in
//! a batch ([`super::BatchPrefetch`]). We do not know how the paper keeps children. A list that is searched from its
//! beginning would take a million steps below `/com`.

use super::component_trie::ComponentRuns;
use super::radix_trie::{Granularity, RadixTrie};

/// A trie of one component per node.
pub type NamePrefixTrie = RadixTrie<SingleComponents>;

/// A label is one component.
pub struct SingleComponents;

impl Granularity for SingleComponents {
    const IS_BYTE: bool = false;
    const IS_COMPRESSED: bool = false;

    fn first_unit(bytes: &[u8]) -> &[u8] {
        ComponentRuns::first_unit(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::BatchPrefetch;
    use crate::fib::radix_trie::tests::{example, labels};
    use namewire_tables::fib::PrefixTable;

    #[test]
    fn every_component_has_a_node() {
        let mut trie = NamePrefixTrie::new(10, BatchPrefetch::Batch, namewire_tables::PageSize::Base).unwrap();
        for (number, name) in ["/com/google/maps", "/com/yahoo/maps/uk", "/com/google"].into_iter().enumerate() {
            trie.insert(&example(name), number as u32).unwrap();
        }
        let both = ["0:", "1:/com", "2:/yahoo", "3:/maps", "4:/uk=1", "2:/google=2", "3:/maps=0"];
        assert_eq!(labels(&trie), both);
        assert_eq!(trie.remove(&example("/com/yahoo/maps/uk")), Some(1));
        assert_eq!(labels(&trie), ["0:", "1:/com", "2:/google=2", "3:/maps=0"]);
        assert_eq!(trie.remove(&example("/com/google")), Some(2));
        assert_eq!(trie.remove(&example("/com/google/maps")), Some(0));
        assert_eq!(labels(&trie), ["0:"]);
    }
}
