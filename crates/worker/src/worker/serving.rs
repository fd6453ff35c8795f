//! Messages from control to a worker: one method for each message that needs more than one call.

use super::{Scratch, Worker, decide};
use crate::{
    messages::{CaptureChange, CsShare, FaceChange, FromWorker, LookId, ToWorker},
    name_look::{fib_look, name_look},
    shared::TableReader,
};
use arrayvec::ArrayVec;
use namewire_engine::{BATCH_PACKETS, FaceId, Frame, Instant, dispatch::Visits};
use namewire_faces::{AddFaceError, CloseReason, FaceInfo, StreamSocket};
use namewire_packet::{NameBuf, lp::LpHeaders, nfd::NameLook};

/// Messages from control that are served in one turn.
const MESSAGES_PER_TURN: usize = 64;

impl Worker {
    /// Serves some messages from control. False: told to stop.
    pub(super) fn serve_messages(&mut self, now_ns: u64, tables: &mut TableReader, scratch: &mut Scratch) -> bool {
        for _ in 0..MESSAGES_PER_TURN {
            let Ok(message) = self.messages.try_recv() else { return true };
            match message {
                ToWorker::Stop => {
                    self.io.driver.flush();
                    return false;
                }
                ToWorker::Freeze(answer) => {
                    if !self.stay_frozen(&answer, tables, scratch) {
                        return false;
                    }
                    continue;
                }
                _ => {}
            }
            self.serve(message, now_ns, tables, scratch);
        }
        self.io.driver.waker().wake(); // more wait: come back without sleeping
        true
    }

    pub(super) fn serve(&mut self, message: ToWorker, now_ns: u64, tables: &mut TableReader, scratch: &mut Scratch) {
        let driver = &mut self.io.driver;
        match message {
            ToWorker::Stop | ToWorker::Freeze(_) | ToWorker::GoOn => {} // see the callers
            ToWorker::HandOver(message) => self.serve_hand_over(message, now_ns),
            ToWorker::AddStream { face, socket, info, policy } => {
                let result = driver.add_stream(face, socket, info.clone());
                driver.set_policy(face, policy);
                self.report_added(face, result.map(|()| info));
            }
            ToWorker::AddMemory { face, port, info, policy } => {
                let result = driver.add_memory_face(face, *port, info.clone());
                driver.set_policy(face, policy);
                self.report_added(face, result.map(|()| info));
            }
            ToWorker::AddUdp { face, local, remote, persistency, mtu, policy } => {
                let result = driver.add_udp_face(face, local, remote, persistency, mtu);
                driver.set_policy(face, policy);
                self.report_added(face, result);
            }
            ToWorker::AddMulticast { face, sockets, info, policy } => {
                let result = driver.add_multicast_face(face, sockets, info.clone());
                driver.set_policy(face, policy);
                self.report_added(face, result.map(|()| info));
            }
            ToWorker::AddEthernet { face, interface, address, persistency, link_type, mtu, policy } => {
                let result = driver.add_ethernet_face(face, interface, address, persistency, link_type, mtu);
                driver.set_policy(face, policy);
                self.report_added(face, result);
            }
            ToWorker::AddLink { interface, socket, listens } => {
                if driver.add_link(socket, listens).is_err() {
                    self.tell(FromWorker::LinkFailed { interface });
                }
            }
            ToWorker::RemoveLink { interface } => driver.remove_link(interface),
            ToWorker::SetLinkMtu { interface, mtu } => driver.set_link_mtu(interface, mtu),
            ToWorker::SetLinkListens { interface, listens } => driver.set_link_listens(interface, listens),
            ToWorker::SetInterfaceUp { faces, is_up } => driver.set_interface_up(now_ns, &faces, is_up),
            ToWorker::Reconnect { face, socket } => self.reconnect(face, socket),
            ToWorker::RemoveFace { face } => {
                driver.remove_face(face);
            }
            ToWorker::DisplaceIdle { holder } => driver.displace_idle_connections(now_ns, holder),
            ToWorker::UpdateFace { face, change } => self.update_face(face, &change),
            ToWorker::ForgetFaces(faces) => self.forget_faces(now_ns, &faces, tables, scratch),
            ToWorker::FacesDown(faces) => self.pit_looks.add_down(&faces),
            ToWorker::FacesUp(faces) => self.pit_looks.add_up(&faces),
            ToWorker::NewNextHops(gained) => self.pit_looks.add_gained(&gained),
            ToWorker::Packet { packet, headers, visits } => {
                self.decide_internal(packet, headers, visits, tables, scratch);
            }
            ToWorker::Transmit { face, headers, packet } => {
                // The driver counts a refusal under its own name.
                let _ = driver.send(now_ns, face, &headers, &packet);
            }
            ToWorker::EraseCs(erasure) => self.cs_erasures.push(erasure),
            ToWorker::ConfigureCs(cs) => self.configure_cs(cs),
            ToWorker::LookAtName { id, name } => self.look_at_name(now_ns, id, &name, tables),
            ToWorker::Lane { face, change } => self.change_lane(now_ns, face, change),
            ToWorker::Capture(change) => self.change_captures(change),
        }
    }

