//! The writer's steps, and readers meanwhile.

use super::*;
use crate::matching::{SubsetTable, vector::VectorOptions};
use crate::{
    TagSet,
    forwarder::{Branch, Serves},
};
use proptest::prelude::*;
use std::{ops::ControlFlow, sync::atomic::AtomicBool};

fn descriptor(number: u64) -> Descriptor {
    TagSet::new([format!("tag{}", number % 50), format!("own{number}")]).unwrap().descriptor()
}

/// A set that tells which descriptor it belongs to, in one of several forms.
fn set(number: u64, form: u16) -> BranchSet {
    let branch = Branch { tree: form, face: FaceId(number), serves: Serves::BOTH, is_application: false };
    BranchSet::new(vec![branch], Vec::new())
}

fn found(tables: &PinnedTables<'_>, number: u64) -> Option<(u64, u16)> {
    let view = tables.view();
    let mut found = None;
    view.descriptors.find_all(&descriptor(number), |value| {
        let branch = view.branch_sets.get(value).branches()[0];
        if branch.face.0 == number {
            found = Some((number, branch.tree));
        }
        ControlFlow::Continue(())
    });
    found
}

#[test]
fn equal_sets_share_a_number_and_unused_numbers_are_used_again() {
    let mut tables = LiveTables::<BranchSet>::new(100).unwrap();
    let mut reader = tables.reader();
    tables.change((0..10).map(|number| (descriptor(number), Some(set(7, 1)))));
    assert_eq!(tables.branch_sets.len(), 1);
    tables.change([(descriptor(3), Some(set(3, 2)))]);
    assert_eq!(found(&reader.pin(), 3), Some((3, 2)));
    for form in 0..100 {
        tables.change([(descriptor(3), Some(set(3, form)))]);
    }
    assert!(tables.branch_sets.len() <= 4, "{}", tables.branch_sets.len());
    tables.change([(descriptor(3), None)]);
    assert_eq!(found(&reader.pin(), 3), None);
}

#[test]
fn while_a_reader_is_pinned_numbers_keep_their_meaning() {
    let mut tables = LiveTables::<BranchSet>::new(100).unwrap();
    let mut reader = tables.reader();
    tables.change([(descriptor(1), Some(set(1, 1)))]);
    let pinned = reader.pin();
    tables.change([(descriptor(1), Some(set(1, 2)))]);
    assert_eq!(found(&pinned, 1), Some((1, 1)), "its version has no other set");
    tables.change([(descriptor(2), Some(set(2, 1)))]);
    assert!(tables.is_waiting() && found(&pinned, 2).is_none());
    drop(pinned);
    tables.run();
    assert!(!tables.is_waiting());
    let pinned = reader.pin();
    assert_eq!((found(&pinned, 1), found(&pinned, 2)), (Some((1, 2)), Some((2, 1))));
}

/// The story: a step that left a descriptor as a later step would leave it made the tables forget the later one.
#[test]
fn each_step_counts_even_if_two_steps_make_the_same_change() {
    let mut tables = LiveTables::<BranchSet>::new(100).unwrap();
    let [mut first, mut second, mut third] = [(); 3].map(|()| tables.reader());
    tables.change([(descriptor(1), Some(set(1, 1)))]);
    // Each step waits for one more reader than the step before it.
    let pinned = first.pin();
    tables.change([(descriptor(1), None)]);
    let later = second.pin();
    tables.change([(descriptor(1), Some(set(1, 2)))]);
    let last = third.pin();
    tables.change([(descriptor(1), None)]);
    drop(pinned);
    tables.run();
    drop(later);
    tables.run();
    assert_eq!((found(&first.pin(), 1), tables.wanted(&descriptor(1))), (Some((1, 2)), None));
    tables.change([(descriptor(1), None)]);
    drop(last);
    tables.run();
    assert_eq!((found(&first.pin(), 1), tables.pending.len()), (None, 0));
    assert_eq!(tables.free.len(), tables.branch_sets.len());
}

