//! Timeline: what all faces together received, sent and dropped since the router started, in few points.
//!
//! Question: what happened last night, when no page was open?
//!
//! A point covers a step of time: [`FIRST_STEP`] at first. When there are [`POINTS_MAX`] of them, each two neighbours
//! become one and the step doubles. So the whole life of a router fits, with shorter steps for a younger router: an
//! hour in steps of 10 s, a day in steps of 5 min at most. A point is the mean over its step, from counters. A face
//! counts only between two samples that both include it.
//!
//! Time is an argument. Cost: one pass over all faces per step. Limits: [`POINTS_MAX`] points of 32 bytes, and 16 bytes
//! per face.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use crate::snapshot::Snapshot;

/// How much time the first points cover.
const FIRST_STEP: Duration = Duration::from_secs(10);
/// How many points there are at most.
const POINTS_MAX: usize = 360;

/// See the module.
pub(crate) struct Timeline {
    step: Duration,
    points: Vec<Point>,
    last: Option<Sample>,
}

/// The means of one step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    /// When the step ended, in milliseconds since 1970.
    unix_ms: u64,
    in_bits_per_s: f64,
    out_bits_per_s: f64,
    drops_per_s: f64,
}

/// The counters at one moment.
struct Sample {
    at: Duration,
    /// Bytes received and sent, by face.
    faces: HashMap<u64, [u64; 2]>,
    drops: u64,
}

/// What `/history.json` answers.
#[derive(Serialize)]
pub(crate) struct Past<'a> {
    /// How much time a point covers, in milliseconds. A point may cover more, if the router was slow to answer.
    step_ms: u64,
    points: &'a [Point],
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline { step: FIRST_STEP, points: Vec::new(), last: None }
    }
}

impl Timeline {
    /// When the next sample is wanted.
    pub(crate) fn due(&self) -> Duration {
        self.last.as_ref().map_or(Duration::ZERO, |last| last.at + self.step)
    }

    /// Takes a snapshot at `at`, if a sample is due. Times must not go back.
    pub(crate) fn push(&mut self, at: Duration, snapshot: &Snapshot) {
        if at < self.due() {
            return;
        }
        let sample = Sample::of(at, snapshot);
        if let Some(last) = self.last.replace(sample) {
            let sample = self.last.as_ref().expect("the new one");
            self.points.push(sample.since(&last, snapshot.now_unix_ms));
        }
        if self.points.len() == POINTS_MAX {
            self.points = self.points.chunks_exact(2).map(|pair| pair[0].and(&pair[1])).collect();
            self.step *= 2;
        }
    }

    /// All of it.
    pub(crate) fn past(&self) -> Past<'_> {
        Past { step_ms: self.step.as_millis() as u64, points: &self.points }
    }
}

impl Sample {
    fn of(at: Duration, snapshot: &Snapshot) -> Self {
        let bytes =
            snapshot.faces.iter().map(|face| (face.about.id, [face.counters.in_bytes, face.counters.out_bytes]));
        Sample { at, faces: bytes.collect(), drops: snapshot.drops.iter().map(|drop| drop.count).sum() }
    }

    fn since(&self, last: &Sample, unix_ms: u64) -> Point {
        let seconds = (self.at - last.at).as_secs_f64();
        let grown = |way: usize| -> u64 {
            let of_face = |(face, bytes): (&u64, &[u64; 2])| {
                last.faces.get(face).map_or(bytes[way], |before| bytes[way].saturating_sub(before[way]))
            };
            self.faces.iter().map(of_face).sum()
        };
        Point {
            unix_ms,
            in_bits_per_s: grown(0) as f64 * 8.0 / seconds,
            out_bits_per_s: grown(1) as f64 * 8.0 / seconds,
            drops_per_s: self.drops.saturating_sub(last.drops) as f64 / seconds,
        }
    }
}

impl Point {
    /// One point for two neighbours of the same length.
    fn and(&self, next: &Point) -> Point {
        let mean = |of: fn(&Point) -> f64| (of(self) + of(next)) / 2.0;
        Point {
            unix_ms: next.unix_ms,
            in_bits_per_s: mean(|point| point.in_bits_per_s),
            out_bits_per_s: mean(|point| point.out_bits_per_s),
            drops_per_s: mean(|point| point.drops_per_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Face;
    use namewire_packet::nfd::{DropCounter, FaceCounters};

    /// One face has received and sent 1000 bytes a second, and one packet a second was dropped.
    fn at(seconds: u64) -> Snapshot {
        let counters = FaceCounters { in_bytes: 1000 * seconds, out_bytes: 500 * seconds, ..Default::default() };
        Snapshot {
            now_unix_ms: seconds * 1000,
            faces: vec![Face { counters, ..Default::default() }],
            drops: vec![DropCounter { count: seconds, ..Default::default() }],
            ..Default::default()
        }
    }

    fn push(timeline: &mut Timeline, seconds: u64) {
        timeline.push(Duration::from_secs(seconds), &at(seconds));
    }

    #[test]
    fn a_week_fits_and_every_point_is_a_mean() {
        let mut timeline = Timeline::default();
        for seconds in 0..7 * 24 * 3600 {
            push(&mut timeline, seconds);
        }
        let points = &timeline.points;
        assert!((POINTS_MAX / 2 - 1..POINTS_MAX).contains(&points.len()), "{}", points.len());
        for (point, next) in points.iter().zip(&points[1..]) {
            assert!((point.in_bits_per_s - 8000.0).abs() < 0.01 && (point.out_bits_per_s - 4000.0).abs() < 0.01);
            assert!((point.drops_per_s - 1.0).abs() < 0.001);
            assert_eq!(next.unix_ms - point.unix_ms, timeline.step.as_millis() as u64);
        }
        assert!(points[0].unix_ms <= 2 * timeline.step.as_millis() as u64, "it begins at the start");
    }

    #[test]
    fn a_sample_that_is_not_due_changes_nothing() {
        let mut timeline = Timeline::default();
        for seconds in [0, 1, 9, 10, 12, 19] {
            push(&mut timeline, seconds);
        }
        assert_eq!(timeline.points.len(), 1);
        assert_eq!(timeline.due(), Duration::from_secs(20));
    }

    #[test]
    fn faces_that_go_or_start_again_take_nothing_away() {
        let mut timeline = Timeline::default();
        push(&mut timeline, 1000);
        timeline.push(Duration::from_secs(1010), &Snapshot { now_unix_ms: 1_010_000, ..at(5) });
        timeline.push(Duration::from_secs(1020), &Snapshot::default());
        let rates: Vec<f64> = timeline.points.iter().map(|point| point.in_bits_per_s).collect();
        assert_eq!(rates, [0.0, 0.0]);
    }
}
