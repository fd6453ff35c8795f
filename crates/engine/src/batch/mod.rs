//! One batch: packets in, verdicts out.
//!
//! [`schedule`] defines the stages and their order: decode and hash, prefetch, and last the pipelines. The pipelines
//! act in arrival order: the same name can occur twice in a batch, and the second packet must see the effects of the
//! first.

pub(crate) mod frame;
pub mod measured;
pub(crate) mod order;
pub(crate) mod output;
pub mod schedule;
