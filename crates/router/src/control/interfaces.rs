//! The network interfaces of this machine, and reports of changes, both from the kernel by netlink.
//!
//! A list of the interfaces takes two requests (links, addresses) and some hundred microseconds. Control asks for a
//! list at the start, when the kernel reports a change, and for an Ethernet face made by command. It never polls.
//!
//! Limit: [`INTERFACES_MAX`] interfaces; the others are left out.

use super::netlink::{self, List, attributes};
use crate::messages::ToControl;
use namewire_packet::nfd::MacAddress;
use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr},
    os::unix::net::UnixDatagram,
    time::Duration,
};
use tokio::sync::mpsc::UnboundedSender;

/// Interfaces looked at.
const INTERFACES_MAX: usize = 1024;

/// An interface that comes up causes several messages: address, carrier, routes. Control waits this long for the rest.
const SETTLING: Duration = Duration::from_millis(200);

/// Attributes of links and addresses (linux/if_link.h, linux/if_addr.h).
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// The type of an Ethernet link (linux/if_arp.h), and flags of a link (linux/if.h).
const ARPHRD_ETHER: u16 = 1;
const IFF_UP: u32 = 1;
const IFF_LOOPBACK: u32 = 1 << 3;
const IFF_MULTICAST: u32 = 1 << 12;
const IFF_LOWER_UP: u32 = 1 << 16;

/// Scopes of an address (linux/rtnetlink.h): global and link.
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;

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
    netlink::dump(List::Links, |payload| {
        if interfaces.len() < INTERFACES_MAX
            && let Some(interface) = Interface::read(payload)
        {
            interfaces.insert(interface.index, interface);
        }
    })?;
    netlink::dump(List::Addresses, |payload| {
        if let Some((index, address)) = read_address(payload)
            && let Some(interface) = interfaces.get_mut(&index)
        {
            interface.addresses.push(address);
        }
    })?;
    Ok(interfaces)
}

impl Interface {
    /// From `struct ifinfomsg` and attributes. `None` if they are too short for the former; attributes that are
    /// missing or of another length leave their default.
    fn read(payload: &[u8]) -> Option<Self> {
        let (header, rest) = payload.split_first_chunk::<16>()?;
        let &[_family, _, kind_a, kind_b, i, j, k, l, m, n, o, p, ..] = header;
        let kind = u16::from_ne_bytes([kind_a, kind_b]);
        let flags = u32::from_ne_bytes([m, n, o, p]);
        let mut interface = Interface {
            index: u32::from_ne_bytes([i, j, k, l]),
            name: String::new(),
            ethernet: None,
            mtu: 0,
            // The carrier counts too: without it nothing would leave.
            is_up: flags & IFF_UP != 0 && flags & IFF_LOWER_UP != 0,
            is_loopback: flags & IFF_LOOPBACK != 0,
            can_multicast: flags & IFF_MULTICAST != 0,
            addresses: Vec::new(),
        };
        for attribute in attributes(rest) {
            match attribute {
                (IFLA_IFNAME, name) => {
                    let name = name.strip_suffix(&[0]).unwrap_or(name);
                    interface.name = str::from_utf8(name).unwrap_or_default().to_owned();
                }
                (IFLA_MTU, mtu) => interface.mtu = mtu.try_into().map_or(0, u32::from_ne_bytes) as usize,
                (IFLA_ADDRESS, address) if kind == ARPHRD_ETHER => {
                    interface.ethernet = address.try_into().ok().map(MacAddress);
                }
                _ => {}
            }
        }
        Some(interface)
    }
}

/// From `struct ifaddrmsg` and attributes: the number of an interface and its address. `None` if they are too short for
/// the former, or the address is none of ours or of another scope.
fn read_address(payload: &[u8]) -> Option<(u32, IpAddr)> {
    let (&[_family, _prefix_length, _flags, scope, index @ ..], rest) = payload.split_first_chunk::<8>()?;
    // On a point-to-point link, "address" is the peer's and "local" is ours.
    let of_kind = |wanted| attributes(rest).find(|(kind, _)| *kind == wanted).and_then(|(_, value)| read_ip(value));
    let address = of_kind(IFA_LOCAL).or_else(|| of_kind(IFA_ADDRESS))?;
    let is_ours = matches!(scope, RT_SCOPE_UNIVERSE | RT_SCOPE_LINK) && address != IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    is_ours.then_some((u32::from_ne_bytes(index), address))
}

