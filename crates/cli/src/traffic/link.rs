//! Link: one connection of a generator, read and written without waiting.
//!
//! The client library costs a task and a channel for each packet. A generator must send more than a router can take, so
//! it writes many packets with one system call and reads as many with another. (On UDP it is one call per datagram.)
//!
//! Limits: [`OUT_BYTES_MAX`] wait to be written; a packet is at most [`MAX_PACKET_BYTES`] and its headers.

use namewire_client::TransportUri;
use namewire_packet::{MAX_PACKET_BYTES, tlv};
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    time::Duration,
};

/// Bytes that wait for a stream that takes no more.
const OUT_BYTES_MAX: usize = 1 << 18;
/// Bytes read by one call.
const IN_BYTES: usize = 1 << 18;
/// Datagrams read in a row.
const DATAGRAMS_MAX: usize = 64;

/// What a link goes over.
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    /// Connected, or waiting for the first datagram of a peer.
    Udp {
        socket: UdpSocket,
        is_connected: bool,
    },
}

impl Socket {
    /// Connects to a router, or to a generator that listens.
    pub(super) async fn connect(uri: &TransportUri) -> io::Result<Self> {
        let socket = match uri {
            TransportUri::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
            TransportUri::Tcp { .. } => Socket::Tcp(TcpStream::connect(&uri.resolve().await?[..])?),
            TransportUri::Udp { .. } => {
                let addresses = uri.resolve().await?;
                let any = if addresses[0].is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.connect(addresses[0])?;
                Socket::Udp { socket, is_connected: true }
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
                Ok(Socket::Udp { socket, is_connected: false })
            }
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Udp { socket, .. } => socket.as_fd(),
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
}

impl Link {
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        match &socket {
            Socket::Unix(stream) => stream.set_nonblocking(true)?,
            Socket::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
            }
            Socket::Udp { socket, .. } => socket.set_nonblocking(true)?,
        }
        Ok(Link { socket, out: Vec::new(), written: 0, received: vec![0; IN_BYTES], filled: 0 })
    }

    /// True if another packet may be sent now.
    pub(super) fn has_room(&self) -> bool {
        self.out.len() - self.written < OUT_BYTES_MAX
    }

    /// Sends what `write` appends: one packet. Streams get it with the next [`Link::flush`]. False if the kernel has no
    /// room for a datagram: then nothing was sent.
    pub(super) fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<bool> {
        let Socket::Udp { socket, .. } = &self.socket else {
            write(&mut self.out);
            return Ok(true);
        };
        self.out.clear();
        write(&mut self.out);
        let sent = socket.send(&self.out);
        self.out.clear();
        match sent {
            Ok(_) => Ok(true),
            Err(error) if is_transient(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes what a stream takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            let result = match &mut self.socket {
                Socket::Unix(stream) => stream.write(rest),
                Socket::Tcp(stream) => stream.write(rest),
                Socket::Udp { .. } => return Ok(()),
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
        Ok(())
    }

    /// Hands each packet that has arrived to `take`, with the bytes to answer by [`Link::send`]. False at the end of a
    /// stream.
    pub(super) fn receive(&mut self, mut take: impl FnMut(&[u8], &mut Vec<u8>)) -> io::Result<bool> {
        if matches!(self.socket, Socket::Udp { .. }) {
            return self.receive_datagrams(take).map(|()| true);
        }
        let free = &mut self.received[self.filled..];
        let result = match &mut self.socket {
            Socket::Unix(stream) => stream.read(free),
            Socket::Tcp(stream) => stream.read(free),
            Socket::Udp { .. } => Ok(0),
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

    fn receive_datagrams(&mut self, mut take: impl FnMut(&[u8], &mut Vec<u8>)) -> io::Result<()> {
        let Socket::Udp { socket, is_connected } = &mut self.socket else { return Ok(()) };
        for _ in 0..DATAGRAMS_MAX {
            let size = match socket.recv_from(&mut self.received) {
                Ok((size, peer)) => {
                    if !*is_connected {
                        socket.connect(peer)?;
                        *is_connected = true;
                    }
                    size
                }
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return Err(error),
            };
            take(&self.received[..size], &mut self.out);
            if !self.out.is_empty() {
                // A datagram that the kernel refuses is lost, as on any link.
                let _ = socket.send(&self.out);
                self.out.clear();
            }
        }
        Ok(())
    }

    /// Waits until something has arrived, what waits can be written, or the time is over.
    pub(super) fn wait(&self, time: Duration) -> io::Result<()> {
        let wants_to_write = self.written < self.out.len();
        let flags = if wants_to_write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let time = rustix::time::Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(self.socket.fd(), flags)], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The queue is full, a signal came, or the peer has not opened its port yet.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused)
        || error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error())
}
