//! The forwarding engine: what happens to a packet between two faces.
//!
//! Sans-IO: the engine knows a [`FaceId`], never a face; time is an argument; packets are lent for one batch. The same
//! code runs under kernel sockets, the simulator, the fuzzer and the lab.
//!
//! | question | module |
//! | --- | --- |
//! | what happens to an Interest? | `pipeline/interest.rs` |
//! | … to Data? | `pipeline/data.rs` |
//! | … to a Nack? | `pipeline/nack.rs` |
//! | which packets are sent, and how? | `pipeline/outgoing.rs` |
//! | what if a link goes down, or time passes? | `events` |
//! | why was a packet dropped? | [`DropReason`] |
//! | what if only a fingerprint is kept? | [`core`] |
//! | how much of the PIT may one neighbour have? | `state/pit_shares.rs` |
//! | who gives way when the PIT is full? | `pipeline/pressure.rs` |
//! | which faces wanted more than they may? | [`state::face_share`] |
//! | which other limits took effect? | [`LimitMet`] |
//! | which worker decides? | [`dispatch`] |
//! | in which order do the stages run? | [`batch::schedule`] |
//! | how are next hops chosen? | [`strategy`] |
//! | what is pending or stored for one name? | [`state::name_state`] |
//! | what is remembered of next hops? | [`state::measurements`] |
//! | how long do answers of a face take? | [`state::upstream_times`] |
//!
//! Pipelines have the names of NFD's developer guide. Their steps are those of the forwarding specification, quoted at
//! the line that implements them.

pub mod batch;
pub mod config;
pub mod core;
pub mod counters;
pub mod dispatch;
mod engine;
mod events;
mod face_table;
mod instant;
mod parts;
mod pipeline;
pub mod state;
pub mod strategy;

pub use batch::{
    frame::{Frame, View},
    order::{BATCH_PACKETS, Schedule},
    output::{HandOver, Output, PacketRef, RouteRequest, Transmit},
};
pub use config::{DataFrom, EngineConfig, UnsolicitedPolicy};
pub use core::{CoreConfig, PitRole};
pub use counters::{
    Counters,
    cs_counts::{CsCounts, CsPolicyCounts, CsPrefixCounts, CsReport, MAX_COUNTED_PREFIXES},
    drop_notes::DropNote,
    drop_reason::DropReason,
    limit_met::LimitMet,
};
pub use engine::Engine;
pub use face_table::{FaceAttributes, FaceScope, FaceTable, LinkType};
pub use instant::Instant;
pub use namewire_packet::FaceId;
pub use state::{
    face_share::{FaceCut, FacesCut},
    name_state::{NameState, PendingInterest, PendingUpstream, StoredData},
    upstream_times::{UPSTREAM_BUCKETS_NS, UPSTREAM_PERIOD_MS, UpstreamTime},
};
pub use strategy::{
    AnnouncementTable, Answer, FirstNextHop, MAX_ANNOUNCEMENT_BYTES, Strategy, StrategyContext, StrategyError,
    StrategyId, StrategyTable, WithoutEntry,
    foresight::{Foresight, Prospect},
};

/// The example of `docs/strategies.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/strategies.md")]
mod documented_example {}
