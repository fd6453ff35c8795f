//! Frames: the packets of a batch, and the shared tables that decide about them.

use crate::{DropReason, FaceTable, StrategyTable, dispatch::visits::Visits};
use namewire_packet::{Data, FaceId, Interest, MAX_PACKET_BYTES, NackReason, lp::LpHeaders, tag::TagFrame, tlv::types};
use namewire_tables::{FibView, NameHashes};

/// A network packet lent to the engine for one batch.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The face that received it.
    pub face: FaceId,
    /// Link headers that concern the packet.
    pub headers: LpHeaders,
    /// The Interest or Data, with its announcement in front if the headers say so. HopLimit is patched in place.
    pub packet: &'a mut [u8],
    /// The workers still to visit. For Data, also whether an earlier worker found a pending Interest for it.
    pub visits: Visits,
}

/// The shared tables. They do not change during a batch.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Next hops and strategy of every prefix.
    pub fib: FibView<'a>,
    /// Strategies by number.
    pub strategies: &'a StrategyTable,
    /// Attributes of every face.
    pub faces: &'a FaceTable,
}

/// A packet of the batch, checked.
pub(crate) enum Decoded<'a> {
    Interest(Interest<'a>),
    Nack(NackReason, Interest<'a>),
    Data(Data<'a>),
    /// A packet of TagNet, which the caller forwards by other tables.
    Tag,
    Refused(DropReason),
}

impl Decoded<'_> {
    /// True for packets without a name: the stages that look names up have nothing to do.
    pub(crate) const fn is_nameless(&self) -> bool {
        matches!(self, Decoded::Tag | Decoded::Refused(_))
    }
}

#[cold]
fn not_ndn<'f>(packet: &'f [u8]) -> Decoded<'f> {
    if TagFrame::of(packet).is_some() { Decoded::Tag } else { Decoded::Refused(DropReason::Malformed) }
}

/// A checked view of the frame's packet. Notes the components of its name in `hashes`, so that no later stage looks for
/// them again.
///
/// N.B. Inlined by force: as a call it wrote its result to memory twice, which cost 46 instructions per packet.
#[inline(always)]
pub(crate) fn decode<'f>(frame: &'f Frame<'_>, hashes: &mut NameHashes) -> Decoded<'f> {
    let packet = frame.headers.packet(frame.packet);
    if packet.len() > MAX_PACKET_BYTES {
        return Decoded::Refused(DropReason::Malformed);
    }
    let first = packet.first().map_or(0, |&byte| u32::from(byte));
    let note = |components, after| hashes.note(components, after);
    let decoded = match (first, frame.headers.nack) {
        (types::INTEREST, nack) => Interest::parse_noting(packet, note).map(|interest| match nack {
            None => Decoded::Interest(interest),
            Some(reason) => Decoded::Nack(reason, interest),
        }),
        // NDNLPv2, "Network Nack": a Nack header belongs to an Interest only.
        (_, Some(_)) => return Decoded::Refused(DropReason::Malformed),
        _ => Data::parse_noting(packet, note).map(Decoded::Data),
    };
    decoded.unwrap_or_else(|_| not_ndn(packet))
}
