//! UDP multicast: one face per group and interface (drop-in.md §2).
//!
//! A face has two sockets, as in NFD. One receives the datagrams to the group on that interface. The other sends from
//! an address and port that no other socket uses, so that peers can distinguish senders. It also lets the face
//! recognize its own datagrams, which the kernel delivers to every member on this machine.
//!
//! No privilege is needed: with `IP_MULTICAST_ALL` off, a socket receives only for the group that it joined, on the
//! interface where it joined. Datagrams travel one hop. Faces are never local, not fragmented, and permanent.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};

use namewire_packet::{
    MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType},
};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

use crate::FaceInfo;

/// Requested kernel receive buffer, in bytes; the kernel may grant less.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// The sockets of one face, non-blocking.
#[derive(Debug)]
pub struct MulticastSockets {
    pub(crate) receiver: UdpSocket,
    pub(crate) sender: UdpSocket,
}

/// Opens the face of `group` on the interface of this number and name. `local` is an address of that interface, of the
/// group's family.
///
/// # Errors
/// If there is no such interface or address, if the group cannot be joined, or if no descriptor is left.
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
    // Only an address with a scope id needs the interface.
    let uri = |address: SocketAddr| {
        let has_scope = matches!(address, SocketAddr::V6(v6) if v6.scope_id() != 0);
        FaceUri::udp_on(address, has_scope.then(|| name.to_owned()))
    };
    let info = FaceInfo {
        remote: uri(group),
        local: uri(sender.local_addr()?),
        scope: FaceScope::NonLocal,
        persistency: FacePersistency::Permanent,
        link_type,
        mtu: MAX_PACKET_BYTES,
        credentials: None,
    };
    Ok((MulticastSockets { receiver, sender }, info))
}

fn receiver(group: SocketAddr, interface: u32) -> io::Result<UdpSocket> {
    let socket = new_socket(group)?;
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES); // best effort, as for all datagrams
    // Members of a group share its port; each gets a copy of every datagram.
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
    // A connected socket receives from its peer only, and a group sends nothing.
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
