//! FibUsage: the design of the FIB, and the memory that it takes (dataset `fib/usage`).
//!
//! This dataset is ours: NFD's `status/general` has the number of entries only, and its clients refuse unknown fields.

use super::{
    element::element,
    numbers::types::{CAPACITY, DATASET_ENTRY, FIB_BYTES, FIB_DESIGN, FIB_LOSSY},
};

element! {
    element DATASET_ENTRY:
    /// The entry of `fib/usage`: 128 { 128 design text, 131 most entries, 132 bytes now, 133 1 if lossy }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize))]
    pub struct FibUsage {
        /// Its name in the configuration.
        pub design: String = FIB_DESIGN,
        /// Capacity in entries.
        pub capacity_entries: u64 = CAPACITY,
        /// Bytes of memory; both copies, if the design keeps two.
        pub bytes: u64 = FIB_BYTES,
        /// Names without a route may be forwarded as if they had one.
        pub is_lossy: bool = FIB_LOSSY,
    }
}
