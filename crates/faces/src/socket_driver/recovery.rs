//! Reliability on sockets: frames that leave without a packet.
//!
//! A reliable face that was used in this turn, or whose timer is due, is asked in
//! [`SocketDriver::flush`] what it has to send. A face that is not reliable is not asked, and while
//! there is none nobody looks for one.

use std::cmp::Reverse;

use namewire_packet::FaceId;

use super::{Channel, Face, NO_TIMER, SocketDriver, Timer};
use crate::LinkPolicy;

/// What is lost on a blocked socket waits at least so long for another attempt.
const BLOCKED_PAUSE_NS: u64 = 5_000_000;

impl SocketDriver {
    /// Changes reliability and congestion marks of a face. Whether its transport has them is the
    /// caller's to check. False if there is no such face.
    pub fn set_policy(&mut self, face: FaceId, policy: LinkPolicy) -> bool {
        let Some(face) = self.faces.get_mut(&face) else { return false };
        self.reliable_faces -= usize::from(face.link.is_reliable());
        face.link.set_policy(policy);
        self.reliable_faces += usize::from(face.link.is_reliable());
        true
    }

    /// Lets the reliable ones among the faces used in this turn send what is due.
    pub(super) fn pump_touched(&mut self) {
        if self.reliable_faces == 0 {
            return;
        }
        for index in 0..self.touched.len() {
            let id = self.touched[index];
            if self.faces.get(&id).is_some_and(|face| face.link.is_reliable()) {
                self.pump(id);
            }
        }
    }

    fn pump(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(&id) else { return };
        let (now_ns, pool) = (self.now_ns, &mut self.pool);
        let queued_octets = &mut self.queued_octets;
        // A frame that waits in a queue is not lost; and what is full takes no Acks either.
        let is_blocked = match &mut face.channel {
            Channel::Down => return,
            Channel::Stream(stream) => {
                let is_blocked = stream.is_blocked;
                if stream.queued_octets() < self.config.stream_queue_octets {
                    face.link.pump(now_ns, !is_blocked, |header, slice| {
                        *queued_octets += header.len() + slice.len();
                        stream.queue(header, slice, pool);
                    });
                }
                is_blocked
            }
            Channel::Datagram { socket: index, destination } => {
                let Some(Some(socket)) = self.datagram_sockets.get_mut(*index) else { return };
                let is_blocked = socket.is_blocked;
                let before = socket.queued_octets();
                if before < self.config.udp_queue_octets {
                    face.link.pump(now_ns, !is_blocked, |header, slice| {
                        *queued_octets += socket.queue(id, *destination, header, slice, pool);
                    });
                }
                if socket.queued_octets() > before && !socket.is_dirty {
                    socket.is_dirty = true;
                    self.dirty_sockets.push(*index);
                }
                is_blocked
            }
        };
        let earliest_ns = if is_blocked { now_ns + BLOCKED_PAUSE_NS } else { 0 };
        let acks_due_ns = face.link.acks_due_ns().map(|at_ns| at_ns.max(earliest_ns));
        if let Some(at_ns) = acks_due_ns.filter(|at_ns| *at_ns < face.acks_timer_ns) {
            face.acks_timer_ns = at_ns;
            self.timers.push(Reverse((at_ns, Timer::Acks(id))));
        }
        let retransmission_due_ns = face.link.retransmission_due_ns().map(|at_ns| at_ns.max(earliest_ns));
        if let Some(at_ns) = retransmission_due_ns.filter(|at_ns| *at_ns < face.retransmission_timer_ns) {
            face.retransmission_timer_ns = at_ns;
            self.timers.push(Reverse((at_ns, Timer::Retransmission(id))));
        }
    }

    pub(super) fn run_reliability_timer(&mut self, id: FaceId, at_ns: u64, timer: fn(&mut Face) -> &mut u64) {
        let Some(face) = self.faces.get_mut(&id) else { return };
        let timer = timer(face);
        if *timer != at_ns {
            return; // an earlier one has replaced it
        }
        *timer = NO_TIMER;
        if !face.is_touched {
            face.is_touched = true;
            self.touched.push(id);
        }
    }
}
