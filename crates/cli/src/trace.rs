//! `namewire trace PREFIX`: what the router does with each packet under a name, as it happens.
//!
//! The router notes its decisions and this program fetches them, as it fetches captured frames. It also finds the
//! Interest that a Data answers, by name, and says how much time lay between. Interests that were sent and got no
//! answer within their lifetime have a line of their own.
//!
//! Limit: [`PENDING_MAX`] Interests are remembered. Later ones have no time and no such line.

use crate::{
    Failure, Global,
    capture::session::{self, Recorder},
    name_argument,
    output::Output,
    quantity::time_of_day,
};
use namewire_client::Client;
use namewire_packet::{
    NameBuf,
    nfd::{CaptureDecision, CaptureRecord, ControlParameters, PacketKind, Verdict},
};
use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::signal::unix::{SignalKind, signal};

/// Interests remembered.
const PENDING_MAX: usize = 100_000;

/// A longer lifetime is shown as this one: a day.
const LIFETIME_MS_MAX: u64 = 86_400_000;

/// Records come some time after their decisions: so much longer a missing answer is waited for.
const DELAY_NS: u64 = 1_000_000_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  namewire trace /example\n  namewire trace / --sample 100\n  \
    namewire trace /example/video --count 20 --json")]
pub(crate) struct Args {
    /// Show packets under this name
    #[arg(value_name = "PREFIX", value_parser = name_argument::parse)]
    prefix: NameBuf,
    /// Take one name in N, with all its packets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// Stop after this number of packets [default: at Ctrl-C]
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let client = global.connect().await?;
    let interrupt = signal(SignalKind::interrupt())?;
    let name = start(&client, &args).await?;
    eprintln!("namewire: tracing; Ctrl-C ends it");
    let mut trace =
        Trace { output: global.output(), left: args.count.unwrap_or(u64::MAX), missed: 0, pending: Pending::default() };
    let outcome = session::follow(&client, &name, interrupt, &mut trace).await;
    if trace.missed > 0 {
        eprintln!("namewire: {} packets were missed: this program was too slow; see --sample", trace.missed);
    }
    // Without a count, Ctrl-C is how it ends.
    let is_short = outcome? && args.count.is_some() && trace.left > 0;
    if is_short { Err(Failure::interrupted()) } else { Ok(()) }
}

async fn start(client: &Client, args: &Args) -> Result<NameBuf, Failure> {
    let wanted =
        ControlParameters { name: Some(args.prefix.clone()), count: args.sample, ..ControlParameters::default() };
    let started = client.control("capture", "start", &wanted).await?;
    let malformed = || Failure::new(crate::ExitCode::Failed, "the forwarder's answer has no name of the trace");
    started.body.and_then(|body| body.name).ok_or_else(malformed)
}

