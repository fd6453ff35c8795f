//! The Incoming Data pipeline (forwarding §1; NFD's developer guide §4.3.1).
//!
//! Read [`incoming_data`] from top to bottom to learn what happens when Data arrives.

use crate::{
    DropReason, UnsolicitedPolicy,
    batch::{
        measured::{PartClock, Stage},
        output::{HandOver, PacketRef, Transmit},
    },
    core::data::{ByFingerprint, satisfy_fingerprint, send_to_ports},
    dispatch::{
        token::WorkerToken,
        visits::{Visits, Workers},
    },
    parts::Parts,
    pipeline::{
        call::{Call, DataAtHand, Received},
        content_store::{Asked, content_store_insert, index_under_interest_name},
        scope::NameScope,
        watched::{tell, wait_for_others},
    },
    strategy::answer::AnswerVerdict,
};
use namewire_packet::{
    Data,
    lp::LpHeaders,
    tlv::{self, types},
};
use namewire_tables::{GroupId, PitId, Variant, dead_nonce_list::DEFAULT_LIFETIME_NS, hash_name};

/// Bytes of an implicit digest component.
const DIGEST_COMPONENT_BYTES: usize = 34;

/// Processes Data.
pub(crate) fn incoming_data<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    received: &Received<'_, 'v, Data<'_>>,
) {
    parts.counters.in_data += u64::from(received.visits.is_first);
    let Some(ingress) = call.outbound.faces.get(received.face) else {
        return parts.counters.drop(DropReason::UnknownFace);
    };
    if NameScope::of(received.packet.name().value()).forbids(ingress) {
        return parts.counters.drop(DropReason::ScopeViolation);
    }
    let by_token = matches_by_token(parts, received);
    let Some(visits) = visits_with_token_checked(parts, call, received, by_token) else { return };
    let mut matches = std::mem::take(&mut parts.scratch.matches);
    let own_name = collect_matches(parts, received, by_token, &mut matches);
    let mut at = DataAtHand { received, ingress, visits, own_name, matches: &matches };
    call.clock.end_of_part(Stage::Verdict);
    let by_fingerprint = match parts.core.is_some() {
        true => satisfy_fingerprint(parts, call, &at),
        false => ByFingerprint::NotPending,
    };
    if !at.matches.is_empty() {
        at.visits.answered = true;
        answer(parts, call, &at, by_fingerprint.requests());
    } else {
        data_without_entry(parts, call, &at, &by_fingerprint);
    }
    if let ByFingerprint::Pending(found) = &by_fingerprint {
        send_to_ports(parts, call, &at, found);
    }
    if !at.visits.is_over() {
        call.outbound.out.hand_over.push(HandOver { frame: received.frame, visits: at.visits.going_on() });
    }
    parts.scratch.matches = matches;
}

/// No Interest is pending for it here by name. It is stored if one is pending by fingerprint, or was pending at another
/// worker.
fn data_without_entry<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    at: &DataAtHand<'_, '_>,
    by_fingerprint: &ByFingerprint,
) {
    let requests = by_fingerprint.requests();
    if requests > 0 || at.visits.is_over() && at.visits.answered {
        // An Interest for the Data's own name will come here, to its home, and find it.
        if requests == 0 {
            parts.tables.pit_cs.cs_request(at.received.hashes.full_hash());
        }
        content_store_insert(parts, call.outbound.now, at.received, at.own_name, Asked::By(requests));
    } else if matches!(by_fingerprint, ByFingerprint::SentAlready) {
        parts.counters.drop(DropReason::DataSentAlready);
    } else if at.visits.is_over() {
        data_unsolicited(parts, call, at);
    }
}

/// The visits that remain after this worker. A token that matched nothing here is void: then the Data visits the
/// workers that may be waiting for the name. `None` if the packet was handed over, because this worker is not among
/// them, or not the first of them.
#[inline(always)]
fn visits_with_token_checked<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    received: &Received<'_, '_, Data<'_>>,
    by_token: Option<GroupId>,
) -> Option<Visits> {
    let came_by_token = received.headers.pit_token.is_some() && received.visits.is_alone();
    if by_token.is_some() || !came_by_token || parts.tables.dispatcher.workers() == 1 {
        return Some(received.visits);
    }
    let worker = parts.tables.worker;
    let mut visits = parts.tables.dispatcher.by_name(received.packet.name(), &mut parts.scratch.dispatch_hashes);
    let is_alone = visits.left() == Workers::only(worker);
    parts.counters.redispatched += u64::from(!is_alone);
    if visits.take_only(worker) {
        return Some(visits);
    }
    call.outbound.out.hand_over.push(HandOver { frame: received.frame, visits: visits.going_on() });
    None
}

