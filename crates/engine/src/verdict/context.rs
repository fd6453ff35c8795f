//! What a strategy can see and do.

use crate::{
    DropReason, FaceAttributes, Instant, LimitMet, RouteRequest,
    ground::output::{Outbound, PacketRef},
    state::{
        measurements::{MeasurementId, Measurements, measurement_key},
        parts::Parts,
        pit_state::{InRecord, OutRecord, PitState},
    },
    verdict::{
        answer::Answer,
        journey::{Journey, hop_limit_allows},
        next_hops::{MatchedPrefix, NextHops},
        outgoing::{outgoing_interest, outgoing_nack},
        trigger::Trigger,
    },
};
use namewire_packet::{FaceId, NackReason, Nonce};
use namewire_tables::{NextHop, PitId, hash_name};

/// One PIT entry as its strategy sees it.
pub struct StrategyContext<'e, 'v, 'o> {
    parts: &'e mut Parts,
    outbound: &'e mut Outbound<'v, 'o>,
    entry: PitId,
    trigger: Trigger,
    next_hops: &'v [NextHop],
    prefix: Option<MatchedPrefix>,
    rejected: bool,
    sent: bool,
    /// Why the last [`StrategyContext::send_interest`] call failed, if it did.
    refused: Option<DropReason>,
}

impl<'e, 'v, 'o> StrategyContext<'e, 'v, 'o> {
    #[inline(always)]
    pub(crate) fn new(
        parts: &'e mut Parts,
        outbound: &'e mut Outbound<'v, 'o>,
        entry: PitId,
        trigger: Trigger,
        found: Option<NextHops<'v>>,
    ) -> Self {
        StrategyContext {
            parts,
            outbound,
            entry,
            trigger,
            next_hops: found.map_or(&[], |found| found.next_hops),
            prefix: found.map(|found| found.prefix),
            rejected: false,
            sent: false,
            refused: None,
        }
    }

    /// Name TLV-VALUE of the FIB prefix of the next hops, if there is one.
    pub fn prefix(&self) -> Option<&[u8]> {
        self.prefix.map(|prefix| match prefix {
            MatchedPrefix::OfName { bytes } => &self.parts.tables.name_of(self.entry)[..bytes],
            MatchedPrefix::OfDelegation => &self.parts.scratch.hint_prefix,
        })
    }

    /// Carries out what must wait until the strategy has returned. An Interest that was refused at one face and sent
    /// through another is no drop.
    ///
    /// N.B. Each field is read by itself. Moved out as a whole, flags that a strategy has just written one by one were
    /// read as one word; that read waits until the stores have left the core.
    #[inline(always)]
    pub(crate) fn finish(&mut self) {
        if let (Some(reason), false) = (self.refused, self.sent) {
            self.parts.counters.drop(reason);
        }
        if self.rejected || self.state().nobody_waits() {
            self.parts.tables.finalize_unsatisfied(self.outbound.now, self.entry, &mut self.parts.counters);
        }
    }

    /// The time of this batch.
    pub fn now(&self) -> Instant {
        self.outbound.now
    }

    /// The face whose packet caused the call.
    pub fn ingress(&self) -> FaceId {
        self.trigger.ingress
    }

    /// The faces that asked, in order of arrival.
    pub fn downstreams(&self) -> impl Iterator<Item = &InRecord> {
        self.parts.tables.records.downstreams(self.state())
    }

    /// The record of downstream `face`.
    pub fn downstream(&self, face: FaceId) -> Option<&InRecord> {
        self.parts.tables.records.downstream(self.state(), face)
    }

    /// The faces that were asked, in order of sending.
    pub fn upstreams(&self) -> impl Iterator<Item = &OutRecord> {
        self.parts.tables.records.upstreams(self.state())
    }

    /// The record of upstream `face`.
    pub fn upstream(&self, face: FaceId) -> Option<&OutRecord> {
        self.parts.tables.records.upstream(self.state(), face)
    }

