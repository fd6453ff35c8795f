//! The rings between workers: two per ordered pair, one for packets to decide and one for packets to transmit.
//!
//! There are two rings so that packets to transmit always move on: their receiver sends them and needs no room in
//! another ring. A worker may leave packets to decide in their ring while it has no room for their results. So a slow
//! worker holds back the workers that send to it, and no circle of workers waits for each other (`backlog.rs`).
//!
//! No ring may become a long queue, because its packets have no turns: whoever comes first is first. So a worker takes
//! from each ring as many packets to decide as the other worker can put there ([`decisions_per_turn`]), and packets
//! that can wait elsewhere, in turns by holder, fill a ring only so far ([`Room::ForThoseWhoCanWait`]). N.B. With 64
//! packets a turn and no such limit, 2,000 streams of one host kept the rings between two workers full: UDP neighbours
//! lost 68 % of their Interests as `ring-full`, and what got through took 0.8 s (`namewire-lab run hostile`).
//!
//! A worker that waits for room sets a flag ([`Outbox::want_room`]); the worker that empties the ring rings the
//! doorbell of the waiting worker.
//!
//! A record has the metadata that the packet needs, and the packet's bytes:
//!
//! ```text
//!  0      1      2     3       4..6   6..8   8..16  then, each only if its flag is set:
//!  kind   token  nack  bytes  flags  lead   face   incoming u64, next hop u64, mark u64, visits, token,
//!         length /50   of all                       and fill up to a multiple of 8: the packet is aligned
//! ```
//!
//! `lead` is [`LpHeaders::lead_bytes`]. The metadata of a bare Interest that must be decided take 16 bytes,
//! those of Data that must be sent 32, and no metadata more than 88. So two cores move one cache line less than if all
//! took 88.

use crate::ring::{Consumer, Doorbell, Producer, PushError, RoomWish};
use namewire_engine::dispatch::Visits;
use namewire_faces::Waker;
use namewire_packet::{
    FaceId, NackReason,
    lp::{LpHeaders, PitToken},
};
use std::sync::Arc;

/// Bytes of all rings together, as far as [`RING_BYTES_LEAST`] and [`RING_BYTES_MOST`] allow.
const RINGS_BYTES: usize = 16 << 20;

/// Rings from one worker to another.
const RINGS_PER_PAIR: usize = 2;

/// Fewest bytes of one ring: room for 14 of the largest packets or 900 small ones.
const RING_BYTES_LEAST: usize = 128 << 10;

/// Most bytes of one ring: more than an application's window of large packets.
const RING_BYTES_MOST: usize = 2 << 20;

/// Packets to decide that wait in a ring when it has no more room for those that can wait: a few turns.
const WAITING_RECORDS_MOST: usize = 1024;

/// Packets to decide that a worker takes from each ring in one turn, of `read_per_turn` that each worker reads from its
/// sockets: twice what comes if the names spread evenly, and a batch at least.
pub fn decisions_per_turn(workers: usize, read_per_turn: usize, batch: usize) -> usize {
    (2 * read_per_turn / workers.max(1)).max(batch)
}

/// Which part of a ring a packet may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Half of its bytes, and at most [`WAITING_RECORDS_MOST`] packets to decide: the packet can wait elsewhere.
    ForThoseWhoCanWait,
    /// All: if there is none, the packet is dropped.
    All,
}

/// Bytes of each ring between `workers` workers: 512 KiB for four, 128 KiB from eight on.
fn ring_bytes(workers: usize) -> usize {
    let rings = (RINGS_PER_PAIR * workers * workers.saturating_sub(1)).max(1);
    let share = (RINGS_BYTES / rings).clamp(RING_BYTES_LEAST, RING_BYTES_MOST);
    1 << share.ilog2() // a power of two, as rings want
}

/// Bytes of all rings between `workers` workers.
pub fn bytes(workers: usize) -> usize {
    RINGS_PER_PAIR * workers * workers.saturating_sub(1) * ring_bytes(workers)
}

/// Bytes of metadata that every record has.
const FIXED_BYTES: usize = 16;

/// Most bytes of a record before the packet: three numbers, visits and a token beside the fixed ones.
const METADATA_BYTES_MOST: usize =
    (FIXED_BYTES + 3 * 8 + Visits::BYTES + namewire_packet::lp::MAX_PIT_TOKEN_BYTES).next_multiple_of(8);

