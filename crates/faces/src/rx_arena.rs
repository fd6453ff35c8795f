//! Holds the received bytes of one batch.
//!
//! Each worker has two buffers, reused for every batch. Sockets are read into the first buffer: streams back to back,
//! each message of datagrams ([`crate::sys`]) into a separate slot. Slots are larger than any message. Untouched memory
//! takes no space, so the usual small messages take a page each. Frames from shared memory lie back to back, because
//! their length is known before the copy. The second buffer holds packets reassembled from fragments. Positions count
//! through both buffers:
//!
//! ```text
//!          ┌──────────────── read from sockets ──────────────────┬── reassembled ───
//!          │ stream bytes │ slot 65,600 │ slot 65,600 │ …       │ packet │ packet │ …
//!          0                                                  READ_BYTES
//! ```
//!
//! A packet is identified by its position. Positions ascend in each buffer, so that disjoint mutable slices of all
//! packets can be lent at once.

use namewire_packet::lp::LpHeaders;
use namewire_packet::{FaceId, MAX_PACKET_BYTES};

/// Room for one message of datagrams, which has at most 65,535 bytes. Slots are an odd number of cache lines apart, so
/// that the starts of small datagrams do not share cache sets.
pub(crate) const MESSAGE_SLOT_BYTES: usize = 65_600;

const CACHE_LINE_BYTES: usize = 64;

/// Slots that a turn can fill: two sockets with full batches.
const MESSAGE_SLOTS: usize = 128;

/// Bytes that sockets are read into.
const READ_BYTES: usize = MESSAGE_SLOTS * MESSAGE_SLOT_BYTES;

/// Most bytes of streams read in one turn: eight full reads.
const STREAMS_BYTES: usize = 1 << 20;

/// Least free room for reading another stream: the bytes kept from last time and a useful read.
const LEAST_STREAM_ROOM_BYTES: usize = 4 * MAX_PACKET_BYTES;

const _: () = assert!(MESSAGE_SLOT_BYTES.is_multiple_of(CACHE_LINE_BYTES));
const _: () = assert!(LEAST_STREAM_ROOM_BYTES <= MESSAGE_SLOT_BYTES && READ_BYTES < 1 << 31);

/// Where a batch of packets is received.
pub(crate) struct RxBatch<'a> {
    /// The bytes.
    pub(crate) arena: &'a mut RxArena,
    /// The packets among them.
    pub(crate) packets: &'a mut Vec<RxPacket>,
    /// Most packets of the batch.
    pub(crate) max_packets: usize,
    /// Elements and datagrams that the present turn may still read.
    pub(crate) left: usize,
    /// Those of the present turn that others pay for, counted while others wait for turns.
    pub(crate) paid: usize,
}

impl RxBatch<'_> {
    /// Whether a source may be read.
    pub(crate) fn has_room(&self) -> bool {
        self.packets.len() < self.max_packets && self.arena.has_room()
    }
}

/// One received network packet. Its bytes are in the [`RxArena`] it was received with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RxPacket {
    /// The face it came from (which may have closed since).
    pub face: FaceId,
    /// Its link headers, legal on it.
    pub headers: LpHeaders,
    /// Offset in the arena, in bytes.
    pub start: u32,
    /// Size in bytes.
    pub len: u32,
    /// It came over a stream to whose peer an Interest went that pays for it.
    pub is_paid: bool,
}

/// The receive buffers of one worker.
pub struct RxArena {
    read: Box<[u8]>,
    used: usize,
    stream_bytes: usize,
    reassembled: Vec<u8>,
}

impl RxArena {
    /// An empty arena: 8 MiB of address space; received bytes take memory.
    pub fn new() -> Self {
        RxArena { read: vec![0; READ_BYTES].into_boxed_slice(), used: 0, stream_bytes: 0, reassembled: Vec::new() }
    }

    /// The bytes of one packet.
    ///
    /// # Panics
    /// If `packet` is not from this arena's last batch.
    pub fn packet(&self, packet: &RxPacket) -> &[u8] {
        let (start, len) = (packet.start as usize, packet.len as usize);
        match start.checked_sub(READ_BYTES) {
            None => &self.read[start..][..len],
            Some(start) => &self.reassembled[start..][..len],
        }
    }

