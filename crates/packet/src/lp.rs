//! NDNLPv2: the header fields of one link between two nodes (specification `ndnlpv2`, §1). Fragmentation and
//! reliability are state machines in the link service; this module only reads and writes bytes.

use crate::{
    FaceId, NackReason, PacketError,
    path_label::{MAX_PATH_LABEL_BYTES, PathLabel},
    tlv::{self, Element, Reader, types},
};
use std::{fmt, num::NonZeroU8};

/// Longest PIT token, in bytes.
pub const MAX_PIT_TOKEN_BYTES: usize = 32;

/// Opaque bytes that a downstream put on an Interest and expects back (§3).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PitToken {
    /// Never 0, so that an `Option` of a token takes no more room.
    length: NonZeroU8,
    bytes: [u8; MAX_PIT_TOKEN_BYTES],
}

impl PitToken {
    /// Accepts 1 to 32 bytes; `None` for any other length.
    pub fn new(token: &[u8]) -> Option<Self> {
        if token.is_empty() || token.len() > MAX_PIT_TOKEN_BYTES {
            return None;
        }
        let mut bytes = [0; MAX_PIT_TOKEN_BYTES];
        bytes[..token.len()].copy_from_slice(token);
        Some(PitToken { length: NonZeroU8::new(token.len() as u8)?, bytes })
    }

    /// The bytes as received.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length.get())]
    }
}

impl fmt::Debug for PitToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The type of a PathLabel, as its first bytes.
const PATH_LABEL_BEGIN: &[u8] = &[0xfd, (types::LP_PATH_LABEL >> 8) as u8, types::LP_PATH_LABEL as u8];

/// The fields that concern the network packet, not the link itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LpHeaders {
    /// Returned unchanged on the Data or Nack.
    pub pit_token: Option<PitToken>,
    /// Present: the Interest inside is returned as a Nack.
    pub nack: Option<NackReason>,
    /// Tells an application which face the packet came from.
    pub incoming_face_id: Option<FaceId>,
    /// An application's choice of next hop.
    pub next_hop_face_id: Option<FaceId>,
    /// CachePolicy NoCache.
    pub no_cache: bool,
    /// CongestionMark; 0 means none.
    pub congestion_mark: u64,
    /// NonDiscovery of self-learning.
    pub non_discovery: bool,
    /// Data only: a router on the path had several Interests with the fingerprint of this Data, so more Data may
    /// come for that fingerprint (Yuan15 §5.5.1). Core routers of Namewire send this field to each other, with an empty
    /// value. Other forwarders ignore it; Namewire ignores it if its value is not empty.
    pub collided: bool,
    /// Bytes before the packet in the bytes that carry it: the lead, which is the Data of a PrefixAnnouncement or a
    /// whole PathLabel, and the bytes between the two, as received. 0 for a packet without a lead, which then costs
    /// nothing: see [`LpHeaders::packet`].
    pub lead_bytes: u16,
}

impl LpHeaders {
    /// The network packet in the bytes that carry it.
    #[inline]
    pub fn packet<'a>(&self, carried: &'a [u8]) -> &'a [u8] {
        if self.lead_bytes == 0 {
            return carried;
        }
        carried.get(usize::from(self.lead_bytes)..).unwrap_or_default()
    }

    /// The announcing Data that came with the packet, as a whole Data element. Its content is not checked.
    pub fn announcement<'a>(&self, carried: &'a [u8]) -> Option<&'a [u8]> {
        self.lead(carried).filter(|lead| lead.first() == Some(&(types::DATA as u8)))
    }

    /// The PathLabel that came with the packet, as a whole element.
    pub fn path_label<'a>(&self, carried: &'a [u8]) -> Option<&'a [u8]> {
        self.lead(carried).filter(|lead| lead.starts_with(PATH_LABEL_BEGIN))
    }

    /// The element in front of the packet: an announcing Data or a PathLabel.
    pub fn lead<'a>(&self, carried: &'a [u8]) -> Option<&'a [u8]> {
        if self.lead_bytes == 0 {
            return None;
        }
        tlv::read_element(carried.get(..usize::from(self.lead_bytes))?).ok().map(|element| element.wire)
    }

    /// True if a packet with these headers can travel bare.
    pub fn is_empty(&self) -> bool {
        *self == LpHeaders::default()
    }
}

