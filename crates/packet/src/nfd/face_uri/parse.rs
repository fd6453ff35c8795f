//! From a text to a FaceUri.

use super::{FaceUri, FaceUriError, Ipv6Endpoint, MAX_FACE_URI_BYTES, MacAddress, NonCanonicalUri, WebSocketUrl};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    str::FromStr,
};

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
            FaceUri::NonCanonical(Box::new(NonCanonicalUri {
                scheme: scheme.to_owned(),
                host: authority.host.to_owned(),
                port: authority.port,
                text: text.to_owned(),
            }))
        }))
    }
}

fn is_scheme(scheme: &str) -> bool {
    let is_allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'+';
    scheme.starts_with(|c: char| c.is_ascii_lowercase()) && scheme.bytes().all(is_allowed)
}

/// True for an interface name that Linux allows, except names with characters that the FaceUri grammar uses.
fn is_interface_name(name: &str) -> bool {
    (1..=15).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_graphic() && !b"/:%[]?#".contains(&c))
}

/// The schemes that are not followed by `host[:port]`.
fn parse_without_port(scheme: &str, rest: &str) -> Option<FaceUri> {
    match scheme {
        "internal" if rest.is_empty() => Some(FaceUri::Internal),
        "contentstore" if rest.is_empty() => Some(FaceUri::ContentStore),
        "null" if rest.is_empty() => Some(FaceUri::Null),
        "fd" => parse_number(rest).map(FaceUri::Fd),
        "unix" if rest.starts_with('/') && !rest.contains('\0') => Some(FaceUri::Unix(rest.to_owned())),
        "memif" if rest.starts_with('/') && !rest.contains('\0') => Some(FaceUri::Memif(rest.to_owned())),
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
        let is_host_byte = |c: u8| c.is_ascii_graphic() && !b"[]?#@\\\"<>".contains(&c);
        if host.is_empty() || !host.bytes().all(is_host_byte) {
            return Err(FaceUriError::BadAuthority);
        }
        let port = match port {
            Some(port) => Some(parse_number(port).ok_or(FaceUriError::BadPort)?),
            None => None,
        };
        Ok(Authority { host, port, has_brackets })
    }
}

/// The canonical FaceUri that `scheme://rest` is, if its text is canonical.
fn parse_endpoint(scheme: &str, authority: &Authority<'_>, rest: &str) -> Option<FaceUri> {
    let uri = match scheme {
        "udp4" => FaceUri::Udp4(ipv4_endpoint(authority)?),
        "tcp4" => FaceUri::Tcp4(ipv4_endpoint(authority)?),
        "udp6" => FaceUri::Udp6(ipv6_endpoint(authority)?),
        "tcp6" => FaceUri::Tcp6(ipv6_endpoint(authority)?),
        "ether" => FaceUri::Ether(mac_address(authority)?),
        "udp4+dev" if is_interface_name(authority.host) => FaceUri::Udp4Dev(authority.host.to_owned(), authority.port?),
        "udp6+dev" if is_interface_name(authority.host) => FaceUri::Udp6Dev(authority.host.to_owned(), authority.port?),
        "ws" | "wss" => WebSocketUrl::parse(scheme, authority, rest)?.into(),
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
    // A link-local unicast address needs its interface, a global one must have none; a link-local group may have one.
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

impl WebSocketUrl {
    fn parse(scheme: &str, authority: &Authority<'_>, rest: &str) -> Option<Self> {
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        let is_path_byte = |c: u8| c.is_ascii_graphic() && !b"#\\\"<>`{}|^".contains(&c);
        let is_host_byte = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b".-".contains(&c);
        let is_host = match authority.has_brackets {
            true => authority.host.parse::<Ipv6Addr>().is_ok(),
            false => authority.host.len() <= 253 && authority.host.bytes().all(is_host_byte),
        };
        (is_host && path.bytes().all(is_path_byte)).then_some(WebSocketUrl {
            is_secure: scheme == "wss",
            host: authority.host.to_owned(),
            port: authority.port?,
            path: path.to_owned(),
        })
    }
}
