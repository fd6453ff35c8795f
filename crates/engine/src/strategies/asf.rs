//! asf: uses the next hop that answers fastest, and sometimes probes another one (forwarding §4.5; Lehman et al., "An
//! Experimental Investigation of Hyperbolic Routing with a Smart Forwarding Plane in NDN", IWQoS 2016).
//!
//! The engine's measurements store what asf knows of next hops, per FIB prefix. asf watches one Interest at a time per
//! next hop. It checks whether the answer is overdue when it considers the next hop again, so it needs no timer.

use crate::{
    DropReason, Instant,
    state::measurements::{Awaited, NextHopHealth, NextHopMeasurement},
    strategies::{
        nack_processing::process_nack,
        no_route,
        parameters::{InvalidParameter, Parameters},
        retx_suppression::{RetxSuppression, Suppression},
    },
    verdict::{
        answer::Answer,
        context::StrategyContext,
        foresight::{Fitness, Foresight, Prospect, pick},
        strategy::Strategy,
    },
};
use namewire_packet::{FaceId, NackReason};
use namewire_tables::NextHop;
use std::sync::Arc;

/// No answer is overdue earlier.
const MIN_RTO_NS: u64 = 200_000_000;
/// The first probe under a prefix is sent at most this many milliseconds after its first use.
const FIRST_PROBE_MS_MAX: u64 = 5000;
/// Shortest interval between probes that a parameter may set, in milliseconds.
const PROBING_INTERVAL_MS_MIN: u64 = 1000;
/// How long an answered entry waits for the answers to probes, in milliseconds.
const WAIT_FOR_PROBES_MS: u64 = 50;
/// Kind of these measurements.
const KIND: u64 = 0x0061_7366;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Asf {
    suppression: RetxSuppression,
    probing_interval_ms: u64,
    max_timeouts: u32,
    measurements_lifetime_ms: u64,
}

/// The rank of a next hop; the lowest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Working { smoothed_ns: u64 },
    Unmeasured,
    TimedOut,
}

impl Rank {
    fn of(known: &NextHopMeasurement) -> Self {
        match (known.health, known.rtt.smoothed_ns()) {
            (NextHopHealth::TimedOut, _) => Rank::TimedOut,
            (NextHopHealth::Working, Some(smoothed_ns)) => Rank::Working { smoothed_ns },
            _ => Rank::Unmeasured,
        }
    }
}

/// By rank, then cost, then number.
fn fitness(hop: &NextHop, rank: Rank) -> Fitness<(Rank, u64, u64)> {
    let place = (rank, hop.cost, hop.face);
    if rank == Rank::TimedOut { Fitness::Silent(place) } else { Fitness::Fit(place) }
}

impl Asf {
    pub(crate) fn create(parameters: &Parameters) -> Result<Arc<dyn Strategy>, InvalidParameter> {
        let asf = Asf {
            suppression: RetxSuppression::from_parameters(parameters)?,
            probing_interval_ms: parameters.number("probing-interval")?.unwrap_or(60_000),
            max_timeouts: parameters.number("max-timeouts")?.unwrap_or(3),
            measurements_lifetime_ms: parameters.number("measurements-lifetime")?.unwrap_or(300_000),
        };
        let invalid = |why: String| Err(InvalidParameter(why));
        if asf.probing_interval_ms < PROBING_INTERVAL_MS_MIN {
            return invalid(format!("probing-interval must be {PROBING_INTERVAL_MS_MIN} ms or more"));
        }
        if asf.max_timeouts == 0 {
            return invalid("max-timeouts must be 1 or more".to_owned());
        }
        if asf.measurements_lifetime_ms <= asf.probing_interval_ms {
            return invalid("measurements-lifetime must be longer than probing-interval".to_owned());
        }
        Ok(Arc::new(asf))
    }

    /// Counts an answer that is overdue.
    fn note_overdue(&self, known: &mut NextHopMeasurement, now: Instant) {
        if known.awaited.take_if(|awaited| awaited.until <= now).is_some() {
            known.timeouts += 1;
            if known.timeouts >= self.max_timeouts {
                (known.health, known.timeouts) = (NextHopHealth::TimedOut, 0);
            }
        }
    }

