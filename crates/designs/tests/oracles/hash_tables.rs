//! The hash tables of Yuan15 chapter 3 against the list: every search with every way to match, to prefetch
//! and to keep markers.

use crate::adversarial_names::{component, value};
use crate::fib_designs::{equals_the_model, survives_churn};
use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::hash_tables::{
    HashSearch, HashTableOptions, HashTables, MarkerMaintenance, PrefixHashes, StringMatching,
};
use namewire_tables::fib::{PrefixMatch, PrefixTable};

const MATCHINGS: [StringMatching; 2] = [StringMatching::Always, StringMatching::AtEnd];

fn make(options: HashTableOptions) -> impl Fn(usize, u64) -> Box<dyn PrefixTable> {
    move |capacity, seed| Box::new(HashTables::new(capacity, [seed, !seed], options).expect("address space"))
}

fn with(search: HashSearch) -> [HashTableOptions; 2] {
    [HashTableOptions { search, ..HashTableOptions::CITY_A }, HashTableOptions { search, ..HashTableOptions::SIP_E }]
}

fn two_stage(first_components: u16) -> HashSearch {
    HashSearch::TwoStage { first_components }
}

#[test]
fn binary_search_with_every_maintenance() {
    for maintenance in MarkerMaintenance::ALL {
        for options in with(HashSearch::Binary) {
            equals_the_model(make(HashTableOptions { maintenance, ..options }));
        }
    }
}

#[test]
fn two_stages_with_every_maintenance() {
    for (first_components, maintenance) in [1, 3, 256].into_iter().zip(MarkerMaintenance::ALL) {
        for options in with(two_stage(first_components)) {
            equals_the_model(make(HashTableOptions { maintenance, ..options }));
        }
    }
}

/// M follows the population: the tables are made anew, markers and all, while prefixes come and go.
#[test]
fn two_stages_that_choose_their_first_length() {
    for options in with(two_stage(1)) {
        for maintenance in MarkerMaintenance::ALL {
            equals_the_model(make(HashTableOptions { maintenance, is_first_stage_chosen: true, ..options }));
        }
        survives_churn(make(HashTableOptions { is_first_stage_chosen: true, ..options }));
    }
}

#[test]
fn the_first_stage_is_the_length_that_most_prefixes_have() {
    let options = HashTableOptions { search: two_stage(1), is_first_stage_chosen: true, ..HashTableOptions::SIP_E };
    let mut table = HashTables::new(4_000, [1, 2], options).unwrap();
    let name = |number: u32, components: u32| -> Vec<u8> {
        value(&(0..components).map(|place| component(8, &(number + place).to_be_bytes())).collect::<Vec<_>>())
    };
    let mut names = Vec::new();
    let mut add = |table: &mut HashTables, components: u32, count: u32| {
        for number in 0..count {
            names.push(name(number, components));
            table.insert(names.last().expect("just pushed"), number).expect("room");
        }
        for name in &names {
            let mut found = [None];
            table.longest_prefix_match_batch(&[name], &mut found);
            assert_eq!(found[0].map(|found| usize::from(found.prefix_bytes)), Some(name.len()));
        }
        table.options().search
    };
    assert_eq!(add(&mut table, 5, 100), two_stage(5));
    assert_eq!(add(&mut table, 2, 90), two_stage(5));
    assert_eq!(add(&mut table, 2, 2_000), two_stage(2));
    let fixed = HashTableOptions { is_first_stage_chosen: false, ..options };
    let mut table = HashTables::new(100, [1, 2], fixed).unwrap();
    (0..100).for_each(|number| assert_eq!(table.insert(&name(number, 5), number), Ok(None)));
    assert_eq!(table.options().search, two_stage(1));
}

#[test]
fn linear_searches() {
    for search in [HashSearch::LongestFirst, HashSearch::ShortestFirst] {
        with(search).into_iter().for_each(|options| equals_the_model(make(options)));
    }
}

#[test]
fn every_prefetch_and_matching() {
    for search in [HashSearch::Binary, HashSearch::ShortestFirst, two_stage(2)] {
        for (prefetch, matching) in
            [FibPrefetch::None, FibPrefetch::First, FibPrefetch::All].into_iter().zip(MATCHINGS.into_iter().cycle())
        {
            let [city, sip] = with(search);
            equals_the_model(make(HashTableOptions { prefetch, matching, ..city }));
            let maintenance = MarkerMaintenance::Lists;
            equals_the_model(make(HashTableOptions { prefetch, matching, maintenance, ..sip }));
        }
    }
}

#[test]
fn populations_come_and_go() {
    for search in [HashSearch::Binary, HashSearch::LongestFirst, HashSearch::ShortestFirst, two_stage(3)] {
        let [city, sip] = with(search);
        survives_churn(make(city));
        survives_churn(make(HashTableOptions { maintenance: MarkerMaintenance::Lists, ..sip }));
    }
}

