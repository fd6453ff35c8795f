//! Characteristic time: how long does an object stay in the cache?
//!
//! Takemasa19 Eq. 5.6: At τ, the objects' probabilities to be in the cache add up to its size: C = Σ p_c(τ). The
//! sum grows with τ, so bisection finds it.

/// The time, in requests, at which the search gives up.
const LONGEST: f64 = 1e300;
/// Factor by which the time grows while the cache is not full.
const GROWTH: f64 = 64.0;

/// The τ at which `filled`(τ), which grows with τ, reaches `capacity`; `None` if fewer objects exist than fit.
pub fn characteristic_time(capacity: f64, filled: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut low, mut high) = (0.0, capacity.max(f64::MIN_POSITIVE));
    while filled(high) < capacity {
        (low, high) = (high, high * GROWTH);
        if high > LONGEST {
            return None;
        }
    }
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return Some(high);
        }
        if filled(middle) < capacity {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_where_the_cache_is_full() {
        for capacity in [1e-6, 0.5, 3.0, 1e6, 1e200] {
            let time = characteristic_time(capacity, |time| time * time).expect("it grows without limit");
            assert!((time - capacity.sqrt()).abs() < 1e-9 * capacity.sqrt());
        }
        assert_eq!(characteristic_time(2.0, |time| 1.0 - (-time).exp()), None);
    }
}
