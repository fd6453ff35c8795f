//! Popularity: random objects, each with its own probability.
//!
//! Source: the alias method of Walker (1977) in the build order of Vose (1991). n objects are n cells of equal
//! probability; an object shares its cell with one other, its alias. A draw takes one random number: its upper part
//! selects the cell, the rest selects one of the two.
//!
//! Zipf (Takemasa19 §5.4.1, α): the probability of object k, from 0, is proportional to (k + 1)^−α. It is exact but for
//! the rounding of a cell's threshold (2^−32 of a cell).
//!
//! Cost: a draw reads one cache line. Memory: an object takes 8 bytes, three times as many while the table is built;
//! 10⁷ objects take 80 MB. A finished table never changes.

/// Most objects: a cell's number and an alias are 32-bit.
pub const OBJECTS_MAX: u32 = 1 << 30;

/// One of n equal parts of the probability.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Below this value, in 2^−32 of the cell, a draw means the cell's own object; from there on its alias.
    threshold: u32,
    alias: u32,
}

const _: () = assert!(size_of::<Cell>() == 8);

/// A probability for each object.
#[derive(Clone, Debug)]
pub struct Popularity {
    cells: Vec<Cell>,
}

impl Popularity {
    /// Zipf's law with exponent `alpha`; object 0 is the most popular.
    ///
    /// # Panics
    /// If there is no object, or more than [`OBJECTS_MAX`].
    pub fn zipf(objects: u32, alpha: f64) -> Self {
        assert!((1..=OBJECTS_MAX).contains(&objects), "{objects} objects");
        let mut shares: Vec<f64> = (1..=objects).map(|rank| f64::from(rank).powf(-alpha)).collect();
        let scale = f64::from(objects) / shares.iter().sum::<f64>();
        shares.iter_mut().for_each(|share| *share *= scale);
        Self { cells: cells_of(shares) }
    }

    /// How many objects.
    pub fn objects(&self) -> u32 {
        self.cells.len() as u32
    }

    /// The object for a random number.
    #[inline]
    pub fn draw(&self, random: u64) -> u32 {
        let product = u128::from(random) * self.cells.len() as u128;
        let (number, rest) = ((product >> 64) as u32, (product as u64 >> 32) as u32);
        let cell = self.cells[number as usize];
        if rest < cell.threshold { number } else { cell.alias }
    }
}

/// The cells of objects whose probabilities are `shares`, in cells: their mean is 1. A share below 1 fills its own cell
/// in part; a share above 1 fills the rest.
fn cells_of(mut shares: Vec<f64>) -> Vec<Cell> {
    let whole = |object: u32| Cell { threshold: 0, alias: object };
    let mut cells: Vec<Cell> = (0..shares.len() as u32).map(whole).collect();
    let (mut small, mut large): (Vec<u32>, Vec<u32>) =
        (0..shares.len() as u32).partition(|&object| shares[object as usize] < 1.0);
    while let (Some(&donor), Some(object)) = (large.last(), small.pop()) {
        let share = shares[object as usize];
        cells[object as usize] = Cell { threshold: (share * 4_294_967_296.0) as u32, alias: donor };
        let left = &mut shares[donor as usize];
        *left -= 1.0 - share;
        if *left < 1.0 {
            large.pop();
            small.push(donor);
        }
    }
    cells // those still in a list are 1 but for rounding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_has_its_probability() {
        for (objects, alpha) in [(1, 0.8), (2, 1.0), (1_000, 0.8), (5_000, 0.0), (5_000, 2.0)] {
            let popularity = Popularity::zipf(objects, alpha);
            let mut shares = vec![0.0; objects as usize];
            for (object, cell) in popularity.cells.iter().enumerate() {
                let own = f64::from(cell.threshold) / 4_294_967_296.0;
                shares[object] += own;
                shares[cell.alias as usize] += 1.0 - own;
            }
            let sum: f64 = (1..=objects).map(|rank| f64::from(rank).powf(-alpha)).sum();
            for (rank, share) in (1..=objects).zip(shares) {
                let wanted = f64::from(rank).powf(-alpha) / sum;
                assert!((share / f64::from(objects) - wanted).abs() < 1e-8, "{rank} of {objects}: {share}");
            }
        }
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let popularity = Popularity::zipf(1_000, 0.8);
        let (mut random, mut counts) = (fastrand::Rng::with_seed(1), vec![0_u32; 1_000]);
        const DRAWS: u32 = 500_000;
        (0..DRAWS).for_each(|_| counts[popularity.draw(random.u64(..)) as usize] += 1);
        let sum: f64 = (1..=1_000).map(|rank| f64::from(rank).powf(-0.8)).sum();
        for (rank, count) in (1..=1_000).zip(counts) {
            let wanted = f64::from(DRAWS) * f64::from(rank).powf(-0.8) / sum;
            assert!((f64::from(count) - wanted).abs() < 5.0 * wanted.sqrt(), "rank {rank}: {count}, not {wanted}");
        }
        assert_eq!((popularity.draw(0), popularity.draw(u64::MAX) < 1_000), (0, true));
    }
}
