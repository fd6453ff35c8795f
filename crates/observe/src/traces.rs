//! Traces: streams of what the router decides about packets under a prefix.
//!
//! Contract: each look at a trace that finds packets becomes one event of its stream, with at most [`PACKETS_MAX`]
//! packets and the number of packets left out. The trace ends when its client closes the stream.
//!
//! Who may see it: packet names reveal what people read. Management gives traces only to those who may administer the
//! router, but this server shows its page to all who reach it. So the administrator must allow traces here
//! ([`crate::ObserveConfig::trace`]).
//!
//! Limits: the source decides how many traces there may be. It also limits the records that wait between two looks. The
//! router never waits for the observer.

use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::request::{Refusal, TraceWanted};
use crate::source::{Admitted, NOT_OFFERED, Source, TRACE_WAIT, TraceReader};

/// How many packets an event shows.
const PACKETS_MAX: usize = 100;
/// How often the source is asked.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// After so long without an event, a comment shows that the stream lives.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Begins a trace, which has the place until it ends. Runs on a local set.
pub(crate) async fn open(
    source: &impl Source,
    wanted: TraceWanted,
    place: Admitted,
) -> Result<mpsc::Receiver<Bytes>, Refusal> {
    let unavailable = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "The router does not answer.");
    let begun = timeout(TRACE_WAIT, source.trace(wanted.prefix, wanted.one_in)).await;
    let reader = match begun.map_err(|_| unavailable())? {
        Ok(reader) => reader,
        Err(text) if text == NOT_OFFERED => {
            return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, "This router offers no traces."));
        }
        Err(text) => return Err(Refusal::new(StatusCode::BAD_REQUEST, text)),
    };
    let (sender, receiver) = mpsc::channel(1);
    tokio::task::spawn_local(feed(reader, sender, place));
    Ok(receiver)
}

/// Sends what each look finds. Ends with the client or the router.
async fn feed(mut reader: Box<dyn TraceReader>, sender: mpsc::Sender<Bytes>, _place: Admitted) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // At once, so that the client knows that it began.
    let mut event = Some(Bytes::from_static(b": the trace has begun\n\n"));
    let mut last = Instant::now();
    loop {
        if let Some(event) = event.take() {
            last = Instant::now();
            if sender.send(event).await.is_err() {
                return;
            }
        }
        tokio::select! {
            _ = looks.tick() => (),
            () = sender.closed() => return,
        }
        let news = reader.take(PACKETS_MAX);
        if !news.packets.is_empty() || news.left_out > 0 {
            let json = serde_json::json!({ "packets": news.packets, "left_out": news.left_out });
            event = Some(format!("data: {json}\n\n").into());
        } else if last.elapsed() >= SILENCE_MAX {
            event = Some(Bytes::from_static(b":\n\n"));
        }
        if news.is_over {
            if let Some(event) = event {
                let _ = sender.send(event).await;
            }
            return;
        }
    }
}
