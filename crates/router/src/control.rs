//! The control thread: management and the life of faces.
//!
//! [`Control::run`] takes waiting messages in bounded turns ([`ControlInbox`]) and handles them one by one. A message
//! is a management Interest or an event of a face. Management answers with effects, and [`Control::carry_out`] carries
//! them out in order.

mod captures;
mod devices;
mod drop_watch;
mod face_commands;
mod faces;
mod fib_writer;
mod giving;
mod held_answers;
mod held_requests;
pub(crate) mod inbox;
mod interfaces;
mod link_state;
mod links;
mod netlink;
pub(crate) mod node;
mod own_address;
mod probes;
mod recent;
mod snapshot;
mod status;
mod tag_keys;
mod tags;
mod taking;

pub(crate) use captures::Captures;
pub(crate) use drop_watch::DropLine;
pub(crate) use faces::{FaceDefaults, FaceParts, Faces};
pub(crate) use fib_writer::FibWriter;
pub(crate) use giving::unix_us;
pub(crate) use held_answers::HeldAnswers;
pub(crate) use held_requests::HeldRequests;
pub(crate) use link_state::LinkStates;
pub(crate) use links::LinkFaces;
pub(crate) use recent::Recent;
pub(crate) use tags::TagControl;

use crate::{
    cs_settings::{CsChange, parse_policy},
    log_lines,
    messages::ToControl,
    name_looks::Asker,
    operator::OperatorDesk,
    requests::{Inventory, Request, Taken},
    stream_request::{Purpose, StreamRequest},
};
use drop_watch::DropWatch;
use held_answers::Answer;
use held_requests::HeldRequest;
use inbox::ControlInbox;
use namewire_configuration::{command_journal::CommandJournal, trust_anchors::TrustAnchors};
use namewire_engine::{AnnouncementTable, dispatch::Visits};
use namewire_faces::{CloseReason, FaceInfo, StreamSocket, give_pages_back};
use namewire_management::{
    Effect, FaceCommandError, FaceProperties, Management, ManagementConfig, PassedCommand, StrategyError,
    TablesAboutName, Ticket, TrustConfig,
};
use namewire_node_model::explanation::Tables;
use namewire_packet::{
    FaceId, NackReason, Name,
    lp::LpHeaders,
    nfd::{FaceCounters, NameLook, NodeState, Part},
};
use namewire_shares::PoolReader;
use namewire_tables::{NameHashes, head_room};
use namewire_worker::{ForManagement, FromWorker, ToWorker, WorkerSender};
use node::Node;
use std::{fmt::Display, io, sync::Arc, time::Duration};
use taking::TakenOver;
use tokio::sync::mpsc;

pub(crate) struct Control {
    management: Management,
    anchors: TrustAnchors,
    node: Node,
    hashes: NameHashes,
    operator: OperatorDesk,
    drop_watch: DropWatch,
    /// When to give freed pages back to the kernel.
    pages_due_ns: Option<u64>,
    /// What was taken from an old program that may still go on.
    taken_over: Option<TakenOver>,
    /// The most routes since pages were given back for routes that have gone.
    routes_max: usize,
}

/// Threads that free memory at about the same time share one walk over the heap.
const PAGES_DELAY_NS: u64 = 1_000_000_000;

/// When so many routes have gone, pages are given back: some 3 MB.
const MANY_ROUTES: usize = 10_000;

impl Control {
    /// Control of `node`, with the first version of the FIB in place. If it `is_taking_over`, it uses no file before
    /// [`Control::run`].
    pub(crate) fn new(
        mut node: Node,
        config: ManagementConfig,
        mut anchors: TrustAnchors,
        operator: OperatorDesk,
        is_taking_over: bool,
    ) -> Result<Self, StrategyError> {
        let mut effects = Vec::new();
        let mut management = Management::new(config, &mut node, &mut effects)?;
        anchors.give_to(&mut management, node.times().mono_ns);
        node.counts.unreadable_anchors = anchors.unreadable;
        node.shared.add_pools(management.pools());
        let mut control = Control {
            management,
            anchors,
            node,
            hashes: NameHashes::default(),
            operator,
            drop_watch: DropWatch::default(),
            pages_due_ns: None,
            taken_over: None,
            routes_max: 0,
        };
        control.carry_out(effects);
        if !is_taking_over {
            control.remember_commands();
        }
        // Nobody waits for an answer yet, and the workers must find management.
        while control.node.fib_writer.is_behind() {
            control.run_fib_writer(u64::MAX);
        }
        Ok(control)
    }

