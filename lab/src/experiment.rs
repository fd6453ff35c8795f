//! Definition of an experiment, and how the lab runs one.
//!
//! An experiment is a line in [`crate::experiments::TABLE`] and a function from a [`Context`] to rows and headline.
//! This file adds what all records have: machine, commit, command and duration.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;

use crate::clock::{BelowResolution, Clock};
use crate::host::Host;
use crate::interrupt;
use crate::machine::{Machine, source_commit};
use crate::record::{Record, Row};
#[cfg(doc)]
use crate::statistics::INTERVAL_SAMPLES_MIN;
use crate::statistics::{Interval, Summary};

/// How large a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scale {
    /// Seconds; part of the tests.
    Smoke,
    /// About a minute and 4 GiB at most.
    Quick,
    /// The source's own scale, as far as memory allows.
    Full,
}

impl Scale {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// Input that the user may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// `--names`.
    Names,
    /// `--trace`.
    Trace,
    /// `--graph`.
    Graph,
    /// `--tags`.
    Tags,
}

/// One line of the table of experiments.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Id on the command line and name of the record.
    pub id: &'static str,
    /// Paper and figure or table, or "ours".
    pub source: &'static str,
    /// The question it answers.
    pub question: &'static str,
    /// Time and memory at quick and full scale.
    pub needs: &'static str,
    /// The option with input that the experiment uses.
    pub takes: Option<Input>,
    pub run: fn(&Context) -> anyhow::Result<Outcome>,
    /// Files and folders that decide its results, from the repository's root: if one changes, its record is stale.
    pub sources: &'static [&'static str],
}

/// The user's options, and what every experiment needs.
#[derive(Debug)]
pub struct Context {
    pub scale: Scale,
    /// Names to use instead of synthetic ones.
    pub names: Option<PathBuf>,
    /// Trace to use instead of an invented one, or a folder of traces.
    pub trace: Option<PathBuf>,
    /// Network to use instead of an invented one.
    pub graph: Option<PathBuf>,
    /// Tag sets to measure beside the generated ones.
    pub tags: Option<PathBuf>,
    /// Worker counts to run routers with.
    pub workers: Vec<usize>,
    /// Seed of all random choices.
    pub seed: u64,
    /// The clock, calibrated once.
    pub clock: Clock,
    /// This program, to be started again as a load generator.
    pub program: PathBuf,
    progress: ProgressBar,
}

impl Context {
    /// A context with a calibrated clock and, on a terminal, a progress bar.
    pub fn new(scale: Scale, seed: u64, workers: Vec<usize>, program: PathBuf) -> Self {
        Self {
            scale,
            names: None,
            trace: None,
            graph: None,
            tags: None,
            workers,
            seed,
            clock: Clock::calibrate(),
            program,
            progress: ProgressBar::new(0), // draws on stderr, and only if that is a terminal
        }
    }

    /// Announces the number of steps.
    pub fn plan_steps(&self, steps: usize) {
        let style = ProgressStyle::with_template("{msg:32} {wide_bar} {pos}/{len} {elapsed}, {eta} left");
        self.progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.progress.reset();
        self.progress.set_length(steps as u64);
        self.progress.set_message("");
    }

    /// Begins a step, which ends the step before; an interrupt ends the run here.
    ///
    /// # Errors
    /// If the user interrupted.
    pub fn begin_step(&self, what: &str) -> Result<(), interrupt::Interrupted> {
        self.progress.inc(u64::from(!self.progress.message().is_empty()));
        self.progress.set_message(what.to_owned());
        self.progress.tick();
        interrupt::check()
    }

    /// Ends the run within a long step, if the user interrupted.
    ///
    /// # Errors
    /// If the user interrupted.
    pub fn check_interrupt(&self) -> Result<(), interrupt::Interrupted> {
        interrupt::check()
    }
}

