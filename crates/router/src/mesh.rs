//! The rings between workers: one per ordered pair, carrying packets whose name or
//! face belongs to the other (house plan §4).
//!
//! A record is fixed-size metadata and the packet's octets:
//!
//! ```text
//!  0    1  2..10  10..12   12    13     14  15..47   48..56    56..64    64..72   72..82  –  88…
//!  kind –  face   flags    nack  token  –   token    incoming  next hop  mark     round      packet
//!                          code  length     octets   face id   face id
//! ```

use crate::ring::{Consumer, Doorbell, Producer, PushError};
use namewire_engine::dispatch::Round;
use namewire_faces::Waker;
use namewire_packet::{
    FaceId, NackReason,
    lp::{LpHeaders, PitToken},
};
use std::sync::Arc;

/// Octets of all rings together, as far as [`RING_BYTES_LEAST`] and [`RING_BYTES_MOST`] allow.
const RINGS_BYTES: usize = 16 << 20;

/// Fewest octets of one ring: room for 14 of the largest packets or 650 small ones.
const RING_BYTES_LEAST: usize = 128 << 10;

/// Most octets of one ring: more than an application's window of large packets.
const RING_BYTES_MOST: usize = 2 << 20;

/// Octets of each ring between `workers` workers: 1 MiB for four, 128 KiB from sixteen on.
fn ring_bytes(workers: usize) -> usize {
    let rings = (workers * workers.saturating_sub(1)).max(1);
    let share = (RINGS_BYTES / rings).clamp(RING_BYTES_LEAST, RING_BYTES_MOST);
    1 << share.ilog2() // a power of two, as rings want
}

/// Octets of a record before the packet.
const METADATA_BYTES: usize = 88;

/// What the receiving worker is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Its engine decides: the name is its own.
    Decide {
        /// Who else is asked, and what those before it knew.
        round: Round,
    },
    /// Its face sends: the decision is made.
    Transmit,
}

/// A record as read from a ring.
#[derive(Debug)]
pub struct Record<'a> {
    /// What is to be done.
    pub task: Task,
    /// The face that received the packet, or is to send it.
    pub face: FaceId,
    /// Link headers that concern the packet.
    pub headers: LpHeaders,
    /// Its octets, lent by the ring.
    pub packet: &'a mut [u8],
}

const HAS_NACK: u8 = 1;
const HAS_INCOMING: u8 = 2;
const HAS_NEXT_HOP: u8 = 4;
const NO_CACHE: u8 = 8;
const NON_DISCOVERY: u8 = 16;

fn encode(task: Task, face: FaceId, headers: &LpHeaders) -> [u8; METADATA_BYTES] {
    let mut out = [0; METADATA_BYTES];
    match task {
        Task::Decide { round } => out[72..82].copy_from_slice(&round.to_octets()),
        Task::Transmit => out[0] = 1,
    }
    out[2..10].copy_from_slice(&face.0.to_le_bytes());
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    out[10] = flag(headers.nack.is_some(), HAS_NACK)
        | flag(headers.incoming_face_id.is_some(), HAS_INCOMING)
        | flag(headers.next_hop_face_id.is_some(), HAS_NEXT_HOP)
        | flag(headers.no_cache, NO_CACHE)
        | flag(headers.non_discovery, NON_DISCOVERY);
    out[12] = headers.nack.map_or(0, |reason| reason.code() as u8); // 0, 50, 100 or 150
    if let Some(token) = &headers.pit_token {
        let octets = token.as_bytes();
        out[13] = octets.len() as u8;
        out[15..15 + octets.len()].copy_from_slice(octets);
    }
    out[48..56].copy_from_slice(&headers.incoming_face_id.unwrap_or_default().0.to_le_bytes());
    out[56..64].copy_from_slice(&headers.next_hop_face_id.unwrap_or_default().0.to_le_bytes());
    out[64..72].copy_from_slice(&headers.congestion_mark.to_le_bytes());
    out
}

/// Reads a record. `None` for one that no worker wrote, which does not happen.
fn decode(record: &mut [u8]) -> Option<Record<'_>> {
    let (metadata, packet) = record.split_at_mut_checked(METADATA_BYTES)?;
    let number = |at: usize| {
        let mut octets = [0; 8];
        octets.copy_from_slice(&metadata[at..at + 8]);
        u64::from_le_bytes(octets)
    };
    let has = |bit: u8| metadata[10] & bit != 0;
    let token_length = usize::from(metadata[13]).min(namewire_packet::lp::MAX_PIT_TOKEN_BYTES);
    let headers = LpHeaders {
        pit_token: PitToken::new(&metadata[15..15 + token_length]),
        nack: has(HAS_NACK).then(|| NackReason::from_code(u64::from(metadata[12]))),
        incoming_face_id: has(HAS_INCOMING).then(|| FaceId(number(48))),
        next_hop_face_id: has(HAS_NEXT_HOP).then(|| FaceId(number(56))),
        no_cache: has(NO_CACHE),
        congestion_mark: number(64),
        non_discovery: has(NON_DISCOVERY),
    };
    let task = match metadata[0] {
        1 => Task::Transmit,
        _ => {
            let mut round = [0; Round::BYTES];
            round.copy_from_slice(&metadata[72..82]);
            Task::Decide { round: Round::from_octets(&round) }
        }
    };
    let face = FaceId(number(2));
    Some(Record { task, face, headers, packet })
}

