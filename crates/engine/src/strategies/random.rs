//! random: uses one of the next hops, all equally likely (forwarding §4.6).
//!
//! Unlike NFD, a retransmission prefers a next hop that has not been asked yet. If one of two next hops is silent, an
//! Interest is answered after two transmissions at most, not with probability 1/2 each time.

use crate::{
    strategies::{
        nack_processing::process_nack,
        no_route,
        parameters::{InvalidParameter, Parameters},
    },
    verdict::{
        context::StrategyContext,
        strategy::{Strategy, WithoutEntry},
    },
};
use namewire_packet::{FaceId, NackReason};
use std::sync::Arc;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random;

impl Random {
    pub(crate) fn create(parameters: &Parameters) -> Result<Arc<dyn Strategy>, InvalidParameter> {
        parameters.refuse_all("random")?;
        Ok(Arc::new(Random))
    }
}

impl Random {
    /// Sends to a random eligible next hop, preferably an unused one; false if none is eligible.
    fn send_to_any(context: &mut StrategyContext<'_, '_, '_>) -> bool {
        let unused = context.eligible().filter(|&face| context.is_unused(face)).count();
        let candidates = if unused > 0 { unused } else { context.eligible().count() };
        if candidates == 0 {
            return false;
        }
        let place = context.random().usize(..candidates);
        let is_candidate = |&face: &FaceId| unused == 0 || context.is_unused(face);
        let chosen = context.eligible().filter(is_candidate).nth(place);
        if let Some(face) = chosen {
            context.send_interest(face);
        }
        true
    }
}

impl Strategy for Random {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        if !Self::send_to_any(context) {
            no_route::refuse(context);
        }
    }

    fn after_upstream_lost(&self, context: &mut StrategyContext<'_, '_, '_>) {
        Self::send_to_any(context);
    }

    fn after_receive_nack(&self, context: &mut StrategyContext<'_, '_, '_>, _reason: NackReason) {
        process_nack(context);
    }

    fn after_new_next_hop(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        no_route::offer(context, face);
    }

    fn without_entry(&self) -> Option<WithoutEntry> {
        Some(WithoutEntry::AnyOne)
    }
}
