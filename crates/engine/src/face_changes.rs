//! Faces that close, whose links go down, or come up again: what becomes of the Interests that wait?
//!
//! An Interest that waits for such a face alone goes to another next hop at once, once
//! ([`crate::Strategy::after_upstream_lost`]); what the FIB says of the face meanwhile does not matter, since the face table
//! already says that it is down or gone. If there is no other next hop the Interest waits: for one that the FIB gains
//! ([`Engine::new_next_hops`]), for the link, for a retransmission, or for its end. So does NFD; a Nack would make
//! consumers give up what a link may carry again in the next second.
//!
//! The out-record of a lost upstream stays in the entry, so that a copy which got through before the link went, and
//! comes back to us, is known as a loop.
//!
//! Fingerprints of the [core role](crate::core_role) keep no Interest: what waits by fingerprint is recovered by the
//! consumer's retransmission.
//!
//! Cost: a walk over the PIT per call, however many faces there are; [`SENDS_PER_SCAN`] Interests sent per call.

use crate::{
    Engine, FaceId, Instant, Output, View,
    batch::Pass,
    pit_state::{OutRecord, PitState},
    timers::SENDS_PER_SCAN,
};
use namewire_tables::PitId;

impl Engine {
    /// Forgets faces that are gone: they neither wait nor answer any more. An entry whose
    /// last downstream went ends at once. (In NFD its timer ends it, which the lost downstream had set, perhaps to
    /// days.) One with other downstreams lives as long as they wait, and goes to another next hop if only faces that
    /// are gone were to answer it. `faces` is in ascending order.
    /// True if [`Engine::faces_down`] is to be called for the same faces, since more are to be sent.
    pub fn faces_removed(&mut self, now: Instant, view: &View<'_>, faces: &[FaceId], out: &mut Output) -> bool {
        debug_assert!(faces.is_sorted());
        if let Some(core) = self.core.as_deref_mut() {
            core.ports.remove(faces, &mut core.fingerprints);
        }
        let is_gone = |face: &FaceId| faces.binary_search(face).is_ok();
        let mut entries = std::mem::take(&mut self.entries_to_visit);
        entries.clear();
        entries.extend(self.tables.pit_iter_ids());
        entries.retain(|&entry| {
            let state = &mut self.tables.pit_mut(entry).state;
            let downstreams = state.in_records.len();
            self.records.forget_downstreams(state, is_gone);
            if state.nobody_waits() {
                // Its upstreams, those that are gone included, leave their nonces behind.
                self.finalize_unsatisfied(now, entry);
                return false;
            }
            if state.in_records.len() < downstreams {
                self.arm(entry);
            }
            self.waits_for_any(now, entry, faces)
        });
        self.entries_to_visit = entries;
        self.send_elsewhere(now, view, faces, out)
    }

    /// The links of `faces`, in ascending order, carry nothing any more, as the face table says: Interests that wait for
    /// them alone go to other next hops. True if it is to be called again, since more are to be sent.
    pub fn faces_down(&mut self, now: Instant, view: &View<'_>, faces: &[FaceId], out: &mut Output) -> bool {
        debug_assert!(faces.is_sorted());
        let mut entries = std::mem::take(&mut self.entries_to_visit);
        entries.clear();
        entries.extend(self.tables.pit_iter_ids().filter(|&entry| self.waits_for_any(now, entry, faces)));
        self.entries_to_visit = entries;
        self.send_elsewhere(now, view, faces, out)
    }

    /// The links of `faces`, in ascending order, carry packets again: Interests that wait for no answer are sent there, if
    /// that is a next hop of theirs. True if it is to be called again, since more are to be sent.
    pub fn faces_up(&mut self, now: Instant, view: &View<'_>, faces: &[FaceId], out: &mut Output) -> bool {
        debug_assert!(faces.is_sorted());
        self.begin(out);
        let mut pass = Pass { now, view: *view, out };
        let mut entries = std::mem::take(&mut self.entries_to_visit);
        entries.clear();
        entries.extend(self.tables.pit_iter_ids().filter(|&entry| {
            let state = &self.tables.pit(entry).state;
            !state.satisfied && !self.is_sent_and_pending(state, now).1
        }));
        let is_up = |face: &FaceId| faces.binary_search(face).is_ok();
        let mut visited = 0;
        for &entry in &entries {
            if is_full(&pass) {
                break;
            }
            visited += 1;
            self.with_strategy(&mut pass, entry, None, |strategy, context| {
                for face in context.next_hops().iter().map(|hop| FaceId(hop.face)).filter(is_up) {
                    if context.choose_ingress_for(face) {
                        strategy.after_new_next_hop(context, face);
                    }
                }
            });
        }
        let is_more = visited < entries.len();
        self.entries_to_visit = entries;
        is_more
    }

    /// Shows the entries to visit, which wait for `faces`, to their strategies.
    fn send_elsewhere(&mut self, now: Instant, view: &View<'_>, faces: &[FaceId], out: &mut Output) -> bool {
        self.begin(out);
        let mut pass = Pass { now, view: *view, out };
        let entries = std::mem::take(&mut self.entries_to_visit);
        let mut visited = 0;
        for &entry in &entries {
            if is_full(&pass) {
                break;
            }
            visited += 1;
            let state = &mut self.tables.pit_mut(entry).state;
            let is_lost = |record: &OutRecord| is_lost(record, now, faces);
            while let Some(record) = self.records.upstreams.find_mut(&mut state.out_records, is_lost) {
                record.lose();
            }
            if self.records.upstreams(state).any(|record| record.is_pending(now)) {
                continue;
            }
            self.with_strategy(&mut pass, entry, None, |strategy, context| {
                context.choose_ingress_for_unused();
                strategy.after_upstream_lost(context);
            });
        }
        let is_more = visited < entries.len();
        self.entries_to_visit = entries;
        is_more
    }

    /// Whether one of `faces` is to answer an entry that downstreams wait for.
    fn waits_for_any(&self, now: Instant, entry: PitId, faces: &[FaceId]) -> bool {
        let state = &self.tables.pit(entry).state;
        !state.satisfied && self.records.upstreams(state).any(|record| is_lost(record, now, faces))
    }

    /// Whether copies of the Interest have left, and whether one of them may still be answered.
    pub(crate) fn is_sent_and_pending(&self, state: &PitState, now: Instant) -> (bool, bool) {
        let is_pending = self.records.upstreams(state).any(|record| record.is_pending(now));
        (!state.out_records.is_empty(), is_pending)
    }
}

fn is_lost(record: &OutRecord, now: Instant, faces: &[FaceId]) -> bool {
    record.is_pending(now) && faces.binary_search(&record.face).is_ok()
}

/// Whether one call has sent as much as it may.
fn is_full(pass: &Pass<'_, '_>) -> bool {
    pass.out.transmits.len() >= SENDS_PER_SCAN || pass.out.is_full_of_rewritten()
}
