//! The Incoming Interest pipeline (forwarding §1; NFD's developer guide §4.2.1).
//!
//! The steps of one Interest, in order:
//!
//! | step | may end it | function |
//! | --- | --- | --- |
//! | it visits other workers' stores first | yes | [`visiting_interest`] |
//! | its face, HopLimit and scope; a nonce if there is none; no hint that led here | dropped | [`interest_at_home`] |
//! | a traceroute that ends here | to management | [`probe::ends_here`] |
//! | the pending Interest of its name, and loops | Nack Duplicate | [`look_up`] |
//! | stored Data | answered | [`content_store_hit`] |
//! | the core role keeps a fingerprint instead | sent | [`keep_fingerprint`] |
//! | its holder's share of the PIT | dropped | [`pressure::admit`], called by [`content_store_miss`] |
//! | a new entry, or one more downstream | aggregated | [`insert_entry`], [`join_entry`] |
//! | strategy and next hops of its name or hint | | [`where_to`] |
//! | a probe that this forwarder answers for others | to management | [`probe::is_for_us`] |
//! | the next hop that its PathLabel names | sent or Nack | [`steered::steer`] |
//! | the cheapest next hop, if the strategy wants no more | sent | [`cheapest`], [`send_first`] |
//! | the strategy, if it wants more | sent, Nack or nothing | [`consult`] |

use crate::{
    DropReason, FaceAttributes, Instant, LimitMet, LinkType,
    ground::{
        measured::{PartClock, Stage},
        output::{PacketRef, Transmit},
    },
    pipeline::{
        call::{Call, InterestAtHand, OutgoingInterest, Received},
        content_store::content_store_match,
        core_data::is_doubled,
        core_interest::core_interest,
        first_upstream::{FirstUpstream, send_first},
        prefix_lookup::visiting_interest,
        probe, steered,
    },
    state::{
        parts::Parts,
        pit_shares::PitShares,
        pit_state::{InRecord, Rare},
        tables::Tables,
    },
    strategies::registry::Instance,
    verdict::{
        context::StrategyContext,
        journey::Journey,
        next_hops::{MAX_DELEGATIONS, NextHops, has_delegation, hint_reaches_region, strategy_of},
        pressure::{self, Asker},
        scope::NameScope,
        strategy::{FirstNextHop, Strategy},
        trigger::Trigger,
    },
};
use namewire_packet::{
    FaceId, Interest, MAX_PACKET_BYTES, NackReason, Nonce,
    interest::{write_with_nonce, write_without_forwarding_hint},
    lp::LpHeaders,
};
use namewire_shares::HolderId;
use namewire_tables::{
    CsId, PitId, PitRefusal, Variant,
    name_group::INLINE_NAME_BYTES,
    pit::{INLINE_REST_BYTES, overflow_bytes_of},
};

/// An Interest that its face and its scope allow.
#[derive(Clone, Copy)]
struct Checked<'a, 'v> {
    received: &'a Received<'a, 'v, Interest<'a>>,
    ingress: &'v FaceAttributes,
    scope: NameScope,
}

/// Processes an Interest.
#[inline(never)]
pub(crate) fn incoming_interest<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    received: &Received<'_, 'v, Interest<'_>>,
) {
    let stored = match received.visits().is_over() {
        true => interest_at_home(parts, call, received),
        false => visiting_interest(parts, call, received),
    };
    // The only call: with a second one, the compiler would no longer inline the hit path.
    if let Some(stored) = stored {
        content_store_hit(parts, call, received, stored);
    }
}

