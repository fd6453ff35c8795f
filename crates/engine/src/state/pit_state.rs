//! What a PIT entry remembers of each downstream and upstream (forwarding §2).
//!
//! The table keeps the name and the Interest's bytes; this is the engine's part.

use crate::{
    Instant,
    state::{
        pit_shares::{PitCapacities, PitShares},
        record_chain::{RecordChain, RecordPool},
    },
};
use namewire_packet::{FaceId, NackReason, Nonce, lp::PitToken};
use namewire_shares::{Groups, HolderId, Pool};
use namewire_tables::{PageSize, PitEntry, Recycle};
use std::io;

/// Most downstreams, and most upstreams, of one entry. The last eighth of the downstreams is for holders that have less
/// than half of them.
pub const MAX_RECORDS: usize = 1024;

/// Longest time an Interest stays pending unless configured otherwise, whatever its
/// lifetime says: 10 days, as NFD.
pub const MAX_LIFETIME_MS: u64 = 10 * 24 * 3600 * 1000;

/// One downstream: who asked, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub struct InRecord {
    /// The face that asked.
    pub face: FaceId,
    /// Whose face it is.
    pub holder: HolderId,
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
    /// Whose face it is.
    pub holder: HolderId,
    /// The Nack that came back, if one did.
    pub nack: Option<NackReason>,
    marks: UpstreamMarks,
    /// When it was last sent.
    pub sent: Instant,
    /// When the Interest sent expires.
    pub expires: Instant,
    /// Retransmission suppression per upstream (multicast), nanoseconds; 0 is the initial value.
    pub suppression_ns: u64,
}

/// What is yes or no of an upstream, a bit each: as two `bool`s they would make each PIT entry 8 bytes larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UpstreamMarks(u8);

impl UpstreamMarks {
    const NON_DISCOVERY: u8 = 1;
    const SILENCE_COUNTED: u8 = 2;
}

impl OutRecord {
    /// The first upstream of an entry, asked now.
    #[inline(always)]
    pub(crate) fn first(to: (FaceId, HolderId), nonce: Nonce, non_discovery: bool, times: (Instant, Instant)) -> Self {
        let ((face, holder), (sent, expires)) = (to, times);
        let marks = UpstreamMarks(u8::from(non_discovery) * UpstreamMarks::NON_DISCOVERY);
        OutRecord { face, nonce, holder, nack: None, marks, sent, expires, suppression_ns: 0 }
    }

    /// The Interest sent must not be flooded.
    pub fn non_discovery(&self) -> bool {
        self.marks.0 & UpstreamMarks::NON_DISCOVERY != 0
    }

    /// Whether its silence has been counted ([`crate::StrategyContext::next_unanswered`]).
    pub(crate) fn silence_counted(&self) -> bool {
        self.marks.0 & UpstreamMarks::SILENCE_COUNTED != 0
    }

    /// Notes that its silence has been counted.
    pub(crate) fn count_silence(&mut self) {
        self.marks.0 |= UpstreamMarks::SILENCE_COUNTED;
    }

    /// Notes that a copy of the Interest is sent now.
    #[inline(always)]
    pub(crate) fn renew(&mut self, nonce: Nonce, non_discovery: bool, sent: Instant, expires: Instant) {
        (self.nonce, self.sent, self.expires, self.nack) = (nonce, sent, expires, None);
        let silence = self.marks.0 & UpstreamMarks::SILENCE_COUNTED;
        self.marks = UpstreamMarks(silence + u8::from(non_discovery) * UpstreamMarks::NON_DISCOVERY);
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
    /// Who has how much of all this.
    pub(crate) shares: PitShares,
}

impl Records {
    /// Records within these capacities. One holder may use a share of each.
    pub(crate) fn new(
        capacities: PitCapacities,
        share_percent: u32,
        groups: &Groups,
        pages: PageSize,
    ) -> io::Result<Self> {
        let further = capacities.further_records as u32;
        let (downstreams, upstreams) = (RecordPool::new(further, pages)?, RecordPool::new(further, pages)?);
        Ok(Records { downstreams, upstreams, shares: PitShares::new(capacities, share_percent, groups) })
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

    /// The record of a downstream that asks, for the caller to write. `None` if the entry, all entries together, or
    /// those of this holder have as many downstreams as they may.
    pub(crate) fn downstream_or_insert<'a>(
        &'a mut self,
        state: &'a mut PitState,
        face: FaceId,
        holder: HolderId,
    ) -> Option<&'a mut InRecord> {
        // With the Polonius borrow checker one search would do. In a chain of one, the search is a comparison.
        if self.downstream(state, face).is_some() {
            return self.downstreams.find_mut(&mut state.in_records, |record| record.face == face);
        }
        let is_full = state.in_records.len() >= MAX_RECORDS || self.has_most(state, holder);
        let is_further = !state.in_records.is_empty();
        if is_full || is_further && self.shares.in_records.try_take(holder, 1).is_err() {
            return None;
        }
        let place = self.downstreams.append(&mut state.in_records);
        match place.is_some() {
            true => self.shares.waiting.count_up(face),
            false => self.shares.in_records.give_back(holder, is_further.into()),
        }
        place
    }

