//! Addresses of links that client programs do not have, but generators do.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use namewire_packet::nfd::MacAddress;

use crate::{FramePort, Link};

/// Where such a link goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkUri {
    /// `memif:///run/nfd/memif.sock`.
    Memif(PathBuf),
    /// `ether://[08:00:27:01:01:01%eth0]`: a station, and our interface.
    Ethernet(MacAddress, String),
    /// `ws://router.example:9696/`.
    WebSocket(String),
}

impl LinkUri {
    /// Connects; a server of memif gets to know `name`.
    ///
    /// # Errors
    /// If nothing answers there, or there is no such interface.
    pub fn connect(&self, name: &str) -> io::Result<Link> {
        match self {
            LinkUri::Memif(path) => FramePort::connect(path, name).map(Link::frames),
            LinkUri::Ethernet(station, interface) => FramePort::open_packets(interface, *station).map(Link::frames),
            LinkUri::WebSocket(url) => Link::web_socket(url),
        }
    }
}

impl FromStr for LinkUri {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is none of memif:///PATH, ether://[STATION%INTERFACE] and ws://HOST:PORT");
        match text.split_once("://").ok_or_else(wrong)? {
            ("memif", path) if path.starts_with('/') => Ok(LinkUri::Memif(path.into())),
            ("ws", _) => Ok(LinkUri::WebSocket(text.to_owned())),
            ("ether", rest) => {
                let inside = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
                let (station, interface) = inside.split_once('%').ok_or_else(wrong)?;
                Ok(LinkUri::Ethernet(station.parse().map_err(|_| wrong())?, interface.to_owned()))
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for LinkUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkUri::Memif(path) => write!(f, "memif://{}", path.display()),
            LinkUri::Ethernet(station, interface) => write!(f, "ether://[{station}%{interface}]"),
            LinkUri::WebSocket(url) => f.write_str(url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_one_text() {
        for text in ["memif:///run/nfd/memif.sock", "ether://[02:00:00:00:00:01%eth0]", "ws://h.example:9696/ndn"] {
            assert_eq!(text.parse::<LinkUri>().expect(text).to_string(), text);
        }
        for wrong in ["", "memif://x", "ether://02:00:00:00:00:01%eth0", "ether://[02:00:00:00:00:01]", "wss://h", "x"]
        {
            assert!(wrong.parse::<LinkUri>().is_err(), "{wrong}");
        }
    }
}
