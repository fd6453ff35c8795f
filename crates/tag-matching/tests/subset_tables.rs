//! Question: does the vector table, in every combination of its options, find what the linear scan finds?

use namewire_packet::descriptor::DESCRIPTOR_BITS;
use namewire_packet::descriptor::Descriptor;
use namewire_tag_matching::linear::LinearTable;
use namewire_tag_matching::vector::{BitOrder, Layout, VectorMemory, VectorOptions, VectorTable};
use namewire_tag_matching::{Entry, SubsetTable};
use proptest::prelude::*;
use std::ops::ControlFlow;

const COMBINATIONS: u32 = 3 << 7;
const ALL_ONES: Descriptor = Descriptor([u64::MAX; 3]);

/// One of all combinations of the options.
fn options(combination: u32) -> VectorOptions {
    let switch = |bit: u32| combination >> bit & 1 == 1;
    VectorOptions {
        bit_order: [BitOrder::Unchanged, BitOrder::PopularFirst, BitOrder::RareFirst][combination as usize >> 7],
        overlap_reads: switch(0),
        remove_chains: switch(1),
        keep_chain_heads: switch(2),
        layout: if switch(3) { Layout::SiblingOrder } else { Layout::SiblingReverseOrder },
        prune_min_depth: switch(4),
        prune_remaining: switch(5),
        prune_best: switch(6),
    }
}

/// Entries with the values 0, 1, 2, …
fn entries(descriptors: &[Descriptor]) -> Vec<Entry> {
    descriptors.iter().zip(0..).map(|(descriptor, value)| Entry { descriptor: *descriptor, value }).collect()
}

fn linear(entries: &[Entry]) -> LinearTable {
    let mut table = LinearTable::default();
    entries.iter().for_each(|entry| table.insert(*entry));
    table
}

/// All values, sorted.
fn values(table: &impl SubsetTable, query: &Descriptor) -> Vec<u32> {
    let mut values = vec![];
    table.find_all(query, |value| {
        values.push(value);
        ControlFlow::Continue(())
    });
    values.sort_unstable();
    values
}

/// A query and what the linear scan finds.
struct Expected<'a> {
    reference: &'a LinearTable,
    query: Descriptor,
    values: Vec<u32>,
    largest: Option<Entry>,
}

impl<'a> Expected<'a> {
    fn new(reference: &'a LinearTable, query: &Descriptor) -> Self {
        let largest = reference.find_largest(query);
        Expected { reference, query: *query, values: values(reference, query), largest }
    }

