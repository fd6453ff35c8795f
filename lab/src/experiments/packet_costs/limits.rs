//! What limits the packet rate of this machine, and how near does our router come?
//!
//! Source: Takemasa19 §3.2.1, Eq. 3.1: at most N·F/C packets a second by cycles, at most B/M by memory. C and M are
//! those of our router with names that never repeat: as many Interests as Data. F/C is the rate of one engine while the
//! other processors are idle; M was simulated. B is measured on the spot: McCalpin's triad `a[i] = b[i] + s·c[i]`, 24
//! bytes a step as STREAM counts, on all processors; and reads of random lines, which is what tables do. The rate of
//! our router is that of engines on all processors over one FIB. One engine and all take turns each 20 ms, and the
//! share of the limit is that of each turn: the speed of a virtual processor changes by a third, for seconds.
//!
//! Limits: the rates do not include caches, sockets and drivers.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use namewire_engine::Schedule;
use namewire_tables::Fib;

use super::super::prefetch::forwarder::{Forwarder, Setup};
use super::super::prefetch::one_pass;
use super::{DATA, MISS, SHAPES, memory};
use crate::experiment::{Context, Outcome, Samples, Scale};
use crate::process;
use crate::sample_table::SampleTable;
use crate::split_mix::split_mix;
use crate::statistics::Summary;

const CASE: &str = "limits of this machine";
/// Passes over the arrays; the best counts, as in STREAM.
const PASSES: usize = 5;
const LINE_BYTES: usize = 64;
/// Passes of our engines that do not count, and of a repetition: its figures are the medians of its passes.
const WARM_UP: usize = 28;
const PACKET_PASSES: usize = 15;
/// Bytes of a step of the triad.
const TRIAD_BYTES: usize = 24;
/// Lines of one read round: enough of them are on their way at once.
const READS: usize = 1 << 20;

/// Bytes of each array: far more than the caches.
const fn array_bytes(scale: Scale) -> usize {
    match scale {
        Scale::Smoke => 1 << 20,
        Scale::Quick => 256 << 20,
        Scale::Full => 1 << 30,
    }
}

/// Bytes a second on all of `threads` processors: of the triad, and of random lines.
pub(super) fn bandwidth(scale: Scale, threads: usize) -> [f64; 2] {
    let elements = array_bytes(scale) / size_of::<f64>() / threads;
    let triad = together(threads, || {
        let (b, c) = (vec![1.0_f64; elements], vec![2.0_f64; elements]);
        let mut a = vec![0.0_f64; elements];
        let pass = move || {
            for ((a, b), c) in a.iter_mut().zip(&b).zip(&c) {
                *a = *b + 3.0 * *c;
            }
            black_box(a.as_slice());
        };
        (pass, elements * TRIAD_BYTES)
    });
    let lines = array_bytes(scale) / LINE_BYTES;
    let random = together(threads, || {
        let memory = vec![1_u64; lines * LINE_BYTES / size_of::<u64>()];
        let mut round = 0;
        let pass = move || {
            round += 1;
            let place = |read: usize| split_mix((round * READS + read) as u64) as usize % lines * (LINE_BYTES / 8);
            black_box((0..READS).fold(0, |sum: u64, read| sum.wrapping_add(memory[place(read)])));
        };
        (pass, READS * LINE_BYTES)
    });
    [triad, random]
}

/// The best pass: all threads begin together, and the last one ends it.
fn together<P: FnMut()>(threads: usize, make: impl Fn() -> (P, usize) + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let passes: Vec<Vec<(Instant, Instant, usize)>> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|thread| {
                let (barrier, make) = (&barrier, &make);
                scope.spawn(move || {
                    process::run_on_processor(thread);
                    let (mut pass, bytes) = make();
                    (0..=PASSES)
                        .map(|_| {
                            barrier.wait();
                            let started = Instant::now();
                            pass();
                            (started, Instant::now(), bytes)
                        })
                        .collect()
                })
            })
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    // The first pass touches the memory first.
    let of_pass = |pass: usize| {
        let threads = || passes.iter().map(move |of_thread| of_thread[pass]);
        let started = threads().map(|(started, ..)| started).min();
        let ended = threads().map(|(_, ended, _)| ended).max();
        let bytes: usize = threads().map(|(.., bytes)| bytes).sum();
        let took = started.zip(ended).map_or(0.0, |(started, ended)| (ended - started).as_secs_f64());
        bytes as f64 / took
    };
    (1..=PASSES).map(of_pass).fold(0.0, f64::max)
}

