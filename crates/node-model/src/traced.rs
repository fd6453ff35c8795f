//! Traced packets: what a router decided about a packet, as an operator sees it, and which Interests got no answer.
//!
//! The command `namewire trace` and the observer's page get decisions ([`CaptureDecision`]) in the order of a worker.
//! [`Answers`] finds the Interest that a Data answers, by name, and computes the time between them.
//!
//! Limit: [`Answers`] remembers [`PENDING_MAX`] Interests. Later Interests get no time, and are not reported as
//! unanswered.

use namewire_packet::{
    NameBuf,
    nfd::{CaptureDecision, PacketKind, Verdict},
};
use std::collections::BTreeMap;

/// Interests remembered.
pub const PENDING_MAX: usize = 100_000;

/// A longer lifetime is shown as this one: a day.
const LIFETIME_MS_MAX: u64 = 86_400_000;

/// An Interest counts as unanswered this long after its lifetime, because records arrive after their decisions.
const DELAY_NS: u64 = 1_000_000_000;

/// A packet and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TracedPacket {
    /// When it was decided, in nanoseconds since 1970.
    pub time_ns: u64,
    /// Interest, Data or Nack.
    pub packet: &'static str,
    /// Its name as URI. A long one ends with `/…`.
    pub name: String,
    /// The face that it came from.
    pub face_id: u64,
    /// What the router did.
    pub verdict: &'static str,
    /// Why, if it was not sent on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The faces that got it, or its answer.
    pub to: Vec<u64>,
    /// Further faces, not named.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: u64,
    /// The worker that decided.
    pub worker: u64,
    /// For Data: since its Interest was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_us: Option<u64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl TracedPacket {
    fn of(decision: &CaptureDecision, after_ns: Option<u64>) -> Self {
        let rest = if decision.is_name_cut { "/…" } else { "" };
        TracedPacket {
            time_ns: decision.time_ns,
            packet: decision.kind.word(),
            name: format!("{}{rest}", decision.name),
            face_id: decision.face.0,
            verdict: decision.verdict.word(),
            reason: decision.reason.clone(),
            to: decision.to.iter().map(|face| face.0).collect(),
            more: decision.more,
            worker: decision.worker,
            after_us: after_ns.map(|nanos| nanos / 1000),
        }
    }
}

/// An Interest without an answer.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unanswered {
    /// When its lifetime was over, in nanoseconds since 1970.
    pub time_ns: u64,
    /// Its name as URI.
    pub name: String,
    /// `no answer`.
    pub verdict: &'static str,
    /// How long it was to wait.
    pub lifetime_ms: u64,
}

/// Interests that were sent and wait for an answer.
#[derive(Default)]
pub struct Answers(BTreeMap<NameBuf, Sent>);

struct Sent {
    first_ns: u64,
    ends_ns: u64,
    lifetime_ms: u64,
}

impl Answers {
    /// Notes a decision and describes it.
    pub fn describe(&mut self, decision: &CaptureDecision) -> TracedPacket {
        let after_ns = self.note(decision);
        TracedPacket::of(decision, after_ns)
    }

    /// For Data, returns the time since its Interest was first sent.
    fn note(&mut self, decision: &CaptureDecision) -> Option<u64> {
        let time_ns = decision.time_ns;
        match (decision.kind, decision.verdict) {
            (PacketKind::Interest, Verdict::Sent) => {
                let lifetime_ms = decision.lifetime_ms.unwrap_or_default().min(LIFETIME_MS_MAX);
                let ends_ns = time_ns.saturating_add(lifetime_ms * 1_000_000);
                if let Some(sent) = self.0.get_mut(&decision.name) {
                    (sent.ends_ns, sent.lifetime_ms) = (ends_ns.max(sent.ends_ns), lifetime_ms);
                } else if self.0.len() < PENDING_MAX {
                    self.0.insert(decision.name.clone(), Sent { first_ns: time_ns, ends_ns, lifetime_ms });
                }
                None
            }
            (PacketKind::Data, Verdict::Dropped) => None,
            (PacketKind::Data, _) => {
                // Its own name, and every prefix that an Interest asked for: the Data answers them all.
                let name = decision.name.as_name();
                let asked = (0..=name.len()).rev().map(|len| name.prefix(len).to_buf());
                let sent: Vec<Sent> = asked.filter_map(|name| self.0.remove(&name)).collect();
                sent.first().map(|sent| time_ns.saturating_sub(sent.first_ns))
            }
            (PacketKind::Nack, _) => {
                self.0.remove(&decision.name);
                None
            }
            _ => None,
        }
    }

