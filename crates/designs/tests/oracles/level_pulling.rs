//! Level pulling in the harness of the designs: thresholds so low that prefixes enter the C-Trie and leave
//! it all the time.

use crate::adversarial_names::component;
use crate::fib_designs::{equals_the_model, survives_churn};
use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::hash_tables::{HashSearch, HashTableOptions, HashTables};
use namewire_designs::fib::level_pulling::{LevelPulling, LevelPullingOptions};
use namewire_tables::fib::PrefixTable;
use namewire_tables::{HashKey, PageSize};

fn makers() -> impl Iterator<Item = impl Fn(usize, u64) -> Box<dyn PrefixTable>> {
    let searches = [
        (HashSearch::Binary, 0, true),
        (HashSearch::Binary, 1, false),
        (HashSearch::LongestFirst, 1, true),
        (HashSearch::ShortestFirst, 1, false),
        (HashSearch::TwoStage { first_components: 2 }, 2, true),
        (HashSearch::TwoStage { first_components: 4 }, 1, false),
    ];
    let options = [HashTableOptions::CITY_A, HashTableOptions::SIP_E].into_iter();
    options.flat_map(move |options| searches.map(|search| (options, search))).enumerate().map(
        |(number, (options, (search, threshold_children, pull_root)))| {
            move |capacity, seed| -> Box<dyn PrefixTable> {
                let prefetch = FibPrefetch::ALL[number % FibPrefetch::ALL.len()];
                let options = HashTableOptions { search, prefetch, ..options };
                let below = HashTables::new(capacity, [seed, 1], options).expect("memory");
                let options = LevelPullingOptions { threshold_children, pull_root };
                Box::new(LevelPulling::new(below, options, HashKey::from_seed(seed), PageSize::Base).expect("memory"))
            }
        },
    )
}

#[test]
fn level_pulling_equals_the_model() {
    makers().for_each(equals_the_model);
}

#[test]
fn level_pulling_survives_churn() {
    makers().for_each(survives_churn);
}

/// The tables that a search visits, k = 7, with T = 2.
#[test]
fn a_search_that_begins_below_the_c_trie_asks_fewer_tables() {
    let name =
        |uri: &str| -> Vec<u8> { uri.split('/').skip(1).flat_map(|label| component(8, label.as_bytes())).collect() };
    let options = HashTableOptions { longest_components: 7, ..HashTableOptions::SIP_E };
    let below = HashTables::new(100, [1, 2], options).expect("memory");
    let options = LevelPullingOptions { threshold_children: 2, pull_root: false };
    let mut table = LevelPulling::new(below, options, HashKey::from_seed(1), PageSize::Base).expect("memory");
    for (number, uri) in ["/com/a", "/com/b", "/com/c", "/com/c/d/e/f/g/h", "/org/a"].into_iter().enumerate() {
        table.insert(&name(uri), number as u32).expect("room");
    }
    assert_eq!((table.trie().c_trie_prefixes(), table.trie().nodes()), (1, 12));
    // With, without: 4, 2 and its leaf bit; /com/c is no leaf, so 4, 6 and 7 are visited as well.
    for (uri, with, without, longest) in [
        ("/com/a/x/y/z", 1, 2, Some(1)),
        ("/com/x/x/y/z", 1, 3, Some(1)),
        ("/com", 0, 1, Some(1)),
        ("/com/c/d/e/f/g/h", 4, 3, Some(1)),
        ("/org/a/x/y/z", 2, 2, None),
    ] {
        assert_eq!(
            (table.hash_lookups(&name(uri)), table.c_trie_match(&name(uri))),
            ((with, without), longest),
            "{uri}"
        );
    }
}
