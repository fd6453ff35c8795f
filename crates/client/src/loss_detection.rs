//! Loss detection: which of the segments in flight are lost?
//!
//! 1. **By later arrivals**, in the order of sending (RACK, RFC 8985). A segment is lost when one that was asked for
//!    later has been answered, and its own answer is overdue: four variations above the mean round trip (RFC 6298
//!    without the floor of 200 ms), and longer than any answer of late.
//!    N.B. By the mean alone 35 to 104 of 37,500 segments that a cache held in part were taken for lost.
//! 2. **By a probe** (tail loss probe, RFC 8985 §7). Nothing is asked for later than the last segments of an object or
//!    of a window. If nothing has happened for two round trips, the latest segment is asked for again; its answer shows
//!    the losses before it. So a window of two segments that are both lost does not wait for its time-out.
//! 3. **By time-out**, where neither helps; the caller keeps those deadlines.
//!
//! Forwarders drop an Interest that comes again too soon: NFD's strategies suppress it for 10 ms after the last one,
//! then 20 ms, and so on up to 250 ms. [`repeat_after`] says when it is sent on. A segment leaves the window as soon as
//! a later one is answered, and waits for its turn outside. N.B. While it waited within, two of them filled a window of
//! two or three, and 10 MB at 10 % of loss took 2.1 to 6.4 s.
//!
//! RACK measures one path. The segments of an object may come from a near cache and from a far producer. While those of
//! the cache set the mean, every far one looks lost, and as it was asked for twice its round trip is no sample (Karn's
//! rule): the mean would never learn. So if more than [`EARLY_SHARE_MAX`] of the answers are to segments asked for
//! again, the wait doubles, until their answers come before it.
//!
//! Cost: amortised O(1) per segment. Memory: one entry for each Interest sent within the wait.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};
use tokio::time::Instant;

/// A forwarder sends an Interest on again this long after the first; two milliseconds more than NFD's, because the two
/// may take different times to get there.
const REPEAT_AFTER_FIRST: Duration = Duration::from_millis(12);
/// How often that time doubles: to 384 ms, more than NFD's longest.
const DOUBLINGS_MAX: u32 = 5;
/// Least time without any event before a probe.
const PROBE_WAIT_MIN: Duration = Duration::from_millis(12);

/// Share of answers to segments asked for again, above which the wait is too short. Ten percent of loss in each
/// direction makes a share of 0.19.
const EARLY_SHARE_MAX: f64 = 0.4;
const EARLY_SHARE_WEIGHT: f64 = 1.0 / 16.0;
/// Largest factor on the wait.
const PATIENCE_MAX: u32 = 4096;
/// The factor halves after so many answers with a small share.
const CALM_ANSWERS: u32 = 64;

/// An Interest that was sent.
struct Sent {
    at: Instant,
    segment: u64,
}

/// Says which segments are lost.
pub(crate) struct LossDetector {
    /// In the order of sending.
    sent: VecDeque<Sent>,
    /// Those before the latest one with an answer, less those that have been answered since.
    overtaken: BTreeSet<(Instant, u64)>,
    round_trip_min: Duration,
    early_share: f64,
    patience: u32,
    calm_answers: u32,
    /// The latest Interest or answer.
    last_event: Option<Instant>,
    /// Sent since then.
    probes: u32,
}

/// How long after its Interest number `attempts` (from 1) a segment may be asked for again.
pub(crate) fn repeat_after(attempts: u32) -> Duration {
    REPEAT_AFTER_FIRST * (1 << attempts.saturating_sub(1).min(DOUBLINGS_MAX))
}

impl LossDetector {
    pub(crate) fn new() -> Self {
        LossDetector {
            sent: VecDeque::new(),
            overtaken: BTreeSet::new(),
            round_trip_min: Duration::MAX,
            early_share: 0.0,
            patience: 1,
            calm_answers: 0,
            last_event: None,
            probes: 0,
        }
    }

