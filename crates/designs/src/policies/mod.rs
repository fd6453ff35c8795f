//! Policies of the Content Store: which Data comes in, and which is evicted?
//!
//! The interface is [`namewire_tables::cs_policy`], which also has four policies. This folder has policies of the
//! literature, one module each: an [`Eviction`](namewire_tables::cs_policy::Eviction) or an
//! [`Admission`](admission::Admission). Any admission works with any eviction; [`catalogue`] joins them.
//!
//! Trivial policies for comparison and new policies belong here as well; [`catalogue`] says how to add one.

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
