//! The Incoming Data and Nack pipelines of the core role, where a fingerprint may be pending (Yuan15 §5.4.1, §5.5.1).

use crate::{
    DropReason, Engine,
    batch::{Arrival, PacketRef, Pass, Transmit},
    dispatch::Round,
    face_table::{FaceAttributes, LinkType},
    incoming_interest::{NameScope, lookup, strategy_of},
    strategy::WithoutEntry,
};
use namewire_packet::{Data, FaceId, Interest, NackReason, Nonce, lp::LpHeaders};
use namewire_tables::{GroupId, NameHashes, PitId, fingerprint_pit::Satisfied};

/// What the hash of a name differs by in the dead nonce list where a Nack for it and the Nonce went on.
const NACKED: u64 = 0x6e61_636b_6564_0001;

/// What Data finds that may be pending by fingerprint.
#[derive(Clone, Copy)]
pub(crate) enum ByFingerprint {
    NotPending,
    /// This Data went out for every Interest for it so far, when the entry was one that stays.
    SentAlready,
    /// It goes to these ports; if the entry stays, the Data says so.
    Pending(Satisfied),
}

impl ByFingerprint {
    /// About how many Interests it answers: one for each port, those that had their Data before too, and two for an
    /// entry that had been collided. That the entry stays now, for what another router or a name beside it knows,
    /// says nothing of it.
    pub(crate) fn requests(&self) -> u32 {
        match self {
            ByFingerprint::Pending(found) => (found.ports.len() as u32).max(1 + u32::from(found.was_collided)),
            ByFingerprint::NotPending | ByFingerprint::SentAlready => 0,
        }
    }
}

impl Engine {
    /// Who asked for Data of this fingerprint. If a name that is pending beside it is answered too, one of `matches` or
    /// at another worker, the fingerprint may be of another one, which is still to come.
    #[inline(always)]
    pub(crate) fn satisfy_fingerprint(
        &mut self,
        pass: &Pass<'_, '_>,
        (arrival, ingress, data): (&Arrival<'_>, &FaceAttributes, &Data<'_>),
        round: &Round,
        hashes: &NameHashes,
        (matches, own_name): (&[PitId], Option<GroupId>),
    ) -> ByFingerprint {
        if self.core.is_none() {
            return ByFingerprint::NotPending;
        }
        // It answers an Interest that was kept by name here: those alone have tokens.
        let has_token = arrival.headers.pit_token.is_some();
        if !has_token && !matches.is_empty() {
            self.count_prefixes_without_token(pass, matches, own_name);
        }
        let Some(core) = self.core.as_deref_mut() else { return ByFingerprint::NotPending };
        // The fingerprint of a name is kept at its home, which comes last; what looks like it elsewhere is another
        // name's. And a name that stays on this node has none.
        if !round.is_over() || NameScope::of(data.name().value()) != NameScope::Global {
            return ByFingerprint::NotPending;
        }
        let is_marked = arrival.headers.collided;
        self.counters.collided_marks_in += u64::from(is_marked);
        self.counters.collided_marks_ignored += u64::from(is_marked && ingress.is_local());
        let collided_upstream = is_marked && !ingress.is_local();
        let by_name = !matches.is_empty() || round.answered;
        let (name_hash, now_ns) = (hashes.full_hash(), pass.now.0);
        // Nobody has asked for it since, so that what is pending, if anything, is another name.
        if core.sent_names.is_sent(name_hash) && core.fingerprints.lookup(name_hash, now_ns).is_some() {
            return ByFingerprint::SentAlready;
        }
        let satisfied = core.fingerprints.satisfy(name_hash, now_ns, collided_upstream || by_name || has_token);
        let Some(satisfied) = satisfied else {
            if by_name {
                core.sent_names.send(name_hash);
            }
            return ByFingerprint::NotPending;
        };
        self.counters.fingerprints_satisfied += 1;
        self.counters.answers_after_their_names += u64::from(has_token && !by_name);
        if let Some(expiry) = &mut core.expiry
            && core.ports.known(arrival.face).is_none_or(|port| !satisfied.ports.contains(port))
        {
            expiry.answered(name_hash, now_ns);
        }
        self.served.clear();
        ByFingerprint::Pending(satisfied)
    }

