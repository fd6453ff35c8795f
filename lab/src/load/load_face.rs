//! One side of the load: a non-blocking Unix stream or UDP socket that moves many
//! packets per system call.
//!
//! Packets to send are collected in an [`Outbox`] and leave together; received
//! ones are lent one by one to a visitor, which may answer into the outbox. What
//! the kernel does not take now is kept and sent when the socket is writable: at
//! most a window of packets, since the load never has more in flight.

use std::io::{self, Read, Write};
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use namewire_packet::tlv::element_size;

use super::message_batch::{self, ReceiveBatch};

/// Room for octets of a stream that were read but not handled yet.
const STREAM_BUFFER_OCTETS: usize = 512 * 1024;
/// Asked of the kernel for each UDP direction; it may grant less.
const SOCKET_BUFFER_OCTETS: usize = 4 * 1024 * 1024;
/// Sent octets that are worth moving the unsent ones to the front for.
const RECLAIM_OCTETS: usize = 1024 * 1024;
/// The largest element that a peer may send us: an 8,800-octet packet and its link header.
const ELEMENT_OCTETS_MAX: usize = message_batch::SLOT_OCTETS;

/// Packets that wait to be sent, back to back.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    octets: Vec<u8>,
    ends: Vec<usize>,
    /// Packets of `ends` that were sent.
    sent: usize,
    /// Octets that were sent.
    sent_octets: usize,
}

impl Outbox {
    /// Adds the packet that `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.octets);
        self.ends.push(self.octets.len());
    }

    /// True if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.sent_octets == self.octets.len()
    }

    /// Forgets what was sent: all at once when nothing waits (the usual case),
    /// else only once it is worth moving the rest.
    fn reclaim(&mut self) {
        if self.is_empty() {
            self.octets.clear();
            self.ends.clear();
        } else if self.sent_octets >= RECLAIM_OCTETS {
            self.octets.drain(..self.sent_octets);
            self.ends.drain(..self.sent);
            self.ends.iter_mut().for_each(|end| *end -= self.sent_octets);
        } else {
            return;
        }
        (self.sent, self.sent_octets) = (0, 0);
    }

    /// Counts the packets that the first `octets` more octets complete (streams cut anywhere).
    fn advance_octets(&mut self, octets: usize) {
        self.sent_octets += octets;
        while self.ends.get(self.sent).is_some_and(|&end| end <= self.sent_octets) {
            self.sent += 1;
        }
    }
}

/// A socket of the load.
#[derive(Debug)]
pub(super) struct LoadFace {
    socket: Socket,
    /// Packets that wait to be sent.
    pub(super) outbox: Outbox,
}

#[derive(Debug)]
enum Socket {
    Stream { stream: UnixStream, buffer: Box<[u8]>, start: usize, end: usize },
    Datagram { socket: UdpSocket, batch: Box<ReceiveBatch> },
}

impl LoadFace {
    /// Takes a connected stream over.
    ///
    /// # Errors
    /// If it cannot be made non-blocking.
    pub(super) fn stream(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let buffer = vec![0; STREAM_BUFFER_OCTETS].into_boxed_slice();
        Ok(Self { socket: Socket::Stream { stream, buffer, start: 0, end: 0 }, outbox: Outbox::default() })
    }

    /// Takes a connected UDP socket over.
    ///
    /// # Errors
    /// If it cannot be made non-blocking.
    pub(super) fn datagram(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER_OCTETS)?;
        rustix::net::sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER_OCTETS)?;
        Ok(Self { socket: Socket::Datagram { socket, batch: Box::default() }, outbox: Outbox::default() })
    }

    /// The descriptor, to wait for.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Stream { stream, .. } => stream.as_fd(),
            Socket::Datagram { socket, .. } => socket.as_fd(),
        }
    }

    /// Sends what waits, as far as the kernel takes it.
    ///
    /// # Errors
    /// If the connection is broken.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let outbox = &mut self.outbox;
        while !outbox.is_empty() {
            let result = match &mut self.socket {
                Socket::Stream { stream, .. } => {
                    stream.write(&outbox.octets[outbox.sent_octets..]).inspect(|&octets| outbox.advance_octets(octets))
                }
                Socket::Datagram { socket, .. } => {
                    let unsent = &outbox.ends[outbox.sent..];
                    let sent = message_batch::send(socket.as_fd(), &outbox.octets, outbox.sent_octets, unsent);
                    sent.inspect(|&count| {
                        outbox.sent += count;
                        outbox.sent_octets = outbox.ends.get(outbox.sent.wrapping_sub(1)).copied().unwrap_or(0);
                    })
                }
            };
            match result {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if is_transient(&error) => break,
                Err(error) => return Err(error),
            }
        }
        outbox.reclaim();
        Ok(())
    }

    /// Lends every packet that is there to `visit`, with the outbox for answers;
    /// returns how many there were.
    ///
    /// # Errors
    /// If the connection is broken or closed, or the peer sends what is no TLV stream.
    pub(super) fn receive(&mut self, mut visit: impl FnMut(&[u8], &mut Outbox)) -> io::Result<usize> {
        let outbox = &mut self.outbox;
        match &mut self.socket {
            Socket::Datagram { socket, batch } => match batch.receive(socket.as_fd()) {
                Ok(count) => {
                    batch.datagrams().for_each(|datagram| visit(datagram, outbox));
                    Ok(count)
                }
                Err(error) if is_transient(&error) => Ok(0),
                Err(error) => Err(error),
            },
            Socket::Stream { stream, buffer, start, end } => {
                if buffer.len() - *end < ELEMENT_OCTETS_MAX {
                    buffer.copy_within(*start..*end, 0);
                    (*start, *end) = (0, *end - *start);
                }
                match stream.read(&mut buffer[*end..]) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(octets) => *end += octets,
                    Err(error) if is_transient(&error) => return Ok(0),
                    Err(error) => return Err(error),
                }
                let mut count = 0;
                while let Some(size) = next_size(&buffer[*start..*end])? {
                    visit(&buffer[*start..*start + size], outbox);
                    *start += size;
                    count += 1;
                }
                if start == end {
                    (*start, *end) = (0, 0);
                }
                Ok(count)
            }
        }
    }
}

/// Size of the first element if the whole of it is there.
fn next_size(octets: &[u8]) -> io::Result<Option<usize>> {
    let size = element_size(octets).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    match size {
        Some(size) if size > ELEMENT_OCTETS_MAX => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the router sent an element larger than any packet"))
        }
        Some(size) if size <= octets.len() => Ok(Some(size)),
        _ => Ok(None),
    }
}

/// Errors that say "not now": full, interrupted, or the echo of an earlier datagram
/// that nobody received (a router that is being started).
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused)
}
