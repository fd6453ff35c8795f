//! Conversions: how a URL becomes a name.
//!
//! `http://www.named-data.net/project/`
//! - [`NameConversion::Tld`], Yuan15 Table 4.1, NameTrie18 Table V method 2: `/net/named-data/www/project`
//! - [`NameConversion::Site`], Yuan15 Table 4.1: `/named-data.net/www/project`
//! - [`NameConversion::Host`], Yuan15 Table 4.1: `/www.named-data.net/project`
//! - [`NameConversion::Protocol`], NameTrie18 Table V method 1: `/http/net/named-data/www/project`
//! - [`NameConversion::Domain`], NameTrie18 Table V method 3: `/named-data/www.net/project`
//!
//! The *site* is the registered domain: the last two labels of the host, or three where a customary category precedes
//! the label of a country (`co.uk`, `com.br`: [`CATEGORIES`]). This rule needs no public suffix list; it takes all
//! sites of a hosting company for one. A host that is an IPv4 address is always one component. Port, query, fragment
//! and empty path segments are dropped. The bytes of a segment stay as in the URL (`%20` is three bytes); the host
//! becomes lower case.

use std::net::Ipv4Addr;

use namewire_packet::tlv::{types, write_tlv};

/// Categories under the label of a country.
const CATEGORIES: [&[u8]; 22] = [
    b"ac", b"co", b"com", b"edu", b"gen", b"go", b"gob", b"gouv", b"gov", b"govt", b"gv", b"id", b"ltd", b"mil", b"ne",
    b"net", b"nom", b"or", b"org", b"plc", b"sch", b"web",
];
/// Most bytes of a host (RFC 1035 §2.3.4).
const HOST_BYTES_MAX: usize = 253;
/// Most bytes of a label (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

namewire_packet::names! {
    /// The first components of a name.
    pub enum NameConversion {
        /// The labels of the host in reverse.
        Tld = "TLD",
        /// The registered domain, then the other labels in reverse.
        Site = "Site",
        /// The host as one component.
        Host = "Host",
        /// The scheme, then as [`NameConversion::Tld`].
        Protocol = "Protocol",
        /// The label before the public suffix, then the rest of the host as one component.
        Domain = "Domain",
    }
}

impl NameConversion {
    /// The conversions of Yuan15 Table 4.1.
    pub const YUAN: [Self; 3] = [Self::Tld, Self::Site, Self::Host];
    /// The conversions of NameTrie18 Table V, in its order.
    pub const NAME_TRIE: [Self; 3] = [Self::Protocol, Self::Tld, Self::Domain];
}

/// A record split into its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Url<'r> {
    scheme: &'r [u8],
    host: &'r [u8],
    path: &'r [u8],
}

impl<'r> Url<'r> {
    /// The parts of `host/path`, with or without scheme, user and port; `None` if the record begins with no host.
    pub(super) fn parse(record: &'r [u8]) -> Option<Self> {
        let (scheme, rest) = match find(record, b"://") {
            Some(at) if record[..at].iter().all(u8::is_ascii_alphanumeric) => (&record[..at], &record[at + 3..]),
            _ => (&b"http"[..], record),
        };
        let rest = without_query(rest);
        let (authority, path) = rest.split_at(rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len()));
        let host = authority.rsplit(|&byte| byte == b'@').next().unwrap_or_default();
        let host = host.split(|&byte| byte == b':').next().unwrap_or_default();
        let host = host.strip_suffix(b".").unwrap_or(host);
        is_host(host).then_some(Self { scheme, host, path })
    }

    /// The parts of a record without host: all of it is path.
    pub(super) fn path_only(record: &'r [u8]) -> Self {
        Self { scheme: b"", host: b"", path: without_query(record) }
    }

    /// The host as the record writes it; empty if the record is a path.
    pub(super) fn host(&self) -> &'r [u8] {
        self.host
    }

    /// Whether the host is an IPv4 address.
    pub(super) fn is_address(&self) -> bool {
        is_address(self.host)
    }

    /// The segments of the path.
    pub(super) fn segments(&self) -> impl Iterator<Item = &'r [u8]> + use<'r> {
        self.path.split(|&byte| byte == b'/').filter(|segment| !segment.is_empty())
    }

    /// Replaces `out` by the name's TLV-VALUE; returns the number of components.
    pub(super) fn write_name(&self, conversion: NameConversion, out: &mut Vec<u8>) -> usize {
        out.clear();
        let mut components = 0;
        let mut push = |component: &[u8]| {
            if !component.is_empty() {
                write_tlv(out, types::GENERIC_COMPONENT, component);
                components += 1;
            }
        };
        let host = self.host.to_ascii_lowercase();
        match conversion {
            NameConversion::Host => push(&host),
            NameConversion::Tld => labels_reversed(&host).for_each(push),
            NameConversion::Protocol => {
                push(self.scheme);
                labels_reversed(&host).for_each(push);
            }
            NameConversion::Site => {
                let (others, site) = split_at_site(&host);
                push(site);
                labels_reversed(others).for_each(push);
            }
            NameConversion::Domain => {
                let (others, site) = split_at_site(&host);
                let domain_end = site.iter().position(|&byte| byte == b'.').filter(|_| !is_address(site));
                let (domain, suffix) = site.split_at(domain_end.unwrap_or(site.len()));
                push(domain);
                let rest = if others.is_empty() {
                    suffix.get(1..).unwrap_or_default().to_vec()
                } else {
                    [others, suffix].concat()
                };
                push(&rest);
            }
        }
        for segment in self.segments() {
            write_tlv(out, types::GENERIC_COMPONENT, segment);
            components += 1;
        }
        components
    }
}

