//! Links on which each message is one packet: UDP, WebSocket, Ethernet, and shared memory with the router.
//!
//! Limits: packets are not fragmented, so one that is larger than the link takes ends the flow with an error.

use namewire_faces::ethernet;
use namewire_memif::{ClientOptions, Port};
use namewire_packet::{nfd::MacAddress, tlv};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    fmt,
    io::{self, ErrorKind},
    net::{TcpStream, ToSocketAddrs, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};
use tungstenite::{Message, WebSocket, stream::MaybeTlsStream};

/// Two addresses and the type of an Ethernet frame.
const FRAME_HEADER_BYTES: usize = 14;
/// Ethernet type of NDN.
const ETHERTYPE: [u8; 2] = [0x86, 0x24];
/// Shortest frame, without checksum.
const LEAST_FRAME_BYTES: usize = 60;
/// How long a router may take to connect.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// The addresses of frames in shared memory, as NDN-DPDK's applications have them.
const MEMIF_HEADER: [u8; FRAME_HEADER_BYTES] =
    [0xf2, 0x6c, 0xe6, 0x8d, 0x9e, 0x34, 0xf2, 0x71, 0x7e, 0x76, 0x5d, 0x1c, ETHERTYPE[0], ETHERTYPE[1]];

/// A link that client programs do not have, but generators do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkUri {
    /// `memif:///run/nfd/memif.sock`.
    Memif(PathBuf),
    /// `ether://[08:00:27:01:01:01%eth0]`: a station, and our interface.
    Ethernet(MacAddress, String),
    /// `ws://router.example:9696/`.
    WebSocket(String),
}

impl FromStr for LinkUri {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is none of memif:///PATH, ether://[STATION%INTERFACE] and ws://HOST:PORT");
        match text.split_once("://").ok_or_else(wrong)? {
            ("memif", path) if path.starts_with('/') => Ok(LinkUri::Memif(path.into())),
            ("ws", _) => Ok(LinkUri::WebSocket(text.to_owned())),
            ("ether", rest) => {
                let inside = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
                let (station, interface) = inside.split_once('%').ok_or_else(wrong)?;
                Ok(LinkUri::Ethernet(station.parse().map_err(|_| wrong())?, interface.to_owned()))
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for LinkUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkUri::Memif(path) => write!(f, "memif://{}", path.display()),
            LinkUri::Ethernet(station, interface) => write!(f, "ether://[{station}%{interface}]"),
            LinkUri::WebSocket(url) => f.write_str(url),
        }
    }
}

/// See the module.
pub(super) enum MessageLink {
    /// Connected, or waiting for the first datagram of a peer.
    Udp {
        socket: UdpSocket,
        is_connected: bool,
    },
    WebSocket(Box<WebSocket<MaybeTlsStream<TcpStream>>>),
    Ethernet {
        socket: socket2::Socket,
        header: [u8; FRAME_HEADER_BYTES],
    },
    Memif(Box<Port>),
}

impl MessageLink {
    pub(super) fn connect(uri: &LinkUri) -> io::Result<Self> {
        match uri {
            LinkUri::Memif(path) => Self::connect_memif(path),
            LinkUri::Ethernet(station, interface) => Self::open_ethernet(*station, interface),
            LinkUri::WebSocket(url) => Self::connect_web_socket(url),
        }
    }

    pub(super) fn udp(socket: UdpSocket, is_connected: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(MessageLink::Udp { socket, is_connected })
    }

    fn connect_memif(path: &Path) -> io::Result<Self> {
        let options = ClientOptions { name: "namewire traffic".to_owned(), ..ClientOptions::default() };
        namewire_memif::connect(path, &options, CONNECT_PATIENCE).map(|port| MessageLink::Memif(Box::new(port)))
    }

    fn open_ethernet(station: MacAddress, interface: &str) -> io::Result<Self> {
        let fact = |file: &str| std::fs::read_to_string(format!("/sys/class/net/{interface}/{file}"));
        let no_interface = |_| io::Error::new(ErrorKind::NotFound, format!("{interface} is no Ethernet interface"));
        let index: u32 = fact("ifindex")?.trim().parse().map_err(|_| ErrorKind::InvalidData)?;
        let own: MacAddress = fact("address")?.trim().parse().map_err(no_interface)?;
        let socket = ethernet::open_whole_frames(index)?;
        socket.set_nonblocking(true)?;
        let mut header = [0; FRAME_HEADER_BYTES];
        header[..6].copy_from_slice(&station.0);
        header[6..12].copy_from_slice(&own.0);
        header[12..].copy_from_slice(&ETHERTYPE);
        Ok(MessageLink::Ethernet { socket, header })
    }

