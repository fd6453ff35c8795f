//! Prefix expiry: how long may an Interest under this prefix stay pending, judged by the prefix's round-trip times?
//!
//! Source: Yuan15 §5.4.5, *dynamic expiration time management*: T_exp of each prefix is a multiple of its T_rtt, 9 with
//! the paper's k = 10, and 2 or 3 where answers are reliable. In the paper the strategy layer knows T_rtt. Here the
//! strategies of this path keep no state, so we sample round-trip times:
//!
//! ```text
//! 1 of 64 new Interests ─► sample { name hash, prefix hash, time }       place = name hash mod 1024
//! Data of that name hash ─► round-trip time ─► estimate { prefix hash, mean, variation }   prefix hash mod 4096
//! ```
//!
//! Both tables are direct-mapped: a new item displaces the old one in its place. Interests of a prefix without an
//! estimate keep their own lifetime. A sample counts if the Data satisfied a fingerprint, and came from a face that had
//! not asked for it. So unsolicited Data from a peer measures nothing. Another Interest for the name cancels a sample,
//! since the Data could answer either Interest (Karn).
//!
//! T_exp = max(k · mean, mean + 4 · variation, 100 ms), at most the Interest's lifetime. If a fingerprint expires too
//! early, the consumer must retransmit, as in the paper. The second term is the time when an answer is overdue
//! ([`RttEstimate`]), for paths whose times vary more than k allows. A sampled Interest keeps its whole lifetime:
//! otherwise answers slower than T_exp would never be measured, and T_exp would never grow.
//!
//! Cost: an Interest reads one cache line of estimates and one of samples; Data reads one of samples. Memory: an
//! estimate or a sample takes 24 bytes; both tables take 120 KiB. Writer: the worker.

use namewire_packet::rtt::RttEstimate;
use namewire_tables::fingerprint_pit::MAX_LIFETIME_NS;

/// One of this number of Interests is sampled.
const INTERESTS_PER_SAMPLE: u32 = 64;
/// Samples under way.
const SAMPLES: usize = 1024;
/// Prefixes with an estimate.
const ESTIMATES: usize = 4096;
/// The shortest T_exp: below it, delays of single packets decide.
const MIN_EXPIRY_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Default)]
struct Sample {
    name_hash: u64,
    prefix_hash: u64,
    /// 0 means none.
    sent_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Estimate {
    prefix_hash: u64,
    round_trip: RttEstimate,
}

const _: () = assert!(size_of::<Sample>() == 24 && size_of::<Estimate>() == 24);

/// See the module.
pub(crate) struct PrefixExpiry {
    round_trips: u64,
    samples: Box<[Sample]>,
    estimates: Box<[Estimate]>,
    /// New Interests until the next sample.
    until_sample: u32,
}

impl PrefixExpiry {
    /// T_exp of `round_trips` round-trip times.
    pub(crate) fn new(round_trips: u8) -> Self {
        PrefixExpiry {
            round_trips: round_trips.into(),
            samples: vec![Sample::default(); SAMPLES].into(),
            estimates: vec![Estimate::default(); ESTIMATES].into(),
            until_sample: 0,
        }
    }

    /// T_exp of an Interest under this prefix.
    pub(crate) fn lifetime_ns(&self, prefix_hash: u64, lifetime_ns: u64) -> u64 {
        if self.until_sample == 0 {
            return lifetime_ns;
        }
        let Estimate { prefix_hash: known, round_trip } = self.estimates[prefix_hash as usize % ESTIMATES];
        match round_trip.smoothed_ns().filter(|_| known == prefix_hash) {
            Some(mean_ns) => (self.round_trips * mean_ns).max(round_trip.timeout_ns(MIN_EXPIRY_NS)).min(lifetime_ns),
            None => lifetime_ns,
        }
    }

    /// A new Interest was forwarded.
    pub(crate) fn sent_new(&mut self, name_hash: u64, prefix_hash: u64, now_ns: u64) {
        if self.until_sample > 0 {
            self.until_sample -= 1;
            return self.sent_again(name_hash);
        }
        self.until_sample = INTERESTS_PER_SAMPLE - 1;
        self.samples[name_hash as usize % SAMPLES] = Sample { name_hash, prefix_hash, sent_ns: now_ns.max(1) };
    }

    /// An Interest was forwarded for a name that may be sampled.
    pub(crate) fn sent_again(&mut self, name_hash: u64) {
        let sample = &mut self.samples[name_hash as usize % SAMPLES];
        if sample.name_hash == name_hash {
            sample.sent_ns = 0;
        }
    }

