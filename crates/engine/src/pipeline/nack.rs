//! The Incoming Nack pipeline (forwarding §1; NFD's developer guide §4.4.1).

use crate::{
    DropReason, LinkType,
    ground::measured::PartClock,
    pipeline::{
        call::{Call, Received},
        core_data::core_nack,
    },
    state::parts::Parts,
    verdict::{
        context::StrategyContext,
        next_hops::{NextHops, strategy_of},
        trigger::Trigger,
    },
};
use namewire_packet::{Interest, NackReason};
use namewire_tables::Variant;

/// Processes a Nack.
pub(crate) fn incoming_nack<C: PartClock>(
    parts: &mut Parts,
    call: &mut Call<'_, '_, C>,
    received: &Received<'_, '_, Interest<'_>>,
    reason: NackReason,
) {
    parts.counters.in_nacks += 1;
    let (interest, hashes) = (received.packet, received.hashes);
    let Some(ingress) = call.outbound.faces.get(received.face()) else {
        return parts.counters.drop(DropReason::UnknownFace);
    };
    if ingress.link_type != LinkType::PointToPoint {
        return parts.counters.drop(DropReason::NackOnMultiAccess);
    }
    // The entry must be that of the Nacked Interest, sent to this face with this nonce.
    let variant = Variant::new(interest.can_be_prefix(), interest.must_be_fresh());
    let cs = &parts.tables.pit_cs;
    let group = cs.find(hashes.full_hash(), interest.name().value());
    let Some(entry) = group.and_then(|group| cs.pit_of_variant(group, variant)) else {
        return core_nack(parts, call, received, reason);
    };
    let (state, records) = parts.tables.state_mut(entry);
    match records.upstream_mut(state, received.face()) {
        Some(record) if Some(record.nonce) == interest.nonce() => record.nack = Some(reason),
        _ => return core_nack(parts, call, received, reason),
    }
    let trigger = Trigger::of_entry(received.face(), &parts.tables, entry, interest.lifetime_ms());
    let found = call.fib.longest_prefix_match(interest.name().value(), hashes);
    let strategy = call.strategies.get(strategy_of(found));
    let next_hops = NextHops::of(interest, found, call.fib, &mut parts.scratch);
    let mut context = StrategyContext::new(parts, &mut call.outbound, entry, trigger, next_hops);
    if !context.is_any_upstream_pending() {
        context.reject(); // no upstream can answer any more: expiry now
    }
    strategy.after_receive_nack(&mut context, reason);
    context.finish();
}
