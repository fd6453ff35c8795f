//! The ring of `namewire_router`, compiled with loom's atomics; its models are in `tests/ring.rs`.

#[path = "../../src/worker/ring.rs"]
pub mod ring;
