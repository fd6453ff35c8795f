//! A worker's input and output: its sockets, its rings to the other workers, and its way to control.
//!
//! A decided packet is sent on a face of this worker, by this worker's lane of a face, over a ring to the worker that
//! owns the face, or to management.

use crate::{
    backlog::{Backlog, Outgoing},
    drop_log::{DropNoter, Dropped},
    lanes::Lanes,
    mesh::{Outbox, Room, Task},
    messages::ForManagement,
    router_drop::RouterDrop,
    senders::ControlSender,
    tags::TagForwarding,
    trace::Traces,
};
use namewire_engine::{Engine, FaceId, FaceTable, Frame, Output, RouteRequest, Transmit, View, dispatch::Visits};
use namewire_faces::{Lent, RxPacket, SocketDriver};
use namewire_packet::{lp::LpHeaders, tlv};
use namewire_shares::HolderId;

/// The first byte of every Data: type numbers below 253 take one byte.
const DATA_TYPE_BYTE: u8 = tlv::types::DATA as u8;

/// See the module documentation.
pub(crate) struct WorkerIo {
    /// The worker's number.
    pub(crate) index: u8,
    /// Time of this turn, monotonic.
    pub(crate) now_ns: u64,
    pub(crate) driver: SocketDriver,
    pub(crate) outbox: Outbox,
    pub(crate) backlog: Backlog,
    /// What is decided now came from datagrams alone, which cannot wait.
    pub(crate) is_of_datagrams: bool,
    pub(crate) lanes: Lanes,
    pub(crate) control: ControlSender,
    pub(crate) drops: [u64; RouterDrop::COUNT],
    pub(crate) drop_noter: DropNoter,
    pub(crate) tags: TagForwarding,
    pub(crate) traces: Traces,
}

