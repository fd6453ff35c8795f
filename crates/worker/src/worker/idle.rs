//! A worker without packets: it looks for more, and then sleeps.

use super::{Worker, has_records};
use crate::{busy_polling::Next, poll_window::Expects};
use std::time::Duration;

impl Worker {
    /// The turn that began at `now_ns` had packets, and is over.
    pub(super) fn note_busy_turn(&mut self, now_ns: u64) {
        self.busy_polling.note_packets(now_ns);
        let over_ns = self.shared.now_ns();
        self.busy_ns += over_ns - now_ns;
        let is_pending = self.engine.pit_len() as u64 + self.engine.fingerprints_len() > 0;
        self.busy_polling.note_quiet(over_ns, if is_pending { Expects::Data } else { Expects::Interest });
    }

    /// Looks for packets again and again, as long as the setting says or as it pays. True as soon as a socket, another
    /// worker or control has something, so no thread has to wake this worker.
    pub(super) fn poll(&mut self) -> bool {
        let deadline_ns = self.next_deadline_ns();
        let Some(mut look) = self.busy_polling.begin(self.shared.now_ns(), deadline_ns) else { return false };
        loop {
            let has_found = self.has_records() || self.look();
            match self.busy_polling.note_look(&mut look, self.shared.now_ns(), has_found) {
                Next::LookAgain => std::hint::spin_loop(),
                Next::Yield => rustix::thread::sched_yield(),
                Next::Found => return true,
                Next::Sleep => return false,
            }
        }
    }

    /// When a timer of the engine or of the sockets is due, or a look at the PIT.
    fn next_deadline_ns(&self) -> Option<u64> {
        let engine_ns = self.engine.next_deadline().map(|at| at.0);
        let deadlines_ns = [engine_ns, self.io.driver.next_deadline_ns(), self.pit_looks.deadline_ns()];
        deadlines_ns.into_iter().flatten().min()
    }

    /// Whether a socket or control has something for the next turn.
    pub(super) fn look(&mut self) -> bool {
        // The next look will report an error (no memory for epoll's answer).
        self.io.driver.wait(Some(Duration::ZERO)).unwrap_or(false)
    }

    /// Sleeps until a socket, another worker, control or a timer has something.
    pub(super) fn sleep(&mut self) {
        let until_deadline = self.next_deadline_ns().map(|at_ns| {
            // Rounded up to the clock of epoll, or the last millisecond would be spent spinning.
            Duration::from_millis(at_ns.saturating_sub(self.shared.now_ns()).div_ceil(1_000_000))
        });
        if self.may_sleep() {
            let Worker { io, busy_polling, .. } = self;
            // An error of a wait passes, as in a look.
            let _ = busy_polling.sleep(|| io.driver.wait(until_deadline));
            self.io.outbox.bell(self.io.index).doorbell.awake();
        } else {
            self.look();
        }
    }

    /// Announces sleep; false if there is work.
    fn may_sleep(&mut self) -> bool {
        let Worker { inbox, io, .. } = self;
        io.outbox.bell(io.index).doorbell.may_sleep(|| has_records(inbox, io))
    }

    /// Whether other workers have something for this one, or room for what waits here.
    fn has_records(&mut self) -> bool {
        has_records(&mut self.inbox, &self.io)
    }
}
