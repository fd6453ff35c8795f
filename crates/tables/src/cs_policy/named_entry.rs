//! Named entry: an entry, as a policy sees it, of a store that keeps no Data.
//!
//! The [Content Store](crate::content_store) keeps marks and hashes in its own slots. Code that runs a
//! policy over names alone keeps a vector of named entries, indexed by slot. Such code is the simulated
//! store of `namewire_designs`, the miniatures of [`AdaptiveWindow`](super::adaptive_window), experiments
//! and tests.

use super::{Marks, PolicyMark};
use crate::prefetch::prefetch;

/// One entry, and what its owner keeps of it.
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
    /// An entry that the policy has not seen yet.
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
