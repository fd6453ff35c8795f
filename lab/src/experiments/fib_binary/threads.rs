//! Yuan15 Fig. 3.11: do look-ups per second grow with the threads?

use std::sync::Barrier;

use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::hash_tables::{HashSearch, HashTables, StringMatching};

use super::Subject;
use super::slice::{SLICE_NAMES, Slice};
use super::worst_case::WorstCase;
use crate::clock::BelowResolution;
use crate::experiment::{Context, Outcome, Samples};

/// Slices that a thread looks up between two barriers.
const THREAD_SLICES: usize = 32;
const REPETITIONS: usize = 5;

/// Fig. 3.11: all buckets prefetched; the user's worker counts are the thread counts.
pub(super) fn measure(
    subjects: &mut [Subject],
    worst_case: WorstCase,
    case: &str,
    rounds: usize,
    context: &Context,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    for subject in subjects.iter_mut().filter(|subject| subject.search == HashSearch::Binary) {
        let matching = subject.variants[0].matching;
        subject.table.set_look_up(FibPrefetch::All, matching);
        let mut alone = Samples::default();
        for &threads in &context.workers {
            context.check_interrupt()?;
            let mut rates = Samples::default();
            for _ in 0..REPETITIONS {
                rates.add_resolved(million_look_ups_per_second(&subject.table, worst_case, threads, rounds, context)?);
            }
            let name = subject.variants[0].subject(subject);
            let row =
                rates.row(case, &name, &format!("{threads} threads, prefetch all"), "million look-ups per s", None);
            outcome.rows.push(row);
            if threads == 1 {
                alone = rates.clone();
            }
            if matching == StringMatching::Always && alone.median().is_some() {
                outcome.add_steady(&format!("threads_{threads}_over_1"), &rates.over(&alone));
            }
        }
    }
    Ok(())
}

/// In every round each thread writes some slices of names, waits for the others, and looks the names up. A round lasts
/// from the first thread's start to the last one's end.
fn million_look_ups_per_second(
    table: &HashTables,
    worst_case: WorstCase,
    threads: usize,
    rounds: usize,
    context: &Context,
) -> anyhow::Result<Result<f64, BelowResolution>> {
    let meeting = Barrier::new(threads);
    let worker = |thread: usize| -> anyhow::Result<Vec<(u64, u64)>> {
        let mut slices: Vec<Slice> = (0..THREAD_SLICES).map(|_| Slice::default()).collect();
        let mut times = Vec::new();
        let mut result = Ok(());
        for round in 0..rounds {
            for (place, names) in slices.iter_mut().enumerate() {
                let slice = (thread * rounds + round) * THREAD_SLICES + place;
                names.write(worst_case, (slice * SLICE_NAMES) as u64);
            }
            meeting.wait();
            let started_ns = context.clock.now_ns();
            slices.iter_mut().for_each(|names| names.look_up(table));
            times.push((started_ns, context.clock.now_ns()));
            // Every thread must reach every barrier: errors are reported at the end.
            for names in &slices {
                result = result.and_then(|()| names.check(worst_case));
            }
        }
        result.map(|()| times)
    };
    let all: Vec<anyhow::Result<Vec<(u64, u64)>>> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || worker(thread))).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a thread panicked"))))
            .collect()
    });
    let all = all.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let lasted_ns = |round: usize| {
        let started_ns = all.iter().map(|times| times[round].0).min().unwrap_or(0);
        all.iter().map(|times| times[round].1).max().unwrap_or(0) - started_ns
    };
    let mut rounds_ns: Vec<u64> = (0..rounds).map(lasted_ns).collect();
    rounds_ns.sort_unstable();
    let names = (threads * THREAD_SLICES * SLICE_NAMES) as f64;
    Ok(context.clock.resolve(rounds_ns[rounds / 2]).map(|ns| names * 1e3 / ns as f64))
}
