//! How the datagrams of a [`crate::datagram_socket::DatagramSocket`] get to the network and from it: by a kernel socket
//! (UDP, or a packet socket of an interface), or by AF_XDP. Everything above does not know which.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use namewire_packet::nfd::MacAddress;

use crate::sys::{self, Outgoing, ReceivedBatch};
use crate::xdp_port::XdpPort;

/// A driver of datagrams.
pub(crate) enum DatagramPort {
    /// A UDP or packet socket.
    Socket(OwnedFd),
    /// A queue of an interface.
    Xdp(Box<XdpPort>),
}

impl DatagramPort {
    /// Receives at most `buffer.len() / slot_bytes` messages, the i-th into `buffer[i * slot_bytes..]`; does not block.
    ///
    /// # Errors
    ///
    /// `WouldBlock` or nothing received mean the same. Other errors are about datagrams sent before.
    pub(crate) fn receive(
        &mut self,
        messages: &mut ReceivedBatch,
        buffer: &mut [u8],
        slot_bytes: usize,
        at_most: usize,
    ) -> io::Result<usize> {
        match self {
            DatagramPort::Socket(socket) => messages.receive(socket.as_fd(), buffer, slot_bytes, at_most),
            DatagramPort::Xdp(port) => Ok(port.receive(messages, buffer, slot_bytes, at_most)),
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
            DatagramPort::Xdp(port) => port.send(outgoing),
        }
    }

    /// Whether something waits that only [`DatagramPort::kick`] sends.
    pub(crate) fn needs_kick(&self) -> bool {
        matches!(self, DatagramPort::Xdp(port) if port.needs_kick())
    }

    /// Whether the kernel reports room to send. Otherwise a timer tries again.
    pub(crate) fn reports_room(&self) -> bool {
        matches!(self, DatagramPort::Socket(_))
    }

    /// Sends what the kernel did not take before. If that fails, the next [`DatagramPort::send`] says why.
    pub(crate) fn kick(&mut self) {
        if let DatagramPort::Xdp(port) = self {
            let _ = port.kick();
        }
    }

    /// Datagrams that the kernel dropped without an error.
    pub(crate) fn dropped(&self) -> u64 {
        match self {
            DatagramPort::Socket(_) => 0,
            DatagramPort::Xdp(port) => port.dropped(),
        }
    }

    /// Bytes that the kernel has not sent yet.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        match self {
            DatagramPort::Socket(socket) => sys::unsent_bytes(socket.as_fd(), false),
            DatagramPort::Xdp(port) => port.unsent_bytes(),
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
            DatagramPort::Xdp(port) => port.join(group),
        }
    }

    /// Most bytes of a datagram, if the port and not the network limits it.
    pub(crate) fn payload_bytes_max(&self) -> usize {
        match self {
            DatagramPort::Socket(_) => usize::MAX,
            DatagramPort::Xdp(port) => port.payload_bytes_max(),
        }
    }
}

impl AsFd for DatagramPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            DatagramPort::Socket(socket) => socket.as_fd(),
            DatagramPort::Xdp(port) => port.as_fd(),
        }
    }
}
