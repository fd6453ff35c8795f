//! How the datagrams of a [`crate::datagram_socket::DatagramSocket`] get to the network and from it: by a kernel socket
//! (UDP, or a packet socket of an interface), or as frames in shared memory ([`crate::frame_port`]). The code above
//! does not distinguish them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use namewire_packet::nfd::MacAddress;

use crate::frame_port::{FramePort, RefusedFrames};
use crate::remote::Remote;
use crate::rx_arena::MESSAGE_SLOT_BYTES;
use crate::sys::{self, Outgoing, ReceivedBatch};

/// A driver of datagrams.
pub(crate) enum DatagramPort {
    /// A UDP or packet socket.
    Socket(OwnedFd),
    /// Frames in shared memory.
    Frames(Box<FramePort>),
}

impl DatagramPort {
    /// Receives at most `at_most` messages into `buffer`; does not block. Each may take [`DatagramPort::slot_bytes`].
    ///
    /// # Errors
    ///
    /// `WouldBlock` or nothing received mean the same. Other errors are about datagrams sent before.
    pub(crate) fn receive(
        &mut self,
        messages: &mut ReceivedBatch,
        buffer: &mut [u8],
        at_most: usize,
    ) -> io::Result<usize> {
        match self {
            DatagramPort::Socket(socket) => messages.receive(socket.as_fd(), buffer, MESSAGE_SLOT_BYTES, at_most),
            DatagramPort::Frames(port) => Ok(port.receive(messages, buffer, at_most)),
        }
    }

    /// Bytes of the arena that a received message may take.
    pub(crate) fn slot_bytes(&self) -> usize {
        match self {
            DatagramPort::Socket(_) => MESSAGE_SLOT_BYTES,
            DatagramPort::Frames(port) => port.slot_bytes(),
        }
    }

    /// Whether something waits to be received, if that is known without a system call.
    pub(crate) fn has_input(&self) -> bool {
        matches!(self, DatagramPort::Frames(port) if port.has_input())
    }

    /// The memory is looked at from now on; see [`FramePort::begin_polling`].
    pub(crate) fn begin_polling(&self) {
        if let DatagramPort::Frames(port) = self {
            port.begin_polling();
        }
    }

    /// See [`FramePort::end_polling`].
    pub(crate) fn end_polling(&self) -> bool {
        match self {
            DatagramPort::Socket(_) => true,
            DatagramPort::Frames(port) => port.end_polling(),
        }
    }

    /// The descriptor that reports input; `None` if the memory must be looked at again and again.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            DatagramPort::Socket(socket) => Some(socket.as_fd()),
            DatagramPort::Frames(port) => port.descriptor(),
        }
    }

    /// The descriptor on which the other end says that it leaves, if there is one.
    pub(crate) fn peer(&self) -> Option<BorrowedFd<'_>> {
        match self {
            DatagramPort::Socket(_) => None,
            DatagramPort::Frames(port) => port.peer(),
        }
    }

    /// See [`FramePort::is_broken`].
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self, DatagramPort::Frames(port) if port.is_broken())
    }

    /// Hears what the other end says.
    ///
    /// # Errors
    ///
    /// It has left, or has broken the rules.
    pub(crate) fn check_peer(&mut self) -> io::Result<()> {
        match self {
            DatagramPort::Socket(_) => Ok(()),
            DatagramPort::Frames(port) => port.check_peer(),
        }
    }

    /// Another descriptor of the same socket; `None` for shared memory.
    pub(crate) fn duplicate(&self) -> io::Result<Option<OwnedFd>> {
        match self {
            DatagramPort::Socket(socket) => socket.try_clone().map(Some),
            DatagramPort::Frames(_) => Ok(None),
        }
    }

    /// Takes one datagram to send, made of these parts, if the port has memory for it. [`DatagramPort::send_put`] sends
    /// it.
    #[inline]
    pub(crate) fn put(&mut self, destination: Option<Remote>, header: &[u8], slice: &[u8], padding: &[u8]) -> bool {
        match self {
            DatagramPort::Socket(_) => false,
            DatagramPort::Frames(port) => port.put(destination, header, slice, padding),
        }
    }

    /// Sends what [`DatagramPort::put`] took. If that fails, the next [`DatagramPort::send`] says why.
    pub(crate) fn send_put(&mut self) {
        if let DatagramPort::Frames(port) = self {
            port.send_put();
        }
    }

    /// Sends messages and returns how many were taken, each as a whole; does not block.
    ///
    /// # Errors
    ///
    /// About the first message, or about datagrams sent before.
    pub(crate) fn send<'a>(&mut self, outgoing: impl Iterator<Item = Outgoing<'a>>) -> io::Result<usize> {
        match self {
            DatagramPort::Socket(socket) => sys::send_batch(socket.as_fd(), outgoing),
            DatagramPort::Frames(port) => port.send(outgoing),
        }
    }

    /// Whether something waits that only another call sends.
    pub(crate) fn needs_kick(&self) -> bool {
        matches!(self, DatagramPort::Frames(port) if port.needs_kick())
    }

    /// Whether the kernel reports room to send. Otherwise a timer tries again.
    pub(crate) fn reports_room(&self) -> bool {
        matches!(self, DatagramPort::Socket(_))
    }

    /// Datagrams that the driver dropped without an error.
    pub(crate) fn dropped(&self) -> u64 {
        match self {
            DatagramPort::Socket(_) => 0,
            DatagramPort::Frames(port) => port.dropped(),
        }
    }

    /// Frames received and refused since the last call.
    pub(crate) fn take_refused(&mut self) -> RefusedFrames {
        match self {
            DatagramPort::Socket(_) => RefusedFrames::default(),
            DatagramPort::Frames(port) => port.take_refused(),
        }
    }

    /// Whether more than half of the room for input is used; for shared memory, whether there is any input.
    pub(crate) fn is_half_full(&self) -> bool {
        match self {
            DatagramPort::Socket(socket) => sys::is_half_full(socket.as_fd()),
            DatagramPort::Frames(port) => port.has_input(),
        }
    }

    /// Bytes that the kernel has not sent yet.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        match self {
            DatagramPort::Socket(socket) => sys::unsent_bytes(socket.as_fd(), false),
            DatagramPort::Frames(port) => port.unsent_bytes(),
        }
    }

    /// Makes an interface hear a group.
    ///
    /// # Errors
    ///
    /// The kernel refuses, for example because the interface is in too many groups.
    pub(crate) fn join(&mut self, interface: u32, group: MacAddress) -> io::Result<()> {
        match self {
            DatagramPort::Socket(socket) => sys::join_link_group(socket.as_fd(), interface, group),
            DatagramPort::Frames(port) => port.join(group),
        }
    }

    /// Most bytes of a datagram, if the port and not the network limits it.
    pub(crate) fn payload_bytes_max(&self) -> usize {
        match self {
            DatagramPort::Socket(_) => usize::MAX,
            DatagramPort::Frames(port) => port.payload_bytes_max(),
        }
    }
}
