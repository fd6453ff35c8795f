//! Log lines about drops: from time to time, control logs which counters of `status/drops` have grown.
//!
//! Nothing happens for a packet. While there is traffic, control reads the counters every [`LOOK_NS`]. When a look
//! finds no traffic since the look before, control stops looking, and workers notify it when there is traffic again
//! ([`Shared::publish`]). So an idle router sleeps.
//!
//! Each reason has at most one line in [`PAUSE_NS`], with the count since its last line.
//!
//! Memory: an entry for each reason that `status/drops` shows. Time and counters are arguments.

use namewire_node_model::counters::is_event;
use namewire_packet::nfd::DropCounter;
use namewire_worker::Shared;
use std::collections::HashMap;

/// Between two looks at the counters.
const LOOK_NS: u64 = 2_000_000_000;

/// Between two lines about one reason.
const PAUSE_NS: u64 = 10_000_000_000;

/// Counters of what is counted elsewhere too, or has lines of its own (closed faces, denials, the state file).
const TOLD_ELSEWHERE: [&str; 5] = ["cut.", "management-cut.", "face-closed.", "denied.", "state."];

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DropLine {
    pub(crate) reason: String,
    /// Since the line before.
    pub(crate) count: u64,
    /// Since the start.
    pub(crate) total: u64,
}

/// The latest line about a reason.
struct Told {
    at_ns: u64,
    total: u64,
}

/// See the module documentation.
#[derive(Default)]
pub(crate) struct DropWatch {
    told: HashMap<String, Told>,
    next_look_ns: Option<u64>,
    /// Time that workers have spent with packets, at the latest look.
    busy_ns: u64,
    /// At the latest look, a reason had grown whose pause was not over.
    has_untold: bool,
}

impl DropWatch {
    /// Something has happened: counters may grow.
    pub(super) fn note_activity(&mut self, now_ns: u64) {
        self.next_look_ns.get_or_insert(now_ns + LOOK_NS);
    }

    /// When to look at the counters.
    pub(super) const fn next_look_ns(&self) -> Option<u64> {
        self.next_look_ns
    }

    /// Looks at the counters, and plans the next look.
    pub(super) fn look(&mut self, now_ns: u64, counters: Vec<DropCounter>, shared: &Shared) -> Vec<DropLine> {
        // Asked before the look, or traffic in between would never be seen.
        shared.ask_for_traffic();
        let busy_ns = shared.busy_ns();
        let lines = self.lines(now_ns, counters);
        let is_quiet = busy_ns == self.busy_ns && !self.has_untold;
        self.busy_ns = busy_ns;
        self.next_look_ns = (!is_quiet).then_some(now_ns + LOOK_NS);
        lines
    }

    fn lines(&mut self, now_ns: u64, counters: Vec<DropCounter>) -> Vec<DropLine> {
        // Counters that name a face come and go.
        let is_shown = |reason: &String| counters.iter().any(|counter| counter.reason == *reason);
        if self.told.len() > counters.len() {
            self.told.retain(|reason, _| is_shown(reason));
        }
        self.has_untold = false;
        let mut lines = Vec::new();
        for DropCounter { reason, count: total } in counters {
            if is_event(&reason) || TOLD_ELSEWHERE.iter().any(|prefix| reason.starts_with(prefix)) {
                continue;
            }
            let told = self.told.get(&reason);
            let count = total.saturating_sub(told.map_or(0, |told| told.total));
            if count == 0 {
                continue;
            }
            if told.is_some_and(|told| now_ns < told.at_ns + PAUSE_NS) {
                self.has_untold = true;
                continue;
            }
            self.told.insert(reason.clone(), Told { at_ns: now_ns, total });
            lines.push(DropLine { reason, count, total });
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn counters(counts: &[(&str, u64)]) -> Vec<DropCounter> {
        let counter = |(reason, count): &(&str, u64)| DropCounter { reason: (*reason).to_owned(), count: *count };
        counts.iter().map(counter).collect()
    }

    fn lines(watch: &mut DropWatch, second: u64, counts: &[(&str, u64)]) -> Vec<(String, u64, u64)> {
        let lines = watch.lines(second * SECOND_NS, counters(counts));
        lines.into_iter().map(|line| (line.reason, line.count, line.total)).collect()
    }

    #[test]
    fn a_reason_is_told_at_once_and_then_every_ten_seconds() {
        let mut watch = DropWatch::default();
        let of = |reason: &str, count, total| (reason.to_owned(), count, total);
        assert_eq!(lines(&mut watch, 0, &[]), []);
        assert_eq!(lines(&mut watch, 2, &[("engine.no-route", 5)]), [of("engine.no-route", 5, 5)]);
        assert_eq!(lines(&mut watch, 4, &[("engine.no-route", 5)]), []);
        assert!(!watch.has_untold);
        let grown = [("engine.no-route", 9), ("limit.pit", 1)];
        assert_eq!(lines(&mut watch, 6, &grown), [of("limit.pit", 1, 1)]);
        assert!(watch.has_untold, "the four others are told later, even if there are no more");
        assert_eq!(lines(&mut watch, 11, &grown), []);
        assert_eq!(lines(&mut watch, 12, &grown), [of("engine.no-route", 4, 9)]);
        assert!(!watch.has_untold);
        assert_eq!(lines(&mut watch, 14, &[("face-closed.idle", 3), ("core.by-fingerprint", 7)]), []);
        assert_eq!(lines(&mut watch, 16, &[("path-mtu.raised", 3), ("limit.cs-evicted", 7), ("cut.face-9", 7)]), []);
    }

    #[test]
    fn reasons_that_are_no_longer_shown_are_forgotten() {
        let mut watch = DropWatch::default();
        for face in 0..100 {
            lines(&mut watch, face, &[(&format!("websocket.of-{face}"), 1), ("engine.no-route", 1)]);
        }
        assert!(watch.told.len() <= 3, "{}", watch.told.len());
    }
}