/// What the receiving worker is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Its engine decides, because it owns the name.
    Decide {
        /// The workers still to be asked, and what those before this one found.
        visits: Visits,
    },
    /// Its face sends the packet: the decision is made.
    Transmit,
}

/// A record as read from a ring.
#[derive(Debug)]
pub struct Record<'a> {
    /// What the worker should do.
    pub task: Task,
    /// The face that received the packet, or that should send it.
    pub face: FaceId,
    /// Link headers that concern the packet.
    pub headers: LpHeaders,
    /// The packet's bytes, lent by the ring.
    pub packet: &'a mut [u8],
}

const HAS_NACK: u16 = 1;
const HAS_INCOMING: u16 = 2;
const HAS_NEXT_HOP: u16 = 4;
const NO_CACHE: u16 = 8;
const NON_DISCOVERY: u16 = 16;
const HAS_MARK: u16 = 32;
const HAS_VISITS: u16 = 64;
const COLLIDED: u16 = 128;

/// Metadata being written, from the front.
struct Metadata {
    bytes: [u8; METADATA_BYTES_MOST],
    len: usize,
}

impl Metadata {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn encode(task: Task, face: FaceId, headers: &LpHeaders) -> Metadata {
    let visits = match task {
        Task::Decide { visits } if !visits.is_alone() => Some(visits),
        _ => None,
    };
    let flag = |set: bool, bit: u16| if set { bit } else { 0 };
    let flags = flag(headers.nack.is_some(), HAS_NACK)
        | flag(headers.incoming_face_id.is_some(), HAS_INCOMING)
        | flag(headers.next_hop_face_id.is_some(), HAS_NEXT_HOP)
        | flag(headers.congestion_mark != 0, HAS_MARK)
        | flag(visits.is_some(), HAS_VISITS)
        | flag(headers.no_cache, NO_CACHE)
        | flag(headers.non_discovery, NON_DISCOVERY)
        | flag(headers.collided, COLLIDED);
    let mut out = Metadata { bytes: [0; METADATA_BYTES_MOST], len: FIXED_BYTES };
    out.bytes[0] = u8::from(task == Task::Transmit);
    out.bytes[2] = headers.nack.map_or(0, |reason| (reason.code() / 50) as u8); // 0, 50, 100 or 150
    out.bytes[4..6].copy_from_slice(&flags.to_le_bytes());
    out.bytes[6..8].copy_from_slice(&headers.lead_bytes.to_le_bytes());
    out.bytes[8..16].copy_from_slice(&face.0.to_le_bytes());
    let mark = Some(headers.congestion_mark).filter(|&mark| mark != 0);
    let faces = [headers.incoming_face_id, headers.next_hop_face_id].map(|face| face.map(|face| face.0));
    for number in faces.into_iter().chain([mark]).flatten() {
        out.put(&number.to_le_bytes());
    }
    if let Some(visits) = visits {
        out.put(&visits.to_bytes());
    }
    if let Some(token) = &headers.pit_token {
        out.bytes[1] = token.as_bytes().len() as u8;
        out.put(token.as_bytes());
    }
    out.len = out.len.next_multiple_of(8);
    out.bytes[3] = out.len as u8;
    out
}

/// Reads a record. `None` for a record that no worker wrote, which does not happen.
fn decode(record: &mut [u8]) -> Option<Record<'_>> {
    let &[kind, token_bytes, nack, metadata_bytes, flags_low, flags_high, lead_low, lead_high, ..] = &*record else {
        return None;
    };
    let (metadata, packet) = record.split_at_mut_checked(usize::from(metadata_bytes))?;
    let (mut face, mut rest) = ([0; 8], metadata.get(FIXED_BYTES..)?);
    face.copy_from_slice(&metadata[FIXED_BYTES - 8..FIXED_BYTES]);
    let flags = u16::from_le_bytes([flags_low, flags_high]);
    let has = |bit: u16| flags & bit != 0;
    let mut number = |bit: u16| -> Option<Option<u64>> {
        if !has(bit) {
            return Some(None);
        }
        let (bytes, after) = rest.split_first_chunk()?;
        rest = after;
        Some(Some(u64::from_le_bytes(*bytes)))
    };
    let incoming = number(HAS_INCOMING)?;
    let next_hop = number(HAS_NEXT_HOP)?;
    let congestion_mark = number(HAS_MARK)?.unwrap_or(0);
    let mut visits = Visits::default();
    if has(HAS_VISITS) {
        let (bytes, after) = rest.split_first_chunk()?;
        (visits, rest) = (Visits::from_bytes(bytes), after);
    }
    let headers = LpHeaders {
        pit_token: PitToken::new(rest.get(..usize::from(token_bytes))?),
        nack: has(HAS_NACK).then(|| NackReason::from_code(u64::from(nack) * 50)),
        incoming_face_id: incoming.map(FaceId),
        next_hop_face_id: next_hop.map(FaceId),
        no_cache: has(NO_CACHE),
        congestion_mark,
        non_discovery: has(NON_DISCOVERY),
        collided: has(COLLIDED),
        lead_bytes: u16::from_le_bytes([lead_low, lead_high]),
    };
    let task = if kind == 1 { Task::Transmit } else { Task::Decide { visits } };
    Some(Record { task, face: FaceId(u64::from_le_bytes(face)), headers, packet })
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
    /// A bell for a worker without sockets, which polls its rings.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Bell { doorbell: Doorbell::new(), waker: Waker::new()? })
    }
}

