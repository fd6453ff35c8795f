//! UDP multicast: one face per group and interface (drop-in.md §2).
//!
//! Two sockets, as NFD has: one receives what is sent to the group on that interface; the
//! other sends, from an address and port of our own, so that peers see who it was and we know
//! our own datagrams, which the kernel hands to every member on this machine.
//!
//! No privilege is needed: with `IP_MULTICAST_ALL` off, a socket hears only the group that it
//! joined, on the interface where it did. Datagrams travel one hop. Faces are never local, not
//! fragmented, and permanent.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};

use namewire_packet::MAX_PACKET_BYTES;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

use crate::{FaceInfo, FaceScope, LinkType, Persistency, face_uri};

/// Kernel receive buffer asked for, in octets; the kernel may grant less.
const RECEIVE_BUFFER_OCTETS: usize = 4 << 20;

/// The sockets of one face, non-blocking.
#[derive(Debug)]
pub struct MulticastSockets {
    pub(crate) receiver: UdpSocket,
    pub(crate) sender: UdpSocket,
}

/// Opens the face of `group` on the interface of this number and name, one of whose addresses
/// is `local`, of the group's family.
pub fn open(
    group: SocketAddr,
    interface: u32,
    name: &str,
    local: IpAddr,
    link_type: LinkType,
) -> io::Result<(MulticastSockets, FaceInfo)> {
    let scoped = |ip: IpAddr, port: u16, needs_scope: bool| match ip {
        IpAddr::V4(_) => SocketAddr::new(ip, port),
        IpAddr::V6(ip) => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, if needs_scope { interface } else { 0 })),
    };
    let group = scoped(group.ip(), group.port(), true);
    let local = scoped(local, 0, matches!(local, IpAddr::V6(ip) if ip.is_unicast_link_local()));
    let receiver = receiver(group, interface)?;
    let sender = sender(group, interface, local)?;
    let info = FaceInfo {
        remote_uri: face_uri::udp_on(group, name),
        local_uri: face_uri::udp_on(sender.local_addr()?, name),
        scope: FaceScope::NonLocal,
        persistency: Persistency::Permanent,
        link_type,
        mtu: MAX_PACKET_BYTES,
        credentials: None,
    };
    Ok((MulticastSockets { receiver, sender }, info))
}

fn receiver(group: SocketAddr, interface: u32) -> io::Result<UdpSocket> {
    let socket = new_socket(group)?;
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER_OCTETS); // best effort, as for all datagrams
    // Members of a group share its port; each gets a copy, nobody takes what is ours.
    socket.set_reuse_address(true)?;
    match group {
        SocketAddr::V4(v4) => {
            socket.set_multicast_all_v4(false)?;
            socket.bind(&group.into())?;
            socket.join_multicast_v4_n(v4.ip(), &InterfaceIndexOrAddress::Index(interface))?;
        }
        SocketAddr::V6(v6) => {
            socket.set_multicast_all_v6(false)?;
            socket.bind(&group.into())?;
            socket.join_multicast_v6(v6.ip(), interface)?;
        }
    }
    Ok(socket.into())
}

fn sender(group: SocketAddr, interface: u32, local: SocketAddr) -> io::Result<UdpSocket> {
    let socket = new_socket(group)?;
    socket.bind(&local.into())?;
    match local.ip() {
        IpAddr::V4(ip) => {
            socket.set_multicast_if_v4(&ip)?;
            socket.set_multicast_loop_v4(true)?;
        }
        IpAddr::V6(_) => {
            socket.set_multicast_if_v6(interface)?;
            socket.set_multicast_loop_v6(true)?;
        }
    }
    // A connected socket hears its peer only, and a group sends nothing.
    socket.connect(&group.into())?;
    Ok(socket.into())
}

fn new_socket(group: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    if group.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}
