//! The Incoming Data pipeline (forwarding §1; NFD's developer guide §4.3).
//!
//! Read [`Engine::incoming_data`] from top to bottom to learn what happens when
//! Data arrives.

use crate::{
    DropReason, Engine, Instant, LimitMet, UnsolicitedPolicy,
    batch::{Arrival, HandOver, PacketRef, Pass, Transmit},
    core_data::ByFingerprint,
    dispatch::{Round, WorkerToken, Workers},
    face_table::{FaceAttributes, LinkType},
    incoming_interest::violates_localhost,
    schedule::{Hints, measured::Stage},
    watched_entry::Told,
};
use namewire_packet::{
    Data, FaceId,
    lp::{LpHeaders, PitToken},
    tlv::{self, types},
};
use namewire_tables::{
    CsArrival, CsId, CsInsert, CsRefusal, GroupId, MAX_NAME_COMPONENTS, NameHashes, PitId, PrefixLookup, Variant,
};

/// Most pending entries that one Data can satisfy: four variants per name, one name per
/// prefix length, the full name. Nearly always it is one.
pub(crate) const MAX_MATCHES: usize = 4 * (MAX_NAME_COMPONENTS + 2);

/// Octets of an implicit digest component.
const DIGEST_COMPONENT_BYTES: usize = 34;

/// Who had asked for Data that is to be stored.
#[derive(Clone, Copy)]
enum Asked {
    /// So many downstreams.
    By(u32),
    ByNobody,
}

impl Engine {
    pub(crate) fn incoming_data(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        data: &Data<'_>,
        hashes: &NameHashes,
        hints: &Hints<'_>,
    ) {
        self.counters.in_data += u64::from(arrival.round.is_first);
        let Some(face) = pass.view.faces.get(arrival.face) else {
            return self.counters.drop(DropReason::UnknownFace);
        };
        if violates_localhost(data.name(), face) {
            return self.counters.drop(DropReason::ScopeViolation);
        }
        let by_token = self.matches_by_token(arrival, data);
        let Some(mut round) = self.round_with_token_checked(pass, arrival, data, by_token) else { return };
        let mut matches = std::mem::take(&mut self.matches);
        let own_name = self.collect_matches(by_token, data, hashes, hints, &mut matches);
        self.end_of_part(Stage::Verdict);
        let by_fingerprint =
            self.satisfy_fingerprint(pass, (arrival, face, data), &round, hashes, (&matches, own_name));
        let requests = by_fingerprint.requests();
        if !matches.is_empty() {
            round.answered = true;
            self.answer(pass, arrival, face, data, (hashes, own_name), (&matches, requests));
        } else if requests > 0 || round.is_over() && round.answered {
            // Whoever asks by its own name will come here, to the home, and finds it.
            if requests == 0 {
                self.tables.cs_request(hashes.full_hash());
            }
            self.content_store_insert(pass, arrival, data, (hashes, own_name), Asked::By(requests));
        } else if matches!(by_fingerprint, ByFingerprint::SentAlready) {
            self.counters.drop(DropReason::DataSentAlready);
        } else if round.is_over() {
            self.data_unsolicited(pass, arrival, face, data, (hashes, own_name));
        }
        self.matches = matches;
        if let ByFingerprint::Pending(found) = &by_fingerprint {
            self.send_to_ports(pass, arrival, face, hashes.full_hash(), found);
        }
        if !round.is_over() {
            pass.out.hand_over.push(HandOver { frame: arrival.index, round: round.going_on() });
        }
    }

    /// The round as it goes on after this worker. A token that came to nothing here is
    /// void: then the workers that may be waiting for the name are asked. `None` if this one
    /// is not among them, or not yet: the packet was handed over.
    fn round_with_token_checked(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        data: &Data<'_>,
        by_token: Option<GroupId>,
    ) -> Option<Round> {
        let came_by_token = arrival.headers.pit_token.is_some() && arrival.round.is_alone();
        if by_token.is_some() || !came_by_token || self.dispatcher.workers() == 1 {
            return Some(arrival.round);
        }
        let mut round = self.dispatcher.by_name(data.name(), &mut self.dispatch_hashes);
        let is_alone = round.left() == Workers::only(self.worker);
        self.counters.redispatched += u64::from(!is_alone);
        if round.take_only(self.worker) {
            return Some(round);
        }
        pass.out.hand_over.push(HandOver { frame: arrival.index, round: round.going_on() });
        None
    }

