//! The Incoming Interest pipeline (forwarding §1; NFD's developer guide §4.2).
//!
//! Read [`Engine::incoming_interest`] and [`Engine::interest_at_home`] from top to bottom to
//! learn what happens when an Interest arrives.

use crate::{
    DropReason, Engine, Instant, LimitMet,
    batch::{Arrival, PacketRef, Pass, Transmit},
    face_share,
    face_table::{FaceAttributes, LinkType},
    schedule::{Hints, measured::Stage},
    strategy::{Strategy, StrategyContext, Trigger},
};
use namewire_packet::{
    FaceId, Interest, MAX_PACKET_BYTES, NackReason, Name, Nonce,
    interest::{write_with_nonce, write_without_forwarding_hint},
    lp::LpHeaders,
};
use namewire_tables::{CsHit, CsId, CsWanted, FibMatch, GroupId, NameHashes, NextHop, PitId, PitRefusal, Variant};

/// Names of a ForwardingHint that are looked at, in the sender's order; the rest stay in the
/// packet. A packet has room for 1,200 of them, and each is a look-up of its own. (NFD
/// looks at all, NDN-DPDK at a fixed number, ndnd at the first.)
pub(crate) const MAX_DELEGATIONS: usize = 8;

/// An Interest as it will go on: nonce there, HopLimit taken down, own hint removed.
pub(crate) struct Onward {
    pub(crate) packet: PacketRef,
    pub(crate) nonce: Nonce,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) hint_removed: bool,
}

