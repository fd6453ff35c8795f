//! Recent: what each face carried in the last ten seconds, and whether its peer answered.
//!
//! Control takes a sample of all counters whenever it looks at counters while there is traffic, every 2 s, and when an
//! operator asks. What happened recently is the difference between the newest sample and the oldest one that is not
//! older than [`WINDOW_NS`]. An idle router takes no samples. After a pause, the first look at a face has no older
//! sample to compare with.
//!
//! A face that is up is *degraded* if its peer did not answer many of the Interests in that time, or if a strategy
//! therefore sent Interests elsewhere ([`FaceRecent::is_degraded`]).
//!
//! Memory: at most [`SAMPLES_MAX`] samples of 72 bytes for each face. Cost: a walk over all faces for each sample, on
//! the control thread. Time and counters are arguments.

use namewire_packet::{FaceId, nfd::FaceRecent};
use std::collections::{HashMap, HashSet, VecDeque};

/// What is recent.
const WINDOW_NS: u64 = 10_500_000_000;

/// Samples follow each other no faster, so that [`SAMPLES_MAX`] of them reach over the window.
const PAUSE_NS: u64 = 1_000_000_000;

const SAMPLES_MAX: usize = 12;

const _: () = assert!((SAMPLES_MAX as u64 - 1) * PAUSE_NS >= WINDOW_NS);

/// What a face has counted since it was made. Its span is 0.
pub(crate) type Totals = FaceRecent;

struct Sample {
    at_ns: u64,
    faces: HashMap<FaceId, Totals>,
}

/// See the module documentation.
#[derive(Default)]
pub(crate) struct Recent {
    samples: VecDeque<Sample>,
    degraded: HashSet<FaceId>,
}

/// A face whose peer has begun to leave Interests unanswered, or answers again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HealthChange {
    pub(crate) face: FaceId,
    pub(crate) recent: FaceRecent,
}

impl Recent {
    /// Whether a sample would tell more than the newest one.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.samples.back().is_none_or(|newest| now_ns >= newest.at_ns + PAUSE_NS)
    }

    /// Takes a sample, and returns the faces that are degraded since, or are no longer.
    pub(crate) fn sample(&mut self, now_ns: u64, faces: HashMap<FaceId, Totals>) -> Vec<HealthChange> {
        self.samples.push_back(Sample { at_ns: now_ns, faces });
        while self.samples.len() > SAMPLES_MAX
            || self.samples.front().is_some_and(|oldest| now_ns - oldest.at_ns > WINDOW_NS)
        {
            self.samples.pop_front();
        }
        let newest = &self.samples[self.samples.len() - 1];
        // After a pause it is not known how a face answers: if it is degraded then, that is told again.
        let known: HashSet<FaceId> = self.degraded.iter().filter(|face| self.of(**face).is_some()).copied().collect();
        self.degraded = known;
        let recent = newest.faces.keys().filter_map(|&face| Some((face, self.of(face)?)));
        let changed = recent.filter(|(face, recent)| recent.is_degraded() != self.degraded.contains(face));
        let changes: Vec<HealthChange> = changed.map(|(face, recent)| HealthChange { face, recent }).collect();
        for HealthChange { face, recent } in &changes {
            match recent.is_degraded() {
                true => self.degraded.insert(*face),
                false => self.degraded.remove(face),
            };
        }
        changes
    }

    /// What a face did lately; `None` if there is nothing to compare with.
    pub(crate) fn of(&self, face: FaceId) -> Option<FaceRecent> {
        let newest = self.samples.back()?;
        let now = newest.faces.get(&face)?;
        let oldest = self.samples.iter().find(|sample| sample.faces.contains_key(&face))?;
        let before = &oldest.faces[&face];
        let span_ms = (newest.at_ns - oldest.at_ns) / 1_000_000;
        (span_ms > 0).then(|| FaceRecent {
            span_ms,
            in_packets: now.in_packets.saturating_sub(before.in_packets),
            in_bytes: now.in_bytes.saturating_sub(before.in_bytes),
            out_packets: now.out_packets.saturating_sub(before.out_packets),
            out_bytes: now.out_bytes.saturating_sub(before.out_bytes),
            answered: now.answered.saturating_sub(before.answered),
            unanswered: now.unanswered.saturating_sub(before.unanswered),
            avoided: now.avoided.saturating_sub(before.avoided),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const FACE: FaceId = FaceId(300);

    fn totals(packets: u64, answered: u64, unanswered: u64) -> HashMap<FaceId, Totals> {
        let totals = Totals { in_packets: packets, in_bytes: 100 * packets, answered, unanswered, ..Totals::default() };
        HashMap::from([(FACE, totals)])
    }

    #[test]
    fn ten_seconds_count_and_no_more() {
        let mut recent = Recent::default();
        assert!(recent.is_due(0) && recent.of(FACE).is_none());
        for second in (0..=20).step_by(2) {
            assert!(recent.is_due(second * SECOND_NS));
            recent.sample(second * SECOND_NS, totals(second * second, 0, 0));
            assert!(!recent.is_due(second * SECOND_NS + 1));
        }
        let last = recent.of(FACE).expect("two samples");
        assert_eq!((last.span_ms, last.in_packets, last.in_bytes), (10_000, 400 - 100, 30_000));
        recent.sample(60 * SECOND_NS, totals(400, 0, 0));
        assert_eq!(recent.of(FACE), None, "nothing recent to compare with");
        assert_eq!(recent.of(FaceId(301)), None);
    }

    #[test]
    fn a_face_that_is_avoided_is_degraded_although_nothing_is_sent_there() {
        let mut recent = Recent::default();
        let mut changes = |second: u64, avoided| {
            let totals = Totals { answered: 1000, avoided, ..Totals::default() };
            let changes = recent.sample(second * SECOND_NS, HashMap::from([(FACE, totals)]));
            changes.iter().map(|change| change.recent.is_degraded()).collect::<Vec<_>>()
        };
        assert_eq!((changes(0, 0), changes(2, 1), changes(4, 9)), (vec![], vec![true], vec![]));
        assert_eq!((changes(12, 9), changes(14, 9)), (vec![], vec![false]), "ten seconds without one");
    }

    #[test]
    fn a_face_is_degraded_and_recovers_and_each_is_told_once() {
        let mut recent = Recent::default();
        let mut changes = |second: u64, answered, unanswered| {
            let changes = recent.sample(second * SECOND_NS, totals(0, answered, unanswered));
            changes.iter().map(|change| change.recent.is_degraded()).collect::<Vec<_>>()
        };
        assert_eq!(changes(0, 1000, 500), [false; 0], "what was before does not count");
        assert_eq!(changes(2, 1000, 505), [false; 0], "too few to tell");
        assert_eq!(changes(4, 1010, 510), [true]);
        assert_eq!(changes(6, 1011, 511), [false; 0]);
        assert_eq!(changes(8, 1300, 511), [false]);
        assert_eq!(changes(10, 1300, 600), [true]);
        assert_eq!(changes(100, 1300, 600), [false; 0], "a pause: nothing is known");
        assert_eq!(changes(102, 1300, 620), [true], "told again");
        let gone = recent.sample(104 * SECOND_NS, HashMap::new());
        assert_eq!((gone.len(), recent.degraded.len()), (0, 0), "a face that has gone is forgotten");
    }
}
