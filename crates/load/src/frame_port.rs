//! Ethernet frames: an interface by AF_XDP or by a packet socket, or another process by memif. All frames go to one
//! station.
//!
//! With AF_XDP and memif, the generator shares memory with the kernel or the peer, so that it costs less than the
//! measured router. A packet socket costs a system call for each frame, and works on any interface.
//!
//! Limits: packets are not fragmented. A packet that is larger than a buffer of memif is an error.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use namewire_afxdp::{Options, Program, XdpSocket};
use namewire_faces::ethernet;
use namewire_memif::{ClientOptions, Listener, Port, Progress};
use namewire_packet::nfd::MacAddress;
use namewire_packet::tlv::element_size;
use rustix::event::{PollFd, PollFlags, poll};

use crate::link::{is_transient, wait_for};

/// Two addresses and the type of a frame.
const HEADER_BYTES: usize = 14;
const ETHERTYPE_NDN: [u8; 2] = [0x86, 0x24];
/// Shortest frame, without checksum.
const LEAST_FRAME_BYTES: usize = 60;
/// Frames that one call receives.
const BATCH: usize = 64;
/// A server that runs accepts at once.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of a frame copied out of memory that the peer may change. Longer frames are cut; no load sends any.
const FRAME_BYTES: usize = 9_216;

/// The address of the other end of memif, if it is a router's own listener or a device of DPDK that was given it; and
/// ours (those of NDN-DPDK).
pub const MEMIF_ROUTER: MacAddress = MacAddress([0xf2, 0x6c, 0xe6, 0x8d, 0x9e, 0x34]);
/// See [`MEMIF_ROUTER`].
pub const MEMIF_PEER: MacAddress = MacAddress([0xf2, 0x71, 0x7e, 0x76, 0x5d, 0x1c]);

/// An interface, or a connection of memif, and the station at its other end.
pub struct FramePort {
    queue: Queue,
    header: [u8; HEADER_BYTES],
}

enum Queue {
    /// The first queue of the interface.
    Xdp {
        socket: Box<XdpSocket>,
        _program: Program,
    },
    Packets {
        socket: socket2::Socket,
        frame: Box<[u8; FRAME_BYTES]>,
    },
    Memif {
        port: Box<Port>,
        frame: Box<[u8; FRAME_BYTES]>,
    },
}

impl std::fmt::Debug for FramePort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FramePort {:02x?}", self.header)
    }
}

impl FramePort {
    /// Opens an interface of this process's namespace for AF_XDP.
    ///
    /// # Errors
    /// If there is no such interface, or it takes no AF_XDP socket.
    pub fn open(interface: &str, peer: MacAddress) -> io::Result<Self> {
        let (index, own) = interface_facts(interface)?;
        let mut program = Program::attach(index)
            .map_err(|error| io::Error::new(error.kind(), format!("AF_XDP does not work on {interface}: {error}")))?;
        let socket = XdpSocket::open(index, 0, Options::default())?;
        program.insert(0, &socket)?;
        Ok(FramePort { queue: Queue::Xdp { socket: Box::new(socket), _program: program }, header: header(peer, own) })
    }

    /// Opens an interface of this process's namespace for a packet socket.
    ///
    /// # Errors
    /// If there is no such interface, or the process may not open the socket.
    pub fn open_packets(interface: &str, peer: MacAddress) -> io::Result<Self> {
        let (index, own) = interface_facts(interface)?;
        let socket = ethernet::open_whole_frames(index)?;
        socket.set_nonblocking(true)?;
        Ok(FramePort { queue: Queue::Packets { socket, frame: Box::new([0; FRAME_BYTES]) }, header: header(peer, own) })
    }

    /// Connects to a server of memif, which gets to know `name`.
    ///
    /// # Errors
    /// If no server answers within [`CONNECT_LIMIT`].
    pub fn connect(path: &Path, name: &str) -> io::Result<Self> {
        let options = ClientOptions { name: name.to_owned(), ..ClientOptions::default() };
        let port = namewire_memif::connect(path, &options, CONNECT_LIMIT)?;
        Ok(Self::memif(port, header(MEMIF_ROUTER, MEMIF_PEER)))
    }

