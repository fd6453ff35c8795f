//! Trace: the events of a run, in order, for comparison between runs.
//!
//! A running digest covers every event, frame bytes included: two runs with equal digests had the same events. The
//! first events are kept, up to a limit, each with the name it concerns, so that a test can follow the packets of one
//! name. Names of events that are not kept are not read.

use crate::air::AirLoss;
use crate::link::LinkLoss;
use foldhash::fast::{FixedState, FoldHasher};
use namewire_engine::{DropReason, FaceId};
use namewire_links::LinkDrop;
use namewire_packet::tag::{TagAddress, TagPacket};
use namewire_packet::{Name, NameBuf, tlv};
use namewire_tagnet::forwarder::TagDrop;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// Identifies a node of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// The event of a frame or packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceKind {
    /// A router sent a network packet to a face, or an application sent one to its router.
    Sent,
    /// A network packet reached a router's engine, or an application.
    Received,
    /// A frame did not arrive.
    LinkLost(LinkLoss),
    /// A frame did not reach a node on a shared medium, or did not leave.
    AirLost(AirLoss),
    /// A link service refused a frame or a packet.
    LinkDropped(LinkDrop),
    /// An engine dropped a packet. The name is known if the packet was alone in its batch.
    EngineDropped(DropReason),
    /// A router dropped a tag packet.
    TagDropped(TagDrop),
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceEvent {
    /// Virtual time.
    pub at_ns: u64,
    /// The node; for a lost frame, the sender.
    pub node: NodeId,
    /// The face; [`FaceId::INVALID`] if it is ambiguous.
    pub face: FaceId,
    /// What happened.
    pub kind: TraceKind,
    /// Name of the packet, if known. A tag packet has the name `/tag/NONCE/DIGEST`. The digest is that of everything
    /// that stays the same from the sending application to the receiving one.
    pub name: Option<Rc<NameBuf>>,
}

/// The events of one run.
pub struct Trace {
    events: Vec<TraceEvent>,
    limit: usize,
    not_kept: u64,
    hasher: FoldHasher<'static>,
}

impl Trace {
    /// A trace that keeps the first `limit` events. With 0 it has no digest either: that takes a tenth of a run.
    pub(crate) fn new(limit: usize) -> Self {
        Trace { events: Vec::new(), limit, not_kept: 0, hasher: FixedState::default().build_hasher() }
    }

    /// Whether events are looked at.
    pub(crate) fn keeps(&self) -> bool {
        self.limit > 0
    }

    /// The name of a packet, if its event would be kept.
    pub(crate) fn name_of(&self, packet: &[u8]) -> Option<Rc<NameBuf>> {
        if self.events.len() < self.limit { packet_name(packet) } else { None }
    }

    pub(crate) fn record(&mut self, event: TraceEvent) {
        if !self.keeps() {
            return;
        }
        event.hash(&mut self.hasher);
        if self.events.len() < self.limit {
            self.events.push(event);
        } else {
            self.not_kept += 1;
        }
    }

    /// Adds the bytes of a frame to the digest.
    pub(crate) fn digest_frame(&mut self, frame: &[u8]) {
        if self.keeps() {
            frame.hash(&mut self.hasher);
        }
    }

    /// The events kept, in order.
    pub fn events(&self) -> &[TraceEvent] {
        &self.events
    }

    /// Number of events beyond the limit.
    pub fn not_kept(&self) -> u64 {
        self.not_kept
    }

    /// A digest of all events, if any are kept. Comparable between runs of one build.
    pub fn digest(&self) -> u64 {
        self.hasher.finish()
    }

    /// The events that concern `name`.
    pub fn of_name<'a>(&'a self, name: &'a NameBuf) -> impl Iterator<Item = &'a TraceEvent> {
        self.events.iter().filter(move |event| event.name.as_deref() == Some(name))
    }
}

/// The name that stands for a packet in the trace; the rest of an Interest or Data is not checked.
fn packet_name(packet: &[u8]) -> Option<Rc<NameBuf>> {
    let name = match TagPacket::parse(packet) {
        Ok(packet) => tag_packet_name(&packet),
        Err(_) => {
            let outer = tlv::read_element(packet).ok()?;
            let name = tlv::read_element(outer.value).ok()?;
            (name.type_number == tlv::types::NAME).then(|| Name::parse_value(name.value).ok()).flatten()?.to_buf()
        }
    };
    Some(Rc::new(name))
}

/// Routers change hop limit and fan-out; the first router sets tree and place for replies.
fn tag_packet_name(packet: &TagPacket<'_>) -> NameBuf {
    let mut hasher = DefaultHasher::new();
    packet.kind.hash(&mut hasher);
    packet.payload.hash(&mut hasher);
    match packet.address {
        TagAddress::Descriptor { tags, .. } => tags.iter().for_each(|tag| tag.hash(&mut hasher)),
        TagAddress::Locator(place) => place.hash(&mut hasher),
    }
    let mut name = NameBuf::default();
    name.push_generic(TAG_PREFIX)
        .push_generic(&packet.nonce.to_be_bytes())
        .push_generic(&hasher.finish().to_be_bytes());
    name
}

/// The nonce in the name of a tag packet: that of a request and of its answers. `None` for other packets.
pub(crate) fn tag_nonce(name: &NameBuf) -> Option<u32> {
    let mut components = name.as_name().components().map(|component| component.value);
    components.next().filter(|first| *first == TAG_PREFIX)?;
    components.next()?.try_into().map(u32::from_be_bytes).ok()
}

/// The first component of the name of every tag packet.
const TAG_PREFIX: &[u8] = b"tag";
