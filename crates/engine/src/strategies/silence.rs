//! Silence: which next hop no longer answers, although its link accepts packets?
//!
//! best-route learns it from unanswered Interests. *Evidence* is an Interest that was not answered within
//! [`OVERDUE_NS`], under a FIB prefix with several next hops. The strategy notices it when the consumer asks again, or
//! when the Interest expires. The first evidence against a next hop begins a *suspicion*. From then on the strategy
//! watches the Data from this next hop, and one answer ends the suspicion. A next hop is *silent* when
//! [`SILENT_INTERESTS`] Interests in a row were not answered, the first of them at least [`SILENT_NS`] ago. It then
//! ranks after the others, and is probed until it answers: when another next hop has answered an Interest, the silent
//! one gets a copy of that Interest.
//!
//! A consumer that asks for names that do not exist produces evidence against every next hop. Hence:
//!
//! * Time counts too: one answer a second keeps a next hop in its rank, even if all other Interests stay unanswered.
//! * A probe is a copy of an Interest that was answered, so its name is known to exist.
//! * If only such names made a next hop silent, it is probed with the first Interest that another next hop answers, at
//!   most [`PROBE_NS_MAX`] after the last probe.
//!
//! Cost: without suspicions, an Interest takes a test of their number, and a flag in its entry if there are several
//! next hops. Under a prefix with a suspicion, an Interest or a Data takes a look-up of measurements. Each worker
//! learns for itself.

use crate::{
    Instant,
    state::measurements::{NextHopHealth, NextHopMeasurement},
    verdict::{
        answer::Answer,
        context::StrategyContext,
        foresight::{Fitness, Foresight, Prospect, pick},
    },
};
use namewire_packet::FaceId;
use namewire_tables::NextHop;

/// An Interest unanswered for this long is evidence. It is shorter than the time after which any consumer asks again
/// (200 ms in ndncatchunks and the SegmentFetchers, 1 s in RFC 6298).
const OVERDUE_NS: u64 = 150_000_000;
/// This number of unanswered Interests in a row makes a next hop silent. Where one packet in ten is lost, four in a row
/// are one case in 10,000, and the next answer corrects it. A consumer with one pending Interest needs four time-outs.
const SILENT_INTERESTS: u32 = 4;
/// And the time without an answer: longer than a round trip, a burst of losses, or a route change.
const SILENT_NS: u64 = 1_000_000_000;
/// A suspicion without new evidence ends after this.
const SUSPICION_MS: u64 = 10_000;
/// What is known of a silent next hop is kept for this long after the last Interest.
const SILENT_LIFETIME_MS: u64 = 300_000;
/// Time to the first probe; it doubles with each.
const PROBE_NS: u64 = 1_000_000_000;
/// Longest time between probes: how long a repaired path can stay unused.
const PROBE_NS_MAX: u64 = 8_000_000_000;
/// How long an answered entry waits for other answers. Only one packet in seconds waits, so it may be longer than asf's
/// 50 ms: a cheaper path may be slower.
const WAIT_FOR_OTHERS_MS: u64 = 1000;
/// Kind of these measurements.
const KIND: u64 = 0x0073_696c_656e_6365;

/// The best next hop of a new Interest, whose Data the strategy watches.
#[cold]
pub(crate) fn first_choice(context: &mut StrategyContext<'_, '_, '_>) -> Option<FaceId> {
    best(context, false)
}

/// The cheapest eligible next hop that is not silent, else the cheapest. `unused`: only among those that were not
/// asked.
pub(crate) fn best(context: &mut StrategyContext<'_, '_, '_>, unused: bool) -> Option<FaceId> {
    let looks = context.next_hops().len() > 1 && context.has_suspects();
    let suspicion = if looks { find(context) } else { None };
    if suspicion.is_some() {
        context.watch();
    }
    let (best, avoided) = pick(context.next_hops(), |hop| {
        let face = FaceId(hop.face);
        if unused && !context.is_unused(face) || !context.is_eligible(face) {
            return Fitness::Unfit;
        }
        fitness(hop, suspicion.is_some_and(|key| is_silent(context, key, face)))
    });
    avoided.into_iter().for_each(|face| context.note_avoided(face));
    best
}

/// The order is that of the FIB: the cheapest first.
fn fitness(hop: &NextHop, is_silent: bool) -> Fitness<u64> {
    if is_silent { Fitness::Silent(hop.cost) } else { Fitness::Fit(hop.cost) }
}

