//! Where an Interest may go, what a strategy sees of it, and how it is sent.

pub(crate) mod answer;
pub(crate) mod asked;
pub(crate) mod context;
pub mod foresight;
pub(crate) mod journey;
pub(crate) mod next_hops;
pub(crate) mod outgoing;
pub(crate) mod pressure;
pub(crate) mod scope;
pub(crate) mod strategy;
pub(crate) mod trigger;
