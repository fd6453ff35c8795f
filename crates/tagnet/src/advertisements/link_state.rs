//! Link state: what a neighbour was told, and what is held back from it.

use crate::forwarder::Serves;
use std::collections::{BTreeMap, BTreeSet};

/// The state of one neighbour in one tree. Descriptors are indices.
#[derive(Debug, Default)]
pub(super) struct LinkState {
    /// What the neighbour was told.
    told: BTreeMap<u32, Serves>,
    /// Descriptors that are to be announced for pushes.
    pushes: BTreeSet<u32>,
    /// Descriptors held back, each with the descriptor that holds it back.
    held: BTreeMap<u32, u32>,
    /// The same pairs, the other way round.
    holds: BTreeSet<(u32, u32)>,
}

impl LinkState {
    pub(super) fn told(&self) -> impl Iterator<Item = (u32, Serves)> {
        self.told.iter().map(|(index, serves)| (*index, *serves))
    }

    pub(super) fn announces_push(&self, index: u32) -> bool {
        self.pushes.contains(&index)
    }

    pub(super) fn set_push(&mut self, index: u32, announces: bool) {
        if announces {
            self.pushes.insert(index);
        } else {
            self.pushes.remove(&index);
        }
    }

    pub(super) fn is_held(&self, index: u32) -> bool {
        self.held.contains_key(&index)
    }

    pub(super) fn hold(&mut self, index: u32, holder: u32) {
        self.held.insert(index, holder);
        self.holds.insert((holder, index));
    }

    pub(super) fn release(&mut self, index: u32) {
        if let Some(holder) = self.held.remove(&index) {
            self.holds.remove(&(holder, index));
        }
    }

    /// Releases all that a descriptor holds back, and returns them.
    pub(super) fn take_held_by(&mut self, holder: u32) -> Vec<u32> {
        let held: Vec<u32> = self.holds.range((holder, 0)..=(holder, u32::MAX)).map(|(_, index)| *index).collect();
        held.iter().for_each(|index| self.release(*index));
        held
    }

    /// Notes what the neighbour is told from now on; `None` if the neighbour was told this already.
    pub(super) fn changed(&mut self, index: u32, wants_pull: bool) -> Option<Option<Serves>> {
        let now = match (wants_pull, self.announces_push(index)) {
            (false, false) => None,
            (true, false) => Some(Serves::PULL),
            (false, true) => Some(Serves::PUSH),
            (true, true) => Some(Serves::BOTH),
        };
        let before = match now {
            Some(serves) => self.told.insert(index, serves),
            None => self.told.remove(&index),
        };
        (before != now).then_some(now)
    }
}
