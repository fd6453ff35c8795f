//! The common part of commands that run as services: the signals that end them, and their notices to systemd.

use sd_notify::NotifyState;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT.
pub struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl EndSignals {
    /// Catches both from now on.
    ///
    /// # Errors
    /// If the system has no room for the handlers.
    pub fn listen() -> io::Result<Self> {
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(EndSignals { terminate, interrupt })
    }

    /// Comes with the first of them.
    pub async fn came(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Tells systemd, if it started this process.
pub fn notify(state: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(state); // nobody listens, or not any longer
}
