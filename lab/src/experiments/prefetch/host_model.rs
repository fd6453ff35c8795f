//! What would the ratios of the schedules be on another machine?
//!
//! Two machines of one name gave `vector_over_naive` 2.2 and 2.9. What differs is the latency of memory, which naive
//! waits for and the others hide. So the model is
//!
//! ```text
//!   t = c · s + w · L      t  cycles of a packet by one schedule     c  its cycles of work
//!                          L  latency of a random line, in cycles    w  lines of memory that it waits for
//!                          s  how much longer a loop without memory accesses takes than at best
//! ```
//!
//! L and s are measured right before and after the packets. Every repetition measures the packets twice: while the
//! other processors rest, and beside a thread on another processor that reads memory as fast as it can. That is what
//! others do to this machine, and it changes L. A measurement in which L itself changed is made again, because nobody
//! knows which L the packets met. Least squares over all repetitions of both give c and w of each schedule, and these
//! give the ratio at any latency. How far the fit is off at its worst stands beside it: above [`ERROR_PERCENT_MAX`] the
//! model fails, because the ratio depends on the machine in other ways, too.
//!
//! Limits: one pair of processors, which may share a core; a processor with other caches or another width has another
//! c. On a machine with one processor there is no neighbour, and no model.

use super::forwarder::{Finding, Forwarder};
use super::turns::{self, BATCHES_PER_SLICE, CYCLES, Cases, OVER_NAIVE};
use crate::disturbance::{Disturbances, Spins};
use crate::experiment::{Outcome, Samples};
use crate::process;
use crate::sample_table::SampleTable;
use crate::tsc;
use anyhow::Context as _;
use namewire_engine::Schedule;
use namewire_tables::{Fib, PageArray, PageSize};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rows with and without a neighbour.
const ALONE: &str = "Interest and Data, other processors rest";
const BESIDE: &str = "Interest and Data, beside a reader of memory";
const LINE: &str = "latency of a random line";
const SLOWER: &str = "loop over its fastest run";
/// The subject of these two.
const HOST: &str = "host";
/// Latencies for which the model says the ratio, in nanoseconds.
const LINES_NS: [u32; 4] = [60, 90, 120, 180];
/// Dependent reads of one measurement: half a millisecond.
const READS: usize = 4_096;
/// L may change by this factor during a measurement.
const STEADY: f64 = 1.25;
/// Measurements, of which the last counts even if L changed.
const TRIES: usize = 5;
/// A model that is further off fails.
const ERROR_PERCENT_MAX: f64 = 20.0;
/// Runs of the loop in one measurement.
const SPINS: usize = 16;
const WORDS_PER_LINE: usize = 8;
const WORDS_PER_PAGE: usize = 512;

/// Measures for the model.
pub(super) struct HostModel {
    array: PageArray<AtomicU64>,
    state: u64,
    fastest_spin: f64,
}

impl HostModel {
    /// `bytes` should be far more than the caches hold.
    pub(super) fn new(bytes: usize) -> anyhow::Result<Self> {
        let array = PageArray::<AtomicU64>::zeroed(bytes / size_of::<u64>(), PageSize::Transparent)
            .context("no memory to measure its latency in")?;
        array.iter().step_by(WORDS_PER_PAGE).for_each(|word| word.store(0, Ordering::Relaxed));
        Ok(Self { array, state: 1, fastest_spin: f64::INFINITY })
    }

