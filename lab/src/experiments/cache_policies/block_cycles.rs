//! Block cycles: the cost of each of a policy's blocks.
//!
//! Source: Takemasa19 §5.2.4 and Table 5.2: B2 (history), B12 (eviction), B13 (admission), under the web requests of
//! §5.4.1 and a store of 1 % of the objects.
//!
//! There are three schedules. *Scalar*: one packet at a time without prefetching, each Data right after its Interest,
//! as in the paper's simulator; what B2 wrote is still in the caches when B13 reads it. *Scalar, Data late*: 4,096
//! other Interests that miss arrive before the Data, as on a link with a round trip. *Batched*: 64 Interests, then the
//! Data of those that missed; prefetching follows the engine's schedule and includes the next victims and their
//! history.
//!
//! A policy alone would have the processor's caches to itself, unlike in a router. So before every packet the run reads
//! a dozen random lines of a large array: Takemasa19 §3.2.3 counts 800.7 bytes of memory a packet.
//!
//! Two readings of the time stamp counter enclose every block; a reading waits until everything before it has
//! executed. The cost of a reading is measured and subtracted. All policies take turns, a slice of requests each; the
//! result of a repetition is its median slice. In a batch the B2 of all Interests follow each other, and one pair of
//! readings encloses them: with a reading after each, none could overlap the next, as they do in a router.
//!
//! N.B. B2 of Filter on the paper's web requests, in batches, by a throw-away program: 72 cycles if the batch is read
//! as a whole, 141 if every call is. One counter for each name: 66. Not fetching the line of the name that leaves: 152.
//! Fetching it 32 or 64 requests before instead of 8, or 16 lines at once: within 5 cycles.

use serde::Deserialize;
use std::collections::VecDeque;

use super::case::Case;
use super::contestant::Contestant;
use super::hit_ratio::share_out;
use super::object_store::{Block, ObjectStore, Outcome, Unwatched, Watch};
use crate::experiment::{Context, Samples};
use crate::requests::Request;
use crate::split_mix::split_mix;
use crate::statistics::Summary;
use crate::tsc;

/// Takemasa19 §3.2.3: 800.7 bytes of memory a packet.
const LINES_PER_PACKET: usize = 12;
const BATCH: usize = 64;

namewire_packet::names! {
    /// The order in which packets are processed.
    pub(super) enum Order {
        Scalar = "scalar",
        Late = "scalar, Data late",
        Batched = "batched",
    }
}

/// Sizes of the measurement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    pub(super) warm_up: usize,
    pub(super) repetitions: usize,
    pub(super) slices: usize,
    pub(super) requests_per_slice: usize,
    /// Outstanding Interests where Data come late.
    pub(super) outstanding: usize,
    pub(super) other_lines: usize,
}

/// Cycles of one contestant's blocks in one order, by repetition.
#[derive(Clone, Debug)]
pub(super) struct BlockCycles {
    pub(super) contestant: Contestant,
    pub(super) order: Order,
    /// Per call, by [`Block`].
    pub(super) per_call: [Samples; BLOCKS.len()],
    /// All blocks together, per request.
    pub(super) per_request: Samples,
}

impl BlockCycles {
    /// The median; 0 for a block that never runs.
    pub(super) fn of(&self, block: Block) -> f64 {
        self.per_call[place_of(block)].median().unwrap_or(0.0)
    }
}

/// The blocks and their names in records.
pub(super) const BLOCKS: [(Block, &str); 5] = [
    (Block::Request, "B2, history"),
    (Block::Hit, "B4, hit"),
    (Block::Admission, "B13, admission"),
    (Block::Eviction, "B12, eviction"),
    (Block::Insertion, "B10, insertion"),
];

fn place_of(block: Block) -> usize {
    BLOCKS.iter().position(|(other, _)| *other == block).unwrap_or(0)
}

