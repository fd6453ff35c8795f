//! The sending half of reliability: which frames are unacknowledged, and which of them are lost (NDNLPv2 §5)?
//!
//! Every transmission has its own TxSequence, one above the last. So unacknowledged transmissions form a queue ordered
//! by TxSequence and by time. Both signs of loss, three Acks of later transmissions and the RTO, apply to the front of
//! the queue first. So only the front is examined:
//!
//! ```text
//!   window   │ t=40 ✓ │ t=41 │ t=42 ✓ │ t=43 ✓ │ t=44 ✓ │ t=45 │      ✓ acknowledged
//!              popped   lost: 42, 43, 44 are later ─► again as t=46
//!   bytes   │ frame  │ frame│ frame  │ …      one buffer, in the same order
//! ```
//!
//! A frame that was only late is acknowledged under its former TxSequence. This Ack also ends the retransmission of the
//! frame; NFD keeps repeating the retransmission.
//!
//! Cost: each frame is copied when it is sent. An Ack takes amortized constant time.
//!
//! Limits: a link has at most [`MAX_FRAMES`] unacknowledged frames with [`MAX_BYTES`]. Beyond them the oldest frame is
//! no longer retransmitted ([`LinkDrop::UnacknowledgedEvicted`]). The driver lowers the limit of bytes while the host
//! of the link has used its share of the frames of all links. Late Acks are recognised for the last [`MAX_REPLACED`]
//! replaced transmissions. A link without unacknowledged frames keeps a buffer of [`KEPT_BYTES`].

use std::collections::VecDeque;

use namewire_packet::{
    rtt::RttEstimate,
    tlv::{self, Reader, types},
};

use super::black_hole::BlackHole;
use crate::{LinkCounters, LinkDrop};

/// Least time until an Ack is overdue, as in NFD.
const LEAST_TIMEOUT_NS: u64 = 200_000_000;

/// Most unacknowledged transmissions.
pub const MAX_FRAMES: usize = 8192;

/// Most bytes of frames kept. With a round trip of 100 ms that allows 40 MB/s; the buffer may take twice as much.
pub const MAX_BYTES: usize = 4 << 20;

/// Memory for frames that a link keeps while no frame is unacknowledged, in bytes.
pub const KEPT_BYTES: usize = 16 << 10;

/// Places for transmissions that it keeps then.
const KEPT_FRAMES: usize = 256;

/// How often a frame is sent again before its packet is given up.
pub const MAX_RETRANSMISSIONS: u8 = 3;

/// Most replaced transmissions remembered.
pub const MAX_REPLACED: usize = 1024;

/// This number of Acks of later transmissions is a sign of loss.
const LATER_ACKS: usize = 3;

/// Bytes that a link may keep whatever its share: a few of the largest packets.
const LEAST_LIMIT_BYTES: usize = 64 << 10;

pub(super) struct Unacknowledged {
    limit_bytes: usize,
    next_tx_sequence: u64,
    /// Transmissions `next_tx_sequence - window.len()` and on.
    window: VecDeque<Transmission>,
    /// Frames of `window`, in its order, after a part that is no longer needed.
    bytes: Vec<u8>,
    /// Bytes already removed from `bytes`: positions count from the first byte ever kept.
    bytes_before: u64,
    packets: Vec<Packet>,
    free_packets: Vec<u32>,
    /// One above the largest TxSequences acknowledged, largest first; 0 for none.
    latest_acks: [u64; LATER_ACKS],
    /// TxSequences of lost or late transmissions, and of those that replaced them, in ascending order.
    replaced: VecDeque<(u64, u64)>,
    rtt: RttEstimate,
    pub(super) black_hole: BlackHole,
}

impl Default for Unacknowledged {
    fn default() -> Self {
        Unacknowledged {
            limit_bytes: MAX_BYTES,
            next_tx_sequence: 0,
            window: VecDeque::new(),
            bytes: Vec::new(),
            bytes_before: 0,
            packets: Vec::new(),
            free_packets: Vec::new(),
            latest_acks: [0; LATER_ACKS],
            replaced: VecDeque::new(),
            rtt: RttEstimate::default(),
            black_hole: BlackHole::default(),
        }
    }
}

struct Transmission {
    position: u64,
    len: u32,
    /// Index in `packets`.
    packet: u32,
    sent_ns: u64,
    /// The lower half of the TxSequence of the frame's first transmission.
    first_tx_sequence: u32,
    retransmissions: u8,
    /// Acknowledged, retransmitted or given up.
    is_done: bool,
}

/// A network packet with unacknowledged frames.
struct Packet {
    /// Frames not yet acknowledged.
    frames: u32,
    was_retransmitted: bool,
    is_given_up: bool,
}

