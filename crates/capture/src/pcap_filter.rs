//! Filters of frames in the language of pcap-filter(7), as far as this program knows it.
//!
//! ```text
//! filter    = term { ("and" | "&&" | "or" | "||") term }       from left to right: the two bind alike
//! term      = ("not" | "!") term | "(" filter ")" | primitive
//! primitive = "ip" | "ip6" | "arp" | "tcp" | "udp"
//!           | ["tcp" | "udp"] ["src" | "dst"] "port" NUMBER
//!           | ["ip" | "ip6"] ["src" | "dst"] "host" ADDRESS
//!           | "ether" "proto" NUMBER
//! ```
//!
//! Other primitives are refused by their first word. As compiled filters of libpcap do, this reads no extension headers
//! of IPv6, and finds ports in the first fragment of an IPv4 packet only.
//!
//! N.B. libpcap compiles the whole language. It is a C library, and our program is also built without any.

use crate::link_type::{self, ethertype};
use std::{fmt, net::IpAddr};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
/// Words nest no deeper.
const DEPTH_MAX: usize = 64;

/// Takes some frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PcapFilter {
    /// All frames.
    All,
    /// Frames with this EtherType.
    EtherType(u16),
    /// IP packets with this protocol.
    Protocol(u8),
    /// Packets from or to a port.
    Port {
        /// TCP or UDP; `None`: any that has ports.
        protocol: Option<u8>,
        /// Which ports count.
        end: End,
        /// The number.
        port: u16,
    },
    /// Packets from or to an address, and for IPv4 also ARP.
    Host {
        /// Which addresses count.
        end: End,
        /// The address.
        address: IpAddr,
    },
    /// Other frames.
    Not(Box<PcapFilter>),
    /// Frames that both take.
    And(Box<PcapFilter>, Box<PcapFilter>),
    /// Frames that one takes.
    Or(Box<PcapFilter>, Box<PcapFilter>),
}

/// Which end of a path counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Either.
    Any,
    /// Where the packet comes from.
    Source,
    /// Where it goes.
    Destination,
}

impl End {
    fn takes(self, is_source: bool, is_destination: bool) -> bool {
        match self {
            End::Any => is_source || is_destination,
            End::Source => is_source,
            End::Destination => is_destination,
        }
    }
}

/// What a filter cannot say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// The words make no sense.
    Syntax,
    /// Ports belong to TCP and UDP, not to IP.
    IllegalQualifier,
    /// This word may make sense to libpcap.
    Unsupported(String),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Syntax => f.write_str("can't parse filter expression: syntax error"),
            FilterError::IllegalQualifier => f.write_str("illegal qualifier of 'port'"),
            FilterError::Unsupported(word) => write!(
                f,
                "'{word}' is not supported: only and, or, not, ip, ip6, arp, tcp, udp, [src|dst] port, [src|dst] host, and \
                 ether proto are"
            ),
        }
    }
}

impl std::str::FromStr for PcapFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let words = words(text);
        if words.is_empty() {
            return Ok(PcapFilter::All);
        }
        let mut reader = WordReader { words: &words, at: 0, depth: 0 };
        let filter = reader.filter()?;
        if reader.at < words.len() { Err(FilterError::Syntax) } else { Ok(filter) }
    }
}

/// Parentheses and signs are words, whether there are blanks around them or not.
fn words(text: &str) -> Vec<String> {
    let spaced =
        ["(", ")", "!", "&&", "||"].iter().fold(text.to_owned(), |text, sign| text.replace(sign, &format!(" {sign} ")));
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct WordReader<'a> {
    words: &'a [String],
    at: usize,
    depth: usize,
}

