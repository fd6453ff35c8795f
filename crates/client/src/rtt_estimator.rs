//! How long to wait for a segment: the retransmission time-out (RTO).
//!
//! RFC 6298: SRTT and RTTVAR with gains 1/8 and 1/4, RTO = SRTT + 4 RTTVAR, doubled at
//! each time-out until a new sample comes. Samples of segments that were asked for more
//! than once are not taken (Karn): the answer may belong to either request.

use std::time::Duration;

/// RTO before the first sample, and after which to give up doubling.
const RTO_INITIAL: Duration = Duration::from_secs(1);

/// Estimates the RTO of one path.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    srtt_s: Option<f64>,
    rttvar_s: f64,
    rto: Duration,
    rto_min: Duration,
    rto_max: Duration,
}

impl RttEstimator {
    /// An estimator whose RTO stays between the two bounds.
    pub fn new(rto_min: Duration, rto_max: Duration) -> Self {
        let rto = RTO_INITIAL.clamp(rto_min, rto_max.max(rto_min));
        RttEstimator { srtt_s: None, rttvar_s: 0.0, rto, rto_min, rto_max: rto_max.max(rto_min) }
    }

    /// Takes the round-trip time of a segment asked for once.
    pub fn add_sample(&mut self, rtt: Duration) {
        let rtt_s = rtt.as_secs_f64();
        let srtt_s = match self.srtt_s {
            None => {
                self.rttvar_s = rtt_s / 2.0;
                rtt_s
            }
            Some(srtt_s) => {
                self.rttvar_s += ((srtt_s - rtt_s).abs() - self.rttvar_s) / 4.0;
                srtt_s + (rtt_s - srtt_s) / 8.0
            }
        };
        self.srtt_s = Some(srtt_s);
        self.rto = Duration::from_secs_f64(srtt_s + 4.0 * self.rttvar_s).clamp(self.rto_min, self.rto_max);
    }

    /// Doubles the RTO, after a time-out.
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.rto_max);
    }

    /// How long to wait for an answer.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt_s.map(Duration::from_secs_f64)
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
