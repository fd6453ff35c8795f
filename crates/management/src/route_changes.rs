//! What follows from a change of routes, in slices.
//!
//! A face that closes, a common end of time or a change of `/` may concern a million routes: seconds of work. One call
//! of [`Management`] does at most one slice of it, [`ROUTES_PER_SLICE`] and [`NAMES_PER_SLICE`], which takes some
//! milliseconds; the next one is due at once ([`Management::next_deadline`]), and the router decides what else has its
//! turn before.
//!
//! Meanwhile: routes of a face that is gone and routes that have expired stand in no dataset and make no new entry. The
//! forwarder's FIB may still have next hops to the face; it knows that the face is down. A command's own prefix is in
//! the FIB before its answer, however much waits; what longer prefixes inherit follows.

use crate::{
    dispatcher::Management,
    effect::Effect,
    environment::{Environment, Times},
    fib_computation::{FibSources, FibUpdate},
    rib::{RibFull, Route},
};
use namewire_packet::{FaceId, Name, NameBuf, nfd::FaceEventKind};

/// Most prefixes that lose routes in one call, of faces that are gone and by expiry each.
const ROUTES_PER_SLICE: usize = 500;

/// Most names whose FIB entries one call computes again after a change, and as many again of changes before.
const NAMES_PER_SLICE: usize = 1000;

impl Management {
    /// Forgets a face: its routes and next hops go with it, a slice of them now.
    pub fn on_face_closed(&mut self, now: Times, face: FaceId, out: &mut Vec<Effect>) {
        self.authorizer.forget_face(face);
        self.rib.leave(face);
        let mut changed = self.rib.remove_leaving(ROUTES_PER_SLICE);
        changed.extend(self.manual.remove_face(face));
        if let Some(properties) = self.faces.remove(face) {
            self.store.note_change();
            self.update_fib(changed, out);
            self.announce(now, FaceEventKind::Destroyed, &properties, out);
        } else {
            self.update_fib(changed, out);
        }
    }

    /// True if a face that is gone still has routes here, and may still be in the FIB.
    pub fn is_leaving(&self, face: FaceId) -> bool {
        self.rib.is_gone(face)
    }

    /// True if [`Management::run_route_changes`] has something to do.
    pub(crate) fn has_route_changes(&self) -> bool {
        self.rib.is_leaving() || !self.fib.is_settled()
    }

    /// One slice of what is left of earlier changes, and of the routes that have expired.
    pub(crate) fn run_route_changes(&mut self, now: Times, out: &mut Vec<Effect>) {
        self.remove_routes(now, out);
        if !self.fib.is_settled() {
            let sources = FibSources { rib: &self.rib, manual: &self.manual, strategies: &self.strategies };
            let update = self.fib.resume(sources, NAMES_PER_SLICE);
            tell(update, out);
        }
    }

    fn remove_routes(&mut self, now: Times, out: &mut Vec<Effect>) {
        let before = self.rib.len();
        let mut changed = self.rib.expire(now.mono_ns, ROUTES_PER_SLICE);
        let expired = (before - self.rib.len()) as u64;
        self.counters.routes_expired += expired;
        if expired > 0 {
            self.store.note_change();
        }
        changed.extend(self.rib.remove_leaving(ROUTES_PER_SLICE));
        self.update_fib(changed, out);
    }

    /// Adds a route, or replaces one; true if anything that the FIB depends on changed. A table that is full of routes
    /// on their way out makes room first.
    pub(crate) fn insert_route(
        &mut self,
        now: Times,
        prefix: Name<'_>,
        route: Route,
        out: &mut Vec<Effect>,
    ) -> Result<bool, RibFull> {
        let result = self.rib.insert(prefix, route);
        let may_have_room = self.rib.is_leaving() || self.rib.next_deadline_ns().is_some_and(|at| at <= now.mono_ns);
        if result.is_err() && may_have_room {
            self.remove_routes(now, out);
            return self.rib.insert(prefix, route);
        }
        result
    }

    /// Recomputes the FIB at and under the changed prefixes: a slice of it now.
    pub(crate) fn update_fib(&mut self, changed: Vec<NameBuf>, out: &mut Vec<Effect>) {
        for prefix in &changed {
            let has_room = self.readvertise.note(&self.rib, prefix.as_name());
            self.counters.readvertise_full += u64::from(!has_room);
        }
        if changed.iter().any(|prefix| self.announcements.concerns(prefix.as_name())) {
            self.publish_announcements(out);
        }
        let sources = FibSources { rib: &self.rib, manual: &self.manual, strategies: &self.strategies };
        let update = self.fib.recompute(changed, sources, NAMES_PER_SLICE);
        tell(update, out);
    }

    /// Lets go of strategies that no choice uses, once no FIB entry does either.
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
