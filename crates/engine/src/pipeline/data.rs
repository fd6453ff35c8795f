//! The Incoming Data pipeline (forwarding §1; NFD's developer guide §4.3.1).
//!
//! The steps of one Data, in order:
//!
//! | step | may end it | function |
//! | --- | --- | --- |
//! | its face, and the scope of its name | dropped | [`incoming_data`] |
//! | the name group of its name, and the one that its PIT token names | | [`name_groups`] |
//! | the usual case: one pending entry, asked of this face alone | | [`only_match`], [`answer_only`] |
//! | any other case: all entries that it satisfies, if this face was asked | unsolicited | [`answer_all`] |
//! | it is stored, if policy and headers allow | | [`content_store_insert`] |
//! | a copy to each downstream that still waits | | [`send_to_downstreams`] |
//! | but none back to its ingress face, unless that is ad hoc | | [`may_go_to`], [`DataAtHand::goes_back_to`] |
//! | the entry ends | | [`satisfy`] |
//! | it goes on to the next worker that may wait for it | | [`hand_over`] |

use crate::{
    Counters, DropReason, FaceAttributes, Instant, UnsolicitedPolicy,
    dispatch::{
        token::WorkerToken,
        visits::{Visits, Workers},
    },
    ground::{
        measured::{PartClock, Stage},
        output::{HandOver, Outbound, PacketRef, Transmit},
    },
    pipeline::{
        call::{Call, DataAtHand, Received},
        content_store::{Asked, content_store_insert, index_under_interest_name},
        core_data::{ByFingerprint, satisfy_fingerprint, send_to_ports},
        watched::{tell, wait_for_others},
    },
    state::{
        parts::Parts,
        pit_state::{InRecord, PitState},
    },
    verdict::{answer::AnswerVerdict, asked::was_asked, scope::NameScope},
};
use namewire_packet::{
    Data,
    lp::LpHeaders,
    tlv::{self, types},
};
use namewire_tables::{CsId, GroupId, PitCs, PitId, Variant, dead_nonce_list::DEFAULT_LIFETIME_NS, hash_name};

/// Bytes of an implicit digest component.
const DIGEST_COMPONENT_BYTES: usize = 34;

/// Processes Data.
#[inline(always)]
pub(crate) fn incoming_data<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    received: &Received<'_, 'v, Data<'_>>,
) {
    parts.counters.in_data += u64::from(received.visits().is_first());
    let Some(ingress) = call.outbound.faces.get(received.face()) else {
        return parts.counters.drop(DropReason::UnknownFace);
    };
    let name = received.packet.name().value();
    if let Some(reason) = NameScope::forbids_data(name, received.face(), ingress) {
        return parts.counters.drop(reason);
    }
    let (own_name, by_token) = name_groups(parts, received);
    let is_expected = by_token == own_name && by_token.is_some() || !came_by_token(parts, received);
    match only_match(parts, received, own_name) {
        Some(entry) if is_expected => answer_only(parts, call, received, ingress, entry, own_name),
        _ => answer_all(parts, call, received, ingress, own_name, by_token),
    }
}

/// The name group of the Data's own name, and the one that its PIT token tells.
#[inline(always)]
fn name_groups(parts: &Parts, received: &Received<'_, '_, Data<'_>>) -> (Option<GroupId>, Option<GroupId>) {
    if received.hints.own_name.is_some() {
        return (received.hints.own_name, received.hints.own_name);
    }
    let (cs, name) = (&parts.tables.pit_cs, received.packet.name().value());
    let by_token = group_of_token(parts, received);
    match by_token.is_some_and(|group| cs.group_name(group) == name) {
        true => (by_token, by_token),
        false => (cs.find_probed(received.hashes.full_hash(), name, received.hints.group), by_token),
    }
}

/// The pending entry that the Data satisfies, if it is the only one, its only upstream is the Data's face, and nothing
/// is to be done beside.
#[inline(always)]
fn only_match(parts: &Parts, received: &Received<'_, '_, Data<'_>>, own_name: Option<GroupId>) -> Option<PitId> {
    let tables = &parts.tables;
    let entry = tables.pit_cs.only_pit_of_group(own_name?)?;
    let is_alone = !tables.has_pending_prefixes(None) && !tables.has_pending_digests(received.packet.name().len() + 1);
    let state = tables.state(entry);
    let is_plain = received.headers().lead_bytes == 0 && !state.watched;
    let was_asked = state.out_records.only().is_some_and(|record| record.face == received.face());
    (is_alone && is_plain && was_asked && parts.core.is_none()).then_some(entry)
}

