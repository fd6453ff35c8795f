//! What a strategy can see and do.

use crate::{
    DropReason, Engine, FaceAttributes, FaceTable, Instant, LimitMet,
    batch::{PacketRef, Pass},
    face_table::LinkType,
    incoming_interest::{LeadsOn, MatchedPrefix, NameScope},
    measurements::{MeasurementId, Measurements},
    pit_state::{InRecord, OutRecord, PitState, Records},
    route_request::{ROUTE_REQUESTS_MAX, RouteRequest},
    watched_entry::Answer,
};
use namewire_packet::{FaceId, NackReason, Nonce};
use namewire_tables::{NextHop, PitId, hash_name};

/// Why the strategy is called, and what it would send.
#[derive(Clone, Copy, Debug)]
pub struct Trigger {
    /// The face the packet came from; without a packet, the last downstream.
    pub ingress: FaceId,
    /// The Interest to be sent; `None`: the PIT entry's own copy.
    pub packet: Option<PacketRef>,
    /// Nonce that goes upstream.
    pub nonce: Nonce,
    /// HopLimit after this hop took one.
    pub hop_limit: Option<u8>,
    /// Lifetime of an Interest sent now.
    pub lifetime_ms: u64,
    /// Mark to hand on.
    pub congestion_mark: u64,
    /// The Interest must not be flooded (NonDiscovery).
    pub non_discovery: bool,
}

impl Trigger {
    /// A call without an Interest at hand: the last downstream's nonce is used.
    pub(crate) fn of_entry(ingress: FaceId, records: &Records, state: &PitState, lifetime_ms: u64) -> Self {
        let last = records.downstreams(state).last();
        let (nonce, non_discovery) =
            last.map_or((Nonce::default(), false), |record| (record.nonce, record.non_discovery));
        Trigger { ingress, packet: None, nonce, hop_limit: None, lifetime_ms, congestion_mark: 0, non_discovery }
    }
}

/// One PIT entry as its strategy sees it.
pub struct StrategyContext<'e, 'v, 'o> {
    engine: &'e mut Engine,
    pass: &'e mut Pass<'v, 'o>,
    entry: PitId,
    trigger: Trigger,
    next_hops: &'v [NextHop],
    prefix: Option<MatchedPrefix>,
    /// The scope of the name lets the ingress face's Interest go to non-local faces.
    may_leave_the_node: bool,
    rejected: bool,
    sent: bool,
    /// Why the last [`StrategyContext::send_interest`] that sent nothing did not.
    refused: Option<DropReason>,
}

impl<'e, 'v, 'o> StrategyContext<'e, 'v, 'o> {
    pub(crate) fn new(
        engine: &'e mut Engine,
        pass: &'e mut Pass<'v, 'o>,
        entry: PitId,
        trigger: Trigger,
        leads_on: Option<LeadsOn<'v>>,
    ) -> Self {
        let may_leave_the_node = may_leave_the_node(engine, pass, entry, trigger.ingress);
        StrategyContext {
            engine,
            pass,
            entry,
            trigger,
            next_hops: leads_on.map_or(&[], |leads_on| leads_on.next_hops),
            prefix: leads_on.map(|leads_on| leads_on.prefix),
            may_leave_the_node,
            rejected: false,
            sent: false,
            refused: None,
        }
    }

    /// Name TLV-VALUE of the FIB's prefix that the next hops are from, if there is one.
    pub fn prefix(&self) -> Option<&[u8]> {
        let name = || self.engine.tables.group_name(self.engine.tables.pit(self.entry).group());
        self.prefix.map(|prefix| match prefix {
            MatchedPrefix::OfName { octets } => &name()[..octets],
            MatchedPrefix::OfDelegation => &self.engine.hint_prefix,
        })
    }

    /// Carries out what must wait until the strategy has returned. An Interest that was
    /// refused at one face and left through another is no drop.
    ///
    /// N.B. Each field is read by itself: moved out as a whole, the flags that a strategy has just
    /// written one by one were read as one word, which waits until the stores have left the core.
    pub(crate) fn finish(&mut self) {
        if let (Some(reason), false) = (self.refused, self.sent) {
            self.engine.counters.drop(reason);
        }
        if self.rejected || self.state().nobody_waits() {
            self.engine.finalize_unsatisfied(self.pass.now, self.entry);
        }
    }

    /// The time of this batch.
    pub fn now(&self) -> Instant {
        self.pass.now
    }

    /// The face whose packet caused the call.
    pub fn ingress(&self) -> FaceId {
        self.trigger.ingress
    }

    /// Who asked, in order of arrival.
    pub fn downstreams(&self) -> impl Iterator<Item = &InRecord> {
        self.engine.records.downstreams(self.state())
    }

