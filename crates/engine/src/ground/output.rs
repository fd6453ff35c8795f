//! Output: what the engine decided about a batch.

use crate::{
    FaceTable, Instant,
    dispatch::{token::WorkerToken, visits::Visits},
    ground::{announcement_table::AnnouncementTable, order::BATCH_PACKETS},
};
use namewire_packet::{FaceId, MAX_PACKET_BYTES, lp::LpHeaders};
use namewire_tables::CsId;

/// Where the bytes of a packet to be sent are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRef {
    /// In the frame with this index of the batch.
    Frame(u16),
    /// The same, preceded by the announcement that came in front of it.
    AnnouncedFrame(u16),
    /// In [`Output`]: a packet the engine had to rewrite.
    Rewritten {
        /// First byte.
        start: u32,
        /// Number of bytes.
        length: u32,
    },
    /// In the Content Store, readable until the next batch begins.
    Stored(CsId),
}

/// One packet to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// The face to send through.
    pub face: FaceId,
    /// Link headers that concern the packet.
    pub headers: LpHeaders,
    /// Its bytes: see [`Engine::packet`](crate::Engine::packet).
    pub packet: PacketRef,
}

/// A packet for the next worker.
#[derive(Clone, Copy, Debug)]
pub struct HandOver {
    /// Its frame, by index.
    pub frame: u16,
    /// The workers still to be visited.
    pub visits: Visits,
}

/// What a strategy asks of the control side, which owns the routes.
#[derive(Clone, Copy, Debug)]
pub enum RouteRequest {
    /// A route to `face`, as the announcing Data says.
    Learn {
        /// The face that sent the Data with the announcement.
        face: FaceId,
        /// The announcing Data as received, not verified.
        announcement: PacketRef,
    },
    /// Remove learned routes to `face` that cover this name.
    Forget {
        /// The next hop that has no route either.
        face: FaceId,
        /// Name TLV-VALUE of the Interest that was sent there.
        name: PacketRef,
    },
}

/// Most route requests of one call.
const ROUTE_REQUESTS_MAX: usize = BATCH_PACKETS;

/// What the engine decided. Reused from batch to batch. It has room for the verdicts of a usual batch. Many downstreams
/// make it grow, at most to one verdict for each record that the PIT has room for and each next hop of the batch's
/// Interests.
#[derive(Debug)]
pub struct Output {
    /// Packets to be sent, in order.
    pub transmits: Vec<Transmit>,
    /// Packets that other workers must see too. The caller gives each, with all its headers, to the next worker of its
    /// visits ([`Visits::take`]).
    pub hand_over: Vec<HandOver>,
    /// Frames that hold packets of TagNet, by index. The engine leaves them to the caller.
    pub tag_frames: Vec<u16>,
    /// Routes that strategies want learned or forgotten; nearly always none.
    pub route_requests: Vec<RouteRequest>,
    rewritten: Vec<u8>,
}

/// Initial room for verdicts. It is address space; memory is used only as it fills.
const OUTPUT_TRANSMITS: usize = 64 * BATCH_PACKETS;
/// Limit on the bytes of Nacks and re-sent Interests that one call writes. Nacks to the 1,024 downstreams of one entry,
/// at full size, take 9 MB. Without a limit, a batch of 64 Nacks wrote 577 MB.
const REWRITTEN_BYTES_MAX: usize = 16 << 20;
/// Room for these, for the packet that exceeds the limit (Data with an announcement is two packets), and for arriving
/// Interests that need a nonce (8 bytes, and 4 for longer TLV-LENGTHs). Also address space.
const OUTPUT_REWRITTEN_BYTES: usize = REWRITTEN_BYTES_MAX + (2 + BATCH_PACKETS) * (MAX_PACKET_BYTES + 12);

impl Default for Output {
    fn default() -> Self {
        Output {
            transmits: Vec::with_capacity(OUTPUT_TRANSMITS),
            hand_over: Vec::with_capacity(BATCH_PACKETS),
            tag_frames: Vec::with_capacity(BATCH_PACKETS),
            route_requests: Vec::with_capacity(ROUTE_REQUESTS_MAX),
            rewritten: Vec::with_capacity(OUTPUT_REWRITTEN_BYTES),
        }
    }
}

impl Output {
    pub(crate) fn clear(&mut self) {
        self.transmits.clear();
        self.hand_over.clear();
        self.tag_frames.clear();
        self.route_requests.clear();
        self.rewritten.clear();
    }

    /// Adds an Interest, with our token if the link wants one.
    ///
    /// N.B. The token is written last, into its place: chosen before, it was built on the stack and copied in pieces.
    #[inline(always)]
    pub(crate) fn transmit_interest(&mut self, transmit: Transmit, token: Option<WorkerToken>) {
        self.transmits.push(transmit);
        if let (Some(token), Some(last)) = (token, self.transmits.last_mut()) {
            last.headers.pit_token = token.encode();
        }
    }

    pub(crate) fn is_full_of_rewritten(&self) -> bool {
        self.rewritten.len() >= REWRITTEN_BYTES_MAX
    }

    pub(crate) fn is_full_of_route_requests(&self) -> bool {
        self.route_requests.len() >= ROUTE_REQUESTS_MAX || self.is_full_of_rewritten()
    }

    /// Lets `write` append a packet; returns a reference to it.
    pub(crate) fn rewrite(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> PacketRef {
        let start = self.rewritten.len();
        write(&mut self.rewritten);
        PacketRef::Rewritten { start: start as u32, length: (self.rewritten.len() - start) as u32 }
    }

    /// The bytes of a packet that the engine rewrote, else `None`.
    #[inline]
    pub(crate) fn rewritten(&self, packet: PacketRef) -> Option<&[u8]> {
        match packet {
            PacketRef::Rewritten { start, length } => Some(&self.rewritten[start as usize..(start + length) as usize]),
            _ => None,
        }
    }
}

/// Where a call writes its packets, and the tables that decide whether it may.
pub(crate) struct Outbound<'v, 'o> {
    pub(crate) now: Instant,
    pub(crate) faces: &'v FaceTable,
    /// What strategies may attach to Data.
    pub(crate) announcements: &'v AnnouncementTable,
    pub(crate) out: &'o mut Output,
}
