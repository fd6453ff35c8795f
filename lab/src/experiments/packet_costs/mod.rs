//! Where do the cycles and bytes of a packet go, and how near is the router to the machine's limits?
//!
//! Source: Takemasa19 §3.2-3.3 (Tables 3.1 to 3.5: cycles of an Interest that misses, of one that the Content Store
//! answers, and of a Data), §5.4.3 (Table 5.1: cycles by function block), Takemasa17 Table 1. Set-up as in `prefetch`:
//! 13,548,815 FIB entries, names that never repeat, a full FIFO store. Interests are outstanding long enough that none
//! of their state is in the caches when their Data come.
//!
//! The engine itself is measured (`Engine::process_measured`; see there for its two orders and for the effect of
//! reading the clock). Rows:
//!
//! | metric | order | read |
//! | --- | --- | --- |
//! | `whole` | `naive`, `vector` | around the batch: undisturbed |
//! | `naive, by stage` | packet by packet | after every part of a packet; the papers' blocks |
//! | `by stage` | stage by stage over the batch | after every stage: nearly undisturbed |
//! | `by part` | the same | within the first and the last stage, after every part of a packet |
//! | `by batch size` | `vector` | around batches of 1 to 64 |
//! | `instructions, …` | both, and `vector` | one batch stepped in a copy of the process ([`counting`]) |
//! | `bytes fetched, …`, `bytes written, …` | both | the same, by simulation ([`memory`]) |
//! | `pipeline: …`, `stalls: …`, `loads: …` | `naive`, `vector` | hardware counters around the batch ([`pipeline`]) |
//!
//! `blocks over whole` is the sum of `by stage` and of due timers over `whole`, batches of each kind together.
//! [`limits`] has the limits of Eq. 3.1 for this machine.
//!
//! In `naive, by stage` and `by part` a reading waits until everything before it has executed; otherwise a later part
//! would include an earlier wait for memory. In `by stage` it does not wait: a stage is the work of 64 packets, of
//! which a processor holds a few at a time beyond a reading. (N.B.: readings that wait made the sum 1.10 of the whole
//! on a Xeon, because each of ten stages then ended with a wait for its last lines.) The cost of a reading is measured
//! and subtracted. What the compiler does differently because of a reading (it saves registers) is not.
//! `instructions, whole` has no readings. Longer names (15 components, Yuan15 Fig. 3.9)
//! and larger packets (Data of 1143 bytes, Takemasa19 §5.4.4) are separate cases. So are the state in which the thesis'
//! prototype was measured (Data come while their PIT entries are still in the caches: 1,024 Interests are outstanding),
//! and a store that admits by TinyLFU.
//!
//! Instruction counts do not depend on the machine's load: two runs of one program agree except for the effect of table
//! addresses. Where the kernel offers hardware counters, [`pipeline`] has stalls by cause and loads by level (Tables
//! 3.2-3.5); elsewhere its rows are refused. A repetition during which the processor itself was slower is repeated
//! ([`crate::disturbance`]). `router-sockets` measures sockets and drivers.

mod counting;
mod limits;
mod memory;
mod outcome;
mod pipeline;

pub(crate) use counting::count_by_stage;

use std::hint::black_box;

use anyhow::ensure;
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice};
use namewire_engine::batch::measured::{MeasuredOrder, Stage, StageCosts};
use namewire_engine::{BATCH_PACKETS, Frame, Schedule};
use namewire_tables::{Fib, HashKey};
use namewire_testbed::Worker;

use super::prefetch::forwarder::{Finding, Forwarder, Setup, Taken, cycles_of, run_timers};
use super::prefetch::populate;
use super::prefetch::regimes::FEW_OUTSTANDING;
use super::prefetch::traffic::PAYLOAD_BYTES;
use crate::disturbance::{Disturbances, Spins};
use crate::experiment::{Context, Outcome};
use crate::sample_table::SampleTable;
use crate::statistics::Summary;
use crate::synthetic_names::{NAME_COMPONENTS, SyntheticNames};
use crate::tsc;
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
    /// Slices per shape and repetition.
    slices: usize,
    /// Shapes whose instructions are counted: not the last one, whose engine executes the same as that of the first.
    counted_shapes: usize,
    /// Packets of the stepped batch.
    counted_packets: usize,
}

