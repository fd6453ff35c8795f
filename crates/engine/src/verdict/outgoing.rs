//! What is sent: the Outgoing Interest and Outgoing Nack pipelines (forwarding §1; NFD's developer guide §4.2.3 and
//! §4.4.2).

use crate::{
    DropReason, LinkType,
    ground::output::{Outbound, PacketRef, Transmit},
    state::parts::Parts,
    verdict::trigger::Trigger,
};
use namewire_packet::{FaceId, Interest, NackReason, Nonce, interest::write_with_nonce, lp::LpHeaders};
use namewire_tables::PitId;

/// Outgoing Interest: writes the out-record, adds our token where the link wants one, and sends. The caller has checked
/// that the face is eligible.
///
/// # Errors
/// Why it was not sent. Nothing is counted, since the Interest may leave through another face.
pub(crate) fn outgoing_interest(
    parts: &mut Parts,
    outbound: &mut Outbound<'_, '_>,
    entry: PitId,
    face: FaceId,
    trigger: &Trigger,
) -> Result<(), DropReason> {
    let attributes = outbound.faces.get(face).ok_or(DropReason::UnknownFace)?;
    if trigger.hop_limit == Some(0) && !attributes.is_local() {
        return Err(DropReason::HopLimitZero);
    }
    let packet = match trigger.packet {
        Some(packet) => packet,
        None => rewrite_stored_interest(parts, outbound, entry, trigger.nonce)?,
    };
    let tables = &mut parts.tables;
    let token = attributes.wants_tokens().then(|| tables.token(tables.pit_cs.pit(entry).group()));
    let expires = outbound.now.plus_ms(trigger.lifetime_ms.min(parts.config.max_lifetime_ms));
    let (state, records) = tables.state_mut(entry);
    let Some(record) = records.upstream_or_insert(state, face, attributes.holder) else {
        return Err(DropReason::OutRecordsFull);
    };
    record.renew(trigger.nonce, trigger.non_discovery, outbound.now, expires);
    parts.counters.out_interests += 1;
    let headers = LpHeaders {
        incoming_face_id: Some(trigger.ingress),
        congestion_mark: trigger.congestion_mark,
        non_discovery: trigger.non_discovery,
        ..LpHeaders::default()
    };
    outbound.out.transmit_interest(Transmit { face, headers, packet }, token);
    Ok(())
}

/// The Interest that the entry keeps, with another nonce, if there is room for it.
fn rewrite_stored_interest(
    parts: &mut Parts,
    outbound: &mut Outbound<'_, '_>,
    entry: PitId,
    nonce: Nonce,
) -> Result<PacketRef, DropReason> {
    if outbound.out.is_full_of_rewritten() {
        return Err(DropReason::RewrittenFull);
    }
    let copy = &mut parts.scratch.interest_copy;
    copy.clear();
    parts.tables.pit_cs.pit_interest(entry, copy);
    Ok(outbound.out.rewrite(|out| {
        if let Ok(interest) = Interest::parse(copy) {
            write_with_nonce(&interest, nonce, out);
        }
    }))
}

/// Outgoing Nack: quotes the Interest, returns the downstream's token, and erases its in-record. On links with several
/// peers it sends nothing, and the downstream keeps waiting.
///
/// §1 quotes the downstream's last Interest. Here the Nack quotes the entry's first Interest with that downstream's
/// last nonce. Name, selectors and parameters are the same by the entry's key; lifetime, HopLimit and ForwardingHint
/// are those of the first downstream. Keeping each downstream's Interest would cost a copy per in-record for Nacks
/// alone.
pub(crate) fn outgoing_nack(
    parts: &mut Parts,
    outbound: &mut Outbound<'_, '_>,
    entry: PitId,
    face: FaceId,
    reason: NackReason,
) {
    let Some(&record) = parts.tables.records.downstream(parts.tables.state(entry), face) else { return };
    let attributes = outbound.faces.get(face);
    if attributes.is_none_or(|attributes| attributes.link_type != LinkType::PointToPoint) {
        return;
    }
    let packet = match rewrite_stored_interest(parts, outbound, entry, record.nonce) {
        Ok(packet) => packet,
        Err(reason) => return parts.counters.drop(reason),
    };
    let (state, records) = parts.tables.state_mut(entry);
    records.remove_downstreams(state, |record| record.face == face);
    parts.counters.out_nacks += 1;
    let headers = LpHeaders { nack: Some(reason), pit_token: record.token, ..LpHeaders::default() };
    outbound.out.transmits.push(Transmit { face, headers, packet });
}
