//! FaceUri: how management and people write the two ends of a face.
//!
//! Source: drop-in.md §4, management.md §7 (rules of ndn-cxx `face-uri.cpp`).
//!
//! A text is *well-formed* (`scheme://…`), then *canonical* or not. `faces/create`
//! takes canonical ones only, because a forwarder resolves no host names: the
//! client calls [`FaceUri::canonize`], after looking a host name up if it must.
//! Canonical means that one address has exactly one text: address literal,
//! explicit port, lower-case MAC address, compressed IPv6, interface as `%eth0`.
//! Whatever is well-formed and not canonical parses as [`FaceUri::NonCanonical`].
//!
//! Ours, not NFD's: `ws://` and `wss://` may be canonical, with a host name, which the router
//! itself resolves: the server's certificate is for that name, and proxies ask for it.
//!
//! Limits: a text of [`MAX_FACE_URI_BYTES`], interface names of 15 octets (Linux).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    str::FromStr,
};

/// Longest FaceUri accepted: a host name (253) or a Unix socket path (107) with
/// room to spare.
pub const MAX_FACE_URI_BYTES: usize = 512;

/// Unicast port of NDN over UDP and TCP.
pub const DEFAULT_PORT: u16 = 6363;
/// Port of NDN over UDP multicast.
pub const DEFAULT_MULTICAST_PORT: u16 = 56363;
/// Port of NDN over WebSocket.
pub const DEFAULT_WEBSOCKET_PORT: u16 = 9696;
/// Port of NDN over WebSocket with TLS: there it shares that of HTTPS, as a rule behind a proxy.
pub const DEFAULT_SECURE_WEBSOCKET_PORT: u16 = 443;

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
    /// What stands before `://`.
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
    NonCanonical(NonCanonicalUri),
}

/// Why a text is no FaceUri at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaceUriError {
    /// Longer than [`MAX_FACE_URI_BYTES`].
    #[error("longer than {MAX_FACE_URI_BYTES} octets")]
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

impl FaceUri {
    /// Canonical FaceUri of a UDP socket address; IPv4-mapped addresses become IPv4.
    /// A scope id has no name here: use [`FaceUri::Udp6`] for link-local addresses.
    pub fn udp(address: SocketAddr) -> Self {
        match address.ip().to_canonical() {
            IpAddr::V4(ip) => FaceUri::Udp4(SocketAddrV4::new(ip, address.port())),
            IpAddr::V6(ip) => FaceUri::Udp6(Ipv6Endpoint { address: ip, interface: None, port: address.port() }),
        }
    }

    /// Canonical FaceUri of a TCP socket address; as [`FaceUri::udp`].
    pub fn tcp(address: SocketAddr) -> Self {
        match FaceUri::udp(address) {
            FaceUri::Udp4(v4) => FaceUri::Tcp4(v4),
            FaceUri::Udp6(v6) => FaceUri::Tcp6(v6),
            other => other,
        }
    }