/// Processes an Interest whose name belongs to this worker: drops it, or decrements HopLimit, adds a nonce if there is
/// none, and removes a hint that led here. Returns the stored Data that answers it.
#[inline(always)]
fn interest_at_home<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    received: &Received<'_, 'v, Interest<'_>>,
) -> Option<CsId> {
    parts.counters.in_interests += 1;
    let interest = received.packet;
    let Some(ingress) = call.outbound.faces.get(received.face()) else {
        return dropped(parts, DropReason::UnknownFace);
    };
    let hop_limit = match interest.hop_limit() {
        None => None,
        Some(0) => return dropped(parts, DropReason::HopLimitZero),
        Some(limit) => Some(limit - 1),
    };
    let scope = NameScope::of(interest.name().value());
    if scope.forbids(ingress) {
        return dropped(parts, DropReason::ScopeViolation);
    }
    let hint_removed = interest.has_forwarding_hint() && hint_ends_here(parts, interest);
    let Some(nonce) = interest.nonce().filter(|_| !hint_removed) else {
        return rewritten_interest(parts, call, Checked { received, ingress, scope }, hop_limit, hint_removed);
    };
    if let (Some(limit), Some(offset)) = (hop_limit, interest.hop_limit_offset()) {
        if limit == 0 && probe::ends_here(parts, call, received, ingress) {
            return None;
        }
        parts.scratch.hop_limits.push((received.frame, offset as u32, limit));
    }
    // Only HopLimit changes, so the frame itself is forwarded.
    let onward = OutgoingInterest { packet: PacketRef::Frame(received.frame), nonce, hop_limit, hint_removed };
    look_up(parts, call, Checked { received, ingress, scope }, onward, false)
}

/// Looks for pending Interests of the name, then for stored Data unless the Interest `is_for_one` next hop; then the
/// Interest is forwarded.
///
/// N.B. There are two copies of it, since Interests that must be rewritten are rare. With one, the packets of both were
/// merged in memory, which cost 40 instructions.
#[inline(always)]
fn look_up<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    Checked { received, ingress, scope }: Checked<'_, 'v>,
    onward: OutgoingInterest,
    is_for_one: bool,
) -> Option<CsId> {
    let (interest, cs) = (received.packet, &parts.tables.pit_cs);
    let (now, name_hash) = (call.outbound.now, received.hashes.full_hash());
    let variant = Variant::new(interest.can_be_prefix(), interest.must_be_fresh());
    let group = cs.find_probed(name_hash, interest.name().value(), received.hints.group);
    let entry = group.and_then(|group| cs.pit_of_variant(group, variant));
    let at = InterestAtHand { received, scope, onward, group, variant, entry };
    let is_dead = parts.tables.dead_nonces.contains(name_hash, onward.nonce.to_u32(), now.0);
    // An entry ends with its last downstream. So an entry means that an answer is pending, unless the entry only waits
    // for further answers.
    let mut is_new = true;
    if let Some(entry) = entry {
        if is_duplicate(&parts.tables, received, ingress, onward.nonce, entry) {
            interest_loop(parts, call, received, ingress);
            return None;
        }
        is_new = parts.tables.state(entry).satisfied;
    }
    let looks_up = is_new && parts.config.cs_serve && !is_for_one;
    let stored = if looks_up { content_store_match(&parts.tables, now, &at) } else { None };
    call.clock.end_of_part(Stage::Verdict);
    // A looped copy that ends here asks for nothing: counting it would count one Interest twice.
    if stored.is_some() || !is_dead {
        parts.tables.pit_cs.cs_request(name_hash);
        if looks_up {
            parts.cs_counting.count_look_up(&mut parts.counters, received.hashes, stored.is_some());
        } else if is_new {
            parts.counters.cs_not_asked += 1;
        }
    }
    if stored.is_some() {
        return stored;
    }
    // NFD checks the dead nonce list first. Here the list keeps more nonces (see `satisfy` in `data.rs`), and a copy
    // that took another path must still get Data that is in the store: it may be the only copy whose return path is
    // intact (sim/tests/ring.rs).
    if is_dead {
        interest_loop(parts, call, received, ingress);
    } else if entry.is_some() || parts.core.is_none() || !keep_fingerprint(parts, call, &at, ingress) {
        content_store_miss(parts, call, &at, ingress.holder, name_hash);
    }
    None
}

#[cold]
fn dropped(parts: &mut Parts, reason: DropReason) -> Option<CsId> {
    parts.counters.drop(reason);
    None
}

