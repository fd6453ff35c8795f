//! FaceUri: how management and people write the two ends of a face.
//!
//! Source: drop-in.md §4, management.md §7 (rules of ndn-cxx `face-uri.cpp`).
//!
//! A text is *well-formed* (`scheme://…`), then *canonical* or not. `faces/create` takes canonical ones only, because a
//! forwarder resolves no host names. The client resolves a host name, if there is one, and calls [`FaceUri::canonize`].
//! Canonical means that one address has exactly one text: address literal, explicit port, lower-case MAC address,
//! compressed IPv6, interface as `%eth0`. Any other well-formed text parses as [`FaceUri::NonCanonical`].
//!
//! Unlike NFD, `ws://` and `wss://` may be canonical with a host name, which the router itself resolves, because the
//! server's certificate has that name and proxies need it.
//!
//! Limits: a text of [`MAX_FACE_URI_BYTES`], interface names of 15 bytes (Linux).

mod canonize;
mod parse;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4},
    path::Path,
    str::FromStr,
};

/// Longest FaceUri accepted: more than a host name (253) or a Unix socket path (107) needs.
pub const MAX_FACE_URI_BYTES: usize = 512;

/// Unicast port of NDN over UDP and TCP.
pub const DEFAULT_PORT: u16 = 6363;
/// Port of NDN over UDP multicast.
pub const DEFAULT_MULTICAST_PORT: u16 = 56363;
/// Port of NDN over WebSocket.
pub const DEFAULT_WEBSOCKET_PORT: u16 = 9696;
/// Port of NDN over WebSocket with TLS: the port of HTTPS, usually behind the same proxy.
pub const DEFAULT_SECURE_WEBSOCKET_PORT: u16 = 443;

/// The schemes of faces that a command or a configuration can make. `udp` and `tcp` take an address of either family,
/// or a host name.
pub const SCHEMES_OF_NEW_FACES: [&str; 9] = ["udp", "tcp", "ws", "wss", "ether", "udp4", "udp6", "tcp4", "tcp6"];

/// The schemes of other ends of faces, which only the router itself makes.
pub const OTHER_SCHEMES: [&str; 10] =
    ["unix", "fd", "memif", "dev", "udp4+dev", "udp6+dev", "wsclient", "internal", "contentstore", "null"];

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

/// An IPv6 address and port, with the interface that a link-local address needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ipv6Endpoint {
    /// The address.
    pub address: Ipv6Addr,
    /// Interface name; link-local addresses have one, others have none.
    pub interface: Option<String>,
    /// The port.
    pub port: u16,
}

/// A WebSocket server by its URL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebSocketUrl {
    /// `wss`, over TLS.
    pub is_secure: bool,
    /// Host name in lower case, or address literal, an IPv6 one without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Empty, or from the slash on.
    pub path: String,
}

/// A well-formed FaceUri that is not the one canonical text of its meaning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NonCanonicalUri {
    /// The part before `://`.
    pub scheme: String,
    /// Host name or address literal, without brackets.
    pub host: String,
    /// Port, if given.
    pub port: Option<u16>,
    text: String,
}

/// One end of a face.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaceUri {
    /// `internal://`, the management end.
    Internal,
    /// `contentstore://`, where cache hits come from.
    ContentStore,
    /// `null://`, which drops everything.
    Null,
    /// `fd://17`, an accepted Unix stream.
    Fd(u32),
    /// `unix:///run/nfd/nfd.sock`.
    Unix(String),
    /// `memif:///run/nfd/memif.sock`, a listener for applications that share memory with the router.
    Memif(String),
    /// `udp4://192.0.2.1:6363`.
    Udp4(SocketAddrV4),
    /// `udp6://[2001:db8::1]:6363`.
    Udp6(Ipv6Endpoint),
    /// `tcp4://192.0.2.1:6363`.
    Tcp4(SocketAddrV4),
    /// `tcp6://[2001:db8::1]:6363`.
    Tcp6(Ipv6Endpoint),
    /// `ether://[08:00:27:01:01:01]`.
    Ether(MacAddress),
    /// `dev://eth0`.
    Dev(String),
    /// `udp4+dev://eth0:7700`: interface and port.
    Udp4Dev(String, u16),
    /// `udp6+dev://eth0:7700`: interface and port.
    Udp6Dev(String, u16),
    /// `ws://192.0.2.1:9696`, a WebSocket listener or server.
    WebSocket(SocketAddr),
    /// `ws://router.example:9696/ws` or `wss://…`: any other URL of a WebSocket server.
    WebSocketUrl(WebSocketUrl),
    /// `wsclient://192.0.2.1:40000`, a WebSocket peer.
    WebSocketClient(SocketAddr),
    /// Well-formed, but not canonical or of an unknown scheme.
    NonCanonical(Box<NonCanonicalUri>),
}

