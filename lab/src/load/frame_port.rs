//! An interface by AF_XDP: how load generator and relay send and receive Ethernet frames, so that they cost less than
//! the router that is measured. All frames go to one station.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::Context as _;
use namewire_afxdp::{Options, Program, XdpSocket};
use namewire_packet::nfd::MacAddress;
use namewire_packet::tlv::element_size;

/// Two addresses and the type of a frame.
const HEADER_BYTES: usize = 14;
const ETHERTYPE_NDN: [u8; 2] = [0x86, 0x24];
/// Frames that one call receives.
const BATCH: usize = 64;

/// The first queue of an interface, and the station at the other end of the cable.
pub(crate) struct FramePort {
    socket: XdpSocket,
    header: [u8; HEADER_BYTES],
    _program: Program,
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
        let mut header = [0; HEADER_BYTES];
        header[..6].copy_from_slice(&peer.0);
        header[6..12].copy_from_slice(&own.0);
        header[12..].copy_from_slice(&ETHERTYPE_NDN);
        Ok(FramePort { socket, header, _program: program })
    }

    /// Queues a packet; false if there is no room before a flush.
    pub(crate) fn send(&mut self, packet: &[u8]) -> bool {
        self.socket.send(&[&self.header, packet])
    }

    /// Sends what is queued.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }

    /// Shows the packet in each of at most 64 frames that have come, and returns their number.
    pub(crate) fn receive(&mut self, mut visit: impl FnMut(&[u8])) -> usize {
        self.socket.receive(BATCH, |frame| {
            let packet = frame.get(HEADER_BYTES..).unwrap_or_default();
            let size = element_size(packet).ok().flatten().unwrap_or(packet.len()); // the rest is padding
            visit(&packet[..size.min(packet.len())]);
        })
    }
}

impl AsFd for FramePort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
