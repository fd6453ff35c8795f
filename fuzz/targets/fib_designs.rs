//! Question: does every FIB design of the papers, with any of its options, agree with an ordered map that is searched
//! prefix by prefix?
//!
//! Input: seeds for strategies: a design, options, and names and operations of the property tests, whose
//! model is used. The capacity is reached. A lossy design must be right about every name that has a prefix. Names with
//! more components than the tables accept are looked up too; for these, no match or the root is also right.
#![no_main]

#[path = "../../crates/tables/tests/oracles/adversarial_names.rs"]
#[allow(dead_code, unused_imports)]
mod adversarial_names;
#[path = "../../crates/designs/tests/oracles/fib_designs.rs"]
#[allow(dead_code, unused_imports)]
mod fib_designs;
mod generated;

use generated::generated;
use libfuzzer_sys::fuzz_target;
use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignError, FibDesignOptions};
use namewire_designs::fib::hash_tables::{MarkerMaintenance, PrefixHash, StringMatching};
use namewire_tables::HashKey;
use namewire_tables::fib::{FibConfig, PrefixTable};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::num::{NonZeroU16, NonZeroU32};

fn options() -> impl Strategy<Value = FibDesignOptions> {
    let named = (
        option::of(select(&FibPrefetch::ALL)),
        option::of(select(&PrefixHash::ALL)),
        option::of(select(&StringMatching::ALL)),
        option::of(select(&MarkerMaintenance::ALL)),
    );
    let numbers = (0..8_u16, 0..4_u32, option::of(select(&[12, 16, 24][..])));
    (named, numbers).prop_map(|((prefetch, hash, matching, maintenance), (first, children, fingerprint_bits))| {
        FibDesignOptions {
            prefetch,
            hash,
            matching,
            maintenance,
            first_components: NonZeroU16::new(first),
            level_pulling: NonZeroU32::new(children),
            fingerprint_bits,
            ..FibDesignOptions::default()
        }
    })
}

fn make(design: FibDesign, options: &FibDesignOptions) -> Box<dyn PrefixTable> {
    let config = FibConfig::new(fib_designs::CAPACITY);
    let build = |options: &FibDesignOptions| design.build(options, &config, HashKey::from_seed(7));
    let refused = |table: &Result<_, _>| matches!(table, Err(FibDesignError::Option { .. }));
    let mut table = build(options);
    // Unsupported options are left out.
    let prefetch_only = FibDesignOptions { prefetch: options.prefetch, ..FibDesignOptions::default() };
    for fewer in [prefetch_only, FibDesignOptions::default()] {
        if refused(&table) {
            table = build(&fewer);
        }
    }
    table.expect("memory for a small table")
}

fuzz_target!(|bytes: &[u8]| {
    let choice = (select(&FibDesign::ALL), options());
    let setup = (choice, fib_designs::runs());
    let (((design, options), (pool, strangers, _)), operations) = generated(bytes, &setup, &fib_designs::operation());
    let result = fib_designs::replay(make(design, &options), &pool, &strangers, &operations);
    result.unwrap_or_else(|error| panic!("{}: {error}", design.name()));
});
