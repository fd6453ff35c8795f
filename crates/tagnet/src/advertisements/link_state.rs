//! Link state: a neighbour in a tree. What it was told is kept with the descriptors ([`super::known`]).

use super::walk::Walk;

/// The state of one neighbour in one tree.
#[derive(Debug)]
pub(super) struct LinkState {
    /// Another number whenever the neighbour knows nothing.
    pub(super) life: u64,
    /// The walk through the descriptors that it is told first; `None` when it was told all.
    pub(super) catching_up: Option<Walk>,
}

impl LinkState {
    /// A neighbour that knows nothing.
    pub(super) fn new(life: u64) -> Self {
        LinkState { life, catching_up: Some(Walk::default()) }
    }
}
