//! Designs: how do the papers look the longest prefix of a name up?
//!
//! Each module is one design of the literature, written as its paper has it. All answer the same question behind
//! one call, [`PrefixTable`](namewire_tables::fib::PrefixTable), which also states the limits. They map prefixes to
//! *numbers*: a number is the papers' outgoing port, and in the FIB a next-hop set.
//!
//! A trivial design, for comparison, or one of our own belongs here as well; [`catalogue`] says how to add it.
//!
//! Names are the bytes of validated Name TLV-VALUEs. Components have any type and content, and the root is a
//! prefix too. A design whose paper knows only printable names says how it carries the others.
//!
//! Writers: the owner, while there are no readers. A router keeps two copies: readers look at one while it changes
//! the other.

pub mod bit_trie;
pub mod catalogue;
pub mod character_trie;
pub mod component_trie;
pub mod default_table;
pub mod hash_tables;
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
