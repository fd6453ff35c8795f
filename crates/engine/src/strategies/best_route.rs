//! best-route: uses the cheapest next hop; a retransmission tries the next one (forwarding §4.2).
//!
//! Beyond NFD: a next hop that has fallen silent ranks after the others until it answers again
//! ([`crate::strategies::silence`]).

use crate::{
    DropReason,
    strategies::{
        nack_processing::process_nack,
        no_route,
        parameters::{InvalidParameter, Parameters},
        retx_suppression::{RetxSuppression, Suppression},
        silence,
    },
    verdict::{
        answer::Answer,
        context::StrategyContext,
        foresight::{Foresight, Prospect},
        strategy::{FirstNextHop, Strategy, WithoutEntry},
    },
};
use namewire_packet::{FaceId, NackReason};
use std::sync::Arc;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct BestRoute {
    suppression: RetxSuppression,
}

impl BestRoute {
    pub(crate) fn create(parameters: &Parameters) -> Result<Arc<dyn Strategy>, InvalidParameter> {
        Ok(Arc::new(BestRoute { suppression: RetxSuppression::from_parameters(parameters)? }))
    }

    /// The next hop of a new Interest.
    #[inline]
    fn first_choice(context: &mut StrategyContext<'_, '_, '_>) -> Option<FaceId> {
        if context.next_hops().len() > 1 {
            context.watch_expiry();
            if context.has_suspects() {
                return silence::first_choice(context);
            }
        }
        context.eligible().next()
    }

    /// The next hop of a retransmission: one that was not asked, or else the one asked longest ago.
    fn next_choice(context: &mut StrategyContext<'_, '_, '_>) -> Option<FaceId> {
        if context.next_hops().len() > 1 {
            silence::note_unanswered(context);
        }
        silence::best(context, true).or_else(|| {
            let sent = |&face: &FaceId| context.upstream(face).map(|record| record.sent);
            context.eligible().min_by_key(sent)
        })
    }
}

impl Strategy for BestRoute {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        match self.suppression.decide_for_entry(context) {
            Suppression::New => match Self::first_choice(context) {
                Some(face) => context.send_interest(face),
                None => no_route::refuse(context),
            },
            Suppression::Forward => match Self::next_choice(context) {
                Some(face) => context.send_interest(face),
                // It came back from the only next hop, for an entry that other downstreams also wait for.
                None => context.count_drop(DropReason::NoRoute),
            },
            Suppression::Suppress => context.count_drop(DropReason::Suppressed),
        }
    }

    fn foresee(&self, prospect: &Prospect<'_>) -> Foresight {
        silence::foresee(prospect)
    }

    fn first_next_hop(&self) -> FirstNextHop {
        FirstNextHop::Cheapest
    }

    fn after_receive_nack(&self, context: &mut StrategyContext<'_, '_, '_>, _reason: NackReason) {
        process_nack(context);
    }

    fn after_upstream_lost(&self, context: &mut StrategyContext<'_, '_, '_>) {
        if let Some(face) = silence::best(context, true) {
            context.send_interest(face);
        }
    }

    fn before_satisfy(&self, context: &mut StrategyContext<'_, '_, '_>, answer: &mut Answer<'_>) {
        silence::note_answer(context, answer);
    }

    fn before_expiry(&self, context: &mut StrategyContext<'_, '_, '_>) {
        silence::note_unanswered(context);
    }

    fn after_new_next_hop(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        no_route::offer(context, face);
    }

    fn without_entry(&self) -> Option<WithoutEntry> {
        Some(WithoutEntry::Cheapest)
    }
}
