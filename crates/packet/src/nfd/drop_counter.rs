//! DropCounter: how many packets were dropped for one reason, or how often a limit took effect (dataset
//! `status/drops`).
//!
//! This dataset is ours; NFD has no such dataset. It follows the protocol's rules, so that any management client can
//! fetch it.

use super::element::element;

element! {
    dataset "status/drops":
    /// One entry of `status/drops`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct DropCounter {
        /// Where and why, for example `engine.no-route` or `link.queue-full`.
        pub reason: String = 128,
        /// Packets (or faces, for `face-closed.*`) since the start.
        pub count: u64 = 132,
    }
}
