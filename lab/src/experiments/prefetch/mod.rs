//! How much of the wait for memory does each schedule hide, if every packet misses every cache?
//!
//! Source: Takemasa17 §5, Takemasa19 §3.2.2 and §4.4 (Fig. 4.5-4.7): 13,548,815 FIB entries of 4 components on
//! average, names of 7 components of 9 characters that never repeat, 128-byte payloads, and a full FIFO Content Store,
//! so that every Data evicts one. There are two deviations. Here 2^20 Interests are outstanding before their Data
//! arrive; in the thesis Data arrive at once and find their entries in the cache. And the whole engine is measured:
//! strategy, suppression, nonces, timers, records, counters. The thesis has a prototype of the tables. [`regimes`] has
//! rows in the thesis' regime, with few outstanding Interests, and with a store whose admission is TinyLFU.
//!
//! The same engine runs all schedules in turn over the same tables ([`turns`]). Only due timers and `Engine::process`
//! are timed, by the time stamp counter. Packets are written into memory shortly before, as a network card would do.
//! The verdicts of every batch are checked, and all counters at the end.
//!
//! Threads: each has an engine with its own tables, as the only worker of its router, and all share one FIB; there is
//! no dispatch and no ring. The threads start together over prepared packets. The wall clock runs from the first start
//! to the last end, so `scaling` shows the effect of the shared memory.
//!
//! The same run measures look-ups in the FIB alone, by every search ([`fib_alone`]), and the cost of a packet that
//! crosses from one worker to another ([`ring_crossing`]).
//!
//! What the ratios would be on a machine with a faster or slower memory says [`host_model`].
//!
//! Limits: sockets and drivers (see `router-sockets`) and repeating names (see the policies of the Content Store) are
//! not covered.

mod fib_alone;
pub(super) mod forwarder;
mod host_model;
pub(super) mod regimes;
pub(super) mod traffic;
mod turns;

use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use fib_alone::FibAlone;
use forwarder::{Finding, Forwarder, PRODUCER, Setup};
use host_model::HostModel;
use namewire_designs::policies::catalogue::EvictionName;
use namewire_engine::{BATCH_PACKETS, FaceId, Schedule};
use namewire_tables::{Fib, HashKey, NextHop};
use regimes::Regime;
use traffic::PAYLOAD_BYTES;
use turns::{BATCHES_PER_SLICE, Cases, OVER_NAIVE, OVER_SHTL};
pub(super) use turns::{CYCLES, per_packet};

#[cfg(feature = "complete")]
use super::ring_crossing;
use crate::disturbance::Disturbances;
use crate::experiment::{Context, Outcome, Samples};
use crate::process;
use crate::sample_table::SampleTable;
use crate::statistics::Summary;
use crate::synthetic_names::SyntheticNames;
use serde::Deserialize;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    prefixes: u64,
    outstanding: u64,
    store_bytes: u64,
    repetitions: usize,
    /// Slices of [`BATCHES_PER_SLICE`] per schedule and repetition.
    slices: usize,
    /// Slices of look-ups in one turn of [`fib_alone`].
    fib_slices: usize,
    /// Slices of packets for the model of the host, without a neighbour and with one.
    model_slices: usize,
    /// Memory in which latency is measured; its neighbour has as much.
    model_bytes: usize,
}

/// Batches per ring crossing and kind of packet; see [`ring_crossing`].
const RING_BATCHES: u64 = 2_000;

/// Passes of all threads in a repetition.
const PASSES: usize = 7;

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let tsc_hz = context.clock.tsc_hz().context("this processor has no time stamp counter that we can read")?;
    let threads = thread_counts(context);
    let most_threads = threads.iter().copied().max().unwrap_or(1);
    context.plan_steps(3 + size.repetitions * 3);
    context.begin_step("FIB")?;
    let names = SyntheticNames::new(context.seed, size.prefixes);
    let key = HashKey::from_seed(context.seed);
    let fib = populate(context, names, key)?;

    context.begin_step("outstanding Interests, full store")?;
    let setup = Setup {
        names,
        payload_bytes: PAYLOAD_BYTES,
        outstanding: size.outstanding,
        store_bytes: size.store_bytes,
        policy: EvictionName::Fifo.into(),
        key,
        first_name: 0,
    };
    // Names are distinct below 2^45, which leaves room for 255 threads.
    let mut forwarders = (0..most_threads)
        .map(|thread| Forwarder::new(Setup { first_name: (thread as u64) << 37, ..setup }))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let check = || Ok(crate::interrupt::check()?);
    at_once(&mut forwarders, |forwarder, _| forwarder.fill(&fib, &check))?;
    let mut regimes = Regime::all(setup, &fib, &check)?;

    context.begin_step("FIBs of the other searches")?;
    let mut fib_alone = FibAlone::new(names, key, size.fib_slices, &check)?;
    let mut host_model = HostModel::new(size.model_bytes)?;

    let mut table = SampleTable::default();
    let mut disturbances = Disturbances::new(size.repetitions * size.slices);
    for repetition in 0..size.repetitions {
        context.begin_step("one thread")?;
        one_thread(&mut forwarders[0], &fib, &size, &mut disturbances, &mut table)?;
        for regime in &mut regimes {
            regime.measure(&fib, size.slices, &mut disturbances, &mut table)?;
        }
        host_model.measure(&mut forwarders[0], &fib, size.model_slices, &mut table)?;
        context.begin_step("FIB alone, rings")?;
        fib_alone.measure(&fib, &context.clock)?;
        #[cfg(feature = "complete")]
        if let Some(cycles) = ring_crossing::crossing_cycles(&context.clock, RING_BATCHES)? {
            table.add(RING_CROSSING, "two threads", "both", CYCLES, cycles);
        }
        context.begin_step("threads")?;
        together(&mut forwarders, &threads, &fib, tsc_hz, &mut table)?;
        // Every slice uses new names; the last check covers all of them.
        if repetition + 1 == size.repetitions {
            forwarders.iter().try_for_each(Forwarder::check)?;
            regimes.iter().try_for_each(Regime::check)?;
        }
    }
    let mut outcome = outcome(&table, &forwarders[0], &fib, names, tsc_hz);
    outcome.notes.extend(disturbances.note());
    host_model::add_to(&mut outcome, &table, tsc_hz);
    fib_alone.add_to(&fib, &mut outcome);
    Ok(outcome)
}