impl Engine {
    pub(crate) fn incoming_interest<'v>(
        &mut self,
        pass: &mut Pass<'v, '_>,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        hashes: &NameHashes,
        hints: &Hints<'v>,
    ) {
        let stored = match arrival.round.is_over() {
            true => self.interest_at_home(pass, arrival, interest, hashes, hints),
            false => self.visiting_interest(pass, arrival, interest, hashes),
        };
        // The only call: with a second one all that a hit does becomes a call of its own.
        if let Some(stored) = stored {
            self.content_store_hit(pass, arrival, stored, hashes.full_hash());
        }
    }

    /// Decides an Interest whose name belongs here. Gives what the Content Store answers it with.
    fn interest_at_home<'v>(
        &mut self,
        pass: &mut Pass<'v, '_>,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        hashes: &NameHashes,
        hints: &Hints<'v>,
    ) -> Option<CsId> {
        self.counters.in_interests += 1;
        let Some(face) = pass.view.faces.get(arrival.face) else {
            self.counters.drop(DropReason::UnknownFace);
            return None;
        };
        if interest.hop_limit() == Some(0) {
            self.counters.drop(DropReason::HopLimitZero);
            return None;
        }
        if violates_localhost(interest.name(), face) {
            self.counters.drop(DropReason::ScopeViolation);
            return None;
        }
        let onward = self.prepare_onward(pass, arrival, interest);
        if pass.octets_rewritten(onward.packet) > MAX_PACKET_BYTES {
            self.counters.drop(DropReason::TooLargeWithNonce);
            return None;
        }
        let name_hash = hashes.full_hash();
        let is_dead = self.dead_nonces.contains(name_hash, onward.nonce.to_u32(), pass.now.0);

        let variant = Variant::new(interest.can_be_prefix(), interest.must_be_fresh());
        let group = self.tables.find_hinted(name_hash, interest.name().value(), hints.group);
        let entry = group.and_then(|group| self.tables.pit_of_group(group)[variant as usize]);
        let is_duplicate = entry.is_some_and(|entry| self.is_duplicate(entry, face, arrival.face, onward.nonce));
        if is_duplicate {
            self.interest_loop(pass, arrival, face, interest, hashes);
            return None;
        }
        // An entry ends with its last downstream: if there is one, somebody waits, unless it only
        // waits for further answers.
        let is_new = entry.is_none_or(|entry| self.tables.pit(entry).state.satisfied);
        let looks_up = is_new && self.config.cs_serve;
        let stored = if looks_up { self.content_store_match(pass, interest, group, hashes) } else { None };
        self.end_of_part(Stage::Verdict);
        // A looped copy that ends here asks for nothing: one Interest would be counted twice.
        if stored.is_some() || !is_dead {
            self.tables.cs_request(name_hash);
            if looks_up {
                self.count_look_up(hashes, stored.is_some());
            } else if is_new {
                self.counters.cs_not_asked += 1;
            }
        }
        if stored.is_some() {
            return stored;
        }
        // NFD asks the dead nonce list first. Here it keeps more nonces (see `satisfy`),
        // and a copy that took another way must not be refused the Data that is at hand:
        // it may be the only copy whose way back is whole (sim/tests/ring.rs).
        if is_dead {
            self.interest_loop(pass, arrival, face, interest, hashes);
            return None;
        }
        let by_name = match entry {
            None if self.core.is_some() => self.core_interest(pass, arrival, interest, hashes, onward, hints),
            _ => Some(onward),
        };
        if let Some(onward) = by_name {
            self.content_store_miss(pass, arrival, interest, hashes, onward, (hints, group, variant));
        }
        None
    }

    /// Steps 2, 3 and 6. The frame itself goes on if nothing but HopLimit changes.
    fn prepare_onward(&mut self, pass: &mut Pass<'_, '_>, arrival: &Arrival<'_>, interest: &Interest<'_>) -> Onward {
        let hop_limit = interest.hop_limit().map(|limit| limit - 1);
        let has_hint = interest.has_forwarding_hint();
        if has_hint && interest.forwarding_hint().nth(MAX_DELEGATIONS).is_some() {
            self.counters.meet(LimitMet::DelegationsIgnored);
        }
        let hint_removed = has_hint && self.hint_reaches_region(interest);
        let (packet, nonce) = match interest.nonce() {
            Some(nonce) if !hint_removed => {
                if let (Some(limit), Some(offset)) = (hop_limit, interest.hop_limit_offset()) {
                    self.hop_limits.push((arrival.index, offset as u32, limit));
                }
                return Onward { packet: PacketRef::Frame(arrival.index), nonce, hop_limit, hint_removed };
            }
            given => {
                let nonce = given.unwrap_or_else(|| Nonce::from_u32(self.rng.u32(..)));
                let copy = &mut self.interest_copy;
                copy.clear();
                if hint_removed {
                    write_without_forwarding_hint(interest, copy);
                } else {
                    copy.extend_from_slice(interest.wire());
                }
                let packet = pass.out.rewrite(|out| {
                    let start = out.len();
                    if let Ok(rewritten) = Interest::parse(copy) {
                        write_with_nonce(&rewritten, nonce, out);
                    }
                    patch_hop_limit(&mut out[start..], hop_limit);
                });
                (packet, nonce)
            }
        };
        Onward { packet, nonce, hop_limit, hint_removed }
    }

    /// Step 6: a delegation is a prefix of one of our region names (not the other way round, §3).
    fn hint_reaches_region(&self, interest: &Interest<'_>) -> bool {
        let regions = &self.config.region_names;
        !regions.is_empty()
            && delegations(interest)
                .any(|delegation| regions.iter().any(|region| delegation.is_prefix_of(&region.as_name())))
    }

    /// Step 8: the nonce is in a record of this entry. From the same point-to-point
    /// face it is a retransmission, not a loop.
    fn is_duplicate(&self, entry: PitId, face: &FaceAttributes, from: FaceId, nonce: Nonce) -> bool {
        let state = &self.tables.pit(entry).state;
        let is_retransmission = self.records.downstream(state, from).is_some_and(|record| record.nonce == nonce);
        if is_retransmission && face.link_type == LinkType::PointToPoint {
            return false;
        }
        self.records.downstreams(state).any(|record| record.nonce == nonce)
            || self.records.upstreams(state).any(|record| record.nonce == nonce)
    }

    /// Interest loop: Nack Duplicate on a point-to-point face, unless the strategy stays silent.
    fn interest_loop(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        face: &FaceAttributes,
        interest: &Interest<'_>,
        hashes: &NameHashes,
    ) {
        self.counters.drop(DropReason::DuplicateNonce);
        let strategy = pass.view.strategies.get(strategy_of(lookup(pass, interest.name(), hashes)));
        let tells = face.link_type == LinkType::PointToPoint && strategy.nacks_loops();
        if tells && !self.is_doubled(pass, arrival.face, hashes.full_hash()) {
            self.counters.out_nacks += 1;
            let headers = LpHeaders {
                nack: Some(NackReason::Duplicate),
                pit_token: arrival.headers.pit_token,
                ..LpHeaders::default()
            };
            pass.out.transmits.push(Transmit { face: arrival.face, headers, packet: PacketRef::Frame(arrival.index) });
        }
    }

    /// The stored Data that answers `interest`: under its own name, under the name
    /// of an earlier Interest it answered, or, by digest, under the name without digest; if all
    /// prefixes are looked up, the first in canonical order.
    fn content_store_match(
        &self,
        pass: &Pass<'_, '_>,
        interest: &Interest<'_>,
        group: Option<GroupId>,
        hashes: &NameHashes,
    ) -> Option<CsId> {
        let fresh_enough = |id: &CsId| !interest.must_be_fresh() || self.is_fresh(*id, pass.now);
        let by_name = group.and_then(|group| self.tables.cs_lookup(group));
        if let Some(hit) = by_name
            && (hit.direct || interest.can_be_prefix() || self.is_asked_by_digest(interest, hashes, &hit))
        {
            return if fresh_enough(&hit.id) { Some(hit.id) } else { self.other_match(pass, interest, group) };
        }
        let Some(digest) = interest.implicit_digest() else {
            return if interest.can_be_prefix() { self.other_match(pass, interest, None) } else { None };
        };
        let group = self.tables.find(hashes.prefix_hash(hashes.components() - 1), parent(interest, hashes))?;
        let fresh_at_ns = interest.must_be_fresh().then_some(pass.now.0);
        self.tables.cs_version(group, CsWanted { fresh_at_ns, digest: Some(digest) })
    }

    /// An indirect name is that of an Interest that this Data answered once. A name
    /// that ends in a digest can also have been a mere prefix.
    fn is_asked_by_digest(&self, interest: &Interest<'_>, hashes: &NameHashes, hit: &CsHit) -> bool {
        interest.implicit_digest().is_some() && self.tables.cs(hit.id).name_value() == Some(parent(interest, hashes))
    }

    /// Fresh up to and including its last moment; a FreshnessPeriod of 0 is never fresh,
    /// which is written as 0 and must not look fresh to a clock that starts at 0.
    fn is_fresh(&self, stored: CsId, now: Instant) -> bool {
        let fresh_until_ns = self.tables.cs(stored).fresh_until_ns();
        fresh_until_ns != 0 && fresh_until_ns >= now.0
    }

    /// CS hit: the Data goes back with the asking Interest's token.
    fn content_store_hit(&mut self, pass: &mut Pass<'_, '_>, arrival: &Arrival<'_>, stored: CsId, name_hash: u64) {
        self.counters.out_data += 1;
        self.tables.cs_request_stored(stored, name_hash);
        self.tables.cs_touch(stored);
        let headers = LpHeaders {
            pit_token: arrival.headers.pit_token,
            incoming_face_id: Some(FaceId::CONTENT_STORE),
            ..LpHeaders::default()
        };
        pass.out.transmits.push(Transmit { face: arrival.face, headers, packet: PacketRef::Stored(stored) });
    }

    /// CS miss: in-record, expiry timer, then NextHopFaceId or the strategy.
    fn content_store_miss<'v>(
        &mut self,
        pass: &mut Pass<'v, '_>,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        hashes: &NameHashes,
        onward: Onward,
        (hints, group, variant): (&Hints<'v>, Option<GroupId>, Variant),
    ) {
        let is_pending = group.is_some_and(|group| self.tables.pit_of_group(group)[variant as usize].is_some());
        if !is_pending && !self.may_ask(arrival.face) {
            return self.counters.cut(arrival.face);
        }
        let (entry, mut is_new) = match self.find_or_insert_entry(pass, interest, hashes, &onward, (group, variant)) {
            Ok(found) => found,
            Err(PitRefusal::Full) => return self.counters.drop(DropReason::PitFull),
            Err(PitRefusal::OverflowFull) => return self.counters.drop(DropReason::PitOverflowFull),
        };
        let state = &mut self.tables.pit_mut(entry).state;
        is_new |= std::mem::take(&mut state.satisfied);
        let is_retransmission = self.records.downstream(state, arrival.face).is_some();
        let expires = pass.now.plus_ms(interest.lifetime_ms().min(self.config.max_lifetime_ms));
        let downstream = (arrival.face, onward.nonce, expires);
        let headers = arrival.headers;
        if !self.records.insert_downstream(state, downstream, (&headers.pit_token, headers.non_discovery)) {
            return self.counters.drop(DropReason::InRecordsFull);
        }
        self.counters.retransmitted += u64::from(is_retransmission);
        self.counters.aggregated += u64::from(!is_new && !is_retransmission);
        self.arm(entry);
        self.end_of_part(Stage::Insert);

        let trigger = Trigger {
            ingress: arrival.face,
            packet: Some(onward.packet),
            nonce: onward.nonce,
            hop_limit: onward.hop_limit,
            lifetime_ms: interest.lifetime_ms(),
            congestion_mark: arrival.headers.congestion_mark,
            non_discovery: arrival.headers.non_discovery,
        };
        let (strategy, leads_on) = self.where_to(pass, interest, hashes, &onward, hints);
        let mut context = StrategyContext::new(self, pass, entry, trigger, leads_on);
        match arrival.headers.next_hop_face_id {
            Some(face) => context.send_to_chosen_face(face),
            None => strategy.after_receive_interest(&mut context),
        }
        context.finish();
    }

    /// The strategy of its name, and where the Interest may go: by its hint, unless that led here.
    pub(crate) fn where_to<'v>(
        &mut self,
        pass: &Pass<'v, '_>,
        interest: &Interest<'_>,
        hashes: &NameHashes,
        onward: &Onward,
        hints: &Hints<'v>,
    ) -> (&'v dyn Strategy, Option<LeadsOn<'v>>) {
        let found = pass.view.fib.longest_prefix_match_hinted(interest.name().value(), hashes, hints.fib);
        let leads_on = if onward.hint_removed {
            found.map(LeadsOn::by_name)
        } else {
            next_hop_entry(pass, &mut self.name_hashes, &mut self.hint_prefix, interest, found)
        };
        self.end_of_part(Stage::Fib);
        (pass.view.strategies.get(strategy_of(found)), leads_on)
    }

    /// Whether the face may have another entry.
    fn may_ask(&self, face: FaceId) -> bool {
        face_share::may_ask(self.records.waiting(face), self.free_entries(), self.config.face_share_percent)
    }

    /// Whether it may, and there is one.
    pub(crate) fn has_room_for_name_of(&self, face: FaceId) -> bool {
        self.free_entries() > 0 && self.may_ask(face)
    }

    fn free_entries(&self) -> usize {
        (self.tables.pit_capacity_entries() as usize).saturating_sub(self.tables.pit_len())
    }

    fn find_or_insert_entry(
        &mut self,
        pass: &Pass<'_, '_>,
        interest: &Interest<'_>,
        hashes: &NameHashes,
        onward: &Onward,
        (group, variant): (Option<GroupId>, Variant),
    ) -> Result<(PitId, bool), PitRefusal> {
        if let Some(known) = group.and_then(|group| self.tables.pit_of_group(group)[variant as usize]) {
            return Ok((known, false));
        }
        let name = interest.name();
        let rest = match (onward.packet, onward.hop_limit, interest.hop_limit_offset()) {
            (PacketRef::Rewritten { start, length }, ..) => {
                let rewritten = &pass.out.rewritten[start as usize..(start + length) as usize];
                Interest::parse(rewritten).map_or(&[][..], |interest| interest.after_name())
            }
            (_, Some(limit), Some(offset)) => {
                let rest = interest.after_name();
                self.interest_copy.clear();
                self.interest_copy.extend_from_slice(rest);
                self.interest_copy[offset - (interest.wire().len() - rest.len())] = limit;
                &self.interest_copy
            }
            _ => interest.after_name(),
        };
        let (entry, _) = self.tables.pit_insert_found(group, hashes.full_hash(), name.value(), variant, rest)?;
        let state = &mut self.tables.pit_mut(entry).state;
        state.name_hash = hashes.full_hash();
        state.components = name.len() as u16;
        state.by_digest = interest.implicit_digest().is_some();
        state.by_hint = has_delegation(interest) && !onward.hint_removed;
        self.note_pending(entry);
        Ok((entry, true))
    }
}