impl Unacknowledged {
    pub(super) fn next_tx_sequence(&self) -> u64 {
        self.next_tx_sequence
    }

    /// Memory for the frames kept, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Limits the bytes kept from now on; [`MAX_BYTES`] is the limit in any case.
    pub(super) fn limit(&mut self, bytes: u64) {
        self.limit_bytes = usize::try_from(bytes).unwrap_or(MAX_BYTES).clamp(LEAST_LIMIT_BYTES, MAX_BYTES);
    }

    pub(super) fn rto_ns(&self) -> u64 {
        self.rtt.timeout_ns(LEAST_TIMEOUT_NS)
    }

    /// Room for a packet of `frames` frames, all of which must be kept next.
    pub(super) fn begin_packet(&mut self, frames: u64) -> u32 {
        let packet = Packet { frames: frames as u32, was_retransmitted: false, is_given_up: false };
        match self.free_packets.pop() {
            Some(index) => {
                self.packets[index as usize] = packet;
                index
            }
            None => {
                self.packets.push(packet);
                self.packets.len() as u32 - 1
            }
        }
    }

    /// Keeps a copy of a frame that is sent now with [`Unacknowledged::next_tx_sequence`].
    pub(super) fn keep(
        &mut self,
        now_ns: u64,
        packet: u32,
        header: &[u8],
        payload: &[u8],
        counters: &mut LinkCounters,
    ) {
        let len = header.len() + payload.len();
        while self.window.len() >= MAX_FRAMES || self.kept_bytes() + len > self.limit_bytes {
            self.evict(counters);
        }
        self.forget_done();
        let position = self.bytes_before + self.bytes.len() as u64;
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(payload);
        self.push(Transmission {
            position,
            len: len as u32,
            packet,
            sent_ns: now_ns,
            first_tx_sequence: self.next_tx_sequence as u32,
            retransmissions: 0,
            is_done: false,
        });
    }

    /// Processes an Ack. An Ack for an unknown transmission has no effect.
    pub(super) fn acknowledge(&mut self, now_ns: u64, tx_sequence: u64, counters: &mut LinkCounters) {
        if let Ok(index) = self.replaced.binary_search_by_key(&tx_sequence, |(before, _)| *before) {
            let (_, instead) = self.replaced[index];
            return self.acknowledge_late(tx_sequence, instead, counters);
        }
        let first = self.next_tx_sequence - self.window.len() as u64;
        let index = tx_sequence.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        let Some(transmission) = index.and_then(|index| self.window.get_mut(index)) else { return };
        if transmission.is_done {
            return;
        }
        transmission.is_done = true;
        if transmission.retransmissions == 0 {
            self.rtt.add(now_ns.saturating_sub(transmission.sent_ns));
        }
        let (packet, bytes) = (transmission.packet, transmission.len);
        self.black_hole.note_arrived(tx_sequence, bytes);
        self.count_arrived(packet, counters);
        let mut later = tx_sequence + 1;
        for latest in &mut self.latest_acks {
            if later > *latest {
                std::mem::swap(&mut later, latest);
            }
        }
        self.forget_done();
    }

    /// A frame has arrived, as `arrived`, that was retransmitted meanwhile, as `tx_sequence` and perhaps again.
    fn acknowledge_late(&mut self, arrived: u64, mut tx_sequence: u64, counters: &mut LinkCounters) {
        while let Ok(index) = self.replaced.binary_search_by_key(&tx_sequence, |(before, _)| *before) {
            tx_sequence = self.replaced[index].1;
        }
        let first = self.next_tx_sequence - self.window.len() as u64;
        let index = tx_sequence.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        if let Some(transmission) = index.and_then(|index| self.window.get_mut(index)).filter(|t| !t.is_done) {
            transmission.is_done = true;
            let (packet, bytes) = (transmission.packet, transmission.len);
            self.black_hole.note_arrived(arrived, bytes);
            self.count_arrived(packet, counters);
            self.forget_done();
        }
    }

    /// One frame of a packet has arrived.
    fn count_arrived(&mut self, packet: u32, counters: &mut LinkCounters) {
        if let Some(Packet { was_retransmitted, is_given_up: false, .. }) = self.release(packet) {
            let counter = if was_retransmitted { &mut counters.retransmitted } else { &mut counters.acknowledged };
            *counter += 1;
        }
    }

