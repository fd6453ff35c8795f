//! FaceHealth: since when a face has its state, and how its peer answers Interests (dataset `faces/health`).
//!
//! This dataset is ours; NFD has no such dataset.

use super::{FaceState, element::element, numbers::types::FACE_ID};
use crate::FaceId;

element! {
    dataset "faces/health":
    /// One entry of `faces/health`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FaceHealth {
        /// Its number.
        #[cfg_attr(feature = "serde", serde(skip))]
        pub face: FaceId = FACE_ID,
        /// Since when it is up or down, in milliseconds since 1970.
        pub since_ms: u64 = 128 as "since_unix_ms",
        /// Interests sent there that its Data satisfied. Under load it is an estimate from a sample.
        pub answered: u64 = 129,
        pub unanswered: u64 = 130 => Counter unanswered_interests: "Interests sent there that expired without Data or Nack.",
        /// Microseconds that the last answer measured took.
        pub last_us: Option<u64> = 131,
        /// Microseconds in which half of the answers came: the upper bound of a bucket.
        pub median_us: Option<u64> = 132,
        /// The same of 99 of 100.
        pub p99_us: Option<u64> = 133,
        /// The last ten seconds, if the forwarder can tell.
        pub recent: Option<FaceRecent> = 134,
    }
}

element! {
    element:
    /// What happened at a face in the last seconds.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", serde(into = "ShownRecent"))]
    pub struct FaceRecent {
        /// How long that was, in milliseconds.
        pub span_ms: u64 = 128,
        /// Packets received.
        pub in_packets: u64 = 129,
        /// Bytes received.
        pub in_bytes: u64 = 130,
        /// Packets sent.
        pub out_packets: u64 = 131,
        /// Bytes sent.
        pub out_bytes: u64 = 132,
        /// Interests sent there that its Data satisfied, as in [`FaceHealth`].
        pub answered: u64 = 133,
        /// Interests sent there that expired without Data or Nack.
        pub unanswered: u64 = 134,
        /// Interests that a strategy sent elsewhere because earlier ones got no answer there.
        pub avoided: u64 = 135,
    }
}

/// What a face receives and sends per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FaceRates {
    /// Packets received.
    pub in_packets_per_s: f64,
    /// Bits received.
    pub in_bits_per_s: f64,
    /// Packets sent.
    pub out_packets_per_s: f64,
    /// Bits sent.
    pub out_bits_per_s: f64,
}

/// [`FaceRecent`] as JSON has it: with rates, and whether the face is degraded.
#[cfg(feature = "serde")]
#[derive(serde::Serialize)]
struct ShownRecent {
    span_ms: u64,
    #[serde(flatten)]
    rates: FaceRates,
    answered: u64,
    unanswered: u64,
    avoided: u64,
    is_degraded: bool,
}

#[cfg(feature = "serde")]
impl From<FaceRecent> for ShownRecent {
    fn from(recent: FaceRecent) -> Self {
        let (rates, is_degraded) = (recent.rates(), recent.is_degraded());
        let FaceRecent { span_ms, answered, unanswered, avoided, .. } = recent;
        ShownRecent { span_ms, rates, answered, unanswered, avoided, is_degraded }
    }
}

impl FaceHealth {
    /// In a word, the state of a face that is up or down: it may be up and `degraded`.
    pub fn state_word(health: Option<&Self>, state: FaceState) -> &'static str {
        let is_degraded = health.and_then(|health| health.recent).is_some_and(|recent| recent.is_degraded());
        if state == FaceState::Up && is_degraded { "degraded" } else { state.word() }
    }

    /// The share of Interests without an answer; `None` if none ended.
    pub fn loss(&self) -> Option<f64> {
        let all = self.answered.saturating_add(self.unanswered);
        (all > 0).then(|| self.unanswered as f64 / all as f64)
    }
}

/// With fewer Interests than this, a face is not called degraded.
const JUDGED_MIN: u64 = 10;

/// A face is degraded if one Interest in this number got no answer.
const DEGRADED_ONE_IN: u64 = 10;

impl FaceRecent {
    /// What passed per second.
    pub fn rates(&self) -> FaceRates {
        let per_s = |count: u64| count as f64 * 1000.0 / self.span_ms.max(1) as f64;
        FaceRates {
            in_packets_per_s: per_s(self.in_packets),
            in_bits_per_s: 8.0 * per_s(self.in_bytes),
            out_packets_per_s: per_s(self.out_packets),
            out_bits_per_s: 8.0 * per_s(self.out_bytes),
        }
    }

    /// A strategy avoided the face, or at least ten Interests ended, and a tenth of them or more got no answer.
    pub fn is_degraded(&self) -> bool {
        if self.avoided > 0 {
            return true;
        }
        let ended = self.answered.saturating_add(self.unanswered);
        ended >= JUDGED_MIN && self.unanswered.saturating_mul(DEGRADED_ONE_IN) >= ended
    }
}