/// Why a text is not a FaceUri.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaceUriError {
    /// Longer than [`MAX_FACE_URI_BYTES`].
    #[error("longer than {MAX_FACE_URI_BYTES} bytes")]
    TooLong,
    /// No `scheme://`, or a scheme with characters that schemes do not have.
    #[error("does not start with scheme://")]
    NoScheme,
    /// The part after `://` is not host, port and path.
    #[error("the part after :// is not a host with an optional port")]
    BadAuthority,
    /// The port is not a number from 0 to 65535.
    #[error("the port is not a number from 0 to 65535")]
    BadPort,
}

/// IPv4 instead of an IPv4-mapped IPv6 address.
fn without_mapping(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

impl FaceUri {
    /// Canonical FaceUri of a UDP socket address; IPv4-mapped addresses become IPv4.
    /// A scope id has no name here: use [`FaceUri::udp_on`] for link-local addresses.
    pub fn udp(address: SocketAddr) -> Self {
        FaceUri::udp_on(without_mapping(address), None)
    }

    /// Canonical FaceUri of a UDP socket address on this interface, which only an IPv6 address names. An IPv4-mapped
    /// address stays an IPv6 one, so that a face keeps the FaceUri that a command gave it.
    pub fn udp_on(address: SocketAddr, interface: Option<String>) -> Self {
        match address {
            SocketAddr::V4(v4) => FaceUri::Udp4(v4),
            SocketAddr::V6(v6) => FaceUri::Udp6(Ipv6Endpoint { address: *v6.ip(), interface, port: v6.port() }),
        }
    }

    /// Canonical FaceUri of a TCP socket address; as [`FaceUri::udp`].
    pub fn tcp(address: SocketAddr) -> Self {
        FaceUri::tcp_on(without_mapping(address), None)
    }

    /// Canonical FaceUri of a TCP socket address on this interface; as [`FaceUri::udp_on`].
    pub fn tcp_on(address: SocketAddr, interface: Option<String>) -> Self {
        match FaceUri::udp_on(address, interface) {
            FaceUri::Udp4(v4) => FaceUri::Tcp4(v4),
            FaceUri::Udp6(v6) => FaceUri::Tcp6(v6),
            other => other,
        }
    }

    /// FaceUri of a Unix socket.
    pub fn unix(path: &Path) -> Self {
        FaceUri::Unix(path.display().to_string())
    }

    /// FaceUri of a listener for shared memory.
    pub fn memif(path: &Path) -> Self {
        FaceUri::Memif(path.display().to_string())
    }

    /// The part before `://`.
    pub fn scheme(&self) -> &str {
        match self {
            FaceUri::Internal => "internal",
            FaceUri::ContentStore => "contentstore",
            FaceUri::Null => "null",
            FaceUri::Fd(_) => "fd",
            FaceUri::Unix(_) => "unix",
            FaceUri::Memif(_) => "memif",
            FaceUri::Udp4(_) => "udp4",
            FaceUri::Udp6(_) => "udp6",
            FaceUri::Tcp4(_) => "tcp4",
            FaceUri::Tcp6(_) => "tcp6",
            FaceUri::Ether(_) => "ether",
            FaceUri::Dev(_) => "dev",
            FaceUri::Udp4Dev(..) => "udp4+dev",
            FaceUri::Udp6Dev(..) => "udp6+dev",
            FaceUri::WebSocket(_) => "ws",
            FaceUri::WebSocketUrl(url) => url.scheme(),
            FaceUri::WebSocketClient(_) => "wsclient",
            FaceUri::NonCanonical(uri) => &uri.scheme,
        }
    }

    /// True if a command may name a face by this FaceUri (management.md §7). Listings also show forms that cannot be
    /// canonical, such as `fd://`, `unix://` and `memif://`.
    pub const fn is_canonical(&self) -> bool {
        matches!(
            self,
            FaceUri::Udp4(_)
                | FaceUri::Udp6(_)
                | FaceUri::Tcp4(_)
                | FaceUri::Tcp6(_)
                | FaceUri::Ether(_)
                | FaceUri::Dev(_)
                | FaceUri::Udp4Dev(..)
                | FaceUri::Udp6Dev(..)
                | FaceUri::WebSocket(_)
                | FaceUri::WebSocketUrl(_)
        )
    }

    /// True for a face without a connection: every packet or fragment is a datagram or a frame.
    pub const fn is_datagrams(&self) -> bool {
        matches!(self, FaceUri::Udp4(_) | FaceUri::Udp6(_) | FaceUri::Ether(_))
    }

    /// True if the address is a multicast group.
    pub fn is_multicast(&self) -> bool {
        match self {
            FaceUri::Udp4(v4) | FaceUri::Tcp4(v4) => v4.ip().is_multicast(),
            FaceUri::Udp6(v6) | FaceUri::Tcp6(v6) => v6.address.is_multicast(),
            FaceUri::Ether(address) => address.is_multicast(),
            _ => false,
        }
    }

    /// IP address, if the FaceUri has one.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            FaceUri::Udp4(v4) | FaceUri::Tcp4(v4) => Some(IpAddr::V4(*v4.ip())),
            FaceUri::Udp6(v6) | FaceUri::Tcp6(v6) => Some(IpAddr::V6(v6.address)),
            FaceUri::WebSocket(address) | FaceUri::WebSocketClient(address) => Some(address.ip()),
            _ => None,
        }
    }

    /// IP address that it leads to, if it has one; also the one in the URL of a WebSocket server.
    pub fn literal_ip(&self) -> Option<IpAddr> {
        match self {
            FaceUri::WebSocketUrl(url) => url.host.parse().ok(),
            other => other.ip(),
        }
    }

    /// Port, if it has one.
    pub fn port(&self) -> Option<u16> {
        match self {
            FaceUri::Udp4(v4) | FaceUri::Tcp4(v4) => Some(v4.port()),
            FaceUri::Udp6(v6) | FaceUri::Tcp6(v6) => Some(v6.port),
            FaceUri::WebSocket(address) | FaceUri::WebSocketClient(address) => Some(address.port()),
            FaceUri::WebSocketUrl(url) => Some(url.port),
            _ => None,
        }
    }
}

