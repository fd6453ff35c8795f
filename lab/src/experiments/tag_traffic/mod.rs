//! How many packets of pull and push flows does a router forward in a second, all steps of a packet together?
//!
//! Source: TagNet16 §4.5, Fig. 11 and Table 1. A push has one packet, by descriptor to all. A pull has one packet by
//! descriptor to one, then further packets by locator (`flows.rs`). Percentages are of flows, not of packets.
//!
//! | step of a packet | code |
//! | --- | --- |
//! | parse, with all checks | `namewire_packet::tag::TagPacket::parse` |
//! | find its faces: by descriptor or by locator | `namewire_tagnet::forwarder::TagTables::forward` |
//! | for each face a copy, with another hop limit | `namewire_packet::tag::TagPacket::patch` |
//!
//! `tree_router.rs` describes the router. The paper's sets are compared with ours as in `docs/tag-sets.md`: 63M with
//! users of applications, 10M with a sample of these, 10M-CCN with names that have `www`.
//!
//! Before any time, every table must send the same packets through the same faces.
//!
//! `running_router.rs` measures a router process: its memory for each descriptor, and how fast it takes them in.
//!
//! Limits: packets are in memory and leave to memory; no driver and no queue is in the way.

mod flows;
mod running_router;
mod tree_router;

use std::ops::ControlFlow;
use std::sync::Barrier;

use anyhow::ensure;
use namewire_packet::tag::TagPacket;
use namewire_tables::pages::PageSize;
use namewire_tagnet::Descriptor;
use namewire_tagnet::forwarder::{Arrival, TagScratch, TagTables};
use namewire_tagnet::matching::burst_trie::BurstTrie;
use namewire_tagnet::matching::vector::{VectorOptions, VectorTable};
use namewire_tagnet::matching::{Entry, SubsetTable};
use serde::Deserialize;

use crate::clock::thread_time_ns;
use crate::experiment::{Context, Outcome, Samples};
use crate::tag_sets::{NameTags, PacketTags, StoredSets, TagSource, Users};
use flows::{Mix, Packets};
use tree_router::TreeRouter;

pub(super) const FILE: &str = include_str!("experiment.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Descriptors of the set of which the others are samples: the paper's 63M.
    population: usize,
    descriptors: Vec<usize>,
    names: usize,
    topic_vocabulary_max: u32,
    nodes: u32,
    /// Most packets of a repetition.
    packets: usize,
    /// The slowest table's time for the packets of a repetition, on one thread.
    pass_ns: u64,
    repetitions: usize,
    /// Descriptors of the running router.
    router_descriptors: usize,
}

/// Percentages of pull flows, as in Table 1.
const PULL_PERCENT: [u32; 6] = [0, 20, 40, 60, 80, 100];
/// Most further interests of a pull, as in Table 1.
const TABLE_1_FURTHER: usize = 15;
/// Most further interests of a pull (Fig. 11).
const FURTHER: [usize; 5] = [0, 3, 7, TABLE_1_FURTHER, 31];
/// Fewest packets of a repetition.
const PACKETS_MIN: usize = 2_048;

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let router = TreeRouter::in_network(size.nodes, context.seed)?;
    context.plan_steps(2 * (size.descriptors.len() + 1) + 1);
    let mut outcome = Outcome::default();
    let users = Users::new(context.seed, size.topic_vocabulary_max);
    let population = StoredSets::draw(&users, size.population)?;
    for (place, &descriptors) in size.descriptors.iter().enumerate() {
        let stored = population.sample(descriptors, context.seed);
        let mut tags = PacketTags::new(&users, &stored, context.seed);
        let fib = Fib::build(context, &router, &users, &stored)?;
        drop(stored);
        let table_1 = fib.measure(context, &size, &router, &mut tags, &mut outcome)?;
        if place == 0 {
            add_headline(&fib.case, &table_1, &mut outcome);
        }
    }
    drop(population);
    running_router::run(context, &users, size.router_descriptors, &mut outcome)?;
    drop(users);
    let names = NameTags::invented(context.seed, size.names)?.with_www();
    let stored = StoredSets::draw(&names, size.names)?;
    let mut tags = PacketTags::new(&names, &stored, context.seed);
    Fib::build(context, &router, &names, &stored)?.measure(context, &size, &router, &mut tags, &mut outcome)?;
    outcome.notes.push(format!(
        "The router has {} interfaces. With several threads, each forwards its part of the packets.",
        router.children().len() + 1
    ));
    Ok(outcome)
}

/// The speed of a mix.
struct Throughput {
    pull_percent: u32,
    mean_bytes: f64,
    /// Million packets per second.
    mpps: Samples,
    gbps: Samples,
}

