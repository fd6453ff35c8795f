//! The other end of a datagram: a UDP socket, or an Ethernet station.

use std::net::{IpAddr, SocketAddr};

use namewire_packet::nfd::MacAddress;

/// The other end of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Remote {
    /// A UDP socket.
    Udp(SocketAddr),
    /// A station, or a group of them, on the link of an interface.
    Ethernet(LinkAddress),
}

/// Where a datagram goes from a socket that several faces share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    /// The other end.
    pub(crate) remote: Remote,
    /// Our address in the datagram, where the kernel would choose another: the one that the remote had asked.
    pub(crate) from: Option<IpAddr>,
}

/// An Ethernet address and its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LinkAddress {
    /// Number of the interface.
    pub(crate) interface: u32,
    /// The address.
    pub(crate) address: MacAddress,
}

impl Remote {
    /// Distinguishes senders on one link: their fragments must not be mixed. IP addresses do not need it, because UDP
    /// multicast is not fragmented.
    pub(crate) fn sender(&self) -> u64 {
        match self {
            Remote::Udp(_) => 0,
            Remote::Ethernet(LinkAddress { address: MacAddress([a, b, c, d, e, f]), .. }) => {
                u64::from_be_bytes([0, 0, *a, *b, *c, *d, *e, *f])
            }
        }
    }
}

impl From<Remote> for Destination {
    fn from(remote: Remote) -> Self {
        Destination { remote, from: None }
    }
}

impl From<SocketAddr> for Remote {
    fn from(address: SocketAddr) -> Self {
        Remote::Udp(address)
    }
}
