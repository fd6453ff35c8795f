//! What a face is, apart from its traffic: the facts that management shows.
//!
//! The numbers of the enums are NFD's (forwarding.md §5; NFD `face-common.hpp`)
//! and appear on the wire in FaceStatus.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use namewire_packet::FaceId;

/// Whether the peer is on this machine. Decides who may use `/localhost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FaceScope {
    /// The peer may be anywhere.
    NonLocal = 0,
    /// The peer is an application on this machine.
    Local = 1,
}

/// What happens to the face when its connection fails or falls silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Persistency {
    /// Made by command; lives until destroyed, or until its connection or link fails.
    Persistent = 0,
    /// Made by the peer's first packet; ends as a persistent one, and a datagram face when idle.
    OnDemand = 1,
    /// Never closes by itself: goes down and comes back.
    Permanent = 2,
}

impl Persistency {
    /// Reads NFD's number; `None` for any other.
    pub const fn from_code(code: u64) -> Option<Self> {
        match code {
            0 => Some(Persistency::Persistent),
            1 => Some(Persistency::OnDemand),
            2 => Some(Persistency::Permanent),
            _ => None,
        }
    }
}

/// How many peers hear what the face sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkType {
    /// Exactly one.
    PointToPoint = 0,
    /// All peers of a link hear each other.
    MultiAccess = 1,
    /// Peers may not hear each other, so a packet may go back out the face it came from.
    AdHoc = 2,
}

/// Facts about one face, fixed at creation except for `persistency` and `mtu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceInfo {
    /// The peer, as a canonical FaceUri ([`crate::face_uri`]).
    pub remote_uri: String,
    /// Our end, as a FaceUri.
    pub local_uri: String,
    /// Whether the peer is on this machine.
    pub scope: FaceScope,
    /// What happens on failure or silence.
    pub persistency: Persistency,
    /// How many peers there are.
    pub link_type: LinkType,
    /// Largest frame sent, in octets, at most 8800. Larger packets are fragmented
    /// on datagram faces and refused on streams.
    pub mtu: usize,
    /// Who is at the other end, where the kernel knows: accepted Unix sockets.
    pub credentials: Option<PeerCredentials>,
}

/// The process at the other end of a Unix socket, as it was when it connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Supplementary groups; none if the kernel does not tell (Linux before 4.13).
    pub groups: Vec<u32>,
    /// Process; it may have ended since. 0 if it is in another process namespace.
    pub pid: i32,
}

/// Hands out face ids from 256 upwards, never one twice. Clones share the sequence,
/// so every worker of a router can hold one.
#[derive(Clone, Debug)]
pub struct FaceIdAllocator(Arc<AtomicU64>);

impl FaceIdAllocator {
    /// A new sequence that starts at [`FaceId::FIRST_DYNAMIC`].
    pub fn new() -> Self {
        FaceIdAllocator(Arc::new(AtomicU64::new(FaceId::FIRST_DYNAMIC.0)))
    }

    /// The next unused id.
    pub fn allocate(&self) -> FaceId {
        FaceId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for FaceIdAllocator {
    fn default() -> Self {
        Self::new()
    }
}