fn add_headline(case: &str, table_1: &[Throughput], outcome: &mut Outcome) {
    let Some(paper) = table_1.iter().find(|mix| mix.pull_percent == 80) else { return };
    outcome.add_steady("traffic_pull_80_mpps", &paper.mpps);
    outcome.add_steady("traffic_pull_80_gbps", &paper.gbps);
    let median = |samples: &Samples| samples.median().unwrap_or(0.0);
    outcome.notes.push(format!(
        "{case}: with 80 % pull flows, one thread forwards {:.2} million packets of {:.0} bytes a second, {:.1} Gb/s. The \
         paper's 24 cores forward 4.27 million, 25.3 Gb/s, in all.",
        median(&paper.mpps),
        paper.mean_bytes,
        median(&paper.gbps)
    ));
    let packets =
        |percent: u32| table_1.iter().find(|mix| mix.pull_percent == percent).and_then(|mix| mix.mpps.median());
    if let (Some(least), Some(most)) = (packets(0), packets(100)) {
        outcome.headline.insert("traffic_pull_100_over_0".to_owned(), most / least);
    }
}

/// A router with one set of descriptors, in several tables.
struct Fib {
    case: String,
    forwarders: Vec<(&'static str, Box<dyn Forwards>)>,
}

impl Fib {
    fn build(
        context: &Context,
        router: &TreeRouter,
        source: &dyn TagSource,
        stored: &StoredSets,
    ) -> anyhow::Result<Self> {
        context.begin_step(&format!("{}: build", source.title()))?;
        let case = format!("{}, {}", source.title(), stored.rounded());
        let mut forwarders: Vec<(&'static str, Box<dyn Forwards>)> = Vec::new();
        let paper = VectorTable::build(stored.entries(), VectorOptions::PAPER)?;
        forwarders.push(("paper's table", Box::new(router.tables(paper))));
        let ours = BurstTrie::build(stored.entries(), stored.numbered.len(), PageSize::default())?;
        forwarders.push(("burst trie", Box::new(router.tables(RouterTable(ours)))));
        Ok(Self { case, forwarders })
    }

    /// Measures all mixes; returns what one thread does with our table in those of Table 1.
    fn measure(
        &self,
        context: &Context,
        size: &Size,
        router: &TreeRouter,
        tags: &mut PacketTags<'_>,
        outcome: &mut Outcome,
    ) -> anyhow::Result<Vec<Throughput>> {
        context.begin_step(&format!("{}: forward", self.case))?;
        let mut random = fastrand::Rng::with_seed(context.seed);
        let mut table_1 = Vec::new();
        for further_max in FURTHER {
            for pull_percent in PULL_PERCENT {
                // Without pulls, their length does not matter.
                if pull_percent == 0 && further_max != TABLE_1_FURTHER {
                    continue;
                }
                let mut draw = |packets: usize| {
                    let mix = Mix { pull_percent, further_max };
                    Packets::draw(router, tags, mix, packets, &mut random)
                };
                let case = format!("{}, {pull_percent} % pull, up to {further_max} further", self.case);
                let ours = self.measure_mix(context, size, (&case, pull_percent), &mut draw, outcome)?;
                table_1.extend((further_max == TABLE_1_FURTHER).then_some(ours));
            }
        }
        Ok(table_1)
    }

    /// So many packets like these that the slowest table takes about the wanted time.
    fn packets_of_a_pass(&self, context: &Context, size: &Size, packets: &Packets) -> usize {
        let times_ns = self.forwarders.iter().map(|(_, forwarder)| by_threads(context, &**forwarder, packets, 1).0);
        let slowest_ns = times_ns.max().unwrap_or(0).max(1);
        let wanted = packets.arrivals.len() as u64 * size.pass_ns / slowest_ns;
        (wanted as usize).clamp(PACKETS_MIN.min(size.packets), size.packets)
    }

    /// Measures one mix, and returns the speed of our table on one thread.
    fn measure_mix(
        &self,
        context: &Context,
        size: &Size,
        (case, pull_percent): (&str, u32),
        draw: &mut dyn FnMut(usize) -> anyhow::Result<Packets>,
        outcome: &mut Outcome,
    ) -> anyhow::Result<Throughput> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if cores > 1 { vec![1, cores] } else { vec![1] };
        let subjects =
            self.forwarders.iter().flat_map(|forwarder| threads.iter().map(move |threads| (forwarder, *threads)));
        let mut measured: Vec<_> = subjects.map(|subject| (subject, Samples::default(), Samples::default())).collect();
        let count = self.packets_of_a_pass(context, size, &draw(PACKETS_MIN)?);
        let mut mean_bytes = 0.0;
        for _ in 0..size.repetitions {
            let packets = draw(count)?;
            mean_bytes += packets.mean_bytes() / size.repetitions as f64;
            let mut expected: Option<Sent> = None;
            for (((name, forwarder), threads), mpps, gbps) in &mut measured {
                context.check_interrupt()?;
                let (took_ns, sent) = by_threads(context, &**forwarder, &packets, *threads);
                ensure!(*expected.get_or_insert(sent) == sent, "{case}: {name} sends {sent:?}, not {expected:?}");
                ensure!(sent.dropped == 0, "{case}: {} of the packets go nowhere", sent.dropped);
                let per_ns = |count: usize| context.clock.resolve(took_ns).map(|ns| count as f64 / ns as f64);
                mpps.add_resolved(per_ns(packets.arrivals.len()).map(|per_ns| per_ns * 1e3));
                gbps.add_resolved(per_ns(packets.bytes.len()).map(|per_ns| per_ns * 8.0));
            }
        }
        outcome.add_value(case, "packets", ("mean size", "bytes"), mean_bytes);
        let mut ours = [Samples::default(), Samples::default()];
        for (((name, _), threads), mpps, gbps) in measured {
            let subject = format!("{name}, {threads} threads");
            outcome.rows.push(mpps.row(case, &subject, "packets", "million per s", None));
            outcome.rows.push(gbps.row(case, &subject, "bytes", "Gb/s", None));
            if threads == 1 {
                ours = [mpps, gbps]; // the last table is ours
            }
        }
        let [mpps, gbps] = ours;
        Ok(Throughput { pull_percent, mean_bytes, mpps, gbps })
    }
}

/// The router's own table.
struct RouterTable(BurstTrie);

impl SubsetTable for RouterTable {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn find_all(&self, query: &Descriptor, visit: impl FnMut(u32) -> ControlFlow<()>) {
        self.0.view().find_all(query, visit);
    }