/// Whether the ForwardingHint led here.
#[cold]
fn hint_ends_here(parts: &mut Parts, interest: &Interest<'_>) -> bool {
    if interest.forwarding_hint().nth(MAX_DELEGATIONS).is_some() {
        parts.counters.meet(LimitMet::DelegationsIgnored);
    }
    hint_reaches_region(&parts.config, interest)
}

/// Forwards a copy of the Interest with a nonce, and without the hint if that is removed.
#[cold]
fn rewritten_interest<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    Checked { received, ingress, scope }: Checked<'_, 'v>,
    hop_limit: Option<u8>,
    hint_removed: bool,
) -> Option<CsId> {
    let interest = received.packet;
    if hop_limit == Some(0) && probe::ends_here(parts, call, received, ingress) {
        return None;
    }
    let nonce = interest.nonce().unwrap_or_else(|| Nonce::from_u32(parts.random.u32(..)));
    let copy = &mut parts.scratch.interest_copy;
    copy.clear();
    if hint_removed {
        write_without_forwarding_hint(interest, copy);
    } else {
        copy.extend_from_slice(interest.wire());
    }
    let packet = call.outbound.out.rewrite(|out| {
        let start = out.len();
        if let Ok(rewritten) = Interest::parse(copy) {
            write_with_nonce(&rewritten, nonce, out);
        }
        patch_hop_limit(&mut out[start..], hop_limit);
    });
    if call.outbound.out.rewritten(packet).is_some_and(|bytes| bytes.len() > MAX_PACKET_BYTES) {
        return dropped(parts, DropReason::TooLargeWithNonce);
    }
    let onward = OutgoingInterest { packet, nonce, hop_limit, hint_removed };
    // Management, whose Interests come without a nonce, asks this one neighbour, whatever others have said before.
    let is_for_one = received.headers().next_hop_face_id.is_some() && received.face() == FaceId::INTERNAL;
    look_up(parts, call, Checked { received, ingress, scope }, onward, is_for_one)
}

/// Writes `hop_limit` into an Interest that is known to be well-formed.
fn patch_hop_limit(wire: &mut [u8], hop_limit: Option<u8>) {
    if let Some(limit) = hop_limit
        && let Some(offset) = Interest::parse(wire).ok().and_then(|interest| interest.hop_limit_offset())
    {
        wire[offset] = limit;
    }
}

/// Whether the nonce is in a record of this entry. From the same point-to-point face it is a retransmission, not a
/// loop.
#[inline(never)]
fn is_duplicate(
    tables: &Tables,
    received: &Received<'_, '_, Interest<'_>>,
    ingress: &FaceAttributes,
    nonce: Nonce,
    entry: PitId,
) -> bool {
    let (state, records) = (tables.state(entry), &tables.records);
    let is_retransmission = records.downstream(state, received.face()).is_some_and(|record| record.nonce == nonce);
    if is_retransmission && ingress.link_type == LinkType::PointToPoint {
        return false;
    }
    records.downstreams(state).any(|record| record.nonce == nonce)
        || records.upstreams(state).any(|record| record.nonce == nonce)
}

/// Interest loop: Nack Duplicate on a point-to-point face, unless the strategy sends no Nack.
#[cold]
fn interest_loop<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    received: &Received<'_, '_, Interest<'_>>,
    ingress: &FaceAttributes,
) {
    parts.counters.drop(DropReason::DuplicateNonce);
    let found = call.fib.longest_prefix_match(received.packet.name().value(), received.hashes);
    let strategy = call.strategies.get(strategy_of(found));
    let tells = ingress.link_type == LinkType::PointToPoint && strategy.nacks_loops();
    let name_hash = received.hashes.full_hash();
    if tells && !is_doubled(parts, call.outbound.now, received.face(), name_hash) {
        parts.counters.out_nacks += 1;
        let headers = LpHeaders {
            nack: Some(NackReason::Duplicate),
            pit_token: received.headers().pit_token,
            ..LpHeaders::default()
        };
        let packet = PacketRef::Frame(received.frame);
        call.outbound.out.transmits.push(Transmit { face: received.face(), headers, packet });
    }
}

