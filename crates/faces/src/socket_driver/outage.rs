//! Outage: the state of a datagram face's link, and when to try the link again. The header of [`super::outages`] has
//! the diagram.

use crate::CloseReason;

/// A probe without a reported failure for this long has arrived.
pub(super) const PROBE_WAIT_NS: u64 = 1_000_000_000;

/// Pause before the first probe; it doubles, up to the longest pause.
const PAUSE_FIRST_NS: u64 = 1_000_000_000;
const PAUSE_LAST_NS: u64 = 8_000_000_000;

/// Packets received so soon after a face went down may have waited in the socket. More of them wait there when only the
/// control side has noticed.
const STALE_NS: u64 = 100_000_000;
const STALE_AFTER_INTERFACE_NS: u64 = 1_000_000_000;

/// A timer that is not set.
pub(super) const NO_TIMER: u64 = u64::MAX;

pub(super) struct Outage {
    pub(super) reason: CloseReason,
    /// Packets received after this come over a working link.
    hears_from_ns: u64,
    interface_is_down: bool,
    /// A probe was sent, and no failure was reported since.
    is_probed: bool,
    pause_ns: u64,
    next_probe_ns: u64,
    /// When the timer comes due; an entry with another time is stale.
    pub(super) timer_ns: u64,
}

/// What to do when the timer of an outage comes due.
pub(super) enum Step {
    /// Nothing: another timer has replaced this one, or the interface's return will set it again.
    Nothing,
    /// The probe has arrived: the face is up.
    ComeUp,
    /// Check again at that time.
    WaitUntil(u64),
    /// Send a probe, and check again at that time.
    Probe(u64),
}

impl Outage {
    /// Probes begin after the first pause; the caller sets a timer for it.
    pub(super) fn new(reason: CloseReason, now_ns: u64) -> Self {
        Outage {
            reason,
            hears_from_ns: now_ns + STALE_NS,
            interface_is_down: false,
            is_probed: false,
            pause_ns: PAUSE_FIRST_NS,
            next_probe_ns: now_ns + PAUSE_FIRST_NS,
            timer_ns: NO_TIMER,
        }
    }

    /// When the first probe is due.
    pub(super) fn next_probe_ns(&self) -> u64 {
        self.next_probe_ns
    }

    /// The interface is down: probes wait for its return.
    pub(super) fn note_interface_down(&mut self, now_ns: u64) {
        self.hears_from_ns = now_ns + STALE_AFTER_INTERFACE_NS;
        (self.interface_is_down, self.is_probed) = (true, false);
    }

    /// The interface is up again: the caller sets the timer to now.
    pub(super) fn note_interface_up(&mut self, now_ns: u64) {
        self.interface_is_down = false;
        (self.pause_ns, self.next_probe_ns) = (PAUSE_FIRST_NS, now_ns);
    }

    /// A probe or packet was not delivered.
    pub(super) fn note_failure(&mut self) {
        self.is_probed = false;
    }

    /// Whether a packet received at this time came over a working link.
    pub(super) fn hears(&self, received_ns: u64) -> bool {
        received_ns > self.hears_from_ns
    }

    /// Handles the timer of `at_ns`. `is_blocked`: the face's packets wait for room in the kernel.
    pub(super) fn step(&mut self, at_ns: u64, now_ns: u64, is_blocked: bool) -> Step {
        if self.timer_ns != at_ns {
            return Step::Nothing;
        }
        self.timer_ns = NO_TIMER;
        if self.interface_is_down {
            Step::Nothing
        } else if self.is_probed && !is_blocked {
            Step::ComeUp
        } else if is_blocked {
            Step::WaitUntil(now_ns + PROBE_WAIT_NS)
        } else if now_ns < self.next_probe_ns {
            Step::WaitUntil(self.next_probe_ns)
        } else {
            self.is_probed = true;
            self.pause_ns = (self.pause_ns * 2).min(PAUSE_LAST_NS);
            self.next_probe_ns = now_ns + self.pause_ns;
            Step::Probe(now_ns + PROBE_WAIT_NS)
        }
    }
}
