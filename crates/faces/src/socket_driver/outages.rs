//! Outages: if the link of a datagram face fails, the face closes. A permanent face does not close: it is *down* until
//! the link carries packets again.
//!
//! Three signs show it: the kernel refuses a datagram twice in a row ([`Failure::Link`]), the network reports that a
//! datagram did not arrive ([`Failure::Report`]), or the control side says that the interface is down. NFD closes a
//! face that is not permanent at the first error of its socket, and routing daemons rely on it. Ours closes as fast,
//! with one difference: a report must arrive twice, without a packet of the peer in between. We provoke the second
//! report with an IDLE packet, so it takes one round trip.
//!
//! A report is an ICMP message, and a host that can send packets with foreign addresses can forge one. The kernel
//! accepts it if the datagram that it quotes has our addresses and ports, and the ports of NDN are well known. An
//! attacker can close a face of NFD with one packet, but needs two for a face of ours. While the peer sends, both must
//! arrive between two of the peer's packets. The kernel gives a shared (unconnected) socket no reports.
//!
//! ```text
//!            failure, second report, interface down          (not permanent: closed)
//!        up ─────────────────────────────────────────► down ◄──────────────┐ failure, report:
//!         ▲                                              │ 1, 2, 4, 8, 8 … s│ not before the next pause
//!         │ no failure for a second                      ▼                  │
//!         └────────────────────────────────────────── probed ───────────────┘
//!         └──── a packet of the peer, in either of the two
//! ```
//!
//! A probe is an IDLE packet (NDNLPv2: an LpPacket without Fragment), which every peer drops silently. While the
//! interface is down, we send no probe: the kernel might send it over another interface, where it is lost.
//!
//! Cost: while links work, a batch tests once for each face whether it is down.

use std::io;

use namewire_packet::{
    FaceId,
    nfd::{FacePersistency, LinkType},
};

use super::SocketDriver;
use super::face::Channel;
use super::outage::{Outage, Step};
use super::timer_queue::Timer;
use crate::datagram_socket::{Failure, Peers, Sender, is_about_size, link_fault};
use crate::{CloseReason, FaceEvent, LinkDrop};

/// An LpPacket without content.
pub(super) const IDLE: [u8; 2] = [100, 0];

/// A report that comes later than this after the first one counts as a first one.
const REPORT_LIFETIME_NS: u64 = 10_000_000_000;

impl SocketDriver {
    /// Notes that the network interface of these faces is down, or up again.
    pub fn set_interface_up(&mut self, now_ns: u64, faces: &[FaceId], is_up: bool) {
        self.now_ns = now_ns;
        for &id in faces {
            let Some(face) = self.faces.get_mut(id) else { continue };
            if is_up {
                if let Some(outage) = &mut face.outage {
                    outage.note_interface_up(now_ns);
                    self.set_probe_timer(id, now_ns);
                }
                continue;
            }
            if face.outage.is_none() {
                self.link_failed(id, CloseReason::InterfaceDown);
            }
            if let Some(outage) = self.faces.get_mut(id).and_then(|face| face.outage.as_mut()) {
                outage.note_interface_down(now_ns);
            }
        }
    }

    /// Counts what a socket did not send, and applies the consequences to its face.
    #[cold]
    pub(super) fn note_failure(&mut self, id: FaceId, failure: Failure) {
        let dropped = match failure {
            Failure::Datagram(reason) => Some(reason),
            Failure::Link(_) => Some(LinkDrop::SendFailed),
            Failure::Report(_) | Failure::Size => None,
        };
        if let (Some(face), Some(reason)) = (self.faces.get_mut(id), dropped) {
            face.link.count_drop(reason);
            face.publish();
        }
        match failure {
            Failure::Datagram(_) => {}
            Failure::Link(reason) => self.link_failed(id, reason),
            Failure::Report(reason) => self.link_reported(id, reason),
            Failure::Size => self.path_reported(id),
        }
    }

    /// A socket could not be read: on a connected one, that may be a report on a sent datagram.
    #[cold]
    pub(super) fn note_receive_error(&mut self, index: usize, error: &io::Error) {
        // N.B. a packet socket reports once that its interface is down; the control side reports it as well.
        let Some(&Peers::One { face, .. }) = self.sockets.get(index).map(|socket| &socket.peers) else { return };
        if is_about_size(error) {
            return self.path_reported(face);
        }
        let Some(reason) = link_fault(error) else { return };
        self.link_reported(face, reason);
        if self.faces.get(face).is_some_and(|face| face.outage.is_none()) {
            self.send_probe(face);
        }
    }

