//! One worker thread: what happens to a packet between two system calls.
//!
//! Read [`Worker::run`] first. Every turn takes messages from control, packets from the worker's sockets, and records
//! from the other workers' rings. The engine decides them batch by batch, and [`WorkerIo`] sends the results.

mod frozen;
mod idle;
mod laning;
mod serving;

use crate::{
    busy_polling::BusyPolling,
    cs_erasure::CsErasureQueue,
    io::WorkerIo,
    mesh::{Inbox, Record, Task, decisions_per_turn},
    messages::{FromWorker, LaneReport, ToWorker},
    pit_looks::{News, PitLooks},
    shared::{Shared, TableReader, Tables, WorkerStatus},
};
use arrayvec::ArrayVec;
use namewire_engine::{
    BATCH_PACKETS, Engine, FaceAttributes, Frame, HandOver, Instant, LinkType, Output, UPSTREAM_PERIOD_MS,
    dispatch::Visits,
};
use namewire_faces::{FaceEvent, RxArena, RxPacket};
use namewire_tables::NameHashes;
use std::sync::{
    Arc,
    mpsc::{Receiver, SyncSender},
};

/// Packets read from sockets in one turn: a few batches, so that timers and rings are not starved.
const PACKETS_PER_TURN: usize = 4 * BATCH_PACKETS;

/// Packets to transmit that are taken from each ring in one turn: more than a turn can cause, so that they do not pile
/// up.
const TRANSMISSIONS_PER_TURN: usize = 4 * PACKETS_PER_TURN;

/// A busy worker publishes its counters this often.
const STATUS_INTERVAL_NS: u64 = 5_000_000;

pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) engine: Engine,
    pub(crate) messages: Receiver<ToWorker>,
    pub(crate) inbox: Inbox,
    /// How long to look for packets before sleeping.
    pub(crate) busy_polling: BusyPolling,
    /// Time of turns that had packets.
    pub(crate) busy_ns: u64,
    pub(crate) cs_erasures: CsErasureQueue,
    pub(crate) pit_looks: PitLooks,
    pub(crate) io: WorkerIo,
}

/// Buffers reused from turn to turn.
#[derive(Default)]
struct Scratch {
    arena: RxArena,
    received: Vec<RxPacket>,
    local: Vec<RxPacket>,
    visits_left: Vec<Visits>,
    output: Output,
    hashes: NameHashes,
}

impl Worker {
    /// Forwards until told to stop. `allocated` hears when the worker has its buffers, so that whoever starts it knows
    /// how much memory is left.
    pub(crate) fn run(mut self, allocated: &SyncSender<()>) {
        let mut scratch = Scratch { hashes: NameHashes::with_full_room(), ..Scratch::default() };
        let _ = allocated.send(()); // or the start has failed, and the worker ends soon
        let mut tables = self.shared.table_reader();
        let (mut status_due_ns, mut upstreams_due_ns) = (0, 0);
        loop {
            let now_ns = self.shared.now_ns();
            self.io.now_ns = now_ns;
            if !self.serve_messages(now_ns, &mut tables, &mut scratch) {
                return;
            }
            self.erase_from_store();
            self.io.send_backlog();
            let received = self.receive(now_ns, &mut tables, &mut scratch);
            let records = self.decide_rings(&mut tables, &mut scratch);
            self.catch_up(now_ns, received, records, &mut tables, &mut scratch);
            let pinned = tables.pin();
            self.run_timers(now_ns, &pinned, &mut scratch);
            self.look_at_pit(now_ns, &pinned, &mut scratch);
            self.io.search_tags(pinned.view().faces);
            drop(pinned);
            self.io.outbox.publish();
            self.io.driver.flush();
            self.note_face_events();

            if received > 0 || records > 0 {
                self.note_busy_turn(now_ns);
            }
            let is_over = received == 0 || !self.look();
            if now_ns >= upstreams_due_ns {
                self.publish_upstreams();
                upstreams_due_ns = now_ns + UPSTREAM_PERIOD_MS * 1_000_000;
            }
            let may_sleep = is_over && !self.io.driver.never_sleeps();
            if may_sleep || now_ns >= status_due_ns {
                self.publish_status();
                status_due_ns = now_ns + STATUS_INTERVAL_NS;
            }
            if is_over && !self.poll() {
                self.sleep();
            }
        }
    }

