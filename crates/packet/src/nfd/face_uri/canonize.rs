//! Turns a well-formed FaceUri into the only canonical text of the same address.

use super::{
    DEFAULT_MULTICAST_PORT, DEFAULT_PORT, DEFAULT_SECURE_WEBSOCKET_PORT, DEFAULT_WEBSOCKET_PORT, FaceUri,
    NonCanonicalUri,
};
use std::{
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

impl FaceUri {
    /// The canonical form, if it follows from the text alone: default ports and address families are filled in. `None`
    /// for host names (look the name up, then use [`NonCanonicalUri::canonize_with`]) and for anything else.
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

    /// The host name, if the canonical form needs the addresses of one.
    pub fn host_to_look_up(&self) -> Option<&str> {
        let FaceUri::NonCanonical(named) = self else { return None };
        let has_addresses = ["udp", "udp4", "udp6", "tcp", "tcp4", "tcp6"].contains(&named.scheme.as_str());
        let host_without_interface = named.host.split('%').next();
        let is_address = host_without_interface.is_some_and(|host| host.parse::<IpAddr>().is_ok());
        (has_addresses && !is_address && self.canonize().is_none()).then_some(&named.host)
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