    /// What stands before `://`.
    pub fn scheme(&self) -> &str {
        match self {
            FaceUri::Internal => "internal",
            FaceUri::ContentStore => "contentstore",
            FaceUri::Null => "null",
            FaceUri::Fd(_) => "fd",
            FaceUri::Unix(_) => "unix",
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

    /// True if a command may name a face by this (management.md §7). Listings also
    /// show forms for which "canonical" has no meaning, such as `fd://` and `unix://`.
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

    /// IP address that it leads to, if it has one; also that in the URL of a WebSocket server.
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

    /// The canonical form, if it follows from the text alone: default ports and
    /// address families are filled in. `None` for host names (look the name up,
    /// then use [`NonCanonicalUri::canonize_with`]) and for anything else.
    pub fn canonize(&self) -> Option<FaceUri> {
        match self {
            FaceUri::NonCanonical(uri) if uri.scheme == "ether" => {
                FaceUri::from_str(&format!("ether://[{}]", uri.host.to_ascii_lowercase().replace('-', ":")))
                    .ok()
                    .filter(FaceUri::is_canonical)
            }
            FaceUri::NonCanonical(uri) if matches!(uri.scheme.as_str(), "ws" | "wss") => uri.canonize_web_socket(),
            FaceUri::NonCanonical(uri) => uri.canonize_literal(),
            canonical => canonical.is_canonical().then(|| canonical.clone()),
        }
    }
}

impl NonCanonicalUri {
    /// The canonical FaceUri for this `udp` or `tcp` text, given an address of its
    /// host. `None` if scheme and address family do not fit, if the address needs an
    /// interface, or for TCP multicast.
    pub fn canonize_with(&self, address: IpAddr) -> Option<FaceUri> {
        self.canonize_endpoint(address, None)
    }

    /// With the default port, in lower case.
    fn canonize_web_socket(&self) -> Option<FaceUri> {
        let default = if self.scheme == "wss" { DEFAULT_SECURE_WEBSOCKET_PORT } else { DEFAULT_WEBSOCKET_PORT };
        let port = self.port.unwrap_or(default);
        let (_, rest) = self.text.split_once("://")?;
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        let host = match self.host.parse::<Ipv6Addr>() {
            Ok(ip) => format!("[{ip}]"),
            Err(_) => self.host.to_ascii_lowercase(),
        };
        FaceUri::from_str(&format!("{}://{host}:{port}{path}", self.scheme)).ok().filter(FaceUri::is_canonical)
    }

    fn canonize_literal(&self) -> Option<FaceUri> {
        let (host, interface) = match self.host.split_once('%') {
            Some((host, interface)) => (host, Some(interface.strip_prefix("25").unwrap_or(interface))),
            None => (self.host.as_str(), None),
        };
        self.canonize_endpoint(host.parse().ok()?, interface)
    }

    fn canonize_endpoint(&self, address: IpAddr, interface: Option<&str>) -> Option<FaceUri> {
        let scheme = match (self.scheme.as_str(), address) {
            ("udp" | "udp4", IpAddr::V4(_)) => "udp4",
            ("udp" | "udp6", IpAddr::V6(_)) => "udp6",
            ("tcp" | "tcp4", IpAddr::V4(_)) => "tcp4",
            ("tcp" | "tcp6", IpAddr::V6(_)) => "tcp6",
            _ => return None,
        };
        let default = if address.is_multicast() { DEFAULT_MULTICAST_PORT } else { DEFAULT_PORT };
        let port = self.port.unwrap_or(default);
        let text = match (address, interface) {
            (IpAddr::V4(v4), None) => format!("{scheme}://{v4}:{port}"),
            (IpAddr::V4(_), Some(_)) => return None,
            (IpAddr::V6(v6), None) => format!("{scheme}://[{v6}]:{port}"),
            (IpAddr::V6(v6), Some(interface)) => format!("{scheme}://[{v6}%{interface}]:{port}"),
        };
        FaceUri::from_str(&text).ok().filter(FaceUri::is_canonical)
    }
}

impl WebSocketUrl {
    /// `ws` or `wss`.
    pub const fn scheme(&self) -> &'static str {
        if self.is_secure { "wss" } else { "ws" }
    }

    fn parse(scheme: &str, authority: &Authority<'_>, rest: &str) -> Option<Self> {
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        let is_path_octet = |c: u8| c.is_ascii_graphic() && !b"#\\\"<>`{}|^".contains(&c);
        let is_host_octet = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b".-".contains(&c);
        let is_host = match authority.has_brackets {
            true => authority.host.parse::<Ipv6Addr>().is_ok(),
            false => authority.host.len() <= 253 && authority.host.bytes().all(is_host_octet),
        };
        (is_host && path.bytes().all(is_path_octet)).then_some(WebSocketUrl {
            is_secure: scheme == "wss",
            host: authority.host.to_owned(),
            port: authority.port?,
            path: path.to_owned(),
        })
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
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let is_pair = |part: &&str| part.len() == 2 && part.bytes().all(|c| c.is_ascii_hexdigit());
            let part = parts.next().filter(is_pair).ok_or(FaceUriError::BadAuthority)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| FaceUriError::BadAuthority)?;
        }
        if parts.next().is_some() { Err(FaceUriError::BadAuthority) } else { Ok(MacAddress(octets)) }
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
            FaceUri::Unix(path) => f.write_str(path),
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

impl FromStr for FaceUri {
    type Err = FaceUriError;

    fn from_str(text: &str) -> Result<Self, FaceUriError> {
        if text.len() > MAX_FACE_URI_BYTES {
            return Err(FaceUriError::TooLong);
        }
        let (scheme, rest) = text.split_once("://").ok_or(FaceUriError::NoScheme)?;
        if !is_scheme(scheme) {
            return Err(FaceUriError::NoScheme);
        }
        if let Some(uri) = parse_without_port(scheme, rest) {
            return Ok(uri);
        }
        let authority = Authority::parse(rest)?;
        Ok(parse_endpoint(scheme, &authority, rest).unwrap_or_else(|| {
            FaceUri::NonCanonical(NonCanonicalUri {
                scheme: scheme.to_owned(),
                host: authority.host.to_owned(),
                port: authority.port,
                text: text.to_owned(),
            })
        }))
    }
}

fn is_scheme(scheme: &str) -> bool {
    let is_allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'+';
    scheme.starts_with(|c: char| c.is_ascii_lowercase()) && scheme.bytes().all(is_allowed)
}

/// True for a name that Linux would let an interface have, minus what the FaceUri
/// grammar uses itself.
fn is_interface_name(name: &str) -> bool {
    (1..=15).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_graphic() && !b"/:%[]?#".contains(&c))
}

