//! What happens as time passes: Interests expire, and strategies are called at the times that they requested.

use crate::{
    ground::measured::PartClock,
    pipeline::{call::Call, watched::with_strategy},
    state::parts::Parts,
};
use namewire_tables::PitId;

/// Most alarms served in one call, so that packets do not wait behind a mass expiry.
const TIMERS_PER_CALL: usize = 1024;

/// Most alarms looked at in one call. Consumers choose deadlines; alarms of far-off ones can come before due ones.
const TIMER_VISITS_PER_CALL: u32 = 4096;

/// Serves due timers.
pub(crate) fn run_timers<C: PartClock>(parts: &mut Parts, call: &mut Call<'_, '_, C>) {
    let now = call.outbound.now;
    let mut visits = TIMER_VISITS_PER_CALL;
    parts.measurements.run_timers(now, &mut visits);
    visits = visits.max(TIMER_VISITS_PER_CALL / 2); // old measurements must not keep Interests alive
    for _ in 0..TIMERS_PER_CALL {
        let Some(id) = parts.tables.timers.pop_expired(now.0, &mut visits) else { break };
        entry_due(parts, call, PitId(id));
    }
}

/// An alarm came: for this entry, for one that had its place before, or too early.
fn entry_due<C: PartClock>(parts: &mut Parts, call: &mut Call<'_, '_, C>, entry: PitId) {
    if !parts.tables.pit_cs.pit_exists(entry) {
        return;
    }
    let now = call.outbound.now;
    let (state, _) = parts.tables.state_mut(entry);
    if state.expires <= now {
        if state.expiry_watched && !state.satisfied {
            tell_of_expiry(parts, call, entry);
        }
        if !parts.tables.state(entry).satisfied {
            parts.tables.note_silence(call.outbound.faces, entry);
        }
        return parts.tables.finalize_unsatisfied(now, entry, &mut parts.counters);
    }
    if state.strategy_deadline.take_if(|at| *at <= now).is_some() {
        with_strategy(parts, call, entry, None, |strategy, context| strategy.after_timer(context));
    }
    if parts.tables.pit_cs.pit_exists(entry) {
        parts.tables.arm(entry);
    }
}

#[cold]
fn tell_of_expiry<C: PartClock>(parts: &mut Parts, call: &mut Call<'_, '_, C>, entry: PitId) {
    let last = parts.tables.records.downstreams(parts.tables.state(entry)).last().map(|record| record.face);
    with_strategy(parts, call, entry, last, |strategy, context| strategy.before_expiry(context));
}
