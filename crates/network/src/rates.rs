//! Rates of a router over the last ten seconds, from its successive summaries.
//!
//! A router of ours tells its own rates of traffic. NFD only counts, and no router tells rates of drops. So a history
//! keeps the counters of the last ten seconds. A counter that went back was reset, and counts from nothing. A router
//! that started again begins a new history.
//!
//! Time is an argument. Limit: one sample a second, so at most a dozen.

use crate::summary::{Drops, Rates, Summary, Traffic};
use serde::Serialize;
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

/// The span of time that rates are about.
pub const WINDOW: Duration = Duration::from_secs(10);
/// The least time between two samples that are kept. A little less than a second, for one that comes early.
const SPACING: Duration = Duration::from_millis(900);
/// Over a shorter time there are no rates: they would jump.
const SPAN_MIN: Duration = Duration::from_millis(500);

/// Drops of one reason per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DropRate {
    /// The reason.
    pub reason: String,
    /// How many per second.
    pub per_s: f64,
    /// How many since the start.
    pub count: u64,
}

/// The counters of the last ten seconds of one router, oldest first.
#[derive(Debug, Default)]
pub struct History {
    kept: VecDeque<Counters>,
}

#[derive(Debug)]
struct Counters {
    at: Duration,
    start_unix_ms: u64,
    all: Traffic,
    faces: HashMap<u64, Traffic>,
    drops: HashMap<String, u64>,
}

impl Counters {
    fn of(at: Duration, summary: &Summary) -> Self {
        Counters {
            at,
            start_unix_ms: summary.start_unix_ms,
            all: summary.traffic,
            faces: summary.faces.iter().map(|face| (face.id, face.traffic)).collect(),
            drops: summary.drops.iter().map(|drops| (drops.reason.clone(), drops.count)).collect(),
        }
    }
}

impl History {
    /// Notes a summary that came `at` a time, and adds the rates that it lacks. Gives the drops that rose, most first.
    pub fn push(&mut self, at: Duration, summary: &mut Summary) -> Vec<DropRate> {
        let is_of_same_run = |last: &Counters| last.start_unix_ms == summary.start_unix_ms && last.at <= at;
        if !self.kept.back().is_some_and(is_of_same_run) {
            self.kept.clear();
        }
        let count = self.kept.len();
        if count >= 2 && self.kept[count - 1].at - self.kept[count - 2].at < SPACING {
            self.kept.pop_back();
        }
        self.kept.push_back(Counters::of(at, summary));
        while self.kept.len() > 2 && self.kept[1].at + WINDOW <= at {
            self.kept.pop_front();
        }
        let (Some(old), Some(new)) = (self.kept.front(), self.kept.back()) else { return Vec::new() };
        let span = new.at - old.at;
        if span < SPAN_MIN {
            return Vec::new();
        }
        summary.rates = summary.rates.or_else(|| Some(rates(old.all, new.all, span)));
        for face in &mut summary.faces {
            let before = old.faces.get(&face.id);
            face.rates = face.rates.or_else(|| before.map(|before| rates(*before, face.traffic, span)));
        }
        let rate = |Drops { reason, count }: &Drops| {
            let rise = rise(old.drops.get(reason).copied().unwrap_or(0), *count);
            DropRate { reason: reason.clone(), per_s: rise as f64 / span.as_secs_f64(), count: *count }
        };
        let mut risen: Vec<DropRate> = summary.drops.iter().map(rate).filter(|drops| drops.per_s > 0.0).collect();
        risen.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
        risen
    }
}

fn rise(old: u64, new: u64) -> u64 {
    new.checked_sub(old).unwrap_or(new)
}

fn rates(old: Traffic, new: Traffic, span: Duration) -> Rates {
    let per_s = |old, new| rise(old, new) as f64 / span.as_secs_f64();
    Rates {
        in_packets_per_s: per_s(old.in_packets, new.in_packets),
        in_bits_per_s: 8.0 * per_s(old.in_bytes, new.in_bytes),
        out_packets_per_s: per_s(old.out_packets, new.out_packets),
        out_bits_per_s: 8.0 * per_s(old.out_bytes, new.out_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::FaceSummary;

    /// A face has received 1000 bytes a second, and 3 packets a second were dropped.
    fn summary(second: u64) -> Summary {
        let traffic = Traffic { in_bytes: 1000 * second, ..Traffic::default() };
        Summary {
            faces: vec![FaceSummary { id: 300, traffic, ..FaceSummary::default() }],
            drops: vec![Drops { reason: "engine.no-route".into(), count: 3 * second }],
            ..Summary::default()
        }
        .bounded()
    }

    fn push(history: &mut History, second: u64, mut summary: Summary) -> (Summary, Vec<DropRate>) {
        let drops = history.push(Duration::from_secs(second), &mut summary);
        (summary, drops)
    }

    #[test]
    fn a_router_that_only_counts_has_rates_from_its_second_summary_on() {
        let mut history = History::default();
        let (first, drops) = push(&mut history, 0, summary(0));
        assert_eq!((first.rates, drops), (None, Vec::new()));
        for second in 1..40 {
            let (next, drops) = push(&mut history, second, summary(second));
            assert_eq!(next.rates.unwrap().in_bits_per_s, 8000.0);
            assert_eq!(next.faces[0].rates.unwrap().in_bits_per_s, 8000.0);
            assert_eq!((drops[0].per_s, drops[0].count), (3.0, 3 * second));
            assert!(history.kept.len() <= 12);
        }
    }

    #[test]
    fn what_a_router_tells_itself_stays() {
        let mut history = History::default();
        push(&mut history, 0, summary(0));
        let told = Rates { in_bits_per_s: 7.0, ..Rates::default() };
        let (next, _) = push(&mut history, 1, Summary { rates: Some(told), ..summary(1) });
        assert_eq!(next.rates, Some(told));
    }

    #[test]
    fn another_run_begins_again() {
        let mut history = History::default();
        push(&mut history, 0, summary(1000));
        let (next, drops) = push(&mut history, 1, Summary { start_unix_ms: 5, ..summary(2) });
        assert_eq!((next.rates, drops), (None, Vec::new()));
    }
}
