//! Which way do packets take to a name, and where does it end?
//!
//! ```text
//!   walk ── sends traceroutes with HopLimit 1, 2, 3 … ──► hops ──► ending: who ends the way, and why
//!                    │                                      │
//!                    └── a second look with large packets   └──► text
//! ```
//!
//! | question | file |
//! | --- | --- |
//! | which probes are sent, and when does the walk stop? | [`walk`] |
//! | what is known of a hop? | [`hop`] |
//! | what ends the way, and what looks wrong on it? | [`ending`] |
//! | how does it look in a terminal? | [`text`] |
//! | how are forwarders pinged? | [`echo`] |
//!
//! A forwarder that answers no probes (NFD, ndnd) is a gap: the HopLimit of the first answer behind it tells how many
//! there are.

pub mod echo;
pub mod ending;
pub mod hop;
pub mod text;
pub mod walk;

pub use hop::{Hop, Route};
pub use walk::{WalkOptions, walk};
