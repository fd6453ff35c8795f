//! The Incoming Data and Nack pipelines of the core role, where a fingerprint may be pending (Yuan15 §5.4.1, §5.5.1).

use crate::{
    DropReason, FaceAttributes, Instant, LinkType,
    ground::{
        measured::PartClock,
        output::{PacketRef, Transmit},
    },
    pipeline::call::{Call, DataAtHand, Received},
    state::parts::Parts,
    verdict::{next_hops::strategy_of, scope::NameScope, strategy::WithoutEntry},
};
use namewire_packet::{FaceId, Interest, NackReason, Nonce, lp::LpHeaders};
use namewire_tables::fingerprint_pit::Satisfied;

/// Distinguishes dead nonces of Nacks that were passed on: the hash of the name is mixed with this.
const NACKED: u64 = 0x6e61_636b_6564_0001;

/// The result of looking Data up by fingerprint.
#[derive(Clone, Copy)]
pub(crate) enum ByFingerprint {
    NotPending,
    /// The entry stays, and this Data has already been sent for every Interest for it so far.
    SentAlready,
    /// The Data is sent to these ports; if the entry stays, the Data carries the mark.
    Pending(Satisfied),
}

impl ByFingerprint {
    /// About how many Interests the Data answers: one for each port, including ports that had the Data before, and two
    /// for an entry that was collided before. A mark from another router, or a name pending beside it, keeps the entry
    /// but does not count.
    pub(crate) fn requests(&self) -> u32 {
        match self {
            ByFingerprint::Pending(found) => (found.ports.len() as u32).max(1 + u32::from(found.was_collided)),
            ByFingerprint::NotPending | ByFingerprint::SentAlready => 0,
        }
    }
}

/// Which ports asked for Data of this fingerprint? The entry stays if the Data also answers a pending name, here or at
/// another worker: the fingerprint may belong to another name, whose Data is still to come.
pub(crate) fn satisfy_fingerprint<C: PartClock>(
    parts: &mut Parts,
    call: &Call<'_, '_, C>,
    at: &DataAtHand<'_, '_>,
) -> ByFingerprint {
    let received = at.received;
    // The Data answers an Interest that was kept by name here: only those have tokens.
    let has_token = received.headers().pit_token.is_some();
    if !has_token && !at.matches.is_empty() {
        count_prefixes_without_token(parts, call, at);
    }
    let Parts { core: Some(core), counters, scratch, .. } = parts else { return ByFingerprint::NotPending };
    // The home of a name, which is visited last, keeps its fingerprint. A match elsewhere belongs to another name.
    // Names that stay on this node have no fingerprint.
    if !at.visits.is_over() || NameScope::of(received.packet.name().value()) != NameScope::Global {
        return ByFingerprint::NotPending;
    }
    let is_marked = received.headers().collided;
    counters.collided_marks_in += u64::from(is_marked);
    counters.collided_marks_ignored += u64::from(is_marked && at.ingress.is_local());
    let collided_upstream = is_marked && !at.ingress.is_local();
    let by_name = !at.matches.is_empty() || at.visits.is_answered();
    let (name_hash, now_ns) = (received.hashes.full_hash(), call.outbound.now.0);
    // No Interest asked for this name since. If anything is pending, it is another name.
    if core.sent_names.is_sent(name_hash) && core.fingerprints.lookup(name_hash, now_ns).is_some() {
        return ByFingerprint::SentAlready;
    }
    let satisfied = core.fingerprints.satisfy(name_hash, now_ns, collided_upstream || by_name || has_token);
    let Some(satisfied) = satisfied else {
        if by_name {
            core.sent_names.send(name_hash);
        }
        return ByFingerprint::NotPending;
    };
    counters.fingerprints_satisfied += 1;
    counters.answers_after_their_names += u64::from(has_token && !by_name);
    if let Some(expiry) = &mut core.expiry
        && core.ports.known(received.face()).is_none_or(|port| !satisfied.ports.contains(port))
    {
        expiry.answered(name_hash, now_ns);
    }
    scratch.served.clear();
    ByFingerprint::Pending(satisfied)
}

/// Counts entries that this Data answers by a prefix of its name. Their own answer may still come, without the token
/// that would identify it.
#[inline(never)]
fn count_prefixes_without_token<C: PartClock>(parts: &mut Parts, call: &Call<'_, '_, C>, at: &DataAtHand<'_, '_>) {
    let takes_none = |face| call.outbound.faces.get(face).is_some_and(|face| !face.wants_tokens());
    for &entry in at.matches {
        let pit = parts.tables.pit_cs.pit(entry);
        if pit.variant().can_be_prefix() && Some(pit.group()) != at.own_name {
            let mut upstreams = parts.tables.records.upstreams(&pit.state);
            let has_gone = upstreams.any(|record| takes_none(record.face));
            parts.counters.prefixes_without_token += u64::from(has_gone);
        }
    }
}

