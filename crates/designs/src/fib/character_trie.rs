//! Character trie: which prefix is the longest, a run of bytes at a time?
//!
//! Source: NameTrie18 §III, Fig. 2 and Fig. 3(a): the middle one of its three granularities, in the conventional form
//! with pointers that NameTrie improves on:
//!
//! - `/ndn` and `/ndx` share `/nd`.
//! - A name that leaves a node in the middle of its label splits the node in two (*node partitioning*). So the trie
//!   becomes a level deeper.
//! - Leaves carry an empty pointer.
//! - Path compression (Patricia): a node takes all bytes up to the next branch or prefix.
//!
//! Layout, cost, limits: `radix_trie`.
//!
//! Deviations: the paper shows no implementation. Its characters are those of the URI; here they are the bytes of the
//! name's TLVs, so that every component can be carried. A length comes before the bytes it counts. So components with a
//! common beginning but different lengths share only their type. No search for component boundaries is needed: if a
//! sequence of components begins with another in bytes, it does so in components.

use super::radix_trie::{Granularity, RadixTrie};

/// A Patricia trie over bytes.
pub type CharacterTrie = RadixTrie<ByteRuns>;

/// A label is one byte or more.
pub struct ByteRuns;

impl Granularity for ByteRuns {
    const IS_BYTE: bool = true;
    const IS_COMPRESSED: bool = true;

    #[inline(always)]
    fn first_unit(bytes: &[u8]) -> &[u8] {
        &bytes[..1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::BatchPrefetch;
    use crate::fib::radix_trie::tests::{example, labels};
    use namewire_tables::fib::PrefixTable;

    /// NameTrie18 Fig. 3(a), with components of one length so that the bytes are those of the paper:
    /// `ucla` is parted at `uc`, then at `u`.
    #[test]
    fn a_node_is_parted_where_names_part() {
        let mut trie = CharacterTrie::new(10, BatchPrefetch::Batch, namewire_tables::PageSize::Base).unwrap();
        trie.insert(&example("/ndn/ucla"), 0).unwrap();
        assert_eq!(labels(&trie), ["0:", "1:/ndn/ucla=0"]);
        trie.insert(&example("/ndn/uciX"), 1).unwrap();
        assert_eq!(labels(&trie), ["0:", "1:/ndn/uc", "2:iX=1", "2:la=0"]);
        trie.insert(&example("/ndn/uaXY"), 2).unwrap();
        assert_eq!(labels(&trie), ["0:", "1:/ndn/u", "2:aXY=2", "2:c", "3:iX=1", "3:la=0"]);
        trie.insert(&example("/ndn"), 3).unwrap();
        assert_eq!(labels(&trie), ["0:", "1:/ndn=3", "2:/u", "3:aXY=2", "3:c", "4:iX=1", "4:la=0"]);
        assert_eq!(trie.remove(&example("/ndn/uciX")), Some(1));
        assert_eq!(labels(&trie), ["0:", "1:/ndn=3", "2:/u", "3:aXY=2", "3:cla=0"]);
        assert_eq!(trie.remove(&example("/ndn/uaXY")), Some(2));
        assert_eq!(labels(&trie), ["0:", "1:/ndn=3", "2:/ucla=0"]);
        assert_eq!(trie.remove(&example("/ndn")), Some(3));
        assert_eq!(labels(&trie), ["0:", "1:/ndn/ucla=0"]);
    }
}