#[test]
fn another_trie_takes_over_with_all_that_is_there() {
    let mut tables = LiveTables::<BranchSet>::new(10_000).unwrap();
    let mut reader = tables.reader();
    let all = |form: u16| (0..2_000).map(move |number| (descriptor(number), set(number, form)));
    let pinned = reader.pin();
    tables.change(all(1).map(|(descriptor, set)| (descriptor, Some(set))));
    assert!(tables.is_waiting());
    // It has not what waits for the reader.
    tables.build().unwrap();
    assert!((0..2_000).all(|number| found(&pinned, number).is_none()));
    drop(pinned);
    tables.run();
    assert!((0..2_000).all(|number| found(&reader.pin(), number) == Some((number, 1))));
    assert!(tables.wants_build());
    tables.build().unwrap();
    assert!(!tables.wants_build() && (0..2_000).all(|number| found(&reader.pin(), number) == Some((number, 1))));
    tables.change([(descriptor(5), None)]);
    assert_eq!(found(&reader.pin(), 5), None);
}

#[test]
fn readers_find_what_stays_and_never_another_descriptors_branches() {
    const STAY: u64 = 200;
    let mut tables = LiveTables::<BranchSet>::new(5_000).unwrap();
    tables.change((0..STAY).map(|number| (descriptor(number), Some(set(number, 0)))));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (mut reader, is_over) = (tables.reader(), &is_over);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while !is_over.load(Ordering::Relaxed) {
                    let pinned = reader.pin();
                    let view = pinned.view();
                    for _ in 0..8 {
                        let number = random.u64(..STAY * 2);
                        let (mut is_found, query) = (false, descriptor(number));
                        view.descriptors.find_all(&query, |value| {
                            let face = view.branch_sets.get(value).branches()[0].face.0;
                            assert!(descriptor(face).is_subset_of(&query), "{face} for {number}");
                            is_found |= face == number;
                            ControlFlow::Continue(())
                        });
                        assert!(is_found || number >= STAY, "{number} was there throughout");
                    }
                }
            });
        }
        let mut random = fastrand::Rng::with_seed(9);
        for round in 0..4_000_u16 {
            // Those that stay change their sets; the others come and go.
            let staying = random.u64(..STAY);
            let other = random.u64(STAY..2 * STAY);
            let comes = random.bool().then(|| set(other, round));
            tables.change([(descriptor(staying), Some(set(staying, round))), (descriptor(other), comes)]);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    tables.run();
    assert!(!tables.is_waiting());
    assert_eq!(tables.free.len() + tables.numbers.len(), tables.branch_sets.len(), "every number is used or free");
}

/// Changes that come while another trie is built are in it when readers switch to it.
#[test]
fn what_changes_during_a_build_is_in_the_new_trie() {
    let mut tables = LiveTables::<BranchSet>::new(10_000).unwrap();
    let mut reader = tables.reader();
    tables.change((0..2_000).map(|number| (descriptor(number), Some(set(number, 1)))));
    assert!(tables.wants_build());
    let build = tables.begin_build();
    assert!(!tables.wants_build());
    tables.change((0..500).map(|number| (descriptor(number), None)));
    let built = build.run();
    // As if it had been built before these changes.
    tables.change((400..700).map(|number| (descriptor(number), Some(set(number, 2)))));
    tables.change((2_000..2_100).map(|number| (descriptor(number), Some(set(number, 1)))));
    tables.finish_build(built).unwrap();
    tables.run();
    assert!(!tables.is_waiting() && !tables.wants_build() && tables.trie_number == 1);
    let pinned = reader.pin();
    for number in 0..2_200 {
        let form = match number {
            0..400 | 2_100.. => None,
            400..700 => Some(2),
            _ => Some(1),
        };
        assert_eq!(found(&pinned, number), form.map(|form| (number, form)), "{number}");
    }
}

/// A number that all readers know is in the trie at once, even while another reader is pinned.
#[test]
fn a_number_that_readers_know_does_not_wait_for_them() {
    let mut tables = LiveTables::<BranchSet>::new(100).unwrap();
    let mut reader = tables.reader();
    tables.change([(descriptor(1), Some(set(7, 1)))]);
    let pinned = reader.pin();
    tables.set(&descriptor(2), Some(set(7, 1)));
    assert!(!tables.has_pending() && tables.trie.get(&descriptor(2)).is_some());
    tables.set(&descriptor(2), Some(set(8, 1)));
    tables.set(&descriptor(3), Some(set(8, 1)));
    assert!(tables.has_pending() && tables.trie.get(&descriptor(3)).is_none());
    assert_eq!(tables.get(&descriptor(3)).map(|it| BranchSet::clone(it)), Some(set(8, 1)), "the writer sees it");
    assert_eq!(tables.entries(usize::MAX).count(), 3);
    drop(pinned);
    tables.run();
    assert!(!tables.is_waiting() && tables.trie.get(&descriptor(3)).is_some());
}