/// A checked LpPacket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LpPacket<'a> {
    /// Fields about the network packet.
    pub headers: LpHeaders,
    /// Sequence, if the sender fragments or wants reliability.
    pub sequence: Option<u64>,
    /// FragIndex, 0 if absent.
    pub frag_index: u64,
    /// FragCount, 1 if absent.
    pub frag_count: u64,
    /// True if FragIndex or FragCount is written out.
    pub has_fragmentation_fields: bool,
    /// TxSequence of reliability.
    pub tx_sequence: Option<u64>,
    /// The Data inside a PrefixAnnouncement field.
    pub prefix_announcement: Option<&'a [u8]>,
    /// A well-formed PathLabel, as a whole element.
    pub path_label: Option<&'a [u8]>,
    /// Where the first of these two begins in the LpPacket, if there is one.
    pub lead_offset: Option<usize>,
    /// The value of a LaneHello, not checked.
    pub lane_hello: Option<&'a [u8]>,
    /// Fragment: a whole network packet or a piece; `None` in an IDLE packet.
    pub fragment: Option<&'a [u8]>,
    /// Where the fragment's bytes begin in the LpPacket.
    pub fragment_offset: usize,
    value: &'a [u8],
}

impl<'a> LpPacket<'a> {
    /// Checks one LpPacket that fills `wire`. The network packet in its fragment is not checked.
    ///
    /// # Errors
    /// If `wire` is not exactly one LpPacket, if one header is malformed (§1: then the whole packet is refused), if the
    /// headers are out of order or repeated, or if one is unknown and its type cannot be ignored (§1.2).
    pub fn parse(wire: &'a [u8]) -> Result<Self, PacketError> {
        let outer = tlv::read_element(wire)?;
        if outer.type_number != types::LP_PACKET {
            return Err(PacketError::WrongType { expected: types::LP_PACKET, found: outer.type_number });
        }
        if outer.wire.len() != wire.len() {
            return Err(PacketError::TrailingBytes);
        }
        let value_offset = wire.len() - outer.value.len();
        let mut packet = LpPacket { frag_count: 1, value: outer.value, ..LpPacket::default() };
        let mut reader = Reader::new(outer.value);
        let mut last_type = 0;
        while let Some(element) = reader.next_element()? {
            let type_number = element.type_number;
            // §1: Fragment is last; the others ascend; only Ack repeats.
            let in_order = type_number > last_type || (type_number == last_type && type_number == types::LP_ACK);
            if packet.fragment.is_some() || (type_number != types::LP_FRAGMENT && !in_order) {
                return Err(PacketError::UnexpectedCritical(type_number));
            }
            if type_number == types::LP_FRAGMENT {
                if element.value.is_empty() {
                    return Err(PacketError::BadValue(type_number));
                }
                packet.fragment = Some(element.value);
                packet.fragment_offset = value_offset + reader.offset() - element.value.len();
            } else {
                packet.accept(&element)?;
                let lead = match type_number {
                    types::LP_PREFIX_ANNOUNCEMENT => Some(element.value),
                    types::LP_PATH_LABEL => packet.path_label,
                    _ => None,
                };
                let begin = lead.map(|lead| value_offset + reader.offset() - lead.len());
                packet.lead_offset = packet.lead_offset.or(begin);
                last_type = type_number;
            }
        }
        Ok(packet)
    }