    /// Data satisfied a pending fingerprint, from a face that had not asked for it.
    #[inline]
    pub(crate) fn answered(&mut self, name_hash: u64, now_ns: u64) {
        let sample = &mut self.samples[name_hash as usize % SAMPLES];
        let sent_ns = std::mem::take(match sample.name_hash == name_hash {
            true => &mut sample.sent_ns,
            false => return,
        });
        let round_trip_ns = now_ns.saturating_sub(sent_ns);
        // An answer slower than any fingerprint's life is no answer to the sampled Interest.
        if sent_ns == 0 || round_trip_ns > MAX_LIFETIME_NS {
            return;
        }
        let prefix_hash = sample.prefix_hash;
        let estimate = &mut self.estimates[prefix_hash as usize % ESTIMATES];
        if estimate.prefix_hash != prefix_hash {
            *estimate = Estimate { prefix_hash, round_trip: RttEstimate::default() };
        }
        estimate.round_trip.add(round_trip_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS_NS: u64 = 1_000_000;
    const LIFETIME_NS: u64 = 4_000 * MS_NS;

    fn expiry() -> PrefixExpiry {
        PrefixExpiry::new(9)
    }

    /// The next 63 Interests are not measured.
    fn between_samples(expiry: &mut PrefixExpiry) {
        while expiry.until_sample == 0 {
            expiry.sent_new(1 << 32, 1 << 32, MS_NS);
        }
    }

    #[test]
    fn one_interest_of_64_is_measured_and_its_prefix_expires_after_so_many_round_trips() {
        let mut expiry = expiry();
        for number in 0..64 {
            expiry.sent_new(1000 + number, 7, 100 * MS_NS);
        }
        between_samples(&mut expiry);
        for number in (0..64).rev() {
            assert_eq!(expiry.lifetime_ns(7, LIFETIME_NS), LIFETIME_NS, "not before the first is answered");
            expiry.answered(1000 + number, 180 * MS_NS);
        }
        assert_eq!(expiry.lifetime_ns(7, LIFETIME_NS), 9 * 80 * MS_NS);
        assert_eq!(expiry.lifetime_ns(7, 500 * MS_NS), 500 * MS_NS, "never longer than the Interest");
        assert_eq!(expiry.lifetime_ns(7 + 4096, LIFETIME_NS), LIFETIME_NS, "another prefix in its place");
        expiry.answered(1000, 999 * MS_NS);
        assert_eq!(expiry.lifetime_ns(7, LIFETIME_NS), 9 * 80 * MS_NS, "only the first answer counts");
        (0..63).for_each(|number| expiry.sent_new(2000 + number, 7, MS_NS));
        assert_eq!(expiry.lifetime_ns(7, LIFETIME_NS), LIFETIME_NS, "what may be a sample waits for its answer");
    }

    #[test]
    fn a_short_round_trip_leaves_100_ms_and_a_repeated_interest_measures_nothing() {
        let lifetime_after = |happens: fn(&mut PrefixExpiry)| {
            let mut expiry = expiry();
            expiry.sent_new(5, 7, MS_NS);
            happens(&mut expiry);
            expiry.lifetime_ns(7, LIFETIME_NS)
        };
        assert_eq!(lifetime_after(|quick| quick.answered(5, 2 * MS_NS)), MIN_EXPIRY_NS);
        let repeated = lifetime_after(|repeated| {
            repeated.sent_again(5);
            repeated.answered(5, 2 * MS_NS);
        });
        assert_eq!(repeated, LIFETIME_NS);
        let forgotten = lifetime_after(|forgotten| {
            forgotten.sent_new(5, 7, 3_000 * MS_NS);
            forgotten.answered(5, 3_002 * MS_NS);
        });
        assert_eq!(forgotten, LIFETIME_NS, "its first entry is gone, and the answer may be to either");
        assert_eq!(lifetime_after(|late| late.answered(5, MAX_LIFETIME_NS + 2 * MS_NS)), LIFETIME_NS);
    }

    #[test]
    fn where_round_trips_vary_entries_outlast_the_longer_ones() {
        let mut expiry = PrefixExpiry::new(2);
        let times_ms = [50, 450];
        for number in 0..400 {
            expiry.until_sample = 0;
            expiry.sent_new(number, 7, MS_NS);
            expiry.answered(number, MS_NS + times_ms[number as usize % 2] * MS_NS);
        }
        let lifetime_ms = expiry.lifetime_ns(7, LIFETIME_NS) / MS_NS;
        assert!((900..1200).contains(&lifetime_ms), "{lifetime_ms}: twice the mean of 250 is 500");
    }
}
