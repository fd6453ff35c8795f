//! What a strategy that sends Nacks does without a next hop, and when one comes after all.

use super::StrategyContext;
use crate::DropReason;
use namewire_packet::{FaceId, NackReason};

/// Why the Interest went nowhere.
pub(super) fn reason(context: &StrategyContext<'_, '_, '_>) -> DropReason {
    if context.hop_limit_forbids() {
        DropReason::HopLimitZero
    } else if context.waits_for_link() {
        DropReason::NextHopDown
    } else {
        DropReason::NoRoute
    }
}

/// Nack NoRoute to the ingress; without a Nack where only HopLimit kept the Interest back. Where a link is
/// down that may come back, the Interest waits for it: consumers that are sent a Nack give up, and NFD,
/// which sends the Interest into that link, tells them nothing either.
pub(super) fn refuse(context: &mut StrategyContext<'_, '_, '_>) {
    let reason = reason(context);
    context.count_drop(reason);
    match reason {
        DropReason::NextHopDown => return,
        DropReason::NoRoute => context.send_nack(context.ingress(), NackReason::NoRoute),
        _ => {}
    }
    context.reject();
}

/// Unlike NFD: a pending Interest that waits for no answer gets its chance as soon as a next hop appears.
pub(super) fn offer(context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
    if !context.is_any_upstream_pending() && context.is_eligible(face) {
        context.send_interest(face);
    }
}
