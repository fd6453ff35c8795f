//! Failures: links that break and are mended at random times.
//!
//! Each link works for a time and is down for a time, both exponential with the given means, from a generator of its
//! own. So a link fails at the same times whatever other links there are before it in the file.

use super::constellation::ChangeRow;
use crate::file::Link;
use anyhow::ensure;
use fastrand::Rng;

/// Most failures of a file.
const FAILURES_MAX: usize = 10_000_000;

/// How links fail.
#[derive(Clone, Copy, Debug)]
pub struct Failures {
    pub mean_up_s: f64,
    pub mean_down_s: f64,
    /// Nothing fails before.
    pub start_s: f64,
    pub duration_s: f64,
    pub seed: u64,
}

impl Failures {
    /// The changes of these links, in the order of time.
    ///
    /// # Errors
    /// If a time is not above 0, or there are too many failures.
    pub fn of(&self, links: &[Link]) -> anyhow::Result<Vec<ChangeRow>> {
        ensure!(self.mean_up_s > 0.0 && self.mean_down_s > 0.0, "links are up and down for a time");
        let mut rows = Vec::new();
        for link in links {
            let mut rng = Rng::with_seed(self.seed ^ hash(&link.a).rotate_left(1) ^ hash(&link.b));
            let mut draw = |mean_s: f64| -libm::log(1.0 - rng.f64()) * mean_s;
            let mut time = self.start_s + draw(self.mean_up_s);
            while time < self.duration_s {
                let mended = time + draw(self.mean_down_s);
                for (time, up) in [(time, "down"), (mended, "up")] {
                    let time = (time * 1e6).round() / 1e6;
                    rows.push(ChangeRow { time, a: link.a.clone(), b: link.b.clone(), up, delay: String::new() });
                }
                ensure!(rows.len() <= FAILURES_MAX, "more than {FAILURES_MAX} failures");
                time = mended + draw(self.mean_up_s);
            }
        }
        rows.sort_by(|one, other| one.time.total_cmp(&other.time));
        Ok(rows)
    }
}

/// FNV-1a: a number for a name, the same on every machine.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(count: usize) -> Vec<Link> {
        (0..count).map(|number| Link { a: format!("r{number}"), b: "hub".to_owned(), ..Link::default() }).collect()
    }

    #[test]
    fn links_are_down_as_long_as_asked_for() -> anyhow::Result<()> {
        let failures = Failures { mean_up_s: 90.0, mean_down_s: 10.0, start_s: 0.0, duration_s: 10_000.0, seed: 3 };
        let rows = failures.of(&links(50))?;
        assert!(rows.is_sorted_by_key(|row| row.time));
        let mut down_s = 0.0;
        for link in links(50) {
            let of_link: Vec<&ChangeRow> = rows.iter().filter(|row| row.a == link.a).collect();
            assert!(of_link.chunks(2).all(|pair| pair[0].up == "down" && pair[1].up == "up"), "they alternate");
            down_s += of_link.chunks(2).map(|pair| pair[1].time - pair[0].time).sum::<f64>();
        }
        let share = down_s / 50.0 / 10_000.0;
        assert!((0.09..0.11).contains(&share), "{share}");
        let of_first = |rows: Vec<ChangeRow>| rows.into_iter().filter(|row| row.a == "r0").collect::<Vec<_>>();
        assert_eq!(of_first(failures.of(&links(1))?), of_first(rows), "other links change nothing");
        Ok(())
    }
}
