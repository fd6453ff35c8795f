//! FIB against a list of prefixes that is searched from end to end.

use crate::adversarial_names::{Components, any_name, component, pool, value};
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_tables::fib::{FibEntryKind, Inserted, MAX_NEXT_HOPS, MAX_PREFIX_BYTES};
use namewire_tables::{
    Fib, FibConfig, FibEntry, FibMatch, FibRefusal, FibSearch, HashKey, MAX_NAME_COMPONENTS, NameHashes, NameStorage,
    NextHop,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The first index holds 8, so it doubles once.
const CAPACITY: usize = 10;

#[derive(Clone, Debug, PartialEq)]
struct Content {
    nexthops: Vec<NextHop>,
    strategy: u32,
    hidden: bool,
}

/// A change; the fuzz target uses them too.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Insert { name: prop::sample::Index, nexthops: Vec<(u64, u64)>, strategy: u32, hidden: bool },
    Remove { name: prop::sample::Index },
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    let nexthops = prop::collection::vec((256..300_u64, 0..4_u64), 0..8);
    let insert = (any::<prop::sample::Index>(), nexthops, 0..3_u32, any::<bool>())
        .prop_map(|(name, nexthops, strategy, hidden)| Operation::Insert { name, nexthops, strategy, hidden });
    let remove = any::<prop::sample::Index>().prop_map(|name| Operation::Remove { name });
    prop_oneof![2 => insert, 1 => remove]
}

fn content(entry: FibEntry<'_>) -> Content {
    let FibEntry { nexthops, strategy, hidden, .. } = entry;
    Content { nexthops: nexthops.to_vec(), strategy, hidden }
}

fn content_of_match(found: FibMatch<'_>) -> Content {
    let FibMatch { nexthops, strategy, hidden, .. } = found;
    Content { nexthops: nexthops.to_vec(), strategy, hidden }
}

fn naive_longest<'a>(
    prefixes: &'a BTreeMap<Components, Content>,
    name: &[Vec<u8>],
) -> Option<(&'a Components, &'a Content)> {
    prefixes.iter().filter(|(prefix, _)| name.starts_with(prefix)).max_by_key(|(p, _)| p.len())
}

fn check(kind: Kind, fib: &Fib, naive: &BTreeMap<Components, Content>, names: &[Components]) {
    assert_eq!(fib.len(), naive.len());
    let expected: BTreeMap<_, _> = naive.iter().map(|(name, content)| (value(name), content.clone())).collect();
    if let Some(listed) = fib.iter() {
        let listed: BTreeMap<_, _> = listed.map(|entry| (entry.name_value.to_vec(), content(entry))).collect();
        assert_eq!(listed, expected);
    }
    assert_eq!(fib.name_bytes(), expected.keys().map(Vec::len).sum());

    let values: Vec<Vec<u8>> = names.iter().map(|name| value(name)).collect();
    let slices: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
    let mut hashes = vec![NameHashes::default(); names.len()];
    assert_eq!(NameHashes::compute_batch(fib.key(), &slices, &mut hashes), 0);
    let mut found = vec![None; names.len()];
    let view = fib.view();
    view.longest_prefix_match_batch(&slices, &hashes, &mut found);
    for (i, name) in names.iter().enumerate() {
        let expected = naive_longest(naive, name).map(|(p, c)| (value(p), c.clone()));
        // A lossy table has routes only. It may take a name without a route for another, but not its strategy.
        let has_route = naive.iter().any(|(prefix, content)| !content.hidden && name.starts_with(prefix));
        if !has_route && !kind.is_lossless() {
            let strategy = expected.map(|(_, content)| content.strategy);
            assert!(strategy.is_none_or(|strategy| found[i].is_some_and(|found| found.strategy == strategy)));
            continue;
        }
        let exact = fib.get(slices[i]).map(content_of_match);
        assert!(exact.as_ref() == naive.get(name) || (naive.get(name).is_none() && !kind.is_lossless()));
        let one = view.longest_prefix_match(slices[i], &hashes[i]);
        assert_eq!(one, found[i]);
        view.prefetch_buckets(&hashes[i]);
        let hint = view.candidate(&hashes[i]);
        if let Some(hint) = hint {
            view.prefetch_entry(hint);
        }
        let hinted = view.longest_prefix_match_hinted(slices[i], &hashes[i], hint);
        assert_eq!(one, hinted);
        assert_eq!(one.map(|found| (slices[i][..found.prefix_bytes].to_vec(), content_of_match(found))), expected);
    }
}

