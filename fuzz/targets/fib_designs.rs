//! Question: does every FIB design of the papers, with any of its options, agree with an ordered map that is searched
//! prefix by prefix; alone, and as a router has it?
//!
//! Input: seeds for strategies: a design, options, and names and operations of the property tests, whose
//! model is used. The capacity is reached. A lossy design must be right about every name that has a prefix;
//! with a default route that is not exact, about where names below another prefix than the root go. Names with
//! more components than the tables accept are looked up too; for these, no match or the root is also right.
#![no_main]

#[path = "../../crates/tables/tests/oracles/adversarial_names.rs"]
#[allow(dead_code, unused_imports)]
mod adversarial_names;
#[path = "../../crates/designs/tests/oracles/design_options.rs"]
#[allow(dead_code)]
mod design_options;
#[path = "../../crates/designs/tests/oracles/fib_designs.rs"]
#[allow(dead_code, unused_imports)]
mod fib_designs;
mod generated;
#[path = "../../crates/designs/tests/oracles/router_fib.rs"]
mod router_fib;

use design_options::variant;
use generated::generated;
use libfuzzer_sys::fuzz_target;
use proptest::prelude::*;
use router_fib::RouterFib;

/// The key of all hashes, so that an input does the same each time.
const SEED: u64 = 7;

fuzz_target!(|bytes: &[u8]| {
    let setup = (variant(), any::<bool>(), fib_designs::runs());
    let ((variant, is_router, (pool, strangers, _)), operations) = generated(bytes, &setup, &fib_designs::operation());
    let limits = (variant.compared(), variant.prefix_bytes_max());
    let result = match is_router && RouterFib::is_for(&variant) {
        true => fib_designs::replay(Box::new(RouterFib::new(&variant, SEED)), limits, &pool, &strangers, &operations),
        false => fib_designs::replay(variant.table(SEED), limits, &pool, &strangers, &operations),
    };
    result.unwrap_or_else(|error| panic!("{variant:?}: {error}"));
});
