//! One side of the load: a non-blocking Unix stream or UDP socket that moves many packets per system call.
//!
//! Packets to send collect in an [`Outbox`] and leave together. A visitor sees the received packets one by one and may
//! answer into the outbox. Packets that the kernel does not take wait until the socket is writable. At most a window of
//! packets waits, because the load never has more in flight.

use std::io::{self, Read, Write};
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use namewire_packet::tlv::element_size;

use super::frame_port::FramePort;
use super::message_batch::{self, ReceiveBatch};

/// Room for received bytes of a stream that are not handled yet.
const STREAM_BUFFER_BYTES: usize = 512 * 1024;
/// Requested from the kernel for each UDP direction; it may grant less.
const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// The unsent bytes move to the front only after this many sent bytes.
const RECLAIM_BYTES: usize = 1024 * 1024;
/// The largest element that a peer may send us: an 8,800-byte packet and its link header.
const ELEMENT_BYTES_MAX: usize = message_batch::SLOT_BYTES;

/// Packets waiting to be sent, back to back.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Packets of `ends` that were sent.
    sent: usize,
    /// Bytes that were sent.
    sent_bytes: usize,
}

impl Outbox {
    /// Adds the packet that `write` appends.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent_bytes == self.bytes.len()
    }

    /// Drops what was sent: at once when nothing is waiting (the usual case), otherwise only when enough was sent to
    /// justify moving the rest.
    fn reclaim(&mut self) {
        if self.is_empty() {
            self.bytes.clear();
            self.ends.clear();
        } else if self.sent_bytes >= RECLAIM_BYTES {
            self.bytes.drain(..self.sent_bytes);
            self.ends.drain(..self.sent);
            self.ends.iter_mut().for_each(|end| *end -= self.sent_bytes);
        } else {
            return;
        }
        (self.sent, self.sent_bytes) = (0, 0);
    }

    /// Counts the packets that the next `bytes` sent bytes complete; a stream may stop within a packet.
    fn advance_bytes(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
        while self.ends.get(self.sent).is_some_and(|&end| end <= self.sent_bytes) {
            self.sent += 1;
        }
    }
}

/// A socket of the load.
#[derive(Debug)]
pub(crate) struct LoadFace {
    socket: Socket,
    /// Packets waiting to be sent.
    pub(crate) outbox: Outbox,
}

#[derive(Debug)]
enum Socket {
    Stream { stream: UnixStream, buffer: Box<[u8]>, start: usize, end: usize },
    Datagram { socket: UdpSocket, batch: Box<ReceiveBatch> },
    Frames(Box<FramePort>),
}

impl LoadFace {
    /// Takes over a connected stream.
    ///
    /// # Errors
    /// If it cannot be made non-blocking.
    pub(crate) fn stream(stream: UnixStream) -> io::Result<Self> {
        Self::stream_after(stream, &[])
    }

    /// The same for a stream from which `read` has been read already.
    pub(super) fn stream_after(stream: UnixStream, read: &[u8]) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let mut buffer = vec![0; STREAM_BUFFER_BYTES.max(2 * read.len())].into_boxed_slice();
        buffer[..read.len()].copy_from_slice(read);
        Ok(Self { socket: Socket::Stream { stream, buffer, start: 0, end: read.len() }, outbox: Outbox::default() })
    }

    /// Takes over a connected UDP socket.
    ///
    /// # Errors
    /// If it cannot be made non-blocking.
    pub(super) fn datagram(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER_BYTES)?;
        rustix::net::sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER_BYTES)?;
        Ok(Self { socket: Socket::Datagram { socket, batch: Box::default() }, outbox: Outbox::default() })
    }

    /// Takes over an interface.
    pub(super) fn frames(port: FramePort) -> Self {
        Self { socket: Socket::Frames(Box::new(port)), outbox: Outbox::default() }
    }

    /// The descriptor, to wait for; `None` if nothing reports what comes ([`LoadFace::has_frames`]).
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.socket {
            Socket::Stream { stream, .. } => Some(stream.as_fd()),
            Socket::Datagram { socket, .. } => Some(socket.as_fd()),
            Socket::Frames(port) => port.descriptor(),
        }
    }

    /// Whether a frame has come into shared memory.
    pub(super) fn has_frames(&self) -> bool {
        matches!(&self.socket, Socket::Frames(port) if port.has_input())
    }

    /// Sends waiting packets, as far as the kernel takes them.
    ///
    /// # Errors
    /// If the connection is broken.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let outbox = &mut self.outbox;
        while !outbox.is_empty() {
            let result = match &mut self.socket {
                Socket::Stream { stream, .. } => {
                    stream.write(&outbox.bytes[outbox.sent_bytes..]).inspect(|&bytes| outbox.advance_bytes(bytes))
                }
                Socket::Datagram { socket, .. } => {
                    let unsent = &outbox.ends[outbox.sent..];
                    let sent = message_batch::send(socket.as_fd(), &outbox.bytes, outbox.sent_bytes, unsent);
                    sent.inspect(|&count| {
                        outbox.sent += count;
                        outbox.sent_bytes = outbox.ends.get(outbox.sent.wrapping_sub(1)).copied().unwrap_or(0);
                    })
                }
                Socket::Frames(port) => {
                    let mut count = 0;
                    let mut from = outbox.sent_bytes;
                    for &end in &outbox.ends[outbox.sent..] {
                        if !port.send(&outbox.bytes[from..end]) {
                            break;
                        }
                        (from, count) = (end, count + 1);
                    }
                    (outbox.sent, outbox.sent_bytes) = (outbox.sent + count, from);
                    port.flush().map(|()| count)
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

    /// Shows every available packet to `visit`, with the outbox for answers; returns the number of packets.
    ///
    /// # Errors
    /// If the connection is broken or closed, or the peer's bytes are no TLV stream.
    pub(crate) fn receive(&mut self, mut visit: impl FnMut(&[u8], &mut Outbox)) -> io::Result<usize> {
        let outbox = &mut self.outbox;
        match &mut self.socket {
            Socket::Frames(port) => Ok(port.receive(|packet| visit(packet, outbox))),
            Socket::Datagram { socket, batch } => match batch.receive(socket.as_fd()) {
                Ok(count) => {
                    batch.datagrams().for_each(|datagram| visit(datagram, outbox));
                    Ok(count)
                }
                Err(error) if is_transient(&error) => Ok(0),
                Err(error) => Err(error),
            },
            Socket::Stream { stream, buffer, start, end } => {
                if buffer.len() - *end < ELEMENT_BYTES_MAX {
                    buffer.copy_within(*start..*end, 0);
                    (*start, *end) = (0, *end - *start);
                }
                match stream.read(&mut buffer[*end..]) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(bytes) => *end += bytes,
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

/// The size of the first element, once all of it has arrived.
fn next_size(bytes: &[u8]) -> io::Result<Option<usize>> {
    let size = element_size(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    match size {
        Some(size) if size > ELEMENT_BYTES_MAX => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the router sent an element larger than any packet"))
        }
        Some(size) if size <= bytes.len() => Ok(Some(size)),
        _ => Ok(None),
    }
}

/// Errors that mean "not now": full, interrupted, or the ICMP error for an earlier datagram that no process received
/// (while a router starts).
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused)
}
