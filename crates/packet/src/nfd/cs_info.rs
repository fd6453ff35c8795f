//! CsInfo: the Content Store's settings and counters (dataset `cs/info`).

use super::{
    element::element,
    numbers::types::{CAPACITY, FLAGS},
};

element! {
    dataset "cs/info":
    /// The Content Store, as `cs/info` shows it (management.md §6.2).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct CsInfo {
        /// Limit in packets.
        pub capacity: u64 = CAPACITY as "capacity_packets",
        /// [`super::cs_flags`].
        #[cfg_attr(feature = "serde", serde(skip))]
        pub flags: u64 = FLAGS,
        pub n_cs_entries: u64 = 135 as "entries" => Gauge entries: "Data packets in the Content Store.",
        pub n_hits: u64 = 129 as "hits" => Counter hits: "Interests that the Content Store answered.",
        pub n_misses: u64 = 130 as "misses" => Counter misses: "Interests that it could not answer.",
    }
}