/// The router's own table, perhaps with hardly any room for the bytes of entries, or two copies of a design that knows
/// no readers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Default(FibSearch, NameStorage),
    Small(NameStorage),
    Design(FibDesign),
}

fn kinds() -> Vec<Kind> {
    let default = [
        Kind::Default(FibSearch::OneBucket, NameStorage::Inline),
        Kind::Default(FibSearch::OneBucket, NameStorage::Encoded),
        Kind::Default(FibSearch::LongestFirst, NameStorage::Inline),
        Kind::Default(FibSearch::LongestFirst, NameStorage::Encoded),
        Kind::Small(NameStorage::Inline),
        Kind::Small(NameStorage::Encoded),
    ];
    let designs = FibDesign::ALL.into_iter().filter(|design| design.search().is_none()).map(Kind::Design);
    default.into_iter().chain(designs).collect()
}

fn roomy_kinds() -> Vec<Kind> {
    kinds().into_iter().filter(|kind| !matches!(kind, Kind::Small(_))).collect()
}

impl Kind {
    fn fib(self, capacity_entries: usize, seed: u64) -> Fib {
        let (config, key) = (FibConfig::new(capacity_entries), HashKey::from_seed(seed));
        match self {
            Self::Default(search, names) => {
                Fib::with_config(FibConfig { search, names, ..config }, key).expect("address space")
            }
            Self::Small(names) => {
                Fib::with_config(FibConfig { names, entry_bytes: 1024, ..config }, key).expect("memory")
            }
            Self::Design(design) => design.fib(&FibDesignOptions::default(), config, key).expect("memory"),
        }
    }

    fn is_lossless(self) -> bool {
        !matches!(self, Self::Design(design) if !design.is_lossless())
    }
}

/// Each prefix has a strategy of its own, as if one was chosen for it.
fn insert(
    fib: &mut Fib,
    name: &[Vec<u8>],
    nexthops: &[NextHop],
    strategy: u32,
    hidden: bool,
) -> Result<Inserted, FibRefusal> {
    let kind = if hidden { FibEntryKind::Strategy } else { FibEntryKind::RouteWithStrategy };
    fib.insert_as(&value(name), nexthops, strategy, kind)
}

/// A FIB, the names for its prefixes and others, and changes.
pub(crate) fn runs() -> impl Strategy<Value = (Kind, (Vec<Components>, Vec<Components>), Vec<Operation>)> {
    (
        prop::sample::select(kinds()),
        (pool(), prop::collection::vec(any_name(), 3)),
        prop::collection::vec(operation(), 1..60),
    )
}

/// Both must find the same prefixes after each change.
pub(crate) fn replay(
    kind: Kind,
    (pool, strangers): (Vec<Components>, Vec<Components>),
    operations: Vec<Operation>,
    seed: u64,
) {
    let mut fib = kind.fib(CAPACITY, seed);
    let mut naive = BTreeMap::new();
    let names = [&pool[..], &strangers].concat();
    for operation in operations {
        match operation {
            Operation::Insert { name, nexthops, strategy, hidden } => {
                let name = name.get(&pool);
                let mut nexthops: Vec<_> = nexthops.into_iter().map(|(face, cost)| NextHop { face, cost }).collect();
                let result = insert(&mut fib, name, &nexthops, strategy, hidden);
                nexthops.sort_by_key(|next_hop| next_hop.cost);
                let new = Content { nexthops, strategy, hidden };
                let is_known = naive.contains_key(name);
                if !is_known && naive.len() == CAPACITY {
                    assert_eq!(result, Err(FibRefusal::Full));
                    continue;
                }
                if matches!(kind, Kind::Small(_)) && result == Err(FibRefusal::BytesFull) {
                    assert!(!is_known);
                    continue;
                }
                assert_eq!(result.unwrap().replaced, is_known);
                naive.insert(name.clone(), new);
            }
            Operation::Remove { name } => {
                let name = name.get(&pool);
                assert_eq!(fib.remove(&value(name)).unwrap(), naive.remove(name).is_some());
            }
        }
        check(kind, &fib, &naive, &names);
    }
}

