//! Threads that insert into one trie give the answers of one thread with a NameTrie.

use super::*;
use crate::fib::min_ascii::FrequentGroups;
use crate::fib::name_trie::{NameTrie, NameTrieOptions};
use namewire_tables::fib::PrefixTable;
use proptest::prelude::*;

type Named = (Vec<u8>, u32);

fn component(ty: u8, value: &[u8]) -> Vec<u8> {
    [&[ty, value.len() as u8], value].concat()
}

fn trie(capacity: usize, coding: &MinAscii) -> SharedNameTrie {
    SharedNameTrie::new(capacity, 7, coding.clone(), PageSize::Base).unwrap()
}

fn insert(trie: &mut SharedNameTrie, named: &[Named], threads: usize) -> Result<Inserted, FibRefusal> {
    let burst: Vec<Route<'_>> = named.iter().map(|(name, number)| (name.as_slice(), *number)).collect();
    trie.insert_burst(&burst, threads)
}

/// Inserts the bursts into both and compares what became of them, and the answers for all names and more.
fn equals_one_writer(bursts: &[Vec<Named>], threads: usize, coding: &MinAscii) {
    let names: usize = bursts.iter().map(Vec::len).sum();
    let options = NameTrieOptions { coding: coding.clone(), ..NameTrieOptions::default() };
    let mut one = NameTrie::new(names, 3, options).unwrap();
    let mut shared = trie(2 * names, coding);
    for burst in bursts {
        let mut expected = Inserted::default();
        for (name, number) in burst {
            match one.insert(name, *number) {
                Ok(None) => expected.added += 1,
                Ok(Some(_)) => expected.changed += 1,
                Err(_) => expected.too_long += 1,
            }
        }
        assert_eq!(insert(&mut shared, burst, threads), Ok(expected));
        assert_eq!(shared.len(), one.len());
    }
    let more = [component(8, b"x"), component(8, b""), vec![]];
    let looked_up: Vec<Vec<u8>> =
        bursts.iter().flatten().flat_map(|(name, _)| more.iter().map(|rest| [&name[..], rest].concat())).collect();
    let cut = bursts.iter().flatten().map(|(name, _)| name[..name.len() - name.last().map_or(0, |_| 1)].to_vec());
    let looked_up: Vec<Vec<u8>> = looked_up.into_iter().chain(cut).chain([vec![]]).collect();
    for batch in looked_up.chunks(64) {
        let batch: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        let (mut found, mut expected) = ([None; 64], [None; 64]);
        shared.longest_prefix_match_batch(&batch, &mut found);
        one.longest_prefix_match_batch(&batch, &mut expected);
        assert_eq!(found, expected, "{batch:?}");
    }
}

/// Names that differ late, so that all threads are in one sub-trie: they meet at every edge.
fn crowded(rng: &mut fastrand::Rng, names: usize) -> Vec<Named> {
    (0..names)
        .map(|_| {
            let components = rng.usize(0..5);
            let mut value = || (0..rng.usize(1..4)).map(|_| rng.u8(b'a'..b'd')).collect::<Vec<u8>>();
            let name = (0..components).flat_map(|_| component(8, &value())).collect();
            (name, rng.u32(..))
        })
        .collect()
}

#[test]
fn threads_that_meet_at_every_edge_give_the_answers_of_one() {
    let groups = FrequentGroups::new([&b"ab"[..], b"cc", b"aab"]);
    for (seed, coding) in (0..).zip([MinAscii::plain(), MinAscii::with_groups(&groups)]) {
        let mut rng = fastrand::Rng::with_seed(seed);
        for threads in [1, 2, 4, 8] {
            let bursts: Vec<Vec<Named>> = [1, 7, 300, 2_000, 0, 4_000].map(|names| crowded(&mut rng, names)).into();
            equals_one_writer(&bursts, threads, &coding);
        }
    }
}

/// Bursts that are large enough for threads to split buckets, beyond several powers of two.
#[test]
fn the_table_grows_by_bursts_and_loses_nothing() {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut burst = |names: usize| -> Vec<Named> {
        (0..names)
            .map(|_| {
                let site = format!("site{}", rng.u32(..1_000));
                (
                    component(8, site.as_bytes()).into_iter().chain(component(8, &rng.u32(..).to_be_bytes())).collect(),
                    rng.u32(..),
                )
            })
            .collect()
    };
    let bursts = [9_000, 30_000, 100, 9_000].map(&mut burst);
    equals_one_writer(&bursts, 3, &MinAscii::plain());
    let mut trie = trie(200_000, &MinAscii::plain());
    for (burst, threads) in bursts.iter().zip([1, 4, 2, 4]) {
        insert(&mut trie, burst, threads).unwrap();
    }
    // Table I, an edge and a piece, and what linear hashing and chunks leave free.
    let bytes = trie.bytes() / trie.len();
    assert!((40..80).contains(&bytes), "{bytes} bytes for a name");
}

#[test]
fn a_burst_beyond_the_capacity_changes_nothing() {
    let named: Vec<Named> = (0..5).map(|number| (component(8, &[number]), u32::from(number))).collect();
    let mut trie = trie(6, &MinAscii::plain());
    assert_eq!(insert(&mut trie, &named[..3], 2), Ok(Inserted { added: 3, ..Inserted::default() }));
    assert_eq!(insert(&mut trie, &named[1..], 2), Err(FibRefusal::Full));
    assert_eq!(trie.len(), 3);
    assert_eq!(insert(&mut trie, &named[1..4], 2), Ok(Inserted { added: 1, changed: 2, too_long: 0 }));
    let long = [[&[8, 253, 0x22, 0x80][..], &[b'x'; 8832]].concat()].map(|name| (name, 0));
    assert_eq!(insert(&mut trie, &long, 2), Ok(Inserted { too_long: 1, ..Inserted::default() }));
    assert_eq!((trie.len(), trie.is_empty()), (4, false));
}

/// Components with types that are written and types that are not.
fn any_name() -> impl Strategy<Value = Vec<u8>> {
    let component = (prop::sample::select(vec![8_u8, 1, 50]), prop::collection::vec(any::<u8>(), 0..4))
        .prop_map(|(ty, value)| component(ty, &value));
    prop::collection::vec(component, 0..4).prop_map(|components| components.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bursts_give_the_answers_of_one_writer(
        bursts in prop::collection::vec(prop::collection::vec((any_name(), any::<u32>()), 0..80), 1..5),
        threads in 1_usize..6,
    ) {
        equals_one_writer(&bursts, threads, &MinAscii::plain());
    }
}
