//! How to name a forwarder in one word: `unix:///run/nfd/nfd.sock`.
//!
//! Schemes: `unix`, `tcp`, `tcp4`, `tcp6`, `udp`, `udp4`, `udp6`; the default port is 6363.
//!
//! This is not a [`FaceUri`](namewire_packet::nfd::FaceUri), which names one end of a face in a forwarder's list: here
//! a host name may replace the address, and the port may be absent.

use std::{fmt, io, net::SocketAddr, path::PathBuf, str::FromStr};

pub use namewire_packet::nfd::face_uri::DEFAULT_PORT;

/// Which addresses of a host may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressFamily {
    /// Any, beginning with the resolver's first one.
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl AddressFamily {
    fn suffix(self) -> &'static str {
        match self {
            AddressFamily::Any => "",
            AddressFamily::V4 => "4",
            AddressFamily::V6 => "6",
        }
    }

    fn admits(self, address: &SocketAddr) -> bool {
        match self {
            AddressFamily::Any => true,
            AddressFamily::V4 => address.is_ipv4(),
            AddressFamily::V6 => address.is_ipv6(),
        }
    }
}

/// A parsed transport URI. Not resolved yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TransportUri {
    /// Stream socket in the file system.
    Unix(PathBuf),
    /// TCP.
    Tcp {
        /// Host name or address literal without brackets.
        host: String,
        /// Port.
        port: u16,
        /// Addresses that may be used.
        family: AddressFamily,
    },
    /// UDP, one packet in a datagram.
    Udp {
        /// Host name or address literal without brackets.
        host: String,
        /// Port.
        port: u16,
        /// Addresses that may be used.
        family: AddressFamily,
    },
}

/// Why a text is not a transport URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportUriError {
    /// There is no `://`.
    #[error("\"{0}\" has no scheme; write for example unix:///run/nfd/nfd.sock or udp://host:6363")]
    NoScheme(String),
    /// The scheme is unknown.
    #[error("unknown scheme \"{0}\"; known are unix, tcp, tcp4, tcp6, udp, udp4 and udp6")]
    UnknownScheme(String),
    /// `unix://` without an absolute path.
    #[error("\"{0}\": a Unix socket needs an absolute path, as in unix:///run/nfd/nfd.sock")]
    BadPath(String),
    /// Host missing or malformed.
    #[error("\"{0}\" is not HOST or HOST:PORT")]
    BadHost(String),
    /// Port outside 1 to 65535.
    #[error("\"{0}\" is not a port number from 1 to 65535")]
    BadPort(String),
}

impl FromStr for TransportUri {
    type Err = TransportUriError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| TransportUriError::NoScheme(text.to_owned()))?;
        if scheme == "unix" {
            // URI syntax allows an authority; here it must be empty.
            return match rest.strip_prefix('/') {
                Some(path) if !path.is_empty() => Ok(TransportUri::Unix(PathBuf::from(rest))),
                _ => Err(TransportUriError::BadPath(text.to_owned())),
            };
        }
        let family = match scheme {
            "tcp" | "udp" => AddressFamily::Any,
            "tcp4" | "udp4" => AddressFamily::V4,
            "tcp6" | "udp6" => AddressFamily::V6,
            _ => return Err(TransportUriError::UnknownScheme(scheme.to_owned())),
        };
        let (host, port) = split_host_port(rest.strip_suffix('/').unwrap_or(rest))?;
        Ok(if scheme.starts_with("tcp") {
            TransportUri::Tcp { host, port, family }
        } else {
            TransportUri::Udp { host, port, family }
        })
    }
}

fn split_host_port(text: &str) -> Result<(String, u16), TransportUriError> {
    let bad_host = || TransportUriError::BadHost(text.to_owned());
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, tail) = rest.split_once(']').ok_or_else(bad_host)?;
        match tail {
            "" => (host, None),
            _ => (host, Some(tail.strip_prefix(':').ok_or_else(bad_host)?)),
        }
    } else {
        match text.split_once(':') {
            // Two colons without brackets: an IPv6 literal, which needs brackets.
            Some((_, port)) if port.contains(':') => return Err(bad_host()),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
        return Err(bad_host());
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(digits) => match digits.parse::<u16>() {
            Ok(port) if port != 0 => port,
            _ => return Err(TransportUriError::BadPort(digits.to_owned())),
        },
    };
    Ok((host.to_owned(), port))
}