/// The result of an experiment.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The measurements.
    pub rows: Vec<Row>,
    /// The numbers that matter.
    pub headline: BTreeMap<String, f64>,
    /// The 95 % intervals of headlines.
    pub intervals: BTreeMap<String, Interval>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Adds a row with a single value, counted or computed once.
    pub fn add_value(&mut self, case: &str, subject: &str, (metric, unit): (&str, &str), value: f64) {
        self.rows.push(Samples::one(value).row(case, subject, metric, unit, None));
    }

    /// Adds a headline that claims a size: it is refused, and a note says so, if its interval is wider than
    /// [`INTERVAL_PERCENT_MAX`] of the median.
    pub fn add_steady(&mut self, key: &str, samples: &Samples) {
        self.add_claim(key, samples, |_| false);
    }

    /// Adds a headline that claims which of two is faster or smaller: it is refused only if its interval is that wide
    /// and holds 1, too.
    pub fn add_ratio(&mut self, key: &str, ratios: &Samples) {
        self.add_claim(key, ratios, |[low, high]| low > 1.0 || high < 1.0);
    }

    fn add_claim(&mut self, key: &str, samples: &Samples, holds: impl Fn(Interval) -> bool) {
        let Some(summary) = samples.summary() else {
            self.notes.push(format!("`{key}` is refused: the clock does not resolve it."));
            return;
        };
        let interval = summary.interval();
        let [low, high] = interval.unwrap_or([summary.low, summary.high]);
        let percent = if summary.median == 0.0 { 0.0 } else { (high - low) / summary.median.abs() * 100.0 };
        if percent <= INTERVAL_PERCENT_MAX || interval.is_some_and(holds) {
            self.headline.insert(key.to_owned(), summary.median);
            self.intervals.extend(interval.map(|interval| (key.to_owned(), interval)));
        } else {
            let what = match interval {
                Some(_) => "its 95 % interval".to_owned(),
                None => format!("the range of its {} repetitions", summary.samples.len()),
            };
            let (low, high) = (short(low), short(high));
            self.notes.push(format!("`{key}` is refused: {what} is {low} to {high}, {percent:.0} % of the median."));
        }
    }
}

/// A number of an interval; without the crate that draws, which the counting of instructions does not need.
fn short(value: f64) -> String {
    if value.abs() < 100.0 { format!("{value:.3}") } else { format!("{value:.1}") }
}

/// A headline that claims a size is refused if its interval is wider. Of fewer than [`INTERVAL_SAMPLES_MIN`]
/// repetitions, their range counts.
pub const INTERVAL_PERCENT_MAX: f64 = 20.0;

/// Repetitions that spread further are repeated, where the experiment does that.
pub const SPREAD_PERCENT_MAX: f64 = 20.0;

/// The repetitions of one quantity; one refused repetition refuses the whole row.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    taken: Vec<f64>,
    refused: Option<String>,
}

impl FromIterator<f64> for Samples {
    fn from_iter<Values: IntoIterator<Item = f64>>(values: Values) -> Self {
        Self { taken: values.into_iter().collect(), refused: None }
    }
}

impl Samples {
    /// A single value.
    pub fn one(value: f64) -> Self {
        Self { taken: vec![value], refused: None }
    }

    /// A single value, or the reason why there is none.
    pub fn one_or(value: Option<f64>, reason: &str) -> Self {
        value.map_or(Self { taken: Vec::new(), refused: Some(reason.to_owned()) }, Self::one)
    }

    /// Adds a repetition.
    pub fn add(&mut self, value: f64) {
        self.taken.push(value);
    }

    /// Adds a repetition, or the reason why there is none.
    pub fn add_resolved(&mut self, value: Result<f64, BelowResolution>) {
        match value {
            Ok(value) => self.add(value),
            Err(reason) => self.refuse(reason.to_string()),
        }
    }

    pub fn refuse(&mut self, reason: String) {
        self.refused.get_or_insert(reason);
    }

    /// The repetitions so far.
    pub fn taken(&self) -> &[f64] {
        &self.taken
    }

    /// What the repetitions say; `None` if there is no repetition or one was refused.
    pub fn summary(&self) -> Option<Summary> {
        if self.refused.is_some() { None } else { Summary::of(&self.taken) }
    }

    /// The median; `None` as for [`Samples::summary`].
    pub fn median(&self) -> Option<f64> {
        self.summary().map(|summary| summary.median)
    }

    /// How far the repetitions spread, in percent of the median; `None` as for [`Samples::summary`].
    pub fn spread_percent(&self) -> Option<f64> {
        self.summary().map(|summary| summary.spread_percent)
    }

    /// Whether these ratios say anything, in words; `None` if they have no interval.
    pub fn against_one(&self, what: &str) -> Option<String> {
        let summary = self.summary()?;
        let [low, high] = summary.interval()?;
        let differs = if low > 1.0 || high < 1.0 { "differs from" } else { "does not differ from" };
        let median = summary.median;
        Some(format!("{what}: median ratio {median:.3}, 95 % interval {low:.3} to {high:.3}; it {differs} 1."))
    }

