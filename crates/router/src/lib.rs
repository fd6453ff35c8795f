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
//! A worker owns its engine, its sockets and their faces; nobody else touches
//! them. What all workers read (FIB, strategies, face attributes) stands in
//! [`shared`], which only the control side and the birth of on-demand faces write.
//! Start with [`worker`] to see a packet's way, with [`control`] to see a command's.

pub mod config;
pub mod configuration;
mod control;
mod control_inbox;
mod cs_erasure;
mod cs_settings;
pub mod declarations;
mod environment;
mod exit;
mod face_creation;
mod fib_writer;
mod held_answers;
mod input_file;
mod interfaces;
pub mod link_config;
mod link_faces;
mod link_state;
mod listeners;
mod management_queue;
pub mod mesh;
mod messages;
pub mod operator;
mod own_address;
mod pit_looks;
pub mod ring;
mod router_drop;
mod shared;
mod startup;
pub mod state_file;
pub mod trust_anchors;
mod websocket;
mod worker;

pub use config::{DEFAULT_PORT, RouterConfig, StartError};
pub use link_config::{
    EthernetConfig, InterfaceFilter, InterfacePattern, TlsFiles, UdpMulticastConfig, WebSocketConfig, WebSocketListener,
};
/// Types of the settings.
pub use namewire_engine::{CoreConfig, PitRole};
pub use namewire_management::ReadvertiseConfig;
pub use namewire_tables::fib::designs::catalogue::{FibDesign, FibDesignOptions};
pub use namewire_tables::fib::designs::string_differentiation::DefaultRoute;
pub use namewire_tables::fingerprint_pit::{FaceList, FingerprintPitConfig};
pub use namewire_tables::{AdmissionName, CsPolicy, EvictionName, PageSize, PrefixLookup};
pub use router_drop::RouterDrop;
pub use startup::{Router, RouterHandle, require_memory};
