//! The Content Stores of all workers as control sees them: their settings, and the erasures in progress.

use crate::cs_settings::{CsSettings, said};
use namewire_engine::CsReport;
use namewire_handover::messages::ContentStore;
use namewire_management::Ticket;
use namewire_packet::NameBuf;
use namewire_tables::content_store::ENTRY_OVERHEAD_BYTES;
use namewire_worker::{CsErasure, ErasureId, ToWorker, WorkerSender};
use std::{collections::HashMap, sync::Arc};

/// See the module documentation.
pub(crate) struct ContentStores {
    /// All threads; those beyond `count` store nothing.
    threads: Arc<[WorkerSender]>,
    count: usize,
    settings: CsSettings,
    /// As the configuration says, at the start.
    configured: ContentStore,
    erasures: Erasures,
}

impl ContentStores {
    /// The first `count` of the threads have stores.
    pub(crate) fn new(threads: Arc<[WorkerSender]>, count: usize, settings: CsSettings) -> Self {
        let configured = said(&settings);
        ContentStores { threads, count, settings, configured, erasures: Erasures::default() }
    }

    pub(crate) fn settings(&self) -> &CsSettings {
        &self.settings
    }

    pub(crate) fn configured(&self) -> &ContentStore {
        &self.configured
    }

    /// Changes settings and tells the workers.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut CsSettings)) {
        change(&mut self.settings);
        let share = self.settings.share(self.count as u64);
        for worker in &self.threads[..self.count] {
            worker.send(ToWorker::ConfigureCs(share.clone()));
        }
    }

    /// Begins an erasure.
    pub(crate) fn erase(&mut self, ticket: Ticket, prefix: NameBuf, limit: u64) {
        self.erasures.start(&self.threads[..self.count], ticket, prefix, limit);
    }

    /// A worker has erased its part. Returns the sum over all workers when the erasure is complete.
    pub(crate) fn erased(&mut self, id: ErasureId, erased: u64) -> Option<(Ticket, u64)> {
        self.erasures.report(&self.threads[..self.count], id, erased)
    }

    /// The bytes and packets that the Content Store may hold, as its workers report them. They are fewer than
    /// configured if the system gave no memory for them. A worker's share is rounded up. A packet limit that the byte
    /// limit does not let a worker reach is reported as configured. A change is reported once the workers have made it.
    pub(crate) fn capacity(&self, report: &CsReport) -> (u64, u64) {
        let CsSettings { capacity_bytes: bytes, capacity_packets: packets, .. } = self.settings;
        if report.policy.is_none() {
            return (bytes, packets);
        }
        let bytes = bytes.min(report.capacity_bytes);
        let is_limit = report.capacity_packets < bytes / ENTRY_OVERHEAD_BYTES;
        (bytes, if is_limit { packets.min(report.capacity_packets) } else { packets })
    }
}

/// Erasures under way: control asks the workers one after the other to erase what is left of the limit.
#[derive(Default)]
struct Erasures {
    last: u64,
    running: HashMap<ErasureId, Running>,
}

struct Running {
    ticket: Ticket,
    prefix: Arc<NameBuf>,
    worker: usize,
    left: u64,
    erased: u64,
}

impl Erasures {
    /// Asks the first worker.
    fn start(&mut self, workers: &[WorkerSender], ticket: Ticket, prefix: NameBuf, limit: u64) {
        self.last += 1;
        let id = ErasureId(self.last);
        let running = Running { ticket, prefix: Arc::new(prefix), worker: 0, left: limit, erased: 0 };
        running.ask(workers, id);
        self.running.insert(id, running);
    }

    /// Takes a worker's report and asks the next worker. Returns the sum when no worker is left to ask, or the limit is
    /// used up.
    fn report(&mut self, workers: &[WorkerSender], id: ErasureId, erased: u64) -> Option<(Ticket, u64)> {
        let running = self.running.get_mut(&id)?;
        running.erased += erased;
        running.left = running.left.saturating_sub(erased);
        running.worker += 1;
        if running.left > 0 && running.worker < workers.len() {
            running.ask(workers, id);
            return None;
        }
        self.running.remove(&id).map(|running| (running.ticket, running.erased))
    }
}

impl Running {
    fn ask(&self, workers: &[WorkerSender], id: ErasureId) {
        let erasure = CsErasure { id, prefix: Arc::clone(&self.prefix), limit: self.left };
        workers[self.worker].send(ToWorker::EraseCs(erasure));
    }
}
