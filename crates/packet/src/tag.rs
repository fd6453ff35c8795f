//! Tag packets: the packets that TagNet adds to those of NDN, as a view and a builder.
//!
//! Source: TagNet16 §2.1: push, pull and reply; by descriptor or by locator; a fan-out limit. The encoding is ours. NDN
//! leaves types above 32767 to applications; an NDN forwarder that does not know them drops the packet. Inside, types
//! follow NDN's rule: a reader ignores unknown elements with an even type, and refuses those with an odd one.
//!
//! ```text
//! TagPacket  = (39425 push | 39427 pull | 39429 reply) LENGTH
//!                Nonce       10     4 bytes   one for each packet; a reply repeats the request's nonce
//!                HopLimit    34     1 byte    each router subtracts 1; 0 may only go to applications
//!                Tree        39433  6 bytes   number of the tree (2), epoch of its labels (4)
//!                FanOut?     39435  4 bytes   most deliveries; without it, a push goes to all, a pull to one
//!                Address
//!                ReplyTo?    39443  as Locator: where a reply goes, in the same tree
//!                Payload?    39445  bytes of the application
//! Address    = Descriptor    39437  24 bytes  the Bloom filter, bit 0 in the lowest bit of the first byte
//!              Tags          39439  Tag* 39447: 1 to 64 bytes of UTF-8 each; ascending, each tag once, at most 16
//!            | Locator       39441  4 bytes endpoint, then 1 to 12 bytes label
//! ```
//!
//! Nonce, HopLimit and FanOut have fixed sizes, so that a router changes them in place. The filter's bits are in
//! `namewire_tagnet::descriptor`, the label's in `namewire_tagnet::locator`. This module treats both as bytes.
//!
//! Limits: [`crate::MAX_PACKET_BYTES`] for a packet; [`MAX_TAGS`]; [`MAX_TAG_BYTES`]; [`MAX_LABEL_BYTES`].

use crate::tlv::{self, Element, Reader, TlvError, offset_in, read_element, types};

/// Type numbers of tag packets.
pub mod tag_types {
    #![allow(missing_docs)] // the names of the grammar above
    pub const PUSH: u32 = 39425;
    pub const PULL: u32 = 39427;
    pub const REPLY: u32 = 39429;
    pub const TREE: u32 = 39433;
    pub const FAN_OUT: u32 = 39435;
    pub const DESCRIPTOR: u32 = 39437;
    pub const TAGS: u32 = 39439;
    pub const LOCATOR: u32 = 39441;
    pub const REPLY_TO: u32 = 39443;
    pub const PAYLOAD: u32 = 39445;
    pub const TAG: u32 = 39447;
    /// Between routers: `namewire_tagnet::routing`. 39449 was a hello without an age.
    pub const HELLO: u32 = 39453;
    /// Between routers: `namewire_tagnet::routing`.
    pub const ANNOUNCEMENTS: u32 = 39451;
    /// Between routers: one of the two above, in a tree with a key.
    pub const ENVELOPE: u32 = 39455;
}

/// What an element with one of our types is, as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagFrame {
    /// A push, a pull or a reply.
    Packet,
    /// What routers tell each other.
    Routing,
}

impl TagFrame {
    /// Looks at the type number alone; `None` if it is none of ours.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let &[253, high, low, ..] = frame else { return None };
        match u32::from(u16::from_be_bytes([high, low])) {
            tag_types::PUSH | tag_types::PULL | tag_types::REPLY => Some(TagFrame::Packet),
            tag_types::HELLO | tag_types::ANNOUNCEMENTS | tag_types::ENVELOPE => Some(TagFrame::Routing),
            _ => None,
        }
    }
}

/// Bytes of a descriptor: 192 bits.
pub const DESCRIPTOR_BYTES: usize = 24;
/// Most tags of a packet or an advertisement.
pub const MAX_TAGS: usize = 16;
/// Most bytes of a tag.
pub const MAX_TAG_BYTES: usize = 64;
/// Most bytes of a label.
pub const MAX_LABEL_BYTES: usize = 12;

/// What a tag packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TagPacketKind {
    /// Carries content to every application that wants it.
    Push,
    /// Asks for content.
    Pull,
    /// Answers a pull.
    Reply,
}