    /// Whether the entry is nearly full, and most of its downstreams are of this holder. The last eighth is for others.
    fn has_most(&self, state: &PitState, holder: HolderId) -> bool {
        state.in_records.len() >= MAX_RECORDS / 8 * 7
            && self.downstreams(state).filter(|record| record.holder == holder).count() >= MAX_RECORDS / 2
    }

    /// The record of the first downstream of a new entry, for the caller to write.
    #[inline(always)]
    pub(crate) fn first_downstream<'a>(
        &mut self,
        state: &'a mut PitState,
        face: FaceId,
        holder: HolderId,
    ) -> &'a mut InRecord {
        self.shares.begin_entry(face, holder);
        state.holder = holder;
        RecordPool::begin(&mut state.in_records)
    }

    /// Whether this holder may be charged for the entry. If not, its Interests must not prolong the entry: or else two
    /// holders could charge each other in turn, and no share would hold.
    pub(crate) fn may_keep(&self, state: &PitState, holder: HolderId) -> bool {
        let shares = &self.shares;
        let may_take = |pool: &Pool, amount: u64| amount == 0 || pool.may_take(holder, amount).is_ok();
        state.holder == holder
            || may_take(&shares.entries, 1)
                && may_take(&shares.out_records, state.further_upstreams())
                && may_take(&shares.long_interests, state.long_bytes.into())
    }

    /// Charges the entry to another holder.
    pub(crate) fn charge(&mut self, state: &mut PitState, holder: HolderId) {
        let former = std::mem::replace(&mut state.holder, holder);
        if former == holder {
            return;
        }
        let PitShares { entries, out_records, long_interests, .. } = &mut self.shares;
        for (pool, amount) in
            [(entries, 1), (out_records, state.further_upstreams()), (long_interests, state.long_bytes.into())]
        {
            pool.give_back(former, amount);
            pool.take(holder, amount);
        }
    }

    /// Lets the entry live as long as its downstreams wait, and charges it to the holder of the one that waits longest.
    /// A downstream now waits until `expires`; `keeper` is its holder, if that may be charged.
    pub(crate) fn note_expiry(
        &mut self,
        state: &mut PitState,
        keeper: Option<HolderId>,
        expires: Instant,
        is_renewed: bool,
    ) {
        let is_only = state.in_records.len() == 1;
        if is_renewed && !is_only {
            return self.expire_with_downstreams(state);
        }
        if is_only || expires > state.expires {
            state.expires = expires;
            if let Some(keeper) = keeper {
                self.charge(state, keeper);
            }
        }
    }

    /// The same, after downstreams have changed; without any, the entry expires now.
    fn expire_with_downstreams(&mut self, state: &mut PitState) {
        let longest = |record: &&InRecord| (record.expires, record.holder == state.holder);
        let last = self.downstreams(state).max_by_key(longest).copied();
        state.expires = last.map_or_else(Instant::default, |record| record.expires);
        if let Some(record) = last {
            self.charge(state, record.holder);
        }
    }

    /// The record of an upstream that is asked, created empty if there is none. `None` if the entry, or all entries
    /// together, have as many upstreams as they may.
    #[inline(always)]
    pub(crate) fn upstream_or_insert<'a>(
        &'a mut self,
        state: &'a mut PitState,
        face: FaceId,
        holder: HolderId,
    ) -> Option<&'a mut OutRecord> {
        if self.upstream(state, face).is_some() {
            return self.upstream_mut(state, face);
        }
        let is_full = state.out_records.len() >= MAX_RECORDS;
        let is_further = !state.out_records.is_empty();
        if is_full || is_further && self.shares.out_records.try_take(state.holder, 1).is_err() {
            return None;
        }
        let Some(place) = self.upstreams.append(&mut state.out_records) else {
            self.shares.out_records.give_back(state.holder, is_further.into());
            return None;
        };
        *place = OutRecord { face, holder, ..OutRecord::default() };
        Some(place)
    }

    /// Removes downstreams for which `is_gone`; the others decide when the entry expires.
    pub(crate) fn forget_downstreams(&mut self, state: &mut PitState, is_gone: impl Fn(&InRecord) -> bool) {
        self.remove_downstreams(state, is_gone);
        self.expire_with_downstreams(state);
    }

    /// Removes downstreams for which `is_gone`; the entry keeps its expiry.
    pub(crate) fn remove_downstreams(&mut self, state: &mut PitState, is_gone: impl Fn(&InRecord) -> bool) {
        self.charge_further_downstreams(state, Pool::give_back);
        self.downstreams.retain(&mut state.in_records, |record| {
            let keeps = !is_gone(record);
            if !keeps {
                self.shares.waiting.count_down(record.face);
            }
            keeps
        });
        self.charge_further_downstreams(state, Pool::take);
    }

    /// Calls `charge` for each downstream beyond the first.
    fn charge_further_downstreams(&mut self, state: &PitState, charge: fn(&mut Pool, HolderId, u64)) {
        for record in self.downstreams.iter(&state.in_records).skip(1) {
            charge(&mut self.shares.in_records, record.holder, 1);
        }
    }

    /// Removes upstreams for which `is_gone`.
    pub(crate) fn forget_upstreams(&mut self, state: &mut PitState, is_gone: impl Fn(&FaceId) -> bool) {
        let before = state.further_upstreams();
        self.upstreams.retain(&mut state.out_records, |record| !is_gone(&record.face));
        self.shares.out_records.give_back(state.holder, before - state.further_upstreams());
    }

    #[cold]
    fn clear_further(&mut self, state: &mut PitState) {
        self.downstreams.iter(&state.in_records).for_each(|record| self.shares.waiting.count_down(record.face));
        self.charge_further_downstreams(state, Pool::give_back);
        self.shares.out_records.give_back(state.holder, state.further_upstreams());
        self.downstreams.clear(&mut state.in_records);
        self.upstreams.clear(&mut state.out_records);
    }

    /// Removes all records of an entry that ends; must come before the entry is recycled.
    #[inline(always)]
    pub(crate) fn clear(&mut self, state: &mut PitState) {
        match state.in_records.only() {
            Some(record) if state.out_records.len() <= 1 => {
                self.shares.waiting.count_down(record.face);
                state.in_records.forget_first();
                state.out_records.forget_first();
            }
            _ => self.clear_further(state),
        }
        self.shares.entries.give_back(state.holder, 1);
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
    /// Who is charged for it.
    pub(crate) holder: HolderId,
    /// What few Interests have.
    pub(crate) rare: Rare,
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
    /// With [`Rare::LONG`]: bytes outside of the entry that it is charged for.
    pub(crate) long_bytes: u32,
}