fn both(reader: &mut LiveTablesReader, numbers: [u64; 2]) -> [Option<(u64, u16)>; 2] {
    let pinned = reader.pin();
    numbers.map(|number| found(&pinned, number))
}

/// Readers of the vector see changes with the next vector, and a number keeps its meaning as long as one has it.
#[test]
fn a_vector_shows_what_was_there_when_its_build_began() {
    let mut tables = LiveTables::<BranchSet>::new(100).unwrap();
    tables.search_by_vector(VectorOptions::PAPER);
    let mut reader = tables.reader();
    tables.change([(descriptor(1), Some(set(1, 1))), (descriptor(2), Some(set(2, 1)))]);
    assert_eq!(found(&reader.pin(), 1), None);
    let build = |tables: &mut LiveTables| {
        assert!(tables.wants_vector());
        let built = tables.begin_vector().unwrap().run();
        tables.finish_vector(built.ok());
        tables.run();
    };
    build(&mut tables);
    assert!(!tables.wants_vector());
    assert_eq!(both(&mut reader, [1, 2]), [Some((1, 1)), Some((2, 1))]);
    // The number of a removed set is not given to another while the vector has it.
    tables.change([(descriptor(1), None)]);
    for form in 2..50 {
        tables.change([(descriptor(3), Some(set(3, form)))]);
        assert_eq!(both(&mut reader, [1, 3]), [Some((1, 1)), None]);
    }
    let numbers = tables.branch_sets.len();
    build(&mut tables);
    assert_eq!(both(&mut reader, [1, 3]), [None, Some((3, 49))]);
    for form in 50..80 {
        tables.change([(descriptor(3), Some(set(3, form)))]);
    }
    assert_eq!(tables.branch_sets.len(), numbers, "unused numbers are used again");
}

proptest! {
    /// The tables hold what a map holds, whatever readers do, and whatever is built meanwhile.
    #[test]
    fn tables_hold_what_a_map_holds(
        operations in proptest::collection::vec((0..6_u8, 0..40_u64, 0..4_u16), 1..200),
    ) {
        let mut tables = LiveTables::<BranchSet>::new(100).unwrap();
        let mut readers = [tables.reader(), tables.reader()];
        let (mut map, mut build, mut held) = (HashMap::new(), None, [false; 2]);
        for (what, number, form) in operations {
            match what {
                0 | 1 => {
                    // Some sets belong to several descriptors, others to one.
                    let kept = set(number % 5 * u64::from(form), form);
                    map.insert(descriptor(number), kept.clone());
                    tables.set(&descriptor(number), Some(kept));
                }
                2 => {
                    map.remove(&descriptor(number));
                    tables.set(&descriptor(number), None);
                }
                3 => tables.run(),
                4 => {
                    let place = usize::from(form % 2);
                    if held[place] { readers[place].release() } else { readers[place].hold() }
                    held[place] = !held[place];
                }
                _ => match build.take() {
                    None if tables.rebuild.is_none() => build = Some(tables.begin_build().run()),
                    None => tables.run(),
                    Some(built) => tables.finish_build(built).unwrap(),
                },
            }
            let wanted = map.get(&descriptor(number));
            prop_assert_eq!(tables.get(&descriptor(number)).map(|kept| &**kept), wanted);
        }
        let entries: HashMap<_, _> = tables.entries(100).map(|(key, kept)| (key, BranchSet::clone(&kept))).collect();
        prop_assert_eq!(&entries, &map);
        for (reader, is_held) in readers.iter_mut().zip(held) {
            if is_held {
                reader.release();
            }
        }
        if let Some(built) = build {
            tables.finish_build(built).unwrap();
        }
        tables.run();
        prop_assert!(!tables.is_waiting());
        for (descriptor, kept) in &map {
            let pinned = readers[0].pin();
            let view = pinned.view();
            let mut has_it = false;
            view.descriptors.find_all(descriptor, |value| {
                has_it |= view.branch_sets.get(value) == kept;
                ControlFlow::Continue(())
            });
            prop_assert!(has_it);
        }
        let used = tables.uses().count();
        prop_assert_eq!(used + tables.free.len(), tables.branch_sets.len());
    }
}