/// Which workers wait for room in the rings to which others: one wish per ordered pair.
#[derive(Clone, Debug)]
struct RoomWanted {
    wishes: Arc<[RoomWish]>,
    workers: usize,
}

impl RoomWanted {
    fn wish(&self, from: usize, to: usize) -> &RoomWish {
        &self.wishes[from * self.workers + to]
    }
}

/// The rings out of one worker.
#[derive(Debug)]
pub struct Outbox {
    index: usize,
    /// For packets to decide, by worker.
    decisions: Vec<Option<Producer>>,
    /// For packets to transmit.
    transmissions: Vec<Option<Producer>>,
    bells: Arc<[Bell]>,
    room_wanted: RoomWanted,
    /// Rings with unpublished records, one bit each.
    dirty: u64,
    pushed: u64,
}

/// The rings into one worker.
#[derive(Debug)]
pub struct Inbox {
    index: usize,
    decisions: Vec<Source>,
    transmissions: Vec<Source>,
    bells: Arc<[Bell]>,
    room_wanted: RoomWanted,
}

/// A ring and the worker that fills it.
#[derive(Debug)]
struct Source {
    from: usize,
    ring: Consumer,
}

/// Makes the rings between all workers: (out of, into) each of them.
pub fn connect(bells: &Arc<[Bell]>) -> Vec<(Outbox, Inbox)> {
    let workers = bells.len();
    let wishes = (0..workers * workers).map(|_| RoomWish::default()).collect();
    let room_wanted = RoomWanted { wishes, workers };
    let inbox = |index| {
        let (bells, room_wanted) = (Arc::clone(bells), room_wanted.clone());
        Inbox { index, decisions: Vec::new(), transmissions: Vec::new(), bells, room_wanted }
    };
    let mut inboxes: Vec<Inbox> = (0..workers).map(inbox).collect();
    let mut outboxes = Vec::new();
    let ring = |from: usize, into: &mut Vec<Source>| {
        let (producer, ring) = crate::ring::channel(ring_bytes(workers));
        into.push(Source { from, ring });
        producer
    };
    for index in 0..workers {
        let (mut decisions, mut transmissions) = (Vec::new(), Vec::new());
        for (to, inbox) in inboxes.iter_mut().enumerate() {
            decisions.push((index != to).then(|| ring(index, &mut inbox.decisions)));
            transmissions.push((index != to).then(|| ring(index, &mut inbox.transmissions)));
        }
        let (bells, room_wanted) = (Arc::clone(bells), room_wanted.clone());
        outboxes.push(Outbox { index, decisions, transmissions, bells, room_wanted, dirty: 0, pushed: 0 });
    }
    outboxes.into_iter().zip(inboxes).collect()
}

