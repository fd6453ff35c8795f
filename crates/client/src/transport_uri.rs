//! Which forwarder to talk to, as one word: `unix:///run/nfd/nfd.sock`.
//!
//! Schemes: `unix`, `tcp`, `tcp4`, `tcp6`, `udp`, `udp4`, `udp6`; the default port is
//! 6363. Host names are resolved here, on the client's side, because a forwarder
//! takes canonical FaceUris only (NFD management protocol, FaceUri). The same
//! resolution therefore serves `faces/create`: [`TransportUri::canonical_face_uri`].

use std::{fmt, io, net::SocketAddr, path::PathBuf, str::FromStr};

pub use namewire_packet::nfd::face_uri::DEFAULT_PORT;

/// Which addresses of a host will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressFamily {
    /// The first one the resolver gives.
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
        /// Addresses that will do.
        family: AddressFamily,
    },
    /// UDP, one packet in a datagram.
    Udp {
        /// Host name or address literal without brackets.
        host: String,
        /// Port.
        port: u16,
        /// Addresses that will do.
        family: AddressFamily,
    },
}

/// Why a text is not a transport URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportUriError {
    /// There is no `://`.
    #[error("\"{0}\" has no scheme; write for example unix:///run/nfd/nfd.sock or udp://host:6363")]
    NoScheme(String),
    /// The scheme is none of ours.
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
            // An authority is allowed by URI syntax and always empty here.
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
    /// Resolves the host; the addresses of the wanted family, never empty.
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

    /// The URI in the form that `faces/create` demands, for example `udp4://192.0.2.1:6363`.
    ///
    /// Resolves the host name and takes its first address. A Unix path is given back as it is.
    pub async fn canonical_face_uri(&self) -> io::Result<String> {
        let scheme = match self {
            TransportUri::Unix(_) => return Ok(self.to_string()),
            TransportUri::Tcp { .. } => "tcp",
            TransportUri::Udp { .. } => "udp",
        };
        let address = self.resolve().await?[0];
        Ok(canonical(scheme, &address))
    }
}

/// `udp4://192.0.2.1:6363` from its parts.
fn canonical(scheme: &str, address: &SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) => format!("{scheme}4://{v4}"),
        SocketAddr::V6(v6) => format!("{scheme}6://{v6}"),
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
    async fn canonical_form_has_a_family_and_an_address() {
        let canonical = async |text: &str| text.parse::<TransportUri>().unwrap().canonical_face_uri().await.unwrap();
        assert_eq!(canonical("udp://127.0.0.1").await, "udp4://127.0.0.1:6363");
        assert_eq!(canonical("tcp://[::1]:7").await, "tcp6://[::1]:7");
        assert_eq!(canonical("udp4://localhost").await, "udp4://127.0.0.1:6363");
        assert!("udp6://127.0.0.1".parse::<TransportUri>().unwrap().resolve().await.is_err());
    }
}