    /// Waits at a socket for one client of memif.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn accept(listener: &Listener) -> io::Result<Self> {
        let readable = |descriptor: BorrowedFd<'_>| {
            poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], None).map(drop)
        };
        let mut handshake = loop {
            match listener.accept()? {
                Some(handshake) => break handshake,
                None => readable(listener.as_fd())?,
            }
        };
        let port = loop {
            match handshake.step()? {
                Progress::Ready(port) => break port,
                Progress::Pending => readable(handshake.as_fd())?,
            }
        };
        Ok(Self::memif(port, header(MEMIF_PEER, MEMIF_ROUTER)))
    }

    fn memif(port: Port, header: [u8; HEADER_BYTES]) -> Self {
        port.mask_interrupts(); // whoever receives looks at the ring, or waits in `sleep`
        FramePort { queue: Queue::Memif { port: Box::new(port), frame: Box::new([0; FRAME_BYTES]) }, header }
    }

    /// Queues a packet; false if there is no room before a flush.
    ///
    /// # Errors
    /// If the packet is larger than the link takes, or the link is broken.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        match &mut self.queue {
            Queue::Xdp { socket, .. } => Ok(socket.send(&[&self.header, packet])),
            Queue::Packets { socket, .. } => {
                let mut frame = [&self.header[..], packet].concat();
                frame.resize(frame.len().max(LEAST_FRAME_BYTES), 0);
                match socket.send(&frame) {
                    Err(error) if !is_transient(&error) => Err(error),
                    sent => Ok(sent.is_ok()),
                }
            }
            Queue::Memif { port, .. } if packet.len() + HEADER_BYTES > port.frame_bytes_max() => {
                Err(io::Error::new(ErrorKind::InvalidInput, "a packet is larger than the memory's buffers"))
            }
            Queue::Memif { port, .. } => Ok(port.send(&[&self.header, packet])),
        }
    }

    /// Sends what is queued.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.queue {
            Queue::Xdp { socket, .. } => socket.flush(),
            Queue::Packets { .. } => Ok(()),
            Queue::Memif { port, .. } => port.flush(),
        }
    }

    /// Whether a frame has come into shared memory. No system call.
    pub fn has_input(&self) -> bool {
        match &self.queue {
            Queue::Xdp { socket, .. } => socket.has_received(),
            Queue::Packets { .. } => false,
            Queue::Memif { port, .. } => port.has_input(),
        }
    }

    /// Shows the packet in each of at most 64 frames that have come, and returns their number.
    ///
    /// # Errors
    /// If the link is broken, or the peer of memif has left.
    pub fn receive(&mut self, mut visit: impl FnMut(&[u8])) -> io::Result<usize> {
        match &mut self.queue {
            Queue::Xdp { socket, .. } => Ok(socket.receive(BATCH, |frame| visit(packet_of(frame)))),
            Queue::Packets { socket, frame } => {
                for count in 0..BATCH {
                    match io::Read::read(socket, &mut frame[..]) {
                        // Frames to other stations, and our own to a group, are not for us.
                        Ok(_) if frame[..6] != self.header[6..12] => {}
                        Ok(bytes) => visit(packet_of(&frame[..bytes])),
                        Err(error) if is_transient(&error) => return Ok(count),
                        Err(error) => return Err(error),
                    }
                }
                Ok(BATCH)
            }
            Queue::Memif { port, frame: copy } => {
                let count = port.receive(BATCH, |frame| {
                    let bytes = frame.copy_to(&mut copy[..]);
                    visit(packet_of(&copy[..bytes]));
                });
                // A peer that has left sends nothing more.
                if count == 0 { port.check_peer().map(|()| 0) } else { Ok(count) }
            }
        }
    }

    /// The descriptor that reports a frame; `None` if whoever receives must look.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.queue {
            Queue::Xdp { socket, .. } => Some(socket.as_fd()),
            Queue::Packets { socket, .. } => Some(socket.as_fd()),
            Queue::Memif { .. } => None,
        }
    }

    /// Waits for the doorbell of memif, or for the end of the connection; not if frames wait, or without memif.
    pub(crate) fn sleep(&self, limit: Duration) -> io::Result<()> {
        let Queue::Memif { port, .. } = &self.queue else { return Ok(()) };
        if !port.unmask_interrupts() {
            let flags = PollFlags::IN;
            let descriptors = [port.doorbell(), port.control()];
            wait_for(&mut descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, flags)), limit)?;
        }
        port.mask_interrupts();
        port.clear_doorbell();
        Ok(())
    }
}

/// Number and address of an interface.
fn interface_facts(interface: &str) -> io::Result<(u32, MacAddress)> {
    let fact = |file: &str| std::fs::read_to_string(format!("/sys/class/net/{interface}/{file}"));
    let no_interface = || io::Error::new(ErrorKind::NotFound, format!("{interface} is no Ethernet interface"));
    let index = fact("ifindex")?.trim().parse().map_err(|_| ErrorKind::InvalidData)?;
    Ok((index, fact("address")?.trim().parse().map_err(|_| no_interface())?))
}

fn header(to: MacAddress, from: MacAddress) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..6].copy_from_slice(&to.0);
    header[6..12].copy_from_slice(&from.0);
    header[12..].copy_from_slice(&ETHERTYPE_NDN);
    header
}

/// The packet in a frame.
fn packet_of(frame: &[u8]) -> &[u8] {
    let packet = frame.get(HEADER_BYTES..).unwrap_or_default();
    let size = element_size(packet).ok().flatten().unwrap_or(packet.len()); // the rest is padding
    &packet[..size.min(packet.len())]
}
