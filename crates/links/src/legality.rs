//! Legality: which frames are packets, and which header is legal on which packet (NDNLPv2 §1 and §4)?

use namewire_packet::lp::{LpHeaders, LpPacket};
use namewire_packet::tag::{TagFrame, TagPacket};
use namewire_packet::tlv::{self, types};
use namewire_packet::{Data, FaceId, Interest, MAX_PACKET_BYTES};

use crate::reassembly::{Envelope, MAX_FRAGMENTS};
use crate::{LinkDrop, LinkOptions};

/// What a frame holds, by its type number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An Interest.
    Interest,
    /// Data.
    Data,
    /// An LpPacket.
    LpPacket,
    /// A packet of TagNet.
    Tag(TagFrame),
}

/// Checks that `frame` is exactly one element of at most 8800 bytes and of a known type. The value is not checked.
///
/// # Errors
/// The reason to drop the frame: it is longer than 8800 bytes, malformed, cut off, followed by other bytes, or of
/// another type.
pub fn check_shape(frame: &[u8]) -> Result<Shape, LinkDrop> {
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
        return Err(LinkDrop::TrailingBytes);
    }
    match u32::from(frame[0]) {
        types::INTEREST => Ok(Shape::Interest),
        types::DATA => Ok(Shape::Data),
        types::LP_PACKET => Ok(Shape::LpPacket),
        _ => TagFrame::of(frame).map(Shape::Tag).ok_or(LinkDrop::UnknownType),
    }
}

/// Checks that `frame` is a valid packet, for which a face may be made: an Interest, Data or tag packet, or an LpPacket
/// with one of these in it or with a fragment of one.
///
/// # Errors
/// The reason to refuse it.
pub fn check_introduction(frame: &[u8]) -> Result<(), LinkDrop> {
    let lp = match check_shape(frame)? {
        Shape::LpPacket => LpPacket::parse(frame).map_err(|_| LinkDrop::MalformedLpHeader)?,
        bare => return check_packet(bare, frame),
    };
    let fragment = lp.fragment.ok_or(LinkDrop::NothingCarried)?;
    match lp.frag_count {
        1 => match check_shape(fragment) {
            Ok(Shape::LpPacket) => Err(LinkDrop::NestedLpPacket),
            Ok(shape) => check_packet(shape, fragment),
            Err(_) => Err(LinkDrop::FragmentNotPacket),
        },
        _ if lp.sequence.is_none() => Err(LinkDrop::MissingSequence),
        frag_count if lp.frag_index >= frag_count => Err(LinkDrop::FragIndexOutOfRange),
        frag_count if frag_count > MAX_FRAGMENTS => Err(LinkDrop::TooManyFragments),
        _ => Ok(()),
    }
}

fn check_packet(shape: Shape, packet: &[u8]) -> Result<(), LinkDrop> {
    let is_valid = match shape {
        Shape::Interest => Interest::parse(packet).is_ok(),
        Shape::Data => Data::parse(packet).is_ok(),
        Shape::Tag(TagFrame::Packet) => TagPacket::parse(packet).is_ok(),
        Shape::Tag(_) => true,
        Shape::LpPacket => false,
    };
    is_valid.then_some(()).ok_or(LinkDrop::MalformedPacket)
}

/// NDNLPv2 §4, "Received": which header is legal on which packet. Returns the headers except those that a forwarder
/// ignores.
pub(crate) fn check_headers(envelope: &Envelope, packet: &[u8], options: &LinkOptions) -> Result<LpHeaders, LinkDrop> {
    let is_interest = match check_shape(packet) {
        Ok(Shape::Interest) => true,
        Ok(Shape::Data) => false,
        Ok(Shape::Tag(_)) => return check_headers_of_tag_packet(envelope),
        Ok(Shape::LpPacket) => return Err(LinkDrop::NestedLpPacket),
        Err(_) => return Err(LinkDrop::FragmentNotPacket),
    };
    // A field of an ignorable type is ignored where it means nothing (§1.2): *collided* concerns Data.
    let collided = envelope.headers.collided && !is_interest;
    let headers = LpHeaders { incoming_face_id: None, collided, ..envelope.headers };
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
    // A PathLabel chooses the next hop, unless an application has chosen one.
    let is_steered = is_plain_interest && headers.lead_bytes > 0;
    let by_label = is_steered.then_some(FaceId::BY_PATH_LABEL);
    Ok(LpHeaders { next_hop_face_id: headers.next_hop_face_id.or(by_label), ..headers })
}

/// The headers of NDN packets mean nothing on a tag packet, except a congestion mark.
fn check_headers_of_tag_packet(envelope: &Envelope) -> Result<LpHeaders, LinkDrop> {
    let LpHeaders { nack, next_hop_face_id, congestion_mark, .. } = envelope.headers;
    if nack.is_some() {
        return Err(LinkDrop::NackWithoutInterest);
    }
    if next_hop_face_id.is_some() {
        return Err(LinkDrop::MisplacedNextHopFaceId);
    }
    if envelope.has_prefix_announcement {
        return Err(LinkDrop::MisplacedPrefixAnnouncement);
    }
    Ok(LpHeaders { congestion_mark, ..LpHeaders::default() })
}
