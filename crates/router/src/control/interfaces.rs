//! The network interfaces of this machine, and reports of changes, both from the kernel by netlink.
//!
//! A list of the interfaces takes two requests (links, addresses) and some hundred microseconds. Control asks for a
//! list at the start, when the kernel reports a change, and for an Ethernet face made by command. It never polls.
//!
//! Limit: [`INTERFACES_MAX`] interfaces; the others are left out.

use crate::messages::ToControl;
use namewire_packet::nfd::MacAddress;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::{
    RouteNetlinkMessage,
    address::{AddressAttribute, AddressMessage, AddressScope},
    link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage},
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr},
    os::{fd::AsFd, unix::net::UnixDatagram},
    time::Duration,
};
use tokio::sync::mpsc::UnboundedSender;

/// Interfaces looked at.
const INTERFACES_MAX: usize = 1024;

/// Messages read from one netlink answer. There are some per interface and address.
const MESSAGES_MAX: usize = 64 * INTERFACES_MAX;

/// An interface that comes up causes several messages: address, carrier, routes. Control waits this long for the rest.
const SETTLING: Duration = Duration::from_millis(200);

/// rtnetlink groups (linux/rtnetlink.h): links, IPv4 addresses, IPv6 addresses.
const GROUPS: [u32; 3] = [1, 5, 9];

/// One network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// The interface's own address, if it is an Ethernet.
    pub(crate) ethernet: Option<MacAddress>,
    /// Payload bytes of a frame.
    pub(crate) mtu: usize,
    pub(crate) is_up: bool,
    pub(crate) is_loopback: bool,
    pub(crate) can_multicast: bool,
    /// Addresses of link or global scope, as the kernel lists them.
    pub(crate) addresses: Vec<IpAddr>,
}

/// All interfaces, by number.
pub(crate) fn list() -> io::Result<BTreeMap<u32, Interface>> {
    let mut interfaces = BTreeMap::new();
    dump(RouteNetlinkMessage::GetLink(LinkMessage::default()), |message| {
        if let RouteNetlinkMessage::NewLink(link) = message
            && interfaces.len() < INTERFACES_MAX
        {
            interfaces.insert(link.header.index, Interface::from(&link));
        }
    })?;
    dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()), |message| {
        if let RouteNetlinkMessage::NewAddress(address) = message
            && matches!(address.header.scope, AddressScope::Universe | AddressScope::Link)
            && let Some(interface) = interfaces.get_mut(&address.header.index)
        {
            interface.addresses.extend(own_address(&address));
        }
    })?;
    Ok(interfaces)
}

impl From<&LinkMessage> for Interface {
    fn from(link: &LinkMessage) -> Self {
        let flags = link.header.flags;
        let mut interface = Interface {
            index: link.header.index,
            name: String::new(),
            ethernet: None,
            mtu: 0,
            // The carrier counts too: without it nothing would leave.
            is_up: flags.contains(LinkFlags::Up | LinkFlags::LowerUp),
            is_loopback: flags.contains(LinkFlags::Loopback),
            can_multicast: flags.contains(LinkFlags::Multicast),
            addresses: Vec::new(),
        };
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::IfName(name) => interface.name.clone_from(name),
                LinkAttribute::Mtu(mtu) => interface.mtu = *mtu as usize,
                LinkAttribute::Address(bytes) if link.header.link_layer_type == LinkLayerType::Ether => {
                    interface.ethernet = bytes.as_slice().try_into().ok().map(MacAddress);
                }
                _ => {}
            }
        }
        interface
    }
}

/// On a point-to-point link, "address" is the peer's and "local" is ours.
fn own_address(message: &AddressMessage) -> Option<IpAddr> {
    let attributes = || message.attributes.iter();
    let local = attributes().find_map(|a| if let AddressAttribute::Local(ip) = a { Some(*ip) } else { None });
    let address = attributes().find_map(|a| if let AddressAttribute::Address(ip) = a { Some(*ip) } else { None });
    local.or(address).filter(|ip| *ip != IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// Asks for a list and hands each entry to `take`.
fn dump(request: RouteNetlinkMessage, mut take: impl FnMut(RouteNetlinkMessage)) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut request = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(request));
    request.header.flags = NLM_F_DUMP | NLM_F_REQUEST;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut messages = 0;
    while messages < MESSAGES_MAX {
        let (answer, _) = socket.recv_from_full()?;
        let mut rest = answer.as_slice();
        while let Ok(header) = NetlinkBuffer::new_checked(&rest) {
            messages += 1;
            let len = (header.length() as usize).next_multiple_of(4).min(rest.len());
            // An interface whose message this library cannot read is left out.
            if let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest) {
                match message.payload {
                    NetlinkPayload::InnerMessage(inner) => take(inner),
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
            rest = &rest[len..];
        }
    }
    Ok(())
}

/// A subscription to changes of interfaces and addresses. It misses none from its creation on.
///
/// The runtime can watch Unix datagram sockets but not netlink sockets. Here it only waits until the socket is readable
/// and reads it, which works the same for both.
pub(crate) struct News(UnixDatagram);

impl News {
    pub(crate) fn subscribe() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        for group in GROUPS {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(News(UnixDatagram::from(socket.as_fd().try_clone_to_owned()?)))
    }

    /// Tells control, until the router stops, whenever something has changed and settled.
    pub(crate) async fn pass_on(self, events: UnboundedSender<ToControl>) {
        let Ok(socket) = tokio::net::UnixDatagram::from_std(self.0) else { return };
        while socket.readable().await.is_ok() {
            tokio::time::sleep(SETTLING).await;
            // The content of the message does not matter, nor that it is cut. An overrun of the kernel's buffer is an
            // error here, and it is news as well.
            let mut start = [0; 16];
            while !matches!(socket.try_recv(&mut start), Err(error) if error.kind() == io::ErrorKind::WouldBlock) {}
            if events.send(ToControl::InterfacesChanged).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_found() {
        let interfaces = list().unwrap();
        let loopback = interfaces.values().find(|interface| interface.is_loopback).expect("lo");
        assert_eq!(loopback.name, "lo");
        assert_eq!(loopback.ethernet, None);
        assert!(loopback.mtu >= 1280);
    }
}
