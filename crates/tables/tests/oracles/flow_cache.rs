//! Searches that use a flow cache against the plain search, while prefixes come and go and FIBs take turns.

use namewire_tables::fib::{Flow, FlowCache, steps};
use namewire_tables::{BatchLookUp, Fib, FibMatch, HashKey, NameHashes, NextHop, PageSize};
use proptest::prelude::*;

/// Components of a name, each of one letter; long ones repeat it.
type Letters = Vec<u8>;

fn name_value(letters: &[u8], repeat: usize) -> Vec<u8> {
    letters.iter().flat_map(|&letter| [8, repeat as u8].into_iter().chain(vec![letter; repeat])).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Insert {
        fib: usize,
        prefix: Letters,
    },
    Remove {
        fib: usize,
        prefix: Letters,
    },
    /// Names of one batch.
    LookUp {
        fib: usize,
        names: Vec<Letters>,
    },
}

fn letters(longest: usize) -> impl Strategy<Value = Letters> {
    prop::collection::vec(0..2_u8, 0..=longest)
}

/// Most names have few parents.
fn name() -> impl Strategy<Value = Letters> {
    let of_a_flow = (letters(3), 0..200_u8).prop_map(|(parent, last)| [&parent[..], &[last]].concat());
    prop_oneof![4 => of_a_flow, 1 => letters(20)]
}

fn step() -> impl Strategy<Value = Step> {
    let fib = || prop_oneof![9 => Just(0_usize), 1 => Just(1)];
    let prefix = || prop_oneof![4 => letters(4), 1 => name()];
    prop_oneof![
        1 => (fib(), prefix()).prop_map(|(fib, prefix)| Step::Insert { fib, prefix }),
        1 => (fib(), prefix()).prop_map(|(fib, prefix)| Step::Remove { fib, prefix }),
        6 => (fib(), prop::collection::vec(name(), 1..=64)).prop_map(|(fib, names)| Step::LookUp { fib, names }),
    ]
}

/// What the search finds, and how many names it did not have to search for.
fn look_up<'a>(
    fib: &'a Fib,
    names: &[Vec<u8>],
    hashes: &mut [NameHashes],
    flows: &mut FlowCache,
) -> (Vec<Option<FibMatch<'a>>>, usize) {
    let view = fib.view();
    let BatchLookUp::Stepped(table) = view.batch_look_up() else { unreachable!("the router's own table") };
    let (mut search, wanted) = (table.search_flows(flows), table.wanted_lengths());
    let (mut to_be_noted, mut known) = (Vec::new(), 0);
    let mut hints = vec![None; names.len()];
    for step in steps(names.len()) {
        step.ready.clone().for_each(|name| hashes[name].compute(view.key(), &names[name]).unwrap());
        search.fetch_flows(step.ready, u64::MAX, hashes, flows);
        for name in step.begin {
            match search.recall(name, &hashes[name], flows) {
                Flow::Known(hint) => {
                    hints[name] = Some(hint);
                    known += 1;
                    continue;
                }
                Flow::ToBeNoted => to_be_noted.push(name),
                Flow::Unknown => {}
            }
            hashes[name].make_known(wanted);
            search.begin(name, &hashes[name]);
        }
        search.step(hashes);
    }
    search.finish(hashes);
    search.found().for_each(|(name, hint)| hints[name] = Some(hint));
    for name in to_be_noted {
        if let Some(hint) = hints[name] {
            search.note_flow(flows, &hashes[name], hint);
        }
    }
    let found = |name: usize| view.longest_prefix_match_hinted(&names[name], &hashes[name], hints[name]);
    ((0..names.len()).map(found).collect(), known)
}