impl TagPacketKind {
    /// The type number of the packet.
    pub const fn type_number(self) -> u32 {
        match self {
            TagPacketKind::Push => tag_types::PUSH,
            TagPacketKind::Pull => tag_types::PULL,
            TagPacketKind::Reply => tag_types::REPLY,
        }
    }

    /// The kind with this type number; `None` if it is no tag packet.
    pub const fn of_type(type_number: u32) -> Option<Self> {
        match type_number {
            tag_types::PUSH => Some(TagPacketKind::Push),
            tag_types::PULL => Some(TagPacketKind::Pull),
            tag_types::REPLY => Some(TagPacketKind::Reply),
            _ => None,
        }
    }
}

/// Why bytes are not a tag packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagPacketError {
    /// Malformed TLV.
    #[error(transparent)]
    Tlv(#[from] TlvError),
    /// The packet has another type, or bytes after it.
    #[error("not one tag packet")]
    NotTagPacket,
    /// An element is missing, of a wrong size, repeated, out of order or unknown and critical.
    #[error("element {0} is missing, malformed or out of order")]
    BadElement(u32),
    /// The tags are not in ascending order, too many, too long, empty or not UTF-8.
    #[error("the tags are not 1 to 64 bytes of UTF-8 each, in ascending order, at most 16")]
    BadTags,
}

/// A tree and the epoch of its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeEpoch {
    /// The number of the tree.
    pub tree: u16,
    /// Labels of one epoch mean nothing in another.
    pub epoch: u32,
}

/// One application in a tree: the label of its router, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place<'a> {
    /// The application, by the number that its router gave it.
    pub endpoint: u32,
    /// The router's label, 1 to [`MAX_LABEL_BYTES`] bytes.
    pub label: &'a [u8],
}

impl<'a> Place<'a> {
    fn parse(element: Element<'a>) -> Result<Self, TagPacketError> {
        match element.value.split_first_chunk::<4>() {
            Some((endpoint, label)) if (1..=MAX_LABEL_BYTES).contains(&label.len()) => {
                Ok(Place { endpoint: u32::from_be_bytes(*endpoint), label })
            }
            _ => Err(TagPacketError::BadElement(element.type_number)),
        }
    }

    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_nested(out, type_number, |out| {
            out.extend_from_slice(&self.endpoint.to_be_bytes());
            out.extend_from_slice(self.label);
        });
    }
}

/// The tags of a descriptor. They are ascending and within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags<'a> {
    elements: &'a [u8],
}

impl<'a> Tags<'a> {
    /// Reads the value of a Tags element.
    ///
    /// # Errors
    /// If the tags are not as the grammar has them.
    pub fn parse(elements: &'a [u8]) -> Result<Self, TagPacketError> {
        let mut reader = Reader::new(elements);
        let (mut before, mut count) = ("", 0);
        while let Some(element) = reader.next_element()? {
            if element.type_number != tag_types::TAG {
                return Err(TagPacketError::BadElement(element.type_number));
            }
            let tag = std::str::from_utf8(element.value).map_err(|_| TagPacketError::BadTags)?;
            count += 1;
            // An empty tag is not above the one before it.
            if tag.len() > MAX_TAG_BYTES || tag <= before || count > MAX_TAGS {
                return Err(TagPacketError::BadTags);
            }
            before = tag;
        }
        Ok(Tags { elements })
    }

    /// The tags in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut reader = Reader::new(self.elements);
        // Checked when the packet was parsed.
        std::iter::from_fn(move || reader.next_element().ok()?.and_then(|tag| std::str::from_utf8(tag.value).ok()))
    }
}

/// Tags that are kept: ascending and within the limits, as [`Tags`] are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TagList(Vec<String>);

impl TagList {
    /// These tags.
    ///
    /// # Errors
    /// If they are not ascending and within the limits.
    pub fn new<'a>(tags: impl IntoIterator<Item = &'a str>) -> Result<Self, TagPacketError> {
        let mut elements = Vec::new();
        tags.into_iter().for_each(|tag| tlv::write_tlv(&mut elements, tag_types::TAG, tag.as_bytes()));
        Tags::parse(&elements).map(TagList::from)
    }

    /// The tags in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The number of tags.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without tags.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the value of a Tags element.
    pub fn write_value(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|tag| tlv::write_tlv(out, tag_types::TAG, tag.as_bytes()));
    }
}

