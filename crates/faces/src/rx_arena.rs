//! Where received octets lie for the time of one batch.
//!
//! One buffer per worker, reused for every batch. Streams read into it back to back;
//! datagrams get slots of 8832 octets each. Packets are named by position, in
//! ascending order, so that disjoint mutable slices of all of them can be lent at once.

use namewire_packet::lp::LpHeaders;
use namewire_packet::{FaceId, MAX_PACKET_BYTES};

/// Room for one datagram: 8800 octets and the padding to whole cache lines.
pub(crate) const DATAGRAM_SLOT_OCTETS: usize = MAX_PACKET_BYTES.next_multiple_of(64);

/// Least free room with which another face is read: the octets kept from last time and
/// a useful read, or one datagram.
pub(crate) const LEAST_ROOM_OCTETS: usize = 4 * MAX_PACKET_BYTES;

/// One received network packet. Its octets are in the [`RxArena`] it was received with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RxPacket {
    /// The face it came from (which may have closed since).
    pub face: FaceId,
    /// Its link headers, legal on it.
    pub headers: LpHeaders,
    /// Offset in the arena, in octets.
    pub start: u32,
    /// Size in octets.
    pub len: u32,
}

/// The receive buffer of one worker.
pub struct RxArena {
    octets: Box<[u8]>,
    used: usize,
}

impl RxArena {
    /// A capacity that suits a busy worker: 1 MiB, which is a dozen full stream reads
    /// or 118 datagrams.
    pub const DEFAULT_OCTETS: usize = 1 << 20;

    /// An arena of `capacity_octets`, at least 128 KiB and at most 1 GiB.
    pub fn new(capacity_octets: usize) -> Self {
        let capacity = capacity_octets.clamp(128 << 10, 1 << 30);
        RxArena { octets: vec![0; capacity].into_boxed_slice(), used: 0 }
    }

    /// The octets of one packet.
    ///
    /// # Panics
    /// If `packet` is not from this arena's last batch.
    pub fn packet(&self, packet: &RxPacket) -> &[u8] {
        &self.octets[packet.start as usize..][..packet.len as usize]
    }

    /// Lends the octets of `packets`, all at once and mutable, in their order. `packets`
    /// is the list of one batch or a contiguous part of it.
    ///
    /// # Panics
    /// The iterator panics if `packets` is not ascending or from another arena.
    pub fn packets_mut<'a>(&'a mut self, packets: &'a [RxPacket]) -> PacketsMut<'a> {
        PacketsMut { packets: packets.iter(), rest: &mut self.octets, base: 0 }
    }

    pub(crate) fn reset(&mut self) {
        self.used = 0;
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn has_room(&self) -> bool {
        self.octets.len() - self.used >= LEAST_ROOM_OCTETS
    }

    /// The unused part. What is written to it stays only if [`RxArena::keep`] follows.
    pub(crate) fn free_mut(&mut self) -> &mut [u8] {
        &mut self.octets[self.used..]
    }

    /// Marks the first `octets` of the unused part as used.
    pub(crate) fn keep(&mut self, octets: usize) {
        self.used = (self.used + octets).min(self.octets.len());
    }
}

impl Default for RxArena {
    fn default() -> Self {
        RxArena::new(Self::DEFAULT_OCTETS)
    }
}

/// Iterator of [`RxArena::packets_mut`].
pub struct PacketsMut<'a> {
    packets: std::slice::Iter<'a, RxPacket>,
    rest: &'a mut [u8],
    base: usize,
}

impl<'a> Iterator for PacketsMut<'a> {
    type Item = &'a mut [u8];

    fn next(&mut self) -> Option<&'a mut [u8]> {
        let packet = self.packets.next()?;
        let (start, len) = (packet.start as usize, packet.len as usize);
        let rest = std::mem::take(&mut self.rest);
        let (_, from_packet) = rest.split_at_mut(start - self.base);
        let (octets, after) = from_packet.split_at_mut(len);
        self.rest = after;
        self.base = start + len;
        Some(octets)
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
        RxPacket { face: FaceId(256), headers: LpHeaders::default(), start, len }
    }

    #[test]
    fn lends_disjoint_slices_of_a_batch_and_of_its_parts() {
        let mut arena = RxArena::new(0);
        for (i, octet) in arena.free_mut().iter_mut().take(40).enumerate() {
            *octet = i as u8;
        }
        let packets = [at(0, 3), at(3, 2), at(30, 4)];
        let mut lent: Vec<&mut [u8]> = arena.packets_mut(&packets).collect();
        assert_eq!(lent, [&[0, 1, 2][..], &[3, 4], &[30, 31, 32, 33]]);
        lent[1][0] = 99;
        let last_two: Vec<Vec<u8>> = arena.packets_mut(&packets[1..]).map(|octets| octets.to_vec()).collect();
        assert_eq!(last_two, [vec![99, 4], vec![30, 31, 32, 33]]);
        assert_eq!(arena.packet(&packets[1]), &[99, 4]);
    }
}