/// The core role: true if the Interest was kept by fingerprint.
#[inline(always)]
fn keep_fingerprint<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    at: &InterestAtHand<'_, 'v>,
    ingress: &FaceAttributes,
) -> bool {
    let may_keep = !ingress.is_local() && at.scope == NameScope::Global;
    may_keep && core_interest(parts, call, at.received, at.onward.hint_removed, trigger(at))
}

/// CS hit: the Data goes back with the Interest's token.
#[inline(always)]
fn content_store_hit<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    received: &Received<'_, '_, Interest<'_>>,
    stored: CsId,
) {
    parts.counters.out_data += 1;
    parts.tables.pit_cs.cs_request_stored(stored, received.hashes.full_hash());
    parts.tables.pit_cs.cs_touch(stored);
    let headers = LpHeaders {
        pit_token: received.headers().pit_token,
        incoming_face_id: Some(FaceId::CONTENT_STORE),
        ..LpHeaders::default()
    };
    call.outbound.out.transmits.push(Transmit { face: received.face(), headers, packet: PacketRef::Stored(stored) });
}

/// CS miss: in-record, expiry timer, then NextHopFaceId or the strategy.
#[inline(always)]
fn content_store_miss<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    at: &InterestAtHand<'_, 'v>,
    holder: HolderId,
    name_hash: u64,
) {
    let received = at.received;
    if at.entry.is_none() && !parts.tables.records.shares.is_easy(parts.tables.pit_cs.pit_len()) {
        let long_bytes = overflow_bytes_of(received.packet.name().value(), received.packet.after_name());
        let lifetime_ms = received.packet.lifetime_ms().min(parts.config.max_lifetime_ms);
        let asker = Asker { face: received.face(), holder, group: at.group, long_bytes, lifetime_ms };
        match pressure::admit(parts, call.outbound.now, asker) {
            Ok(()) => {}
            Err(DropReason::FaceShareUsed) => return parts.counters.cut(received.face()),
            Err(reason) => return parts.counters.drop(reason),
        }
    }
    let (headers, lifetime_ms) = (received.headers(), received.packet.lifetime_ms());
    let expires = call.outbound.now.plus_ms(lifetime_ms.min(parts.config.max_lifetime_ms));
    let entry = match at.entry {
        None => insert_entry(parts, call, at, holder, name_hash, expires),
        Some(entry) => join_entry(parts, received, holder, at.onward.nonce, entry, expires).map(|()| entry),
    };
    let entry = match entry {
        Ok(entry) => entry,
        Err(reason) => return parts.counters.drop(reason),
    };
    call.clock.end_of_part(Stage::Insert);

    let (instance, next_hops) = where_to(parts, call, received, at.onward.hint_removed);
    if at.variant.must_be_fresh() && at.entry.is_none() && probe::may_be(received.packet.name()) {
        let trigger = trigger(at);
        if probe::is_for_us(parts, call, received, &trigger, next_hops) {
            return consult(parts, call, entry, trigger, instance.strategy(), next_hops, Some(FaceId::INTERNAL));
        }
    }
    let has_choice = at.entry.is_none() && headers.next_hop_face_id.is_none();
    let first = match instance.first_next_hop {
        FirstNextHop::Cheapest if has_choice => cheapest(parts, call, at, next_hops),
        _ => None,
    };
    match first {
        Some(to) => send_first(parts, call, at, entry, to, expires),
        None if headers.next_hop_face_id == Some(FaceId::BY_PATH_LABEL) => {
            steered::steer(parts, call, received, (entry, trigger(at)), instance.strategy(), next_hops);
        }
        None => {
            let (strategy, chosen) = (instance.strategy(), headers.next_hop_face_id);
            consult(parts, call, entry, trigger(at), strategy, next_hops, chosen);
        }
    }
}

