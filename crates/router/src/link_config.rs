//! Settings of the transports beside plain TCP and UDP: WebSocket, UDP multicast, Ethernet,
//! and which network interfaces the latter two use.
//!
//! Source: drop-in.md §2 (groups and ports), NFD's sample configuration (sections `websocket`,
//! `udp` and `ether`, of which this has the same parts).
//!
//! Nothing of it is on by default: a router that nobody told to speaks to no group.

use namewire_packet::nfd::MacAddress;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    path::PathBuf,
    str::FromStr,
};

/// The IPv4 group of NDN.
pub const DEFAULT_UDP4_GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(224, 0, 23, 170), 56363);

/// The IPv6 group of NDN, on each link.
pub const DEFAULT_UDP6_GROUP: SocketAddrV6 =
    SocketAddrV6::new(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x1234), 56363, 0, 0);

/// The Ethernet group of NDN.
pub const DEFAULT_ETHERNET_GROUP: MacAddress = MacAddress([0x01, 0x00, 0x5e, 0x00, 0x17, 0xaa]);

/// WebSocket port of NDN.
pub const DEFAULT_WEBSOCKET_PORT: u16 = 9696;

/// One WebSocket listener: `ws`, or `wss` with `tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketListener {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its certificate; without one, connections are not encrypted.
    pub tls: Option<TlsFiles>,
}

/// A certificate and its key, in PEM. Read again when either file has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, the server's own first.
    pub certificate: PathBuf,
    /// The private key (PKCS#8, PKCS#1 or SEC1).
    pub key: PathBuf,
}

/// WebSocket: who is listened to and how others are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebSocketConfig {
    /// Listeners. Default none.
    pub listeners: Vec<WebSocketListener>,
    /// PEM file of the certificates that `wss://` servers are checked against. Default: those
    /// that the system trusts.
    pub trusted_certificates: Option<PathBuf>,
}

/// UDP multicast: a face per group and interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UdpMulticastConfig {
    /// The IPv4 group, or `None` for no faces. Default none; NDN's is [`DEFAULT_UDP4_GROUP`].
    pub group4: Option<SocketAddrV4>,
    /// The IPv6 group. Default none; NDN's is [`DEFAULT_UDP6_GROUP`]. Its scope is ignored.
    pub group6: Option<SocketAddrV6>,
    /// Peers may not hear each other (a mesh), so that Interests may go back where they came
    /// from. Default false: all hear each other.
    pub ad_hoc: bool,
    /// On which interfaces. Default all that are up, can multicast and are not loopback.
    pub interfaces: InterfaceFilter,
}

/// NDN directly over Ethernet. Needs CAP_NET_RAW.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EthernetConfig {
    /// A station that sends us an NDN frame becomes an on-demand face. Default false.
    pub listen: bool,
    /// The group of a multicast face on each interface. Default none; NDN's is
    /// [`DEFAULT_ETHERNET_GROUP`].
    pub group: Option<MacAddress>,
    /// As [`UdpMulticastConfig::ad_hoc`], of the group.
    pub ad_hoc: bool,
    /// On which interfaces, of `listen` and `group`. Default all Ethernet ones that are up.
    pub interfaces: InterfaceFilter,
}

/// Which network interfaces to use: those that some pattern of `allow` and none of `deny` matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceFilter {
    /// Default `*`.
    pub allow: Vec<InterfacePattern>,
    /// Default none.
    pub deny: Vec<InterfacePattern>,
}

impl Default for InterfaceFilter {
    fn default() -> Self {
        InterfaceFilter { allow: vec![InterfacePattern::Name("*".to_owned())], deny: Vec::new() }
    }
}

/// What an interface is recognized by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfacePattern {
    /// Its name, in which `*` stands for any characters and `?` for one.
    Name(String),
    /// Its Ethernet address.
    Ethernet(MacAddress),
    /// One of its addresses is in this subnet: address and length of the prefix.
    Subnet(IpAddr, u8),
}

/// A text that is no [`InterfacePattern`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: expected an interface name such as eth*, an Ethernet address or a subnet such as 192.0.2.0/24")]
pub struct InterfacePatternError(String);

impl FromStr for InterfacePattern {
    type Err = InterfacePatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || InterfacePatternError(text.to_owned());
        if let Ok(address) = text.parse() {
            return Ok(InterfacePattern::Ethernet(address));
        }
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| error())?;
            let bits_max = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.parse().ok().filter(|bits| *bits <= bits_max).ok_or_else(error)?;
            return Ok(InterfacePattern::Subnet(address, bits));
        }
        let is_name = (1..=64).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_graphic() && c != b':');
        is_name.then(|| InterfacePattern::Name(text.to_owned())).ok_or_else(error)
    }
}