/// The throughput of each number of threads by the schedules of the papers, and by ours.
fn together(
    forwarders: &mut [Forwarder],
    threads: &[usize],
    fib: &Fib,
    tsc_hz: f64,
    table: &mut SampleTable,
) -> anyhow::Result<()> {
    for &count in threads {
        for schedule in [Schedule::Naive, Schedule::BucketPrefetch, Schedule::SpeculativeLookup, Schedule::Vector] {
            let mpps = several_threads(&mut forwarders[..count], fib, schedule)?;
            let case = format!("{count} thread{}", if count == 1 { "" } else { "s" });
            table.add(&case, schedule.name(), "throughput", "Mpps", mpps);
            table.add(&case, schedule.name(), "cycles", CYCLES, count as f64 * tsc_hz / mpps / 1e6);
        }
    }
    Ok(())
}

/// Thread counts: the user's, if there are several, otherwise doubled up to the number of processors.
pub(super) fn thread_counts(context: &Context) -> Vec<usize> {
    if context.workers.len() > 1 {
        return context.workers.clone();
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |count| Some(count * 2)).take_while(|count| *count < processors).collect();
    counts.push(processors);
    counts
}

/// The FIB of the thesis: every prefix leads to the producer's face.
pub(super) fn populate(context: &Context, names: SyntheticNames, key: HashKey) -> anyhow::Result<Fib> {
    populate_towards(context, names, key, |_| PRODUCER)
}

/// The same with a next hop for each prefix.
pub(super) fn populate_towards(
    context: &Context,
    names: SyntheticNames,
    key: HashKey,
    next_hop: impl Fn(u64) -> FaceId,
) -> anyhow::Result<Fib> {
    let mut fib = Fib::new(names.prefixes() as usize, key);
    let mut name = Vec::new();
    for number in 0..names.prefixes() {
        names.write_prefix(number, &mut name);
        fib.insert(&name, &[NextHop { face: next_hop(number).0, cost: number % 4 }], 0, false)?;
        if number % 65_536 == 0 {
            context.check_interrupt()?;
        }
    }
    ensure!(fib.len() as u64 == names.prefixes(), "two prefixes are the same");
    Ok(fib)
}

/// Every schedule in turn, until all slices are done.
fn one_thread(
    forwarder: &mut Forwarder,
    fib: &Fib,
    size: &Size,
    disturbances: &mut Disturbances,
    table: &mut SampleTable,
) -> anyhow::Result<()> {
    let of_kinds = ["Interest, miss", "Data by name", "Data by token", "Interest, hit"].map(Some);
    // Out of every cache, but still in the store.
    let age = forwarder.stored() as u64 / 2;
    turns::measure(&Cases { of_kinds, exchange: EXCHANGE }, size.slices, disturbances, table, |schedule, turn| {
        let by_name = forwarder.exchange(fib, schedule, BATCHES_PER_SLICE, Finding::Name)?;
        let by_token = forwarder.exchange(fib, schedule, BATCHES_PER_SLICE / 4, Finding::Token)?;
        // Later turns request older Data, so that no name repeats in a row.
        let offset = (turn * 256) as u64 % (age / 2).max(1);
        let hits = forwarder.hits(fib, schedule, 4, age + offset)?;
        Ok([by_name.interests, by_name.data, by_token.data, hits])
    })
}

