//! Pseudonyms: what a bundle has in the place of names, addresses and paths.
//!
//! A pseudonym is an HMAC-SHA256 of the text under a secret that is made for one bundle and kept in memory only. So the
//! same text has the same pseudonym in one bundle, another one in the next, and nobody can try texts.
//!
//! ```text
//!   /alice/film/v=3           /n5c1d0b77e2/n09ad2f11c8/v=3       each component by itself, so prefixes stay prefixes
//!   192.168.1.7               ipv4-private-4be0a1c933
//!   router.example            host-77a01be4d2
//!   /home/alice/my.toml       /home/p1b0c99ae71/p5520d1fe09.toml
//! ```
//!
//! What every forwarder has stays: names under `/localhost` and `/localhop` as far as the protocol defines them,
//! versions, segments, sequence numbers, loopback addresses, NDN's multicast groups, the usual folders.
//!
//! Cost: one hash for each component. Two texts have the same pseudonym with a probability of 2^-40.

use hmac::{Hmac, KeyInit, Mac};
use namewire_packet::{Component, NameBuf, tlv::types};
use sha2::Sha256;
use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Hexadecimal digits of a pseudonym.
const DIGITS: usize = 10;

/// Components under `/localhost` and `/localhop` that the protocol defines.
const PROTOCOL: &[&str] = &[
    "localhost",
    "localhop",
    "nfd",
    "rib",
    "fib",
    "faces",
    "cs",
    "strategy-choice",
    "strategy",
    "status",
    "tags",
    "log",
    "capture",
    "register",
    "unregister",
    "announce",
    "list",
    "create",
    "update",
    "destroy",
    "events",
    "channels",
    "query",
    "set",
    "unset",
    "config",
    "erase",
    "info",
    "general",
    "add-nexthop",
    "remove-nexthop",
    "best-route",
    "multicast",
    "asf",
    "access",
    "random",
    "self-learning",
    "ncc",
    "repo",
    "name",
    "drops",
    "dropped",
    "holders",
    "workers",
    "settings",
    "privileges",
    "usage",
    "health",
    "recent",
    "levels",
    "trees",
    "nlsr",
    "namewire-doctor",
    "ping",
    "traceroute",
];

/// Components that programs agree on, anywhere in a name.
const CONVENTIONS: &[&str] = &["KEY"];

/// Keyword components that programs agree on.
const KEYWORDS: &[&str] = &["metadata", "svs"];

/// Parts of paths that most machines have.
const FOLDERS: &[&str] = &[
    "",
    "run",
    "nfd",
    "nfd.sock",
    "nfd.conf",
    "tmp",
    "var",
    "lib",
    "etc",
    "usr",
    "bin",
    "sbin",
    "local",
    "home",
    "root",
    "opt",
    "srv",
    "dev",
    "proc",
    "sys",
    "user",
    "namewire",
    "namewire.toml",
    "state.toml",
    "state.toml.ignored",
    "ndn",
    ".ndn",
    "client.conf",
    "ndnsec-key-file",
    "pib.db",
    "memif.sock",
    "passwd",
    "hostname",
    "self",
    "fd",
];

/// Endings of files that stay.
const ENDINGS: &[&str] = &["toml", "sock", "conf", "cert", "ndncert", "pem", "privkey", "keys", "log", "db"];

/// The groups that NDN uses.
const GROUPS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(224, 0, 23, 170)), IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x1234))];

/// The Ethernet group that NDN uses.
const ETHERNET_GROUP: &str = "01:00:5e:00:17:aa";

/// Names that the kernel and service managers give interfaces, before their numbers.
const INTERFACES: &[&str] = &[
    "lo", "eth", "ens", "eno", "enp", "enx", "wlan", "wlp", "wlo", "tun", "tap", "br", "bond", "veth", "dummy",
    "docker",
];

/// Makes pseudonyms under one secret.
pub(super) struct Pseudonyms {
    secret: [u8; 32],
}

