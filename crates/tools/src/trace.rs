//! `namewire trace PREFIX`: what the router does with each packet under a name, as it happens.
//!
//! The router records its decisions and this program fetches them, in the same way as captured frames. [`Answers`]
//! finds the Interest of each Data. If a sent Interest gets no answer within its lifetime, the program prints a
//! separate line for it.

use crate::{
    Failure, Global,
    capture::session::{self, Recorder},
    name_argument,
    output::Output,
    quantity::time_of_day,
};
use namewire_client::Client;
use namewire_node_model::traced::{Answers, TracedPacket, Unanswered};
use namewire_packet::{
    NameBuf,
    nfd::{CaptureRecord, ControlParameters},
};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{SignalKind, signal};

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
        Trace { output: global.output(), left: args.count.unwrap_or(u64::MAX), missed: 0, answers: Answers::default() };
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

fn text_of_packet(of: &TracedPacket) -> String {
    let (time, packet, name, face) = (time_of_day(of.time_ns, 6), of.packet, &of.name, of.face_id);
    let faces = of.to.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let more = if of.more > 0 { format!(" and {} more", of.more) } else { String::new() };
    let to = if faces.is_empty() { String::new() } else { format!(" to face {faces}{more}") };
    let reason = of.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let after = of.after_us.map(|us| format!(", {:.3} ms after the Interest", us as f64 / 1000.0));
    let after = after.unwrap_or_default();
    format!("{time} {packet:<8}  {name} from face {face}: {}{reason}{to}{after}", of.verdict)
}

fn text_of_unanswered(of: &Unanswered) -> String {
    let (time, name, lifetime_ms) = (time_of_day(of.time_ns, 6), &of.name, of.lifetime_ms);
    format!("{time} Interest  {name}: {} within {lifetime_ms} ms", of.verdict)
}

/// A trace under way.
struct Trace {
    output: Output,
    /// Packets still wanted.
    left: u64,
    missed: u64,
    answers: Answers,
}

impl Recorder for Trace {
    fn take(&mut self, record: CaptureRecord) -> Result<(), Failure> {
        match record {
            CaptureRecord::Decision(decision) if self.left > 0 => {
                self.left -= 1;
                let packet = self.answers.describe(&decision);
                self.output.print_line(&packet, || text_of_packet(&packet))?;
            }
            CaptureRecord::Left(left) => self.missed += left.missed,
            _ => {}
        }
        Ok(())
    }

    fn end_of_piece(&mut self) -> Result<(), Failure> {
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        for unanswered in self.answers.take_expired(now_ns) {
            self.output.print_line(&unanswered, || text_of_unanswered(&unanswered))?;
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
    use namewire_packet::{
        FaceId,
        nfd::{CaptureDecision, PacketKind, Verdict},
    };

    #[test]
    fn lines_say_what_happened_and_why() {
        let sent = CaptureDecision {
            face: FaceId(259),
            time_ns: 3_723_000_000_000,
            kind: PacketKind::Interest,
            name: "/a".parse().expect("a name"),
            is_name_cut: false,
            verdict: Verdict::Sent,
            reason: None,
            to: vec![FaceId(260), FaceId(261)],
            more: 0,
            worker: 0,
            lifetime_ms: Some(4000),
        };
        let mut answers = Answers::default();
        let mut text = |decision: &CaptureDecision| text_of_packet(&answers.describe(decision));
        assert_eq!(text(&sent), "01:02:03.000000 Interest  /a from face 259: sent to face 260, 261");
        let refused = CaptureDecision {
            verdict: Verdict::Nacked,
            reason: Some("no-route".to_owned()),
            to: vec![FaceId(259)],
            ..sent.clone()
        };
        assert!(text(&refused).ends_with("from face 259: refused by a Nack (no-route) to face 259"));
        let data =
            CaptureDecision { kind: PacketKind::Data, more: 3, time_ns: sent.time_ns + 2_500_000, ..sent.clone() };
        let answer = text(&data);
        assert!(answer.ends_with("sent to face 260, 261 and 3 more, 2.500 ms after the Interest"), "{answer}");
        text(&sent);
        let unanswered = answers.take_expired(u64::MAX);
        assert_eq!(unanswered.len(), 1);
        assert_eq!(text_of_unanswered(&unanswered[0]), "01:02:07.000000 Interest  /a: no answer within 4000 ms");
    }
}
