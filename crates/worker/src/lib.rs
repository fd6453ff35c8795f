//! The worker threads of a router: each is one complete forwarder for its share of the names.
//!
//! ```text
//!            ┌ worker 0 ┐   byte rings    ┌ worker 1 ┐
//!   sockets ─┤ driver   ├────────────────►│ driver   ├─ sockets
//!            │ engine   │◄────────────────┤ engine   │
//!            └──┬────▲──┘                 └──┬────▲──┘
//!  ForManagement│    │ ToWorker              │    │
//!  FromWorker   ▼    │                       ▼    │
//!                 control (`namewire_router`)
//! ```
//!
//! A worker owns its engine, its sockets and their faces; no other thread touches them. The tables that all workers
//! read (FIB, strategies, face attributes) are in [`Shared`]. Control writes them; a worker also writes them when a
//! datagram makes an on-demand face. To follow a packet, start with `Worker::run` in `worker.rs`.

pub mod answer_times;
mod backlog;
mod busy_polling;
mod cs_erasure;
mod drop_log;
pub mod drop_report;
mod io;
mod lane_faces;
mod lanes;
mod management_queue;
pub mod mesh;
mod messages;
mod name_look;
mod name_looks;
mod pit_looks;
mod poll_window;
pub mod pool_report;
mod processors;
pub mod ring;
mod router_drop;
mod senders;
mod shared;
mod tag_builds;
mod tag_searches;
mod tags;
mod threads;
mod trace;
mod worker;

pub use lane_faces::{LaneEnds, LaneFaces};
pub use management_queue::ManagementQueue;
pub use messages::{
    CaptureChange, CsErasure, CsShare, ErasureId, FaceChange, ForManagement, FromWorker, HandOverMessage, HandedOver,
    LaneChange, LanePeer, LaneReport, LookId, StoredBatch, ToWorker,
};
pub use name_looks::NameLooks;
pub use processors::WhyNot;
pub use router_drop::RouterDrop;
pub use senders::{ControlSender, WorkerSender};
pub use shared::{PollCounters, Shared, Snapshots, TagCounters, WorkerStatus, unix_ms};
pub use tag_builds::TagBuilds;
pub use threads::{Started, WORKER_BYTES, WorkerThreads, WorkersConfig, WorkersError, start};
