//! Fig. 12: look-ups by several threads in one NameTrie, and insertions by several threads into one.
//!
//! Look-ups do not change a table, so threads share no written data. Insertions are in [`super::shared_writers`].

use std::sync::Barrier;

use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_tables::fib::PrefixTable;

use super::{Population, Size, fill, shared_writers};
use crate::design_measurement::{SLICE_NAMES, Subject, look_up_in_turn};
use crate::experiment::{Context, Outcome, Samples};
use crate::name_arena::NameArena;

/// Steps of the progress bar.
pub(super) const STEPS: usize = 2;
const CASE: &str = "threads";
/// As in the paper.
const THREADS_MAX: usize = 8;

pub(super) fn run(
    context: &Context,
    size: &Size,
    population: &Population,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    context.begin_step("threads")?;
    let mut subject = fill(FibDesign::NameTrie, &FibDesignOptions::default(), &population.prefixes, context)?;
    // Check every answer before the timed part.
    look_up_in_turn(&mut [&mut subject], &population.queries, 0, population.queries.slices(), context)?;
    let names = super::workload::names(&population.prefixes, context.seed);
    let threads_max = std::thread::available_parallelism().map_or(1, |threads| threads.get().min(THREADS_MAX));
    let mut speeds = vec![Samples::default(); threads_max];
    for _ in 0..size.repetitions {
        for (place, speed) in speeds.iter_mut().enumerate() {
            context.check_interrupt()?;
            let took_ns = look_up_by(place + 1, &subject, &names, size.slices, context);
            let looked_up = ((place + 1) * size.slices * SLICE_NAMES) as f64;
            speed.add_resolved(context.clock.resolve(took_ns).map(|ns| looked_up * 1e3 / ns as f64));
        }
    }
    for (place, speed) in speeds.iter().enumerate() {
        let metric = format!("look-ups by {} threads", place + 1);
        outcome.rows.push(speed.row(CASE, &subject.name, &metric, "million per s", None));
    }
    if let [first, .., last] = &speeds[..]
        && let Some((first, last)) = first.median().zip(last.median())
    {
        outcome.headline.insert(format!("nametrie_{threads_max}_threads_over_1_lookup"), last / first);
    }
    drop(subject);
    shared_writers::run(context, size, population, threads_max, outcome)
}

/// Nanoseconds from the first thread's start to the last one's end; each thread looks up `slices` slices of its own.
fn look_up_by(threads: usize, subject: &Subject, names: &NameArena, slices: usize, context: &Context) -> u64 {
    let ready = Barrier::new(threads);
    let table: &dyn PrefixTable = &*subject.table;
    let times: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let ready = &ready;
                scope.spawn(move || {
                    ready.wait();
                    let started_ns = context.clock.now_ns();
                    let mut found = [None; 64];
                    for number in 0..slices * SLICE_NAMES / found.len() {
                        let first = (thread * slices * SLICE_NAMES + number * found.len()) % names.len();
                        let batch: [&[u8]; 64] = std::array::from_fn(|place| names.get((first + place) % names.len()));
                        table.longest_prefix_match_batch(&batch, &mut found);
                        std::hint::black_box(&found);
                    }
                    (started_ns, context.clock.now_ns())
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().expect("looking up does not panic")).collect()
    });
    let started_ns = times.iter().map(|&(started_ns, _)| started_ns).min().unwrap_or(0);
    let ended_ns = times.iter().map(|&(_, ended_ns)| ended_ns).max().unwrap_or(0);
    ended_ns - started_ns
}
