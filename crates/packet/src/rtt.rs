//! Round-trip times: how long do answers take, and when is one overdue?
//!
//! The estimator of RFC 6298 §2 with its weights: 1/8 for the mean, 1/4 for the variation. An answer is overdue four
//! variations above the mean. Strategies, reliable links and fetches use it, each with its own minimum. The caller
//! decides on back-off, and adds no sample for a packet that it sent twice (Karn's rule, §3 and §5).
//!
//! The module is in this crate because it is the only crate that all three use.

/// Time after which an answer is overdue before the first sample: 1 s.
pub const INITIAL_TIMEOUT_NS: u64 = 1_000_000_000;
/// Longest time to wait for an answer, and largest sample: 60 s.
pub const MAX_TIMEOUT_NS: u64 = 60_000_000_000;

/// Mean and variation of round-trip times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttEstimate {
    /// 0: no sample yet.
    mean_ns: u64,
    variation_ns: u64,
}

impl RttEstimate {
    /// Adds one round-trip time. A sample of 0 counts as 1 ns.
    pub fn add(&mut self, sample_ns: u64) {
        let sample_ns = sample_ns.clamp(1, MAX_TIMEOUT_NS);
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

    /// The variation of the round-trip times.
    pub fn variation_ns(&self) -> u64 {
        self.variation_ns
    }

    /// When an answer is overdue, at least `min_ns` once there was a sample.
    #[inline]
    pub fn timeout_ns(&self, min_ns: u64) -> u64 {
        match self.mean_ns {
            0 => INITIAL_TIMEOUT_NS,
            mean_ns => (mean_ns + 4 * self.variation_ns).clamp(min_ns, MAX_TIMEOUT_NS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_the_rfc() {
        let mut rtt = RttEstimate::default();
        assert_eq!((rtt.smoothed_ns(), rtt.timeout_ns(1)), (None, INITIAL_TIMEOUT_NS));
        rtt.add(800);
        assert_eq!((rtt.smoothed_ns(), rtt.timeout_ns(1)), (Some(800), 800 + 4 * 400));
        rtt.add(1600);
        assert_eq!((rtt.mean_ns, rtt.variation_ns()), (900, (3 * 400 + 800) / 4));
        assert_eq!(rtt.timeout_ns(1_000_000), 1_000_000);
        rtt.add(u64::MAX);
        assert!(rtt.timeout_ns(1) <= MAX_TIMEOUT_NS);
        (0..200).for_each(|_| rtt.add(0));
        assert_eq!(rtt.smoothed_ns(), Some(1), "a mean of nothing stays a mean");
    }

    #[test]
    fn the_timeout_stays_within_its_bounds() {
        const MS: u64 = 1_000_000;
        let mut rtt = RttEstimate::default();
        let mut after = |sample_ns, times| {
            (0..times).for_each(|_| rtt.add(sample_ns));
            rtt.timeout_ns(200 * MS)
        };
        assert_eq!(after(400 * MS, 1), 1200 * MS, "400 + 4 * 200");
        assert_eq!(after(400 * MS, 1), 1000 * MS, "400 + 4 * 150");
        assert_eq!(after(800 * MS, 1), 450 * MS + 4 * 850 * MS / 4, "variation (3 * 150 + 400) / 4");
        assert_eq!(after(MS, 100), 200 * MS);
        assert_eq!(after(u64::MAX, 100), MAX_TIMEOUT_NS);
    }
}