proptest! {
    #[test]
    fn fib_equals_the_naive_one((kind, names, operations) in runs(), seed: u64) {
        replay(kind, names, operations, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Many more prefixes than a bucket holds agree in their first two components. Some have the same
    /// length, some are longer than what is kept inline, and they come and go.
    #[test]
    fn a_crowd_under_one_name_is_found(seed: u64, kind in prop::sample::select(roomy_kinds()), rounds in 1_usize..4) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut fib = kind.fib(400, seed);
        let mut naive = BTreeMap::new();
        let mut names = Vec::new();
        for number in 0..300_u32 {
            let crowd = vec![component(8, b"a"), component(8, &[(number % 3 / 2) as u8])];
            let rest = (0..rng.u32(0..22)).map(|place| component(8, &(number % (2 + place)).to_le_bytes()));
            names.push(crowd.into_iter().chain(rest).collect::<Components>());
        }
        names.push(vec![]);
        names.push(vec![component(8, b"a")]);
        for _ in 0..rounds {
            for name in &names {
                if rng.bool() {
                    let content = Content { nexthops: vec![], strategy: rng.u32(0..3), hidden: rng.bool() };
                    insert(&mut fib, name, &[], content.strategy, content.hidden).unwrap();
                    naive.insert(name.clone(), content);
                } else {
                    prop_assert_eq!(fib.remove(&value(name)).unwrap(), naive.remove(name).is_some());
                }
            }
            check(kind, &fib, &naive, &names);
        }
    }
}

#[test]
fn what_is_too_long_is_refused_by_name() {
    roomy_kinds().into_iter().for_each(refuses_what_is_too_long);
}

fn refuses_what_is_too_long(kind: Kind) {
    let mut fib = kind.fib(10, 1);
    let deepest = component(8, b"").repeat(MAX_NAME_COMPONENTS);
    let too_deep = component(8, b"").repeat(MAX_NAME_COMPONENTS + 1);
    let too_long = component(8, &vec![0; MAX_PREFIX_BYTES]);
    let many = vec![NextHop { face: 256, cost: 0 }; MAX_NEXT_HOPS + 1];
    assert!(fib.insert(&deepest, &many[1..], 0, false).is_ok());
    assert_eq!(fib.insert(&too_deep, &[], 0, false), Err(FibRefusal::PrefixTooLong));
    assert_eq!(fib.insert(&too_long, &[], 0, false), Err(FibRefusal::PrefixTooLong));
    assert_eq!(fib.insert(b"", &many, 0, false), Err(FibRefusal::TooManyNextHops));
    assert_eq!(fib.len(), 1);
    let mut hashes = NameHashes::default();
    hashes.compute(fib.key(), &deepest).unwrap();
    assert!(fib.view().longest_prefix_match(&deepest, &hashes).is_some());
}

/// A reader that keeps its pin holds one copy of a design, so changes are refused. To remove an absent
/// prefix needs no copy; otherwise a router would try it again for ever.
#[test]
fn what_is_not_there_is_removed_while_a_reader_holds_a_copy() {
    for design in [FibDesign::NameTrie, FibDesign::Fht, FibDesign::Fpt] {
        let (options, key) = (FibDesignOptions::default(), HashKey::from_seed(1));
        let mut fib = design.fib(&options, FibConfig::new(10), key).expect("memory");
        let mut reader = fib.reader();
        fib.insert(b"\x08\x01a", &[], 1, false).expect("room");
        let pin = reader.pin();
        fib.insert(b"\x08\x01b", &[], 1, false).expect("the other copy is free");
        fib.publish();
        assert_eq!(fib.remove(b"\x08\x01b"), Err(FibRefusal::ReadersBehind), "{}", design.name());
        for absent in [&b""[..], b"\x08\x01c", b"\x08\x01b\x08\x01b"] {
            assert_eq!(fib.remove(absent), Ok(false), "{}", design.name());
        }
        drop(pin);
        assert_eq!(fib.remove(b"\x08\x01b"), Ok(true), "{}", design.name());
    }
}
