//! Quiescence of `namewire_tables`, compiled with loom's atomics; its models are in
//! `tests/quiescence.rs`.

#[path = "../../src/quiescence.rs"]
pub mod quiescence;
