//! best-route: the cheapest next hop; a retransmission tries the next one
//! (forwarding §4.2).

use super::{
    Strategy, StrategyContext, WithoutEntry,
    nack_processing::process_nack,
    no_route,
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
}

impl Strategy for BestRoute {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        match self.suppression.decide_for_entry(context) {
            Suppression::New => {
                let best = context.eligible().next();
                match best {
                    Some(face) => context.send_interest(face),
                    None => no_route::refuse(context),
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

    fn after_new_next_hop(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        no_route::offer(context, face);
    }

    fn without_entry(&self) -> Option<WithoutEntry> {
        Some(WithoutEntry::Cheapest)
    }
}
