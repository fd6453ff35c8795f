//! Congestion window: how many segments may be in flight?
//!
//! Slow start doubles the window each round trip. It ends at the first sign of congestion (a CongestionMark, a lost
//! segment, a Nack of that reason) or when round trips grow (HyStart, delay part only). Then CUBIC (RFC 9438: C = 0.4,
//! β = 0.7, with its Reno-friendly region) or AIMD (+1 per round trip, × 0.5) takes over. A window decreases at most
//! once per round trip: signs from segments sent before the last decrease do not count again (conservative window
//! adaptation, as in ndn-tools).

use std::time::Duration;
use tokio::time::Instant;

/// How the window changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// RFC 9438.
    Cubic,
    /// Plus one each round trip, halved on congestion.
    Aimd,
    /// Never changes.
    Fixed,
}

/// The constants by which a window changes. Those of the standards are the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowTuning {
    /// Slow start ends here at the latest, in segments.
    pub slow_start_threshold: f64,
    /// AIMD: segments by which the window grows each round trip.
    pub aimd_step: f64,
    /// AIMD: factor on the window when it decreases.
    pub aimd_beta: f64,
    /// AIMD: a window that decreases goes back to the initial one, and starts slowly.
    pub resets: bool,
    /// CUBIC: factor on the window when it decreases.
    pub cubic_beta: f64,
    /// CUBIC: a window that shrinks twice in a row makes room for others (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// CongestionMarks have no effect.
    pub ignores_marks: bool,
    /// Each sign of congestion decreases the window, not only the first one of a round trip.
    pub heeds_each_sign: bool,
}

impl Default for WindowTuning {
    fn default() -> Self {
        WindowTuning {
            slow_start_threshold: f64::INFINITY,
            aimd_step: 1.0,
            aimd_beta: 0.5,
            resets: false,
            cubic_beta: 0.7,
            fast_convergence: true,
            ignores_marks: false,
            heeds_each_sign: false,
        }
    }
}

const CUBIC_C: f64 = 0.4;
const WINDOW_MIN: f64 = 2.0;
/// Round trips must grow by an eighth, within these bounds, to end slow start.
const HYSTART_GROWTH_MIN: Duration = Duration::from_millis(4);
const HYSTART_GROWTH_MAX: Duration = Duration::from_millis(16);

/// The congestion window, in segments.
#[derive(Clone, Debug)]
pub struct CongestionWindow {
    control: CongestionControl,
    tuning: WindowTuning,
    initial: f64,
    window: f64,
    window_max: f64,
    slow_start_threshold: f64,
    /// CUBIC's W_max: the window before the last decrease.
    window_before_decrease: f64,
    /// When this stretch of congestion avoidance began.
    epoch: Option<Instant>,
    /// CUBIC's W_est: the window that Reno would have.
    reno_window: f64,
    rtt_min: Option<Duration>,
    decreases: u64,
}

impl CongestionWindow {
    /// A window of `initial` segments that never exceeds `max`.
    pub fn new(control: CongestionControl, initial: usize, max: usize) -> Self {
        CongestionWindow::tuned(control, WindowTuning::default(), initial, max)
    }

    /// As [`CongestionWindow::new`], with other constants.
    pub fn tuned(control: CongestionControl, tuning: WindowTuning, initial: usize, max: usize) -> Self {
        let window = initial.max(1) as f64;
        CongestionWindow {
            control,
            tuning,
            initial: window,
            window,
            window_max: (max as f64).max(window),
            slow_start_threshold: tuning.slow_start_threshold,
            window_before_decrease: window,
            epoch: None,
            reno_window: window,
            rtt_min: None,
            decreases: 0,
        }
    }

    /// Segments that may be in flight now; at least 1.
    pub fn segments(&self) -> usize {
        self.window as usize
    }

    /// The window with its fraction, and where slow start ends.
    pub fn exact(&self) -> (f64, f64) {
        (self.window, self.slow_start_threshold)
    }

    /// How often it decreased.
    pub fn decreases(&self) -> u64 {
        self.decreases
    }

    /// One segment arrived in time, unmarked.
    pub fn on_data(&mut self, now: Instant, rtt: Option<Duration>, srtt: Option<Duration>) {
        if self.control == CongestionControl::Fixed {
            return;
        }
        if self.window < self.slow_start_threshold {
            self.window += if self.control == CongestionControl::Aimd { self.tuning.aimd_step } else { 1.0 };
            if rtt.is_some_and(|rtt| self.delay_grew(rtt)) {
                self.slow_start_threshold = self.window;
            }
        } else if self.control == CongestionControl::Aimd {
            self.window += self.tuning.aimd_step / self.window;
        } else {
            self.grow_cubic(now, srtt.unwrap_or_default());
        }
        self.window = self.window.min(self.window_max).max(1.0);
    }

    /// A sign of congestion, the only one within this round trip.
    pub fn on_congestion(&mut self) {
        if self.control == CongestionControl::Fixed {
            return;
        }
        self.decreases += 1;
        let is_cubic = self.control == CongestionControl::Cubic;
        let beta = if is_cubic { self.tuning.cubic_beta } else { self.tuning.aimd_beta };
        let shrinks_again = self.window < self.window_before_decrease;
        self.window_before_decrease =
            if self.tuning.fast_convergence && shrinks_again { self.window * (1.0 + beta) / 2.0 } else { self.window };
        self.slow_start_threshold = (self.window * beta).max(WINDOW_MIN).min(self.window_max);
        self.window = if self.tuning.resets && !is_cubic { self.initial } else { self.slow_start_threshold };
        self.reno_window = self.window;
        self.epoch = None;
    }