/// Why the strategy is called, and what it would send.
#[inline(always)]
fn trigger(at: &InterestAtHand<'_, '_>) -> Trigger {
    let headers = at.received.headers();
    Trigger {
        ingress: at.received.face(),
        scope: at.scope,
        packet: Some(at.onward.packet),
        nonce: at.onward.nonce,
        hop_limit: at.onward.hop_limit,
        lifetime_ms: at.received.packet.lifetime_ms(),
        congestion_mark: headers.congestion_mark,
        non_discovery: headers.non_discovery,
    }
}

/// The next hop that [`FirstNextHop::Cheapest`] means, unless the strategy must be called.
#[inline(always)]
fn cheapest<'v, C: PartClock>(
    parts: &Parts,
    call: &Call<'v, '_, C>,
    at: &InterestAtHand<'_, 'v>,
    next_hops: Option<NextHops<'v>>,
) -> Option<FirstUpstream<'v>> {
    let [cheapest, others @ ..] = next_hops?.next_hops else { return None };
    let has_others = !others.is_empty();
    if has_others && parts.measurements.suspects() > 0 {
        return None;
    }
    let (face, faces) = (FaceId(cheapest.face), call.outbound.faces);
    let journey = Journey { faces, ingress: at.received.face(), scope: at.scope, hop_limit: at.onward.hop_limit };
    let attributes = journey.eligible(face)?;
    Some(FirstUpstream { face, attributes, has_others })
}

/// Calls the strategy, unless the application has `chosen` the next hop.
#[inline(never)]
fn consult<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    entry: PitId,
    trigger: Trigger,
    strategy: &dyn Strategy,
    next_hops: Option<NextHops<'v>>,
    chosen: Option<FaceId>,
) {
    let mut context = StrategyContext::new(parts, &mut call.outbound, entry, trigger, next_hops);
    match chosen {
        Some(face) => context.send_to_chosen_face(face),
        None => strategy.after_receive_interest(&mut context),
    }
    context.finish();
}

/// The strategy of its name, and its next hops: by the ForwardingHint, unless that led here.
#[inline(always)]
pub(crate) fn where_to<'v, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, '_, C>,
    received: &Received<'_, 'v, Interest<'_>>,
    hint_removed: bool,
) -> (&'v Instance, Option<NextHops<'v>>) {
    let Received { packet: interest, hashes, hints, .. } = *received;
    let found = call.fib.longest_prefix_match_hinted(interest.name().value(), hashes, hints.fib);
    let next_hops = match interest.has_forwarding_hint() && !hint_removed {
        true => NextHops::of(interest, found, call.fib, &mut parts.scratch),
        false => found.map(NextHops::by_name),
    };
    call.clock.end_of_part(Stage::Fib);
    (call.strategies.instance(strategy_of(found)), next_hops)
}