    /// Stores the Data and sends it to everybody who asked here by name. `by_fingerprint`: so many asked beside
    /// them, perhaps by the same faces.
    fn answer(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        face: &FaceAttributes,
        data: &Data<'_>,
        name: (&NameHashes, Option<GroupId>),
        (matches, by_fingerprint): (&[PitId], u32),
    ) {
        let several = matches.len() > 1 || by_fingerprint > 0;
        let asked: u32 = matches.iter().map(|&entry| self.tables.pit(entry).state.in_records.len() as u32).sum();
        let is_own_name = |&entry: &PitId| Some(self.tables.pit(entry).group()) == name.1;
        if by_fingerprint == 0 && !matches.iter().any(is_own_name) {
            // Asked for by a prefix or digest only: what the policy compares is the Data's own name.
            self.tables.cs_request(name.0.full_hash());
        }
        let stored = self.content_store_insert(pass, arrival, data, name, Asked::By(asked + by_fingerprint));
        self.end_of_part(Stage::Insert);
        self.served.clear();
        for &entry in matches {
            let is_watched = self.tables.pit(entry).state.watched;
            let is_ordinary = !is_watched && arrival.headers.announcement_bytes == 0;
            let told = if is_ordinary { Told::NOTHING } else { self.tell(pass, arrival, data, name.0, entry) };
            if let Some(stored) = stored
                && Some(self.tables.pit(entry).group()) != name.1
            {
                self.index_under_interest_name(entry, stored);
            }
            self.send_to_downstreams(pass, arrival, face, entry, (several, &told));
            self.satisfy(pass, arrival.face, entry, data.freshness_ms(), told.waits_until);
        }
    }

    /// The name group that our token names, if it is alive and this Data answers an
    /// Interest pending there.
    fn matches_by_token(&self, arrival: &Arrival<'_>, data: &Data<'_>) -> Option<GroupId> {
        let token = WorkerToken::decode(arrival.headers.pit_token.as_ref()?)?;
        if token.worker != self.worker {
            return None;
        }
        let group = self.tables.group_by_token(token.group)?;
        let asked = self.tables.group_name(group);
        let name = data.name().value();
        let fits = |variant: Variant| {
            asked == name || asks_by_digest(asked, name) || variant.can_be_prefix() && name.starts_with(asked)
        };
        // The group can outlive its Interests: the Content Store may know the name.
        let pending = self.tables.pit_of_group(group).into_iter().zip(Variant::ALL);
        pending.into_iter().any(|(entry, variant)| entry.is_some() && fits(variant)).then_some(group)
    }

