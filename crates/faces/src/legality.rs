//! Legality: which frames are packets, and which header is legal on which packet (NDNLPv2 §1 and §4)?

use namewire_packet::MAX_PACKET_BYTES;
use namewire_packet::lp::LpHeaders;
use namewire_packet::tlv::{self, types};

use crate::reassembly::Envelope;
use crate::{LinkDrop, LinkOptions};

/// Checks that `frame` is exactly one Interest, Data or LpPacket element of at most 8800 bytes, and returns its type.
/// The value is not checked.
///
/// # Errors
/// The reason to drop the frame: it is longer than 8800 bytes, malformed, cut off, followed by other bytes, or of
/// another type.
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
        return Err(LinkDrop::TrailingBytes);
    }
    match u32::from(frame[0]) {
        known @ (types::INTEREST | types::DATA | types::LP_PACKET) => Ok(known),
        _ => Err(LinkDrop::UnknownType),
    }
}

/// NDNLPv2 §4, "Received": which header is legal on which packet. Returns the headers except those that a forwarder
/// ignores.
pub(crate) fn check_headers(envelope: &Envelope, packet: &[u8], options: &LinkOptions) -> Result<LpHeaders, LinkDrop> {
    let is_interest = match check_shape(packet) {
        Ok(types::INTEREST) => true,
        Ok(types::DATA) => false,
        Ok(_) => return Err(LinkDrop::NestedLpPacket),
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
    Ok(headers)
}
