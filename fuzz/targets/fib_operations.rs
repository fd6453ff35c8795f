//! Question: does the FIB agree with an ordered map that is searched prefix by prefix?
//!
//! Input: seeds for the property test's strategies: names that share prefixes, and changes. Entries and bytes
//! are so few that both limits are reached, yet enough that the index doubles.
#![no_main]

#[path = "../../crates/tables/tests/oracles/adversarial_names.rs"]
#[allow(dead_code, unused_imports)]
mod adversarial_names;
#[path = "../../crates/designs/tests/oracles/fib.rs"]
#[allow(dead_code, unused_imports)]
mod fib;
mod generated;

use generated::generated;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let ((kind, names, _), operations) = generated(bytes, &fib::runs(), &fib::operation());
    fib::replay(kind, names, operations, 7);
});
