//! One calibrated clock for every experiment. It refuses intervals that it cannot resolve.
//!
//! Question answered: how long did this take, in nanoseconds and in TSC cycles, and does the answer exceed the noise of
//! the clock itself?
//!
//! Calibration compares the TSC with the monotonic clock over [`CALIBRATION_MS`]. Cost: a reading calls
//! `clock_gettime` once. Limits: an interval below [`RESOLUTION_FACTOR`] times the clock's smallest observed step is
//! an error, never a number.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::tsc;

/// Length of the calibration against the monotonic clock.
pub const CALIBRATION_MS: u64 = 20;
/// An interval shorter than this many clock steps is refused.
pub const RESOLUTION_FACTOR: u64 = 20;
/// How old another process's CPU time may be: the kernel updates the account of a running task at its timer tick (4 ms
/// at 250 Hz) or when the task sleeps.
pub const CPU_ACCOUNT_STEP_NS: u64 = 4_000_000;
/// A CPU time shorter than this many account steps is refused.
pub const CPU_ACCOUNT_FACTOR: u64 = 10;

/// A measured interval is too short for the clock that measured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BelowResolution {
    /// What was measured.
    pub interval_ns: u64,
    /// The shortest interval that would have been accepted.
    pub least_ns: u64,
}

impl std::fmt::Display for BelowResolution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ns measured, but this clock resolves no less than {} ns", self.interval_ns, self.least_ns)
    }
}

impl std::error::Error for BelowResolution {}

/// The monotonic clock with its own resolution and the TSC's rate.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    step_ns: u64,
    tsc_hz: Option<f64>,
}

impl Clock {
    /// Measures the clock's step and the TSC's rate; takes about [`CALIBRATION_MS`].
    pub fn calibrate() -> Self {
        let origin = Instant::now();
        let step_ns = smallest_step_ns(origin);
        Self { origin, step_ns, tsc_hz: tsc_rate_hz() }
    }

    /// Nanoseconds since this clock was calibrated.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Smallest step between two different readings, in nanoseconds.
    pub const fn step_ns(&self) -> u64 {
        self.step_ns
    }

    /// Ticks of the TSC per second, `None` where it is not available.
    pub const fn tsc_hz(&self) -> Option<f64> {
        self.tsc_hz
    }

    /// TSC cycles in `interval_ns`, `None` where the counter is not available.
    pub fn cycles(&self, interval_ns: u64) -> Option<f64> {
        self.tsc_hz.map(|hz| interval_ns as f64 * hz / 1e9)
    }

    /// TSC cycles so far, or nanoseconds on a processor without the counter; [`Clock::tick_unit`] says which.
    #[inline]
    pub fn ticks(&self) -> u64 {
        tsc::read().unwrap_or_else(|| self.now_ns())
    }

    /// The unit of [`Clock::ticks`].
    pub const fn tick_unit(&self) -> &'static str {
        if self.tsc_hz.is_some() { "TSC cycles" } else { "ns" }
    }

    /// Nanoseconds per item in the median slice of `slice_items` items. So a slice in which the thread waited for a
    /// processor has no weight.
    ///
    /// # Errors
    /// [`BelowResolution`] if the clock cannot resolve that slice.
    pub fn median_ns(&self, mut slices_ns: Vec<u64>, slice_items: usize) -> Result<f64, BelowResolution> {
        slices_ns.sort_unstable();
        let median_ns = slices_ns.get(slices_ns.len() / 2).copied().unwrap_or(0);
        self.resolve(median_ns).map(|ns| ns as f64 / slice_items as f64)
    }

    /// Returns `interval_ns` if this clock can resolve it.
    ///
    /// # Errors
    /// [`BelowResolution`] if the interval is shorter than [`RESOLUTION_FACTOR`] steps.
    pub const fn resolve(&self, interval_ns: u64) -> Result<u64, BelowResolution> {
        accept(interval_ns, self.step_ns * RESOLUTION_FACTOR)
    }
}

/// Processor time of the calling thread. Time in which another thread had the processor does not count.
pub fn thread_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the CPU time of another process if the kernel's account can resolve it.
///
/// # Errors
/// [`BelowResolution`] under [`CPU_ACCOUNT_FACTOR`] times [`CPU_ACCOUNT_STEP_NS`].
pub const fn resolve_cpu_account(cpu_ns: u64) -> Result<u64, BelowResolution> {
    accept(cpu_ns, CPU_ACCOUNT_STEP_NS * CPU_ACCOUNT_FACTOR)
}

const fn accept(interval_ns: u64, least_ns: u64) -> Result<u64, BelowResolution> {
    if interval_ns < least_ns { Err(BelowResolution { interval_ns, least_ns }) } else { Ok(interval_ns) }
}

fn smallest_step_ns(origin: Instant) -> u64 {
    let mut smallest = u64::MAX;
    let mut last = origin.elapsed().as_nanos() as u64;
    for _ in 0..2_000 {
        let now = origin.elapsed().as_nanos() as u64;
        if now > last {
            smallest = smallest.min(now - last);
        }
        last = now;
    }
    // A clock that did not advance in 2,000 readings is coarser than any interval measured here.
    if smallest == u64::MAX { 10_000_000 } else { smallest }
}

fn tsc_rate_hz() -> Option<f64> {
    let (start, start_tsc) = (Instant::now(), tsc::read()?);
    std::thread::sleep(Duration::from_millis(CALIBRATION_MS));
    let (elapsed, end_tsc) = (start.elapsed(), tsc::read()?);
    let rate = end_tsc.checked_sub(start_tsc)? as f64 / elapsed.as_secs_f64();
    (rate > 1e6).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_below_the_resolution_are_refused() {
        let clock = Clock { origin: Instant::now(), step_ns: 30, tsc_hz: Some(2.6e9) };
        assert_eq!(clock.resolve(599), Err(BelowResolution { interval_ns: 599, least_ns: 600 }));
        assert_eq!(clock.resolve(600), Ok(600));
        assert!(resolve_cpu_account(39_999_999).is_err());
        assert_eq!(resolve_cpu_account(40_000_000), Ok(40_000_000));
    }

    #[test]
    fn calibration_agrees_with_a_second_one() {
        let (first, second) = (Clock::calibrate(), Clock::calibrate());
        assert!(first.step_ns() > 0);
        if let (Some(a), Some(b)) = (first.tsc_hz(), second.tsc_hz()) {
            assert!((a / b - 1.0).abs() < 0.05, "{a} Hz and then {b} Hz");
            let cycles = first.cycles(1_000).expect("the rate is known");
            assert!((cycles - a / 1e6).abs() < 1.0);
        }
    }
}
