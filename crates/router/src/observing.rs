//! The observer's source for this router: copies that the control thread makes, and traces that it begins.

use crate::{
    messages::ToControl,
    observer_places::ObserverPlaces,
    requests::{Request, Taken},
};
use namewire_faces::capture::{CaptureReader, Taken as TakenRecord};
use namewire_node_model::traced::{Answers, TracedPacket, Unanswered};
use namewire_observe::{
    Snapshot, Source, TraceNews, TraceReader,
    snapshot::Worker,
    source::{Admitted, Place, SettingsInForce},
};
use namewire_packet::{
    NameBuf,
    nfd::{CaptureRecord, WorkerLoad},
};
use std::{
    net::IpAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::{mpsc::UnboundedSender, oneshot};

/// See the module.
pub(crate) struct RouterSource {
    events: UnboundedSender<ToControl>,
    /// Warnings of the start.
    notes: Vec<String>,
    places: ObserverPlaces,
    last: Mutex<Spent>,
    traces_begun: AtomicU64,
}

/// How long each worker had been busy, and had looked for packets, at a moment.
#[derive(Default)]
struct Spent {
    at_ns: u64,
    loads: Vec<WorkerLoad>,
}

impl RouterSource {
    pub(crate) fn new(events: UnboundedSender<ToControl>, notes: Vec<String>, places: ObserverPlaces) -> Self {
        RouterSource { events, notes, places, last: Mutex::default(), traces_begun: AtomicU64::new(0) }
    }

    /// Adds the shares of the time since the last copy.
    fn add_ratios(&self, at_ns: u64, workers: &mut [Worker]) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let passed_ns = at_ns.saturating_sub(last.at_ns).max(1);
        let share = |now_ns: u64, before_ns: u64| (now_ns.saturating_sub(before_ns) as f64 / passed_ns as f64).min(1.0);
        for (worker, before) in workers.iter_mut().zip(&last.loads) {
            worker.busy_ratio = Some(share(worker.load.busy_ns, before.busy_ns));
            worker.poll_ratio = Some(share(worker.load.polled_ns, before.polled_ns));
        }
        *last = Spent { at_ns, loads: workers.iter().map(|worker| worker.load).collect() };
    }
}

impl Source for RouterSource {
    fn admit(&self, client: IpAddr, place: Place) -> Result<Admitted, String> {
        self.places.admit(client, place).map_err(|refused| refused.text().to_owned())
    }

    async fn snapshot(&self) -> Option<Snapshot> {
        let (reply, answer) = oneshot::channel();
        self.events.send(ToControl::Operate(Request::Snapshot(reply))).ok()?;
        let Taken { mut snapshot, at_ns } = answer.await.ok()?;
        self.add_ratios(at_ns, &mut snapshot.workers);
        snapshot.notes.clone_from(&self.notes);
        Some(snapshot)
    }

    async fn settings(&self) -> Option<SettingsInForce> {
        let (reply, answer) = oneshot::channel();
        self.events.send(ToControl::Operate(Request::Settings(reply))).ok()?;
        answer.await.ok()
    }

    async fn explain(&self, name: String) -> Result<serde_json::Value, String> {
        let name: NameBuf = name.parse().map_err(|error| format!("{name:?} is no name: {error}"))?;
        let (reply, answer) = oneshot::channel();
        let stopped = || "The router has stopped.".to_owned();
        self.events.send(ToControl::Operate(Request::Explain { name, reply })).map_err(|_| stopped())?;
        let explanation = answer.await.map_err(|_| stopped())?;
        serde_json::to_value(explanation).map_err(|error| error.to_string())
    }

    async fn trace(&self, prefix: String, one_in: u64) -> Result<Box<dyn TraceReader>, String> {
        let prefix: NameBuf = prefix.parse().map_err(|error| format!("{prefix:?} is no name: {error}"))?;
        let number = self.traces_begun.fetch_add(1, Ordering::Relaxed);
        // It exists before the trace does, so that the trace ends whenever the client leaves.
        let guard = TraceGuard { number, events: self.events.clone() };
        let (reply, answer) = oneshot::channel();
        let stopped = || "The router has stopped.".to_owned();
        let begin = Request::BeginTrace { number, prefix, one_in, reply };
        self.events.send(ToControl::Operate(begin)).map_err(|_| stopped())?;
        let reader = answer.await.map_err(|_| stopped())?.map_err(|refusal| refusal.to_string())?;
        Ok(Box::new(RouterTrace { reader, answers: Answers::default(), missed: 0, _guard: guard }))
    }
}

/// Ends a trace when it is dropped.
struct TraceGuard {
    number: u64,
    events: UnboundedSender<ToControl>,
}

impl Drop for TraceGuard {
    fn drop(&mut self) {
        let _ = self.events.send(ToControl::Operate(Request::EndTrace { number: self.number }));
    }
}

/// A trace of the page.
struct RouterTrace {
    reader: CaptureReader,
    answers: Answers,
    missed: u64,
    _guard: TraceGuard,
}

impl RouterTrace {
    fn packet(packet: &TracedPacket) -> serde_json::Value {
        serde_json::to_value(packet).unwrap_or_default()
    }

    fn unanswered(interest: &Unanswered) -> serde_json::Value {
        let mut value = serde_json::to_value(interest).unwrap_or_default();
        value["packet"] = "Interest".into();
        value
    }
}

impl TraceReader for RouterTrace {
    fn take(&mut self, most: usize) -> TraceNews {
        let mut news = TraceNews::default();
        loop {
            match self.reader.take() {
                TakenRecord::Record(CaptureRecord::Decision(decision)) => {
                    let packet = self.answers.describe(&decision);
                    match news.packets.len() < most {
                        true => news.packets.push(Self::packet(&packet)),
                        false => news.left_out += 1,
                    }
                }
                TakenRecord::Record(_) => {}
                TakenRecord::Nothing => break,
                TakenRecord::Ended => {
                    news.is_over = true;
                    break;
                }
            }
        }
        let missed_before = std::mem::replace(&mut self.missed, self.reader.missed());
        news.left_out += self.missed - missed_before;
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let unanswered = self.answers.take_expired(now_ns);
        // What answered them may be among the missed ones.
        if self.missed == 0 {
            let room = most - news.packets.len();
            news.left_out += unanswered.len().saturating_sub(room) as u64;
            news.packets.extend(unanswered.iter().take(room).map(Self::unanswered));
        }
        news
    }
}
