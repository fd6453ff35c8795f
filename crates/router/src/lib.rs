//! A running NDN router: one control thread, and worker threads that forward.
//!
//! ```text
//!            ┌──────────────────────────────────────┐
//!            │ workers (`namewire_worker`)          │
//!            └──┬───────────────────────────────▲───┘
//!   Interests   │                               │ replies, new faces,
//!   for face 1, │                               │ CS settings
//!   face events ▼                               │
//!            ┌──────────────────────────────────────┐
//!            │ control: management, RIB, listeners  │  tokio, current thread
//!            └──────────────────────────────────────┘
//! ```
//!
//! Control writes the tables that all workers read ([`namewire_worker::Shared`]). To follow a command, start with
//! [`control`]; to follow a packet, with `namewire_worker`. WebSocket and the observer have separate threads.

mod content_stores;
mod control;
mod cs_settings;
mod descriptors;
mod listeners;
mod log_lines;
mod memory_listener;
mod messages;
mod name_looks;
mod observer_places;
mod observing;
pub mod operator;
mod privileges;
mod probe_desk;
mod process_desk;
mod requests;
mod secrets;
mod start_error;
mod startup;
mod stream_request;
mod worker_shares;

pub use namewire_faces::give_pages_back as give_memory_back;
pub use namewire_handover::TakeOver;
pub use start_error::StartError;
pub use startup::{Connector, Router, RouterHandle, TakenFrom, require_memory};