/// The usual case: stores the Data and sends it to the downstreams of its only match.
#[inline(always)]
fn answer_only<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    received: &Received<'_, 'v, Data<'_>>,
    ingress: &'v FaceAttributes,
    entry: PitId,
    own_name: Option<GroupId>,
) {
    call.clock.end_of_part(Stage::Verdict);
    let asked = Asked::By(parts.tables.state(entry).in_records.len() as u32);
    content_store_insert(parts, call.outbound.now, received, own_name, asked);
    call.clock.end_of_part(Stage::Insert);
    let visits = *received.visits();
    let at = DataAtHand { received, ingress, visits, own_name, matches: &[] };
    match parts.tables.state(entry).in_records.only() {
        Some(record) => send_to(&mut call.outbound, &mut parts.counters, &at, record),
        None => send_to_downstreams(parts, call, at, entry, false, AnswerVerdict::NOTHING),
    }
    satisfy(parts, call, received, entry, &AnswerVerdict::NOTHING, true);
    if !received.visits().is_over() {
        hand_over(call, received, visits.with_answer());
    }
}

/// Any case: there may be no match or several, the core role, an announcement, a strategy that wants to see the Data,
/// or a void token.
#[inline(never)]
fn answer_all<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    received: &Received<'_, 'v, Data<'_>>,
    ingress: &'v FaceAttributes,
    own_name: Option<GroupId>,
    by_token: Option<GroupId>,
) {
    let Some(visits) = visits_with_token_checked(parts, call, received, by_token) else { return };
    let mut matches = std::mem::take(&mut parts.scratch.matches);
    collect_matches(parts, received, own_name, &mut matches);
    let pending = matches.len();
    matches.retain(|&entry| was_asked(parts, call.outbound.faces, (received.face(), ingress), entry));
    let mut at = DataAtHand { received, ingress, visits, own_name, matches: &matches };
    if matches.len() < pending {
        at.visits = at.visits.with_refusal();
    }
    call.clock.end_of_part(Stage::Verdict);
    let by_fingerprint = match parts.core.is_some() {
        true => satisfy_fingerprint(parts, call, &at),
        false => ByFingerprint::NotPending,
    };
    if !at.matches.is_empty() {
        at.visits = at.visits.with_answer();
        answer(parts, call, &at, by_fingerprint.requests());
    } else {
        data_without_entry(parts, call, &at, &by_fingerprint);
    }
    if let ByFingerprint::Pending(found) = &by_fingerprint {
        send_to_ports(parts, call, &at, found);
    }
    if !at.visits.is_over() {
        hand_over(call, received, at.visits);
    }
    parts.scratch.matches = matches;
}

/// The Data goes on to the next worker.
#[cold]
fn hand_over<C: PartClock>(call: &mut Call<'_, '_, C>, received: &Received<'_, '_, Data<'_>>, visits: Visits) {
    call.outbound.out.hand_over.push(HandOver { frame: received.frame, visits: visits.going_on() });
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
    if requests > 0 || at.visits.is_over() && at.visits.is_answered() {
        // An Interest for the Data's own name will come here, to its home, and find it.
        if requests == 0 {
            parts.tables.pit_cs.cs_request(at.received.hashes.full_hash());
        }
        store(parts, call.outbound.now, at, Asked::By(requests));
    } else if matches!(by_fingerprint, ByFingerprint::SentAlready) {
        parts.counters.drop(DropReason::DataSentAlready);
    } else if at.visits.is_over() && at.visits.is_refused() {
        parts.counters.drop(DropReason::DataNotAsked);
    } else if at.visits.is_over() {
        data_unsolicited(parts, call, at);
    }
}

/// [`content_store_insert`] as a call; [`answer_only`] has the other copy of the code.
#[inline(never)]
fn store(parts: &mut Parts, now: Instant, at: &DataAtHand<'_, '_>, asked: Asked) -> Option<CsId> {
    content_store_insert(parts, now, at.received, at.own_name, asked)
}

/// Whether a token alone brought the Data to this worker, and there are others.
#[inline(always)]
fn came_by_token(parts: &Parts, received: &Received<'_, '_, Data<'_>>) -> bool {
    received.headers().pit_token.is_some() && received.visits().is_alone() && parts.tables.dispatcher.workers() > 1
}