    fn check(&self, table: &VectorTable) {
        let Expected { reference, query, largest, .. } = self;
        assert_eq!(values(table, query), self.values, "{:?} {query:?}", table.options());
        assert_eq!(table.find_largest(query), *largest, "{:?} {query:?}", table.options());
        assert_eq!(table.find_largest_counted(query).0, *largest);
        // Every second value is refused.
        let is_odd = |value: u32| value % 2 == 1;
        assert_eq!(table.find_largest_of(query, is_odd), reference.find_largest_of(query, is_odd), "{query:?}");
        let first = table.find_first_largest(query);
        assert_eq!(first.map(|entry| entry.descriptor.weight()), largest.map(|entry| entry.descriptor.weight()));
        let is_stored = |entry: Entry| reference.entries().contains(&entry) && entry.descriptor.is_subset_of(query);
        assert!(first.is_none_or(is_stored));
        assert_eq!(table.find_first_largest_counted(query).0, first);
        // A visitor that breaks is not called again.
        for limit in [1, self.values.len() / 2 + 1] {
            let mut visited = 0;
            table.find_all(query, |value| {
                assert!(self.values.binary_search(&value).is_ok());
                visited += 1;
                if visited == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(visited, limit.min(self.values.len()));
        }
    }
}

/// Compares every form of the table with the linear scan.
fn check(descriptors: &[Descriptor], queries: &[Descriptor]) {
    let entries = entries(descriptors);
    let reference = linear(&entries);
    let queries = queries.iter().chain([&Descriptor::EMPTY, &ALL_ONES]);
    let expected: Vec<Expected> = queries.map(|query| Expected::new(&reference, query)).collect();
    for combination in 0..COMBINATIONS {
        let table = VectorTable::build(entries.clone(), options(combination)).unwrap();
        assert_eq!((table.len(), table.is_empty()), (reference.len(), reference.is_empty()));
        check_memory(&table.memory(), &table.options());
        expected.iter().for_each(|expected| expected.check(&table));
    }
    assert!(expected.last().is_some_and(|all| all.values.len() == reference.len()));
}

fn check_memory(memory: &VectorMemory, options: &VectorOptions) {
    assert!(memory.descriptors <= memory.cells && memory.cells <= memory.nodes);
    if options.remove_chains {
        let outside = memory.chain_bytes + if options.keep_chain_heads { 2 * memory.descriptors } else { 0 };
        assert!(outside >= memory.nodes - memory.cells);
        assert!(memory.value_bytes <= 4 * memory.descriptors);
    } else {
        assert_eq!((memory.cells, memory.chain_bytes, memory.value_bytes), (memory.nodes, 0, 0));
    }
    assert_eq!(memory.bytes(), memory.cells * 8 + memory.chain_bytes + memory.value_bytes);
}

fn random_bits(random: &mut fastrand::Rng, bits: usize) -> Descriptor {
    (0..bits).map(|_| random.u8(..DESCRIPTOR_BITS as u8)).collect()
}

/// Queries from the set: as they are, with some more bits, with one bit less.
fn queries(random: &mut fastrand::Rng, descriptors: &[Descriptor]) -> Vec<Descriptor> {
    let mut queries = vec![];
    for _ in 0..8 {
        let descriptor = descriptors[random.usize(..descriptors.len())];
        queries.push(descriptor);
        queries.push(descriptor.union(random_bits(random, 14)));
        queries.push(descriptor.union(descriptors[random.usize(..descriptors.len())]));
        let positions: Vec<u8> = descriptor.positions().collect();
        let dropped = if positions.is_empty() { 0 } else { random.usize(..positions.len()) };
        queries
            .push(positions.iter().enumerate().filter(|(index, _)| *index != dropped).map(|(_, bit)| *bit).collect());
    }
    queries.extend((0..6).map(|_| random_bits(random, 60)));
    queries
}

#[test]
fn empty_table() {
    check(&[], &[Descriptor::of_tag("a")]);
}

#[test]
fn random_sets() {
    let mut random = fastrand::Rng::with_seed(1);
    for (count, bits) in [(1, 20), (40, 1), (200, 3), (250, 21), (60, 180)] {
        let descriptors: Vec<Descriptor> = (0..count).map(|_| random_bits(&mut random, bits)).collect();
        let queries = queries(&mut random, &descriptors);
        check(&descriptors, &queries);
    }
}

#[test]
fn sets_with_popular_tags() {
    let mut random = fastrand::Rng::with_seed(2);
    // Tag n is n times as rare as tag 1, up to rounding.
    let mut tag = || Descriptor::of_tag(&((1.0 / (random.f64() + 0.002)) as u32).to_string());
    let descriptors: Vec<Descriptor> = (0..300).map(|_| tag().union(tag()).union(tag())).collect();
    let mut random = fastrand::Rng::with_seed(3);
    let mut queries = queries(&mut random, &descriptors);
    queries.extend((1..8).map(|tag| descriptors[tag * 30].union(Descriptor::of_tag(&tag.to_string()))));
    check(&descriptors, &queries);
}

/// Sets that reach the limits of depths, of lists and of the stack.
fn adversarial_sets() -> Vec<Vec<Descriptor>> {
    let prefix = |bits: u8| (0..bits).collect::<Descriptor>();
    let suffix = |bits: u8| (192 - bits..192).collect::<Descriptor>();
    let without = |bit: u8| (0..192).filter(|other| *other != bit).collect::<Descriptor>();
    let single = |bit: u8| Descriptor::from_iter([bit]);
    let comb = (0..192).flat_map(|bit| [prefix(bit), prefix(bit).union(suffix(1)), prefix(bit).union(single(190))]);
    let pairs = (0..192_u8).step_by(8).flat_map(|a| (0..192_u8).step_by(5).map(move |b| [a, b].into_iter().collect()));
    vec![
        vec![Descriptor::EMPTY],
        vec![ALL_ONES],
        vec![Descriptor::EMPTY, ALL_ONES],
        (0..192).map(single).collect(),
        (0..=192).map(prefix).collect(),
        (0..=192).map(suffix).collect(),
        (0..192).map(without).collect(),
        comb.collect(),
        pairs.collect(),
        vec![single(7), single(8), single(7), Descriptor::EMPTY, single(8), Descriptor::EMPTY],
    ]
}

#[test]
fn adversarial_sets_are_searched() {
    let mut random = fastrand::Rng::with_seed(4);
    for descriptors in adversarial_sets() {
        let queries: Vec<Descriptor> = queries(&mut random, &descriptors).into_iter().step_by(5).collect();
        check(&descriptors, &queries);
    }
}

#[test]
fn the_last_of_duplicates_wins() {
    let descriptor = Descriptor::of_tag("a");
    let entry = |value| Entry { descriptor, value };
    for combination in 0..COMBINATIONS {
        let table = VectorTable::build(vec![entry(3), entry(1), entry(2)], options(combination)).unwrap();
        assert_eq!((table.len(), table.find_largest(&descriptor)), (1, Some(entry(2))));
        assert_eq!(values(&table, &descriptor), [2]);
    }
}

/// The sets below have the tries
///
/// ```text
///   bits as they are                      bits permuted: 5 4 3 9 1 2 become 0 1 2 3 4 5
///   1 ─ 4 ─ 5 ─ $                         0 ─┬ 1 ─┬ 2 ─┬ 3 ─ $        {3,4,5,9}
///   2 ─ 3 ─ 5 ─ $                            │    │    └ $            {3,4,5}
///   3 ─ 4 ─ 5 ─┬ 9 ─ $                       │    └ 4 ─ $             {1,4,5}
///              └ $                           └ 2 ─ 5 ─ $              {2,3,5}
///   9 ─ $                                 3 ─ $                       {9}
///   (11 nodes, 5 terminators)             (8 nodes, 5 terminators)
/// ```
///
/// Without chains, a terminator replaces `3`, `4`, `2 ─ 5` and the lower `3` of the second: 5 nodes go.
#[test]
fn a_worked_example_has_the_nodes_that_were_counted_by_hand() {
    let sets: [&[u8]; 5] = [&[1, 4, 5], &[2, 3, 5], &[3, 4, 5, 9], &[3, 4, 5], &[9]];
    let entries = entries(&sets.map(|set| set.iter().copied().collect()));
    let paper = VectorOptions::PAPER;
    let base = VectorOptions { bit_order: BitOrder::Unchanged, remove_chains: false, ..paper };
    let memory = |options| VectorTable::build(entries.clone(), options).unwrap().memory();
    let sizes = |options| {
        let memory = memory(options);
        (memory.nodes, memory.cells, memory.chain_bytes, memory.value_bytes)
    };
    assert_eq!(sizes(base), (16, 16, 0, 0));
    assert_eq!(sizes(VectorOptions { bit_order: BitOrder::PopularFirst, ..base }), (13, 13, 0, 0));
    // Chains of 3 + 3 + 1 + 1 positions, and of 1 + 1 + 2 + 1.
    assert_eq!(sizes(VectorOptions { remove_chains: true, ..base }), (16, 8, 8, 16));
    assert_eq!(sizes(paper), (13, 8, 5, 16));
    assert_eq!(memory(paper).bytes_per_descriptor(), (8.0 * 8.0 + 5.0 + 16.0) / 5.0);
    // Terminators keep two positions. That leaves 5 and 5, and nothing of the permuted chains.
    let base = VectorOptions { keep_chain_heads: true, ..base };
    assert_eq!(sizes(VectorOptions { remove_chains: true, ..base }), (16, 8, 2, 8));
    assert_eq!(sizes(VectorOptions { keep_chain_heads: true, ..paper }), (13, 8, 0, 0));
}

/// The paper's example of the second strategy: below 3 only descriptors of 3 or more bits, and the query {1, 3, 5} has
/// one bit to the right of 3.
#[test]
fn the_second_strategy_skips_the_children_of_a_node() {
    let sets: [&[u8]; 4] = [&[1, 5], &[3, 4, 5, 9], &[3, 5, 6], &[3, 5, 7]];
    let entries = entries(&sets.map(|set| set.iter().copied().collect()));
    let query = Descriptor::from_iter([1, 3, 5]);
    let lists = |prune_remaining| {
        let options = VectorOptions { bit_order: BitOrder::Unchanged, prune_remaining, ..VectorOptions::PAPER };
        let table = VectorTable::build(entries.clone(), options).unwrap();
        assert_eq!(values(&table, &query), [0]);
        table.find_all_counted(&query, |_| ControlFlow::Continue(())).lists
    };
    // The root's list; with less pruning those below 3 and 3 ─ 5.
    assert_eq!((lists(true), lists(false)), (1, 3));
}

#[test]
fn each_step_visits_no_more_cells_than_the_form_without_it() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut tag = || Descriptor::of_tag(&((1.0 / (random.f64() + 0.0005)) as u32).to_string());
    let descriptors: Vec<Descriptor> = (0..3000).map(|_| tag().union(tag()).union(tag())).collect();
    let queries: Vec<Descriptor> = descriptors.iter().step_by(50).map(|set| set.union(tag())).collect();
    let cells = |options: VectorOptions| {
        let table = VectorTable::build(entries(&descriptors), options).unwrap();
        let all = |query| table.find_all_counted(query, |_| ControlFlow::Continue(())).cells;
        let largest = |query| table.find_largest_counted(query).1.cells;
        let first = |query| table.find_first_largest_counted(query).1.cells;
        [queries.iter().map(all).sum::<u64>(), queries.iter().map(largest).sum(), queries.iter().map(first).sum()]
    };
    let full = VectorOptions::PAPER;
    let [all, largest, first] = cells(full);
    assert!(all > largest && largest >= first, "{all} {largest} {first}");
    let worse = |options: VectorOptions, more: [bool; 3]| {
        let fewer = cells(full).into_iter().zip(cells(options)).map(|(with, without)| with < without);
        assert_eq!(fewer.collect::<Vec<bool>>(), more, "{options:?}");
    };
    worse(VectorOptions { remove_chains: false, ..full }, [true, true, true]);
    // All cells of a list are scanned, whatever they keep of their chains.
    worse(VectorOptions { keep_chain_heads: true, ..full }, [false, false, false]);
    worse(VectorOptions { layout: Layout::SiblingOrder, ..full }, [false, false, false]);
    worse(VectorOptions { prune_remaining: false, ..full }, [true, true, true]);
    worse(VectorOptions { prune_best: false, ..full }, [false, true, true]);
    // The second strategy implies the first.
    worse(VectorOptions { prune_min_depth: false, ..full }, [false, false, false]);
}

/// Descriptors of few positions, so that they contain each other.
fn descriptor() -> impl Strategy<Value = Descriptor> {
    let close = proptest::collection::vec(0..12_u8, 0..8);
    let far = proptest::collection::vec(prop_oneof![0..4_u8, 60..70_u8, 124..132_u8, 188..192_u8], 0..10);
    prop_oneof![close, far].prop_map(Descriptor::from_iter)
}

proptest! {
    #[test]
    fn every_form_finds_what_the_linear_scan_finds(
        descriptors in proptest::collection::vec(descriptor(), 0..60),
        queries in proptest::collection::vec(descriptor(), 1..10),
        more in descriptor(),
        combination in 0..COMBINATIONS,
    ) {
        let entries = entries(&descriptors);
        let reference = linear(&entries);
        let table = VectorTable::build(entries, options(combination)).unwrap();
        prop_assert_eq!(table.len(), reference.len());
        for query in queries.iter().chain(descriptors.iter().step_by(7)) {
            Expected::new(&reference, query).check(&table);
            Expected::new(&reference, &query.union(more)).check(&table);
        }
    }
}
