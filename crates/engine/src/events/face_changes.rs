//! Faces close, their links go down or come up again: what happens to the pending Interests?
//!
//! If an Interest waits only for such faces, it is sent to another next hop at once, and only once
//! ([`crate::Strategy::after_upstream_lost`]). The FIB may still list the face; the face table already says that it is
//! down or closed. If there is no other next hop, the Interest stays pending: until the FIB gains a next hop
//! ([`crate::events::new_next_hops`]), the link comes up, the consumer retransmits, or the Interest expires. NFD does
//! the same. A Nack would make consumers give up, although the link may be up again in the next second.
//!
//! The out-record of a lost upstream stays in the entry. A copy of the Interest may have passed before the link went
//! down. If the copy returns to us, the record shows that it is a loop.
//!
//! A fingerprint of the [core role](crate::state::core_role) does not keep the Interest, so the router cannot send it
//! again. The consumer must retransmit it.
//!
//! Cost: a call makes one pass over the PIT for all its faces, and sends at most [`SENDS_PER_SCAN`] Interests.

use crate::{
    FaceId, Instant,
    events::new_next_hops::SENDS_PER_SCAN,
    ground::{measured::PartClock, output::Output},
    pipeline::{call::Call, watched::with_strategy},
    state::{parts::Parts, pit_state::OutRecord, tables::Tables},
};
use namewire_tables::PitId;

/// Removes closed faces from all pending Interests. An entry without a downstream left ends at once. (In NFD the
/// entry's timer ends it; the lost downstream had set the timer, perhaps to days.) An entry with other downstreams
/// lives as long as they wait. Its Interest is sent to another next hop if it waited only for closed faces. `faces` is
/// in ascending order. True if [`faces_down`] must be called for the same faces, because more Interests are to be sent.
pub(crate) fn faces_removed<C: PartClock>(parts: &mut Parts, call: &mut Call<'_, '_, C>, faces: &[FaceId]) -> bool {
    debug_assert!(faces.is_sorted());
    let now = call.outbound.now;
    let Parts { core, tables, scratch, counters, .. } = parts;
    if let Some(core) = core.as_deref_mut() {
        core.ports.remove(faces, &mut core.fingerprints);
    }
    faces.iter().for_each(|face| tables.upstream_times.forget(*face));
    let is_gone = |face: &FaceId| faces.binary_search(face).is_ok();
    let entries = &mut scratch.entries_to_visit;
    entries.clear();
    entries.extend(tables.pit_cs.pit_iter_ids());
    entries.retain(|&entry| {
        let (state, records) = tables.state_mut(entry);
        let downstreams = state.in_records.len();
        records.forget_downstreams(state, |record| is_gone(&record.face));
        if state.nobody_waits() {
            // The nonces of its upstreams, closed ones included, go to the dead nonce list.
            tables.finalize_unsatisfied(now, entry, counters);
            return false;
        }
        if state.in_records.len() < downstreams {
            tables.arm(entry);
        }
        waits_for_any(tables, now, entry, faces)
    });
    send_elsewhere(parts, call, faces)
}

/// The links of `faces`, in ascending order, went down (the face table says so already). Interests that wait for these
/// faces alone go to other next hops. True if it must be called again, because more are to be sent.
pub(crate) fn faces_down<C: PartClock>(parts: &mut Parts, call: &mut Call<'_, '_, C>, faces: &[FaceId]) -> bool {
    debug_assert!(faces.is_sorted());
    let now = call.outbound.now;
    let Parts { tables, scratch, .. } = parts;
    scratch.entries_to_visit.clear();
    let waiting = tables.pit_cs.pit_iter_ids().filter(|&entry| waits_for_any(tables, now, entry, faces));
    scratch.entries_to_visit.extend(waiting);
    send_elsewhere(parts, call, faces)
}

/// The links of `faces`, in ascending order, came up again. Interests that wait for no answer are sent there, if that
/// is a next hop of theirs. True if it must be called again, because more are to be sent.
pub(crate) fn faces_up<C: PartClock>(parts: &mut Parts, call: &mut Call<'_, '_, C>, faces: &[FaceId]) -> bool {
    debug_assert!(faces.is_sorted());
    let now = call.outbound.now;
    let mut entries = std::mem::take(&mut parts.scratch.entries_to_visit);
    entries.clear();
    let tables = &parts.tables;
    entries.extend(tables.pit_cs.pit_iter_ids().filter(|&entry| {
        let state = tables.state(entry);
        !state.satisfied && !tables.records.upstreams(state).any(|record| record.is_pending(now))
    }));
    let is_up = |face: &FaceId| faces.binary_search(face).is_ok();
    let mut visited = 0;
    for &entry in &entries {
        if is_full(call.outbound.out) {
            break;
        }
        visited += 1;
        with_strategy(parts, call, entry, None, |strategy, context| {
            for face in context.next_hops().iter().map(|hop| FaceId(hop.face)).filter(is_up) {
                if context.choose_ingress_for(face) {
                    strategy.after_new_next_hop(context, face);
                }
            }
        });
    }
    let is_more = visited < entries.len();
    parts.scratch.entries_to_visit = entries;
    is_more
}

/// Calls the strategies of the entries to visit, which wait for `faces`.
fn send_elsewhere<C: PartClock>(parts: &mut Parts, call: &mut Call<'_, '_, C>, faces: &[FaceId]) -> bool {
    let now = call.outbound.now;
    let entries = std::mem::take(&mut parts.scratch.entries_to_visit);
    let mut visited = 0;
    for &entry in &entries {
        if is_full(call.outbound.out) {
            break;
        }
        visited += 1;
        let (state, records) = parts.tables.state_mut(entry);
        let is_lost = |record: &OutRecord| is_lost(record, now, faces);
        while let Some(record) = records.upstreams.find_mut(&mut state.out_records, is_lost) {
            record.lose();
        }
        if records.upstreams(state).any(|record| record.is_pending(now)) {
            continue;
        }
        with_strategy(parts, call, entry, None, |strategy, context| {
            context.choose_ingress_for_unused();
            strategy.after_upstream_lost(context);
        });
    }
    let is_more = visited < entries.len();
    parts.scratch.entries_to_visit = entries;
    is_more
}

/// Whether an entry with downstreams waits for an answer from one of `faces`.
fn waits_for_any(tables: &Tables, now: Instant, entry: PitId, faces: &[FaceId]) -> bool {
    let state = tables.state(entry);
    !state.satisfied && tables.records.upstreams(state).any(|record| is_lost(record, now, faces))
}

fn is_lost(record: &OutRecord, now: Instant, faces: &[FaceId]) -> bool {
    record.is_pending(now) && faces.binary_search(&record.face).is_ok()
}

/// Whether one call has sent as much as it may.
fn is_full(out: &Output) -> bool {
    out.transmits.len() >= SENDS_PER_SCAN || out.is_full_of_rewritten()
}