    /// Adds a pool to the report on who holds how much.
    pub(crate) fn add_pool(&self, pool: PoolReader) {
        self.node.shared.add_pools(vec![pool]);
    }

    /// Takes over the commands of keys that passed before the start, and keeps those that pass from now on.
    fn remember_commands(&mut self) {
        let before = self.node.journal.as_ref().map(CommandJournal::read).unwrap_or_default();
        let now = self.node.times();
        self.management.remember_commands(now, &before.commands, before.are_all, self.node.counts.start_unix_ms);
        self.write_journal();
    }

    fn keep_command(&mut self, command: &PassedCommand) {
        if !self.node.journal.as_mut().is_some_and(|journal| journal.add(command)) {
            self.write_journal();
        }
    }

    /// Writes the commands of keys that are remembered, if there is a file for them.
    fn write_journal(&mut self) {
        let commands = self.management.keep_commands(self.node.journal.is_some());
        let now_ns = self.node.shared.now_ns();
        if let Some(journal) = &mut self.node.journal {
            journal.write(now_ns, &commands);
        }
    }

    /// The channel by which workers and listeners report.
    pub(crate) fn events(&self) -> &mpsc::UnboundedSender<ToControl> {
        &self.node.events
    }

    /// Serves events and Interests until told to stop. Before it returns, it tells the workers to stop too.
    pub(crate) async fn run(mut self, mut inbox: ControlInbox) {
        self.go_on();
        self.node.links.watch(&self.node.events);
        loop {
            // Timers run first, or a flood of requests would keep routes from expiring.
            self.run_timers();
            let until_deadline = self.until_deadline();
            self.node.link_states.tell(&self.node.shared, &self.node.workers, inbox.has_events());
            self.wake_workers();
            self.note_routes_gone();
            let revision = self.management.revision();
            self.operator.publish(revision, self.node.faces.counts().lost);
            self.node.held_answers.revision = revision;
            let mut accepted = Vec::new();
            let turn = inbox.turn(until_deadline).await;
            if turn.iter().any(ToControl::is_for_management) {
                self.look_at_memory();
            }
            if turn.iter().any(ToControl::is_for_operator) {
                self.sample_faces();
            }
            if !turn.is_empty() {
                self.drop_watch.note_activity(self.node.shared.now_ns());
            }
            let mut hand_over = None;
            for message in turn {
                match message {
                    // What came before it in this turn is served first.
                    ToControl::Operate(Request::HandOver(request)) => hand_over = Some(request),
                    ToControl::Stop => {
                        self.node.lanes.say_farewell();
                        return self.node.websockets.stop();
                    }
                    // Added together, because adding a face copies the face table. No other event of this turn is about
                    // these faces.
                    ToControl::Accepted(connection) => accepted.push(connection),
                    message => self.take(message),
                }
            }
            self.node.faces.add_accepted(accepted);
            if let Some(request) = hand_over
                && self.give(*request, &mut inbox)
            {
                return;
            }
        }
    }

    /// Does what is due; of a large change, one slice.
    fn run_timers(&mut self) {
        let now = self.node.times();
        if self.management.next_deadline().is_some_and(|at| at <= now.mono_ns) {
            let mut effects = Vec::new();
            self.management.run_timers(now, &mut self.node, &mut effects);
            self.carry_out(effects);
        }
        if self.anchors.next_refresh_ns().is_some_and(|at| at <= now.mono_ns) {
            let news = self.anchors.refresh(&mut self.management, now.mono_ns);
            news.iter().for_each(log_lines::trust_anchor);
            self.node.counts.unreadable_anchors = self.anchors.unreadable;
        }
        if self.pages_due_ns.take_if(|at| *at <= now.mono_ns).is_some() {
            give_pages_back();
        }
        self.look_at_counters(now.mono_ns);
        self.node.run_tags();
        self.node.run_captures();
        self.node.run_lanes(now.mono_ns);
        self.node.faces.forget_closed(now.mono_ns);
        let late = self.node.held_answers.expire(now.mono_ns);
        self.send_answers(late);
        let due = self.node.held_requests.expire(now.mono_ns);
        self.serve_held(due);
        self.run_fib_writer(now.mono_ns);
    }

