//! Tag applications: one that answers pulls and takes pushes, and one that sends them.
//!
//! Every reply carries its publisher's number. A follow-up (a pull by locator) carries the number of the publisher that
//! it is meant for, so that each side detects a packet that went to the wrong place.

use crate::application::{AppIo, Application};
use namewire_packet::lp::LpHeaders;
use namewire_packet::tag::{Place, TagAddress, TagPacket, TagPacketBuilder, TagPacketKind, TreeEpoch};
use namewire_tagnet::TagSet;
use std::collections::{BTreeMap, BTreeSet};

/// What applications send before their router completes it: tree 0 stands for the first tree.
const NO_TREE: TreeEpoch = TreeEpoch { tree: 0, epoch: 0 };

/// Answers each pull with its number.
#[derive(Debug)]
pub struct TagPublisher {
    number: u64,
    delivered: Vec<TagDelivery>,
}

/// A packet that a [`TagPublisher`] got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagDelivery {
    /// When.
    pub at_ns: u64,
    /// Push or pull.
    pub kind: TagPacketKind,
    /// Its nonce.
    pub nonce: u32,
    /// The publisher that it was meant for, if it came by locator.
    pub meant_for: Option<u64>,
}

impl TagPublisher {
    /// A publisher with this number.
    pub fn new(number: u64) -> Self {
        TagPublisher { number, delivered: Vec::new() }
    }

    /// What it got, in order.
    pub fn delivered(&self) -> &[TagDelivery] {
        &self.delivered
    }
}

impl Application for TagPublisher {
    fn receive(&mut self, io: &mut AppIo<'_>, _headers: &LpHeaders, packet: &[u8]) {
        let packet = TagPacket::parse(packet).expect("routers deliver tag packets");
        let meant_for = matches!(packet.address, TagAddress::Locator(_)).then(|| read_number(packet.payload));
        self.delivered.push(TagDelivery { at_ns: io.now_ns, kind: packet.kind, nonce: packet.nonce, meant_for });
        if let (TagPacketKind::Pull, Some(place)) = (packet.kind, packet.reply_to) {
            let reply = TagPacketBuilder::by_locator(TagPacketKind::Reply, packet.tree, place);
            io.send(reply.nonce(packet.nonce).payload(&self.number.to_be_bytes()).build());
        }
    }
}

/// A push or a pull of a [`TagConsumer`]'s plan.
#[derive(Clone, Debug)]
pub struct TagRequest {
    /// Push or pull.
    pub kind: TagPacketKind,
    /// Its tags.
    pub tags: TagSet,
    /// Its fan-out; without it, a push goes to all and a pull to one.
    pub fan_out: Option<u32>,
}

/// How a [`TagConsumer`] sends.
#[derive(Clone, Copy, Debug)]
pub struct TagConsumerOptions {
    /// Time between two new requests.
    pub interval_ns: u64,
    /// Most transmissions of a pull without an answer. A push has one.
    pub transmissions: usize,
    /// How long to wait before a pull is sent again.
    pub retransmit_after_ns: u64,
    /// Sends a pull by locator to the publisher of each first answer.
    pub follow_ups: bool,
}

/// A request as it was sent.
#[derive(Clone, Debug)]
pub struct TagSent {
    /// The request; a follow-up has no tags.
    pub request: TagRequest,
    /// The nonce of each transmission.
    pub nonces: Vec<u32>,
    /// The replies.
    pub replies: Vec<TagReceived>,
    /// The publisher to ask, of a follow-up.
    pub publisher: Option<u64>,
    wire_to: Option<(TreeEpoch, u32, Vec<u8>)>,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagReceived {
    /// The transmission that it answers.
    pub nonce: u32,
    /// The publisher that answered.
    pub publisher: u64,
}

/// Sends the requests of its plan, and follow-ups; sends pulls again until there is an answer.
#[derive(Debug)]
pub struct TagConsumer {
    options: TagConsumerOptions,
    sent: Vec<TagSent>,
    /// The requests that are due, by time.
    due: BTreeSet<(u64, usize)>,
    /// The request of each nonce.
    by_nonce: BTreeMap<u32, usize>,
    unexpected: u64,
}

impl TagConsumer {
    /// A consumer with this plan.
    pub fn new(plan: impl IntoIterator<Item = TagRequest>, options: TagConsumerOptions) -> Self {
        let planned =
            |request| TagSent { request, nonces: Vec::new(), replies: Vec::new(), publisher: None, wire_to: None };
        let sent = plan.into_iter().map(planned).collect();
        TagConsumer { options, sent, due: BTreeSet::new(), by_nonce: BTreeMap::new(), unexpected: 0 }
    }

