//! FibUsage: the design of the FIB, and the memory that it takes (dataset `fib/usage`).
//!
//! This dataset is ours: NFD's `status/general` has the number of entries only, and its clients refuse unknown fields.

use super::{element::element, numbers::types::CAPACITY};

element! {
    dataset "fib/usage":
    /// The entry of `fib/usage`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct FibUsage {
        /// Its name in the configuration.
        pub design: String = 128,
        pub capacity_entries: u64 = CAPACITY => Gauge: "Prefixes that the FIB can hold.",
        pub bytes: u64 = 132 => Gauge: "Bytes that the FIB uses.",
        /// Names without a route may be forwarded as if they had one.
        pub is_lossy: bool = 133,
    }
}
