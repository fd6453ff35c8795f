//! DropCounter: how many packets were dropped for one reason, or how often a limit took effect (dataset
//! `status/drops`).
//!
//! This dataset is ours; NFD has no such dataset. It follows the protocol's rules, so that any management client can
//! fetch it.

use super::{
    element::element,
    numbers::types::{DATASET_ENTRY, DROP_COUNT, DROP_REASON},
};

element! {
    element DATASET_ENTRY:
    /// One entry of `status/drops`: 128 { 128 reason text, 132 count }.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DropCounter {
        /// Where and why, for example `engine.no-route` or `link.queue-full`.
        pub reason: String = DROP_REASON,
        /// Packets (or faces, for `face-closed.*`) since the start.
        pub count: u64 = DROP_COUNT,
    }
}
