//! The strategies, one file each, and [`registry`], which lists them. A new strategy takes one file and one line there;
//! `docs/strategies.md` shows a complete one.

pub(crate) mod access;
pub(crate) mod asf;
pub(crate) mod best_route;
pub(crate) mod multicast;
mod nack_processing;
mod no_route;
mod parameters;
pub(crate) mod random;
pub mod registry;
mod retx_suppression;
pub(crate) mod self_learning;
mod silence;
