//! Filter: the hit and insertion rates of FIFO behind Takemasa19's admission.
//!
//! Source: Takemasa19 §5.3.2, Eqs. 5.3-5.7. The Filter admits Data whose name was requested at least θ times in the
//! last q Interests, the present one included. It admits an absent object with probability p^Insertion_c = P[X_c ≥ θ −
//! 1], where X_c is Poisson with mean q λ'_c (Eq. 5.3). Behind the Filter the object is in a FIFO with request rate
//! λ'_c p^Insertion_c.
//!
//! The model ignores two effects. Names may share a counter ([`collision_share`], §5.2.3). And an absent object was
//! probably refused at its last request, so its recent requests are fewer than its popularity predicts.

use super::PopularityClasses;
use super::characteristic_time::characteristic_time;
use super::popularity_classes::Class;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterRates {
    /// Share of all requests that hit, Eq. 5.7.
    pub hit: f64,
    /// Share of arriving Data (one per miss) that the Filter admits, Eq. 5.4.
    pub insertion: f64,
}

/// The rates of a cache of `capacity` objects behind a Filter with a history of `history` Interests.
pub fn filter_rates(popularity: &PopularityClasses, capacity: f64, history: f64, threshold: u32) -> FilterRates {
    let least = threshold.saturating_sub(1);
    let classes: Vec<(Class, f64)> =
        popularity.iter().map(|class| (class, at_least(least, history * class.share))).collect();
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        classes.iter().map(|&(class, admitted)| class.objects * f(class.share, admitted)).sum()
    };
    let present = |share: f64, admitted: f64, time: f64| {
        let load = share * admitted * time;
        load / (1.0 + load)
    };
    let filled = |time: f64| sum(&|share, admitted| present(share, admitted, time));
    let Some(time) = characteristic_time(capacity, filled) else {
        return FilterRates { hit: 1.0, insertion: 1.0 }; // everything fits
    };
    let missed = sum(&|share, admitted| share * (1.0 - present(share, admitted, time)));
    let inserted = sum(&|share, admitted| share * (1.0 - present(share, admitted, time)) * admitted);
    FilterRates { hit: 1.0 - missed, insertion: inserted / missed }
}

/// §5.2.3: the share of names that share their counter with another name of the history; there are `counters` counters.
pub fn collision_share(history: f64, counters: f64) -> f64 {
    -(history * (-1.0 / counters).ln_1p()).exp_m1()
}

/// P[X ≥ `least`] of a Poisson variable, without cancellation where the mean is small.
fn at_least(least: u32, mean: f64) -> f64 {
    if mean == 0.0 {
        return f64::from(u8::from(least == 0));
    }
    // Sum the terms from `least` on where they decay at once; elsewhere sum the terms below `least`, which are fewer.
    let term = |k: u32| (f64::from(k) * mean.ln() - mean - log_factorial(k)).exp();
    if mean < f64::from(least) {
        let (mut k, mut next, mut sum) = (least, term(least), 0.0);
        while next > sum * 1e-17 && next > 0.0 {
            sum += next;
            k += 1;
            next *= mean / f64::from(k);
        }
        sum
    } else {
        1.0 - (0..least).map(term).sum::<f64>()
    }
}

fn log_factorial(k: u32) -> f64 {
    (2..=k).map(|factor| f64::from(factor).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_models::eviction::fifo_hit;

    #[test]
    fn rates_of_the_web_workload() {
        for (alpha, hit, insertion) in [(0.8, 0.3273, 0.031), (0.81, 0.3432, 0.0313)] {
            let popularity = PopularityClasses::zipf(10_000_000, alpha);
            let rates = filter_rates(&popularity, 1e5, 1e5, 2);
            assert!((rates.hit - hit).abs() < 0.0005 && (rates.insertion - insertion).abs() < 0.0005, "{rates:?}");
        }
    }

    #[test]
    fn a_threshold_of_one_is_fifo_and_higher_ones_insert_less() {
        let popularity = PopularityClasses::zipf(100_000, 0.8);
        let open = filter_rates(&popularity, 1e3, 1e3, 1);
        assert!((open.insertion - 1.0).abs() < 1e-12 && (open.hit - fifo_hit(&popularity, 1e3)).abs() < 1e-9);
        let insertions: Vec<f64> = (1..=30).map(|t| filter_rates(&popularity, 1e3, 1e3, t).insertion).collect();
        assert!(insertions.windows(2).all(|pair| pair[0] > pair[1] && pair[1] >= 0.0), "{insertions:?}");
        assert_eq!(filter_rates(&popularity, 2e5, 1e3, 2), FilterRates { hit: 1.0, insertion: 1.0 });
    }

    #[test]
    fn the_tail_of_a_poisson_variable_is_exact_at_both_ends() {
        let direct = |least: u32, mean: f64| {
            let terms = (0..least).scan(1.0, |term, k| {
                let now = *term;
                *term *= mean / f64::from(k + 1);
                Some(now)
            });
            1.0 - (-mean).exp() * terms.sum::<f64>()
        };
        for mean in [0.3, 1.0, 2.5, 7.0, 29.0] {
            for least in 0..12 {
                assert!((at_least(least, mean) - direct(least, mean)).abs() < 1e-12, "{least}, {mean}");
            }
        }
        // Here 1 minus the rest would have no digits left: X ≥ 3 with mean 10^-6 is 10^-18 / 6.
        assert!((at_least(3, 1e-6) * 6e18 - 1.0).abs() < 1e-5);
        assert_eq!((at_least(0, 0.0), at_least(1, 0.0)), (1.0, 0.0));
        assert!((collision_share(1e4, f64::from(1 << 24)) - 5.96e-4).abs() < 1e-6, "Takemasa19 §5.2.3: 0.0596 %");
    }
}
