//! Patterns that choose network interfaces by name, Ethernet address or subnet.
//!
//! Source: drop-in.md §2, NFD's sample configuration (`whitelist` and `blacklist` of `udp` and `ether`).

use namewire_packet::nfd::MacAddress;
use std::{fmt, net::IpAddr, str::FromStr};

/// The property by which an interface is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfacePattern {
    /// Its name, in which `*` stands for any characters and `?` for one.
    Name(String),
    /// Its Ethernet address.
    Ethernet(MacAddress),
    /// One of its addresses is in this subnet: address and length of the prefix.
    Subnet(IpAddr, u8),
}

/// A text that is not an [`InterfacePattern`].
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

impl InterfacePattern {
    /// True if an interface with these properties matches.
    pub fn matches(&self, name: &str, ethernet: Option<MacAddress>, addresses: &[IpAddr]) -> bool {
        match self {
            InterfacePattern::Name(glob) => glob_matches(glob.as_bytes(), name.as_bytes()),
            InterfacePattern::Ethernet(address) => ethernet == Some(*address),
            InterfacePattern::Subnet(subnet, bits) => addresses.iter().any(|ip| is_in_subnet(*ip, *subnet, *bits)),
        }
    }
}

/// Whether the first `bits` bits of the two are the same.
pub(crate) fn is_in_subnet(address: IpAddr, subnet: IpAddr, bits: u8) -> bool {
    let same_prefix = |difference: u128, width: u8| difference.checked_shr(u32::from(width - bits)).unwrap_or(0) == 0;
    match (address, subnet) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same_prefix((a.to_bits() ^ b.to_bits()).into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same_prefix(a.to_bits() ^ b.to_bits(), 128),
        _ => false,
    }
}

/// `*` and `?` as in file names. Both texts are short (64 and 15 bytes).
fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    // Where to continue after a mismatch: the last `*`, and how much it has matched so far.
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
    fn an_interface_is_matched_by_any_of_its_features() {
        let mac = "02:00:00:00:00:01".parse().unwrap();
        let addresses = ["192.0.2.9".parse().unwrap(), "2001:db8::9".parse().unwrap()];
        for (pattern, is_match) in [
            ("eth*", true),
            ("wlan*", false),
            ("02:00:00:00:00:01", true),
            ("02:00:00:00:00:02", false),
            ("192.0.2.0/24", true),
            ("198.51.100.0/24", false),
            ("2001:db8::/32", true),
            ("0.0.0.0/0", true),
            ("::/0", true),
            ("192.0.2.8/32", false),
        ] {
            let pattern: InterfacePattern = pattern.parse().unwrap();
            assert_eq!(pattern.matches("eth0", Some(mac), &addresses), is_match, "{pattern}");
        }
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