    /// The record of downstream `face`.
    pub fn downstream(&self, face: FaceId) -> Option<&InRecord> {
        self.engine.records.downstream(self.state(), face)
    }

    /// Who was asked, in order of sending.
    pub fn upstreams(&self) -> impl Iterator<Item = &OutRecord> {
        self.engine.records.upstreams(self.state())
    }

    /// The record of upstream `face`.
    pub fn upstream(&self, face: FaceId) -> Option<&OutRecord> {
        self.engine.records.upstream(self.state(), face)
    }

    /// The record of upstream `face`, to be changed.
    pub fn upstream_mut(&mut self, face: FaceId) -> Option<&mut OutRecord> {
        let Engine { tables, records, .. } = &mut *self.engine;
        records.upstream_mut(&mut tables.pit_mut(self.entry).state, face)
    }

    /// True if some upstream may still answer.
    pub fn is_any_upstream_pending(&self) -> bool {
        let now = self.now();
        self.upstreams().any(|record| record.is_pending(now))
    }

    /// Times and suppression state of the entry.
    pub fn state(&self) -> &PitState {
        &self.engine.tables.pit(self.entry).state
    }

    /// The same, to be changed.
    pub fn state_mut(&mut self) -> &mut PitState {
        &mut self.engine.tables.pit_mut(self.entry).state
    }

    /// Next hops of the longest matching prefix, cheapest first.
    pub fn next_hops(&self) -> &'v [NextHop] {
        self.next_hops
    }

    /// True if an Interest from the ingress face may go to `face` (§3): the face
    /// exists, is up, is not where the Interest came from (unless ad hoc), and
    /// neither scope nor HopLimit forbids it.
    pub fn is_eligible(&self, face: FaceId) -> bool {
        let Trigger { ingress, hop_limit, .. } = self.trigger;
        is_eligible(self.pass.view.faces, (ingress, self.may_leave_the_node, hop_limit), face)
    }

    /// Lets a downstream that `face` is eligible for be the one the call is for;
    /// false if there is none. For calls without a packet.
    pub(crate) fn choose_ingress_for(&mut self, face: FaceId) -> bool {
        let now = self.now();
        let downstreams = self.state().in_records.len();
        let has_own_nonce = self.downstreams().all(|record| record.nonce != self.trigger.nonce);
        (0..downstreams).any(|place| {
            let Some(&record) = self.downstreams().nth(place) else { return false };
            self.trigger.ingress = record.face;
            self.trigger.nonce = if has_own_nonce { self.trigger.nonce } else { record.nonce };
            self.trigger.non_discovery = record.non_discovery;
            self.may_leave_the_node = may_leave_the_node(self.engine, self.pass, self.entry, record.face);
            record.expires > now && self.is_eligible(face)
        })
    }

    /// Eligible next hops, cheapest first.
    pub fn eligible(&self) -> impl Iterator<Item = FaceId> + '_ {
        self.next_hops.iter().map(|hop| FaceId(hop.face)).filter(|&face| self.is_eligible(face))
    }

    /// True if no answer of `face` is waited for: it was not asked, or too long ago, or its link went.
    /// One that sent a Nack was asked.
    pub fn is_unused(&self, face: FaceId) -> bool {
        self.upstream(face).is_none_or(|record| record.expires <= self.now())
    }

    /// Lets a downstream that some unused next hop is eligible for be the one the call is for, if
    /// there is one. For calls without a packet.
    pub(crate) fn choose_ingress_for_unused(&mut self) {
        let next_hops = self.next_hops.iter().map(|hop| FaceId(hop.face));
        let _ = { next_hops }.any(|face| self.is_unused(face) && self.choose_ingress_for(face));
    }

    /// True if some eligible next hop was kept back by HopLimit 0 alone.
    pub(crate) fn hop_limit_forbids(&self) -> bool {
        self.trigger.hop_limit == Some(0) && self.is_any_allowed(|attributes| attributes.is_up)
    }

    /// True if some eligible next hop was kept back only because its link is down.
    pub(crate) fn waits_for_link(&self) -> bool {
        let hop_limit = self.trigger.hop_limit;
        self.is_any_allowed(|attributes| !attributes.is_up && hop_limit_allows(hop_limit, attributes))
    }

    fn is_any_allowed(&self, is_wanted: impl Fn(&FaceAttributes) -> bool) -> bool {
        let way = (self.trigger.ingress, self.may_leave_the_node);
        let attributes = |hop: &NextHop| scope_allows(self.pass.view.faces, way, FaceId(hop.face));
        self.next_hops.iter().filter_map(attributes).any(is_wanted)
    }

    /// Sends the Interest to `face`. If it leaves through no face at all, that is counted
    /// as a drop once the strategy has returned.
    pub fn send_interest(&mut self, face: FaceId) {
        match self.engine.outgoing_interest(self.pass, self.entry, face, &self.trigger) {
            Ok(()) => self.sent = true,
            Err(reason) => self.refused = Some(reason),
        }
    }

    /// Sends a copy of the entry's Interest with a nonce of its own to `face`; a refusal is not counted.
    pub fn send_copy(&mut self, face: FaceId, nonce: Nonce) {
        let copy = Trigger { packet: None, nonce, ..self.trigger };
        self.sent |= self.engine.outgoing_interest(self.pass, self.entry, face, &copy).is_ok();
    }

    /// A nonce by chance.
    pub fn new_nonce(&mut self) -> Nonce {
        Nonce::from_u32(self.engine.rng.u32(..))
    }

    /// The engine's source of chance.
    pub fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.engine.rng
    }

    /// NextHopFaceId: the application chose; no scope check, no strategy (§1).
    pub(crate) fn send_to_chosen_face(&mut self, face: FaceId) {
        if self.pass.view.faces.get(face).is_some() {
            self.send_interest(face);
        } else {
            self.engine.counters.drop(DropReason::NextHopFaceMissing);
        }
    }

    /// Sends a Nack to one downstream and forgets it.
    pub fn send_nack(&mut self, face: FaceId, reason: NackReason) {
        self.engine.outgoing_nack(self.pass, self.entry, face, reason);
    }

    /// Sends a Nack to every downstream.
    pub fn send_nack_to_all(&mut self, reason: NackReason) {
        let mut faces = std::mem::take(&mut self.engine.faces_to_tell);
        faces.extend(self.downstreams().map(|record| record.face));
        for &face in &faces {
            self.send_nack(face, reason);
        }
        faces.clear();
        self.engine.faces_to_tell = faces;
    }

    /// Ends the entry: nobody will answer.
    pub fn reject(&mut self) {
        self.rejected = true;
    }

    /// Counts the Interest as not forwarded for `reason`.
    pub fn count_drop(&mut self, reason: DropReason) {
        self.engine.counters.drop(reason);
    }

    /// Asks for [`super::Strategy::after_timer`] at `deadline`.
    pub fn set_timer(&mut self, deadline: Instant) {
        self.state_mut().strategy_deadline = Some(deadline);
        self.engine.arm(self.entry);
    }
}

