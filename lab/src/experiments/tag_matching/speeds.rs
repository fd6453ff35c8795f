//! Speeds: several tables search the same queries in turn.
//!
//! The time is the thread's own, so that a thread that waits for a processor does not look slow. With several threads
//! it is that of the clock, from the first start to the last end.
//!
//! A repetition draws new queries, as many as the slowest table searches in the time that [`Effort`] grants. Every
//! table searches all of them, and all must find the same. So a ratio of two tables comes from the same queries. The
//! tables take turns after each of [`SLICES`] parts of the queries: on a shared machine, memory is faster in one second
//! than in the next, and a ratio should not show this.

use std::sync::Barrier;

use anyhow::ensure;
use namewire_tagnet::Descriptor;
use serde::Deserialize;

use super::forms::{Form, Goal, Table, Totals};
use crate::clock::thread_time_ns;
use crate::experiment::{Context, SPREAD_PERCENT_MAX, Samples};

/// Fewest and most queries of a repetition.
const QUERIES: (usize, usize) = (64, 65_536);

/// Parts of the queries of a repetition.
const SLICES: usize = 16;

/// Makes the queries of a repetition.
pub(super) type Draw<'d> = dyn FnMut() -> anyhow::Result<Descriptor> + 'd;

/// How long to measure.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Effort {
    pub(super) repetitions: usize,
    /// The slowest table's time for the queries of a repetition.
    pub(super) pass_ns: u64,
    /// Series of repetitions, if each spreads too far.
    pub(super) series: usize,
}

/// Searches per second of each table and goal, by repetition.
#[derive(Clone, Debug, Default)]
pub(super) struct Speeds {
    /// By form, then by goal as in [`Goal::BOTH`], then by repetition.
    per_s: Vec<(Form, [Vec<f64>; 2])>,
    /// Subsets found by *Find All Subsets* for each query.
    pub(super) found_mean: f64,
    /// Why there are none.
    refused: Option<String>,
}

impl Speeds {
    /// Measures these tables.
    ///
    /// # Errors
    /// If two tables find different subsets, or the user interrupted.
    pub(super) fn measure(
        context: &Context,
        tables: &[&Table],
        effort: Effort,
        draw: &mut Draw<'_>,
    ) -> anyhow::Result<Self> {
        let count = queries_of_a_pass(context, tables, effort, draw)?;
        let mut speeds = Speeds::default();
        for _ in 0..effort.series {
            speeds = Self::series(context, tables, effort.repetitions, count, draw)?;
            if tables.iter().all(|table| Goal::BOTH.iter().all(|goal| speeds.is_steady(table.form, *goal))) {
                break;
            }
        }
        Ok(speeds)
    }

    fn series(
        context: &Context,
        tables: &[&Table],
        repetitions: usize,
        count: usize,
        draw: &mut Draw<'_>,
    ) -> anyhow::Result<Self> {
        let mut speeds =
            Speeds { per_s: tables.iter().map(|table| (table.form, [vec![], vec![]])).collect(), ..Self::default() };
        let mut found = 0;
        for _ in 0..repetitions {
            let queries: Vec<Descriptor> = (0..count).map(|_| draw()).collect::<anyhow::Result<_>>()?;
            for (place, goal) in Goal::BOTH.into_iter().enumerate() {
                let mut took_ns = vec![0; tables.len()];
                for slice in queries.chunks(count.div_ceil(SLICES)) {
                    let totals = Self::search(context, tables, goal, slice, &mut took_ns)?;
                    found += if goal == Goal::All { totals.found } else { 0 };
                }
                for ((_, samples), took_ns) in speeds.per_s.iter_mut().zip(took_ns) {
                    match context.clock.resolve(took_ns) {
                        Ok(ns) => samples[place].push(count as f64 * 1e9 / ns as f64),
                        Err(reason) => speeds.refused = Some(reason.to_string()),
                    }
                }
            }
        }
        speeds.found_mean = found as f64 / (repetitions * count) as f64;
        Ok(speeds)
    }

