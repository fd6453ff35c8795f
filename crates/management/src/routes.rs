//! Routes: carries out the consequences of route changes, in slices.
//!
//! A face that closes, a common expiry time or a change of `/` may concern a million routes: seconds of work. One call
//! of [`Routes`] does at most one slice of [`ROUTES_PER_SLICE`] and [`NAMES_PER_SLICE`], which takes some milliseconds.
//! The next slice is due at once ([`crate::Management::next_deadline`]); the router decides what runs before it.
//!
//! Meanwhile, no dataset shows routes of a closed face or expired routes, and such routes make no new entry. The
//! forwarder's FIB may still have next hops to the face; the forwarder knows that the face is down. A command's own
//! prefix is in the FIB before the answer, however much work waits. Longer prefixes that inherit from it follow later.

use crate::{
    announcement_store::Announcements,
    effect::Effect,
    environment::{Environment, Times},
    fib_computation::{FibComputation, FibLimits, FibSources, FibUpdate},
    fib_full::FibFull,
    log_lines,
    manual_next_hops::ManualNextHops,
    readvertise::{Readvertise, ReadvertiseConfig},
    replies::Replies,
    rib::{Rib, RibFull, Route},
    strategy_choice::StrategyChoices,
};
use namewire_packet::{FaceId, Name, NameBuf};

/// Most prefixes that lose routes of faces that are gone in one call; as many again lose expired routes.
const ROUTES_PER_SLICE: usize = 500;

/// Most names whose FIB entries one call recomputes after a change; as many again for earlier changes.
const NAMES_PER_SLICE: usize = 1000;

/// The routes, and the other tables from which the FIB is computed.
pub(crate) struct Routes {
    pub(crate) rib: Rib,
    pub(crate) announcements: Announcements,
    pub(crate) manual: ManualNextHops,
    pub(crate) strategies: StrategyChoices,
    /// Strategies that are no longer chosen but may still be in the FIB.
    former_strategies: Vec<u32>,
    pub(crate) fib: FibComputation,
    /// Of the forwarder's table.
    pub(crate) fib_limits: FibLimits,
    /// The forwarder's table is behind: [`Routes::run_changes`] waits.
    pub(crate) is_held: bool,
    /// The part that tells the routing daemon about routes.
    pub(crate) readvertise: Readvertise,
}

impl Routes {
    pub(crate) fn new(
        rib: Rib,
        strategies: StrategyChoices,
        fib_limits: FibLimits,
        readvertise: ReadvertiseConfig,
    ) -> Self {
        Routes {
            rib,
            announcements: Announcements::default(),
            manual: ManualNextHops::default(),
            strategies,
            former_strategies: Vec::new(),
            fib: FibComputation::new(),
            fib_limits,
            is_held: false,
            readvertise: Readvertise::new(readvertise),
        }
    }

    /// Forgets a face. Its routes and next hops go with it, one slice of them now.
    pub(crate) fn remove_face(&mut self, face: FaceId, replies: &mut Replies, out: &mut Vec<Effect>) {
        self.rib.leave(face);
        let mut changed = self.rib.remove_leaving(ROUTES_PER_SLICE);
        changed.extend(self.manual.remove_face(face));
        self.update_fib(changed, replies, out);
    }

    /// True if [`Routes::run_changes`] has work.
    pub(crate) fn has_changes(&self) -> bool {
        self.rib.is_leaving() || !self.fib.is_settled()
    }

    /// When [`Routes::run_changes`] has work next.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        let now_or_later = self.has_changes().then_some(0).or_else(|| self.rib.next_deadline_ns());
        now_or_later.filter(|_| !self.is_held)
    }

    /// Does one slice of the earlier changes, and one of the routes that have expired.
    pub(crate) fn run_changes(&mut self, now: Times, replies: &mut Replies, out: &mut Vec<Effect>) {
        if self.is_held {
            return;
        }
        self.remove_routes(now, replies, out);
        if !self.fib.is_settled() {
            let sources = FibSources { rib: &self.rib, manual: &self.manual, strategies: &self.strategies };
            let update = self.fib.resume(sources, NAMES_PER_SLICE);
            tell(update, out);
        }
    }

    fn remove_routes(&mut self, now: Times, replies: &mut Replies, out: &mut Vec<Effect>) {
        let before = self.rib.len();
        let mut changed = self.rib.expire(now.mono_ns, ROUTES_PER_SLICE);
        let expired = (before - self.rib.len()) as u64;
        replies.counters.routes_expired += expired;
        log_lines::routes_expired(&changed);
        if expired > 0 {
            replies.store.note_change();
        }
        changed.extend(self.rib.remove_leaving(ROUTES_PER_SLICE));
        self.update_fib(changed, replies, out);
    }

    /// Whether the forwarder's FIB has room for this prefix, or has it.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn room_in_fib(&self, prefix: Name<'_>) -> Result<(), FibFull> {
        self.fib.room_for(prefix, self.fib_limits.all)
    }

    /// Adds a route, or replaces one. True if anything changed that the FIB depends on. If a table is full and
    /// contains routes on their way out, they make room first.
    pub(crate) fn insert(
        &mut self,
        now: Times,
        prefix: Name<'_>,
        route: Route,
        replies: &mut Replies,
        out: &mut Vec<Effect>,
    ) -> Result<bool, RibFull> {
        let result = self.try_insert(prefix, route);
        let may_have_room = self.rib.is_leaving() || self.rib.next_deadline_ns().is_some_and(|at| at <= now.mono_ns);
        if result.is_err() && may_have_room {
            self.remove_routes(now, replies, out);
            return self.try_insert(prefix, route);
        }
        result
    }

    fn try_insert(&mut self, prefix: Name<'_>, route: Route) -> Result<bool, RibFull> {
        self.room_in_fib(prefix)?;
        self.rib.insert(prefix, route)
    }

    /// Recomputes the FIB at and under the changed prefixes, one slice of it now.
    pub(crate) fn update_fib(&mut self, changed: Vec<NameBuf>, replies: &mut Replies, out: &mut Vec<Effect>) {
        for prefix in &changed {
            let has_room = self.readvertise.note(&self.rib, prefix.as_name());
            replies.counters.readvertise_full += u64::from(!has_room);
        }
        if changed.iter().any(|prefix| self.announcements.concerns(prefix.as_name())) {
            self.publish_announcements(out);
        }
        let sources = FibSources { rib: &self.rib, manual: &self.manual, strategies: &self.strategies };
        let update = self.fib.recompute(changed, sources, NAMES_PER_SLICE);
        tell(update, out);
    }

    /// Emits the announcements whose routes are still there.
    pub(crate) fn publish_announcements(&mut self, out: &mut Vec<Effect>) {
        self.announcements.publish(&self.rib, out);
    }

    /// Releases strategies that no choice uses, once no FIB entry uses them either.
    pub(crate) fn release_strategies(&mut self, former: Option<u32>, environment: &mut dyn Environment) {
        self.former_strategies.extend(former);
        if self.fib.is_settled() {
            self.former_strategies.sort_unstable();
            self.former_strategies.dedup();
            let unused = self.former_strategies.drain(..).filter(|id| !self.strategies.uses(*id));
            unused.for_each(|id| environment.release(id));
        }
    }
}

fn tell(update: FibUpdate, out: &mut Vec<Effect>) {
    if !update.changes.is_empty() {
        out.push(Effect::Fib(update.changes));
    }
    if !update.new_next_hops.is_empty() {
        out.push(Effect::NewNextHops(update.new_next_hops));
    }
}