/// The schemes whose rest is not `host[:port]`.
fn parse_without_port(scheme: &str, rest: &str) -> Option<FaceUri> {
    match scheme {
        "internal" if rest.is_empty() => Some(FaceUri::Internal),
        "contentstore" if rest.is_empty() => Some(FaceUri::ContentStore),
        "null" if rest.is_empty() => Some(FaceUri::Null),
        "fd" => parse_number(rest).map(FaceUri::Fd),
        "unix" if rest.starts_with('/') && !rest.contains('\0') => Some(FaceUri::Unix(rest.to_owned())),
        "dev" if is_interface_name(rest) => Some(FaceUri::Dev(rest.to_owned())),
        _ => None,
    }
}

/// Decimal without sign or leading zeros, so that a number has one text.
fn parse_number<T: FromStr>(text: &str) -> Option<T> {
    let is_plain = text.bytes().all(|c| c.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

/// `host`, `host:port`, `[host]`, `[host]:port`, each with an optional path.
struct Authority<'a> {
    host: &'a str,
    port: Option<u16>,
    has_brackets: bool,
}

impl<'a> Authority<'a> {
    fn parse(rest: &'a str) -> Result<Self, FaceUriError> {
        let authority = rest.split('/').next().unwrap_or_default();
        let (host, port, has_brackets) = match authority.strip_prefix('[') {
            Some(inside) => {
                let (host, after) = inside.split_once(']').ok_or(FaceUriError::BadAuthority)?;
                let port = match after.strip_prefix(':') {
                    Some(port) => Some(port),
                    None if after.is_empty() => None,
                    None => return Err(FaceUriError::BadAuthority),
                };
                (host, port, true)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port), false),
                None => (authority, None, false),
            },
        };
        let is_host_octet = |c: u8| c.is_ascii_graphic() && !b"[]?#@\\\"<>".contains(&c);
        if host.is_empty() || !host.bytes().all(is_host_octet) {
            return Err(FaceUriError::BadAuthority);
        }
        let port = match port {
            Some(port) => Some(parse_number(port).ok_or(FaceUriError::BadPort)?),
            None => None,
        };
        Ok(Authority { host, port, has_brackets })
    }
}

/// The canonical FaceUri that `scheme://rest` is, if its text is the canonical one.
fn parse_endpoint(scheme: &str, authority: &Authority<'_>, rest: &str) -> Option<FaceUri> {
    let uri = match scheme {
        "udp4" => FaceUri::Udp4(ipv4_endpoint(authority)?),
        "tcp4" => FaceUri::Tcp4(ipv4_endpoint(authority)?),
        "udp6" => FaceUri::Udp6(ipv6_endpoint(authority)?),
        "tcp6" => FaceUri::Tcp6(ipv6_endpoint(authority)?),
        "ether" => FaceUri::Ether(mac_address(authority)?),
        "udp4+dev" if is_interface_name(authority.host) => FaceUri::Udp4Dev(authority.host.to_owned(), authority.port?),
        "udp6+dev" if is_interface_name(authority.host) => FaceUri::Udp6Dev(authority.host.to_owned(), authority.port?),
        "ws" if !rest.contains('/') && socket_address(authority).is_some() => {
            FaceUri::WebSocket(socket_address(authority)?)
        }
        "ws" | "wss" => FaceUri::WebSocketUrl(WebSocketUrl::parse(scheme, authority, rest)?),
        "wsclient" => FaceUri::WebSocketClient(socket_address(authority)?),
        _ => return None,
    };
    let is_tcp_multicast = scheme.starts_with("tcp") && uri.is_multicast();
    // One meaning has one text: compressed IPv6, lower case, no path.
    let is_the_text = uri.to_string().strip_prefix(scheme).and_then(|t| t.strip_prefix("://")) == Some(rest);
    (is_the_text && !is_tcp_multicast).then_some(uri)
}

