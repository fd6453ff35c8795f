//! Every design of the papers against one list of prefixes that is searched from end to end.
//!
//! A lossless design must answer every name as the list does; a lossy one every name that has a prefix
//! there. This file has the operations; the files that call [`equals_the_model`] and [`survives_churn`]
//! name the designs.

use crate::adversarial_names::{Components, any_name, component, pool, value};
use namewire_tables::MAX_NAME_COMPONENTS;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};
use namewire_tables::fib::{FibRefusal, MAX_PREFIX_BYTES};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, HashMap};

/// Few enough that random lists fill it.
pub(crate) const CAPACITY: usize = 24;

/// A change; the fuzz target uses them too.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Insert { name: prop::sample::Index, number: u32 },
    Remove { name: prop::sample::Index },
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    // Most lead to few numbers, so that some are changed to what they are, and some to that of a default table.
    let number = prop_oneof![8 => 0..6_u32, 1 => prop::sample::select(&[255, 256, 65_535, 65_536][..])];
    let insert = (any::<prop::sample::Index>(), number).prop_map(|(name, number)| Operation::Insert { name, number });
    let remove = any::<prop::sample::Index>().prop_map(|name| Operation::Remove { name });
    prop_oneof![3 => insert, 2 => remove]
}

/// Names over two letters, up to 17 deep, and prefixes of them at every other length. They mislead a binary
/// search over lengths that forgets a marker, or what it inherits.
fn nested_pool() -> impl Strategy<Value = Vec<Components>> {
    let letters = prop::collection::vec(0..2_u8, 1..18);
    prop::collection::vec((letters, any::<prop::sample::Index>()), 2..14).prop_map(|names| {
        let mut pool = Vec::new();
        for (letters, cut) in names {
            let name: Components = letters.iter().map(|&letter| component(8, &[b'a' + letter])).collect();
            pool.push(name[..cut.index(name.len() + 1)].to_vec());
            pool.push(name);
        }
        pool
    })
}

/// Components that a table of text would not expect: digests, other types, empty ones, zeros, any bytes, 8 kB.
fn odd_component() -> impl Strategy<Value = Vec<u8>> {
    let digest = prop::array::uniform32(prop_oneof![4 => 0..2_u8, 1 => any::<u8>()]);
    let types = prop::sample::select(&[1_u16, 2, 8, 32, 50, 54, 58, 252, 253, 65_535][..]);
    prop_oneof![
        3 => Just(component(8, b"")),
        3 => (types, 0..2_u8).prop_map(|(ty, byte)| component(ty, &[byte])),
        2 => (1..=2_u16, digest).prop_map(|(ty, digest)| component(ty, &digest)),
        2 => prop::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| component(8, &bytes)),
        1 => (0..4_usize, any::<bool>()).prop_map(|(zeros, nul)| component(8, &vec![if nul { 0 } else { 255 }; zeros])),
        1 => (7_900..8_100_usize, 0..2_u8).prop_map(|(bytes, last)| {
            let mut long = vec![b'x'; bytes];
            long.push(last);
            component(8, &long)
        }),
    ]
}

/// Names of odd components, of 8 kB, and of up to 256 components; and prefixes of them.
fn odd_pool() -> impl Strategy<Value = Vec<Components>> {
    let short = prop::collection::vec(odd_component(), 0..6);
    let deep = (prop::collection::vec(0..2_u8, 3), 200..=MAX_NAME_COMPONENTS).prop_map(|(letters, components)| {
        (0..components).map(|place| component(8, &letters[place % 3..][..usize::from(place % 7 != 0)])).collect()
    });
    let long =
        (prop::collection::vec(odd_component(), 0..3), 20..28_usize, 0..2_u8).prop_map(|(mut name, more, byte)| {
            name.extend((0..more).map(|_| component(8, &[byte; 300])));
            name
        });
    let name = prop_oneof![4 => short, 1 => deep, 1 => long];
    let fits = |name: &Components| value(name).len() <= MAX_PREFIX_BYTES;
    let names =
        prop::collection::vec((name.prop_filter("it is short enough", fits), any::<prop::sample::Index>()), 2..8);
    names.prop_map(|names| {
        let with_prefix =
            |(name, cut): (Components, prop::sample::Index)| [name[..cut.index(name.len() + 1)].to_vec(), name];
        names.into_iter().flat_map(with_prefix).collect()
    })
}

type Model = BTreeMap<Components, u32>;

fn expected(model: &Model, name: &[Vec<u8>]) -> Option<PrefixMatch> {
    let longest = model.iter().filter(|(prefix, _)| name.starts_with(prefix)).max_by_key(|(prefix, _)| prefix.len());
    longest.map(|(prefix, &number)| PrefixMatch { number, prefix_bytes: value(prefix).len() as u16 })
}

