//! Giving: control hands sockets and state to a new program (decision 0017).
//!
//! Control waits for the workers and for the new program, and does nothing else meanwhile: no one uses a socket. If
//! anything fails before the new program may go on, the workers go on here, and nothing has changed.

use super::{Control, inbox::ControlInbox, node::Node};
use crate::{
    cs_settings::said,
    requests::{HandOver, HandedOver},
};
use namewire_faces::{HandedFace, HandedListener, face_uri};
use namewire_handover::{
    Kind, Line, LineError,
    faces::{self, FaceFacts, OnLine},
    messages::{Command, Listener, Node as NodeSaid, Refused, Stored, Taken},
};
use namewire_packet::nfd::{FaceUri, encode_dataset};
use namewire_worker::{HandOverMessage, ToWorker, WorkerSender, unix_ms};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::mpsc::{Receiver, sync_channel},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How long a worker may take to finish its turn.
const FREEZE_MAX: Duration = Duration::from_secs(5);

/// How long the new program may take to take everything.
const TAKE_MAX: Duration = Duration::from_secs(10);

/// Rounds in which workers decide what others have passed on. A packet passes through few workers.
const ROUNDS_MAX: usize = 8;

/// Entries of a dataset in one message.
const ENTRIES_AT_ONCE: usize = 4096;

/// Turns of messages that wait for control when it begins.
const TURNS_MAX: usize = 1000;

/// Batches of stored Data that wait for the line.
const BATCHES: usize = 2;

/// What workers and control describe.
struct State {
    node: NodeSaid,
    listeners: Vec<(Listener, OwnedFd)>,
    faces: Vec<OnLine>,
}

impl Control {
    /// What cannot be handed over, in words.
    pub(super) fn hindrances(&self) -> Vec<String> {
        let mut found = Vec::new();
        let count = |is_it: fn(&FaceUri) -> bool| {
            self.node.faces.iter().filter(|(_, record)| is_it(&record.info.remote) || is_it(&record.info.local)).count()
        };
        let memory = count(|uri| matches!(uri, FaceUri::Memif(_)));
        if memory > 0 {
            found.push(format!("{memory} faces by shared memory (memif)"));
        }
        let websocket = count(|uri| matches!(uri.scheme(), "ws" | "wss" | "wsclient"));
        if websocket > 0 {
            found.push(format!("{websocket} WebSocket faces"));
        }
        found.extend(self.node.links.xdp_ports().map(|name| format!("the AF_XDP port of {name}")));
        if self.node.links.has_devices() {
            found.push("DPDK devices".to_owned());
        }
        if self.node.tags.is_some() {
            found.push("TagNet's tables".to_owned());
        }
        found
    }

    /// Hands over. True if the new program goes on: then this control has ended.
    pub(super) fn give(&mut self, request: HandOver, inbox: &mut ControlInbox) -> bool {
        let HandOver { line, end_program, reply } = request;
        self.node.lanes.say_farewell(); // its lanes are not handed over
        self.serve_all(inbox);
        let began = Instant::now();
        let given = self.freeze().and_then(|()| {
            self.serve_all(inbox); // what workers have just reported
            self.give_frozen(&line)
        });
        match given {
            Ok(taken) => {
                let frozen = began.elapsed();
                let _ = reply.send(Ok(HandedOver { faces: taken.faces, routes: taken.routes, frozen }));
                self.give_stored(&line);
                true
            }
            Err(why) => {
                end_program();
                self.node.workers.iter().for_each(|worker| worker.send(ToWorker::GoOn));
                self.wake_workers();
                let _ = reply.send(Err(why)); // the process ends
                false
            }
        }
    }

    /// Serves what waits for control, so that no connection is between a listener and a worker.
    fn serve_all(&mut self, inbox: &mut ControlInbox) {
        for _ in 0..TURNS_MAX {
            let waiting = inbox.take_waiting();
            if waiting.is_empty() {
                break;
            }
            waiting.into_iter().for_each(|message| self.take(message));
        }
        self.wake_workers();
    }

