//! Cuts a network packet into LpPackets that fit the MTU (NDNLPv2 §2).
//!
//! ```text
//!   fragment 0:  LpPacket { Sequence s    FragIndex 0  FragCount n  all headers  Fragment }
//!   fragment i:  LpPacket { Sequence s+i  FragIndex i  FragCount n               Fragment }
//! ```
//!
//! The packet is not copied: the caller gets each fragment as link-header bytes and a slice of the packet. Every
//! fragment keeps [`FRAGMENT_ROOM`] bytes free, as in NFD, so that Namewire and NFD cut a packet at the same places.

use namewire_packet::lp::{self, LinkFields, LpHeaders};

use crate::LinkDrop;
use crate::reassembly::MAX_FRAGMENTS;
use crate::reliability::FrameOut;

/// Bytes kept free for the link fields of a fragment: ten for each of LpPacket,
/// Sequence, FragIndex, FragCount and Fragment (NFD `lp-fragmenter.cpp`).
pub const FRAGMENT_ROOM: usize = 50;

/// Sequence numbers of one face.
pub(crate) struct Fragmenter {
    next_sequence: u64,
}

impl Fragmenter {
    pub(crate) fn new(first_sequence: u64) -> Self {
        Fragmenter { next_sequence: first_sequence }
    }

    /// The sequence number that the next frame will have.
    pub(crate) fn following_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// A sequence number for the next frame.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        sequence
    }

    /// Passes the fragments of `packet` to `hand_out` in order, each with their number. A fragment is a frame that
    /// lacks only the fields of reliability; `mtu` is what these leave. Passes nothing if the MTU is too small.
    pub(crate) fn split(
        &mut self,
        (headers, lead): (&LpHeaders, Option<&[u8]>),
        packet: &[u8],
        mtu: usize,
        scratch: &mut Vec<u8>,
        mut hand_out: impl FnMut(u64, FrameOut<'_>, &mut Vec<u8>),
    ) -> Result<(), LinkDrop> {
        let room = mtu.checked_sub(FRAGMENT_ROOM).filter(|&room| room > 0);
        let room = room.ok_or(LinkDrop::PacketTooLarge)?;
        // A lead that would take most of the first fragment is omitted: the packet matters more.
        let lead = lead.filter(|lead| lead.len() <= room / 2);
        let first_room = room
            .checked_sub(header_bytes(headers, lead, scratch))
            .filter(|&room| room > 0)
            .ok_or(LinkDrop::PacketTooLarge)?;
        let (first, rest) = packet.split_at(first_room.min(packet.len()));
        let frag_count = 1 + rest.len().div_ceil(room) as u64;
        if frag_count > MAX_FRAGMENTS {
            return Err(LinkDrop::PacketTooLarge);
        }
        let no_headers = LpHeaders::default();
        for (frag_index, payload) in std::iter::once(first).chain(rest.chunks(room)).enumerate() {
            let link = LinkFields {
                sequence: Some(self.next_sequence()),
                fragment: Some((frag_index as u64, frag_count)),
                lead: lead.filter(|_| frag_index == 0),
                ..LinkFields::default()
            };
            let headers = if frag_index == 0 { headers } else { &no_headers };
            hand_out(frag_count, FrameOut { headers, link, payload }, scratch);
        }
        Ok(())
    }
}

/// Bytes of the header fields alone.
fn header_bytes(headers: &LpHeaders, lead: Option<&[u8]>, scratch: &mut Vec<u8>) -> usize {
    if headers.is_empty() {
        return 0;
    }
    scratch.clear();
    let link = LinkFields { lead, ..LinkFields::default() };
    lp::write_headers(scratch, headers, &link, 0);
    // An LpPacket with these fields and no Fragment also has its type and length: 2 bytes, or 4 from 253 bytes on.
    if scratch.len() < 255 { scratch.len() - 2 } else { scratch.len() - 4 }
}
