//! A link of a generator: many packets cross with one system call, and the generator does not wait for any single
//! packet.
//!
//! Packets to send collect in an [`Outbox`] and leave together. A visitor sees the received packets one by one and may
//! answer into the outbox. Packets that the kernel, or the memory shared with a peer, does not take stay in the outbox
//! until it does. (On WebSocket and packet sockets it is one call per packet, in shared memory none.)
//!
//! Limits: an element of a stream is at most [`ELEMENT_BYTES_MAX`]. The outbox has no limit: the sender asks
//! [`Link::has_room`], or never has more than a window in flight.

use std::io::{self, ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use namewire_packet::{MAX_PACKET_BYTES, tlv::element_size};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::datagram_batch::{self, ReceiveBatch};
use crate::frame_port::FramePort;
use crate::web_socket::WebSocketLink;

/// Room for received bytes of a stream that are not handled yet.
const STREAM_BUFFER_BYTES: usize = 512 * 1024;
/// Requested from the kernel for each UDP direction; it may grant less.
const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// The unsent bytes move to the front only after this many sent bytes.
const RECLAIM_BYTES: usize = 1024 * 1024;
/// The largest element that a peer may send us: a packet and its link header.
const ELEMENT_BYTES_MAX: usize = 2 * MAX_PACKET_BYTES;
/// With as many bytes in the outbox, a link has no room.
const OUT_BYTES_MAX: usize = 1 << 18;
/// Looks at shared memory between two looks at the clock.
const LOOKS_PER_CLOCK: u32 = 64;

/// Packets waiting to be sent, back to back.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Packets of `ends` that were sent.
    sent: usize,
    /// Bytes that were sent.
    sent_bytes: usize,
}

