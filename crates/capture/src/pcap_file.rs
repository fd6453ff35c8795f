//! Captured frames read from files and streams, pcap or pcapng, by the crate `pcap-parser`.
//!
//! Errors have the words of libpcap, because scripts know them.

use pcap_parser::{
    Block, LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader, pcapng::InterfaceDescriptionBlock,
    traits::PcapReaderIterator,
};
use std::io::{self, Cursor, Read};

/// Bytes read at once; a larger block makes the buffer grow.
const BUFFER_BYTES: usize = 256 * 1024;
/// Largest block.
const BLOCK_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The header of a pcap file.
const HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// What a pcapng file begins with, in either byte order.
const SECTION_HEADER: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// What a pcap file begins with: microseconds, nanoseconds.
const PCAP_MAGICS: [u32; 2] = [0xA1B2_C3D4, 0xA1B2_3C4D];

/// A captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'a> {
    /// When, in seconds since 1970.
    pub seconds: u64,
    /// And microseconds.
    pub microseconds: u32,
    /// Bytes of the frame on the wire.
    pub wire_bytes: usize,
    /// Those that were kept.
    pub bytes: &'a [u8],
}

/// Why frames cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The input ends too early.
    #[error("truncated dump file; tried to read {wanted} {what} bytes, only got {got}")]
    Truncated {
        /// Of what.
        what: &'static str,
        /// Bytes wanted.
        wanted: usize,
        /// Bytes there.
        got: usize,
    },
    /// Neither pcap nor pcapng.
    #[error("unknown file format")]
    UnknownFormat,
    /// A block makes no sense.
    #[error("malformed block")]
    Malformed,
    /// Frames of two kinds.
    #[error("an interface has a type {0} different from the type of the first interface")]
    OtherLink(u16),
    /// The input cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An input of captured frames.
pub struct PcapFile {
    reader: Box<dyn PcapReaderIterator + Send>,
    /// Units of time in a second, of a pcap file.
    resolution: u64,
    /// The interfaces of a pcapng section: offset in seconds, units in a second.
    interfaces: Vec<(u64, u64)>,
    link: u16,
    frame: Vec<u8>,
}

/// What a block was.
enum Step {
    Frame { seconds: u64, microseconds: u32, wire_bytes: usize },
    Nothing,
    End,
}

impl PcapFile {
    /// Reads the header, up to the type of the frames.
    ///
    /// # Errors
    /// If the input is neither pcap nor pcapng, or ends before.
    pub fn open(mut input: impl Read + Send + 'static) -> Result<Self, ReadError> {
        let mut head = Vec::new();
        let what = "file header";
        take(&mut input, &mut head, 4)?;
        if head.len() < 4 {
            return Err(ReadError::Truncated { what, wanted: 4, got: head.len() });
        }
        let magic = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let is_pcap = PCAP_MAGICS.iter().any(|known| [magic, magic.swap_bytes()].contains(known));
        let is_pcapng = head == SECTION_HEADER;
        if !is_pcap && !is_pcapng {
            return Err(ReadError::UnknownFormat);
        }
        take(&mut input, &mut head, HEADER_BYTES - 4)?;
        if head.len() < HEADER_BYTES {
            return Err(ReadError::Truncated { what, wanted: HEADER_BYTES, got: head.len() - 4 });
        }
        if is_pcapng {
            let rest = section_header_bytes(&head).saturating_sub(HEADER_BYTES);
            take(&mut input, &mut head, rest)?;
        }
        let input = Cursor::new(head).chain(input);
        let failed = |_| ReadError::UnknownFormat;
        let reader: Box<dyn PcapReaderIterator + Send> = match is_pcap {
            true => Box::new(LegacyPcapReader::new(BUFFER_BYTES, input).map_err(failed)?),
            false => Box::new(PcapNGReader::new(BUFFER_BYTES, input).map_err(failed)?),
        };
        let mut file = PcapFile { reader, resolution: 0, interfaces: Vec::new(), link: 0, frame: Vec::new() };
        while file.resolution == 0 && file.interfaces.is_empty() {
            if let Step::End = file.step()? {
                return Err(ReadError::Truncated { what: "interface", wanted: 20, got: 0 });
            }
        }
        Ok(file)
    }

