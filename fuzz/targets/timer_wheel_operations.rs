//! Question: does the timer wheel fire every timer, none early and none more than one tick late?
//!
//! Input: seeds for the property test's strategies: a tick, a start and operations. A map is the model.
#![no_main]

mod generated;
#[path = "../../crates/tables/tests/oracles/timer_wheel.rs"]
#[allow(dead_code, unused_imports)]
mod timer_wheel;

use generated::generated;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let ((tick_ns, start_ns, _), operations) = generated(bytes, &timer_wheel::runs(), &timer_wheel::operation());
    timer_wheel::replay(tick_ns, start_ns, operations);
});