/// What few Interests have, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rare(u8);

impl Rare {
    /// The name ends in an implicit digest.
    pub(crate) const BY_DIGEST: Rare = Rare(1);
    /// The Interest is forwarded by its ForwardingHint.
    pub(crate) const BY_HINT: Rare = Rare(2);
    /// The name or what follows it is too long for the entry.
    pub(crate) const LONG: Rare = Rare(4);

    #[inline(always)]
    pub(crate) fn of(by_digest: bool, by_hint: bool, is_long: bool) -> Rare {
        Rare(u8::from(by_digest) | u8::from(by_hint) << 1 | u8::from(is_long) << 2)
    }

    /// All of both.
    #[inline(always)]
    pub(crate) fn and(self, other: Rare) -> Rare {
        Rare(self.0 | other.0)
    }

    /// Whether it has any of these.
    #[inline(always)]
    pub(crate) fn has(self, any: Rare) -> bool {
        self.0 & any.0 != 0
    }
}

impl PitState {
    /// Whether no downstream waits for an answer.
    pub fn nobody_waits(&self) -> bool {
        self.in_records.is_empty()
    }

    /// Upstreams beyond the first.
    fn further_upstreams(&self) -> u64 {
        self.out_records.len().saturating_sub(1) as u64
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
        self.long_bytes = 0;
    }
}

/// With one downstream and one upstream inline: the figure that ARCHITECTURE.md adds up.
const _: () = assert!(size_of::<PitState>() == 168);
const _: () = assert!(size_of::<PitEntry<PitState>>() == 256);
const _: () = assert!(std::mem::offset_of!(PitState, expires) <= 2 * 64 - 8);