    /// The type of the frames (the registry of link types at tcpdump.org).
    pub fn link(&self) -> u16 {
        self.link
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// If the input is damaged.
    pub fn next_frame(&mut self) -> Result<Option<Captured<'_>>, ReadError> {
        loop {
            match self.step()? {
                Step::Frame { seconds, microseconds, wire_bytes } => {
                    return Ok(Some(Captured { seconds, microseconds, wire_bytes, bytes: &self.frame }));
                }
                Step::Nothing => {}
                Step::End => return Ok(None),
            }
        }
    }

    /// Reads a block.
    fn step(&mut self) -> Result<Step, ReadError> {
        loop {
            let needs_room = match self.reader.next() {
                Ok((bytes, block)) => {
                    let step = note(block, &mut self.resolution, &mut self.interfaces, &mut self.link, &mut self.frame);
                    self.reader.consume(bytes);
                    return step;
                }
                Err(PcapError::Eof) => return Ok(Step::End),
                Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof) => false,
                Err(PcapError::BufferTooSmall) => true,
                Err(_) => return Err(ReadError::Malformed),
            };
            if self.reader.reader_exhausted() {
                return Err(self.truncated());
            }
            let size = self.reader.data().len() * 2;
            if needs_room && (size > BLOCK_BYTES_MAX || !self.reader.grow(size)) {
                return Err(ReadError::Malformed);
            }
            self.reader.refill().map_err(|_| io::Error::other("the input cannot be read"))?;
        }
    }

    fn truncated(&self) -> ReadError {
        let rest = self.reader.data();
        match rest.get(8..12).filter(|_| rest.len() >= RECORD_HEADER_BYTES && self.interfaces.is_empty()) {
            Some(length) => {
                // The byte order that makes a length of it.
                let le = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
                let wanted = le.min(le.swap_bytes()) as usize;
                ReadError::Truncated { what: "captured", wanted, got: rest.len() - RECORD_HEADER_BYTES }
            }
            None => ReadError::Truncated { what: "header", wanted: RECORD_HEADER_BYTES, got: rest.len() },
        }
    }
}

/// Appends up to `bytes` bytes of the input.
fn take(input: &mut impl Read, head: &mut Vec<u8>, bytes: usize) -> io::Result<()> {
    input.by_ref().take(bytes as u64).read_to_end(head).map(drop)
}

/// Bytes of a section header block, of which these are the first.
fn section_header_bytes(head: &[u8]) -> usize {
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let bytes = if word(8) == BYTE_ORDER_MAGIC { word(4) } else { word(4).swap_bytes() };
    (bytes as usize).min(BUFFER_BYTES)
}

fn note(
    block: PcapBlockOwned<'_>,
    resolution: &mut u64,
    interfaces: &mut Vec<(u64, u64)>,
    link: &mut u16,
    frame: &mut Vec<u8>,
) -> Result<Step, ReadError> {
    frame.clear();
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            *link = header.network.0 as u16;
            *resolution = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            Ok(Step::Nothing)
        }
        PcapBlockOwned::Legacy(record) => {
            frame.extend_from_slice(record.data);
            Ok(Step::Frame {
                seconds: record.ts_sec.into(),
                microseconds: (u64::from(record.ts_usec) * 1_000_000 / *resolution) as u32,
                wire_bytes: record.origlen as usize,
            })
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            Ok(Step::Nothing)
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            add_interface(&interface, interfaces, link)?;
            Ok(Step::Nothing)
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let (offset, units) = *interfaces.get(packet.if_id as usize).ok_or(ReadError::Malformed)?;
            let time = (u64::from(packet.ts_high) << 32) | u64::from(packet.ts_low);
            let kept = packet.data.get(..packet.caplen as usize).ok_or(ReadError::Malformed)?;
            frame.extend_from_slice(kept);
            Ok(Step::Frame {
                seconds: (time / units).wrapping_add(offset),
                microseconds: (u128::from(time % units) * 1_000_000 / u128::from(units)) as u32,
                wire_bytes: packet.origlen as usize,
            })
        }
        PcapBlockOwned::NG(_) => Ok(Step::Nothing),
    }
}

