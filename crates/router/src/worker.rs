//! One worker thread: what happens to a packet between two system calls.
//!
//! Read [`Worker::run`] first. Every turn takes messages from control, packets from
//! its sockets and from the other workers' rings, lets the engine decide batch by
//! batch, and sends what came out ([`Exit`]).

use crate::{
    cs_erasure::CsErasureQueue,
    exit::Exit,
    mesh::{Inbox, Record, Task},
    messages::{FaceChange, ToControl, ToWorker},
    pit_looks::{News, PitLooks},
    shared::{Shared, TableReader, Tables, WorkerStatus},
};
use arrayvec::ArrayVec;
use namewire_engine::{
    BATCH_PACKETS, Engine, FaceAttributes, FaceId, FaceScope, Frame, HandOver, Instant, LinkType, Output, View,
    dispatch::Round,
};
use namewire_faces::{AddFaceError, CloseReason, FaceEvent, RxArena, RxPacket};
use namewire_packet::lp::LpHeaders;
use namewire_tables::NameHashes;
use std::{
    sync::{Arc, mpsc::Receiver},
    time::Duration,
};

/// Packets read from sockets in one turn: a few batches, so that timers and rings are not starved.
const PACKETS_PER_TURN: usize = 4 * BATCH_PACKETS;

/// Records taken from each ring in one turn.
const RECORDS_PER_TURN: usize = BATCH_PACKETS;

/// A busy worker publishes its counters this often.
const STATUS_INTERVAL_NS: u64 = 5_000_000;

/// Control's messages served in one turn.
const MESSAGES_PER_TURN: usize = 64;

pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) engine: Engine,
    pub(crate) messages: Receiver<ToWorker>,
    pub(crate) inbox: Inbox,
    /// How long to look for packets before sleeping.
    pub(crate) busy_poll: Duration,
    pub(crate) cs_erasures: CsErasureQueue,
    pub(crate) pit_looks: PitLooks,
    pub(crate) exit: Exit,
}

/// What is reused from turn to turn.
#[derive(Default)]
struct Scratch {
    arena: RxArena,
    received: Vec<RxPacket>,
    local: Vec<RxPacket>,
    rounds: Vec<Round>,
    output: Output,
    hashes: NameHashes,
}

impl Worker {
    /// Forwards until told to stop.
    pub(crate) fn run(mut self) {
        let mut scratch = Scratch { hashes: NameHashes::with_full_room(), ..Scratch::default() };
        let mut tables = self.shared.table_reader();
        let mut status_due_ns = 0;
        let mut poll_until_ns = 0;
        loop {
            let now_ns = self.shared.now_ns();
            self.exit.now_ns = now_ns;
            if !self.serve_messages(now_ns, &mut tables, &mut scratch) {
                return;
            }
            self.erase_from_store();
            self.exit.driver.receive(now_ns, &mut scratch.arena, &mut scratch.received, PACKETS_PER_TURN);
            self.note_face_events();
            let pinned = tables.pin();
            self.decide_received(&pinned, &mut scratch);
            drop(pinned);
            let had_records = self.decide_rings(&mut tables, &mut scratch);
            let pinned = tables.pin();
            self.run_timers(now_ns, &pinned, &mut scratch);
            self.look_at_pit(now_ns, &pinned, &mut scratch);
            drop(pinned);
            self.exit.outbox.publish();
            self.exit.driver.flush();
            self.note_face_events();

            let is_idle = scratch.received.is_empty();
            if is_idle || now_ns >= status_due_ns {
                self.publish_status();
                status_due_ns = now_ns + STATUS_INTERVAL_NS;
            }
            if !is_idle || had_records {
                poll_until_ns = now_ns + self.busy_poll.as_nanos() as u64;
            }
            if is_idle && self.poll(poll_until_ns) {
                continue;
            }
            self.sleep(is_idle);
        }
    }