/// One line.
#[derive(serde::Serialize)]
struct Line {
    time_ns: u64,
    packet: &'static str,
    name: String,
    /// The face that it came from.
    face_id: u64,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The faces that got it, or its answer.
    to: Vec<u64>,
    /// Further faces, not named.
    #[serde(skip_serializing_if = "is_zero")]
    more: u64,
    worker: u64,
    /// For Data: since its Interest was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    after_us: Option<u64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Line {
    fn of(decision: &CaptureDecision, after_ns: Option<u64>) -> Self {
        let rest = if decision.is_name_cut { "/…" } else { "" };
        Line {
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

    fn text(&self) -> String {
        let (time, packet, name, face) = (time_of_day(self.time_ns, 6), self.packet, &self.name, self.face_id);
        let faces = self.to.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let more = if self.more > 0 { format!(" and {} more", self.more) } else { String::new() };
        let to = if faces.is_empty() { String::new() } else { format!(" to face {faces}{more}") };
        let reason = self.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let after = self.after_us.map(|us| format!(", {:.3} ms after the Interest", us as f64 / 1000.0));
        let after = after.unwrap_or_default();
        format!("{time} {packet:<8}  {name} from face {face}: {}{reason}{to}{after}", self.verdict)
    }
}

/// An Interest without an answer.
#[derive(serde::Serialize)]
struct Unanswered {
    time_ns: u64,
    name: String,
    verdict: &'static str,
    lifetime_ms: u64,
}

impl Unanswered {
    fn text(&self) -> String {
        let (time, name, lifetime_ms) = (time_of_day(self.time_ns, 6), &self.name, self.lifetime_ms);
        format!("{time} Interest  {name}: {} within {lifetime_ms} ms", self.verdict)
    }
}

/// Interests that were sent and wait for an answer.
#[derive(Default)]
struct Pending(BTreeMap<NameBuf, Sent>);

struct Sent {
    first_ns: u64,
    ends_ns: u64,
    lifetime_ms: u64,
}

impl Pending {
    /// Notes a decision; for Data, returns the time since its Interest was first sent.
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

    /// The Interests whose lifetime is over.
    fn take_expired(&mut self, now_ns: u64) -> Vec<Unanswered> {
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

/// A trace under way.
struct Trace {
    output: Output,
    /// Packets still wanted.
    left: u64,
    missed: u64,
    pending: Pending,
}

impl Recorder for Trace {
    fn take(&mut self, record: CaptureRecord) -> Result<(), Failure> {
        match record {
            CaptureRecord::Decision(decision) if self.left > 0 => {
                self.left -= 1;
                let line = Line::of(&decision, self.pending.note(&decision));
                self.output.print_line(&line, || line.text())?;
            }
            CaptureRecord::Left(left) => self.missed += left.missed,
            _ => {}
        }
        Ok(())
    }

    fn end_of_piece(&mut self) -> Result<(), Failure> {
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        for unanswered in self.pending.take_expired(now_ns) {
            self.output.print_line(&unanswered, || unanswered.text())?;
        }
        Ok(())
    }

    fn has_enough(&self) -> bool {
        self.left == 0
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
    fn lines_say_what_happened_and_why() {
        let sent = decision(PacketKind::Interest, "/a", Verdict::Sent, 3_723_000_000_000);
        assert_eq!(Line::of(&sent, None).text(), "01:02:03.000000 Interest  /a from face 259: sent to face 260, 261");
        let refused = CaptureDecision {
            verdict: Verdict::Nacked,
            reason: Some("no-route".to_owned()),
            to: vec![FaceId(259)],
            ..sent.clone()
        };
        assert!(Line::of(&refused, None).text().ends_with("from face 259: refused by a Nack (no-route) to face 259"));
        let data = CaptureDecision { kind: PacketKind::Data, more: 3, ..sent };
        let text = Line::of(&data, Some(2_500_000)).text();
        assert!(text.ends_with("sent to face 260, 261 and 3 more, 2.500 ms after the Interest"), "{text}");
    }

    #[test]
    fn an_answer_has_the_time_since_its_first_interest() {
        let mut pending = Pending::default();
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
        let mut pending = Pending::default();
        let long =
            CaptureDecision { lifetime_ms: Some(u64::MAX), ..decision(PacketKind::Interest, "/a", Verdict::Sent, 7) };
        pending.note(&long);
        assert!(pending.take_expired(5_000_000_000).is_empty());
        assert_eq!(pending.take_expired(u64::MAX)[0].lifetime_ms, LIFETIME_MS_MAX);
    }

    #[test]
    fn interests_without_an_answer_are_told_once() {
        let mut pending = Pending::default();
        pending.note(&decision(PacketKind::Interest, "/a", Verdict::Sent, 0));
        pending.note(&decision(PacketKind::Interest, "/nacked", Verdict::Sent, 0));
        pending.note(&decision(PacketKind::Nack, "/nacked", Verdict::Nacked, 10));
        assert!(pending.take_expired(4_000_000_000).is_empty(), "its answer may be on its way here");
        let expired = pending.take_expired(5_000_000_000);
        assert_eq!(expired.len(), 1);
        assert_eq!(expired[0].text(), "00:00:04.000000 Interest  /a: no answer within 4000 ms");
        assert!(pending.take_expired(u64::MAX).is_empty());
    }
}