fn read_ip(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok()
}

/// A subscription to changes of interfaces and addresses. It misses none from its creation on.
///
/// The runtime can watch Unix datagram sockets but not netlink sockets. Here it only waits until the socket is readable
/// and reads it, which works the same for both.
pub(crate) struct News(UnixDatagram);

impl News {
    pub(crate) fn subscribe() -> io::Result<Self> {
        Ok(News(UnixDatagram::from(netlink::subscribe()?)))
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

    /// The kernel says the same in files.
    #[test]
    fn the_list_is_that_of_sysfs() {
        if !std::path::Path::new("/sys/class/net/lo").exists() {
            println!("skipped, because sysfs is not mounted");
            return;
        }
        let mut compared = 0;
        for interface in list().unwrap().into_values() {
            let fact = |file: &str| {
                let text = std::fs::read_to_string(format!("/sys/class/net/{}/{file}", interface.name)).ok()?;
                Some(text.trim().to_owned())
            };
            // An interface may be gone meanwhile.
            let (Some(index), Some(mtu), Some(kind)) = (fact("ifindex"), fact("mtu"), fact("type")) else { continue };
            assert_eq!((interface.index.to_string(), interface.mtu.to_string()), (index, mtu));
            let address = fact("address").filter(|_| kind == "1");
            assert_eq!(interface.ethernet.map(|address| address.to_string()), address);
            compared += 1;
        }
        assert!(compared > 0, "lo at least");
    }

    /// `struct ifaddrmsg` and attributes as rtnetlink(7) and linux/if_addr.h have them.
    #[test]
    fn the_own_address_of_a_link_is_taken() {
        let message = |scope: u8, attributes: &[(u16, &[u8])]| {
            let mut payload = vec![2, 24, 0, scope];
            payload.extend(7u32.to_ne_bytes());
            for (kind, value) in attributes {
                payload.extend((4 + value.len() as u16).to_ne_bytes());
                payload.extend(kind.to_ne_bytes());
                payload.extend(*value);
            }
            payload
        };
        let (peer, local, six) = ([192, 0, 2, 1], [192, 0, 2, 2], [0xFE; 16]);
        let own = Some((7, IpAddr::from(local)));
        assert_eq!(read_address(&message(0, &[(1, &peer), (2, &local)])), own);
        assert_eq!(read_address(&message(253, &[(1, &local), (3, b"eth0")])), own);
        assert_eq!(read_address(&message(0, &[(1, &six)])), Some((7, IpAddr::from(six))));
        assert_eq!(read_address(&message(0, &[(1, &local), (2, &peer[..3])])), own);
        assert_eq!(read_address(&message(254, &[(1, &peer), (2, &local)])), None, "the host's own scope");
        assert_eq!(read_address(&message(0, &[(1, &[0; 4])])), None);
        assert_eq!(read_address(&message(0, &[])), None);
        assert_eq!(read_address(&[2, 24, 0, 0, 7, 0, 0]), None);
    }

    /// The kernel's own answers with random bytes changed, cut anywhere.
    #[test]
    fn damaged_answers_are_left_out() {
        for list in [List::Links, List::Addresses] {
            let answer = netlink::receive(&netlink::ask(list).unwrap()).unwrap();
            let mut random = fastrand::Rng::with_seed(1);
            for _ in 0..20_000 {
                let mut damaged = answer[..random.usize(..=answer.len())].to_vec();
                for _ in 0..random.usize(..8).min(damaged.len()) {
                    let place = random.usize(..damaged.len());
                    damaged[place] = random.u8(..);
                }
                let (messages, _) = netlink::read_part(&damaged, &mut |payload| {
                    let _ = (Interface::read(payload), read_address(payload));
                });
                assert!(messages <= damaged.len() / 16, "a message has a header of 16 bytes");
            }
        }
    }
}