/// The form of the packets, and the state of the engine that they meet.
struct Shape {
    /// Suffix of the names of cases with this shape.
    suffix: &'static str,
    name_components: u64,
    payload_bytes: usize,
    /// Outstanding Interests, if not as many as the run's size has.
    outstanding: Option<u64>,
    admission: AdmissionName,
}

const PLAIN: Shape = Shape {
    suffix: "",
    name_components: NAME_COMPONENTS,
    payload_bytes: PAYLOAD_BYTES,
    outstanding: None,
    admission: AdmissionName::All,
};

const SHAPES: [Shape; 5] = [
    PLAIN,
    Shape { suffix: "; 15 components", name_components: 15, ..PLAIN },
    Shape { suffix: "; Data of 1143 bytes", payload_bytes: LARGE_PAYLOAD_BYTES, ..PLAIN },
    Shape { suffix: "; TinyLFU store", admission: AdmissionName::TinyLfu, ..PLAIN },
    Shape { suffix: "; 1,024 outstanding", outstanding: Some(FEW_OUTSTANDING), ..PLAIN },
];

impl Shape {
    /// Whether Data stays in the store. Names do not repeat, so TinyLFU stores hardly any.
    fn has_hits(&self) -> bool {
        self.admission == AdmissionName::All
    }
}

/// The Content of a Data of [`LARGE_DATA_BYTES`] with a name of 7 components.
const LARGE_PAYLOAD_BYTES: usize = 1017;
/// Takemasa19 §5.4.4.
const LARGE_DATA_BYTES: usize = 1143;

const BATCH_SIZES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Repetitions for each one of the limits of the machine, which takes longer.
const LIMITS_EVERY: usize = 4;

/// Batches of Interests, and of Data by name, in one turn of an order.
const BATCHES_BY_NAME: usize = 8;
const BATCHES_BY_TOKEN: usize = 4;
const BATCHES_OF_HITS: usize = 4;

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    tsc::required()?;
    context.plan_steps(5 + SHAPES.len() + size.repetitions);
    context.begin_step("FIB")?;
    let names = SyntheticNames::new(context.seed, size.prefixes);
    let key = HashKey::from_seed(context.seed);
    let fib = populate(context, names, key)?;

    let setups: Vec<Setup> =
        SHAPES.iter().enumerate().map(|(place, shape)| setup(place, shape, &size, names, key)).collect();
    let mut forwarders = Vec::new();
    for &setup in &setups {
        context.begin_step("outstanding Interests, full store")?;
        let mut forwarder = Forwarder::new(setup)?;
        forwarder.fill(&fib, &|| Ok(crate::interrupt::check()?))?;
        forwarders.push(forwarder);
    }
    let large_bytes = forwarders[2].packet_bytes().1;
    ensure!(large_bytes == LARGE_DATA_BYTES, "the large Data has {large_bytes} bytes");

    let reading_cycles = ReadingCycles::measure();
    let mut table = SampleTable::default();
    let disturbances = measure_packets(context, &size, &mut forwarders, &fib, &reading_cycles, &mut table)?;
    context.begin_step("pipeline")?;
    let not_counted = pipeline::measure(&mut forwarders[0], &fib, size.slices, &mut table)?;
    forwarders.iter().try_for_each(Forwarder::check)?;
    context.begin_step("limits of this machine")?;
    let rates = limits::measure(context, setups[0], &fib, size.repetitions.div_ceil(LIMITS_EVERY))?;
    // Last: after the copy, each page that it saw faults once more.
    context.begin_step("instructions")?;
    let counted =
        counting::count_instructions(&mut forwarders[..size.counted_shapes], &fib, size.counted_packets, &mut table);
    crate::interrupt::check()?;
    context.begin_step("lines of memory")?;
    let counted = counted.and_then(|()| memory::measure(&mut forwarders[0], &fib, size.counted_packets, &mut table));
    crate::interrupt::check()?;
    let mut outcome = outcome::outcome(&table, &forwarders, &fib, reading_cycles.in_order);
    if let Some(reason) = not_counted {
        outcome
            .notes
            .push(format!("Stalls and loads by level (Takemasa19 Tables 3.2-3.5) were not all counted: {reason}."));
    }
    if let Err(error) = counted {
        outcome.notes.push(format!("Instructions and lines were not counted: {error:#}."));
    }
    outcome.notes.extend(disturbances.note());
    rates.add_to(&table, &mut outcome);
    Ok(outcome)
}

