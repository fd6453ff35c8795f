//! The control thread: management, and the life of faces.
//!
//! [`Control::run`] takes what waits in bounded turns ([`ControlInbox`]), and of a turn one
//! message after the other: a management Interest, something that happened to a face.
//! Management answers with effects, and [`Control::carry_out`] does them in order.

use crate::{
    control_inbox::ControlInbox,
    cs_settings::parse_policy,
    environment::{FaceRecord, Node, Wanted},
    face_creation::Purpose,
    held_answers::Answer,
    messages::{ToControl, ToWorker, WorkerSender},
    operator::{Inventory, OperatorDesk, Request},
    trust_anchors::TrustAnchors,
};
use namewire_engine::{AnnouncementTable, dispatch::Round};
use namewire_faces::Persistency;
use namewire_management::{Effect, Management, ManagementConfig, StrategyError};
use namewire_packet::{
    FaceId, Name,
    lp::{LpHeaders, PitToken},
    nfd::FaceCounters,
};
use namewire_tables::{NameHashes, head_room};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

pub(crate) struct Control {
    management: Management,
    anchors: TrustAnchors,
    node: Node,
    hashes: NameHashes,
    operator: OperatorDesk,
}

impl Control {
    /// Control of `node`, with the first FIB in place.
    pub(crate) fn new(
        mut node: Node,
        config: ManagementConfig,
        mut anchors: TrustAnchors,
        operator: OperatorDesk,
    ) -> Result<Self, StrategyError> {
        let mut effects = Vec::new();
        let mut management = Management::new(config, &mut node, &mut effects)?;
        anchors.give_to(&mut management, node.times().mono_ns);
        let mut control = Control { management, anchors, node, hashes: NameHashes::default(), operator };
        control.carry_out(effects);
        Ok(control)
    }

    /// Where workers and listeners report to.
    pub(crate) fn events(&self) -> &mpsc::UnboundedSender<ToControl> {
        &self.node.sender.events
    }

    /// Serves events and Interests until told to stop. When it returns, the workers are
    /// told too.
    pub(crate) async fn run(mut self, mut inbox: ControlInbox) {
        self.node.watch_interfaces();
        loop {
            // First, or a flood of requests would keep routes from expiring.
            self.run_timers();
            let until_deadline = self.until_deadline();
            self.node.tell_link_changes(inbox.has_events());
            self.wake_workers();
            let revision = self.management.revision();
            self.operator.publish(revision, self.node.faces_lost);
            self.node.held_answers.revision = revision;
            let mut accepted = Vec::new();
            let turn = inbox.turn(until_deadline).await;
            if turn.iter().any(ToControl::is_for_management) {
                self.look_at_memory();
            }
            for message in turn {
                match message {
                    ToControl::Stop => return,
                    // Together: to add a face copies the table of faces. Nothing in this turn is about them yet.
                    ToControl::Accepted(connection) => accepted.push(connection),
                    message => self.take(message),
                }
            }
            self.node.add_accepted(accepted);
        }
    }

    /// Does what is due, of large changes a slice.
    fn run_timers(&mut self) {
        let now = self.node.times();
        if self.management.next_deadline().is_some_and(|at| at <= now.mono_ns) {
            let mut effects = Vec::new();
            self.management.run_timers(now, &mut effects);
            self.carry_out(effects);
        }
        if self.anchors.next_refresh_ns().is_some_and(|at| at <= now.mono_ns) {
            self.anchors.refresh(&mut self.management, now.mono_ns);
            self.node.unreadable_anchors = self.anchors.unreadable;
        }
        self.node.forget_closed(now.mono_ns);
        let late = self.node.held_answers.expire(now.mono_ns);
        self.send_answers(late);
        let (management, fib_writer) = (&self.management, &mut self.node.fib_writer);
        if fib_writer.next_retry_ns().is_some_and(|at| at <= now.mono_ns) {
            let gained =
                fib_writer.retry(&mut self.node.shared.fib(), now.mono_ns, |name| management.fib_insertion(name));
            if !gained.is_empty() {
                self.carry_out(vec![Effect::NewNextHops(gained)]);
            }
        }
    }

    /// How long nothing is due.
    fn until_deadline(&self) -> Option<Duration> {
        let deadlines = [
            self.management.next_deadline(),
            self.anchors.next_refresh_ns(),
            self.node.next_forgetting_ns(),
            self.node.fib_writer.next_retry_ns(),
            self.node.held_answers.next_deadline_ns(),
        ];
        let earliest = deadlines.into_iter().flatten().min();
        earliest.map(|at| Duration::from_nanos(at.saturating_sub(self.node.shared.now_ns())))
    }