    /// Counts entries that this Data answers by a prefix of its name, though their own answer may still come, without
    /// the token by which it could be told.
    #[inline(never)]
    fn count_prefixes_without_token(&mut self, pass: &Pass<'_, '_>, matches: &[PitId], own_name: Option<GroupId>) {
        let takes_none = |face| pass.view.faces.get(face).is_some_and(|face| !face.wants_tokens());
        for &entry in matches {
            let pit = self.tables.pit(entry);
            if pit.variant().can_be_prefix() && Some(pit.group()) != own_name {
                let has_gone = self.records.upstreams(&pit.state).any(|record| takes_none(record.face));
                self.counters.prefixes_without_token += u64::from(has_gone);
            }
        }
    }

    /// Data to whoever asked for its fingerprint, but for those who were just sent it by name (`served`), and except
    /// where it came from (unless the link is ad hoc).
    pub(crate) fn send_to_ports(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        ingress: &FaceAttributes,
        name_hash: u64,
        found: &Satisfied,
    ) {
        let headers = LpHeaders {
            incoming_face_id: Some(arrival.face),
            congestion_mark: arrival.headers.congestion_mark,
            collided: found.collided,
            ..LpHeaders::default()
        };
        let Engine { core: Some(core), served, counters, .. } = self else { return };
        let mut was_sent = false;
        for face in found.ports.iter().map(|port| core.ports.face(port)) {
            let goes_back = face == arrival.face && ingress.link_type != LinkType::AdHoc;
            if goes_back || pass.view.faces.get(face).is_none() {
                continue;
            }
            was_sent = true;
            if served.iter().any(|(served, _)| *served == face) {
                continue;
            }
            pass.out.transmits.push(Transmit { face, headers, packet: PacketRef::Frame(arrival.index) });
            counters.out_data += 1;
            counters.collided_marks_out += u64::from(headers.collided);
        }
        if was_sent && (found.collided || core.sent_names.is_known(name_hash)) {
            core.sent_names.send(name_hash);
        }
    }

    /// A Nack for an Interest of which no entry is kept: it goes to whoever asked for the fingerprint, and who asked
    /// for another name knows by name and nonce that it is not meant. It does so once for each name and nonce, so
    /// that routers whose entries stay do not tell each other again and again.
    pub(crate) fn core_nack(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        reason: NackReason,
        interest: &Interest<'_>,
        hashes: &NameHashes,
    ) {
        let name_hash = hashes.full_hash();
        let is_new_to_us = |nonce: &Nonce| {
            let has = |name_hash| self.dead_nonces.contains(name_hash, nonce.to_u32(), pass.now.0);
            has(name_hash) && !has(name_hash ^ NACKED)
        };
        let nonce = interest.nonce().filter(|nonce| self.core.is_some() && is_new_to_us(nonce));
        let Some(nonce) = nonce else { return self.counters.drop(DropReason::UnmatchedNack) };
        let strategy = pass.view.strategies.get(strategy_of(lookup(pass, interest.name(), hashes)));
        if strategy.without_entry() == Some(WithoutEntry::All) {
            return self.counters.drop(DropReason::NackNotPassedOn); // the others may still answer
        }
        let Engine { core: Some(core), dead_nonces, counters, .. } = self else { return };
        // It stays, since it may be another name's by now: one forgotten would be lost, one too many expires.
        let Some(pending) = core.fingerprints.lookup(name_hash, pass.now.0) else {
            return counters.drop(DropReason::UnmatchedNack);
        };
        dead_nonces.insert(name_hash ^ NACKED, nonce.to_u32(), pass.now.0);
        let sent_before = pass.out.transmits.len();
        for face in pending.ports.iter().map(|port| core.ports.face(port)) {
            let takes_nacks = |face: &FaceAttributes| face.link_type == LinkType::PointToPoint;
            if face == arrival.face || !pass.view.faces.get(face).is_some_and(takes_nacks) {
                continue;
            }
            let headers = LpHeaders { nack: Some(reason), ..LpHeaders::default() };
            pass.out.transmits.push(Transmit { face, headers, packet: PacketRef::Frame(arrival.index) });
            counters.out_nacks += 1;
        }
        if pass.out.transmits.len() == sent_before {
            counters.drop(DropReason::NackNotPassedOn);
        }
    }

    /// A copy of an Interest came by the face that the first came by, and the fingerprint is pending: the link has
    /// doubled it, and a Nack would end what is under way.
    pub(crate) fn is_doubled(&self, pass: &Pass<'_, '_>, from: FaceId, name_hash: u64) -> bool {
        let Some(core) = &self.core else { return false };
        let port = core.ports.known(from);
        let pending = port.and_then(|_| core.fingerprints.lookup(name_hash, pass.now.0));
        port.zip(pending).is_some_and(|(port, pending)| pending.ports.contains(port))
    }
}
