//! Frames: from a network packet to the frames of its link, and back.
//!
//! A packet crosses the link service at both ends of every link. A packet that needs no header and fits the MTU is its
//! own frame: it moves from router to router without a copy.

use super::{Carrier, End, Event, Link, LinkEnd, Network, Place};
use crate::link::{Arrivals, LinkLoss};
use crate::router::ReceivedPacket;
use crate::trace::{NodeId, TraceKind};
use namewire_engine::FaceId;
use namewire_links::{LinkDrop, Received};
use namewire_packet::NameBuf;
use namewire_packet::lp::LpHeaders;
use std::rc::Rc;

impl Network {
    /// Passes a network packet to the link service of `end`, and its frames to the link.
    pub(super) fn send_packet(&mut self, end: End, headers: &LpHeaders, packet: Vec<u8>) {
        let name = self.trace.name_of(headers.packet(&packet));
        self.record_at(end, TraceKind::Sent, name.clone());
        let now_ns = self.now_ns();
        let Link { ends, carrier, .. } = &mut self.links[end.0.0];
        let headers = match carrier {
            Carrier::Wire(wire) => &wire.directions[end.1].let_through(headers),
            Carrier::Air(_) => headers,
        };
        // Most packets leave as they are, in one frame; these are not copied.
        let (mut frames, mut leaves_as_it_is) = (Vec::new(), false);
        let encoded = ends[end.1].service.encode(now_ns, headers, &packet, |header, slice| {
            match header.is_empty() && slice.len() == packet.len() {
                true => leaves_as_it_is = true,
                false => frames.push([header, slice].concat()),
            }
        });
        if leaves_as_it_is {
            frames.push(packet);
        }
        self.send_frames(end, frames, &name);
        if let Err(reason) = encoded {
            self.record_at(end, TraceKind::LinkDropped(reason), name);
        }
        self.schedule_pump(end);
    }

    /// Passes frames to the link; `name` is their packet's name, if they have a packet.
    pub(super) fn send_frames(&mut self, end: End, frames: Vec<Vec<u8>>, name: &Option<Rc<NameBuf>>) {
        for frame in frames {
            self.trace.digest_frame(&frame);
            let now_ns = self.now_ns();
            if let Some(tap) = &mut self.links[end.0.0].tap {
                tap(now_ns, end.1, &frame);
            }
            match self.links[end.0.0].carrier {
                Carrier::Wire(_) => self.send_by_wire(end, frame, name),
                Carrier::Air(_) => self.send_by_air(end, frame, name),
            }
        }
    }

    fn send_by_wire(&mut self, end: End, frame: Vec<u8>, name: &Option<Rc<NameBuf>>) {
        let (now_ns, frame_bytes) = (self.now_ns(), frame.len());
        let wire = self.links[end.0.0].wire_mut().expect("it is a wire");
        match wire.directions[end.1].send(now_ns, frame_bytes) {
            Ok(Arrivals { first_ns, second_ns }) => {
                let at = end.opposite();
                if let Some(at_ns) = second_ns {
                    let (frame, name) = (frame.clone(), name.clone());
                    self.queue.schedule(at_ns, Event::FrameArrives { at, frame, name });
                }
                self.queue.schedule(first_ns, Event::FrameArrives { at, frame, name: name.clone() });
            }
            Err(loss) => {
                self.record_at(end, TraceKind::LinkLost(loss), name.clone());
                self.note_link_loss(end);
            }
        }
    }

    /// A frame reaches the end of a wire.
    pub(super) fn frame_arrives(&mut self, at: End, frame: Vec<u8>, name: Option<Rc<NameBuf>>) {
        let wire = self.links[at.0.0].wire_mut().expect("frames arrive by wire");
        if !wire.directions[1 - at.1].arrive() {
            return self.record_at(at.opposite(), TraceKind::LinkLost(LinkLoss::Down), name);
        }
        self.take_frame(at, 0, frame, name);
    }

    /// The link service of an end takes a frame of `sender`, which is a number at this end of the link.
    pub(super) fn take_frame(&mut self, at: End, sender: u64, mut frame: Vec<u8>, name: Option<Rc<NameBuf>>) {
        let now_ns = self.now_ns();
        let LinkEnd { place, service, .. } = &mut self.links[at.0.0].ends[at.1];
        let place = *place;
        let evicted_before = service.counters().drops[LinkDrop::ReassemblyEvicted as usize];
        let received = match service.receive_from(now_ns, sender, &frame) {
            Ok(Received::Packet { headers, start, len }) => {
                frame.truncate(start + len);
                frame.drain(..start);
                Some((headers, frame))
            }
            Ok(Received::Reassembled { headers, packet }) => Some((headers, packet.to_vec())),
            Ok(Received::Incomplete | Received::Idle) => None,
            Err(reason) => {
                self.record_at(at, TraceKind::LinkDropped(reason), name.clone());
                None
            }
        };
        let service = &self.links[at.0.0].ends[at.1].service;
        let evicted = service.counters().drops[LinkDrop::ReassemblyEvicted as usize] - evicted_before;
        for _ in 0..evicted {
            self.record_at(at, TraceKind::LinkDropped(LinkDrop::ReassemblyEvicted), None);
        }
        self.schedule_expiry(at);
        self.schedule_pump(at);
        let Some((headers, packet)) = received else { return };
        match place {
            Place::Face(node, face) => self.router_receives(at, node, face, headers, packet),
            Place::App(app) => {
                self.record_at(at, TraceKind::Received, name);
                self.call(app, |application, io| application.receive(io, &headers, headers.packet(&packet)));
            }
        }
    }

    fn router_receives(&mut self, at: End, node: NodeId, face: FaceId, headers: LpHeaders, packet: Vec<u8>) {
        let now_ns = self.now_ns();
        let link = &self.links[at.0.0];
        let passes_tokens = link.wire().is_some_and(|wire| wire.directions[at.1].takes_tokens());
        let takes_tokens = passes_tokens && link.ends[at.1].service.peer_speaks_lp();
        let received = ReceivedPacket { face, headers, packet, takes_tokens };
        let runs = self.stands_until_ns[node.0] <= now_ns;
        let consequences = self.nodes[node.0].accept(received, now_ns, runs, &mut self.trace);
        self.carry_out(node, consequences);
    }

    fn schedule_expiry(&mut self, end: End) {
        let state = &mut self.links[end.0.0].ends[end.1];
        if let Some(deadline_ns) = state.service.next_deadline_ns()
            && deadline_ns < state.expire_at_ns
        {
            state.expire_at_ns = deadline_ns;
            self.queue.schedule(deadline_ns, Event::ExpireFragments(end));
        }
    }

    pub(super) fn expire_fragments(&mut self, end: End) {
        let now_ns = self.now_ns();
        let state = &mut self.links[end.0.0].ends[end.1];
        if state.expire_at_ns > now_ns {
            return; // replaced by a later one
        }
        state.expire_at_ns = u64::MAX;
        let before = state.service.counters().drops[LinkDrop::ReassemblyTimeout as usize];
        state.service.expire(now_ns);
        let given_up = state.service.counters().drops[LinkDrop::ReassemblyTimeout as usize] - before;
        for _ in 0..given_up {
            self.record_at(end, TraceKind::LinkDropped(LinkDrop::ReassemblyTimeout), None);
        }
        self.schedule_expiry(end);
    }
}