    fn connect_web_socket(url: &str) -> io::Result<Self> {
        let authority = url.trim_start_matches("ws://").split('/').next().unwrap_or_default();
        let address = authority.to_socket_addrs()?.next().ok_or(ErrorKind::NotFound)?;
        let stream = TcpStream::connect_timeout(&address, CONNECT_PATIENCE)?;
        stream.set_nodelay(true)?;
        let (socket, _) = tungstenite::client(url, MaybeTlsStream::Plain(stream)).map_err(io::Error::other)?;
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_nonblocking(true)?;
        }
        Ok(MessageLink::WebSocket(Box::new(socket)))
    }

    /// Sends one packet. False if there is no room: then nothing was sent.
    pub(super) fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        match self {
            MessageLink::Udp { socket, .. } => taken(socket.send(packet)),
            MessageLink::Ethernet { socket, header } => {
                let mut frame = [&header[..], packet].concat();
                frame.resize(frame.len().max(LEAST_FRAME_BYTES), 0);
                taken(socket.send(&frame))
            }
            MessageLink::WebSocket(socket) => match socket.write(Message::binary(packet.to_vec())) {
                Ok(()) => Ok(true),
                Err(tungstenite::Error::WriteBufferFull(_)) => Ok(false),
                Err(error) => would_block(error).map(|()| true), // it is in the buffer
            },
            MessageLink::Memif(port) => {
                if packet.len() + FRAME_HEADER_BYTES > port.frame_bytes_max() {
                    return Err(io::Error::new(
                        ErrorKind::InvalidInput,
                        "a packet is larger than the memory's buffers",
                    ));
                }
                Ok(port.send(&[&MEMIF_HEADER, packet]))
            }
        }
    }

    /// Lets the packets leave that were sent.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            MessageLink::Udp { .. } | MessageLink::Ethernet { .. } => Ok(()),
            MessageLink::WebSocket(socket) => socket.flush().or_else(would_block),
            MessageLink::Memif(port) => port.flush(),
        }
    }

    /// Copies the next packet into `buffer`. `None` if there is none now; `UnexpectedEof` if the peer has left.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            MessageLink::Udp { socket, is_connected } => match socket.recv_from(buffer) {
                Ok((size, peer)) => {
                    if !*is_connected {
                        socket.connect(peer)?;
                        *is_connected = true;
                    }
                    Ok(Some(size))
                }
                Err(error) => if_transient(error),
            },
            MessageLink::Ethernet { socket, header } => match io::Read::read(socket, buffer) {
                // Frames to other stations, and our own to a group, are not for us.
                Ok(size) if size < FRAME_HEADER_BYTES || buffer[..6] != header[6..12] => Ok(None),
                Ok(size) => Ok(Some(without_header(buffer, size))),
                Err(error) => if_transient(error),
            },
            MessageLink::WebSocket(socket) => match socket.read() {
                Ok(Message::Binary(packet)) if packet.len() <= buffer.len() => {
                    buffer[..packet.len()].copy_from_slice(&packet);
                    Ok(Some(packet.len()))
                }
                Ok(Message::Close(_)) => Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => Ok(None),
                Err(error) => would_block(error).map(|()| None),
            },
            MessageLink::Memif(port) => {
                let mut size = 0;
                port.receive(1, |frame| size = frame.copy_to(buffer));
                if size == 0 && port.is_broken() {
                    port.check_peer()?;
                }
                Ok((size >= FRAME_HEADER_BYTES).then(|| without_header(buffer, size)))
            }
        }
    }

    /// Waits until something has arrived, there may be room again (if `wants_room`), or the time is over.
    pub(super) fn wait(&self, wants_room: bool, time: Duration) -> io::Result<()> {
        let flags = if wants_room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let time = Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
        let descriptors = match self {
            MessageLink::Udp { socket, .. } => &mut [PollFd::from_borrowed_fd(socket.as_fd(), flags)][..],
            MessageLink::Ethernet { socket, .. } => &mut [PollFd::from_borrowed_fd(socket.as_fd(), flags)][..],
            MessageLink::WebSocket(socket) => &mut [PollFd::from_borrowed_fd(descriptor(socket)?, flags)][..],
            MessageLink::Memif(port) => {
                // Room is not reported; then a short look at the rings is due.
                if wants_room || port.unmask_interrupts() {
                    return Ok(());
                }
                let (doorbell, control) = (port.doorbell(), port.control());
                &mut [doorbell, control].map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))[..]
            }
        };
        match poll(descriptors, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if let MessageLink::Memif(port) = self {
            port.mask_interrupts();
            port.clear_doorbell();
        }
        Ok(())
    }

    /// Whether the peer is still there, as far as it says so.
    pub(super) fn check_peer(&mut self) -> io::Result<()> {
        match self {
            MessageLink::Memif(port) => port.check_peer(),
            _ => Ok(()),
        }
    }
}

fn descriptor(socket: &WebSocket<MaybeTlsStream<TcpStream>>) -> io::Result<BorrowedFd<'_>> {
    match socket.get_ref() {
        MaybeTlsStream::Plain(stream) => Ok(stream.as_fd()),
        _ => Err(ErrorKind::Unsupported.into()),
    }
}

/// Moves the packet of a frame to the front; returns its size, without padding.
fn without_header(buffer: &mut [u8], size: usize) -> usize {
    buffer.copy_within(FRAME_HEADER_BYTES..size, 0);
    let size = size - FRAME_HEADER_BYTES;
    tlv::element_size(&buffer[..size]).ok().flatten().map_or(size, |element| element.min(size))
}

fn taken(sent: io::Result<usize>) -> io::Result<bool> {
    match sent {
        Ok(_) => Ok(true),
        Err(error) if is_transient(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn if_transient(error: io::Error) -> io::Result<Option<usize>> {
    if is_transient(&error) { Ok(None) } else { Err(error) }
}

/// What the library says while a socket has nothing or no room.
fn would_block(error: tungstenite::Error) -> io::Result<()> {
    match error {
        tungstenite::Error::Io(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        tungstenite::Error::Io(error) => Err(error),
        tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => {
            Err(ErrorKind::UnexpectedEof.into())
        }
        error => Err(io::Error::other(error)),
    }
}

/// The queue is full, a signal came, or the peer has not opened its port yet.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused)
        || error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_one_text() {
        for text in ["memif:///run/nfd/memif.sock", "ether://[02:00:00:00:00:01%eth0]", "ws://h.example:9696/ndn"] {
            assert_eq!(text.parse::<LinkUri>().expect(text).to_string(), text);
        }
        for wrong in ["", "memif://x", "ether://02:00:00:00:00:01%eth0", "ether://[02:00:00:00:00:01]", "wss://h", "x"]
        {
            assert!(wrong.parse::<LinkUri>().is_err(), "{wrong}");
        }
    }
}
