//! The NDNLPv2 link service of one face: frames in, network packets out, and back.
//!
//! Sans-IO: no socket, no clock. `now_ns` is any monotonic time.
//!
//! ```text
//!   frame ─► shape: one whole element ─► bare Interest / Data ────────────────► packet
//!                                     └► LpPacket ─► fragments ─► legality §4 ─► packet
//! ```
//!
//! A frame with one fault is dropped with its [`LinkDrop`]; the face stays open
//! (NDNLPv2 §1). The inside of the network packet is not looked at: only that it is
//! one Interest or Data element that exactly fills its frame or Fragment.
//!
//! Differences from NFD, all on purpose: a PitToken is kept on Data and on Nacks,
//! because our own tokens come back on them and downstream tokens are echoed on
//! them; reliability (§5) is not implemented, so TxSequence and Ack are ignored.
//!
//! A PrefixAnnouncement travels in front of its Data, in the same octets: see
//! [`LpHeaders::announcement_bytes`]. Of a fragmented Data, both together are at most 8800 octets.

use namewire_packet::lp::{self, LinkFields, LpHeaders, LpPacket};
use namewire_packet::tlv::{self, types};
use namewire_packet::{MAX_PACKET_BYTES, PacketError};

use crate::fragmentation::Fragmenter;
use crate::reassembly::Reassembler;
use crate::reassembly::{DEFAULT_REASSEMBLY_OCTETS, Envelope, FragmentIn, MAX_FRAGMENTS};
use crate::{LinkCounters, LinkDrop};

/// Most octets of all link headers but an announcement.
const HEADER_OCTETS_MAX: usize = 128;

/// Settings of one link service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// Cut packets above the MTU and accept fragments. On for datagram links.
    pub fragmentation: bool,
    /// Largest frame sent, in octets. Values above 8800 mean 8800: no peer takes more.
    pub mtu: usize,
    /// Accept NextHopFaceId and send IncomingFaceId (the peer is a local application that asked).
    pub local_fields: bool,
    /// Most octets of unfinished fragmented packets held, at least 8800.
    pub reassembly_octets: usize,
    /// Sequence number of the first fragment sent; any number will do.
    pub first_sequence: u64,
}

impl Default for LinkOptions {
    fn default() -> Self {
        LinkOptions {
            fragmentation: false,
            mtu: MAX_PACKET_BYTES,
            local_fields: false,
            reassembly_octets: DEFAULT_REASSEMBLY_OCTETS,
            first_sequence: 0,
        }
    }
}

/// What a frame turned out to be.
#[derive(Debug, PartialEq)]
pub enum Received<'a> {
    /// A network packet, `frame[start..start + len]`, with its announcement in front if the headers say so.
    Packet {
        /// Its link headers, checked to be legal on it.
        headers: LpHeaders,
        /// Offset in the frame, in octets.
        start: usize,
        /// Size in octets.
        len: usize,
    },
    /// The last missing fragment of a network packet.
    Reassembled {
        /// Its link headers, checked to be legal on it.
        headers: LpHeaders,
        /// The packet, valid until the next call.
        packet: &'a [u8],
    },
    /// A fragment; others are missing.
    Incomplete,
    /// An LpPacket without Fragment (keep-alive or acknowledgements).
    Idle,
}

/// State of one link: options, reassembly, sequence numbers, counters.
pub struct LinkService {
    options: LinkOptions,
    reassembler: Reassembler,
    fragmenter: Fragmenter,
    counters: LinkCounters,
    peer_speaks_lp: bool,
    scratch: Vec<u8>,
}

/// [`Received`] before the borrow of the assembled octets.
enum Accepted {
    Packet { headers: LpHeaders, start: usize, len: usize },
    Reassembled { headers: LpHeaders },
    Incomplete,
    Idle,
}

impl LinkService {
    /// A link on which nothing was said yet.
    pub fn new(options: LinkOptions) -> Self {
        LinkService {
            options: LinkOptions { mtu: options.mtu.min(MAX_PACKET_BYTES), ..options },
            reassembler: Reassembler::new(options.reassembly_octets),
            fragmenter: Fragmenter::new(options.first_sequence),
            counters: LinkCounters::default(),
            peer_speaks_lp: false,
            scratch: Vec::new(),
        }
    }

