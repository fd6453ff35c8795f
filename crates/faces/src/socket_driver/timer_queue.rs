//! When must faces be checked without a packet?
//!
//! A binary heap holds at most one valid entry of each kind per face. Traffic does not move an entry: when it is due,
//! the driver checks the face, and inserts the entry again for a later time if necessary. For reliability, an earlier
//! entry may replace a later one. The later entry then has no effect when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use namewire_packet::FaceId;

/// What to check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Idle(FaceId),
    Reassembly(FaceId),
    Acks(FaceId),
    Retransmission(FaceId),
    Probe(FaceId),
    /// Of a datagram socket, by its index.
    Kick(usize),
    Rest,
}

#[derive(Default)]
pub(super) struct TimerQueue(BinaryHeap<Reverse<(u64, Timer)>>);

impl TimerQueue {
    pub(super) fn set(&mut self, at_ns: u64, timer: Timer) {
        self.0.push(Reverse((at_ns, timer)));
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// The next timer that is due, with its time.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<(u64, Timer)> {
        self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        self.0.pop().map(|Reverse(entry)| entry)
    }
}
