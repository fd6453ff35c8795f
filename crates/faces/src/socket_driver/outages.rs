//! When the link of a datagram face carries nothing: the face closes or, if it is permanent, is
//! *down* until the link carries packets again.
//!
//! Three things say so: the kernel refuses a datagram twice in a row ([`Failure::Link`]), the network
//! reports that a datagram did not arrive ([`Failure::Report`]), or control tells that the interface
//! is down. NFD closes a face that is not permanent at the first error of its socket; routing daemons
//! rely on it. Ours closes as fast, with one difference: a report must come twice with nothing heard
//! from the peer in between. We ask for the second one by an IDLE packet, so it takes one round trip.
//!
//! A report is an ICMP message, and a host that can send packets with foreign addresses can forge one:
//! the kernel takes it if the datagram that it quotes has our addresses and ports, and those of NDN
//! are well known. So anyone who could close a face of NFD by one packet needs two here, and while
//! the peer speaks both must come between two of its packets. The kernel tells a shared
//! (unconnected) socket of no report at all.
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
//! A probe is an IDLE packet (NDNLPv2: an LpPacket without Fragment), which every peer drops silently.
//! While the interface is down there is no probe, because another interface might take it and lose it.
//!
//! Cost: nothing while links work, but for one look per face and batch at whether it is down.

use std::cmp::Reverse;
use std::io;

use namewire_packet::FaceId;

use super::{Channel, NO_TIMER, SocketDriver, Timer};
use crate::datagram_socket::{Failure, Peers, link_fault};
use crate::{CloseReason, FaceEvent, LinkDrop, LinkType, Persistency};

/// An LpPacket that carries nothing.
const IDLE: [u8; 2] = [100, 0];

/// A second report that comes later than this after the first one is a first one.
const REPORT_LIFETIME_NS: u64 = 10_000_000_000;

/// A probe that nothing was heard of for so long has arrived.
const PROBE_WAIT_NS: u64 = 1_000_000_000;

/// Pause before the first probe; it doubles up to the last.
const PAUSE_FIRST_NS: u64 = 1_000_000_000;
const PAUSE_LAST_NS: u64 = 8_000_000_000;

/// What was received so shortly after a face went down may have waited in the socket. More waits
/// there when only control has noticed.
const STALE_NS: u64 = 100_000_000;
const STALE_AFTER_INTERFACE_NS: u64 = 1_000_000_000;

/// A face that is down.
pub(super) struct Outage {
    reason: CloseReason,
    /// What is received after this comes from a link that works.
    hears_from_ns: u64,
    interface_is_down: bool,
    /// A probe has left, and no failure was heard of since.
    is_probed: bool,
    pause_ns: u64,
    next_probe_ns: u64,
    /// When the timer comes due; an entry of another time is stale.
    timer_ns: u64,
}

impl SocketDriver {
    /// The network interface of these faces is down, or up again.
    pub fn set_interface_up(&mut self, now_ns: u64, faces: &[FaceId], is_up: bool) {
        self.now_ns = now_ns;
        for &id in faces {
            let Some(face) = self.faces.get_mut(&id) else { continue };
            match &mut face.outage {
                Some(outage) if is_up => {
                    outage.interface_is_down = false;
                    (outage.pause_ns, outage.next_probe_ns) = (PAUSE_FIRST_NS, now_ns);
                    self.set_probe_timer(id, now_ns);
                }
                Some(outage) => {
                    outage.hears_from_ns = now_ns + STALE_AFTER_INTERFACE_NS;
                    (outage.interface_is_down, outage.is_probed) = (true, false);
                }
                None if is_up => {}
                None => {
                    self.link_failed(id, CloseReason::InterfaceDown);
                    let outage = self.faces.get_mut(&id).and_then(|face| face.outage.as_mut());
                    if let Some(outage) = outage {
                        outage.interface_is_down = true;
                        outage.hears_from_ns = now_ns + STALE_AFTER_INTERFACE_NS;
                    }
                }
            }
        }
    }

    /// Counts what a socket did not send, and draws the consequences for its face.
    #[cold]
    pub(super) fn note_failure(&mut self, id: FaceId, failure: Failure) {
        let dropped = match failure {
            Failure::Datagram(reason) => Some(reason),
            Failure::Link(_) => Some(LinkDrop::SendFailed),
            Failure::Report(_) => None,
        };
        if let (Some(face), Some(reason)) = (self.faces.get_mut(&id), dropped) {
            face.link.count_drop(reason);
            face.publish();
        }
        match failure {
            Failure::Datagram(_) => {}
            Failure::Link(reason) => self.link_failed(id, reason),
            Failure::Report(reason) => self.link_reported(id, reason),
        }
    }

    /// A socket could not be read: on a connected one, that may be a report on what was sent.
    #[cold]
    pub(super) fn note_receive_error(&mut self, index: usize, error: &io::Error) {
        let Some(reason) = link_fault(error) else { return };
        // N.B. a packet socket says once that its interface is down; control says it as well.
        let Some(Some(&Peers::One { face, .. })) =
            self.datagram_sockets.get(index).map(|socket| socket.as_ref().map(|socket| &socket.peers))
        else {
            return;
        };
        self.link_reported(face, reason);
        if self.faces.get(&face).is_some_and(|face| face.outage.is_none()) {
            self.send_probe(face);
        }
    }

