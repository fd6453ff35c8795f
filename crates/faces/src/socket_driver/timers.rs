//! Timers: idle on-demand faces, unfinished fragmented packets, faces that are down, and frames that reliability sends
//! without a packet.

use namewire_packet::{FaceId, nfd::FacePersistency};

use super::SocketDriver;
use super::face::Channel;
use super::timer_queue::Timer;
use crate::CloseReason;

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
                Timer::Probe(face) => self.run_probe_timer(face, at_ns),
                Timer::Acks(face) => self.run_reliability_timer(face, at_ns, |face| &mut face.acks_timer_ns),
                Timer::Retransmission(face) => {
                    self.run_reliability_timer(face, at_ns, |face| &mut face.retransmission_timer_ns);
                    // The timer is due at most once per time-out, and for the last time when all frames are
                    // acknowledged.
                    self.faces.change(face, |face| face.link.rest());
                }
            }
        }
    }

    fn run_idle_timer(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(id) else { return };
        face.has_idle_timer = false;
        let is_on_demand = face.info.persistency == FacePersistency::OnDemand;
        let idle_since_ns = face.last_received_ns;
        let idle_timeout_ns = self.config.udp_idle_timeout.as_nanos() as u64;
        if is_on_demand && idle_since_ns.saturating_add(idle_timeout_ns) <= self.now_ns {
            self.close(id, CloseReason::Idle);
        } else {
            self.schedule_idle(id);
        }
    }

    fn run_reassembly_timer(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(id) else { return };
        face.has_reassembly_timer = false;
        face.link.expire(self.now_ns);
        face.publish();
        self.schedule_reassembly(id);
    }

    pub(super) fn schedule_idle(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(id) else { return };
        let is_datagram = matches!(face.channel, Channel::Datagram { .. });
        let closes_when_idle = is_datagram && face.info.persistency == FacePersistency::OnDemand;
        if closes_when_idle && !face.has_idle_timer {
            face.has_idle_timer = true;
            let idle_timeout_ns = self.config.udp_idle_timeout.as_nanos() as u64;
            let at_ns = face.last_received_ns.saturating_add(idle_timeout_ns);
            self.timers.set(at_ns, Timer::Idle(id));
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