    fn accept(&mut self, element: &Element<'a>) -> Result<(), PacketError> {
        let Element { type_number, value, .. } = *element;
        match type_number {
            types::LP_SEQUENCE => self.sequence = Some(fixed_8(element)?),
            types::LP_FRAG_INDEX => {
                self.frag_index = tlv::read_nni(value)?;
                self.has_fragmentation_fields = true;
            }
            types::LP_FRAG_COUNT => {
                self.frag_count = tlv::read_nni(value)?;
                self.has_fragmentation_fields = true;
            }
            types::LP_PIT_TOKEN => {
                let token = PitToken::new(value).ok_or(PacketError::BadValue(type_number))?;
                self.headers.pit_token = Some(token);
            }
            types::LP_NACK => self.headers.nack = Some(parse_nack(value)?),
            types::LP_INCOMING_FACE_ID => self.headers.incoming_face_id = Some(FaceId(tlv::read_nni(value)?)),
            types::LP_NEXT_HOP_FACE_ID => self.headers.next_hop_face_id = Some(FaceId(tlv::read_nni(value)?)),
            types::LP_CACHE_POLICY => {
                // NoCache (1) is the only policy; any other drops the packet, as in ndn-cxx.
                let policy = tlv::read_element(value)?;
                if policy.type_number != types::LP_CACHE_POLICY_TYPE || tlv::read_nni(policy.value)? != 1 {
                    return Err(PacketError::BadValue(type_number));
                }
                self.headers.no_cache = true;
            }
            types::LP_CONGESTION_MARK => self.headers.congestion_mark = tlv::read_nni(value)?,
            types::LP_ACK => {
                fixed_8(element)?;
            }
            types::LP_TX_SEQUENCE => self.tx_sequence = Some(fixed_8(element)?),
            types::LP_NON_DISCOVERY if value.is_empty() => self.headers.non_discovery = true,
            types::LP_NON_DISCOVERY => return Err(PacketError::BadValue(type_number)),
            types::LP_PREFIX_ANNOUNCEMENT => {
                let data = tlv::read_element(value)?;
                if data.type_number != types::DATA {
                    return Err(PacketError::BadValue(type_number));
                }
                self.prefix_announcement = Some(data.wire);
            }
            // As any field of the ignorable range, a malformed one is ignored.
            types::LP_PATH_LABEL => {
                let is_sound = element.wire.len() <= MAX_PATH_LABEL_BYTES && PathLabel::parse_tlv(element.wire).is_ok();
                self.path_label = is_sound.then_some(element.wire);
            }
            types::LP_LANE_HELLO => self.lane_hello = Some(value),
            types::LP_COLLIDED => self.headers.collided = value.is_empty(),
            800..=959 if type_number.is_multiple_of(4) => {} // §1.2: the only ignorable range
            other => return Err(PacketError::UnexpectedCritical(other)),
        }
        Ok(())
    }

    /// The TxSequence numbers that the peer acknowledges, in the order of the packet.
    pub fn acks(&self) -> impl Iterator<Item = u64> + use<'a> {
        let mut reader = Reader::new(self.value);
        std::iter::from_fn(move || {
            while let Some(element) = reader.next_element().ok().flatten() {
                if element.type_number == types::LP_ACK {
                    return fixed_8(&element).ok();
                }
            }
            None
        })
    }
}

fn fixed_8(element: &Element<'_>) -> Result<u64, PacketError> {
    let bytes: [u8; 8] = element.value.try_into().map_err(|_| PacketError::BadValue(element.type_number))?;
    Ok(u64::from_be_bytes(bytes))
}

fn parse_nack(value: &[u8]) -> Result<NackReason, PacketError> {
    let mut reader = Reader::new(value);
    let mut reason = NackReason::None;
    while let Some(element) = reader.next_element()? {
        match element.type_number {
            types::LP_NACK_REASON => reason = NackReason::from_code(tlv::read_nni(element.value)?),
            other if crate::is_ignorable(other) => {}
            other => return Err(PacketError::UnexpectedCritical(other)),
        }
    }
    Ok(reason)
}

