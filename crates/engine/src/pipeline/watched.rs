//! Calls of a strategy without an Interest. They happen when an entry's timer is due, when its next hops change, or
//! when its Data arrives while the strategy watches the entry ([`StrategyContext::watch`], forwarding §4.5).
//!
//! If the strategy does not watch the entry, Data costs the test of one flag.

use crate::{
    Instant,
    ground::{measured::PartClock, output::PacketRef},
    pipeline::{
        call::{Call, Received},
        steered::labelled,
    },
    state::{parts::Parts, tables::Tables},
    verdict::{
        answer::{Answer, AnswerVerdict},
        context::StrategyContext,
        next_hops::{NextHops, strategy_of},
        strategy::Strategy,
        trigger::Trigger,
    },
};
use namewire_packet::{Data, FaceId, Interest, Nonce, interest::DEFAULT_LIFETIME_MS};
use namewire_tables::{PitId, hash_name};

/// Calls a strategy for an entry without an Interest at hand; without an `ingress`, on behalf of the last downstream,
/// if there is one.
///
/// Interests sent then have the downstream's nonce. Exception: copies of the Interest have left and none can be
/// answered any more; then they have a new nonce. Such a copy may have got through before its link went down, and the
/// router behind it has it pending. If ours reached that router by another path with the same nonce, the router would
/// take it for a loop and answer by a Nack, and its Data would go into the dead link. With a new nonce we become
/// another downstream there. Loops still end: the new nonce is in our out-record and, when the entry ends, in the dead
/// nonce list with those of all copies.
pub(crate) fn with_strategy<'v, 'o, C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'v, 'o, C>,
    entry: PitId,
    ingress: Option<FaceId>,
    consult: impl FnOnce(&dyn Strategy, &mut StrategyContext<'_, 'v, 'o>),
) {
    let is_answered = ingress.is_some(); // then the entry's end is the caller's
    let Parts { tables, scratch, .. } = parts;
    let name = tables.name_of(entry);
    let found = match scratch.name_hashes.compute(call.fib.key(), name) {
        Ok(()) => call.fib.longest_prefix_match(name, &scratch.name_hashes),
        Err(_) => None,
    };
    let mut wire = std::mem::take(&mut scratch.interest_copy);
    wire.clear();
    tables.pit_cs.pit_interest(entry, &mut wire);
    let interest = Interest::parse(&wire).ok();
    let lifetime_ms = interest.map_or(DEFAULT_LIFETIME_MS, |interest| interest.lifetime_ms());
    let hop_limit = interest.and_then(|interest| interest.hop_limit());
    let next_hops = match &interest {
        Some(interest) => NextHops::of(interest, found, call.fib, scratch),
        None => found.map(NextHops::by_name),
    };
    scratch.interest_copy = wire;
    let (now, state, records) = (call.outbound.now, tables.state(entry), &tables.records);
    let last = records.downstreams(state).last().map(|record| record.face);
    let Some(ingress) = ingress.or(last) else { return };
    let mut trigger = Trigger { hop_limit, ..Trigger::of_entry(ingress, tables, entry, lifetime_ms) };
    let is_pending = records.upstreams(state).any(|record| record.is_pending(now));
    if !state.out_records.is_empty() && !is_pending {
        trigger.nonce = Nonce::from_u32(parts.random.u32(..));
    }
    let strategy = call.strategies.get(strategy_of(found));
    let mut context = StrategyContext::new(parts, &mut call.outbound, entry, trigger, next_hops);
    consult(strategy, &mut context);
    if !is_answered {
        context.finish();
    }
}

/// Passes Data to the strategy, if it watches the entry.
#[cold]
#[inline(never)]
pub(super) fn tell<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    received: &Received<'_, '_, Data<'_>>,
    entry: PitId,
) -> AnswerVerdict {
    let announcement = received.headers().announcement(received.carried());
    let lead_bytes = received.headers().lead_bytes;
    let announced = announcement.is_some().then_some((PacketRef::AnnouncedFrame(received.frame), lead_bytes));
    let labelled = labelled(call.outbound.out, received);
    let verdict = AnswerVerdict { announced, labelled, waits_until: None };
    if !parts.tables.state(entry).watched {
        return verdict;
    }
    let parent = received.packet.name().parent();
    let mut answer = Answer {
        now: call.outbound.now,
        data: *received.packet,
        announcement,
        parent_hash: hash_name(parts.tables.pit_cs.key(), parent.value()),
        verdict,
    };
    with_strategy(parts, call, entry, Some(received.face()), |strategy, context| {
        strategy.before_satisfy(context, &mut answer);
    });
    answer.verdict
}

/// Keeps an entry whose downstreams were all served, for answers that are still pending.
pub(super) fn wait_for_others(tables: &mut Tables, now: Instant, from: FaceId, entry: PitId, until: Instant) {
    let state = &mut tables.pit_cs.pit_mut(entry).state;
    if let Some(record) = tables.records.upstream(state, from) {
        tables.dead_nonces.insert(state.name_hash, record.nonce.to_u32(), now.0);
    }
    tables.records.forget_downstreams(state, |_| true);
    tables.records.forget_upstreams(state, |face| *face == from);
    state.satisfied = true;
    (state.expires, state.strategy_deadline) = (until, None);
    tables.arm(entry);
}
