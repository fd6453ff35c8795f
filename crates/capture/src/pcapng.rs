//! Writes captured frames as pcapng (draft-ietf-opsawg-pcapng).
//!
//! Each face is an interface with its remote FaceUri as its name. A frame becomes an Ethernet frame of the type of NDN,
//! 0x8624, with invented addresses, whatever the link really was: Wireshark's dissector and ndndump both know this
//! form. The statistics of an interface come last; their `isb_ifdrop` counts the frames that the router could not keep.
//!
//! N.B. We write the format ourselves: the last stable release of the crate `pcap-file` is from 2022 and adds four
//! crates, for only the four kinds of blocks below.

use namewire_packet::nfd::{CaptureFace, CaptureFrame};
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// Not known when the section begins.
const SECTION_LENGTH_UNKNOWN: u64 = u64::MAX;
const LINKTYPE_ETHERNET: u16 = 1;

const OPTION_END: u16 = 0;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// Times are in units of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// The direction in `epb_flags`.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// The number that stands for all nodes.
const EVERYBODY: u64 = u64::MAX;

const ETHERTYPE_NDN: [u8; 2] = [0x86, 0x24];
const ETHERNET_HEADER_BYTES: usize = 14;

/// A file with one section.
pub struct PcapngWriter<W> {
    out: W,
    snap_bytes: u32,
    interfaces: u32,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins the section. `snap_bytes` are kept of each frame; 0 means all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(out: W, snap_bytes: u32) -> io::Result<Self> {
        let mut writer = PcapngWriter { out, snap_bytes, interfaces: 0 };
        let mut body = Vec::new();
        body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        body.extend([1u16, 0].map(u16::to_le_bytes).as_flattened());
        body.extend(SECTION_LENGTH_UNKNOWN.to_le_bytes());
        option(&mut body, SHB_USERAPPL, concat!("namewire ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(&mut body, OPTION_END, &[]);
        writer.block(SECTION_HEADER, &body)?;
        Ok(writer)
    }

    /// Adds a face; returns the number of its interface.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn interface(&mut self, face: &CaptureFace) -> io::Result<u32> {
        let snap_bytes = if self.snap_bytes == 0 { 0 } else { self.snap_bytes + ETHERNET_HEADER_BYTES as u32 };
        let mut body = Vec::new();
        body.extend([LINKTYPE_ETHERNET, 0].map(u16::to_le_bytes).as_flattened());
        body.extend(snap_bytes.to_le_bytes());
        option(&mut body, IF_NAME, face.remote.as_bytes());
        option(&mut body, IF_DESCRIPTION, format!("face {} at {}", face.face, face.local).as_bytes());
        option(&mut body, IF_TSRESOL, &[NANOSECONDS]);
        option(&mut body, OPTION_END, &[]);
        self.block(INTERFACE_DESCRIPTION, &body)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn frame(&mut self, interface: u32, frame: &CaptureFrame) -> io::Result<()> {
        let (peer, router) = (frame.face.0, 0);
        let (destination, source) = if frame.is_sent { (peer, router) } else { (router, peer) };
        let flags = if frame.is_sent { OUTBOUND } else { INBOUND };
        self.ethernet_frame(interface, frame.time_ns, [destination, source], flags, frame.len, &frame.bytes)
    }

    /// Adds a whole frame that a node sent to another one, or to all if there is no other. Nodes have numbers from 1.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn frame_between(
        &mut self,
        interface: u32,
        time_ns: u64,
        source: u64,
        destination: Option<u64>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let destination = destination.unwrap_or(EVERYBODY);
        self.ethernet_frame(interface, time_ns, [destination, source], OUTBOUND, bytes.len() as u64, bytes)
    }

    fn ethernet_frame(
        &mut self,
        interface: u32,
        time_ns: u64,
        addresses: [u64; 2],
        flags: u32,
        len: u64,
        bytes: &[u8],
    ) -> io::Result<()> {
        let kept = (ETHERNET_HEADER_BYTES + bytes.len()) as u32;
        let len = ETHERNET_HEADER_BYTES as u32 + u32::try_from(len).unwrap_or(u32::MAX >> 1);
        let mut body = Vec::new();
        body.extend(interface.to_le_bytes());
        time(&mut body, time_ns);
        body.extend([kept, len].map(u32::to_le_bytes).as_flattened());
        let [destination, source] = addresses.map(address);
        body.extend([&destination[..], &source, &ETHERTYPE_NDN, bytes].concat());
        pad(&mut body);
        option(&mut body, EPB_FLAGS, &flags.to_le_bytes());
        option(&mut body, OPTION_END, &[]);
        self.block(ENHANCED_PACKET, &body)
    }

    /// Says how many frames of an interface were written, and how many the router could not keep.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn statistics(&mut self, interface: u32, time_ns: u64, frames: u64, missed: u64) -> io::Result<()> {
        let mut body = Vec::new();
        body.extend(interface.to_le_bytes());
        time(&mut body, time_ns);
        option(&mut body, ISB_IFRECV, &(frames + missed).to_le_bytes());
        option(&mut body, ISB_IFDROP, &missed.to_le_bytes());
        option(&mut body, OPTION_END, &[]);
        self.block(INTERFACE_STATISTICS, &body)
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let total = (body.len() + 12) as u32;
        self.out.write_all([kind, total].map(u32::to_le_bytes).as_flattened())?;
        self.out.write_all(body)?;
        self.out.write_all(&total.to_le_bytes())
    }
}

/// A locally administered address with the number of a face; 0 stands for the router.
fn address(face: u64) -> [u8; 6] {
    if face == EVERYBODY {
        return [0xff; 6];
    }
    let [.., a, b, c, d] = face.to_be_bytes();
    [0x02, 0, a, b, c, d]
}

fn time(body: &mut Vec<u8>, time_ns: u64) {
    body.extend([(time_ns >> 32) as u32, time_ns as u32].map(u32::to_le_bytes).as_flattened());
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend([code, value.len() as u16].map(u16::to_le_bytes).as_flattened());
    body.extend_from_slice(value);
    pad(body);
}

/// Everything is padded to 32 bits. Bodies begin at such a boundary.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}
