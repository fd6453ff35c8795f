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
//! | which packets are sent, and how? | `verdict/outgoing.rs` |
//! | what if a link goes down, or time passes? | `events` |
//! | why was a packet dropped? | [`DropReason`] |
//! | what if only a fingerprint is kept? | [`state::core_role`] |
//! | how much of the PIT may one neighbour have? | `state/pit_shares.rs` |
//! | which entry is displaced when the PIT is full? | `verdict/pressure.rs` |
//! | which faces wanted more than they may? | [`counters::face_share`] |
//! | which other limits took effect? | [`LimitMet`] |
//! | which worker decides? | [`dispatch`] |
//! | in which order do the stages run? | [`batch::schedule`] |
//! | how are next hops chosen? | [`strategy`] |
//! | what is pending or stored for one name? | [`state::name_state`] |
//! | what is remembered of next hops? | [`state::measurements`] |
//! | how long do answers of a face take? | [`state::upstream_times`] |
//!
//! The folders are layers. A folder uses those before it in this list, and none after it: `ground` (faces, time, the
//! output of a batch), `state` (what is remembered), `verdict` (where an Interest may go), `strategies`, `pipeline`,
//! `events`, `schedule` (the order of a batch, and the engine). Two crates are below them, [`dispatch`] and
//! [`counters`].
//!
//! Pipelines have the names of NFD's developer guide. Their steps are those of the forwarding specification, quoted at
//! the line that implements them.

mod events;
mod ground;
mod pipeline;
mod schedule;
pub mod state;
mod strategies;
mod verdict;

/// What a strategy is made of, and those that exist.
pub mod strategy {
    pub use crate::{
        ground::announcement_table::{AnnouncementTable, MAX_ANNOUNCEMENT_BYTES},
        strategies::{
            access::Access, asf::Asf, best_route::BestRoute, multicast::Multicast, random::Random, registry,
            self_learning::SelfLearning,
        },
        verdict::{
            answer::Answer,
            context::StrategyContext,
            foresight,
            strategy::{FirstNextHop, Strategy, WithoutEntry},
            trigger::Trigger,
        },
    };
    pub use namewire_packet::rtt::RttEstimate;
    pub use registry::{StrategyError, StrategyId, StrategyTable};
}

/// The parts of a batch, for those who measure them.
pub mod batch {
    pub use crate::{ground::measured, schedule::batch as schedule};
}

pub use counters::{
    Counters, CsCounts, CsPolicyCounts, CsPrefixCounts, CsReport, DropReason, FaceCut, FacesCut, LimitMet,
    MAX_COUNTED_PREFIXES,
};
pub use ground::{
    drop_notes::DropNote,
    face_table::{FaceAttributes, FaceScope, FaceTable, LinkType},
    instant::Instant,
    order::{BATCH_PACKETS, Schedule},
    output::{HandOver, Output, PacketRef, RouteRequest, Transmit},
};
pub use namewire_counters as counters;
pub use namewire_dispatch as dispatch;
pub use namewire_packet::FaceId;
pub use pipeline::frame::{Frame, View};
pub use schedule::engine::Engine;
pub use state::{
    config::{AnswersProbes, DataFrom, EngineConfig, UnsolicitedPolicy},
    core_role::{CoreConfig, PitRole},
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
