//! Designs: how do the papers look the longest prefix of a name up?
//!
//! Each module is one design of the literature, written as its paper has it; all answer the same
//! question behind one call, [`PrefixTable`]: they map prefixes to *numbers* (the papers' outgoing
//! port; the FIB's next-hop set). The house's own table (`super::view`) is not one of them: it
//! changes while readers look, these do not.
//!
//! Names are octets of validated Name TLV-VALUEs, components of any type and content, the
//! root included. A design whose paper knows only printable names says how it carries the others.
//! Limits: [`super::MAX_PREFIX_OCTETS`], [`crate::MAX_NAME_COMPONENTS`], the capacity that a
//! design is made with; beyond them `insert` refuses and nothing changes.
//!
//! Who may write: the owner, while nobody reads. A router keeps two copies and lets readers look
//! at one while it changes the other.

pub mod bit_trie;
pub mod catalogue;
pub mod character_trie;
pub mod component_trie;
pub mod hash_tables;
pub mod house;
pub mod level_pulling;
pub mod min_ascii;
pub mod name_tree_hash_table;
pub mod name_trie;
pub mod nce;
pub mod npt;
mod prefetching;
mod radix_trie;
pub mod string_differentiation;
mod trie_walk;
mod word_heap;

pub use prefetching::{BatchPrefetch, FibPrefetch};

use super::FibRefusal;

/// Names that a caller hands over at most in one call of [`PrefixTable::longest_prefix_match_batch`].
pub const DESIGN_BATCH_NAMES: usize = 64;

/// What a look-up found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixMatch {
    /// What the prefix leads to.
    pub number: u32,
    /// How many octets of the name's TLV-VALUE the prefix has; 0 is the root.
    pub prefix_octets: u16,
}

/// A FIB of one of the papers: prefixes and the number that each leads to.
pub trait PrefixTable: Send + Sync {
    /// Adds the prefix, or lets it lead to `number`; gives the number that it led to before.
    ///
    /// # Errors
    /// [`FibRefusal`]; then nothing changed.
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal>;

    /// Removes the prefix; gives the number that it led to, if it was there.
    fn remove(&mut self, prefix: &[u8]) -> Option<u32>;

    /// The longest prefix of every name, with the prefetching that the design is set to.
    /// A lossless design gives `None` if no prefix of the name is there; a lossy one
    /// may then give anything, but is right about every name that has a prefix (beside the root, where that is
    /// set to be a guess: [`string_differentiation::DefaultRoute`]).
    ///
    /// # Panics
    /// If `out` is shorter than `names`, or there are more than [`DESIGN_BATCH_NAMES`].
    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]);

    /// How many prefixes there are.
    fn len(&self) -> usize;

    /// Whether there is no prefix at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Octets of memory of everything the design needs to look names up and to be changed, as
    /// allocated: room not yet used and free lists included.
    fn bytes(&self) -> usize;

    /// The part of [`PrefixTable::bytes`] that looking up needs. Differs where a route controller
    /// keeps what the forwarding table does not (Yuan15 §4.3.6).
    fn forwarding_bytes(&self) -> usize {
        self.bytes()
    }

    /// Whether a name without a prefix is always told so.
    fn is_lossless(&self) -> bool {
        true
    }
}
