//! Ethernet frames in shared memory: how load generator and relay send and receive them, so that they cost less than
//! the router that is measured. An interface by AF_XDP, or another process by memif. All frames go to one station.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use namewire_afxdp::{Options, Program, XdpSocket};
use namewire_memif::{ClientOptions, Listener, Port, Progress};
use namewire_packet::nfd::MacAddress;
use namewire_packet::tlv::element_size;
use rustix::event::{PollFd, PollFlags, poll};

/// Two addresses and the type of a frame.
const HEADER_BYTES: usize = 14;
const ETHERTYPE_NDN: [u8; 2] = [0x86, 0x24];
/// Frames that one call receives.
const BATCH: usize = 64;
/// A server that runs accepts at once.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of a frame copied out of memory that the peer may change. Longer frames are cut; the load sends none.
const FRAME_BYTES: usize = 9_216;

/// The address of the other end of memif, if it is a router's own listener or a device of DPDK that was given it; and
/// ours (those of NDN-DPDK).
pub(crate) const MEMIF_ROUTER: MacAddress = MacAddress([0xf2, 0x6c, 0xe6, 0x8d, 0x9e, 0x34]);
pub(crate) const MEMIF_PEER: MacAddress = MacAddress([0xf2, 0x71, 0x7e, 0x76, 0x5d, 0x1c]);

/// The first queue of an interface, or a connection of memif, and the station at its other end.
pub(crate) struct FramePort {
    queue: Queue,
    header: [u8; HEADER_BYTES],
}

enum Queue {
    Xdp { socket: Box<XdpSocket>, _program: Program },
    Memif { port: Box<Port>, frame: Box<[u8; FRAME_BYTES]> },
}

impl std::fmt::Debug for FramePort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FramePort {:02x?}", self.header)
    }
}

impl FramePort {
    /// Opens an interface of this process's namespace.
    pub(crate) fn open(interface: &str, peer: MacAddress) -> anyhow::Result<Self> {
        let fact = |file: &str| {
            let path = format!("/sys/class/net/{interface}/{file}");
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        let index: u32 = fact("ifindex")?.trim().parse()?;
        let own: MacAddress =
            fact("address")?.trim().parse().map_err(|_| anyhow::anyhow!("{interface}: no address"))?;
        let mut program = Program::attach(index).with_context(|| format!("AF_XDP does not work on {interface}"))?;
        let socket = XdpSocket::open(index, 0, Options::default())?;
        program.insert(0, &socket)?;
        Ok(FramePort { queue: Queue::Xdp { socket: Box::new(socket), _program: program }, header: header(peer, own) })
    }

    /// Connects to a server of memif.
    pub(crate) fn connect(path: &Path) -> anyhow::Result<Self> {
        let port = namewire_memif::connect(path, &ClientOptions::default(), CONNECT_LIMIT)
            .with_context(|| format!("memif does not work at {}", path.display()))?;
        port.mask_interrupts(); // whoever receives looks at the ring
        let queue = Queue::Memif { port: Box::new(port), frame: Box::new([0; FRAME_BYTES]) };
        Ok(FramePort { queue, header: header(MEMIF_ROUTER, MEMIF_PEER) })
    }

    /// Waits at a socket for one client of memif.
    pub(crate) fn accept(listener: &Listener) -> anyhow::Result<Self> {
        let mut handshake = loop {
            match listener.accept()? {
                Some(handshake) => break handshake,
                None => wait_for(listener.as_fd())?,
            }
        };
        let port = loop {
            match handshake.step()? {
                Progress::Ready(port) => break port,
                Progress::Pending => wait_for(handshake.as_fd())?,
            }
        };
        port.mask_interrupts(); // as above
        let queue = Queue::Memif { port: Box::new(port), frame: Box::new([0; FRAME_BYTES]) };
        Ok(FramePort { queue, header: header(MEMIF_PEER, MEMIF_ROUTER) })
    }

    /// Queues a packet; false if there is no room before a flush.
    pub(crate) fn send(&mut self, packet: &[u8]) -> bool {
        match &mut self.queue {
            Queue::Xdp { socket, .. } => socket.send(&[&self.header, packet]),
            Queue::Memif { port, .. } => port.send(&[&self.header, packet]),
        }
    }

    /// Sends what is queued.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.queue {
            Queue::Xdp { socket, .. } => socket.flush(),
            Queue::Memif { port, .. } => port.flush(),
        }
    }

    /// Whether a frame has come. No system call.
    pub(crate) fn has_input(&self) -> bool {
        match &self.queue {
            Queue::Xdp { socket, .. } => socket.has_received(),
            Queue::Memif { port, .. } => port.has_input(),
        }
    }

    /// Shows the packet in each of at most 64 frames that have come, and returns their number.
    pub(crate) fn receive(&mut self, mut visit: impl FnMut(&[u8])) -> usize {
        match &mut self.queue {
            Queue::Xdp { socket, .. } => socket.receive(BATCH, |frame| visit(packet_of(frame))),
            Queue::Memif { port, frame: copy } => port.receive(BATCH, |frame| {
                let bytes = frame.copy_to(&mut copy[..]);
                visit(packet_of(&copy[..bytes]));
            }),
        }
    }

    /// The descriptor that reports a frame; `None` if whoever receives must look.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.queue {
            Queue::Xdp { socket, .. } => Some(socket.as_fd()),
            Queue::Memif { .. } => None,
        }
    }
}

fn wait_for(descriptor: BorrowedFd<'_>) -> rustix::io::Result<()> {
    poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], None).map(drop)
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
