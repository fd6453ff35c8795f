//! The Incoming Nack pipeline (forwarding §1; NFD's developer guide §4.4).

use crate::{
    DropReason, Engine,
    batch::{Arrival, Pass},
    face_table::LinkType,
    incoming_interest::{lookup, next_hop_entry, strategy_of},
    strategy::{StrategyContext, Trigger},
};
use namewire_packet::{Interest, NackReason};
use namewire_tables::{NameHashes, Variant};

impl Engine {
    pub(crate) fn incoming_nack(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        reason: NackReason,
        interest: &Interest<'_>,
        hashes: &NameHashes,
    ) {
        self.counters.in_nacks += 1;
        let Some(face) = pass.view.faces.get(arrival.face) else {
            return self.counters.drop(DropReason::UnknownFace);
        };
        if face.link_type != LinkType::PointToPoint {
            return self.counters.drop(DropReason::NackOnMultiAccess);
        }
        // The entry must be exactly the Nacked Interest's, sent there with that nonce.
        let variant = Variant::new(interest.can_be_prefix(), interest.must_be_fresh());
        let entry = self
            .tables
            .find(hashes.full_hash(), interest.name().value())
            .and_then(|group| self.tables.pit_of_group(group)[variant as usize]);
        let Some(entry) = entry else { return self.core_nack(pass, arrival, reason, interest, hashes) };
        let state = &mut self.tables.pit_mut(entry).state;
        match self.records.upstream_mut(state, arrival.face) {
            Some(record) if Some(record.nonce) == interest.nonce() => record.nack = Some(reason),
            _ => return self.core_nack(pass, arrival, reason, interest, hashes),
        }
        let trigger = Trigger::of_entry(arrival.face, &self.records, state, interest.lifetime_ms());
        let found = lookup(pass, interest.name(), hashes);
        let strategy = pass.view.strategies.get(strategy_of(found));
        let leads_on = next_hop_entry(pass, &mut self.name_hashes, &mut self.hint_prefix, interest, found);
        let mut context = StrategyContext::new(self, pass, entry, trigger, leads_on);
        if !context.is_any_upstream_pending() {
            context.reject(); // nobody can answer any more: expiry now
        }
        strategy.after_receive_nack(&mut context, reason);
        context.finish();
    }
}
