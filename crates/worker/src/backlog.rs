//! Backlog: packets that found no room in a ring, and the stream faces that wait for these packets: the worker does not
//! read them meanwhile.
//!
//! ```text
//!   stream ─► worker ══ ring: decide ══► other worker ══ ring: transmit ══► ...
//!     ▲         │ full                      │ full
//!     │      waits here, by face         waits here; meanwhile it takes no packets to decide
//!     └─ not read
//! ```
//!
//! A stream that writes as fast as it can would fill the rings, and the packets of others would be dropped. TCP and
//! Unix sockets can wait, so a full ring holds back the stream that fills it. The packets that the worker has read from
//! this stream wait here, and the worker does not read the stream until they have left. Meanwhile the kernel's buffers
//! fill up, and the peer waits. Datagrams cannot wait: half of each ring is for them alone, and if there is no room
//! they are dropped as `ring-full`.
//!
//! The holders whose streams wait for a worker take turns ([`namewire_shares::turns`]), one packet each, and so do the
//! streams of a holder. So an operator's command does not wait behind the backlog of another user's 600 streams.
//!
//! Decided packets that a worker cannot pass on wait here, too. Meanwhile the worker takes no further packets to decide
//! from its rings, and does not read the streams whose packets were in the same batches. It always takes packets to
//! transmit, so the rings for them empty, and no worker waits for ever.
//!
//! Limits: packets of streams share a pool, `held-back`, by holder. A stream is not read while a packet of it waits, so
//! it has at most what one turn read. Results for one worker have [`RESULT_BYTES`]. Packets that find no room are
//! dropped as `ring-full`.
//!
//! Cost: nothing while no ring is full, except a test per turn.

use crate::mesh::{Outbox, Room, Task};
use namewire_engine::FaceId;
use namewire_packet::lp::LpHeaders;
use namewire_shares::{Groups, HolderId, Payer, Pool, PoolConfig, PoolReader, Turns};
use std::collections::{HashMap, VecDeque, hash_map::Entry};

/// Bytes of the pool of packets that wait for streams.
const HELD_BACK_BYTES: u64 = 8 << 20;

/// Bytes of results that may wait for one worker.
const RESULT_BYTES: usize = 4 << 20;

/// A packet on its way to another worker.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) to: u8,
    pub(crate) task: Task,
    pub(crate) face: FaceId,
    pub(crate) headers: &'a LpHeaders,
    pub(crate) packet: &'a [u8],
}

/// A packet that waits.
struct Waiting {
    task: Task,
    face: FaceId,
    headers: LpHeaders,
    packet: Box<[u8]>,
}

impl Waiting {
    fn new(outgoing: Outgoing<'_>) -> Self {
        let Outgoing { task, face, headers, packet, .. } = outgoing;
        Waiting { task, face, headers: *headers, packet: packet.into() }
    }

    fn push(&self, outbox: &mut Outbox, to: u8) -> bool {
        outbox.push(to, Room::ForThoseWhoCanWait, self.task, self.face, &self.headers, &self.packet)
    }
}

/// What waits for one worker.
#[derive(Default)]
struct Line {
    /// Packets of streams. No queue is empty.
    streams: HashMap<FaceId, VecDeque<Waiting>>,
    /// Those streams, by their turns; made when the first one waits.
    turns: Option<Turns<FaceId>>,
    /// Results to transmit, and results that another worker must decide further.
    results: [VecDeque<Waiting>; 2],
    result_bytes: usize,
}

impl Line {
    fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.results.iter().all(VecDeque::is_empty)
    }
}

/// Index of a task's kind in [`Line::results`].
fn kind(task: Task) -> usize {
    usize::from(task != Task::Transmit)
}

/// See the module documentation.
pub(crate) struct Backlog {
    lines: Box<[Line]>,
    /// Stream faces that are not read, with their packets that wait, and the bytes of these by the pool.
    held: HashMap<FaceId, Held>,
    held_back: Pool,
    groups: Groups,
    /// Results to transmit that wait.
    transmissions: usize,
}

#[derive(Default)]
struct Held {
    holder: HolderId,
    packets: usize,
}

impl Backlog {
    pub(crate) fn new(workers: usize, groups: &Groups) -> Self {
        let config = PoolConfig {
            name: "held-back",
            capacity: HELD_BACK_BYTES,
            share_percent: 80,
            management_reserve: HELD_BACK_BYTES / 16,
            local_reserve: HELD_BACK_BYTES / 8,
        };
        Backlog {
            lines: (0..workers).map(|_| Line::default()).collect(),
            held: HashMap::new(),
            held_back: Pool::new(config, groups),
            groups: groups.clone(),
            transmissions: 0,
        }
    }