/// What strategies use that look further than one entry.
impl<'v> StrategyContext<'_, 'v, '_> {
    /// Asks for [`super::Strategy::before_satisfy`] when Data comes for this entry.
    pub fn watch(&mut self) {
        self.state_mut().watched = true;
    }

    /// Asks for [`super::Strategy::before_expiry`] if this entry expires unanswered.
    pub fn watch_expiry(&mut self) {
        self.state_mut().expiry_watched = true;
    }

    /// An upstream that has not answered for `after_ns` since it was asked and has not been given here before for this
    /// entry; one that sent a Nack or lost its link has a reason.
    pub fn next_unanswered(&mut self, after_ns: u64) -> Option<FaceId> {
        let now = self.now();
        let Engine { tables, records, .. } = &mut *self.engine;
        let state = &mut tables.pit_mut(self.entry).state;
        let is_unanswered = |record: &OutRecord| {
            let has_reason = record.nack.is_some() || record.is_lost();
            !record.silence_counted && !has_reason && now.since_ns(record.sent) >= after_ns
        };
        let record = records.upstreams.find_mut(&mut state.out_records, is_unanswered)?;
        record.silence_counted = true;
        Some(record.face)
    }

    /// Whether strategies suspect any next hop of being silent ([`Measurements::suspect`]).
    #[inline]
    pub(crate) fn has_suspects(&self) -> bool {
        self.engine.measurements.suspects() > 0
    }

    /// What this worker's strategies have measured.
    pub fn measurements(&mut self) -> &mut Measurements {
        &mut self.engine.measurements
    }

    /// Key of the measurements that strategies of this `kind` keep of the FIB prefix.
    pub fn prefix_key(&self, kind: u64) -> u64 {
        measurement_key(hash_name(self.engine.tables.key(), self.prefix().unwrap_or_default()), kind)
    }

    /// Hash of the Interest's name.
    pub fn name_hash(&self) -> u64 {
        self.state().name_hash
    }