/// The visits that remain after this worker. A token that matches nothing here is void: then the Data visits the
/// workers that may be waiting for the name. `None` if the packet was handed over, because this worker is not among
/// them, or not the first of them.
fn visits_with_token_checked<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    received: &Received<'_, '_, Data<'_>>,
    by_token: Option<GroupId>,
) -> Option<Visits> {
    let is_sound = |group| is_pending_for(&parts.tables.pit_cs, group, received.packet);
    if !came_by_token(parts, received) || by_token.is_some_and(is_sound) {
        return Some(*received.visits());
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
    let stored = store(parts, call.outbound.now, at, asked);
    call.clock.end_of_part(Stage::Insert);
    parts.scratch.served.clear();
    let several = matches.len() > 1 || by_fingerprint > 0;
    for &entry in matches {
        let pit = parts.tables.pit_cs.pit(entry);
        let is_own_name = Some(pit.group()) == own_name;
        let is_ordinary = !pit.state.watched && received.headers().lead_bytes == 0;
        let verdict = if is_ordinary { AnswerVerdict::NOTHING } else { tell(parts, call, received, entry) };
        if let Some(stored) = stored.filter(|_| !is_own_name) {
            index_under_interest_name(parts, entry, stored);
        }
        send_to_downstreams(parts, call, *at, entry, several, verdict);
        satisfy(parts, call, received, entry, &verdict, false);
    }
}

/// The name group that our token names, if it still exists. It may have another name by now.
#[inline(always)]
fn group_of_token(parts: &Parts, received: &Received<'_, '_, Data<'_>>) -> Option<GroupId> {
    let token = WorkerToken::decode(received.headers().pit_token.as_ref()?)?;
    let is_ours = token.worker == parts.tables.worker;
    parts.tables.pit_cs.group_by_token(token.group).filter(|_| is_ours)
}

/// Whether an Interest that the Data answers is pending in the group. The group can outlive its Interests: the Content
/// Store may know the name.
fn is_pending_for(pit_cs: &PitCs<PitState>, group: GroupId, data: &Data<'_>) -> bool {
    let (asked, name) = (pit_cs.group_name(group), data.name().value());
    let fits = |variant: Variant| {
        asked == name || asks_by_digest(asked, name) || variant.can_be_prefix() && name.starts_with(asked)
    };
    let pending = pit_cs.pit_of_group(group).into_iter().zip(Variant::ALL);
    pending.into_iter().any(|(entry, variant)| entry.is_some() && fits(variant))
}

/// Every pending entry that the Data satisfies: those of its own name, shorter names with CanBePrefix, and the full
/// name if an Interest asks by digest.
fn collect_matches(
    parts: &mut Parts,
    received: &Received<'_, '_, Data<'_>>,
    own_name: Option<GroupId>,
    matches: &mut Vec<PitId>,
) {
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
}

/// Sends one copy per distinct downstream (face, token). `several`: other entries may name the same downstream.
#[inline(never)]
fn send_to_downstreams<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    at: DataAtHand<'_, '_>,
    entry: PitId,
    several: bool,
    verdict: AnswerVerdict,
) {
    let (outbound, served) = (&mut call.outbound, &mut parts.scratch.served);
    for record in parts.tables.records.downstreams(parts.tables.state(entry)) {
        let Some(downstream) = may_go_to(outbound, &at, record) else { continue };
        // Beyond the room reserved a downstream that asked twice may get two copies.
        let has_room = served.len() < served.capacity();
        if several && has_room && !served.insert((record.face, record.token)) {
            continue;
        }
        let wants_announcements = || !record.non_discovery && !downstream.is_local();
        outbound.out.transmits.push(verdict.led(transmit(&at, record), wants_announcements));
        parts.counters.out_data += 1;
    }
}

/// Sends the Data to one downstream.
#[inline(always)]
fn send_to(outbound: &mut Outbound<'_, '_>, counters: &mut Counters, at: &DataAtHand<'_, '_>, record: &InRecord) {
    if may_go_to(outbound, at, record).is_some() {
        outbound.out.transmits.push(transmit(at, record));
        counters.out_data += 1;
    }
}

/// The downstream, if it still waits and the Data did not come from there (unless the link is ad hoc).
#[inline(always)]
fn may_go_to<'v>(
    outbound: &Outbound<'v, '_>,
    at: &DataAtHand<'_, '_>,
    record: &InRecord,
) -> Option<&'v FaceAttributes> {
    let may_go = !at.goes_back_to(record.face) && record.expires > outbound.now;
    outbound.faces.get(record.face).filter(|_| may_go)
}

#[inline(always)]
fn transmit(at: &DataAtHand<'_, '_>, record: &InRecord) -> Transmit {
    let headers = LpHeaders {
        pit_token: record.token,
        incoming_face_id: Some(at.received.face()),
        congestion_mark: at.received.headers().congestion_mark,
        ..LpHeaders::default()
    };
    Transmit { face: record.face, headers, packet: PacketRef::Frame(at.received.frame) }
}

/// Marks the entry satisfied and finalizes it at once, unless the strategy wants the answers of the other upstreams.
/// `one_upstream`: the caller knows that there is no other.
#[inline(always)]
fn satisfy<C: PartClock>(
    parts: &mut Parts,
    call: &Call<'_, '_, C>,
    received: &Received<'_, '_, Data<'_>>,
    entry: PitId,
    verdict: &AnswerVerdict,
    one_upstream: bool,
) {
    let (now, from) = (call.outbound.now, received.face());
    if parts.tables.upstream_times.takes(received.hashes.full_hash()) {
        parts.tables.note_answer(now, entry, from);
    }
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
    let copies_under_way = !one_upstream && pit.state.out_records.len() > 1;
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
    if !admit || store(parts, now, at, Asked::Unasked).is_none() {
        parts.counters.drop(DropReason::UnsolicitedData);
    }
}

/// True if `asked` is `name` and one implicit digest component.
fn asks_by_digest(asked: &[u8], name: &[u8]) -> bool {
    asked.len() == name.len() + DIGEST_COMPONENT_BYTES
        && asked.starts_with(name)
        && asked[name.len()..].starts_with(&[types::IMPLICIT_SHA256_DIGEST as u8, 32])
}