/// Sends Data to the ports that asked for its fingerprint, except those just served by name (`served`) and the face it
/// came from (unless that link is ad hoc).
pub(crate) fn send_to_ports<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    at: &DataAtHand<'_, '_>,
    found: &Satisfied,
) {
    let Parts { core: Some(core), scratch, counters, .. } = parts else { return };
    let headers = LpHeaders {
        incoming_face_id: Some(at.received.face()),
        congestion_mark: at.received.headers().congestion_mark,
        collided: found.collided,
        ..LpHeaders::default()
    };
    let packet = PacketRef::Frame(at.received.frame);
    let mut was_sent = false;
    for face in found.ports.iter().map(|port| core.ports.face(port)) {
        if at.goes_back_to(face) || call.outbound.faces.get(face).is_none() {
            continue;
        }
        was_sent = true;
        if scratch.served.iter().any(|(served, _)| *served == face) {
            continue;
        }
        call.outbound.out.transmits.push(Transmit { face, headers, packet });
        counters.out_data += 1;
        counters.collided_marks_out += u64::from(headers.collided);
    }
    let name_hash = at.received.hashes.full_hash();
    if was_sent && (found.collided || core.sent_names.is_known(name_hash)) {
        core.sent_names.send(name_hash);
    }
}

/// A Nack for an Interest without an entry is sent to the ports that asked for the fingerprint. A downstream that asked
/// for another name sees by name and nonce that the Nack is not for it. A Nack is sent once for each name and nonce, so
/// that routers whose entries stay do not send it back and forth.
pub(crate) fn core_nack<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    received: &Received<'_, '_, Interest<'_>>,
    reason: NackReason,
) {
    let Parts { core, tables, counters, .. } = parts;
    let (now_ns, name_hash) = (call.outbound.now.0, received.hashes.full_hash());
    let is_new_to_us = |nonce: &Nonce| {
        let has = |name_hash| tables.dead_nonces.contains(name_hash, nonce.to_u32(), now_ns);
        has(name_hash) && !has(name_hash ^ NACKED)
    };
    let core = core.as_deref_mut().zip(received.packet.nonce().filter(is_new_to_us));
    let Some((core, nonce)) = core else { return counters.drop(DropReason::UnmatchedNack) };
    let found = call.fib.longest_prefix_match(received.packet.name().value(), received.hashes);
    if call.strategies.get(strategy_of(found)).without_entry() == Some(WithoutEntry::All) {
        return counters.drop(DropReason::NackNotPassedOn); // the others may still answer
    }
    // The fingerprint stays, since it may belong to another name by now. A forgotten one would lose Data; a superfluous
    // one expires.
    let Some(pending) = core.fingerprints.lookup(name_hash, now_ns) else {
        return counters.drop(DropReason::UnmatchedNack);
    };
    tables.dead_nonces.insert(name_hash ^ NACKED, nonce.to_u32(), now_ns);
    let sent_before = call.outbound.out.transmits.len();
    for face in pending.ports.iter().map(|port| core.ports.face(port)) {
        let takes_nacks = |face: &FaceAttributes| face.link_type == LinkType::PointToPoint;
        if face == received.face() || !call.outbound.faces.get(face).is_some_and(takes_nacks) {
            continue;
        }
        let headers = LpHeaders { nack: Some(reason), ..LpHeaders::default() };
        call.outbound.out.transmits.push(Transmit { face, headers, packet: PacketRef::Frame(received.frame) });
        counters.out_nacks += 1;
    }
    if call.outbound.out.transmits.len() == sent_before {
        counters.drop(DropReason::NackNotPassedOn);
    }
}

/// Whether the link duplicated an Interest: a copy came by the same face while the fingerprint is pending. A Nack would
/// then end the pending Interest.
pub(crate) fn is_doubled(parts: &Parts, now: Instant, from: FaceId, name_hash: u64) -> bool {
    let Some(core) = &parts.core else { return false };
    let port = core.ports.known(from);
    let pending = port.and_then(|_| core.fingerprints.lookup(name_hash, now.0));
    port.zip(pending).is_some_and(|(port, pending)| pending.ports.contains(port))
}
