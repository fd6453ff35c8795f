//! FaceUris as people write them, and the canonical form that a forwarder takes.
//!
//! Source: drop-in §4, and the behaviour of ndn-cxx's `face-uri.cpp`. The messages of NFD's `nfdc` quote that file's
//! reasons for refusal. This module accepts far more texts than [`namewire_packet::nfd::FaceUri`], which reads what
//! forwarders write. It also resolves host names, which no forwarder does.
//!
//! Limits: a text has at most [`MAX_FACE_URI_BYTES`], and a look-up takes at most [`RESOLVE_TIMEOUT`].

use namewire_packet::nfd::face_uri::{DEFAULT_MULTICAST_PORT, DEFAULT_PORT, MAX_FACE_URI_BYTES};
use std::{fmt, net::IpAddr, time::Duration};

/// How long a host name is looked up.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(4);

/// A well-formed FaceUri, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FaceUriText {
    scheme: String,
    host: String,
    /// The host stands in brackets.
    has_brackets: bool,
    /// Digits, perhaps too many of them; empty if absent.
    port: String,
    /// With its slash; empty if absent.
    path: String,
}

/// The schemes whose URIs have a canonical form.
enum Canonical {
    /// `udp` and `tcp`: host and port.
    Ip,
    /// `ether`: a MAC address.
    Ether,
    /// `dev`: a network interface.
    Interface,
    /// `udp4+dev`: a network interface and a port.
    InterfacePort,
}

impl FaceUriText {
    /// `None` if the text is no FaceUri.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_FACE_URI_BYTES {
            return None;
        }
        let (scheme, rest) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme))?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if path.contains('?') {
            return None;
        }
        let uri = |host: &str, has_brackets, port: &str| FaceUriText {
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            has_brackets,
            port: port.to_owned(),
            path: path.to_owned(),
        };
        if authority.is_empty() {
            return Some(uri("", false, ""));
        }
        if let Some((host, port)) = bracketed(authority) {
            if is_ipv6_host(host) {
                return Some(uri(host, true, port));
            }
            // An IPv4 address in IPv6 clothes loses them.
            if let Some(v4) = host.strip_prefix("::ffff:").filter(|v4| is_dotted_quad(v4)) {
                return Some(uri(v4, false, port));
            }
        }
        // Anything else without a colon counts as a host, were it in brackets.
        let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
        let port_fits = port.is_none_or(is_digits);
        (!host.is_empty() && port_fits).then(|| uri(host, false, port.unwrap_or_default()))
    }

    pub(crate) fn scheme(&self) -> &str {
        &self.scheme
    }

    fn canonical_kind(&self) -> Option<Canonical> {
        match self.scheme.as_str() {
            "udp" | "udp4" | "udp6" | "tcp" | "tcp4" | "tcp6" => Some(Canonical::Ip),
            "ether" => Some(Canonical::Ether),
            "dev" => Some(Canonical::Interface),
            "udp4+dev" | "udp6+dev" => Some(Canonical::InterfacePort),
            _ => None,
        }
    }

    /// True if the scheme has a canonical form. Others (`fd://`, `unix://`) appear in
    /// listings as they are.
    pub(crate) fn can_canonize(&self) -> bool {
        self.canonical_kind().is_some()
    }

    /// The canonical form, the host name looked up if it is one; or the reason why not.
    pub(crate) async fn canonize(&self) -> Result<FaceUriText, String> {
        match self.canonical_kind() {
            None => Err("scheme not supported".to_owned()),
            Some(Canonical::Ip) => self.canonize_ip().await,
            Some(Canonical::Ether) => self.canonize_ether(),
            Some(Canonical::Interface) => self.canonize_interface(),
            Some(Canonical::InterfacePort) if !self.port.is_empty() && self.path.is_empty() => Ok(self.clone()),
            Some(Canonical::InterfacePort) => Err(format!("cannot canonize {self}")),
        }
    }

    async fn canonize_ip(&self) -> Result<FaceUriText, String> {
        let wants_v4 = self.scheme.ends_with('4');
        let wants_v6 = self.scheme.ends_with('6');
        // "%25" is the percent sign of an escaped zone.
        let host = self.host.replacen("%25", "%", 1);
        let literal = host.split_once('%').map_or(host.as_str(), |(address, _)| address);
        let (address, text) = match literal.parse::<IpAddr>() {
            Ok(address) if wants_v4 && address.is_ipv6() || wants_v6 && address.is_ipv4() => {
                return Err("IPv4/v6 mismatch".to_owned());
            }
            // The zone stays with the address.
            Ok(address) => (address, format!("{address}{}", &host[literal.len()..])),
            Err(_) => {
                let fits = |address: &IpAddr| !(wants_v4 && address.is_ipv6() || wants_v6 && address.is_ipv4());
                let address = resolve(&host, fits).await?;
                (address, address.to_string())
            }
        };
        let is_tcp = self.scheme.starts_with("tcp");
        if is_tcp && address.is_multicast() {
            return Err("cannot use multicast address".to_owned());
        }
        let is_canonical = text == self.host && (wants_v4 || wants_v6) && self.path.is_empty();
        let port = match self.port.as_str() {
            "" if address.is_multicast() => DEFAULT_MULTICAST_PORT.to_string(),
            "" => DEFAULT_PORT.to_string(),
            // As ndn-cxx does, a text that looks canonical is left to the forwarder to judge.
            digits if is_canonical => digits.to_owned(),
            digits => match digits.parse::<u16>() {
                Ok(port) => port.to_string(),
                Err(_) => return Err(format!("invalid port number '{digits}'")),
            },
        };
        let family = if address.is_ipv4() { "4" } else { "6" };
        Ok(FaceUriText {
            scheme: format!("{}{family}", if is_tcp { "tcp" } else { "udp" }),
            host: text,
            has_brackets: address.is_ipv6(),
            port,
            path: String::new(),
        })
    }

    fn canonize_ether(&self) -> Result<FaceUriText, String> {
        let bytes: Vec<u8> = self.host.split(':').map_while(|byte| u8::from_str_radix(byte, 16).ok()).collect();
        let is_address = bytes.len() == 6 && self.host.split(':').count() == 6;
        if !is_address || bytes.iter().all(|byte| *byte == 0) {
            return Err(format!("invalid ethernet address '{}'", self.host));
        }
        let host = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
        Ok(FaceUriText { host, has_brackets: true, port: String::new(), path: String::new(), ..self.clone() })
    }

    fn canonize_interface(&self) -> Result<FaceUriText, String> {
        if self.host.is_empty() {
            return Err("network interface name is missing".to_owned());
        }
        if !self.port.is_empty() {
            return Err("port number is not allowed".to_owned());
        }
        if !matches!(self.path.as_str(), "" | "/") {
            return Err("path is not allowed".to_owned());
        }
        Ok(FaceUriText { path: String::new(), ..self.clone() })
    }
}

