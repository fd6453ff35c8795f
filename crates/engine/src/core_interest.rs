//! The Incoming Interest pipeline of the core role: what becomes of an Interest of which a fingerprint is kept
//! (Yuan15 §5.4.1; which ones, and why so: [`crate::core_role`]).
//!
//! Read [`Engine::core_interest`]. It begins where the Content Store has missed. Until the fingerprint is there
//! nothing has happened, and the Interest can still go by name.

use crate::{
    Engine, Instant, LimitMet,
    batch::{Arrival, Pass, Transmit},
    core_role::CoreRole,
    dispatch::TOKEN_BYTES,
    incoming_interest::{LeadsOn, MatchedPrefix, NameScope, Onward},
    schedule::{Hints, measured::Stage},
    strategy::{WithoutEntry, is_eligible},
};
use namewire_packet::{FaceId, Interest, lp::LpHeaders};
use namewire_tables::{
    NameHashes,
    fingerprint_pit::{FingerprintPit, FingerprintPitRefusal, Inserted, MAX_LIFETIME_NS},
    hash_name,
};

impl Engine {
    /// Gives the Interest back if it must be kept by name.
    pub(crate) fn core_interest<'v>(
        &mut self,
        pass: &mut Pass<'v, '_>,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        hashes: &NameHashes,
        onward: Onward,
        hints: &Hints<'v>,
    ) -> Option<Onward> {
        if !self.may_go_by_fingerprint(pass, arrival, interest) {
            return Some(onward);
        }
        let (strategy, leads_on) = self.where_to(pass, interest, hashes, &onward, hints);
        let Some(choice) = strategy.without_entry() else { return Some(onward) };
        let Some(leads_on) = leads_on else { return Some(onward) };
        // A name of global scope may leave the node.
        let (faces, way) = (pass.view.faces, (arrival.face, true, onward.hop_limit));
        let eligible = || {
            let next_hops = leads_on.next_hops.iter().map(|hop| FaceId(hop.face));
            next_hops.filter(move |&face| is_eligible(faces, way, face))
        };
        let count = eligible().count();
        if count == 0 {
            return Some(onward); // its strategy says what becomes of it
        }
        let (first, copies) = match choice {
            WithoutEntry::Cheapest => (0, 1),
            WithoutEntry::All => (0, count),
            WithoutEntry::AnyOne => (self.rng.usize(..count), 1),
        };
        let Some(inserted) = self.insert_fingerprint(pass.now, arrival, interest, hashes, &leads_on) else {
            return Some(onward);
        };
        self.end_of_part(Stage::Insert);
        self.counters.by_fingerprint += 1;
        self.counters.fingerprints_collided += u64::from(inserted != Inserted::New);
        if inserted == Inserted::Aggregated {
            self.counters.aggregated += 1;
            return None;
        }
        if let Some(core) = self.core.as_deref_mut().filter(|_| copies > 1) {
            core.sent_names.ask_several(hashes.full_hash());
        }
        self.dead_nonces.insert(hashes.full_hash(), onward.nonce.to_u32(), pass.now.0);
        let headers = LpHeaders {
            incoming_face_id: Some(arrival.face),
            congestion_mark: arrival.headers.congestion_mark,
            non_discovery: arrival.headers.non_discovery,
            ..LpHeaders::default()
        };
        self.counters.out_interests += copies as u64;
        let to = eligible().skip(first).take(copies);
        pass.out.transmits.extend(to.map(|face| Transmit { face, headers, packet: onward.packet }));
        None
    }

    /// What a fingerprint says is enough for this Interest, and it is not one that the adaptive PIT keeps by name: which
    /// it does not where it would be dropped, however many names it is to keep.
    fn may_go_by_fingerprint(&mut self, pass: &Pass<'_, '_>, arrival: &Arrival<'_>, interest: &Interest<'_>) -> bool {
        let pending_by_name = self.tables.pit_len();
        let Some(core) = &mut self.core else { return false };
        let comes_from_afar = pass.view.faces.get(arrival.face).is_some_and(|face| !face.is_local());
        // Our own and ndnd's are of that length, and do without; other peers may need theirs back.
        let does_without_token = arrival.headers.pit_token.is_none_or(|token| token.as_bytes().len() == TOKEN_BYTES);
        let is_plain = comes_from_afar
            && does_without_token
            && NameScope::of(interest.name().value()) == NameScope::Global
            && !interest.can_be_prefix()
            && interest.implicit_digest().is_none()
            && arrival.headers.next_hop_face_id.is_none();
        is_plain && !(core.keeps_name(pending_by_name) && self.has_room_for_name_of(arrival.face))
    }

    /// Takes note of who asked. `None` if there is no room, or not for so long.
    fn insert_fingerprint(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        hashes: &NameHashes,
        leads_on: &LeadsOn<'_>,
    ) -> Option<Inserted> {
        let name_hash = hashes.full_hash();
        let key = self.tables.key();
        let CoreRole { fingerprints, ports, sent_names, expiry, aggregates, .. } = self.core.as_deref_mut()?;
        let prefix_hash = || match leads_on.prefix {
            MatchedPrefix::OfName { octets } => hash_name(key, &interest.name().value()[..octets]),
            MatchedPrefix::OfDelegation => hash_name(key, &self.hint_prefix),
        };
        let prefix_hash = expiry.as_ref().map_or(0, |_| prefix_hash());
        let lifetime_ms = interest.lifetime_ms().min(self.config.max_lifetime_ms);
        let mut lifetime_ns = lifetime_ms.saturating_mul(1_000_000);
        if let Some(expiry) = expiry {
            lifetime_ns = expiry.lifetime_ns(prefix_hash, lifetime_ns);
        }
        if lifetime_ns > MAX_LIFETIME_NS {
            return None;
        }
        let Some(port) = ports.number(arrival.face, fingerprints) else {
            self.counters.meet(LimitMet::PortsFull);
            return None;
        };
        let insert = if *aggregates { FingerprintPit::insert_aggregating } else { FingerprintPit::insert };
        match insert(fingerprints, name_hash, port, now.0, now.0.saturating_add(lifetime_ns)) {
            Ok(inserted) => {
                sent_names.ask(name_hash);
                match (expiry, inserted) {
                    (None, _) | (_, Inserted::Aggregated) => {}
                    (Some(expiry), Inserted::New) => expiry.sent_new(name_hash, prefix_hash, now.0),
                    (Some(expiry), Inserted::Collided) => expiry.sent_again(name_hash),
                }
                Some(inserted)
            }
            Err(refusal) => {
                self.counters.meet(match refusal {
                    FingerprintPitRefusal::FaceSetsFull => LimitMet::FaceSetsFull,
                    _ => LimitMet::FingerprintsFull,
                });
                None
            }
        }
    }
}