proptest! {
    #[test]
    fn a_search_with_flows_finds_what_one_without_finds(
        steps in prop::collection::vec(step(), 1..60),
        flows in 0..9_u32,
        repeat in prop_oneof![3 => Just(1_usize), 1 => Just(9), 1 => Just(60)],
    ) {
        let key = HashKey::from_seed(1);
        let mut fibs = [Fib::new(1000, key), Fib::new(1000, key)];
        let mut flows = FlowCache::new(flows, PageSize::Base).unwrap();
        let mut hashes = vec![NameHashes::default(); 64];
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert { fib, prefix } => {
                    let next_hop = NextHop { face: number as u64 + 1, cost: 0 };
                    fibs[fib].insert(&name_value(&prefix, repeat), &[next_hop], number as u32, false).unwrap();
                }
                Step::Remove { fib, prefix } => {
                    fibs[fib].remove(&name_value(&prefix, repeat)).unwrap();
                }
                Step::LookUp { fib, names } => {
                    let names: Vec<_> = names.iter().map(|name| name_value(name, repeat)).collect();
                    let (found, _) = look_up(&fibs[fib], &names, &mut hashes, &mut flows);
                    for (name, found) in names.iter().zip(found) {
                        let mut hashes = NameHashes::default();
                        hashes.compute(&key, name).unwrap();
                        prop_assert_eq!(found, fibs[fib].view().longest_prefix_match(name, &hashes), "{:?}", name);
                    }
                }
            }
        }
    }
}

#[test]
fn a_stream_is_searched_for_a_few_times_only() {
    let key = HashKey::from_seed(1);
    let mut fib = Fib::new(1000, key);
    for prefix in [&b"ab"[..], b"abcde", b"x"] {
        fib.insert(&name_value(prefix, 1), &[NextHop { face: 1, cost: 0 }], 0, false).unwrap();
    }
    let mut flows = FlowCache::new(64, PageSize::Base).unwrap();
    let mut hashes = vec![NameHashes::default(); 64];
    // Names as long as a prefix of the FIB, longer ones, and those without a prefix.
    for parent in [&b"abcd"[..], b"abcdef", b"abq"] {
        let names: Vec<_> = (0..64).map(|last| name_value(&[parent, &[last]].concat(), 1)).collect();
        // The cache notes nothing in a version's first batch.
        (0..2).for_each(|_| drop(look_up(&fib, &names, &mut hashes, &mut flows)));
        let (found, known) = look_up(&fib, &names, &mut hashes, &mut flows);
        assert_eq!((known, found.iter().flatten().count()), (64, 64), "{parent:?}");
    }
    let names = [name_value(b"abcdef7", 1)];
    assert_eq!(look_up(&fib, &names, &mut hashes, &mut flows).1, 1);
    fib.insert(&name_value(b"y", 1), &[NextHop { face: 1, cost: 0 }], 0, false).unwrap();
    assert_eq!(look_up(&fib, &names, &mut hashes, &mut flows).1, 0, "a prefix has come");
    assert_eq!(look_up(&fib, &names, &mut hashes, &mut flows).1, 0, "noted only now");
    assert_eq!(look_up(&fib, &names, &mut hashes, &mut flows).1, 1);
    let mut without = FlowCache::new(0, PageSize::Base).unwrap();
    assert_eq!((look_up(&fib, &names, &mut hashes, &mut without).1, without.bytes()), (0, 0));
}

#[test]
fn a_stream_gets_flows_again_after_names_that_never_repeat_whichever_batches_it_is_in() {
    let key = HashKey::from_seed(1);
    let mut fib = Fib::new(10, key);
    fib.insert(&name_value(b"a", 1), &[NextHop { face: 1, cost: 0 }], 0, false).unwrap();
    let mut hashes = vec![NameHashes::default(); 64];
    for turn in [1, 2, 3, 4, 8] {
        let mut flows = FlowCache::new(64, PageSize::Base).unwrap();
        let other = |number: usize| [b'a', 0, (number >> 16) as u8, (number >> 8) as u8, number as u8];
        for batch in 0..100 {
            let names: Vec<_> = (0..64).map(|n| name_value(&other(64 * batch + n), 1)).collect();
            look_up(&fib, &names, &mut hashes, &mut flows);
        }
        // One batch in `turn` has names.
        let mut known = 0;
        for batch in 0..1000 * turn {
            let count = if batch % turn == 0 { 64 } else { 0 };
            let names: Vec<_> = (0..count).map(|n| name_value(&[b'a', b'b', batch as u8 % 2, n], 1)).collect();
            known = look_up(&fib, &names, &mut hashes, &mut flows).1.max(known);
        }
        assert!(known > 32, "one batch in {turn}: {known} of 64 names");
    }
}