/// Which answers must be those of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Of a lossless design all, of a lossy one those for names with a prefix.
    Matches,
    /// Where names below another prefix than the root go: with a default route that is not exact, rules that lead where
    /// it leads are not stored.
    NumbersBelowTheRoot,
}

impl Compared {
    fn is_right(self, table: &dyn PrefixTable, found: Option<PrefixMatch>, expected: Option<PrefixMatch>) -> bool {
        match self {
            Compared::Matches => found == expected || !table.is_lossless() && expected.is_none(),
            Compared::NumbersBelowTheRoot => expected.is_none_or(|expected| {
                expected.prefix_bytes == 0 || found.is_some_and(|f| f.number == expected.number)
            }),
        }
    }
}

fn check(
    table: &dyn PrefixTable,
    compared: Compared,
    model: &Model,
    names: &[Components],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(table.len(), model.len());
    let values: Vec<Vec<u8>> = names.iter().map(|name| value(name)).collect();
    for (names, values) in names.chunks(DESIGN_BATCH_NAMES).zip(values.chunks(DESIGN_BATCH_NAMES)) {
        let slices: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
        let stale = Some(PrefixMatch { number: 77, prefix_bytes: 77 });
        let mut found = vec![stale; names.len()];
        table.longest_prefix_match_batch(&slices, &mut found);
        for (name, found) in names.iter().zip(found) {
            let expected = expected(model, name);
            // A name that is too long may be refused: then nothing is found but the root.
            let is_too_long = name.len() > MAX_NAME_COMPONENTS || value(name).len() > MAX_PREFIX_BYTES;
            let is_refused = is_too_long && found.is_none_or(|found| found.prefix_bytes == 0);
            let is_right = is_refused || compared.is_right(table, found, expected);
            prop_assert!(is_right, "look-up of {:?}: {:?} instead of {:?}", name, found, expected);
        }
    }
    Ok(())
}

/// Both must find the same prefixes after each change, and when all that is left is removed in random order.
/// Longer prefixes than this must be refused.
pub(crate) fn replay(
    mut table: Box<dyn PrefixTable>,
    (compared, prefix_bytes_max): (Compared, usize),
    pool: &[Components],
    strangers: &[Components],
    operations: &[Operation],
) -> Result<(), TestCaseError> {
    let mut model = Model::new();
    let mut names = pool.to_vec();
    names.extend_from_slice(strangers);
    // Names that go on below a prefix of the pool.
    names.extend(pool.iter().map(|name| [&name[..], &[component(8, b"below")]].concat()));
    for operation in operations {
        match operation {
            Operation::Insert { name, number } => {
                let name = name.get(pool);
                let result = table.insert(&value(name), *number);
                let before = model.get(name).copied();
                if value(name).len() > prefix_bytes_max {
                    prop_assert_eq!(result, Err(FibRefusal::PrefixTooLong));
                } else if before.is_none() && model.len() == CAPACITY {
                    prop_assert_eq!(result, Err(FibRefusal::Full));
                } else {
                    prop_assert_eq!(result, Ok(before));
                    model.insert(name.clone(), *number);
                }
            }
            Operation::Remove { name } => {
                let name = name.get(pool);
                prop_assert_eq!(table.remove(&value(name)), model.remove(name));
            }
        }
        check(&*table, compared, &model, &names)?;
    }
    prop_assert!(table.bytes() > 0 && table.forwarding_bytes() <= table.bytes());
    let mut left: Vec<Components> = model.keys().cloned().collect();
    fastrand::Rng::with_seed(operations.len() as u64).shuffle(&mut left);
    for name in left {
        prop_assert_eq!(table.remove(&value(&name)), model.remove(&name));
        check(&*table, compared, &model, &names)?;
    }
    Ok(())
}

/// Names for prefixes, other names, and operations.
pub(crate) fn runs() -> impl Strategy<Value = (Vec<Components>, Vec<Components>, Vec<Operation>)> {
    let too_deep = (0..3_u8).prop_map(|letter| vec![component(8, &[b'a' + letter]); MAX_NAME_COMPONENTS + 1]);
    let strangers = prop::collection::vec(prop_oneof![8 => any_name(), 1 => too_deep], 3);
    (prop_oneof![pool(), nested_pool(), odd_pool()], strangers, prop::collection::vec(operation(), 1..60))
}

/// Random operation lists over adversarial and over deeply nested names; then prefixes that are too long.
/// `make` gives an empty table for this many prefixes, its hashes keyed by the seed.
pub(crate) fn equals_the_model(make: impl Fn(usize, u64) -> Box<dyn PrefixTable>) {
    answers_as_the_model(Compared::Matches, &make);
    refuses_what_is_too_long(make(CAPACITY, 1));
}

