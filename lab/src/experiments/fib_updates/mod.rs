//! Do look-ups suffer while the FIB is written?
//!
//! A reader looks up names in batches, with one pin per batch, like a worker. A writer inserts, removes and changes
//! prefixes, a third each, at a constant rate. In the phases of comparison it does the same to a small FIB that no
//! thread reads, because an idle second processor would change the machine. Phases alternate in rounds with a rotating
//! order; the loss is the median over the rounds. The names looked up are under prefixes that stay throughout, so every
//! answer is checked. Changes apply to those prefixes, insertions and removals to others.
//!
//! The reader's rate is per second of its own processor time: a busy machine is not a loss, but interference through
//! caches and memory is. On one processor reader and writer take turns, and the writer may be below its rate. In the
//! unpaced phases the writer makes as many updates as it can.
//!
//! Single changes that concern many rules of a lossy design are timed separately ([`large_changes`]).

mod large_changes;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use namewire_tables::{Fib, FibConfig, FibReader, HashKey, NextHop};
use serde::Deserialize;

use crate::clock::thread_time_ns;
use crate::experiment::{Context, Outcome, Samples};
use crate::fib_measurement::{FibLookups, SLICE_NAMES, next_hop, populate};
use crate::process;
use crate::record::Row;
use crate::statistics::Summary;
use crate::synthetic_names::SyntheticNames;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    prefixes: u64,
    rounds: usize,
    /// Length of a phase.
    phase_ms: u64,
}

/// Updates per second that the writer aims at: the required number and a tenth more.
const PACE_PER_S: f64 = 110_000.0;
/// Prefixes of the small FIB for the phases of comparison.
const ELSEWHERE_PREFIXES: u64 = 20_000;
/// Updates between two readings of the clock.
const BURST: u64 = 32;
/// Number of additional prefixes in the FIB, which are inserted and removed.
const COMING_AND_GOING: u64 = 4_096;

namewire_packet::names! {
    #[derive(PartialOrd, Ord)]
    enum Phase {
        /// Paced updates of another FIB.
        Elsewhere = "paced updates of another FIB",
        Paced = "paced updates",
        Unpaced = "unpaced updates",
    }
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let length = Duration::from_millis(size.phase_ms);
    context.plan_steps(2 + size.rounds);
    context.begin_step("FIB")?;
    let names = SyntheticNames::new(context.seed, size.prefixes);
    let mut writer = Writer::new(names, context)?;
    let mut elsewhere = Writer::new(SyntheticNames::new(context.seed, ELSEWHERE_PREFIXES), context)?;

    let meter = Meter::default();
    let reader = writer.fib.reader();
    let mut table: BTreeMap<(Phase, &'static str), Samples> = BTreeMap::new();
    let mut losses = Vec::new();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let reading = scope.spawn(|| meter.read_until_stopped(reader, names));
        // The writer needs its own thread too: pinning would change the processors of the calling thread.
        let writing = scope.spawn(|| {
            process::run_on_processor(1);
            (0..size.rounds).try_for_each(|round| {
                context.begin_step("look-ups and updates")?;
                let mut rates = [0.0; Phase::ALL.len()];
                for turn in 0..Phase::ALL.len() {
                    let phase = Phase::ALL[(round + turn) % Phase::ALL.len()];
                    let writer = if phase == Phase::Elsewhere { &mut elsewhere } else { &mut writer };
                    let (lookups, updates) = meter.phase(|| writer.write(phase, length))?;
                    rates[phase as usize] = lookups;
                    table.entry((phase, "look-ups")).or_default().add(lookups / 1e6);
                    table.entry((phase, "updates")).or_default().add(updates);
                }
                losses.push(1.0 - rates[Phase::Paced as usize] / rates[Phase::Elsewhere as usize]);
                anyhow::Ok(())
            })
        });
        let measured = writing.join().map_err(|_| anyhow::anyhow!("the writer panicked"));
        meter.stop();
        let read = reading.join().map_err(|_| anyhow::anyhow!("the reader panicked"))?;
        measured?.and(read)
    })?;
    writer.check()?;
    elsewhere.check()?;

    let (rows, mut headline) = rows_and_headline(&table);
    let loss = Summary::of(&losses).context("no round of phases")?;
    headline.insert("update_lookup_loss".to_owned(), loss.median);
    let notes = vec![format!(
        "{} prefixes; {} rounds of phases of {:?}; {PACE_PER_S} updates per s, of this FIB or of one with \
         {ELSEWHERE_PREFIXES} prefixes and no reader; a wrong answer would have ended the run.",
        size.prefixes, size.rounds, length
    )];
    let mut outcome = Outcome { rows, headline, notes, ..Outcome::default() };
    context.begin_step("changes of many rules")?;
    large_changes::measure(context, &mut outcome)?;
    Ok(outcome)
}

