//! Fig. 12: look-ups by several threads in one NameTrie, and insertions by several threads.
//!
//! Look-ups do not change a table, so threads share no written data. The paper's threads insert into one trie, in
//! different sub-tries; our tables have one writer. So each thread has a separate trie, with the names whose first
//! component it is responsible for: the same division by sub-tries, without a shared hash table of edges.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Barrier;

use anyhow::ensure;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_designs::fib::name_trie::{NameTrie, NameTrieOptions};
use namewire_tables::fib::PrefixTable;

use super::{Population, Size, fill};
use crate::design_measurement::{SLICE_NAMES, Subject, look_up_in_turn};
use crate::experiment::{Context, Outcome, Samples};
use crate::name_arena::{NameArena, component_bytes, port};

/// Steps of the progress bar.
pub(super) const STEPS: usize = 2;
const CASE: &str = "threads";
/// As in the paper.
const THREADS_MAX: usize = 8;
/// Each fills tries with all names.
const INSERT_REPETITIONS_MAX: usize = 3;

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
    note_last_over_first(&speeds, "lookup", outcome);
    drop(subject);
    insert(context, size, population, threads_max, outcome)
}

/// The headline of the most threads over one.
fn note_last_over_first(speeds: &[Samples], operation: &str, outcome: &mut Outcome) {
    if let [first, .., last] = speeds
        && let Some((first, last)) = first.median().zip(last.median())
    {
        outcome.headline.insert(format!("nametrie_{}_threads_over_1_{operation}", speeds.len()), last / first);
    }
}

/// Insertions by one to `threads_max` threads.
fn insert(
    context: &Context,
    size: &Size,
    population: &Population,
    threads_max: usize,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    context.begin_step("insertions by threads")?;
    let mut speeds = vec![Samples::default(); threads_max];
    for _ in 0..size.repetitions.min(INSERT_REPETITIONS_MAX) {
        for (place, speed) in speeds.iter_mut().enumerate() {
            context.check_interrupt()?;
            let took_ns = insert_by(place + 1, &population.prefixes, context)?;
            let inserted = population.prefixes.len() as f64;
            speed.add_resolved(context.clock.resolve(took_ns).map(|ns| inserted * 1e3 / ns as f64));
        }
    }
    for (place, speed) in speeds.iter().enumerate() {
        let metric = format!("insertions by {} threads", place + 1);
        outcome.rows.push(speed.row(CASE, FibDesign::NameTrie.name(), &metric, "million per s", None));
    }
    note_last_over_first(&speeds, "insert", outcome);
    let medians: Vec<String> = speeds.iter().filter_map(Samples::median).map(|speed| format!("{speed:.2}")).collect();
    outcome.notes.push(format!(
        "Fig. 12, insertions, {}: {} million per s with 1 to {threads_max} threads, each with a trie of its own; the \
         machine has {} processors (paper: one trie, 1 to 8 threads, linear).",
        population.data_set,
        medians.join(", "),
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    ));
    Ok(())
}

/// Nanoseconds until every name is in the trie of its thread.
fn insert_by(threads: usize, prefixes: &NameArena, context: &Context) -> anyhow::Result<u64> {
    // Which thread a name falls to is known before the timed part.
    let mut shares = vec![Vec::new(); threads];
    for (number, prefix) in prefixes.iter().enumerate() {
        let mut hasher = DefaultHasher::new(); // the same in every run
        hasher.write(&prefix[..component_bytes(prefix).unwrap_or(0)]);
        shares[hasher.finish() as usize % threads].push(number as u32);
    }
    let started_ns = context.clock.now_ns();
    let tries = std::thread::scope(|scope| {
        let running: Vec<_> =
            shares.iter().map(|numbers| scope.spawn(|| trie_of(numbers, prefixes, context.seed))).collect();
        let ended = running.into_iter().map(|thread| thread.join().expect("inserting does not panic"));
        ended.collect::<anyhow::Result<Vec<NameTrie>>>()
    })?;
    let took_ns = context.clock.now_ns() - started_ns;
    let names: usize = tries.iter().map(NameTrie::len).sum();
    ensure!(names == prefixes.len(), "{threads} threads inserted {names} of {} names", prefixes.len());
    Ok(took_ns)
}

fn trie_of(numbers: &[u32], prefixes: &NameArena, seed: u64) -> anyhow::Result<NameTrie> {
    let mut trie = NameTrie::new(numbers.len(), seed, NameTrieOptions::default())?;
    for &number in numbers {
        let before = trie.insert(prefixes.get(number as usize), port(number as usize))?;
        ensure!(before.is_none(), "name {number} was there before");
    }
    Ok(trie)
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
