//! One forwarder in memory: a test passes in packets at chosen times, and gets the sent packets as values that it can
//! read.
//!
//! ```
//! use namewire_testbed::*;
//!
//! let mut node = Forwarder::routing("/a", &[B]);
//! assert_eq!(node.receive(A, interest("/a/1", 7)), ["B Interest /a/1 #7"]);
//! assert_eq!(node.receive(B, data("/a/1")), ["A Data /a/1"]);
//! assert_eq!(node.at(4_004).run_timers(), NOTHING);
//! ```
//!
//! | question | module |
//! | --- | --- |
//! | what does one worker see, and what does it send? | [`worker`] |
//! | how do several workers, the clock and the tables fit together? | [`forwarder`] |
//! | which faces does it have? | [`faces`] |
//! | how are packets built? | [`packet`] |
//! | how is management tested, without any forwarder? | `management`, a feature |
//! | how is it tested that nothing is allocated? | [`counting_allocator`] |
//!
//! Tests, fuzz targets, the simulator and the lab use this crate. No crate of the router may depend on it.

pub mod counting_allocator;
pub mod faces;
pub mod forwarder;
#[cfg(feature = "management")]
pub mod management;
pub mod packet;
pub mod worker;

pub use faces::{A, B, C, D, H, L, M, X};
pub use forwarder::{Arrival, Decided, Forwarder};
pub use packet::{Packet, announcement, bare_interest, data, fresh_data, full_name, interest, long_name, nack, uri};
pub use worker::{NOTHING, Sent, Worker};
