//! What a strategy can see and do.

use crate::{
    DropReason, Engine, Instant,
    batch::{PacketRef, Pass},
    face_table::LinkType,
    incoming_interest::NameScope,
    pit_state::{InRecord, OutRecord, PitState, Records},
};
use namewire_packet::{FaceId, NackReason, Nonce};
use namewire_tables::{NextHop, PitId};

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
}

impl Trigger {
    /// A call without an Interest at hand: the last downstream's nonce is used.
    pub(crate) fn of_entry(ingress: FaceId, records: &Records, state: &PitState, lifetime_ms: u64) -> Self {
        let nonce = records.downstreams(state).last().map_or(Nonce::default(), |record| record.nonce);
        Trigger { ingress, packet: None, nonce, hop_limit: None, lifetime_ms, congestion_mark: 0 }
    }
}

/// One PIT entry as its strategy sees it.
pub struct StrategyContext<'e, 'v, 'o> {
    engine: &'e mut Engine,
    pass: &'e mut Pass<'v, 'o>,
    entry: PitId,
    trigger: Trigger,
    next_hops: &'v [NextHop],
    prefix: Option<&'v [u8]>,
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
        next_hops: &'v [NextHop],
    ) -> Self {
        let may_leave_the_node = may_leave_the_node(engine, pass, entry, trigger.ingress);
        StrategyContext {
            engine,
            pass,
            entry,
            trigger,
            next_hops,
            prefix: None,
            may_leave_the_node,
            rejected: false,
            sent: false,
            refused: None,
        }
    }

    pub(crate) fn set_prefix(&mut self, prefix: Option<&'v [u8]>) {
        self.prefix = prefix;
    }

    /// Name TLV-VALUE of the FIB entry, where the engine looked it up for a timer or new next hop.
    pub(crate) fn prefix(&self) -> Option<&'v [u8]> {
        self.prefix
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
    /// exists, is not where the Interest came from (unless ad hoc), and neither
    /// scope nor HopLimit forbids it.
    pub fn is_eligible(&self, face: FaceId) -> bool {
        let is_local = || self.pass.view.faces.get(face).is_some_and(|attributes| attributes.is_local());
        self.scope_allows(face) && (self.trigger.hop_limit != Some(0) || is_local())
    }

    /// [`StrategyContext::is_eligible`] but for HopLimit.
    fn scope_allows(&self, face: FaceId) -> bool {
        let faces = self.pass.view.faces;
        let Some(attributes) = faces.get(face) else { return false };
        if face == self.trigger.ingress && attributes.link_type != LinkType::AdHoc {
            return false;
        }
        attributes.is_local() || self.may_leave_the_node
    }

    /// Lets a downstream that `face` is eligible for be the one the call is for;
    /// false if there is none. For calls without a packet.
    pub(crate) fn choose_ingress_for(&mut self, face: FaceId) -> bool {
        let now = self.now();
        let downstreams = self.state().in_records.len();
        (0..downstreams).any(|place| {
            let Some(&record) = self.downstreams().nth(place) else { return false };
            (self.trigger.ingress, self.trigger.nonce) = (record.face, record.nonce);
            self.may_leave_the_node = may_leave_the_node(self.engine, self.pass, self.entry, record.face);
            record.expires > now && self.is_eligible(face)
        })
    }

    /// Eligible next hops, cheapest first.
    pub fn eligible(&self) -> impl Iterator<Item = FaceId> + '_ {
        self.next_hops.iter().map(|hop| FaceId(hop.face)).filter(|&face| self.is_eligible(face))
    }

    /// True if some eligible next hop was kept back by HopLimit 0 alone.
    pub(crate) fn hop_limit_forbids(&self) -> bool {
        let allowed_but_for_hop_limit = |hop: &NextHop| self.scope_allows(FaceId(hop.face));
        self.trigger.hop_limit == Some(0) && self.next_hops.iter().any(allowed_but_for_hop_limit)
    }

    /// Sends the Interest to `face`. If it leaves through no face at all, that is counted
    /// as a drop once the strategy has returned.
    pub fn send_interest(&mut self, face: FaceId) {
        match self.engine.outgoing_interest(self.pass, self.entry, face, &self.trigger) {
            Ok(()) => self.sent = true,
            Err(reason) => self.refused = Some(reason),
        }
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

/// `/localhost` never leaves the node, `/localhop` not if it came from outside (§3).
fn may_leave_the_node(engine: &Engine, pass: &Pass<'_, '_>, entry: PitId, ingress: FaceId) -> bool {
    match NameScope::of(engine.tables.group_name(engine.tables.pit(entry).group())) {
        NameScope::Global => true,
        NameScope::Localhop => pass.view.faces.get(ingress).is_some_and(|face| face.is_local()),
        NameScope::Localhost => false,
    }
}
