//! Two link services with reliability over a channel that loses, reorders and repeats frames, in simulated time. A
//! source of bytes drives the channel, so that a fuzzer can choose it.

use namewire_links::{LinkOptions, LinkPolicy, LinkService, Received};
use namewire_packet::lp::{LpHeaders, LpPacket};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const MS: u64 = 1_000_000;
const DELAY_NS: u64 = 10 * MS;
/// Time between two frames of one direction: it limits reordering.
const SPACING_NS: u64 = MS;
/// No frame is later than this, so that at most two overtake it.
const JITTER_NS: u64 = 2 * MS;

pub(crate) struct Scenario {
    /// Packets that each end sends, and when.
    pub(crate) packets: [Vec<(u64, Vec<u8>)>; 2],
    pub(crate) mtu: usize,
    /// How many of 256 frames are lost.
    pub(crate) loss: u8,
    /// Most lost transmissions of one Sequence. IDLE packets are lost only if there is no limit.
    pub(crate) losses_per_sequence: Option<u32>,
}

pub(crate) struct Outcome {
    pub(crate) ends: [LinkService; 2],
    /// What each end received, in the order of arrival.
    pub(crate) delivered: [Vec<Vec<u8>>; 2],
}

pub(crate) fn link(mtu: usize) -> LinkService {
    LinkService::new(LinkOptions {
        fragmentation: true,
        mtu,
        first_sequence: u64::MAX - 3,
        policy: LinkPolicy { reliability: true, ..LinkPolicy::default() },
        ..LinkOptions::default()
    })
}

/// (arrival, order of sending, receiver, frame)
type UnderWay = (u64, u64, usize, Vec<u8>);

struct Channel<R> {
    random: R,
    loss: u8,
    losses_per_sequence: Option<u32>,
    losses: BTreeMap<(usize, u64), u32>,
    free_at_ns: [u64; 2],
    under_way: BinaryHeap<Reverse<UnderWay>>,
    sent: u64,
}

impl<R: FnMut() -> u8> Channel<R> {
    fn send(&mut self, now_ns: u64, to: usize, frame: Vec<u8>) {
        let leaves_ns = now_ns.max(self.free_at_ns[to] + SPACING_NS);
        self.free_at_ns[to] = leaves_ns;
        if (self.random)() < self.loss && self.may_lose(to, &frame) {
            return;
        }
        let copies = if (self.random)().is_multiple_of(16) { 2 } else { 1 };
        for _ in 0..copies {
            let jitter_ns = u64::from((self.random)()) * JITTER_NS / 256;
            self.sent += 1;
            self.under_way.push(Reverse((leaves_ns + DELAY_NS + jitter_ns, self.sent, to, frame.clone())));
        }
    }

    fn may_lose(&mut self, to: usize, frame: &[u8]) -> bool {
        let Some(limit) = self.losses_per_sequence else { return true };
        let Some(sequence) = LpPacket::parse(frame).expect("an LpPacket").sequence else { return false };
        let losses = self.losses.entry((to, sequence)).or_default();
        *losses += 1;
        *losses <= limit
    }
}

/// Runs until no event is left.
pub(crate) fn run(scenario: Scenario, random: impl FnMut() -> u8) -> Outcome {
    let Scenario { packets, mtu, loss, losses_per_sequence } = scenario;
    let mut channel = Channel {
        random,
        loss,
        losses_per_sequence,
        losses: BTreeMap::new(),
        free_at_ns: [0; 2],
        under_way: BinaryHeap::new(),
        sent: 0,
    };
    let mut ends = [link(mtu), link(mtu)];
    let mut delivered = [Vec::new(), Vec::new()];
    let mut to_send = packets.map(|packets| packets.into_iter().peekable());
    loop {
        let arrival_ns = channel.under_way.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let sending_ns = to_send.iter_mut().filter_map(|packets| packets.peek().map(|(at_ns, _)| *at_ns)).min();
        let due_ns = ends
            .iter_mut()
            .flat_map(|end| [end.acks_due_ns(), end.retransmission_due_ns(), end.next_deadline_ns()])
            .flatten()
            .min();
        let Some(now_ns) = [arrival_ns, sending_ns, due_ns].into_iter().flatten().min() else { break };
        while let Some(Reverse((at_ns, ..))) = channel.under_way.peek()
            && *at_ns <= now_ns
        {
            let Some(Reverse((_, _, to, frame))) = channel.under_way.pop() else { break };
            match ends[to].receive(now_ns, &frame) {
                Ok(Received::Packet { start, len, .. }) => delivered[to].push(frame[start..start + len].to_vec()),
                Ok(Received::Reassembled { packet, .. }) => delivered[to].push(packet.to_vec()),
                Ok(Received::Incomplete | Received::Idle) | Err(_) => {}
            }
        }
        for (from, packets) in to_send.iter_mut().enumerate() {
            while let Some((_, packet)) = packets.next_if(|(at_ns, _)| *at_ns <= now_ns) {
                let emit = |header: &[u8], slice: &[u8]| channel.send(now_ns, 1 - from, [header, slice].concat());
                ends[from].encode(now_ns, &LpHeaders::default(), &packet, emit).expect("a packet that fits");
            }
        }
        for (from, end) in ends.iter_mut().enumerate() {
            end.pump(now_ns, true, |header, slice| {
                let frame = [header, slice].concat();
                assert!(frame.len() <= mtu, "a frame of {} bytes", frame.len());
                channel.send(now_ns, 1 - from, frame);
            });
            end.expire(now_ns);
        }
    }
    Outcome { ends, delivered }
}