impl fmt::Display for FaceUriText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.has_brackets { ("[", "]") } else { ("", "") };
        write!(f, "{}://{open}{}{close}", self.scheme, self.host)?;
        if !self.port.is_empty() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.path)
    }
}

/// The first address of a host that will do.
async fn resolve(host: &str, fits: impl Fn(&IpAddr) -> bool) -> Result<IpAddr, String> {
    let addresses = match tokio::time::timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((host, 0))).await {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(error)) => return Err(format!("Hostname could not be resolved: {}", resolver_reason(&error))),
        Err(_) => return Err("Hostname resolution timed out".to_owned()),
    };
    addresses
        .map(|address| address.ip())
        .find(fits)
        .ok_or_else(|| "No endpoints match the specified address selector".to_owned())
}

/// What Boost.Asio says where the C library says otherwise.
fn resolver_reason(error: &std::io::Error) -> &'static str {
    // The standard library keeps only the text of the resolver's error (EAI_AGAIN).
    if error.to_string().contains("Temporary failure") {
        "Host not found (non-authoritative), try again later"
    } else {
        "Host not found (authoritative)"
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

fn is_scheme(text: &str) -> bool {
    match text.split_once('+') {
        Some((base, extension)) => is_word(base) && is_word(extension),
        None => is_word(text),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

fn is_dotted_quad(text: &str) -> bool {
    text.split('.').count() == 4 && text.split('.').all(is_digits)
}

/// `[host]` or `[host]:port`.
fn bracketed(authority: &str) -> Option<(&str, &str)> {
    let (host, tail) = authority.strip_prefix('[')?.rsplit_once(']')?;
    match tail.strip_prefix(':') {
        Some(port) if is_digits(port) => Some((host, port)),
        None if tail.is_empty() => Some((host, "")),
        _ => None,
    }
}

/// Hexadecimal digits and colons, perhaps with a zone. A MAC address is of this kind too.
fn is_ipv6_host(host: &str) -> bool {
    let (address, zone) = host.split_once('%').map_or((host, None), |(address, zone)| (address, Some(zone)));
    let is_address = !address.is_empty() && address.bytes().all(|c| c.is_ascii_hexdigit() || c == b':');
    is_address && zone.is_none_or(|zone| !zone.is_empty() && !zone.contains([':', ' ', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> FaceUriText {
        FaceUriText::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn well_formed_texts() {
        for text in [
            "udp4://192.0.2.1:6363",
            "udp://host",
            "udp6://[2001:db8::1]:6363",
            "udp6://[fe80::1%eth0]:6363",
            "ether://[08:00:27:01:01:01]",
            "dev://eth0",
            "udp4+dev://eth0:7700",
            "unix:///run/nfd/nfd.sock",
            "fd://17",
            "internal://",
            "UDP4://x:99999",
        ] {
            assert_eq!(parsed(text).to_string(), text);
        }
        assert_eq!(parsed("udp://[::ffff:192.0.2.1]:1").to_string(), "udp://192.0.2.1:1");
        for text in [
            "",
            "host",
            "udp4:/x",
            "://x",
            "udp+://x",
            "udp4://:1",
            "udp4://x:",
            "udp4://x:a",
            "udp4://a:1:2",
            "udp4://x/a?b",
            "udp6://[::1",
            "u dp://x",
        ] {
            assert_eq!(FaceUriText::parse(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn canonical_forms() {
        for (text, canonical) in [
            ("udp://192.0.2.1", Ok("udp4://192.0.2.1:6363")),
            ("udp4://192.0.2.1:6363", Ok("udp4://192.0.2.1:6363")),
            ("udp4://192.0.2.1:06363", Ok("udp4://192.0.2.1:06363")),
            ("udp4://224.0.23.170", Ok("udp4://224.0.23.170:56363")),
            ("tcp://[2001:DB8:0::1]:7", Ok("tcp6://[2001:db8::1]:7")),
            ("udp6://[fe80::1%25eth0]:6363", Ok("udp6://[fe80::1%eth0]:6363")),
            ("ether://[08:00:27:0A:1:01]", Ok("ether://[08:00:27:0a:01:01]")),
            ("dev://eth0/", Ok("dev://eth0")),
            ("udp4+dev://eth0:7700", Ok("udp4+dev://eth0:7700")),
            ("udp4://[2001:db8::1]", Err("IPv4/v6 mismatch")),
            ("udp6://192.0.2.1", Err("IPv4/v6 mismatch")),
            ("udp://192.0.2.1:70000", Err("invalid port number '70000'")),
            ("tcp4://224.0.23.170", Err("cannot use multicast address")),
            ("ether://[::]", Err("invalid ethernet address '::'")),
            ("ether://[00:00:00:00:00:00]", Err("invalid ethernet address '00:00:00:00:00:00'")),
            ("dev://", Err("network interface name is missing")),
            ("dev://eth0:1", Err("port number is not allowed")),
            ("dev://eth0/a", Err("path is not allowed")),
            ("udp4+dev://eth0", Err("cannot canonize udp4+dev://eth0")),
            ("fd://17", Err("scheme not supported")),
            ("unix:///run/nfd.sock", Err("scheme not supported")),
        ] {
            let found = parsed(text).canonize().await.map(|uri| uri.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), canonical, "{text}");
        }
        assert_eq!(parsed("udp4://localhost").canonize().await.unwrap().to_string(), "udp4://127.0.0.1:6363");
    }

    proptest! {
        #[test]
        fn any_text_parses_without_panic_and_prints_what_parses_again(
            text in "(udp4|tcp6|udp|ether|dev|fd|udp4\\+dev)?(://)?[\\[\\]:%/.0-9a-f]{0,24}\\PC{0,4}"
        ) {
            if let Some(uri) = FaceUriText::parse(&text) {
                prop_assert_eq!(FaceUriText::parse(&uri.to_string()), Some(uri));
            }
        }
    }
}
