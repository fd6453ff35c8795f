//! Build: from a list of descriptors to the vector, without a trie of pointers.
//!
//! Steps: permute each descriptor; sort, which is the order of the trie; count cells and bytes; then lay out the lists
//! of siblings. In sorted order a subtree is a range, so the beginning of its range identifies a node.
//!
//! Memory: the list of entries (changed in place, 32 bytes each), the vector at its final size, and a stack. Time: the
//! sort, and for each cell a few steps of binary search.

use super::cell::{CHAIN_HEADS, Cell, OFFSETS};
use super::{Layout, VALUE_BYTES, VectorMemory, VectorOptions, VectorTable};
use crate::Entry;
use crate::permutation::{END, Key, Permutation};
use std::{collections::TryReserveError, ops::Range};

/// Why a set has no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// More than 2³² entries.
    #[error("{0} entries are more than 2^32")]
    TooManyEntries(usize),
    /// Cells or bytes of chains need offsets of more than 38 bits.
    #[error("{cells} cells and {chain_bytes} bytes of chains are too many for offsets of 38 bits")]
    TooManyCells {
        /// Cells of the vector.
        cells: u64,
        /// Bytes of removed chains and their values.
        chain_bytes: u64,
    },
    /// The allocator refused.
    #[error("no memory for the vector: {0}")]
    NoMemory(#[from] TryReserveError),
}

/// An entry in the order of the trie.
struct Record {
    key: Key,
    value: u32,
    /// Place among the entries: of duplicates the last wins.
    place: u32,
}

// `collect` turns entries into records in their place, because one fits exactly in the other.
const _: () = assert!(size_of::<Record>() == size_of::<Entry>() && align_of::<Record>() == align_of::<Entry>());

pub(super) fn build(entries: Vec<Entry>, options: VectorOptions) -> Result<VectorTable, BuildError> {
    if entries.len() as u64 > 1 << 32 {
        return Err(BuildError::TooManyEntries(entries.len()));
    }
    let permutation = Permutation::new(options.bit_order, entries.iter().map(|entry| &entry.descriptor));
    let to_record = |(place, entry): (usize, Entry)| Record {
        key: permutation.key(&entry.descriptor),
        value: entry.value,
        place: place as u32,
    };
    let mut records: Vec<Record> = entries.into_iter().enumerate().map(to_record).collect();
    // Of duplicates the last is first, and stays.
    records.sort_unstable_by(|a, b| b.key.cmp(&a.key).then(b.place.cmp(&a.place)));
    records.dedup_by(|next, kept| next.key == kept.key);

    let memory = count(&records, options);
    if memory.cells >= OFFSETS || memory.chain_bytes + memory.value_bytes >= OFFSETS {
        let chain_bytes = memory.chain_bytes + memory.value_bytes;
        return Err(BuildError::TooManyCells { cells: memory.cells, chain_bytes });
    }
    let mut layout = Builder { records: &records, options, cells: Vec::new(), chains: Vec::new() };
    layout.cells.try_reserve_exact(memory.cells as usize)?;
    layout.chains.try_reserve_exact((memory.chain_bytes + memory.value_bytes) as usize)?;
    if !records.is_empty() {
        layout.list(0..records.len(), 0, 0);
    }
    let Builder { cells, chains, .. } = layout;
    debug_assert_eq!(cells.len() as u64, memory.cells);
    debug_assert_eq!(chains.len() as u64, memory.chain_bytes + memory.value_bytes);
    Ok(VectorTable { options, permutation, cells, chains, memory })
}

/// The size of the vector. A descriptor shares its path with its neighbours in the order of the trie, down to the
/// depths at which it parts from them. Below both depths it is alone: a terminal chain.
fn count(records: &[Record], options: VectorOptions) -> VectorMemory {
    let descriptors = records.len() as u64;
    let mut memory = VectorMemory { descriptors, cells: descriptors, nodes: descriptors, ..VectorMemory::default() };
    let mut before = 0;
    for (index, record) in records.iter().enumerate() {
        let weight = record.key.weight();
        let after = records.get(index + 1).map_or(0, |next| record.key.shared_depth(&next.key));
        let alone_below = before.max(after);
        memory.nodes += u64::from(weight - before);
        memory.cells += u64::from(if options.remove_chains { alone_below } else { weight } - before);
        let outside = outside_positions(options, weight - alone_below);
        memory.chain_bytes += u64::from(outside);
        memory.value_bytes += if outside > 0 { VALUE_BYTES as u64 } else { 0 };
        before = after;
    }
    memory
}