    fn link_reported(&mut self, id: FaceId, reason: CloseReason) {
        let Some(face) = self.faces.get_mut(&id) else { return };
        let is_recent = face.reported_ns != 0 && self.now_ns.saturating_sub(face.reported_ns) < REPORT_LIFETIME_NS;
        let is_confirmed = is_recent && face.last_received_ns <= face.reported_ns;
        if face.outage.is_some() || is_confirmed {
            return self.link_failed(id, reason);
        }
        face.reported_ns = self.now_ns.max(1);
    }

    /// The link of a face carries nothing. A multicast group has no link of its own: its faces stay.
    fn link_failed(&mut self, id: FaceId, reason: CloseReason) {
        let Some(face) = self.faces.get_mut(&id) else { return };
        let is_datagram = matches!(face.channel, Channel::Datagram { .. });
        if !is_datagram || face.info.link_type != LinkType::PointToPoint {
            return;
        }
        if let Some(outage) = &mut face.outage {
            outage.is_probed = false;
        } else if face.info.persistency == Persistency::Permanent {
            face.outage = Some(Box::new(Outage {
                reason,
                hears_from_ns: self.now_ns + STALE_NS,
                interface_is_down: false,
                is_probed: false,
                pause_ns: PAUSE_FIRST_NS,
                next_probe_ns: self.now_ns + PAUSE_FIRST_NS,
                timer_ns: NO_TIMER,
            }));
            self.events.push(FaceEvent::Down { face: id, reason });
            self.set_probe_timer(id, self.now_ns + PAUSE_FIRST_NS);
        } else {
            self.close(id, reason);
        }
    }

    /// Why a datagram face is down, if it is.
    pub(super) fn outage_reason(&self, id: FaceId) -> Option<CloseReason> {
        Some(self.faces.get(&id)?.outage.as_ref()?.reason)
    }

    /// A face that is down was used: has its peer spoken?
    #[cold]
    pub(super) fn note_heard(&mut self, id: FaceId) {
        let Some(face) = self.faces.get(&id) else { return };
        if face.outage.as_ref().is_some_and(|outage| face.last_received_ns > outage.hears_from_ns) {
            self.come_up(id);
        }
    }

    fn come_up(&mut self, id: FaceId) {
        self.change(id, |face| {
            face.outage = None;
            face.reported_ns = 0;
        });
        self.events.push(FaceEvent::Up { face: id });
    }

    /// Lets a probe leave with the next [`SocketDriver::flush`].
    fn send_probe(&mut self, id: FaceId) {
        let Some(Channel::Datagram { socket: index, destination }) = self.faces.get(&id).map(|face| &face.channel)
        else {
            return;
        };
        let Some(Some(socket)) = self.datagram_sockets.get_mut(*index) else { return };
        self.queued_octets += socket.queue(id, *destination, &IDLE, &[], &mut self.pool);
        if !socket.is_dirty {
            socket.is_dirty = true;
            self.dirty_sockets.push(*index);
        }
    }

    pub(super) fn run_probe_timer(&mut self, id: FaceId, at_ns: u64) {
        let now_ns = self.now_ns;
        let is_blocked = self.waits_for_room(id);
        let Some(outage) = self.faces.get_mut(&id).and_then(|face| face.outage.as_mut()) else { return };
        if outage.timer_ns != at_ns {
            return; // another one has replaced it
        }
        outage.timer_ns = NO_TIMER;
        if outage.interface_is_down {
            return; // the interface's return sets it again
        }
        if outage.is_probed && !is_blocked {
            return self.come_up(id);
        }
        let next_ns = if is_blocked {
            now_ns + PROBE_WAIT_NS
        } else if now_ns < outage.next_probe_ns {
            outage.next_probe_ns
        } else {
            outage.is_probed = true;
            outage.pause_ns = (outage.pause_ns * 2).min(PAUSE_LAST_NS);
            outage.next_probe_ns = now_ns + outage.pause_ns;
            self.send_probe(id);
            now_ns + PROBE_WAIT_NS
        };
        self.set_probe_timer(id, next_ns);
    }

    /// True if what a face sends waits because the kernel takes no more.
    fn waits_for_room(&self, id: FaceId) -> bool {
        let Some(Channel::Datagram { socket, .. }) = self.faces.get(&id).map(|face| &face.channel) else {
            return false;
        };
        matches!(self.datagram_sockets.get(*socket), Some(Some(socket)) if socket.is_blocked)
    }

    fn set_probe_timer(&mut self, id: FaceId, at_ns: u64) {
        if let Some(outage) = self.faces.get_mut(&id).and_then(|face| face.outage.as_mut()) {
            outage.timer_ns = at_ns;
            self.timers.push(Reverse((at_ns, Timer::Probe(id))));
        }
    }
}
