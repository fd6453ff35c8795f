//! The text of a frame: a part for each header, and the packet.

use crate::text;
use namewire_capture::link_type::{self, ethertype};
use namewire_packet::{
    Data, Interest, NameBuf, PacketError,
    lp::LpPacket,
    tlv::{self, types},
};
use std::{
    fmt::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

const NO_NEXT_HEADER: u8 = 59;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// What ndnSIM puts into PPP frames, and how many bytes it leaves before the packet.
const PPP_NDNSIM: u16 = 0x0077;
const PPP_NDNSIM_GAP_BYTES: usize = 2;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const TCP_HEADER_BYTES: usize = 20;
const UDP_HEADER_BYTES: usize = 8;

/// What a frame says.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) text: String,
    /// Of its Interest or Data.
    pub(super) name: Option<NameBuf>,
    /// It carries no byte of NDN: an acknowledgement of TCP, for example.
    pub(super) is_empty: bool,
}

impl Layers {
    pub(super) fn of(link: u16, frame: &[u8]) -> Self {
        let mut layers = Layers::default();
        layers.link(link, frame);
        layers
    }

    /// A part of the line. What comes before an empty text gets no comma.
    fn part(&mut self, text: std::fmt::Arguments<'_>) {
        let comma = if self.text.is_empty() { "" } else { ", " };
        self.add(format_args!("{comma}{text}"));
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        let written = self.text.write_fmt(text);
        debug_assert!(written.is_ok(), "a String takes everything");
    }

    fn link(&mut self, link: u16, frame: &[u8]) {
        if link == link_type::PPP {
            return self.ppp(frame);
        }
        let (ethertype, packet) = match link_type::network(link, frame) {
            Ok(network) => network,
            Err(_) => {
                let kind = if link == link_type::ETHERNET { "Ethernet" } else { "LINUX_SLL" };
                return self.part(format_args!("Truncated {kind} frame, length {}", frame.len()));
            }
        };
        match ethertype {
            ethertype::IPV4 => self.ipv4(packet),
            ethertype::IPV6 => self.ipv6(packet),
            ethertype::NDN | ethertype::NDNSIM => {
                self.part(format_args!("Ethernet"));
                self.ndn(packet);
            }
            other => self.part(format_args!("[Unsupported ethertype {other:#x}]")),
        }
    }

    fn ppp(&mut self, frame: &[u8]) {
        match link_type::ppp(frame) {
            Err(_) => self.part(format_args!("Truncated PPP frame, length {}", frame.len())),
            Ok((PPP_NDNSIM, rest)) => match rest.get(PPP_NDNSIM_GAP_BYTES..) {
                None => self.part(format_args!("Truncated NDN/PPP frame")),
                Some(packet) => {
                    self.part(format_args!("PPP"));
                    self.ndn(packet);
                }
            },
            Ok((other, _)) => self.part(format_args!("[Unsupported PPP proto {other:#x}]")),
        }
    }

    fn ipv4(&mut self, packet: &[u8]) {
        let length = packet.len();
        self.part(format_args!("IP "));
        if length < IPV4_HEADER_BYTES {
            return self.add(format_args!("truncated header, length {length}"));
        }
        let version = packet[0] >> 4;
        if version != 4 {
            return self.add(format_args!("bad version {version}"));
        }
        let header_bytes = usize::from(packet[0] & 0x0F) * 4;
        if header_bytes < IPV4_HEADER_BYTES {
            return self.add(format_args!("bad header length {header_bytes}"));
        }
        let packet_bytes = usize::from(word(packet, 2));
        if packet_bytes < header_bytes {
            return self.add(format_args!("bad length {packet_bytes}"));
        }
        if packet_bytes > length {
            return self.add(format_args!("truncated packet, {} bytes missing", packet_bytes - length));
        }
        let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
        self.addresses(address(12).into(), address(16).into());
        self.transport(packet[9], &packet[header_bytes..]);
    }

