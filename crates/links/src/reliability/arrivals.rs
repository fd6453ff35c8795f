//! The receiving half of reliability: which frames must be acknowledged, and which Sequences were received before
//! (NDNLPv2 §5).
//!
//! Limits: on a link at most [`MAX_PENDING_ACKS`] Acks wait. Beyond them a frame is passed on without an Ack, and its
//! sender retransmits it. At most [`MAX_REMEMBERED`] Sequences are remembered. Beyond them the oldest is forgotten
//! early, so a late duplicate of its frame is not recognised.

use std::collections::VecDeque;

use hashbrown::HashSet;

use crate::{LinkCounters, LinkDrop};

/// Most Acks that wait for a frame to carry them.
pub const MAX_PENDING_ACKS: usize = 4096;

/// Most Sequences remembered: half of what a hash table of 16,384 slots takes. Up to this half the table clears its
/// deleted slots in place; above, it grows once more at a moment that its random seed chooses.
pub const MAX_REMEMBERED: usize = 7168;

/// How long an Ack waits for a frame to carry it: 5 ms.
pub const ACK_DELAY_NS: u64 = 5_000_000;

#[derive(Default)]
pub(super) struct Arrivals {
    /// TxSequences to acknowledge, oldest first.
    acks: VecDeque<u64>,
    /// When the oldest of `acks` arrived, or one before it.
    oldest_ack_ns: u64,
    remembered: HashSet<u64>,
    /// The content of `remembered` with its times, oldest first.
    order: VecDeque<(u64, u64)>,
}

impl Arrivals {
    /// Notes one frame. `Err`: its Sequence was received within the last `memory_ns`.
    pub(super) fn note(
        &mut self,
        now_ns: u64,
        tx_sequence: u64,
        sequence: Option<u64>,
        memory_ns: u64,
        counters: &mut LinkCounters,
    ) -> Result<(), LinkDrop> {
        if self.acks.len() >= MAX_PENDING_ACKS {
            counters.count_drop(LinkDrop::AcksFull);
        } else {
            if self.acks.is_empty() {
                self.oldest_ack_ns = now_ns;
            }
            self.acks.push_back(tx_sequence);
        }
        // Without a Sequence, reliability cannot tell whether the frame came before.
        let Some(sequence) = sequence else { return Ok(()) };
        while let Some(&(since_ns, oldest)) = self.order.front()
            && (since_ns.saturating_add(memory_ns) <= now_ns || self.order.len() >= MAX_REMEMBERED)
        {
            self.remembered.remove(&oldest);
            self.order.pop_front();
        }
        if !self.remembered.insert(sequence) {
            return Err(LinkDrop::DuplicateSequence);
        }
        self.order.push_back((now_ns, sequence));
        Ok(())
    }

    pub(super) fn acks(&self) -> usize {
        self.acks.len()
    }

    pub(super) fn has_acks(&self) -> bool {
        !self.acks.is_empty()
    }

    pub(super) fn acks_due_ns(&self) -> Option<u64> {
        self.has_acks().then(|| self.oldest_ack_ns.saturating_add(ACK_DELAY_NS))
    }

    /// Passes the oldest Acks, at most `limit`, to `write`, and forgets them.
    pub(super) fn take_acks(&mut self, limit: usize, write: impl FnOnce(&[u64])) {
        let count = limit.min(self.acks.len());
        write(&self.acks.make_contiguous()[..count]);
        self.acks.drain(..count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY_NS: u64 = 1_000_000_000;

    #[test]
    fn a_sequence_is_remembered_for_a_while_and_acknowledged_each_time() {
        let (mut arrivals, mut counters) = (Arrivals::default(), LinkCounters::default());
        let mut note = |now_ns, tx, sequence| arrivals.note(now_ns, tx, Some(sequence), MEMORY_NS, &mut counters);
        assert_eq!(note(0, 0, 70), Ok(()));
        assert_eq!(note(1, 1, 71), Ok(()));
        assert_eq!(note(MEMORY_NS - 1, 2, 70), Err(LinkDrop::DuplicateSequence));
        assert_eq!(note(MEMORY_NS, 3, 70), Ok(()), "forgotten");
        assert_eq!(note(MEMORY_NS, 4, 71), Err(LinkDrop::DuplicateSequence));
        arrivals.take_acks(3, |acks| assert_eq!(acks, [0, 1, 2]));
        arrivals.take_acks(9, |acks| assert_eq!(acks, [3, 4]));
        assert_eq!(arrivals.acks_due_ns(), None);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut arrivals, mut counters) = (Arrivals::default(), LinkCounters::default());
        let count = MAX_REMEMBERED as u64 + 10;
        for n in 0..count {
            assert_eq!(arrivals.note(0, n, Some(n), MEMORY_NS, &mut counters), Ok(()));
        }
        assert_eq!((arrivals.remembered.len(), arrivals.order.len()), (MAX_REMEMBERED, MAX_REMEMBERED));
        assert_eq!(arrivals.acks(), MAX_PENDING_ACKS);
        assert_eq!(counters.dropped(LinkDrop::AcksFull), count - MAX_PENDING_ACKS as u64);
    }
}
