//! What a strategy that sends Nacks does without a next hop, and when one appears later.

use crate::{DropReason, verdict::context::StrategyContext};
use namewire_packet::{FaceId, NackReason};

/// Why the Interest went nowhere.
pub(crate) fn reason(context: &StrategyContext<'_, '_, '_>) -> DropReason {
    if context.hop_limit_forbids() {
        DropReason::HopLimitZero
    } else if context.waits_for_link() {
        DropReason::NextHopDown
    } else {
        DropReason::NoRoute
    }
}

/// Sends Nack NoRoute to the ingress, or nothing if only HopLimit kept the Interest back. If a link that is down may
/// come back, the Interest waits for it: consumers give up on a Nack, and NFD, which sends the Interest into that link,
/// sends no Nack either.
pub(crate) fn refuse(context: &mut StrategyContext<'_, '_, '_>) {
    let reason = reason(context);
    context.count_drop(reason);
    match reason {
        DropReason::NextHopDown => return,
        DropReason::NoRoute => context.send_nack(context.ingress(), NackReason::NoRoute),
        _ => {}
    }
    context.reject();
}

/// Unlike NFD: a pending Interest without a pending answer is sent as soon as a next hop appears.
pub(crate) fn offer(context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
    if !context.is_any_upstream_pending() && context.is_eligible(face) {
        context.send_interest(face);
    }
}
