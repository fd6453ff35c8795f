//! Is the processor itself slower for a while?
//!
//! A host of virtual machines, or heat, slows a processor down by up to two times, for seconds. Then all code takes
//! longer, also a loop without memory accesses. Such a loop runs between the parts of a repetition. If its mean in a
//! repetition exceeds that of the fastest repetition by more than [`SLOWER_MAX`], the repetition has measured the host,
//! and is repeated. That is decided before anybody looks at its result, so that no result can be chosen. (Without this,
//! one of nine repetitions was 1.5 times as long in all parts on an EPYC host, and every headline was refused. N.B.:
//! the median of the loop misses a burst that is shorter than half a repetition.)
//!
//! Limits: there are at most as many repeats as repetitions; after these, a slow repetition counts, too. Slower memory
//! is not detected.

use std::hint::black_box;

use crate::tsc;

/// How much longer the loop may take, as a part of its time in the fastest repetition.
const SLOWER_MAX: f64 = 0.05;
/// Steps of the loop: each waits for the one before, so it takes some 20,000 cycles.
const STEPS: u32 = 4096;

/// The loop's times in one repetition, in cycles of the time stamp counter.
#[derive(Default)]
pub struct Spins(Vec<f64>);

impl Spins {
    /// Runs the loop once.
    pub fn spin(&mut self) {
        let before = tsc::read_in_order().unwrap_or(0);
        let mut state = black_box(1_u64);
        for _ in 0..STEPS {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(7);
        }
        black_box(state);
        self.0.push(tsc::read_in_order().unwrap_or(0).saturating_sub(before) as f64);
    }

    /// The loop's mean time, in cycles of the time stamp counter; NaN if it never ran.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }
}

/// Decides which repetitions count.
pub struct Disturbances {
    fastest: f64,
    repeats_left: usize,
    repeated: usize,
}

impl Disturbances {
    /// At most `repeats_max` repetitions are repeated.
    pub const fn new(repeats_max: usize) -> Self {
        Self { fastest: f64::INFINITY, repeats_left: repeats_max, repeated: 0 }
    }

    /// True if this repetition counts.
    pub fn accepts(&mut self, spins: &Spins) -> bool {
        if spins.0.is_empty() {
            return true;
        }
        let took = spins.mean();
        self.fastest = self.fastest.min(took);
        if took <= self.fastest * (1.0 + SLOWER_MAX) || self.repeats_left == 0 {
            return true;
        }
        (self.repeats_left, self.repeated) = (self.repeats_left - 1, self.repeated + 1);
        false
    }

    /// The note for the record, if a repetition was repeated.
    pub fn note(&self) -> Option<String> {
        (self.repeated > 0).then(|| {
            format!(
                "{} repetitions were repeated: a loop without memory accesses took over {:.0} % longer in them than in the \
                 fastest.",
                self.repeated,
                SLOWER_MAX * 100.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(cycles: f64) -> Spins {
        Spins(vec![cycles / 2.0, cycles * 2.0, cycles / 2.0])
    }

    #[test]
    fn slow_repetitions_are_repeated_until_no_more_may_be() {
        let mut disturbances = Disturbances::new(2);
        assert!(disturbances.accepts(&took(100.0)) && disturbances.accepts(&took(104.0)));
        assert_eq!([(); 3].map(|()| disturbances.accepts(&took(150.0))), [false, false, true]);
        assert!(disturbances.note().unwrap().starts_with("2 repetitions were repeated"));
    }

    #[test]
    fn the_loop_takes_time() {
        let mut spins = Spins::default();
        spins.spin();
        assert!(tsc::read().is_none() || spins.0[0] > f64::from(STEPS), "{:?}", spins.0);
    }
}
