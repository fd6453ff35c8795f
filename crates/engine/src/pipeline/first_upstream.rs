//! The first upstream of a PIT entry: the fast path of the Outgoing Interest pipeline ([`crate::verdict::outgoing`])
//! for a new Interest whose strategy has named one next hop and needs nothing else.
//!
//! It is a separate file because strategies use `outgoing.rs`, and this file uses the code that calls strategies.

use crate::{
    FaceAttributes, Instant,
    ground::{measured::PartClock, output::Transmit},
    pipeline::call::{Call, InterestAtHand, OutgoingInterest},
    state::{parts::Parts, pit_state::OutRecord, record_chain::RecordPool},
};
use namewire_packet::{FaceId, lp::LpHeaders};
use namewire_tables::PitId;

/// The upstream of an Interest that begins a PIT entry.
pub(super) struct FirstUpstream<'v> {
    pub(super) face: FaceId,
    pub(super) attributes: &'v FaceAttributes,
    /// It is not the only next hop.
    pub(super) has_others: bool,
}

/// Outgoing Interest for an entry that has no upstream yet. The caller has checked that the face is eligible. `expires`
/// is the time of the downstream's record.
#[inline(always)]
pub(super) fn send_first<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    at: &InterestAtHand<'_, 'v>,
    entry: PitId,
    to: FirstUpstream<'v>,
    expires: Instant,
) {
    let InterestAtHand { received, onward: OutgoingInterest { packet, nonce, .. }, .. } = *at;
    let (outbound, face, tables) = (&mut call.outbound, to.face, &mut parts.tables);
    let non_discovery = received.headers().non_discovery;
    let pit = tables.pit_cs.pit_mut(entry);
    let group = pit.group();
    pit.state.expiry_watched |= to.has_others;
    let record = RecordPool::begin(&mut pit.state.out_records);
    let asked = (face, to.attributes.holder);
    *record = OutRecord::first(asked, nonce, non_discovery, (outbound.now, expires));
    parts.counters.out_interests += 1;
    let headers = LpHeaders {
        incoming_face_id: Some(received.face()),
        congestion_mark: received.headers().congestion_mark,
        non_discovery,
        ..LpHeaders::default()
    };
    let token = to.attributes.wants_tokens().then(|| tables.token(group));
    outbound.out.transmit_interest(Transmit { face, headers, packet }, token);
}