/// What was measured before any process was copied: after that, pages fault.
pub(super) struct Rates {
    threads: usize,
    /// Bytes a second.
    triad: f64,
    random: f64,
    /// For each repetition its passes: millions of packets a second of one engine alone, and of all together.
    passes: Vec<Vec<[f64; 2]>>,
}

/// Measures bandwidths, and the packets of fresh engines: of one alone and of one on each processor.
///
/// # Errors
/// If an engine fails.
pub(super) fn measure(context: &Context, setup: Setup, fib: &Fib, repetitions: usize) -> anyhow::Result<Rates> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut forwarders = Vec::new();
    for thread in 0..threads {
        let first_name = ((SHAPES.len() + thread) as u64) << 37;
        let mut forwarder = Forwarder::new(Setup { first_name, ..setup })?;
        forwarder.fill(fib, &|| Ok(crate::interrupt::check()?))?;
        forwarders.push(forwarder);
    }
    let mut pass = |_| {
        let alone = one_pass(&mut forwarders[..1], fib, Schedule::default())?;
        anyhow::Ok([alone, one_pass(&mut forwarders, fib, Schedule::default())?])
    };
    // Pages that the system gave in pieces become large ones meanwhile.
    for number in 0..WARM_UP {
        pass(number)?;
    }
    let passes = (0..repetitions).map(|_| (0..PACKET_PASSES).map(&mut pass).collect::<anyhow::Result<_>>());
    let passes = passes.collect::<anyhow::Result<_>>()?;
    drop(forwarders);
    let [triad, random] = bandwidth(context.scale, threads);
    Ok(Rates { threads, triad, random, passes })
}

impl Rates {
    /// Adds limits, our rate, and its share of the lower limit.
    pub(super) fn add_to(&self, table: &SampleTable, outcome: &mut Outcome) {
        let Self { threads, triad, random, passes } = self;
        let mut put = |subject: &str, (metric, unit), value| outcome.add_value(CASE, subject, (metric, unit), value);
        put("triad, all processors", ("bandwidth", "GB/s"), triad / 1e9);
        put("random lines, all processors", ("bandwidth", "GB/s"), random / 1e9);
        let of_passes = |figure: &dyn Fn(&[f64; 2]) -> f64| {
            let median = |passes: &Vec<[f64; 2]>| {
                let figures: Vec<f64> = passes.iter().map(figure).collect();
                Summary::of(&figures).map_or(f64::NAN, |summary| summary.median)
            };
            passes.iter().map(median).collect::<Samples>()
        };
        let ours = of_passes(&|[_, all]| *all);
        outcome.rows.push(ours.row(CASE, "our engines, all processors", "packets", "Mpps", None));
        let by_cycles = of_passes(&|[alone, _]| *threads as f64 * alone);
        outcome.rows.push(by_cycles.row(CASE, "N·F/C", "packets", "Mpps", None));
        outcome.add_steady("limit_by_cycles_mpps", &by_cycles);
        let mut limit = f64::INFINITY;
        if let Some((interest, data)) = memory::of_packet(table, MISS).zip(memory::of_packet(table, DATA)) {
            let per_packet = f64::midpoint(interest, data);
            let by_memory = triad / per_packet / 1e6;
            outcome.add_value(CASE, "B/M, triad", ("packets", "Mpps"), by_memory);
            outcome.add_value(CASE, "B/M, random lines", ("packets", "Mpps"), random / per_packet / 1e6);
            outcome.headline.insert("our_memory_bytes_per_packet".to_owned(), per_packet);
            outcome.headline.insert("limit_by_memory_mpps".to_owned(), by_memory);
            limit = by_memory;
        }
        outcome.add_steady("our_mpps", &ours);
        let share = of_passes(&|[alone, all]| all / limit.min(*threads as f64 * alone));
        outcome.rows.push(share.row(CASE, "our engines, all processors", "share of the lower limit", "ratio", None));
        outcome.add_steady("our_share_of_limit", &share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_a_number_of_bytes() {
        for bytes_per_s in bandwidth(Scale::Smoke, 2) {
            assert!((1e7..1e13).contains(&bytes_per_s), "{bytes_per_s}");
        }
    }
}
