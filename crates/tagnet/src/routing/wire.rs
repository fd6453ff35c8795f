//! Wire: the messages between routers about trees and advertisements.
//!
//! Two packets, each for one neighbour. Integers are big-endian. In a tree with a key they travel in envelopes
//! (`authentication.rs`).
//!
//! ```text
//! Hello         = 39453 LENGTH
//!   byte 0      2       10      18    26        30   32            36        38      46       50
//!        tree   sender  number  root  sequence  age  heard-of-you  distance  parent  subtree  shape  ──►
//!        (2)    (8)     (8)     (8)   (4)       (2)  (4)           (2)       (8)     (4)      (8)
//!
//!        58       66     74    82
//!        session  heard  next  label?
//!        (8)      (8)    (8)
//!   label = epoch (4), shape (8), size (4), the label (6 or 12): only for a child
//!
//! Announcements = 39451 LENGTH
//!   byte 0      2        10     18
//!        tree   session  first  up to 40 entries: serves (1), descriptor (24)
//!        (2)    (8)      (8)
//! ```
//!
//! | field | meaning |
//! | --- | --- |
//! | session | a random number for the sender's announcements on this link; 0 if there is no link in the tree |
//! | heard, next | the neighbour's session as the sender knows it, and the number of the entry it waits for |
//! | first | the number of the first entry; entries of a session count from 0 |
//! | serves | 1 pulls, 2 pushes, 3 both, 0 withdraws |
//!
//! A reader refuses other lengths, and numbers out of range. So a form with more fields needs another type.

use crate::{
    Descriptor,
    descriptor::{DESCRIPTOR_BYTES, MAX_WEIGHT},
    forwarder::Serves,
    locator::{LocatorError, WideLabel},
    tree_protocol::{ChildLabel, TreeHello},
};
use namewire_packet::{
    tag::tag_types,
    tlv::{self, TlvError, read_element},
};

/// Most entries of a packet, which then fits a UDP datagram on every link.
pub const MAX_ENTRIES: usize = 40;

const HELLO_BYTES: usize = 82;
/// Bytes before the label of a child.
const LABEL_HEAD_BYTES: usize = 16;
const ENTRIES_AT: usize = 18;
const ENTRY_BYTES: usize = 1 + DESCRIPTOR_BYTES;

/// Where two neighbours are with their announcements in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The sender's session; 0 for none.
    pub session: u64,
    /// The neighbour's session, as the sender knows it.
    pub heard: u64,
    /// The entry of that session that the sender waits for.
    pub next: u64,
}

/// An announced descriptor, or one withdrawn (`None`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncedEntry {
    /// The descriptor.
    pub descriptor: Descriptor,
    /// What it serves.
    pub serves: Option<Serves>,
}

/// A packet between routers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutingPacket {
    /// About the tree.
    Hello(TreeHello, Progress),
    /// About descriptors.
    Announcements {
        /// The number of the tree.
        tree: u16,
        /// The sender's session.
        session: u64,
        /// The number of the first entry.
        first: u64,
        /// At most [`MAX_ENTRIES`].
        entries: Vec<AnnouncedEntry>,
    },
}

/// Why bytes are no packet between routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingPacketError {
    /// The TLV is malformed.
    #[error(transparent)]
    Tlv(#[from] TlvError),
    /// It has another type.
    #[error("neither a hello nor announcements")]
    OtherType,
    /// It has not the length of its type.
    #[error("a length that its type does not have")]
    Length,
    /// The label is none.
    #[error(transparent)]
    Label(#[from] LocatorError),
    /// An entry serves something else, or its descriptor is that of no set of tags.
    #[error("an entry that no router announces")]
    Entry,
}

/// Takes integers from the front; the length was checked before.
struct Integers<'a>(&'a [u8]);

impl Integers<'_> {
    fn take(&mut self, bytes: usize) -> u64 {
        let (front, rest) = self.0.split_at(bytes);
        self.0 = rest;
        front.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }
}

impl RoutingPacket {
    /// Reads a packet and checks all of it.
    ///
    /// # Errors
    /// If it is not one well-formed packet.
    pub fn parse(wire: &[u8]) -> Result<Self, RoutingPacketError> {
        let packet = read_element(wire)?;
        if packet.wire.len() != wire.len() {
            return Err(RoutingPacketError::Length);
        }
        match packet.type_number {
            tag_types::HELLO => parse_hello(packet.value),
            tag_types::ANNOUNCEMENTS => parse_announcements(packet.value),
            _ => Err(RoutingPacketError::OtherType),
        }
    }

