//! What the observer shows of this router: a copy that the control thread makes.

use crate::{messages::ToControl, requests::Request};
use namewire_observe::{Snapshot, Source};
use namewire_packet::NameBuf;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{mpsc::UnboundedSender, oneshot};

/// See the module.
pub(crate) struct RouterSource {
    events: UnboundedSender<ToControl>,
    /// Warnings of the start.
    notes: Vec<String>,
    last: Mutex<Busy>,
}

/// How long each worker had been busy at a moment.
#[derive(Default)]
struct Busy {
    at_ns: u64,
    busy_ns: Vec<u64>,
}

/// A copy, and what the ratio of busy time is made from.
pub(crate) struct Taken {
    pub(crate) snapshot: Snapshot,
    pub(crate) at_ns: u64,
    pub(crate) busy_ns: Vec<u64>,
}

impl RouterSource {
    pub(crate) fn new(events: UnboundedSender<ToControl>, notes: Vec<String>) -> Self {
        RouterSource { events, notes, last: Mutex::default() }
    }

    /// The share of time in which each worker had packets since the last copy.
    fn busy_ratios(&self, at_ns: u64, busy_ns: Vec<u64>) -> Vec<Option<f64>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let passed_ns = at_ns.saturating_sub(last.at_ns);
        let ratio = |(worker, busy_ns): (usize, &u64)| {
            let before_ns = *last.busy_ns.get(worker)?;
            let ratio = busy_ns.saturating_sub(before_ns) as f64 / passed_ns.max(1) as f64;
            Some(ratio.min(1.0))
        };
        let ratios = busy_ns.iter().enumerate().map(ratio).collect();
        *last = Busy { at_ns, busy_ns };
        ratios
    }
}

impl Source for RouterSource {
    async fn snapshot(&self) -> Option<Snapshot> {
        let (reply, answer) = oneshot::channel();
        self.events.send(ToControl::Operate(Request::Snapshot(reply))).ok()?;
        let Taken { mut snapshot, at_ns, busy_ns } = answer.await.ok()?;
        let ratios = self.busy_ratios(at_ns, busy_ns);
        snapshot.workers.iter_mut().zip(ratios).for_each(|(worker, ratio)| worker.busy_ratio = ratio);
        snapshot.notes.clone_from(&self.notes);
        Some(snapshot)
    }

    async fn explain(&self, name: String) -> Result<serde_json::Value, String> {
        let name: NameBuf = name.parse().map_err(|error| format!("{name:?} is no name: {error}"))?;
        let (reply, answer) = oneshot::channel();
        let stopped = || "The router has stopped.".to_owned();
        self.events.send(ToControl::Operate(Request::Explain { name, reply })).map_err(|_| stopped())?;
        let explanation = answer.await.map_err(|_| stopped())?;
        serde_json::to_value(explanation).map_err(|error| error.to_string())
    }
}