    /// Every pending entry that `data` satisfies: the token's name group with all
    /// its variants, the Data's own name, shorter names with CanBePrefix, and the
    /// full name if somebody asked by digest. Gives the group of the Data's own name.
    fn collect_matches(
        &mut self,
        by_token: Option<GroupId>,
        data: &Data<'_>,
        hashes: &NameHashes,
        hints: &Hints<'_>,
        matches: &mut Vec<PitId>,
    ) -> Option<GroupId> {
        let name = data.name();
        matches.clear();
        let mut add_group = |group: GroupId, exact_too: bool| {
            let entries = self.tables.pit_of_group(group);
            for (entry, variant) in entries.into_iter().zip(Variant::ALL) {
                if let Some(entry) = entry.filter(|_| exact_too || variant.can_be_prefix()) {
                    matches.push(entry);
                }
            }
        };
        let token_names_data = by_token.is_some_and(|group| self.tables.group_name(group) == name.value());
        let own_name = match by_token {
            Some(group) if token_names_data => Some(group),
            _ => self.tables.find_hinted(hashes.full_hash(), name.value(), hints.group),
        };
        if let Some(group) = own_name {
            add_group(group, true);
        }
        let lengths = if self.pending.prefixes_total > 0 { name.len() } else { 0 };
        for components in (0..lengths).rev() {
            if self.pending.prefixes[components] > 0 {
                let prefix = &name.value()[..hashes.prefix_octets(components)];
                if let Some(group) = self.tables.find(hashes.prefix_hash(components), prefix) {
                    add_group(group, false);
                }
            }
        }
        if self.pending.digests.get(name.len() + 1).is_some_and(|&pending| pending > 0) {
            let full_name = &mut self.name_copy;
            full_name.clear();
            full_name.extend_from_slice(name.value());
            tlv::write_tlv(full_name, types::IMPLICIT_SHA256_DIGEST, &data.implicit_digest());
            let hash = namewire_tables::hash_name(self.tables.key(), full_name);
            if let Some(group) = self.tables.find(hash, full_name) {
                add_group(group, true);
            }
        }
        own_name
    }

    /// CS insert: where the Data is, unless it was not to be stored or was refused. Link
    /// headers stay outside: a congestion mark belongs to one journey, not to the Data (§2.2).
    fn content_store_insert(
        &mut self,
        pass: &Pass<'_, '_>,
        arrival: &Arrival<'_>,
        data: &Data<'_>,
        (hashes, own_name): (&NameHashes, Option<GroupId>),
        asked: Asked,
    ) -> Option<CsId> {
        if !self.config.cs_admit || arrival.headers.no_cache {
            return None;
        }
        // FreshnessPeriod 0 is never fresh, not even in the nanosecond of its arrival.
        let fresh_until_ns = match data.freshness_ms() {
            0 => 0,
            ms => pass.now.plus_ms(ms).0,
        };
        let name = (hashes.full_hash(), data.name().value());
        let (requests, unsolicited) = match asked {
            Asked::By(interests) => (interests.max(1), false),
            Asked::ByNobody => (1, true),
        };
        let arrival = CsArrival { fresh_until_ns, now_ns: pass.now.0, requests, unsolicited };
        let inserted = self.tables.cs_insert_found(own_name, name, data.wire(), arrival);
        match inserted {
            CsInsert::Stored(_) => self.count_insertion(hashes),
            CsInsert::Replaced(_) => {
                self.count_insertion(hashes);
                let keeps_versions = self.config.cs_prefix_lookup == PrefixLookup::All;
                self.counters.limits[LimitMet::CsVersionReplaced as usize] += u64::from(keeps_versions);
            }
            CsInsert::Refreshed(_) => {}
            CsInsert::Refused(refusal) => self.content_store_refusal(refusal),
        }
        inserted.id()
    }

    /// A store that is switched off refuses everything and meets no limit by that.
    fn content_store_refusal(&mut self, refusal: CsRefusal) {
        let (capacity_bytes, capacity_packets) = self.tables.cs_capacity();
        if capacity_bytes == 0 || capacity_packets == 0 {
            return;
        }
        match LimitMet::of_content_store(refusal) {
            Some(limit) => self.counters.meet(limit),
            None => self.counters.cs_not_admitted += 1,
        }
    }

    /// Data fetched by a prefix or digest can be found again under that name.
    fn index_under_interest_name(&mut self, entry: PitId, stored: CsId) {
        let pit = self.tables.pit(entry);
        self.name_copy.clear();
        self.name_copy.extend_from_slice(self.tables.group_name(pit.group()));
        // If refused, the Data is still found under its own name.
        if self.tables.cs_add_indirect(pit.state.name_hash, &self.name_copy, stored).is_err() {
            self.counters.meet(LimitMet::CsNameRefused);
        }
    }

