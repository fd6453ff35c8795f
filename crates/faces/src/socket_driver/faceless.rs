//! Drops without a face: datagrams that created no face, packets to unknown faces.

use std::sync::Arc;

use crate::{FaceCounters, LinkCounters, LinkDrop};

#[derive(Default)]
pub(super) struct Faceless {
    counters: LinkCounters,
    published: Arc<FaceCounters>,
}

impl Faceless {
    pub(super) fn count_drop(&mut self, reason: LinkDrop) {
        self.counters.count_drop(reason);
    }

    pub(super) fn count_drops(&mut self, reason: LinkDrop, count: u64) {
        self.counters.count_drops(reason, count);
    }

    /// Counts a datagram that belongs to no face.
    pub(super) fn refuse(&mut self, datagram: &[u8], reason: LinkDrop) {
        self.counters.in_bytes += datagram.len() as u64;
        self.counters.count_drop(reason);
    }

    pub(super) fn publish(&self) {
        self.published.publish(&self.counters);
    }

    pub(super) fn published(&self) -> Arc<FaceCounters> {
        Arc::clone(&self.published)
    }

    #[cfg(test)]
    pub(super) fn dropped(&self, reason: LinkDrop) -> u64 {
        self.counters.dropped(reason)
    }
}
