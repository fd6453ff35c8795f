//! The facts about a face that management shows, without its traffic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use namewire_packet::{
    FaceId,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType},
};

/// Facts about one face, fixed at creation except for `persistency` and `mtu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceInfo {
    /// The peer.
    pub remote: FaceUri,
    /// Our end.
    pub local: FaceUri,
    /// Whether the peer is on this machine.
    pub scope: FaceScope,
    /// What happens on failure or idleness.
    pub persistency: FacePersistency,
    /// Point-to-point, multi-access or ad hoc.
    pub link_type: LinkType,
    /// Largest frame sent, in bytes, at most 8800. Larger packets are fragmented
    /// on datagram faces and refused on streams.
    pub mtu: usize,
    /// The peer's process, where the kernel knows it: accepted Unix sockets.
    pub credentials: Option<PeerCredentials>,
}

/// The process at the other end of a Unix socket, at the time when it connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Supplementary groups; empty if the kernel does not report them (Linux before 4.13).
    pub groups: Vec<u32>,
    /// Process number; the process may have ended since. 0 if it is in another process namespace.
    pub pid: i32,
}

/// Assigns face ids from 256 upwards, each only once. Clones share the sequence, so every worker of a router can hold
/// one.
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