/// Measures all contestants.
///
/// # Errors
/// If there is no counter, memory is unavailable, or the user interrupted.
pub(super) fn measure(
    context: &Context,
    case: &Case,
    contestants: &[Contestant],
    size: &Size,
) -> anyhow::Result<Vec<BlockCycles>> {
    tsc::required()?;
    let mut turns = share_out(contestants.len(), |place| {
        let contestant = &contestants[place];
        context.begin_step(&format!("a store under {}", contestant.name))?;
        let mut store = ObjectStore::new(contestant.policy, case.workload.objects(), case.capacity, context.seed)?;
        case.workload.for_each(size.warm_up, context.seed, |request| {
            let _: Outcome = store.request(request, &mut Unwatched);
        });
        let outstanding = VecDeque::with_capacity(size.outstanding + 1);
        Ok(Turn { store, outstanding, outstanding_max: size.outstanding })
    })?;
    let new = |contestant: &Contestant, order| BlockCycles {
        contestant: contestant.clone(),
        order,
        per_call: Default::default(),
        per_request: Samples::default(),
    };
    let mut all: Vec<BlockCycles> =
        Order::ALL.iter().flat_map(|&order| contestants.iter().map(move |contestant| new(contestant, order))).collect();
    let mut router = RestOfARouter::new(size.other_lines);
    let reading = reading_cycles();
    let mut requests = Vec::with_capacity(size.requests_per_slice);
    for repetition in 0..size.repetitions {
        context.begin_step("blocks")?;
        let mut slices = vec![Vec::with_capacity(size.slices); all.len()];
        for slice in 0..size.slices {
            for (place, (measured, slices)) in all.iter().zip(&mut slices).enumerate() {
                if place % contestants.len() == 0 {
                    // Each order gets its own requests; its store would know repeated ones.
                    let draw = (repetition * size.slices + slice) * all.len() + place + 1;
                    requests.clear();
                    let seed = split_mix(context.seed ^ split_mix(draw as u64));
                    case.workload.for_each(size.requests_per_slice, seed, |request| requests.push(request));
                }
                let turn = &mut turns[place % contestants.len()];
                let mut watch = Stopwatch { router: &mut router, taken: Taken::default(), began: 0 };
                match measured.order {
                    Order::Scalar => turn.scalar(&requests, &mut watch),
                    Order::Late => turn.late(&requests, &mut watch),
                    Order::Batched => turn.batched(&requests, &mut watch),
                }
                slices.push(watch.taken);
            }
        }
        for (measured, slices) in all.iter_mut().zip(&slices) {
            measured.add(slices, reading, size.requests_per_slice);
        }
    }
    anyhow::ensure!(router.sum != 1, "the sum of nothing"); // keeps the reads from being optimized away
    Ok(all)
}

impl BlockCycles {
    fn add(&mut self, slices: &[Taken], reading: f64, requests: usize) {
        for (block, samples) in self.per_call.iter_mut().enumerate() {
            let per_call: Vec<f64> = slices
                .iter()
                .filter(|taken| taken.calls[block] > 0)
                .map(|taken| taken.without_reading(block, reading) / taken.calls[block] as f64)
                .collect();
            if let Some(summary) = Summary::of(&per_call) {
                samples.add(summary.median.max(0.0));
            }
        }
        let per_request = slices.iter().map(|taken| {
            (0..BLOCKS.len()).map(|block| taken.without_reading(block, reading)).sum::<f64>() / requests as f64
        });
        if let Some(summary) = Summary::of(&per_request.collect::<Vec<_>>()) {
            self.per_request.add(summary.median);
        }
    }
}

/// A contestant's store and its outstanding Interests.
struct Turn {
    store: ObjectStore,
    /// Interests whose Data come late.
    outstanding: VecDeque<Request>,
    outstanding_max: usize,
}

impl Turn {
    fn scalar(&mut self, requests: &[Request], watch: &mut Stopwatch<'_>) {
        for &request in requests {
            watch.router.work();
            if !self.store.interest(request, watch) {
                watch.router.work();
                self.data(request, watch);
            }
        }
    }

