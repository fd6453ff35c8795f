//! Upstream times: how long do Interests that are sent to a face wait for their Data, and how many get none?
//!
//! Operators ask this of each link, whatever strategy runs. A strategy's own measurements are about a prefix
//! ([`crate::state::measurements`]).
//!
//! Data is sampled by the hash of its name: one in `weight` names, and each sample counts `weight` times. The weight
//! follows the load ([`UpstreamTimes::end_of_period`]): at a low rate every Data is looked at, at a million a second
//! one in 256. An Interest that expires without an answer is always counted, for each face that it was sent to and that
//! sent no Nack.
//!
//! Cost: for each Data, a load, a test and a branch. For a sample, one probe of a flat index and one entry of 160
//! bytes.
//!
//! Limits: [`MAX_UPSTREAMS`] faces, all allocated at the start. Further faces are not measured, but counted
//! ([`LimitMet::UpstreamNotTimed`](crate::LimitMet)). Not measured: Data for an Interest kept by fingerprint, because
//! the core role keeps no time of sending.

use crate::Instant;
use hashbrown::HashTable;
use namewire_packet::FaceId;

/// Most faces of one worker whose answers are timed.
const MAX_UPSTREAMS: usize = 1024;

/// Upper bounds of the histogram's buckets; a last bucket has no bound.
pub const UPSTREAM_BUCKETS_NS: [u64; 16] = [
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
];

/// How long a period is.
pub const UPSTREAM_PERIOD_MS: u64 = 100;

/// A period with more samples doubles the weight, one with less than a sixteenth of them halves it.
const SAMPLES_PER_PERIOD: u32 = 64;

/// Largest weight less one: a mask of the hash.
const MASK_MAX: u64 = 255;

/// What is known of one face.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTime {
    /// The face.
    pub face: FaceId,
    /// Data by the time since its Interest was sent, in the buckets of [`UPSTREAM_BUCKETS_NS`] and beyond.
    pub answered: [u64; UPSTREAM_BUCKETS_NS.len() + 1],
    /// The sum of these times.
    pub answered_ns: u64,
    /// The time of the last sample; 0: none yet.
    pub last_ns: u64,
    /// Interests that expired without Data or Nack.
    pub unanswered: u64,
    /// Interests that a strategy sent elsewhere because earlier ones got no answer here.
    pub avoided: u64,
}

/// The faces that one engine has sent Interests to.
pub(crate) struct UpstreamTimes {
    entries: HashTable<UpstreamTime>,
    /// Names whose hash has these bits are no sample.
    mask: u64,
    samples: u32,
    refused: u64,
}

impl Default for UpstreamTimes {
    fn default() -> Self {
        UpstreamTimes { entries: HashTable::with_capacity(MAX_UPSTREAMS), mask: 0, samples: 0, refused: 0 }
    }
}

impl UpstreamTimes {
    /// Whether the Data of this name is a sample.
    #[inline(always)]
    pub(crate) fn takes(&self, name_hash: u64) -> bool {
        name_hash & self.mask == 0
    }

    /// Data came from a face, for an Interest that was sent there at `sent`.
    pub(crate) fn answered(&mut self, face: FaceId, sent: Instant, now: Instant) {
        self.samples += 1;
        let (weight, waited_ns) = (self.mask + 1, now.0.saturating_sub(sent.0));
        if let Some(entry) = self.entry(face) {
            let bucket = UPSTREAM_BUCKETS_NS.partition_point(|bound_ns| *bound_ns < waited_ns);
            entry.answered[bucket] += weight;
            entry.answered_ns += weight * waited_ns;
            entry.last_ns = waited_ns.max(1);
        }
    }

    /// An Interest expired that was sent to this face.
    pub(crate) fn unanswered(&mut self, face: FaceId) {
        if let Some(entry) = self.entry(face) {
            entry.unanswered += 1;
        }
    }

    /// A strategy would have sent an Interest there, had earlier ones been answered.
    pub(crate) fn avoided(&mut self, face: FaceId) {
        if let Some(entry) = self.entry(face) {
            entry.avoided += 1;
        }
    }

    /// The face is gone.
    pub(crate) fn forget(&mut self, face: FaceId) {
        if let Ok(entry) = self.entries.find_entry(hash(face), |entry| entry.face == face) {
            entry.remove();
        }
    }

    /// Adapts the weight to the load, every [`UPSTREAM_PERIOD_MS`].
    pub(crate) fn end_of_period(&mut self) {
        match std::mem::take(&mut self.samples) {
            samples if samples > SAMPLES_PER_PERIOD => self.mask = MASK_MAX.min(self.mask << 1 | 1),
            samples if samples < SAMPLES_PER_PERIOD / 16 => self.mask >>= 1,
            _ => {}
        }
    }