    /// Adds a repetition without a neighbour, and one beside it.
    pub(super) fn measure(
        &mut self,
        forwarder: &mut Forwarder,
        fib: &Fib,
        slices: usize,
        table: &mut SampleTable,
    ) -> anyhow::Result<()> {
        if process::processors_to_pin().is_none() {
            return Ok(());
        }
        self.measure_case(ALONE, forwarder, fib, slices, table)?;
        let neighbours = PageArray::<AtomicU64>::zeroed(self.array.len(), PageSize::Transparent)?;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| read_until(&is_over, &neighbours));
            let measured = self.measure_case(BESIDE, forwarder, fib, slices, table);
            is_over.store(true, Ordering::Relaxed);
            measured
        })
    }

    fn measure_case(
        &mut self,
        case: &'static str,
        forwarder: &mut Forwarder,
        fib: &Fib,
        slices: usize,
        table: &mut SampleTable,
    ) -> anyhow::Result<()> {
        let (mut taken, mut is_steady) = self.measure_once(case, forwarder, fib, slices)?;
        for _ in 1..TRIES {
            if is_steady {
                break;
            }
            (taken, is_steady) = self.measure_once(case, forwarder, fib, slices)?;
        }
        table.add_medians(taken);
        Ok(())
    }

    /// One measurement, and whether the latency of memory was the same before and after it.
    fn measure_once(
        &mut self,
        case: &'static str,
        forwarder: &mut Forwarder,
        fib: &Fib,
        slices: usize,
    ) -> anyhow::Result<(SampleTable, bool)> {
        let mut taken = SampleTable::default();
        let before = self.host();
        let cases = Cases { of_kinds: [None; 2], exchange: case };
        // A neighbour slows the processor down as well: nothing is repeated, because that is what is measured.
        turns::measure(&cases, slices, &mut Disturbances::new(0), &mut taken, |schedule, _| {
            let cycles = forwarder.exchange(fib, schedule, BATCHES_PER_SLICE, Finding::Name)?;
            Ok([cycles.interests, cycles.data])
        })?;
        let after = self.host();
        taken.add(case, HOST, LINE, "TSC cycles", f64::midpoint(before.line_cycles, after.line_cycles));
        taken.add(case, HOST, SLOWER, "ratio", f64::midpoint(before.slower, after.slower));
        Ok((taken, before.is_as_fast_as(after)))
    }

    fn host(&mut self) -> Host {
        let line_cycles = self.line_cycles();
        let mut spins = Spins::default();
        (0..SPINS).for_each(|_| spins.spin());
        let spin = spins.mean();
        self.fastest_spin = self.fastest_spin.min(spin);
        Host { line_cycles, slower: spin / self.fastest_spin }
    }

    /// Every word is 0, which the processor learns only by reading it.
    fn line_cycles(&mut self) -> f64 {
        let lines = self.array.len() / WORDS_PER_LINE;
        let before = tsc::read_in_order().unwrap_or(0);
        for _ in 0..READS {
            self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let line = ((u128::from(self.state) * lines as u128) >> 64) as usize;
            self.state ^= self.array[line * WORDS_PER_LINE].load(Ordering::Relaxed);
        }
        tsc::read_in_order().unwrap_or(0).saturating_sub(before) as f64 / READS as f64
    }
}