    /// Reads the sockets once and decides what came; returns the number of packets.
    fn receive(&mut self, now_ns: u64, tables: &mut TableReader, scratch: &mut Scratch) -> usize {
        self.io.driver.receive(now_ns, &mut scratch.arena, &mut scratch.received, PACKETS_PER_TURN);
        self.note_face_events();
        self.decide_received(&tables.pin(), scratch);
        scratch.received.len()
    }

    /// Reads the sockets until they have had as much of this turn as the other workers' rings, or have no more.
    /// Otherwise whoever's packets come by a ring would get more of this worker than the neighbours on its own sockets.
    /// N.B. 150 greedy streams of the other worker filled the buffer of its UDP socket: the kernel dropped 8 % of what
    /// came there, and none with this (`namewire-lab run hostile --workers 2`).
    fn catch_up(
        &mut self,
        now_ns: u64,
        mut received: usize,
        records: usize,
        tables: &mut TableReader,
        scratch: &mut Scratch,
    ) {
        while received < records {
            match self.receive(now_ns, tables, scratch) {
                0 => return,
                more => received += more,
            }
        }
    }

    /// Decides the packets from our sockets whose names are ours, and passes the others to their workers.
    fn decide_received(&mut self, tables: &Tables<'_>, scratch: &mut Scratch) {
        let Scratch { arena, received, local, visits_left, output, hashes } = scratch;
        let dispatcher = &self.shared.dispatcher;
        let packets: &[RxPacket] = if dispatcher.workers() == 1 && self.io.index == 0 {
            visits_left.clear();
            visits_left.resize(received.len(), Visits::default());
            received
        } else {
            local.clear();
            visits_left.clear();
            for packet in received.iter() {
                let bytes = arena.packet(packet);
                let mut visits = dispatcher.route(self.io.index, &packet.headers, bytes, hashes);
                let worker = visits.take(self.io.index);
                if worker == self.io.index {
                    local.push(*packet);
                    visits_left.push(visits);
                } else {
                    self.io.push_received(worker, visits, packet, bytes);
                }
            }
            local
        };
        for (chunk, visits_left) in packets.chunks(BATCH_PACKETS).zip(visits_left.chunks(BATCH_PACKETS)) {
            let mut frames: ArrayVec<Frame<'_>, BATCH_PACKETS> = chunk
                .iter()
                .zip(arena.packets_mut(chunk))
                .zip(visits_left)
                .map(|((meta, packet), &visits)| Frame { face: meta.face, headers: meta.headers, packet, visits })
                .collect();
            self.io.is_of_datagrams = is_of_datagrams(&self.io, self.shared.threads(), chunk);
            decide(&mut self.engine, &mut self.io, tables, &mut frames, output);
            self.io.is_of_datagrams = false;
            if self.io.backlog.has_transmissions() {
                self.io.hold_streams(chunk.iter().map(|packet| packet.face));
            }
        }
    }

    /// Decides packets from other workers, which the ring lends for one batch, and transmits others. Returns how many.
    fn decide_rings(&mut self, tables: &mut TableReader, scratch: &mut Scratch) -> usize {
        let Worker { engine, io, inbox, .. } = self;
        let output = &mut scratch.output;
        let mut count = 0;
        inbox.drain_transmissions(TRANSMISSIONS_PER_TURN, |records| {
            let tables = tables.pin();
            let faces = tables.view().faces;
            records.for_each(|Record { face, headers, packet, .. }| {
                count += 1;
                io.transmit_here(faces, face, &headers, packet);
            });
        });
        if io.backlog.has_transmissions() {
            return count;
        }
        let decisions_most = decisions_per_turn(self.shared.dispatcher.workers(), PACKETS_PER_TURN, BATCH_PACKETS);
        inbox.drain_decisions(decisions_most, BATCH_PACKETS, |records| {
            // Pinned here and not earlier: these packets may have come from a face made since this turn began. The
            // worker that made the face wrote it into the face table before it published them.
            let tables = tables.pin();
            let mut frames: ArrayVec<Frame<'_>, BATCH_PACKETS> = ArrayVec::new();
            for Record { task, face, headers, packet } in records {
                if let Task::Decide { visits } = task {
                    frames.push(Frame { face, headers, packet, visits });
                }
            }
            count += frames.len();
            decide(engine, io, &tables, &mut frames, output);
            !io.backlog.has_transmissions()
        });
        count
    }

