//! best-route: the cheapest next hop; a retransmission tries the next one
//! (forwarding §4.2).

use super::{
    Strategy, StrategyContext,
    nack_processing::process_nack,
    registry::{Parameters, StrategyError},
    retx_suppression::{RetxSuppression, Suppression},
};
use crate::DropReason;
use namewire_packet::{FaceId, NackReason};
use std::sync::Arc;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct BestRoute {
    suppression: RetxSuppression,
}

impl BestRoute {
    pub(super) fn create(parameters: &Parameters) -> Result<Arc<dyn Strategy>, StrategyError> {
        Ok(Arc::new(BestRoute { suppression: RetxSuppression::from_parameters(parameters)? }))
    }

    fn decide(&self, context: &mut StrategyContext<'_, '_, '_>) -> Suppression {
        if !context.is_any_upstream_pending() {
            return Suppression::New;
        }
        let now = context.now();
        let last_sent = context.upstreams().map(|record| record.sent).max();
        self.suppression.decide(now, last_sent, &mut context.state_mut().suppression_ns)
    }
}

impl Strategy for BestRoute {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        match self.decide(context) {
            Suppression::New => {
                let best = context.eligible().next();
                match best {
                    Some(face) => context.send_interest(face),
                    None if context.hop_limit_forbids() => {
                        context.count_drop(DropReason::HopLimitZero);
                        context.reject();
                    }
                    None => {
                        context.count_drop(DropReason::NoRoute);
                        context.send_nack(context.ingress(), NackReason::NoRoute);
                        context.reject();
                    }
                }
            }
            Suppression::Forward => {
                let now = context.now();
                let unused =
                    context.eligible().find(|&face| context.upstream(face).is_none_or(|record| record.expires <= now));
                let face = unused.or_else(|| {
                    let sent = |&face: &FaceId| context.upstream(face).map(|record| record.sent);
                    context.eligible().min_by_key(sent)
                });
                match face {
                    Some(face) => context.send_interest(face),
                    // It came back from the only next hop there is, for an entry that others wait for too.
                    None => context.count_drop(DropReason::NoRoute),
                }
            }
            Suppression::Suppress => context.count_drop(DropReason::Suppressed),
        }
    }

    fn after_receive_nack(&self, context: &mut StrategyContext<'_, '_, '_>, _reason: NackReason) {
        process_nack(context);
    }

    /// Unlike NFD: an Interest that waits for nobody gets its chance at once.
    fn after_new_next_hop(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        if !context.is_any_upstream_pending() && context.is_eligible(face) {
            context.send_interest(face);
        }
    }
}
