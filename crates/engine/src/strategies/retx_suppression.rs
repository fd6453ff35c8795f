//! Exponential retransmission suppression (forwarding §4.1, NFD's `retx-suppression-exponential`). A repeated Interest
//! is sent upstream again only after an interval, which doubles each time.

use crate::{
    Instant,
    strategies::parameters::{InvalidParameter, Parameters},
    verdict::context::StrategyContext,
};
use namewire_packet::FaceId;

/// What to do with an Interest that is already pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suppression {
    /// No answer is pending: treat it as new.
    New,
    /// Send it again.
    Forward,
    /// Too early to send it again.
    Suppress,
}

/// The three parameters, with NFD's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RetxSuppression {
    initial_ns: u64,
    max_ns: u64,
    multiplier: f64,
}

impl Default for RetxSuppression {
    fn default() -> Self {
        RetxSuppression { initial_ns: 10_000_000, max_ns: 250_000_000, multiplier: 2.0 }
    }
}

impl RetxSuppression {
    /// Reads `retx-suppression-initial`, `-max` (ms) and `-multiplier`.
    pub(crate) fn from_parameters(parameters: &Parameters) -> Result<Self, InvalidParameter> {
        let default = RetxSuppression::default();
        let ms = |key, default_ns| {
            parameters.number::<u64>(key).map(|v| v.map_or(default_ns, |ms| ms.saturating_mul(1_000_000)))
        };
        let read = RetxSuppression {
            initial_ns: ms("retx-suppression-initial", default.initial_ns)?,
            max_ns: ms("retx-suppression-max", default.max_ns)?,
            multiplier: parameters.number("retx-suppression-multiplier")?.unwrap_or(default.multiplier),
        };
        if read.initial_ns == 0
            || read.max_ns < read.initial_ns
            || !(read.multiplier >= 1.0 && read.multiplier.is_finite())
        {
            return Err(InvalidParameter(
                "retx-suppression needs 0 < initial <= max and a multiplier of 1 or more".to_owned(),
            ));
        }
        Ok(read)
    }

    /// Decides for the entry as a whole (best-route, access).
    pub(crate) fn decide_for_entry(&self, context: &mut StrategyContext<'_, '_, '_>) -> Suppression {
        if !context.is_any_upstream_pending() {
            return Suppression::New;
        }
        let now = context.now();
        let last_sent = context.upstreams().map(|record| record.sent).max();
        self.decide(now, last_sent, &mut context.state_mut().suppression_ns)
    }

    /// Decides for one upstream (multicast, asf).
    pub(crate) fn decide_for_upstream(&self, context: &mut StrategyContext<'_, '_, '_>, face: FaceId) -> Suppression {
        let now = context.now();
        match context.upstream_mut(face) {
            Some(record) if record.is_pending(now) => self.decide(now, Some(record.sent), &mut record.suppression_ns),
            _ => Suppression::New,
        }
    }

    /// Decides, and lengthens the interval if the Interest is sent again. An `interval_ns` of 0 means the initial one.
    pub(crate) fn decide(&self, now: Instant, last_sent: Option<Instant>, interval_ns: &mut u64) -> Suppression {
        let Some(last_sent) = last_sent else { return Suppression::New };
        let interval = if *interval_ns == 0 { self.initial_ns } else { *interval_ns };
        if now.since_ns(last_sent) < interval {
            return Suppression::Suppress;
        }
        *interval_ns = ((interval as f64 * self.multiplier) as u64).min(self.max_ns);
        Suppression::Forward
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequence seen on a live NFD (forwarding §4.1).
    #[test]
    fn one_consumer_retransmitting() {
        let suppression = RetxSuppression::default();
        let (mut last, mut interval) = (Some(Instant::default()), 0);
        let mut forwarded = vec![0];
        for ms in [5, 12, 30, 60, 120, 240, 300, 500, 760, 1100] {
            let now = Instant::default().plus_ms(ms);
            if suppression.decide(now, last, &mut interval) == Suppression::Forward {
                forwarded.push(ms);
                last = Some(now);
            }
        }
        assert_eq!(forwarded, [0, 12, 60, 120, 240, 500, 760, 1100]);
    }
}