/// At least two labels with letters, digits, `-`, `_` and bytes that are not ASCII.
fn is_host(host: &[u8]) -> bool {
    let is_label = |label: &[u8]| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || !byte.is_ascii())
    };
    host.len() <= HOST_BYTES_MAX && host.contains(&b'.') && host.split(|&byte| byte == b'.').all(is_label)
}

/// The labels from the last to the first; an address is one label.
fn labels_reversed(host: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = is_address(host);
    host.rsplit(move |&byte| byte == b'.' && !whole)
}

/// The host before the registered domain, without its last dot; and the registered domain.
fn split_at_site(host: &[u8]) -> (&[u8], &[u8]) {
    if is_address(host) {
        return (b"", host);
    }
    let mut labels = host.rsplit(|&byte| byte == b'.');
    let (last, second) = (labels.next().unwrap_or_default(), labels.next().unwrap_or_default());
    let with_category = last.len() == 2 && CATEGORIES.contains(&second);
    let taken = if with_category { 3 } else { 2 };
    let site_bytes: usize = host.rsplit(|&byte| byte == b'.').take(taken).map(|label| label.len() + 1).sum();
    match host.len().checked_sub(site_bytes) {
        Some(others) => (&host[..others], &host[others + 1..]),
        None => (b"", host),
    }
}

fn is_address(host: &[u8]) -> bool {
    std::str::from_utf8(host).is_ok_and(|host| host.parse::<Ipv4Addr>().is_ok())
}

fn without_query(text: &[u8]) -> &[u8] {
    text.split(|byte| b"?#".contains(byte)).next().unwrap_or_default()
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::Name;

    fn uri(record: &str, conversion: NameConversion) -> String {
        let url = Url::parse(record.as_bytes()).unwrap_or_else(|| panic!("{record} begins with a host"));
        let mut name = Vec::new();
        let components = url.write_name(conversion, &mut name);
        let name = Name::parse_value(&name).expect("a name");
        assert_eq!(components, name.len());
        name.to_string()
    }

    #[test]
    fn the_papers_examples_come_out() {
        for (record, conversion, name) in [
            ("http://www.named-data.net/project/", NameConversion::Tld, "/net/named-data/www/project"),
            ("http://www.named-data.net/project/", NameConversion::Site, "/named-data.net/www/project"),
            ("http://www.named-data.net/project/", NameConversion::Host, "/www.named-data.net/project"),
            ("www.google.com/new", NameConversion::Domain, "/google/www.com/new"),
            ("https://www.google.com/new", NameConversion::Protocol, "/https/com/google/www/new"),
        ] {
            assert_eq!(uri(record, conversion), name);
        }
    }

    #[test]
    fn the_site_has_a_customary_category_under_a_country() {
        for (record, site, domain) in [
            ("a.b.shop.co.uk", "/shop.co.uk/b/a", "/shop/a.b.co.uk"),
            ("shop.co.uk", "/shop.co.uk", "/shop/co.uk"),
            ("co.uk", "/co.uk", "/co/uk"),
            ("a.co.com", "/co.com/a", "/co/a.com"),
            ("10.0.0.1/x", "/10.0.0.1/x", "/10.0.0.1/x"),
        ] {
            assert_eq!(uri(record, NameConversion::Site), site);
            assert_eq!(uri(record, NameConversion::Domain), domain);
        }
        assert_eq!(uri("10.0.0.1/x", NameConversion::Tld), "/10.0.0.1/x");
    }

    #[test]
    fn only_host_and_path_are_kept() {
        assert_eq!(
            uri("ftp://me:pw@WWW.Example.com.:8080//A//b.html?q=/x#f", NameConversion::Host),
            "/www.example.com/A/b.html"
        );
        assert_eq!(uri("example.com?x=http://y.z/", NameConversion::Tld), "/com/example");
        for no_host in ["", "/", "src/main.c", "..", "a..b/c", ".github/x.yml", "localhost/x", "a b.c/d", "?a.b"] {
            assert_eq!(Url::parse(no_host.as_bytes()), None, "{no_host}");
        }
        let mut name = Vec::new();
        let path = Url::path_only(b"/src//main.c?x");
        for conversion in [NameConversion::Tld, NameConversion::Site, NameConversion::Host, NameConversion::Domain] {
            assert_eq!(path.write_name(conversion, &mut name), 2);
            assert_eq!(name, b"\x08\x03src\x08\x06main.c");
        }
    }
}