impl From<Tags<'_>> for TagList {
    fn from(tags: Tags<'_>) -> Self {
        TagList(tags.iter().map(str::to_owned).collect())
    }
}

/// The destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagAddress<'a> {
    /// Applications that advertised a subset of these tags.
    Descriptor {
        /// The Bloom filter of the tags, as the packet says.
        filter: &'a [u8; DESCRIPTOR_BYTES],
        /// The tags.
        tags: Tags<'a>,
    },
    /// One application.
    Locator(Place<'a>),
}

/// A tag packet, checked. Accessors read no byte again.
#[derive(Clone, Copy, Debug)]
pub struct TagPacket<'a> {
    /// What it is for.
    pub kind: TagPacketKind,
    /// Chosen at random by the sender.
    pub nonce: u32,
    /// Links that it may still cross.
    pub hop_limit: u8,
    /// The tree along which it travels.
    pub tree: TreeEpoch,
    /// Most deliveries, if limited.
    pub fan_out: Option<u32>,
    /// Its destination.
    pub address: TagAddress<'a>,
    /// Where a reply goes.
    pub reply_to: Option<Place<'a>>,
    /// Bytes of the application.
    pub payload: &'a [u8],
    /// Where the hop limit is in the packet.
    hop_limit_at: u32,
    /// Where the four bytes of the fan-out are in the packet; 0 without one.
    fan_out_at: u32,
}

/// Reads the elements of a packet in their order.
struct Fields<'a> {
    reader: Reader<'a>,
    next: Option<Element<'a>>,
}

impl<'a> Fields<'a> {
    fn new(value: &'a [u8]) -> Result<Self, TagPacketError> {
        let mut fields = Fields { reader: Reader::new(value), next: None };
        fields.advance()?;
        Ok(fields)
    }

    /// Goes to the next element that is critical or that a reader knows.
    fn advance(&mut self) -> Result<(), TagPacketError> {
        self.next = self.reader.next_element()?;
        while self.next.is_some_and(|element| is_ignored(element.type_number)) {
            self.next = self.reader.next_element()?;
        }
        Ok(())
    }

    /// The next element, if it has this type.
    fn take(&mut self, type_number: u32) -> Result<Option<Element<'a>>, TagPacketError> {
        let Some(element) = self.next.filter(|element| element.type_number == type_number) else { return Ok(None) };
        self.advance()?;
        Ok(Some(element))
    }

    /// The value of the next element, which must have this type and size.
    fn fixed<const N: usize>(&mut self, type_number: u32) -> Result<&'a [u8; N], TagPacketError> {
        let element = self.take(type_number)?.ok_or(TagPacketError::BadElement(type_number))?;
        element.value.try_into().map_err(|_| TagPacketError::BadElement(type_number))
    }
}

/// True for an unknown element that a reader ignores: even, and above 31 as NDN has it. Every type of ours is odd, but
/// for the two of NDN.
const fn is_ignored(type_number: u32) -> bool {
    type_number.is_multiple_of(2) && type_number > 31 && type_number != types::HOP_LIMIT
}

impl<'a> TagPacket<'a> {
    /// Reads a packet and checks all of it.
    ///
    /// # Errors
    /// If it is not one well-formed tag packet.
    pub fn parse(wire: &'a [u8]) -> Result<Self, TagPacketError> {
        let packet = read_element(wire)?;
        let kind = TagPacketKind::of_type(packet.type_number).ok_or(TagPacketError::NotTagPacket)?;
        if packet.wire.len() != wire.len() {
            return Err(TagPacketError::NotTagPacket);
        }
        let mut fields = Fields::new(packet.value)?;
        let nonce = u32::from_be_bytes(*fields.fixed(types::NONCE)?);
        let hop_limit: &[u8; 1] = fields.fixed(types::HOP_LIMIT)?;
        let [t0, t1, epoch @ ..] = *fields.fixed::<6>(tag_types::TREE)?;
        let tree = TreeEpoch { tree: u16::from_be_bytes([t0, t1]), epoch: u32::from_be_bytes(epoch) };
        let (fan_out, fan_out_at) = match fields.next.map(|element| element.type_number) {
            Some(tag_types::FAN_OUT) => {
                let bytes: &[u8; 4] = fields.fixed(tag_types::FAN_OUT)?;
                (Some(u32::from_be_bytes(*bytes)), offset_in(wire, bytes))
            }
            _ => (None, 0),
        };
        let address = parse_address(&mut fields)?;
        let reply_to = fields.take(tag_types::REPLY_TO)?.map(Place::parse).transpose()?;
        let payload = fields.take(tag_types::PAYLOAD)?.map_or(&[][..], |element| element.value);
        if let Some(surplus) = fields.next {
            return Err(TagPacketError::BadElement(surplus.type_number));
        }
        let (hop_limit_at, hop_limit) = (offset_in(wire, hop_limit), hop_limit[0]);
        Ok(TagPacket { kind, nonce, hop_limit, tree, fan_out, address, reply_to, payload, hop_limit_at, fan_out_at })
    }

