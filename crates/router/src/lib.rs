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

mod answer_times;
mod command_journal;
mod content_stores;
mod control;
mod cs_settings;
mod descriptors;
mod drop_report;
mod listeners;
mod log_lines;
mod memory_listener;
mod messages;
mod name_looks;
mod observer_places;
mod observing;
pub mod operator;
mod pool_report;
mod privileges;
mod probe_desk;
mod requests;
mod secrets;
mod start_error;
mod startup;
mod stream_request;
mod worker_shares;

pub use start_error::StartError;
pub use startup::{Router, RouterHandle, require_memory};