/// The name without its last component; an Interest's has one at least.
fn parent<'a>(interest: &Interest<'a>, hashes: &NameHashes) -> &'a [u8] {
    &interest.name().value()[..hashes.prefix_octets(hashes.components() - 1)]
}

/// Writes `hop_limit` into an Interest that is known to be well-formed.
fn patch_hop_limit(wire: &mut [u8], hop_limit: Option<u8>) {
    if let Some(limit) = hop_limit
        && let Some(offset) = Interest::parse(wire).ok().and_then(|interest| interest.hop_limit_offset())
    {
        wire[offset] = limit;
    }
}

/// How far a name may travel (§3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameScope {
    /// `/localhost`: never across a non-local face.
    Localhost,
    /// `/localhop`: across one non-local face.
    Localhop,
    Global,
}

impl NameScope {
    #[inline]
    pub(crate) fn of(name_value: &[u8]) -> Self {
        if name_value.starts_with(b"\x08\x09localhost") {
            Self::Localhost
        } else if name_value.starts_with(b"\x08\x08localhop") {
            Self::Localhop
        } else {
            Self::Global
        }
    }
}

/// `/localhost` never crosses a non-local face (§3).
pub(crate) fn violates_localhost(name: Name<'_>, face: &FaceAttributes) -> bool {
    !face.is_local() && NameScope::of(name.value()) == NameScope::Localhost
}

