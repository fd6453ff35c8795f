//! Popularity classes: groups of objects with nearly equal popularity.
//!
//! A model sums over all objects, and repeats the sum many times to solve for τ. Objects of nearly equal popularity
//! therefore form one class. With Zipf's law the first 500 objects are a class each; a later class is 1/500 of its rank
//! wide, so 10⁷ objects are about 5,700 classes. Within such a class, popularity varies by 0.2 % times the exponent.
//! Using the mean for each object changes the result of a model by about a millionth.

/// This many ranks are a class each; a later class is as wide as its rank divided by this.
const ALONE: u32 = 500;

/// Objects of one popularity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// Share of all requests that each object has.
    pub share: f64,
    pub objects: f64,
}

/// All objects, the most popular first.
#[derive(Clone, Debug)]
pub struct PopularityClasses {
    classes: Vec<Class>,
}

impl PopularityClasses {
    /// Classes of Zipf's law.
    ///
    /// # Panics
    /// If there is no object.
    pub fn zipf(objects: u32, alpha: f64) -> Self {
        assert!(objects > 0, "no objects");
        let mut classes = Vec::new();
        let mut rank = 1;
        while rank <= objects {
            let width = (rank / ALONE).max(1).min(objects - rank + 1);
            let weight = if width == 1 { f64::from(rank).powf(-alpha) } else { mean_weight(rank, width, alpha) };
            classes.push(Class { share: weight, objects: f64::from(width) });
            rank += width;
        }
        let sum: f64 = classes.iter().map(|class| class.share * class.objects).sum();
        classes.iter_mut().for_each(|class| class.share /= sum);
        Self { classes }
    }

    pub fn iter(&self) -> impl Iterator<Item = Class> {
        self.classes.iter().copied()
    }

    /// Σ over all objects of `f`(share).
    pub fn sum(&self, f: impl Fn(f64) -> f64) -> f64 {
        self.iter().map(|class| class.objects * f(class.share)).sum()
    }
}

/// The mean of k^−α over `width` ranks from `rank` on. It is the integral over half a rank to either side, with an
/// error below one part in 24 `rank`².
fn mean_weight(rank: u32, width: u32, alpha: f64) -> f64 {
    let (low, high) = (f64::from(rank) - 0.5, f64::from(rank + width) - 0.5);
    let integral = if (alpha - 1.0).abs() < 1e-9 {
        (high / low).ln()
    } else {
        (high.powf(1.0 - alpha) - low.powf(1.0 - alpha)) / (1.0 - alpha)
    };
    integral / f64::from(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_all_objects_with_their_popularity() {
        for (objects, alpha) in [(1, 0.8), (1_999, 0.0), (100_000, 0.8), (100_000, 1.0), (300_000, 1.3)] {
            let classes = PopularityClasses::zipf(objects, alpha);
            assert_eq!(classes.iter().map(|class| class.objects).sum::<f64>(), f64::from(objects));
            assert!((classes.sum(|share| share) - 1.0).abs() < 1e-12);
            let weights = || (1..=objects).map(|rank| f64::from(rank).powf(-alpha));
            let sum: f64 = weights().sum();
            let squares: f64 = weights().map(|weight| (weight / sum).powi(2)).sum();
            let of_classes = classes.sum(|share| share * share);
            assert!((of_classes / squares - 1.0).abs() < 1e-6, "{objects}, {alpha}: {of_classes}, not {squares}");
        }
        let paper = PopularityClasses::zipf(10_000_000, 0.8);
        assert!(paper.iter().count() < 6_000);
    }
}