    /// Each repetition, changed by `change`.
    pub fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        Self { taken: self.taken.iter().copied().map(change).collect(), refused: self.refused.clone() }
    }

    /// Repetition by repetition, these over those.
    pub fn over(&self, others: &Self) -> Self {
        let refused = self.refused.clone().or_else(|| others.refused.clone());
        let taken = self.taken.iter().zip(&others.taken).map(|(one, other)| one / other).collect();
        Self { taken, refused }
    }

    /// The row for these samples.
    pub fn row(&self, case: &str, subject: &str, metric: &str, unit: &str, remark: Option<String>) -> Row {
        let value = self.summary();
        let refused = match (&value, &self.refused) {
            (Some(_), _) => None,
            (None, Some(reason)) => Some(reason.clone()),
            (None, None) => Some("not measured".to_owned()),
        };
        Row {
            case: case.to_owned(),
            subject: subject.to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            value,
            refused,
            remark,
        }
    }
}

impl Experiment {
    /// Runs the experiment and makes its record.
    ///
    /// # Errors
    /// If the experiment fails, or one of its checks does.
    pub fn record(&self, context: &Context, command: String) -> anyhow::Result<Record> {
        let started = Instant::now();
        let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let host = Host::measure(context.scale);
        let outcome = (self.run)(context);
        context.progress.finish_and_clear();
        let outcome = outcome?;
        Ok(Record {
            experiment: self.id.to_owned(),
            question: self.question.to_owned(),
            scale: context.scale.name().to_owned(),
            machine: Machine::describe(&context.clock),
            host: Some(host),
            commit: source_commit(),
            command,
            seed: context.seed,
            started_unix_s,
            duration_s: started.elapsed().as_secs_f64(),
            memory_peak_mib: crate::machine::memory_peak_mib(),
            rows: outcome.rows,
            headline: outcome.headline,
            intervals: outcome.intervals,
            notes: outcome.notes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_is_refused_if_its_interval_is_wider_than_its_claim() {
        let mut outcome = Outcome::default();
        let many = |low: f64, high: f64| (0..=40).map(|step| low + (high - low) * f64::from(step) / 40.0).collect();
        outcome.add_steady("few", &[100.0, 110.0, 119.0].into_iter().collect());
        outcome.add_steady("few and wild", &[100.0, 110.0, 140.0].into_iter().collect());
        outcome.add_steady("many", &many(80.0, 120.0));
        outcome.add_steady("wild", &many(1.0, 8.0));
        outcome.add_ratio("faster", &many(1.0, 8.0));
        outcome.add_ratio("undecided", &many(0.1, 1.9));
        outcome.add_steady("none", &Samples::default());
        assert_eq!(outcome.headline.keys().collect::<Vec<_>>(), ["faster", "few", "many"]);
        assert_eq!(outcome.intervals.keys().collect::<Vec<_>>(), ["faster", "many"], "{:?}", outcome.intervals);
        let [wild, all, undecided, none] = &outcome.notes[..] else { panic!("{:?}", outcome.notes) };
        assert!(wild.contains("the range of its 3 repetitions is 100.0 to 140.0, 36 %"), "{wild}");
        assert!(all.contains("`wild` is refused: its 95 % interval is"), "{all}");
        assert!(undecided.contains("`undecided`") && none.contains("`none`"));
    }

    #[test]
    fn an_interval_that_holds_one_is_no_difference() {
        let note = |values: &[f64]| values.iter().copied().collect::<Samples>().against_one("x");
        assert!(note(&[0.99, 1.01, 1.0, 0.98, 1.02, 1.0]).expect("six").ends_with("it does not differ from 1."));
        assert!(
            note(&[1.49, 1.51, 1.5, 1.48, 1.52, 1.5]).expect("six").ends_with("1.480 to 1.520; it differs from 1.")
        );
        assert_eq!(note(&[1.0; 5]), None);
    }

    #[test]
    fn one_refused_repetition_refuses_the_row() {
        let mut samples = Samples::default();
        samples.add(1.0);
        samples.add_resolved(Err(BelowResolution { interval_ns: 1, least_ns: 2 }));
        samples.add(3.0);
        let row = samples.row("case", "subject", "metric", "unit", None);
        assert_eq!(row.value, None);
        assert!(row.refused.is_some_and(|reason| reason.contains("1 ns")));
        assert_eq!(Samples::default().row("", "", "", "", None).refused.as_deref(), Some("not measured"));
    }
}
