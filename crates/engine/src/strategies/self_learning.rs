//! self-learning: routers learn routes from the path that Data takes back (forwarding §4.6; Shi, Newberry and Zhang,
//! "On Broadcast-based Self-Learning in Named Data Networking", IFIP Networking 2017).
//!
//! An Interest without a route goes to all neighbours: it is a *discovery* Interest. A router with a route forwards it
//! marked NonDiscovery, and it is never flooded again. The Data that answers a discovery Interest carries a
//! PrefixAnnouncement, from which every router on the path learns a route. The router where discovery ended attaches
//! the announcement. A router without a route answers a NonDiscovery Interest with Nack NoRoute, and the downstream
//! that gets the Nack removes its route.
//!
//! A route over a dead link does not stop an Interest. When the links of all upstreams are down, the Interest is sent
//! to all neighbours, as if there were no route. A retransmission without the mark NonDiscovery is also sent to all
//! neighbours when the upstreams have been silent for [`SILENT_NS`]. NFD keeps to the route until it ends, 10 minutes
//! at most.
//!
//! Unlike NFD:
//!
//! * The announcement is attached at once, from the table that the control side publishes, so that no Data waits for
//!   the RIB.
//! * It is attached only for downstreams that asked by discovery and are not applications of this machine.
//! * Retransmission suppression applies to floods, but not to unicast retransmissions.

use crate::{
    DropReason,
    state::pit_state::OutRecord,
    strategies::{
        no_route,
        parameters::{InvalidParameter, Parameters},
        retx_suppression::{RetxSuppression, Suppression},
    },
    verdict::{answer::Answer, context::StrategyContext, strategy::Strategy},
};
use namewire_packet::{Data, FaceId, NackReason, Name};
use std::sync::Arc;

/// After this silence of the learned next hop, a retransmission is flooded. It is shorter than the time after which any
/// consumer asks again.
const SILENT_NS: u64 = 150_000_000;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelfLearning {
    floods: RetxSuppression,
}

impl SelfLearning {
    pub(crate) fn create(parameters: &Parameters) -> Result<Arc<dyn Strategy>, InvalidParameter> {
        parameters.refuse_all("self-learning")?;
        Ok(Arc::new(SelfLearning::default()))
    }

    /// Sends to every next hop, marked so that no router floods it.
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

    /// Sends to every neighbour.
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

/// Whether the announced prefix is a prefix of `name`. Three components follow it in the announcement's name. A
/// producer of one name must not announce routes for others.
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
            // The downstreams forget their routes to us, and find another path.
            (false, false) => {
                context.send_nack_to_all(NackReason::NoRoute);
                context.reject();
            }
        }
    }

    fn before_satisfy(&self, context: &mut StrategyContext<'_, '_, '_>, answer: &mut Answer<'_>) {
        let Some(asked) = context.upstream(context.ingress()).map(OutRecord::non_discovery) else { return };
        if asked {
            // Only downstreams that asked by discovery get the announcement.
            let is_wanted = context.downstreams().any(|record| !record.non_discovery);
            if is_wanted {
                context.attach_announcement(answer);
            }
        } else if let Some(announcement) = answer.announcement().filter(|&bytes| covers(bytes, answer.name())) {
            context.learn_route(announcement);
        }
    }

    fn after_receive_nack(&self, context: &mut StrategyContext<'_, '_, '_>, reason: NackReason) {
        if reason == NackReason::NoRoute {
            let asked = context.upstream(context.ingress()).is_some_and(OutRecord::non_discovery);
            if asked {
                context.forget_route();
            }
            // Another upstream may still answer.
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