/// How to wake one worker.
#[derive(Debug)]
pub struct Bell {
    /// Whether it sleeps.
    pub doorbell: Doorbell,
    /// Ends its sleep.
    pub waker: Waker,
}

impl Bell {
    /// A bell for a worker without sockets, which looks at its rings by itself.
    ///
    /// Errors: the process has no descriptors left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Bell { doorbell: Doorbell::new(), waker: Waker::new()? })
    }
}

/// The rings out of one worker.
#[derive(Debug)]
pub struct Outbox {
    producers: Vec<Option<Producer>>,
    bells: Arc<[Bell]>,
    /// Rings with unpublished records, one bit each.
    dirty: u64,
}

/// The rings into one worker.
#[derive(Debug)]
pub struct Inbox {
    consumers: Vec<Consumer>,
}

/// Makes the rings between all workers: (out of, into) each of them.
pub fn connect(bells: &Arc<[Bell]>) -> Vec<(Outbox, Inbox)> {
    let workers = bells.len();
    let mut inboxes: Vec<Inbox> = (0..workers).map(|_| Inbox { consumers: Vec::new() }).collect();
    let mut outboxes = Vec::new();
    for from in 0..workers {
        let mut producers = Vec::new();
        for (to, inbox) in inboxes.iter_mut().enumerate() {
            producers.push((from != to).then(|| {
                let (producer, consumer) = crate::ring::channel(ring_bytes(workers));
                inbox.consumers.push(consumer);
                producer
            }));
        }
        outboxes.push(Outbox { producers, bells: Arc::clone(bells), dirty: 0 });
    }
    outboxes.into_iter().zip(inboxes).collect()
}

impl Outbox {
    /// Queues a packet for another worker. False: the ring is full.
    pub fn push(&mut self, to: u8, task: Task, face: FaceId, headers: &LpHeaders, packet: &[u8]) -> bool {
        let Some(producer) = self.producers.get_mut(usize::from(to)).and_then(Option::as_mut) else { return false };
        let metadata = encode(task, face, headers);
        let pushed = match producer.try_push(&[&metadata, packet]) {
            Err(PushError::Full) => {
                // What is queued may just not be visible yet: show it, wake whoever could
                // make room while this batch goes on, and try once more.
                producer.publish();
                let bell = &self.bells[usize::from(to)];
                bell.doorbell.ring(|| bell.waker.wake());
                producer.try_push(&[&metadata, packet])
            }
            other => other,
        };
        self.dirty |= 1 << to;
        pushed.is_ok()
    }

    /// Makes everything pushed visible and wakes whoever sleeps.
    pub fn publish(&mut self) {
        while self.dirty != 0 {
            let to = self.dirty.trailing_zeros() as usize;
            self.dirty &= self.dirty - 1;
            if let Some(producer) = &mut self.producers[to] {
                producer.publish();
            }
            let bell = &self.bells[to];
            bell.doorbell.ring(|| bell.waker.wake());
        }
    }

    /// The bell of worker `index`.
    pub fn bell(&self, index: u8) -> &Bell {
        &self.bells[usize::from(index)]
    }
}

impl Inbox {
    /// True if a record waits in any ring.
    pub fn has_records(&mut self) -> bool {
        self.consumers.iter_mut().any(Consumer::has_records)
    }

    /// Lends up to `max_records` records of each ring in turn to `take`, which
    /// gets all those of one ring at once.
    pub fn drain(&mut self, max_records: usize, mut take: impl FnMut(&mut dyn Iterator<Item = Record<'_>>)) {
        for consumer in &mut self.consumers {
            let mut batch = consumer.batch(max_records);
            if !batch.is_empty() {
                take(&mut batch.records().filter_map(decode));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_survives_the_ring() {
        let samples = [
            (Task::Transmit, LpHeaders::default()),
            (
                Task::Decide { round: Round::from_octets(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 2]) },
                LpHeaders {
                    pit_token: PitToken::new(&[7; 32]),
                    nack: Some(NackReason::NoRoute),
                    incoming_face_id: Some(FaceId(u64::MAX)),
                    next_hop_face_id: Some(FaceId(0)),
                    no_cache: true,
                    congestion_mark: 9,
                    non_discovery: true,
                },
            ),
            (
                Task::Decide { round: Round::default() },
                LpHeaders { nack: Some(NackReason::None), pit_token: PitToken::new(&[1]), ..LpHeaders::default() },
            ),
        ];
        for (task, headers) in samples {
            let mut record = encode(task, FaceId(300), &headers).to_vec();
            record.extend_from_slice(b"packet");
            let read = decode(&mut record).unwrap();
            assert_eq!((read.task, read.face, read.headers), (task, FaceId(300), headers));
            assert_eq!(read.packet, b"packet");
        }
        assert!(decode(&mut [0; 10]).is_none());
    }
}