    fn late(&mut self, requests: &[Request], watch: &mut Stopwatch<'_>) {
        for &request in requests {
            watch.router.work();
            if !self.store.interest(request, watch) {
                self.outstanding.push_back(request);
            }
            if self.outstanding.len() > self.outstanding_max
                && let Some(due) = self.outstanding.pop_front()
            {
                watch.router.work();
                self.data(due, watch);
            }
        }
    }

    fn batched(&mut self, requests: &[Request], watch: &mut Stopwatch<'_>) {
        let mut missed = Vec::with_capacity(BATCH);
        for batch in requests.chunks(BATCH) {
            batch.iter().for_each(|_| watch.router.work());
            batch.iter().for_each(|request| self.store.prefetch_request(request.object));
            batch.iter().for_each(|request| self.store.prefetch_entry(request.object));
            missed.clear();
            watch.begin();
            batch.iter().for_each(|&request| self.store.update_history(request));
            watch.end_of(Block::Request, batch.len());
            for &request in batch {
                if !self.store.look_up(request, watch) {
                    missed.push(request);
                }
            }
            missed.iter().for_each(|_| watch.router.work());
            missed.iter().for_each(|request: &Request| self.store.prefetch_request(request.object));
            self.store.prefetch_victims(missed.len());
            self.store.prefetch_victims_history();
            missed.iter().for_each(|&request| self.data(request, watch));
        }
    }

    /// If an object was requested twice before its Data arrives, the Data arrives once.
    fn data(&mut self, request: Request, watch: &mut Stopwatch<'_>) {
        if !self.store.contains(request.object) {
            let _: Outcome = self.store.data(request, 1, watch);
        }
    }
}

/// The cost of a slice.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    cycles: [u64; BLOCKS.len()],
    calls: [u64; BLOCKS.len()],
    readings: [u64; BLOCKS.len()],
}

impl Taken {
    /// Cycles of a block, if a reading costs `reading`.
    fn without_reading(&self, block: usize, reading: f64) -> f64 {
        self.cycles[block] as f64 - self.readings[block] as f64 * reading
    }
}

struct Stopwatch<'a> {
    router: &'a mut RestOfARouter,
    taken: Taken,
    began: u64,
}

impl Watch for Stopwatch<'_> {
    #[inline]
    fn begin(&mut self) {
        self.began = tsc::read_in_order().unwrap_or(0);
    }

    #[inline]
    fn end(&mut self, block: Block) {
        self.end_of(block, 1);
    }
}

impl Stopwatch<'_> {
    /// After a block that was called `calls` times.
    #[inline]
    fn end_of(&mut self, block: Block, calls: usize) {
        let cycles = tsc::read_in_order().unwrap_or(self.began) - self.began;
        let place = place_of(block);
        self.taken.cycles[place] += cycles;
        self.taken.calls[place] += calls as u64;
        self.taken.readings[place] += 1;
    }
}

/// The memory accesses of a router beside its policy.
struct RestOfARouter {
    lines: Vec<[u64; 8]>,
    random: fastrand::Rng,
    sum: u64,
}

impl RestOfARouter {
    fn new(lines: usize) -> Self {
        Self { lines: vec![[2; 8]; lines], random: fastrand::Rng::with_seed(1), sum: 0 }
    }

    #[inline]
    fn work(&mut self) {
        for _ in 0..LINES_PER_PACKET {
            self.sum = self.sum.wrapping_add(self.lines[self.random.usize(..self.lines.len())][0]);
        }
    }
}

/// Cycles between two consecutive readings.
fn reading_cycles() -> f64 {
    let readings: Vec<f64> = (0..1_001)
        .map(|_| {
            let first = tsc::read_in_order().unwrap_or(0);
            (tsc::read_in_order().unwrap_or(first) - first) as f64
        })
        .collect();
    Summary::of(&readings).map_or(0.0, |summary| summary.median)
}