fn ipv4_endpoint(authority: &Authority<'_>) -> Option<SocketAddrV4> {
    let address: Ipv4Addr = authority.host.parse().ok()?;
    Some(SocketAddrV4::new(address, authority.port?))
}

fn ipv6_endpoint(authority: &Authority<'_>) -> Option<Ipv6Endpoint> {
    if !authority.has_brackets {
        return None;
    }
    let (host, interface) = match authority.host.split_once('%') {
        // `%25eth0` means `%eth0` but is not its canonical text.
        Some((_, interface)) if interface.starts_with("25") || !is_interface_name(interface) => return None,
        Some((host, interface)) => (host, Some(interface.to_owned())),
        None => (authority.host, None),
    };
    let address: Ipv6Addr = host.parse().ok()?;
    let is_multicast_on_link = address.is_multicast() && address.segments()[0] & 0xf == 2;
    // A link-local unicast address means nothing without its interface, a global
    // one needs none; a link-local group may have one.
    let interface_fits = match &interface {
        Some(_) => address.is_unicast_link_local() || is_multicast_on_link,
        None => !address.is_unicast_link_local(),
    };
    interface_fits.then_some(Ipv6Endpoint { address, interface, port: authority.port? })
}

fn socket_address(authority: &Authority<'_>) -> Option<SocketAddr> {
    if authority.has_brackets {
        let endpoint = ipv6_endpoint(authority)?;
        return Some(SocketAddr::V6(SocketAddrV6::new(endpoint.address, endpoint.port, 0, 0)));
    }
    ipv4_endpoint(authority).map(SocketAddr::V4)
}

