//! Question: does a Content Store that answers under every prefix find the same Data as NFD's store, after any sequence
//! of storing, refreshing, evicting and erasing?
//!
//! Input: seeds for the property test's strategies. The model is that of the property test; after each
//! operation, every Interest that the names allow is looked up in both.
#![no_main]

#[path = "../../crates/tables/tests/oracles/adversarial_names.rs"]
#[allow(dead_code, unused_imports)]
mod adversarial_names;
#[path = "../../crates/designs/tests/oracles/cs_policy.rs"]
#[allow(dead_code, unused_imports)]
mod cs_policy;
#[path = "../../crates/designs/tests/oracles/cs_prefix_index.rs"]
#[allow(dead_code, unused_imports)]
mod cs_prefix_index;
mod generated;
#[path = "../../crates/designs/tests/oracles/nfd_store.rs"]
#[allow(dead_code, unused_imports)]
mod nfd_store;

use generated::generated;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let ((pool, _, policy), operations) = generated(bytes, &cs_prefix_index::runs(), &cs_prefix_index::operation());
    cs_prefix_index::replay(pool, operations, policy, 7);
});
