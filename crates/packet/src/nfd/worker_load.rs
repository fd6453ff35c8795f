//! WorkerLoad: what one worker thread holds and does (dataset `status/workers`).
//!
//! This dataset is ours; NFD has one thread. It shows whether the workers share the load.

use super::{PacketCounts, element::element};

element! {
    dataset "status/workers":
    /// One entry of `status/workers`. All packets are network-layer packets, not frames.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct WorkerLoad {
        /// Its number, from 0.
        pub number: u64 = 128,
        /// Nanoseconds since its start in which it had work.
        pub busy_ns: u64 = 129,
        pub pit_entries: u64 = 130 => Gauge: "Pending Interests.",
        pub cs_entries: u64 = 131 => Gauge: "Data packets in the Content Store.",
        pub cs_bytes: u64 = 132 => Gauge: "Bytes of Data in the Content Store.",
        /// Packets.
        #[cfg_attr(feature = "serde", serde(flatten))]
        pub packets: PacketCounts = 144,
        pub satisfied: u64 = 133 => Counter satisfied_interests: "Pending Interests that Data satisfied.",
        pub unsatisfied: u64 = 134 => Counter unsatisfied_interests: "Pending Interests that ended without Data.",
        pub cs_hits: u64 = 135 => Counter: "Interests that the Content Store answered.",
        pub cs_misses: u64 = 136 => Counter: "Interests that it could not answer.",
        /// Nanoseconds since its start in which it looked for packets instead of sleeping.
        pub polled_ns: u64 = 137 or 0,
        pub polls: u64 = 138 or 0 => Counter: "Times that it looked for packets before it would sleep.",
        pub polls_found: u64 = 139 or 0 => Counter: "Times that something came while it looked.",
        pub sleeps: u64 = 140 or 0 => Counter: "Times that it slept.",
        /// Nanoseconds for which it would look for packets now before it sleeps.
        pub poll_window_ns: u64 = 141 or 0,
        pub crossed: u64 = 143 or 0 => Counter: "Packets that it gave to other threads, over a ring.",
        /// It owns ports of AF_XDP and DPDK, and forwards nothing.
        pub is_io_thread: bool = 142 or false,
    }
}