impl Outbox {
    /// Queues a packet for another worker. False: there is no such room.
    pub fn push(&mut self, to: u8, room: Room, task: Task, face: FaceId, headers: &LpHeaders, packet: &[u8]) -> bool {
        let (producers, records_most) = match task {
            Task::Transmit => (&mut self.transmissions, usize::MAX),
            Task::Decide { .. } => (&mut self.decisions, WAITING_RECORDS_MOST),
        };
        let Some(producer) = producers.get_mut(usize::from(to)).and_then(Option::as_mut) else { return false };
        if room == Room::ForThoseWhoCanWait && producer.holds_more_than(records_most, producer.capacity_bytes() / 2) {
            return false;
        }
        let metadata = encode(task, face, headers);
        let pushed = match producer.try_push(&[metadata.as_bytes(), packet]) {
            Err(PushError::Full) => {
                // Queued records may just not be visible yet. Publish them, wake the worker that could make room while
                // this batch goes on, and try once more.
                producer.publish();
                let bell = &self.bells[usize::from(to)];
                bell.doorbell.ring(|| bell.waker.wake());
                producer.try_push(&[metadata.as_bytes(), packet])
            }
            other => other,
        };
        self.dirty |= 1 << to;
        self.pushed += u64::from(pushed.is_ok());
        pushed.is_ok()
    }

    /// Packets that have gone into the rings so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Makes all pushed records visible and wakes the workers that sleep.
    pub fn publish(&mut self) {
        while self.dirty != 0 {
            let to = self.dirty.trailing_zeros() as usize;
            self.dirty &= self.dirty - 1;
            for producers in [&mut self.decisions, &mut self.transmissions] {
                if let Some(producer) = &mut producers[to] {
                    producer.publish();
                }
            }
            let bell = &self.bells[to];
            bell.doorbell.ring(|| bell.waker.wake());
        }
    }

    /// Asks worker `to` to ring our bell when it has emptied a ring of ours. Try once more after this call: a ring that
    /// was emptied before it is not told of.
    pub fn want_room(&self, to: u8) {
        self.room_wanted.wish(self.index, usize::from(to)).make();
    }

    /// True if worker `to` has made no room since [`Outbox::want_room`].
    pub fn wants_room(&self, to: u8) -> bool {
        self.room_wanted.wish(self.index, usize::from(to)).is_made()
    }

    /// The bell of worker `index`.
    pub fn bell(&self, index: u8) -> &Bell {
        &self.bells[usize::from(index)]
    }
}

impl Inbox {
    /// True if a packet to decide waits in any ring.
    pub fn has_decisions(&mut self) -> bool {
        self.decisions.iter_mut().any(|source| source.ring.has_records())
    }

    /// True if a packet to transmit waits in any ring.
    pub fn has_transmissions(&mut self) -> bool {
        self.transmissions.iter_mut().any(|source| source.ring.has_records())
    }

