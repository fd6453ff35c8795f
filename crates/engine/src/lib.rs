//! The forwarding engine: what happens to a packet between two faces.
//!
//! Sans-IO: the engine knows a [`FaceId`], never a face; time is an argument;
//! packets are lent for one batch. The same code runs under kernel sockets, the
//! simulator, the fuzzer and the lab.
//!
//! | question | module |
//! | --- | --- |
//! | what happens to an Interest? | [`incoming_interest`](mod@incoming_interest) |
//! | … to Data? | [`incoming_data`](mod@incoming_data) |
//! | … to a Nack? | [`incoming_nack`](mod@incoming_nack) |
//! | … by prefix, if all stored Data may answer it? | [`prefix_lookup`] |
//! | what leaves? | [`outgoing`] |
//! | what if a link goes? | [`face_changes`](mod@face_changes) |
//! | why was a packet dropped? | [`DropReason`] |
//! | what if only a fingerprint is kept? | [`core_role`], [`core_interest`](mod@core_interest), [`core_data`](mod@core_data) |
//! | how much of the PIT may one face have? | [`face_share`] |
//! | what else did a limit turn away? | [`LimitMet`] |
//! | which worker decides? | [`dispatch`] |
//! | in which order do the stages run? | [`schedule`] |
//! | how are next hops chosen? | [`strategy`] |
//! | what is remembered of them? | [`measurements`] |
//!
//! Pipelines bear the names of NFD's developer guide; the steps are those of the
//! forwarding specification, quoted at the line that implements them.

mod announcement_table;
mod batch;
pub mod config;
mod core_data;
mod core_interest;
pub mod core_role;
pub mod counters;
pub mod cs_counts;
pub mod dispatch;
pub mod drop_reason;
mod face_changes;
pub mod face_share;
mod face_table;
mod incoming_data;
mod incoming_interest;
mod incoming_nack;
pub mod limit_met;
pub mod measurements;
mod outgoing;
pub mod pit_state;
mod prefix_lookup;
pub mod record_chain;
mod route_request;
pub mod schedule;
pub mod strategy;
mod timers;
mod watched_entry;

pub use announcement_table::{AnnouncementTable, MAX_ANNOUNCEMENT_BYTES};
pub use batch::{BATCH_PACKETS, Engine, Frame, HandOver, Output, PacketRef, Transmit, View};
pub use config::{EngineConfig, UnsolicitedPolicy};
pub use core_role::{CoreConfig, PitRole};
pub use counters::Counters;
pub use cs_counts::{CsCounts, CsPolicyCounts, CsPrefixCounts, CsReport, MAX_COUNTED_PREFIXES};
pub use drop_reason::DropReason;
pub use face_share::{FaceCut, FacesCut};
pub use face_table::{FaceAttributes, FaceScope, FaceTable, LinkType};
pub use limit_met::LimitMet;
pub use namewire_packet::FaceId;
pub use route_request::RouteRequest;
pub use schedule::Schedule;
pub use strategy::{Strategy, StrategyContext, StrategyError, StrategyId, StrategyTable, WithoutEntry};
pub use watched_entry::Answer;

/// The example of `docs/strategies.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/strategies.md")]
mod documented_example {}

/// A point of a monotonic clock, in nanoseconds from an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub u64);

impl Instant {
    /// The instant `ms` milliseconds later; saturates.
    pub const fn plus_ms(self, ms: u64) -> Instant {
        Instant(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }

    /// Nanoseconds from `earlier` to `self`, 0 if it is the other way round.
    pub const fn since_ns(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
