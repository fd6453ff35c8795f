//! What a PIT entry remembers of each downstream and upstream (forwarding §2).
//!
//! The name and the Interest's octets are the table's; this is the engine's part.

use crate::Instant;
use crate::face_share::WaitingByFace;
use crate::record_chain::{RecordChain, RecordPool};
use namewire_packet::{FaceId, NackReason, Nonce, lp::PitToken};
use namewire_tables::{PageSize, PitEntry, Recycle};
use std::io;

/// Most downstreams, and most upstreams, of one entry.
pub const MAX_RECORDS: usize = 1024;

/// Longest time an Interest stays pending unless configured otherwise, whatever its
/// lifetime says: 10 days, as NFD.
pub const MAX_LIFETIME_MS: u64 = 10 * 24 * 3600 * 1000;

/// One downstream: who asked, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub struct InRecord {
    /// The face that asked.
    pub face: FaceId,
    /// Nonce of its last Interest.
    pub nonce: Nonce,
    /// Its last Interest dies here.
    pub expires: Instant,
    /// Token of its last Interest, to be sent back as it came.
    pub token: Option<PitToken>,
    /// Its last Interest must not be flooded.
    pub non_discovery: bool,
}

/// One upstream: whom we asked.
#[derive(Clone, Copy, Debug, Default)]
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
    /// The Interest sent must not be flooded.
    pub non_discovery: bool,
    /// Its silence has been counted ([`crate::StrategyContext::next_unanswered`]).
    pub silence_counted: bool,
    /// Retransmission suppression per upstream (multicast), nanoseconds; 0 is the initial value.
    pub suppression_ns: u64,
}

impl OutRecord {
    /// The link to the upstream is gone. The record stays: the copy that was sent may still loop back.
    pub(crate) fn lose(&mut self) {
        self.expires = Instant::default();
    }

    /// Whether its link went while the Interest was pending.
    pub fn is_lost(&self) -> bool {
        self.expires == Instant::default()
    }

    /// Still waiting: neither expired nor Nacked.
    pub fn is_pending(&self, now: Instant) -> bool {
        self.expires > now && self.nack.is_none()
    }
}

/// The records of all entries beyond the first of each.
pub struct Records {
    pub(crate) downstreams: RecordPool<InRecord>,
    pub(crate) upstreams: RecordPool<OutRecord>,
    /// Downstreams of all entries, by face.
    waiting: WaitingByFace,
}

impl Records {
    /// Room for `capacity` further downstreams and as many upstreams.
    pub(crate) fn new(capacity: u32, pages: PageSize) -> io::Result<Self> {
        let (downstreams, upstreams) = (RecordPool::new(capacity, pages)?, RecordPool::new(capacity, pages)?);
        Ok(Records { downstreams, upstreams, waiting: WaitingByFace::new() })
    }

    /// Answers that a face waits for.
    #[inline]
    pub(crate) fn waiting(&self, face: FaceId) -> u32 {
        self.waiting.of(face)
    }

    /// Downstreams of an entry, in order of arrival.
    #[inline]
    pub fn downstreams<'a>(&'a self, state: &'a PitState) -> impl Iterator<Item = &'a InRecord> {
        self.downstreams.iter(&state.in_records)
    }

    /// Upstreams of an entry, in order of sending.
    #[inline]
    pub fn upstreams<'a>(&'a self, state: &'a PitState) -> impl Iterator<Item = &'a OutRecord> {
        self.upstreams.iter(&state.out_records)
    }

    /// The record of downstream `face`.
    pub fn downstream<'a>(&'a self, state: &'a PitState, face: FaceId) -> Option<&'a InRecord> {
        self.downstreams(state).find(|record| record.face == face)
    }

    /// The record of upstream `face`.
    pub fn upstream<'a>(&'a self, state: &'a PitState, face: FaceId) -> Option<&'a OutRecord> {
        self.upstreams(state).find(|record| record.face == face)
    }

    /// The record of upstream `face`, to be changed.
    pub fn upstream_mut<'a>(&'a mut self, state: &'a mut PitState, face: FaceId) -> Option<&'a mut OutRecord> {
        self.upstreams.find_mut(&mut state.out_records, |record| record.face == face)
    }

    /// Records an Interest; false if the entry, or all entries together, have as many
    /// downstreams as they may.
    #[inline(always)]
    pub(crate) fn insert_downstream(
        &mut self,
        state: &mut PitState,
        (face, nonce, expires): (FaceId, Nonce, Instant),
        (token, non_discovery): (&Option<PitToken>, bool),
    ) -> bool {
        let known = self.downstreams.find_mut(&mut state.in_records, |record| record.face == face);
        match known {
            Some(record) => {
                *record = InRecord { face, nonce, expires, token: *token, non_discovery };
                state.expires = self.downstreams(state).map(|record| record.expires).max().unwrap_or(expires);
            }
            None => {
                let is_first = state.in_records.is_empty();
                let is_full = state.in_records.len() >= MAX_RECORDS;
                let place = if is_full { None } else { self.downstreams.append(&mut state.in_records) };
                let Some(record) = place else { return false };
                *record = InRecord { face, nonce, expires, token: *token, non_discovery };
                self.waiting.count_up(face);
                state.expires = if is_first { expires } else { state.expires.max(expires) };
            }
        }
        true
    }