impl WorkerIo {
    /// Sends all verdicts; `frames` is the batch that they belong to.
    pub(crate) fn transmit_all(&mut self, engine: &Engine, view: &View<'_>, frames: &[Frame<'_>], output: &Output) {
        if !engine.drop_notes().is_empty() {
            self.drop_noter.note_all(self.now_ns, engine.drop_notes(), frames);
        }
        let holder_of = |face| holder_of(view.faces, face);
        let mut lent = Lent::default();
        let mut rest = &output.transmits[..];
        while let Some((transmit, after)) = rest.split_first() {
            let Transmit { face, ref headers, .. } = *transmit;
            let packet_of = |transmit: &Transmit| engine.packet(frames, output, transmit.packet);
            rest = after;
            if face == FaceId::INTERNAL {
                self.transmit_to_management(view.faces, headers, packet_of(transmit));
                continue;
            }
            // No engine knows lane links: this worker owns those that it sends by.
            let way = self.lanes.way(face, headers, packet_of(transmit));
            if let Some(owner) = view.faces.get(way).map(|face| face.owner).filter(|owner| *owner != self.index) {
                self.push(owner, Task::Transmit, face, headers, packet_of(transmit));
                continue;
            }
            let to_face = std::iter::once(transmit).chain(after.iter().take_while(|next| next.face == face));
            let packets = to_face.map(|transmit| (&transmit.headers, packet_of(transmit)));
            // Only streams take runs, and no stream has lanes.
            match if way == face { self.driver.send_run(self.now_ns, face, packets, &lent) } else { 0 } {
                0 => {
                    // The driver counts a refusal under its own name.
                    let packet = packet_of(transmit);
                    let _ = self.driver.lend(self.now_ns, way, headers, packet, &holder_of, &mut lent);
                }
                sent => rest = &after[sent - 1..],
            }
        }
        self.driver.finish(&mut lent);
        if !output.route_requests.is_empty() {
            self.hand_on_route_requests(engine, view.faces, frames, output);
        }
    }

    /// Sends what strategies learned about routes to control, through the queue for Interests.
    #[cold]
    fn hand_on_route_requests(&mut self, engine: &Engine, faces: &FaceTable, frames: &[Frame<'_>], output: &Output) {
        for &request in &output.route_requests {
            let bytes = |of| engine.packet(frames, output, of).to_vec();
            let (face, message) = match request {
                RouteRequest::Learn { face, announcement } => {
                    (face, ForManagement::RouteLearned { face, announcement: bytes(announcement) })
                }
                RouteRequest::Forget { face, name } => (face, ForManagement::RouteLost { face, name: bytes(name) }),
            };
            self.hand_to_management(faces, face, message);
        }
    }

    /// Sends through a face of this worker.
    pub(crate) fn transmit_here(&mut self, faces: &FaceTable, face: FaceId, headers: &LpHeaders, packet: &[u8]) {
        // The driver counts a refusal under its own name.
        let _ = self.driver.send_for(self.now_ns, face, headers, packet, &|face| holder_of(faces, face));
    }

    /// Passes a result to another worker: a packet to transmit, or one to decide further. What came from datagrams does
    /// not wait, not even behind results that do.
    pub(crate) fn push(&mut self, to: u8, task: Task, face: FaceId, headers: &LpHeaders, packet: &[u8]) {
        let is_passed = if self.is_of_datagrams {
            self.outbox.push(to, Room::All, task, face, headers, packet)
        } else {
            !self.backlog.has_results(to, task)
                && self.outbox.push(to, Room::ForThoseWhoCanWait, task, face, headers, packet)
                || self.backlog.keep_result(Outgoing { to, task, face, headers, packet })
        };
        if !is_passed {
            self.drop_packet(RouterDrop::RingFull, face, headers, packet);
        }
    }

    /// Passes a packet that a face of ours received to the worker that decides it. If there is no room, a stream is not
    /// read until there is. Answers do not wait behind the questions of those who asked for them.
    pub(crate) fn push_received(&mut self, to: u8, visits: Visits, received: &RxPacket, packet: &[u8]) {
        let RxPacket { face, ref headers, is_paid, .. } = *received;
        let task = Task::Decide { visits };
        let room = if is_paid { Room::All } else { Room::ForThoseWhoCanWait };
        let waits = self.backlog.is_waiting(face, to);
        if waits || !self.outbox.push(to, room, task, face, headers, packet) {
            self.hold_back(Outgoing { to, task, face, headers, packet });
        }
    }

    #[cold]
    fn hold_back(&mut self, outgoing: Outgoing<'_>) {
        let Outgoing { to, task, face, headers, packet } = outgoing;
        let is_passed = match self.driver.holder(face).filter(|_| self.driver.is_stream(face)) {
            Some(holder) => {
                let is_held = self.backlog.hold(outgoing, holder);
                if is_held {
                    self.driver.hold(face);
                }
                is_held
            }
            None => self.outbox.push(to, Room::All, task, face, headers, packet),
        };
        if !is_passed {
            self.drop_packet(RouterDrop::RingFull, face, headers, packet);
        }
    }

    /// Counts and notes a packet that is lost between two threads.
    #[cold]
    fn drop_packet(&mut self, reason: RouterDrop, face: FaceId, headers: &LpHeaders, packet: &[u8]) {
        self.drops[reason as usize] += 1;
        self.drop_noter.note(self.now_ns, ("router", reason.name()), Some(Dropped { face, headers, packet }));
    }

    /// Does not read the streams among these faces until the results that wait have gone.
    #[cold]
    pub(crate) fn hold_streams(&mut self, faces: impl Iterator<Item = FaceId>) {
        for face in faces {
            if self.driver.hold(face) {
                self.backlog.hold_face(face);
            }
        }
    }

    /// Passes on what waits for room, and reads streams again.
    pub(crate) fn send_backlog(&mut self) {
        for face in self.backlog.send(&mut self.outbox) {
            self.driver.release(face);
        }
    }

    fn transmit_to_management(&mut self, faces: &FaceTable, headers: &LpHeaders, packet: &[u8]) {
        let packet = packet.to_vec();
        let is_data = packet.first() == Some(&DATA_TYPE_BYTE);
        if is_data || headers.nack.is_some() {
            let answer = ForManagement::Answer { from: headers.incoming_face_id, packet, nack: headers.nack };
            return self.hand_to_management(faces, FaceId::INTERNAL, answer);
        }
        let incoming = headers.incoming_face_id.unwrap_or_default();
        let interest = ForManagement::Interest { incoming, pit_token: headers.pit_token, packet };
        self.hand_to_management(faces, incoming, interest);
    }

    pub(crate) fn hand_to_management(&mut self, faces: &FaceTable, from: FaceId, message: ForManagement) {
        // A face that has closed since has no holder any more, and shares with all such faces.
        let holder = holder_of(faces, from).unwrap_or(HolderId::ANY_REMOTE);
        if let Err(message) = self.control.queue.push(from, holder, message) {
            let packet = match &*message {
                ForManagement::Interest { packet, .. } | ForManagement::Answer { packet, .. } => &packet[..],
                _ => &[],
            };
            self.drop_packet(RouterDrop::ManagementQueueFull, from, &LpHeaders::default(), packet);
        }
    }
}

/// Whose share of the pools a face uses; `None` if it has closed.
fn holder_of(faces: &FaceTable, face: FaceId) -> Option<HolderId> {
    faces.get(face).map(|face| face.holder)
}