    /// The tree that it is about.
    pub const fn tree(&self) -> u16 {
        match self {
            RoutingPacket::Hello(TreeHello { tree, .. }, _) | RoutingPacket::Announcements { tree, .. } => *tree,
        }
    }

    /// The packet's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            RoutingPacket::Hello(hello, progress) => {
                tlv::write_nested(&mut out, tag_types::HELLO, |out| write_hello(out, hello, progress));
            }
            RoutingPacket::Announcements { tree, session, first, entries } => {
                tlv::write_nested(&mut out, tag_types::ANNOUNCEMENTS, |out| {
                    out.extend(tree.to_be_bytes());
                    out.extend(session.to_be_bytes());
                    out.extend(first.to_be_bytes());
                    for entry in entries {
                        out.push(entry.serves.map_or(0, Serves::to_byte));
                        out.extend(entry.descriptor.to_bytes());
                    }
                });
            }
        }
        out
    }
}

fn parse_hello(value: &[u8]) -> Result<RoutingPacket, RoutingPacketError> {
    let (fixed, label) = value.split_at_checked(HELLO_BYTES).ok_or(RoutingPacketError::Length)?;
    let mut fields = Integers(fixed);
    let mut hello = TreeHello {
        tree: fields.take(2) as u16,
        sender: fields.take(8),
        number: fields.take(8),
        root: fields.take(8),
        sequence: fields.take(4) as u32,
        age_ms: fields.take(2) as u16,
        heard_of_you: fields.take(4) as u32,
        distance: fields.take(2) as u16,
        parent: fields.take(8),
        subtree: fields.take(4) as u32,
        shape: fields.take(8),
        label: None,
    };
    let progress = Progress { session: fields.take(8), heard: fields.take(8), next: fields.take(8) };
    if let Some((numbers, label)) = label.split_at_checked(LABEL_HEAD_BYTES) {
        let mut numbers = Integers(numbers);
        let (epoch, shape, size) = (numbers.take(4) as u32, numbers.take(8), numbers.take(4) as u32);
        hello.label = Some(ChildLabel { epoch, label: WideLabel::parse(label)?, shape, size });
    } else if !label.is_empty() {
        return Err(RoutingPacketError::Length);
    }
    Ok(RoutingPacket::Hello(hello, progress))
}

fn write_hello(out: &mut Vec<u8>, hello: &TreeHello, progress: &Progress) {
    out.extend(hello.tree.to_be_bytes());
    [hello.sender, hello.number, hello.root].iter().for_each(|number| out.extend(number.to_be_bytes()));
    out.extend(hello.sequence.to_be_bytes());
    out.extend(hello.age_ms.to_be_bytes());
    out.extend(hello.heard_of_you.to_be_bytes());
    out.extend(hello.distance.to_be_bytes());
    out.extend(hello.parent.to_be_bytes());
    out.extend(hello.subtree.to_be_bytes());
    out.extend(hello.shape.to_be_bytes());
    let Progress { session, heard, next } = progress;
    [session, heard, next].iter().for_each(|number| out.extend(number.to_be_bytes()));
    if let Some(given) = hello.label {
        out.extend(given.epoch.to_be_bytes());
        out.extend(given.shape.to_be_bytes());
        out.extend(given.size.to_be_bytes());
        out.extend(given.label.to_bytes());
    }
}

fn parse_announcements(value: &[u8]) -> Result<RoutingPacket, RoutingPacketError> {
    let (fixed, entries) = value.split_at_checked(ENTRIES_AT).ok_or(RoutingPacketError::Length)?;
    if !entries.len().is_multiple_of(ENTRY_BYTES) || entries.len() > MAX_ENTRIES * ENTRY_BYTES {
        return Err(RoutingPacketError::Length);
    }
    let mut fields = Integers(fixed);
    let (tree, session, first) = (fields.take(2) as u16, fields.take(8), fields.take(8));
    let entries = entries.chunks_exact(ENTRY_BYTES).map(parse_entry).collect::<Result<_, _>>()?;
    Ok(RoutingPacket::Announcements { tree, session, first, entries })
}

