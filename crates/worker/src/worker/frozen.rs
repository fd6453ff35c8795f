//! A frozen worker: it uses no socket, because another process has the same ones.
//!
//! The old process freezes its workers before it hands over, and the new one from the start until it may go on. A
//! frozen worker serves the messages of control. When it is asked to freeze again, it decides the packets that other
//! workers had passed to it, so that few are lost between two threads. What it decides for sockets is queued.

use super::{Scratch, Worker};
use crate::{
    messages::{FromWorker, HandOverMessage, StoredBatch, ToWorker},
    shared::TableReader,
};
use namewire_engine::Instant;
use namewire_faces::{CloseReason, FaceCounters, HandedFace};
use std::sync::{Arc, mpsc::SyncSender};

/// Slots of the Content Store that are visited for a batch.
const VISITS: u32 = 1024;

impl Worker {
    /// Serves messages until the worker may use sockets again. False: told to stop, and what is queued is another
    /// process's to send.
    pub(super) fn stay_frozen(
        &mut self,
        answer: &SyncSender<usize>,
        tables: &mut TableReader,
        scratch: &mut Scratch,
    ) -> bool {
        let _ = answer.send(self.settle(tables, scratch)); // control has given up
        loop {
            match self.messages.recv() {
                Ok(ToWorker::GoOn) => return true,
                Ok(ToWorker::Stop) | Err(_) => return false,
                Ok(ToWorker::Freeze(answer)) => {
                    let _ = answer.send(self.settle(tables, scratch)); // as above
                }
                Ok(message) => {
                    let now_ns = self.shared.now_ns();
                    self.io.now_ns = now_ns;
                    self.serve(message, now_ns, tables, scratch);
                    self.note_face_events();
                }
            }
        }
    }

    /// Decides what other workers have passed on. Returns how many packets that were.
    fn settle(&mut self, tables: &mut TableReader, scratch: &mut Scratch) -> usize {
        self.io.send_backlog();
        let decided = self.decide_rings(tables, scratch);
        self.io.outbox.publish();
        self.publish_status();
        decided
    }

    pub(super) fn serve_hand_over(&mut self, message: HandOverMessage, now_ns: u64) {
        match message {
            HandOverMessage::Describe(answer) => {
                let handed = self.io.driver.hand_over(now_ns);
                let _ = answer.send(handed); // control has given up
            }
            HandOverMessage::ShowStored(batches) => self.show_stored(now_ns, &batches),
            HandOverMessage::TakeOver { handed, counters } => self.take_over(now_ns, *handed, counters),
            HandOverMessage::AddUdpListener(socket) => {
                // A listener that cannot be watched hears nothing; descriptors are short then.
                let _ = self.io.driver.add_udp_listener(socket);
            }
            HandOverMessage::Store(stored) => {
                for (data, fresh_ms) in stored {
                    self.engine.store_again(Instant(now_ns), &data, fresh_ms);
                }
            }
        }
    }

    fn show_stored(&self, now_ns: u64, batches: &SyncSender<StoredBatch>) {
        let mut next = Some(0);
        while let Some(start) = next {
            let mut batch = StoredBatch::default();
            next = self.engine.stored_step(Instant(now_ns), start, VISITS, |data, fresh_ms| {
                batch.data.extend_from_slice(data);
                batch.fresh_ms.push(fresh_ms);
            });
            if !batch.fresh_ms.is_empty() && batches.send(batch).is_err() {
                return; // the new process has ended
            }
        }
    }

    fn take_over(&mut self, now_ns: u64, handed: HandedFace, counters: Arc<FaceCounters>) {
        let face = handed.face;
        if self.io.driver.take_over(now_ns, handed, counters).is_err() {
            self.tell(FromWorker::FaceClosed { face, reason: CloseReason::Io(std::io::ErrorKind::Other) });
        }
    }
}
