//! Faces: how does the router receive and send packets?
//!
//! [`SocketDriver`] owns every socket of one worker thread and sleeps on all of them at once. Each transport has a file
//! for its special parts: [`unix`], [`memory`], [`tcp`], [`udp`], [`udp_multicast`], [`ethernet`], [`dpdk`]. Frames of
//! an interface come by a packet socket or by AF_XDP (`datagram_port`, `frame_port`). The link service of each face,
//! which turns frames into network packets and back, is in [`namewire_links`].
//!
//! Every refusal is a [`LinkDrop`]; every event of a face is a [`FaceEvent`]. Only `sys` and `peer_credentials` have
//! `unsafe` code.

mod buffer_pool;
mod crowd;
mod datagram_port;
mod datagram_socket;
pub mod dpdk;
pub mod driver_config;
pub mod ethernet;
pub mod face_event;
pub mod face_uri;
mod fair_queue;
mod frame_port;
pub mod memory;
mod path_mtu;
mod peer_credentials;
mod port_steering;
mod prepaid;
mod remote;
pub mod rx_arena;
mod scoped_captures;
pub mod socket_driver;
pub mod stream;
mod sys;
pub mod tcp;
pub mod udp;
pub mod udp_multicast;
pub mod unix;
mod waker;

pub use driver_config::DriverConfig;
pub use face_event::{AddFaceError, CloseReason, FaceEvent};
pub use namewire_links::{
    FaceCounters, FaceIdAllocator, FaceInfo, LinkCounters, LinkDrop, LinkPolicy, PeerCredentials, capture,
    group_holder, lane_agreement,
};
pub use rx_arena::{RxArena, RxPacket};
pub use socket_driver::{HandedChannel, HandedFace, HandedListener, HolderOf, Lent, SocketDriver, give_pages_back};
pub use stream::{StreamRest, StreamSocket};
pub use waker::Waker;
