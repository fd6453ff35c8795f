//! One batch: packets in, verdicts out.
//!
//! [`schedule`] defines the stages and their order: decode and hash, prefetch, and last the pipelines. The pipelines
//! take the packets in the order of arrival: if a name occurs twice in a batch, the second packet must see the effects
//! of the first.

pub(crate) mod frame;
pub mod measured;
pub(crate) mod order;
pub(crate) mod output;
pub mod schedule;
