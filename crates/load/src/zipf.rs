//! Zipf's law: a random choice of one of n names, where the probability of the k-th is proportional to k^−s.
//!
//! Source: rejection-inversion (Hörmann & Derflinger 1996, "Rejection-inversion to generate variates from monotone
//! discrete distributions", ACM TOMACS 6(3)). h(x) = x^−s, and H is its integral from 1 on. A random area u below h
//! belongs to the rank k next to x = H⁻¹(u): to the area from k − ½ to k + ½, which is at least h(k), because h is
//! convex. The rank is taken if u is in the last h(k) of that area, so a rank has a chance in proportion to h(k). The
//! area of rank 1 is cut to h(1), so all of it counts. An x that is close enough below its rank is taken at once. Rank
//! 2 determines the distance that is close enough for all ranks.
//!
//! Memory: five numbers. Cost: hardly more than one round on average. Any s above 0 will do, also 1, where H is the
//! logarithm. Limit: u has 53 bits, so a rank with a probability below about 2^−50 occurs too seldom or never.

/// Draws places in a list, by Zipf's law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    count: f64,
    exponent: f64,
    /// The area is drawn above this, up to `end`.
    begin: f64,
    end: f64,
    /// So far below its rank, or less, an x is surely taken.
    close: f64,
}

impl Zipf {
    /// Of `count` names, with an exponent above 0.
    pub(crate) fn new(count: u64, exponent: f64) -> Self {
        let count = count as f64;
        let close = 2.0 - inverse(integral(2.5, exponent) - 2_f64.powf(-exponent), exponent);
        let (begin, end) = (integral(1.5, exponent) - 1.0, integral(count + 0.5, exponent));
        Zipf { count, exponent, begin, end, close }
    }

    /// The place of a name, the most popular one being 0.
    pub(crate) fn place(&self, random: &mut fastrand::Rng) -> u64 {
        loop {
            let area = self.end - random.f64() * (self.end - self.begin);
            let x = inverse(area, self.exponent);
            let rank = x.round().clamp(1.0, self.count);
            let own = || integral(rank + 0.5, self.exponent) - rank.powf(-self.exponent);
            if rank - x <= self.close || area >= own() {
                return rank as u64 - 1;
            }
        }
    }
}

/// H(x): the integral of t^−s from 1 to x, (x^(1−s) − 1) / (1 − s).
fn integral(x: f64, s: f64) -> f64 {
    let log = x.ln();
    let power = (1.0 - s) * log;
    // Near s = 1 the quotient is 0 / 0; there it is the first terms of its series.
    if power.abs() < 1e-8 { log * (1.0 + power / 2.0) } else { power.exp_m1() / (1.0 - s) }
}

/// H⁻¹: the x with this integral.
fn inverse(area: f64, s: f64) -> f64 {
    // Rounding may lead below −1, where nothing is.
    let power = ((1.0 - s) * area).max(-1.0);
    let log = if power.abs() < 1e-8 { area * (1.0 - power / 2.0) } else { power.ln_1p() / (1.0 - s) };
    log.exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How far what is drawn with one exponent is from the law of another: χ² in its standard deviations.
    fn distance(count: u64, drawn_exponent: f64, exponent: f64) -> f64 {
        const DRAWS: u32 = 300_000;
        let (zipf, mut random) = (Zipf::new(count, drawn_exponent), fastrand::Rng::with_seed(1));
        let mut drawn = vec![0_u32; count as usize];
        (0..DRAWS).for_each(|_| drawn[zipf.place(&mut random) as usize] += 1);
        let share = |rank: u64| (rank as f64).powf(-exponent);
        let sum: f64 = (1..=count).map(share).sum();
        let terms = (1..=count).zip(drawn).map(|(rank, drawn)| {
            let expected = f64::from(DRAWS) * share(rank) / sum;
            assert!(expected > 5.0, "too few for the test");
            (f64::from(drawn) - expected).powi(2) / expected
        });
        let degrees = (count - 1) as f64;
        (terms.sum::<f64>() - degrees) / (2.0 * degrees).sqrt()
    }

    #[test]
    fn every_rank_comes_as_often_as_the_law_says() {
        for exponent in [0.05, 0.7, 1.0, 1.0 + 1e-10, 1.2] {
            for count in [2, 3, 10, 1000] {
                let distance = distance(count, exponent, exponent);
                assert!(distance.abs() < 5.0, "exponent {exponent}, {count} names: {distance}");
            }
        }
        assert!(distance(10, 3.0, 3.0).abs() < 5.0);
        assert!(distance(1000, 1.0, 1.05) > 20.0, "this test tells close exponents apart");
        assert_eq!(Zipf::new(1, 1.0).place(&mut fastrand::Rng::new()), 0);
    }

    proptest! {
        #[test]
        fn every_place_is_in_the_list(count in 1_u64..=1 << 32, exponent in 1e-3..100.0, seed: u64) {
            let (zipf, mut random) = (Zipf::new(count, exponent), fastrand::Rng::with_seed(seed));
            prop_assert!((0..100).all(|_| zipf.place(&mut random) < count));
        }
    }
}