impl Pseudonyms {
    /// With a secret of the system's random numbers.
    ///
    /// # Errors
    /// If the system provides none.
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Pseudonyms { secret })
    }

    #[cfg(test)]
    pub(super) const fn of_secret(secret: [u8; 32]) -> Self {
        Pseudonyms { secret }
    }

    /// Hexadecimal digits, at most 64, of a text of this kind.
    fn digits(&self, kind: &str, text: &[u8], count: usize) -> String {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.secret).expect("HMAC takes keys of any length");
        for part in [kind.as_bytes(), &[0], text] {
            mac.update(part);
        }
        let mut digits = String::new();
        for byte in mac.finalize().into_bytes() {
            let _ = write!(digits, "{byte:02x}"); // writing to a String does not fail
        }
        digits.truncate(count);
        digits
    }

    /// A name, component by component.
    pub(super) fn name(&self, name: &NameBuf) -> String {
        let first = name.as_name().get(0).map(|first| first.value);
        let is_of_protocol = first == Some(b"localhost") || first == Some(b"localhop");
        let mut text = String::new();
        for component in name.as_name().components() {
            text.push('/');
            text += &self.component(component, is_of_protocol);
        }
        if text.is_empty() { "/".to_owned() } else { text }
    }

    fn component(&self, component: Component<'_>, is_of_protocol: bool) -> String {
        let Component { type_number, value } = component;
        let word = std::str::from_utf8(value).unwrap_or_default();
        let as_it_is = || {
            let mut name = NameBuf::new();
            name.push(component);
            name.to_string().trim_start_matches('/').to_owned()
        };
        match type_number {
            types::GENERIC_COMPONENT => {
                let is_parameter = is_of_protocol && is_parameter(word);
                let is_known = CONVENTIONS.contains(&word) || (is_of_protocol && PROTOCOL.contains(&word));
                if is_known || is_parameter { as_it_is() } else { self.word(value) }
            }
            types::SEGMENT_COMPONENT
            | types::BYTE_OFFSET_COMPONENT
            | types::VERSION_COMPONENT
            | types::TIMESTAMP_COMPONENT
            | types::SEQUENCE_NUM_COMPONENT
                if component.as_nni().is_some() =>
            {
                as_it_is()
            }
            types::KEYWORD_COMPONENT if KEYWORDS.contains(&word) => as_it_is(),
            types::IMPLICIT_SHA256_DIGEST => format!("sha256digest={}", self.digits("digest", value, 64)),
            types::PARAMETERS_SHA256_DIGEST => format!("params-sha256={}", self.digits("digest", value, 64)),
            number => format!("{number}={}", self.word(value)),
        }
    }

    /// A generic component, or a word that is one.
    pub(super) fn word(&self, value: &[u8]) -> String {
        format!("n{}", self.digits("component", value, DIGITS))
    }

    /// A path, part by part.
    pub(super) fn path(&self, path: &str) -> String {
        let part = |part: &str| {
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            let is_of_user =
                part.strip_prefix("nfd-").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
            if FOLDERS.contains(&part) || is_number || is_of_user {
                return part.to_owned();
            }
            let ending = part.rsplit_once('.').map(|(_, ending)| ending).filter(|ending| ENDINGS.contains(ending));
            let ending = ending.map(|ending| format!(".{ending}")).unwrap_or_default();
            format!("p{}{ending}", self.digits("path", part.as_bytes(), DIGITS))
        };
        path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// An address: its family and its kind stay.
    pub(super) fn address(&self, address: IpAddr) -> String {
        let keeps = address.is_loopback() || address.is_unspecified() || GROUPS.contains(&address);
        let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        if keeps || is_broadcast {
            return address.to_string();
        }
        let (family, kind) = match address {
            IpAddr::V4(v4) => ("ipv4", kind_v4(v4)),
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => return self.address(IpAddr::V4(v4)),
                None => ("ipv6", kind_v6(v6)),
            },
        };
        format!("{family}-{kind}-{}", self.digits("address", address.to_string().as_bytes(), DIGITS))
    }

    /// An Ethernet address, with colons.
    pub(super) fn station(&self, address: &str) -> String {
        let address = address.to_ascii_lowercase();
        if address == ETHERNET_GROUP {
            return address;
        }
        format!("mac-{}", self.digits("station", address.as_bytes(), DIGITS))
    }

    /// The name of a host.
    pub(super) fn host(&self, name: &str) -> String {
        match name {
            "localhost" | "" => name.to_owned(),
            name => format!("host-{}", self.digits("host", name.to_ascii_lowercase().as_bytes(), DIGITS)),
        }
    }

    /// The name of a user.
    pub(super) fn user(&self, name: &str) -> String {
        format!("user-{}", self.digits("user", name.as_bytes(), DIGITS))
    }

    /// The name of a network interface; those that the system gives stay.
    pub(super) fn interface(&self, name: &str) -> String {
        let is_of_system = INTERFACES.iter().any(|prefix| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| rest.len() <= 12 && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b's'))
        });
        // A pattern of a setting, for example `eth*`.
        if is_of_system || name.contains(['*', '?']) {
            return name.to_owned();
        }
        format!("if-{}", self.digits("interface", name.as_bytes(), DIGITS))
    }
}

