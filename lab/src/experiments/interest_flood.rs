//! What does a face do to the others that floods the router with Interests that nobody answers?
//!
//! Ours; Yuan15 §5.7.2 leaves it to statistics and countermeasures. One engine in memory: honest faces ask for Data
//! that come, a window of them outstanding at a time; flooding faces ask for other names all the while, several
//! Interests to each honest one, and none of theirs is answered or expires. The flood begins first, so that it holds all
//! that it may when the honest faces begin. Cases:
//! - no flood: what the honest faces get, and what an exchange costs;
//! - one face floods, and four do, under the limit per face (`tables.pit_face_share`);
//! - one face floods where there is no such limit: the control, in which the PIT is the flood's.
//!
//! Checked before anything is reported: no honest Interest is dropped under the limit; every Interest of the flood is
//! pending or counted as cut; only those that flood are named; afterwards the PIT is empty.
//!
//! *Delivered* is the share of honest Interests that were answered; *exchange* is what one costs the engine, Interest
//! and Data; a flood costs the others the caches, too. *Memory* is what the process has resident, when the flood has its
//! share, after ten times the PIT more of it, and when all has expired.
//!
//! What the numbers do not say: how fair the worker is when it reads sockets, and what a flood takes of the link.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use namewire_engine::dispatch::Dispatcher;
use namewire_engine::{
    BATCH_PACKETS, DropReason, Engine, EngineConfig, FaceAttributes, FaceId, FaceScope, FaceTable, Frame, Instant,
    Output, StrategyTable, View,
};
use namewire_packet::lp::LpHeaders;
use namewire_tables::{Fib, HashKey, NextHop};

use super::prefetch::traffic::{PAYLOAD_OCTETS, Packets, Traffic};
use crate::experiment::{Context, Experiment, Outcome, Samples, Scale};
use crate::process;
use crate::synthetic_names::SyntheticNames;

/// Its line in the table.
pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "interest-flood",
    source: "ours; Yuan15 §5.7.2",
    question: "What does a face do to the others that floods the router with Interests that nobody answers?",
    needs: "quick: 1 min, 200 MB; full: 5 min, 600 MB",
    takes_names: false,
    takes_trace: false,
    run,
};

const PRODUCER: FaceId = FaceId(299);
const FIRST_HONEST: u64 = 300;
const FIRST_FLOOD: u64 = 400;
/// First number of the names that the flood asks for.
const FLOOD_NAMES: u64 = 1 << 40;
/// Batches of the flood to one of honest Interests.
const FLOOD_BATCHES: u64 = 4;
/// Times the PIT's capacity that the flood asks for before the honest faces begin.
const FLOODS_BEFORE: u64 = 11;
/// Virtual time between packets: 5 million per second.
const NS_PER_PACKET: u64 = 200;
/// After this every Interest has expired.
const EXPIRED_MS: u64 = 61_000;

struct Size {
    pit_capacity: u32,
    honest_faces: u64,
    /// Honest batches outstanding at a time.
    window: u64,
    /// Honest batches exchanged in one repetition.
    exchanged: u64,
    repetitions: usize,
}