    fn rank(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) -> Rank {
        let (now, key) = (context.now(), context.prefix_key(KIND));
        let measurements = context.measurements();
        let id = measurements.find(key, now);
        let Some(known) = id.and_then(|id| measurements.next_hop_mut(id, face, now)) else { return Rank::Unmeasured };
        self.note_overdue(known, now);
        Rank::of(known)
    }

    /// The best next hop: by rank, then cost, then number. `unused`: only among those without a pending answer.
    fn best(&self, context: &mut StrategyContext<'_, '_, '_>, unused: bool) -> Option<FaceId> {
        let (best, avoided) = pick(context.next_hops(), |hop| {
            let face = FaceId(hop.face);
            if unused && !context.is_unused(face) || !context.is_eligible(face) {
                return Fitness::Unfit;
            }
            fitness(hop, self.rank(context, face))
        });
        avoided.into_iter().for_each(|face| context.note_avoided(face));
        best
    }

    /// Notes that an Interest went to `face`, and watches it if no other is watched there.
    fn note_sent(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        if context.upstream(face).is_none_or(|record| record.sent != context.now()) {
            return; // it was refused
        }
        context.watch();
        let (now, key, name_hash) = (context.now(), context.prefix_key(KIND), context.name_hash());
        let lifetime_ms = self.measurements_lifetime_ms;
        let measurements = context.measurements();
        let id = measurements.find_or_insert(key, now, lifetime_ms);
        let Some(known) = measurements.next_hop_or_insert(id, face, now, lifetime_ms) else { return };
        self.note_overdue(known, now);
        if known.awaited.is_none() {
            let until = Instant(now.0.saturating_add(known.rtt.timeout_ns(MIN_RTO_NS)));
            known.awaited = Some(Awaited { until, name_hash });
        }
    }

    fn forward(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        context.send_interest(face);
        self.note_sent(context, face);
    }

    /// Sends a copy to another next hop, if a probe is due.
    fn probe(&self, context: &mut StrategyContext<'_, '_, '_>, used: FaceId) {
        let (now, key) = (context.now(), context.prefix_key(KIND));
        let Some(id) = context.measurements().find(key, now) else { return };
        let Some(due) = context.measurements().get(id).next_probe else {
            let first = now.plus_ms(context.random().u64(..=FIRST_PROBE_MS_MAX));
            context.measurements().get_mut(id).next_probe = Some(first);
            return;
        };
        if due > now {
            return;
        }
        let Some(face) = self.face_to_probe(context, used) else { return };
        let nonce = context.new_nonce();
        context.send_copy(face, nonce);
        self.note_sent(context, face);
        context.measurements().get_mut(id).next_probe = Some(now.plus_ms(self.probing_interval_ms));
    }

    /// The cheapest next hop that was never measured. If all were measured, a random one, better ones more likely: of n
    /// in the order of their ranks, the j-th has the weight n + 1 − j.
    fn face_to_probe(&self, context: &mut StrategyContext<'_, '_, '_>, used: FaceId) -> Option<FaceId> {
        let mut candidates = 0;
        for next_hop in context.next_hops() {
            let face = FaceId(next_hop.face);
            if face == used || !context.is_eligible(face) {
                continue;
            }
            // The FIB's order is cheapest first.
            if self.rank(context, face) == Rank::Unmeasured {
                return Some(face);
            }
            candidates += 1;
        }
        let mut weight = context.random().u64(..candidates * (candidates + 1) / 2 + u64::from(candidates == 0));
        let place = (0..candidates).find(|place| {
            let own = candidates - place;
            let is_chosen = weight < own;
            weight = weight.saturating_sub(own);
            is_chosen
        })?;
        self.nth_in_rank(context, used, place)
    }