    fn link_reported(&mut self, id: FaceId, reason: CloseReason) {
        let Some(face) = self.faces.get_mut(id) else { return };
        let is_recent = face.reported_ns != 0 && self.now_ns.saturating_sub(face.reported_ns) < REPORT_LIFETIME_NS;
        let is_confirmed = is_recent && face.last_received_ns <= face.reported_ns;
        if face.outage.is_some() || is_confirmed {
            return self.link_failed(id, reason);
        }
        face.reported_ns = self.now_ns.max(1);
    }

    /// Handles a face's link that carries nothing. Faces of a multicast group stay: the group has no link of its own.
    fn link_failed(&mut self, id: FaceId, reason: CloseReason) {
        let Some(face) = self.faces.get_mut(id) else { return };
        let is_datagram = matches!(face.channel, Channel::Datagram { .. });
        // The trunk of a face with lanes finds out.
        if !is_datagram || face.is_part() || face.info.link_type != LinkType::PointToPoint {
            return;
        }
        if let Some(outage) = &mut face.outage {
            outage.note_failure();
        } else if face.info.persistency == FacePersistency::Permanent {
            let outage = face.outage.insert(Box::new(Outage::new(reason, self.now_ns)));
            let first_probe_ns = outage.next_probe_ns();
            self.events.push(FaceEvent::Down { face: id, reason });
            self.set_probe_timer(id, first_probe_ns);
        } else {
            self.close(id, reason);
        }
    }

    /// Why a datagram face is down, if it is.
    pub(super) fn outage_reason(&self, id: FaceId) -> Option<CloseReason> {
        Some(self.faces.get(id)?.outage.as_ref()?.reason)
    }

    /// Checks, when a face that is down was used, whether its peer has sent something.
    #[cold]
    pub(super) fn note_heard(&mut self, id: FaceId) {
        let Some(face) = self.faces.get(id) else { return };
        if face.outage.as_ref().is_some_and(|outage| outage.hears(face.last_received_ns)) {
            self.come_up(id);
        }
    }

    fn come_up(&mut self, id: FaceId) {
        self.faces.change(id, |face| {
            face.outage = None;
            face.reported_ns = 0;
        });
        self.events.push(FaceEvent::Up { face: id });
    }

    /// Lets a probe leave with the next [`SocketDriver::flush`].
    pub(super) fn send_probe(&mut self, id: FaceId) {
        self.queue_frame(id, &IDLE);
    }

    /// Lets a frame of a datagram face leave with the next [`SocketDriver::flush`].
    pub(super) fn queue_frame(&mut self, id: FaceId, frame: &[u8]) {
        let Some(face) = self.faces.get(id) else { return };
        let Channel::Datagram { socket: index, destination } = face.channel else { return };
        let Some(socket) = self.sockets.get_mut(index) else { return };
        let sender = Sender { face: id, holder: face.holder, destination, is_scout: false };
        self.outlet.queue_datagram(socket, sender, frame, &[]);
        self.sockets.mark_dirty(index);
    }

    pub(super) fn run_probe_timer(&mut self, id: FaceId, at_ns: u64) {
        let (now_ns, is_blocked) = (self.now_ns, self.waits_for_room(id));
        let Some(outage) = self.faces.get_mut(id).and_then(|face| face.outage.as_mut()) else { return };
        match outage.step(at_ns, now_ns, is_blocked) {
            Step::Nothing => {}
            Step::ComeUp => self.come_up(id),
            Step::WaitUntil(next_ns) => self.set_probe_timer(id, next_ns),
            Step::Probe(next_ns) => {
                self.send_probe(id);
                self.set_probe_timer(id, next_ns);
            }
        }
    }

    /// True if the face's datagrams wait because the kernel takes no more.
    fn waits_for_room(&self, id: FaceId) -> bool {
        let Some(Channel::Datagram { socket, .. }) = self.faces.get(id).map(|face| &face.channel) else {
            return false;
        };
        self.sockets.get(*socket).is_some_and(|socket| socket.is_blocked)
    }

    fn set_probe_timer(&mut self, id: FaceId, at_ns: u64) {
        if let Some(outage) = self.faces.get_mut(id).and_then(|face| face.outage.as_mut()) {
            outage.timer_ns = at_ns;
            self.timers.set(at_ns, Timer::Probe(id));
        }
    }
}
