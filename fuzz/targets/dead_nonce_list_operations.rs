//! Question: does the dead nonce list remember each pair for its lifetime, unless it counts an early eviction?
//!
//! Input: seeds for the property test's strategies: steps on few names and nonces. A queue is the model.
#![no_main]

#[path = "../../crates/tables/tests/oracles/dead_nonce_list.rs"]
#[allow(dead_code, unused_imports)]
mod dead_nonce_list;
mod generated;

use generated::generated;
use libfuzzer_sys::fuzz_target;
use proptest::prelude::Just;

fuzz_target!(|bytes: &[u8]| {
    let ((), steps) = generated(bytes, &Just(()), &dead_nonce_list::step());
    dead_nonce_list::replay(steps);
});