    /// The same packet in another tree or epoch, with another place for replies.
    pub fn with(&self, tree: TreeEpoch, reply_to: Place<'_>) -> Vec<u8> {
        let builder = match self.address {
            TagAddress::Descriptor { filter, tags } => {
                TagPacketBuilder::by_descriptor(self.kind, tree, *filter, tags.iter())
            }
            TagAddress::Locator(place) => TagPacketBuilder::by_locator(self.kind, tree, place),
        };
        let builder = builder.nonce(self.nonce).hop_limit(self.hop_limit).reply_to(reply_to).payload(self.payload);
        match self.fan_out {
            Some(deliveries) => builder.fan_out(deliveries).build(),
            None => builder.build(),
        }
    }

    /// Writes another hop limit, and another fan-out if the packet has one, into a copy of the packet's bytes.
    ///
    /// # Panics
    /// If `copy` has not the packet's size.
    pub fn patch(&self, copy: &mut [u8], hop_limit: u8, fan_out: u32) {
        copy[self.hop_limit_at as usize] = hop_limit;
        if self.fan_out.is_some() {
            let at = self.fan_out_at as usize;
            copy[at..at + 4].copy_from_slice(&fan_out.to_be_bytes());
        }
    }
}

fn parse_address<'a>(fields: &mut Fields<'a>) -> Result<TagAddress<'a>, TagPacketError> {
    if let Some(element) = fields.take(tag_types::LOCATOR)? {
        return Ok(TagAddress::Locator(Place::parse(element)?));
    }
    let filter = fields.fixed(tag_types::DESCRIPTOR)?;
    let tags = fields.take(tag_types::TAGS)?.ok_or(TagPacketError::BadElement(tag_types::TAGS))?;
    let tags = Tags::parse(tags.value)?;
    Ok(TagAddress::Descriptor { filter, tags })
}

/// A tag packet to be written.
#[derive(Clone, Debug)]
pub struct TagPacketBuilder<'a> {
    kind: TagPacketKind,
    nonce: u32,
    hop_limit: u8,
    tree: TreeEpoch,
    fan_out: Option<u32>,
    address: Address<'a>,
    reply_to: Option<Place<'a>>,
    payload: &'a [u8],
}