    /// Lets management refuse what makes tables longer while there is no memory for what follows from it.
    fn look_at_memory(&mut self) {
        let wanted_bytes = self.management.rib().wanted_bytes() + self.node.shared.fib().wanted_bytes();
        self.management.set_short_of_memory(!head_room::is_there(wanted_bytes));
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
        let now = self.node.times();
        match event {
            ToControl::Interest { incoming, pit_token, packet } => {
                self.node.internal.n_out_interests += 1;
                self.node.internal.n_out_bytes += packet.len() as u64;
                self.management.on_interest(now, incoming, &packet, pit_token, &mut self.node, effects);
            }
            ToControl::RouteLearned { face, announcement } => {
                self.management.learn_route(now, face, &announcement, effects);
            }
            ToControl::RouteLost { face, name } => {
                if let Ok(name) = Name::parse_value(&name) {
                    self.management.forget_route(face, name, effects);
                }
            }
            ToControl::Accepted(connection) => self.node.add_accepted(vec![connection]),
            ToControl::AcceptFailed => self.node.accept_failures += 1,
            ToControl::FaceAdded { worker, face, ticket, result } => {
                match (ticket, self.node.face_added(worker, face, result)) {
                    (Some(ticket), result) => self.management.on_face_command_done(now, ticket, result, effects),
                    (None, Ok(properties)) => self.management.on_face_created(now, properties, effects),
                    // Accepted, but there is no room: the connection is closed, and the peer notices.
                    (None, Err(_)) => self.node.refused_connections += 1,
                }
            }
            ToControl::FaceMade { worker, face, info, counters } => {
                self.node.faces_per_worker[usize::from(worker)] += 1;
                let Wanted { local_fields, policy } = self.node.wanted_by_default(&info);
                self.node.faces.insert(face, FaceRecord { worker, info, counters, local_fields, policy });
                if let Some(properties) = self.node.properties(face) {
                    self.management.on_face_created(now, properties, effects);
                }
            }
            ToControl::FaceClosed { face, reason } => {
                self.node.count_closed(reason);
                let persistency = self.node.faces.get(&face).map(|record| record.info.persistency);
                self.node.faces_lost +=
                    u64::from(persistency.is_some_and(|persistency| persistency != Persistency::OnDemand));
                self.close_face(face, effects);
            }
            ToControl::FaceDown { face, reason } => {
                self.node.count_closed(reason);
                self.node.face_down(face);
                self.management.on_face_down(now, face, effects);
            }
            ToControl::FaceUp { face } => {
                if let Some(properties) = self.node.properties(face) {
                    self.node.note_link(face, true);
                    self.management.on_face_up(now, properties, effects);
                }
            }
            ToControl::Answer { packet, nack } => {
                let internal = &mut self.node.internal;
                let count = if nack.is_some() { &mut internal.n_out_nacks } else { &mut internal.n_out_data };
                *count += 1;
                internal.n_out_bytes += packet.len() as u64;
                self.management.on_answer(now, &packet, nack, &mut self.node, effects)
            }
            ToControl::CsErased { ticket, erased } => {
                let node = &mut self.node;
                if let Some(erased) = node.cs_erasures.report(&node.workers, ticket, erased) {
                    self.management.on_cs_erased(ticket, erased, effects);
                }
            }
            ToControl::Retry { face } => self.node.retry(face),
            ToControl::Connected { request, result } => {
                let result = self.node.of_scope(&request.purpose, result);
                let reconnected = match (&request.purpose, &result) {
                    (Purpose::Reconnect(face, _), Ok(_)) => Some(*face),
                    _ => None,
                };
                if let Some((ticket, error)) = self.node.connected(*request, result) {
                    self.management.on_face_command_done(now, ticket, Err(error), effects);
                }
                if let Some(properties) = reconnected.and_then(|face| self.node.properties(face)) {
                    self.management.on_face_up(now, properties, effects);
                }
            }
            ToControl::InterfacesChanged => {
                let followed = self.node.interfaces_changed();
                for face in followed.closed {
                    self.close_face(face, effects);
                }
                for properties in followed.changed.iter().filter_map(|face| self.node.properties(*face)) {
                    self.management.on_face_created(now, properties, effects);
                }
            }
            ToControl::LinkFailed { interface } => self.node.links.forget_link(interface),
            ToControl::Trust { trust, mut anchors } => {
                self.management.set_trust(*trust, effects);
                anchors.give_to(&mut self.management, now.mono_ns);
                anchors.unreadable = self.anchors.unreadable;
                self.anchors = anchors;
            }
            ToControl::Operate(request) => self.operate(request, effects),
            ToControl::Stop => {}
        }
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
                let inventory = Inventory::of(&self.management, self.node.faces.keys().copied());
                let _ = reply.send(inventory); // nobody waits any longer
            }
            Request::ConfigureCs(change) => {
                self.node.cs.take(change);
                self.tell_cs_settings();
            }
            Request::HoldAnswers(is_on) => {
                let released = self.node.held_answers.turn(is_on);
                self.send_answers(released);
            }
            Request::StateWritten(written) => {
                let released = self.node.held_answers.state_written(written);
                self.send_answers(released);
            }
        }
    }

    fn close_face(&mut self, face: FaceId, effects: &mut Vec<Effect>) {
        if self.node.forget_face(face) {
            let now = self.node.times();
            let before = effects.len();
            self.management.on_face_closed(now, face, effects);
            // Interests that wait for its next hop need not wait until engines forget the face, and it is in the FIB
            // for longer than usual if its routes are many. Of applications that come and go no table is copied.
            let is_next_hop = effects[before..].iter().any(|effect| matches!(effect, Effect::Fib(_)));
            if is_next_hop || self.management.is_leaving(face) {
                self.node.note_link(face, false);
            }
        }
    }

    /// Does what management decided, in order; what follows from it (the answer to a
    /// face command) comes right behind.
    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let mut more = Vec::new();
            match effect {
                Effect::Reply { packet, pit_token } => self.reply(Answer { packet, pit_token }),
                Effect::Express { packet } => {
                    self.send_from_internal(packet, None, |internal| &mut internal.n_in_interests);
                }
                Effect::Fib(changes) => {
                    let now_ns = self.node.shared.now_ns();
                    self.node.fib_writer.apply(&mut self.node.shared.fib(), now_ns, changes);
                }
                Effect::NewNextHops(gained) => {
                    let gained = Arc::new(gained);
                    for worker in &self.node.workers {
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
                    let now = self.node.times();
                    self.management.on_face_command_done(now, update.ticket, result, &mut more);
                }
                Effect::DestroyFace { ticket, face } => {
                    let properties = self.node.properties(face).ok_or_else(|| namewire_management::FaceCommandError {
                        code: 404,
                        text: "Face not found".to_owned(),
                        body: None,
                    });
                    if let Some(record) = self.node.faces.get(&face) {
                        self.node.worker(record.worker).send(ToWorker::RemoveFace { face });
                    }
                    // The reply comes after: a client that has it finds the routes gone, from the FIB as well if they
                    // are no more than a slice.
                    self.close_face(face, &mut more);
                    let now = self.node.times();
                    self.management.on_face_command_done(now, ticket, properties, &mut more);
                }
                Effect::EraseCs { ticket, prefix, limit } => {
                    self.node.cs_erasures.start(&self.node.workers, ticket, prefix, limit);
                }
                Effect::Announcements(announcements) => {
                    let mut table = AnnouncementTable::default();
                    for (prefix, announcement) in announcements {
                        table.insert(&prefix, announcement);
                    }
                    let table = Arc::new(table);
                    self.node.shared.strategies.change(|strategies| strategies.set_announcements(table));
                }
                Effect::ConfigureCs { capacity_packets, policy, admit, serve } => {
                    let cs = &mut self.node.cs;
                    cs.capacity_packets = capacity_packets.unwrap_or(cs.capacity_packets);
                    // Management has it from us.
                    let policy = policy.and_then(|text| parse_policy(&text, cs.policy).ok());
                    cs.policy = policy.unwrap_or(cs.policy);
                    cs.admit = admit.unwrap_or(cs.admit);
                    cs.serve = serve.unwrap_or(cs.serve);
                    self.tell_cs_settings();
                }
            }
            self.carry_out(more);
        }
    }

    /// A reply to a command may have to wait for the state file; those to commands of this process
    /// never do: who writes the file gives some.
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
            self.send_from_internal(packet, pit_token, |internal| &mut internal.n_in_data);
        }
    }

    /// A reply goes to the worker whose engine sent the Interest here, an Interest to the
    /// one that its name belongs to.
    /// `count` says which counter of the internal face it belongs to.
    fn send_from_internal(
        &mut self,
        packet: Vec<u8>,
        pit_token: Option<PitToken>,
        count: fn(&mut FaceCounters) -> &mut u64,
    ) {
        let internal = &mut self.node.internal;
        *count(internal) += 1;
        internal.n_in_bytes += packet.len() as u64;
        let dispatcher = &self.node.shared.dispatcher;
        let (worker, round) = if dispatcher.workers() == 1 {
            (0, Round::default())
        } else {
            let headers = LpHeaders { pit_token, ..LpHeaders::default() };
            let mut round = dispatcher.route(0, &headers, &packet, &mut self.hashes);
            (round.take(0), round)
        };
        self.node.worker(worker).send(ToWorker::Packet { packet, pit_token, round });
    }

    fn tell_cs_settings(&self) {
        let share = self.node.cs.share(self.node.workers.len() as u64);
        for worker in &self.node.workers {
            worker.send(ToWorker::ConfigureCs(share.clone()));
        }
    }
}
