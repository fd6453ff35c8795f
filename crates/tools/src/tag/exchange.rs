//! `namewire tag advertise`, `pull` and `push`.

use super::{Advertise, Destination, Pull, Push, read_content, tables};
use crate::{
    ExitCode, Failure, Global,
    output::{Output, write_out},
};
use namewire_client::tag::{IncomingTagPacket, PullOptions, TagClient, TagError, TagPlace, TagReply};
use namewire_packet::nfd::TagTree;
use serde::Serialize;
use std::{path::Path, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

/// How long a pull without an answer waits for the router to say whether it is in a tree. Routers of other machines
/// and other forwarders say nothing.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(1);

/// A packet that came, or an answer.
#[derive(Serialize)]
struct Packet {
    /// `pull`, `push` or `reply`.
    kind: &'static str,
    /// `None`: it came by locator.
    tags: Option<Vec<String>>,
    /// Where the other application is; `None` if its router did not say.
    place: Option<Location>,
    payload_bytes: usize,
    payload_hex: String,
    payload_text: Option<String>,
}

#[derive(Serialize)]
struct Location {
    tree: u16,
    epoch: u32,
    label_hex: String,
    endpoint: u32,
}

#[derive(Serialize)]
struct Pushed {
    /// `None`: it went by locator.
    tags: Option<Vec<String>>,
    /// Where it went by locator.
    place: Option<Location>,
    payload_bytes: usize,
    /// This application's number at its router.
    endpoint: Option<u64>,
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Location {
    fn new(place: &TagPlace) -> Self {
        Location {
            tree: place.tree().tree,
            epoch: place.tree().epoch,
            label_hex: hex(place.label()),
            endpoint: place.endpoint(),
        }
    }
}

impl Packet {
    fn new(kind: &'static str, place: Option<TagPlace>, payload: &[u8]) -> Self {
        Packet {
            kind,
            tags: None,
            place: place.as_ref().map(Location::new),
            payload_bytes: payload.len(),
            payload_hex: hex(payload),
            payload_text: std::str::from_utf8(payload).ok().map(str::to_owned),
        }
    }

    fn of_incoming(incoming: &IncomingTagPacket) -> Self {
        let kind = if incoming.is_push() { "push" } else { "pull" };
        let tags = incoming.tags().map(|tags| tags.tags().to_vec());
        Packet { tags, ..Packet::new(kind, incoming.sender(), incoming.payload()) }
    }

    /// One line for people.
    fn line(&self, place: Option<&TagPlace>) -> String {
        let tags = self.tags.as_ref().map_or_else(|| "by locator".to_owned(), |tags| tags.join(","));
        let from = place.map_or_else(|| "an unknown place".to_owned(), TagPlace::to_string);
        let text = self.payload_text.as_deref().filter(|text| !text.chars().any(char::is_control));
        let payload = text.map_or_else(|| format!("{} bytes", self.payload_bytes), |text| format!("{text:?}"));
        format!("{} {tags} from {from}: {payload}", self.kind)
    }
}

pub(super) async fn advertise(global: &Global, args: Advertise) -> Result<(), Failure> {
    let (set, serves) = (args.tags.set()?, args.serves()?);
    let answer = args.answer.as_deref().map(read_content).transpose()?;
    let tags = TagClient::new(&global.connect().await?);
    let mut receiver = tags.receive().map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
    tags.advertise(&set, serves, args.expires.map(Duration::from_millis)).await?;
    eprintln!("advertised {set} for {serves}");
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (mut packets, mut is_interrupted) = (0, false);
    while args.count.is_none_or(|count| packets < count) {
        let incoming = tokio::select! {
            incoming = receiver.next() => incoming,
            _ = interrupt.recv() => {
                is_interrupted = true;
                break;
            }
        };
        let Some(incoming) = incoming else {
            return Err(Failure::new(ExitCode::NoForwarder, "the connection to the forwarder cannot be opened again"));
        };
        packets += 1;
        let packet = Packet::of_incoming(&incoming);
        global.output().print_line(&packet, || packet.line(incoming.sender().as_ref()))?;
        // A pull without a place for the reply wants none.
        if let (Some(answer), false, Some(_)) = (&answer, incoming.is_push(), incoming.sender()) {
            match incoming.reply(answer).await {
                // The receiver opens another connection; whoever asked asks again.
                Ok(()) | Err(TagError::Closed(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    tags.client().flush().await;
    if is_interrupted && args.count.is_some() { Err(Failure::interrupted()) } else { Ok(()) }
}

pub(super) async fn pull(global: &Global, args: Pull) -> Result<(), Failure> {
    let destination = args.target.destination()?;
    let tags = args.target.connect(global).await?;
    let timeout = Duration::from_millis(args.timeout);
    let mut replies = match &destination {
        Destination::Tags(set) => {
            tags.pull(set, args.payload.as_bytes(), PullOptions { replies_max: args.answers, timeout }).await?
        }
        Destination::Place(place) => tags.pull_from(place, args.payload.as_bytes(), timeout).await?,
    };
    let mut places = Vec::new();
    while let Some(reply) = replies.next().await? {
        print_reply(global.output(), &reply, args.verbose)?;
        places.push(reply.place());
    }
    if places.is_empty() {
        check_tree(&tags, args.target.tree).await?;
        let message = format!("no answer within {} ms to {destination}", args.timeout);
        return Err(Failure::new(ExitCode::Timeout, message));
    }
    for text in &args.follow_up {
        for place in &places {
            let unknown =
                || Failure::new(ExitCode::Failed, "the router of an application that answered hides its place");
            let place = place.as_ref().ok_or_else(unknown)?;
            let reply = tags.follow_up(place, text.as_bytes(), timeout).await.map_err(|error| match error {
                TagError::Timeout(_) => {
                    let message =
                        format!("no answer within {} ms from {place}; perhaps the tree changed", args.timeout);
                    Failure::new(ExitCode::Timeout, message)
                }
                error => error.into(),
            })?;
            print_reply(global.output(), &reply, args.verbose)?;
        }
    }
    Ok(())
}

/// Asks a router that may have dropped a packet whether it is in a tree, and in this one. It does not say so by itself.
/// Routers that do not answer are taken to be.
async fn check_tree(tags: &TagClient, wanted: Option<u16>) -> Result<(), Failure> {
    let trees = tables::fetch::<TagTree>(tags.client());
    match (tokio::time::timeout(QUESTION_TIMEOUT, trees).await, wanted) {
        (Ok(Err(refused)), _) if refused.code() == ExitCode::Failed => Err(refused),
        (Ok(Ok(trees)), Some(wanted)) if trees.iter().all(|tree| tree.tree != u64::from(wanted)) => {
            Err(Failure::new(ExitCode::Failed, format!("the router is not in tree {wanted}")))
        }
        _ => Ok(()),
    }
}

/// The payload as it came, each on lines of its own.
fn print_reply(output: Output, reply: &TagReply, is_verbose: bool) -> Result<(), Failure> {
    let place = reply.place();
    if is_verbose {
        let from = place.as_ref().map_or_else(|| "an unknown place".to_owned(), TagPlace::to_string);
        eprintln!("{} bytes from {from}", reply.payload().len());
    }
    if output.json {
        output.print_line(&Packet::new("reply", place, reply.payload()), String::new)?;
        return Ok(());
    }
    write_out(reply.payload())?;
    if !reply.payload().ends_with(b"\n") {
        write_out(b"\n")?;
    }
    Ok(())
}

pub(super) async fn push(global: &Global, args: Push) -> Result<(), Failure> {
    let destination = args.target.destination()?;
    let payload = match args.payload {
        Some(text) => text.into_bytes(),
        None => read_content(args.file.as_deref().unwrap_or(Path::new("-")))?,
    };
    let tags = args.target.connect(global).await?;
    let endpoint = tags.join().await?.face_id.map(|face| face.0);
    if args.target.tree.is_some() {
        check_tree(&tags, args.target.tree).await?;
    }
    let (words, place) = match &destination {
        Destination::Tags(set) => {
            tags.push(set, &payload).await?;
            (Some(set.tags().to_vec()), None)
        }
        Destination::Place(place) => {
            tags.push_to(place, &payload).await?;
            (None, Some(place))
        }
    };
    tags.client().flush().await;
    let place = place.map(Location::new);
    let pushed = Pushed { tags: words, place, payload_bytes: payload.len(), endpoint };
    let way = if pushed.place.is_some() { "to" } else { "with" };
    global.output().print(&pushed, || format!("{} bytes pushed {way} {destination}\n", pushed.payload_bytes))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_one_line_whatever_it_carries() {
        let packet = |payload: &[u8]| Packet::new("push", None, payload);
        assert_eq!(packet(b"rain").line(None), "push by locator from an unknown place: \"rain\"");
        let tagged = Packet { tags: Some(vec!["a".to_owned(), "b".to_owned()]), ..packet(b"\x1b[2J") };
        assert_eq!(tagged.line(None), "push a,b from an unknown place: 4 bytes");
        assert_eq!(packet(&[0xFF]).line(None), "push by locator from an unknown place: 1 bytes");
        let json = serde_json::to_value(packet(&[0xFF])).unwrap();
        assert_eq!((&json["payload_hex"], &json["payload_text"]), (&"ff".into(), &serde_json::Value::Null));
    }
}
