//! Vector table: the paper's prefix trie over sets of bit positions, in one vector of 8-byte cells.
//!
//! Question: which of 10⁷ stored descriptors are subsets of this one?
//!
//! A descriptor is the sequence of the positions of its 1-bits; the sequences form a trie. A search visits only nodes
//! whose position is a 1-bit of the query. Each step of the paper has a switch in [`VectorOptions`]; the answers are
//! the same in every form.
//!
//! | file | step | paper |
//! | --- | --- | --- |
//! | `../permutation.rs` | the most popular bits first | §3.2.1 |
//! | `build.rs` | terminal chains leave the trie; siblings are laid out in one order or the other | §3.2.2, §3.2.3 |
//! | `cell.rs` | a node: position, depths, last-child flag, first child | §3.2.3 |
//! | `search.rs` | *Find All Subsets*, *Find Largest Subset*, three pruning strategies | §3.1, Algorithms 1 to 3 |
//!
//! ```text
//!   cell, 8 bytes    0          1           2           3 ......................... 7
//!                    position   min depth   max depth   last child, terminator, offset (38 bits)
//!
//!   cells    │ children of the root │ list │ …    an inner node's offset: where the list of its children begins
//!   chains   │ positions, value │ …               a terminator's offset: where its removed chain begins
//! ```
//!
//! | paper | here |
//! | --- | --- |
//! | `FIB` | the vector, `cells` |
//! | `n.pos`, `$` | a cell's position, `END` |
//! | `n.max_depth`, minimum depth | a cell's `max_depth`, `min_depth` |
//! | `nodes_to_visit` | the stack |
//! | `best` | the least weight that is still wanted, and the entry |
//! | `n.interfaces` | the value |
//! | SOL, SROL | [`Layout::SiblingOrder`], [`Layout::SiblingReverseOrder`] |
//!
//! Deviations from the paper:
//! - Of several largest subsets, the lowest descriptor is the answer. So pruning keeps a subtree that may hold a subset
//!   as large as the best one found. [`VectorTable::find_first_largest`] is the paper's walk, which drops such a
//!   subtree.
//! - The stack holds nodes, as in Algorithm 1, not lists, as in Algorithm 3. Lists are scanned as in Algorithm 3.
//! - A terminator without a removed chain keeps its value in its offset field.
//! - Three additional steps of ours, off in [`VectorOptions::PAPER`]: [`BitOrder::RareFirst`],
//!   [`VectorOptions::keep_chain_heads`], [`VectorOptions::overlap_reads`].
//!
//! N.B. The order with popular bits first makes the trie small. But most queries have the popular bits, so they pass
//! the first levels of the trie. The order with rare bits first costs 12 % more memory once chains are removed, and
//! saves 70 % of the cells that a search visits (10⁷ descriptors of 3 tags each, drawn from 10⁶ with a Zipf exponent of
//! 1; queries are stored descriptors with up to 2 more tags).
//!
//! Cost: a query is permuted by one look-up for each 1-bit. A search reads each list that it visits (a cache miss or
//! more) and one chain for each terminator whose heads match. Memory: 8 bytes for each cell, and every descriptor has
//! at least one; one byte for each position of a removed chain that the terminator's cell does not hold, and 4 bytes
//! for the value after the chain.
//!
//! Limits: 2³² entries, 2³⁸ cells, 2³⁸ bytes of chains; [`BuildError`] names the limit that a set exceeds. The table
//! does not change once it is built; readers share it.

mod build;
mod cell;
mod search;

pub use super::permutation::BitOrder;
use super::permutation::Permutation;
use super::{Entry, SubsetTable};
pub use build::BuildError;
use cell::Cell;
use namewire_packet::descriptor::Descriptor;
pub use search::SearchCounts;
use search::{All, Largest, Observer, Query, VALUE_BYTES};
use std::ops::ControlFlow;

/// In which order the subtrees of siblings follow each other in the vector. The siblings themselves are always a list
/// in the order of their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The paper's SOL: first the first sibling's subtree.
    SiblingOrder,
    /// The paper's SROL: first the last sibling's subtree, which is the order of a walk with a stack.
    SiblingReverseOrder,
}

/// The paper's steps and ours, each with a switch. The default is the paper's final form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorOptions {
    /// Which bits come first in the trie.
    pub bit_order: BitOrder,
    /// Takes terminal chains out of the trie.
    pub remove_chains: bool,
    /// The first two positions of a removed chain stay in its terminator. Most chains fail there, without a look into
    /// the memory of chains. Not in the paper.
    pub keep_chain_heads: bool,
    /// The order of subtrees.
    pub layout: Layout,
    /// First strategy: skips nodes whose lightest descriptor is heavier than the query.
    pub prune_min_depth: bool,
    /// Second strategy: skips nodes whose lightest descriptor needs more 1-bits than the query has to the right. It
    /// skips all that the first does.
    pub prune_remaining: bool,
    /// Third strategy: *Find Largest Subset* skips nodes below which the query has too few 1-bits to reach the best.
    pub prune_best: bool,
    /// Walks take several cells at a time from the stack, and read at the same time what they lead to. Not in the
    /// paper.
    pub overlap_reads: bool,
}