/// Stores the Data and sends it to every downstream that asked here by name. `by_fingerprint`: how many asked by
/// fingerprint, perhaps the same faces.
#[inline(always)]
fn answer<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    at: &DataAtHand<'_, 'v>,
    by_fingerprint: u32,
) {
    let DataAtHand { received, own_name, matches, .. } = *at;
    let tables = &mut parts.tables;
    let asked: u32 = matches.iter().map(|&entry| tables.state(entry).in_records.len() as u32).sum();
    let is_own_name = |&entry: &PitId| Some(tables.pit_cs.pit(entry).group()) == own_name;
    if by_fingerprint == 0 && !matches.iter().any(is_own_name) {
        // Only requested by a prefix or digest: the policy compares the Data's own name.
        tables.pit_cs.cs_request(received.hashes.full_hash());
    }
    let asked = Asked::By(asked + by_fingerprint);
    let stored = content_store_insert(parts, call.outbound.now, received, own_name, asked);
    call.clock.end_of_part(Stage::Insert);
    parts.scratch.served.clear();
    let several = matches.len() > 1 || by_fingerprint > 0;
    for &entry in matches {
        let pit = parts.tables.pit_cs.pit(entry);
        let is_own_name = Some(pit.group()) == own_name;
        let is_ordinary = !pit.state.watched && received.headers.announcement_bytes == 0;
        let verdict = if is_ordinary { AnswerVerdict::NOTHING } else { tell(parts, call, received, entry) };
        if let Some(stored) = stored.filter(|_| !is_own_name) {
            index_under_interest_name(parts, entry, stored);
        }
        send_to_downstreams(parts, call, at, entry, several, &verdict);
        satisfy(parts, call, received, entry, &verdict);
    }
}

/// The name group that our token names, if it still exists and this Data answers an Interest pending there.
#[inline(always)]
fn matches_by_token(parts: &Parts, received: &Received<'_, '_, Data<'_>>) -> Option<GroupId> {
    let token = WorkerToken::decode(received.headers.pit_token.as_ref()?)?;
    if token.worker != parts.tables.worker {
        return None;
    }
    let tables = &parts.tables.pit_cs;
    let group = tables.group_by_token(token.group)?;
    let asked = tables.group_name(group);
    let name = received.packet.name().value();
    let fits = |variant: Variant| {
        asked == name || asks_by_digest(asked, name) || variant.can_be_prefix() && name.starts_with(asked)
    };
    // The group can outlive its Interests: the Content Store may know the name.
    let pending = tables.pit_of_group(group).into_iter().zip(Variant::ALL);
    pending.into_iter().any(|(entry, variant)| entry.is_some() && fits(variant)).then_some(group)
}

/// Every pending entry that the Data satisfies: the token's name group with all its variants, the Data's own name,
/// shorter names with CanBePrefix, and the full name if an Interest asks by digest. Returns the group of the Data's own
/// name.
#[inline(always)]
fn collect_matches(
    parts: &mut Parts,
    received: &Received<'_, '_, Data<'_>>,
    by_token: Option<GroupId>,
    matches: &mut Vec<PitId>,
) -> Option<GroupId> {
    let (name, hashes) = (received.packet.name(), received.hashes);
    let (tables, cs) = (&parts.tables, &parts.tables.pit_cs);
    matches.clear();
    let mut add_group = |group: GroupId, exact_too: bool| {
        let entries = cs.pit_of_group(group);
        for (entry, variant) in entries.into_iter().zip(Variant::ALL) {
            if let Some(entry) = entry.filter(|_| exact_too || variant.can_be_prefix()) {
                matches.push(entry);
            }
        }
    };
    let own_name = match by_token {
        Some(group) if cs.group_name(group) == name.value() => Some(group),
        _ => cs.find_hinted(hashes.full_hash(), name.value(), received.hints.group),
    };
    if let Some(group) = own_name {
        add_group(group, true);
    }
    let lengths = if tables.has_pending_prefixes(None) { name.len() } else { 0 };
    for components in (0..lengths).rev() {
        if tables.has_pending_prefixes(Some(components)) {
            let prefix = &name.value()[..hashes.prefix_bytes(components)];
            if let Some(group) = cs.find(hashes.prefix_hash(components), prefix) {
                add_group(group, false);
            }
        }
    }
    if tables.has_pending_digests(name.len() + 1) {
        let full_name = &mut parts.scratch.name_copy;
        full_name.clear();
        full_name.extend_from_slice(name.value());
        tlv::write_tlv(full_name, types::IMPLICIT_SHA256_DIGEST, &received.packet.implicit_digest());
        if let Some(group) = cs.find(hash_name(cs.key(), full_name), full_name) {
            add_group(group, true);
        }
    }
    own_name
}

