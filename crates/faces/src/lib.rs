//! Faces: how does the router receive and send packets?
//!
//! The crate has two parts, which can be read separately:
//!
//! * **The link service**, sans-IO: [`LinkService`] turns frames into network packets and back ([`reassembly`],
//!   [`fragmentation`], [`reliability`], [`congestion`]). The simulator uses it unchanged.
//! * **Sockets**: [`SocketDriver`] owns every socket of one worker thread and sleeps on all of them at once. Each
//!   transport has a file for its peculiarities: [`unix`], [`memory`], [`tcp`], [`udp`], [`udp_multicast`],
//!   [`ethernet`], [`dpdk`]. Frames of
//!   an interface come by a packet socket or by AF_XDP (`datagram_port`, `frame_port`).
//!
//! Every refusal is a [`LinkDrop`]; every event of a face is a [`FaceEvent`]. Only `sys` and `peer_credentials` have
//! `unsafe` code.

mod buffer_pool;
pub mod capture;
pub mod congestion;
mod crowd;
mod datagram_port;
mod datagram_socket;
pub mod dpdk;
pub mod driver_config;
pub mod ethernet;
pub mod face_counters;
pub mod face_event;
pub mod face_info;
pub mod face_uri;
mod fair_queue;
pub mod fragmentation;
mod frame_port;
mod legality;
pub mod link_drop;
pub mod link_service;
pub mod memory;
mod path_mtu;
mod peer_credentials;
mod port_steering;
pub mod reassembly;
pub mod reliability;
mod remote;
pub mod rx_arena;
pub mod socket_driver;
pub mod stream;
mod sys;
pub mod tcp;
pub mod udp;
pub mod udp_multicast;
pub mod unix;
mod waker;

pub use congestion::LinkPolicy;
pub use driver_config::DriverConfig;
pub use face_counters::{FaceCounters, LinkCounters};
pub use face_event::{AddFaceError, CloseReason, FaceEvent};
pub use face_info::{FaceIdAllocator, FaceInfo, PeerCredentials, group_holder};
pub use link_drop::LinkDrop;
pub use link_service::{LinkOptions, LinkService, Received};
pub use rx_arena::{RxArena, RxPacket};
pub use socket_driver::{HolderOf, Lent, SocketDriver, give_pages_back};
pub use stream::StreamSocket;
pub use waker::Waker;