    /// Records that an Interest is sent now; false if the entry, or all entries together,
    /// have as many upstreams as they may. What the strategy keeps of `face` stays.
    #[inline(always)]
    pub(crate) fn insert_upstream(
        &mut self,
        state: &mut PitState,
        (face, nonce, non_discovery): (FaceId, Nonce, bool),
        (sent, expires): (Instant, Instant),
    ) -> bool {
        match self.upstreams.find_mut(&mut state.out_records, |record| record.face == face) {
            Some(record) => {
                (record.nonce, record.sent, record.expires, record.nack) = (nonce, sent, expires, None);
                record.non_discovery = non_discovery;
                true
            }
            None => {
                let is_full = state.out_records.len() >= MAX_RECORDS;
                let place = if is_full { None } else { self.upstreams.append(&mut state.out_records) };
                let Some(record) = place else { return false };
                let (nack, silence_counted, suppression_ns) = (None, false, 0);
                *record =
                    OutRecord { face, nonce, sent, expires, nack, non_discovery, silence_counted, suppression_ns };
                true
            }
        }
    }

    /// Forgets the downstreams that are gone; the others decide when the entry expires.
    pub(crate) fn forget_downstreams(&mut self, state: &mut PitState, is_gone: impl Fn(&FaceId) -> bool) {
        self.remove_downstreams(state, is_gone);
        state.expires = self.downstreams(state).map(|record| record.expires).max().unwrap_or_default();
    }

    /// Takes away the downstreams that are gone; the entry expires when it would have.
    pub(crate) fn remove_downstreams(&mut self, state: &mut PitState, is_gone: impl Fn(&FaceId) -> bool) {
        self.downstreams.retain(&mut state.in_records, |record| {
            let keeps = !is_gone(&record.face);
            if !keeps {
                self.waiting.count_down(record.face);
            }
            keeps
        });
    }

    /// Forgets the upstreams that are gone.
    pub(crate) fn forget_upstreams(&mut self, state: &mut PitState, is_gone: impl Fn(&FaceId) -> bool) {
        self.upstreams.retain(&mut state.out_records, |record| !is_gone(&record.face));
    }

    /// Forgets all records of an entry; must come before the entry is recycled.
    #[inline]
    pub(crate) fn clear(&mut self, state: &mut PitState) {
        self.downstreams.iter(&state.in_records).for_each(|record| self.waiting.count_down(record.face));
        self.downstreams.clear(&mut state.in_records);
        self.upstreams.clear(&mut state.out_records);
    }
}

/// The engine's part of a PIT entry. What Data needs comes first: with the entry's header
/// it takes two lines.
#[derive(Debug, Default)]
#[repr(C)]
pub struct PitState {
    /// Downstreams, in order of arrival: see [`Records::downstreams`].
    pub(crate) in_records: RecordChain<InRecord>,
    /// Upstreams, in order of sending: see [`Records::upstreams`].
    pub(crate) out_records: RecordChain<OutRecord>,
    /// Number of components of the name.
    pub(crate) components: u16,
    /// The name ends in an implicit digest.
    pub(crate) by_digest: bool,
    /// The Interest goes where its ForwardingHint says.
    pub(crate) by_hint: bool,
    /// The strategy wants to be told of Data.
    pub(crate) watched: bool,
    /// It was answered and waits for further answers, which the strategy wants to be told of.
    pub(crate) satisfied: bool,
    /// The strategy wants to be told if it expires unanswered.
    pub(crate) expiry_watched: bool,
    /// When the entry is finalized: the latest in-record expiry.
    pub expires: Instant,
    /// When the strategy wants to be called, if it does.
    pub strategy_deadline: Option<Instant>,
    /// Retransmission suppression per entry (best-route), nanoseconds; 0 is the initial value.
    pub suppression_ns: u64,
    /// Hash of the Interest's name, for the dead nonce list.
    pub(crate) name_hash: u64,
}

impl PitState {
    /// Whether nobody waits for an answer.
    pub fn nobody_waits(&self) -> bool {
        self.in_records.is_empty()
    }

    /// The next instant at which this entry needs attention.
    pub(crate) fn deadline(&self) -> Instant {
        self.strategy_deadline.map_or(self.expires, |at| at.min(self.expires))
    }
}

impl Recycle for PitState {
    fn recycle(&mut self) {
        debug_assert!(self.in_records.is_empty() && self.out_records.is_empty(), "the records were not given back");
        (self.watched, self.satisfied, self.expiry_watched) = (false, false, false);
        self.strategy_deadline = None;
        self.suppression_ns = 0;
    }
}

/// With one downstream and one upstream inline: what ARCHITECTURE.md adds up.
const _: () = assert!(size_of::<PitState>() == 160);
const _: () = assert!(size_of::<PitEntry<PitState>>() == 256);
const _: () = assert!(std::mem::offset_of!(PitState, expires) <= 2 * 64 - 8);
