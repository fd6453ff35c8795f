//! FaceHealth: since when a face has its state, and how its peer answers Interests (dataset `faces/health`).
//!
//! This dataset is ours; NFD has no such dataset.

use super::{
    element::element,
    numbers::types::{
        DATASET_ENTRY, FACE_ID, HEALTH_ANSWERED, HEALTH_LAST, HEALTH_MEDIAN, HEALTH_P99, HEALTH_SINCE,
        HEALTH_UNANSWERED,
    },
};
use crate::FaceId;

element! {
    element DATASET_ENTRY:
    /// One entry of `faces/health`: 128 { 105 face, 128 since, 129 answered, 130 unanswered, 131 last ?, 132 median ?,
    /// 133 99th percentile ? }.
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
    }
}