impl fmt::Display for InterfacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InterfacePattern::Name(name) => f.write_str(name),
            InterfacePattern::Ethernet(address) => write!(f, "{address}"),
            InterfacePattern::Subnet(address, bits) => write!(f, "{address}/{bits}"),
        }
    }
}

impl InterfaceFilter {
    /// Whether an interface of these features is to be used.
    pub fn admits(&self, name: &str, ethernet: Option<MacAddress>, addresses: &[IpAddr]) -> bool {
        let matches = |pattern: &InterfacePattern| match pattern {
            InterfacePattern::Name(glob) => glob_matches(glob.as_bytes(), name.as_bytes()),
            InterfacePattern::Ethernet(address) => ethernet == Some(*address),
            InterfacePattern::Subnet(subnet, bits) => addresses.iter().any(|ip| is_in_subnet(*ip, *subnet, *bits)),
        };
        self.allow.iter().any(matches) && !self.deny.iter().any(matches)
    }
}

fn is_in_subnet(address: IpAddr, subnet: IpAddr, bits: u8) -> bool {
    let same_prefix = |difference: u128, width: u8| difference.checked_shr(u32::from(width - bits)).unwrap_or(0) == 0;
    match (address, subnet) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same_prefix((a.to_bits() ^ b.to_bits()).into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same_prefix(a.to_bits() ^ b.to_bits(), 128),
        _ => false,
    }
}

/// `*` and `?` as in file names. Both texts are short (64 and 15 octets).
fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    // Where to go on after a mismatch: the last `*`, and what it has swallowed so far.
    let (mut g, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, t));
                g += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => (g, t) = (g + 1, t + 1),
            _ => match star {
                Some((at, swallowed)) => {
                    star = Some((at, swallowed + 1));
                    (g, t) = (at + 1, swallowed + 1);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(allow: &[&str], deny: &[&str]) -> InterfaceFilter {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        InterfaceFilter { allow: parse(allow), deny: parse(deny) }
    }

    #[test]
    fn names_are_globs() {
        for (glob, name, is_match) in [
            ("*", "eth0", true),
            ("eth0", "eth0", true),
            ("eth0", "eth01", false),
            ("eth?", "eth0", true),
            ("eth?", "eth", false),
            ("e*0", "enp3s0", true),
            ("e*0", "enp3s1", false),
            ("*s*p*", "wlp3s0p1", true),
            ("*s*p*", "wlp3", false),
            ("", "", true),
        ] {
            assert_eq!(glob_matches(glob.as_bytes(), name.as_bytes()), is_match, "{glob} {name}");
        }
    }

    #[test]
    fn some_pattern_allows_and_none_denies() {
        let mac = "02:00:00:00:00:01".parse().unwrap();
        let addresses = ["192.0.2.9".parse().unwrap(), "2001:db8::9".parse().unwrap()];
        let admits = |allow: &[&str], deny: &[&str]| filter(allow, deny).admits("eth0", Some(mac), &addresses);
        assert!(InterfaceFilter::default().admits("eth0", None, &[]));
        assert!(!admits(&[], &[]));
        assert!(admits(&["wlan*", "eth*"], &[]));
        assert!(!admits(&["*"], &["eth0"]));
        assert!(admits(&["02:00:00:00:00:01"], &["02:00:00:00:00:02"]));
        assert!(admits(&["192.0.2.0/24"], &["198.51.100.0/24"]));
        assert!(admits(&["2001:db8::/32"], &[]));
        assert!(admits(&["0.0.0.0/0"], &[]));
        assert!(!admits(&["192.0.2.8/32"], &[]));
        assert!(!admits(&["*"], &["::/0"]));
    }

    #[test]
    fn patterns_are_told_apart_and_printed_back() {
        for text in ["eth0", "*", "02:00:00:00:00:01", "10.0.0.0/8", "2001:db8::/32"] {
            assert_eq!(text.parse::<InterfacePattern>().unwrap().to_string(), text);
        }
        for text in ["", "a b", "10.0.0.0/33", "x/8", "02:00:00", "2001:db8::"] {
            assert!(text.parse::<InterfacePattern>().is_err(), "{text}");
        }
    }
}