    /// Looks for packets again and again until `until_ns` or the next deadline. True as soon as
    /// a socket, another worker or control has something; nobody has to wake this worker.
    fn poll(&mut self, until_ns: u64) -> bool {
        let until_ns = self.next_deadline_ns().map_or(until_ns, |deadline_ns| deadline_ns.min(until_ns));
        while self.shared.now_ns() < until_ns {
            // Of an error (no memory for epoll's answer) the next look will tell.
            if self.inbox.has_records() || self.exit.driver.wait(Some(Duration::ZERO)).unwrap_or(false) {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// When a timer of the engine or of the sockets has something to do, or pending Interests are to be looked at.
    fn next_deadline_ns(&self) -> Option<u64> {
        let engine_ns = self.engine.next_deadline().map(|at| at.0);
        let deadlines_ns = [engine_ns, self.exit.driver.next_deadline_ns(), self.pit_looks.deadline_ns()];
        deadlines_ns.into_iter().flatten().min()
    }

    /// Sleeps until a socket, another worker, control or a timer has something;
    /// only looks if this turn had packets.
    fn sleep(&mut self, is_idle: bool) {
        let until_deadline = self.next_deadline_ns().map(|at_ns| {
            // Rounded up to the clock of epoll, or the last millisecond would be spent spinning.
            Duration::from_millis(at_ns.saturating_sub(self.shared.now_ns()).div_ceil(1_000_000))
        });
        let inbox = &mut self.inbox;
        let doorbell = &self.exit.outbox.bell(self.exit.index).doorbell;
        let may_sleep = is_idle && doorbell.may_sleep(|| inbox.has_records());
        let timeout = if may_sleep { until_deadline } else { Some(Duration::ZERO) };
        // An error here (no memory for epoll's answer) passes; the next turn asks again.
        let _ = self.exit.driver.wait(timeout);
        if may_sleep {
            doorbell.awake();
        }
    }

    /// Packets from our sockets: ours are decided here, the others go to their workers.
    fn decide_received(&mut self, tables: &Tables<'_>, scratch: &mut Scratch) {
        let Scratch { arena, received, local, rounds, output, hashes } = scratch;
        let dispatcher = &self.shared.dispatcher;
        let packets: &[RxPacket] = if dispatcher.workers() == 1 {
            rounds.clear();
            rounds.resize(received.len(), Round::default());
            received
        } else {
            local.clear();
            rounds.clear();
            for packet in received.iter() {
                let octets = arena.packet(packet);
                let mut round = dispatcher.route(self.exit.index, &packet.headers, octets, hashes);
                let worker = round.take(self.exit.index);
                if worker == self.exit.index {
                    local.push(*packet);
                    rounds.push(round);
                } else {
                    self.exit.push(worker, Task::Decide { round }, packet.face, &packet.headers, octets);
                }
            }
            local
        };
        let view = tables.view();
        for (chunk, rounds) in packets.chunks(BATCH_PACKETS).zip(rounds.chunks(BATCH_PACKETS)) {
            let mut frames: ArrayVec<Frame<'_>, BATCH_PACKETS> = chunk
                .iter()
                .zip(arena.packets_mut(chunk))
                .zip(rounds)
                .map(|((meta, packet), &round)| Frame { face: meta.face, headers: meta.headers, packet, round })
                .collect();
            decide(&mut self.engine, &mut self.exit, &view, &mut frames, output);
        }
    }

    /// Packets from other workers: lent by the ring for one batch. False if there were none.
    fn decide_rings(&mut self, tables: &mut TableReader, scratch: &mut Scratch) -> bool {
        let Worker { engine, exit, inbox, .. } = self;
        let output = &mut scratch.output;
        let mut had_records = false;
        inbox.drain(RECORDS_PER_TURN, |records| {
            had_records = true;
            // Not before: these packets may have come from a face made since this turn began. Whoever
            // made it told the face table before it published them.
            let tables = tables.pin();
            let view = tables.view();
            let mut frames: ArrayVec<Frame<'_>, BATCH_PACKETS> = ArrayVec::new();
            for Record { task, face, headers, packet } in records {
                match task {
                    Task::Transmit => exit.transmit_here(face, &headers, packet),
                    Task::Decide { round } => frames.push(Frame { face, headers, packet, round }),
                }
            }
            decide(engine, exit, &view, &mut frames, output);
        });
        had_records
    }

    fn run_timers(&mut self, now_ns: u64, tables: &Tables<'_>, scratch: &mut Scratch) {
        self.exit.driver.run_timers(now_ns);
        let view = tables.view();
        if self.engine.next_deadline().is_some_and(|at| at.0 <= now_ns) {
            self.engine.run_timers(Instant(now_ns), &view, &mut scratch.output);
            self.exit.transmit_all(&self.engine, &view, &[], &scratch.output);
        }
    }

    /// False: told to stop.
    fn serve_messages(&mut self, now_ns: u64, tables: &mut TableReader, scratch: &mut Scratch) -> bool {
        for _ in 0..MESSAGES_PER_TURN {
            let Ok(message) = self.messages.try_recv() else { return true };
            match message {
                ToWorker::Stop => {
                    self.exit.driver.flush();
                    return false;
                }
                ToWorker::AddStream { face, socket, info, policy, ticket } => {
                    let result = self.exit.driver.add_stream(face, socket, info.clone());
                    self.exit.driver.set_policy(face, policy);
                    self.report_added(face, ticket, result.map(|()| info));
                }
                ToWorker::AddUdp { face, local, remote, persistency, mtu, policy, ticket } => {
                    let result = self.exit.driver.add_udp_face(face, local, remote, persistency, mtu);
                    self.exit.driver.set_policy(face, policy);
                    self.report_added(face, ticket, result);
                }
                ToWorker::AddMulticast { face, sockets, info, policy } => {
                    let result = self.exit.driver.add_multicast_face(face, sockets, info.clone());
                    self.exit.driver.set_policy(face, policy);
                    self.report_added(face, None, result.map(|()| info));
                }
                ToWorker::AddLink { interface, socket, listens } => {
                    if self.exit.driver.add_link(socket, listens).is_err() {
                        self.tell(ToControl::LinkFailed { interface });
                    }
                }
                ToWorker::AddEthernet { face, interface, address, persistency, link_type, mtu, policy, ticket } => {
                    let driver = &mut self.exit.driver;
                    let result = driver.add_ethernet_face(face, interface, address, persistency, link_type, mtu);
                    driver.set_policy(face, policy);
                    self.report_added(face, ticket, result);
                }
                ToWorker::RemoveLink { interface } => self.exit.driver.remove_link(interface),
                ToWorker::SetLinkMtu { interface, mtu } => self.exit.driver.set_link_mtu(interface, mtu),
                ToWorker::SetLinkListens { interface, listens } => {
                    self.exit.driver.set_link_listens(interface, listens);
                }
                ToWorker::SetInterfaceUp { faces, is_up } => {
                    self.exit.driver.set_interface_up(now_ns, &faces, is_up);
                }
                ToWorker::Reconnect { face, socket } => {
                    match self.exit.driver.reconnect(face, socket) {
                        // Destroyed meanwhile: the connection closes with the socket.
                        Ok(()) | Err(AddFaceError::NotDown(_)) => {}
                        // It failed again already; without this nobody would try once more.
                        Err(_) => self.tell(ToControl::FaceDown { face, reason: CloseReason::PeerClosed }),
                    }
                }
                ToWorker::RemoveFace { face } => {
                    self.exit.driver.remove_face(face);
                }
                ToWorker::UpdateFace { face, change: FaceChange { persistency, mtu, local_fields, policy } } => {
                    persistency.map(|persistency| self.exit.driver.set_persistency(face, persistency));
                    mtu.map(|mtu| self.exit.driver.set_mtu(face, mtu));
                    local_fields.map(|on| self.exit.driver.set_local_fields(face, on));
                    policy.map(|policy| self.exit.driver.set_policy(face, policy));
                }
                ToWorker::ForgetFaces(faces) => self.forget_faces(now_ns, &faces, tables, scratch),
                ToWorker::FacesDown(faces) => self.pit_looks.add_down(&faces),
                ToWorker::FacesUp(faces) => self.pit_looks.add_up(&faces),
                ToWorker::Packet { packet, pit_token, round } => {
                    self.decide_internal(packet, pit_token, round, tables, scratch);
                }
                ToWorker::NewNextHops(gained) => self.pit_looks.add_gained(&gained),
                ToWorker::EraseCs(erasure) => self.cs_erasures.push(erasure),
                ToWorker::ConfigureCs(cs) => {
                    // First, so that nothing goes as the former would have it. Without memory for it the former stays,
                    // which the engine counts.
                    let _ = self.engine.set_cs_policy(cs.policy);
                    self.engine.configure_cs(cs.capacity_bytes, cs.capacity_packets, cs.admit, cs.serve);
                    self.engine.count_cs_prefixes(&cs.counted_prefixes);
                    self.publish_status();
                }
            }
        }
        self.exit.driver.waker().wake(); // more wait: come back without sleeping
        true
    }

    fn erase_from_store(&mut self) {
        if !self.cs_erasures.has_work() {
            return;
        }
        if let Some((ticket, erased)) = self.cs_erasures.step(&mut self.engine) {
            // Before the answer: whoever has it finds the store smaller.
            self.publish_status();
            self.tell(ToControl::CsErased { ticket, erased });
        }
        if self.cs_erasures.has_work() {
            self.exit.driver.waker().wake(); // come back without sleeping
        }
    }

    fn report_added(
        &self,
        face: FaceId,
        ticket: Option<namewire_management::Ticket>,
        result: Result<namewire_faces::FaceInfo, namewire_faces::AddFaceError>,
    ) {
        let result = result.map(|info| (info, self.exit.driver.counters(face).unwrap_or_default()));
        self.tell(ToControl::FaceAdded { worker: self.exit.index, face, ticket, result });
    }

    fn tell(&self, event: ToControl) {
        // Control is gone only when the router stops.
        let _ = self.exit.control.events.send(event);
    }

    /// Data from management, with the internal face as its ingress.
    fn decide_internal(
        &mut self,
        mut packet: Vec<u8>,
        pit_token: Option<namewire_packet::lp::PitToken>,
        round: Round,
        tables: &mut TableReader,
        scratch: &mut Scratch,
    ) {
        let tables = tables.pin();
        let output = &mut scratch.output;
        let mut frames: ArrayVec<Frame<'_>, BATCH_PACKETS> = ArrayVec::new();
        frames.push(Frame {
            face: FaceId::INTERNAL,
            // Management keeps its own snapshots: a cached answer would outlive what it says.
            headers: LpHeaders { pit_token, no_cache: true, ..LpHeaders::default() },
            packet: &mut packet,
            round,
        });
        decide(&mut self.engine, &mut self.exit, &tables.view(), &mut frames, output);
    }

    /// Faces are gone: what waited for them alone goes elsewhere.
    fn forget_faces(&mut self, now_ns: u64, faces: &[FaceId], tables: &mut TableReader, scratch: &mut Scratch) {
        let tables = tables.pin();
        let view = tables.view();
        if self.engine.faces_removed(Instant(now_ns), &view, faces, &mut scratch.output) {
            self.pit_looks.add_down(faces);
        }
        self.exit.transmit_all(&self.engine, &view, &[], &scratch.output);
    }

    /// Lets pending Interests follow the links and next hops there are now, if it is time.
    fn look_at_pit(&mut self, now_ns: u64, tables: &Tables<'_>, scratch: &mut Scratch) {
        let Some(News { down, up, gained }) = self.pit_looks.take_due(now_ns) else { return };
        let (now, view, output) = (Instant(now_ns), tables.view(), &mut scratch.output);
        let began_ns = self.shared.now_ns();
        if !down.is_empty() {
            if self.engine.faces_down(now, &view, &down, output) {
                self.pit_looks.add_down(&down);
            }
            self.exit.transmit_all(&self.engine, &view, &[], output);
        }
        if !up.is_empty() {
            if self.engine.faces_up(now, &view, &up, output) {
                self.pit_looks.add_up(&up);
            }
            self.exit.transmit_all(&self.engine, &view, &[], output);
        }
        if !gained.is_empty() {
            self.engine.new_next_hops(now, &view, &gained, output);
            self.exit.transmit_all(&self.engine, &view, &[], output);
        }
        self.pit_looks.note_look(began_ns, self.shared.now_ns());
    }

    /// Passes on what happened to faces. A face that a datagram made is put into the
    /// shared table here, before its first packet is decided.
    fn note_face_events(&mut self) {
        let events: Vec<FaceEvent> = self.exit.driver.events().collect();
        let created = |event: &FaceEvent| match event {
            FaceEvent::Created { face, info } => Some((*face, info.scope)),
            _ => None,
        };
        if events.iter().any(|event| created(event).is_some()) {
            // Once for all of them: it copies the table.
            self.shared.faces.change(|faces| {
                for (face, scope) in events.iter().filter_map(created) {
                    let scope = match scope {
                        namewire_faces::FaceScope::Local => FaceScope::Local,
                        namewire_faces::FaceScope::NonLocal => FaceScope::NonLocal,
                    };
                    faces.insert(face, FaceAttributes::new(scope, self.exit.index, false));
                }
            });
        }
        for event in events {
            match event {
                FaceEvent::Created { face, info } => {
                    let counters = self.exit.driver.counters(face).unwrap_or_default();
                    self.tell(ToControl::FaceMade { worker: self.exit.index, face, info, counters });
                }
                FaceEvent::Closed { face, reason } => self.tell(ToControl::FaceClosed { face, reason }),
                FaceEvent::Down { face, reason } => self.tell(ToControl::FaceDown { face, reason }),
                FaceEvent::Up { face } => self.tell(ToControl::FaceUp { face }),
                FaceEvent::SpokeLp { face } => {
                    self.shared.faces.change(|faces| {
                        // Of a group only this one is known to understand tokens.
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

    fn publish_status(&self) {
        *self.shared.status(self.exit.index) = WorkerStatus {
            counters: self.engine.counters(),
            drops: self.exit.drops,
            pit_entries: self.engine.pit_len() as u64 + self.engine.fingerprints_len(),
            cs_entries: self.engine.cs_len() as u64,
            cs_bytes: self.engine.cs_bytes(),
            name_groups: self.engine.name_groups() as u64,
            measurement_entries: self.engine.measurements_len() as u64,
            short_reads: self.exit.driver.short_reads(),
        };
        self.engine.cs_report(&mut self.shared.cs_report(self.exit.index));
    }
}

/// One batch: the engine decides, the verdicts are sent, and what other workers
/// must see too goes on to the next of them.
fn decide(engine: &mut Engine, exit: &mut Exit, view: &View<'_>, frames: &mut [Frame<'_>], output: &mut Output) {
    if frames.is_empty() {
        return;
    }
    engine.process(Instant(exit.now_ns), view, frames, output);
    exit.transmit_all(engine, view, frames, output);
    for &HandOver { frame, mut round } in &output.hand_over {
        let frame = &frames[usize::from(frame)];
        let next = round.take(exit.index);
        exit.push(next, Task::Decide { round }, frame.face, &frame.headers, frame.packet);
    }
}