    /// Lets the FIB writer have a turn if it has work. Management changes no more than one slice ahead of it.
    fn run_fib_writer(&mut self, now_ns: u64) {
        let (management, Node { shared, fib_writer, .. }) = (&self.management, &mut self.node);
        if fib_writer.next_run_ns().is_some_and(|at| at <= now_ns) {
            let insertion = |name: Name<'_>| management.fib_insertion(name);
            let gained = fib_writer.run(&mut shared.fib(), &|| shared.now_ns(), insertion);
            if !gained.is_empty() {
                self.carry_out(vec![Effect::NewNextHops(gained)]);
            }
        }
        self.management.hold_changes(self.node.fib_writer.is_behind());
    }

    /// The time until something is due.
    fn until_deadline(&self) -> Option<Duration> {
        let deadlines = [
            self.management.next_deadline(),
            self.anchors.next_refresh_ns(),
            self.node.faces.next_forgetting_ns(),
            self.node.fib_writer.next_run_ns(),
            self.node.held_answers.next_deadline_ns(),
            self.node.held_requests.next_deadline_ns(),
            self.pages_due_ns,
            self.drop_watch.next_look_ns(),
            self.node.captures.next_deadline_ns(self.node.shared.now_ns()),
            self.node.lanes.next_run_ns(self.node.shared.now_ns()),
            self.node.tags.as_ref().map(|tags| tags.next_deadline_ns(self.node.shared.now_ns())),
        ];
        let earliest = deadlines.into_iter().flatten().min();
        earliest.map(|at| Duration::from_nanos(at.saturating_sub(self.node.shared.now_ns())))
    }

    /// Logs which counters of drops have grown and which faces are degraded, if it is time to look.
    fn look_at_counters(&mut self, now_ns: u64) {
        if self.drop_watch.next_look_ns().is_some_and(|at| at <= now_ns) {
            self.sample_faces();
            let counters = self.management.state(self.node.times(), &[Part::Drops], &self.node).drops;
            let lines = self.drop_watch.look(now_ns, counters, &self.node.shared);
            lines.iter().for_each(log_lines::dropped);
        }
    }

    fn sample_faces(&mut self) {
        for change in self.node.sample_faces() {
            log_lines::health(self.management.face(change.face), &change.recent);
        }
    }

    /// Lets management refuse commands that grow tables while there is no memory for their consequences.
    fn look_at_memory(&mut self) {
        let wanted_bytes = self.management.rib().wanted_bytes() + self.node.shared.fib().wanted_bytes();
        self.management.set_short_of_memory(!head_room::is_there(wanted_bytes));
    }

    /// Gives the memory of routes back when many have gone.
    fn note_routes_gone(&mut self) {
        let routes = self.management.rib().len();
        self.routes_max = self.routes_max.max(routes);
        if self.routes_max - routes >= MANY_ROUTES && self.management.is_settled() {
            self.routes_max = routes;
            self.plan_to_give_pages_back();
        }
    }

    fn plan_to_give_pages_back(&mut self) {
        self.pages_due_ns.get_or_insert(self.node.shared.now_ns() + PAGES_DELAY_NS);
    }

    fn wake_workers(&self) {
        self.node.workers.iter().for_each(WorkerSender::wake);
    }

    fn take(&mut self, event: ToControl) {
        let mut effects = Vec::new();
        self.serve(event, &mut effects);
        self.carry_out(effects);
    }

    fn serve(&mut self, event: ToControl, effects: &mut Vec<Effect>) {
        match event {
            ToControl::Worker(report) => self.note_report(report, effects),
            ToControl::Management(packet) => self.manage(packet, effects),
            ToControl::Accepted(connection) => self.node.faces.add_accepted(vec![connection]),
            ToControl::ShortOfConnections { holder } => {
                for worker in self.node.workers.iter() {
                    worker.send(ToWorker::DisplaceIdle { holder });
                }
            }
            ToControl::AcceptFailed => self.node.counts.accept_failures += 1,
            ToControl::Retry { face } => self.node.retry(face),
            ToControl::Connected { request, result } => self.connected(*request, result, effects),
            ToControl::InterfacesChanged => self.interfaces_changed(effects),
            ToControl::Trust { trust, anchors } => self.take_trust(*trust, anchors, effects),
            ToControl::Operate(request) => self.operate(request, effects),
            ToControl::Stored { data, done } => {
                self.take_stored(data);
                let _ = done.send(()); // the sender waits for it
            }
            ToControl::Stop => {}
        }
    }

