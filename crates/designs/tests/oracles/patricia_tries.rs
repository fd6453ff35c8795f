//! Patricia tries without names: right about every name with a route, with and without fingerprints.

use crate::adversarial_names::component;
use crate::fib_designs::{equals_the_model, survives_churn};
use namewire_designs::fib::string_differentiation::{
    DefaultRoute, Fingerprints, LeafLayout, PatriciaController, PatriciaOptions, StringDifferentiation,
};
use namewire_tables::HashKey;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};
use std::collections::HashMap;

fn trie(options: PatriciaOptions, seed: u64, default_route: DefaultRoute) -> StringDifferentiation<PatriciaController> {
    let key = HashKey::from_seed(seed);
    StringDifferentiation::with_patricia_trie(key, options, true, default_route).expect("a small table")
}

fn is_right(options: fn(usize) -> PatriciaOptions) {
    equals_the_model(|capacity, seed| Box::new(trie(options(capacity), seed, DefaultRoute::Exact)));
    survives_churn(|capacity, seed| Box::new(trie(options(capacity), seed, DefaultRoute::Exact)));
}

#[test]
fn a_speculative_trie_is_right_about_names_with_routes() {
    is_right(PatriciaOptions::sbpt);
}

#[test]
fn a_fingerprint_trie_is_right_about_names_with_routes() {
    is_right(PatriciaOptions::fpt);
}

/// Fingerprints that collide all the time, one for several components each; look-ups one after the other.
#[test]
fn a_trie_with_short_fingerprints_is_right_about_names_with_routes() {
    is_right(|capacity| PatriciaOptions {
        fingerprints: Fingerprints { bits: 3, components: 4 },
        leaves: LeafLayout { number_bits: 33, components: 3, local_bits_max: 0 },
        is_batched: false,
        ..PatriciaOptions::fpt(capacity)
    });
}

/// Rules of one to four components; many share beginnings.
fn rule(number: u32) -> Vec<u8> {
    let mut name = component(8, format!("{}", number % 997).as_bytes());
    for place in 0..number % 4 {
        name.extend(component(8, format!("{}", number / (5 + place)).as_bytes()));
    }
    name
}

/// §4.3.5: rules of the default table are hardly ever in the trie, and always find the default.
#[test]
fn rules_of_the_default_table_find_the_default() {
    const DEFAULT: u32 = 7;
    for (bits, components) in [(0, 1), (24, 1), (24, 4)] {
        let options = PatriciaOptions {
            fingerprints: Fingerprints { bits, components },
            leaves: LeafLayout { number_bits: 8, components: 2, local_bits_max: 6 },
            ..PatriciaOptions::fpt(20_000)
        };
        let mut table = trie(options, 4, DefaultRoute::Table(DEFAULT));
        let mut model = HashMap::new();
        let mut rng = fastrand::Rng::with_seed(8);
        for _ in 0..40_000 {
            let name = rule(rng.u32(..20_000));
            if rng.u32(..3) == 0 {
                assert_eq!(table.remove(&name), model.remove(&name));
            } else {
                let number = if rng.u32(..8) == 0 { rng.u32(..6) } else { DEFAULT };
                assert_eq!(table.insert(&name, number), Ok(model.get(&name).copied()));
                model.insert(name, number);
            }
        }
        let names: Vec<Vec<u8>> = model.keys().map(|name| [&name[..], &component(8, b"below")].concat()).collect();
        let numbers: Vec<u32> = model.values().copied().collect();
        for (names, numbers) in names.chunks(DESIGN_BATCH_NAMES).zip(numbers.chunks(DESIGN_BATCH_NAMES)) {
            let slices: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
            let mut found = vec![None; names.len()];
            table.longest_prefix_match_batch(&slices, &mut found);
            for ((name, &number), found) in names.iter().zip(numbers).zip(found) {
                // A rule of the default table may have a stored rule above it, which is longer than the
                // default.
                let found = found.map(|found: PrefixMatch| found.number);
                assert_eq!(found, Some(number), "{name:?}, {bits} bits before {components} components");
            }
        }
    }
}