    /// Searches each table for these queries, and adds the time to that of the table.
    fn search(
        context: &Context,
        tables: &[&Table],
        goal: Goal,
        queries: &[Descriptor],
        took_ns: &mut [u64],
    ) -> anyhow::Result<Totals> {
        let mut expected: Option<Totals> = None;
        for (table, took_ns) in tables.iter().zip(took_ns) {
            context.check_interrupt()?;
            let started_ns = thread_time_ns();
            let totals = table.search(goal, queries);
            *took_ns += thread_time_ns() - started_ns;
            let (form, goal) = (table.form, goal.name());
            ensure!(*expected.get_or_insert(totals) == totals, "{form}: {goal} finds {totals:?}, others {expected:?}");
        }
        Ok(expected.unwrap_or_default())
    }

    /// The repetitions of one table, in searches per second.
    pub(super) fn samples(&self, form: Form, goal: Goal) -> Samples {
        self.combined(form, form, goal, |per_s, _| per_s)
    }

    /// A figure of two tables, computed for each repetition.
    pub(super) fn combined(&self, one: Form, other: Form, goal: Goal, figure: impl Fn(f64, f64) -> f64) -> Samples {
        let mut samples = Samples::default();
        self.refused.iter().for_each(|reason| samples.refuse(reason.clone()));
        let pairs = self.of(one, goal).iter().zip(self.of(other, goal));
        pairs.for_each(|(&one, &other)| samples.add(figure(one, other)));
        samples
    }

    /// Of these tables the fastest by its median.
    pub(super) fn fastest(&self, forms: &[Form], goal: Goal) -> Option<Form> {
        let median = |form: Form| self.samples(form, goal).median();
        let known = forms.iter().filter_map(|&form| Some((form, median(form)?)));
        known.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(form, _)| form)
    }

    fn of(&self, form: Form, goal: Goal) -> &[f64] {
        let place = usize::from(goal == Goal::Largest);
        self.per_s.iter().find(|(known, _)| *known == form).map_or(&[], |(_, samples)| &samples[place])
    }

    fn is_steady(&self, form: Form, goal: Goal) -> bool {
        self.samples(form, goal).spread_percent().is_none_or(|spread| spread <= SPREAD_PERCENT_MAX)
    }
}

/// So many queries that the slowest table takes about the wanted time.
fn queries_of_a_pass(
    context: &Context,
    tables: &[&Table],
    effort: Effort,
    draw: &mut Draw<'_>,
) -> anyhow::Result<usize> {
    let (least, most) = QUERIES;
    let mut count = least;
    loop {
        let queries: Vec<Descriptor> = (0..count).map(|_| draw()).collect::<anyhow::Result<_>>()?;
        let mut slowest_ns = 1;
        for table in tables {
            context.check_interrupt()?;
            let started_ns = context.clock.now_ns();
            std::hint::black_box(table.search(Goal::All, &queries));
            slowest_ns = slowest_ns.max(context.clock.now_ns() - started_ns);
        }
        if slowest_ns * 8 > effort.pass_ns || count >= most {
            let wanted = count as u64 * effort.pass_ns / slowest_ns;
            return Ok((wanted as usize).clamp(least, most));
        }
        count *= 4;
    }
}

/// Nanoseconds that several threads take for these queries in one table, each for its own part; and what they find.
pub(super) fn by_threads(
    context: &Context,
    table: &Table,
    goal: Goal,
    threads: usize,
    queries: &[Descriptor],
) -> (u64, Totals) {
    let ready = Barrier::new(threads);
    let runs: Vec<(u64, u64, Totals)> = std::thread::scope(|scope| {
        let search = |thread: usize| {
            let ready = &ready;
            let part = &queries[queries.len() * thread / threads..queries.len() * (thread + 1) / threads];
            scope.spawn(move || {
                ready.wait();
                let started_ns = context.clock.now_ns();
                let totals = table.search(goal, part);
                (started_ns, context.clock.now_ns(), totals)
            })
        };
        let running: Vec<_> = (0..threads).map(search).collect();
        running.into_iter().map(|thread| thread.join().expect("searching does not panic")).collect()
    });
    let started_ns = runs.iter().map(|run| run.0).min().unwrap_or(0);
    let ended_ns = runs.iter().map(|run| run.1).max().unwrap_or(0);
    (ended_ns - started_ns, runs.iter().fold(Totals::default(), |sum, run| sum.plus(run.2)))
}
