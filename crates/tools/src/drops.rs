//! `namewire drops`: the last packets that the router and its links dropped.
//!
//! The router keeps a few packets for each reason (its module `drop_log`). With `--follow`, this program asks twice a
//! second and prints the new packets. It misses packets that the router has replaced in between.

use crate::{
    Failure, Global,
    face_reference::{self, FaceReference},
    name_argument,
    quantity::time_of_day,
};
use namewire_client::Client;
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{DroppedPacket, PacketKind},
};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How often `--follow` asks.
const ASK_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  namewire drops\n  namewire drops --prefix /example --follow\n  \
    namewire drops --reason no-route --face 259")]
pub(crate) struct Args {
    /// Only packets under this name
    #[arg(long, value_name = "NAME", value_parser = name_argument::parse)]
    prefix: Option<NameBuf>,
    /// Only packets of this face, by number or remote URI
    #[arg(long, value_name = "FACE")]
    face: Option<FaceReference>,
    /// Only reasons that contain this text, for example no-route
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Only the last COUNT packets
    #[arg(short = 'n', long, value_name = "COUNT")]
    number: Option<usize>,
    /// Then print each further packet when it is dropped, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
}

/// One line.
#[derive(serde::Serialize)]
struct Drop<'a> {
    #[serde(flatten)]
    dropped: &'a DroppedPacket,
    packet: &'static str,
}

impl<'a> Drop<'a> {
    fn of(dropped: &'a DroppedPacket) -> Self {
        Drop { dropped, packet: dropped.what() }
    }

    /// Time of day (UTC), reason, packet, name, face.
    fn text(&self) -> String {
        let DroppedPacket { reason, time_ms, face, name, count, .. } = self.dropped;
        let face = face.map(|face| format!(" from face {face}")).unwrap_or_default();
        if self.dropped.is_of_link() {
            let (face, s) = (face.replace("from", "on"), if *count == 1 { "" } else { "s" });
            return format!("{:<12}  {reason:<27}  {count} frame{s}{face} so far", "");
        }
        let name = name.as_ref().map(ToString::to_string).unwrap_or_default();
        let rest = if self.dropped.is_name_cut { "/…" } else { "" };
        let time = time_of_day(time_ms * 1_000_000, 3);
        format!("{time}  {reason:<27}  {:<8}  {name}{rest}{face}", self.packet)
    }
}

/// What is asked for.
struct Filter {
    prefix: Option<NameBuf>,
    face: Option<FaceId>,
    reason: Option<String>,
}

impl Filter {
    fn takes(&self, packet: &DroppedPacket) -> bool {
        let is_under =
            |prefix: &NameBuf| packet.name.as_ref().is_some_and(|name| prefix.as_name().is_prefix_of(&name.as_name()));
        self.prefix.as_ref().is_none_or(is_under)
            && self.face.is_none_or(|face| packet.face == Some(face))
            && self.reason.as_ref().is_none_or(|reason| packet.reason.contains(reason))
    }
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let client = global.connect().await?;
    let face = match &args.face {
        None => None,
        Some(FaceReference::Id(face)) => Some(*face), // it may be gone by now
        Some(reference) => Some(face_reference::require(&client, reference).await?.face_id),
    };
    let filter = Filter { prefix: args.prefix, face, reason: args.reason };
    let mut before = fetch(&client, &filter).await?;
    let shown = last(&before, args.number);
    if !args.follow {
        let drops: Vec<Drop> = shown.iter().map(Drop::of).collect();
        global.output().print(&drops, || text(shown))?;
        return Ok(());
    }
    print(global, shown)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            () = tokio::time::sleep(ASK_EVERY) => {}
            _ = interrupt.recv() => return Ok(()),
        }
        let now = fetch(&client, &filter).await?;
        let new: Vec<DroppedPacket> = now.iter().filter(|packet| !before.contains(packet)).cloned().collect();
        print(global, &new)?;
        before = now;
    }
}

/// The last `number` of them, or all.
fn last(packets: &[DroppedPacket], number: Option<usize>) -> &[DroppedPacket] {
    &packets[packets.len() - number.unwrap_or(packets.len()).min(packets.len())..]
}

async fn fetch(client: &Client, filter: &Filter) -> Result<Vec<DroppedPacket>, Failure> {
    let mut packets: Vec<DroppedPacket> = client.list().await?;
    packets.retain(|packet| filter.takes(packet));
    Ok(packets)
}

fn print(global: &Global, packets: &[DroppedPacket]) -> Result<(), Failure> {
    for packet in packets {
        let drop = Drop::of(packet);
        global.output().print_line(&drop, || drop.text())?;
    }
    Ok(())
}

fn text(packets: &[DroppedPacket]) -> String {
    let lines: String = packets.iter().map(|packet| Drop::of(packet).text() + "\n").collect();
    let last_interest = packets.iter().rev().find(|packet| packet.kind == PacketKind::Interest);
    match last_interest.and_then(|packet| packet.name.as_ref()) {
        _ if packets.is_empty() => {
            "no such packet is among those that the router keeps; namewire status counts all drops\n".to_owned()
        }
        Some(name) => format!("{lines}namewire explain {name} says what would happen to an Interest now\n"),
        None => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(reason: &str, name: &str) -> DroppedPacket {
        DroppedPacket {
            reason: reason.to_owned(),
            time_ms: 3_723_004,
            kind: PacketKind::Interest,
            face: Some(FaceId(259)),
            name: Some(name.parse().expect("a name")),
            is_name_cut: false,
            count: 1,
        }
    }

    #[test]
    fn lines_are_aligned_and_the_last_names_the_next_step() {
        let of_link = DroppedPacket {
            reason: "link.queue-full".to_owned(),
            time_ms: 0,
            kind: PacketKind::Unknown,
            name: None,
            count: 12,
            ..dropped("", "/")
        };
        assert_eq!(
            text(&[dropped("engine.no-route", "/a"), of_link]),
            "01:02:03.004  engine.no-route              Interest  /a from face 259\n              \
             link.queue-full              12 frames on face 259 so far\n\
             namewire explain /a says what would happen to an Interest now\n"
        );
        assert!(text(&[]).contains("no such packet is among"));
        let cut = DroppedPacket { is_name_cut: true, ..dropped("engine.pit-full", "/a/b") };
        assert!(Drop::of(&cut).text().ends_with("/a/b/… from face 259"));
    }

    #[test]
    fn a_number_leaves_the_last_ones() {
        let packets = ["/a", "/b", "/c"].map(|name| dropped("engine.no-route", name));
        assert_eq!(last(&packets, Some(2)), &packets[1..]);
        assert_eq!((last(&packets, Some(9)), last(&packets, None)), (&packets[..], &packets[..]));
        assert!(last(&packets, Some(0)).is_empty());
    }

    #[test]
    fn filters_are_joined() {
        let filter = |prefix: Option<&str>, face: Option<u64>, reason: Option<&str>| Filter {
            prefix: prefix.map(|prefix| prefix.parse().expect("a name")),
            face: face.map(FaceId),
            reason: reason.map(str::to_owned),
        };
        let packet = dropped("engine.no-route", "/a/b");
        assert!(filter(Some("/a"), Some(259), Some("no-route")).takes(&packet));
        assert!(!filter(Some("/b"), None, None).takes(&packet));
        assert!(!filter(None, Some(260), None).takes(&packet));
        assert!(!filter(None, None, Some("pit")).takes(&packet));
        assert!(!filter(Some("/"), None, None).takes(&DroppedPacket { name: None, ..packet }));
    }
}