#[derive(Clone, Debug)]
enum Address<'a> {
    Descriptor { filter: [u8; DESCRIPTOR_BYTES], tags: Vec<&'a str> },
    Locator(Place<'a>),
}

/// The hop limit of a new packet.
pub const DEFAULT_HOP_LIMIT: u8 = 64;

impl<'a> TagPacketBuilder<'a> {
    /// A packet for the applications that advertised a subset of these tags, which must be ascending and within the
    /// limits.
    pub fn by_descriptor(
        kind: TagPacketKind,
        tree: TreeEpoch,
        filter: [u8; DESCRIPTOR_BYTES],
        tags: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self::new(kind, tree, Address::Descriptor { filter, tags: tags.into_iter().collect() })
    }

    /// A packet for one application.
    pub fn by_locator(kind: TagPacketKind, tree: TreeEpoch, place: Place<'a>) -> Self {
        Self::new(kind, tree, Address::Locator(place))
    }

    fn new(kind: TagPacketKind, tree: TreeEpoch, address: Address<'a>) -> Self {
        let (hop_limit, payload) = (DEFAULT_HOP_LIMIT, &[][..]);
        TagPacketBuilder { kind, nonce: 0, hop_limit, tree, fan_out: None, address, reply_to: None, payload }
    }

    /// A random number; a reply repeats the request's nonce.
    #[must_use]
    pub const fn nonce(mut self, nonce: u32) -> Self {
        self.nonce = nonce;
        self
    }

    /// Links that the packet may cross.
    #[must_use]
    pub const fn hop_limit(mut self, hop_limit: u8) -> Self {
        self.hop_limit = hop_limit;
        self
    }

    /// Most deliveries.
    #[must_use]
    pub const fn fan_out(mut self, deliveries: u32) -> Self {
        self.fan_out = Some(deliveries);
        self
    }

    /// Where a reply goes.
    #[must_use]
    pub const fn reply_to(mut self, place: Place<'a>) -> Self {
        self.reply_to = Some(place);
        self
    }

    /// Bytes of the application.
    #[must_use]
    pub const fn payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = payload;
        self
    }

    /// The packet's bytes.
    pub fn build(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_nested(&mut out, self.kind.type_number(), |out| {
            tlv::write_tlv(out, types::NONCE, &self.nonce.to_be_bytes());
            tlv::write_tlv(out, types::HOP_LIMIT, &[self.hop_limit]);
            tlv::write_nested(out, tag_types::TREE, |out| {
                out.extend_from_slice(&self.tree.tree.to_be_bytes());
                out.extend_from_slice(&self.tree.epoch.to_be_bytes());
            });
            if let Some(deliveries) = self.fan_out {
                tlv::write_tlv(out, tag_types::FAN_OUT, &deliveries.to_be_bytes());
            }
            match &self.address {
                Address::Descriptor { filter, tags } => {
                    tlv::write_tlv(out, tag_types::DESCRIPTOR, filter);
                    tlv::write_nested(out, tag_types::TAGS, |out| {
                        tags.iter().for_each(|tag| tlv::write_tlv(out, tag_types::TAG, tag.as_bytes()));
                    });
                }
                Address::Locator(place) => place.write(out, tag_types::LOCATOR),
            }
            if let Some(place) = self.reply_to {
                place.write(out, tag_types::REPLY_TO);
            }
            if !self.payload.is_empty() {
                tlv::write_tlv(out, tag_types::PAYLOAD, self.payload);
            }
        });
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: TreeEpoch = TreeEpoch { tree: 3, epoch: 0x0102_0304 };
    const CONSUMER: Place<'static> = Place { endpoint: 7, label: &[1, 2, 3] };

    fn pull<'a>(tags: &'a [&'a str]) -> TagPacketBuilder<'a> {
        TagPacketBuilder::by_descriptor(TagPacketKind::Pull, TREE, [5; DESCRIPTOR_BYTES], tags.iter().copied())
            .nonce(0xAABB_CCDD)
            .fan_out(2)
            .reply_to(CONSUMER)
            .payload(b"GET")
    }

    #[test]
    fn a_pull_reads_back_and_is_patched_in_place() {
        let wire = pull(&["classical", "concert"]).build();
        let packet = TagPacket::parse(&wire).unwrap();
        let TagAddress::Descriptor { filter, tags } = packet.address else { panic!("{packet:?}") };
        assert_eq!((packet.kind, packet.nonce, packet.hop_limit), (TagPacketKind::Pull, 0xAABB_CCDD, 64));
        assert_eq!((packet.tree, packet.fan_out, packet.reply_to), (TREE, Some(2), Some(CONSUMER)));
        assert_eq!((filter, packet.payload), (&[5; DESCRIPTOR_BYTES], &b"GET"[..]));
        assert!(tags.iter().eq(["classical", "concert"]));
        let other = packet.with(TreeEpoch { tree: 9, epoch: 8 }, Place { endpoint: 6, label: &[5] });
        let rebuilt = pull(&["classical", "concert"]).reply_to(Place { endpoint: 6, label: &[5] });
        assert_eq!(other, TagPacketBuilder { tree: TreeEpoch { tree: 9, epoch: 8 }, ..rebuilt }.build());
        let mut copy = wire.clone();
        packet.patch(&mut copy, 9, 1);
        let patched = TagPacket::parse(&copy).unwrap();
        assert_eq!((patched.hop_limit, patched.fan_out, patched.nonce), (9, Some(1), packet.nonce));
    }

    #[test]
    fn a_reply_goes_by_locator() {
        let wire = TagPacketBuilder::by_locator(TagPacketKind::Reply, TREE, CONSUMER).hop_limit(1).build();
        let packet = TagPacket::parse(&wire).unwrap();
        assert_eq!((packet.kind, packet.address), (TagPacketKind::Reply, TagAddress::Locator(CONSUMER)));
        assert_eq!((packet.fan_out, packet.reply_to, packet.payload), (None, None, &[][..]));
        let mut copy = wire.clone();
        packet.patch(&mut copy, 0, 5);
        assert_eq!(TagPacket::parse(&copy).unwrap().fan_out, None, "a packet without fan-out gets none");
    }

    #[test]
    fn tags_are_ascending_and_within_the_limits() {
        let long = "x".repeat(MAX_TAG_BYTES + 1);
        let many: Vec<String> = (10..10 + MAX_TAGS + 1).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(TagPacket::parse(&pull(&[]).build()).is_ok());
        assert!(TagPacket::parse(&pull(&many[..MAX_TAGS]).build()).is_ok());
        for tags in [&["b", "a"][..], &["a", "a"], &[""], &[&long], &many] {
            assert_eq!(TagPacket::parse(&pull(tags).build()).unwrap_err(), TagPacketError::BadTags, "{tags:?}");
        }
    }

    #[test]
    fn labels_have_a_size() {
        for (bytes, is_ok) in [(0, false), (1, true), (MAX_LABEL_BYTES, true), (MAX_LABEL_BYTES + 1, false)] {
            let place = Place { endpoint: 0, label: &[1; 32][..bytes] };
            let wire = TagPacketBuilder::by_locator(TagPacketKind::Push, TREE, place).build();
            assert_eq!(TagPacket::parse(&wire).is_ok(), is_ok, "{bytes}");
        }
    }

    #[test]
    fn a_cut_or_longer_packet_is_refused() {
        let wire = pull(&["a"]).build();
        for length in 0..wire.len() {
            assert!(TagPacket::parse(&wire[..length]).is_err(), "{length}");
        }
        assert_eq!(TagPacket::parse(&[&wire[..], &[0]].concat()).unwrap_err(), TagPacketError::NotTagPacket);
        assert_eq!(TagPacket::parse(&[5, 0]).unwrap_err(), TagPacketError::NotTagPacket);
    }

    /// The refusal of a packet whose elements `change` has changed.
    fn refusal(change: impl FnOnce(&mut Vec<Vec<u8>>)) -> Option<TagPacketError> {
        let wire = pull(&["a"]).build();
        let mut reader = Reader::new(read_element(&wire).unwrap().value);
        let mut elements = Vec::new();
        while let Some(element) = reader.next_element().unwrap() {
            elements.push(element.wire.to_vec());
        }
        change(&mut elements);
        let mut out = Vec::new();
        tlv::write_tlv(&mut out, tag_types::PULL, &elements.concat());
        TagPacket::parse(&out).err()
    }

    #[test]
    fn elements_in_the_wrong_order_and_unknown_odd_elements_are_refused() {
        let element = |type_number: u32| {
            let mut out = Vec::new();
            tlv::write_tlv(&mut out, type_number, b"?");
            out
        };
        assert_eq!(refusal(|_| {}), None);
        for place in 0..8 {
            assert_eq!(refusal(|all| all.insert(place, element(40_000))), None, "an even one is ignored, {place}");
            assert!(refusal(|all| all.insert(place, element(40_001))).is_some(), "an odd one is critical, {place}");
        }
        for place in 0..8 {
            assert!(refusal(|all| all.insert(place, all[place].clone())).is_some(), "{place} twice");
        }
        for place in 0..7 {
            assert!(refusal(|all| all.swap(place, place + 1)).is_some(), "{place} late");
        }
        for place in [0, 1, 2, 4, 5] {
            let without = refusal(|all| drop(all.remove(place)));
            assert!(matches!(without, Some(TagPacketError::BadElement(_))), "without {place}");
        }
    }
}
