//! Question: does the table of pending Interests and stored Data keep exactly what was put into it, within its limits,
//! in any order of operations?
//!
//! Input: seeds for the property test's strategies. Model and checks are those of the property test.
#![no_main]

#[path = "../../crates/tables/tests/oracles/adversarial_names.rs"]
#[allow(dead_code, unused_imports)]
mod adversarial_names;
#[path = "../../crates/designs/tests/oracles/cs_policy.rs"]
#[allow(dead_code, unused_imports)]
mod cs_policy;
mod generated;
#[path = "../../crates/designs/tests/oracles/pit_cs.rs"]
#[allow(dead_code, unused_imports)]
mod pit_cs;

use generated::generated;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let ((pool, _, policy), operations) = generated(bytes, &pit_cs::runs(), &pit_cs::operation());
    pit_cs::replay(&pool, operations, policy, 7);
});
