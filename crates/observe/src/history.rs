//! History: rates of the last ten seconds, from counters.
//!
//! Question: how many packets and bits per second does each face receive and send?
//!
//! The history keeps one sample per second. A rate is the difference between the newest sample and the oldest one that
//! is still comparable, divided by the time between them. A sample is comparable if it has the face and no counter of
//! it is larger than in the next sample. So a new face has a rate after its second sample, and a face that took the
//! number of another one starts again.
//!
//! Time is an argument: the time since the observer's start. Cost: one pass over all faces per sample. Limits:
//! 11 samples of 40 bytes per face.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde::Serialize;

use crate::snapshot::Face;
use namewire_packet::nfd::FaceCounters;

/// Over how long rates are computed.
pub const WINDOW: Duration = Duration::from_secs(10);
/// One sample per second and both ends of the window.
const SAMPLES_MAX: usize = 11;
/// A sample may come late by a part of its second and still count for the window.
const LATE_MAX: Duration = Duration::from_millis(500);

/// The samples of the last [`WINDOW`].
#[derive(Default)]
pub struct History {
    samples: VecDeque<Sample>,
}

/// The totals of all faces at one moment.
struct Sample {
    at: Duration,
    faces: HashMap<u64, Totals>,
}

/// What rates are made of.
#[derive(Clone, Copy)]
struct Totals {
    in_packets: u64,
    out_packets: u64,
    in_bytes: u64,
    out_bytes: u64,
}

/// The rates of all faces that have one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// The longest time that a rate was measured over. 0: there is no rate yet.
    pub window_ms: u64,
    /// One entry per face with at least two samples, by face number.
    pub faces: Vec<FaceRate>,
}

/// What one face receives and sends per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FaceRate {
    /// The face.
    pub face: u64,
    /// Packets received per second.
    pub in_packets_per_s: f64,
    /// Packets sent per second.
    pub out_packets_per_s: f64,
    /// Bits received per second.
    pub in_bits_per_s: f64,
    /// Bits sent per second.
    pub out_bits_per_s: f64,
}

impl FaceRate {
    /// Both directions together, for sorting.
    pub fn bits_per_s(&self) -> f64 {
        self.in_bits_per_s + self.out_bits_per_s
    }
}

impl History {
    /// Adds what the faces counted until `at`. Times must not go back.
    pub fn push(&mut self, at: Duration, faces: &[Face]) {
        self.forget(at);
        let faces = faces.iter().map(|face| (face.id, Totals::of(&face.counters))).collect();
        self.samples.push_back(Sample { at, faces });
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }

    /// The rates at the newest sample. Samples too old at `now` do not count.
    pub fn rates(&mut self, now: Duration) -> Rates {
        self.forget(now);
        let Some(newest) = self.samples.back() else { return Rates::default() };
        let mut window = Duration::ZERO;
        let mut faces: Vec<FaceRate> = Vec::with_capacity(newest.faces.len());
        for (&face, last) in &newest.faces {
            let Some(first) = self.oldest_comparable(face) else { continue };
            let elapsed = newest.at - first.at;
            window = window.max(elapsed);
            faces.push(last.since(&first.faces[&face], face, elapsed));
        }
        faces.sort_unstable_by_key(|rate| rate.face);
        Rates { window_ms: window.as_millis() as u64, faces }
    }

    fn forget(&mut self, now: Duration) {
        while self.samples.front().is_some_and(|sample| now.saturating_sub(sample.at) > WINDOW + LATE_MAX) {
            self.samples.pop_front();
        }
    }

    fn oldest_comparable(&self, face: u64) -> Option<&Sample> {
        let mut samples = self.samples.iter().rev();
        let newest = samples.next()?;
        let mut next = newest.faces.get(&face)?;
        let mut oldest = None;
        for sample in samples {
            let Some(totals) = sample.faces.get(&face).filter(|totals| totals.grew_to(next)) else { break };
            if sample.at < newest.at {
                oldest = Some(sample);
            }
            next = totals;
        }
        oldest
    }
}

impl Totals {
    fn of(counters: &FaceCounters) -> Self {
        Self {
            in_packets: counters.packets.received(),
            out_packets: counters.packets.sent(),
            in_bytes: counters.in_bytes,
            out_bytes: counters.out_bytes,
        }
    }

