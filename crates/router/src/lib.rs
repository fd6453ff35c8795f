//! A running NDN router: worker threads that forward, and one control thread.
//!
//! ```text
//!            ┌ worker 0 ┐   byte rings    ┌ worker 1 ┐
//!   sockets ─┤ driver   ├────────────────►│ driver   ├─ sockets
//!            │ engine   │◄────────────────┤ engine   │
//!            └──┬────▲──┘                 └──┬────▲──┘
//!   Interests   │    │ replies, new faces,   │    │
//!   for face 1, │    │ CS settings           │    │
//!   face events ▼    │                       ▼    │
//!            ┌──────────────────────────────────────┐
//!            │ control: management, RIB, listeners  │  tokio, current thread
//!            └──────────────────────────────────────┘
//! ```
//!
//! A worker owns its engine, its sockets and their faces; no other thread touches them. The tables that all workers
//! read (FIB, strategies, face attributes) are in [`shared`]. Control writes them; a worker also writes them when a
//! datagram makes an on-demand face. To follow a packet, start with [`worker`]; to follow a command, with [`control`].

mod answer_times;
mod command_journal;
mod content_stores;
mod control;
mod cs_settings;
pub mod declarations;
mod descriptors;
mod drop_log;
mod drop_report;
mod holder_pool;
mod listeners;
mod log_lines;
pub mod logging;
mod management_queue;
mod memory_listener;
mod messages;
mod name_looks;
mod observer_places;
mod observing;
pub mod operator;
mod pool_report;
mod privileges;
mod requests;
mod router_drop;
mod senders;
mod shared;
mod start_error;
mod startup;
mod stream_request;
mod websocket;
mod worker;
mod worker_threads;

pub use router_drop::RouterDrop;
pub use start_error::StartError;
pub use startup::{Router, RouterHandle, require_memory};
pub use worker::{mesh, ring};