    /// The next hop with `place` others before it. Cost: quadratic in their number, but no list to sort them in is
    /// needed, and probes are rare.
    fn nth_in_rank(&self, context: &mut StrategyContext<'_, '_, '_>, used: FaceId, place: u64) -> Option<FaceId> {
        let mut last: Option<(Rank, u64, FaceId)> = None;
        for _ in 0..=place {
            let mut next: Option<(Rank, u64, FaceId)> = None;
            for next_hop in context.next_hops() {
                let face = FaceId(next_hop.face);
                if face == used || !context.is_eligible(face) {
                    continue;
                }
                let candidate = (self.rank(context, face), next_hop.cost, face);
                if last.is_none_or(|last| candidate > last) && next.is_none_or(|next| candidate < next) {
                    next = Some(candidate);
                }
            }
            last = Some(next?);
        }
        last.map(|(_, _, face)| face)
    }

    /// Sends a retransmission to a next hop that did not get the Interest. If all got it, the next hop that got it
    /// longest ago gets it again, if its suppression interval is over.
    fn retransmit(&self, context: &mut StrategyContext<'_, '_, '_>) {
        if let Some(face) = self.best(context, true) {
            return self.forward(context, face);
        }
        let sent = |&face: &FaceId| context.upstream(face).map(|record| record.sent);
        let oldest = context.eligible().min_by_key(sent);
        let Some(face) = oldest else { return context.count_drop(no_route::reason(context)) };
        match self.suppression.decide_for_upstream(context, face) {
            Suppression::Suppress => context.count_drop(DropReason::Suppressed),
            Suppression::New | Suppression::Forward => self.forward(context, face),
        }
    }
}

impl Strategy for Asf {
    /// Now and then, a copy goes to another next hop, too.
    fn foresee(&self, prospect: &Prospect<'_>) -> Foresight {
        let rank = |face| prospect.known(KIND, face).map_or(Rank::Unmeasured, Rank::of);
        let (best, _) = pick(prospect.next_hops(), |hop| {
            let face = FaceId(hop.face);
            if prospect.is_eligible(face) { fitness(hop, rank(face)) } else { Fitness::Unfit }
        });
        let silent =
            prospect.next_hops().iter().map(|hop| FaceId(hop.face)).filter(|face| rank(*face) == Rank::TimedOut);
        Foresight { chosen: best.into_iter().collect(), silent: silent.collect() }
    }

    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        if context.is_any_upstream_pending() {
            return self.retransmit(context);
        }
        match self.best(context, false) {
            Some(face) => {
                self.forward(context, face);
                self.probe(context, face);
            }
            None => no_route::refuse(context),
        }
    }

    fn before_satisfy(&self, context: &mut StrategyContext<'_, '_, '_>, answer: &mut Answer<'_>) {
        let (now, face) = (context.now(), context.ingress());
        let (key, name_hash) = (context.prefix_key(KIND), context.name_hash());
        let Some(sent) = context.upstream(face).map(|record| record.sent) else { return };
        answer.wait_for_others(WAIT_FOR_PROBES_MS);
        let lifetime_ms = self.measurements_lifetime_ms;
        let measurements = context.measurements();
        let Some(id) = measurements.find(key, now) else { return };
        measurements.find_or_insert(key, now, lifetime_ms);
        let Some(known) = measurements.next_hop_or_insert(id, face, now, lifetime_ms) else { return };
        known.rtt.add(now.since_ns(sent));
        (known.health, known.timeouts) = (NextHopHealth::Working, 0);
        known.awaited.take_if(|awaited| awaited.name_hash == name_hash);
    }

    fn after_receive_nack(&self, context: &mut StrategyContext<'_, '_, '_>, _reason: NackReason) {
        let (now, face, key) = (context.now(), context.ingress(), context.prefix_key(KIND));
        let measurements = context.measurements();
        let known = measurements.find(key, now).and_then(|id| measurements.next_hop_mut(id, face, now));
        if let Some(known) = known {
            (known.health, known.timeouts, known.awaited) = (NextHopHealth::TimedOut, 0, None);
        }
        process_nack(context);
    }

    fn after_upstream_lost(&self, context: &mut StrategyContext<'_, '_, '_>) {
        if let Some(face) = self.best(context, true) {
            self.forward(context, face);
        }
    }

    fn after_new_next_hop(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) {
        if !context.is_any_upstream_pending() && context.is_eligible(face) {
            self.forward(context, face);
        }
    }
}