    fn grew_to(&self, next: &Self) -> bool {
        self.in_packets <= next.in_packets
            && self.out_packets <= next.out_packets
            && self.in_bytes <= next.in_bytes
            && self.out_bytes <= next.out_bytes
    }

    fn since(&self, first: &Self, face: u64, elapsed: Duration) -> FaceRate {
        let per_s = |last: u64, first: u64| (last - first) as f64 / elapsed.as_secs_f64();
        FaceRate {
            face,
            in_packets_per_s: per_s(self.in_packets, first.in_packets),
            out_packets_per_s: per_s(self.out_packets, first.out_packets),
            in_bits_per_s: per_s(self.in_bytes, first.in_bytes) * 8.0,
            out_bits_per_s: per_s(self.out_bytes, first.out_bytes) * 8.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::nfd::PacketCounts;

    fn face(id: u64, in_data: u64, in_bytes: u64) -> Face {
        Face {
            id,
            counters: FaceCounters { packets: PacketCounts { in_data, ..Default::default() }, in_bytes, out_bytes: 0 },
            ..Default::default()
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_sample_gives_no_rate() {
        let mut history = History::default();
        assert_eq!(history.rates(at(0)), Rates::default());
        history.push(at(0), &[face(1, 5, 500)]);
        assert_eq!(history.rates(at(0)), Rates::default());
    }

    #[test]
    fn rates_are_differences_over_time() {
        let mut history = History::default();
        history.push(at(0), &[face(1, 100, 10_000)]);
        history.push(at(4), &[face(1, 300, 30_000)]);
        let rates = history.rates(at(4));
        assert_eq!(rates.window_ms, 4000);
        let expected = FaceRate { face: 1, in_packets_per_s: 50.0, in_bits_per_s: 40_000.0, ..Default::default() };
        assert_eq!(rates.faces, [expected]);
        assert_eq!(rates.faces[0].bits_per_s(), 40_000.0);
    }

    #[test]
    fn samples_older_than_the_window_do_not_count() {
        let mut history = History::default();
        history.push(at(0), &[face(1, 0, 0)]);
        for second in 1..=30 {
            // Nothing but the first second had traffic.
            history.push(at(second), &[face(1, 1000, 1000)]);
        }
        let rates = history.rates(at(30));
        assert_eq!(rates.window_ms, 10_000);
        assert_eq!(rates.faces[0].in_packets_per_s, 0.0);
        assert!(history.samples.len() <= SAMPLES_MAX);
        assert_eq!(history.rates(at(100)), Rates::default());
    }

    #[test]
    fn a_pause_leaves_no_old_rate() {
        let mut history = History::default();
        history.push(at(0), &[face(1, 0, 0)]);
        history.push(at(60), &[face(1, 600, 600)]);
        assert_eq!(history.rates(at(60)), Rates::default(), "a minute is no ten seconds");
    }

    #[test]
    fn a_new_face_has_a_rate_after_its_second_sample() {
        let mut history = History::default();
        history.push(at(0), &[face(1, 0, 0)]);
        history.push(at(1), &[face(1, 10, 0), face(2, 7, 0)]);
        assert_eq!(history.rates(at(1)).faces.len(), 1);
        history.push(at(2), &[face(1, 20, 0), face(2, 10, 0)]);
        let rates = history.rates(at(2));
        assert_eq!((rates.faces[0].in_packets_per_s, rates.faces[1].in_packets_per_s), (10.0, 3.0));
        assert_eq!(rates.window_ms, 2000);
    }

    #[test]
    fn a_counter_that_went_back_starts_again() {
        let mut history = History::default();
        history.push(at(0), &[face(1, 1000, 0)]);
        history.push(at(1), &[face(1, 1100, 0)]);
        history.push(at(2), &[face(1, 5, 0)]);
        assert_eq!(history.rates(at(2)).faces, []);
        history.push(at(3), &[face(1, 25, 0)]);
        assert_eq!(history.rates(at(3)).faces[0].in_packets_per_s, 20.0);
    }

    #[test]
    fn a_face_that_went_away_has_no_rate() {
        let mut history = History::default();
        history.push(at(0), &[face(1, 0, 0)]);
        history.push(at(1), &[face(1, 1, 0)]);
        history.push(at(2), &[]);
        assert_eq!(history.rates(at(2)).faces, []);
    }
}