    /// Takes one frame: a datagram, or one element of a stream. Counts what it was.
    pub fn receive(&mut self, now_ns: u64, frame: &[u8]) -> Result<Received<'_>, LinkDrop> {
        self.counters.in_octets += frame.len() as u64;
        let accepted = match self.accept(now_ns, frame) {
            Ok(accepted) => accepted,
            Err(reason) => {
                self.counters.count_drop(reason);
                return Err(reason);
            }
        };
        Ok(match accepted {
            Accepted::Packet { headers, start, len } => {
                self.count_received(&headers, u32::from(frame[start]));
                Received::Packet { headers, start, len }
            }
            Accepted::Reassembled { headers } => {
                self.count_received(&headers, u32::from(self.reassembler.assembled()[0]));
                Received::Reassembled { headers, packet: self.reassembler.assembled() }
            }
            Accepted::Incomplete => Received::Incomplete,
            Accepted::Idle => Received::Idle,
        })
    }

    /// Hands out the frames of one network packet as (header octets, slice of `packet`);
    /// each call of `emit` is one frame. A packet that needs no header goes bare.
    /// IncomingFaceId goes out only with local fields on; NextHopFaceId and CachePolicy,
    /// which only applications set, never do (NDNLPv2 §4).
    pub fn encode(
        &mut self,
        headers: &LpHeaders,
        packet: &[u8],
        mut emit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), LinkDrop> {
        let announcement = headers.announcement(packet);
        let packet = headers.packet(packet);
        // The Data matters more: it goes alone if both do not fit into what a peer takes.
        let announcement =
            announcement.filter(|octets| octets.len() + packet.len() + HEADER_OCTETS_MAX <= MAX_PACKET_BYTES);
        let headers = LpHeaders {
            announcement_bytes: announcement.map_or(0, |octets| octets.len() as u16),
            ..self.headers_to_send(headers)
        };
        let mut out_octets = 0;
        let mut count_and_emit = |header: &[u8], slice: &[u8]| {
            out_octets += (header.len() + slice.len()) as u64;
            emit(header, slice);
        };
        self.scratch.clear();
        if !headers.is_empty() {
            let link = LinkFields { prefix_announcement: announcement, ..LinkFields::default() };
            lp::write_headers(&mut self.scratch, &headers, &link, packet.len());
        }
        let sent = if self.scratch.len() + packet.len() <= self.options.mtu {
            count_and_emit(&self.scratch, packet);
            Ok(())
        } else if self.options.fragmentation && packet.len() <= MAX_PACKET_BYTES {
            let (mtu, scratch) = (self.options.mtu, &mut self.scratch);
            self.fragmenter.split((&headers, announcement), packet, mtu, scratch, &mut count_and_emit)
        } else {
            Err(LinkDrop::PacketTooLarge)
        };
        self.counters.out_octets += out_octets;
        match sent {
            Err(reason) => self.counters.count_drop(reason),
            Ok(()) if headers.nack.is_some() => self.counters.out_nacks += 1,
            Ok(()) if packet.first() == Some(&(types::INTEREST as u8)) => {
                self.counters.out_interests += 1;
            }
            Ok(()) => self.counters.out_data += 1,
        }
        sent
    }

    /// True once the peer has sent an LpPacket, so that it understands link headers.
    pub fn peer_speaks_lp(&self) -> bool {
        self.peer_speaks_lp
    }

    /// When [`LinkService::expire`] has something to do.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.reassembler.next_deadline_ns()
    }

    /// Gives up fragmented packets whose time is over, and counts them.
    pub fn expire(&mut self, now_ns: u64) {
        self.counters.drops[LinkDrop::ReassemblyTimeout as usize] += self.reassembler.expire(now_ns);
    }

    /// What went through so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Counts a drop that the transport decided.
    pub fn count_drop(&mut self, reason: LinkDrop) {
        self.counters.count_drop(reason);
    }

    /// Current settings.
    pub fn options(&self) -> &LinkOptions {
        &self.options
    }

    /// Changes the largest frame sent.
    pub fn set_mtu(&mut self, mtu: usize) {
        self.options.mtu = mtu.min(MAX_PACKET_BYTES);
    }

    /// Turns local fields on or off.
    pub fn set_local_fields(&mut self, on: bool) {
        self.options.local_fields = on;
    }

    fn accept(&mut self, now_ns: u64, frame: &[u8]) -> Result<Accepted, LinkDrop> {
        match check_shape(frame)? {
            types::INTEREST | types::DATA => {
                Ok(Accepted::Packet { headers: LpHeaders::default(), start: 0, len: frame.len() })
            }
            _ => self.accept_lp_packet(now_ns, frame),
        }
    }

    fn accept_lp_packet(&mut self, now_ns: u64, frame: &[u8]) -> Result<Accepted, LinkDrop> {
        let lp = LpPacket::parse(frame).map_err(lp_drop)?;
        self.peer_speaks_lp = true;
        let Some(fragment) = lp.fragment else {
            return Ok(Accepted::Idle);
        };
        if lp.has_fragmentation_fields && !self.options.fragmentation {
            return Err(LinkDrop::FragmentationOff);
        }
        if lp.frag_index >= lp.frag_count {
            return Err(LinkDrop::FragIndexOutOfRange);
        }
        if lp.frag_count > MAX_FRAGMENTS {
            return Err(LinkDrop::TooManyFragments);
        }
        let (start, end) = (carried_from(&lp), lp.fragment_offset + fragment.len());
        let headers = LpHeaders { announcement_bytes: (lp.fragment_offset - start) as u16, ..lp.headers };
        let envelope = Envelope { headers, has_prefix_announcement: lp.prefix_announcement.is_some() };
        if lp.frag_count == 1 {
            let headers = check_headers(&envelope, fragment, &self.options)?;
            return Ok(Accepted::Packet { headers, start, len: end - start });
        }
        let fragment = FragmentIn {
            sequence: lp.sequence,
            frag_index: lp.frag_index,
            frag_count: lp.frag_count,
            envelope,
            payload: &frame[start..end],
        };
        match self.reassembler.accept(now_ns, fragment, &mut self.counters)? {
            Some(envelope) => {
                let packet = envelope.headers.packet(self.reassembler.assembled());
                let headers = check_headers(&envelope, packet, &self.options)?;
                Ok(Accepted::Reassembled { headers })
            }
            None => Ok(Accepted::Incomplete),
        }
    }

    fn headers_to_send(&self, headers: &LpHeaders) -> LpHeaders {
        LpHeaders {
            incoming_face_id: headers.incoming_face_id.filter(|_| self.options.local_fields),
            next_hop_face_id: None,
            no_cache: false,
            ..*headers
        }
    }

    fn count_received(&mut self, headers: &LpHeaders, packet_type: u32) {
        if headers.nack.is_some() {
            self.counters.in_nacks += 1;
        } else if packet_type == types::INTEREST {
            self.counters.in_interests += 1;
        } else {
            self.counters.in_data += 1;
        }
    }
}

