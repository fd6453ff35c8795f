//! The stages in which a batch prefetches lines of the store: see [`crate::pit_cs`].

use super::ContentStore;
use super::slot::CsSlot;
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
    pub(crate) fn prefetch_victims(&mut self, count: usize) {
        self.victims.clear();
        if !self.fits(count as u64 * LARGE_DATA_BYTES, count as u64) {
            self.policy.upcoming(count.min(MAX_NOTED_VICTIMS), &mut self.victims);
            self.victims.iter().for_each(|&id| self.slots.prefetch(id));
        }
    }

    pub(crate) fn prefetch_victim_groups(&self, groups: &NameGroups, which: Range<usize>) {
        for slot in self.victims(which) {
            groups.prefetch_header(slot.group);
            self.policy.prefetch_victim(slot.hash);
            self.data.prefetch(slot.data_at, 1);
            self.data.prefetch_following(slot.data_at, slot.data_bytes as usize);
        }
    }

    pub(crate) fn prefetch_victim_buckets(&self, groups: &NameGroups, which: Range<usize>) {
        for group in self.victims(which).filter_map(|slot| groups.peek(slot.group)) {
            groups.prefetch_bucket(group.hash());
        }
    }

    fn victims(&self, which: Range<usize>) -> impl Iterator<Item = &CsSlot> {
        let end = which.end.min(self.victims.len());
        let noted = self.victims.get(which.start..end).unwrap_or_default();
        noted.iter().filter_map(|&id| self.slots.peek(id))
    }
}
