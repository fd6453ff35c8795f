//! TCP faces. [`crate::stream`] does the framing.
//!
//! A face is local if both ends are loopback addresses (forwarding.md §3, §5), so that an application may connect over
//! TCP. The MTU is unlimited, which means 8800 bytes.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use namewire_packet::{
    MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, LinkType},
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::{FaceInfo, face_uri};

/// Connections that the kernel completes before we accept them: Linux's own limit, as for Unix sockets. Beyond it the
/// kernel drops a new peer's first packet, and the peer retries after one second, then two, then four.
const BACKLOG: i32 = 4096;

/// Listens on `address`, non-blocking. An IPv6 listener takes no IPv4 connections, so that every face has the FaceUri
/// of its own family.
///
/// # Errors
/// If the address is in use, not allowed, or not of this machine; if no descriptor is left.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Lets a restarted router listen while connections of the old one are still closing.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Facts about the face of a connection: on-demand if accepted, otherwise as the command says.
///
/// # Errors
/// If the connection has ended already, so that the socket has no peer address.
pub fn face_info(socket: &TcpStream, persistency: FacePersistency) -> io::Result<FaceInfo> {
    let (local, remote) = (socket.local_addr()?, socket.peer_addr()?);
    let both_loopback = local.ip().is_loopback() && remote.ip().is_loopback();
    Ok(FaceInfo {
        remote: face_uri::tcp(remote),
        local: face_uri::tcp(local),
        scope: if both_loopback { FaceScope::Local } else { FaceScope::NonLocal },
        persistency,
        link_type: LinkType::PointToPoint,
        mtu: MAX_PACKET_BYTES,
        credentials: None,
    })
}