    /// The record of upstream `face`, to be changed.
    pub fn upstream_mut(&mut self, face: FaceId) -> Option<&mut OutRecord> {
        let (state, records) = self.parts.tables.state_mut(self.entry);
        records.upstream_mut(state, face)
    }

    /// True if some upstream may still answer.
    pub fn is_any_upstream_pending(&self) -> bool {
        let now = self.now();
        self.upstreams().any(|record| record.is_pending(now))
    }

    /// Times and suppression state of the entry.
    pub fn state(&self) -> &PitState {
        self.parts.tables.state(self.entry)
    }

    /// Times and suppression state of the entry, to be changed.
    pub fn state_mut(&mut self) -> &mut PitState {
        self.parts.tables.state_mut(self.entry).0
    }

    /// Next hops of the longest matching prefix, cheapest first.
    pub fn next_hops(&self) -> &'v [NextHop] {
        self.next_hops
    }

    /// True if an Interest from the ingress face may go to `face` (§3): the face
    /// exists, is up, is not where the Interest came from (unless ad hoc), and
    /// neither scope nor HopLimit forbids it.
    pub fn is_eligible(&self, face: FaceId) -> bool {
        self.journey().is_eligible(face)
    }

    #[inline]
    fn journey(&self) -> Journey<'v> {
        let Trigger { ingress, scope, hop_limit, .. } = self.trigger;
        Journey { faces: self.outbound.faces, ingress, scope, hop_limit }
    }

    /// Makes a downstream for which `face` is eligible the ingress of this call; false if there is none. For calls
    /// without a packet.
    pub(crate) fn choose_ingress_for(&mut self, face: FaceId) -> bool {
        let now = self.now();
        let downstreams = self.state().in_records.len();
        let has_own_nonce = self.downstreams().all(|record| record.nonce != self.trigger.nonce);
        (0..downstreams).any(|place| {
            let Some(&record) = self.downstreams().nth(place) else { return false };
            self.trigger.ingress = record.face;
            self.trigger.nonce = if has_own_nonce { self.trigger.nonce } else { record.nonce };
            self.trigger.non_discovery = record.non_discovery;
            record.expires > now && self.is_eligible(face)
        })
    }

    /// Eligible next hops, cheapest first.
    pub fn eligible(&self) -> impl Iterator<Item = FaceId> + '_ {
        self.next_hops.iter().map(|hop| FaceId(hop.face)).filter(|&face| self.is_eligible(face))
    }

    /// True if no answer of `face` is pending: it was not asked, or too long ago, or its link went down. A face that
    /// sent a Nack is not unused.
    pub fn is_unused(&self, face: FaceId) -> bool {
        self.upstream(face).is_none_or(|record| record.expires <= self.now())
    }

    /// Makes a downstream for which some unused next hop is eligible the ingress of this call, if there is one. For
    /// calls without a packet.
    pub(crate) fn choose_ingress_for_unused(&mut self) {
        let next_hops = self.next_hops.iter().map(|hop| FaceId(hop.face));
        let _ = { next_hops }.any(|face| self.is_unused(face) && self.choose_ingress_for(face));
    }

    /// True if HopLimit 0 is the only reason that some next hop is not eligible.
    pub(crate) fn hop_limit_forbids(&self) -> bool {
        self.trigger.hop_limit == Some(0) && self.is_any_allowed(|attributes| attributes.is_up)
    }

    /// True if a link that is down is the only reason that some next hop is not eligible.
    pub(crate) fn waits_for_link(&self) -> bool {
        let hop_limit = self.trigger.hop_limit;
        self.is_any_allowed(|attributes| !attributes.is_up && hop_limit_allows(hop_limit, attributes))
    }

    fn is_any_allowed(&self, is_wanted: impl Fn(&FaceAttributes) -> bool) -> bool {
        let journey = self.journey();
        let attributes = |hop: &NextHop| journey.allowed_by_scope(FaceId(hop.face));
        self.next_hops.iter().filter_map(attributes).any(is_wanted)
    }

    /// Sends the Interest to `face`. If the Interest leaves through no face at all, that is counted as a drop once the
    /// strategy has returned.
    pub fn send_interest(&mut self, face: FaceId) {
        match outgoing_interest(self.parts, self.outbound, self.entry, face, &self.trigger) {
            Ok(()) => self.sent = true,
            Err(reason) => self.refused = Some(reason),
        }
    }

    /// Sends a copy of the entry's Interest with a nonce of its own to `face`; a refusal is not counted.
    pub fn send_copy(&mut self, face: FaceId, nonce: Nonce) {
        let copy = Trigger { packet: None, nonce, ..self.trigger };
        self.sent |= outgoing_interest(self.parts, self.outbound, self.entry, face, &copy).is_ok();
    }

    /// A random nonce.
    pub fn new_nonce(&mut self) -> Nonce {
        Nonce::from_u32(self.parts.random.u32(..))
    }

    /// The engine's random numbers.
    pub fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.parts.random
    }

    /// NextHopFaceId: the application chose; no scope check, no strategy (§1).
    pub(crate) fn send_to_chosen_face(&mut self, face: FaceId) {
        if self.outbound.faces.get(face).is_some() {
            self.send_interest(face);
        } else {
            self.parts.counters.drop(DropReason::NextHopFaceMissing);
        }
    }

    /// Counts an Interest that goes elsewhere because earlier ones got no answer from this face.
    pub fn note_avoided(&mut self, face: FaceId) {
        self.parts.tables.upstream_times.avoided(face);
    }

    /// Sends a Nack to one downstream and forgets it.
    pub fn send_nack(&mut self, face: FaceId, reason: NackReason) {
        outgoing_nack(self.parts, self.outbound, self.entry, face, reason);
    }

    /// Sends a Nack to every downstream.
    pub fn send_nack_to_all(&mut self, reason: NackReason) {
        let mut faces = std::mem::take(&mut self.parts.scratch.faces_to_nack);
        faces.extend(self.downstreams().map(|record| record.face));
        for &face in &faces {
            self.send_nack(face, reason);
        }
        faces.clear();
        self.parts.scratch.faces_to_nack = faces;
    }

    /// Ends the entry: no upstream will answer.
    pub fn reject(&mut self) {
        self.rejected = true;
    }

    /// Counts the Interest as not forwarded for `reason`.
    pub fn count_drop(&mut self, reason: DropReason) {
        self.parts.counters.drop(reason);
    }

    /// Asks for [`crate::verdict::strategy::Strategy::after_timer`] at `deadline`.
    pub fn set_timer(&mut self, deadline: Instant) {
        self.state_mut().strategy_deadline = Some(deadline);
        self.parts.tables.arm(self.entry);
    }
}