/// Positions of a terminal chain that are outside the vector.
fn outside_positions(options: VectorOptions, chain: u8) -> u8 {
    let inside = if options.keep_chain_heads { CHAIN_HEADS } else { 0 };
    if options.remove_chains { chain.saturating_sub(inside) } else { 0 }
}

struct Builder<'a> {
    records: &'a [Record],
    options: VectorOptions,
    cells: Vec<Cell>,
    chains: Vec<u8>,
}

/// The weights of the lightest and the heaviest descriptor of a subtree.
type Depths = (u8, u8);

impl Builder<'_> {
    /// Lays out the siblings at `depth` that these records have at positions `from` or higher, then their subtrees.
    ///
    /// The depth grows with each call, so there are at most 193 nested calls, each with a frame of some 200 bytes.
    fn list(&mut self, range: Range<usize>, depth: u8, from: u8) -> Depths {
        let first = self.cells.len();
        let mut start = range.start;
        while start < range.end {
            let position = self.records[start].key.next(from);
            // Until its subtree is laid out, a cell's offset says where its records begin.
            self.cells.push(Cell::node(position, start as u64));
            start = self.end_of_subtree(start..range.end, position);
        }
        let last = self.cells.len() - 1;
        self.cells[last].set_last();

        let (mut min, mut max) = (u8::MAX, 0);
        let mut subtree = |builder: &mut Self, index: usize, range: Range<usize>| {
            let depths = builder.subtree(index, range, depth);
            (min, max) = (min.min(depths.0), max.max(depths.1));
        };
        match self.options.layout {
            Layout::SiblingOrder => {
                let mut start = range.start;
                for index in first..=last {
                    let end = if index == last { range.end } else { self.cells[index + 1].offset() as usize };
                    subtree(self, index, start..end);
                    start = end;
                }
            }
            Layout::SiblingReverseOrder => {
                let mut end = range.end;
                for index in (first..=last).rev() {
                    let start = self.cells[index].offset() as usize;
                    subtree(self, index, start..end);
                    end = start;
                }
            }
        }
        (min, max)
    }

    /// Completes the cell of the node that these records share, and lays out what is below.
    fn subtree(&mut self, index: usize, range: Range<usize>, depth: u8) -> Depths {
        let position = self.cells[index].position();
        let record = &self.records[range.start];
        let is_chain = self.options.remove_chains && range.len() == 1 && position != END;
        if position == END || is_chain {
            let weight = record.key.weight();
            let mut heads = [END; CHAIN_HEADS as usize];
            if self.options.keep_chain_heads && position != END {
                heads = [position, record.key.next(position + 1)];
            }
            let offset = match outside_positions(self.options, weight - depth) {
                0 => u64::from(record.value),
                outside => self.chain(record, weight - outside),
            };
            self.cells[index].end(heads, weight, offset);
            return (weight, weight);
        }
        let first_child = self.cells.len() as u64;
        self.cells[index].link(first_child);
        let (min, max) = self.list(range, depth + 1, position + 1);
        self.cells[index].set_depths(min, max);
        (min, max)
    }

    /// Stores the positions of a removed chain, after the first `inside` ones of the descriptor, and its value.
    fn chain(&mut self, record: &Record, inside: u8) -> u64 {
        let offset = self.chains.len() as u64;
        self.chains.extend(record.key.positions(0).skip(usize::from(inside)));
        self.chains.extend(record.value.to_le_bytes());
        offset
    }

    /// Where the records end whose next position is this one. They come first in the range, and all others lack the
    /// bit. Most subtrees are small: steps that double find the end sooner than halving the whole range.
    fn end_of_subtree(&self, range: Range<usize>, position: u8) -> usize {
        if position == END {
            return range.end;
        }
        let has = |record: &Record| record.key.has(position);
        let (mut known, mut step) = (range.start, 1);
        while known + step < range.end && has(&self.records[known + step]) {
            known += step;
            step *= 2;
        }
        let end = (known + step).min(range.end);
        known + self.records[known..end].partition_point(has)
    }
}