impl WordReader<'_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    fn next(&mut self) -> Result<String, FilterError> {
        let word = self.peek().map(str::to_owned).ok_or(FilterError::Syntax)?;
        self.at += 1;
        Ok(word)
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        self.at += usize::from(is_next);
        is_next
    }

    fn filter(&mut self) -> Result<PcapFilter, FilterError> {
        let mut left = self.term()?;
        loop {
            if self.takes("and") || self.takes("&&") {
                left = PcapFilter::And(Box::new(left), Box::new(self.term()?));
            } else if self.takes("or") || self.takes("||") {
                left = PcapFilter::Or(Box::new(left), Box::new(self.term()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn term(&mut self) -> Result<PcapFilter, FilterError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(FilterError::Syntax);
        }
        let term = if self.takes("not") || self.takes("!") {
            PcapFilter::Not(Box::new(self.term()?))
        } else if self.takes("(") {
            let filter = self.filter()?;
            if !self.takes(")") {
                return Err(FilterError::Syntax);
            }
            filter
        } else {
            self.primitive()?
        };
        self.depth -= 1;
        Ok(term)
    }

    fn primitive(&mut self) -> Result<PcapFilter, FilterError> {
        let first = self.next()?;
        let kind = match first.as_str() {
            "ether" if self.takes("proto") => return self.number().map(PcapFilter::EtherType),
            "arp" => return Ok(PcapFilter::EtherType(ethertype::ARP)),
            "ip" => Some(PcapFilter::EtherType(ethertype::IPV4)),
            "ip6" => Some(PcapFilter::EtherType(ethertype::IPV6)),
            "tcp" => Some(PcapFilter::Protocol(TCP)),
            "udp" => Some(PcapFilter::Protocol(UDP)),
            "src" | "dst" | "port" | "host" => {
                self.at -= 1;
                None
            }
            _ => return Err(FilterError::Unsupported(first)),
        };
        let end = if self.takes("src") {
            End::Source
        } else if self.takes("dst") {
            End::Destination
        } else {
            End::Any
        };
        let of_kind = |other: PcapFilter| match &kind {
            Some(kind) => PcapFilter::And(Box::new(kind.clone()), Box::new(other)),
            None => other,
        };
        if self.takes("port") {
            let port = self.number()?;
            return match kind {
                Some(PcapFilter::EtherType(_)) => Err(FilterError::IllegalQualifier),
                Some(PcapFilter::Protocol(protocol)) => Ok(PcapFilter::Port { protocol: Some(protocol), end, port }),
                _ => Ok(PcapFilter::Port { protocol: None, end, port }),
            };
        }
        if self.takes("host") {
            let word = self.next()?;
            let address = word.parse().map_err(|_| FilterError::Unsupported(format!("host {word}")))?;
            return Ok(of_kind(PcapFilter::Host { end, address }));
        }
        match (kind, self.peek()) {
            (Some(kind), None | Some("and" | "&&" | "or" | "||" | ")")) if end == End::Any => Ok(kind),
            (_, Some(word)) => Err(FilterError::Unsupported(format!("{first} {word}"))),
            _ => Err(FilterError::Syntax),
        }
    }

    /// A number, decimal or hexadecimal.
    fn number(&mut self) -> Result<u16, FilterError> {
        let word = self.next()?;
        let number = match word.strip_prefix("0x") {
            Some(digits) => u16::from_str_radix(digits, 16),
            None => word.parse(),
        };
        number.map_err(|_| FilterError::Unsupported(word))
    }
}

impl PcapFilter {
    /// Whether the frame, from a link of this type, is taken.
    pub fn takes(&self, link: u16, frame: &[u8]) -> bool {
        if *self == PcapFilter::All {
            return true;
        }
        match link_type::network(link, frame) {
            Ok((ethertype, packet)) => self.takes_packet(&Headers::of(ethertype, packet)),
            Err(_) => false,
        }
    }

    fn takes_packet(&self, headers: &Headers) -> bool {
        match self {
            PcapFilter::All => true,
            PcapFilter::EtherType(number) => headers.ethertype == *number,
            PcapFilter::Protocol(number) => headers.protocol == Some(*number),
            PcapFilter::Port { protocol, end, port } => {
                let is_its = protocol.is_none_or(|number| headers.protocol == Some(number));
                let ports = headers.ports.filter(|_| is_its);
                ports.is_some_and(|(source, destination)| end.takes(source == *port, destination == *port))
            }
            PcapFilter::Host { end, address } => headers
                .addresses
                .is_some_and(|(source, destination)| end.takes(source == *address, destination == *address)),
            PcapFilter::Not(other) => !other.takes_packet(headers),
            PcapFilter::And(left, right) => left.takes_packet(headers) && right.takes_packet(headers),
            PcapFilter::Or(left, right) => left.takes_packet(headers) || right.takes_packet(headers),
        }
    }
}

/// What a filter asks about.
#[derive(Default)]
struct Headers {
    ethertype: u16,
    addresses: Option<(IpAddr, IpAddr)>,
    protocol: Option<u8>,
    ports: Option<(u16, u16)>,
}

impl Headers {
    fn of(ethertype: u16, packet: &[u8]) -> Self {
        let mut headers = Headers { ethertype, ..Headers::default() };
        match ethertype {
            ethertype::IPV4 => headers.read_ipv4(packet),
            ethertype::IPV6 => headers.read_ipv6(packet),
            ethertype::ARP => headers.addresses = address::<4>(packet, 14).zip(address::<4>(packet, 24)),
            _ => {}
        }
        headers
    }

    fn read_ipv4(&mut self, packet: &[u8]) {
        self.addresses = address::<4>(packet, 12).zip(address::<4>(packet, 16));
        self.protocol = packet.get(9).copied();
        let is_later_fragment = word(packet, 6).is_some_and(|word| word & 0x1FFF != 0);
        if !is_later_fragment {
            let header_bytes = packet.first().map_or(0, |first| usize::from(first & 0x0F) * 4);
            self.read_ports(packet, header_bytes);
        }
    }

    fn read_ipv6(&mut self, packet: &[u8]) {
        self.addresses = address::<16>(packet, 8).zip(address::<16>(packet, 24));
        self.protocol = packet.get(6).copied();
        self.read_ports(packet, 40);
    }

    fn read_ports(&mut self, packet: &[u8], at: usize) {
        if self.protocol.is_some_and(|protocol| [TCP, UDP, SCTP].contains(&protocol)) {
            self.ports = word(packet, at).zip(word(packet, at + 2));
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|word| u16::from_be_bytes([word[0], word[1]]))
}

fn address<const BYTES: usize>(packet: &[u8], at: usize) -> Option<IpAddr>
where
    IpAddr: From<[u8; BYTES]>,
{
    let bytes: [u8; BYTES] = packet.get(at..at + BYTES)?.try_into().ok()?;
    Some(IpAddr::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An Ethernet frame with an IPv4 packet from 10.0.0.1 to 10.0.0.2.
    fn ipv4(protocol: u8, fragment: u16, ports: [u16; 2]) -> Vec<u8> {
        let mut frame = [&[0; 12][..], &[8, 0, 0x45, 0, 0, 24, 0, 0]].concat();
        frame.extend(fragment.to_be_bytes());
        frame.extend([1, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(ports.map(u16::to_be_bytes).as_flattened());
        frame
    }

    fn takes(filter: &str, frame: &[u8]) -> bool {
        filter.parse::<PcapFilter>().unwrap().takes(link_type::ETHERNET, frame)
    }

    #[test]
    fn frames_are_taken_by_their_headers() {
        let udp = ipv4(UDP, 0, [6363, 9000]);
        for filter in [
            "",
            "ip",
            "udp",
            "port 6363",
            "udp port 9000",
            "src port 6363",
            "udp dst port 9000",
            "host 10.0.0.2",
            "ip src host 10.0.0.1",
            "not tcp",
            "!(tcp or ip6)",
            "ether proto 0x0800",
            "ether proto 2048 && udp",
        ] {
            assert!(takes(filter, &udp), "{filter}");
        }
        for filter in ["ip6", "arp", "tcp port 6363", "dst port 6363", "dst host 10.0.0.1", "port 80", "not udp"] {
            assert!(!takes(filter, &udp), "{filter}");
        }
        assert!(!takes("port 6363", &ipv4(UDP, 7, [6363, 9000])), "no ports in a later fragment");
        assert!(takes("udp", &ipv4(UDP, 7, [0, 0])));
        assert!(takes("port 6363", &ipv4(SCTP, 0, [6363, 1])));
        let ipv6 =
            [&[0; 12][..], &[0x86, 0xDD, 0x60, 0, 0, 0, 0, 4, TCP, 1], &[0; 31], &[1], &[0x18, 0xDB, 0, 1]].concat();
        assert!(takes("tcp src port 6363 and host ::1", &ipv6));
    }

    #[test]
    fn and_binds_as_or_does() {
        // (udp or tcp) and port 1, unlike in most languages.
        assert!(!takes("udp or tcp and port 1", &ipv4(UDP, 0, [2, 3])));
        assert!(takes("tcp and port 1 or udp", &ipv4(UDP, 0, [2, 3])));
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        let error = |filter: &str| filter.parse::<PcapFilter>().unwrap_err();
        assert_eq!(error("net 10.0.0.0/8"), FilterError::Unsupported("net".to_owned()));
        assert_eq!(error("tcp[13] & 2 != 0"), FilterError::Unsupported("tcp[13]".to_owned()));
        assert_eq!(error("udp portrange 1-2"), FilterError::Unsupported("udp portrange".to_owned()));
        assert_eq!(error("host example.net"), FilterError::Unsupported("host example.net".to_owned()));
        assert_eq!(error("ip port 1"), FilterError::IllegalQualifier);
        assert_eq!(error("port http"), FilterError::Unsupported("http".to_owned()));
        for filter in ["(", "udp and", "(udp", "udp )", "not", "src"] {
            assert_eq!(error(filter), FilterError::Syntax, "{filter}");
        }
        assert!("(".repeat(100_000).parse::<PcapFilter>().is_err());
    }

    proptest! {
        #[test]
        fn any_frame_is_judged(frame in prop::collection::vec(any::<u8>(), 0..80), link in 0u16..120) {
            let filter: PcapFilter = "port 1 or host ::1 or host 1.2.3.4 or ether proto 1".parse().unwrap();
            let _ = filter.takes(link, &frame);
        }

        #[test]
        fn any_text_is_read(text in "[a-z0-9 ()!&|]{0,40}") {
            let _ = text.parse::<PcapFilter>();
        }
    }
}
