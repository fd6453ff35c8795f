//! What happens without a packet: expiry, strategy timers, and new next hops. Changes of faces: [`crate::face_changes`].

use crate::{
    DropReason, Engine, FaceId, Instant, Output, View,
    batch::Pass,
    incoming_interest::{LeadsOn, delegations, next_hop_entry},
    strategy::{StrategyContext, Trigger},
};
use namewire_packet::{Interest, NameBuf, Nonce, interest::DEFAULT_LIFETIME_MS};
use namewire_tables::{FibMatch, PitId};

/// Most timers served in one call, so that packets do not wait behind a mass expiry.
const TIMERS_PER_CALL: usize = 1024;

/// Most timers looked at in one call: those of far-off deadlines, which consumers choose,
/// can stand before what is due.
const TIMER_VISITS_PER_CALL: u32 = 4096;

/// Most Interests that one scan for new next hops sends: their octets stand in [`Output`]
/// all at once.
pub(crate) const SENDS_PER_SCAN: usize = 1024;

impl Engine {
    /// When [`Engine::run_timers`] wants to be called; may be early, never late.
    pub fn next_deadline(&self) -> Option<Instant> {
        let deadlines_ns = [self.timers.next_deadline(), self.measurements.next_deadline_ns()];
        deadlines_ns.into_iter().flatten().min().map(Instant)
    }

    /// Serves what is due, 1,024 timers at most, and looks at 4,096 at most: call again
    /// while [`Engine::next_deadline`] is not after `now`.
    pub fn run_timers(&mut self, now: Instant, view: &View<'_>, out: &mut Output) {
        self.begin(out);
        let mut pass = Pass { now, view: *view, out };
        let mut visits = TIMER_VISITS_PER_CALL;
        self.measurements.run_timers(now, &mut visits);
        visits = visits.max(TIMER_VISITS_PER_CALL / 2); // old measurements must not keep Interests alive
        for _ in 0..TIMERS_PER_CALL {
            let Some(id) = self.timers.pop_expired(now.0, &mut visits) else { break };
            self.entry_due(&mut pass, PitId(id));
        }
    }

    fn entry_due(&mut self, pass: &mut Pass<'_, '_>, entry: PitId) {
        let state = &mut self.tables.pit_mut(entry).state;
        if state.expires <= pass.now {
            if state.expiry_watched && !state.satisfied {
                self.tell_of_expiry(pass, entry);
            }
            return self.finalize_unsatisfied(pass.now, entry);
        }
        if state.strategy_deadline.take_if(|at| *at <= pass.now).is_some() {
            self.with_strategy(pass, entry, None, |strategy, context| strategy.after_timer(context));
        }
        if self.tables.pit_exists(entry) {
            self.arm(entry);
        }
    }

    #[cold]
    fn tell_of_expiry(&mut self, pass: &mut Pass<'_, '_>, entry: PitId) {
        let last = self.records.downstreams(&self.tables.pit(entry).state).last().map(|record| record.face);
        self.with_strategy(pass, entry, last, |strategy, context| strategy.before_expiry(context));
    }

    /// New next hops: FIB entries have gained faces. Pending Interests that go by these entries
    /// (by name, or by ForwardingHint) are shown to their strategy, on behalf of a downstream
    /// that may be served through the face. `gained` is in ascending order.
    /// Cost: one walk over the PIT, however many there are, and at most 1,024 Interests sent.
    pub fn new_next_hops(&mut self, now: Instant, view: &View<'_>, gained: &[(NameBuf, FaceId)], out: &mut Output) {
        debug_assert!(gained.is_sorted());
        self.begin(out);
        let mut pass = Pass { now, view: *view, out };
        let mut wire = std::mem::take(&mut self.interest_copy);
        let mut entries = std::mem::take(&mut self.entries_to_visit);
        entries.clear();
        entries.extend(self.tables.pit_iter_ids().filter(|id| {
            let pit = self.tables.pit(*id);
            if !pit.state.by_hint {
                return is_covered(gained, self.tables.group_name(pit.group()));
            }
            wire.clear();
            self.tables.pit_interest(*id, &mut wire);
            let interest = Interest::parse(&wire);
            interest.is_ok_and(|interest| delegations(&interest).any(|name| is_covered(gained, name.value())))
        }));
        self.interest_copy = wire;
        for &entry in &entries {
            let mut room = SENDS_PER_SCAN.saturating_sub(pass.out.transmits.len());
            self.with_strategy(&mut pass, entry, None, |strategy, context| {
                let Some(prefix) = context.prefix() else { return };
                let from = gained.partition_point(|(name, _)| name.value() < prefix);
                let under = gained[from..].partition_point(|(name, _)| name.value() == prefix);
                for (_, face) in &gained[from..from + under] {
                    if !context.choose_ingress_for(*face) {
                        continue;
                    }
                    match room {
                        0 => context.count_drop(DropReason::NextHopScanFull),
                        _ => strategy.after_new_next_hop(context, *face),
                    }
                    room = room.saturating_sub(1);
                }
            });
        }
        self.entries_to_visit = entries;
    }

