//! Unicast UDP sockets: listeners, and connected sockets of faces made by command.
//!
//! All share one port, 6363 as a rule, because peers tell faces apart by it. The kernel
//! gives a datagram to the connected socket of its remote if there is one, otherwise to a
//! listener; among several listeners (one per worker) a hash of the addresses decides, so
//! one remote meets the same worker. That hash is over all sockets of the port: when a face
//! is made by command, some on-demand remotes move to another worker and get a face there;
//! their old face still sends to them, and closes when idle.
//!
//! Sharing is by `SO_REUSEPORT` alone, which the kernel grants to one user's sockets.
//! `SO_REUSEADDR` would let any local user bind the port and take our datagrams.
//!
//! UDP faces are never local (forwarding.md §5), not even over loopback.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use namewire_packet::MAX_PACKET_BYTES;
use socket2::{Domain, Protocol, Socket, Type};

use crate::{FaceInfo, FaceScope, LinkType, Persistency, face_uri};

/// Kernel receive buffer asked for, in octets; the kernel may grant less. A burst that
/// arrives while the worker is busy waits here.
const RECEIVE_BUFFER_OCTETS: usize = 4 << 20;

/// Binds a listener, non-blocking. With `reuse_port` false the port must be free, so the
/// first listener of a process notices another router; with true it joins the listeners
/// that are there already. Either way later sockets of the same user may share the port.
pub fn bind_listener(address: SocketAddr, reuse_port: bool) -> io::Result<UdpSocket> {
    let socket = new_socket(address)?;
    if reuse_port {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    socket.set_reuse_port(true)?;
    Ok(socket.into())
}

/// A non-blocking socket that is bound to `local` and hears `remote` only.
pub(crate) fn connect(local: SocketAddr, remote: SocketAddr) -> io::Result<UdpSocket> {
    let socket = new_socket(local)?;
    socket.set_reuse_port(true)?;
    socket.bind(&local.into())?;
    socket.connect(&remote.into())?;
    Ok(socket.into())
}

/// Facts about a unicast UDP face.
pub(crate) fn face_info(local: SocketAddr, remote: SocketAddr, persistency: Persistency, mtu: usize) -> FaceInfo {
    FaceInfo {
        remote_uri: face_uri::udp(remote),
        local_uri: face_uri::udp(local),
        scope: FaceScope::NonLocal,
        persistency,
        link_type: LinkType::PointToPoint,
        mtu: mtu.min(MAX_PACKET_BYTES),
        credentials: None,
    }
}

/// The address from which datagrams to `remote` leave, for a listener on all addresses.
/// Falls back to `local` itself if there is no route.
pub(crate) fn local_address_towards(local: SocketAddr, remote: SocketAddr) -> SocketAddr {
    if !local.ip().is_unspecified() {
        return local;
    }
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket sends nothing; it only asks the routing table.
    let probe = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(remote)?;
        socket.local_addr()
    });
    match probe {
        Ok(mut address) => {
            address.set_port(local.port());
            address
        }
        Err(_) => local,
    }
}

fn new_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Best effort: a small buffer only loses more in a burst.
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER_OCTETS);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_listener_notices_a_taken_port_and_others_join() {
        let first = bind_listener("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address = first.local_addr().unwrap();
        let taken = bind_listener(address, false).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        let _second = bind_listener(address, true).unwrap();
        let _face = connect(address, "127.0.0.1:9".parse().unwrap()).unwrap();
    }

    #[test]
    fn local_address_of_a_wildcard_listener_is_that_of_the_route() {
        let remote = "127.0.0.1:9".parse().unwrap();
        let local = local_address_towards("0.0.0.0:6363".parse().unwrap(), remote);
        assert_eq!(local, "127.0.0.1:6363".parse().unwrap());
    }
}
