//! Designs: how do the papers look the longest prefix of a name up?
//!
//! Each module is one design of the literature, written as its paper has it; all answer the same
//! question behind one call, [`PrefixTable`](namewire_tables::fib::PrefixTable), which tells the limits: they
//! map prefixes to *numbers* (the papers' outgoing port; the FIB's next-hop set).
//!
//! Names are bytes of validated Name TLV-VALUEs, components of any type and content, the
//! root included. A design whose paper knows only printable names says how it carries the others.
//!
//! Writers: the owner, while there are no readers. A router keeps two copies and lets readers look
//! at one while it changes the other.

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
