//! Question: do the vector table, in every form, and the burst trie, through any changes, find what the linear scan
//! finds?
//!
//! Input: options, entries, changes and queries. Positions come from a few places at the ends and at the borders of
//! words, so that descriptors contain each other, or from anywhere. Some are given by their complement, so that paths
//! are long.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};
use namewire_tables::pages::PageSize;
use namewire_tagnet::Descriptor;
use namewire_tagnet::matching::burst_trie::BurstTrie;
use namewire_tagnet::matching::linear::LinearTable;
use namewire_tagnet::matching::vector::{BitOrder, Layout, VectorOptions, VectorTable};
use namewire_tagnet::matching::{Entry, SubsetTable};

const ENTRIES_MAX: usize = 200;
const CHANGES_MAX: usize = 400;
const QUERIES_MAX: usize = 20;

#[derive(Arbitrary, Debug)]
struct Choice {
    bit_order: u8,
    remove_chains: bool,
    keep_chain_heads: bool,
    reverse: bool,
    prune_min_depth: bool,
    prune_remaining: bool,
    prune_best: bool,
    overlap_reads: bool,
}

#[derive(Arbitrary, Debug)]
enum Bits {
    Close(u16),
    AtBorders(Vec<u8>),
    Any(Vec<u8>),
    AllBut(Vec<u8>),
    /// All positions from one to another.
    Run(u8, u8),
}

impl Bits {
    fn descriptor(&self) -> Descriptor {
        const BORDERS: [u8; 16] = [0, 1, 2, 31, 32, 62, 63, 64, 65, 127, 128, 129, 130, 189, 190, 191];
        match self {
            Bits::Close(bits) => Descriptor([u64::from(*bits) << 56, u64::from(*bits) >> 8, 0]),
            Bits::AtBorders(places) => {
                places.iter().map(|place| BORDERS[usize::from(*place) % BORDERS.len()]).collect()
            }
            Bits::Any(positions) => positions.iter().map(|position| position % 192).collect(),
            Bits::AllBut(positions) => Descriptor(Bits::Any(positions.clone()).descriptor().0.map(|word| !word)),
            Bits::Run(from, to) => (from % 192..to % 193).collect(),
        }
    }
}

fn values(table: &impl SubsetTable, query: &Descriptor, limit: usize) -> Vec<u32> {
    let mut values = vec![];
    table.find_all(query, |value| {
        values.push(value);
        if values.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    values.sort_unstable();
    values
}

/// Inserts what has a value, and removes the rest, one after the other.
fn change(entries: Vec<Entry>, reference: &mut LinearTable, changes: &[(Bits, Option<u32>)]) -> BurstTrie {
    let mut table =
        BurstTrie::build_partitioned(entries, ENTRIES_MAX + CHANGES_MAX, PageSize::Base, 4).expect("memory");
    for (bits, value) in changes.iter().take(CHANGES_MAX) {
        let descriptor = bits.descriptor();
        let before = reference.entries().iter().find(|entry| entry.descriptor == descriptor).map(|entry| entry.value);
        let changed = match *value {
            Some(value) => {
                let entry = Entry { descriptor, value };
                reference.insert(entry);
                table.insert(entry)
            }
            None => {
                reference.remove(&descriptor);
                table.remove(&descriptor)
            }
        };
        assert_eq!(changed, Ok(before));
    }
    table
}

fuzz_target!(|input: (Choice, Vec<(Bits, u32)>, Vec<(Bits, Option<u32>)>, Vec<Bits>)| {
    let (choice, entries, changes, queries) = input;
    let options = VectorOptions {
        bit_order: [BitOrder::Unchanged, BitOrder::PopularFirst, BitOrder::RareFirst]
            [usize::from(choice.bit_order % 3)],
        remove_chains: choice.remove_chains,
        keep_chain_heads: choice.keep_chain_heads,
        layout: if choice.reverse { Layout::SiblingReverseOrder } else { Layout::SiblingOrder },
        prune_min_depth: choice.prune_min_depth,
        prune_remaining: choice.prune_remaining,
        prune_best: choice.prune_best,
        overlap_reads: choice.overlap_reads,
    };
    let entries: Vec<Entry> = entries
        .iter()
        .take(ENTRIES_MAX)
        .map(|(bits, value)| Entry { descriptor: bits.descriptor(), value: *value })
        .collect();
    let mut reference = LinearTable::default();
    entries.iter().for_each(|entry| reference.insert(*entry));
    let table = VectorTable::build(entries.clone(), options).expect("memory for a small table");
    assert_eq!(table.len(), reference.len());
    let queries = queries.iter().take(QUERIES_MAX).map(Bits::descriptor);
    let first = entries.first().map(|entry| entry.descriptor);
    let queries: Vec<Descriptor> = queries.chain(first).chain([Descriptor([u64::MAX; 3])]).collect();
    for query in &queries {
        let all = values(&table, query, usize::MAX);
        assert_eq!(all, values(&reference, query, usize::MAX), "{options:?}");
        let some = values(&table, query, 2);
        assert!(some.len() == all.len().min(2) && some.iter().all(|value| all.contains(value)));
        let largest = reference.find_largest(query);
        assert_eq!(table.find_largest(query), largest, "{options:?}");
        let first = table.find_first_largest(query);
        assert_eq!(first.map(|entry| entry.descriptor.weight()), largest.map(|entry| entry.descriptor.weight()));
        assert!(first.is_none_or(|entry| reference.entries().contains(&entry)));
    }
    let changing = change(entries, &mut reference, &changes);
    let view = changing.view();
    assert_eq!(view.len(), reference.len());
    let mut largest = vec![];
    view.find_largest_of_each(&queries, |_, entry| largest.push(entry));
    for (query, largest) in queries.iter().zip(largest) {
        assert_eq!(values(&view, query, usize::MAX), values(&reference, query, usize::MAX));
        assert_eq!(values(&view, query, 2).len(), values(&reference, query, 2).len());
        assert_eq!([view.find_largest(query), largest], [reference.find_largest(query); 2]);
    }
});
