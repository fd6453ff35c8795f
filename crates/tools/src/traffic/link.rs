//! Link: one connection of a generator, read and written without waiting.
//!
//! The client library costs a task and a channel for each packet. A generator must send more than a router can take, so
//! it writes many packets with one system call and reads as many with another. (On UDP, WebSocket and Ethernet it is
//! one call per packet, in shared memory none.)
//!
//! Limits: [`OUT_BYTES_MAX`] wait to be written; a packet is at most [`MAX_PACKET_BYTES`] and its headers.

use super::message_link::{LinkUri, MessageLink};
use namewire_client::TransportUri;
use namewire_packet::{MAX_PACKET_BYTES, tlv};
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    fmt,
    io::{self, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::AsFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    str::FromStr,
    time::Duration,
};

/// Bytes that wait for a stream that takes no more.
const OUT_BYTES_MAX: usize = 1 << 18;
/// Bytes read by one call.
const IN_BYTES: usize = 1 << 18;
/// Messages read in a row.
const MESSAGES_MAX: usize = 64;

/// Where a link goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Transport(TransportUri),
    Link(LinkUri),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("memif" | "ether" | "ws", _)) => text.parse().map(Target::Link),
            _ => text.parse::<TransportUri>().map(Target::Transport).map_err(|error| error.to_string()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Transport(uri) => uri.fmt(f),
            Target::Link(uri) => uri.fmt(f),
        }
    }
}

/// What a link goes over.
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    /// Each message is one packet.
    Messages(MessageLink),
}

impl Socket {
    /// Connects to a router, or to a generator that listens.
    pub(super) async fn connect(target: &Target) -> io::Result<Self> {
        let uri = match target {
            Target::Transport(uri) => uri,
            Target::Link(uri) => return MessageLink::connect(uri).map(Socket::Messages),
        };
        let socket = match uri {
            TransportUri::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
            TransportUri::Tcp { .. } => Socket::Tcp(TcpStream::connect(&uri.resolve().await?[..])?),
            TransportUri::Udp { .. } => {
                let addresses = uri.resolve().await?;
                let any = if addresses[0].is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.connect(addresses[0])?;
                Socket::Messages(MessageLink::udp(socket, true)?)
            }
        };
        Ok(socket)
    }

    /// Waits for one peer.
    pub(super) async fn accept(uri: &TransportUri) -> io::Result<Self> {
        match uri {
            TransportUri::Unix(path) => accept_unix(path),
            TransportUri::Tcp { .. } => {
                let (stream, _) = TcpListener::bind(&uri.resolve().await?[..])?.accept()?;
                Ok(Socket::Tcp(stream))
            }
            TransportUri::Udp { .. } => {
                let socket = UdpSocket::bind(&uri.resolve().await?[..])?;
                MessageLink::udp(socket, false).map(Socket::Messages)
            }
        }
    }
}

fn accept_unix(path: &Path) -> io::Result<Socket> {
    let listener = UnixListener::bind(path)?;
    let accepted = listener.accept();
    std::fs::remove_file(path)?;
    accepted.map(|(stream, _)| Socket::Unix(stream))
}

/// See the module.
pub(super) struct Link {
    socket: Socket,
    out: Vec<u8>,
    /// How many bytes of `out` are written.
    written: usize,
    received: Vec<u8>,
    /// How many bytes of `received` are there.
    filled: usize,
    /// The last look at messages ended before they did.
    has_more: bool,
}

impl Link {
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        match &socket {
            Socket::Unix(stream) => stream.set_nonblocking(true)?,
            Socket::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
            }
            Socket::Messages(_) => {}
        }
        Ok(Link { socket, out: Vec::new(), written: 0, received: vec![0; IN_BYTES], filled: 0, has_more: false })
    }

    /// True if another packet may be sent now.
    pub(super) fn has_room(&self) -> bool {
        self.out.len() - self.written < OUT_BYTES_MAX
    }

    /// Sends what `write` appends: one packet. It leaves with the next [`Link::flush`]. False if the link has no room
    /// for a message: then nothing was sent.
    pub(super) fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<bool> {
        let Socket::Messages(messages) = &mut self.socket else {
            write(&mut self.out);
            return Ok(true);
        };
        self.out.clear();
        write(&mut self.out);
        let sent = messages.send(&self.out);
        self.out.clear();
        sent
    }

    /// Writes what a stream takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            let result = match &mut self.socket {
                Socket::Unix(stream) => stream.write(rest),
                Socket::Tcp(stream) => stream.write(rest),
                Socket::Messages(_) => break,
            };
            match result {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        match &mut self.socket {
            Socket::Messages(messages) => messages.flush(),
            _ => Ok(()),
        }
    }

    /// Hands each packet that has arrived to `take`, with the bytes to answer by [`Link::send`]. False at the end of a
    /// link.
    pub(super) fn receive(&mut self, mut take: impl FnMut(&[u8], &mut Vec<u8>)) -> io::Result<bool> {
        let free = &mut self.received[self.filled..];
        let result = match &mut self.socket {
            Socket::Unix(stream) => stream.read(free),
            Socket::Tcp(stream) => stream.read(free),
            Socket::Messages(_) => return self.receive_messages(take),
        };
        match result {
            Ok(0) => return Ok(false),
            Ok(count) => self.filled += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(true),
            Err(error) => return Err(error),
        }
        let mut start = 0;
        while start < self.filled {
            let rest = &self.received[start..self.filled];
            match tlv::element_size(rest) {
                Ok(Some(size)) if size <= rest.len() => {
                    take(&rest[..size], &mut self.out);
                    start += size;
                }
                Ok(size) if size.unwrap_or(0) <= 2 * MAX_PACKET_BYTES => break,
                _ => return Err(io::Error::new(ErrorKind::InvalidData, "the stream carries no packets")),
            }
        }
        self.received.copy_within(start..self.filled, 0);
        self.filled -= start;
        Ok(true)
    }

    fn receive_messages(&mut self, mut take: impl FnMut(&[u8], &mut Vec<u8>)) -> io::Result<bool> {
        let Socket::Messages(messages) = &mut self.socket else { return Ok(true) };
        self.has_more = true;
        for _ in 0..MESSAGES_MAX {
            let size = match messages.receive(&mut self.received) {
                Ok(Some(size)) => size,
                Ok(None) => {
                    self.has_more = false;
                    break;
                }
                Err(error) if has_left(&error) => return Ok(false),
                Err(error) => return Err(error),
            };
            take(&self.received[..size], &mut self.out);
            if !self.out.is_empty() {
                // What finds no room is lost, as on any link.
                let _ = messages.send(&self.out);
                self.out.clear();
            }
        }
        match messages.check_peer() {
            Err(error) if has_left(&error) => Ok(false),
            checked => checked.map(|()| true),
        }
    }

    /// Waits until something has arrived, what waits can be written, or the time is over.
    pub(super) fn wait(&self, time: Duration) -> io::Result<()> {
        if self.has_more {
            return Ok(()); // a library may have read ahead, which no descriptor shows
        }
        let wants_to_write = self.written < self.out.len();
        let descriptor = match &self.socket {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Messages(messages) => return messages.wait(wants_to_write, time),
        };
        let flags = if wants_to_write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let time = rustix::time::Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(descriptor, flags)], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn has_left(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted)
}