/// The set-up of the shape at this place of [`SHAPES`].
fn setup(place: usize, shape: &Shape, size: &Size, names: SyntheticNames, key: HashKey) -> Setup {
    Setup {
        names: names.with_name_components(shape.name_components),
        payload_bytes: shape.payload_bytes,
        outstanding: shape.outstanding.unwrap_or(size.outstanding),
        store_bytes: size.store_bytes,
        policy: PolicyChoice { admission: shape.admission, ..EvictionName::Fifo.into() },
        key,
        first_name: (place as u64) << 37,
    }
}

/// All repetitions, without those that the host disturbed.
fn measure_packets(
    context: &Context,
    size: &Size,
    forwarders: &mut [Forwarder],
    fib: &Fib,
    reading_cycles: &ReadingCycles,
    table: &mut SampleTable,
) -> anyhow::Result<Disturbances> {
    let mut disturbances = Disturbances::new(size.repetitions);
    for _ in 0..size.repetitions {
        context.begin_step("packets")?;
        loop {
            let (mut one, mut spins) = (SampleTable::default(), Spins::default());
            for (shape, forwarder) in SHAPES.iter().zip(&mut *forwarders) {
                repetition(forwarder, fib, size.slices, shape, reading_cycles, &mut one, &mut spins)?;
            }
            batch_sizes(&mut forwarders[0], fib, size.slices, &mut one)?;
            if disturbances.accepts(&spins) {
                table.add_medians(one);
                break;
            }
        }
    }
    Ok(disturbances)
}

/// The data plane path of a batch, and its measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Whole(Schedule),
    Staged(MeasuredOrder),
}

/// All ways, which take turns.
const WAYS: [Way; 5] = [
    Way::Whole(Schedule::Naive),
    Way::Whole(Schedule::Vector),
    Way::Staged(MeasuredOrder::PacketByPacket),
    Way::Staged(MeasuredOrder::StageByStage { split: false }),
    Way::Staged(MeasuredOrder::StageByStage { split: true }),
];

/// The measurement of one batch.
enum Batch {
    Whole(u64),
    Staged {
        costs: StageCosts,
        /// Cycles of due timers, which `Whole` has, too.
        timers: u64,
    },
}

/// Of due timers.
const TIMERS: &str = "timers";

impl Way {
    fn decide(self, mut worker: Worker<'_>, frames: &mut [Frame<'_>]) -> anyhow::Result<Batch> {
        Ok(match self {
            Way::Whole(_) => Batch::Whole(cycles_of(worker, frames)?),
            Way::Staged(order) => {
                let clock = if self.waits() { clock } else { running_clock };
                let before = clock();
                run_timers(&mut worker);
                let timers = clock() - before;
                Batch::Staged { costs: worker.process_measured(frames, order, clock), timers }
            }
        })
    }

    /// Whether readings wait until everything before them has executed.
    fn waits(self) -> bool {
        self != Way::Staged(MeasuredOrder::StageByStage { split: false })
    }

    /// The metric of a row, and the stages that it shows.
    fn metric(self) -> (&'static str, fn(Stage) -> bool) {
        match self {
            Way::Whole(_) => ("whole", |_| false),
            Way::Staged(MeasuredOrder::PacketByPacket) => ("naive, by stage", |_| true),
            Way::Staged(MeasuredOrder::StageByStage { split: false }) => ("by stage", |_| true),
            Way::Staged(MeasuredOrder::StageByStage { split: true }) => ("by part", |stage| {
                use Stage::{Decode, Emit, Fib, Hash, Insert, Verdict};
                matches!(stage, Decode | Hash | Verdict | Insert | Fib | Emit)
            }),
        }
    }
}

/// Reads the counter when everything before has executed; `run` has checked that it exists.
fn clock() -> u64 {
    tsc::read_in_order().unwrap_or(0)
}

/// Reads the counter without a wait.
fn running_clock() -> u64 {
    tsc::read().unwrap_or(0)
}

/// Cycles between two consecutive readings.
struct ReadingCycles {
    in_order: f64,
    running: f64,
}

