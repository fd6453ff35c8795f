//! The NDNLPv2 link service of one face: frames in, network packets out, and back.
//!
//! Sans-IO: no socket, no clock. `now_ns` is any monotonic time.
//!
//! ```text
//!   frame ─► shape: one whole element ─► bare Interest, Data or tag packet ────► packet
//!                                     └► LpPacket ─► fragments ─► legality §4 ─► packet
//! ```
//!
//! A frame with one fault is dropped with its [`LinkDrop`]; the face stays open (NDNLPv2 §1). The link service does not
//! parse the network packet. It only checks that its frame or Fragment is exactly one Interest, Data or tag packet.
//!
//! Reliability ([`crate::reliability`]) and congestion marks ([`crate::congestion`]) are off unless a [`LinkPolicy`]
//! turns them on. While they are off, TxSequence and Ack are ignored.
//!
//! Deliberate differences from NFD:
//!
//! * A PitToken is kept on Data and on Nacks, because upstreams return our own tokens on them, and we return downstream
//!   tokens on them.
//! * A congestion mark is on the packet, not on each fragment.
//! * A packet that fits the MTU unchanged is sent in one frame; NFD keeps room for fields that it may not need.
//!
//! A PrefixAnnouncement travels in front of its Data, in the same bytes: see [`LpHeaders::lead_bytes`]. If a
//! Data is fragmented, the announcement and the Data together have at most 8800 bytes.

mod encoding;
mod lane_hellos;
mod tapping;

use namewire_packet::lane_hello::LaneHello;
use namewire_packet::lp::{LpHeaders, LpPacket};
use namewire_packet::tlv::types;
use namewire_packet::{MAX_PACKET_BYTES, PacketError};

use crate::capture::FaceTap;
use crate::congestion::CongestionMarker;
use crate::fragmentation::Fragmenter;
use crate::legality::check_headers;
pub use crate::legality::{Shape, check_shape};
use crate::reassembly::Reassembler;
use crate::reassembly::{DEFAULT_REASSEMBLY_BYTES, Envelope, FragmentIn, MAX_FRAGMENTS};
use crate::reliability::Reliability;
use crate::{LinkCounters, LinkDrop, LinkPolicy};
use lane_hellos::LaneHellos;

/// Bytes that each of reliability and congestion marking takes from the MTU of fragments
/// (NDNLPv2 §2): NFD cuts there.
const RESERVED_BYTES: usize = 12;

/// Settings of one link service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// Cut packets above the MTU and accept fragments. On for datagram links.
    pub fragmentation: bool,
    /// Largest frame sent, in bytes. Values above 8800 mean 8800: no peer takes more.
    pub mtu: usize,
    /// Accept NextHopFaceId and send IncomingFaceId (the peer is a local application that asked).
    pub local_fields: bool,
    /// Most bytes of unfinished fragmented packets held, at least 8800.
    pub reassembly_bytes: usize,
    /// Sequence number of the first fragment sent; any number will do.
    pub first_sequence: u64,
    /// Reliability and congestion marks. Default: none.
    pub policy: LinkPolicy,
}

impl Default for LinkOptions {
    fn default() -> Self {
        LinkOptions {
            fragmentation: false,
            mtu: MAX_PACKET_BYTES,
            local_fields: false,
            reassembly_bytes: DEFAULT_REASSEMBLY_BYTES,
            first_sequence: 0,
            policy: LinkPolicy::default(),
        }
    }
}

/// What a frame contained.
#[derive(Debug, PartialEq)]
pub enum Received<'a> {
    /// A network packet, `frame[start..start + len]`, with its announcement in front if the headers say so.
    Packet {
        /// Its link headers, checked to be legal on it.
        headers: LpHeaders,
        /// Offset in the frame, in bytes.
        start: usize,
        /// Size in bytes.
        len: usize,
    },
    /// The last missing fragment of a network packet.
    Reassembled {
        /// Its link headers, checked to be legal on it.
        headers: LpHeaders,
        /// The packet, valid until the next call.
        packet: &'a [u8],
    },
    /// A fragment of a packet whose other fragments are missing.
    Incomplete,
    /// An LpPacket without Fragment (keep-alive or acknowledgements).
    Idle,
}

