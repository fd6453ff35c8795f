//! Policies of the Content Store: which Data comes in, and which is evicted?
//!
//! The interface is [`namewire_tables::cs_policy`]; four policies are there too. This folder has those of the
//! literature, one module each: an [`Eviction`](namewire_tables::cs_policy::Eviction) or an
//! [`Admission`](admission::Admission). Any admission works with any eviction; [`catalogue`] joins them.
//!
//! A trivial policy, for comparison, or one of our own belongs here as well; [`catalogue`] says how to add it.

pub mod admission;
pub mod arc;
pub mod catalogue;
pub mod clock;
pub mod content_table;
pub mod filter;
pub mod ghost_queue;
pub mod ghost_table;
pub mod lfu;
mod number_set;
pub mod random;
pub mod request_count;
pub mod request_history;
pub mod s3_fifo;
pub mod sieve;
pub mod simulated_store;
pub mod tiny_lfu;
pub mod w_tiny_lfu;
