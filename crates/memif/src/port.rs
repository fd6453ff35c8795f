//! Port: one end of a connection, with one ring each way.
//!
//! How to wait for frames without losing a wake: mask the doorbell while you poll. Before you sleep, call
//! [`Port::unmask_interrupts`]; if it returns true, read again instead. Else wait until [`Port::doorbell`] is readable,
//! then call [`Port::clear_doorbell`] and read. Watch [`Port::control`] too, and call [`Port::check_peer`] when it is
//! readable.
//!
//! Cost: [`Port::receive`] and [`Port::send`] make no system call. Each frame is copied once. [`Port::flush`] makes two
//! system calls if the peer sleeps, else none. Memory: 24 bytes per slot, in addition to the shared regions.
//!
//! Limits: one ring each way, of at most 2¹⁴ slots; frames of at most 65,535 bytes. A peer that makes its doorbell
//! block (see `doorbell.rs`) can make [`Port::flush`] block.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::control::{self, Received};
use crate::doorbell;
use crate::message::Message;
use crate::receiving::{Frame, ReceiveRing};
use crate::sending::TransmitRing;

/// See the module.
#[derive(Debug)]
pub struct Port {
    pub(crate) control: Arc<OwnedFd>,
    pub(crate) receiver: ReceiveRing,
    pub(crate) transmitter: TransmitRing,
    /// The peer rings it.
    pub(crate) receive_doorbell: OwnedFd,
    /// We ring it.
    pub(crate) transmit_doorbell: OwnedFd,
    pub(crate) id: u32,
    pub(crate) peer_name: String,
    /// Why the connection has ended.
    pub(crate) ended: Option<(io::ErrorKind, String)>,
}

impl Port {
    /// Passes up to `at_most` frames that wait now to `visit`, gives their buffers back and returns how many. Zero if
    /// the ring is broken. No system call. After a panic of `visit`, drop the port: its ring is
    /// half read.
    pub fn receive(&mut self, at_most: usize, visit: impl FnMut(Frame<'_>)) -> usize {
        self.receiver.receive(at_most, visit)
    }

    /// Queues one frame, made of these parts: copies it into the next free buffer, or into several if one is too small.
    /// False, and nothing is changed, if the frame does not fit now, or has more than 65,535 bytes. The peer sees it
    /// after [`flush`](Self::flush). No system call.
    #[must_use]
    pub fn send(&mut self, parts: &[&[u8]]) -> bool {
        self.transmitter.send(parts)
    }

    /// Shows the queued frames to the peer, and rings its doorbell if the peer has not masked it.
    ///
    /// # Errors
    /// Those of the kernel; none is expected. The frames are shown anyway.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.transmitter.show() { doorbell::ring(self.transmit_doorbell.as_fd()) } else { Ok(()) }
    }

    /// True if frames wait. One load of shared memory.
    #[must_use]
    pub fn has_input(&self) -> bool {
        self.receiver.has_input()
    }

    /// Tells the peer that its doorbell is not needed. The peer may ring once more. A new port is not masked.
    pub fn mask_interrupts(&self) {
        self.receiver.set_masked(true);
    }

    /// Tells the peer to ring the doorbell for new frames. True if frames wait already: then read them now, because the
    /// doorbell may not ring for these.
    #[must_use]
    pub fn unmask_interrupts(&self) -> bool {
        self.receiver.set_masked(false);
        fence(Ordering::SeqCst); // See `TransmitRing::show`.
        self.has_input()
    }

    /// Readable if the peer has rung since [`clear_doorbell`](Self::clear_doorbell).
    #[must_use]
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.receive_doorbell.as_fd()
    }

    /// Makes the doorbell unreadable. One system call, which does not block. Do this before you read frames.
    pub fn clear_doorbell(&self) {
        doorbell::clear(self.receive_doorbell.as_fd());
    }

    /// The control socket. Readable if [`check_peer`](Self::check_peer) has something to find.
    #[must_use]
    pub fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Looks for the end of the connection. Does not block; one system call. Frames that wait can still be received
    /// after an error, unless the ring is broken. Further calls return the same error.
    ///
    /// # Errors
    /// `ConnectionReset` once the peer has disconnected or is gone; the text has its reason, at most 96 printable
    /// characters. `ConnectionAborted` once the peer has broken the protocol; the text names the rule, and the peer has
    /// been told. Others of the kernel.
    pub fn check_peer(&mut self) -> io::Result<()> {
        if self.ended.is_none() {
            self.ended = self.find_end();
        }
        match &self.ended {
            Some((kind, text)) => Err(io::Error::new(*kind, text.clone())),
            None => Ok(()),
        }
    }

    fn find_end(&self) -> Option<(io::ErrorKind, String)> {
        let broken = match control::receive(self.control.as_fd()) {
            _ if self.is_broken() => self.receiver.broken().or(self.transmitter.broken())?.0,
            Ok(Received::Nothing) => return None,
            Ok(Received::End) => return Some((io::ErrorKind::ConnectionReset, "peer closed the connection".into())),
            Ok(Received::Message(Message::Disconnect { reason, .. }, _)) => {
                return Some((io::ErrorKind::ConnectionReset, format!("peer disconnected: {reason}")));
            }
            Ok(Received::Message(..)) => "unexpected message",
            Ok(Received::Broken(broken)) => broken.0,
            Err(error) => return Some((error.kind(), error.to_string())),
        };
        control::send_disconnect(self.control.as_fd(), broken);
        Some((io::ErrorKind::ConnectionAborted, format!("peer broke the protocol: {broken}")))
    }

    /// True once the peer wrote something into a ring that cannot be. Then [`check_peer`](Self::check_peer) fails. No
    /// system call.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.receiver.broken().is_some() || self.transmitter.broken().is_some()
    }

    /// Buffers that are free to send now. One load of shared memory.
    #[must_use]
    pub fn room(&self) -> usize {
        usize::from(self.transmitter.room())
    }

    /// Buffers sent or queued that the peer has not given back: the number of frames, if each has one buffer. A client
    /// that gives buffers back in groups seems to have more.
    #[must_use]
    pub fn waiting(&self) -> usize {
        usize::from(self.transmitter.waiting())
    }

    /// Bytes of the largest frame that [`send`](Self::send) puts into one buffer. A server learns it from the client:
    /// it is the length of the first buffer when the connection was made, 0 if it had none, and does not change.
    #[must_use]
    pub fn frame_bytes_max(&self) -> usize {
        self.transmitter.buffer_bytes() as usize
    }

    /// How many received frames were refused, because a descriptor named bytes outside of its region, the frame was too
    /// long or had no end.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.receiver.malformed()
    }

    /// How the peer's software calls itself: at most 32 printable characters.
    #[must_use]
    pub fn peer_name(&self) -> &str {
        &self.peer_name
    }

    /// Number of the interface that the client asked for.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }
}

/// Tells the peer.
impl Drop for Port {
    fn drop(&mut self) {
        if self.ended.is_none() {
            control::send_disconnect(self.control.as_fd(), "interface closed");
        }
    }
}