    fn delay_grew(&mut self, rtt: Duration) -> bool {
        let rtt_min = self.rtt_min.map_or(rtt, |least| least.min(rtt));
        self.rtt_min = Some(rtt_min);
        rtt > rtt_min + (rtt_min / 8).clamp(HYSTART_GROWTH_MIN, HYSTART_GROWTH_MAX)
    }

    fn grow_cubic(&mut self, now: Instant, srtt: Duration) {
        let epoch = *self.epoch.get_or_insert(now);
        let time_s = (now.duration_since(epoch) + srtt).as_secs_f64();
        let k_s = ((self.window_before_decrease - self.slow_start_threshold).max(0.0) / CUBIC_C).cbrt();
        let cubic = CUBIC_C * (time_s - k_s).powi(3) + self.window_before_decrease;
        let beta = self.tuning.cubic_beta;
        self.reno_window += 3.0 * (1.0 - beta) / (1.0 + beta) / self.window;
        // At most half as much again per round trip (RFC 9438 §4.4).
        let target = cubic.max(self.reno_window).min(self.window * 1.5);
        if target > self.window {
            self.window += (target - self.window) / self.window;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_doubles_and_ends_with_congestion() {
        let now = Instant::now();
        let mut window = CongestionWindow::new(CongestionControl::Aimd, 2, 1000);
        for _ in 0..2 + 4 + 8 {
            window.on_data(now, None, None);
        }
        assert_eq!(window.segments(), 16);
        window.on_congestion();
        assert_eq!(window.segments(), 8);
        for _ in 0..8 {
            window.on_data(now, None, None);
        }
        assert_eq!(window.segments(), 8); // 8.95: a little under one per round trip
        window.on_data(now, None, None);
        assert_eq!(window.segments(), 9);
    }

    #[test]
    fn cubic_returns_to_its_old_window_and_passes_it() {
        let start = Instant::now();
        let rtt = Duration::from_millis(100);
        let mut window = CongestionWindow::new(CongestionControl::Cubic, 100, 10_000);
        window.on_congestion();
        assert_eq!(window.segments(), 70);
        // K = cbrt(30 / 0.4) = 4.2 s.
        let second = |seconds: u64, window: &mut CongestionWindow| {
            for step in 0..10 {
                let now = start + Duration::from_secs(seconds) + rtt * step;
                for _ in 0..window.segments() {
                    window.on_data(now, Some(rtt), Some(rtt));
                }
            }
        };
        (0..4).for_each(|s| second(s, &mut window));
        let plateau = window.segments();
        assert!((90..=101).contains(&plateau), "{plateau}");
        (4..12).for_each(|s| second(s, &mut window));
        assert!(window.segments() > 120, "{}", window.segments());
    }

    #[test]
    fn growing_delay_ends_slow_start() {
        let now = Instant::now();
        let mut window = CongestionWindow::new(CongestionControl::Cubic, 2, 1000);
        let ms = Duration::from_millis;
        window.on_data(now, Some(ms(10)), None);
        window.on_data(now, Some(ms(13)), None);
        assert_eq!(window.slow_start_threshold, f64::INFINITY);
        window.on_data(now, Some(ms(15)), None);
        assert_eq!(window.slow_start_threshold, 5.0);
    }

    #[test]
    fn the_constants_of_a_window_can_be_others() {
        let now = Instant::now();
        let tuning =
            WindowTuning { slow_start_threshold: 8.0, aimd_step: 3.0, resets: true, ..WindowTuning::default() };
        let mut window = CongestionWindow::tuned(CongestionControl::Aimd, tuning, 2, 1000);
        (0..2).for_each(|_| window.on_data(now, None, None));
        assert_eq!(window.exact(), (8.0, 8.0), "slow start by the step, up to the threshold");
        (0..8).for_each(|_| window.on_data(now, None, None));
        assert_eq!(window.segments(), 10, "a little under three segments more in a round trip");
        window.on_congestion();
        assert_eq!(window.segments(), 2, "the initial one");
        let tuning = WindowTuning { cubic_beta: 0.9, aimd_step: f64::NAN, ..WindowTuning::default() };
        let mut cubic = CongestionWindow::tuned(CongestionControl::Cubic, tuning, 100, 1000);
        cubic.on_congestion();
        assert_eq!(cubic.segments(), 90);
        let mut aimd = CongestionWindow::tuned(CongestionControl::Aimd, tuning, 2, 5);
        aimd.on_data(now, None, None);
        assert!((1..=5).contains(&aimd.segments()), "nonsense stays within the bounds");
    }

    #[test]
    fn bounds_and_fixed() {
        let now = Instant::now();
        let mut window = CongestionWindow::new(CongestionControl::Cubic, 2, 5);
        (0..50).for_each(|_| window.on_data(now, None, None));
        assert_eq!(window.segments(), 5);
        (0..50).for_each(|_| window.on_congestion());
        assert_eq!(window.segments(), 2);
        let mut fixed = CongestionWindow::new(CongestionControl::Fixed, 7, 5);
        fixed.on_data(now, None, None);
        fixed.on_congestion();
        assert_eq!((fixed.segments(), fixed.decreases()), (7, 0));
    }
}