    fn freeze(&self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let decided = ask(&self.node.workers, ToWorker::Freeze, FREEZE_MAX)?;
            if decided.iter().all(|decided| *decided == 0) {
                break;
            }
        }
        Ok(())
    }

    fn give_frozen(&mut self, line: &Line) -> Result<Taken, String> {
        let state = self.describe()?;
        let failed = |error: LineError| format!("the new program did not take over: {error}");
        line.set_timeout(TAKE_MAX).map_err(|error| failed(error.into()))?;
        let sent = self.send_state(line, &state);
        // If it has refused, that says more than a line that broke.
        let answer = line.receive();
        if let Ok(message) = &answer
            && message.kind == Kind::REFUSED
        {
            let Refused { why } = message.read().map_err(failed)?;
            return Err(format!("the new program refuses: {why}"));
        }
        sent.map_err(failed)?;
        let answer = answer.map_err(failed)?;
        if answer.kind != Kind::TAKEN {
            return Err("the new program did not say that it has everything".to_owned());
        }
        let taken = answer.read().map_err(failed)?;
        // From here on, this program must not go on, whether the message gets there or not.
        let _ = line.send(Kind::GO, &(), &[], &[]);
        Ok(taken)
    }

    fn describe(&mut self) -> Result<State, String> {
        let mut state = State { node: self.node_said(), listeners: self.stream_listeners()?, faces: Vec::new() };
        let describe = |answer| ToWorker::HandOver(HandOverMessage::Describe(answer));
        for (worker, handed) in ask(&self.node.workers, describe, FREEZE_MAX)?.into_iter().enumerate() {
            let (faces, listeners) = handed.map_err(|error| format!("descriptors are short: {error}"))?;
            for HandedListener { socket, local } in listeners {
                let uri = face_uri::udp(local).to_string();
                let said = Listener { uri, worker: worker as u8, is_inherited: false };
                state.listeners.push((said, socket.into()));
            }
            let faces = faces.into_iter().filter_map(|face| self.describe_face(worker as u8, face));
            state.faces.extend(faces);
        }
        Ok(state)
    }

    fn describe_face(&self, worker: u8, face: HandedFace) -> Option<OnLine> {
        // WebSocket faces end with their thread.
        if matches!(face.info.remote.scheme(), "ws" | "wss" | "wsclient") {
            return None;
        }
        let facts = FaceFacts {
            worker,
            has_tokens: self.node.faces.has_tokens(face.face),
            since_unix_ms: self.node.faces.since_unix_ms(face.face).unwrap_or_else(unix_ms),
            is_down: self.node.faces.is_down(face.face),
        };
        faces::to_line(face, facts)
    }

    fn node_said(&self) -> NodeSaid {
        let commands = self.management.passed_commands();
        let Node { faces, cs, links, .. } = &self.node;
        NodeSaid {
            next_face: faces.next_number().0,
            cs_configured: cs.configured().clone(),
            cs: said(cs.settings()),
            commands: commands
                .map(|command| Command {
                    key: command.key.to_string(),
                    time_ms: command.time_ms,
                    nonce: command.nonce.to_vec(),
                })
                .collect(),
            groups: links.handed_groups(),
            frozen_unix_us: unix_us(),
        }
    }

    fn stream_listeners(&self) -> Result<Vec<(Listener, OwnedFd)>, String> {
        let short = |error: std::io::Error| format!("descriptors are short: {error}");
        let duplicate = |(said, socket): &(Listener, OwnedFd)| Ok((said.clone(), socket.try_clone().map_err(short)?));
        self.node.listening.sockets.iter().map(duplicate).collect()
    }

    fn send_state(&self, line: &Line, state: &State) -> Result<(), LineError> {
        line.send(Kind::NODE, &state.node, &[], &[])?;
        for (listener, socket) in &state.listeners {
            line.send(Kind::LISTENER, listener, &[], &[socket.as_fd()])?;
        }
        for OnLine { face, bytes, descriptor } in &state.faces {
            let socket: Vec<BorrowedFd<'_>> = descriptor.iter().map(AsFd::as_fd).collect();
            line.send(Kind::FACE, face, bytes, &socket)?;
        }
        let now_ns = self.node.shared.now_ns();
        let mut routes = self.management.rib().dataset(now_ns).peekable();
        while routes.peek().is_some() {
            let some: Vec<_> = routes.by_ref().take(ENTRIES_AT_ONCE).collect();
            line.send(Kind::ROUTES, &(), &encode_dataset(&some), &[])?;
        }
        for some in self.management.manual_next_hops().chunks(ENTRIES_AT_ONCE) {
            line.send(Kind::NEXT_HOPS, &(), &encode_dataset(some), &[])?;
        }
        let strategies: Vec<_> = self.management.strategies().dataset().collect();
        for some in strategies.chunks(ENTRIES_AT_ONCE) {
            line.send(Kind::STRATEGIES, &(), &encode_dataset(some), &[])?;
        }
        line.send(Kind::END, &(), &[], &[])
    }

    /// Sends what the Content Stores hold, while the new program forwards. If that fails, it has less.
    fn give_stored(&self, line: &Line) {
        for worker in self.node.workers.iter() {
            let (batches, stored) = sync_channel(BATCHES);
            worker.send(ToWorker::HandOver(HandOverMessage::ShowStored(batches)));
            worker.wake();
            for batch in stored {
                if line.send(Kind::STORED, &Stored { fresh_ms: batch.fresh_ms }, &batch.data, &[]).is_err() {
                    return;
                }
            }
        }
    }
}

/// Asks every worker, and waits for all answers.
fn ask<T>(
    workers: &[WorkerSender],
    question: impl Fn(std::sync::mpsc::SyncSender<T>) -> ToWorker,
    patience: Duration,
) -> Result<Vec<T>, String> {
    let asked: Vec<Receiver<T>> = workers
        .iter()
        .map(|worker| {
            let (answer, answered) = sync_channel(1);
            worker.send(question(answer));
            worker.wake();
            answered
        })
        .collect();
    let late = |_| "a worker does not answer".to_owned();
    asked.into_iter().map(|answered| answered.recv_timeout(patience).map_err(late)).collect()
}

/// Microseconds since 1970.
pub(crate) fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
