//! Routers that pause, and routers that restart.
//!
//! While a router pauses, packets wait for it, as in the receive buffers of sockets. Afterwards its clock has jumped,
//! as on a machine that slept, or on a virtual machine that was not scheduled. A restarted router has lost its tables
//! and the packets that waited. Its neighbours do not notice the restart, and send PIT tokens from before it.

use super::{Event, Network};
use crate::past_lives::PastLives;
use crate::trace::NodeId;

impl Network {
    /// The router does nothing for a while.
    pub fn stand_still(&mut self, node: NodeId, duration_ns: u64) {
        let until_ns = self.now_ns() + duration_ns;
        let stands_until_ns = &mut self.stands_until_ns[node.0];
        *stands_until_ns = until_ns.max(*stands_until_ns);
    }

    /// The router ends and starts again, with the faces and routes that it had.
    pub fn restart(&mut self, node: NodeId) {
        let consequences = self.nodes[node.0].restart(self.queue.now_ns());
        self.carry_out(node, consequences);
    }

    /// Puts off what a router that stands still should do now; gives back all else.
    pub(super) fn unless_standing(&mut self, event: Event) -> Option<Event> {
        let (Event::RunBatch(node, _) | Event::RunTimers(node, _) | Event::RunTags(node)) = &event else {
            return Some(event);
        };
        let (now_ns, until_ns) = (self.now_ns(), self.stands_until_ns[node.0]);
        if until_ns <= now_ns {
            return Some(event);
        }
        let is_outdated = match event {
            Event::RunTimers(node, worker) => !self.nodes[node.0].postpone_timers(worker, now_ns, until_ns),
            _ => false,
        };
        if !is_outdated {
            self.queue.schedule(until_ns, event);
        }
        None
    }

    pub(crate) fn past_lives(&self, node: NodeId) -> &PastLives {
        &self.nodes[node.0].past
    }
}