    /// Samples as seldom as under the highest load.
    pub(crate) fn expect_load(&mut self) {
        self.mask = MASK_MAX;
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &UpstreamTime> {
        self.entries.iter()
    }

    /// How often a face found no room.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    fn entry(&mut self, face: FaceId) -> Option<&mut UpstreamTime> {
        let is_full = self.entries.len() >= MAX_UPSTREAMS;
        let found = self.entries.entry(hash(face), |entry| entry.face == face, |entry| hash(entry.face));
        match found {
            hashbrown::hash_table::Entry::Occupied(entry) => Some(entry.into_mut()),
            hashbrown::hash_table::Entry::Vacant(_) if is_full => {
                self.refused += 1;
                None
            }
            hashbrown::hash_table::Entry::Vacant(place) => {
                Some(place.insert(UpstreamTime { face, ..UpstreamTime::default() }).into_mut())
            }
        }
    }
}

/// Faces are numbered by the router, so no secret is needed. The multiplier is that of Fibonacci hashing.
fn hash(face: FaceId) -> u64 {
    let mixed = face.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const MS: u64 = 1_000_000;

    fn of(times: &UpstreamTimes, face: u64) -> Option<UpstreamTime> {
        times.iter().find(|entry| entry.face == FaceId(face)).copied()
    }

    #[test]
    fn answers_fall_into_their_buckets() {
        let mut times = UpstreamTimes::default();
        for waited_ns in [1, 50_000, 50_001, 3 * MS, 9_000 * MS] {
            times.answered(FaceId(300), Instant(7), Instant(7 + waited_ns));
        }
        times.unanswered(FaceId(300));
        let entry = of(&times, 300).expect("it is measured");
        assert_eq!((entry.answered[0], entry.answered[1], entry.answered[6]), (2, 1, 1));
        assert_eq!((entry.answered[UPSTREAM_BUCKETS_NS.len()], entry.unanswered), (1, 1), "beyond the last bound");
        assert_eq!((entry.answered_ns, entry.last_ns), (100_002 + 9_003 * MS, 9_000 * MS));
        times.forget(FaceId(300));
        assert_eq!(of(&times, 300), None);
    }

    /// Each name is as likely as the others to be a sample, so weighted samples estimate the number of all Data.
    #[test]
    fn samples_get_rarer_under_load_and_count_for_more() {
        let mut times = UpstreamTimes::default();
        let mut random = fastrand::Rng::with_seed(1);
        let mut all = 0;
        for _ in 0..200 {
            for _ in 0..5000 {
                all += 1;
                if times.takes(random.u64(..)) {
                    times.answered(FaceId(300), Instant(0), Instant(MS));
                }
            }
            times.end_of_period();
        }
        assert!(times.mask >= 63, "{}", times.mask);
        let counted = of(&times, 300).expect("it is measured").answered.iter().sum::<u64>();
        assert!(counted.abs_diff(all) < all / 10, "{counted} of {all}");
        (0..20).for_each(|_| times.end_of_period());
        assert!(times.takes(u64::MAX), "at rest every Data is looked at");
    }

    #[test]
    fn faces_beyond_the_limit_are_counted_and_not_measured() {
        let mut times = UpstreamTimes::default();
        (0..MAX_UPSTREAMS as u64 + 3).for_each(|face| times.unanswered(FaceId(face)));
        assert_eq!((times.iter().count(), times.refused()), (MAX_UPSTREAMS, 3));
        times.unanswered(FaceId(0));
        assert_eq!(of(&times, 0).map(|entry| entry.unanswered), Some(2), "one that has room goes on");
    }

    proptest! {
        #[test]
        fn it_counts_as_a_map_does(operations in proptest::collection::vec((0..3_u8, 0..20_u64, 0..9_000_u64), 1..300)) {
            let (mut times, mut model) = (UpstreamTimes::default(), BTreeMap::<u64, (u64, u64, u64)>::new());
            for (operation, face, waited_ms) in operations {
                match operation {
                    0 => {
                        times.answered(FaceId(face), Instant(0), Instant(waited_ms * MS));
                        let entry = model.entry(face).or_default();
                        (entry.0, entry.1) = (entry.0 + 1, entry.1 + waited_ms * MS);
                    }
                    1 => {
                        times.unanswered(FaceId(face));
                        model.entry(face).or_default().2 += 1;
                    }
                    _ => {
                        times.forget(FaceId(face));
                        model.remove(&face);
                    }
                }
            }
            let found: BTreeMap<u64, (u64, u64, u64)> = times
                .iter()
                .map(|entry| (entry.face.0, (entry.answered.iter().sum(), entry.answered_ns, entry.unanswered)))
                .collect();
            prop_assert_eq!(found, model);
        }
    }
}
