//! Question: does the fingerprint-only PIT find each requested name until it expires or is satisfied, and for exactly
//! the requesting ports, in any order of operations?
//!
//! Input: seeds for strategies: a shape, and the operations of the property tests, whose model is used. With
//! one bucket, most names are in the overflow table, which is full at times.
#![no_main]

#[path = "../../crates/tables/tests/oracles/fingerprint_pit.rs"]
#[allow(dead_code, unused_imports)]
mod fingerprint_pit;
mod generated;

use generated::generated;
use libfuzzer_sys::fuzz_target;
use namewire_tables::PageSize;
use namewire_tables::fingerprint_pit::{FaceList, FingerprintPitConfig};
use proptest::prelude::*;

const CAPACITY_OVERFLOW: u32 = 12;

fn configs() -> impl Strategy<Value = FingerprintPitConfig> {
    let faces = prop_oneof![Just(FaceList::Bits), Just(FaceList::Sets { max_sets: 10 })];
    let shape = (prop::sample::select(&[1, 64][..]), prop::sample::select(&[2, 4][..]), 1..=4_u8);
    (shape, faces).prop_map(|((capacity_entries, subtables, segments), faces)| FingerprintPitConfig {
        capacity_entries,
        subtables,
        segments,
        fingerprint_bits: 8,
        overflow_entries: CAPACITY_OVERFLOW,
        faces,
        pages: PageSize::Base,
    })
}

fuzz_target!(|bytes: &[u8]| {
    let (config, operations) = generated(bytes, &configs(), &fingerprint_pit::operation());
    fingerprint_pit::both_agree(config, operations).expect("both tables do the same");
});
