//! What leaves: the Outgoing Interest and Outgoing Nack pipelines, and the end of
//! a PIT entry (forwarding §1).

use crate::{
    DropReason, Engine, Instant,
    batch::{PacketRef, Pass, Transmit},
    pit_state::{MAX_LIFETIME_MS, MAX_RECORDS, OutRecord},
    strategy::Trigger,
};
use namewire_packet::{FaceId, Interest, NackReason, interest::write_with_nonce, lp::LpHeaders};
use namewire_tables::PitId;

impl Engine {
    /// Outgoing Interest: out-record, our token where the link wants one, send.
    /// The caller has checked that the face is eligible.
    pub(crate) fn outgoing_interest(&mut self, pass: &mut Pass<'_, '_>, entry: PitId, face: FaceId, trigger: &Trigger) {
        let Some(attributes) = pass.view.faces.get(face) else {
            return self.counters.drop(DropReason::UnknownFace);
        };
        if trigger.hop_limit == Some(0) && !attributes.is_local() {
            return self.counters.drop(DropReason::HopLimitZero);
        }
        let packet = match trigger.packet {
            Some(packet) => packet,
            None => self.rewrite_stored_interest(pass, entry, trigger),
        };
        let pit_token = if attributes.wants_tokens() { self.token(self.tables.pit(entry).group()) } else { None };
        let state = &mut self.tables.pit_mut(entry).state;
        let expires = pass.now.plus_ms(trigger.lifetime_ms.min(MAX_LIFETIME_MS));
        let is_full = state.out_records.len() >= MAX_RECORDS;
        match state.out_record_mut(face) {
            Some(record) => {
                (record.nonce, record.sent, record.expires, record.nack) = (trigger.nonce, pass.now, expires, None);
            }
            None if is_full => return self.counters.drop(DropReason::NoRoute),
            None => state.out_records.push(OutRecord {
                face,
                nonce: trigger.nonce,
                sent: pass.now,
                expires,
                nack: None,
                suppression_ns: 0,
            }),
        }
        self.counters.out_interests += 1;
        let headers = LpHeaders {
            pit_token,
            incoming_face_id: Some(trigger.ingress),
            congestion_mark: trigger.congestion_mark,
            ..LpHeaders::default()
        };
        pass.out.transmits.push(Transmit { face, headers, packet });
    }

    /// The entry's own copy of the Interest with the nonce of `trigger`.
    fn rewrite_stored_interest(&self, pass: &mut Pass<'_, '_>, entry: PitId, trigger: &Trigger) -> PacketRef {
        let stored = self.tables.pit(entry).interest();
        pass.out.rewrite(|out| {
            if let Ok(interest) = Interest::parse(stored) {
                write_with_nonce(&interest, trigger.nonce, out);
            }
        })
    }

    /// Outgoing Nack: quotes the downstream's last Interest, echoes its token, and
    /// erases its in-record. Nothing on links with several peers.
    pub(crate) fn outgoing_nack(&mut self, pass: &mut Pass<'_, '_>, entry: PitId, face: FaceId, reason: NackReason) {
        let state = &mut self.tables.pit_mut(entry).state;
        let Some(position) = state.in_records.iter().position(|record| record.face == face) else { return };
        let record = state.in_records.remove(position);
        let is_point_to_point =
            pass.view.faces.get(face).is_some_and(|attributes| attributes.link_type == crate::LinkType::PointToPoint);
        if !is_point_to_point {
            return;
        }
        let stored = self.tables.pit(entry).interest();
        let packet = pass.out.rewrite(|out| {
            if let Ok(interest) = Interest::parse(stored) {
                write_with_nonce(&interest, record.nonce, out);
            }
        });
        self.counters.out_nacks += 1;
        let headers = LpHeaders { nack: Some(reason), pit_token: record.token, ..LpHeaders::default() };
        pass.out.transmits.push(Transmit { face, headers, packet });
    }

    /// Sets the timer of an entry to its next deadline.
    pub(crate) fn arm(&mut self, entry: PitId) {
        let deadline = self.tables.pit(entry).state.deadline();
        self.timers.arm(entry.0, deadline.0);
    }

    /// Counts the entry among those that Data of another name can satisfy, before
    /// the Interest leaves.
    pub(crate) fn note_pending(&mut self, entry: PitId) {
        let pit = self.tables.pit(entry);
        let components = usize::from(pit.state.components);
        if pit.variant().can_be_prefix() {
            self.pending.prefixes[components] += 1;
            self.dispatcher.raise(self.worker, components);
        }
        if pit.state.by_digest {
            self.pending.digests[components] += 1;
        }
    }

    /// Interest finalize without Data.
    pub(crate) fn finalize_unsatisfied(&mut self, now: Instant, entry: PitId) {
        self.counters.unsatisfied += 1;
        self.remove_entry(now, entry, true);
    }

    /// Takes an entry out of PIT, timers and pending counters. `keep_nonces`: what
    /// was sent upstream may still loop back.
    pub(crate) fn remove_entry(&mut self, now: Instant, entry: PitId, keep_nonces: bool) {
        let pit = self.tables.pit(entry);
        let components = usize::from(pit.state.components);
        if keep_nonces {
            for record in &pit.state.out_records {
                self.dead_nonces.insert(pit.state.name_hash, record.nonce.to_u32(), now.0);
            }
        }
        if pit.variant().can_be_prefix() {
            self.pending.prefixes[components] -= 1;
            self.dispatcher.lower(self.worker, components);
        }
        if pit.state.by_digest {
            self.pending.digests[components] -= 1;
        }
        self.timers.disarm(entry.0);
        self.tables.pit_remove(entry);
    }
}