/// A parameter of a strategy: `max-timeouts~1`.
fn is_parameter(word: &str) -> bool {
    word.split_once('~').is_some_and(|(key, value)| {
        key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            && value.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn kind_v4(address: Ipv4Addr) -> &'static str {
    let [first, second, ..] = address.octets();
    match () {
        () if address.is_private() => "private",
        () if address.is_link_local() => "link-local",
        () if address.is_multicast() => "multicast",
        () if first == 100 && second & 0xc0 == 64 => "shared",
        () => "public",
    }
}

fn kind_v6(address: Ipv6Addr) -> &'static str {
    match () {
        () if address.is_unique_local() => "private",
        () if address.is_unicast_link_local() => "link-local",
        () if address.is_multicast() => "multicast",
        () => "public",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudonyms() -> Pseudonyms {
        Pseudonyms::of_secret([7; 32])
    }

    fn name(uri: &str) -> String {
        pseudonyms().name(&uri.parse().unwrap())
    }

    #[test]
    fn prefixes_stay_prefixes_and_what_is_defined_stays() {
        let (short, long) = (name("/alice/film"), name("/alice/film/v=3/seg=7/KEY/secret"));
        assert!(long.starts_with(&format!("{short}/v=3/seg=7/KEY/n")), "{short} {long}");
        assert!(!long.contains("alice") && !long.contains("film") && !long.contains("secret"));
        assert_eq!(name("/"), "/");
        for kept in [
            "/localhost/nfd/strategy/asf/v=5/max-timeouts~1",
            "/localhop/nfd/rib/register",
            "/localhost/nfd/faces/list/v=1/seg=0",
        ] {
            assert_eq!(name(kept), kept);
        }
        assert!(name("/nfd/strategy").matches("/n").count() == 2 && !name("/nfd/strategy").contains("strategy"));
        assert!(!name("/localhost/nfd/rib/register/%07%07%08%05alice").contains("alice"));
        assert!(name("/a/32=metadata").ends_with("/32=metadata") && !name("/a/32=private").contains("private"));
        let digest = format!("/a/sha256digest={}", "ab".repeat(32));
        assert!(name(&digest).parse::<NameBuf>().is_ok() && !name(&digest).contains("abab"));
    }

    #[test]
    fn pseudonyms_depend_on_text_and_secret() {
        assert_eq!(name("/alice"), name("/alice"));
        assert_ne!(name("/alice"), name("/alicf"));
        let other = Pseudonyms::of_secret([8; 32]);
        assert_ne!(name("/alice"), other.name(&"/alice".parse().unwrap()));
        assert_ne!(pseudonyms().host("alice"), pseudonyms().user("alice"));
    }

    #[test]
    fn addresses_keep_family_and_kind() {
        let address = |text: &str| pseudonyms().address(text.parse().unwrap());
        for kept in ["127.0.0.1", "::1", "0.0.0.0", "::", "224.0.23.170", "ff02::1234", "255.255.255.255"] {
            assert_eq!(address(kept), kept);
        }
        for (text, kind) in [
            ("192.168.1.7", "ipv4-private-"),
            ("10.0.0.1", "ipv4-private-"),
            ("169.254.1.1", "ipv4-link-local-"),
            ("100.64.0.1", "ipv4-shared-"),
            ("239.1.2.3", "ipv4-multicast-"),
            ("198.51.100.7", "ipv4-public-"),
            ("::ffff:198.51.100.7", "ipv4-public-"),
            ("2001:db8::1", "ipv6-public-"),
            ("fe80::1", "ipv6-link-local-"),
            ("fd00::1", "ipv6-private-"),
            ("ff05::9", "ipv6-multicast-"),
        ] {
            assert!(address(text).starts_with(kind), "{text}: {}", address(text));
        }
        assert_eq!(address("::ffff:198.51.100.7"), address("198.51.100.7"));
    }

    #[test]
    fn the_rest_keeps_what_every_machine_has() {
        let of = pseudonyms();
        let path = of.path("/home/alice/private.toml");
        assert!(path.starts_with("/home/p") && path.ends_with(".toml") && !path.contains("alice"), "{path}");
        assert_eq!(of.path("/run/user/1000/nfd.sock"), "/run/user/1000/nfd.sock");
        assert_eq!(
            (of.interface("eth0"), of.interface("enp3s0"), of.interface("wlp?s0")),
            ("eth0".into(), "enp3s0".into(), "wlp?s0".into())
        );
        assert!(of.interface("acme").starts_with("if-") && of.interface("lovelace").starts_with("if-"));
        assert_eq!(of.station("01:00:5E:00:17:AA"), ETHERNET_GROUP);
        assert!(of.station("08:00:27:01:01:01").starts_with("mac-"));
        assert_eq!(of.host("localhost"), "localhost");
    }
}