    /// Calls a strategy for an entry without an Interest at hand; without an `ingress`, on behalf of
    /// the last downstream, if there is one.
    ///
    /// What is sent then bears the downstream's nonce, unless copies of the Interest have left and none can be answered any
    /// more: then it bears a new one. Such a copy may have got through before its link went, so that the router behind
    /// has it pending; if ours comes there by another way with the same nonce, it is taken for a loop and answered by a Nack,
    /// and the Data goes into the dead link. With a new nonce we become a further downstream there. Loops end all
    /// the same: the new nonce is in our out-record, and when the entry ends in the dead nonce list, as those of all copies.
    pub(crate) fn with_strategy(
        &mut self,
        pass: &mut Pass<'_, '_>,
        entry: PitId,
        ingress: Option<FaceId>,
        call: impl FnOnce(&dyn crate::Strategy, &mut StrategyContext<'_, '_, '_>),
    ) {
        let is_answered = ingress.is_some(); // then the entry's end is the caller's
        let pit = self.tables.pit(entry);
        let name = self.tables.group_name(pit.group());
        let mut hashes = std::mem::take(&mut self.name_hashes);
        let found: Option<FibMatch<'_>> = match hashes.compute(pass.view.fib.key(), name) {
            Ok(()) => pass.view.fib.longest_prefix_match(name, &hashes),
            Err(_) => None,
        };
        let mut wire = std::mem::take(&mut self.interest_copy);
        wire.clear();
        self.tables.pit_interest(entry, &mut wire);
        let interest = Interest::parse(&wire).ok();
        let lifetime_ms = interest.map_or(DEFAULT_LIFETIME_MS, |interest| interest.lifetime_ms());
        let hop_limit = interest.and_then(|interest| interest.hop_limit());
        let leads_on = match &interest {
            Some(interest) => next_hop_entry(pass, &mut hashes, &mut self.hint_prefix, interest, found),
            None => found.map(LeadsOn::by_name),
        };
        (self.interest_copy, self.name_hashes) = (wire, hashes);
        let last = self.records.downstreams(&pit.state).last().map(|record| record.face);
        let Some(ingress) = ingress.or(last) else { return };
        let mut trigger = Trigger { hop_limit, ..Trigger::of_entry(ingress, &self.records, &pit.state, lifetime_ms) };
        let (is_sent, is_pending) = self.is_sent_and_pending(&pit.state, pass.now);
        if is_sent && !is_pending {
            trigger.nonce = Nonce::from_u32(self.rng.u32(..));
        }
        let strategy = pass.view.strategies.get(found.map_or(0, |found| found.strategy));
        let mut context = StrategyContext::new(self, pass, entry, trigger, leads_on);
        call(strategy, &mut context);
        if !is_answered {
            context.finish();
        }
    }
}

/// True if one of the names, which are in ascending order, is a prefix of `name`.
fn is_covered(sorted: &[(NameBuf, FaceId)], name: &[u8]) -> bool {
    let mut reach = name;
    loop {
        // A prefix of `name` is no later than this one, and if it is not this one, a prefix of this one too.
        let behind = sorted.partition_point(|(other, _)| other.value() <= reach);
        let Some((last, _)) = behind.checked_sub(1).map(|place| &sorted[place]) else { return false };
        let common = name.iter().zip(last.value()).take_while(|(a, b)| a == b).count();
        if common == last.value().len() {
            return true;
        }
        reach = &name[..common];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_cover_one_are_found() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut name = |longest: usize| {
            let mut name = NameBuf::new();
            for _ in 0..random.usize(1..=longest) {
                name.push_generic(["a", "b", "bb"][random.usize(0..3)].as_bytes());
            }
            name
        };
        let mut covered = 0;
        for round in 0..2000 {
            let mut sorted: Vec<_> = (0..round % 20).map(|_| (name(4), FaceId(1))).collect();
            sorted.sort_unstable();
            let name = name(6);
            let expected = sorted.iter().any(|(prefix, _)| prefix.as_name().is_prefix_of(&name.as_name()));
            assert_eq!(is_covered(&sorted, name.value()), expected, "{name} {sorted:?}");
            covered += usize::from(expected);
        }
        assert!((200..1800).contains(&covered), "{covered}");
        assert!(is_covered(&[(NameBuf::new(), FaceId(1))], name(2).value()), "everything is under /");
    }
}
