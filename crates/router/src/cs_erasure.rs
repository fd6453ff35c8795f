//! Erasing from the Content Stores of all workers: control asks one worker after the other
//! for what is left of the limit, and each worker looks at some slots per turn.
//!
//! Cost: a visit of every slot ever used, [`VISITS_PER_TURN`] between two batches of packets.
//! Limit: as many erasures at a time as management lets through.

use crate::messages::{ToWorker, WorkerSender};
use namewire_engine::Engine;
use namewire_management::Ticket;
use namewire_packet::NameBuf;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Slots that a worker looks at in one turn: some tens of microseconds.
const VISITS_PER_TURN: u32 = 2048;

/// What one worker is asked to erase.
pub(crate) struct CsErasure {
    pub(crate) ticket: Ticket,
    pub(crate) prefix: Arc<NameBuf>,
    /// Most Data to erase.
    pub(crate) limit: u64,
}

/// Control's side: erasures, and how far they are.
#[derive(Default)]
pub(crate) struct CsErasures {
    running: HashMap<Ticket, Running>,
}

struct Running {
    prefix: Arc<NameBuf>,
    worker: usize,
    left: u64,
    erased: u64,
}

impl CsErasures {
    /// Asks the first worker.
    pub(crate) fn start(&mut self, workers: &[WorkerSender], ticket: Ticket, prefix: NameBuf, limit: u64) {
        let running = Running { prefix: Arc::new(prefix), worker: 0, left: limit, erased: 0 };
        running.ask(workers, ticket);
        self.running.insert(ticket, running);
    }

    /// Takes a worker's report and asks the next one. The sum of all when nobody is left to
    /// ask, or nothing to ask for.
    pub(crate) fn report(&mut self, workers: &[WorkerSender], ticket: Ticket, erased: u64) -> Option<u64> {
        let running = self.running.get_mut(&ticket)?;
        running.erased += erased;
        running.left = running.left.saturating_sub(erased);
        running.worker += 1;
        if running.left > 0 && running.worker < workers.len() {
            running.ask(workers, ticket);
            return None;
        }
        self.running.remove(&ticket).map(|running| running.erased)
    }
}

impl Running {
    fn ask(&self, workers: &[WorkerSender], ticket: Ticket) {
        let erasure = CsErasure { ticket, prefix: Arc::clone(&self.prefix), limit: self.left };
        workers[self.worker].send(ToWorker::EraseCs(erasure));
    }
}

/// A worker's side: what it was asked for, the first under way.
#[derive(Default)]
pub(crate) struct CsErasureQueue {
    waiting: VecDeque<CsErasure>,
    erased: u64,
    next_slot: u32,
}

impl CsErasureQueue {
    pub(crate) fn push(&mut self, erasure: CsErasure) {
        self.waiting.push_back(erasure);
    }

    /// True if there is something to do in the next turn.
    pub(crate) fn has_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Goes on with the first one; says so if it is done, and how many Data it erased.
    pub(crate) fn step(&mut self, engine: &mut Engine) -> Option<(Ticket, u64)> {
        let erasure = self.waiting.front()?;
        let left = erasure.limit - self.erased;
        let (erased, next_slot) =
            engine.erase_cs_step(erasure.prefix.as_name(), left as usize, self.next_slot, VISITS_PER_TURN);
        self.erased += erased as u64;
        if let Some(next_slot) = next_slot.filter(|_| self.erased < erasure.limit) {
            self.next_slot = next_slot;
            return None;
        }
        let done = (erasure.ticket, self.erased);
        self.waiting.pop_front();
        (self.erased, self.next_slot) = (0, 0);
        Some(done)
    }
}
