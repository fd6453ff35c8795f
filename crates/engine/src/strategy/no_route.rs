//! What a strategy that sends Nacks does without a next hop, and when one comes after all.

use super::StrategyContext;
use crate::DropReason;
use namewire_packet::{FaceId, NackReason};

/// Nack NoRoute to whoever asked; without a Nack where only HopLimit kept the Interest back.
pub(super) fn refuse(context: &mut StrategyContext<'_, '_, '_>) {
    if context.hop_limit_forbids() {
        context.count_drop(DropReason::HopLimitZero);
    } else {
        context.count_drop(DropReason::NoRoute);
        context.send_nack(context.ingress(), NackReason::NoRoute);
    }
    context.reject();
}

/// Unlike NFD: a pending Interest that waits for nobody gets its chance as soon as a next hop appears.
pub(super) fn offer(context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
    if !context.is_any_upstream_pending() && context.is_eligible(face) {
        context.send_interest(face);
    }
}
