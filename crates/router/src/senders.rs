//! The senders by which control and workers reach each other.

use crate::{
    management_queue::ManagementQueue,
    messages::{ToControl, ToWorker},
};
use namewire_faces::Waker;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::{SyncSender, TrySendError},
};
use tokio::sync::mpsc;

/// How workers reach control. Interests are refused when too many wait. Events are never refused: there are at most a
/// few per face, and a listener waits until its accepted connections are faces.
#[derive(Clone)]
pub(crate) struct ControlSender {
    pub(crate) events: mpsc::UnboundedSender<ToControl>,
    pub(crate) interests: Arc<ManagementQueue>,
}

/// How control reaches one worker. Dropping it ends the worker.
pub(crate) struct WorkerSender {
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
    pub(crate) fn send(&self, message: ToWorker) {
        self.owes_wake.store(true, Ordering::Relaxed);
        if let Err(TrySendError::Full(message)) = self.messages.try_send(message) {
            // The worker may still sleep, and would then never make room.
            self.waker.wake();
            let _ = self.messages.send(message);
        }
    }

    /// Wakes the worker if it has messages for which it was not woken.
    pub(crate) fn wake(&self) {
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