/// Sends one copy per distinct downstream (face, token), but not where the Data came from (unless the link is ad hoc).
/// `several`: other entries may name the same downstream.
#[inline(always)]
fn send_to_downstreams<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    at: &DataAtHand<'_, '_>,
    entry: PitId,
    several: bool,
    verdict: &AnswerVerdict,
) {
    let (outbound, received, served) = (&mut call.outbound, at.received, &mut parts.scratch.served);
    for record in parts.tables.records.downstreams(parts.tables.state(entry)) {
        let may_go = !at.goes_back_to(record.face) && record.expires > outbound.now;
        let Some(downstream) = outbound.faces.get(record.face).filter(|_| may_go) else { continue };
        // Beyond the room reserved a downstream that asked twice may get two copies.
        let has_room = served.len() < served.capacity();
        if several && has_room && !served.insert((record.face, record.token)) {
            continue;
        }
        let headers = LpHeaders {
            pit_token: record.token,
            incoming_face_id: Some(received.face),
            congestion_mark: received.headers.congestion_mark,
            ..LpHeaders::default()
        };
        let packet = PacketRef::Frame(received.frame);
        let transmit = Transmit { face: record.face, headers, packet };
        if verdict.announced.is_some() && !record.non_discovery && !downstream.is_local() {
            outbound.out.transmits.push(verdict.with_announcement(transmit));
        } else {
            outbound.out.transmits.push(transmit);
        }
        parts.counters.out_data += 1;
    }
}

/// Marks the entry satisfied and finalizes it at once, unless the strategy wants the answers of the other upstreams.
#[inline(always)]
fn satisfy<C: PartClock>(
    parts: &mut Parts,
    call: &Call<'_, '_, C>,
    received: &Received<'_, '_, Data<'_>>,
    entry: PitId,
    verdict: &AnswerVerdict,
) {
    let (now, from) = (call.outbound.now, received.face);
    let pit = parts.tables.pit_cs.pit(entry);
    parts.counters.satisfied += u64::from(!pit.state.satisfied);
    if let Some(until) = verdict.waits_until
        && parts.tables.records.upstreams(&pit.state).any(|record| record.face != from && record.is_pending(now))
    {
        return wait_for_others(&mut parts.tables, now, from, entry, until);
    }
    // §2.1: a satisfied entry keeps its nonces only if the answer will be stale before they could loop back.
    let is_soon_stale = received.packet.freshness_ms() < DEFAULT_LIFETIME_NS / 1_000_000;
    // Beyond NFD: also if copies went to other upstreams. They may come back after the entry has ended. Then only a
    // Content Store that still has the Data would stop them (sim/tests/storm.rs: without one, 40 Interests became
    // 120,000).
    let copies_under_way = pit.state.out_records.len() > 1;
    let keep_nonces = copies_under_way || pit.variant().must_be_fresh() && is_soon_stale;
    parts.tables.remove_entry(now, entry, keep_nonces);
}

/// Data unsolicited: stored if the policy, its headers and the Content Store allow it, else dropped.
#[cold]
fn data_unsolicited<C: PartClock>(parts: &mut Parts, call: &Call<'_, '_, C>, at: &DataAtHand<'_, '_>) {
    let admit = match parts.config.unsolicited {
        UnsolicitedPolicy::DropAll => false,
        UnsolicitedPolicy::AdmitLocal => at.ingress.is_local(),
        UnsolicitedPolicy::AdmitNetwork => !at.ingress.is_local(),
        UnsolicitedPolicy::AdmitAll => true,
    };
    let now = call.outbound.now;
    if !admit || content_store_insert(parts, now, at.received, at.own_name, Asked::Unasked).is_none() {
        parts.counters.drop(DropReason::UnsolicitedData);
    }
}

/// True if `asked` is `name` and one implicit digest component.
fn asks_by_digest(asked: &[u8], name: &[u8]) -> bool {
    asked.len() == name.len() + DIGEST_COMPONENT_BYTES
        && asked.starts_with(name)
        && asked[name.len()..].starts_with(&[types::IMPLICIT_SHA256_DIGEST as u8, 32])
}
