//! access: for links to end hosts, where the next hop that answered last will answer again (forwarding §4.6).
//!
//! An Interest is sent only to the next hop that answered last under its prefix. If this next hop does not answer in
//! time, or none has answered yet, all next hops get the Interest. A prefix here is the name of Data without its last
//! component. Unlike NFD, round-trip times belong to the prefix, not to the face: a next hop that is new to a prefix
//! starts with its first answer.

use crate::{
    DropReason, Instant,
    strategies::{
        no_route,
        parameters::{InvalidParameter, Parameters},
        retx_suppression::{RetxSuppression, Suppression},
    },
    verdict::{answer::Answer, context::StrategyContext, strategy::Strategy},
};
use namewire_packet::FaceId;
use std::sync::Arc;

/// How long a prefix is remembered after its last answer, in milliseconds.
const LIFETIME_MS: u64 = 8000;
/// No answer is overdue earlier: links to end hosts are short.
const MIN_RTO_NS: u64 = 1_000_000;
/// Kind of these measurements.
const KIND: u64 = 0x6163_6365_7373;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access {
    suppression: RetxSuppression,
}

impl Access {
    pub(crate) fn create(parameters: &Parameters) -> Result<Arc<dyn Strategy>, InvalidParameter> {
        parameters.refuse_all("access")?;
        Ok(Arc::new(Access::default()))
    }

    /// Sends to the last working next hop, if there is one and it may be used, and sets the timer.
    fn send_to_last_next_hop(context: &mut StrategyContext<'_, '_, '_>) -> bool {
        let Some(id) = context.longest_measured_prefix(KIND) else { return false };
        let measurement = context.measurements().get(id);
        let (last, timeout_ns) = (measurement.last_next_hop, measurement.rtt.timeout_ns(MIN_RTO_NS));
        let Some(face) = last.filter(|&last| context.eligible().any(|face| face == last)) else { return false };
        context.send_interest(face);
        context.set_timer(Instant(context.now().0.saturating_add(timeout_ns)));
        true
    }

    /// Sends to every next hop, or only to those without a pending answer. Returns to how many.
    fn multicast(context: &mut StrategyContext<'_, '_, '_>, only_unused: bool) -> usize {
        let mut tried = 0;
        for next_hop in context.next_hops() {
            let face = FaceId(next_hop.face);
            if (!only_unused || context.is_unused(face)) && context.is_eligible(face) {
                context.send_interest(face);
                tried += 1;
            }
        }
        tried
    }
}

impl Strategy for Access {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        context.watch();
        let decision = self.suppression.decide_for_entry(context);
        if decision == Suppression::Suppress {
            return context.count_drop(DropReason::Suppressed);
        }
        if decision == Suppression::New && Self::send_to_last_next_hop(context) {
            return;
        }
        if Self::multicast(context, false) == 0 {
            let reason = no_route::reason(context);
            context.count_drop(reason);
            if decision == Suppression::New && reason != DropReason::NextHopDown {
                context.reject();
            }
        }
    }

    /// The last working next hop has not answered: all others are tried.
    fn after_timer(&self, context: &mut StrategyContext<'_, '_, '_>) {
        Self::multicast(context, true);
    }

    /// Treated like an answer that did not come in time.
    fn after_upstream_lost(&self, context: &mut StrategyContext<'_, '_, '_>) {
        Self::multicast(context, true);
    }

    fn after_new_next_hop(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        no_route::offer(context, face);
    }

    fn before_satisfy(&self, context: &mut StrategyContext<'_, '_, '_>, answer: &mut Answer<'_>) {
        let (now, face) = (context.now(), context.ingress());
        let Some(sent) = context.upstream(face).map(|record| record.sent) else { return };
        let key = answer.parent_key(KIND);
        let measurements = context.measurements();
        let id = measurements.find_or_insert(key, now, LIFETIME_MS);
        let measurement = measurements.get_mut(id);
        if measurement.last_next_hop.replace(face) != Some(face) {
            measurement.rtt = Default::default();
        }
        measurement.rtt.add(now.since_ns(sent));
    }

    fn nacks_loops(&self) -> bool {
        false
    }
}
