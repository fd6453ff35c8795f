//! The concurrent parts of `namewire_tables`, compiled with loom's atomics. The models of quiescence are in
//! `tests/quiescence.rs`; models of private items are in [`tag_index_models`], [`mirrored_models`] and
//! [`version_models`], and those of a concurrent part of `namewire_designs` in [`shared_bucket_models`].

#[path = "../../src/quiescence.rs"]
pub mod quiescence;

#[cfg(test)]
#[path = "../../../designs/src/fib/shared_name_trie/bucket.rs"]
mod bucket;
#[cfg(test)]
#[path = "../../src/fib/left_right.rs"]
mod left_right;
#[cfg(test)]
#[path = "../../src/fib/mirrored.rs"]
mod mirrored;
#[cfg(test)]
mod mirrored_models;
#[cfg(test)]
mod pages;
#[cfg(test)]
#[path = "../../src/prefetch.rs"]
#[allow(dead_code, reason = "the index needs one of its functions")]
mod prefetch;
#[cfg(test)]
mod shared_bucket_models;
#[cfg(test)]
#[path = "../../src/tag_compare.rs"]
mod tag_compare;
#[cfg(test)]
#[path = "../../src/tag_index.rs"]
#[allow(dead_code, reason = "models need not call everything")]
mod tag_index;
#[cfg(test)]
mod tag_index_models;
#[cfg(test)]
#[path = "../../src/fib/version.rs"]
mod version;
#[cfg(test)]
mod version_models;
