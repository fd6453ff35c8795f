//! Probes: the router answers pings and traceroutes (RFC 9508, RFC 9507).
//!
//! The engine decides which probes end here ([`namewire_engine::AnswersProbes`]). Control asks the workers what they
//! know of the target, as for `namewire explain`, and the answer says what the router would do with an Interest for it.
//!
//! | who asks | learns |
//! | --- | --- |
//! | anybody whom `[probes]` lets ask | the router's name, program and clock; the matching prefix, its strategy, its next hops by number |
//! | applications of this host, or all with `probes.addresses` | also addresses of next hops, and prefixes near the target |
//!
//! A traceroute that ended by its HopLimit has no PIT entry: its answer goes to the face that it came from. Any other
//! answer returns by the PIT.
//!
//! Limits: [`namewire_shares::Rates`] for each holder; an answer is one packet, not larger than [`PLAIN_BYTES`] unless
//! the request was.

use super::{Control, held_requests::HeldRequest};
use crate::{
    name_looks::Asker,
    probe_desk::{ProbeAsker, Probes},
};
use namewire_management::{TablesAboutName, Times};
use namewire_node_model::explanation::{Explanation, NextHop, Tables};
use namewire_packet::{
    DataBuilder, FaceId, Interest, MAX_PACKET_BYTES, NameBuf,
    lp::LpHeaders,
    nfd::{FaceScope, NameLook, Part, ProbeNextHop, ProbeReply, ReplyCode},
    path_label::{PathLabel, PathMode, label_of},
    probe::{Probe, ProbeKind},
};
use namewire_worker::ToWorker;
use namewire_worker::answer_times::{AnswerTimes, answered};

/// An answer to a small request has at most about so many bytes.
const PLAIN_BYTES: usize = 2048;

/// Most next hops in an answer.
const MAX_NEXT_HOPS: usize = 16;

/// Most hints in an answer.
const MAX_HINTS: usize = 4;

/// Longest text in an answer, in bytes.
const MAX_TEXT_BYTES: usize = 200;

/// A name that takes more of the answer is left out of it.
const MAX_NAME_BYTES: usize = 512;

impl Control {
    /// Takes a probe out of what came for management. `None`: it is another request.
    pub(super) fn take_probe(&mut self, request: &HeldRequest) -> Option<()> {
        let interest = Interest::parse(&request.packet).ok()?;
        let probe = Probe::of(&interest)?;
        if self.management.serves(interest.name()) {
            return None;
        }
        let HeldRequest { incoming, pit_token, .. } = *request;
        let (holder, address) = self.node.faces.asker(incoming);
        if self.node.probes.admit(self.node.shared.now_ns(), holder, address) {
            let asker = ProbeAsker {
                target: probe.target.to_buf(),
                name: interest.name().to_buf(),
                incoming,
                pit_token,
                request_bytes: request.packet.len(),
                is_direct: probe.kind == ProbeKind::Traceroute && interest.hop_limit() == Some(0),
            };
            self.node.look_at_name(probe.target.to_buf(), Asker::Probe(Box::new(asker)));
        }
        Some(())
    }

    /// All workers have looked at the target.
    pub(super) fn answer_probe(&mut self, asker: &ProbeAsker, looks: Vec<NameLook>) {
        let now = self.node.times();
        let TablesAboutName { fib, rib, choices, faces } = self.management.tables_about(now, asker.target.as_name());
        let fib_usage = self.management.state(now, &[Part::FibUsage], &self.node).fib_usage;
        let tables = Tables { fib, rib, choices, faces, health: Vec::new(), looks, fib_usage };
        let explanation = tables.explain(&asker.target, Some(asker.incoming));
        let Some(code) = self.reply_code(asker, &tables, &explanation) else { return };
        let content = self.probe_reply(now, asker, code, &tables, &explanation).to_content();
        let mut packet = Vec::new();
        PathLabel::empty(PathMode::Strict).write_tlv(&mut packet);
        let lead_bytes = packet.len() as u16;
        packet.extend(DataBuilder::new(&asker.name).freshness_ms(1).content(&content).sign_digest());
        if packet.len() > usize::from(lead_bytes) + MAX_PACKET_BYTES {
            return;
        }
        self.node.probes.counts.answered += 1;
        let headers = LpHeaders { pit_token: asker.pit_token, lead_bytes, ..LpHeaders::default() };
        if !asker.is_direct {
            return self.send_from_internal(packet, headers, |internal| &mut internal.packets.in_data);
        }
        if let Some(record) = self.node.faces.get(asker.incoming) {
            let message = ToWorker::Transmit { face: asker.incoming, headers, packet };
            self.node.faces.send(record.worker, message);
        }
    }

    /// Why the router answers; `None` if there is no reason any more.
    fn reply_code(&self, asker: &ProbeAsker, tables: &Tables, explanation: &Explanation) -> Option<ReplyCode> {
        let mut usable = explanation.next_hops.iter().filter(|hop| hop.excluded.is_none());
        let is_application = usable.next().is_some_and(|hop| is_application(tables, hop));
        if asker.target == self.node.probes.name {
            Some(ReplyCode::Forwarder)
        } else if explanation.stored.iter().any(|stored| stored.data.name == asker.target) {
            Some(ReplyCode::Object)
        } else if is_application {
            Some(ReplyCode::Application)
        } else {
            asker.is_direct.then_some(ReplyCode::HopLimit)
        }
    }