/// The second phase of the paper's worst case beside the first: markers with entries of their own are found
/// and inherited from like shared ones, and are removed with their prefixes.
#[test]
fn markers_with_separate_entries() {
    let name = |number: u8, components: u8| -> Vec<u8> {
        value(&(0..components).map(|place| component(8, &[b'a' + place, number])).collect::<Vec<_>>())
    };
    for search in [HashSearch::Binary, HashSearch::ShortestFirst, two_stage(3)] {
        for options in with(search) {
            let mut table =
                HashTables::new(100, [1, 2], HashTableOptions { longest_components: 7, ..options }).unwrap();
            let shared = |table: &mut HashTables| {
                (0..10).for_each(|number| {
                    table.insert(&name(number, 7), number.into()).unwrap();
                })
            };
            shared(&mut table);
            let (fingerprints, bytes) = (table.fingerprints(), table.bytes());
            let own: Vec<Vec<u8>> = (10..20).map(|number| name(number, 7)).collect();
            let batch: Vec<(&[u8], u32)> = own.iter().zip(10..).map(|(name, number)| (&name[..], number)).collect();
            table.insert_with_marker_entries(&batch).unwrap();
            assert_eq!(table.fingerprints(), 2 * fingerprints);
            assert!(table.bytes() >= bytes);
            table.insert(&name(15, 1), 99).unwrap();
            let look_up = |table: &HashTables, name: &[u8]| {
                let (mut plain, mut hashed, mut hashes) = ([None], [None], PrefixHashes::default());
                table.longest_prefix_match_batch(&[name], &mut plain);
                table.hash_names(&[name], &mut hashes);
                table.longest_prefix_match_hashed(&[name], &hashes, &mut hashed);
                assert_eq!(plain, hashed);
                plain[0]
            };
            for number in 0..20 {
                let whole = [name(number, 7), component(8, b"below")].concat();
                let prefix_bytes = name(number, 7).len() as u16;
                assert_eq!(look_up(&table, &whole), Some(PrefixMatch { number: number.into(), prefix_bytes }));
            }
            assert_eq!(look_up(&table, &name(15, 6)), Some(PrefixMatch { number: 99, prefix_bytes: 4 }));
            assert_eq!(look_up(&table, &name(14, 6)), None);
            for number in 0..20 {
                assert_eq!(table.remove(&name(number, 7)), Some(number.into()));
            }
            assert_eq!(look_up(&table, &name(15, 6)), Some(PrefixMatch { number: 99, prefix_bytes: 4 }));
            assert_eq!((table.remove(&name(15, 1)), table.fingerprints(), table.len()), (Some(99), 0, 0));
        }
    }
}

/// Twenty bits are few: among some thousand other names under each of many prefixes some fingerprints match
/// wrongly, and so do some that collide.
#[test]
fn unknown_names_are_not_found_by_their_fingerprints() {
    for options in with(HashSearch::Binary) {
        let mut table = HashTables::new(40_000, [5, 6], options).unwrap();
        let name = |number: u32| value(&[component(8, &number.to_be_bytes())]);
        for number in 0..40_000 {
            table.insert(&name(number), number).unwrap();
        }
        for first in (0..400_000).step_by(64) {
            let names: Vec<Vec<u8>> = (first..first + 64).map(name).collect();
            let slices: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
            let mut found = [None; 64];
            table.longest_prefix_match_batch(&slices, &mut found);
            for (number, found) in (first..).zip(found) {
                let expected = (number < 40_000).then_some(PrefixMatch { number, prefix_bytes: 6 });
                assert_eq!(found, expected, "{number}");
            }
        }
    }
}

/// There are enough markers for several groups of partitions, and for many chunks of lists. Prefixes above them are
/// inserted, changed and removed. Every marker leads where the longest prefix above it leads.
#[test]
fn many_markers_inherit_what_comes_and_goes_above_them() {
    for maintenance in [MarkerMaintenance::Lists, MarkerMaintenance::Partitions] {
        many_markers_inherit(HashTableOptions { maintenance, longest_components: 7, ..HashTableOptions::CITY_A });
    }
}

fn many_markers_inherit(options: HashTableOptions) {
    let component_of = |number: u32| component(8, &number.to_be_bytes());
    let name = |number: u32, components: u32| -> Vec<u8> {
        let parts = [number % 7, number % 91, number % 1001, number, 0, 1, 2];
        value(&parts[..components as usize].iter().map(|&part| component_of(part)).collect::<Vec<_>>())
    };
    let mut table = HashTables::new(50_000, [7, 8], options).unwrap();
    for number in 0..40_000 {
        table.insert(&name(number, 7), number).unwrap();
    }
    let mut above: std::collections::HashMap<Vec<u8>, u32> = std::collections::HashMap::new();
    let mut rng = fastrand::Rng::with_seed(3);
    for round in 0..1_500 {
        let prefix = name(rng.u32(0..40_000), rng.u32(1..=5));
        if rng.u8(0..3) < 2 {
            assert_eq!(table.insert(&prefix, round), Ok(above.insert(prefix, round)));
        } else {
            assert_eq!(table.remove(&prefix), above.remove(&prefix));
        }
        if round % 100 != 99 {
            continue;
        }
        for _ in 0..1_000 {
            let number = rng.u32(0..40_000);
            let looked_up = name(number, 6); // the marker below the prefix of 7
            let mut found = [None];
            table.longest_prefix_match_batch(&[&looked_up], &mut found);
            let expected = (1..=5).rev().find_map(|components| {
                let prefix = name(number, components);
                above.get(&prefix).map(|&number| PrefixMatch { number, prefix_bytes: prefix.len() as u16 })
            });
            assert_eq!(found[0], expected, "round {round}");
        }
    }
}