    /// Serves what a worker has for management.
    fn manage(&mut self, packet: ForManagement, effects: &mut Vec<Effect>) {
        match packet {
            ForManagement::Interest { incoming, pit_token, packet } => {
                self.offer(HeldRequest { incoming, pit_token, packet }, effects);
            }
            ForManagement::Answer { from, packet, nack } => self.answer(from, &packet, nack, effects),
            ForManagement::RouteLearned { face, announcement } => {
                self.management.learn_route(self.node.times(), face, &announcement, effects);
            }
            ForManagement::RouteLost { face, name } => self.route_lost(face, &name, effects),
            ForManagement::TagRouting { face, packet } => self.node.tag_packet(face, &packet),
        }
    }

    /// Follows what a worker reports.
    fn note_report(&mut self, report: FromWorker, effects: &mut Vec<Effect>) {
        match report {
            FromWorker::Traffic => {} // the turn itself is noted
            FromWorker::MemoryFreed => self.plan_to_give_pages_back(),
            FromWorker::FaceAdded { worker, face, result } => {
                let (ticket, result) = self.node.face_added(worker, face, result);
                self.node.tag_face_up(face);
                self.face_added(face, ticket, result, effects);
            }
            FromWorker::FaceMade { worker, face, info, counters } => {
                self.node.faces.made(worker, face, info, counters);
                self.node.tag_face_up(face);
                self.face_created(face, effects);
            }
            FromWorker::FaceClosed { face, reason } => {
                self.node.faces.count_lost(face, reason);
                self.close_face(face, reason, effects);
            }
            FromWorker::FaceDown { face, reason } => {
                self.node.faces.count_down(reason);
                log_lines::face_down(self.management.face(face), reason);
                self.node.face_down(face);
                self.node.tag_face_down(face);
                self.management.on_face_down(self.node.times(), face, effects);
            }
            FromWorker::FaceUp { face } => self.face_up(face, effects),
            FromWorker::CsErased { id, erased } => {
                if let Some((ticket, erased)) = self.node.cs.erased(id, erased) {
                    self.management.on_cs_erased(ticket, erased, effects);
                }
            }
            FromWorker::NameLooked { id, look } => {
                if let Some((asker, looks)) = self.node.name_looks.looked(id, look) {
                    self.answer_look(asker, looks, effects);
                }
            }
            FromWorker::Lane(report) => self.node.note_lanes(report),
            FromWorker::LinkFailed { interface } => self.node.links.forget_link(interface),
        }
    }

    /// All workers have looked at a name.
    fn answer_look(&mut self, asker: Asker, looks: Vec<NameLook>, effects: &mut Vec<Effect>) {
        let now = self.node.times();
        match asker {
            Asker::Probe(asker) => self.answer_probe(&asker, looks),
            Asker::Client(ticket) => self.management.on_name_looked(now, ticket, &looks, effects),
            Asker::Observer { name, reply } => {
                let TablesAboutName { fib, rib, choices, faces } = self.management.tables_about(now, name.as_name());
                let state = self.management.state(now, &[Part::Health, Part::FibUsage], &self.node);
                let NodeState { health, fib_usage, .. } = state;
                let tables = Tables { fib, rib, choices, faces, health, looks, fib_usage };
                let _ = reply.send(tables.explain(&name, None)); // the client may have left
            }
        }
    }

    /// Serves a request, unless it has to wait.
    fn offer(&mut self, request: HeldRequest, effects: &mut Vec<Effect>) {
        if let Some(request) = self.node.held_requests.offer(self.node.shared.now_ns(), request) {
            self.interest(request, effects);
        }
    }