impl ReadingCycles {
    fn measure() -> Self {
        let between = |clock: fn() -> u64| {
            const READINGS: u32 = 10_000;
            let clock = black_box(clock);
            let first = clock();
            (1..READINGS).for_each(|_| {
                black_box(clock());
            });
            (clock() - first) as f64 / f64::from(READINGS)
        };
        Self { in_order: between(clock), running: between(running_clock) }
    }

    fn of(&self, way: Way) -> f64 {
        if way.waits() { self.in_order } else { self.running }
    }
}

/// Every way in turn, a slice each, until all slices are done.
fn repetition(
    forwarder: &mut Forwarder,
    fib: &Fib,
    slices: usize,
    shape: &Shape,
    reading_cycles: &ReadingCycles,
    table: &mut SampleTable,
    spins: &mut Spins,
) -> anyhow::Result<()> {
    let mut by_name: [Taken<Batch>; WAYS.len()] = Default::default();
    let mut by_token: [Taken<Batch>; WAYS.len()] = Default::default();
    let mut hits: [Vec<Batch>; WAYS.len()] = Default::default();
    for slice in 0..slices {
        for turn in 0..WAYS.len() {
            // A machine that becomes slower favours no way.
            let place = if slice % 2 == 0 { turn } else { WAYS.len() - 1 - turn };
            let way = WAYS[place];
            if let Way::Whole(schedule) = way {
                forwarder.set_schedule(schedule);
            }
            let decide = |worker: Worker<'_>, frames: &mut [Frame<'_>]| way.decide(worker, frames);
            forwarder.prepare(BATCHES_BY_NAME, Finding::Name);
            by_name[place].append(forwarder.run_prepared_by(fib, BATCH_PACKETS, decide)?);
            forwarder.prepare(BATCHES_BY_TOKEN, Finding::Token);
            by_token[place].append(forwarder.run_prepared_by(fib, BATCH_PACKETS, decide)?);
            if shape.has_hits() {
                let age = age_of_hits(forwarder, slice * WAYS.len() + turn);
                hits[place].append(&mut forwarder.hits_by(fib, BATCH_PACKETS, BATCHES_OF_HITS, age, decide)?);
            }
        }
        spins.spin();
    }
    let interests = by_name.each_ref().map(|taken| &taken.interests);
    let data = by_name.each_ref().map(|taken| &taken.data);
    let data_by_token = by_token.each_ref().map(|taken| &taken.data);
    if shape.has_hits() {
        let ratio = blocks_over_whole([interests, hits.each_ref(), data], reading_cycles);
        table.add(&format!("Interest, hit and Data{}", shape.suffix), "vector", BLOCKS_OVER_WHOLE, "ratio", ratio);
    }
    for (place, way) in WAYS.into_iter().enumerate() {
        for (case, batches) in
            [(MISS, interests[place]), (HIT, &hits[place]), (DATA, data[place]), (DATA_BY_TOKEN, data_by_token[place])]
        {
            if !batches.is_empty() {
                add(table, &format!("{case}{}", shape.suffix), way, batches, reading_cycles.of(way));
            }
        }
    }
    Ok(())
}

/// The age of Data for hits: out of every cache, but still in the store. It differs for each `turn`, so that no name
/// repeats in a row.
fn age_of_hits(forwarder: &Forwarder, turn: usize) -> u64 {
    let age = forwarder.stored() as u64 / 2;
    age + (turn * BATCHES_OF_HITS * BATCH_PACKETS) as u64 % (age / 2).max(1)
}

fn add(table: &mut SampleTable, case: &str, way: Way, batches: &[Batch], reading_cycles: f64) {
    let (metric, shows) = way.metric();
    if let Way::Whole(schedule) = way {
        let cycles = batches.iter().filter_map(|batch| match batch {
            Batch::Whole(cycles) => Some(*cycles as f64),
            Batch::Staged { .. } => None,
        });
        return table.add(case, schedule.name(), metric, CYCLES, per_packet(cycles, BATCH_PACKETS));
    }
    let staged = || {
        batches.iter().filter_map(|batch| match batch {
            Batch::Staged { costs, .. } => Some(costs),
            Batch::Whole(_) => None,
        })
    };
    if way != Way::Staged(MeasuredOrder::StageByStage { split: true }) {
        let cycles = batches.iter().filter_map(|batch| match batch {
            Batch::Staged { timers, .. } => Some(*timers as f64 - reading_cycles),
            Batch::Whole(_) => None,
        });
        table.add(case, TIMERS, metric, CYCLES, per_packet(cycles, BATCH_PACKETS).max(0.0));
    }
    for stage in Stage::ALL.into_iter().filter(|&stage| shows(stage)) {
        if staged().all(|costs| costs.readings(stage) == 0) {
            continue;
        }
        let cycles =
            staged().map(|costs| costs.ticks(stage) as f64 - f64::from(costs.readings(stage)) * reading_cycles);
        table.add(case, stage.name(), metric, CYCLES, per_packet(cycles, BATCH_PACKETS).max(0.0));
    }
}

