//! random: any of the next hops, all equally likely (forwarding §4.6).

use super::{
    Strategy, StrategyContext, WithoutEntry,
    nack_processing::process_nack,
    no_route,
    registry::{Parameters, StrategyError},
};
use namewire_packet::{FaceId, NackReason};
use std::sync::Arc;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random;

impl Random {
    pub(super) fn create(parameters: &Parameters) -> Result<Arc<dyn Strategy>, StrategyError> {
        parameters.refuse_all("random")?;
        Ok(Arc::new(Random))
    }
}

impl Strategy for Random {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        let eligible = context.eligible().count();
        if eligible == 0 {
            return no_route::refuse(context);
        }
        let place = context.random().usize(..eligible);
        let chosen = context.eligible().nth(place);
        if let Some(face) = chosen {
            context.send_interest(face);
        }
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
