//! What one worker knows and counts of looking for packets before it sleeps.
//!
//! For how long it looks is a setting, or [`PollWindow`] decides (`"auto"`). `worker/idle.rs` does the looking and the
//! sleeping, with the clock and the system calls.

use crate::{
    poll_window::{Expects, PollWindow, WINDOW_NS_MAX},
    processors::Switches,
    shared::PollCounters,
};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// How long a worker looks for packets before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// As long as it pays.
    Adaptive,
    /// Always for this time.
    Fixed(Duration),
}

/// One sleep in this many has its price measured, because reading the clock twice costs about a microsecond.
const SLEEPS_PER_MEASUREMENT: u64 = 32;

/// Every one of the first sleeps is measured.
const FIRST_MEASUREMENTS: u64 = 8;

/// Another thread that ran for this long wants the processor for itself. A thread that runs for a shorter time gets it
/// as soon as it wakes, and loses nothing.
const TAKEN_NS: u64 = 100_000;

/// A look that has lasted this long lets other threads go first.
const YIELD_AFTER_NS: u64 = 5_000;

/// A look in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    began_ns: u64,
    last_ns: u64,
    until_ns: u64,
    has_yielded: bool,
}

/// What to do after a single look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    LookAgain,
    /// Let other threads go first, then look again.
    Yield,
    /// There is something.
    Found,
    /// There is nothing, and the time is over.
    Sleep,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct BusyPolling {
    policy: Policy,
    window: PollWindow,
    switches: Switches,
    /// Since then, there was no packet.
    quiet_since_ns: u64,
    /// What the worker waits for since then, and whether it has slept since then.
    expects: Expects,
    has_slept: bool,
    /// The price of that sleep, if it was measured.
    price_ns: Option<u64>,
    counters: PollCounters,
}

impl BusyPolling {
    pub(crate) fn new(policy: Policy) -> Self {
        BusyPolling {
            policy,
            window: PollWindow::default(),
            switches: Switches::default(),
            quiet_since_ns: 0,
            expects: Expects::default(),
            has_slept: false,
            price_ns: None,
            counters: PollCounters::default(),
        }
    }

    /// What it counts, for others.
    pub(crate) fn counters(&self) -> PollCounters {
        let window_ns = match self.policy {
            Policy::Adaptive => self.window.longest_ns(),
            Policy::Fixed(span) => span.as_nanos() as u64,
        };
        PollCounters { window_ns, ..self.counters }
    }

    /// A turn that began at `now_ns` had packets.
    pub(crate) fn note_packets(&mut self, now_ns: u64) {
        if !std::mem::take(&mut self.has_slept) || self.policy != Policy::Adaptive {
            return;
        }
        let quiet_ns = now_ns.saturating_sub(self.quiet_since_ns);
        // A longer sleep costs more: the caches are cold then. No look would have replaced it.
        if let Some(price_ns) = self.price_ns.take().filter(|_| quiet_ns <= 2 * WINDOW_NS_MAX) {
            self.window.price(price_ns);
        }
        self.window.woken(now_ns, self.expects, quiet_ns);
    }

    /// The turn with packets is over.
    pub(crate) fn note_quiet(&mut self, now_ns: u64, expects: Expects) {
        (self.quiet_since_ns, self.expects) = (now_ns, expects);
    }

    /// Begins a look, unless it is time to sleep. It ends before `deadline_ns`.
    pub(crate) fn begin(&self, now_ns: u64, deadline_ns: Option<u64>) -> Option<Look> {
        let window_ns = match self.policy {
            Policy::Adaptive if self.has_slept => 0,
            Policy::Adaptive => self.window.window_ns(self.expects),
            Policy::Fixed(span) => span.as_nanos() as u64,
        };
        let end_ns = self.quiet_since_ns.saturating_add(window_ns);
        let until_ns = deadline_ns.map_or(end_ns, |deadline_ns| deadline_ns.min(end_ns));
        (now_ns < until_ns).then_some(Look { began_ns: now_ns, last_ns: now_ns, until_ns, has_yielded: false })
    }

    /// What follows from a single look that ended at `now_ns`.
    pub(crate) fn note_look(&mut self, look: &mut Look, now_ns: u64, has_found: bool) -> Next {
        let since_last_ns = now_ns - std::mem::replace(&mut look.last_ns, now_ns);
        let is_over = has_found || now_ns >= look.until_ns;
        if self.policy == Policy::Adaptive && since_last_ns > TAKEN_NS && self.switches.are_new() {
            self.end(look, has_found);
            self.window.close(now_ns);
            return if has_found { Next::Found } else { Next::Sleep };
        }
        if is_over {
            self.end(look, has_found);
            return if has_found { Next::Found } else { Next::Sleep };
        }
        let is_time = self.policy == Policy::Adaptive && now_ns - look.began_ns > YIELD_AFTER_NS;
        if is_time && !std::mem::replace(&mut look.has_yielded, true) { Next::Yield } else { Next::LookAgain }
    }

