//! Median, interval and spread of repeated measurements.
//!
//! Question answered: what is the typical value, how sure is it, and how far do the repetitions spread? The typical
//! value is the median, because one disturbed repetition must not move the result. Spread = (largest − smallest) /
//! median, which hides nothing at five repetitions, and grows with every further one.
//!
//! The 95 % interval of the median is that of the sign test: two of the samples, chosen by rank so that the median of
//! what is measured lies between them in at least 95 % of all experiments. It assumes nothing of the distribution, only
//! that the samples do not depend on each other; pairs that alternate see to that. A bootstrap of a median draws from
//! the same ranks, but needs random numbers and is wrong for few samples. Cost: a sort.

use serde::{Deserialize, Serialize};

/// The summary of the repetitions of one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Middle value (mean of the two middle ones for an even count).
    pub median: f64,
    /// Smallest repetition.
    pub low: f64,
    /// Largest repetition.
    pub high: f64,
    /// (high − low) / median in percent; 0 if the median is 0.
    pub spread_percent: f64,
    /// Every repetition in the order taken.
    pub samples: Vec<f64>,
}

/// The lowest and the highest value that an interval holds.
pub type Interval = [f64; 2];

impl Summary {
    /// Summarizes `samples`; `None` if there is none or one is not finite.
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
        let spread_percent = if median == 0.0 { 0.0 } else { (high - low) / median * 100.0 };
        Some(Self { median, low, high, spread_percent, samples: samples.to_vec() })
    }

    /// The 95 % interval of the median; `None` for fewer than [`INTERVAL_SAMPLES_MIN`] samples.
    pub fn interval(&self) -> Option<Interval> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let below = samples_outside(sorted.len())?;
        Some([sorted[below], sorted[sorted.len() - 1 - below]])
    }
}

/// The fewest samples whose range holds the median in 95 % of all experiments: 1 − 2 · 2⁻⁶.
pub const INTERVAL_SAMPLES_MIN: usize = 6;

/// How many of so many samples lie below the interval of the median; as many lie above it. A sample is below the median
/// with a probability of one half, so their number is binomial.
fn samples_outside(samples: usize) -> Option<usize> {
    const ONE_SIDE: f64 = 0.025;
    if samples < INTERVAL_SAMPLES_MIN {
        return None;
    }
    // Beyond that, 2⁻ⁿ is no number any more, and the normal distribution is exact to less than one rank.
    if samples > 1000 {
        return Some(((samples as f64 - 1.96 * (samples as f64).sqrt()) / 2.0) as usize);
    }
    let (mut probability, mut sum) = (0.5_f64.powi(samples as i32), 0.0);
    for outside in 0..samples {
        sum += probability;
        if sum > ONE_SIDE {
            return outside.checked_sub(1);
        }
        probability *= (samples - outside) as f64 / (outside + 1) as f64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks of the sign test, as tables of it have them.
    #[test]
    fn the_interval_of_the_median_is_that_of_the_sign_test() {
        for (samples, outside) in [(6, 0), (8, 0), (9, 1), (10, 1), (20, 5), (50, 17), (100, 39), (1000, 468)] {
            assert_eq!(samples_outside(samples), Some(outside), "of {samples} samples");
        }
        assert_eq!(samples_outside(5), None);
        assert!(
            (468..=470).contains(&samples_outside(1001).expect("many")),
            "the other formula goes on where this ends"
        );
        let samples: Vec<f64> = (1..=9).rev().map(f64::from).collect();
        assert_eq!(Summary::of(&samples).and_then(|summary| summary.interval()), Some([2.0, 8.0]));
    }

    /// What the interval promises, tried on skewed samples.
    #[test]
    fn the_interval_holds_the_median_of_what_is_measured() {
        let (mut held, mut number) = (0, 0);
        for _ in 0..1000 {
            let samples: Vec<f64> = (0..25)
                .map(|_| {
                    number += 1;
                    let uniform = crate::split_mix::split_mix(number) as f64 / u64::MAX as f64;
                    1.0 / (1.0 - uniform * 0.999)
                })
                .collect();
            let [low, high] = Summary::of(&samples).and_then(|summary| summary.interval()).expect("25 samples");
            held += usize::from(low <= 1.0 / (1.0 - 0.5 * 0.999) && 1.0 / (1.0 - 0.5 * 0.999) <= high);
        }
        assert!((935..=985).contains(&held), "{held} of 1000");
    }

    #[test]
    fn median_and_spread() {
        let odd = Summary::of(&[3.0, 1.0, 2.0]).expect("three samples");
        assert_eq!((odd.median, odd.low, odd.high, odd.spread_percent), (2.0, 1.0, 3.0, 100.0));
        assert_eq!(odd.samples, [3.0, 1.0, 2.0]);
        assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 8.0]).map(|s| s.median), Some(3.0));
        assert_eq!(Summary::of(&[0.0, 0.0]).map(|s| s.spread_percent), Some(0.0));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }
}
