//! multicast: sends to every next hop (forwarding §4.4). It sends no Nacks and rejects nothing: an Interest waits,
//! because a next hop may still appear.

use crate::{
    DropReason,
    strategies::{
        no_route,
        parameters::{InvalidParameter, Parameters},
        retx_suppression::{RetxSuppression, Suppression},
    },
    verdict::{
        context::StrategyContext,
        strategy::{Strategy, WithoutEntry},
    },
};
use namewire_packet::FaceId;
use std::sync::Arc;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Multicast {
    suppression: RetxSuppression,
}

impl Multicast {
    pub(crate) fn create(parameters: &Parameters) -> Result<Arc<dyn Strategy>, InvalidParameter> {
        Ok(Arc::new(Multicast { suppression: RetxSuppression::from_parameters(parameters)? }))
    }

    /// Suppression applies per upstream here.
    fn send_unless_suppressed(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) -> Suppression {
        let decision = self.suppression.decide_for_upstream(context, face);
        if decision != Suppression::Suppress {
            context.send_interest(face);
        }
        decision
    }
}

impl Strategy for Multicast {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        let mut suppressed = false;
        let mut tried = false;
        for next_hop in context.next_hops() {
            let face = FaceId(next_hop.face);
            if !context.is_eligible(face) {
                continue;
            }
            let decision = self.send_unless_suppressed(context, face);
            suppressed |= decision == Suppression::Suppress;
            tried |= decision != Suppression::Suppress;
        }
        // If a face was tried and none took it, the context counts why.
        if !tried {
            // It stays pending until a next hop appears or it expires.
            context.count_drop(match suppressed {
                true => DropReason::Suppressed,
                false => no_route::reason(context),
            });
        }
    }

    /// All next hops were asked when the Interest came. One is left only if it came later or refused a copy.
    fn after_upstream_lost(&self, context: &mut StrategyContext<'_, '_, '_>) {
        for next_hop in context.next_hops() {
            let face = FaceId(next_hop.face);
            if context.is_unused(face) && context.is_eligible(face) {
                context.send_interest(face);
            }
        }
    }

    fn after_new_next_hop(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        if context.is_eligible(face) {
            self.send_unless_suppressed(context, face);
        }
    }

    fn without_entry(&self) -> Option<WithoutEntry> {
        Some(WithoutEntry::All)
    }

    fn nacks_loops(&self) -> bool {
        false
    }
}
