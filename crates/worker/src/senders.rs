//! The senders by which control and workers reach each other.

use crate::{
    management_queue::ManagementQueue,
    messages::{FromWorker, ToWorker},
};
use namewire_faces::Waker;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::{SyncSender, TrySendError},
};

/// How workers reach control. Packets for management are refused when too many wait. Reports are never refused: there
/// are at most a few per face.
#[derive(Clone)]
pub struct ControlSender {
    reports: Arc<dyn Fn(FromWorker) + Send + Sync>,
    pub(crate) queue: Arc<ManagementQueue>,
}

impl ControlSender {
    /// `reports` passes a report to control without waiting. Control must serve a packet of the queue after the reports
    /// that were passed before it came, or it would not know the packet's face.
    pub fn new(reports: impl Fn(FromWorker) + Send + Sync + 'static, queue: Arc<ManagementQueue>) -> Self {
        ControlSender { reports: Arc::new(reports), queue }
    }

    pub(crate) fn tell(&self, report: FromWorker) {
        (self.reports)(report);
    }
}

/// How control reaches one worker. Dropping it ends the worker.
pub struct WorkerSender {
    messages: SyncSender<ToWorker>,
    waker: Waker,
    /// True if the worker has messages for which it was not woken yet.
    owes_wake: AtomicBool,
}

/// Messages that may wait for a worker before control waits for it.
pub(crate) const WORKER_QUEUE: usize = 4096;

impl WorkerSender {
    pub(crate) const fn new(messages: SyncSender<ToWorker>, waker: Waker) -> Self {
        WorkerSender { messages, waker, owes_wake: AtomicBool::new(false) }
    }

    /// Hands over a message. Call [`WorkerSender::wake`] afterwards, once for many messages, because it is a system
    /// call and ends the worker's sleep. A worker that is gone (the router is stopping) takes no message.
    pub fn send(&self, message: ToWorker) {
        self.owes_wake.store(true, Ordering::Relaxed);
        if let Err(TrySendError::Full(message)) = self.messages.try_send(message) {
            // The worker may still sleep, and would then never make room.
            self.waker.wake();
            let _ = self.messages.send(message);
        }
    }

    /// Wakes the worker if it has messages for which it was not woken.
    pub fn wake(&self) {
        if self.owes_wake.swap(false, Ordering::Relaxed) {
            self.waker.wake();
        }
    }
}

impl Drop for WorkerSender {
    fn drop(&mut self) {
        self.send(ToWorker::Stop);
        self.wake();
    }
}