impl Outbox {
    /// Adds the packet that `write` appends; nothing if it appends nothing.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        write(&mut self.bytes);
        if self.bytes.len() > before {
            self.ends.push(self.bytes.len());
        }
    }

    fn is_empty(&self) -> bool {
        self.sent_bytes == self.bytes.len()
    }

    /// Hands packets to `send`, one by one, until it has no room; returns their number.
    fn send_each(&mut self, mut send: impl FnMut(&[u8]) -> io::Result<bool>) -> io::Result<usize> {
        let before = self.sent;
        while let Some(&end) = self.ends.get(self.sent)
            && send(&self.bytes[self.sent_bytes..end])?
        {
            (self.sent, self.sent_bytes) = (self.sent + 1, end);
        }
        Ok(self.sent - before)
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

/// See the module.
#[derive(Debug)]
pub struct Link {
    socket: Socket,
    /// Packets waiting to be sent.
    pub outbox: Outbox,
}

#[derive(Debug)]
enum Socket {
    Stream { stream: socket2::Socket, buffer: Box<[u8]>, start: usize, end: usize },
    Datagrams { socket: UdpSocket, batch: Box<ReceiveBatch> },
    Frames(Box<FramePort>),
    Web(Box<WebSocketLink>),
}

impl Link {
    fn over(socket: Socket) -> Self {
        Self { socket, outbox: Outbox::default() }
    }

    /// Takes over a connected stream, Unix or TCP.
    ///
    /// # Errors
    /// If it cannot be made non-blocking.
    pub fn stream(stream: impl Into<socket2::Socket>) -> io::Result<Self> {
        Self::stream_after(stream, &[])
    }

    /// The same for a stream from which `read` has been read already.
    ///
    /// # Errors
    /// If it cannot be made non-blocking.
    pub fn stream_after(stream: impl Into<socket2::Socket>, read: &[u8]) -> io::Result<Self> {
        let stream = stream.into();
        stream.set_nonblocking(true)?;
        let mut buffer = vec![0; STREAM_BUFFER_BYTES.max(2 * read.len())].into_boxed_slice();
        buffer[..read.len()].copy_from_slice(read);
        Ok(Self::over(Socket::Stream { stream, buffer, start: 0, end: read.len() }))
    }

    /// Takes over a connected UDP socket.
    ///
    /// # Errors
    /// If it cannot be made non-blocking.
    pub fn datagrams(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER_BYTES)?;
        rustix::net::sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER_BYTES)?;
        Ok(Self::over(Socket::Datagrams { socket, batch: Box::default() }))
    }

    /// Takes over an interface, or a connection of memif.
    pub fn frames(port: FramePort) -> Self {
        Self::over(Socket::Frames(Box::new(port)))
    }

    /// Connects to `ws://HOST:PORT`.
    ///
    /// # Errors
    /// If no router answers there.
    pub fn web_socket(url: &str) -> io::Result<Self> {
        WebSocketLink::connect(url).map(|socket| Self::over(Socket::Web(Box::new(socket))))
    }

    /// Whether who sends without a window should go on.
    pub fn has_room(&self) -> bool {
        self.outbox.bytes.len() - self.outbox.sent_bytes < OUT_BYTES_MAX
    }

    /// The descriptor, to wait for; `None` if nothing reports what comes ([`Link::has_frames`]).
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.socket {
            Socket::Stream { stream, .. } => Some(stream.as_fd()),
            Socket::Datagrams { socket, .. } => Some(socket.as_fd()),
            Socket::Frames(port) => port.descriptor(),
            Socket::Web(socket) => Some(socket.descriptor()),
        }
    }

    /// Whether a frame has come into shared memory.
    fn has_frames(&self) -> bool {
        matches!(&self.socket, Socket::Frames(port) if port.has_input())
    }

    /// Sends waiting packets, as far as the link takes them.
    ///
    /// # Errors
    /// If the connection is broken, or a packet is larger than the link takes.
    pub fn flush(&mut self) -> io::Result<()> {
        let outbox = &mut self.outbox;
        while !outbox.is_empty() {
            let result = match &mut self.socket {
                Socket::Stream { stream, .. } => {
                    stream.write(&outbox.bytes[outbox.sent_bytes..]).inspect(|&bytes| outbox.advance_bytes(bytes))
                }
                Socket::Datagrams { socket, .. } => {
                    let unsent = &outbox.ends[outbox.sent..];
                    let sent = datagram_batch::send(socket.as_fd(), &outbox.bytes, outbox.sent_bytes, unsent);
                    sent.inspect(|&count| {
                        outbox.sent += count;
                        outbox.sent_bytes = outbox.ends.get(outbox.sent.wrapping_sub(1)).copied().unwrap_or(0);
                    })
                }
                Socket::Frames(port) => {
                    let sent = outbox.send_each(|packet| port.send(packet));
                    port.flush().and(sent)
                }
                Socket::Web(socket) => outbox.send_each(|packet| socket.send(packet)),
            };
            match result {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if is_transient(&error) => break,
                Err(error) => return Err(error),
            }
        }
        outbox.reclaim();
        match &mut self.socket {
            Socket::Web(socket) => socket.flush(), // what the library has not written yet, too
            _ => Ok(()),
        }
    }

    /// Shows every available packet to `visit`, with the outbox for answers; returns the number of packets.
    ///
    /// # Errors
    /// `UnexpectedEof` if the peer has closed the connection; others if it is broken, or carries no packets.
    pub fn receive(&mut self, mut visit: impl FnMut(&[u8], &mut Outbox)) -> io::Result<usize> {
        let outbox = &mut self.outbox;
        let received = match &mut self.socket {
            Socket::Frames(port) => port.receive(|packet| visit(packet, outbox)),
            Socket::Web(socket) => socket.receive(|packet| visit(packet, outbox)),
            Socket::Datagrams { socket, batch } => {
                batch.receive(socket.as_fd()).inspect(|_| batch.datagrams().for_each(|wire| visit(wire, outbox)))
            }
            Socket::Stream { stream, buffer, start, end } => {
                if buffer.len() - *end < ELEMENT_BYTES_MAX {
                    buffer.copy_within(*start..*end, 0);
                    (*start, *end) = (0, *end - *start);
                }
                match stream.read(&mut buffer[*end..]) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
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
                return Ok(count);
            }
        };
        match received {
            Err(error) if is_transient(&error) => Ok(0),
            // A link of messages says so in several ways.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted) => {
                Err(ErrorKind::UnexpectedEof.into())
            }
            received => received,
        }
    }

    /// Waits until something has come, waiting packets may leave, or the time is over. In shared memory it waits for
    /// the peer's doorbell, where [`wait_readable`] looks all the time.
    ///
    /// # Errors
    /// Those of `poll`.
    pub fn wait(&self, limit: Duration) -> io::Result<()> {
        match &self.socket {
            Socket::Web(socket) if socket.has_more => Ok(()),
            Socket::Frames(port) if port.descriptor().is_none() => {
                // Room is not reported; then a short look at the rings is due.
                if self.outbox.is_empty() { port.sleep(limit) } else { Ok(()) }
            }
            _ => wait_readable(&[self], limit).map(drop),
        }
    }
}