/// Reads an array from its begin to its end, again and again, on another processor than the first.
fn read_until(is_over: &AtomicBool, array: &[AtomicU64]) {
    process::run_on_processor(1);
    array.iter().step_by(WORDS_PER_PAGE).for_each(|word| word.store(0, Ordering::Relaxed));
    while !is_over.load(Ordering::Relaxed) {
        for part in array.chunks(WORDS_PER_PAGE * WORDS_PER_PAGE) {
            black_box(part.iter().fold(0_u64, |sum, word| sum.wrapping_add(word.load(Ordering::Relaxed))));
            if is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// What the machine cost during a repetition.
#[derive(Clone, Copy, Debug)]
struct Host {
    line_cycles: f64,
    slower: f64,
}

impl Host {
    fn is_as_fast_as(self, other: Self) -> bool {
        let (low, high) = (self.line_cycles.min(other.line_cycles), self.line_cycles.max(other.line_cycles));
        high <= low * STEADY
    }
}

/// A repetition of one schedule.
#[derive(Clone, Copy, Debug)]
struct Point {
    host: Host,
    took_cycles: f64,
}

/// The model of one schedule.
#[derive(Clone, Copy, Debug)]
struct Model {
    work_cycles: f64,
    waits: f64,
}

impl Model {
    /// Least squares; `None` if the latency was the same in all points.
    fn of(points: &[Point]) -> Option<Self> {
        let sum = |term: fn(&Point) -> f64| points.iter().map(term).sum::<f64>();
        let (ss, sl) = (sum(|at| at.host.slower.powi(2)), sum(|at| at.host.slower * at.host.line_cycles));
        let ll = sum(|at| at.host.line_cycles.powi(2));
        let (st, lt) = (sum(|at| at.host.slower * at.took_cycles), sum(|at| at.host.line_cycles * at.took_cycles));
        let determinant = ss * ll - sl * sl;
        if determinant <= 1e-9 * ss * ll {
            return None;
        }
        Some(Self { work_cycles: (st * ll - lt * sl) / determinant, waits: (lt * ss - st * sl) / determinant })
    }

    fn cycles(self, host: Host) -> f64 {
        self.work_cycles * host.slower + self.waits * host.line_cycles
    }

    /// The largest difference from a point, in percent of it.
    fn error_percent(self, points: &[Point]) -> f64 {
        let error = |at: &Point| (self.cycles(at.host) / at.took_cycles - 1.0).abs() * 100.0;
        points.iter().map(error).fold(0.0, f64::max)
    }
}

fn points(table: &SampleTable, schedule: Schedule) -> Vec<Point> {
    let of = |case: &str, subject: &str, metric: &str| {
        table.find(case, subject, metric).map(Samples::taken).unwrap_or_default().to_vec()
    };
    [ALONE, BESIDE]
        .into_iter()
        .flat_map(|case| {
            let hosts = of(case, HOST, LINE).into_iter().zip(of(case, HOST, SLOWER));
            hosts.zip(of(case, schedule.name(), "cycles"))
        })
        .map(|((line_cycles, slower), took_cycles)| Point { host: Host { line_cycles, slower }, took_cycles })
        .collect()
}

/// The rows of the model, and the ratio beside a neighbour.
pub(super) fn add_to(outcome: &mut Outcome, table: &SampleTable, tsc_hz: f64) {
    const CASE: &str = "model";
    let Some(beside) = table.find(BESIDE, Schedule::Vector.name(), OVER_NAIVE) else {
        outcome.notes.push("No model of the host: this machine has one processor.".to_owned());
        return;
    };
    outcome.add_ratio("vector_over_naive_beside_a_reader", &beside.map(f64::recip));
    let mut error_percent: f64 = 0.0;
    let models: Vec<(Schedule, Model)> = Schedule::ALL
        .into_iter()
        .filter_map(|schedule| {
            let points = points(table, schedule);
            let model = Model::of(&points)?;
            outcome.add_value(CASE, schedule.name(), ("work", CYCLES), model.work_cycles);
            outcome.add_value(CASE, schedule.name(), ("waits for a random line", "per packet"), model.waits);
            let error = model.error_percent(&points);
            outcome.add_value(CASE, schedule.name(), ("largest error", "%"), error);
            error_percent = error_percent.max(error);
            Some((schedule, model))
        })
        .collect();
    let model = |wanted| models.iter().find(|(schedule, _)| *schedule == wanted).map(|(_, model)| *model);
    let Some((naive, vector)) = model(Schedule::Naive).zip(model(Schedule::Vector)) else { return };
    let ratios = LINES_NS.map(|line_ns| {
        let host = Host { line_cycles: f64::from(line_ns) * tsc_hz / 1e9, slower: 1.0 };
        let ratio = naive.cycles(host) / vector.cycles(host);
        let metric = format!("vector over naive, a line in {line_ns} ns");
        outcome.add_value(CASE, "other machines", (&metric, "ratio"), ratio);
        format!("{ratio:.2} where a line takes {line_ns} ns")
    });
    if error_percent > ERROR_PERCENT_MAX {
        outcome.notes.push(format!(
            "The model of the host fails: it is off by up to {error_percent:.0} %, so the ratios depend on the host in \
             other ways than by the latency of memory."
        ));
        return;
    }
    outcome.notes.push(format!(
        "By the model of the host, naive waits for {:.1} lines of memory in a packet and vector for {:.1}; vector would be \
         faster {}.",
        naive.waits,
        vector.waits,
        ratios.join(", ")
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(line_cycles: f64, slower: f64, took_cycles: f64) -> Point {
        Point { host: Host { line_cycles, slower }, took_cycles }
    }

    #[test]
    fn work_and_waits_are_found_again() {
        let took = |line_cycles: f64, slower: f64| point(line_cycles, slower, 900.0 * slower + 6.0 * line_cycles);
        let points = [took(200.0, 1.0), took(210.0, 1.02), took(340.0, 1.1), took(350.0, 1.0)];
        let model = Model::of(&points).expect("two latencies");
        assert!((model.work_cycles - 900.0).abs() < 1e-6 && (model.waits - 6.0).abs() < 1e-9, "{model:?}");
        assert!(model.error_percent(&points) < 1e-9);
        let off = [&points[..], &[point(200.0, 1.0, 3_000.0)]].concat();
        assert!(model.error_percent(&off) > 25.0);
    }

    #[test]
    fn a_host_that_changed_is_seen() {
        let host = |line_cycles| Host { line_cycles, slower: 1.0 };
        assert!(host(400.0).is_as_fast_as(host(490.0)) && host(490.0).is_as_fast_as(host(400.0)));
        assert!(!host(400.0).is_as_fast_as(host(510.0)) && !host(4_000.0).is_as_fast_as(host(400.0)));
    }

    #[test]
    fn one_latency_gives_no_model() {
        assert!(Model::of(&[]).is_none());
        assert!(Model::of(&[point(200.0, 1.0, 2_000.0), point(200.0, 1.0, 2_100.0)]).is_none());
    }

    #[test]
    fn a_neighbour_ends_when_it_is_told() {
        let (is_over, array) = (AtomicBool::new(true), [const { AtomicU64::new(0) }; 2 * WORDS_PER_PAGE]);
        read_until(&is_over, &array);
    }
}