    fn probe_reply(
        &self,
        now: Times,
        asker: &ProbeAsker,
        code: ReplyCode,
        tables: &Tables,
        explanation: &Explanation,
    ) -> ProbeReply {
        let Probes { name, instance, tells_addresses, .. } = &self.node.probes;
        let is_local = self.management.face(asker.incoming).is_some_and(|face| face.scope == FaceScope::Local);
        let tells_all = is_local || *tells_addresses;
        let times = AnswerTimes::of(&self.node.shared);
        let next_hops = explanation.next_hops.iter().take(MAX_NEXT_HOPS);
        let prefix = explanation.prefix.as_ref().and_then(|prefix| prefix.parse().ok());
        let stored = explanation.stored.iter().min_by_key(|stored| stored.needs_can_be_prefix);
        let is_short = |name: &NameBuf| name.as_name().value().len() <= MAX_NAME_BYTES;
        let mut reply = ProbeReply {
            sender: name.clone(),
            code,
            instance: Some(*instance),
            software: Some(concat!("namewire ", env!("CARGO_PKG_VERSION")).to_owned()),
            time_ms: Some(now.unix_ms),
            incoming_face_id: Some(asker.incoming),
            prefix: prefix.filter(is_short),
            strategy: explanation.strategy.as_ref().map(|choice| choice.strategy.clone()).filter(is_short),
            next_hops: next_hops.map(|hop| next_hop(tables, &times, hop, tells_all)).collect(),
            outcome: Some(cut(&explanation.outcome)),
            hints: explanation.hints.iter().filter(|_| tells_all).take(MAX_HINTS).map(|hint| cut(hint)).collect(),
            refusals: self.refusals_of(asker.incoming),
            stored: stored.map(|stored| stored.data.clone()).filter(|stored| is_short(&stored.name)),
            padding: None,
        };
        let plain = reply.to_content().len() + asker.name.as_name().value().len();
        if plain > PLAIN_BYTES.max(asker.request_bytes) {
            (reply.next_hops, reply.hints) = (Vec::new(), Vec::new());
        }
        let missing = asker.request_bytes.saturating_sub(plain + SIGNED_BYTES);
        reply.padding = (missing > 0).then(|| vec![0; missing].into());
        reply
    }
}

impl Control {
    /// What the pools of pending Interests refuse of whoever sent the probe.
    fn refusals_of(&self, incoming: FaceId) -> Vec<String> {
        let (holder, _) = self.node.faces.asker(incoming);
        let cut = self.node.shared.total_status().counters.faces_cut;
        let of_face: u64 = cut.iter().filter(|cut| cut.face == incoming).map(|cut| cut.interests).sum();
        let refused = self.node.shared.pools().into_iter().filter_map(|pool| {
            let holding = pool.holdings().find(|holding| holding.holder == holder)?;
            let (name, capacity) = (pool.config().name, pool.config().capacity);
            let refused = holding.refused + if name == PIT { of_face } else { 0 };
            let is_near = refused > 0 && holding.held >= capacity / FULL_PART;
            is_near.then(|| {
                let held = holding.held;
                format!("{name}: the sender holds {held} of {capacity}, and was refused {refused} times")
            })
        });
        refused.take(MAX_HINTS).collect()
    }
}

/// The pool of pending Interests, whose faces have shares, too.
const PIT: &str = "pit";

/// A holder that was refused something is told of a pool if it holds at least this part of it.
const FULL_PART: u64 = 8;

/// About as many bytes surround the content of a Data that has a digest for a signature.
const SIGNED_BYTES: usize = 64;

fn is_application(tables: &Tables, hop: &NextHop) -> bool {
    let face = tables.face(FaceId(hop.face_id)).filter(|face| face.face_id != FaceId::INTERNAL);
    face.is_some_and(|face| face.face_scope == FaceScope::Local)
}

fn next_hop(tables: &Tables, times: &AnswerTimes, hop: &NextHop, tells_all: bool) -> ProbeNextHop {
    let face_id = FaceId(hop.face_id);
    let time = times.get(face_id);
    ProbeNextHop {
        face_id,
        cost: hop.cost,
        label: label_of(face_id).into(),
        excluded: hop.excluded.as_deref().map(cut),
        is_chosen: hop.is_chosen,
        is_silent: hop.is_silent,
        is_application: is_application(tables, hop),
        remote_uri: hop.remote_uri.as_deref().filter(|_| tells_all).map(cut),
        answered: time.map(answered),
        unanswered: time.map(|time| time.unanswered),
    }
}

/// The beginning of a text.
fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_a_character() {
        assert_eq!(cut(&"ä".repeat(300)).len(), MAX_TEXT_BYTES);
        assert_eq!(cut("short"), "short");
    }
}