/// Waits until one of `links` can be read, or can send what is waiting; says which can be read.
///
/// # Errors
/// Those of `poll`.
pub fn wait_readable<const N: usize>(links: &[&Link; N], limit: Duration) -> io::Result<[bool; N]> {
    let interest_in = |link: &Link| {
        if link.outbox.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
    };
    let descriptors = links.map(|link| Some(PollFd::from_borrowed_fd(link.descriptor()?, interest_in(link))));
    if descriptors.iter().any(Option::is_none) {
        return Ok(look_for_frames(links, limit));
    }
    let mut descriptors: Vec<PollFd<'_>> = descriptors.into_iter().flatten().collect();
    wait_for(&mut descriptors, limit)?;
    let readable =
        |descriptor: &PollFd<'_>| descriptor.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
    Ok(std::array::from_fn(|place| readable(&descriptors[place])))
}

/// Looks until one of `links` has a frame, or has something to send for which there was no room.
fn look_for_frames<const N: usize>(links: &[&Link; N], limit: Duration) -> [bool; N] {
    let deadline = Instant::now() + limit;
    loop {
        for _ in 0..LOOKS_PER_CLOCK {
            let has_frames = links.map(Link::has_frames);
            if has_frames.contains(&true) || links.iter().any(|link| !link.outbox.is_empty()) {
                return has_frames;
            }
            std::hint::spin_loop();
        }
        if Instant::now() >= deadline {
            return [false; N];
        }
    }
}

/// Waits for one of these, or until the time is over.
pub(crate) fn wait_for(descriptors: &mut [PollFd<'_>], limit: Duration) -> io::Result<()> {
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    match poll(descriptors, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The size of the first element, once all of it has arrived.
fn next_size(bytes: &[u8]) -> io::Result<Option<usize>> {
    match element_size(bytes) {
        Ok(Some(size)) if size <= bytes.len() => Ok(Some(size)),
        Ok(size) if size.unwrap_or(0) <= ELEMENT_BYTES_MAX => Ok(None),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "the stream carries no packets")),
    }
}

/// Errors that mean "not now": full, interrupted, or the ICMP error for an earlier datagram that no process received
/// (while a router starts).
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused)
        || error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn packets_that_find_no_room_wait_and_arrive_in_order() -> io::Result<()> {
        let (left, right) = UnixStream::pair()?;
        let (mut left, mut right) = (Link::stream(left)?, Link::stream(right)?);
        let (mut pushed, mut next) = (0_u32, 0);
        while left.has_room() {
            left.outbox.push(|out| namewire_packet::tlv::write_tlv(out, 6, &pushed.to_be_bytes().repeat(500)));
            left.outbox.push(|_| ()); // no answer is no packet
            left.flush()?;
            pushed += 1;
        }
        assert!(!left.outbox.is_empty(), "the kernel took {pushed} packets");
        while next < pushed {
            right.receive(|wire, _| {
                assert_eq!(wire[wire.len() - 4..], next.to_be_bytes());
                next += 1;
            })?;
            left.flush()?;
        }
        assert_eq!((left.outbox.is_empty(), right.receive(|_, _| ())?), (true, 0));
        drop(left);
        assert_eq!(right.receive(|_, _| ()).map_err(|error| error.kind()), Err(ErrorKind::UnexpectedEof));
        Ok(())
    }
}