    fn end(&mut self, look: &Look, has_found: bool) {
        let looked_ns = look.last_ns - look.began_ns;
        self.counters.polls += 1;
        self.counters.polled_ns += looked_ns;
        self.counters.polls_found += u64::from(has_found);
        match has_found {
            true => self.window.found(self.expects, looked_ns),
            false => self.window.in_vain(looked_ns),
        }
    }

    /// Sleeps by `sleep`.
    pub(crate) fn sleep<R>(&mut self, sleep: impl FnOnce() -> R) -> R {
        self.counters.sleeps += 1;
        self.has_slept = true;
        let sleeps = self.counters.sleeps;
        let is_measured = sleeps <= FIRST_MEASUREMENTS || sleeps.is_multiple_of(SLEEPS_PER_MEASUREMENT);
        if self.policy != Policy::Adaptive || !is_measured {
            return sleep();
        }
        let before_ns = processor_time_ns();
        let result = sleep();
        self.price_ns = Some(processor_time_ns().saturating_sub(before_ns));
        result
    }
}

/// Processor time of the calling thread.
fn processor_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker that has found its packets 5 µs after the last ones, again and again.
    fn adaptive() -> (BusyPolling, u64) {
        let mut polling = BusyPolling::new(Policy::Adaptive);
        let mut now_ns = 1_000_000;
        for _ in 0..200 {
            polling.note_quiet(now_ns, Expects::Data);
            match polling.begin(now_ns, None) {
                Some(mut look) => assert_eq!(polling.note_look(&mut look, now_ns + 5_000, true), Next::Found),
                None => polling.sleep(|| ()),
            }
            // Short, so that the real price of that sleep pays for the looks.
            polling.window.price(15_000);
            now_ns += 5_000;
            polling.note_packets(now_ns);
        }
        polling.note_quiet(now_ns, Expects::Data);
        (polling, now_ns)
    }

    #[test]
    fn a_fixed_time_begins_with_the_end_of_the_last_packets() {
        let mut polling = BusyPolling::new(Policy::Fixed(Duration::from_micros(100)));
        polling.note_quiet(1_000, Expects::Interest);
        let mut look = polling.begin(2_000, None).expect("the time is not over");
        assert_eq!(polling.note_look(&mut look, 50_000, false), Next::LookAgain, "and it does not give way");
        assert_eq!(polling.note_look(&mut look, 101_000, false), Next::Sleep);
        assert!(polling.begin(101_000, None).is_none());
        let counters = polling.counters();
        assert_eq!((counters.polls, counters.polls_found, counters.polled_ns), (1, 0, 99_000));
        assert_eq!(counters.window_ns, 100_000);
        polling.sleep(|| ());
        polling.note_packets(200_000);
        polling.note_quiet(210_000, Expects::Interest);
        let mut look = polling.begin(210_000, Some(215_000)).expect("a timer is due later");
        assert_eq!(polling.note_look(&mut look, 215_000, false), Next::Sleep, "the timer is due");
        let never = BusyPolling::new(Policy::Fixed(Duration::ZERO));
        assert!(never.begin(0, None).is_none());
    }

    #[test]
    fn a_worker_that_finds_packets_looks_and_counts() {
        let (mut polling, now_ns) = adaptive();
        let before = polling.counters();
        assert!(before.polls_found > 100 && before.polls == before.polls_found, "{before:?}");
        assert_eq!(before.polled_ns, 5_000 * before.polls);
        assert!(before.window_ns >= 5_000);
        let mut look = polling.begin(now_ns, None).expect("it pays");
        assert_eq!(polling.note_look(&mut look, now_ns + 1_000, false), Next::LookAgain);
        assert_eq!(polling.note_look(&mut look, now_ns + 6_000, false), Next::Yield);
        assert_eq!(polling.note_look(&mut look, now_ns + 7_000, false), Next::LookAgain, "once is enough");
        assert_eq!(polling.note_look(&mut look, now_ns + 60_000, false), Next::Sleep);
        polling.sleep(|| ());
        assert!(polling.begin(now_ns + 61_000, None).is_none(), "no packet has come since");
        let after = polling.counters();
        assert_eq!(
            (after.polls, after.polls_found, after.sleeps),
            (before.polls + 1, before.polls_found, before.sleeps + 1)
        );
    }

    #[test]
    fn an_adaptive_worker_begins_with_sleep() {
        let mut polling = BusyPolling::new(Policy::Adaptive);
        polling.note_quiet(1_000, Expects::Data);
        assert!(polling.begin(1_000, None).is_none());
    }
}