/// All parts of a batch in the order of stages over the batch as a whole, for batches of each kind together.
fn blocks_over_whole(of_kinds: [[&Vec<Batch>; WAYS.len()]; 3], reading_cycles: &ReadingCycles) -> f64 {
    let (mut blocks, mut whole) = (0.0, 0.0);
    for of_kind in of_kinds {
        for (way, batches) in WAYS.into_iter().zip(of_kind) {
            let reading_cycles = reading_cycles.of(way);
            let cycles = batches.iter().map(|batch| match batch {
                Batch::Whole(cycles) => *cycles as f64,
                Batch::Staged { costs, timers } => {
                    let of_stages = Stage::ALL
                        .into_iter()
                        .map(|stage| costs.ticks(stage) as f64 - f64::from(costs.readings(stage)) * reading_cycles);
                    of_stages.sum::<f64>() + *timers as f64 - reading_cycles
                }
            });
            match way {
                Way::Whole(Schedule::Vector) => whole += per_packet(cycles, BATCH_PACKETS),
                Way::Staged(MeasuredOrder::StageByStage { split: false }) => {
                    blocks += per_packet(cycles, BATCH_PACKETS);
                }
                _ => {}
            }
        }
    }
    blocks / whole
}

/// Cycles per packet of the median batch.
fn per_packet(batches: impl Iterator<Item = f64>, batch_packets: usize) -> f64 {
    let cycles: Vec<f64> = batches.collect();
    Summary::of(&cycles).map_or(f64::NAN, |summary| summary.median / batch_packets as f64)
}

/// The default schedule over batches of each size, in turn.
fn batch_sizes(forwarder: &mut Forwarder, fib: &Fib, slices: usize, table: &mut SampleTable) -> anyhow::Result<()> {
    let mut by_name: [Taken<u64>; BATCH_SIZES.len()] = Default::default();
    let mut hits: [Vec<u64>; BATCH_SIZES.len()] = Default::default();
    forwarder.set_schedule(Schedule::Vector);
    for slice in 0..slices {
        for (place, batch_packets) in BATCH_SIZES.into_iter().enumerate() {
            forwarder.prepare(BATCHES_BY_NAME, Finding::Name);
            by_name[place].append(forwarder.run_prepared_by(fib, batch_packets, cycles_of)?);
            let age = age_of_hits(forwarder, slice * BATCH_SIZES.len() + place);
            let batches = BATCHES_OF_HITS * BATCH_PACKETS / batch_packets;
            hits[place].append(&mut forwarder.hits_by(fib, batch_packets, batches, age, cycles_of)?);
        }
    }
    for (place, batch_packets) in BATCH_SIZES.into_iter().enumerate() {
        for (case, batches) in [(MISS, &by_name[place].interests), (HIT, &hits[place]), (DATA, &by_name[place].data)] {
            let cycles = per_packet(batches.iter().map(|&cycles| cycles as f64), batch_packets);
            table.add(case, BATCH_SIZE_NAMES[place], "by batch size", CYCLES, cycles);
        }
    }
    Ok(())
}

const BATCH_SIZE_NAMES: [&str; BATCH_SIZES.len()] =
    ["batch of 1", "batch of 2", "batch of 4", "batch of 8", "batch of 16", "batch of 32", "batch of 64"];

const CYCLES: &str = "TSC cycles per packet";
/// The kinds of packets.
const CASES: [&str; 4] = [MISS, HIT, DATA, DATA_BY_TOKEN];
const BLOCKS_OVER_WHOLE: &str = "blocks over whole";
const MISS: &str = "Interest, miss";
const HIT: &str = "Interest, hit";
const DATA: &str = "Data by name";
const DATA_BY_TOKEN: &str = "Data by token";