fn add_interface(
    interface: &InterfaceDescriptionBlock<'_>,
    interfaces: &mut Vec<(u64, u64)>,
    link: &mut u16,
) -> Result<(), ReadError> {
    let its = interface.linktype.0 as u16;
    if *link != its && !interfaces.is_empty() {
        return Err(ReadError::OtherLink(its));
    }
    *link = its;
    let units = interface.ts_resolution().filter(|units| *units > 0).ok_or(ReadError::Malformed)?;
    interfaces.push((interface.ts_offset() as u64, units));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcapng::PcapngWriter;
    use namewire_packet::nfd::{CaptureFace, CaptureFrame};

    /// A pcap file of Ethernet frames, little-endian or big-endian.
    fn pcap(magic: u32, is_big: bool, frames: &[&[u8]]) -> Vec<u8> {
        let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let version = if is_big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
        let mut file = [word(magic), version, word(0), word(0), word(65_535), word(1)].concat();
        for frame in frames {
            let length = word(frame.len() as u32);
            file.extend([word(7), word(5000), length, length].concat());
            file.extend_from_slice(frame);
        }
        file
    }

    fn read(file: &[u8]) -> Result<Vec<(u64, u32, Vec<u8>)>, String> {
        let mut file = PcapFile::open(Cursor::new(file.to_vec())).map_err(|error| error.to_string())?;
        assert_eq!(file.link(), 1);
        let mut frames = Vec::new();
        while let Some(frame) = file.next_frame().map_err(|error| error.to_string())? {
            assert_eq!(frame.wire_bytes, frame.bytes.len());
            frames.push((frame.seconds, frame.microseconds, frame.bytes.to_vec()));
        }
        Ok(frames)
    }

    #[test]
    fn pcap_files_of_all_kinds_are_read() {
        let frames: [&[u8]; 2] = [b"a frame", b"another"];
        for (magic, microseconds) in [(PCAP_MAGICS[0], 5000), (PCAP_MAGICS[1], 5)] {
            for is_big in [false, true] {
                let found = read(&pcap(magic, is_big, &frames)).unwrap();
                assert_eq!(found, frames.map(|frame| (7, microseconds, frame.to_vec())));
            }
        }
    }

    #[test]
    fn a_frame_may_be_larger_than_the_buffer() {
        let large = vec![1; 3 * BUFFER_BYTES];
        let found = read(&pcap(PCAP_MAGICS[0], false, &[&large, b"small"])).unwrap();
        assert_eq!((found[0].2.len(), found[1].2.as_slice()), (large.len(), &b"small"[..]));
    }

    #[test]
    fn our_own_captures_are_read() {
        let mut bytes = Vec::new();
        let mut writer = PcapngWriter::new(&mut bytes, 0).unwrap();
        let interface = writer.interface(&CaptureFace::default()).unwrap();
        let frame = CaptureFrame { time_ns: 3_000_004_999, bytes: [5, 0].into(), len: 2, ..CaptureFrame::default() };
        writer.frame(interface, &frame).unwrap();
        writer.statistics(interface, 0, 1, 0).unwrap();
        let found = read(&bytes).unwrap();
        assert_eq!((found.len(), found[0].0, found[0].1), (1, 3, 4));
        assert_eq!(found[0].2[12..], [0x86, 0x24, 5, 0]);
    }

    #[test]
    fn what_is_damaged_gets_the_words_of_libpcap() {
        let file = pcap(PCAP_MAGICS[0], false, &[b"a frame of 20 bytes."]);
        let cut = |bytes: usize| read(&file[..bytes]).unwrap_err();
        assert_eq!(cut(0), "truncated dump file; tried to read 4 file header bytes, only got 0");
        assert_eq!(cut(10), "truncated dump file; tried to read 24 file header bytes, only got 6");
        assert_eq!(cut(30), "truncated dump file; tried to read 16 header bytes, only got 6");
        assert_eq!(cut(44), "truncated dump file; tried to read 20 captured bytes, only got 4");
        assert_eq!(read(b"nothing of the kind").unwrap_err(), "unknown file format");
    }
}
