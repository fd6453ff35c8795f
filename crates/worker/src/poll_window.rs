//! How long should an idle worker look for packets before it sleeps?
//!
//! Looking costs processor time; so do falling asleep and waking up, and they take longer. Whoever knew when the next
//! packet comes would look if it comes within the price of a sleep, and sleep at once otherwise. This module guesses.
//!
//! Source: the kernel's halt polling (`Documentation/virt/kvm/halt-polling.rst`). As there, a window grows when a
//! packet comes soon, and shrinks to nothing when none does. It deviates in three ways:
//!
//! * There are two windows ([`Expects`]). With a paced consumer, Data comes soon after its Interest, but the next
//!   Interest does not come soon after the Data. One window would be wrong half of the time.
//! * Credit pays for looking. A packet that was found gives what the sleep would have cost, less what the look cost. A
//!   look in vain takes what it cost. A sleep that was short gives an eighth of its price, so that a first look is
//!   possible. Without credit, the worker sleeps. So it never spends more than 9/8 of the processor time of a worker
//!   that always sleeps (a property test below shows this).
//! * The price of a sleep is measured. In a virtual machine, it is several times what it is elsewhere.
//!
//! If another thread took the processor during a look, looks cease for a while ([`PollWindow::close`]).
//!
//! Pure: it has no clock, and times are arguments, in nanoseconds. Cost: a few additions for each sleep or look.

/// The longest window. Measured with one Interest in flight over Unix sockets and UDP: 100 µs gains nothing more.
pub(crate) const WINDOW_NS_MAX: u64 = 50_000;

/// The shortest open window: a few looks.
const WINDOW_NS_MIN: u64 = 4_000;

/// The price of a sleep before one was measured: that of a processor without a hypervisor.
const PRICE_NS_FIRST: u64 = 2_000;

/// The highest price. Above, something else has happened during that sleep.
const PRICE_NS_MAX: u64 = WINDOW_NS_MAX;

/// A new measurement of the price counts as one in this many.
const PRICE_WEIGHT: u64 = 8;

/// A short sleep gives this part of its price as credit.
const CREDIT_PART_OF_SLEEP: u64 = 8;

/// The most credit. A worker whose traffic changes loses no more than this.
const CREDIT_NS_MAX: u64 = 4 * WINDOW_NS_MAX;

/// How long looks cease when another thread wanted the processor. The time doubles if that comes again soon, up to a
/// second.
const CLOSED_NS_MIN: u64 = 10_000_000;
const CLOSED_NS_MAX: u64 = 1_000_000_000;

/// Soon is within this many times the last closure.
const CLOSURES_REMEMBERED: u64 = 4;

/// What the worker waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Expects {
    /// Interests are pending.
    Data,
    /// None are.
    #[default]
    Interest,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct PollWindow {
    /// By [`Expects`].
    windows_ns: [u64; 2],
    credit_ns: u64,
    price_ns: u64,
    /// Until then, there is no credit, so there are no looks.
    closed_until_ns: u64,
    /// For how long they ceased the last time.
    closed_ns: u64,
}

impl Default for PollWindow {
    fn default() -> Self {
        PollWindow { windows_ns: [0; 2], credit_ns: 0, price_ns: PRICE_NS_FIRST, closed_until_ns: 0, closed_ns: 0 }
    }
}

impl PollWindow {
    /// How long the worker may look now; 0: it sleeps at once. It reports the result by [`PollWindow::found`] or
    /// [`PollWindow::in_vain`].
    pub(crate) fn window_ns(&self, expects: Expects) -> u64 {
        let window_ns = self.windows_ns[expects as usize];
        if window_ns > self.credit_ns { 0 } else { window_ns }
    }

    /// The longest window now, whatever the worker waits for. For people.
    pub(crate) fn longest_ns(&self) -> u64 {
        self.window_ns(Expects::Data).max(self.window_ns(Expects::Interest))
    }

    /// A look of `looked_ns` found something.
    pub(crate) fn found(&mut self, expects: Expects, looked_ns: u64) {
        self.credit_ns = (self.credit_ns + self.price_ns).saturating_sub(looked_ns).min(CREDIT_NS_MAX);
        let wanted_ns = wanted_ns(looked_ns);
        let window_ns = &mut self.windows_ns[expects as usize];
        *window_ns = wanted_ns.max(*window_ns - window_ns.saturating_sub(wanted_ns) / 8);
    }

    /// A look of `looked_ns` found nothing. The sleep that follows shows what the window was worth.
    pub(crate) fn in_vain(&mut self, looked_ns: u64) {
        self.credit_ns = self.credit_ns.saturating_sub(looked_ns);
    }

    /// Packets ended a sleep, `quiet_ns` after the last ones.
    pub(crate) fn woken(&mut self, now_ns: u64, expects: Expects, quiet_ns: u64) {
        // The packet came before the worker was awake, by about the time that waking takes.
        let quiet_ns = quiet_ns.saturating_sub(self.price_ns);
        let window_ns = &mut self.windows_ns[expects as usize];
        if quiet_ns > WINDOW_NS_MAX {
            *window_ns = 0;
            return;
        }
        *window_ns = (*window_ns).max(wanted_ns(quiet_ns));
        if now_ns >= self.closed_until_ns {
            self.credit_ns = (self.credit_ns + self.price_ns / CREDIT_PART_OF_SLEEP).min(CREDIT_NS_MAX);
        }
    }

    /// A sleep that was short enough for a window took `sleep_ns` of processor time. Its price is half as much again,
    /// because the turn that follows takes longer: caches are cold, and peers sleep too, so that each send wakes one.
    /// Measured with one Interest in flight over Unix sockets: sleeps of 12 µs, and turns of 12 µs in place of 6.
    pub(crate) fn price(&mut self, sleep_ns: u64) {
        let price_ns = sleep_ns.saturating_add(sleep_ns / 2).min(PRICE_NS_MAX);
        self.price_ns = (self.price_ns * (PRICE_WEIGHT - 1) + price_ns) / PRICE_WEIGHT;
    }

    /// Another thread took the processor during a look.
    pub(crate) fn close(&mut self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.closed_until_ns);
        let was_long_ago = since_ns > CLOSURES_REMEMBERED * self.closed_ns;
        self.closed_ns =
            if was_long_ago { CLOSED_NS_MIN } else { (2 * self.closed_ns).clamp(CLOSED_NS_MIN, CLOSED_NS_MAX) };
        self.closed_until_ns = now_ns.saturating_add(self.closed_ns);
        self.credit_ns = 0;
    }
}

/// The window for packets that come after `quiet_ns`.
fn wanted_ns(quiet_ns: u64) -> u64 {
    quiet_ns.saturating_mul(2).clamp(WINDOW_NS_MIN, WINDOW_NS_MAX)
}

#[cfg(test)]
mod tests;