/// A new PIT entry with its first downstream, and with what follows the name in the forwarded Interest.
#[inline(always)]
fn insert_entry<C: PartClock>(
    parts: &mut Parts,
    call: &Call<'_, '_, C>,
    at: &InterestAtHand<'_, '_>,
    holder: HolderId,
    name_hash: u64,
    expires: Instant,
) -> Result<PitId, DropReason> {
    let InterestAtHand { received, onward, .. } = at;
    let interest = received.packet;
    let (name, rest) = (interest.name(), interest.after_name());
    // Nearly always the entry has room for the rest, and only HopLimit changes.
    let is_simple = rest.len() <= INLINE_REST_BYTES && matches!(onward.packet, PacketRef::Frame(_));
    let rest = if is_simple { rest } else { rest_of_onward(&mut parts.scratch.interest_copy, call, interest, *onward) };
    let tables = &mut parts.tables;
    let is_long = rest.len() > INLINE_REST_BYTES || name.value().len() > INLINE_NAME_BYTES;
    let long_bytes = if is_long { take_long(&mut tables.records.shares, holder, name.value(), rest)? } else { 0 };
    let inserted = tables.pit_cs.pit_insert_new(at.group, name_hash, name.value(), at.variant, rest);
    let (entry, pit) = match inserted {
        Ok(inserted) => inserted,
        Err(refusal) => {
            tables.records.shares.long_interests.give_back(holder, long_bytes.into());
            return Err(match refusal {
                PitRefusal::Full => DropReason::PitFull,
                PitRefusal::OverflowFull => DropReason::PitOverflowFull,
            });
        }
    };
    if let (true, Some(limit), Some(offset)) = (is_simple, onward.hop_limit, interest.hop_limit_offset()) {
        pit.inline_rest_mut()[offset - (interest.wire().len() - rest.len())] = limit;
    }
    let (state, by_digest) = (&mut pit.state, interest.implicit_digest().is_some());
    state.name_hash = name_hash;
    state.components = name.len() as u16;
    let by_hint = has_delegation(interest) && !onward.hint_removed;
    state.rare = Rare::of(by_digest, by_hint, is_long);
    if is_long {
        state.long_bytes = long_bytes;
    }
    state.expires = expires;
    let record = tables.records.first_downstream(state, received.face(), holder);
    (record.face, record.holder, record.nonce, record.expires) = (received.face(), holder, onward.nonce, expires);
    record.token = received.headers().pit_token; // N.B. In one assignment with the others, it went over the stack.
    record.non_discovery = received.headers().non_discovery;
    tables.timers.arm(entry.0, expires.0);
    if at.variant.can_be_prefix() | by_digest {
        tables.count_pending(entry);
    }
    Ok(entry)
}

/// Charges the holder for what does not fit an entry; returns how many bytes.
#[cold]
fn take_long(shares: &mut PitShares, holder: HolderId, name_value: &[u8], rest: &[u8]) -> Result<u32, DropReason> {
    let bytes = overflow_bytes_of(name_value, rest);
    shares.long_interests.try_take(holder, bytes).map_err(|_| DropReason::PitOverflowFull)?;
    Ok(bytes as u32)
}

/// What follows the name in the forwarded Interest, if that is long or was rewritten.
#[cold]
fn rest_of_onward<'a, C: PartClock>(
    copy: &'a mut Vec<u8>,
    call: &'a Call<'_, '_, C>,
    interest: &Interest<'a>,
    onward: OutgoingInterest,
) -> &'a [u8] {
    if let Some(rewritten) = call.outbound.out.rewritten(onward.packet) {
        return Interest::parse(rewritten).map_or(&[], |interest| interest.after_name());
    }
    let rest = interest.after_name();
    let (Some(limit), Some(offset)) = (onward.hop_limit, interest.hop_limit_offset()) else { return rest };
    copy.clear();
    copy.extend_from_slice(rest);
    copy[offset - (interest.wire().len() - rest.len())] = limit;
    copy
}

/// Another downstream of an entry, or the same one again.
#[inline(never)]
fn join_entry(
    parts: &mut Parts,
    received: &Received<'_, '_, Interest<'_>>,
    holder: HolderId,
    nonce: Nonce,
    entry: PitId,
    expires: Instant,
) -> Result<(), DropReason> {
    let (face, headers) = (received.face(), received.headers());
    let (state, records) = parts.tables.state_mut(entry);
    let is_new = std::mem::take(&mut state.satisfied);
    let is_retransmission = records.downstream(state, face).is_some();
    let may_keep = records.may_keep(state, holder);
    let expires = if may_keep { expires } else { expires.min(state.expires) };
    let record = records.downstream_or_insert(state, face, holder).ok_or(DropReason::InRecordsFull)?;
    let (token, non_discovery) = (headers.pit_token, headers.non_discovery);
    *record = InRecord { face, holder, nonce, expires, token, non_discovery };
    records.note_expiry(state, may_keep.then_some(holder), expires, is_retransmission);
    parts.counters.retransmitted += u64::from(is_retransmission);
    parts.counters.aggregated += u64::from(!is_new && !is_retransmission);
    parts.tables.arm(entry);
    Ok(())
}
