//! How long to wait for an Ack: the estimator of RFC 6298 with NFD's numbers (NDNLPv2 §5).

const INITIAL_NS: u64 = 1_000_000_000;
const LEAST_NS: u64 = 200_000_000;
const LONGEST_NS: u64 = 60_000_000_000;

/// Smoothed round-trip time and its variation.
pub(super) struct Rto {
    smoothed_ns: u64,
    variation_ns: u64,
    rto_ns: u64,
}

impl Default for Rto {
    fn default() -> Self {
        Rto { smoothed_ns: 0, variation_ns: 0, rto_ns: INITIAL_NS }
    }
}

impl Rto {
    pub(super) fn rto_ns(&self) -> u64 {
        self.rto_ns
    }

    /// Takes the round-trip time of a frame that was sent once.
    pub(super) fn sample(&mut self, round_trip_ns: u64) {
        // An Ack that took longer says no more; and the sums below stay far from overflow.
        let sample_ns = round_trip_ns.clamp(1, LONGEST_NS);
        if self.smoothed_ns == 0 {
            (self.smoothed_ns, self.variation_ns) = (sample_ns, sample_ns / 2);
        } else {
            self.variation_ns = (3 * self.variation_ns + self.smoothed_ns.abs_diff(sample_ns)) / 4;
            self.smoothed_ns = (7 * self.smoothed_ns + sample_ns) / 8;
        }
        self.rto_ns = (self.smoothed_ns + 4 * self.variation_ns).clamp(LEAST_NS, LONGEST_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn follows_the_round_trip_time_within_its_bounds() {
        let mut rto = Rto::default();
        assert_eq!(rto.rto_ns(), 1000 * MS);
        rto.sample(400 * MS);
        assert_eq!(rto.rto_ns(), 1200 * MS, "400 + 4 * 200");
        rto.sample(400 * MS);
        assert_eq!(rto.rto_ns(), 1000 * MS, "400 + 4 * 150");
        rto.sample(800 * MS);
        assert_eq!(rto.rto_ns(), 450 * MS + 4 * 850 * MS / 4, "variation (3 * 150 + 400) / 4");
        for _ in 0..100 {
            rto.sample(MS);
        }
        assert_eq!(rto.rto_ns(), LEAST_NS);
        for _ in 0..100 {
            rto.sample(u64::MAX);
        }
        assert_eq!(rto.rto_ns(), LONGEST_NS);
    }
}
