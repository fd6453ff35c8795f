//! Question: does every FIB design of the papers, with any of its options, agree with an ordered map that is searched
//! prefix by prefix?
//!
//! Input: seeds for strategies: a design, options, and names and operations of the property tests, whose
//! model is used. The capacity is reached. A lossy design must be right about every name that has a prefix;
//! with a default route that is not exact, about where names below another prefix than the root go. Names with
//! more components than the tables accept are looked up too; for these, no match or the root is also right.
#![no_main]

#[path = "../../crates/tables/tests/oracles/adversarial_names.rs"]
#[allow(dead_code, unused_imports)]
mod adversarial_names;
#[path = "../../crates/designs/tests/oracles/fib_designs.rs"]
#[allow(dead_code, unused_imports)]
mod fib_designs;
mod generated;

use fib_designs::Compared;
use generated::generated;
use libfuzzer_sys::fuzz_target;
use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignError, FibDesignOptions};
use namewire_designs::fib::hash_tables::{MarkerMaintenance, PrefixHash, StringMatching};
use namewire_designs::fib::min_ascii::NameCodes;
use namewire_designs::fib::string_differentiation::DefaultRoute;
use namewire_tables::HashKey;
use namewire_tables::fib::{FibConfig, PrefixTable};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::num::{NonZeroU16, NonZeroU32};

/// The numbers of the operations are among these two tables', and others.
const DEFAULT_ROUTES: [DefaultRoute; 5] = [
    DefaultRoute::Exact,
    DefaultRoute::Speculative,
    DefaultRoute::Table(0),
    DefaultRoute::Table(4),
    DefaultRoute::Followed,
];

fn options() -> impl Strategy<Value = FibDesignOptions> {
    let named = (
        option::of(select(&FibPrefetch::ALL)),
        option::of(select(&PrefixHash::ALL)),
        option::of(select(&StringMatching::ALL)),
        option::of(select(&MarkerMaintenance::ALL)),
    );
    let numbers = (0..8_u16, 0..4_u32, option::of(select(&[12, 16, 24][..])));
    let lossy = (option::of(8..=24_u8), option::of(select(&DEFAULT_ROUTES)));
    let name_codes = option::of(select(&NameCodes::ALL));
    let tries = (option::of(1..=4_u8), option::of(0..=5_u16), option::of(0..=15_u8), name_codes);
    (named, numbers, lossy, tries).prop_map(|(named, numbers, (port_bits, default_route), tries)| {
        let (fingerprint_components, leaf_components, local_bits, name_codes) = tries;
        let ((prefetch, hash, matching, maintenance), (first, children, fingerprint_bits)) = (named, numbers);
        FibDesignOptions {
            prefetch,
            hash,
            matching,
            maintenance,
            first_components: NonZeroU16::new(first),
            level_pulling: NonZeroU32::new(children),
            name_codes,
            fingerprint_bits,
            fingerprint_components,
            port_bits,
            leaf_components,
            local_bits,
            default_route,
            ..FibDesignOptions::default()
        }
    })
}

/// The table, and which of its answers are compared.
fn make(design: FibDesign, options: &FibDesignOptions) -> (Box<dyn PrefixTable>, Compared) {
    let config = FibConfig::new(fib_designs::CAPACITY);
    let build = |options: &FibDesignOptions| design.build(options, &config, HashKey::from_seed(7));
    let refused = |table: &Result<_, _>| matches!(table, Err(FibDesignError::Option { .. }));
    // Options that a design does not have are left out.
    let FibDesignOptions { prefetch, hash, matching, maintenance, first_components, .. } = *options;
    let FibDesignOptions { level_pulling, fingerprint_bits, port_bits, default_route, .. } = *options;
    let FibDesignOptions { fingerprint_components, leaf_components, local_bits, name_codes, .. } = *options;
    let none = FibDesignOptions::default();
    let trie = FibDesignOptions { prefetch, port_bits, leaf_components, default_route, ..none };
    let fewer = [
        FibDesignOptions { prefetch, hash, matching, maintenance, first_components, level_pulling, ..none },
        FibDesignOptions { prefetch, hash, matching, maintenance, level_pulling, ..none },
        FibDesignOptions { prefetch, name_codes, ..none },
        FibDesignOptions { fingerprint_bits, fingerprint_components, local_bits, ..trie },
        FibDesignOptions { fingerprint_bits, fingerprint_components, ..trie },
        FibDesignOptions { local_bits, ..trie },
        trie,
        FibDesignOptions { prefetch, fingerprint_bits, port_bits, default_route, ..none },
        FibDesignOptions { prefetch, default_route, ..none },
        FibDesignOptions { prefetch, ..none },
        none,
    ];
    let (mut table, mut used) = (build(options), *options);
    for fewer in fewer {
        if refused(&table) {
            (table, used) = (build(&fewer), fewer);
        }
    }
    let compared = match used.default_route {
        None | Some(DefaultRoute::Exact) => Compared::Matches,
        Some(_) => Compared::NumbersBelowTheRoot,
    };
    (table.expect("memory for a small table"), compared)
}

fuzz_target!(|bytes: &[u8]| {
    let choice = (select(&FibDesign::ALL), options());
    let setup = (choice, fib_designs::runs());
    let (((design, options), (pool, strangers, _)), operations) = generated(bytes, &setup, &fib_designs::operation());
    let (table, compared) = make(design, &options);
    let result = fib_designs::replay(table, compared, &pool, &strangers, &operations);
    result.unwrap_or_else(|error| panic!("{}: {error}", design.name()));
});
