//! The concurrent parts of `namewire_tables`, compiled with loom's atomics. Models of the
//! quiescence are in `tests/quiescence.rs`; those of the tag index, which is not public, in
//! [`tag_index_models`].

#[path = "../../src/quiescence.rs"]
pub mod quiescence;

#[cfg(test)]
mod pages;
#[cfg(test)]
#[path = "../../src/prefetch.rs"]
#[allow(dead_code, reason = "the index needs one of its functions")]
mod prefetch;
#[cfg(test)]
#[path = "../../src/tag_compare.rs"]
mod tag_compare;
#[cfg(test)]
#[path = "../../src/tag_index.rs"]
#[allow(dead_code, reason = "models need not call everything")]
mod tag_index;
#[cfg(test)]
mod tag_index_models;
