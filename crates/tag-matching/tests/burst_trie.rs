//! Question: does the burst trie find what the linear scan finds, after any sequence of insertions and removals, and
//! while a writer changes it?

use namewire_packet::descriptor::Descriptor;
use namewire_tables::pages::PageSize;
use namewire_tag_matching::burst_trie::{
    BuildError, BurstTrie, BurstTrieReader, BurstTrieView, Cursor, PausedSearch, Refusal, StepLimit, WALKS,
};
use namewire_tag_matching::linear::LinearTable;
use namewire_tag_matching::{Entry, SubsetTable};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::thread;

const ALL_ONES: Descriptor = Descriptor([u64::MAX; 3]);

fn empty(capacity: usize) -> BurstTrie {
    BurstTrie::new(capacity, PageSize::Base).unwrap()
}

/// With a partition wherever eight descriptors have a tag in common.
fn built(entries: &[Entry], capacity: usize) -> BurstTrie {
    BurstTrie::build_partitioned(entries.to_vec(), capacity, PageSize::Base, 8).unwrap()
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

/// Steps that a search may make beyond those it is given: those of one node.
const OVERSHOOT: usize = 250;

/// All values, sorted, by a search that pauses after each few steps; and how often it went on.
fn values_within(view: &BurstTrieView<'_>, query: &Descriptor, at_a_time: usize) -> (Vec<u32>, usize) {
    let (mut values, mut paused, mut turns) = (vec![], PausedSearch::default(), 1);
    while view
        .find_all_within(query, &mut paused, &mut { at_a_time }, |value| {
            values.push(value);
            ControlFlow::Continue(())
        })
        .is_pending()
    {
        assert!(paused.is_under_way());
        turns += 1;
    }
    assert!(!paused.is_under_way());
    values.sort_unstable();
    (values, turns)
}

/// The same for the largest subset whose value is accepted.
fn largest_within(view: &BurstTrieView<'_>, query: &Descriptor, accepts: impl Fn(u32) -> bool) -> Option<Entry> {
    let mut paused = PausedSearch::default();
    loop {
        if let Poll::Ready(found) = view.find_largest_within(query, &mut paused, &mut { 30 }, &accepts) {
            return found;
        }
    }
}

/// A packet of sixteen tags without a common bit is compared with a large part of a table. The steps of a turn are
/// bounded, whatever the query.
#[test]
fn a_search_makes_the_steps_that_it_is_given_and_goes_on() {
    let mut random = fastrand::Rng::with_seed(41);
    let entries = (0..20_000).map(|value| {
        // No tag is popular: each popular one has a partition, which a query without its bits passes over.
        let tags = [format!("place{}", value % 9_973), format!("own{value}")];
        Entry { descriptor: Descriptor::of_tags(tags.iter().map(String::as_str)), value }
    });
    let table = BurstTrie::build(entries.collect(), 20_000, PageSize::Base).unwrap();
    let view = table.view();
    let mut bits: Vec<u8> = (0..192).collect();
    random.shuffle(&mut bits);
    let heavy: Descriptor = bits[..112].iter().copied().collect();
    let steps_of = |query: &Descriptor| {
        let (mut paused, mut steps) = (PausedSearch::default(), usize::MAX);
        assert!(view.find_all_within(query, &mut paused, &mut steps, |_| ControlFlow::Continue(())).is_ready());
        usize::MAX - steps
    };
    let ordinary = steps_of(&Descriptor::of_tags(["place7", "own7", "more", "even more"]));
    let needed = steps_of(&heavy);
    println!("{ordinary} steps for four tags, {needed} for 112 one-bits");
    assert!(ordinary < 256 && needed > 512);
    let (found, turns) = values_within(&view, &heavy, 100);
    assert_eq!(found, values(&view, &heavy));
    assert!(turns <= needed / 100 + 1 && turns >= needed / (100 + OVERSHOOT), "{turns} turns for {needed} steps");
    // A search that was given up begins again.
    let mut paused = PausedSearch::default();
    assert!(view.find_all_within(&heavy, &mut paused, &mut { 10 }, |_| ControlFlow::Continue(())).is_pending());
    paused.give_up();
    let mut again = vec![];
    let visit = |value| {
        again.push(value);
        ControlFlow::Continue(())
    };
    assert!(view.find_all_within(&heavy, &mut paused, &mut { usize::MAX }, visit).is_ready());
    again.sort_unstable();
    assert_eq!(again, found);
}

/// What is there throughout is found, and nothing else than subsets, while the table changes between two steps.
#[test]
fn a_search_that_pauses_finds_what_stays_while_the_table_changes() {
    let mut random = fastrand::Rng::with_seed(42);
    let mut table = empty(20_000);
    let descriptor = |value: u32| Descriptor::of_tags([format!("a{}", value % 7).as_str(), &format!("own{value}")]);
    for value in 0..4_000 {
        assert_eq!(table.insert(Entry { descriptor: descriptor(value), value }), Ok(None));
    }
    let mut reader = table.reader();
    for round in 0..20 {
        reader.hold();
        let query: Descriptor = (0..140).map(|_| random.u8(..192)).collect();
        let (mut found, mut paused) = (vec![], PausedSearch::default());
        while reader
            .held()
            .find_all_within(&query, &mut paused, &mut { 20 }, |value| {
                found.push(value);
                ControlFlow::Continue(())
            })
            .is_pending()
        {
            // Even values stay, odd ones come and go.
            for _ in 0..5 {
                let value = random.u32(..4_000) | 1;
                match table.get(&descriptor(value)) {
                    Some(_) => assert_eq!(table.remove(&descriptor(value)), Ok(Some(value))),
                    None => assert_eq!(table.insert(Entry { descriptor: descriptor(value), value }), Ok(None)),
                }
            }
        }
        reader.release();
        assert!(found.iter().all(|value| descriptor(*value).is_subset_of(&query)), "round {round}");
        let stay = (0..4_000).step_by(2).filter(|value| descriptor(*value).is_subset_of(&query));
        stay.for_each(|value| assert!(found.contains(&value), "{value} in round {round}"));
    }
}

/// All descriptors with their values, sorted, by a walk of this many at a time.
fn walked(view: &BurstTrieView<'_>, most: usize) -> Vec<(Descriptor, u32)> {
    let (mut cursor, mut entries) = (Cursor::default(), vec![]);
    while view.walk(&mut cursor, most, |entry| entries.push((entry.descriptor, entry.value))) {}
    entries.sort_unstable();
    entries
}

/// A walk meets what stays exactly once, and what comes or goes at most once, while the table changes between its
/// parts.
#[test]
fn a_walk_meets_what_stays_while_the_table_changes() {
    let mut random = fastrand::Rng::with_seed(43);
    let descriptor = |value: u32| Descriptor::of_tags([format!("a{}", value % 7).as_str(), &format!("own{value}")]);
    let start: Vec<Entry> = (0..1_000).map(|value| Entry { descriptor: descriptor(value), value }).collect();
    for mut table in [empty(20_000), built(&start, 20_000)] {
        (0..4_000).for_each(|value| _ = table.insert(Entry { descriptor: descriptor(value), value }).unwrap());
        for most in [1, 7, 100, 5_000] {
            let (mut cursor, mut met) = (Cursor::default(), vec![]);
            while table.view().walk(&mut cursor, most, |entry| met.push((entry.value, entry.descriptor))) {
                // Even values stay, odd ones come and go.
                for _ in 0..20 {
                    let value = random.u32(..6_000) | 1;
                    match table.get(&descriptor(value)) {
                        Some(_) => assert_eq!(table.remove(&descriptor(value)), Ok(Some(value))),
                        None => assert_eq!(table.insert(Entry { descriptor: descriptor(value), value }), Ok(None)),
                    }
                }
            }
            assert!(met.iter().all(|(value, met)| *met == descriptor(*value)));
            let mut values: Vec<u32> = met.iter().map(|(value, _)| *value).collect();
            values.sort_unstable();
            assert!(values.is_sorted_by(|a, b| a < b), "each at most once");
            assert!((0..4_000).step_by(2).all(|value| values.binary_search(&value).is_ok()), "{most} at a time");
        }
    }
}

/// Compares all forms of search with the linear scan.
fn check(table: &BurstTrie, reference: &LinearTable, queries: &[Descriptor]) {
    let view = table.view();
    assert_eq!((table.len(), view.len()), (reference.len(), reference.len()));
    let mut all_of_each = vec![vec![]; queries.len()];
    let mut first_of_each = vec![vec![]; queries.len()];
    view.find_all_of_each(queries, |place, value| {
        all_of_each[place].push(value);
        ControlFlow::Continue(())
    });
    view.find_all_of_each(queries, |place, value| {
        first_of_each[place].push(value);
        ControlFlow::Break(())
    });
    let mut largest_of_each = vec![];
    view.find_largest_of_each(queries, |place, largest| {
        assert_eq!(place, largest_of_each.len());
        largest_of_each.push(largest);
    });
    for (place, query) in queries.iter().enumerate() {
        let expected = values(reference, query);
        assert_eq!(values(&view, query), expected, "{query:?}");
        all_of_each[place].sort_unstable();
        assert_eq!(all_of_each[place], expected, "{query:?}");
        assert_eq!(first_of_each[place].len(), expected.len().min(1));
        assert!(first_of_each[place].iter().all(|value| expected.contains(value)));
        let largest = reference.find_largest(query);
        assert_eq!(view.find_largest(query), largest, "{query:?}");
        assert_eq!(largest_of_each[place], largest, "{query:?}");
        // Every second value is refused.
        let is_odd = |value: u32| value % 2 == 1;
        assert_eq!(view.find_largest_of(query, is_odd), reference.find_largest_of(query, is_odd), "{query:?}");
        // In steps, which takes long in an unoptimised test.
        if place % 8 == 0 {
            assert_eq!(values_within(&view, query, 30).0, expected, "{query:?}");
            assert_eq!(largest_within(&view, query, is_odd), reference.find_largest_of(query, is_odd), "{query:?}");
        }
        let mut proper = vec![];
        view.find_proper(query, |value| {
            proper.push(value);
            ControlFlow::Continue(())
        });
        proper.sort_unstable();
        let others =
            reference.entries().iter().filter(|it| it.descriptor != *query && it.descriptor.is_subset_of(query));
        let mut others: Vec<u32> = others.map(|entry| entry.value).collect();
        others.sort_unstable();
        assert_eq!(proper, others, "{query:?}");
        let limit = expected.len() / 2 + 1;
        let mut visited = 0;
        view.find_all(query, |_| {
            visited += 1;
            if visited == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(visited, limit.min(expected.len()), "a visitor that breaks is not called again");
    }
    check_limited(&view, reference, queries);
    let mut entries: Vec<_> = reference.entries().iter().map(|entry| (entry.descriptor, entry.value)).collect();
    entries.sort_unstable();
    assert_eq!((walked(&view, 1), walked(&view, usize::MAX)), (entries.clone(), entries));
    check_memory(table);
}

/// Searches with a limit of steps: those that are not stopped find what they should, and none is without need.
fn check_limited(view: &BurstTrieView<'_>, reference: &LinearTable, queries: &[Descriptor]) {
    let is_wanted = |place: usize, value: u32| (place + value as usize).is_multiple_of(2);
    for queries in queries.chunks(WALKS) {
        let most = usize::MAX;
        for limit in [[10, most], [most, 100], [most, most]] {
            let limit = StepLimit { each: limit[0], together: limit[1] };
            let mut found = vec![vec![]; queries.len()];
            let all = view.find_all_limited(queries, limit, |place, value| {
                found[place].push(value);
                ControlFlow::Continue(())
            });
            let (largest, answers) = view.find_largest_limited(queries, limit, is_wanted);
            for (place, query) in queries.iter().enumerate() {
                found[place].sort_unstable();
                let expected = values(reference, query);
                if all.stopped >> place & 1 == 0 {
                    assert_eq!(found[place], expected, "{query:?}");
                } else {
                    assert!(all.steps > 10 && found[place].iter().all(|value| expected.contains(value)));
                }
                if largest.stopped >> place & 1 == 0 {
                    assert_eq!(answers[place], reference.find_largest_of(query, |value| is_wanted(place, value)));
                }
            }
            assert!(limit.each.min(limit.together) < most || (all.stopped, largest.stopped) == (0, 0));
        }
    }
}

#[test]
fn popular_tags_have_partitions_and_cost_less_memory() {
    let mut random = fastrand::Rng::with_seed(7);
    let entries: Vec<Entry> = (0..5000)
        .map(|value| {
            let class = ["photo", "video", "music"][random.usize(..3)];
            let owner = random.u32(..).to_string();
            Entry { descriptor: Descriptor::of_tags([class, &owner]), value }
        })
        .collect();
    let reference = entries.iter().fold(LinearTable::default(), |mut table, entry| {
        table.insert(*entry);
        table
    });
    let descriptors: Vec<Descriptor> = entries.iter().map(|entry| entry.descriptor).collect();
    let queries = queries(&mut random, &descriptors);
    let [whole, partitioned] = [usize::MAX, 500].map(|least| {
        let table = BurstTrie::build_partitioned(entries.clone(), 6000, PageSize::Base, least).unwrap();
        check(&table, &reference, &queries);
        table.memory()
    });
    assert_eq!(partitioned.partitions, 4 * whole.partitions, "three classes, and the rest");
    assert!(10 * partitioned.tails < 6 * whole.tails, "{partitioned:?}, {whole:?}");
}

fn check_memory(table: &BurstTrie) {
    let memory = table.memory();
    assert_eq!((memory.descriptors, memory.heads, memory.lengths), (table.len(), 4 * table.len(), table.len()));
    assert!(memory.values <= 4 * table.len() && memory.tails <= 80 * table.len() && memory.nodes > 0);
}

/// A table and the linear scan, which get the same operations.
struct Twins {
    table: BurstTrie,
    reference: LinearTable,
}

impl Twins {
    fn insert(&mut self, entry: Entry) {
        let before = self.stored(&entry.descriptor);
        assert_eq!(self.table.insert(entry), Ok(before));
        self.reference.insert(entry);
        assert_eq!(self.table.get(&entry.descriptor), Some(entry.value));
    }

    fn remove(&mut self, descriptor: &Descriptor) {
        let before = self.stored(descriptor);
        assert_eq!(self.table.remove(descriptor), Ok(before));
        self.reference.remove(descriptor);
        assert_eq!(self.table.get(descriptor), None);
    }

    fn stored(&self, descriptor: &Descriptor) -> Option<u32> {
        self.reference.entries().iter().find(|entry| entry.descriptor == *descriptor).map(|entry| entry.value)
    }
}

fn random_bits(random: &mut fastrand::Rng, bits: usize) -> Descriptor {
    (0..bits).map(|_| random.u8(..192)).collect()
}

/// Sets that differ in what they ask of the trie: width, depth, weight, equal weights.
fn sets(random: &mut fastrand::Rng) -> Vec<Vec<Descriptor>> {
    let prefix = |bits: u8| (0..bits).collect::<Descriptor>();
    let suffix = |bits: u8| (192 - bits..192).collect::<Descriptor>();
    let without = |bit: u8| (0..192).filter(|other| *other != bit).collect::<Descriptor>();
    let pairs = (0..192_u8).step_by(8).flat_map(|a| (0..192_u8).step_by(5).map(move |b| [a, b].into_iter().collect()));
    // Long chains of nodes with one child: a shared prefix before what differs.
    let behind = |shared: u8, random: &mut fastrand::Rng| {
        let rest = (0..3).map(|_| random.u8(shared..192)).collect();
        prefix(shared).union(rest)
    };
    // Tag n is n times as rare as tag 1, up to rounding.
    let tag = |random: &mut fastrand::Rng| Descriptor::of_tag(&((1.0 / (random.f64() + 0.0005)) as u32).to_string());
    vec![
        vec![Descriptor::EMPTY],
        vec![Descriptor::EMPTY, ALL_ONES],
        (0..192).map(|bit| Descriptor::from_iter([bit])).collect(),
        (0..=192).map(prefix).chain((0..=192).map(suffix)).collect(),
        (0..192).map(without).collect(),
        pairs.collect(),
        (0..600).map(|number| behind([60, 150][number % 2], random)).collect(),
        (0..800).map(|_| tag(random).union(tag(random)).union(tag(random))).collect(),
        (0..500).map(|_| random_bits(random, 4)).collect(),
        (0..300).map(|_| random_bits(random, 400)).collect(),
        (0..600).map(|_| Descriptor([random.u64(..) & random.u64(..1 << 12), 0, random.u64(..4)])).collect(),
    ]
}

/// Queries from the set: as they are, with some more bits, two together, with one bit less.
fn queries(random: &mut fastrand::Rng, descriptors: &[Descriptor]) -> Vec<Descriptor> {
    let mut queries = vec![Descriptor::EMPTY, ALL_ONES];
    for _ in 0..6 {
        let descriptor = descriptors[random.usize(..descriptors.len())];
        let positions: Vec<u8> = descriptor.positions().collect();
        let dropped = random.usize(..=positions.len());
        queries.push(descriptor);
        queries.push(descriptor.union(random_bits(random, 14)));
        queries.push(descriptor.union(descriptors[random.usize(..descriptors.len())]));
        queries
            .push(positions.iter().enumerate().filter(|(place, _)| *place != dropped).map(|(_, bit)| *bit).collect());
    }
    queries.push(random_bits(random, 90));
    queries
}

#[test]
fn a_built_table_equals_the_linear_scan() {
    let mut random = fastrand::Rng::with_seed(1);
    for set in sets(&mut random) {
        // Duplicates too: the last one's value stays.
        let again: Vec<Descriptor> = set.iter().step_by(5).copied().collect();
        let entries: Vec<Entry> = set
            .iter()
            .chain(&again)
            .zip(0..)
            .map(|(descriptor, value)| Entry { descriptor: *descriptor, value })
            .collect();
        let mut reference = LinearTable::default();
        entries.iter().for_each(|entry| reference.insert(*entry));
        let queries = queries(&mut random, &set);
        check(&built(&entries, 2000), &reference, &queries);
    }
}

#[test]
fn a_changing_table_equals_the_linear_scan() {
    let mut random = fastrand::Rng::with_seed(2);
    for (number, set) in sets(&mut random).into_iter().enumerate() {
        let entry = |random: &mut fastrand::Rng| Entry {
            descriptor: set[random.usize(..set.len())],
            value: random.u32(..) >> random.u8(..32),
        };
        // Some tables begin empty, with bits in their order; others with half the set, rare bits first.
        let start: Vec<Entry> = (0..number % 2 * set.len() / 2).map(|_| entry(&mut random)).collect();
        let mut twins = Twins { table: built(&start, 2000), reference: LinearTable::default() };
        start.iter().for_each(|entry| twins.reference.insert(*entry));
        // Grows, stays, and shrinks to nothing.
        for chance_of_removal in [1, 5, 8] {
            for step in 0..2 * set.len() {
                match random.u8(..10) < chance_of_removal {
                    true => twins.remove(&set[random.usize(..set.len())]),
                    false => twins.insert(entry(&mut random)),
                }
                if step % (1 + set.len() / 3) == 0 {
                    check(&twins.table, &twins.reference, &queries(&mut random, &set));
                }
            }
        }
        set.iter().for_each(|descriptor| twins.remove(descriptor));
        check(&twins.table, &twins.reference, &[ALL_ONES]);
        assert!(twins.table.is_empty());
        assert_eq!(twins.table.memory().heads, 0);
        let memory = twins.table.memory();
        assert!(memory.nodes <= memory.partitions / 32, "roots without slots");
    }
}

#[test]
fn a_full_table_refuses_and_stays_what_it_was() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut table = empty(100);
    let descriptors: Vec<Descriptor> = (0..101).map(|_| random_bits(&mut random, 20)).collect();
    for (descriptor, value) in descriptors.iter().zip(0..100) {
        assert_eq!(table.insert(Entry { descriptor: *descriptor, value }), Ok(None));
    }
    let one_more = Entry { descriptor: descriptors[100], value: 100 };
    assert_eq!(table.insert(one_more), Err(Refusal::Descriptors));
    assert_eq!((table.len(), table.get(&descriptors[100])), (100, None));
    assert_eq!(table.insert(Entry { value: 7, descriptor: descriptors[0] }), Ok(Some(0)), "no further descriptor");
    assert_eq!((table.remove(&descriptors[1]), table.insert(one_more)), (Ok(Some(1)), Ok(None)));
    let entries: Vec<Entry> =
        descriptors.iter().map(|descriptor| Entry { descriptor: *descriptor, value: 1 }).collect();
    let refused = BurstTrie::build(entries, 100, PageSize::Base);
    assert!(matches!(refused, Err(BuildError::Refused(Refusal::Descriptors))), "{refused:?}");
}

/// 1 MiB of blocks holds fewer than 40,000 descriptors of 96 bits. Each update needs a block before the former one is
/// free, also in a table without free words.
#[test]
fn without_memory_a_change_is_refused_and_room_comes_back() {
    let mut random = fastrand::Rng::with_seed(4);
    let mut table = empty(1 << 15);
    let mut stored: Vec<Descriptor> = vec![];
    let refused = loop {
        let descriptor = Descriptor([random.u64(..), random.u64(..), random.u64(..)]);
        match table.insert(Entry { descriptor, value: stored.len() as u32 }) {
            Ok(before) => assert_eq!(before, None),
            Err(refusal) => {
                assert_eq!((refusal, table.get(&descriptor)), (Refusal::Memory, None));
                break descriptor;
            }
        }
        stored.push(descriptor);
    };
    assert!(table.len() == stored.len() && stored.len() > 10_000, "{}", stored.len());
    let is_there = |table: &BurstTrie, stored: &[Descriptor]| {
        stored.iter().zip(0..).all(|(descriptor, value)| table.get(descriptor) == Some(value))
    };
    assert!(is_there(&table, &stored));
    let half = stored.len() / 2;
    for (descriptor, value) in stored.iter().zip(0..).skip(half) {
        assert_eq!(table.remove(descriptor), Ok(Some(value)), "a removal is not refused");
    }
    assert_eq!(table.insert(Entry { descriptor: refused, value: 1 }), Ok(None));
    assert!(is_there(&table, &stored[..half]));
}

#[test]
fn a_reader_that_stays_pinned_keeps_its_table_and_stops_the_writer_at_a_limit() {
    let mut table = empty(1000);
    let entry = |bit: u8| Entry { descriptor: Descriptor::from_iter([bit]), value: u32::from(bit) };
    (0..40).for_each(|bit| assert_eq!(table.insert(entry(bit)), Ok(None)));
    let mut reader = table.reader();
    let view = reader.pin();
    assert_eq!(values(&view, &ALL_ONES), (0..40).collect::<Vec<u32>>());
    let refusal = (0..1 << 20).find_map(|turn: u32| {
        let bit = 100 + (turn / 2 % 50) as u8;
        let change =
            if turn.is_multiple_of(2) { table.insert(entry(bit)) } else { table.remove(&entry(bit).descriptor) };
        let stayed: Vec<u32> = if turn.is_multiple_of(5000) { values(&view, &ALL_ONES) } else { (0..40).collect() };
        assert_eq!(stayed[..40], (0..40).collect::<Vec<u32>>());
        change.err()
    });
    assert!(matches!(refusal, Some(Refusal::Readers | Refusal::Memory)), "{refusal:?}");
    drop(view);
    drop(reader.pin());
    assert_eq!(table.insert(entry(190)), Ok(None));
    assert_eq!(reader.pin().get(&entry(190).descriptor), Some(190));
}

/// What the readers of the test below expect. A value is its descriptor's number, or that and the round in which it
/// was inserted.
struct Expected {
    /// In the table throughout.
    stays: Vec<Entry>,
    /// Inserted and removed all the time.
    changes: Vec<Descriptor>,
    /// Never in the table.
    never: Vec<Descriptor>,
    /// All rounds before this one are over: what they inserted is removed.
    round: AtomicU32,
}

const ROUND_BITS: u32 = 12;

impl Expected {
    fn check(&self, reader: &mut BurstTrieReader, random: &mut fastrand::Rng) {
        let round = self.round.load(Ordering::Acquire);
        let view = reader.pin();
        let stays = self.stays[random.usize(..self.stays.len())];
        let changes = self.changes[random.usize(..self.changes.len())];
        let never = self.never[random.usize(..self.never.len())];
        let queries = [stays.descriptor, stays.descriptor.union(changes), never, changes.union(never)];
        assert_eq!(view.get(&never), None);
        let mut all_of_each = vec![vec![]; queries.len()];
        view.find_all_of_each(&queries, |place, value| {
            all_of_each[place].push(value);
            ControlFlow::Continue(())
        });
        for (query, all) in queries.iter().zip(all_of_each) {
            self.check_values(query, &all, round);
            self.check_values(query, &values(&view, query), round);
        }
        let largest = view.find_largest(&queries[1]).expect("a subset is there throughout");
        assert!(
            largest.descriptor.weight() >= stays.descriptor.weight() && largest.descriptor.is_subset_of(&queries[1])
        );
    }

    fn check_values(&self, query: &Descriptor, values: &[u32], round: u32) {
        for (number, entry) in self.stays.iter().enumerate() {
            let found = values.iter().filter(|value| **value == entry.value).count();
            assert_eq!(found, usize::from(entry.descriptor.is_subset_of(query)), "{number} in round {round}");
        }
        for value in values.iter().filter(|value| **value >= 1 << ROUND_BITS) {
            let (number, inserted) = (value & ((1 << ROUND_BITS) - 1), value >> ROUND_BITS);
            assert!(inserted >= round, "{number} of round {inserted}, which was over before the pin in {round}");
            assert!(self.changes[number as usize].is_subset_of(query));
        }
    }
}

#[test]
fn readers_find_what_stays_while_a_writer_inserts_and_removes() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut tag = || Descriptor::of_tag(&((1.0 / (random.f64() + 0.001)) as u32).to_string());
    let mut distinct: Vec<Descriptor> = (0..1500).map(|_| tag().union(tag())).collect();
    distinct.sort_unstable();
    distinct.dedup();
    fastrand::Rng::with_seed(6).shuffle(&mut distinct);
    let third = distinct.len() / 3;
    let stays: Vec<Entry> =
        distinct[..third].iter().zip(0..).map(|(descriptor, value)| Entry { descriptor: *descriptor, value }).collect();
    let expected = Expected {
        changes: distinct[third..2 * third].to_vec(),
        never: distinct[2 * third..].to_vec(),
        round: AtomicU32::new(1),
        stays,
    };
    let mut table = built(&expected.stays, 4096);
    let mut readers = [table.reader(), table.reader(), table.reader()];
    const ROUNDS: u32 = 60;
    thread::scope(|scope| {
        for (seed, reader) in (0..).zip(&mut readers) {
            let expected = &expected;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while expected.round.load(Ordering::Relaxed) < ROUNDS {
                    expected.check(reader, &mut random);
                }
                expected.check(reader, &mut random);
            });
        }
        for round in 1..ROUNDS {
            for (number, descriptor) in (0..).zip(&expected.changes) {
                let value = round << ROUND_BITS | number;
                assert_eq!(table.insert(Entry { descriptor: *descriptor, value }), Ok(None));
            }
            for (number, descriptor) in (0..).zip(&expected.changes) {
                assert_eq!(table.remove(descriptor), Ok(Some(round << ROUND_BITS | number)));
            }
            expected.round.store(round + 1, Ordering::Release);
        }
    });
    assert_eq!(table.len(), expected.stays.len());
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(Descriptor, u32),
    Remove(Descriptor),
}