/// Millions of packets per second that all forwarders pass together under `schedule`.
///
/// N.B. The median of some passes of 20 ms each: with one pass `scaling_2` of five runs was 1.29 to 2.13.
pub(super) fn several_threads(forwarders: &mut [Forwarder], fib: &Fib, schedule: Schedule) -> anyhow::Result<f64> {
    let passes = (0..PASSES).map(|_| one_pass(forwarders, fib, schedule)).collect::<anyhow::Result<Vec<f64>>>()?;
    Ok(Summary::of(&passes).map_or(f64::NAN, |summary| summary.median))
}

/// Millions of packets per second of one pass.
pub(super) fn one_pass(forwarders: &mut [Forwarder], fib: &Fib, schedule: Schedule) -> anyhow::Result<f64> {
    let barrier = Barrier::new(forwarders.len());
    let runs = at_once(forwarders, |forwarder, _| {
        forwarder.prepare(forwarder.batches_at_once(), Finding::Name);
        barrier.wait();
        let started = Instant::now();
        let cycles = forwarder.run_prepared(fib, schedule)?;
        let packets = (cycles.interests.len() + cycles.data.len()) * BATCH_PACKETS;
        Ok((packets, started, Instant::now()))
    })?;
    let packets: usize = runs.iter().map(|(packets, ..)| packets).sum();
    let first_start = runs.iter().map(|&(_, started, _)| started).min().context("no forwarder")?;
    let last_end = runs.iter().map(|&(.., ended)| ended).max().context("no forwarder")?;
    Ok(packets as f64 / (last_end - first_start).as_secs_f64() / 1e6)
}

/// Runs `work` on every forwarder in its own thread, each on its own processor while there are enough.
fn at_once<T: Send>(
    forwarders: &mut [Forwarder],
    work: impl Fn(&mut Forwarder, usize) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = forwarders
            .iter_mut()
            .enumerate()
            .map(|(place, forwarder)| {
                scope.spawn(move || {
                    process::run_on_processor(place);
                    work(forwarder, place)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

const EXCHANGE: &str = "Interest and Data";
const RING_CROSSING: &str = "ring crossing";

fn outcome(table: &SampleTable, forwarder: &Forwarder, fib: &Fib, names: SyntheticNames, tsc_hz: f64) -> Outcome {
    let of = |case: &str, subject: &str, metric| table.find(case, subject, metric).cloned().unwrap_or_default();
    let mut outcome = Outcome { rows: table.rows(), ..Outcome::default() };
    for (key, case, fast, metric) in [
        ("vector_over_naive", EXCHANGE, "vector", OVER_NAIVE),
        ("vector_over_shtl", EXCHANGE, "vector", OVER_SHTL),
        ("shtl_over_naive", EXCHANGE, "shtl", OVER_NAIVE),
        ("vector_over_naive_papers_regime", regimes::PAPERS, "vector", OVER_NAIVE),
        ("shtl_over_naive_papers_regime", regimes::PAPERS, "shtl", OVER_NAIVE),
        ("vector_over_naive_tiny_lfu", regimes::TINY_LFU, "vector", OVER_NAIVE),
        ("shtl_over_naive_interest_miss", "Interest, miss", "shtl", OVER_NAIVE),
    ] {
        outcome.add_ratio(key, &of(case, fast, metric).map(f64::recip));
    }
    for (key, case, subject) in [
        ("naive_cycles", EXCHANGE, "naive"),
        ("vector_cycles", EXCHANGE, "vector"),
        ("vector_interest_miss_cycles", "Interest, miss", "vector"),
        ("vector_interest_hit_cycles", "Interest, hit", "vector"),
        ("vector_data_cycles", "Data by name", "vector"),
        ("vector_data_by_token_cycles", "Data by token", "vector"),
    ] {
        outcome.add_steady(key, &of(case, subject, "cycles"));
    }
    outcome.add_steady("vector_mpps", &of(EXCHANGE, "vector", "cycles").map(|cycles| tsc_hz / cycles / 1e6));
    if let Some(samples) = table.find(RING_CROSSING, "two threads", "both") {
        outcome.add_steady("ring_crossing_cycles", samples);
    }
    let one: Samples = of("1 thread", "vector", "throughput");
    for threads in [2, 4, 8, 16] {
        if let Some(several) = table.find(&format!("{threads} threads"), "vector", "throughput") {
            outcome.add_ratio(&format!("scaling_{threads}"), &several.over(&one));
        }
    }
    let (interest_bytes, data_bytes) = forwarder.packet_bytes();
    outcome.notes.extend([
        format!(
            "{} FIB entries; names of 7 components, never repeated; Interests of {interest_bytes} bytes, Data of \
             {data_bytes}; {} Data in a full FIFO store.",
            fib.len(),
            forwarder.stored()
        ),
        format!("The papers' figures: {} prefixes, a Xeon E5-2699 v4 at 2.2 GHz.", names.prefixes()),
        "Cycles are those of the time stamp counter, which runs at the processor's base rate.".to_owned(),
        "Threads are independent engines over one FIB, without dispatch and rings; throughput is measured from the first \
         start to the last end."
            .to_owned(),
    ]);
    outcome
}
