//! What does a face do to the others that floods the router with Interests that nobody answers?
//!
//! Ours; Yuan15 §5.7.2 leaves it to statistics and countermeasures. One engine in memory: honest faces ask for Data
//! that come, a window of them outstanding at a time; flooding faces ask for other names all the while, several
//! Interests to each honest one, and none of theirs is answered or expires. The flood begins first, so that it holds all
//! that it may when the honest faces begin. Cases:
//! - no flood: what the honest faces get, and what an exchange costs;
//! - one face floods, and four and eight do, under the limit per face (`tables.pit_face_share`);
//! - one face floods where there is no such limit: the control, in which the PIT is the flood's.
//!
//! What the limit does is to keep PIT entries for the others, and to say who was cut. n faces that flood leave
//! 1 / (1 + n · share / (1 − share)) of the PIT; where that is less than the honest faces ask for, as with eight of them
//! and 65,536 entries, honest Interests are cut, too. It does not make a flood free: an Interest must be decoded, hashed
//! and looked up before it can be cut.
//!
//! Checked before anything is reported: no honest Interest is dropped under the limit while it leaves room for them;
//! every Interest is answered, pending or counted as cut; while there is room only those that flood are named;
//! afterwards the PIT is empty.
//!
//! *Delivered* is the share of honest Interests that were answered, at whatever speed that takes. *Exchange* is what an
//! honest Interest costs the engine, with its Data; a flood costs the others the caches, too. *Interest cut* is what one
//! of the flood costs meanwhile. *Honest throughput* is what a worker at its limit has left, from these three: answers
//! per cycle, when each honest Interest comes with several of the flood, over those of the same repetition without it.
//! *Memory* is what the process has resident, when the flood has its share, after ten times the PIT more of it, and when
//! all has expired.
//!
//! What the numbers do not say: how fair the worker is when it reads sockets, so that a flood's Interests are more or
//! fewer than stated here when it has no time for all; and what a flood takes of the link.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use namewire_engine::dispatch::Dispatcher;
use namewire_engine::{
    BATCH_PACKETS, DropReason, Engine, EngineConfig, FaceAttributes, FaceId, FaceScope, FaceTable, Frame, Instant,
    Output, PacketRef, StrategyTable, View,
};
use namewire_packet::lp::LpHeaders;
use namewire_tables::{Fib, HashKey, NextHop};

use super::prefetch::traffic::{PAYLOAD_OCTETS, Packets, Traffic};
use crate::experiment::{Context, Experiment, Outcome, Samples, Scale};
use crate::process;
use crate::statistics::Summary;
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
const EIGHT_FLOODS: Case = Case { title: "eight faces flood", floods: 8, face_share_percent: 80 };
const NO_LIMIT: Case = Case { title: "one face floods, no limit", floods: 1, face_share_percent: 100 };
const CASES: [Case; 5] = [NO_FLOOD, ONE_FLOOD, FOUR_FLOODS, EIGHT_FLOODS, NO_LIMIT];

impl Case {
    /// What those that flood leave of the PIT, by the rule of `engine::face_share`.
    fn entries_left(self, size: &Size) -> u64 {
        let (share, rest) = (u64::from(self.face_share_percent), 100 - u64::from(self.face_share_percent));
        u64::from(size.pit_capacity) * rest / (rest + self.floods * share)
    }

    /// Whether that is enough for the honest faces, by the same rule.
    fn leaves_room(self, size: &Size) -> bool {
        let (share, rest) = (u64::from(self.face_share_percent), 100 - u64::from(self.face_share_percent));
        let asked = size.window * BATCH_PACKETS as u64;
        asked / size.honest_faces * rest < share * self.entries_left(size).saturating_sub(asked)
    }
}

/// What one repetition of a case came to.
struct Seen {
    delivered: f64,
    /// Cycles, or nanoseconds where there is no counter of them.
    exchange: f64,
    /// Of an Interest of the flood, while the honest faces exchange; 0 if there is none.
    flood: f64,
    /// Honest Interests that a worker without time to spare answers in a time, over no flood.
    throughput: f64,
    pending: [u64; 3],
    resident_kib: [u64; 3],
}

fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size = size(context.scale);
    context.plan_steps(size.repetitions * CASES.len());
    let mut seen: Vec<(Case, Vec<Seen>)> = CASES.map(|case| (case, Vec::new())).into();
    for repetition in 0..size.repetitions {
        let mut alone = None; // the first case
        for (case, seen) in &mut seen {
            context.begin_step(case.title)?;
            let seed = context.seed ^ (repetition as u64) << 32;
            let mut now = Node::new(*case, &size, seed)?.run(context, &size)?;
            let per_cycle = now.delivered / (now.exchange + FLOOD_BATCHES as f64 * now.flood);
            now.throughput = per_cycle / *alone.get_or_insert(per_cycle);
            seen.push(now);
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
        row("honest throughput", "over no flood", &|seen| Some(seen.throughput));
        row("Interest cut", unit, &|seen| (case.floods > 0 && case.face_share_percent < 100).then_some(seen.flood));
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
         cut.face-N (`namewire status`): the limit says who was cut, and keeps PIT entries for the others."
            .to_owned(),
        format!(
            "The limit does not keep the worker's time for them: an Interest that is cut takes {:.0} {unit}, an honest \
             exchange {:.0}. A worker at its limit that is sent {FLOOD_BATCHES} Interests of the flood with each honest \
             one answers {:.2} of what it answers without a flood; `flood_honest_share` is of Interests that the \
             worker has the time for.",
            outcome.headline["flood_cut_cycles"],
            outcome.headline["flood_exchange_cycles"],
            outcome.headline["flood_honest_throughput"],
        ),
        format!(
            "Eight faces that flood leave {} entries: {} for the honest ones.",
            EIGHT_FLOODS.entries_left(&size),
            if EIGHT_FLOODS.leaves_room(&size) { "enough" } else { "too few" }
        ),
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
    let throughput = |case| median(case, &|seen| seen.throughput);
    let alone = delivered(NO_FLOOD)?;
    for (key, value) in [
        ("flood_honest_share", delivered(ONE_FLOOD)?.min(delivered(FOUR_FLOODS)?) / alone),
        ("flood_honest_share_eight_faces", delivered(EIGHT_FLOODS)? / alone),
        ("flood_honest_share_without_limit", delivered(NO_LIMIT)? / alone),
        ("flood_honest_throughput", throughput(ONE_FLOOD)?),
        ("flood_honest_throughput_eight_faces", throughput(EIGHT_FLOODS)?),
        ("flood_cut_cycles", median(ONE_FLOOD, &|seen| seen.flood)?),
        ("flood_exchange_cycles", exchange(ONE_FLOOD)?),
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
    /// Honest Interests that were not forwarded.
    honest_cut: u64,
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
            honest_cut: 0,
        })
    }

    fn run(mut self, context: &Context, size: &Size) -> anyhow::Result<Seen> {
        let own_process = std::process::id();
        let resident = || process::resident_kib(own_process).context("the kernel does not say what is resident");
        let (mut pending, mut resident_kib) = ([0; 3], [0; 3]);
        for part in 0..FLOODS_BEFORE {
            context.check_interrupt()?;
            for _ in 0..u64::from(size.pit_capacity) / BATCH_PACKETS as u64 {
                self.flood(context);
            }
            if part == 0 {
                (pending[0], resident_kib[0]) = (self.engine.pit_len() as u64, resident()?);
            }
        }
        (pending[1], resident_kib[1]) = (self.engine.pit_len() as u64, resident()?);
        let (delivered, exchange, flood) = self.exchange(context, size);
        self.check(size)?;
        self.now = self.now.plus_ms(EXPIRED_MS);
        let view = View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces };
        while self.engine.next_deadline().is_some_and(|at| at <= self.now) {
            self.engine.run_timers(self.now, &view, &mut self.out);
        }
        (pending[2], resident_kib[2]) = (self.engine.pit_len() as u64, resident()?);
        ensure!(pending[2] == 0, "{} Interests outlived their time", pending[2]);
        Ok(Seen { delivered, exchange, flood, throughput: f64::NAN, pending, resident_kib })
    }

    /// A batch of each honest face in turn, Data for what was forwarded of it when as many batches are outstanding as
    /// may be; the flood goes on. Gives the share that was answered, and what an exchange cost, and an Interest of the
    /// flood.
    fn exchange(&mut self, context: &Context, size: &Size) -> (f64, f64, f64) {
        let face = |batch: u64| FaceId(FIRST_HONEST + batch % size.honest_faces);
        let (mut answered, mut costs, mut flood_costs) = (0, Vec::new(), Vec::new());
        let mut outstanding: VecDeque<Vec<u64>> = VecDeque::new();
        for batch in 0..size.exchanged + size.window {
            let flood_ticks: u64 = (0..FLOOD_BATCHES).map(|_| self.flood(context)).sum();
            let mut ticks = 0;
            if batch < size.exchanged {
                self.packets.clear();
                numbers(batch).for_each(|number| self.traffic.push_interest(number, &mut self.packets));
                ticks += self.process(context, |_| face(batch));
                let forwarded = self.out.transmits.iter().filter_map(|transmit| match transmit.packet {
                    PacketRef::Frame(place) => Some(numbers(batch).start + u64::from(place)),
                    _ => None,
                });
                let forwarded: Vec<u64> = forwarded.collect();
                self.honest_cut += (BATCH_PACKETS - forwarded.len()) as u64;
                outstanding.push_back(forwarded);
            }
            if batch >= size.window {
                self.packets.clear();
                let push = |number| self.traffic.push_data(number, LpHeaders::default(), &mut self.packets);
                outstanding.pop_front().into_iter().flatten().for_each(push);
                ticks += self.process(context, |_| PRODUCER);
                let to = face(batch - size.window);
                answered += self.out.transmits.iter().filter(|transmit| transmit.face == to).count() as u64;
                // Until then memory is touched for the first time, which a flood has done already.
                if (size.exchanged / 2..size.exchanged).contains(&batch) {
                    costs.push(ticks as f64 / BATCH_PACKETS as f64);
                    flood_costs.push(flood_ticks as f64 / (FLOOD_BATCHES * BATCH_PACKETS as u64) as f64);
                }
            }
        }
        let median = |costs: &[f64]| Summary::of(costs).map_or(0.0, |summary| summary.median);
        let delivered = answered as f64 / (size.exchanged * BATCH_PACKETS as u64) as f64;
        (delivered, median(&costs), median(&flood_costs))
    }

    /// A batch of those that flood, if there are any.
    fn flood(&mut self, context: &Context) -> u64 {
        if self.case.floods == 0 {
            return 0;
        }
        let (first, floods) = (self.next_flood, self.case.floods);
        self.next_flood += BATCH_PACKETS as u64;
        self.packets.clear();
        (first..self.next_flood).for_each(|number| self.traffic.push_interest(number, &mut self.packets));
        self.process(context, |place| FaceId(FIRST_FLOOD + place as u64 % floods))
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

    /// Who was cut, and that everything is accounted for.
    fn check(&self, size: &Size) -> anyhow::Result<()> {
        let counters = self.engine.counters();
        let cut = counters.dropped(DropReason::FaceShareUsed);
        let by_name: u64 = counters.faces_cut.iter().map(|cut| cut.interests).sum();
        let is_flood = |face: FaceId| (FIRST_FLOOD..FIRST_FLOOD + self.case.floods).contains(&face.0);
        let only_floods = counters.faces_cut.iter().all(|cut| is_flood(cut.face));
        ensure!(
            cut == by_name && (only_floods || !self.case.leaves_room(size)),
            "others than those that flood were cut: {:?}",
            counters.faces_cut
        );
        let (asked, pending) = (self.next_flood - FLOOD_NAMES, self.engine.pit_len() as u64);
        if self.case.face_share_percent < 100 {
            ensure!(counters.dropped(DropReason::PitFull) == 0, "the PIT was full in spite of the limit");
            let cut_flood = cut.checked_sub(self.honest_cut).context("fewer were cut than did not come out")?;
            ensure!(asked == pending + cut_flood, "{asked} Interests of the flood: {pending} pending, {cut_flood} cut");
            ensure!(self.honest_cut == 0 || !self.case.leaves_room(size), "{} honest ones were cut", self.honest_cut);
        }
        ensure!(pending <= u64::from(size.pit_capacity), "{pending} Interests are pending");
        Ok(())
    }
}

/// The names of a batch.
fn numbers(batch: u64) -> std::ops::Range<u64> {
    batch * BATCH_PACKETS as u64..(batch + 1) * BATCH_PACKETS as u64
}
