//! What a PIT entry remembers of each downstream and upstream (forwarding §2).
//!
//! The name and the Interest's octets are the table's; this is the engine's part.

use crate::Instant;
use namewire_packet::{FaceId, NackReason, Nonce, lp::PitToken};
use namewire_tables::Recycle;
use smallvec::SmallVec;

/// Most downstreams, and most upstreams, of one entry.
pub const MAX_RECORDS: usize = 1024;

/// Records for which an unused entry keeps room.
const KEPT_RECORDS: usize = 8;

/// Longest time an Interest stays pending, whatever its lifetime says (NFD: 10 days).
pub const MAX_LIFETIME_MS: u64 = 10 * 24 * 3600 * 1000;

/// One downstream: who asked, and until when.
#[derive(Clone, Copy, Debug)]
pub struct InRecord {
    /// The face that asked.
    pub face: FaceId,
    /// Nonce of its last Interest.
    pub nonce: Nonce,
    /// Its last Interest dies here.
    pub expires: Instant,
    /// Token of its last Interest, to be sent back as it came.
    pub token: Option<PitToken>,
}

/// One upstream: whom we asked.
#[derive(Clone, Copy, Debug)]
pub struct OutRecord {
    /// The face asked.
    pub face: FaceId,
    /// Nonce last sent to it.
    pub nonce: Nonce,
    /// When it was last sent.
    pub sent: Instant,
    /// The Interest sent dies here.
    pub expires: Instant,
    /// The Nack that came back, if one did.
    pub nack: Option<NackReason>,
    /// Retransmission suppression per upstream (multicast), nanoseconds; 0 is the initial value.
    pub suppression_ns: u64,
}

impl OutRecord {
    /// Still waiting: neither expired nor Nacked.
    pub fn is_pending(&self, now: Instant) -> bool {
        self.expires > now && self.nack.is_none()
    }
}

/// The engine's part of a PIT entry.
#[derive(Clone, Debug, Default)]
pub struct PitState {
    /// Downstreams, in order of arrival.
    pub in_records: SmallVec<[InRecord; 1]>,
    /// Upstreams, in order of sending.
    pub out_records: SmallVec<[OutRecord; 1]>,
    /// When the entry is finalized: the latest in-record expiry.
    pub expires: Instant,
    /// When the strategy wants to be called, if it does.
    pub strategy_deadline: Option<Instant>,
    /// Retransmission suppression per entry (best-route), nanoseconds; 0 is the initial value.
    pub suppression_ns: u64,
    /// Hash of the Interest's name, for the dead nonce list.
    pub(crate) name_hash: u64,
    /// Number of components of the name.
    pub(crate) components: u16,
    /// The name ends in an implicit digest.
    pub(crate) by_digest: bool,
    /// The Interest goes where its ForwardingHint says.
    pub(crate) by_hint: bool,
}

impl PitState {
    /// The record of downstream `face`.
    pub fn in_record(&self, face: FaceId) -> Option<&InRecord> {
        self.in_records.iter().find(|record| record.face == face)
    }

    /// The record of upstream `face`.
    pub fn out_record(&self, face: FaceId) -> Option<&OutRecord> {
        self.out_records.iter().find(|record| record.face == face)
    }

    /// The record of upstream `face`, to be changed.
    pub fn out_record_mut(&mut self, face: FaceId) -> Option<&mut OutRecord> {
        self.out_records.iter_mut().find(|record| record.face == face)
    }

    /// True if some upstream may still answer.
    pub fn has_pending_out_records(&self, now: Instant) -> bool {
        self.out_records.iter().any(|record| record.is_pending(now))
    }

    /// Records an Interest from `face`; false if the entry has too many downstreams.
    pub(crate) fn insert_in_record(&mut self, new: InRecord) -> bool {
        let is_full = self.in_records.len() >= MAX_RECORDS;
        match self.in_records.iter_mut().find(|record| record.face == new.face) {
            Some(record) => *record = new,
            None if is_full => return false,
            None => self.in_records.push(new),
        }
        self.expires = self.in_records.iter().map(|record| record.expires).max().unwrap_or(new.expires);
        true
    }

    /// The next instant at which this entry needs attention.
    pub(crate) fn deadline(&self) -> Instant {
        self.strategy_deadline.map_or(self.expires, |at| at.min(self.expires))
    }
}

impl Recycle for PitState {
    fn recycle(&mut self) {
        // Buffers are kept for the next entry, but not those of a crowd: the memory
        // of one popular name must not stay with every slot that ever had one.
        if self.in_records.capacity() > KEPT_RECORDS {
            self.in_records = SmallVec::new();
        }
        if self.out_records.capacity() > KEPT_RECORDS {
            self.out_records = SmallVec::new();
        }
        self.in_records.clear();
        self.out_records.clear();
        self.expires = Instant::default();
        self.strategy_deadline = None;
        self.suppression_ns = 0;
        (self.name_hash, self.components, self.by_digest, self.by_hint) = (0, 0, false, false);
    }
}

/// With one downstream and one upstream inline: what ARCHITECTURE.md adds up.
const _: () = assert!(size_of::<PitState>() == 160);
