//! Designs: how do the papers find the longest prefix of a name?
//!
//! Each module is one design of the literature, written as its paper describes it. All have the same interface,
//! [`PrefixTable`](namewire_tables::fib::PrefixTable), which also states the limits. They map prefixes to *numbers*: a
//! number is the papers' outgoing port, and in the FIB a next-hop set.
//!
//! Trivial designs for comparison and new designs belong here as well; [`catalogue`] says how to add one.
//!
//! Names are the bytes of validated Name TLV-VALUEs. Components have any type and content, and the root is a prefix
//! too. If the paper of a design knows only printable names, the header of the module explains how it stores the
//! others.
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
pub mod shared_name_trie;
pub mod string_differentiation;
mod trie_walk;
mod word_heap;

pub use prefetching::{BatchPrefetch, FibPrefetch};
