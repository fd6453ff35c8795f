//! What happens to other faces when one floods the router with Interests that no producer answers?
//!
//! Ours; Yuan15 §5.7.2 leaves it to statistics and countermeasures. One engine runs in memory. Honest faces request
//! Data that arrive, with a window of outstanding Interests. Flooding faces meanwhile request other names, several
//! Interests to each honest one; none is answered or expires. The flood begins first, so that it has used its whole
//! share when the honest faces begin. Cases:
//! - no flood: the results of the honest faces, and the cost of an exchange;
//! - one face floods, or four, or eight, each of another host, under the limit (`tables.pit_face_share`);
//! - one face floods without such a limit: the control, in which the flood takes the PIT.
//!
//! The limit keeps PIT entries for the other faces, and counts drops by face. n flooding hosts with one face each leave
//! 1 / (1 + n · k² / (1 + k)) of what remote hosts may use, with k = share / (1 − share). If the honest faces need
//! more, they displace entries of the flood, as long as a flooding host has over twice as many as theirs. A flood still
//! costs time: the router must decode, hash and look up an Interest before it can drop it.
//!
//! Checked: under the limit no honest Interest is dropped while the limit leaves room; every Interest is answered,
//! pending, displaced or counted as dropped; while there is room, drops are counted for flooding faces only; at the end
//! the PIT is empty.
//!
//! *Delivered* is the share of honest Interests that were answered, at any speed. *Exchange* is the engine's cost of an
//! honest Interest and its Data, including the flood's effect on the caches. *Interest cut* is the cost of a dropped
//! Interest of the flood meanwhile. *Honest throughput* follows from these three: the answers per cycle of a saturated
//! worker, when each honest Interest comes with several of the flood, over those of the same repetition without a
//! flood. *Memory* is the resident memory of the process: when the flood has its share, after ten more times the PIT's
//! capacity, and when all Interests have expired.
//!
//! Limits: a worker that has no time for all packets may read sockets unfairly, so a flood's Interests may be more or
//! fewer than stated here. The flood's share of the link is not covered.

use std::collections::VecDeque;

use anyhow::{Context as _, ensure};
use namewire_engine::{
    BATCH_PACKETS, DropReason, EngineConfig, FaceAttributes, FaceId, FaceScope, Frame, Instant, PacketRef,
};
use namewire_packet::lp::LpHeaders;
use namewire_shares::HolderId;
use namewire_tables::HashKey;
use namewire_testbed::Forwarder;

use super::prefetch::traffic::{PAYLOAD_BYTES, Packets, Traffic};
use crate::experiment::{Context, Outcome, Samples};
use crate::process;
use crate::statistics::Summary;
use crate::synthetic_names::SyntheticNames;
use serde::Deserialize;

pub(super) const FILE: &str = include_str!("interest_flood.toml");

const PRODUCER: FaceId = FaceId(299);
const FIRST_HONEST: u64 = 300;
const FIRST_FLOOD: u64 = 400;
/// First number of the flood's names.
const FLOOD_NAMES: u64 = 1 << 40;
/// Batches of the flood per batch of honest Interests.
const FLOOD_BATCHES: u64 = 4;
/// Interests of the flood before the honest faces begin, in multiples of the PIT's capacity.
const FLOODS_BEFORE: u64 = 11;
/// Virtual time between packets: 5 million per second.
const NS_PER_PACKET: u64 = 200;
/// After this every Interest has expired.
const EXPIRED_MS: u64 = 61_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    pit_capacity: u32,
    honest_faces: u64,
    /// Outstanding honest batches.
    window: u64,
    /// Honest batches exchanged in one repetition.
    exchanged: u64,
    repetitions: usize,
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
    /// PIT entries that the flooding faces leave to remote hosts, by the rule of the engine's `pit_shares`.
    fn entries_left(self, size: &Size) -> u64 {
        let (share, rest) = (u64::from(self.face_share_percent), 100 - u64::from(self.face_share_percent));
        let capacity = u64::from(size.pit_capacity);
        let usable = capacity - capacity / 16 - capacity / 8;
        usable * 100 * rest / (100 * rest + self.floods * share * share)
    }

    /// Whether these are enough for the honest faces, by the same rule.
    fn leaves_room(self, size: &Size) -> bool {
        let (share, rest) = (u64::from(self.face_share_percent), 100 - u64::from(self.face_share_percent));
        let asked = size.window * BATCH_PACKETS as u64;
        asked / size.honest_faces * rest < share * self.entries_left(size).saturating_sub(asked)
    }
}

