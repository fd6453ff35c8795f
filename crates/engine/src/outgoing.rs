//! What leaves: the Outgoing Interest and Outgoing Nack pipelines, and the end of
//! a PIT entry (forwarding §1).

use crate::{
    DropReason, Engine, Instant,
    batch::{PacketRef, Pass, Transmit},
    strategy::Trigger,
};
use namewire_packet::{FaceId, Interest, NackReason, Nonce, interest::write_with_nonce, lp::LpHeaders};
use namewire_tables::PitId;

impl Engine {
    /// Outgoing Interest: out-record, our token where the link wants one, send.
    /// The caller has checked that the face is eligible.
    ///
    /// # Errors
    /// Why it was not sent; nothing is counted, since it may leave through another face.
    pub(crate) fn outgoing_interest(
        &mut self,
        pass: &mut Pass<'_, '_>,
        entry: PitId,
        face: FaceId,
        trigger: &Trigger,
    ) -> Result<(), DropReason> {
        let attributes = pass.view.faces.get(face).ok_or(DropReason::UnknownFace)?;
        if trigger.hop_limit == Some(0) && !attributes.is_local() {
            return Err(DropReason::HopLimitZero);
        }
        let packet = match trigger.packet {
            Some(packet) => packet,
            None => self.rewrite_stored_interest(pass, entry, trigger.nonce)?,
        };
        let pit_token = if attributes.wants_tokens() { self.token(self.tables.pit(entry).group()) } else { None };
        let state = &mut self.tables.pit_mut(entry).state;
        let expires = pass.now.plus_ms(trigger.lifetime_ms.min(self.config.max_lifetime_ms));
        let upstream = (face, trigger.nonce, trigger.non_discovery);
        if !self.records.insert_upstream(state, upstream, (pass.now, expires)) {
            return Err(DropReason::OutRecordsFull);
        }
        self.counters.out_interests += 1;
        let headers = LpHeaders {
            pit_token,
            incoming_face_id: Some(trigger.ingress),
            congestion_mark: trigger.congestion_mark,
            non_discovery: trigger.non_discovery,
            ..LpHeaders::default()
        };
        pass.out.transmits.push(Transmit { face, headers, packet });
        Ok(())
    }

    /// The Interest that the entry keeps, with another nonce, if there is room for it.
    fn rewrite_stored_interest(
        &mut self,
        pass: &mut Pass<'_, '_>,
        entry: PitId,
        nonce: Nonce,
    ) -> Result<PacketRef, DropReason> {
        if pass.out.is_full_of_rewritten() {
            return Err(DropReason::RewrittenFull);
        }
        self.interest_copy.clear();
        self.tables.pit_interest(entry, &mut self.interest_copy);
        Ok(pass.out.rewrite(|out| {
            if let Ok(interest) = Interest::parse(&self.interest_copy) {
                write_with_nonce(&interest, nonce, out);
            }
        }))
    }

    /// Outgoing Nack: quotes the Interest, echoes the downstream's token, and erases its
    /// in-record. Nothing on links with several peers: who is not told goes on waiting.
    ///
    /// §1 has it quote the downstream's last Interest. Here it is the entry's first with
    /// that downstream's last nonce: name, selectors and parameters are the same by the key,
    /// but lifetime, HopLimit and ForwardingHint are those of whoever asked first. To keep
    /// the Interest of each downstream would be a copy per in-record for Nacks alone.
    pub(crate) fn outgoing_nack(&mut self, pass: &mut Pass<'_, '_>, entry: PitId, face: FaceId, reason: NackReason) {
        let Some(&record) = self.records.downstream(&self.tables.pit(entry).state, face) else { return };
        let is_point_to_point =
            pass.view.faces.get(face).is_some_and(|attributes| attributes.link_type == crate::LinkType::PointToPoint);
        if !is_point_to_point {
            return;
        }
        let packet = match self.rewrite_stored_interest(pass, entry, record.nonce) {
            Ok(packet) => packet,
            Err(reason) => return self.counters.drop(reason),
        };
        let state = &mut self.tables.pit_mut(entry).state;
        self.records.remove_downstreams(state, |downstream| *downstream == face);
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
            self.pending.prefixes_total += 1;
            self.dispatcher.raise(self.tables.group_name(pit.group()));
        }
        if pit.state.by_digest {
            self.pending.digests[components] += 1;
        }
    }

    /// Interest finalize without Data, or after the last that was waited for.
    pub(crate) fn finalize_unsatisfied(&mut self, now: Instant, entry: PitId) {
        self.counters.unsatisfied += u64::from(!self.tables.pit(entry).state.satisfied);
        self.remove_entry(now, entry, true);
    }

    /// Takes an entry out of PIT, timers and pending counters. `keep_nonces`: what
    /// was sent upstream may still loop back.
    pub(crate) fn remove_entry(&mut self, now: Instant, entry: PitId, keep_nonces: bool) {
        let pit = self.tables.pit(entry);
        let components = usize::from(pit.state.components);
        if keep_nonces {
            for record in self.records.upstreams(&pit.state) {
                self.dead_nonces.insert(pit.state.name_hash, record.nonce.to_u32(), now.0);
            }
        }
        if pit.variant().can_be_prefix() {
            self.pending.prefixes[components] -= 1;
            self.pending.prefixes_total -= 1;
            self.dispatcher.lower(self.tables.group_name(pit.group()));
        }
        if pit.state.by_digest {
            self.pending.digests[components] -= 1;
        }
        self.timers.disarm(entry.0);
        self.records.clear(&mut self.tables.pit_mut(entry).state);
        self.tables.pit_remove(entry);
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Engine, EngineConfig, FaceAttributes, FaceId, FaceScope, FaceTable, Frame, Instant, Output, StrategyTable,
        View,
        dispatch::{Dispatcher, Round},
    };
    use namewire_packet::{Component, InterestBuilder, NameBuf, lp::LpHeaders, tlv::types};
    use namewire_tables::{Fib, HashKey, NextHop};

    /// A counter that stayed up would cost every later Data of that length a look-up, or a SHA-256.
    #[test]
    fn pending_names_are_counted_down_when_entries_end() {
        let key = HashKey::from_seed(1);
        let dispatcher = Dispatcher::new(1, key).into();
        let mut engine = Engine::new(EngineConfig::default(), 0, dispatcher, key, 1).unwrap();
        let (mut fib, mut faces, strategies) = (Fib::new(10, key), FaceTable::default(), StrategyTable::default());
        faces.insert(FaceId(300), FaceAttributes::new(FaceScope::NonLocal, 0, false));
        fib.insert(&[], &[NextHop { face: 1, cost: 0 }], 0, false).unwrap();
        let view = View { fib: fib.view(), strategies: &strategies, faces: &faces };
        let name: NameBuf = "/a".parse().unwrap();
        let digest = name.join(Component { type_number: types::IMPLICIT_SHA256_DIGEST, value: &[7; 32] });
        let mut out = Output::default();
        for wire in [InterestBuilder::new(&name).can_be_prefix(true), InterestBuilder::new(&digest)] {
            let mut wire = wire.build();
            let (face, headers) = (FaceId(300), LpHeaders::default());
            let mut frames = [Frame { face, headers, packet: &mut wire, round: Round::default() }];
            engine.process(Instant(0), &view, &mut frames, &mut out);
        }
        assert_eq!((engine.pending.prefixes[1], engine.pending.digests[2]), (1, 1));
        engine.run_timers(Instant::default().plus_ms(5000), &view, &mut out);
        assert!(engine.pending.prefixes.iter().chain(&engine.pending.digests).all(|&count| count == 0));
    }
}