/// For strategies that look further than one entry.
impl<'v> StrategyContext<'_, 'v, '_> {
    /// Requests [`crate::verdict::strategy::Strategy::before_satisfy`] when Data comes for this entry.
    pub fn watch(&mut self) {
        self.state_mut().watched = true;
    }

    /// Requests [`crate::verdict::strategy::Strategy::before_expiry`] if this entry expires unanswered.
    pub fn watch_expiry(&mut self) {
        self.state_mut().expiry_watched = true;
    }

    /// An upstream that has not answered for `after_ns` since it was asked. Each is returned once per entry. Upstreams
    /// that sent a Nack or lost their link are not returned, since they have a reason.
    pub fn next_unanswered(&mut self, after_ns: u64) -> Option<FaceId> {
        let now = self.now();
        let (state, records) = self.parts.tables.state_mut(self.entry);
        let is_unanswered = |record: &OutRecord| {
            let has_reason = record.nack.is_some() || record.is_lost();
            !record.silence_counted() && !has_reason && now.since_ns(record.sent) >= after_ns
        };
        let record = records.upstreams.find_mut(&mut state.out_records, is_unanswered)?;
        record.count_silence();
        Some(record.face)
    }

    /// Whether strategies suspect any next hop of being silent ([`Measurements::suspect`]).
    #[inline]
    pub(crate) fn has_suspects(&self) -> bool {
        self.parts.measurements.suspects() > 0
    }

