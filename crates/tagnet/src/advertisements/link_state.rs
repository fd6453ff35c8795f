//! Link state: what this router has announced to a neighbour.

use crate::forwarder::Serves;
use std::collections::BTreeMap;

/// The state of one neighbour in one tree. Descriptors are indices.
#[derive(Debug)]
pub(super) struct LinkState {
    told: BTreeMap<u32, Serves>,
    /// A new neighbour is told the descriptors in the order of their indices, from this one on; `None` when all are
    /// told.
    pub(super) catching_up: Option<usize>,
}

impl LinkState {
    /// A neighbour that knows nothing.
    pub(super) const fn new() -> Self {
        LinkState { told: BTreeMap::new(), catching_up: Some(0) }
    }

    pub(super) fn told(&self) -> impl Iterator<Item = (u32, Serves)> {
        self.told.iter().map(|(index, serves)| (*index, *serves))
    }

    /// Notes what the neighbour is told from now on; false if the neighbour was told this already.
    pub(super) fn changed(&mut self, index: u32, now: Option<Serves>) -> bool {
        let before = match now {
            Some(serves) => self.told.insert(index, serves),
            None => self.told.remove(&index),
        };
        before != now
    }
}