/// What [`best`] would choose for a new Interest.
pub(crate) fn foresee(prospect: &Prospect<'_>) -> Foresight {
    let is_silent = |face| prospect.known(KIND, face).is_some_and(|known| is_judged_silent(known, prospect.now()));
    let (best, _) = pick(prospect.next_hops(), |hop| {
        let face = FaceId(hop.face);
        if prospect.is_eligible(face) { fitness(hop, is_silent(face)) } else { Fitness::Unfit }
    });
    let faces = prospect.next_hops().iter().map(|hop| FaceId(hop.face));
    Foresight { chosen: best.into_iter().collect(), silent: faces.filter(|face| is_silent(*face)).collect() }
}

/// Counts the upstreams that did not answer in time, each once per entry.
#[cold]
pub(crate) fn note_unanswered(context: &mut StrategyContext<'_, '_, '_>) {
    while let Some(face) = context.next_unanswered(OVERDUE_NS) {
        let (now, key) = (context.now(), context.prefix_key(KIND));
        let measurements = context.measurements();
        let id = measurements.suspect(key, now, SUSPICION_MS);
        let Some(known) = measurements.next_hop_or_insert(id, face, now, SUSPICION_MS) else { return };
        if known.health == NextHopHealth::TimedOut {
            continue;
        }
        if known.timeouts == 0 {
            known.due = Instant(now.0.saturating_add(SILENT_NS));
        }
        known.timeouts += 1;
    }
}

/// Data has come: its next hop is not silent. If another one is, it is probed when a probe is due.
#[cold]
pub(crate) fn note_answer(context: &mut StrategyContext<'_, '_, '_>, answer: &mut Answer<'_>) {
    let (now, face, key) = (context.now(), context.ingress(), context.prefix_key(KIND));
    let measurements = context.measurements();
    let Some(id) = measurements.find(key, now) else { return };
    measurements.forget_next_hop(id, face, now);
    if measurements.find(key, now).is_none() {
        return;
    }
    answer.wait_for_others(WAIT_FOR_OTHERS_MS);
    for next_hop in context.next_hops() {
        let face = FaceId(next_hop.face);
        if context.is_unused(face) && context.choose_ingress_for(face) && is_probe_due(context, key, face) {
            let nonce = context.new_nonce();
            return context.send_copy(face, nonce);
        }
    }
}

/// The key of what is known under the prefix, if there is anything.
fn find(context: &mut StrategyContext<'_, '_, '_>) -> Option<u64> {
    let (now, key) = (context.now(), context.prefix_key(KIND));
    context.measurements().find(key, now).map(|_| key)
}

/// Whether `face` is silent; if so, the engine remembers it for a while longer.
fn is_silent(context: &mut StrategyContext<'_, '_, '_>, key: u64, face: FaceId) -> bool {
    let now = context.now();
    let measurements = context.measurements();
    let Some(id) = measurements.find(key, now) else { return false };
    if !measurements.next_hop_mut(id, face, now).is_some_and(|known| judge(known, now)) {
        return false;
    }
    measurements.find_or_insert(key, now, SILENT_LIFETIME_MS);
    measurements.next_hop_or_insert(id, face, now, SILENT_LIFETIME_MS);
    true
}

/// Whether what is known is enough to call the next hop silent.
fn is_judged_silent(known: &NextHopMeasurement, now: Instant) -> bool {
    known.health == NextHopHealth::TimedOut || known.timeouts >= SILENT_INTERESTS && known.due <= now
}

/// Whether the next hop is silent now.
fn judge(known: &mut NextHopMeasurement, now: Instant) -> bool {
    let is_suspect = known.health != NextHopHealth::TimedOut;
    if is_suspect && is_judged_silent(known, now) {
        // From here on, probes are counted.
        (known.health, known.timeouts) = (NextHopHealth::TimedOut, 0);
        known.due = Instant(now.0.saturating_add(PROBE_NS));
    }
    known.health == NextHopHealth::TimedOut
}

/// Whether a probe goes to `face` now; the next one is due later.
fn is_probe_due(context: &mut StrategyContext<'_, '_, '_>, key: u64, face: FaceId) -> bool {
    let now = context.now();
    let measurements = context.measurements();
    let known = measurements.find(key, now).and_then(|id| measurements.next_hop_mut(id, face, now));
    let Some(known) = known.filter(|known| known.health == NextHopHealth::TimedOut && known.due <= now) else {
        return false;
    };
    known.timeouts += 1;
    let pause_ns = PROBE_NS.saturating_mul(1 << known.timeouts.min(8)).min(PROBE_NS_MAX);
    known.due = Instant(now.0.saturating_add(pause_ns));
    true
}