    fn find_largest_of(&self, query: &Descriptor, accepts: impl FnMut(u32) -> bool) -> Option<Entry> {
        self.0.view().find_largest_of(query, accepts)
    }
}

/// What a router has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    packets: u64,
    /// The sum of the faces, so that tables that send elsewhere differ.
    faces: u64,
    dropped: u64,
}

/// A router that forwards a part of the packets.
trait Forwards: Sync {
    fn forward(&self, packets: &Packets, part: std::ops::Range<usize>) -> Sent;
}

impl<T: SubsetTable + Sync> Forwards for TagTables<T> {
    fn forward(&self, packets: &Packets, part: std::ops::Range<usize>) -> Sent {
        let view = self.view();
        let (mut sent, mut scratch, mut transmits) = (Sent::default(), TagScratch::default(), Vec::new());
        let mut copy = [0; namewire_packet::MAX_PACKET_BYTES];
        let mut start = part.start.checked_sub(1).map_or(0, |before| packets.arrivals[before].0);
        for &(end, face) in &packets.arrivals[part] {
            let wire = &packets.bytes[start..end];
            start = end;
            let from = Arrival { face, is_application: false };
            let forwarded = TagPacket::parse(wire).map(|packet| {
                let found = view.forward(&packet, from, &|_| false, &mut scratch, &mut transmits);
                found.is_ok().then_some(packet)
            });
            let Ok(Some(packet)) = forwarded else {
                sent.dropped += 1;
                continue;
            };
            for transmit in &transmits {
                let copy = &mut copy[..wire.len()];
                copy.copy_from_slice(wire);
                packet.patch(copy, transmit.hop_limit, transmit.fan_out);
                std::hint::black_box(copy);
                sent.packets += 1;
                sent.faces += transmit.face.0;
            }
        }
        sent
    }
}

/// Nanoseconds that several threads take, each for its own part of the packets; and what they send. One thread's time
/// is its own, so that it does not look slow while it waits for a processor.
fn by_threads(context: &Context, forwarder: &dyn Forwards, packets: &Packets, threads: usize) -> (u64, Sent) {
    let count = packets.arrivals.len();
    if threads == 1 {
        let started_ns = thread_time_ns();
        let sent = forwarder.forward(packets, 0..count);
        return (thread_time_ns() - started_ns, sent);
    }
    let ready = Barrier::new(threads);
    let runs: Vec<(u64, u64, Sent)> = std::thread::scope(|scope| {
        let forward = |thread: usize| {
            let ready = &ready;
            scope.spawn(move || {
                ready.wait();
                let started_ns = context.clock.now_ns();
                let sent = forwarder.forward(packets, count * thread / threads..count * (thread + 1) / threads);
                (started_ns, context.clock.now_ns(), sent)
            })
        };
        let running: Vec<_> = (0..threads).map(forward).collect();
        running.into_iter().map(|thread| thread.join().expect("forwarding does not panic")).collect()
    });
    let started_ns = runs.iter().map(|run| run.0).min().unwrap_or(0);
    let ended_ns = runs.iter().map(|run| run.1).max().unwrap_or(0);
    let total = runs.iter().fold(Sent::default(), |sum, (_, _, sent)| Sent {
        packets: sum.packets + sent.packets,
        faces: sum.faces + sent.faces,
        dropped: sum.dropped + sent.dropped,
    });
    (ended_ns - started_ns, total)
}
