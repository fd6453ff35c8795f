//! The choice of the default policy: which policy is near the best everywhere?
//!
//! The owner of a router does not know its requests beforehand. So the default is not the best policy of some case, but
//! the one whose worst case is least bad. A case's gap is the distance to the hit ratio of the best of all pairs of
//! admission and eviction (exact LFU, with a history of all objects, among them); cases are all workloads and traces
//! with stores of 0.1, 1 and 10 % of the objects. The mean over all cases is compared with
//! ARC's. [`super::packet_cycles`] measures the costs.

use super::case::{Case, THOUSANDTHS};
use super::hit_ratio::Tally;

/// A contestant's result over all cases.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Standing {
    /// Mean hit ratio over all cases.
    pub(super) mean_hit: f64,
    /// The largest distance to the best contestant of a case.
    pub(super) worst_gap: f64,
    /// The case of the worst gap.
    pub(super) worst_case: String,
    /// The best contestant there.
    pub(super) best_there: usize,
}

/// By contestant, for the first `count` of them; `tallies` by case, then contestant.
pub(super) fn standings(cases: &[Case], tallies: &[Vec<Tally>], count: usize) -> Vec<Standing> {
    let looked_at: Vec<(&Case, Vec<f64>)> = cases
        .iter()
        .zip(tallies)
        .filter(|(case, _)| THOUSANDTHS.contains(&case.thousandths))
        .map(|(case, tallies)| (case, tallies.iter().take(count).map(Tally::hit_ratio).collect()))
        .collect();
    let standing = |place: usize| {
        let mut standing = Standing { mean_hit: 0.0, worst_gap: 0.0, worst_case: String::new(), best_there: place };
        for (case, hits) in &looked_at {
            standing.mean_hit += hits[place] / looked_at.len() as f64;
            let best = hits.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1));
            let (best_there, most) = best.map_or((place, hits[place]), |(best, most)| (best, *most));
            let gap = most - hits[place];
            if gap >= standing.worst_gap {
                standing = Standing { worst_gap: gap, worst_case: case.name(), best_there, ..standing };
            }
        }
        standing
    };
    (0..count).map(standing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Web;

    #[test]
    fn the_gap_is_to_the_best_of_each_case_and_other_sizes_and_contestants_do_not_count() {
        let workload = super::super::case::Workload::Web(Web::new(1_000, 0.8));
        let case = |title: &str, thousandths| Case {
            title: title.to_owned(),
            workload: workload.clone(),
            alpha: None,
            capacity: thousandths,
            thousandths,
            warm_up: 0,
            counted: 100,
        };
        let hits = |hits| Tally { hits, stored: 100 - hits, ..Tally::default() };
        let cases = [case("a", 10), case("b", 100), case("c", 20)];
        let tallies = [[30, 50, 90], [70, 60, 99], [0, 100, 100]].map(|tallies| tallies.map(hits).to_vec());
        let [first, second] = <[Standing; 2]>::try_from(standings(&cases, &tallies, 2)).expect("two contestants");
        assert!((first.mean_hit - 0.5).abs() < 1e-9 && (second.mean_hit - 0.55).abs() < 1e-9);
        assert!((first.worst_gap - 0.2).abs() < 1e-9 && first.worst_case.starts_with("a,"), "{first:?}");
        assert!((second.worst_gap - 0.1).abs() < 1e-9 && second.worst_case.starts_with("b,"), "{second:?}");
    }
}