    fn run_timers(&mut self, now_ns: u64, tables: &Tables<'_>, scratch: &mut Scratch) {
        self.io.driver.run_timers(now_ns);
        if self.io.driver.take_freed() {
            self.tell(FromWorker::MemoryFreed);
        }
        let view = tables.view();
        if self.engine.next_deadline().is_some_and(|at| at.0 <= now_ns) {
            self.engine.run_timers(Instant(now_ns), &view, &mut scratch.output);
            self.io.transmit_all(&self.engine, &view, &[], &scratch.output);
        }
    }

    fn erase_from_store(&mut self) {
        if !self.cs_erasures.has_work() {
            return;
        }
        if let Some((id, erased)) = self.cs_erasures.step(&mut self.engine) {
            // Before the answer, so that its receiver finds the store smaller.
            self.publish_status();
            self.tell(FromWorker::CsErased { id, erased });
        }
        if self.cs_erasures.has_work() {
            self.io.driver.waker().wake(); // come back without sleeping
        }
    }

    fn tell(&self, event: FromWorker) {
        self.io.control.tell(event);
    }

    /// Lets pending Interests follow the present links and next hops, if it is time.
    fn look_at_pit(&mut self, now_ns: u64, tables: &Tables<'_>, scratch: &mut Scratch) {
        let Some(News { down, up, gained }) = self.pit_looks.take_due(now_ns) else { return };
        let (now, view, output) = (Instant(now_ns), tables.view(), &mut scratch.output);
        let began_ns = self.shared.now_ns();
        if !down.is_empty() {
            if self.engine.faces_down(now, &view, &down, output) {
                self.pit_looks.add_down(&down);
            }
            self.io.transmit_all(&self.engine, &view, &[], output);
        }
        if !up.is_empty() {
            if self.engine.faces_up(now, &view, &up, output) {
                self.pit_looks.add_up(&up);
            }
            self.io.transmit_all(&self.engine, &view, &[], output);
        }
        if !gained.is_empty() {
            self.engine.new_next_hops(now, &view, &gained, output);
            self.io.transmit_all(&self.engine, &view, &[], output);
        }
        self.pit_looks.note_look(began_ns, self.shared.now_ns());
    }

    /// Reports what happened to faces. A face that a datagram made goes into the shared table here, before its first
    /// packet is decided.
    fn note_face_events(&mut self) {
        let events: Vec<FaceEvent> = self.io.driver.events().collect();
        let created = |event: &FaceEvent| match event {
            FaceEvent::Created { face, info } => Some((*face, info.scope)),
            _ => None,
        };
        if events.iter().any(|event| created(event).is_some()) {
            // One change for all of them, because it copies the table.
            self.shared.faces.change(|faces| {
                for (face, scope) in events.iter().filter_map(created) {
                    let attributes = FaceAttributes::new(scope, self.io.index, false);
                    // It may have closed since, which is another event.
                    let holder = self.io.driver.holder(face).unwrap_or(attributes.holder);
                    faces.insert(face, FaceAttributes { holder, ..attributes });
                }
            });
        }
        for event in events {
            match event {
                FaceEvent::Created { face, info } => {
                    let counters = self.io.driver.counters(face).unwrap_or_default();
                    self.tell(FromWorker::FaceMade { worker: self.io.index, face, info, counters });
                }
                FaceEvent::Closed { face, reason } => self.tell(FromWorker::FaceClosed { face, reason }),
                FaceEvent::Down { face, reason } => self.tell(FromWorker::FaceDown { face, reason }),
                FaceEvent::Up { face } => self.tell(FromWorker::FaceUp { face }),
                FaceEvent::LaneHello { face, hello } => {
                    self.tell(FromWorker::Lane(LaneReport::Hello { face, hello }));
                }
                FaceEvent::SpokeLp { face } => {
                    self.shared.faces.change(|faces| {
                        // Only this member of the group is known to understand tokens.
                        if let Some(attributes) = faces.get(face)
                            && attributes.link_type == LinkType::PointToPoint
                        {
                            attributes.tokens.store(true, std::sync::atomic::Ordering::Relaxed);
                        }
                    });
                }
            }
        }
    }

