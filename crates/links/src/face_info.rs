//! The facts about a face that management shows, without its traffic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use namewire_packet::{
    FaceId,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType},
};
use namewire_shares::Holder;

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
    /// on datagram faces and refused on streams. A UDP face sends smaller frames
    /// while its path takes no larger ones ([`crate::FaceCounters::path_mtu`]).
    pub mtu: usize,
    /// The peer's process, where the kernel knows it: accepted Unix sockets.
    pub credentials: Option<PeerCredentials>,
}

impl FaceInfo {
    /// Whose share of the pools the face uses.
    pub fn holder(&self) -> Holder {
        if self.link_type != LinkType::PointToPoint {
            return group_holder(&self.remote, &self.local);
        }
        let of_address = |address| Holder::of_address(address, self.scope == FaceScope::Local);
        match (&self.remote, &self.local) {
            (FaceUri::Ether(address), FaceUri::Dev(interface)) => {
                Holder::Station { interface: interface.clone(), address: *address }
            }
            (FaceUri::Fd(_) | FaceUri::Unix(_), _) => {
                self.credentials.as_ref().map_or(Holder::Loopback, |peer| Holder::User(peer.uid))
            }
            (FaceUri::WebSocketClient(address) | FaceUri::WebSocket(address), _) => of_address(address.ip()),
            (remote, _) => remote.literal_ip().map_or_else(|| Holder::Other(remote.to_string()), of_address),
        }
    }
}

/// The holder of a multicast group's face.
pub fn group_holder(remote: &FaceUri, local: &FaceUri) -> Holder {
    Holder::Other(format!("{remote} on {local}"))
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

    /// The next unused id, which stays unused.
    pub fn next(&self) -> FaceId {
        FaceId(self.0.load(Ordering::Relaxed))
    }

    /// From now on, allots no id below this one.
    pub fn skip_to(&self, least: FaceId) {
        self.0.fetch_max(least.0, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::nfd::MacAddress;

    #[test]
    fn a_face_uses_the_share_of_whoever_is_at_the_other_end() {
        let face = |remote: &str, local: &str, scope, link_type| FaceInfo {
            remote: remote.parse().unwrap(),
            local: local.parse().unwrap(),
            scope,
            persistency: FacePersistency::OnDemand,
            link_type,
            mtu: 8800,
            credentials: None,
        };
        let (local, not_local, one, many) =
            (FaceScope::Local, FaceScope::NonLocal, LinkType::PointToPoint, LinkType::MultiAccess);
        let holder = |remote: &str, scope| face(remote, "udp4://192.0.2.9:6363", scope, one).holder();
        let remote = Holder::of_address("192.0.2.1".parse().unwrap(), false);
        for uri in ["udp4://192.0.2.1:6363", "udp4://192.0.2.1:9", "tcp4://192.0.2.1:9", "wsclient://192.0.2.1:9"] {
            assert_eq!(holder(uri, not_local), remote, "{uri}");
        }
        assert_eq!(holder("udp6://[2001:db8:1:2::1]:9", not_local).to_string(), "2001:db8:1:2::/64");
        assert_eq!(holder("tcp4://127.0.0.1:9", local), Holder::Loopback);
        assert_eq!(holder("udp4://127.0.0.1:9", not_local), Holder::Relayed);
        assert_eq!(holder("fd://17", local), Holder::Loopback, "the kernel did not say whose");
        let credentials = Some(PeerCredentials { uid: 1000, gid: 1000, groups: Vec::new(), pid: 1 });
        let application = FaceInfo { credentials, ..face("fd://17", "unix:///run/nfd/nfd.sock", local, one) };
        assert_eq!(application.holder(), Holder::User(1000));
        let station = face("ether://[02:00:00:00:00:01]", "dev://eth0", not_local, one).holder();
        let address = MacAddress([2, 0, 0, 0, 0, 1]);
        assert_eq!(station, Holder::Station { interface: "eth0".to_owned(), address });
        let group = face("ether://[01:00:5e:00:17:aa]", "dev://eth0", not_local, many).holder();
        assert_eq!(group.to_string(), "ether://[01:00:5e:00:17:aa] on dev://eth0");
        let by_name = holder("wss://router.example:443/ws", not_local);
        assert_eq!(by_name.to_string(), "wss://router.example:443/ws");
    }
}
