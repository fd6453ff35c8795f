//! Answer times: the measurements of each upstream, of all workers together.

use crate::Shared;
use namewire_engine::{FaceId, UPSTREAM_BUCKETS_NS, UpstreamTime};
use std::collections::BTreeMap;

/// The sums over all workers, by face.
#[derive(Default)]
pub struct AnswerTimes(BTreeMap<FaceId, UpstreamTime>);

impl AnswerTimes {
    /// What the workers have measured so far.
    pub fn of(shared: &Shared) -> Self {
        let mut times = AnswerTimes::default();
        for worker in 0..shared.dispatcher.workers() {
            shared.upstream_times(worker as u8).iter().for_each(|time| times.add(time));
        }
        times
    }

    fn add(&mut self, time: &UpstreamTime) {
        let sum = self.0.entry(time.face).or_insert(UpstreamTime { face: time.face, ..UpstreamTime::default() });
        sum.answered.iter_mut().zip(time.answered).for_each(|(sum, count)| *sum += count);
        sum.answered_ns += time.answered_ns;
        sum.unanswered += time.unanswered;
        sum.avoided += time.avoided;
        if time.last_ns > 0 {
            sum.last_ns = time.last_ns;
        }
    }

    /// Of one face.
    pub fn get(&self, face: FaceId) -> Option<&UpstreamTime> {
        self.0.get(&face)
    }
}

/// Answers that were measured.
pub fn answered(time: &UpstreamTime) -> u64 {
    time.answered.iter().sum()
}

/// The upper bound of the bucket in which this part of the answers has come; `None` if the bucket has no bound, or
/// nothing was measured.
pub fn bound_ns(time: &UpstreamTime, part: f64) -> Option<u64> {
    let wanted = (answered(time) as f64 * part).ceil().max(1.0) as u64;
    let mut seen = 0;
    let bucket = time.answered.iter().position(|count| {
        seen += count;
        seen >= wanted
    })?;
    UPSTREAM_BUCKETS_NS.get(bucket).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_added_and_percentiles_are_bounds() {
        let (mut times, mut one) =
            (AnswerTimes::default(), UpstreamTime { face: FaceId(300), ..UpstreamTime::default() });
        assert_eq!(bound_ns(&one, 0.5), None, "nothing measured");
        (one.answered[2], one.answered_ns, one.last_ns) = (50, 5, 200_000);
        let other = UpstreamTime { unanswered: 3, last_ns: 0, ..one };
        times.add(&one);
        times.add(&other);
        let mut sum = *times.get(FaceId(300)).expect("it is there");
        assert_eq!((answered(&sum), sum.unanswered, sum.answered_ns, sum.last_ns), (100, 3, 10, 200_000));
        sum.answered[7] = 1;
        assert_eq!(
            (bound_ns(&sum, 0.5), bound_ns(&sum, 0.99), bound_ns(&sum, 1.0)),
            (Some(200_000), Some(200_000), Some(10_000_000))
        );
        sum.answered[UPSTREAM_BUCKETS_NS.len()] = 1000;
        assert_eq!(bound_ns(&sum, 0.5), None, "longer than any bound");
    }
}
