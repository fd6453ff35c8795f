//! Holder: which party gets one share of a pool?
//!
//! A holder should be something that one attacker has only one of. A host can open any number of ports and connections,
//! so a face is not a holder. A host usually has all addresses of an IPv6 network of 64 bits, and a site has its
//! network of 48 bits, so the /64 is the holder and the /48 its *group*, with the share of one holder. Link-local
//! addresses are an exception: all neighbours of a link share one network, so there each address is a holder. An
//! Ethernet station can write any source address, so the stations of an interface are a group, too. Hosts on that link
//! then cannot lock out hosts that use another link.
//!
//! Limits: a sender that can forge its IP source address can act as many holders. Many hosts behind one address (NAT, a
//! proxy) count as one holder.

use namewire_packet::nfd::MacAddress;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Who holds a part of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The router itself: management, and connections that the operator's commands and files make.
    Management,
    /// Applications of one user, over Unix sockets.
    User(u32),
    /// Applications that connect over loopback addresses or inside the router's process: the kernel does not say whose
    /// they are.
    Loopback,
    /// Peers on a loopback address that have no rights of a local application: UDP, and WebSocket connections of web
    /// pages and proxies.
    Relayed,
    /// A remote IPv4 address.
    Ipv4(Ipv4Addr),
    /// The upper 64 bits of a remote IPv6 address.
    Ipv6Network(u64),
    /// The upper 48 bits of remote IPv6 addresses: the networks of a site that has used up its numbers.
    Ipv6Site(u64),
    /// A link-local IPv6 address.
    Ipv6Neighbour(Ipv6Addr),
    /// An Ethernet station on the link of a network interface.
    Station {
        /// Name of the interface.
        interface: String,
        /// Address of the station.
        address: MacAddress,
    },
    /// The stations of a network interface, by its name: those for which there is no number.
    Link(String),
    /// What has no address of its own: all members of a multicast group on one interface, or a server by its name.
    Other(String),
}

/// Which reserves of a pool a holder may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// All of them.
    Management,
    /// Those of local applications.
    Local,
    /// None.
    Remote,
}

impl Class {
    /// All classes; their numbers are indexes.
    pub const ALL: [Class; 3] = [Class::Management, Class::Local, Class::Remote];
}

impl Holder {
    /// The holder of a remote IP address. `is_local`: its face has the rights of a local application.
    pub fn of_address(address: IpAddr, is_local: bool) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() && is_local => Holder::Loopback,
            address if address.is_loopback() => Holder::Relayed,
            IpAddr::V4(address) => Holder::Ipv4(address),
            IpAddr::V6(address) if address.is_unicast_link_local() => Holder::Ipv6Neighbour(address),
            IpAddr::V6(address) => Holder::Ipv6Network((address.to_bits() >> 64) as u64),
        }
    }

    /// The class.
    pub fn class(&self) -> Class {
        match self {
            Holder::Management => Class::Management,
            Holder::User(_) | Holder::Loopback => Class::Local,
            _ => Class::Remote,
        }
    }

    /// The group, if there is one, as a holder.
    pub(crate) fn group(&self) -> Option<Holder> {
        match self {
            Holder::Ipv6Network(network) => Some(Holder::Ipv6Site(network >> 16)),
            Holder::Station { interface, .. } => Some(Holder::Link(interface.clone())),
            Holder::Ipv6Site(_) | Holder::Link(_) => Some(self.clone()),
            _ => None,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Management => f.write_str("management"),
            Holder::User(user) => write!(f, "user {user}"),
            Holder::Loopback => f.write_str("loopback"),
            Holder::Relayed => f.write_str("loopback, not local"),
            Holder::Ipv4(address) => address.fmt(f),
            Holder::Ipv6Network(network) => write!(f, "{}/64", Ipv6Addr::from_bits(u128::from(*network) << 64)),
            Holder::Ipv6Site(site) => write!(f, "{}/48", Ipv6Addr::from_bits(u128::from(*site) << 80)),
            Holder::Ipv6Neighbour(address) => address.fmt(f),
            Holder::Station { interface, address } => write!(f, "{address}%{interface}"),
            Holder::Link(interface) => write!(f, "stations%{interface}"),
            Holder::Other(what) => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str, is_local: bool) -> Holder {
        Holder::of_address(address.parse().unwrap(), is_local)
    }

    #[test]
    fn one_host_is_one_holder_whatever_it_calls_itself() {
        assert_eq!(of("2001:db8:1:2::3", false), of("2001:db8:1:2:ffff::", false));
        assert_ne!(of("2001:db8:1:2::3", false), of("2001:db8:1:3::3", false));
        assert_eq!(of("2001:db8:1:2::3", false).group(), of("2001:db8:1:ffff::", false).group());
        assert_ne!(of("2001:db8:1:2::3", false).group(), of("2001:db8:2:2::3", false).group());
        assert_eq!(of("::ffff:192.0.2.1", false), of("192.0.2.1", false));
        assert_ne!(of("fe80::1", false), of("fe80::2", false), "neighbours share a network");
        assert_eq!(of("fe80::1", false).group(), None);
    }

    #[test]
    fn only_local_holders_use_local_reserves() {
        assert_eq!(of("127.0.0.1", true).class(), Class::Local);
        assert_eq!(of("::1", true), of("127.0.0.1", true));
        assert_eq!(of("127.0.0.1", false).class(), Class::Remote);
        assert_eq!(Holder::User(1000).class(), Class::Local);
        assert_eq!(of("192.0.2.1", false).class(), Class::Remote);
    }

    #[test]
    fn holders_have_names() {
        let station = Holder::Station { interface: "eth0".to_owned(), address: MacAddress([2, 0, 0, 0, 0, 1]) };
        assert_eq!(station.group(), Some(Holder::Link("eth0".to_owned())));
        for (holder, name) in [
            (of("2001:db8:1:2::3", false), "2001:db8:1:2::/64"),
            (of("192.0.2.1", false), "192.0.2.1"),
            (Holder::Ipv6Site(0x2001_0db8_0001), "2001:db8:1::/48"),
            (Holder::User(1000), "user 1000"),
            (station, "02:00:00:00:00:01%eth0"),
            (Holder::Link("eth0".to_owned()), "stations%eth0"),
        ] {
            assert_eq!(holder.to_string(), name);
        }
    }
}