    /// Lends up to `max_records` packets to decide of each ring in turn to `take`, which gets at most `batch` of one
    /// ring at once and says whether it takes more.
    pub fn drain_decisions(
        &mut self,
        max_records: usize,
        batch: usize,
        mut take: impl FnMut(&mut dyn Iterator<Item = Record<'_>>) -> bool,
    ) {
        let Inbox { index, decisions, bells, room_wanted, .. } = self;
        // The first is another one in each turn, or the last ones would wait while results find no room.
        let by = usize::from(decisions.len() > 1);
        decisions.rotate_left(by);
        for _ in 0..max_records.div_ceil(batch) {
            for source in decisions.iter_mut() {
                if !drain(source, batch, &mut take, *index, bells, room_wanted) {
                    return;
                }
            }
        }
    }

    /// The same for packets to transmit.
    pub fn drain_transmissions(
        &mut self,
        max_records: usize,
        mut take: impl FnMut(&mut dyn Iterator<Item = Record<'_>>),
    ) {
        let Inbox { index, transmissions, bells, room_wanted, .. } = self;
        let mut take_all = |records: &mut dyn Iterator<Item = Record<'_>>| {
            take(records);
            true
        };
        for source in transmissions {
            drain(source, max_records, &mut take_all, *index, bells, room_wanted);
        }
    }
}

/// Lends the records of a ring; returns whether `take` takes more.
fn drain(
    source: &mut Source,
    max_records: usize,
    take: &mut dyn FnMut(&mut dyn Iterator<Item = Record<'_>>) -> bool,
    index: usize,
    bells: &[Bell],
    room_wanted: &RoomWanted,
) -> bool {
    let mut batch = source.ring.batch(max_records);
    if batch.is_empty() {
        return true;
    }
    let takes_more = take(&mut batch.records().filter_map(decode));
    drop(batch);
    if room_wanted.wish(source.from, index).take() {
        let bell = &bells[source.from];
        bell.doorbell.ring(|| bell.waker.wake());
    }
    takes_more
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two workers: what may go from the first to the second, and what the second takes.
    #[test]
    fn those_who_can_wait_leave_room_for_datagrams() {
        let bells: Arc<[Bell]> = [Bell::new().unwrap(), Bell::new().unwrap()].into();
        let mut ends = connect(&bells).into_iter();
        let ((mut outbox, _), (_, mut inbox)) = (ends.next().unwrap(), ends.next().unwrap());
        let decide = Task::Decide { visits: Visits::default() };
        let mut pushed = |room, task, bytes: usize| {
            let push = |_: &()| outbox.push(1, room, task, FaceId(300), &LpHeaders::default(), &vec![7; bytes]);
            let count = std::iter::repeat(()).take_while(push).count();
            outbox.publish();
            count
        };
        // Small packets: a few turns' worth. Datagrams have far more room.
        assert_eq!(pushed(Room::ForThoseWhoCanWait, decide, 100), WAITING_RECORDS_MOST + 1);
        assert!(pushed(Room::All, decide, 100) > 10 * WAITING_RECORDS_MOST);
        assert_eq!(pushed(Room::ForThoseWhoCanWait, decide, 100), 0);
        // Large ones: half of the bytes.
        let half = pushed(Room::ForThoseWhoCanWait, Task::Transmit, 8_800);
        let rest = pushed(Room::All, Task::Transmit, 8_800);
        assert!(half.abs_diff(rest) <= 2 && half > 100, "{half} and {rest}");

        // The second worker takes at most what one turn may take, in batches. Those who wait have room again when fewer
        // than the limit are left.
        let mut taken = Vec::new();
        inbox.drain_decisions(decisions_per_turn(2, 256, 64), 64, |records| {
            taken.push(records.count());
            true
        });
        assert_eq!(taken, [64; 4]);
        assert_eq!(pushed(Room::ForThoseWhoCanWait, decide, 100), 0);
        while inbox.has_decisions() {
            inbox.drain_decisions(256, 64, |records| records.count() > 0);
        }
        assert_eq!(pushed(Room::ForThoseWhoCanWait, decide, 100), WAITING_RECORDS_MOST + 1);
        assert_eq!([2, 4, 16].map(|workers| decisions_per_turn(workers, 256, 64)), [256, 128, 64]);
    }

    #[test]
    fn metadata_survives_the_ring() {
        let samples = [
            (Task::Transmit, LpHeaders::default()),
            (
                Task::Decide { visits: Visits::from_bytes(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 2]) },
                LpHeaders {
                    pit_token: PitToken::new(&[7; 32]),
                    nack: Some(NackReason::NoRoute),
                    incoming_face_id: Some(FaceId(u64::MAX)),
                    next_hop_face_id: Some(FaceId(0)),
                    no_cache: true,
                    congestion_mark: 9,
                    non_discovery: true,
                    collided: true,
                    lead_bytes: 4567,
                },
            ),
            (
                Task::Decide { visits: Visits::default() },
                LpHeaders { nack: Some(NackReason::None), pit_token: PitToken::new(&[1]), ..LpHeaders::default() },
            ),
        ];
        for &(task, headers) in &samples {
            let mut record = encode(task, FaceId(300), &headers).as_bytes().to_vec();
            record.extend_from_slice(b"packet");
            let read = decode(&mut record).unwrap();
            assert_eq!((read.task, read.face, read.headers), (task, FaceId(300), headers));
            assert_eq!(read.packet, b"packet");
        }
        let of_data = LpHeaders {
            pit_token: PitToken::new(&[7; 6]),
            incoming_face_id: Some(FaceId(300)),
            ..LpHeaders::default()
        };
        for (task, headers, bytes) in [
            (Task::Decide { visits: Visits::default() }, LpHeaders::default(), 16),
            (Task::Transmit, of_data, 32),
            (samples[1].0, samples[1].1, METADATA_BYTES_MOST),
        ] {
            assert_eq!(encode(task, FaceId(300), &headers).as_bytes().len(), bytes);
        }
        // Records that no worker writes: refused, whatever they claim.
        assert!(decode(&mut [0; 10]).is_none());
        assert!(decode(&mut [0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
        assert!(decode(&mut [0, 0, 0, 16, 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
        assert!(decode(&mut [0, 9, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
    }
}
