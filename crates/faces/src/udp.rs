//! Unicast UDP sockets: listeners, and connected sockets of faces created by command.
//!
//! All share one port, usually 6363, because peers distinguish faces by it. The kernel gives a datagram to the
//! connected socket of its remote if there is one, otherwise to a listener. Among several listeners (one per worker), a
//! hash of the remote's address decides ([`crate::port_steering`]), so datagrams of one remote always reach the same
//! worker.
//!
//! Sockets share the port by `SO_REUSEPORT` alone, which the kernel grants to one user's sockets. With `SO_REUSEADDR`,
//! any local user could bind the port and take our datagrams.
//!
//! UDP faces are never local (forwarding.md §5), not even over loopback.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use namewire_packet::{
    MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, LinkType},
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::port_steering::steer_to_listeners;
use crate::{FaceInfo, face_uri};

/// Requested kernel receive buffer, in bytes; the kernel may grant less. A burst that arrives while the worker is busy
/// waits here.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Binds `count` non-blocking listeners to one address, among which the kernel divides the remotes. The port must be
/// free, so that a process notices another router; later sockets of the same user may share it.
///
/// # Errors
/// If the address is in use, not allowed, or not of this machine; if no descriptor is left.
pub fn bind_listeners(address: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    // First without sharing: that fails if other sockets have the port.
    let first = new_socket(address)?;
    first.bind(&address.into())?;
    first.set_reuse_port(true)?;
    let address = UdpSocket::from(first.try_clone()?).local_addr()?;
    let listeners = (0..count).map(|_| bind_shared(address).map(UdpSocket::from)).collect::<io::Result<Vec<_>>>()?;
    // Only sockets that were bound to share a port can be steered, and the first one was not.
    drop(first);
    if let Some(listener) = listeners.first() {
        // Without steering, datagrams that may be lost are counted.
        let _ = steer_to_listeners(listener, count);
    }
    Ok(listeners)
}

fn bind_shared(address: SocketAddr) -> io::Result<Socket> {
    let socket = new_socket(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// A non-blocking socket that is bound to `local` and receives from `remote` only.
pub(crate) fn connect(local: SocketAddr, remote: SocketAddr) -> io::Result<UdpSocket> {
    let socket = bind_shared(local)?;
    socket.connect(&remote.into())?;
    Ok(socket.into())
}

/// A non-blocking socket at any free port of `local`, for a lane.
pub(crate) fn bind_lane(local: SocketAddr) -> io::Result<UdpSocket> {
    let socket = new_socket(local)?;
    socket.bind(&SocketAddr::new(local.ip(), 0).into())?;
    Ok(socket.into())
}

/// Facts about a unicast UDP face.
pub(crate) fn face_info(local: SocketAddr, remote: SocketAddr, persistency: FacePersistency, mtu: usize) -> FaceInfo {
    FaceInfo {
        remote: face_uri::udp(remote),
        local: face_uri::udp(local),
        scope: FaceScope::NonLocal,
        persistency,
        link_type: LinkType::PointToPoint,
        mtu: mtu.min(MAX_PACKET_BYTES),
        credentials: None,
    }
}

/// Our address in datagrams to `remote`, for a listener on all addresses. Falls back to `local` itself if there is no
/// route.
pub(crate) fn local_address_towards(local: SocketAddr, remote: SocketAddr) -> SocketAddr {
    if !local.ip().is_unspecified() {
        return local;
    }
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket sends nothing; it only looks up the route.
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
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_notice_a_taken_port_and_faces_share_it() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let listeners = bind_listeners(any.parse().unwrap(), 2).unwrap();
            let address = listeners[0].local_addr().unwrap();
            assert_eq!(listeners[1].local_addr().unwrap(), address);
            let taken = bind_listeners(address, 1).unwrap_err();
            assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
            let _face = connect(address, SocketAddr::new(address.ip(), 9)).unwrap();
        }
    }

    /// Which socket the kernel gives a datagram to: a socket bound like a face's, and not connected yet, gets none.
    #[test]
    fn remotes_meet_one_listener_each_and_no_socket_that_is_not_connected() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let any: SocketAddr = any.parse().unwrap();
            let listeners = bind_listeners(any, 3).unwrap();
            let address = listeners[0].local_addr().unwrap();
            let peers: Vec<UdpSocket> = (0..60).map(|_| UdpSocket::bind(any).unwrap()).collect();
            let receive = || {
                for peer in &peers {
                    peer.send_to(b"x", address).unwrap();
                }
                let all_of = |listener: &UdpSocket| {
                    let next = || listener.recv_from(&mut [0; 9]).ok().map(|(_, remote)| remote);
                    std::iter::from_fn(next).collect::<std::collections::BTreeSet<SocketAddr>>()
                };
                listeners.iter().map(all_of).collect::<Vec<_>>()
            };
            let before = receive();
            assert_eq!(before.iter().map(|remotes| remotes.len()).sum::<usize>(), 60, "{any}");
            assert!(before.iter().all(|remotes| remotes.len() > 5), "{any}: {before:?}");
            for _ in 0..3 {
                let bound: Vec<Socket> = (0..5).map(|_| bind_shared(address).unwrap()).collect();
                let _face = connect(address, SocketAddr::new(address.ip(), 9)).unwrap();
                assert_eq!(receive(), before, "{any}");
                drop(bound);
                assert_eq!(receive(), before, "{any}");
            }
        }
    }

    #[test]
    fn local_address_of_a_wildcard_listener_is_that_of_the_route() {
        let remote = "127.0.0.1:9".parse().unwrap();
        let local = local_address_towards("0.0.0.0:6363".parse().unwrap(), remote);
        assert_eq!(local, "127.0.0.1:6363".parse().unwrap());
    }
}
