//! Timers: idle on-demand faces, connections that never sent a packet, unfinished fragmented packets, faces that are
//! down, frames that reliability sends without a packet, and frames that AF_XDP still has to send.

use std::time::Duration;

use namewire_packet::{FaceId, nfd::FacePersistency};

use super::SocketDriver;
use super::face::{Channel, Face};
use super::timer_queue::Timer;
use crate::{CloseReason, DriverConfig, memory};

impl SocketDriver {
    /// When [`SocketDriver::run_timers`] may have something to do.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.timers.next_ns()
    }

    /// Discards fragmented packets and closes idle faces that have timed out. The next [`SocketDriver::flush`] sends
    /// frames and Acks that are due.
    pub fn run_timers(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        while let Some((at_ns, timer)) = self.timers.pop_due(now_ns) {
            match timer {
                Timer::Idle(face) => self.run_idle_timer(face),
                Timer::Reassembly(face) => self.run_reassembly_timer(face),
                Timer::Rest => self.run_rest_timer(),
                Timer::Kick(socket) => self.run_kick_timer(socket),
                Timer::Probe(face) => self.run_probe_timer(face, at_ns),
                Timer::Acks(face) => self.run_reliability_timer(face, at_ns, |face| &mut face.acks_timer_ns),
                Timer::Retransmission(face) => {
                    self.run_reliability_timer(face, at_ns, |face| &mut face.retransmission_timer_ns);
                    // The timer is due at most once per time-out, and for the last time when all frames are
                    // acknowledged.
                    let pool = &mut self.unacknowledged;
                    self.faces.change(face, |face| {
                        face.link.rest();
                        face.settle_unacknowledged(pool);
                    });
                }
            }
        }
    }

    fn run_idle_timer(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(id) else { return };
        face.has_idle_timer = false;
        let due_ns = idle_due_ns(&self.config, face);
        let reason = if face.is_of_stranger() { CloseReason::NeverSpoke } else { CloseReason::Idle };
        if due_ns.is_some_and(|due_ns| due_ns <= self.now_ns) {
            self.close(id, reason);
        } else {
            self.schedule_idle(id);
        }
    }

    fn run_reassembly_timer(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(id) else { return };
        face.has_reassembly_timer = false;
        face.link.expire(self.now_ns);
        let before = face.reassembly_bytes;
        face.settle_reassembly(&mut self.reassembly);
        self.rest.note_freed(before.saturating_sub(face.reassembly_bytes) as usize);
        face.publish();
        self.schedule_reassembly(id);
    }

    pub(super) fn schedule_idle(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(id) else { return };
        if let Some(due_ns) = idle_due_ns(&self.config, face).filter(|_| !face.has_idle_timer) {
            face.has_idle_timer = true;
            self.timers.set(due_ns, Timer::Idle(id));
        }
    }

    pub(super) fn schedule_reassembly(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(id) else { return };
        if let Some(at_ns) = face.link.next_deadline_ns().filter(|_| !face.has_reassembly_timer) {
            face.has_reassembly_timer = true;
            self.timers.set(at_ns, Timer::Reassembly(id));
        }
    }
}

/// When a face closes if nothing happens until then. `None`: never.
fn idle_due_ns(config: &DriverConfig, face: &Face) -> Option<u64> {
    let after = |since_ns: u64, timeout: Duration| Some(since_ns.saturating_add(timeout.as_nanos() as u64));
    let is_on_demand = face.info.persistency == FacePersistency::OnDemand;
    match face.channel {
        Channel::Datagram { .. } if is_on_demand && !memory::is_memory(&face.info) => {
            after(face.last_received_ns, config.udp_idle_timeout)
        }
        Channel::Stream(_) if face.is_of_stranger() && !face.link.has_received_packet() => {
            after(face.made_ns, config.first_packet_timeout)
        }
        _ => None,
    }
}
