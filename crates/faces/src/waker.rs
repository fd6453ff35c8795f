//! Wakes a worker that sleeps on its sockets, from another thread.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Ends the current or the next [`crate::SocketDriver::wait`]. Clones wake the same worker.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// A waker without a worker; each driver creates its own.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Waker(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Wakes the worker. One system call, which never blocks. Its only error is a full counter, and then the worker is
    /// awake already.
    pub fn wake(&self) {
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Forgets wake-ups so far.
    pub(crate) fn reset(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.0, &mut count);
    }
}
