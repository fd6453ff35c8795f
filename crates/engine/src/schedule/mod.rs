//! One batch: packets in, verdicts out.
//!
//! [`batch`] defines the stages and their order: decode and hash, prefetch, and last the pipelines. The pipelines take
//! the packets in the order of arrival: if a name occurs twice in a batch, the second packet must see the effects of
//! the first.

pub mod batch;
pub(crate) mod engine;