/// Descriptors of few positions, so that they contain each other, and dense ones.
fn descriptor() -> impl Strategy<Value = Descriptor> {
    let close = proptest::collection::vec(0..12_u8, 0..8);
    let far = proptest::collection::vec(prop_oneof![0..4_u8, 60..70_u8, 124..132_u8, 188..192_u8], 0..10);
    let some = prop_oneof![close, far].prop_map(Descriptor::from_iter);
    prop_oneof![9 => some.clone(), 1 => some.prop_map(|some| Descriptor(some.0.map(|word| !word)))]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => (descriptor(), 0..1000_u32).prop_map(|(descriptor, value)| Operation::Insert(descriptor, value)),
        1 => descriptor().prop_map(Operation::Remove),
    ]
}

proptest! {
    #[test]
    fn any_operations_equal_the_linear_scan(
        start in proptest::collection::vec((descriptor(), 0..1000_u32), 0..100),
        operations in proptest::collection::vec(operation(), 1..200),
        queries in proptest::collection::vec(descriptor(), 1..20),
    ) {
        let start: Vec<Entry> =
            start.into_iter().map(|(descriptor, value)| Entry { descriptor, value }).collect();
        let mut twins = Twins { table: built(&start, 400), reference: LinearTable::default() };
        start.iter().for_each(|entry| twins.reference.insert(*entry));
        check(&twins.table, &twins.reference, &queries);
        for operation in operations {
            match operation {
                Operation::Insert(descriptor, value) => twins.insert(Entry { descriptor, value }),
                Operation::Remove(descriptor) => twins.remove(&descriptor),
            }
        }
        check(&twins.table, &twins.reference, &queries);
    }
}