    /// An Interest was sent for this segment.
    pub(crate) fn sent(&mut self, segment: u64, at: Instant) {
        self.sent.push_back(Sent { at, segment });
        self.last_event = Some(at);
    }

    /// A segment was answered whose last Interest, number `attempts`, was sent at `sent_at`. `last_sent` gives the time
    /// of another segment's last Interest while it is in flight.
    pub(crate) fn answered(
        &mut self,
        segment: u64,
        attempts: u32,
        sent_at: Instant,
        now: Instant,
        last_sent: impl Fn(u64) -> Option<Instant>,
    ) {
        self.overtaken.remove(&(sent_at, segment));
        let round_trip = now.duration_since(sent_at);
        if attempts == 1 {
            self.round_trip_min = self.round_trip_min.min(round_trip);
        }
        // The answer to a segment asked for twice may belong to the first Interest. Counting it as one to the second
        // would declare segments between the two lost. It belongs to the first if it came too soon.
        if attempts == 1 || round_trip >= self.round_trip_min {
            while let Some(first) = self.sent.front().filter(|first| first.at <= sent_at) {
                // Others were answered, or asked for again.
                if last_sent(first.segment) == Some(first.at) {
                    self.overtaken.insert((first.at, first.segment));
                }
                self.sent.pop_front();
            }
        }
        self.last_event = Some(now);
        self.probes = 0;
        self.early_share += (f64::from(u8::from(attempts > 1)) - self.early_share) * EARLY_SHARE_WEIGHT;
        if self.early_share > EARLY_SHARE_MAX {
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
            (self.early_share, self.calm_answers) = (0.0, 0);
        } else if self.early_share < EARLY_SHARE_MAX / 2.0 && self.patience > 1 {
            self.calm_answers += 1;
            if self.calm_answers == CALM_ANSWERS {
                self.patience /= 2;
                self.calm_answers = 0;
            }
        }
    }

    /// Takes the next segment that is lost at `now`. `overdue` is the wait by the estimate, `wait_max` the time-out;
    /// `last_sent` gives the time of a segment's last Interest while it is in flight.
    pub(crate) fn take_lost(
        &mut self,
        now: Instant,
        overdue: Duration,
        wait_max: Duration,
        last_sent: impl Fn(u64) -> Option<Instant>,
    ) -> Option<u64> {
        let wait = (overdue * self.patience).min(wait_max);
        while let Some((at, segment)) = self.overtaken.first().copied().filter(|(at, _)| *at + wait <= now) {
            self.overtaken.pop_first();
            if last_sent(segment) == Some(at) {
                return Some(segment);
            }
        }
        None
    }

    /// Segments in flight that are probably lost, because a later one was answered. They need no room in the window.
    pub(crate) fn overtaken(&self) -> usize {
        self.overtaken.len()
    }

    /// When [`LossDetector::take_lost`] may have something next without another arrival.
    pub(crate) fn next_due(&self, overdue: Duration, wait_max: Duration) -> Option<Instant> {
        self.overtaken.first().map(|(at, _)| *at + (overdue * self.patience).min(wait_max))
    }

    /// When a probe is to be sent, if nothing happens before. Each waits twice as long as the one before it, as long as
    /// that is less than `wait_max`.
    pub(crate) fn probe_due(
        &self,
        overdue: Duration,
        smoothed: Option<Duration>,
        wait_max: Duration,
    ) -> Option<Instant> {
        let wait = (smoothed? * 2).max(overdue).max(PROBE_WAIT_MIN) * self.patience * (1 << self.probes.min(16));
        Some(self.last_event? + wait).filter(|_| wait < wait_max)
    }

