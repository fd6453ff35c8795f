//! The ring of `namewire_worker`, compiled with loom's atomics; its models are in `tests/ring.rs`.

#[path = "../../src/ring.rs"]
pub mod ring;