/// The fields that concern only the two ends of the link.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkFields<'a> {
    /// Sequence.
    pub sequence: Option<u64>,
    /// FragIndex and FragCount, for a piece of a larger packet.
    pub fragment: Option<(u64, u64)>,
    /// TxSequence.
    pub tx_sequence: Option<u64>,
    /// TxSequence numbers to acknowledge.
    pub acks: &'a [u64],
    /// What travels in front of the packet: the whole Data of a PrefixAnnouncement, or a whole PathLabel.
    pub lead: Option<&'a [u8]>,
}

/// Appends an LpPacket up to the place of the fragment: the caller sends the `fragment_size` bytes right after it. A
/// size of 0 writes a complete IDLE packet. No allocation if `out` has room for about 120 bytes plus acks.
pub fn write_headers(out: &mut Vec<u8>, headers: &LpHeaders, link: &LinkFields<'_>, fragment_size: usize) {
    let start = out.len();
    write_fields(out, headers, link);
    if fragment_size > 0 {
        tlv::write_var_number(out, u64::from(types::LP_FRAGMENT));
        tlv::write_var_number(out, fragment_size as u64);
    }
    // The length is known only now: write the outer header at the end and rotate it to the front.
    let fields_size = out.len() - start;
    tlv::write_var_number(out, u64::from(types::LP_PACKET));
    tlv::write_var_number(out, (fields_size + fragment_size) as u64);
    let header_size = out.len() - start - fields_size;
    out[start..].rotate_right(header_size);
}

fn write_fields(out: &mut Vec<u8>, headers: &LpHeaders, link: &LinkFields<'_>) {
    let fixed = |out: &mut Vec<u8>, type_number, number: u64| tlv::write_tlv(out, type_number, &number.to_be_bytes());
    if let Some(sequence) = link.sequence {
        fixed(out, types::LP_SEQUENCE, sequence);
    }
    if let Some((index, count)) = link.fragment {
        tlv::write_nni(out, types::LP_FRAG_INDEX, index);
        tlv::write_nni(out, types::LP_FRAG_COUNT, count);
    }
    if let Some(token) = &headers.pit_token {
        tlv::write_tlv(out, types::LP_PIT_TOKEN, token.as_bytes());
    }
    if let Some(reason) = headers.nack {
        // NackReason 0 is written out for None: one peer refuses a Nack without the element (§1.3).
        tlv::write_nested(out, types::LP_NACK, |out| tlv::write_nni(out, types::LP_NACK_REASON, reason.code()));
    }
    if let Some(face) = headers.incoming_face_id {
        tlv::write_nni(out, types::LP_INCOMING_FACE_ID, face.0);
    }
    if let Some(face) = headers.next_hop_face_id {
        tlv::write_nni(out, types::LP_NEXT_HOP_FACE_ID, face.0);
    }
    if headers.no_cache {
        tlv::write_nested(out, types::LP_CACHE_POLICY, |out| tlv::write_nni(out, types::LP_CACHE_POLICY_TYPE, 1));
    }
    if headers.congestion_mark > 0 {
        tlv::write_nni(out, types::LP_CONGESTION_MARK, headers.congestion_mark);
    }
    for &ack in link.acks {
        fixed(out, types::LP_ACK, ack);
    }
    if let Some(tx_sequence) = link.tx_sequence {
        fixed(out, types::LP_TX_SEQUENCE, tx_sequence);
    }
    if headers.non_discovery {
        tlv::write_tlv(out, types::LP_NON_DISCOVERY, &[]);
    }
    match link.lead {
        Some(label) if label.starts_with(PATH_LABEL_BEGIN) => out.extend_from_slice(label),
        Some(announcement) => tlv::write_tlv(out, types::LP_PREFIX_ANNOUNCEMENT, announcement),
        None => {}
    }
    if headers.collided {
        tlv::write_tlv(out, types::LP_COLLIDED, &[]);
    }
}