    /// Serves requests that have waited.
    fn serve_held(&mut self, requests: Vec<HeldRequest>) {
        let mut effects = Vec::new();
        for request in requests {
            self.interest(request, &mut effects);
        }
        self.carry_out(effects);
    }

    fn interest(&mut self, request: HeldRequest, effects: &mut Vec<Effect>) {
        self.node.counts.internal.packets.out_interests += 1;
        self.node.counts.internal.out_bytes += request.packet.len() as u64;
        if self.take_probe(&request).is_some() {
            return;
        }
        let HeldRequest { incoming, pit_token, packet } = request;
        let now = self.node.times();
        self.management.on_interest(now, incoming, &packet, pit_token, &mut self.node, effects);
    }

    /// Handles Data for an Interest of management, or a Nack.
    fn answer(&mut self, from: Option<FaceId>, packet: &[u8], nack: Option<NackReason>, effects: &mut Vec<Effect>) {
        let internal = &mut self.node.counts.internal;
        let count = if nack.is_some() { &mut internal.packets.out_nacks } else { &mut internal.packets.out_data };
        *count += 1;
        internal.out_bytes += packet.len() as u64;
        let now = self.node.times();
        self.management.on_answer(now, from, packet, nack, &mut self.node, effects);
    }

    fn route_lost(&mut self, face: FaceId, name: &[u8], effects: &mut Vec<Effect>) {
        if let Ok(name) = Name::parse_value(name) {
            self.management.forget_route(face, name, effects);
        }
    }

    fn face_added(
        &mut self,
        face: FaceId,
        ticket: Option<Ticket>,
        result: Result<FaceProperties, FaceCommandError>,
        effects: &mut Vec<Effect>,
    ) {
        let now = self.node.times();
        match (ticket, result) {
            (Some(ticket), result) => self.management.on_face_command_done(now, ticket, result, effects),
            (None, Ok(properties)) => self.management.on_face_created(now, properties, effects),
            // The connection was accepted but there is no room: it is closed, and the peer notices.
            (None, Err(error)) => {
                log_lines::connection_refused(face, &error);
                self.node.faces.count_refused();
            }
        }
    }

    fn face_created(&mut self, face: FaceId, effects: &mut Vec<Effect>) {
        if let Some(properties) = self.node.faces.properties(face) {
            self.management.on_face_created(self.node.times(), properties, effects);
        }
    }

    fn face_up(&mut self, face: FaceId, effects: &mut Vec<Effect>) {
        self.node.tag_face_up(face);
        if let Some(properties) = self.node.faces.properties(face) {
            self.node.note_link(face, true);
            self.management.on_face_up(self.node.times(), properties, effects);
        }
    }

    fn connected(
        &mut self,
        request: StreamRequest,
        result: io::Result<(StreamSocket, FaceInfo)>,
        effects: &mut Vec<Effect>,
    ) {
        let now = self.node.times();
        let result = self.node.of_scope(&request.purpose, result);
        let reconnected = match (&request.purpose, &result) {
            (Purpose::Reconnect(face, _), Ok(_)) => Some(*face),
            _ => None,
        };
        if let Some((ticket, error)) = self.node.connected(request, result) {
            self.management.on_face_command_done(now, ticket, Err(error), effects);
        }
        if let Some(properties) = reconnected.and_then(|face| self.node.faces.properties(face)) {
            self.node.tag_face_up(properties.face);
            self.management.on_face_up(now, properties, effects);
        }
    }

    fn interfaces_changed(&mut self, effects: &mut Vec<Effect>) {
        let followed = self.node.interfaces_changed();
        for face in followed.closed {
            self.close_face(face, CloseReason::InterfaceGone, effects);
        }
        for problem in &followed.problems {
            log_lines::link_problem(problem);
        }
        for face in followed.changed {
            self.face_created(face, effects);
        }
    }

    fn take_trust(&mut self, trust: TrustConfig, mut anchors: TrustAnchors, effects: &mut Vec<Effect>) {
        self.management.set_trust(trust, effects);
        anchors.give_to(&mut self.management, self.node.shared.now_ns());
        anchors.unreadable += self.anchors.unreadable;
        self.node.counts.unreadable_anchors = anchors.unreadable;
        self.anchors = anchors;
    }