/// Random operation lists; only these answers must be the list's.
pub(crate) fn answers_as_the_model(compared: Compared, make: &impl Fn(usize, u64) -> Box<dyn PrefixTable>) {
    let mut runner = TestRunner::new(ProptestConfig { cases: 96, ..ProptestConfig::default() });
    let result = runner.run(&(runs(), any::<u64>()), |((pool, strangers, operations), seed)| {
        replay(make(CAPACITY, seed), (compared, MAX_PREFIX_BYTES), &pool, &strangers, &operations)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

fn refuses_what_is_too_long(mut table: Box<dyn PrefixTable>) {
    let deepest = component(8, b"").repeat(MAX_NAME_COMPONENTS);
    let longest = component(8, &vec![0; MAX_PREFIX_BYTES - 4]);
    assert_eq!(table.insert(&deepest, 1), Ok(None));
    assert_eq!(table.insert(&longest, 2), Ok(None));
    let too_deep = component(8, b"").repeat(MAX_NAME_COMPONENTS + 1);
    let too_long = component(8, &vec![0; MAX_PREFIX_BYTES]);
    assert_eq!(table.insert(&too_deep, 3), Err(FibRefusal::PrefixTooLong));
    assert_eq!(table.insert(&too_long, 3), Err(FibRefusal::PrefixTooLong));
    assert_eq!((table.remove(&too_deep), table.remove(&too_long)), (None, None));
    let mut found = [None; 2];
    table.longest_prefix_match_batch(&[&deepest, &longest], &mut found);
    assert_eq!(found[0], Some(PrefixMatch { number: 1, prefix_bytes: deepest.len() as u16 }));
    assert_eq!(found[1], Some(PrefixMatch { number: 2, prefix_bytes: longest.len() as u16 }));
    assert_eq!(table.len(), 2);
    // The deepest name has 256 components: more markers than a byte can count.
    assert_eq!((table.remove(&deepest), table.remove(&longest), table.len()), (Some(1), Some(2), 0));
    assert_eq!((table.insert(&deepest, 3), table.remove(&deepest)), (Ok(None), Some(3)));
}

/// Prefix `number` of a population of two to five components; many share their beginning.
fn crowd_name(number: u32) -> Vec<u8> {
    let mut name = component(8, format!("site{}", number % 61).as_bytes());
    name.extend(component(8, format!("part{}", number % 7).as_bytes()));
    for place in 0..number % 4 {
        name.extend(component(8, format!("{}", number / (4 + place)).as_bytes()));
    }
    name.extend(component(8, &number.to_be_bytes()));
    name
}

/// Prefixes come and go, many times more often than there are any. All look-ups stay right, and the memory
/// stays what the population needs.
pub(crate) fn survives_churn(make: impl Fn(usize, u64) -> Box<dyn PrefixTable>) {
    const LIVE: usize = 1_500;
    const NAMES: u32 = 6_000;
    let mut rng = fastrand::Rng::with_seed(7);
    let mut table = make(LIVE, 7);
    let mut model: HashMap<u32, u32> = HashMap::new();
    let mut bytes_when_full = 0;
    for round in 0..60_000_u32 {
        let number = rng.u32(0..NAMES);
        let name = crowd_name(number);
        if rng.bool() {
            let result = table.insert(&name, round % 200);
            if !model.contains_key(&number) && model.len() == LIVE {
                assert_eq!(result, Err(FibRefusal::Full));
                // Room for others, so that the population changes all the time.
                let gone: Vec<u32> = model.keys().copied().take(LIVE / 3).collect();
                for gone in gone {
                    assert_eq!(table.remove(&crowd_name(gone)), model.remove(&gone));
                }
            } else {
                assert_eq!(result, Ok(model.insert(number, round % 200)));
            }
        } else {
            assert_eq!(table.remove(&name), model.remove(&number));
        }
        if round == 20_000 {
            bytes_when_full = table.bytes();
        }
    }
    assert_eq!(table.len(), model.len());
    for first in (0..NAMES).step_by(DESIGN_BATCH_NAMES) {
        let numbers: Vec<u32> = (first..NAMES.min(first + DESIGN_BATCH_NAMES as u32)).collect();
        let names: Vec<Vec<u8>> =
            numbers.iter().map(|&number| [crowd_name(number), component(8, b"below")].concat()).collect();
        let slices: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
        let mut found = vec![None; numbers.len()];
        table.longest_prefix_match_batch(&slices, &mut found);
        for ((number, name), found) in numbers.iter().zip(&names).zip(found) {
            let prefix_bytes = (name.len() - component(8, b"below").len()) as u16;
            let expected = model.get(number).map(|&number| PrefixMatch { number, prefix_bytes });
            if table.is_lossless() || expected.is_some() {
                assert_eq!(found, expected, "prefix {number}");
            }
        }
    }
    let bytes = table.bytes();
    assert!(bytes <= bytes_when_full * 3 / 2, "{bytes_when_full} bytes grew to {bytes}");
    let rest: Vec<u32> = model.keys().copied().collect();
    for number in rest {
        assert_eq!(table.remove(&crowd_name(number)), model.remove(&number));
    }
    assert!(table.is_empty());
}
