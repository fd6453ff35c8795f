//! Report: the results of the Interests, and the times of the answers.

use crate::{ExitCode, Failure, quantity::bits_per_second};
use namewire_load::Counts;
use serde::Serialize;
use std::time::Duration;

/// What is printed at the end.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    sent: u64,
    received: u64,
    nacked: u64,
    lost: u64,
    lost_share: f64,
    held_back: u64,
    unexpected: u64,
    elapsed_s: f64,
    sent_per_s: f64,
    received_per_s: f64,
    data_bits_per_s: f64,
    /// From when an Interest was due until its Data came; absent without Data.
    time_us: Option<Times>,
}

#[derive(Debug, Serialize)]
struct Times {
    min: f64,
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

impl Report {
    pub(super) fn new(counts: &Counts, elapsed: Duration) -> Self {
        let per_s = |count: u64| if elapsed.is_zero() { 0.0 } else { count as f64 / elapsed.as_secs_f64() };
        let times = &counts.times;
        let us = |ns: Option<f64>| ns.unwrap_or_default() / 1000.0;
        let quantile = |part| us(times.quantile(part).ok().flatten());
        let time_us = (times.count() > 0).then(|| Times {
            min: us(times.min()),
            mean: us(times.sum()) / times.count() as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: us(times.max()),
        });
        let ended = counts.received + counts.nacked + counts.lost;
        Report {
            sent: counts.sent,
            received: counts.received,
            nacked: counts.nacked,
            lost: counts.lost,
            lost_share: if ended == 0 { 0.0 } else { counts.lost as f64 / ended as f64 },
            held_back: counts.held_back,
            unexpected: counts.unexpected,
            elapsed_s: elapsed.as_secs_f64(),
            sent_per_s: per_s(counts.sent),
            received_per_s: per_s(counts.received),
            data_bits_per_s: bits_per_second(counts.data_bytes, elapsed),
            time_us,
        }
    }

    /// A line for the counts of a second.
    pub(super) fn line(&self) -> String {
        let (Report { sent_per_s, received_per_s, nacked, lost, held_back, .. }, time) = (self, &self.time_us);
        let p99 = time.as_ref().map_or(String::new(), |time| format!(", 99 % within {:.1} µs", time.p99));
        format!(
            "{sent_per_s:.0} Interests/s, {received_per_s:.0} Data/s, {nacked} Nacks, {lost} lost, {held_back} held back{p99}"
        )
    }

    /// Fails if nothing but failures came.
    pub(super) fn outcome(&self) -> Result<(), Failure> {
        match (self.received, self.nacked, self.lost) {
            (0, 1.., _) => Err(Failure::new(ExitCode::Nack, "no Data, only Nacks")),
            (0, 0, 1..) => Err(Failure::new(ExitCode::Timeout, "no answers")),
            _ => Ok(()),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{} sent, {} received, {} Nacks, {} lost ({:.2} %), {} held back, {} unexpected\n\
             {:.0} Interests/s, {:.0} Data/s, {:.1} Mbit/s of Data, {:.2} s",
            self.sent,
            self.received,
            self.nacked,
            self.lost,
            self.lost_share * 100.0,
            self.held_back,
            self.unexpected,
            self.sent_per_s,
            self.received_per_s,
            self.data_bits_per_s / 1e6,
            self.elapsed_s,
        );
        if let Some(Times { min, mean, p50, p90, p99, p999, max }) = &self.time_us {
            text += &format!(
                "\ntime in µs: min {min:.1}, mean {mean:.1}, 50 % {p50:.1}, 90 % {p90:.1}, 99 % {p99:.1}, \
                 99.9 % {p999:.1}, max {max:.1}"
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_add_up() {
        let mut all = Counts::default();
        for flow in 1..=2 {
            let mut counts =
                Counts { sent: 100, received: 98, lost: 1, nacked: 1, data_bytes: 1_000, ..Counts::default() };
            (1..=98).for_each(|time| counts.note_time(time * 1000 * flow));
            all.add(&counts);
        }
        let report = Report::new(&all, Duration::from_secs(2));
        assert_eq!((report.sent, report.received, report.lost, report.nacked), (200, 196, 2, 2));
        assert_eq!((report.sent_per_s, report.data_bits_per_s, report.lost_share), (100.0, 8000.0, 0.01));
        let times = report.time_us.as_ref().unwrap();
        assert!(times.min == 1.0 && times.max == 196.0, "{}", times.max);
        assert!((64.0..67.0).contains(&times.p50), "{}", times.p50);
        assert!(report.text().contains("200 sent, 196 received, 2 Nacks, 2 lost (1.00 %)"), "{}", report.text());
        assert!(Report::new(&Counts::default(), Duration::ZERO).time_us.is_none());
    }
}