    /// The Interests whose lifetime was over at this time (nanoseconds since 1970). Each is returned once.
    pub fn take_expired(&mut self, now_ns: u64) -> Vec<Unanswered> {
        let is_over = |_: &NameBuf, sent: &mut Sent| sent.ends_ns.saturating_add(DELAY_NS) <= now_ns;
        let expired = self.0.extract_if(.., is_over).map(|(name, sent)| Unanswered {
            time_ns: sent.ends_ns,
            name: name.to_string(),
            verdict: "no answer",
            lifetime_ms: sent.lifetime_ms,
        });
        expired.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::FaceId;

    fn decision(kind: PacketKind, name: &str, verdict: Verdict, time_ns: u64) -> CaptureDecision {
        CaptureDecision {
            face: FaceId(259),
            time_ns,
            kind,
            name: name.parse().expect("a name"),
            is_name_cut: false,
            verdict,
            reason: None,
            to: vec![FaceId(260), FaceId(261)],
            more: 0,
            worker: 0,
            lifetime_ms: (kind == PacketKind::Interest).then_some(4000),
        }
    }

    #[test]
    fn an_answer_has_the_time_since_its_first_interest() {
        let mut pending = Answers::default();
        let mut note = |kind, name, verdict, time_ns| pending.note(&decision(kind, name, verdict, time_ns));
        assert_eq!(note(PacketKind::Interest, "/a", Verdict::Sent, 1000), None);
        assert_eq!(note(PacketKind::Interest, "/a", Verdict::Sent, 1500), None, "sent again");
        assert_eq!(note(PacketKind::Interest, "/b", Verdict::Stored, 1500), None);
        assert_eq!(note(PacketKind::Data, "/a/v=1", Verdict::Sent, 3000), Some(2000), "asked for by a prefix");
        assert_eq!(note(PacketKind::Data, "/a/v=1", Verdict::Dropped, 3000), None);
        for name in ["/p", "/p/1"] {
            note(PacketKind::Interest, name, Verdict::Sent, 5000);
        }
        assert_eq!(note(PacketKind::Data, "/p/1", Verdict::Dropped, 6000), None, "it answered nothing");
        assert_eq!(note(PacketKind::Data, "/p/1", Verdict::Sent, 6000), Some(1000));
        assert_eq!(note(PacketKind::Data, "/b", Verdict::Dropped, 3000), None, "the store answered");
        assert!(pending.take_expired(u64::MAX).is_empty(), "one Data answers all prefixes");
    }

    #[test]
    fn no_lifetime_overflows() {
        let mut pending = Answers::default();
        let long =
            CaptureDecision { lifetime_ms: Some(u64::MAX), ..decision(PacketKind::Interest, "/a", Verdict::Sent, 7) };
        pending.note(&long);
        assert!(pending.take_expired(5_000_000_000).is_empty());
        assert_eq!(pending.take_expired(u64::MAX)[0].lifetime_ms, LIFETIME_MS_MAX);
    }

    #[test]
    fn interests_without_an_answer_are_told_once() {
        let mut pending = Answers::default();
        pending.note(&decision(PacketKind::Interest, "/a", Verdict::Sent, 0));
        pending.note(&decision(PacketKind::Interest, "/nacked", Verdict::Sent, 0));
        pending.note(&decision(PacketKind::Nack, "/nacked", Verdict::Nacked, 10));
        assert!(pending.take_expired(4_000_000_000).is_empty(), "its answer may be on its way here");
        let expired = pending.take_expired(5_000_000_000);
        let told = Unanswered { time_ns: 4_000_000_000, name: "/a".into(), verdict: "no answer", lifetime_ms: 4000 };
        assert_eq!(expired, [told]);
        assert!(pending.take_expired(u64::MAX).is_empty());
    }
}
