//! RTT estimate: how long do answers take, and when is one overdue?
//!
//! Source: RFC 6298 with its weights (1/8 for the mean, 1/4 for the variation, and the overdue time four
//! variations above the mean), which are those of NFD's strategies (forwarding §4.5).

/// Time after which an answer is overdue while nothing is known: 1 s.
const INITIAL_RTO_NS: u64 = 1_000_000_000;
/// Longest time that an answer is waited for: 60 s.
const MAX_RTO_NS: u64 = 60_000_000_000;

/// Mean and variation of round-trip times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttEstimate {
    /// 0: no sample yet.
    mean_ns: u64,
    variation_ns: u64,
}

impl RttEstimate {
    /// Takes in one round-trip time. A sample of 0 counts as 1 ns.
    pub fn add(&mut self, sample_ns: u64) {
        let sample_ns = sample_ns.clamp(1, MAX_RTO_NS);
        if self.mean_ns == 0 {
            *self = RttEstimate { mean_ns: sample_ns, variation_ns: sample_ns / 2 };
            return;
        }
        self.variation_ns = (3 * self.variation_ns + self.mean_ns.abs_diff(sample_ns)) / 4;
        self.mean_ns = ((7 * self.mean_ns + sample_ns) / 8).max(1);
    }

    /// The smoothed round-trip time, if there was a sample.
    pub fn smoothed_ns(&self) -> Option<u64> {
        (self.mean_ns > 0).then_some(self.mean_ns)
    }

    /// When an answer is overdue, at least `min_ns`.
    pub fn timeout_ns(&self, min_ns: u64) -> u64 {
        match self.mean_ns {
            0 => INITIAL_RTO_NS,
            mean_ns => (mean_ns + 4 * self.variation_ns).clamp(min_ns, MAX_RTO_NS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_the_rfc() {
        let mut rtt = RttEstimate::default();
        assert_eq!((rtt.smoothed_ns(), rtt.timeout_ns(1)), (None, INITIAL_RTO_NS));
        rtt.add(800);
        assert_eq!((rtt.smoothed_ns(), rtt.timeout_ns(1)), (Some(800), 800 + 4 * 400));
        rtt.add(1600);
        assert_eq!((rtt.mean_ns, rtt.variation_ns), (900, (3 * 400 + 800) / 4));
        assert_eq!(rtt.timeout_ns(1_000_000), 1_000_000);
        rtt.add(u64::MAX);
        assert!(rtt.timeout_ns(1) <= MAX_RTO_NS);
        (0..200).for_each(|_| rtt.add(0));
        assert_eq!(rtt.smoothed_ns(), Some(1), "a mean of nothing stays a mean");
    }
}