fn mac_address(authority: &Authority<'_>) -> Option<MacAddress> {
    if !authority.has_brackets || authority.port.is_some() {
        return None;
    }
    authority.host.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> FaceUri {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn canonical_texts_are_kept_as_they_are() {
        for text in [
            "udp4://192.0.2.1:6363",
            "udp6://[2001:db8::1]:6363",
            "udp6://[fe80::1%eth0]:6363",
            "udp6://[ff02::1234%eth0]:56363",
            "udp4://224.0.23.170:56363",
            "tcp4://127.0.0.1:6363",
            "tcp6://[::1]:6363",
            "ether://[08:00:27:01:01:01]",
            "dev://eth0",
            "udp4+dev://eth0:7700",
            "udp6+dev://wlp3s0:56363",
            "ws://0.0.0.0:9696",
            "ws://[::]:9696",
            "ws://router.example.net:9696",
            "ws://192.0.2.1:9696/ws/",
            "wss://192.0.2.1:443",
            "wss://[2001:db8::1]:443/ndn",
            "wss://router.example.net:443/ws?token=1",
        ] {
            let uri = parsed(text);
            assert!(uri.is_canonical(), "{text}");
            assert_eq!(uri.to_string(), text);
            assert_eq!(uri.canonize(), Some(uri.clone()));
        }
    }

    #[test]
    fn listing_texts_parse_but_are_not_canonical() {
        for text in [
            "unix:///run/nfd/nfd.sock",
            "fd://17",
            "internal://",
            "contentstore://",
            "null://",
            "wsclient://127.0.0.1:40000",
        ] {
            let uri = parsed(text);
            assert!(!matches!(uri, FaceUri::NonCanonical(_)), "{text}");
            assert!(!uri.is_canonical(), "{text}");
            assert_eq!(uri.to_string(), text);
            assert_eq!(uri.canonize(), None);
        }
    }

    #[test]
    fn what_the_client_must_still_canonize() {
        for (text, canonical) in [
            ("udp://192.0.2.1", Some("udp4://192.0.2.1:6363")),
            ("udp4://192.0.2.1", Some("udp4://192.0.2.1:6363")),
            ("udp4://224.0.23.170", Some("udp4://224.0.23.170:56363")),
            ("udp://[2001:DB8:0::1]", Some("udp6://[2001:db8::1]:6363")),
            ("udp6://[2001:DB8:0::1]:7777", Some("udp6://[2001:db8::1]:7777")),
            ("udp6://[fe80::1%25eth0]:6363", Some("udp6://[fe80::1%eth0]:6363")),
            ("tcp://127.0.0.1:6363", Some("tcp4://127.0.0.1:6363")),
            ("ether://[08:00:27:0A:01:01]", Some("ether://[08:00:27:0a:01:01]")),
            ("ether://08-00-27-0a-01-01", Some("ether://[08:00:27:0a:01:01]")),
            ("udp4://router.example.net:6363", None),
            ("udp4://192.0.2.1:6363/path", Some("udp4://192.0.2.1:6363")),
            ("udp4://192.0.2.01:6363", None),
            ("udp6://192.0.2.1:6363", None),
            ("udp6://[fe80::1]:6363", None),
            ("udp6://[2001:db8::1%eth0]:6363", None),
            ("tcp4://224.0.23.170:6363", None),
            ("quic://192.0.2.1:6363", None),
            ("dev://an-interface-name-too-long", None),
            ("fd://x", None),
            ("ws://Router.Example.net", Some("ws://router.example.net:9696")),
            ("ws://192.0.2.1/ws", Some("ws://192.0.2.1:9696/ws")),
            ("wss://[2001:DB8::1]/", Some("wss://[2001:db8::1]:443/")),
            ("wss://router_example", None),
            ("ws://[2001:db8::1%eth0]:9696", None),
            ("ether://[08:00:27:+a:01:01]", None),
            ("udp4+dev://eth0", None),
        ] {
            let uri = parsed(text);
            assert!(matches!(uri, FaceUri::NonCanonical(_)), "{text} parsed as {uri:?}");
            assert!(!uri.is_canonical(), "{text}");
            assert_eq!(uri.to_string(), text);
            assert_eq!(uri.canonize().map(|uri| uri.to_string()).as_deref(), canonical, "{text}");
        }
    }

    #[test]
    fn host_names_are_canonized_with_a_looked_up_address() {
        let FaceUri::NonCanonical(uri) = parsed("udp://router.example.net") else { panic!("host name") };
        assert_eq!(uri.host, "router.example.net");
        let v4 = uri.canonize_with("192.0.2.9".parse().unwrap()).unwrap();
        assert_eq!(v4.to_string(), "udp4://192.0.2.9:6363");
        let FaceUri::NonCanonical(uri) = parsed("tcp6://router.example.net:99") else { panic!("host name") };
        assert_eq!(uri.canonize_with("192.0.2.9".parse().unwrap()), None);
    }

    #[test]
    fn texts_that_are_no_face_uri() {
        for (text, error) in [
            ("", FaceUriError::NoScheme),
            ("udp4", FaceUriError::NoScheme),
            ("udp4:/192.0.2.1", FaceUriError::NoScheme),
            ("://192.0.2.1", FaceUriError::NoScheme),
            ("UDP4://192.0.2.1:6363", FaceUriError::NoScheme),
            ("udp4://", FaceUriError::BadAuthority),
            ("udp4://:6363", FaceUriError::BadAuthority),
            ("udp4://a b:6363", FaceUriError::BadAuthority),
            ("udp6://[2001:db8::1:6363", FaceUriError::BadAuthority),
            ("udp6://[2001:db8::1]6363", FaceUriError::BadAuthority),
            ("udp4://192.0.2.1:", FaceUriError::BadPort),
            ("udp4://192.0.2.1:65536", FaceUriError::BadPort),
            ("udp4://192.0.2.1:+1", FaceUriError::BadPort),
            ("udp4://192.0.2.1:06363", FaceUriError::BadPort),
            ("unix://", FaceUriError::BadAuthority),
        ] {
            assert_eq!(text.parse::<FaceUri>(), Err(error), "{text}");
        }
        let long = format!("udp4://{}:6363", "a".repeat(MAX_FACE_URI_BYTES));
        assert_eq!(long.parse::<FaceUri>(), Err(FaceUriError::TooLong));
    }

    #[test]
    fn socket_addresses_become_canonical() {
        let mapped: SocketAddr = "[::ffff:192.0.2.1]:6363".parse().unwrap();
        assert_eq!(FaceUri::udp(mapped).to_string(), "udp4://192.0.2.1:6363");
        assert_eq!(FaceUri::tcp("[::1]:80".parse().unwrap()).to_string(), "tcp6://[::1]:80");
    }

    proptest! {
        #[test]
        fn any_text_parses_without_panic_and_is_printed_back(
            text in "(udp4|udp6|tcp|ether|fd|dev|unix|ws|wss|x)?(://)?[\\[\\]:%/.0-9a-f]{0,30}\\PC{0,6}"
        ) {
            if let Ok(uri) = text.parse::<FaceUri>() {
                prop_assert_eq!(uri.to_string(), text);
                if let Some(canonical) = uri.canonize() {
                    prop_assert!(canonical.is_canonical());
                    prop_assert_eq!(canonical.to_string().parse::<FaceUri>(), Ok(canonical));
                }
            }
        }
    }
}
