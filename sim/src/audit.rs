//! Audit: do the counters of an idle network add up?
//!
//! No packet may vanish without a counter. The packets that one part counts as sent must be those that the next part
//! counts as received. Every failed Interest must have met a loss or a drop in the trace. Each law is checked for every
//! link and node; [`Network::audit`] returns the violations.

use crate::consumer::Consumer;
use crate::network::{AppId, Network};
use crate::trace::NodeId;
use crate::trace::TraceKind;
use namewire_engine::{Counters, DropReason};
use namewire_links::{LinkCounters, LinkDrop};
use namewire_packet::NameBuf;
use std::collections::BTreeSet;

impl Network {
    /// The violated conservation laws, as text; empty if all hold. Call it after a run that ended with
    /// [`RunEnd::Idle`](crate::RunEnd::Idle): packets in flight count as lost.
    pub fn audit(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (index, tally) in self.link_tallies().enumerate() {
            let out = tally.arrived + tally.lost_total();
            law(
                &mut broken,
                &format!("direction {index}: frames sent and repeated"),
                tally.sent + tally.duplicated,
                out,
            );
        }
        for node in self.nodes() {
            self.audit_node(node, &mut broken);
        }
        broken
    }

    /// Data that the node dropped because it had not asked for it, or had asked another face.
    pub fn data_not_wanted(&self, node: NodeId) -> u64 {
        let counters = self.counters(node);
        counters.dropped(DropReason::UnsolicitedData) + counters.dropped(DropReason::DataNotAsked)
    }

    fn audit_node(&self, node: NodeId, broken: &mut Vec<String>) {
        let mut law = |what: &str, left: u64, right: u64| law(broken, &format!("node {}: {what}", node.0), left, right);
        let (engine, links) = (self.counters(node), self.link_total(node));
        let past = self.past_lives(node);
        let refused = engine.dropped(DropReason::Malformed) + engine.dropped(DropReason::NameTooLong);

        // From the link services into the engines.
        if refused == 0 {
            law("Interests from links to engine", links.in_interests, engine.in_interests + past.unseen.interests);
            law("Nacks from links to engine", links.in_nacks, engine.in_nacks + past.unseen.nacks);
            law("Data from links to engine", links.in_data, engine.in_data + past.unseen.data);
        }
        // From the engines into the link services.
        let not_sent = links.drops[LinkDrop::PacketTooLarge as usize] + self.sent_to_no_face(node);
        if not_sent == 0 {
            law("Interests from engine to links", engine.out_interests, links.out_interests);
            law("Data from engine to links", engine.out_data, links.out_data);
            law("Nacks from engine to links", engine.out_nacks, links.out_nacks);
        }
        // Every PIT entry has one beginning and one end.
        let pending: usize = self.engines(node).map(|engine| engine.pit_len()).sum();
        law("PIT entries left", pending as u64, 0);
        let not_entered =
            [DropReason::PitFull, DropReason::FaceShareUsed, DropReason::PitShareUsed, DropReason::PitOverflowFull];
        let not_entered: u64 = not_entered.into_iter().map(|reason| engine.dropped(reason)).sum();
        let new = engine.cs_misses + engine.cs_not_asked;
        let ended = engine.satisfied + engine.unsatisfied + past.pit_entries;
        law("new Interests", new, ended + not_entered + engine.by_fingerprint);
        // Every Interest needs a fate. Several may apply to one (sent to two next hops; joined and suppressed).
        let sent_or_joined = engine.out_interests + engine.aggregated;
        let fates = engine.cs_hits + interest_drops(&engine) + sent_or_joined + past.handed_over_interests;
        law("Interests without a fate", engine.in_interests.saturating_sub(fates), 0);
    }

    /// Names of a consumer that failed although the trace shows no loss and no drop of a packet under that name.
    /// Suppression explains no failure: it refers to a packet that is still in flight.
    ///
    /// # Panics
    /// If the application is no [`Consumer`], or the trace was too short to keep every event.
    pub fn unexplained_failures(&self, consumer: AppId) -> Vec<NameBuf> {
        assert_eq!(self.trace().not_kept(), 0, "the trace is incomplete");
        let explained: BTreeSet<&NameBuf> = self
            .trace()
            .events()
            .iter()
            .filter(|event| match event.kind {
                TraceKind::LinkLost(_) | TraceKind::AirLost(_) | TraceKind::LinkDropped(_) => true,
                TraceKind::EngineDropped(reason) => reason != DropReason::Suppressed,
                TraceKind::Sent | TraceKind::Received | TraceKind::TagDropped(_) => false,
            })
            .filter_map(|event| event.name.as_deref())
            .collect();
        // In canonical order a name directly precedes the names of which it is a prefix: Data under a longer name
        // counts.
        let is_explained = |name: &NameBuf| {
            explained
                .range::<&NameBuf, _>(name..)
                .next()
                .is_some_and(|next| name.as_name().is_prefix_of(&next.as_name()))
        };
        let failed = self.application::<Consumer>(consumer).failed();
        failed.filter(|(name, _)| !is_explained(name)).map(|(name, _)| name.clone()).collect()
    }

    fn link_total(&self, node: NodeId) -> LinkCounters {
        let mut total = LinkCounters::default();
        for counters in self.all_face_counters(node) {
            total.merge(counters);
        }
        total
    }
}

fn law(broken: &mut Vec<String>, what: &str, left: u64, right: u64) {
    if left != right {
        broken.push(format!("{what}: {left} against {right}"));
    }
}

/// Drops of Interests.
fn interest_drops(counters: &Counters) -> u64 {
    let not_interests = [
        DropReason::Malformed,
        DropReason::NameTooLong,
        DropReason::UnsolicitedData,
        DropReason::DataNotAsked,
        DropReason::ForgedManagement,
        DropReason::NackOnMultiAccess,
        DropReason::UnmatchedNack,
        DropReason::NackNotPassedOn,
        DropReason::DataSentAlready,
    ];
    counters.dropped_total() - not_interests.iter().map(|&reason| counters.dropped(reason)).sum::<u64>()
}