    /// The requests: first those of the plan, then the follow-ups.
    pub fn sent(&self) -> &[TagSent] {
        &self.sent
    }

    /// Packets that are no replies to its requests. A router never delivers these.
    pub fn unexpected(&self) -> u64 {
        self.unexpected
    }

    fn schedule(&mut self, io: &mut AppIo<'_>, at_ns: u64, index: usize) {
        self.due.insert((at_ns, index));
        io.wake_at(at_ns);
    }

    fn transmit(&mut self, io: &mut AppIo<'_>, index: usize) {
        let sent = &mut self.sent[index];
        let most = if sent.request.kind == TagPacketKind::Pull { self.options.transmissions } else { 1 };
        if !sent.replies.is_empty() || sent.nonces.len() >= most {
            return;
        }
        let nonce = io.rng.u32(..);
        sent.nonces.push(nonce);
        self.by_nonce.insert(nonce, index);
        io.send(self.sent[index].packet(nonce));
        self.schedule(io, io.now_ns + self.options.retransmit_after_ns, index);
    }

    fn follow_up(&mut self, io: &mut AppIo<'_>, publisher: u64, tree: TreeEpoch, place: Place<'_>) {
        let request = TagRequest { kind: TagPacketKind::Pull, tags: TagSet::default(), fan_out: None };
        self.sent.push(TagSent {
            request,
            nonces: Vec::new(),
            replies: Vec::new(),
            publisher: Some(publisher),
            wire_to: Some((tree, place.endpoint, place.label.to_vec())),
        });
        self.transmit(io, self.sent.len() - 1);
    }
}

impl TagSent {
    fn packet(&self, nonce: u32) -> Vec<u8> {
        let TagSent { request: TagRequest { kind, tags, fan_out }, publisher, wire_to, .. } = self;
        let payload = publisher.map_or(Vec::new(), |publisher| publisher.to_be_bytes().to_vec());
        let builder = match wire_to {
            Some((tree, endpoint, label)) => {
                TagPacketBuilder::by_locator(*kind, *tree, Place { endpoint: *endpoint, label })
            }
            None => {
                let filter = tags.descriptor().to_bytes();
                TagPacketBuilder::by_descriptor(*kind, NO_TREE, filter, tags.tags().iter().map(String::as_str))
            }
        };
        let builder = builder.nonce(nonce).payload(&payload);
        match fan_out {
            Some(deliveries) => builder.fan_out(*deliveries).build(),
            None => builder.build(),
        }
    }
}

impl Application for TagConsumer {
    fn start(&mut self, io: &mut AppIo<'_>) {
        for index in 0..self.sent.len() {
            self.schedule(io, io.now_ns + index as u64 * self.options.interval_ns, index);
        }
    }

    fn receive(&mut self, io: &mut AppIo<'_>, _headers: &LpHeaders, packet: &[u8]) {
        let packet = TagPacket::parse(packet).expect("routers deliver tag packets");
        let index = self.by_nonce.get(&packet.nonce).copied();
        let (TagPacketKind::Reply, Some(index)) = (packet.kind, index) else {
            self.unexpected += 1;
            return;
        };
        let publisher = read_number(packet.payload);
        let sent = &mut self.sent[index];
        sent.replies.push(TagReceived { nonce: packet.nonce, publisher });
        let is_first = sent.replies.len() == 1 && sent.publisher.is_none();
        if let (true, true, Some(place)) = (is_first, self.options.follow_ups, packet.reply_to) {
            self.follow_up(io, publisher, packet.tree, place);
        }
    }

    fn wake(&mut self, io: &mut AppIo<'_>) {
        while let Some(&(at_ns, index)) = self.due.first()
            && at_ns <= io.now_ns
        {
            self.due.pop_first();
            self.transmit(io, index);
        }
    }
}

/// The number of a publisher in a payload.
fn read_number(payload: &[u8]) -> u64 {
    payload.try_into().map_or(u64::MAX, u64::from_be_bytes)
}