/// State of one link: options, reassembly, sequence numbers, counters.
pub struct LinkService {
    options: LinkOptions,
    reassembler: Reassembler,
    fragmenter: Fragmenter,
    /// N.B. boxed: most links have no reliability.
    reliability: Option<Box<Reliability>>,
    congestion: CongestionMarker,
    counters: LinkCounters,
    peer_speaks_lp: bool,
    scratch: Vec<u8>,
    /// The captures that the link is in.
    taps: Vec<FaceTap>,
    /// `None`: LaneHellos are ignored.
    lane_hellos: Option<Box<LaneHellos>>,
}

/// [`Received`] without the borrow of the assembled bytes.
enum Accepted {
    Packet { headers: LpHeaders, start: usize, len: usize },
    Reassembled { headers: LpHeaders },
    Incomplete,
    Idle,
}

impl LinkService {
    /// A link that has carried no frame yet.
    pub fn new(options: LinkOptions) -> Self {
        let mut link = LinkService {
            options: LinkOptions { mtu: options.mtu.min(MAX_PACKET_BYTES), ..options },
            reassembler: Reassembler::new(options.reassembly_bytes),
            fragmenter: Fragmenter::new(options.first_sequence),
            reliability: None,
            congestion: CongestionMarker::default(),
            counters: LinkCounters::default(),
            peer_speaks_lp: false,
            scratch: Vec::new(),
            taps: Vec::new(),
            lane_hellos: None,
        };
        link.set_policy(options.policy);
        link
    }

    /// Accepts and counts a frame that is a bare Interest or Data. False: it is something else, or a capture must see
    /// it; then the caller passes it to [`LinkService::receive`], which takes what this function takes, and all else.
    /// `frame` is exactly one element of at most 8800 bytes.
    ///
    /// Cost: about 10 instructions, where [`LinkService::receive`] takes 200.
    #[inline]
    pub fn receive_bare(&mut self, frame: &[u8]) -> bool {
        let counters = &mut self.counters;
        let count = match frame.first().map(|&byte| u32::from(byte)) {
            Some(types::INTEREST) => &mut counters.in_interests,
            Some(types::DATA) => &mut counters.in_data,
            _ => return false,
        };
        if !self.taps.is_empty() {
            return false;
        }
        *count += 1;
        counters.in_bytes += frame.len() as u64;
        true
    }