impl VectorOptions {
    /// The paper's final form.
    pub const PAPER: VectorOptions = VectorOptions {
        bit_order: BitOrder::PopularFirst,
        remove_chains: true,
        keep_chain_heads: false,
        layout: Layout::SiblingReverseOrder,
        prune_min_depth: true,
        prune_remaining: true,
        prune_best: true,
        overlap_reads: false,
    };

    /// The form with the fastest searches that we know.
    pub const FASTEST: VectorOptions = VectorOptions {
        bit_order: BitOrder::RareFirst,
        keep_chain_heads: true,
        overlap_reads: true,
        ..VectorOptions::PAPER
    };
}

impl Default for VectorOptions {
    fn default() -> Self {
        VectorOptions::PAPER
    }
}

/// Where the memory of a table goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VectorMemory {
    /// Stored descriptors.
    pub descriptors: u64,
    /// Nodes and terminators of the whole trie, in this order of bits. A table without permutation tells what that
    /// reduces.
    pub nodes: u64,
    /// Nodes and terminators in the vector: without terminal chains, if these were removed.
    pub cells: u64,
    /// Bytes of positions in removed chains.
    pub chain_bytes: u64,
    /// Bytes of the values behind removed chains. All other values are in their cells.
    pub value_bytes: u64,
}

impl VectorMemory {
    /// Bytes of the cells.
    pub fn cell_bytes(&self) -> u64 {
        self.cells * size_of::<Cell>() as u64
    }

    /// Bytes of everything that grows with the set.
    pub fn bytes(&self) -> u64 {
        self.cell_bytes() + self.chain_bytes + self.value_bytes
    }

    /// Bytes for each descriptor; 0 without descriptors.
    pub fn bytes_per_descriptor(&self) -> f64 {
        self.bytes() as f64 / self.descriptors.max(1) as f64
    }
}

/// The paper's table. It is built once, from all descriptors.
#[derive(Clone, Debug)]
pub struct VectorTable {
    options: VectorOptions,
    permutation: Permutation,
    cells: Vec<Cell>,
    /// Positions of removed chains, each with its value behind it.
    chains: Vec<u8>,
    memory: VectorMemory,
}

impl Default for VectorTable {
    /// A table without entries.
    fn default() -> Self {
        let (options, permutation) = (VectorOptions::default(), Permutation::identity());
        let (cells, chains, memory) = (Vec::new(), Vec::new(), VectorMemory::default());
        VectorTable { options, permutation, cells, chains, memory }
    }
}

impl VectorTable {
    /// A table of these entries. Of entries with one descriptor the last one's value is kept.
    ///
    /// It works in the memory of `entries`, sorts them there, and adds the vector at its final size.
    ///
    /// # Errors
    /// If the vector would need offsets of more than 38 bits, or more memory than there is.
    pub fn build(entries: Vec<Entry>, options: VectorOptions) -> Result<Self, BuildError> {
        build::build(entries, options)
    }

    /// The options that the table was built with.
    pub fn options(&self) -> VectorOptions {
        self.options
    }

    /// Where its memory goes.
    pub fn memory(&self) -> VectorMemory {
        self.memory
    }

    /// As [`SubsetTable::find_all`], and what the search did.
    pub fn find_all_counted(&self, query: &Descriptor, visit: impl FnMut(u32) -> ControlFlow<()>) -> SearchCounts {
        let mut counts = SearchCounts::default();
        self.walk(Query::new(self, query), &mut All(visit), &mut counts);
        counts
    }

    /// As [`SubsetTable::find_largest`], and what the search did.
    pub fn find_largest_counted(&self, query: &Descriptor) -> (Option<Entry>, SearchCounts) {
        let mut counts = SearchCounts::default();
        (self.largest::<true, _>(query, |_| true, &mut counts), counts)
    }

    /// The paper's Algorithm 2: a stored subset of `query` with the most 1-bits, of equals the first that the walk
    /// meets.
    pub fn find_first_largest(&self, query: &Descriptor) -> Option<Entry> {
        self.largest::<false, _>(query, |_| true, &mut ())
    }

    /// As [`VectorTable::find_first_largest`], and what the search did.
    pub fn find_first_largest_counted(&self, query: &Descriptor) -> (Option<Entry>, SearchCounts) {
        let mut counts = SearchCounts::default();
        (self.largest::<false, _>(query, |_| true, &mut counts), counts)
    }

    fn largest<const TIES: bool, O: Observer>(
        &self,
        query: &Descriptor,
        accepts: impl FnMut(u32) -> bool,
        observer: &mut O,
    ) -> Option<Entry> {
        let mut largest = Largest::<TIES, _>::new(self, accepts);
        self.walk(Query::new(self, query), &mut largest, observer);
        largest.best
    }
}

impl SubsetTable for VectorTable {
    fn len(&self) -> usize {
        self.memory.descriptors as usize
    }

    fn find_all(&self, query: &Descriptor, visit: impl FnMut(u32) -> ControlFlow<()>) {
        self.walk(Query::new(self, query), &mut All(visit), &mut ());
    }

    fn find_largest_of(&self, query: &Descriptor, accepts: impl FnMut(u32) -> bool) -> Option<Entry> {
        self.largest::<true, _>(query, accepts, &mut ())
    }
}
