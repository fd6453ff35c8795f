//! Prepaid: who asks pays for the answer.
//!
//! A turn costs a holder what its sockets bring ([`namewire_shares::turns`]). If that counted answers like questions, a
//! greedy consumer could ask a producer for more than the producer's turns let it answer: the answers, those for others
//! too, would wait in the producer's program for as long as the consumer went on. So each Interest that was sent to a
//! face pays for one packet from it: it costs no turn, and no part of a listener's read (`crowd.rs`).
//!
//! ```text
//!   greedy consumer ── pays 1 ──► router ── Interest ──► producer
//!                                        ◄── Data, paid for ──
//! ```
//!
//! N.B. Before, 150 streams that asked an application's names left its other consumers 12 to 62 % of their Data, after
//! up to a second (`namewire-lab run hostile --workers 2`, *same producer, unread*).
//!
//! Limits: at most [`PREPAID_MOST`] packets are paid for in advance. So a face that was asked and does not answer may
//! send that many packets more than its share, once. Whoever asks itself pays for the questions.

/// Packets of a face that may be paid for: what a few turns of a worker send.
const PREPAID_MOST: u64 = 1024;

/// What a face may send at the cost of those who asked it.
#[derive(Debug, Default)]
pub(crate) struct Prepaid {
    /// Interests sent when we last looked.
    asked: u64,
    left: u64,
}

impl Prepaid {
    /// How many of these packets are paid for. `asked`: Interests sent to the face so far.
    #[inline]
    pub(crate) fn spend(&mut self, asked: u64, packets: usize) -> usize {
        self.left = (self.left + asked.saturating_sub(self.asked)).min(PREPAID_MOST);
        self.asked = asked;
        let paid = self.left.min(packets as u64);
        self.left -= paid;
        paid as usize // no more than `packets`
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interest_pays_for_one_packet_and_savings_are_limited() {
        let mut prepaid = Prepaid::default();
        assert_eq!(prepaid.spend(0, 10), 0, "nobody asked");
        assert_eq!(prepaid.spend(7, 5), 5);
        assert_eq!(prepaid.spend(8, 5), 3, "two left, and one more");
        assert_eq!(prepaid.spend(8, 5), 0);
        assert_eq!(prepaid.spend(1_000_000, 2_000), 1024);
        assert_eq!(prepaid.spend(1_000_000, 2_000), 0);
    }
}
