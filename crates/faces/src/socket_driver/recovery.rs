//! Reliability on sockets: Acks and retransmissions, which the driver sends without a packet.
//!
//! [`SocketDriver::flush`] asks each reliable face that was used in this turn, or whose timer is due, for frames to
//! send. While no face is reliable, it looks for none.

use namewire_packet::FaceId;

use super::SocketDriver;
use super::face::{Channel, Face};
use super::outage::NO_TIMER;
use super::timer_queue::Timer;
use crate::LinkPolicy;
use crate::datagram_socket::Sender;

/// Retransmissions on a blocked socket are retried no sooner than this.
const BLOCKED_PAUSE_NS: u64 = 5_000_000;

impl SocketDriver {
    /// Changes reliability and congestion marks of a face. The caller checks whether its transport has them. False if
    /// there is no such face.
    pub fn set_policy(&mut self, face: FaceId, policy: LinkPolicy) -> bool {
        let is_set = self.faces.set_policy(face, policy);
        if let Some(face) = self.faces.get_mut(face) {
            face.settle_unacknowledged(&mut self.unacknowledged);
        }
        is_set
    }

    /// Sends what is due on the reliable faces used in this turn.
    pub(super) fn pump_touched(&mut self) {
        let mut from = 0;
        while let Some((place, id)) = self.faces.reliable_touched(from) {
            self.pump(id);
            from = place + 1;
        }
    }

    fn pump(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(id) else { return };
        let (now_ns, outlet) = (self.now_ns, &mut self.outlet);
        // A frame that waits in a queue is not lost, and a full queue takes no Acks either.
        let is_blocked = match &mut face.channel {
            Channel::Down => return,
            Channel::Stream(stream) => {
                let is_blocked = stream.is_blocked;
                if outlet.stream_has_room(stream) {
                    face.link
                        .pump(now_ns, !is_blocked, |header, slice| outlet.queue_on_stream(stream, None, header, slice));
                }
                is_blocked
            }
            Channel::Datagram { socket: index, destination } => {
                let Some(socket) = self.sockets.get_mut(*index) else { return };
                let (is_blocked, before) = (socket.is_blocked, socket.queued_bytes());
                if outlet.socket_has_room(socket) {
                    let sender = Sender { face: id, holder: face.holder, destination: *destination, is_scout: false };
                    face.link.pump(now_ns, !is_blocked, |header, slice| {
                        outlet.queue_datagram(socket, sender, header, slice);
                    });
                }
                if socket.queued_bytes() > before {
                    self.sockets.mark_dirty(*index);
                }
                is_blocked
            }
        };
        let held = &mut self.unacknowledged;
        face.settle_unacknowledged(held);
        // The buffer takes up to twice what is kept in it.
        face.link.limit_unacknowledged((face.unacknowledged_bytes + held.room(face.holder)) / 2);
        let earliest_ns = if is_blocked { now_ns + BLOCKED_PAUSE_NS } else { 0 };
        let acks_due_ns = face.link.acks_due_ns().map(|at_ns| at_ns.max(earliest_ns));
        if let Some(at_ns) = acks_due_ns.filter(|at_ns| *at_ns < face.acks_timer_ns) {
            face.acks_timer_ns = at_ns;
            self.timers.set(at_ns, Timer::Acks(id));
        }
        let retransmission_due_ns = face.link.retransmission_due_ns().map(|at_ns| at_ns.max(earliest_ns));
        let black_hole = face.link.take_black_hole();
        if let Some(at_ns) = retransmission_due_ns.filter(|at_ns| *at_ns < face.retransmission_timer_ns) {
            face.retransmission_timer_ns = at_ns;
            self.timers.set(at_ns, Timer::Retransmission(id));
        }
        if let Some(vanished_bytes) = black_hole {
            self.avoid_black_hole(id, vanished_bytes as usize);
        }
    }

    pub(super) fn run_reliability_timer(&mut self, id: FaceId, at_ns: u64, timer: fn(&mut Face) -> &mut u64) {
        let Some(face) = self.faces.get_mut(id) else { return };
        let timer = timer(face);
        if *timer != at_ns {
            return; // an earlier one has replaced it
        }
        *timer = NO_TIMER;
        self.faces.touch(id);
    }
}
