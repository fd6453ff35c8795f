//! `namewire face watch`: events of faces as they happen.
//!
//! The events come from the notification stream `faces/events`, which NFD has, too. The first event may be up to a
//! second old, for example the creation of the face of this program.

use crate::{Failure, Global};
use namewire_client::{Notification, NotificationStream};
use namewire_packet::nfd::FaceEventNotification;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

/// Name of the stream.
const STREAM: &str = "/localhost/nfd/faces/events";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Stop after this number of events [default: at Ctrl-C]
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

#[derive(Serialize)]
struct Event {
    sequence: u64,
    #[serde(flatten)]
    event: FaceEventNotification,
}

impl Event {
    fn text(&self) -> String {
        let FaceEventNotification { kind, face_id, uri, local_uri, face_persistency, .. } = &self.event;
        format!("{:<9}  face {face_id}  {uri}  at {local_uri}  {face_persistency}", kind.word())
    }
}

pub(super) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut stream = NotificationStream::new(&global.connect().await?, STREAM.parse().expect("a name"));
    let mut printed = 0;
    while args.count.is_none_or(|count| printed < count) {
        let notification = tokio::select! {
            notification = stream.next() => notification?,
            _ = interrupt.recv() => return if args.count.is_some() { Err(Failure::interrupted()) } else { Ok(()) },
        };
        printed += u64::from(print(global, &notification)?);
    }
    Ok(())
}

/// Prints an event; false if it cannot be read.
fn print(global: &Global, notification: &Notification) -> Result<bool, Failure> {
    if notification.missed > 0 {
        eprintln!("namewire: {} events came too fast and were missed", notification.missed);
    }
    match FaceEventNotification::decode(&notification.content) {
        Ok(event) => {
            let event = Event { sequence: notification.sequence, event };
            global.output().print_line(&event, || event.text())?;
            Ok(true)
        }
        Err(error) => {
            eprintln!("namewire: event {} is malformed: {error}", notification.sequence);
            Ok(false)
        }
    }
}
