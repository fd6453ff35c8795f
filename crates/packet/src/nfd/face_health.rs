//! FaceHealth: since when a face has its state, and how its peer answers Interests (dataset `faces/health`).
//!
//! This dataset is ours; NFD has no such dataset.

use super::{
    element::element,
    numbers::types::{
        DATASET_ENTRY, FACE_ID, HEALTH_ANSWERED, HEALTH_LAST, HEALTH_MEDIAN, HEALTH_P99, HEALTH_RECENT, HEALTH_SINCE,
        HEALTH_UNANSWERED, RECENT_ANSWERED, RECENT_AVOIDED, RECENT_IN_BYTES, RECENT_IN_PACKETS, RECENT_OUT_BYTES,
        RECENT_OUT_PACKETS, RECENT_SPAN, RECENT_UNANSWERED,
    },
};
use crate::FaceId;

element! {
    element DATASET_ENTRY:
    /// One entry of `faces/health`: 128 { 105 face, 128 since, 129 answered, 130 unanswered, 131 last ?, 132 median ?,
    /// 133 99th percentile ?, 134 recent ? }.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FaceHealth {
        /// Its number.
        pub face: FaceId = FACE_ID,
        /// Since when it is up or down, in milliseconds since 1970.
        pub since_ms: u64 = HEALTH_SINCE,
        /// Interests sent there that its Data satisfied. Under load it is an estimate from a sample.
        pub answered: u64 = HEALTH_ANSWERED,
        /// Interests sent there that expired without Data or Nack.
        pub unanswered: u64 = HEALTH_UNANSWERED,
        /// Microseconds that the last answer measured took.
        pub last_us: Option<u64> = HEALTH_LAST,
        /// Microseconds in which half of the answers came: the upper bound of a bucket.
        pub median_us: Option<u64> = HEALTH_MEDIAN,
        /// The same of 99 of 100.
        pub p99_us: Option<u64> = HEALTH_P99,
        /// The last ten seconds, if the forwarder can tell.
        pub recent: Option<FaceRecent> = HEALTH_RECENT,
    }
}

element! {
    element:
    /// What happened at a face in the last seconds: 134 { 128 span, 129 packets in, 130 bytes in, 131 packets out,
    /// 132 bytes out, 133 answered, 134 unanswered, 135 avoided }.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FaceRecent {
        /// How long that was, in milliseconds.
        pub span_ms: u64 = RECENT_SPAN,
        /// Packets received.
        pub in_packets: u64 = RECENT_IN_PACKETS,
        /// Bytes received.
        pub in_bytes: u64 = RECENT_IN_BYTES,
        /// Packets sent.
        pub out_packets: u64 = RECENT_OUT_PACKETS,
        /// Bytes sent.
        pub out_bytes: u64 = RECENT_OUT_BYTES,
        /// Interests sent there that its Data satisfied, as in [`FaceHealth`].
        pub answered: u64 = RECENT_ANSWERED,
        /// Interests sent there that expired without Data or Nack.
        pub unanswered: u64 = RECENT_UNANSWERED,
        /// Interests that a strategy sent elsewhere because earlier ones got no answer there.
        pub avoided: u64 = RECENT_AVOIDED,
    }
}

/// With fewer Interests than this, a face is not called degraded.
const JUDGED_MIN: u64 = 10;

/// A face is degraded if one Interest in this number got no answer.
const DEGRADED_ONE_IN: u64 = 10;

impl FaceRecent {
    /// A strategy avoided the face, or at least ten Interests ended, and a tenth of them or more got no answer.
    pub fn is_degraded(&self) -> bool {
        if self.avoided > 0 {
            return true;
        }
        let ended = self.answered.saturating_add(self.unanswered);
        ended >= JUDGED_MIN && self.unanswered.saturating_mul(DEGRADED_ONE_IN) >= ended
    }
}
