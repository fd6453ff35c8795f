//! Every table against a naive twin, driven by lists of random operations.

mod adversarial_names;
mod dead_nonce_list;
mod fingerprint_pit;
mod flow_cache;
mod name_hash;
mod timer_wheel;
