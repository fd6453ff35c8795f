//! Named entry: what does a policy see of a store that keeps no Data?
//!
//! The [Content Store](crate::content_store) keeps marks and hashes in its own slots. Whoever runs a
//! policy over names alone (the [store without Data](super::simulated_store), the miniatures of
//! [`AdaptiveWindow`](super::adaptive_window), experiments, tests) keeps a vector of these, by slot.

use super::{Marks, PolicyMark};
use crate::prefetch::prefetch;

/// One entry, and what else its owner knows of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamedEntry<T = ()> {
    /// The hash of its name.
    pub hash: u64,
    /// What the policy keeps of it.
    pub mark: PolicyMark,
    /// What its owner keeps of it.
    pub owners: T,
}

impl<T> NamedEntry<T> {
    /// An entry that is new to the policy.
    pub fn new(hash: u64, owners: T) -> Self {
        Self { hash, mark: PolicyMark::default(), owners }
    }
}

impl<T> Marks for Vec<NamedEntry<T>> {
    #[inline]
    fn mark(&self, slot: u32) -> &PolicyMark {
        &self[slot as usize].mark
    }

    #[inline]
    fn mark_mut(&mut self, slot: u32) -> &mut PolicyMark {
        &mut self[slot as usize].mark
    }

    #[inline]
    fn hash(&self, slot: u32) -> u64 {
        self[slot as usize].hash
    }

    #[inline]
    fn prefetch(&self, slot: u32) {
        if let Some(entry) = self.get(slot as usize) {
            prefetch(entry);
        }
    }
}
