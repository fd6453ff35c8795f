//! Component trie: which prefix is the longest, a run of components at a time?
//!
//! Source: NameTrie18 §III and Fig. 2, the coarsest of its three granularities in their non-optimised form. There are
//! few levels, but nodes with any number of children, and only whole components are shared (`/ndn` and `/ndx` share
//! nothing). Path compression (Patricia): a node takes all components up to the next branch or prefix. With one
//! component per node the trie is [`super::npt`].
//!
//! Layout, cost, limits: `radix_trie`. Deviations: the paper shows figures, not an implementation. Components are
//! TLVs, so type and length count as much as the bytes, and children are sorted by all three.

use super::radix_trie::{Granularity, RadixTrie};
use namewire_tables::name_hash::components_of;

/// A Patricia trie over components.
pub type ComponentTrie = RadixTrie<ComponentRuns>;

/// A label is one component or more.
pub struct ComponentRuns;

impl Granularity for ComponentRuns {
    const IS_BYTE: bool = false;
    const IS_COMPRESSED: bool = true;

    fn first_unit(bytes: &[u8]) -> &[u8] {
        components_of(bytes).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::BatchPrefetch;
    use crate::fib::radix_trie::tests::{example, labels};
    use namewire_tables::fib::PrefixTable;

    /// NameTrie18 Fig. 3: one character in the last component differs, and it is stored again.
    #[test]
    fn only_whole_components_are_shared() {
        let mut trie = ComponentTrie::new(10, BatchPrefetch::Batch, namewire_tables::PageSize::Base).unwrap();
        for (number, name) in ["/ndn/ucla", "/ndn/ucla/cs", "/ndn/uci", "/ndn/ua/cs"].into_iter().enumerate() {
            trie.insert(&example(name), number as u32).unwrap();
        }
        // Siblings in the order of their TLVs: the shorter component first.
        assert_eq!(labels(&trie), ["0:", "1:/ndn", "2:/ua/cs=3", "2:/uci=2", "2:/ucla=0", "3:/cs=1"]);
        assert_eq!(trie.remove(&example("/ndn/ucla")), Some(0));
        assert_eq!(trie.remove(&example("/ndn/uci")), Some(2));
        assert_eq!(labels(&trie), ["0:", "1:/ndn", "2:/ua/cs=3", "2:/ucla/cs=1"]);
        assert_eq!(trie.remove(&example("/ndn/ua/cs")), Some(3));
        assert_eq!(labels(&trie), ["0:", "1:/ndn/ucla/cs=1"], "Patricia has no node without a choice or a prefix");
    }
}
