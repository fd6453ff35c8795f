//! Shared memory (memif): how applications on this machine exchange packets with the router without a system call for
//! each.
//!
//! An application connects to a Unix socket and passes a memory file with two rings over it (`namewire-memif`). Then
//! packets go through the rings. The socket only shows when one end leaves. The face is local and on-demand, like that
//! of a Unix stream, and fragments packets that are larger than the application's buffers.
//!
//! ```text
//!   application ──► ring ──► worker ──► ring ──► application        a doorbell (eventfd) wakes who sleeps
//! ```
//!
//! Frames have an Ethernet header of type 0x8624 with two fixed addresses, as between NDN-DPDK and its applications.
//! The router does not look at the addresses.
//!
//! Limits: an application can pass a doorbell at which the worker blocks. Therefore only the owner and the group of the
//! socket may open it ([`SOCKET_MODE`]).

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use namewire_memif::Accept;
pub use namewire_memif::{Handshake, Listener, Port, Progress};
use namewire_packet::{
    MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType, MacAddress},
};

use namewire_shares::Holder;

use crate::frame_port::HEADER_BYTES;
use crate::{FaceInfo, peer_credentials::peer_credentials};

/// The addresses of NDN-DPDK's shared-memory faces.
pub(crate) const ROUTER: MacAddress = MacAddress([0xf2, 0x6c, 0xe6, 0x8d, 0x9e, 0x34]);
pub(crate) const APPLICATION: MacAddress = MacAddress([0xf2, 0x71, 0x7e, 0x76, 0x5d, 0x1c]);

/// Shortest buffers of an application: an Ethernet header, and fragments that are worth it.
const BUFFER_BYTES_MIN: usize = 256;

/// Permissions of the socket: its owner and group.
pub const SOCKET_MODE: u32 = 0o660;

/// Listens on `path`. Creates missing directories and replaces a stale socket.
///
/// # Errors
/// `AddrInUse` if another process listens there; otherwise if directory or socket cannot be created.
pub fn listen(path: &Path) -> io::Result<Listener> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Listener::bind(path, SOCKET_MODE, Accept::default())
}

/// Facts about the face of a connected application.
pub fn face_info(port: &Port, listener_path: &Path) -> FaceInfo {
    let control = port.control();
    FaceInfo {
        remote: FaceUri::Fd(control.as_raw_fd().cast_unsigned()),
        local: FaceUri::memif(listener_path),
        scope: FaceScope::Local,
        persistency: FacePersistency::OnDemand,
        link_type: LinkType::PointToPoint,
        mtu: port.frame_bytes_max().saturating_sub(HEADER_BYTES).min(MAX_PACKET_BYTES),
        credentials: peer_credentials(control.as_fd()).ok(),
    }
}

/// Whether the buffers of an application are large enough for a face. The length is that of the time when it connected.
pub fn has_usable_buffers(port: &Port) -> bool {
    port.frame_bytes_max() >= BUFFER_BYTES_MIN
}

/// True for the face of an application that shares memory with the router.
pub(crate) fn is_memory(info: &FaceInfo) -> bool {
    matches!(info.local, FaceUri::Memif(_))
}

/// Whose share of the pools an application uses, by its connection.
pub fn holder(control: BorrowedFd<'_>) -> Holder {
    peer_credentials(control).map_or(Holder::Loopback, |peer| Holder::User(peer.uid))
}
