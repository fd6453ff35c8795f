//! CsInfo: the Content Store's settings and counters (dataset `cs/info`).

use super::{
    element::element,
    numbers::types::{CAPACITY, CS_HITS, CS_MISSES, DATASET_ENTRY, FLAGS, N_CS_ENTRIES},
};

element! {
    element DATASET_ENTRY:
    /// The Content Store, as `cs/info` shows it (management.md §6.2).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct CsInfo {
        /// Limit in packets.
        pub capacity: u64 = CAPACITY,
        /// [`super::cs_flags`].
        pub flags: u64 = FLAGS,
        /// Data stored now.
        pub n_cs_entries: u64 = N_CS_ENTRIES,
        /// Interests answered from the store.
        pub n_hits: u64 = CS_HITS,
        /// Interests not answered from the store.
        pub n_misses: u64 = CS_MISSES,
    }
}