/// The results of one repetition of a case.
struct Seen {
    delivered: f64,
    /// Cycles of an exchange; nanoseconds without a cycle counter.
    exchange: f64,
    /// Cost of an Interest of the flood while the honest faces exchange; 0 without a flood.
    flood: f64,
    /// Rate at which a saturated worker answers honest Interests, over the rate without a flood.
    throughput: f64,
    pending: [u64; 3],
    resident_kib: [u64; 3],
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    context.plan_steps(size.repetitions * CASES.len());
    let mut seen: Vec<(Case, Vec<Seen>)> = CASES.map(|case| (case, Vec::new())).into();
    for repetition in 0..size.repetitions {
        let mut alone = None; // the first case
        for (case, seen) in &mut seen {
            context.begin_step(case.title)?;
            let seed = context.seed ^ (repetition as u64) << 32;
            let mut now = Flooded::new(*case, &size, seed)?.run(context, &size)?;
            let per_cycle = now.delivered / (now.exchange + FLOOD_BATCHES as f64 * now.flood);
            now.throughput = per_cycle / *alone.get_or_insert(per_cycle);
            seen.push(now);
        }
    }
    let mut outcome = Outcome::default();
    let unit = context.clock.tick_unit();
    for (case, seen) in &seen {
        let mut row = |metric: &str, unit: &str, value: &dyn Fn(&Seen) -> Option<f64>| {
            let samples: Samples = seen.iter().filter_map(value).collect();
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
        "The limit drops an Interest as face-share-used, and counts it for the face that sent it as cut.face-N \
         (`namewire status`). It keeps PIT entries for the other faces."
            .to_owned(),
        format!(
            "The limit does not save the worker's time: dropping an Interest takes {:.0} {unit}, an honest exchange {:.0}. A \
         saturated worker that receives {FLOOD_BATCHES} Interests of the flood with each honest one answers {:.2} of \
         what it answers without a flood; `flood_honest_share` is the share of Interests for which the worker has time.",
            outcome.headline["flood_cut_cycles"],
            outcome.headline["flood_exchange_cycles"],
            outcome.headline["flood_honest_throughput"],
        ),
        format!(
            "Eight flooding faces leave {} entries: {} for the honest ones.",
            EIGHT_FLOODS.entries_left(&size),
            if EIGHT_FLOODS.leaves_room(&size) { "enough" } else { "too few" }
        ),
    ];
    Ok(outcome)
}

fn headline(seen: &[(Case, Vec<Seen>)], outcome: &mut Outcome) -> anyhow::Result<()> {
    let median = |case: Case, value: &dyn Fn(&Seen) -> f64| {
        let of_case = seen.iter().filter(|(known, _)| *known == case).flat_map(|(_, seen)| seen);
        of_case.map(value).collect::<Samples>().median().with_context(|| format!("no result for {}", case.title))
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
    ensure!(unlimited < 0.5, "without the limit {unlimited:.3} were answered: the flood had no effect");
    Ok(())
}

/// A router under a flood, and its neighbours.
struct Flooded {
    case: Case,
    node: Forwarder,
    traffic: Traffic,
    packets: Packets,
    next_flood: u64,
    /// Honest Interests that were not forwarded.
    honest_cut: u64,
}

impl Flooded {
    fn new(case: Case, size: &Size, seed: u64) -> anyhow::Result<Self> {
        let key = HashKey::from_seed(seed);
        let config = EngineConfig {
            pit_capacity_entries: size.pit_capacity,
            face_share_percent: case.face_share_percent,
            ..EngineConfig::default()
        };
        let mut node = Forwarder::with_key(config, 1, key, seed)?;
        let honest = (0..size.honest_faces).map(|face| FIRST_HONEST + face);
        for face in honest.chain((0..case.floods).map(|flood| FIRST_FLOOD + flood)).chain([PRODUCER.0]) {
            // Each of another host.
            let holder = HolderId::from_index(face as usize).context("few faces")?;
            node.faces
                .insert(FaceId(face), FaceAttributes { holder, ..FaceAttributes::new(FaceScope::NonLocal, 0, false) });
        }
        node.route("/", &[PRODUCER]);
        node.now = Instant(1_000_000_000);
        Ok(Self {
            case,
            node,
            traffic: Traffic::new(SyntheticNames::new(seed, 1 << 20), PAYLOAD_BYTES),
            packets: Packets::default(),
            next_flood: FLOOD_NAMES,
            honest_cut: 0,
        })
    }

    fn run(mut self, context: &Context, size: &Size) -> anyhow::Result<Seen> {
        let own_process = std::process::id();
        let resident = || process::resident_kib(own_process).context("the kernel does not report resident memory");
        let (mut pending, mut resident_kib) = ([0; 3], [0; 3]);
        for part in 0..FLOODS_BEFORE {
            context.check_interrupt()?;
            for _ in 0..u64::from(size.pit_capacity) / BATCH_PACKETS as u64 {
                self.flood(context);
            }
            if part == 0 {
                (pending[0], resident_kib[0]) = (self.node.pit_len() as u64, resident()?);
            }
        }
        (pending[1], resident_kib[1]) = (self.node.pit_len() as u64, resident()?);
        let (delivered, exchange, flood) = self.exchange(context, size);
        self.check(size)?;
        self.node.now = self.node.now.plus_ms(EXPIRED_MS);
        self.node.run_timers();
        (pending[2], resident_kib[2]) = (self.node.pit_len() as u64, resident()?);
        ensure!(pending[2] == 0, "{} Interests are pending after their lifetime", pending[2]);
        Ok(Seen { delivered, exchange, flood, throughput: f64::NAN, pending, resident_kib })
    }

    /// Sends a batch from each honest face in turn while the flood goes on. Data for the forwarded Interests come once
    /// the window of batches is outstanding. Returns the share that was answered, the cost of an exchange and the cost
    /// of an Interest of the flood.
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
                let forwarded = self.node.out.transmits.iter().filter_map(|transmit| match transmit.packet {
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
                answered += self.node.out.transmits.iter().filter(|transmit| transmit.face == to).count() as u64;
                // The first half touches memory for the first time; the flood has done so already.
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

    /// Sends a batch from each flooding face, if there are any.
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

    /// The engine's cost for the packets, each from its face.
    fn process(&mut self, context: &Context, face: impl Fn(usize) -> FaceId) -> u64 {
        let mut frames: Vec<Frame<'_>> = self.packets.frames(PRODUCER);
        frames.iter_mut().enumerate().for_each(|(place, frame)| frame.face = face(place));
        self.node.now.0 += NS_PER_PACKET * frames.len() as u64;
        let mut worker = self.node.worker(0);
        let before = context.clock.ticks();
        worker.process(&mut frames);
        context.clock.ticks().saturating_sub(before)
    }

    /// Checks the counts of drops by face, and that every Interest is accounted for.
    fn check(&self, size: &Size) -> anyhow::Result<()> {
        let counters = self.node.counters();
        let cut = counters.dropped(DropReason::FaceShareUsed);
        let by_name: u64 = counters.faces_cut.iter().map(|cut| cut.interests).sum();
        let is_flood = |face: FaceId| (FIRST_FLOOD..FIRST_FLOOD + self.case.floods).contains(&face.0);
        let only_floods = counters.faces_cut.iter().all(|cut| is_flood(cut.face));
        ensure!(
            cut == by_name && (only_floods || !self.case.leaves_room(size)),
            "honest faces have drops: {:?}",
            counters.faces_cut
        );
        let (asked, pending) = (self.next_flood - FLOOD_NAMES, self.node.pit_len() as u64);
        if self.case.face_share_percent < 100 {
            let refused = cut + counters.dropped(DropReason::PitShareUsed) + counters.dropped(DropReason::PitFull);
            let cut_flood =
                refused.checked_sub(self.honest_cut).context("fewer drops were counted than Interests were lost")?;
            let displaced: u64 = self.node.engines[0].pools().iter().map(|pool| pool.displaced()).sum();
            ensure!(
                asked == pending + cut_flood + displaced,
                "{asked} Interests of the flood: {pending} pending, {cut_flood} dropped, {displaced} displaced"
            );
            ensure!(
                self.honest_cut == 0 || !self.case.leaves_room(size),
                "{} honest ones were dropped",
                self.honest_cut
            );
        }
        ensure!(pending <= u64::from(size.pit_capacity), "{pending} Interests are pending");
        Ok(())
    }
}

/// The names of a batch.
fn numbers(batch: u64) -> std::ops::Range<u64> {
    batch * BATCH_PACKETS as u64..(batch + 1) * BATCH_PACKETS as u64
}