    /// A worker that sleeps publishes what it measured last when it wakes. Each question of management wakes one.
    fn publish_upstreams(&mut self) {
        self.engine.end_of_upstream_period();
        let mut published = self.shared.upstream_times(self.io.index);
        published.clear();
        published.extend(self.engine.upstream_times());
    }

    fn publish_status(&self) {
        let status = WorkerStatus {
            counters: self.engine.counters(),
            drops: self.io.drops,
            tags: self.io.tags.counters,
            pit_entries: self.engine.pit_len() as u64 + self.engine.fingerprints_len(),
            cs_entries: self.engine.cs_len() as u64,
            cs_bytes: self.engine.cs_bytes(),
            name_groups: self.engine.name_groups() as u64,
            busy_ns: self.busy_ns,
            polling: self.busy_polling.counters(),
            measurement_entries: self.engine.measurements_len() as u64,
            short_reads: self.io.driver.short_reads(),
            crossed: self.io.outbox.pushed(),
        };
        if self.shared.publish(self.io.index, status) {
            self.tell(FromWorker::Traffic);
        }
        self.engine.cs_report(&mut self.shared.cs_report(self.io.index));
    }
}

/// See [`Worker::has_records`]. Packets to decide wait while results of earlier ones do.
fn has_records(inbox: &mut Inbox, io: &WorkerIo) -> bool {
    inbox.has_transmissions()
        || (!io.backlog.has_transmissions() && inbox.has_decisions())
        || io.backlog.may_go_on(&io.outbox)
}

/// True if no packet came over a stream. With one thread nothing waits, and it does not matter.
fn is_of_datagrams(io: &WorkerIo, threads: usize, packets: &[RxPacket]) -> bool {
    if threads == 1 {
        return false;
    }
    let mut last = None;
    packets.iter().filter(|packet| last.replace(packet.face) != Some(packet.face)).all(|packet| {
        // A face that has closed since is no stream.
        !io.driver.is_stream(packet.face)
    })
}

/// Decides one batch. A packet that a trace is about is decided alone, so that all that follows is because of it.
fn decide(engine: &mut Engine, io: &mut WorkerIo, tables: &Tables<'_>, frames: &mut [Frame<'_>], output: &mut Output) {
    if io.traces.is_empty() {
        return decide_together(engine, io, tables, frames, output);
    }
    let mut rest = frames;
    while !rest.is_empty() {
        let untraced = rest.iter().take_while(|frame| !io.traces.takes(frame)).count();
        let (batch, after) = rest.split_at_mut(untraced.max(1));
        if untraced > 0 {
            decide_together(engine, io, tables, batch, output);
        } else {
            let before = io.traces.before(engine, &batch[0]);
            decide_together(engine, io, tables, batch, output);
            io.traces.note(before, engine, &batch[0], output, io.index);
        }
        rest = after;
    }
}

/// One batch: the engine decides, the verdicts are sent, and packets that other workers must see go on to the next of
/// them. Packets of TagNet have their own tables.
fn decide_together(
    engine: &mut Engine,
    io: &mut WorkerIo,
    tables: &Tables<'_>,
    frames: &mut [Frame<'_>],
    output: &mut Output,
) {
    if frames.is_empty() {
        return;
    }
    let view = tables.view();
    engine.process(Instant(io.now_ns), &view, frames, output);
    io.transmit_all(engine, &view, frames, output);
    if !output.tag_frames.is_empty() {
        io.forward_tag_frames(view.faces, frames, &output.tag_frames);
    }
    for &HandOver { frame, mut visits } in &output.hand_over {
        let frame = &frames[usize::from(frame)];
        let next = visits.take(io.index);
        io.push(next, Task::Decide { visits }, frame.face, &frame.headers, frame.packet);
    }
}