    /// What this worker's strategies have measured.
    pub fn measurements(&mut self) -> &mut Measurements {
        &mut self.parts.measurements
    }

    /// Key of the measurements that strategies of this `kind` keep for the FIB prefix.
    pub fn prefix_key(&self, kind: u64) -> u64 {
        measurement_key(hash_name(self.parts.tables.pit_cs.key(), self.prefix().unwrap_or_default()), kind)
    }

    /// Hash of the Interest's name.
    pub fn name_hash(&self) -> u64 {
        self.state().name_hash
    }

    /// What strategies of this `kind` measured under the longest measured prefix of the Interest's name.
    pub fn longest_measured_prefix(&mut self, kind: u64) -> Option<MeasurementId> {
        let Parts { tables, scratch, measurements, .. } = &mut *self.parts;
        if measurements.is_empty() {
            return None;
        }
        let hashes = &mut scratch.name_hashes;
        hashes.compute(tables.pit_cs.key(), tables.name_of(self.entry)).ok()?;
        let found = |n| measurements.find(measurement_key(hashes.prefix_hash(n), kind), self.outbound.now);
        (0..=hashes.components()).rev().find_map(found)
    }

    /// All faces, in arbitrary order.
    pub fn faces(&self) -> impl Iterator<Item = (FaceId, &'v FaceAttributes)> + use<'v> {
        self.outbound.faces.iter()
    }

    /// The Interest at hand must not be flooded.
    pub fn is_non_discovery(&self) -> bool {
        self.trigger.non_discovery
    }

    /// Sets or clears the NonDiscovery mark of Interests sent from now on.
    pub fn set_non_discovery(&mut self, non_discovery: bool) {
        self.trigger.non_discovery = non_discovery;
    }

    /// Attaches this node's announcement for the longest prefix of the Data, if it has one.
    pub fn attach_announcement(&mut self, answer: &mut Answer<'_>) {
        let Some(announcement) = self.outbound.announcements.longest_match(answer.name()) else { return };
        if self.outbound.out.is_full_of_rewritten() {
            return self.parts.counters.meet(LimitMet::AnnouncementNotAttached);
        }
        let wire = answer.wire();
        let packet = self.outbound.out.rewrite(|out| {
            out.extend_from_slice(announcement);
            out.extend_from_slice(wire);
        });
        answer.attach(packet, announcement.len() as u16);
    }

    /// Asks the control side for a route to the ingress face, as `announcement` says.
    pub fn learn_route(&mut self, announcement: &[u8]) {
        self.request_route(announcement, |face, announcement| RouteRequest::Learn { face, announcement });
    }

    /// Asks the control side to end the learned route that led the Interest to the ingress face.
    pub fn forget_route(&mut self) {
        let mut name = std::mem::take(&mut self.parts.scratch.name_copy);
        name.clear();
        name.extend_from_slice(self.parts.tables.name_of(self.entry));
        self.request_route(&name, |face, name| RouteRequest::Forget { face, name });
        self.parts.scratch.name_copy = name;
    }

    fn request_route(&mut self, bytes: &[u8], request: impl FnOnce(FaceId, PacketRef) -> RouteRequest) {
        let out = &mut *self.outbound.out;
        if out.is_full_of_route_requests() {
            return self.parts.counters.meet(LimitMet::RouteRequestsFull);
        }
        let bytes = out.rewrite(|out| out.extend_from_slice(bytes));
        out.route_requests.push(request(self.trigger.ingress, bytes));
    }
}
