//! The network interfaces of this machine, and reports of changes, both from the kernel by netlink.
//!
//! A list of the interfaces takes two requests (links, addresses) and some hundred microseconds. Control asks for a
//! list at the start, when the kernel reports a change, and for an Ethernet face made by command. It never polls.
//!
//! Limit: [`INTERFACES_MAX`] interfaces; the others are left out.

use crate::messages::ToControl;
use namewire_packet::nfd::MacAddress;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    parse_ip, parse_string, parse_u32,
};
use netlink_packet_route::{
    RouteNetlinkMessage,
    address::{AddressMessage, AddressMessageBuffer, AddressScope},
    link::{LinkFlags, LinkLayerType, LinkMessage, LinkMessageBuffer},
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

/// Attributes of links and addresses (linux/if_link.h, linux/if_addr.h).
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

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
    dump(RouteNetlinkMessage::GetLink(LinkMessage::default()), |payload| {
        if let Ok(link) = LinkMessageBuffer::new_checked(payload)
            && interfaces.len() < INTERFACES_MAX
        {
            interfaces.insert(link.link_index(), Interface::from(&link));
        }
    })?;
    dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()), |payload| {
        if let Ok(address) = AddressMessageBuffer::new_checked(payload)
            && matches!(AddressScope::from(address.scope()), AddressScope::Universe | AddressScope::Link)
            && let Some(interface) = interfaces.get_mut(&address.index())
        {
            interface.addresses.extend(own_address(&address));
        }
    })?;
    Ok(interfaces)
}

// N.B. Only the attributes that are wanted are read. The parser of whole messages (netlink-packet-route 0.28) panics at
// some attributes that are shorter than it knows them; another kernel's may be.
impl From<&LinkMessageBuffer<&[u8]>> for Interface {
    fn from(link: &LinkMessageBuffer<&[u8]>) -> Self {
        let flags = LinkFlags::from_bits_retain(link.flags());
        let mut interface = Interface {
            index: link.link_index(),
            name: String::new(),
            ethernet: None,
            mtu: 0,
            // The carrier counts too: without it nothing would leave.
            is_up: flags.contains(LinkFlags::Up | LinkFlags::LowerUp),
            is_loopback: flags.contains(LinkFlags::Loopback),
            can_multicast: flags.contains(LinkFlags::Multicast),
            addresses: Vec::new(),
        };
        for attribute in link.attributes().map_while(Result::ok) {
            match (attribute.kind(), attribute.value()) {
                (IFLA_IFNAME, name) => interface.name = parse_string(name).unwrap_or_default(),
                (IFLA_MTU, mtu) => interface.mtu = parse_u32(mtu).unwrap_or_default() as usize,
                (IFLA_ADDRESS, address) if LinkLayerType::from(link.link_layer_type()) == LinkLayerType::Ether => {
                    interface.ethernet = address.try_into().ok().map(MacAddress);
                }
                _ => {}
            }
        }
        interface
    }
}

/// On a point-to-point link, "address" is the peer's and "local" is ours.
fn own_address(message: &AddressMessageBuffer<&[u8]>) -> Option<IpAddr> {
    let attribute = |kind| {
        let mut attributes = message.attributes().map_while(Result::ok);
        attributes.find(|attribute| attribute.kind() == kind).and_then(|attribute| parse_ip(attribute.value()).ok())
    };
    attribute(IFA_LOCAL).or_else(|| attribute(IFA_ADDRESS)).filter(|ip| *ip != IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// Asks for a list and hands the payload of each entry to `take`.
fn dump(request: RouteNetlinkMessage, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&question(request), 0)?;
    let mut messages = 0;
    while messages < MESSAGES_MAX {
        let (answer, _) = socket.recv_from_full()?;
        let (count, end) = read_answer(&answer, &mut take);
        messages += count;
        if let Some(result) = end {
            return result;
        }
    }
    Ok(())
}

fn question(request: RouteNetlinkMessage) -> Vec<u8> {
    let mut request = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(request));
    request.header.flags = NLM_F_DUMP | NLM_F_REQUEST;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    bytes
}

/// Hands the payload of each entry in a part of the answer to `take`. Returns how many messages there were, and the
/// result if the list ended.
fn read_answer(mut answer: &[u8], take: &mut impl FnMut(&[u8])) -> (usize, Option<io::Result<()>>) {
    let mut messages = 0;
    while let Ok(message) = NetlinkBuffer::new_checked(answer) {
        messages += 1;
        match message.message_type() {
            NLMSG_DONE => return (messages, Some(Ok(()))),
            NLMSG_ERROR => {
                let code = message.payload().first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                return (messages, Some(Err(io::Error::from_raw_os_error(code.wrapping_neg()))));
            }
            _ => take(message.payload()),
        }
        let len = (message.length() as usize).next_multiple_of(4).min(answer.len());
        answer = &answer[len..];
    }
    (messages, None)
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

    /// The kernel's own answer with random bytes changed, cut anywhere.
    #[test]
    fn damaged_answers_are_left_out() {
        let mut socket = Socket::new(NETLINK_ROUTE).unwrap();
        socket.bind_auto().unwrap();
        socket.connect(&SocketAddr::new(0, 0)).unwrap();
        socket.send(&question(RouteNetlinkMessage::GetLink(LinkMessage::default())), 0).unwrap();
        let (answer, _) = socket.recv_from_full().unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut damaged = answer[..random.usize(..=answer.len())].to_vec();
            for _ in 0..random.usize(..8).min(damaged.len()) {
                let place = random.usize(..damaged.len());
                damaged[place] = random.u8(..);
            }
            let (messages, _) = read_answer(&damaged, &mut |payload| {
                if let Ok(link) = LinkMessageBuffer::new_checked(payload) {
                    let _ = Interface::from(&link);
                }
                if let Ok(address) = AddressMessageBuffer::new_checked(payload) {
                    let _ = own_address(&address);
                }
            });
            assert!(messages <= damaged.len() / 16, "a message has a header of 16 bytes");
        }
    }
}