    fn look_at_name(&self, now_ns: u64, id: LookId, name: &NameBuf, tables: &mut TableReader) {
        let is_owner = self.shared.dispatcher.home(name.as_name()) == self.io.index;
        let state = self.engine.name_state(Instant(now_ns), name.as_name());
        let look =
            |tables: &mut TableReader| fib_look(&self.engine, Instant(now_ns), &tables.pin().view(), name.as_name());
        let fib = if is_owner { look(tables) } else { None };
        self.tell(FromWorker::NameLooked { id, look: NameLook { fib, ..name_look(self.io.index, is_owner, state) } });
    }

    fn change_captures(&mut self, change: CaptureChange) {
        let driver = &mut self.io.driver;
        match change {
            CaptureChange::Face { face, tap } => driver.capture_face(face, &tap),
            CaptureChange::Lane { face, tap } => driver.capture_lane(face, &tap),
            CaptureChange::Scope(tap) => driver.capture_scope(tap),
            CaptureChange::Decisions(tap) => self.io.traces.add(tap),
            CaptureChange::Clients(faces) => driver.set_capture_clients(faces),
            CaptureChange::End { id } => {
                driver.end_capture(id);
                self.io.traces.end(id);
            }
        }
    }

    fn report_added(&self, face: FaceId, result: Result<FaceInfo, AddFaceError>) {
        let result = result.map(|info| (info, self.io.driver.counters(face).unwrap_or_default()));
        self.tell(FromWorker::FaceAdded { worker: self.io.index, face, result });
    }

    fn reconnect(&mut self, face: FaceId, socket: StreamSocket) {
        match self.io.driver.reconnect(face, socket) {
            // The face was destroyed meanwhile: the connection closes with the socket.
            Ok(()) | Err(AddFaceError::NotDown(_)) => {}
            // The face failed again already. Without this report control would not try once more.
            Err(_) => self.tell(FromWorker::FaceDown { face, reason: CloseReason::PeerClosed }),
        }
    }

    fn update_face(&mut self, face: FaceId, change: &FaceChange) {
        let &FaceChange { persistency, mtu, local_fields, policy } = change;
        let driver = &mut self.io.driver;
        persistency.map(|persistency| driver.set_persistency(face, persistency));
        mtu.map(|mtu| driver.set_mtu(face, mtu));
        local_fields.map(|on| driver.set_local_fields(face, on));
        policy.map(|policy| driver.set_policy(face, policy));
        for link in driver.lane_links(face).to_vec() {
            mtu.map(|mtu| driver.set_mtu(link, mtu));
            policy.map(|policy| driver.set_policy(link, policy));
        }
    }

    fn configure_cs(&mut self, cs: CsShare) {
        // The policy comes first, so that no Data follows the former one. If memory for the new policy is missing, the
        // former stays, and the engine counts that.
        let _ = self.engine.set_cs_policy(cs.policy);
        self.engine.configure_cs(cs.capacity_bytes, cs.capacity_packets, cs.admit, cs.serve);
        self.engine.count_cs_prefixes(&cs.counted_prefixes);
        self.publish_status();
    }

    /// Data from management, with the internal face as its ingress.
    fn decide_internal(
        &mut self,
        mut packet: Vec<u8>,
        headers: LpHeaders,
        visits: Visits,
        tables: &mut TableReader,
        scratch: &mut Scratch,
    ) {
        let tables = tables.pin();
        let output = &mut scratch.output;
        let mut frames: ArrayVec<Frame<'_>, BATCH_PACKETS> = ArrayVec::new();
        frames.push(Frame {
            face: FaceId::INTERNAL,
            // Management keeps its own snapshots; a cached answer would outlive them.
            headers: LpHeaders { no_cache: true, ..headers },
            packet: &mut packet,
            visits,
        });
        decide(&mut self.engine, &mut self.io, &tables, &mut frames, output);
    }

    /// Faces are gone: packets that waited for these alone go elsewhere.
    fn forget_faces(&mut self, now_ns: u64, faces: &[FaceId], tables: &mut TableReader, scratch: &mut Scratch) {
        let tables = tables.pin();
        let view = tables.view();
        if self.engine.faces_removed(Instant(now_ns), &view, faces, &mut scratch.output) {
            self.pit_looks.add_down(faces);
        }
        self.io.transmit_all(&self.engine, &view, &[], &scratch.output);
    }
}