pub(crate) fn lookup<'v>(pass: &Pass<'v, '_>, name: Name<'_>, hashes: &NameHashes) -> Option<FibMatch<'v>> {
    pass.view.fib.longest_prefix_match(name.value(), hashes)
}

pub(crate) fn strategy_of(found: Option<FibMatch<'_>>) -> u32 {
    found.map_or(0, |found| found.strategy)
}

/// True if the ForwardingHint holds a name: an element without one is no hint.
fn has_delegation(interest: &Interest<'_>) -> bool {
    interest.has_forwarding_hint() && interest.forwarding_hint().next().is_some()
}

/// The delegations that are looked at.
pub(crate) fn delegations<'a>(interest: &Interest<'a>) -> impl Iterator<Item = Name<'a>> + use<'a> {
    interest.forwarding_hint().take(MAX_DELEGATIONS)
}

/// Where an Interest may go.
#[derive(Clone, Copy)]
pub(crate) struct LeadsOn<'v> {
    pub(crate) next_hops: &'v [NextHop],
    pub(crate) prefix: MatchedPrefix,
}

/// What the prefix that next hops are from is a prefix of.
#[derive(Clone, Copy)]
pub(crate) enum MatchedPrefix {
    /// The first octets of the PIT entry's name.
    OfName { octets: usize },
    /// A delegation's: it is in [`Engine::hint_prefix`].
    OfDelegation,
}