impl WebSocketUrl {
    /// `ws` or `wss`.
    pub const fn scheme(&self) -> &'static str {
        if self.is_secure { "wss" } else { "ws" }
    }
}

/// One server has one FaceUri: [`FaceUri::WebSocket`] if an address identifies it.
impl From<WebSocketUrl> for FaceUri {
    fn from(url: WebSocketUrl) -> Self {
        match url.host.parse::<IpAddr>() {
            Ok(ip) if !url.is_secure && url.path.is_empty() => FaceUri::WebSocket(SocketAddr::new(ip, url.port)),
            _ => FaceUri::WebSocketUrl(url),
        }
    }
}

/// Without the scheme.
impl fmt::Display for WebSocketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WebSocketUrl { host, port, path, .. } = self;
        match host.parse::<Ipv6Addr>() {
            Ok(ip) => write!(f, "[{ip}]:{port}{path}"),
            Err(_) => write!(f, "{host}:{port}{path}"),
        }
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Six pairs of hexadecimal digits between colons, in either case.
impl FromStr for MacAddress {
    type Err = FaceUriError;

    fn from_str(text: &str) -> Result<Self, FaceUriError> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let is_pair = |part: &&str| part.len() == 2 && part.bytes().all(|c| c.is_ascii_hexdigit());
            let part = parts.next().filter(is_pair).ok_or(FaceUriError::BadAuthority)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| FaceUriError::BadAuthority)?;
        }
        if parts.next().is_some() { Err(FaceUriError::BadAuthority) } else { Ok(MacAddress(bytes)) }
    }
}

impl MacAddress {
    /// True for the address of a group of stations.
    pub const fn is_multicast(&self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for Ipv6Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            Some(interface) => write!(f, "[{}%{interface}]:{}", self.address, self.port),
            None => write!(f, "[{}]:{}", self.address, self.port),
        }
    }
}

impl fmt::Display for FaceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let FaceUri::NonCanonical(uri) = self {
            return f.write_str(&uri.text);
        }
        write!(f, "{}://", self.scheme())?;
        match self {
            FaceUri::Internal | FaceUri::ContentStore | FaceUri::Null | FaceUri::NonCanonical(_) => Ok(()),
            FaceUri::Fd(number) => write!(f, "{number}"),
            FaceUri::Unix(path) | FaceUri::Memif(path) => f.write_str(path),
            FaceUri::Udp4(v4) | FaceUri::Tcp4(v4) => write!(f, "{v4}"),
            FaceUri::Udp6(v6) | FaceUri::Tcp6(v6) => write!(f, "{v6}"),
            FaceUri::Ether(mac) => write!(f, "[{mac}]"),
            FaceUri::Dev(interface) => f.write_str(interface),
            FaceUri::Udp4Dev(interface, port) | FaceUri::Udp6Dev(interface, port) => write!(f, "{interface}:{port}"),
            FaceUri::WebSocket(address) | FaceUri::WebSocketClient(address) => write!(f, "{address}"),
            FaceUri::WebSocketUrl(url) => write!(f, "{url}"),
        }
    }
}
