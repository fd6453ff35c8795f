//! ObserverAddress: where a router shows itself by HTTP, as people write it: `http://router2:9695`.
//!
//! The list `observe.peers` of a router's configuration and the file of named routers have such addresses. They may
//! have a name before them: `lab=http://router2:9695` ([`ObservedPeer`]).
//!
//! An address is a host and a port and nothing else: no path, no user, no query. So a reader can only ask the fixed
//! paths of an observer there. There is no TLS.
//!
//! Limits: a host of [`HOST_BYTES_MAX`], a name of [`NAME_BYTES_MAX`].

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The longest host: as long as a host name may be in DNS.
pub const HOST_BYTES_MAX: usize = 253;
/// The longest name of a router.
pub const NAME_BYTES_MAX: usize = 63;

/// Where an observer listens. The host is not resolved yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObserverAddress {
    host: String,
    port: u16,
}

/// A router whose observer is asked, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObservedPeer {
    name: Option<String>,
    address: ObserverAddress,
}

impl ObserverAddress {
    /// A host name or an address literal, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port, as the header `Host` of a request has them.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for ObserverAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| Err(format!("\"{text}\" {why}; write for example http://router2:9695"));
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => return refuse("asks for TLS, which is not offered here"),
            _ => return refuse("does not begin with http://"),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#', '@']) {
            return refuse("is more than http://HOST:PORT");
        }
        let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
            Some((host, port)) => match host.parse::<std::net::Ipv6Addr>() {
                Ok(_) => (host, port),
                Err(_) => return refuse("has brackets without an IPv6 address"),
            },
            None => match rest.split_once(':') {
                Some((host, port)) => (host, port),
                None => return refuse("has no port"),
            },
        };
        let is_of_host = |letter: char| letter.is_ascii_alphanumeric() || "-._:".contains(letter);
        if host.is_empty() || host.len() > HOST_BYTES_MAX || !host.chars().all(is_of_host) {
            return refuse("has no host name or address");
        }
        // A parser of numbers would take a sign, too.
        let digits = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
        match digits.and_then(|digits| digits.parse::<u16>().ok()) {
            Some(port) if port != 0 => Ok(ObserverAddress { host: host.to_ascii_lowercase(), port }),
            _ => refuse("has no port from 1 to 65535 at its end"),
        }
    }
}

impl fmt::Display for ObserverAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

/// Checks the name of a router.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_router_name(name: &str) -> Result<(), String> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    match name {
        "" => Err("the name of a router is empty".to_owned()),
        name if name.len() > NAME_BYTES_MAX => Err(format!("a name of a router has at most {NAME_BYTES_MAX} bytes")),
        name if name.starts_with(['-', '.']) || !name.chars().all(is_of_name) => Err(format!(
            "\"{}\" is no name of a router: it has letters, digits, '-', '_' and '.', and begins with none but the \
             first three",
            name.escape_debug()
        )),
        _ => Ok(()),
    }
}

impl ObservedPeer {
    /// The router at this address under this name.
    pub fn new(name: Option<String>, address: ObserverAddress) -> Self {
        ObservedPeer { name, address }
    }

    /// What people call it: its name, or else its host and port.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.address.authority())
    }

    /// Where it shows itself.
    pub fn address(&self) -> &ObserverAddress {
        &self.address
    }
}

impl FromStr for ObservedPeer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None => Ok(ObservedPeer { name: None, address: text.parse()? }),
            Some((name, address)) => {
                check_router_name(name)?;
                Ok(ObservedPeer { name: Some(name.to_owned()), address: address.parse()? })
            }
        }
    }
}

impl fmt::Display for ObservedPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            None => self.address.fmt(f),
            Some(name) => write!(f, "{name}={}", self.address),
        }
    }
}

/// Both types are text in files.
macro_rules! is_text {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }
    };
}

is_text!(ObserverAddress);
is_text!(ObservedPeer);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, printed, host) in [
            ("http://router2:9695", "http://router2:9695", "router2"),
            ("http://Router-2.example:80/", "http://router-2.example:80", "router-2.example"),
            ("http://192.0.2.1:9695", "http://192.0.2.1:9695", "192.0.2.1"),
            ("http://[2001:db8::1]:9695", "http://[2001:db8::1]:9695", "2001:db8::1"),
        ] {
            let address: ObserverAddress = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.host()), (printed, host));
            assert_eq!(printed.parse(), Ok(address));
        }
        let peer: ObservedPeer = "lab=http://a:1".parse().unwrap();
        assert_eq!((peer.label().as_str(), peer.to_string().as_str()), ("lab", "lab=http://a:1"));
        assert_eq!("http://a:1".parse::<ObservedPeer>().unwrap().label(), "a:1");
        let written = serde_json::to_string(&peer).unwrap();
        assert_eq!(written, "\"lab=http://a:1\"");
        assert_eq!(serde_json::from_str::<ObservedPeer>(&written).unwrap(), peer);
    }

    #[test]
    fn nothing_but_a_host_and_a_port_is_an_address() {
        for bad in [
            "router2:9695",
            "https://router2:9695",
            "http://router2",
            "http://router2:0",
            "http://router2:70000",
            "http://router2:+80",
            "http://:9695",
            "http://user@router2:9695",
            "http://router2:9695/other",
            "http://router2:9695?a=b",
            "http://router2:9695#a",
            "http://router 2:9695",
            "http://router2\r\n:9695",
            "http://::1:9695",
            "http://[::1]",
            "http://[x]:9695",
        ] {
            let refused = bad.parse::<ObserverAddress>().unwrap_err();
            assert!(refused.contains("http://router2:9695"), "{bad}: {refused}");
        }
        for bad in ["=http://a:1", "a b=http://a:1", "-a=http://a:1", &format!("{}=http://a:1", "a".repeat(64))] {
            assert!(bad.parse::<ObservedPeer>().is_err(), "{bad}");
        }
    }
}