    /// Accepts one frame: a datagram, or one element of a stream. Counts the packet or the drop.
    ///
    /// # Errors
    /// The reason to drop the frame: it is malformed, a header is illegal on its packet or on this link, it is a
    /// fragment that cannot be reassembled, or reliability has received it before.
    pub fn receive(&mut self, now_ns: u64, frame: &[u8]) -> Result<Received<'_>, LinkDrop> {
        self.receive_from(now_ns, 0, frame)
    }

    /// Like [`LinkService::receive`], on a link with several peers: each peer has its own number `sender`.
    ///
    /// # Errors
    /// Those of [`LinkService::receive`].
    pub fn receive_from(&mut self, now_ns: u64, sender: u64, frame: &[u8]) -> Result<Received<'_>, LinkDrop> {
        self.counters.in_bytes += frame.len() as u64;
        if !self.taps.is_empty() {
            self.tap_received(frame);
        }
        let accepted = match self.accept(now_ns, sender, frame) {
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

    /// Listens to LaneHellos, or ignores them.
    pub fn hear_lane_hellos(&mut self, wanted: bool) {
        match wanted {
            true => _ = self.lane_hellos.get_or_insert_default(),
            false => self.lane_hellos = None,
        }
    }

    /// The last LaneHello that came since the last call.
    pub fn take_lane_hello(&mut self) -> Option<LaneHello> {
        self.lane_hellos.as_mut()?.last.take()
    }

    /// Changes reliability and congestion marks. Unacknowledged frames stay if reliability was on.
    pub fn set_policy(&mut self, policy: LinkPolicy) {
        self.options.policy = policy;
        match (&mut self.reliability, policy.reliability) {
            (reliability @ None, true) => *reliability = Some(Box::default()),
            (reliability, false) => *reliability = None,
            (Some(_), true) => {}
        }
        self.reassembler.set_reliable(policy.reliability);
        self.congestion = CongestionMarker::new(&policy);
    }

    /// Forgets all unfinished state: the connection has ended, and the next one starts afresh.
    pub fn restart(&mut self) {
        if let Some(reliability) = &mut self.reliability {
            **reliability = Reliability::default();
        }
    }

    /// Goes on where the same link was in another process: with what it had counted, and what it knew of its peer.
    /// [`LinkOptions::first_sequence`] is that process's [`LinkService::next_sequence`].
    pub fn resume(&mut self, counters: LinkCounters, peer_speaks_lp: bool) {
        self.counters.merge(&counters);
        self.peer_speaks_lp |= peer_speaks_lp;
    }

    /// The sequence number that the next frame will have.
    pub fn next_sequence(&self) -> u64 {
        self.fragmenter.following_sequence()
    }

    /// True if frames are acknowledged and sent again.
    #[inline]
    pub fn is_reliable(&self) -> bool {
        self.reliability.is_some()
    }

    /// True if marks depend on the length of the send queue. The caller should then report it by
    /// [`LinkService::note_queue_length`] before the next packet.
    #[inline]
    pub fn wants_queue_length(&self, now_ns: u64) -> bool {
        self.congestion.wants_queue_length(now_ns)
    }

    /// Notes how many bytes wait to be sent, the kernel's included.
    #[inline]
    pub fn note_queue_length(&mut self, now_ns: u64, bytes: u64) {
        self.congestion.note_queue_length(now_ns, bytes);
    }

    /// True once the peer has sent an LpPacket: it understands link headers.
    #[inline]
    pub fn peer_speaks_lp(&self) -> bool {
        self.peer_speaks_lp
    }

    /// True once the peer has sent a packet, or a frame without one that is well-formed.
    #[inline]
    pub fn has_received_packet(&self) -> bool {
        let LinkCounters { in_interests, in_data, in_nacks, in_tag_packets, .. } = self.counters;
        self.peer_speaks_lp || in_interests + in_data + in_nacks + in_tag_packets > 0
    }

    /// When [`LinkService::expire`] has something to do.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.reassembler.next_deadline_ns()
    }

    /// When [`LinkService::pump`] has Acks to emit.
    pub fn acks_due_ns(&self) -> Option<u64> {
        self.reliability.as_ref()?.acks_due_ns()
    }

    /// When [`LinkService::pump`] has a retransmission to emit; a time in the past if it has one already.
    pub fn retransmission_due_ns(&mut self) -> Option<u64> {
        self.reliability.as_mut()?.retransmission_due_ns()
    }

    /// The size of the smallest frame that vanished on the path, if reliability has found since the last call that such
    /// frames vanish while smaller ones arrive.
    pub fn take_black_hole(&mut self) -> Option<u32> {
        self.reliability.as_mut()?.take_black_hole()
    }

    /// Frees memory of a link without unacknowledged frames. Call it now and then, not for each packet.
    pub fn rest(&mut self) {
        if let Some(reliability) = &mut self.reliability {
            reliability.rest();
        }
    }

    /// Memory for unfinished fragmented packets, in bytes.
    #[inline]
    pub fn reassembly_memory_bytes(&self) -> usize {
        self.reassembler.memory_bytes()
    }

    /// Discards unfinished packets, the oldest first, until they take no more than this. Counts them
    /// ([`LinkDrop::ReassemblyShare`]).
    pub fn shed_reassembly(&mut self, memory_bytes: usize) {
        self.counters.drops[LinkDrop::ReassemblyShare as usize] += self.reassembler.shed(memory_bytes);
    }

    /// Memory for unacknowledged frames, in bytes.
    #[inline]
    pub fn unacknowledged_memory_bytes(&self) -> usize {
        self.reliability.as_ref().map_or(0, |reliability| reliability.unacknowledged_memory_bytes())
    }

    /// Limits the frames kept from now on to this many bytes, if that is less than the limit of all links.
    pub fn limit_unacknowledged(&mut self, bytes: u64) {
        if let Some(reliability) = &mut self.reliability {
            reliability.limit_unacknowledged(bytes);
        }
    }

    /// Discards fragmented packets that have timed out, and counts them.
    pub fn expire(&mut self, now_ns: u64) {
        self.counters.drops[LinkDrop::ReassemblyTimeout as usize] += self.reassembler.expire(now_ns);
    }

    /// The counters so far.
    #[inline]
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Counts a drop that the transport decided.
    #[inline]
    pub fn count_drop(&mut self, reason: LinkDrop) {
        self.counters.count_drop(reason);
    }

    /// Counts several of them.
    #[inline]
    pub fn count_drops(&mut self, reason: LinkDrop, count: u64) {
        self.counters.count_drops(reason, count);
    }

    /// Current settings.
    #[inline]
    pub fn options(&self) -> &LinkOptions {
        &self.options
    }

    /// Counts that the largest frame sent has changed with the path; it was `before`.
    pub fn count_path_change(&mut self, before: usize) {
        match self.options.mtu.cmp(&before) {
            std::cmp::Ordering::Less => self.counters.path_mtu_lowered += 1,
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => self.counters.path_mtu_raised += 1,
        }
    }

    /// Counts a black hole that the transport takes into account.
    pub fn count_black_hole(&mut self) {
        self.counters.path_mtu_black_holes += 1;
    }

    /// Changes the largest frame sent.
    pub fn set_mtu(&mut self, mtu: usize) {
        self.options.mtu = mtu.min(MAX_PACKET_BYTES);
    }

    /// Turns local fields on or off.
    pub fn set_local_fields(&mut self, on: bool) {
        self.options.local_fields = on;
    }

    fn accept(&mut self, now_ns: u64, sender: u64, frame: &[u8]) -> Result<Accepted, LinkDrop> {
        match check_shape(frame)? {
            Shape::LpPacket => self.accept_lp_packet(now_ns, sender, frame),
            Shape::Interest | Shape::Data | Shape::Tag(_) => {
                Ok(Accepted::Packet { headers: LpHeaders::default(), start: 0, len: frame.len() })
            }
        }
    }

    fn accept_lp_packet(&mut self, now_ns: u64, sender: u64, frame: &[u8]) -> Result<Accepted, LinkDrop> {
        let lp = LpPacket::parse(frame).map_err(lp_drop)?;
        self.peer_speaks_lp = true;
        if let Some(reliability) = &mut self.reliability {
            reliability.receive(now_ns, &lp, &mut self.counters)?;
        }
        let Some(fragment) = lp.fragment else {
            if let (Some(hellos), Some(value)) = (&mut self.lane_hellos, lp.lane_hello) {
                hellos.take(now_ns, value)?;
            }
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
        let headers = LpHeaders { lead_bytes: (lp.fragment_offset - start) as u16, ..lp.headers };
        let envelope = Envelope { headers, has_prefix_announcement: lp.prefix_announcement.is_some() };
        if lp.frag_count == 1 {
            let headers = check_headers(&envelope, fragment, &self.options)?;
            return Ok(Accepted::Packet { headers, start, len: end - start });
        }
        let fragment = FragmentIn {
            sender,
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

    fn count_received(&mut self, headers: &LpHeaders, packet_type: u32) {
        if headers.nack.is_some() {
            self.counters.in_nacks += 1;
        } else if packet_type == types::INTEREST {
            self.counters.in_interests += 1;
        } else if packet_type == types::DATA {
            self.counters.in_data += 1;
        } else {
            self.counters.in_tag_packets += 1;
        }
    }
}

/// Offset of the bytes that are passed on: the Fragment, or the lead before it. Only the first fragment's headers count
/// (NDNLPv2 §2). A PathLabel means nothing to a Nack or a tag packet, and is left out.
fn carried_from(lp: &LpPacket<'_>) -> usize {
    let is_ndn = lp.fragment.is_some_and(|bytes| matches!(u32::from(bytes[0]), types::INTEREST | types::DATA));
    let may_lead = lp.prefix_announcement.is_some() || is_ndn && lp.headers.nack.is_none();
    match lp.lead_offset {
        Some(offset) if lp.frag_index == 0 && may_lead => offset,
        _ => lp.fragment_offset,
    }
}

fn lp_drop(_: PacketError) -> LinkDrop {
    // N.B. the parser's reason is finer. But one counter per grammar rule would tell an operator nothing more: the
    // peer's encoder is broken.
    LinkDrop::MalformedLpHeader
}