    /// A probe is about to be sent.
    pub(crate) fn probed(&mut self) {
        self.probes += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const MS: Duration = Duration::from_millis(1);
    const RTO: Duration = Duration::from_millis(200);

    /// The segments in flight and their last Interests.
    #[derive(Default)]
    struct Flight(HashMap<u64, Instant>);

    impl Flight {
        fn send(&mut self, detector: &mut LossDetector, segment: u64, at: Instant) {
            self.0.insert(segment, at);
            detector.sent(segment, at);
        }

        fn answer(&mut self, detector: &mut LossDetector, segment: u64, attempts: u32, now: Instant) {
            let sent_at = self.0.remove(&segment).unwrap();
            detector.answered(segment, attempts, sent_at, now, |segment| self.0.get(&segment).copied());
        }

        fn lost(&mut self, detector: &mut LossDetector, now: Instant, overdue: Duration) -> Vec<u64> {
            let mut lost = Vec::new();
            while let Some(segment) = detector.take_lost(now, overdue, RTO, |segment| self.0.get(&segment).copied()) {
                self.0.remove(&segment);
                lost.push(segment);
            }
            lost
        }
    }

    #[test]
    fn a_later_answer_shows_a_loss_and_only_when_it_is_overdue() {
        let (mut detector, mut flight, start) = (LossDetector::new(), Flight::default(), Instant::now());
        for segment in 0..4 {
            flight.send(&mut detector, segment, start + MS * segment as u32);
        }
        let overdue = 50 * MS;
        assert_eq!(flight.lost(&mut detector, start + 100 * MS, overdue), [], "nothing has come: a time-out's matter");
        flight.answer(&mut detector, 2, 1, start + 42 * MS);
        assert_eq!(flight.lost(&mut detector, start + 49 * MS, overdue), []);
        assert_eq!(detector.next_due(overdue, RTO), Some(start + 50 * MS));
        assert_eq!(flight.lost(&mut detector, start + 51 * MS, overdue), [0, 1]);
        assert_eq!(flight.lost(&mut detector, start + 500 * MS, overdue), [], "3 was sent after the one that came");
    }

    #[test]
    fn an_interest_is_repeated_only_when_forwarders_send_it_on() {
        let waits: Vec<u128> = (1..9).map(|attempts| repeat_after(attempts).as_millis()).collect();
        assert_eq!(waits, [12, 24, 48, 96, 192, 384, 384, 384]);
    }

    /// Answers of a near cache set the estimate to 1 ms, then everything comes from 100 ms away.
    #[test]
    fn far_segments_are_soon_no_longer_taken_for_lost() {
        let (mut detector, mut flight, mut now) = (LossDetector::new(), Flight::default(), Instant::now());
        let mut early = 0;
        for segment in (0..2000).step_by(2) {
            flight.send(&mut detector, segment, now);
            flight.send(&mut detector, segment + 1, now + MS / 10);
            flight.answer(&mut detector, segment + 1, 1, now + MS); // from the cache
            let is_early = flight.lost(&mut detector, now + 100 * MS, MS) == [segment];
            if is_early {
                early += 1;
                flight.send(&mut detector, segment, now + 12 * MS);
            }
            now += 100 * MS;
            flight.answer(&mut detector, segment, if is_early { 2 } else { 1 }, now);
        }
        assert!(early < 600, "{early} of 1000 far segments were asked for twice");
    }

    #[test]
    fn a_silence_is_probed_before_the_time_out() {
        let (mut detector, mut flight, start) = (LossDetector::new(), Flight::default(), Instant::now());
        assert_eq!(detector.probe_due(MS, Some(MS), RTO), None, "nothing was sent");
        flight.send(&mut detector, 0, start);
        assert_eq!(detector.probe_due(30 * MS, Some(20 * MS), RTO), Some(start + 40 * MS));
        assert_eq!(detector.probe_due(MS, None, RTO), None, "no estimate");
        detector.probed();
        assert_eq!(detector.probe_due(MS, Some(MS), RTO), Some(start + 24 * MS));
        (0..4).for_each(|_| detector.probed());
        assert_eq!(detector.probe_due(MS, Some(MS), RTO), None, "the time-out comes first");
        flight.answer(&mut detector, 0, 1, start + 50 * MS);
        assert_eq!(detector.probe_due(MS, Some(MS), RTO), Some(start + 62 * MS));
    }
}
