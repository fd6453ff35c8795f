//! What a PIT entry remembers of each downstream and upstream (forwarding §2).
//!
//! The table keeps the name and the Interest's bytes; this is the engine's part.

use crate::Instant;
use crate::state::face_share::WaitingByFace;
use crate::state::record_chain::{RecordChain, RecordPool};
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
    /// When its last Interest expires.
    pub expires: Instant,
    /// Token of its last Interest, to be sent back as it came.
    pub token: Option<PitToken>,
    /// Its last Interest must not be flooded.
    pub non_discovery: bool,
}

/// One upstream: a face that we sent the Interest to.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutRecord {
    /// The face asked.
    pub face: FaceId,
    /// Nonce last sent to it.
    pub nonce: Nonce,
    /// When it was last sent.
    pub sent: Instant,
    /// When the Interest sent expires.
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
    /// Notes that a copy of the Interest is sent now.
    #[inline(always)]
    pub(crate) fn renew(&mut self, nonce: Nonce, non_discovery: bool, sent: Instant, expires: Instant) {
        (self.nonce, self.sent, self.expires, self.nack) = (nonce, sent, expires, None);
        self.non_discovery = non_discovery;
    }

    /// Notes that the link to the upstream went down. The record stays: the copy that was sent may still loop back.
    pub(crate) fn lose(&mut self) {
        self.expires = Instant::default();
    }

    /// Whether its link went down while the Interest was pending.
    pub fn is_lost(&self) -> bool {
        self.expires == Instant::default()
    }

    /// Whether an answer is still possible: neither expired nor Nacked.
    pub fn is_pending(&self, now: Instant) -> bool {
        self.expires > now && self.nack.is_none()
    }
}

/// The records of all entries, except the first of each.
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

    /// Pending answers of a face.
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

    /// The record of a downstream that asks, for the caller to write. `None` if the entry, or all entries together,
    /// have as many downstreams as they may.
    #[inline(always)]
    pub(crate) fn downstream_or_insert<'a>(
        &'a mut self,
        state: &'a mut PitState,
        face: FaceId,
    ) -> Option<&'a mut InRecord> {
        // With the Polonius borrow checker one search would do. In a chain of one, the search is a comparison.
        if self.downstream(state, face).is_some() {
            return self.downstreams.find_mut(&mut state.in_records, |record| record.face == face);
        }
        let is_full = state.in_records.len() >= MAX_RECORDS;
        let place = if is_full { None } else { self.downstreams.append(&mut state.in_records) };
        self.waiting.count_up_if(face, place.is_some());
        place
    }

    /// The record of the first downstream of a new entry, for the caller to write.
    #[inline(always)]
    pub(crate) fn first_downstream<'a>(&mut self, state: &'a mut PitState, face: FaceId) -> &'a mut InRecord {
        self.waiting.count_up_if(face, true);
        RecordPool::begin(&mut state.in_records)
    }

    /// Lets the entry live as long as its downstreams wait; one of them now waits until `expires`.
    #[inline(always)]
    pub(crate) fn note_expiry(&self, state: &mut PitState, expires: Instant, is_renewed: bool) {
        state.expires = match state.in_records.len() {
            1 => expires,
            _ if is_renewed => self.downstreams(state).map(|record| record.expires).max().unwrap_or(expires),
            _ => state.expires.max(expires),
        };
    }

    /// The record of an upstream that is asked, created empty if there is none. `None` if the entry, or all entries
    /// together, have as many upstreams as they may.
    #[inline(always)]
    pub(crate) fn upstream_or_insert<'a>(
        &'a mut self,
        state: &'a mut PitState,
        face: FaceId,
    ) -> Option<&'a mut OutRecord> {
        if self.upstream(state, face).is_some() {
            return self.upstream_mut(state, face);
        }
        let is_full = state.out_records.len() >= MAX_RECORDS;
        let place = if is_full { None } else { self.upstreams.append(&mut state.out_records) }?;
        *place = OutRecord { face, ..OutRecord::default() };
        Some(place)
    }

    /// Removes downstreams for which `is_gone`; the others decide when the entry expires.
    pub(crate) fn forget_downstreams(&mut self, state: &mut PitState, is_gone: impl Fn(&FaceId) -> bool) {
        self.remove_downstreams(state, is_gone);
        state.expires = self.downstreams(state).map(|record| record.expires).max().unwrap_or_default();
    }

    /// Removes downstreams for which `is_gone`; the entry keeps its expiry.
    pub(crate) fn remove_downstreams(&mut self, state: &mut PitState, is_gone: impl Fn(&FaceId) -> bool) {
        self.downstreams.retain(&mut state.in_records, |record| {
            let keeps = !is_gone(&record.face);
            if !keeps {
                self.waiting.count_down(record.face);
            }
            keeps
        });
    }

    /// Removes upstreams for which `is_gone`.
    pub(crate) fn forget_upstreams(&mut self, state: &mut PitState, is_gone: impl Fn(&FaceId) -> bool) {
        self.upstreams.retain(&mut state.out_records, |record| !is_gone(&record.face));
    }

    #[cold]
    fn count_down_all(&mut self, state: &PitState) {
        self.downstreams.iter(&state.in_records).for_each(|record| self.waiting.count_down(record.face));
    }

    /// Removes all records of an entry; must come before the entry is recycled.
    #[inline(always)]
    pub(crate) fn clear(&mut self, state: &mut PitState) {
        match state.in_records.only() {
            Some(record) => self.waiting.count_down(record.face),
            None => self.count_down_all(state),
        }
        self.downstreams.clear(&mut state.in_records);
        self.upstreams.clear(&mut state.out_records);
    }
}

/// The engine's part of a PIT entry. The fields that Data needs come first: with the entry's header they take two cache
/// lines.
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
    /// The Interest is forwarded by its ForwardingHint.
    pub(crate) by_hint: bool,
    /// The strategy wants to see Data.
    pub(crate) watched: bool,
    /// It was answered and waits for further answers, which the strategy wants to see.
    pub(crate) satisfied: bool,
    /// The strategy wants a call if it expires unanswered.
    pub(crate) expiry_watched: bool,
    /// When the entry is finalized: the latest in-record expiry.
    pub expires: Instant,
    /// When the strategy wants a call, if it does.
    pub strategy_deadline: Option<Instant>,
    /// Retransmission suppression per entry (best-route), nanoseconds; 0 is the initial value.
    pub suppression_ns: u64,
    /// Hash of the Interest's name, for the dead nonce list.
    pub(crate) name_hash: u64,
}

impl PitState {
    /// Whether no downstream waits for an answer.
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

/// With one downstream and one upstream inline: the figure that ARCHITECTURE.md adds up.
const _: () = assert!(size_of::<PitState>() == 160);
const _: () = assert!(size_of::<PitEntry<PitState>>() == 256);
const _: () = assert!(std::mem::offset_of!(PitState, expires) <= 2 * 64 - 8);
