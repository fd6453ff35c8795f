//! NFD management elements: the content of commands, answers and datasets.
//!
//! Source: management.md §3 to §7 (type numbers of ndn-cxx `tlv-nfd.hpp`). Numbers 128 to 134 mean different things in
//! different datasets, so each element type decodes by its own table, without guessing.
//!
//! Encoders write the fields in the documented order, in the shortest form. Decoders accept any order, skip unknown
//! fields, and use the first of a repeated field. All values are owned (`String`, [`NameBuf`](crate::NameBuf)), since
//! this is the slow path. Input is one packet or one fetched dataset, and memory is proportional to it.

mod capture_record;
mod control_parameters;
mod control_response;
mod cs_info;
mod cs_usage;
mod dataset;
mod drop_counter;
mod dropped_packet;
mod element;
mod face_attributes;
mod face_health;
pub mod face_uri;
mod faces;
mod fib_entry;
mod fib_usage;
mod field;
mod forwarder_status;
mod log_record;
mod name_look;
mod node_state;
pub mod numbers;
mod packet_counts;
mod pool_holding;
pub mod prefix_announcement;
mod probe_reply;
mod process_privileges;
mod rib_entry;
pub mod setting_in_force;
mod strategy_choice;
mod tag_route;
mod tag_tree;
mod worker_load;

pub use capture_record::{
    CaptureDecision, CaptureFace, CaptureFrame, CaptureLeft, CaptureRecord, CaptureStream, MAX_RECORD_BYTES, Verdict,
};
pub use control_parameters::ControlParameters;
pub use control_response::ControlResponse;
pub use cs_info::CsInfo;
pub use cs_usage::{CsPolicyUsage, CsPrefixUsage, CsUsage};
pub use dataset::{Dataset, DatasetEntry, decode_dataset, encode_dataset};
pub use drop_counter::DropCounter;
pub use dropped_packet::{DroppedPacket, PacketKind};
pub use element::{Fact, FactKind};
pub use face_attributes::{FaceEventKind, FacePersistency, FaceScope, FaceState, LinkType, UnknownWord};
pub use face_health::{FaceHealth, FaceRates, FaceRecent};
pub use face_uri::{FaceUri, FaceUriError, MacAddress, WebSocketUrl};
pub use faces::{ChannelStatus, FaceCounters, FaceEventNotification, FaceQueryFilter, FaceStatus, LinkCounts};
pub use fib_entry::{FibEntry, NextHopRecord};
pub use fib_usage::FibUsage;
pub use field::NfdError;
pub use forwarder_status::ForwarderStatus;
pub use log_record::{LogAreaLevel, LogField, LogRecord};
pub use name_look::{FibLook, NameLook, PendingLook, StoredLook, UpstreamLook};
pub use node_state::{NodeState, Part};
pub use numbers::{cs_flags, face_flags, origin, route_flags};
pub use packet_counts::PacketCounts;
pub use pool_holding::PoolHolding;
pub use probe_reply::{ProbeNextHop, ProbeReply, ReplyCode};
pub use process_privileges::ProcessPrivileges;
pub use rib_entry::{RibEntry, Route};
pub use setting_in_force::SettingInForce;
pub use strategy_choice::StrategyChoice;
pub use tag_route::{TagBranch, TagRoute, TagServes};
pub use tag_tree::TagTree;
pub use worker_load::WorkerLoad;