    fn operate(&mut self, request: Request, effects: &mut Vec<Effect>) {
        match request {
            Request::Command { name, packet, reply } => {
                self.operator.expect(name, reply);
                self.look_at_memory();
                let now = self.node.times();
                self.management.on_interest(now, FaceId::INTERNAL, &packet, None, &mut self.node, effects);
            }
            Request::Inventory(reply) => {
                let inventory = Inventory::of(&self.management, self.node.faces.iter().map(|(face, _)| *face));
                let _ = reply.send(inventory); // the requester may have stopped waiting
            }
            Request::DoubtfulFaces(reply) => _ = reply.send(self.node.faces.doubtful()), // as above
            Request::Snapshot(reply) if reply.is_closed() => {}                          // whoever asked has gone
            Request::Snapshot(reply) => {
                let at_ns = self.node.shared.now_ns();
                let _ = reply.send(Taken { snapshot: self.snapshot(), at_ns }); // as above
            }
            Request::Settings(reply) if reply.is_closed() => {} // as above
            Request::Settings(reply) => {
                let _ = reply.send(self.settings_shown()); // as above
            }
            Request::Explain { name, reply } => {
                let asker = Asker::Observer { name: name.clone(), reply };
                self.node.look_at_name(name, asker);
            }
            Request::BeginTrace { number, prefix, one_in, reply } => {
                let begun = self.node.begin_trace(number, &prefix, one_in);
                let _ = reply.send(begun); // the requester ends it, also if it has stopped waiting
            }
            Request::EndTrace { number } => self.node.end_trace(number),
            Request::ConfigureCs(change) => {
                self.node.cs.change(|settings| settings.take(change));
            }
            Request::Reloaded(read) => self.node.in_force.reload(*read),
            Request::HoldAnswers(is_on) => {
                let released = self.node.held_answers.turn(is_on);
                self.send_answers(released);
            }
            Request::KeepCommands(path) => {
                self.node.journal = path.map(CommandJournal::new);
                self.write_journal();
            }
            Request::SetUpDone => {
                let waiting = self.node.held_requests.release();
                self.serve_held(waiting);
            }
            Request::StateWritten(written) => {
                let released = self.node.held_answers.state_written(written);
                self.send_answers(released);
            }
            Request::GiveMemoryBack => self.plan_to_give_pages_back(),
            Request::OpenTasks(reply) => _ = reply.send(self.node.process.open()), // as above
            Request::NoteOutcome { number, report } => self.node.process.note_outcome(number, report),
            Request::Hindrances(reply) => _ = reply.send(self.hindrances()), // as above
            // Control itself takes it; two at once are not asked for.
            Request::HandOver(request) => _ = request.reply.send(Err("another hand-over runs".to_owned())),
        }
    }

    fn close_face(&mut self, face: FaceId, why: impl Display, effects: &mut Vec<Effect>) {
        if self.node.forget_face(face) {
            log_lines::face_closed(self.management.face(face), self.management.rib().prefixes_of(face), why);
            self.node.tag_face_down(face);
            self.node.end_captures_of(face);
            let now = self.node.times();
            let before = effects.len();
            self.management.on_face_closed(now, face, effects);
            // Interests that wait for this next hop should not wait longer. Engines forget the face only later, and a
            // face with many routes stays in the FIB longer than usual. For applications that merely come and go, no
            // table is copied.
            let is_next_hop = effects[before..].iter().any(|effect| matches!(effect, Effect::Fib(_)));
            if is_next_hop || self.management.is_leaving(face) {
                self.node.note_link(face, false);
            }
        }
    }

