//! Links: what lies between a frame and a network packet? Sans-IO, so that sockets, simulator and fuzzer run the same.
//!
//! | question | file |
//! | --- | --- |
//! | which packet is in a frame, and which frames does a packet become? | [`link_service`] |
//! | which elements and headers are legal? | `legality` |
//! | how does a packet above the MTU travel? | [`fragmentation`], [`reassembly`] |
//! | which frames are sent again? | [`reliability`] |
//! | when does a packet get a congestion mark? | [`congestion`] |
//! | why was a frame or packet dropped? | [`link_drop`] |
//! | when may a face use the lanes of its neighbour? | [`lane_agreement`] |
//! | what passed through a face? | [`face_counters`] |
//! | which facts does management show about a face? | [`face_info`] |
//! | how does a capture get its frames? | [`capture`] |
//!
//! A face is a link and the socket below it: see `namewire_faces`.

pub mod capture;
pub mod congestion;
pub mod face_counters;
pub mod face_info;
pub mod fragmentation;
pub mod lane_agreement;
mod legality;
pub mod link_drop;
pub mod link_service;
pub mod reassembly;
pub mod reliability;

pub use congestion::LinkPolicy;
pub use face_counters::{FaceCounters, LinkCounters};
pub use face_info::{FaceIdAllocator, FaceInfo, PeerCredentials, group_holder};
pub use legality::check_introduction;
pub use link_drop::LinkDrop;
pub use link_service::{LinkOptions, LinkService, Received};
