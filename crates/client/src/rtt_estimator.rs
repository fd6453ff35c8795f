//! RTT estimator: how long to wait for a segment? It computes the retransmission time-out (RTO) of RFC 6298.
//!
//! The RTO doubles at each time-out until there is a new sample. A fetch takes no samples of segments that it asked for
//! more than once (Karn's rule): the answer may belong to either request.

use namewire_packet::rtt::RttEstimate;
use std::time::Duration;
use tokio::time::Instant;

/// The longest round trip is one of the last one or two of these spans.
const LONGEST_SPAN: Duration = Duration::from_millis(500);

/// Estimates the RTO of one path.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    estimate: RttEstimate,
    rto: Duration,
    rto_min: Duration,
    rto_max: Duration,
    /// The longest round trips of this span and of the one before.
    longest: [Duration; 2],
    span_began: Option<Instant>,
}

impl RttEstimator {
    /// An estimator whose RTO stays between the two bounds.
    pub fn new(rto_min: Duration, rto_max: Duration) -> Self {
        let rto_max = rto_max.max(rto_min);
        let estimate = RttEstimate::default();
        let rto = Duration::from_nanos(estimate.timeout_ns(0)).clamp(rto_min, rto_max);
        RttEstimator { estimate, rto, rto_min, rto_max, longest: [Duration::ZERO; 2], span_began: None }
    }

    /// Adds the round-trip time of a segment requested once.
    pub fn add_sample(&mut self, rtt: Duration) {
        self.estimate.add(rtt.as_nanos() as u64);
        self.rto = Duration::from_nanos(self.estimate.timeout_ns(0)).clamp(self.rto_min, self.rto_max);
        let now = Instant::now();
        if self.span_began.is_none_or(|began| now.duration_since(began) > LONGEST_SPAN) {
            self.longest = [Duration::ZERO, self.longest[0]];
            self.span_began = Some(now);
        }
        self.longest[0] = self.longest[0].max(rtt);
    }

    /// Doubles the RTO, after a time-out.
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.rto_max);
    }

    /// How long to wait for an answer.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// When an answer is overdue: by the estimate, without a bound and without back-off, and a quarter later than the
    /// longest round trip of the last half second. The mean forgets within some ten samples, a small part of a round
    /// trip; the segments of an object that a cache holds in part have two kinds of round trips.
    pub fn overdue(&self) -> Duration {
        let longest = self.longest[0].max(self.longest[1]);
        Duration::from_nanos(self.estimate.timeout_ns(1)).max(longest * 5 / 4)
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.estimate.smoothed_ns().map(Duration::from_nanos)
    }

    /// Variation of the round-trip times; 0 before the first sample.
    pub fn variation(&self) -> Duration {
        Duration::from_nanos(self.estimate.variation_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_rfc_6298_within_its_bounds() {
        let ms = Duration::from_millis;
        let mut estimator = RttEstimator::new(ms(200), ms(4000));
        assert_eq!(estimator.rto(), ms(1000));
        estimator.add_sample(ms(100));
        assert_eq!(estimator.rto(), ms(300)); // 100 + 4 * 50
        estimator.add_sample(ms(100)); // var 37.5
        assert_eq!(estimator.rto(), ms(250));
        estimator.back_off();
        assert_eq!(estimator.rto(), ms(500));
        for _ in 0..9 {
            estimator.back_off();
        }
        assert_eq!(estimator.rto(), ms(4000));
        for _ in 0..99 {
            estimator.add_sample(ms(1));
        }
        assert_eq!(estimator.rto(), ms(200));
    }
}
