//! Retry clock: when to try again. The pauses double from 1 s to 5 min, and only [`RetryClock::restart`] makes them
//! short again. So a neighbour that closes each new connection at once does not cause a stream of connections.

use std::time::{Duration, Instant};

/// First pause before something is tried again; it doubles up to the last.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
pub(super) const PAUSE_LAST: Duration = Duration::from_secs(300);

/// The clock of one kind of thing to be tried again.
#[derive(Debug)]
pub(super) struct RetryClock {
    pause: Duration,
    due: Option<Instant>,
}

impl RetryClock {
    pub(super) fn new() -> Self {
        RetryClock { pause: PAUSE_FIRST, due: None }
    }

    /// With the longest pause from the start.
    pub(super) fn slow() -> Self {
        RetryClock { pause: PAUSE_LAST, due: None }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The next pause is the first again.
    pub(super) fn restart(&mut self) {
        self.pause = PAUSE_FIRST;
    }

    /// Plans a try after the pause, if there is something to try. What is planned already never moves to a later time.
    pub(super) fn plan(&mut self, is_needed: bool, now: Instant) {
        let next = now + self.pause;
        self.due = is_needed.then(|| self.due.map_or(next, |due| due.min(next)));
    }

    /// True if it is time to try. The next pause is longer then, and begins with the next [`RetryClock::plan`].
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.due = None;
            self.pause = (self.pause * 2).min(PAUSE_LAST);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_last() {
        let mut clock = RetryClock::new();
        let mut now = Instant::now();
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            clock.plan(true, now);
            let due = now + Duration::from_secs(seconds);
            assert_eq!(clock.due(), Some(due));
            assert!(!clock.take(due - Duration::from_millis(1)));
            assert!(clock.take(due));
            assert!(!clock.take(due), "once");
            now = due;
        }
    }

    /// The story: a face that stayed down had made the pause long. When another one closed, the next try moved to an
    /// even later time.
    #[test]
    fn a_planned_try_never_moves_to_a_later_time() {
        let mut clock = RetryClock::new();
        let start = Instant::now();
        clock.plan(true, start);
        clock.plan(true, start + Duration::from_millis(900));
        assert_eq!(clock.due(), Some(start + PAUSE_FIRST));
        // What is lost while a long pause passes is tried after a short one.
        let mut clock = RetryClock::slow();
        clock.plan(true, start);
        clock.restart();
        clock.plan(true, start + Duration::from_secs(10));
        assert_eq!(clock.due(), Some(start + Duration::from_secs(11)));
        clock.plan(false, start);
        assert_eq!(clock.due(), None, "there is nothing to try any longer");
    }
}