    /// The pool, for reports.
    pub(crate) fn pool(&self) -> PoolReader {
        self.held_back.reader()
    }

    /// True if results to transmit wait: no more should be decided for other workers.
    pub(crate) fn has_transmissions(&self) -> bool {
        self.transmissions > 0
    }

    /// Whether a worker for which something waits has made room since we asked.
    pub(crate) fn may_go_on(&self, outbox: &Outbox) -> bool {
        self.lines.iter().enumerate().any(|(to, line)| !line.is_empty() && !outbox.wants_room(to as u8))
    }

    /// Whether packets of a stream wait for the same worker: later ones wait behind them.
    pub(crate) fn is_waiting(&self, face: FaceId, to: u8) -> bool {
        // N.B. the first test spares the look-up, which would cost every packet of a router with several workers.
        !self.held.is_empty()
            && self.held.contains_key(&face)
            && self.lines[usize::from(to)].streams.contains_key(&face)
    }

    /// Keeps a packet of a stream, which must not be read from now on. False: the holder has its share of the pool.
    pub(crate) fn hold(&mut self, outgoing: Outgoing<'_>, holder: HolderId) -> bool {
        if self.held_back.try_take(holder, outgoing.packet.len() as u64).is_err() {
            return false;
        }
        let held = self.held.entry(outgoing.face).or_default();
        held.holder = holder;
        held.packets += 1;
        let Line { streams, turns, .. } = &mut self.lines[usize::from(outgoing.to)];
        let packets = streams.entry(outgoing.face).or_insert_with(|| {
            let turns = turns.get_or_insert_with(|| Turns::new(1, &self.groups));
            turns.push(Payer::Holder(holder), outgoing.face);
            VecDeque::new()
        });
        packets.push_back(Waiting::new(outgoing));
        true
    }

    /// Notes that a stream is not read although no packet of it waits: its results do.
    pub(crate) fn hold_face(&mut self, face: FaceId) {
        self.held.entry(face).or_default();
    }

    /// Whether results of this kind wait for a worker: later ones wait behind them.
    pub(crate) fn has_results(&self, to: u8, task: Task) -> bool {
        !self.lines[usize::from(to)].results[kind(task)].is_empty()
    }

    /// Keeps a result. False: too many wait.
    pub(crate) fn keep_result(&mut self, outgoing: Outgoing<'_>) -> bool {
        let line = &mut self.lines[usize::from(outgoing.to)];
        if line.result_bytes + outgoing.packet.len() > RESULT_BYTES {
            return false;
        }
        line.result_bytes += outgoing.packet.len();
        self.transmissions += usize::from(outgoing.task == Task::Transmit);
        line.results[kind(outgoing.task)].push_back(Waiting::new(outgoing));
        true
    }

    /// Passes on what finds room now. Returns the streams that may be read again.
    pub(crate) fn send(&mut self, outbox: &mut Outbox) -> Vec<FaceId> {
        if self.held.is_empty() && self.lines.iter().all(Line::is_empty) {
            return Vec::new();
        }
        for to in 0..self.lines.len() as u8 {
            if !self.lines[usize::from(to)].is_empty() && !self.send_line(outbox, to) {
                outbox.want_room(to);
                self.send_line(outbox, to);
            }
        }
        if self.has_transmissions() {
            return Vec::new();
        }
        let free = self.held.extract_if(|_, held| held.packets == 0).map(|(face, _)| face);
        free.collect()
    }

    /// Passes on what waits for one worker; false if something stays.
    fn send_line(&mut self, outbox: &mut Outbox, to: u8) -> bool {
        let line = &mut self.lines[usize::from(to)];
        for results in &mut line.results {
            while let Some(waiting) = results.front() {
                if !waiting.push(outbox, to) {
                    break;
                }
                line.result_bytes -= waiting.packet.len();
                self.transmissions -= usize::from(waiting.task == Task::Transmit);
                results.pop_front();
            }
        }
        while let Some(turns) = &mut line.turns
            && let Some(face) = turns.begin()
        {
            let mut has_more = false;
            if let Entry::Occupied(mut packets) = line.streams.entry(face) {
                if let Some(waiting) = packets.get().front() {
                    if !waiting.push(outbox, to) {
                        return false;
                    }
                    if let Some(held) = self.held.get_mut(&face) {
                        held.packets -= 1;
                        self.held_back.give_back(held.holder, waiting.packet.len() as u64);
                    }
                    packets.get_mut().pop_front();
                }
                has_more = !packets.get().is_empty();
                if !has_more {
                    packets.remove();
                }
            }
            turns.end(1, has_more);
        }
        line.is_empty()
    }
}
