//! NFD management protocol, RIB, strategy choice: sans-IO.
//!
//! [`Management`] takes Interests under `/localhost/nfd` and `/localhop/nfd`, face events and the time. It returns
//! [`Effect`]s: replies to send, FIB changes, face commands. It has no socket, no clock and no thread. The router and
//! the simulator run the same code.
//!
//! ```text
//!   Interest ─► dispatcher ─┬─ dataset ─► dataset_store ──────────────► Reply
//!                           └─ command ─► authorization ─► rib / announcements /
//!                                                          strategy_choice / manual_next_hops
//!                                              │
//!                                              ▼
//!                                         fib_computation ─► Fib, NewNextHops, Reply
//!                              face commands ─► CreateFace … done ────► Reply
//!                              tag_commands ──► TagPlane of the router ► Reply
//!                          capture_commands ──► CapturePlane of the router ► Reply
//!                              log_commands ──► LogPlane of the router ► Reply
//!                          process_commands ──► ProcessPlane of the router ► Reply
//! ```
//!
//! Source: the NFD management protocol (ndn-cxx `mgmt/nfd`). The modules cite the project's notes on it as
//! management.md, forwarding.md and drop-in.md.

mod announcement_store;
pub mod announcements;
mod authorization;
mod capture_commands;
mod capture_plane;
mod command;
mod counters;
mod cs_erasure;
mod dataset_store;
mod datasets;
mod dispatcher;
mod effect;
mod environment;
mod face_commands;
mod face_events;
mod face_registry;
pub mod fib_computation;
mod fib_full;
mod key_digests;
mod log_commands;
mod log_lines;
mod log_plane;
mod management;
pub mod manual_next_hops;
mod name_key;
mod name_looks;
mod next_hop_sets;
mod own_interests;
mod pending_commands;
mod prefix_tree;
mod process_commands;
mod process_plane;
mod readvertise;
mod replies;
mod request;
mod restoration;
pub mod rib;
mod routes;
pub mod strategy_choice;
mod table_commands;
mod tag_commands;
mod tag_plane;
pub mod trust_config;
mod verbs;

pub use authorization::{PASSED_NONCE_BYTES, PassedCommand};
pub use capture_plane::{CapturePlane, CaptureRefusal, Subject, WantedCapture};
pub use counters::ManagementCounters;
pub use cs_erasure::MAX_ERASED;
pub use dataset_store::DatasetLimits;
pub use effect::{CreateFace, Effect, FaceCommandError, Ticket, UpdateFace};
pub use environment::{Environment, Times};
pub use face_registry::{FaceProperties, PeerCredentials};
pub use fib_computation::{FibChange, FibDemand, FibLimits};
pub use fib_full::FibFull;
pub use log_plane::LogPlane;
pub use management::{Management, ManagementConfig, TablesAboutName};
pub use namewire_shares::HolderId;
pub use next_hop_sets::NextHop;
pub use process_commands::{FORCE, MAX_REPORT_BYTES};
pub use process_plane::{ProcessPlane, ProcessTask, UpgradeTask};
pub use readvertise::{MAX_PREFIXES as MAX_READVERTISED_PREFIXES, ReadvertiseConfig};
pub use rib::{MAX_PREFIX_BYTES, MAX_PREFIX_COMPONENTS, RibLimits};
pub use strategy_choice::{DEFAULT_CHOICES, ResolvedStrategy, StrategyChoices, StrategyError, StrategyRegistry};
pub use tag_plane::{TagPlane, TagPlaneRefusal};
pub use trust_config::TrustConfig;
