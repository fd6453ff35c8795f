//! self-learning: routes are learned from the way back that Data takes (forwarding §4.6; Shi, Newberry
//! and Zhang, "On Broadcast-based Self-Learning in Named Data Networking", IFIP Networking 2017).
//!
//! An Interest for which there is no route goes to all neighbours: it is a *discovery* Interest. Where there is
//! a route, it goes on marked NonDiscovery and is never flooded again. The Data that comes back to a discovery Interest
//! carries a PrefixAnnouncement, from which every router on the way learns a route; the router where
//! discovery ended attaches it. A router without a route answers a NonDiscovery Interest by Nack NoRoute, and who
//! gets that Nack forgets its route.
//!
//! A route that leads to a dead link does not hold an Interest back. When the links of all upstreams are gone, the
//! Interest goes to all neighbours, as if there were no route. So does a retransmission without the mark when the
//! upstreams have been silent for [`SILENT_NS`]. NFD keeps to the route until it ends, 10 minutes at most.
//!
//! Unlike NFD, the announcement is attached at once, from the table that the control side publishes, so
//! that no Data waits for the RIB; it goes only to those downstreams that asked by discovery and are not applications of this
//! machine; and floods, unlike unicast retransmissions, are held back by retransmission suppression.

use super::{
    Strategy, StrategyContext, no_route,
    registry::{Parameters, StrategyError},
    retx_suppression::{RetxSuppression, Suppression},
};
use crate::{DropReason, watched_entry::Answer};
use namewire_packet::{Data, FaceId, NackReason, Name};
use std::sync::Arc;

/// A learned next hop that has not answered for so long does not keep a retransmission from being flooded: less than the shortest
/// time after which consumers ask again.
const SILENT_NS: u64 = 150_000_000;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelfLearning {
    floods: RetxSuppression,
}

impl SelfLearning {
    pub(super) fn create(parameters: &Parameters) -> Result<Arc<dyn Strategy>, StrategyError> {
        parameters.refuse_all("self-learning")?;
        Ok(Arc::new(SelfLearning::default()))
    }

    /// To every next hop, marked so that nobody floods it.
    fn multicast(context: &mut StrategyContext<'_, '_, '_>) {
        context.set_non_discovery(true);
        let mut is_tried = false;
        for next_hop in context.next_hops() {
            let face = FaceId(next_hop.face);
            if context.is_eligible(face) {
                context.send_interest(face);
                is_tried = true;
            }
        }
        if !is_tried {
            context.count_drop(no_route::reason(context));
        }
    }

    /// Whether every eligible next hop was asked long enough ago and has not answered.
    fn are_all_silent(context: &StrategyContext<'_, '_, '_>) -> bool {
        let now = context.now();
        context.eligible().all(|face| {
            let asked = context.upstream(face);
            asked.is_some_and(|record| record.nack.is_none() && now.since_ns(record.sent) >= SILENT_NS)
        })
    }

    /// To every neighbour.
    fn discover(&self, context: &mut StrategyContext<'_, '_, '_>) {
        if self.floods.decide_for_entry(context) == Suppression::Suppress {
            return context.count_drop(DropReason::Suppressed);
        }
        let mut is_tried = false;
        for (face, attributes) in context.faces() {
            if !attributes.is_local() && context.is_eligible(face) {
                context.send_interest(face);
                is_tried = true;
            }
        }
        if !is_tried {
            context.count_drop(DropReason::NoRoute);
        }
    }
}

/// Whether the announced prefix, which three components follow in the announcement's name, is one of
/// `name`: whoever serves one name has nothing to say of others.
fn covers(announcement: &[u8], name: Name<'_>) -> bool {
    let Ok(announcement) = Data::parse(announcement) else { return false };
    let announced = announcement.name();
    announced.len().checked_sub(3).is_some_and(|prefix_len| announced.prefix(prefix_len).is_prefix_of(&name))
}

impl Strategy for SelfLearning {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        context.watch();
        match (context.next_hops().is_empty(), context.is_non_discovery()) {
            (false, false) if Self::are_all_silent(context) => self.discover(context),
            (false, _) => Self::multicast(context),
            (true, false) => self.discover(context),
            (true, true) => no_route::refuse(context),
        }
    }

    fn after_upstream_lost(&self, context: &mut StrategyContext<'_, '_, '_>) {
        let is_any_left = context.eligible().any(|face| context.is_unused(face));
        let may_be_flooded = context.downstreams().any(|record| !record.non_discovery);
        match (is_any_left, may_be_flooded) {
            (true, _) => Self::multicast(context),
            (false, true) => {
                context.set_non_discovery(false);
                self.discover(context);
            }
            // They forget their routes to us, and find another way.
            (false, false) => {
                context.send_nack_to_all(NackReason::NoRoute);
                context.reject();
            }
        }
    }

    fn before_satisfy(&self, context: &mut StrategyContext<'_, '_, '_>, answer: &mut Answer<'_>) {
        let Some(asked) = context.upstream(context.ingress()).map(|record| record.non_discovery) else { return };
        if asked {
            // Whoever discovered its way to us is told what for.
            let is_wanted = context.downstreams().any(|record| !record.non_discovery);
            if is_wanted {
                context.attach_announcement(answer);
            }
        } else if let Some(announcement) = answer.announcement().filter(|&octets| covers(octets, answer.name())) {
            context.learn_route(announcement);
        }
    }

    fn after_receive_nack(&self, context: &mut StrategyContext<'_, '_, '_>, reason: NackReason) {
        if reason == NackReason::NoRoute {
            let asked = context.upstream(context.ingress()).is_some_and(|record| record.non_discovery);
            if asked {
                context.forget_route();
            }
            // Another upstream that was asked may still answer.
            if !context.is_any_upstream_pending() {
                context.send_nack_to_all(NackReason::NoRoute);
                context.reject();
            }
        }
    }

    fn after_new_next_hop(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        no_route::offer(context, face);
    }
}