impl<'v> LeadsOn<'v> {
    pub(crate) fn by_name(found: FibMatch<'v>) -> Self {
        Self { next_hops: found.nexthops, prefix: MatchedPrefix::OfName { octets: found.prefix_octets } }
    }
}

/// Where `interest` may go: as the FIB says of the first delegation that finds next hops, and then
/// the Interest's own name is not tried (§3); without a hint as it says of the name. `hashes` is a
/// buffer; `prefix` gets the delegation's prefix.
pub(crate) fn next_hop_entry<'v>(
    pass: &Pass<'v, '_>,
    hashes: &mut NameHashes,
    prefix: &mut Vec<u8>,
    interest: &Interest<'_>,
    by_name: Option<FibMatch<'v>>,
) -> Option<LeadsOn<'v>> {
    if !has_delegation(interest) {
        return by_name.map(LeadsOn::by_name);
    }
    delegations(interest).find_map(|delegation| {
        hashes.compute(pass.view.fib.key(), delegation.value()).ok()?;
        let found = lookup(pass, delegation, hashes).filter(|found| !found.nexthops.is_empty())?;
        prefix.clear();
        prefix.extend_from_slice(&delegation.value()[..found.prefix_octets]);
        Some(LeadsOn { next_hops: found.nexthops, prefix: MatchedPrefix::OfDelegation })
    })
}
