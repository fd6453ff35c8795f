//! The Content Store in the pipelines: which Data answers an Interest, and which Data is stored
//! (forwarding §1, §2.2; NFD's developer guide §3.2).

use crate::{
    Counters, EngineConfig, Instant, LimitMet,
    pipeline::call::{InterestAtHand, Received},
    state::{parts::Parts, pit_state::PitState, tables::Tables},
};
use namewire_packet::{Data, Interest, probe::ProbeKind};
use namewire_tables::{
    CsArrival, CsHit, CsId, CsInsert, CsRefusal, CsWanted, GroupId, NameHashes, PitCs, PitId, PrefixLookup,
};

/// How many Interests asked for the Data to be stored.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    By(u32),
    /// The Data is unsolicited.
    Unasked,
}

/// The stored Data that answers the Interest. It is found under its own name, under the name of an earlier Interest
/// that it answered, or, by digest, under the name without digest. If all prefixes are looked up, it is the first in
/// canonical order.
#[inline(always)]
pub(super) fn content_store_match(tables: &Tables, now: Instant, at: &InterestAtHand<'_, '_>) -> Option<CsId> {
    let (interest, hashes, cs) = (at.received.packet, at.received.hashes, &tables.pit_cs);
    let fresh_enough = |id: CsId| !interest.must_be_fresh() || is_fresh(cs, id, now);
    let by_name = at.group.and_then(|group| cs.cs_lookup(group));
    if let Some(hit) = by_name
        && (hit.direct || interest.can_be_prefix() || is_asked_by_digest(cs, interest, hashes, &hit))
    {
        return if fresh_enough(hit.id) { Some(hit.id) } else { other_match(cs, now, interest, at.group) };
    }
    let Some(digest) = interest.implicit_digest() else {
        return if interest.can_be_prefix() { other_match(cs, now, interest, None) } else { None };
    };
    let group = cs.find(hashes.prefix_hash(hashes.components() - 1), parent(interest, hashes))?;
    let fresh_at_ns = interest.must_be_fresh().then_some(now.0);
    cs.cs_version(group, CsWanted { fresh_at_ns, digest: Some(digest) })
}

/// If all prefixes are looked up: other Data of the name, if its `group` has some, or Data under the name.
#[cold]
pub(super) fn other_match(
    cs: &PitCs<PitState>,
    now: Instant,
    interest: &Interest<'_>,
    group: Option<GroupId>,
) -> Option<CsId> {
    let fresh_at_ns = interest.must_be_fresh().then_some(now.0);
    match group {
        _ if interest.can_be_prefix() => cs.cs_first_under(interest.name().value(), fresh_at_ns),
        Some(group) => cs.cs_version(group, CsWanted { fresh_at_ns, digest: None }),
        None => None,
    }
}

/// An indirect name is the name of an Interest that this Data answered before. A name that ends in a digest can also
/// have been a mere prefix.
fn is_asked_by_digest(cs: &PitCs<PitState>, interest: &Interest<'_>, hashes: &NameHashes, hit: &CsHit) -> bool {
    interest.implicit_digest().is_some() && cs.cs(hit.id).name_value() == Some(parent(interest, hashes))
}

/// Fresh up to and including its last moment. A FreshnessPeriod of 0 is never fresh: it is stored as 0 and must not
/// look fresh to a clock that starts at 0.
fn is_fresh(cs: &PitCs<PitState>, stored: CsId, now: Instant) -> bool {
    let fresh_until_ns = cs.cs(stored).fresh_until_ns();
    fresh_until_ns != 0 && fresh_until_ns >= now.0
}

/// The name without its last component; an Interest's name has at least one.
fn parent<'a>(interest: &Interest<'a>, hashes: &NameHashes) -> &'a [u8] {
    &interest.name().value()[..hashes.prefix_bytes(hashes.components() - 1)]
}

/// CS insert. Returns where the Data is, unless it was not to be stored or was refused. Link headers are not stored: a
/// congestion mark belongs to one journey, not to the Data (§2.2).
#[inline(always)]
pub(super) fn content_store_insert(
    parts: &mut Parts,
    now: Instant,
    received: &Received<'_, '_, Data<'_>>,
    own_name: Option<GroupId>,
    asked: Asked,
) -> Option<CsId> {
    let Parts { config, tables, counters, cs_counting, .. } = parts;
    let (data, hashes) = (received.packet, received.hashes);
    if !config.cs_admit || received.headers().no_cache {
        return None;
    }
    // FreshnessPeriod 0 is never fresh, not even in the nanosecond of its arrival.
    let fresh_until_ns = match data.freshness_ms() {
        0 => 0,
        // The answer to a probe is of no use to others. Those who ask by prefix would take it for Data of the producer.
        1 if ProbeKind::ALL.iter().any(|kind| kind.may_end(data.name().value())) => return None,
        ms => now.plus_ms(ms).0,
    };
    let name = (hashes.full_hash(), data.name().value());
    let (requests, unsolicited) = match asked {
        Asked::By(interests) => (interests.max(1), false),
        Asked::Unasked => (1, true),
    };
    let arrival = CsArrival { fresh_until_ns, now_ns: now.0, requests, unsolicited };
    let inserted = tables.pit_cs.cs_insert_found(own_name, name, data.wire(), arrival);
    let CsInsert::Stored(stored) = inserted else {
        note_not_new(parts, hashes, inserted);
        return inserted.id();
    };
    cs_counting.count_insertion(counters, hashes);
    Some(stored)
}

/// The name had Data before, or it was refused.
#[inline(never)]
fn note_not_new(parts: &mut Parts, hashes: &NameHashes, inserted: CsInsert) {
    let Parts { config, tables, counters, cs_counting, .. } = parts;
    match inserted {
        CsInsert::Stored(_) | CsInsert::Refreshed(_) => {}
        CsInsert::Replaced(_) => {
            cs_counting.count_insertion(counters, hashes);
            note_replaced(config, counters);
        }
        CsInsert::Refused(refusal) => note_refusal(tables, counters, refusal),
    }
}

/// A name has one stored Data at a time. If all prefixes are looked up it may have several, and replacing one counts as
/// lack of room.
fn note_replaced(config: &EngineConfig, counters: &mut Counters) {
    if config.cs_prefix_lookup == PrefixLookup::All {
        counters.meet(LimitMet::CsVersionReplaced);
    }
}

/// A disabled store refuses everything; that counts as no limit.
#[cold]
fn note_refusal(tables: &Tables, counters: &mut Counters, refusal: CsRefusal) {
    let (capacity_bytes, capacity_packets) = tables.pit_cs.cs_capacity();
    if capacity_bytes == 0 || capacity_packets == 0 {
        return;
    }
    match LimitMet::of_content_store(refusal) {
        Some(limit) => counters.meet(limit),
        None => counters.cs_not_admitted += 1,
    }
}

/// Lets Data fetched by a prefix or digest be found again under that name.
pub(super) fn index_under_interest_name(parts: &mut Parts, entry: PitId, stored: CsId) {
    let Parts { tables, scratch, counters, .. } = parts;
    scratch.name_copy.clear();
    scratch.name_copy.extend_from_slice(tables.name_of(entry));
    // If refused, the Data is still found under its own name.
    let name_hash = tables.state(entry).name_hash;
    if tables.pit_cs.cs_add_indirect(name_hash, &scratch.name_copy, stored).is_err() {
        counters.meet(LimitMet::CsNameRefused);
    }
}