    /// Lends the bytes of `packets`, all at once and mutable, in their order. `packets`
    /// is the list of one batch or a contiguous part of it.
    ///
    /// # Panics
    /// The iterator panics if `packets` is not ascending or from another arena.
    pub fn packets_mut<'a>(&'a mut self, packets: &'a [RxPacket]) -> PacketsMut<'a> {
        PacketsMut {
            packets: packets.iter(),
            read: Unlent { bytes: &mut self.read, base: 0 },
            reassembled: Unlent { bytes: &mut self.reassembled, base: READ_BYTES },
        }
    }

    pub(crate) fn reset(&mut self) {
        (self.used, self.stream_bytes) = (0, 0);
        self.reassembled.clear();
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// True if another stream or message can be read.
    pub(crate) fn has_room(&self) -> bool {
        self.stream_bytes + LEAST_STREAM_ROOM_BYTES <= STREAMS_BYTES
            && self.used + MESSAGE_SLOT_BYTES <= self.read.len()
    }

    /// The unused part. Bytes written to it stay only if they are kept.
    pub(crate) fn free_mut(&mut self) -> &mut [u8] {
        &mut self.read[self.used..]
    }

    /// Bytes at a position, used or not.
    pub(crate) fn bytes(&self, start: usize, len: usize) -> &[u8] {
        &self.read[start..start + len]
    }

    /// Marks the first `bytes` of the unused part, read from a stream, as used.
    pub(crate) fn keep_stream(&mut self, bytes: usize) {
        self.used += bytes;
        self.stream_bytes += bytes;
    }

    /// Marks the first `bytes` of the unused part, read from datagrams, as used, up to the end of a cache line.
    pub(crate) fn keep_datagrams(&mut self, bytes: usize) {
        self.used += bytes.next_multiple_of(CACHE_LINE_BYTES);
    }

    /// Adds a reassembled packet and returns its position.
    pub(crate) fn push_reassembled(&mut self, packet: &[u8]) -> usize {
        let start = READ_BYTES + self.reassembled.len();
        self.reassembled.extend_from_slice(packet);
        start
    }
}

impl Default for RxArena {
    fn default() -> Self {
        RxArena::new()
    }
}

/// Iterator of [`RxArena::packets_mut`].
pub struct PacketsMut<'a> {
    packets: std::slice::Iter<'a, RxPacket>,
    read: Unlent<'a>,
    reassembled: Unlent<'a>,
}

/// The part of a buffer after the last lent packet; it starts at position `base`.
struct Unlent<'a> {
    bytes: &'a mut [u8],
    base: usize,
}

impl<'a> Unlent<'a> {
    fn lend(&mut self, start: usize, len: usize) -> &'a mut [u8] {
        let (_, from_packet) = std::mem::take(&mut self.bytes).split_at_mut(start - self.base);
        let (bytes, after) = from_packet.split_at_mut(len);
        *self = Unlent { bytes: after, base: start + len };
        bytes
    }
}

impl<'a> Iterator for PacketsMut<'a> {
    type Item = &'a mut [u8];

    fn next(&mut self) -> Option<&'a mut [u8]> {
        let packet = self.packets.next()?;
        let (start, len) = (packet.start as usize, packet.len as usize);
        let buffer = if start < READ_BYTES { &mut self.read } else { &mut self.reassembled };
        Some(buffer.lend(start, len))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.packets.size_hint()
    }
}

impl ExactSizeIterator for PacketsMut<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: u32, len: u32) -> RxPacket {
        RxPacket { face: FaceId(256), headers: LpHeaders::default(), start, len, is_paid: false }
    }

    #[test]
    fn lends_disjoint_slices_of_a_batch_and_of_its_parts() {
        let mut arena = RxArena::new();
        for (i, byte) in arena.free_mut().iter_mut().take(40).enumerate() {
            *byte = i as u8;
        }
        let packets = [at(0, 3), at(3, 2), at(30, 4)];
        let mut lent: Vec<&mut [u8]> = arena.packets_mut(&packets).collect();
        assert_eq!(lent, [&[0, 1, 2][..], &[3, 4], &[30, 31, 32, 33]]);
        lent[1][0] = 99;
        let last_two: Vec<Vec<u8>> = arena.packets_mut(&packets[1..]).map(|bytes| bytes.to_vec()).collect();
        assert_eq!(last_two, [vec![99, 4], vec![30, 31, 32, 33]]);
        assert_eq!(arena.packet(&packets[1]), &[99, 4]);
    }
}