/// Where the octets begin that are handed on: at the Fragment, or at the announcement before it.
/// Only a first fragment's headers count (NDNLPv2 §2).
fn carried_from(lp: &LpPacket<'_>) -> usize {
    match lp.prefix_announcement {
        Some(_) if lp.frag_index == 0 => lp.prefix_announcement_offset,
        _ => lp.fragment_offset,
    }
}

/// Checks that `frame` is exactly one Interest, Data or LpPacket element of at most
/// 8800 octets, and returns its type. The value is not looked at.
pub fn check_shape(frame: &[u8]) -> Result<u32, LinkDrop> {
    if frame.len() > MAX_PACKET_BYTES {
        return Err(LinkDrop::OversizeElement);
    }
    let size = match tlv::element_size(frame) {
        Ok(Some(size)) => size,
        Ok(None) => return Err(LinkDrop::TruncatedElement),
        Err(_) => return Err(LinkDrop::MalformedElement),
    };
    if size > frame.len() {
        return Err(LinkDrop::TruncatedElement);
    }
    if size < frame.len() {
        return Err(LinkDrop::TrailingOctets);
    }
    match u32::from(frame[0]) {
        known @ (types::INTEREST | types::DATA | types::LP_PACKET) => Ok(known),
        _ => Err(LinkDrop::UnknownType),
    }
}

/// NDNLPv2 §4, "Received": which header is legal on which packet. Returns the headers
/// without those that a forwarder ignores.
fn check_headers(envelope: &Envelope, packet: &[u8], options: &LinkOptions) -> Result<LpHeaders, LinkDrop> {
    let is_interest = match check_shape(packet) {
        Ok(types::INTEREST) => true,
        Ok(types::DATA) => false,
        Ok(_) => return Err(LinkDrop::NestedLpPacket),
        Err(_) => return Err(LinkDrop::FragmentNotPacket),
    };
    let headers = LpHeaders { incoming_face_id: None, ..envelope.headers };
    let is_nack = headers.nack.is_some();
    if is_nack && !is_interest {
        return Err(LinkDrop::NackWithoutInterest);
    }
    let is_plain_interest = is_interest && !is_nack;
    if headers.next_hop_face_id.is_some() {
        if !is_plain_interest {
            return Err(LinkDrop::MisplacedNextHopFaceId);
        }
        if !options.local_fields {
            return Err(LinkDrop::LocalFieldsOff);
        }
    }
    if headers.no_cache && is_interest {
        return Err(LinkDrop::MisplacedCachePolicy);
    }
    if headers.non_discovery && !is_plain_interest {
        return Err(LinkDrop::MisplacedNonDiscovery);
    }
    if envelope.has_prefix_announcement && is_interest {
        return Err(LinkDrop::MisplacedPrefixAnnouncement);
    }
    Ok(headers)
}

fn lp_drop(_: PacketError) -> LinkDrop {
    // N.B. the parser's reason is finer, but one counter per grammar rule would tell
    // an operator nothing more: the peer's encoder is broken.
    LinkDrop::MalformedLpHeader
}