    /// What was measured by strategies of this `kind` under the longest prefix of the Interest's name.
    pub fn longest_measured_prefix(&mut self, kind: u64) -> Option<MeasurementId> {
        let Engine { tables, name_hashes, measurements, .. } = &mut *self.engine;
        if measurements.is_empty() {
            return None;
        }
        name_hashes.compute(tables.key(), tables.group_name(tables.pit(self.entry).group())).ok()?;
        let found = |n| measurements.find(measurement_key(name_hashes.prefix_hash(n), kind), self.pass.now);
        (0..=name_hashes.components()).rev().find_map(found)
    }

    /// All faces, in no order.
    pub fn faces(&self) -> impl Iterator<Item = (FaceId, &'v FaceAttributes)> + use<'v> {
        self.pass.view.faces.iter()
    }

    /// The Interest at hand must not be flooded.
    pub fn is_non_discovery(&self) -> bool {
        self.trigger.non_discovery
    }

    /// Marks what is sent from now on, or does not.
    pub fn set_non_discovery(&mut self, non_discovery: bool) {
        self.trigger.non_discovery = non_discovery;
    }

    /// Lets the Data carry the announcement that this node has for its longest prefix, if it has one.
    pub fn attach_announcement(&mut self, answer: &mut Answer<'_>) {
        let Some(announcement) = self.pass.view.strategies.announcements().longest_match(answer.name()) else { return };
        if self.pass.out.is_full_of_rewritten() {
            return self.engine.counters.meet(LimitMet::AnnouncementNotAttached);
        }
        let wire = answer.wire();
        let packet = self.pass.out.rewrite(|out| {
            out.extend_from_slice(announcement);
            out.extend_from_slice(wire);
        });
        answer.attach(packet, announcement.len() as u16);
    }

    /// Asks the control side for a route to the ingress face, as `announcement` says.
    pub fn learn_route(&mut self, announcement: &[u8]) {
        self.request_route(announcement, |face, announcement| RouteRequest::Learn { face, announcement });
    }

    /// Asks the control side to end the learned route by which the Interest went to the ingress face.
    pub fn forget_route(&mut self) {
        let mut name = std::mem::take(&mut self.engine.name_copy);
        name.clear();
        name.extend_from_slice(self.engine.tables.group_name(self.engine.tables.pit(self.entry).group()));
        self.request_route(&name, |face, name| RouteRequest::Forget { face, name });
        self.engine.name_copy = name;
    }

    fn request_route(&mut self, octets: &[u8], request: impl FnOnce(FaceId, PacketRef) -> RouteRequest) {
        let out = &mut *self.pass.out;
        if out.route_requests.len() >= ROUTE_REQUESTS_MAX || out.is_full_of_rewritten() {
            return self.engine.counters.meet(LimitMet::RouteRequestsFull);
        }
        let octets = out.rewrite(|out| out.extend_from_slice(octets));
        out.route_requests.push(request(self.trigger.ingress, octets));
    }
}

/// Measurements of different kinds of strategies do not meet.
pub(crate) fn measurement_key(name_hash: u64, kind: u64) -> u64 {
    name_hash ^ kind.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// §3: the face is up, [`scope_allows`] it, and so does the HopLimit that the Interest goes on with.
pub(crate) fn is_eligible(
    faces: &FaceTable,
    (ingress, may_leave_the_node, hop_limit): (FaceId, bool, Option<u8>),
    face: FaceId,
) -> bool {
    scope_allows(faces, (ingress, may_leave_the_node), face)
        .is_some_and(|attributes| attributes.is_up && hop_limit_allows(hop_limit, attributes))
}

fn hop_limit_allows(hop_limit: Option<u8>, attributes: &FaceAttributes) -> bool {
    hop_limit != Some(0) || attributes.is_local()
}

/// §3, but for HopLimit: `face` exists and is not where the Interest came from, unless it is ad hoc,
/// and the scope of the name lets it go there.
fn scope_allows(
    faces: &FaceTable,
    (ingress, may_leave_the_node): (FaceId, bool),
    face: FaceId,
) -> Option<&FaceAttributes> {
    let attributes = faces.get(face)?;
    let goes_back = face == ingress && attributes.link_type != LinkType::AdHoc;
    (!goes_back && (may_leave_the_node || attributes.is_local())).then_some(attributes)
}

/// `/localhost` never leaves the node, `/localhop` not if it came from outside (§3).
fn may_leave_the_node(engine: &Engine, pass: &Pass<'_, '_>, entry: PitId, ingress: FaceId) -> bool {
    match NameScope::of(engine.tables.group_name(engine.tables.pit(entry).group())) {
        NameScope::Global => true,
        NameScope::Localhop => pass.view.faces.get(ingress).is_some_and(|face| face.is_local()),
        NameScope::Localhost => false,
    }
}