const fn size(scale: Scale) -> Size {
    match scale {
        Scale::Smoke => Size { pit_capacity: 4_096, honest_faces: 2, window: 2, exchanged: 20, repetitions: 3 },
        Scale::Quick => Size { pit_capacity: 65_536, honest_faces: 8, window: 32, exchanged: 2_000, repetitions: 7 },
        Scale::Full => Size { pit_capacity: 262_144, honest_faces: 8, window: 32, exchanged: 4_000, repetitions: 15 },
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Case {
    title: &'static str,
    floods: u64,
    face_share_percent: u32,
}

const NO_FLOOD: Case = Case { title: "no flood", floods: 0, face_share_percent: 80 };
const ONE_FLOOD: Case = Case { title: "one face floods", floods: 1, face_share_percent: 80 };
const FOUR_FLOODS: Case = Case { title: "four faces flood", floods: 4, face_share_percent: 80 };
const NO_LIMIT: Case = Case { title: "one face floods, no limit", floods: 1, face_share_percent: 100 };
const CASES: [Case; 4] = [NO_FLOOD, ONE_FLOOD, FOUR_FLOODS, NO_LIMIT];

/// What one repetition of a case came to.
struct Seen {
    delivered: f64,
    /// Cycles, or nanoseconds where there is no counter of them.
    exchange: f64,
    cut: Option<f64>,
    pending: [u64; 3],
    resident_kib: [u64; 3],
}

fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size = size(context.scale);
    context.plan_steps(size.repetitions * CASES.len());
    let mut seen: Vec<(Case, Vec<Seen>)> = CASES.map(|case| (case, Vec::new())).into();
    for repetition in 0..size.repetitions {
        for (case, seen) in &mut seen {
            context.begin_step(case.title)?;
            let seed = context.seed ^ (repetition as u64) << 32;
            seen.push(Node::new(*case, &size, seed)?.run(context, &size)?);
            context.end_step();
        }
    }
    let mut outcome = Outcome::default();
    let unit = if context.clock.tsc_hz().is_some() { "TSC cycles" } else { "ns" };
    for (case, seen) in &seen {
        let mut row = |metric: &str, unit: &str, value: &dyn Fn(&Seen) -> Option<f64>| {
            let mut samples = Samples::default();
            seen.iter().filter_map(value).for_each(|value| samples.add(value));
            if samples.median().is_some() {
                outcome.rows.push(samples.row(case.title, "honest faces", metric, unit, None));
            }
            samples.median()
        };
        row("delivered", "share", &|seen| Some(seen.delivered));
        row("exchange", unit, &|seen| Some(seen.exchange));
        row("Interest cut", unit, &|seen| seen.cut);
        for (place, when) in ["at its share", "after ten PITs more", "when expired"].into_iter().enumerate() {
            row(&format!("pending, {when}"), "Interests", &|seen| Some(seen.pending[place] as f64));
            row(&format!("resident, {when}"), "MiB", &|seen| Some(seen.resident_kib[place] as f64 / 1024.0));
        }
    }
    headline(&seen, &mut outcome)?;
    outcome.notes = vec![
        format!(
            "{} PIT entries; {} honest faces, {} Interests outstanding; {FLOOD_BATCHES} Interests of the flood to each honest \
             one.",
            size.pit_capacity,
            size.honest_faces,
            size.window * BATCH_PACKETS as u64
        ),
        "An Interest that is cut is dropped as face-share-used, and the face that sent it is named beside it as \
         cut.face-N (`namewire status`)."
            .to_owned(),
    ];
    Ok(outcome)
}

fn headline(seen: &[(Case, Vec<Seen>)], outcome: &mut Outcome) -> anyhow::Result<()> {
    let median = |case: Case, value: &dyn Fn(&Seen) -> f64| {
        let mut samples = Samples::default();
        seen.iter()
            .filter(|(known, _)| *known == case)
            .flat_map(|(_, seen)| seen)
            .for_each(|seen| samples.add(value(seen)));
        samples.median().with_context(|| format!("nothing was seen of {}", case.title))
    };
    let delivered = |case| median(case, &|seen| seen.delivered);
    let exchange = |case| median(case, &|seen| seen.exchange);
    let growth = |seen: &Seen| seen.resident_kib[1].saturating_sub(seen.resident_kib[0]) as f64 * 1024.0;
    let alone = delivered(NO_FLOOD)?;
    for (key, value) in [
        ("flood_honest_share", delivered(ONE_FLOOD)?.min(delivered(FOUR_FLOODS)?) / alone),
        ("flood_honest_share_without_limit", delivered(NO_LIMIT)? / alone),
        ("flood_exchange_over_no_flood", exchange(ONE_FLOOD)? / exchange(NO_FLOOD)?),
        ("flood_memory_growth_bytes", median(ONE_FLOOD, &growth)?),
        ("flood_pending_max", median(ONE_FLOOD, &|seen| seen.pending[1] as f64)?),
    ] {
        outcome.headline.insert(key.to_owned(), value);
    }
    let (limited, unlimited) =
        (outcome.headline["flood_honest_share"], outcome.headline["flood_honest_share_without_limit"]);
    ensure!(limited >= 0.9, "under a flood {limited:.3} of the honest Interests were answered");
    ensure!(unlimited < 0.5, "without the limit {unlimited:.3} were answered: the flood was none");
    Ok(())
}

/// A router's engine and those around it.
struct Node {
    case: Case,
    engine: Engine,
    fib: Fib,
    faces: FaceTable,
    strategies: StrategyTable,
    traffic: Traffic,
    now: Instant,
    out: Output,
    packets: Packets,
    next_flood: u64,
}

impl Node {
    fn new(case: Case, size: &Size, seed: u64) -> anyhow::Result<Self> {
        let key = HashKey::from_seed(seed);
        let config = EngineConfig {
            pit_capacity_entries: size.pit_capacity,
            face_share_percent: case.face_share_percent,
            ..EngineConfig::default()
        };
        let mut faces = FaceTable::default();
        let honest = (0..size.honest_faces).map(|face| FIRST_HONEST + face);
        for face in honest.chain((0..case.floods).map(|flood| FIRST_FLOOD + flood)).chain([PRODUCER.0]) {
            faces.insert(FaceId(face), FaceAttributes::new(FaceScope::NonLocal, 0, false));
        }
        let mut fib = Fib::new(1, key);
        fib.insert(&[], &[NextHop { face: PRODUCER.0, cost: 0 }], 0, false)?;
        Ok(Self {
            case,
            engine: Engine::new(config, 0, Arc::new(Dispatcher::new(1, key)), key, seed)?,
            fib,
            faces,
            strategies: StrategyTable::default(),
            traffic: Traffic::new(SyntheticNames::new(seed, 1 << 20), PAYLOAD_OCTETS),
            now: Instant(1_000_000_000),
            out: Output::default(),
            packets: Packets::default(),
            next_flood: FLOOD_NAMES,
        })
    }

    fn run(mut self, context: &Context, size: &Size) -> anyhow::Result<Seen> {
        let own_process = std::process::id();
        let resident = || process::resident_kib(own_process).context("the kernel does not say what is resident");
        let (mut pending, mut resident_kib) = ([0; 3], [0; 3]);
        let mut cut = Samples::default();
        for part in 0..FLOODS_BEFORE {
            context.check_interrupt()?;
            for _ in 0..u64::from(size.pit_capacity) / BATCH_PACKETS as u64 {
                let ticks = self.flood(context)?;
                if part > 0 && self.case.floods > 0 && self.case.face_share_percent < 100 {
                    cut.add(ticks as f64 / BATCH_PACKETS as f64);
                }
            }
            if part == 0 {
                (pending[0], resident_kib[0]) = (self.engine.pit_len() as u64, resident()?);
            }
        }
        (pending[1], resident_kib[1]) = (self.engine.pit_len() as u64, resident()?);
        let (delivered, exchange) = self.exchange(context, size)?;
        self.check(size)?;
        self.now = self.now.plus_ms(EXPIRED_MS);
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        while self.engine.next_deadline().is_some_and(|at| at <= self.now) {
            self.engine.run_timers(self.now, &view, &mut self.out);
        }
        (pending[2], resident_kib[2]) = (self.engine.pit_len() as u64, resident()?);
        ensure!(pending[2] == 0, "{} Interests outlived their time", pending[2]);
        Ok(Seen { delivered, exchange, cut: cut.median(), pending, resident_kib })
    }

    /// A batch of each honest face in turn, its Data when as many batches are outstanding as may be; the flood goes on.
    /// Gives the share that was answered, and what an exchange cost.
    fn exchange(&mut self, context: &Context, size: &Size) -> anyhow::Result<(f64, f64)> {
        let face = |batch: u64| FaceId(FIRST_HONEST + batch % size.honest_faces);
        let (mut answered, mut costs) = (0, Vec::new());
        for batch in 0..size.exchanged + size.window {
            for _ in 0..FLOOD_BATCHES {
                self.flood(context)?;
            }
            let mut ticks = 0;
            if batch < size.exchanged {
                self.packets.clear();
                numbers(batch).for_each(|number| self.traffic.push_interest(number, &mut self.packets));
                ticks += self.process(context, |_| face(batch));
            }
            if batch >= size.window {
                self.packets.clear();
                let push = |number| self.traffic.push_data(number, LpHeaders::default(), &mut self.packets);
                numbers(batch - size.window).for_each(push);
                ticks += self.process(context, |_| PRODUCER);
                let to = face(batch - size.window);
                answered += self.out.transmits.iter().filter(|transmit| transmit.face == to).count() as u64;
                // Until then memory is touched for the first time, which a flood has done already.
                if (size.exchanged / 2..size.exchanged).contains(&batch) {
                    costs.push(ticks);
                }
            }
        }
        costs.sort_unstable();
        let exchange = costs.get(costs.len() / 2).copied().unwrap_or(0) as f64 / BATCH_PACKETS as f64;
        Ok((answered as f64 / (size.exchanged * BATCH_PACKETS as u64) as f64, exchange))
    }

    /// A batch of those that flood, if there are any.
    fn flood(&mut self, context: &Context) -> anyhow::Result<u64> {
        if self.case.floods == 0 {
            return Ok(0);
        }
        let (first, floods) = (self.next_flood, self.case.floods);
        self.next_flood += BATCH_PACKETS as u64;
        self.packets.clear();
        (first..self.next_flood).for_each(|number| self.traffic.push_interest(number, &mut self.packets));
        Ok(self.process(context, |place| FaceId(FIRST_FLOOD + place as u64 % floods)))
    }

    /// What the engine takes for the packets, each from its face.
    fn process(&mut self, context: &Context, face: impl Fn(usize) -> FaceId) -> u64 {
        let mut frames: Vec<Frame<'_>> = self.packets.frames(PRODUCER);
        frames.iter_mut().enumerate().for_each(|(place, frame)| frame.face = face(place));
        self.now.0 += NS_PER_PACKET * frames.len() as u64;
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        let ticks = || crate::tsc::read().unwrap_or_else(|| context.clock.now_ns());
        let before = ticks();
        self.engine.process(self.now, &view, &mut frames, &mut self.out);
        ticks().saturating_sub(before)
    }

    /// Who was cut, and that everything of the flood is accounted for.
    fn check(&self, size: &Size) -> anyhow::Result<()> {
        let counters = self.engine.counters();
        let cut = counters.dropped(DropReason::FaceShareUsed);
        let by_name: u64 = counters.faces_cut.iter().map(|cut| cut.interests).sum();
        let is_flood = |face: FaceId| (FIRST_FLOOD..FIRST_FLOOD + self.case.floods).contains(&face.0);
        ensure!(
            cut == by_name && counters.faces_cut.iter().all(|cut| is_flood(cut.face)),
            "others than those that flood were cut: {:?}",
            counters.faces_cut
        );
        let (asked, pending) = (self.next_flood - FLOOD_NAMES, self.engine.pit_len() as u64);
        if self.case.face_share_percent < 100 {
            ensure!(counters.dropped(DropReason::PitFull) == 0, "the PIT was full in spite of the limit");
            ensure!(asked == pending + cut, "{asked} Interests of the flood: {pending} pending, {cut} cut");
        }
        ensure!(pending <= u64::from(size.pit_capacity), "{pending} Interests are pending");
        Ok(())
    }
}

/// The names of a batch.
fn numbers(batch: u64) -> std::ops::Range<u64> {
    batch * BATCH_PACKETS as u64..(batch + 1) * BATCH_PACKETS as u64
}
