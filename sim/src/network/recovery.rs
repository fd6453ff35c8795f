//! Reliability of links: Acks and retransmissions, which need no new packet.

use super::{End, Event, Network};

impl Network {
    pub(super) fn schedule_pump(&mut self, end: End) {
        let state = &mut self.links[end.0.0].ends[end.1];
        let due_ns = [state.service.acks_due_ns(), state.service.retransmission_due_ns()].into_iter().flatten().min();
        if let Some(due_ns) = due_ns.map(|due_ns| due_ns.max(self.queue.now_ns()))
            && due_ns < state.pump_at_ns
        {
            state.pump_at_ns = due_ns;
            self.queue.schedule(due_ns, Event::PumpLink(end));
        }
    }

    /// Sends the retransmissions that are due.
    pub(super) fn pump_link(&mut self, end: End) {
        let now_ns = self.now_ns();
        let state = &mut self.links[end.0.0].ends[end.1];
        if state.pump_at_ns > now_ns {
            return; // replaced by an earlier one, which has run
        }
        state.pump_at_ns = u64::MAX;
        let mut frames = Vec::new();
        state.service.pump(now_ns, true, |header, slice| frames.push([header, slice].concat()));
        self.send_frames(end, frames, &None);
        self.schedule_pump(end);
    }
}