fn parse_entry(bytes: &[u8]) -> Result<AnnouncedEntry, RoutingPacketError> {
    let serves = match bytes[0] {
        0 => None,
        byte => Some(Serves::from_byte(byte).ok_or(RoutingPacketError::Entry)?),
    };
    let descriptor = bytes[1..].try_into().map_err(|_| RoutingPacketError::Entry)?;
    let descriptor = Descriptor::from_bytes(descriptor);
    if descriptor.weight() > MAX_WEIGHT {
        return Err(RoutingPacketError::Entry);
    }
    Ok(AnnouncedEntry { descriptor, serves })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locator::TreeLabels;
    use proptest::prelude::*;

    fn hello(label: Option<ChildLabel>) -> RoutingPacket {
        let hello = TreeHello {
            tree: 1,
            sender: 2,
            number: 3 << 40,
            root: u64::MAX,
            sequence: 5,
            age_ms: 0x1234,
            heard_of_you: 13,
            distance: 6,
            parent: 7,
            subtree: 8,
            shape: 12,
            label,
        };
        RoutingPacket::Hello(hello, Progress { session: 9, heard: 10, next: 11 })
    }

    #[test]
    fn hellos_read_back() {
        let labels: TreeLabels<u32> = TreeLabels::of(&[None, Some(0), Some(0), Some(1)]).unwrap();
        let child = |node| Some(ChildLabel { epoch: 77, label: labels.label(node), shape: 3, size: 14 });
        for packet in [hello(None), hello(child(0)), hello(child(2)), hello(child(3))] {
            let wire = packet.to_bytes();
            assert_eq!(RoutingPacket::parse(&wire), Ok(packet));
            assert!((0..wire.len()).all(|length| RoutingPacket::parse(&wire[..length]).is_err()));
            assert!(RoutingPacket::parse(&[&wire[..], &[0]].concat()).is_err());
        }
    }

    #[test]
    fn no_router_announces_all_ones_or_too_much() {
        let announcements = |count, descriptor, serves| {
            let entries = vec![AnnouncedEntry { descriptor, serves }; count];
            RoutingPacket::Announcements { tree: 1, session: 2, first: 3, entries }.to_bytes()
        };
        let good = announcements(MAX_ENTRIES, Descriptor::EMPTY, Some(Serves::BOTH));
        assert!(RoutingPacket::parse(&good).is_ok());
        let many = announcements(MAX_ENTRIES + 1, Descriptor::EMPTY, None);
        assert_eq!(RoutingPacket::parse(&many), Err(RoutingPacketError::Length));
        let all_ones = announcements(1, Descriptor([u64::MAX; 3]), Some(Serves::PULL));
        assert_eq!(RoutingPacket::parse(&all_ones), Err(RoutingPacketError::Entry));
        let mut other = announcements(1, Descriptor::EMPTY, None);
        let at = other.len() - ENTRY_BYTES;
        other[at] = 4;
        assert_eq!(RoutingPacket::parse(&other), Err(RoutingPacketError::Entry));
    }

    proptest! {
        #[test]
        fn announcements_read_back(first: u64, list in proptest::collection::vec((0..4_u8, 0..1_u64 << 40), 0..40)) {
            let entry = |(serves, word): &(u8, u64)| AnnouncedEntry {
                descriptor: Descriptor([*word, 1, 0]),
                serves: Serves::from_byte(*serves),
            };
            let entries = list.iter().map(entry).collect();
            let packet = RoutingPacket::Announcements { tree: 1, session: 2, first, entries };
            prop_assert_eq!(RoutingPacket::parse(&packet.to_bytes()), Ok(packet));
        }

        #[test]
        fn packets_that_were_read_are_written_back_unchanged(kind in 0..2_u8, value in proptest::collection::vec(0..4_u8, 0..200)) {
            let mut wire = Vec::new();
            let type_number = if kind == 0 { tag_types::HELLO } else { tag_types::ANNOUNCEMENTS };
            tlv::write_tlv(&mut wire, type_number, &value);
            if let Ok(packet) = RoutingPacket::parse(&wire) {
                prop_assert_eq!(packet.to_bytes(), wire);
            }
        }
    }
}
