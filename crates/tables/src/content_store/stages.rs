//! The stages in which a batch prefetches lines of the store: see [`crate::pit_cs`].

use super::ContentStore;
use crate::name_group::NameGroups;
use std::ops::Range;

/// The most victims noted for prefetching: one batch.
pub(super) const MAX_NOTED_VICTIMS: usize = 64;

/// A store with less room than this for each Data of a batch counts as full.
const LARGE_DATA_BYTES: u64 = 9_000;

impl ContentStore {
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
    }

    /// Begins to fetch what a request for this name will write, and what its admission will read.
    #[inline]
    pub(crate) fn prefetch_request(&self, hash: u64) {
        self.policy.prefetch_request(hash);
    }

    /// Notes the entries that `count` Data would evict now; none if there is room.
    #[inline(always)]
    pub(crate) fn prefetch_victims(&mut self, count: usize) {
        self.victims.clear();
        if !self.fits(count as u64 * LARGE_DATA_BYTES, count as u64) {
            self.policy.upcoming(count.min(MAX_NOTED_VICTIMS), &mut self.victims);
            self.victims.iter().for_each(|&id| self.slots.prefetch(id));
        }
    }

    /// Begins to fetch what the eviction of these noted entries writes beside them: group, index bucket, and
    /// the block, which the next batch overwrites.
    #[inline(always)]
    pub(crate) fn prefetch_victim_links(&self, groups: &NameGroups, which: Range<usize>) {
        let end = which.end.min(self.victims.len());
        for &id in self.victims.get(which.start..end).unwrap_or_default() {
            let Some(slot) = self.slots.peek(id) else { continue };
            groups.prefetch_header(slot.group);
            groups.prefetch_bucket(slot.hash);
            self.policy.prefetch_victim(slot.hash);
            self.data.prefetch(slot.data_at, 1);
        }
    }
}
