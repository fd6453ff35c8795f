//! Loss recovery of one link: retransmits lost frames and acknowledges the peer's (NDNLPv2 §5). Sans-IO.
//!
//! ```text
//!   send     Sequence s  TxSequence t  [Ack …]  Fragment ──► kept until t is acknowledged
//!   receive  Ack t ──► forgotten      3 later Acks, or RTO over ──► the same again as TxSequence t'
//!            TxSequence ──► Ack in the next frame, or alone after 5 ms
//! ```
//!
//! Differences from NFD:
//!
//! * Memory is bounded.
//! * A time-out uses the present RTO, not the RTO at the time of sending.
//! * A retransmitted frame carries no Acks.
//! * A Sequence is remembered for [`MEMORY_RTOS`] RTOs, not for one: a late retransmission would else begin a message
//!   that never completes.
//! * The strategy gets no report of a lost fragment. None of NFD's strategies uses this report.
//!
//! [`black_hole`] detects a path on which large frames vanish.
//!
//! Limits: those of [`unacknowledged`] and [`arrivals`].

pub mod arrivals;
pub mod black_hole;
pub mod unacknowledged;

use namewire_packet::lp::{self, LinkFields, LpHeaders, LpPacket};

use self::arrivals::Arrivals;
use self::unacknowledged::{MAX_RETRANSMISSIONS, Unacknowledged};
use crate::{LinkCounters, LinkDrop};

/// Bytes of one Ack field.
pub(crate) const ACK_BYTES: usize = 12;

/// How many RTOs a Sequence is remembered: until the last retransmission of its frame has arrived.
const MEMORY_RTOS: u64 = MAX_RETRANSMISSIONS as u64 + 1;

/// Bytes by which the outer header of an LpPacket may grow when fields are added.
const LENGTH_GROWTH_BYTES: usize = 2;

/// Bytes of an IDLE packet that are not Acks.
const IDLE_BYTES: usize = 4;

/// Both halves of one link.
#[derive(Default)]
pub(crate) struct Reliability {
    unacknowledged: Unacknowledged,
    arrivals: Arrivals,
}

/// One frame of a network packet on its way out.
pub(crate) struct FrameOut<'a> {
    pub(crate) headers: &'a LpHeaders,
    /// Sequence and, for a fragment, its place.
    pub(crate) link: LinkFields<'a>,
    pub(crate) payload: &'a [u8],
}

impl Reliability {
    /// Announces a network packet of `frames` frames; [`Reliability::send`] follows for each.
    pub(crate) fn begin_packet(&mut self, frames: u64) -> u32 {
        self.unacknowledged.begin_packet(frames)
    }

    /// Gives the frame its TxSequence, keeps a copy, adds the Acks that fit `mtu` and emits it.
    pub(crate) fn send(
        &mut self,
        now_ns: u64,
        packet: u32,
        frame: FrameOut<'_>,
        mtu: usize,
        (scratch, counters): (&mut Vec<u8>, &mut LinkCounters),
        emit: &mut impl FnMut(&[u8], &[u8]),
    ) {
        let FrameOut { headers, link, payload } = frame;
        let link = LinkFields { tx_sequence: Some(self.unacknowledged.next_tx_sequence()), ..link };
        scratch.clear();
        lp::write_headers(scratch, headers, &link, payload.len());
        self.unacknowledged.keep(now_ns, packet, scratch, payload, counters);
        let room = mtu.saturating_sub(scratch.len() + payload.len() + LENGTH_GROWTH_BYTES);
        if self.arrivals.has_acks() && room >= ACK_BYTES {
            scratch.clear();
            self.arrivals.take_acks(room / ACK_BYTES, |acks| {
                lp::write_headers(scratch, headers, &LinkFields { acks, ..link }, payload.len());
            });
        }
        emit(scratch, payload);
    }

    /// Processes a frame's Acks and its TxSequence.
    pub(crate) fn receive(
        &mut self,
        now_ns: u64,
        frame: &LpPacket<'_>,
        counters: &mut LinkCounters,
    ) -> Result<(), LinkDrop> {
        for tx_sequence in frame.acks() {
            self.unacknowledged.acknowledge(now_ns, tx_sequence, counters);
        }
        let Some(tx_sequence) = frame.tx_sequence.filter(|_| frame.fragment.is_some()) else { return Ok(()) };
        let memory_ns = MEMORY_RTOS * self.unacknowledged.rto_ns();
        self.arrivals.note(now_ns, tx_sequence, frame.sequence, memory_ns, counters)
    }

    /// Retransmits lost frames if `may_retransmit`. Emits the Acks that have waited long enough or fill a frame of
    /// `mtu` bytes.
    pub(crate) fn pump(
        &mut self,
        now_ns: u64,
        mtu: usize,
        may_retransmit: bool,
        (scratch, counters): (&mut Vec<u8>, &mut LinkCounters),
        emit: &mut impl FnMut(&[u8], &[u8]),
    ) {
        if may_retransmit {
            self.unacknowledged.retransmit_lost(now_ns, counters, emit);
        }
        let acks_per_frame = (mtu.saturating_sub(IDLE_BYTES) / ACK_BYTES).max(1);
        let is_due = self.arrivals.acks_due_ns().is_some_and(|at_ns| at_ns <= now_ns);
        while self.arrivals.acks() >= acks_per_frame || (is_due && self.arrivals.has_acks()) {
            scratch.clear();
            self.arrivals.take_acks(acks_per_frame, |acks| {
                lp::write_headers(scratch, &LpHeaders::default(), &LinkFields { acks, ..LinkFields::default() }, 0);
            });
            emit(scratch, &[]);
        }
    }

    /// The size of the smallest frame that vanished on the path, if a black hole was found since the last call.
    pub(crate) fn take_black_hole(&mut self) -> Option<u32> {
        self.unacknowledged.black_hole.take()
    }

    pub(crate) fn unacknowledged_memory_bytes(&self) -> usize {
        self.unacknowledged.memory_bytes()
    }

    pub(crate) fn limit_unacknowledged(&mut self, bytes: u64) {
        self.unacknowledged.limit(bytes);
    }

    /// Frees memory if no frame is unacknowledged.
    pub(crate) fn rest(&mut self) {
        self.unacknowledged.rest();
    }

    /// When Acks must go out even without a packet.
    pub(crate) fn acks_due_ns(&self) -> Option<u64> {
        self.arrivals.acks_due_ns()
    }

    /// When the oldest frame counts as lost.
    pub(crate) fn retransmission_due_ns(&mut self) -> Option<u64> {
        self.unacknowledged.next_loss_ns()
    }
}