    /// Carries out what management decided, in order. What follows from an effect (the answer to a face command) comes
    /// directly after it.
    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let mut more = Vec::new();
            match effect {
                Effect::Reply { packet, pit_token } => self.reply(Answer { packet, pit_token }),
                Effect::Express { packet, to } => {
                    let headers = LpHeaders { next_hop_face_id: to, ..LpHeaders::default() };
                    self.send_from_internal(packet, headers, |internal| &mut internal.packets.in_interests);
                }
                Effect::Fib(changes) => {
                    let Node { shared, fib_writer, .. } = &mut self.node;
                    fib_writer.apply(&mut shared.fib(), &|| shared.now_ns(), changes);
                }
                Effect::NewNextHops(gained) => {
                    let gained = Arc::new(gained);
                    for worker in self.node.workers.iter() {
                        worker.send(ToWorker::NewNextHops(Arc::clone(&gained)));
                    }
                }
                Effect::CreateFace(create) => {
                    if let Err(error) = self.node.create_face(&create) {
                        let now = self.node.times();
                        self.management.on_face_command_done(now, create.ticket, Err(error), &mut more);
                    }
                }
                Effect::UpdateFace(update) => {
                    let result = self.node.update_face(&update);
                    self.node.tag_face_up(update.face);
                    let now = self.node.times();
                    self.management.on_face_command_done(now, update.ticket, result, &mut more);
                }
                Effect::DestroyFace { ticket, face } => self.destroy_face(ticket, face, &mut more),
                Effect::EraseCs { ticket, prefix, limit } => {
                    self.node.cs.erase(ticket, prefix, limit);
                }
                Effect::LookAtName { ticket, name } => {
                    self.node.look_at_name(name, Asker::Client(ticket));
                }
                Effect::Announcements(announcements) => {
                    let mut table = AnnouncementTable::default();
                    for (prefix, announcement) in announcements {
                        table.insert(&prefix, announcement);
                    }
                    let table = Arc::new(table);
                    self.node.shared.strategies.change(|strategies| strategies.set_announcements(table));
                }
                Effect::KeepCommand(command) => self.keep_command(&command),
                Effect::ConfigureCs { capacity_packets, capacity_bytes, policy, admit, serve } => {
                    self.node.cs.change(|cs| {
                        // Management got this text from us.
                        let policy = policy.and_then(|text| parse_policy(&text, cs.policy).ok());
                        cs.policy = policy.unwrap_or(cs.policy);
                        let change = CsChange { capacity_packets, capacity_bytes, admit, serve, ..CsChange::default() };
                        cs.take(change);
                    });
                }
            }
            self.carry_out(more);
        }
    }

    fn destroy_face(&mut self, ticket: Ticket, face: FaceId, effects: &mut Vec<Effect>) {
        let absent = || FaceCommandError::new(404, "Face not found");
        let properties = self.node.faces.properties(face).ok_or_else(absent);
        self.node.lanes.forget(face);
        if let Some(record) = self.node.faces.get(face) {
            self.node.faces.send(record.worker, ToWorker::RemoveFace { face });
        }
        // The reply comes after: a client that receives it finds the routes gone. They are gone from the FIB as well if
        // they are few.
        self.close_face(face, "by command", effects);
        self.management.on_face_command_done(self.node.times(), ticket, properties, effects);
    }

    /// A reply to a command may have to wait for the state file. Replies to commands of this process never wait,
    /// because the writer of that file sends some of them.
    fn reply(&mut self, answer: Answer) {
        if answer.pit_token.is_none() && self.operator.take(&answer.packet) {
            return;
        }
        let (now_ns, revision) = (self.node.shared.now_ns(), self.management.revision());
        let answer = self.node.held_answers.offer(now_ns, revision, answer);
        self.send_answers(answer);
    }

    fn send_answers(&mut self, answers: impl IntoIterator<Item = Answer>) {
        for Answer { packet, pit_token } in answers {
            let headers = LpHeaders { pit_token, ..LpHeaders::default() };
            self.send_from_internal(packet, headers, |internal| &mut internal.packets.in_data);
        }
    }

    /// Sends a packet of the internal face. A reply goes to the worker whose engine sent the Interest here; an Interest
    /// goes to the worker that owns its name. `count` chooses the counter of the internal face.
    fn send_from_internal(&mut self, packet: Vec<u8>, headers: LpHeaders, count: fn(&mut FaceCounters) -> &mut u64) {
        let internal = &mut self.node.counts.internal;
        *count(internal) += 1;
        internal.in_bytes += packet.len() as u64;
        let dispatcher = &self.node.shared.dispatcher;
        let (worker, visits) = if dispatcher.workers() == 1 {
            (0, Visits::default())
        } else {
            let mut visits = dispatcher.route(0, &headers, &packet, &mut self.hashes);
            (visits.take(0), visits)
        };
        self.node.faces.send(worker, ToWorker::Packet { packet, headers, visits });
    }
}