impl fmt::Display for TransportUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port, family) = match self {
            TransportUri::Unix(path) => return write!(f, "unix://{}", path.display()),
            TransportUri::Tcp { host, port, family } => ("tcp", host, port, family),
            TransportUri::Udp { host, port, family } => ("udp", host, port, family),
        };
        let suffix = family.suffix();
        if host.contains(':') {
            write!(f, "{scheme}{suffix}://[{host}]:{port}")
        } else {
            write!(f, "{scheme}{suffix}://{host}:{port}")
        }
    }
}

impl TransportUri {
    /// Resolves the host to its addresses of the wanted family; the list is never empty.
    ///
    /// # Errors
    /// `InvalidInput` for a Unix socket; `NotFound` if the host has no address of the wanted family; otherwise if the
    /// resolver fails.
    pub async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let (host, port, family) = match self {
            TransportUri::Unix(_) => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "a Unix socket has no host"));
            }
            TransportUri::Tcp { host, port, family } | TransportUri::Udp { host, port, family } => {
                (host, *port, *family)
            }
        };
        let addresses: Vec<SocketAddr> =
            tokio::net::lookup_host((host.as_str(), port)).await?.filter(|address| family.admits(address)).collect();
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address of the wanted family")));
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_prints() {
        for (text, printed) in [
            ("unix:///run/nfd/nfd.sock", "unix:///run/nfd/nfd.sock"),
            ("tcp://localhost", "tcp://localhost:6363"),
            ("tcp4://192.0.2.1:16363", "tcp4://192.0.2.1:16363"),
            ("tcp6://[2001:db8::1]", "tcp6://[2001:db8::1]:6363"),
            ("udp://router.example.org:6363/", "udp://router.example.org:6363"),
            ("udp6://[::1]:7000", "udp6://[::1]:7000"),
        ] {
            let uri: TransportUri = text.parse().unwrap();
            assert_eq!(uri.to_string(), printed);
            assert_eq!(printed.parse::<TransportUri>().unwrap(), uri);
        }
    }

    #[test]
    fn refuses_with_a_reason() {
        use TransportUriError as E;
        let parse = |text: &str| text.parse::<TransportUri>().unwrap_err();
        assert_eq!(parse("/run/nfd/nfd.sock"), E::NoScheme("/run/nfd/nfd.sock".into()));
        assert_eq!(parse("http://a"), E::UnknownScheme("http".into()));
        assert_eq!(parse("unix://"), E::BadPath("unix://".into()));
        assert_eq!(parse("unix://relative"), E::BadPath("unix://relative".into()));
        assert_eq!(parse("udp://"), E::BadHost(String::new()));
        assert_eq!(parse("udp://::1"), E::BadHost("::1".into()));
        assert_eq!(parse("udp://[::1"), E::BadHost("[::1".into()));
        assert_eq!(parse("udp://h:0"), E::BadPort("0".into()));
        assert_eq!(parse("udp://h:70000"), E::BadPort("70000".into()));
    }

    #[tokio::test]
    async fn a_host_has_addresses_of_the_wanted_family() {
        let resolve = async |text: &str| text.parse::<TransportUri>().unwrap().resolve().await;
        assert_eq!(resolve("tcp://[::1]:7").await.unwrap(), ["[::1]:7".parse().unwrap()]);
        assert_eq!(resolve("udp4://localhost").await.unwrap()[0], "127.0.0.1:6363".parse().unwrap());
        assert_eq!(resolve("udp://127.0.0.1").await.unwrap(), ["127.0.0.1:6363".parse().unwrap()]);
        assert!(resolve("udp6://127.0.0.1").await.is_err());
    }
}