fn rows_and_headline(table: &BTreeMap<(Phase, &'static str), Samples>) -> (Vec<Row>, BTreeMap<String, f64>) {
    let mut rows = Vec::new();
    let mut headline = BTreeMap::new();
    for ((phase, metric), samples) in table {
        let unit = if *metric == "updates" { "per s" } else { "M per s of processor time" };
        let row = samples.row(phase.name(), "shared FIB", metric, unit, None);
        let key = match (phase, *metric) {
            (Phase::Paced, "updates") => Some("fib_updates_per_s"),
            (Phase::Unpaced, "updates") => Some("fib_updates_per_s_max"),
            (Phase::Elsewhere, "look-ups") => Some("quiet_mlps"),
            _ => None,
        };
        if let (Some(key), Some(value)) = (key, &row.value) {
            headline.insert(key.to_owned(), value.median);
        }
        rows.push(row);
    }
    (rows, headline)
}

/// The writing side: inserts, removes and changes in turn.
struct Writer {
    fib: Fib,
    names: SyntheticNames,
    rng_state: u64,
    /// Prefixes with numbers from `first` to `next` − 1, all outside the population, are in the FIB.
    first: u64,
    next: u64,
    prefix: Vec<u8>,
}

impl Writer {
    /// A writer with a FIB that holds all prefixes of `names`.
    fn new(names: SyntheticNames, context: &Context) -> anyhow::Result<Self> {
        let first = names.prefixes();
        let config = FibConfig::new((first + COMING_AND_GOING) as usize);
        let check = || Ok(context.check_interrupt()?);
        let fib = populate(names, config, HashKey::from_seed(context.seed), &check)?;
        let mut writer = Self { fib, names, rng_state: context.seed | 1, first, next: first, prefix: Vec::new() };
        for _ in 0..COMING_AND_GOING / 2 {
            writer.insert()?;
        }
        Ok(writer)
    }

    /// Updates for `duration`; returns updates per second.
    fn write(&mut self, phase: Phase, duration: Duration) -> anyhow::Result<f64> {
        let started = Instant::now();
        let mut updates = 0_u64;
        loop {
            let elapsed = started.elapsed();
            if elapsed >= duration {
                return Ok(updates as f64 / elapsed.as_secs_f64());
            }
            if phase == Phase::Unpaced || (updates as f64) < elapsed.as_secs_f64() * PACE_PER_S {
                for _ in 0..BURST {
                    self.update(updates)?;
                    updates += 1;
                }
            } else {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    fn update(&mut self, number: u64) -> anyhow::Result<()> {
        match number % 3 {
            0 => self.insert(),
            1 => self.remove(),
            _ => self.change(),
        }
    }

    fn insert(&mut self) -> anyhow::Result<()> {
        self.names.write_prefix(self.next, &mut self.prefix);
        let inserted = self.fib.insert(&self.prefix, &[next_hop(self.next)], 0, false)?;
        ensure!(!inserted.replaced, "prefix {} was there before", self.next);
        self.next += 1;
        Ok(())
    }

    fn remove(&mut self) -> anyhow::Result<()> {
        self.names.write_prefix(self.first, &mut self.prefix);
        ensure!(self.fib.remove(&self.prefix)?, "prefix {} was not there", self.first);
        self.first += 1;
        Ok(())
    }

    /// Changes the next hop of one prefix of the population.
    fn change(&mut self) -> anyhow::Result<()> {
        // Xorshift (Marsaglia 2003); any irregular order would do.
        self.rng_state ^= self.rng_state << 13;
        self.rng_state ^= self.rng_state >> 7;
        self.rng_state ^= self.rng_state << 17;
        self.names.write_prefix(self.rng_state % self.names.prefixes(), &mut self.prefix);
        let nexthops = [NextHop { face: 300 + self.rng_state % 64, cost: self.rng_state >> 60 }];
        let changed = self.fib.insert(&self.prefix, &nexthops, 0, false)?;
        ensure!(changed.replaced, "a prefix of the population is gone");
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.fib.len() as u64 == self.names.prefixes() + self.next - self.first, "prefixes were lost");
        Ok(())
    }
}

/// The reader's work, phase by phase.
#[derive(Default)]
struct Meter {
    /// Raised for each phase; [`STOPPED`] ends the reader.
    phase: AtomicU32,
    /// Look-ups and nanoseconds of the current phase.
    tally: Mutex<(u64, u64)>,
}

const STOPPED: u32 = u32::MAX;

impl Meter {
    /// Runs `work`; returns the look-ups per second of the reader's time meanwhile, and the result of `work`.
    fn phase(&self, work: impl FnOnce() -> anyhow::Result<f64>) -> anyhow::Result<(f64, f64)> {
        self.phase.fetch_add(1, Ordering::Relaxed);
        *self.tally()? = (0, 0);
        let result = work()?;
        let (lookups, took_ns) = *self.tally()?;
        ensure!(took_ns > 0, "the reader did nothing: it failed, or it got no processor time");
        Ok((lookups as f64 * 1e9 / took_ns as f64, result))
    }

    fn stop(&self) {
        self.phase.store(STOPPED, Ordering::Relaxed);
    }

    fn tally(&self) -> anyhow::Result<std::sync::MutexGuard<'_, (u64, u64)>> {
        self.tally.lock().map_err(|_| anyhow::anyhow!("the other thread panicked"))
    }

    fn read_until_stopped(&self, mut reader: FibReader, names: SyntheticNames) -> anyhow::Result<()> {
        process::run_on_processor(0);
        let mut lookups = FibLookups::new(names, 0);
        loop {
            let phase = self.phase.load(Ordering::Relaxed);
            if phase == STOPPED {
                return Ok(());
            }
            let took_ns = lookups.slice_while_written(&mut reader, thread_time_ns)?;
            let mut tally = self.tally()?;
            // A slice that began in the previous phase does not count.
            if self.phase.load(Ordering::Relaxed) == phase {
                tally.0 += SLICE_NAMES as u64;
                tally.1 += took_ns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;

    /// The story: the writer was the caller's thread and stayed pinned. The record then reported one processor, and
    /// later experiments had no other.
    #[test]
    fn the_callers_processors_are_as_before() -> anyhow::Result<()> {
        let context = Context::new(Scale::Smoke, 1, vec![1], std::path::PathBuf::new());
        let before = rustix::thread::sched_getaffinity(None)?;
        run(&context)?;
        assert_eq!(rustix::thread::sched_getaffinity(None)?, before);
        Ok(())
    }
}
