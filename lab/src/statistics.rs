//! Median and spread of repeated measurements.
//!
//! Question answered: what is the typical value, and how far do the repetitions spread? The
//! typical value is the median, because one disturbed repetition must not move the result. Spread = (largest −
//! smallest) / median, which hides nothing at five repetitions.

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
}

/// Mean and half of the 95 % interval (1.96 standard errors); `None` for fewer than two samples.
pub fn interval(samples: &[f64]) -> Option<(f64, f64)> {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (samples.len() > 1).then(|| (mean, 1.96 * (variance / count).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_mean() {
        let (mean, half) = interval(&[0.9, 1.0, 1.1, 1.0]).expect("four samples");
        assert!((mean - 1.0).abs() < 1e-12 && (half - 1.96 * (0.02_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12, "{half}");
        assert_eq!(interval(&[1.0]), None);
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