    /// One copy per distinct downstream (face, token), except where it came from
    /// (unless the link is ad hoc). `several`: other entries may name the same downstream.
    fn send_to_downstreams(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        ingress: &FaceAttributes,
        entry: PitId,
        (several, told): (bool, &Told),
    ) {
        let Pass { now, view, out } = pass;
        for record in self.records.downstreams(&self.tables.pit(entry).state) {
            let goes_back = record.face == arrival.face && ingress.link_type != LinkType::AdHoc;
            let Some(downstream) = view.faces.get(record.face).filter(|_| !goes_back && record.expires > *now) else {
                continue;
            };
            // Beyond the room reserved a downstream that asked twice may get two copies.
            let has_room = self.served.len() < self.served.capacity();
            if several && has_room && !self.served.insert((record.face, record.token)) {
                continue;
            }
            let (token, mark) = (record.token, arrival.headers.congestion_mark);
            if told.announced.is_some() && !record.non_discovery && !downstream.is_local() {
                let headers = data_headers(token, arrival.face, mark);
                out.transmits.push(told.with_announcement(Transmit {
                    face: record.face,
                    headers,
                    packet: PacketRef::Frame(arrival.index),
                }));
            } else {
                let headers = data_headers(token, arrival.face, mark);
                out.transmits.push(Transmit { face: record.face, headers, packet: PacketRef::Frame(arrival.index) });
            }
            self.counters.out_data += 1;
        }
    }

    /// Marks the entry satisfied and finalizes it at once, unless the strategy wants to see
    /// what others that were asked will answer.
    fn satisfy(
        &mut self,
        pass: &Pass<'_, '_>,
        from: FaceId,
        entry: PitId,
        freshness_ms: u64,
        waits_until: Option<Instant>,
    ) {
        let pit = self.tables.pit(entry);
        self.counters.satisfied += u64::from(!pit.state.satisfied);
        if let Some(until) = waits_until
            && self.records.upstreams(&pit.state).any(|record| record.face != from && record.is_pending(pass.now))
        {
            return self.wait_for_others(pass, from, entry, until);
        }
        // §2.1: a satisfied entry leaves its nonces behind only if the answer will
        // be stale before they could loop back.
        let lifetime_ms = namewire_tables::dead_nonce_list::DEFAULT_LIFETIME_NS / 1_000_000;
        // Beyond NFD: also if copies went out elsewhere. They may come back after the
        // entry is gone, and then only a Content Store that still has the Data would
        // stop them (sim/tests/storm.rs: 40 Interests became 120,000 without one).
        let copies_under_way = pit.state.out_records.len() > 1;
        let keep_nonces = copies_under_way || pit.variant().must_be_fresh() && freshness_ms < lifetime_ms;
        self.remove_entry(pass.now, entry, keep_nonces);
    }

    /// Data unsolicited: stored if the policy, its headers and the Content Store let it, else dropped.
    fn data_unsolicited(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        face: &FaceAttributes,
        data: &Data<'_>,
        name: (&NameHashes, Option<GroupId>),
    ) {
        let admit = match self.config.unsolicited {
            UnsolicitedPolicy::DropAll => false,
            UnsolicitedPolicy::AdmitLocal => face.is_local(),
            UnsolicitedPolicy::AdmitNetwork => !face.is_local(),
            UnsolicitedPolicy::AdmitAll => true,
        };
        if !admit || self.content_store_insert(pass, arrival, data, name, Asked::ByNobody).is_none() {
            self.counters.drop(DropReason::UnsolicitedData);
        }
    }
}

/// Headers of Data on its way to a downstream.
fn data_headers(token: Option<PitToken>, incoming: FaceId, congestion_mark: u64) -> LpHeaders {
    LpHeaders { pit_token: token, incoming_face_id: Some(incoming), congestion_mark, ..LpHeaders::default() }
}

/// True if `asked` is `name` and one implicit digest component.
fn asks_by_digest(asked: &[u8], name: &[u8]) -> bool {
    asked.len() == name.len() + DIGEST_COMPONENT_BYTES
        && asked.starts_with(name)
        && asked[name.len()..].starts_with(&[types::IMPLICIT_SHA256_DIGEST as u8, 32])
}