    fn ipv6(&mut self, packet: &[u8]) {
        let length = packet.len();
        self.part(format_args!("IP6 "));
        let Some((header, rest)) = packet.split_at_checked(IPV6_HEADER_BYTES) else {
            return self.add(format_args!("truncated header, length {length}"));
        };
        let version = header[0] >> 4;
        if version != 6 {
            return self.add(format_args!("bad version {version}"));
        }
        let payload_bytes = usize::from(word(header, 4));
        if payload_bytes > rest.len() {
            return self.add(format_args!("truncated payload, {} bytes missing", payload_bytes - rest.len()));
        }
        let address = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&header[at..at + 16]).unwrap_or_default());
        self.addresses(address(8).into(), address(24).into());
        self.transport(header[6], rest);
    }

    fn addresses(&mut self, from: IpAddr, to: IpAddr) {
        self.add(format_args!("{from} > {to}"));
    }

    fn transport(&mut self, protocol: u8, bytes: &[u8]) {
        match protocol {
            NO_NEXT_HEADER => self.part(format_args!("[No next header]")),
            TCP => self.tcp(bytes),
            UDP => self.udp(bytes),
            other => self.part(format_args!("[Unsupported IP proto {other}]")),
        }
    }

    fn tcp(&mut self, segment: &[u8]) {
        let length = segment.len();
        self.part(format_args!("TCP"));
        if length < TCP_HEADER_BYTES {
            return self.add(format_args!(" truncated header, length {length}"));
        }
        let header_bytes = usize::from(segment[12] >> 4) * 4;
        if header_bytes < TCP_HEADER_BYTES {
            return self.add(format_args!(" bad header length {header_bytes}"));
        }
        match segment.get(header_bytes..) {
            None => self.add(format_args!(" truncated header, {} bytes missing", header_bytes - length)),
            Some(payload) => self.payload(payload),
        }
    }

    fn udp(&mut self, datagram: &[u8]) {
        let length = datagram.len();
        self.part(format_args!("UDP"));
        if length < UDP_HEADER_BYTES {
            return self.add(format_args!(" truncated header, length {length}"));
        }
        let datagram_bytes = usize::from(word(datagram, 4));
        if datagram_bytes < UDP_HEADER_BYTES {
            return self.add(format_args!(" bad length {datagram_bytes}"));
        }
        match datagram.get(UDP_HEADER_BYTES..datagram_bytes) {
            None => self.add(format_args!(" truncated packet, {} bytes missing", datagram_bytes - length)),
            Some(payload) => self.payload(payload),
        }
    }

    fn payload(&mut self, payload: &[u8]) {
        self.part(format_args!("length {}", payload.len()));
        self.ndn(payload);
    }

    fn ndn(&mut self, bytes: &[u8]) {
        self.is_empty = bytes.is_empty();
        if self.is_empty {
            return;
        }
        let Ok(element) = tlv::read_element(bytes) else {
            return self.part(format_args!("NDN truncated packet, length {}", bytes.len()));
        };
        if element.type_number != types::LP_PACKET {
            return self.packet(element.wire, None);
        }
        self.part(format_args!("NDNLPv2"));
        let lp = match LpPacket::parse(element.wire) {
            Ok(lp) => lp,
            Err(error) => {
                let words = link_words(&error, element.value);
                return self.add(format_args!(" invalid packet: {words}"));
            }
        };
        match lp.fragment {
            None => self.add(format_args!(" idle")),
            Some(fragment) => match tlv::read_element(fragment) {
                Ok(packet) => self.packet(packet.wire, lp.headers.nack),
                Err(_) => self.add(format_args!(" fragment")),
            },
        }
    }

    /// An element, and the reason if it came as a Nack.
    fn packet(&mut self, wire: &[u8], nack: Option<namewire_packet::NackReason>) {
        let type_number = tlv::read_element(wire).map_or(0, |element| element.type_number);
        let read = match type_number {
            types::INTEREST => Interest::parse(wire).map(|interest| {
                let text = text::interest(&interest);
                let kind = nack.map_or_else(|| "INTEREST".to_owned(), |reason| format!("NACK ({reason})"));
                (interest.name().to_buf(), format!("{kind}: {text}"))
            }),
            types::DATA => Data::parse(wire).map(|data| (data.name().to_buf(), format!("DATA: {}", data.name()))),
            other => return self.part(format_args!("[Unsupported NDN packet type {other}]")),
        };
        match read {
            Ok((name, text)) => {
                self.part(format_args!("{text}"));
                self.name = Some(name);
            }
            Err(error) => {
                let words = packet_words(&error, wire, type_number);
                self.part(format_args!("invalid network packet: {words}"));
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// ndn-cxx's words for what is wrong with an LpPacket of this value.
fn link_words(error: &PacketError, value: &[u8]) -> String {
    if let Some(words) = overlong(value) {
        return words;
    }
    match error {
        PacketError::UnexpectedCritical(number) => format!("unrecognized field {number} cannot be ignored"),
        error => error.to_string(),
    }
}

/// ndn-cxx's words for what is wrong with an Interest or Data.
fn packet_words(error: &PacketError, wire: &[u8], type_number: u32) -> String {
    let value = tlv::read_element(wire).map_or(&[][..], |element| element.value);
    if let Some(words) = overlong(value) {
        return words;
    }
    let is_name_first = tlv::read_element(value).is_ok_and(|first| first.type_number == types::NAME);
    match error {
        _ if !is_name_first => "Name element is missing or out of order".to_owned(),
        PacketError::UnexpectedCritical(number) => match element_word(*number, type_number) {
            Some(word) => format!("{word} element is out of order"),
            None => format!("Unrecognized element of critical type {number}"),
        },
        PacketError::Missing(types::SIGNATURE_TYPE) => "Missing SignatureType in SignatureInfo".to_owned(),
        PacketError::Missing(number) => match element_word(*number, type_number) {
            Some(word) => format!("{word} element is missing"),
            None => error.to_string(),
        },
        PacketError::BadValue(types::NAME) => "Name has zero name components".to_owned(),
        PacketError::BadValue(number @ (types::NONCE | types::HOP_LIMIT)) => {
            format!("{} element is malformed", element_word(*number, type_number).unwrap_or_default())
        }
        error => error.to_string(),
    }
}

/// An element that does not end within this value.
fn overlong(mut value: &[u8]) -> Option<String> {
    while !value.is_empty() {
        match tlv::read_element(value) {
            Ok(element) => value = &value[element.wire.len()..],
            Err(_) => {
                let (number, bytes) = tlv::read_var_number(value).ok()?;
                let length = tlv::read_var_number(&value[bytes..]).ok();
                return Some(match length {
                    Some(_) => {
                        format!("TLV-LENGTH of sub-element of type {number} exceeds TLV-VALUE boundary of parent block")
                    }
                    None => "Insufficient data during TLV parsing".to_owned(),
                });
            }
        }
    }
    None
}

/// The name of an element that an Interest, or a Data, may have.
fn element_word(number: u32, type_number: u32) -> Option<&'static str> {
    let words: &[(u32, &str)] = match type_number {
        types::INTEREST => &[
            (types::CAN_BE_PREFIX, "CanBePrefix"),
            (types::MUST_BE_FRESH, "MustBeFresh"),
            (types::FORWARDING_HINT, "ForwardingHint"),
            (types::NONCE, "Nonce"),
            (types::INTEREST_LIFETIME, "InterestLifetime"),
            (types::HOP_LIMIT, "HopLimit"),
        ],
        _ => &[
            (types::META_INFO, "MetaInfo"),
            (types::CONTENT, "Content"),
            (types::SIGNATURE_INFO, "SignatureInfo"),
            (types::SIGNATURE_VALUE, "SignatureValue"),
        ],
    };
    words.iter().find(|(known, _)| *known == number).map(|(_, word)| *word)
}