    /// Retransmits every lost frame, or gives up its packet.
    pub(super) fn retransmit_lost(
        &mut self,
        now_ns: u64,
        counters: &mut LinkCounters,
        emit: &mut impl FnMut(&[u8], &[u8]),
    ) {
        while self.next_loss_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            let tx_sequence = self.next_tx_sequence - self.window.len() as u64;
            let Some(lost) = self.window.pop_front() else { return };
            if lost.retransmissions >= MAX_RETRANSMISSIONS {
                self.packets[lost.packet as usize].is_given_up = true;
                self.release(lost.packet);
                let since_first = (tx_sequence as u32).wrapping_sub(lost.first_tx_sequence);
                self.black_hole.note_given_up(tx_sequence - u64::from(since_first), lost.len);
                counters.count_drop(LinkDrop::RetransmissionsExhausted);
                continue;
            }
            if self.replaced.len() >= MAX_REPLACED {
                self.replaced.pop_front();
            }
            self.replaced.push_back((tx_sequence, self.next_tx_sequence));
            self.packets[lost.packet as usize].was_retransmitted = true;
            counters.frames_retransmitted += 1;
            let start = (lost.position - self.bytes_before) as usize;
            let copy = self.bytes.len();
            self.bytes.extend_from_within(start..start + lost.len as usize);
            write_tx_sequence(&mut self.bytes[copy..], self.next_tx_sequence);
            emit(&[], &self.bytes[copy..]);
            let position = self.bytes_before + copy as u64;
            self.push(Transmission { position, sent_ns: now_ns, retransmissions: lost.retransmissions + 1, ..lost });
        }
    }

    /// When the front of the queue counts as lost; a time in the past if it does already.
    pub(super) fn next_loss_ns(&mut self) -> Option<u64> {
        self.forget_done();
        let front = self.window.front()?;
        let tx_sequence = self.next_tx_sequence - self.window.len() as u64;
        if tx_sequence + 1 < self.latest_acks[LATER_ACKS - 1] {
            return Some(0);
        }
        Some(front.sent_ns.saturating_add(self.rtt.timeout_ns(LEAST_TIMEOUT_NS)))
    }

    /// Frees memory if no frame is unacknowledged.
    pub(super) fn rest(&mut self) {
        self.forget_done();
        if self.window.is_empty() {
            // No packet has frames left.
            self.packets.clear();
            self.free_packets.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.window.shrink_to(KEPT_FRAMES);
            self.packets.shrink_to(KEPT_FRAMES);
            self.free_packets.shrink_to(KEPT_FRAMES);
        }
    }

    fn push(&mut self, transmission: Transmission) {
        self.window.push_back(transmission);
        self.next_tx_sequence += 1;
    }

    /// Bytes from the front's frame to the end.
    fn kept_bytes(&self) -> usize {
        let end = self.bytes_before + self.bytes.len() as u64;
        self.window.front().map_or(0, |front| (end - front.position) as usize)
    }

    fn evict(&mut self, counters: &mut LinkCounters) {
        let Some(oldest) = self.window.pop_front() else { return };
        if !oldest.is_done {
            let packet = &mut self.packets[oldest.packet as usize];
            if !std::mem::replace(&mut packet.is_given_up, true) {
                counters.count_drop(LinkDrop::UnacknowledgedEvicted);
            }
            self.release(oldest.packet);
        }
    }

    /// Removes one frame of a packet; returns the packet if that was its last.
    fn release(&mut self, index: u32) -> Option<Packet> {
        let packet = &mut self.packets[index as usize];
        packet.frames -= 1;
        if packet.frames > 0 {
            return None;
        }
        self.free_packets.push(index);
        Some(Packet { ..*packet })
    }

    /// Pops finished transmissions from the front. Moves the rest of the bytes down once that is the smaller part, so
    /// that each byte moves less than once on average.
    fn forget_done(&mut self) {
        while let Some(front) = self.window.front() {
            if !front.is_done {
                if !self.packets[front.packet as usize].is_given_up {
                    break;
                }
                self.release(front.packet);
            }
            self.window.pop_front();
        }
        let unneeded = self.bytes.len() - self.kept_bytes();
        if unneeded * 2 >= self.bytes.len() {
            self.bytes.drain(..unneeded);
            self.bytes_before += unneeded as u64;
        }
    }
}

/// Replaces the TxSequence of a frame that has one.
fn write_tx_sequence(frame: &mut [u8], tx_sequence: u64) {
    let Ok(outer) = tlv::read_element(frame) else { return };
    let header_bytes = outer.wire.len() - outer.value.len();
    let mut reader = Reader::new(outer.value);
    while let Ok(Some(element)) = reader.next_element() {
        if element.type_number == types::LP_TX_SEQUENCE {
            let end = header_bytes + reader.offset();
            frame[end - size_of::<u64>()..end].copy_from_slice(&tx_sequence.to_be_bytes());
            return;
        }
    }
}
