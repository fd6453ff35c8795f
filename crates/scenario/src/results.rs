//! Results: what a run says about its consumers, nodes and links.
//!
//! Everything here depends on scenario and seed alone: no time of day, no machine. Percentiles are of the requests that
//! got Data, by the nearest rank.

use crate::file::ConsumerKind;
use crate::world::World;
use namewire_engine::{Counters, DropReason};
use namewire_sim::{Fetcher, Producer, Request, RequestEnd, Requester};
use std::collections::BTreeMap;

/// A number of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Whose it is: a group of consumers, `network`, …
    pub about: String,
    pub metric: String,
    pub unit: &'static str,
    pub value: f64,
}

/// One bin of time of a group of consumers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Requests that began in it.
    pub requests: u64,
    /// How many of these got Data.
    pub satisfied: u64,
    /// Of these, milliseconds to the Data.
    pub latency_median_ms: f64,
    pub latency_95_ms: f64,
    /// Bytes of content that came in it.
    pub content_bytes: u64,
}

/// A group of consumers: all of one entry of the scenario.
#[derive(Clone, Debug, Default)]
pub struct Group {
    pub name: String,
    pub bins: Vec<Bin>,
    /// Milliseconds of all requests that got Data, lowest first.
    pub latencies_ms: Vec<f64>,
}

/// What is known of a node, by name of the counter.
pub type NodeRow = (String, Vec<(String, u64)>);

/// One direction of a link, or a node on a medium.
#[derive(Clone, Debug)]
pub struct LinkRow {
    pub link: String,
    pub sender: String,
    pub sent: u64,
    pub arrived: u64,
    /// By reason, in the order of [`LOSSES`].
    pub lost: [u64; 6],
}

/// Why frames were lost.
pub const LOSSES: [&str; 6] = ["random", "link down", "queue full", "collision", "faded", "queue of medium full"];

/// Everything that a run found.
#[derive(Clone, Debug, Default)]
pub struct Results {
    pub figures: Vec<Figure>,
    pub groups: Vec<Group>,
    pub nodes: Vec<NodeRow>,
    pub links: Vec<LinkRow>,
    /// What a reader must know: tables that were full, requests without an end.
    pub warnings: Vec<String>,
    /// Packets that routers took, for the speed of the simulation.
    pub packets: u64,
}

/// A request of a group, whatever application made it; times are those of the scenario.
struct Sample {
    began_ns: u64,
    took_ns: u64,
    is_satisfied: bool,
    content_bytes: u64,
}

/// Counts a world that has run. `bin_ns` is the width of a bin.
pub(crate) fn of(world: &World, bin_ns: u64, duration_ns: u64) -> Results {
    let mut results = Results::default();
    let bins = usize::try_from(duration_ns.div_ceil(bin_ns)).unwrap_or(usize::MAX).min(BINS_MAX);
    for name in groups_in_order(world) {
        count_group(world, &name, (bin_ns, bins), &mut results);
    }
    for group in &world.groups {
        count_sync(world, group, (bin_ns, bins), &mut results);
    }
    count_nodes(world, &mut results);
    count_links(world, &mut results);
    results
}

/// Most bins of a timeline; the last takes all that comes later.
const BINS_MAX: usize = 1_000_000;

fn groups_in_order(world: &World) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    let names = world.consumers.iter().map(|consumer| &consumer.group);
    names.filter(|name| seen.insert(name.as_str())).cloned().collect()
}

impl Results {
    pub(crate) fn put(&mut self, about: &str, metric: &str, unit: &'static str, value: f64) {
        self.figures.push(Figure { about: about.to_owned(), metric: metric.to_owned(), unit, value });
    }

    /// A figure by its names.
    pub fn figure(&self, about: &str, metric: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.about == about && figure.metric == metric).map(|figure| figure.value)
    }
}

fn count_group(world: &World, name: &str, bins: (u64, usize), results: &mut Results) {
    let of_group = || world.consumers.iter().filter(|consumer| consumer.group == name);
    let mut samples = Vec::new();
    if of_group().any(|consumer| consumer.kind == ConsumerKind::File) {
        count_files(world, name, &mut samples, results);
    } else {
        let (mut pending, mut transmissions, mut nacked, mut expired) = (0u64, 0u64, 0u64, 0u64);
        for consumer in of_group() {
            let requester = world.net.application::<Requester>(consumer.app);
            pending += requester.pending().count() as u64;
            for request in requester.ended() {
                transmissions += u64::from(request.transmissions);
                nacked += u64::from(request.end == RequestEnd::Nacked);
                expired += u64::from(request.end == RequestEnd::Expired);
                samples.push(sample(request, world.origin_ns));
            }
        }
        let satisfied = samples.iter().filter(|sample| sample.is_satisfied).count() as f64;
        let all = samples.len() as f64 + pending as f64;
        results.put(name, "requests", "requests", all);
        results.put(name, "satisfied", "%", percent(satisfied, all));
        results.put(name, "ended by a Nack", "%", percent(nacked as f64, all));
        results.put(name, "expired", "%", percent(expired as f64, all));
        results.put(name, "pending at the end", "%", percent(pending as f64, all));
        results.put(
            name,
            "Interests per request that ended",
            "packets",
            transmissions as f64 / (all - pending as f64).max(1.0),
        );
        let active_s = of_group().map(|consumer| consumer.active_s).fold(0.0, f64::max);
        put_content(name, &samples, active_s, results);
    }
    put_latencies(name, &samples, bins, results);
}

fn sample(request: &Request, origin_ns: u64) -> Sample {
    Sample {
        began_ns: request.at_ns - origin_ns,
        took_ns: request.took_ns,
        is_satisfied: request.end == RequestEnd::Satisfied,
        content_bytes: u64::from(request.content_bytes),
    }
}

/// Of a file, each segment is a request of the time between two arrivals.
fn count_files(world: &World, name: &str, samples: &mut Vec<Sample>, results: &mut Results) {
    let (mut took_s, mut speeds, mut unfinished, mut interests, mut again) = (Vec::new(), Vec::new(), 0u64, 0u64, 0u64);
    for consumer in world.consumers.iter().filter(|consumer| consumer.group == name) {
        let fetcher = world.net.application::<Fetcher>(consumer.app);
        let content_bytes: u64 = fetcher.arrivals().iter().map(|arrival| arrival.content_bytes).sum();
        match fetcher.took_ns() {
            Some(took_ns) => {
                took_s.push(took_ns as f64 / 1e9);
                speeds.push(content_bytes as f64 * 8e3 / took_ns.max(1) as f64);
            }
            None => unfinished += 1,
        }
        interests += fetcher.tally().interests;
        again += fetcher.tally().retransmissions;
        samples.extend(fetcher.arrivals().iter().map(|arrival| Sample {
            began_ns: arrival.sent_ns - world.origin_ns,
            took_ns: arrival.at_ns - arrival.sent_ns,
            is_satisfied: true,
            content_bytes: arrival.content_bytes,
        }));
    }
    took_s.sort_by(f64::total_cmp);
    results.put(name, "files fetched", "files", took_s.len() as f64);
    if unfinished > 0 {
        results.put(name, "files not fetched", "files", unfinished as f64);
    }
    if let Some(median_s) = rank(&took_s, 50) {
        results.put(name, "time of a file, median", "s", median_s);
    }
    speeds.sort_by(f64::total_cmp);
    if let Some(median) = rank(&speeds, 50) {
        results.put(name, "speed of a file, median", "Mbit/s", median);
    }
    results.put(name, "sent again", "%", percent(again as f64, interests as f64));
}

fn count_sync(world: &World, group: &crate::world::PlacedGroup, bins: (u64, usize), results: &mut Results) {
    let name = format!("sync {}", group.prefix);
    let (mut published, mut interests, mut samples) = (0, 0, Vec::new());
    for (_, app) in &group.members {
        let member = world.net.application::<crate::sync_member::SyncMember>(*app);
        published += member.published();
        interests += member.sync_interests();
        samples.extend(member.received().iter().map(|&(at_ns, took_ns)| Sample {
            began_ns: at_ns - world.origin_ns,
            took_ns,
            is_satisfied: true,
            content_bytes: 0,
        }));
    }
    let wanted = published as f64 * (group.members.len() - 1) as f64;
    results.put(&name, "publications", "publications", published as f64);
    results.put(&name, "received by the others", "%", percent(samples.len() as f64, wanted));
    results.put(&name, "sync Interests per publication", "packets", interests as f64 / (published as f64).max(1.0));
    put_latencies(&name, &samples, bins, results);
}

fn put_latencies(name: &str, samples: &[Sample], (bin_ns, bins): (u64, usize), results: &mut Results) {
    let satisfied = || samples.iter().filter(|sample| sample.is_satisfied);
    let mut latencies_ms: Vec<f64> = satisfied().map(|sample| sample.took_ns as f64 / 1e6).collect();
    latencies_ms.sort_by(f64::total_cmp);
    for (metric, share) in [("latency, median", 50), ("latency, 95 of 100", 95), ("latency, 99 of 100", 99)] {
        if let Some(value) = rank(&latencies_ms, share) {
            results.put(name, metric, "ms", value);
        }
    }
    let mut by_bin: Vec<(Bin, Vec<f64>)> = vec![Default::default(); bins];
    let place = |at_ns: u64| ((at_ns / bin_ns) as usize).min(bins - 1);
    for sample in samples {
        let (bin, own_ms) = &mut by_bin[place(sample.began_ns)];
        bin.requests += 1;
        if sample.is_satisfied {
            bin.satisfied += 1;
            own_ms.push(sample.took_ns as f64 / 1e6);
            by_bin[place(sample.began_ns + sample.took_ns)].0.content_bytes += sample.content_bytes;
        }
    }
    let bins = by_bin.into_iter().map(|(bin, mut own_ms)| {
        own_ms.sort_by(f64::total_cmp);
        let [latency_median_ms, latency_95_ms] = [50, 95].map(|share| rank(&own_ms, share).unwrap_or(f64::NAN));
        Bin { latency_median_ms, latency_95_ms, ..bin }
    });
    results.groups.push(Group { name: name.to_owned(), bins: bins.collect(), latencies_ms });
}

/// Content over the whole time in which the group asks.
fn put_content(name: &str, samples: &[Sample], active_s: f64, results: &mut Results) {
    let content_bytes: u64 = samples.iter().map(|sample| sample.content_bytes).sum();
    if content_bytes > 0 && active_s > 0.0 {
        results.put(name, "content", "Mbit/s", content_bytes as f64 * 8e-6 / active_s);
    }
}

/// The smallest value that this share (in percent) of sorted values does not exceed.
pub(crate) fn rank(sorted: &[f64], share: usize) -> Option<f64> {
    let place = (sorted.len() * share).div_ceil(100).max(1) - 1;
    sorted.get(place).copied()
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}

fn count_nodes(world: &World, results: &mut Results) {
    let mut sum = Counters::default();
    for node in &world.nodes {
        let counters = world.net.counters(node.id);
        sum.merge(&counters);
        let named = [
            ("Interests in", counters.in_interests),
            ("Interests out", counters.out_interests),
            ("Data in", counters.in_data),
            ("Data out", counters.out_data),
            ("Nacks in", counters.in_nacks),
            ("Nacks out", counters.out_nacks),
            ("aggregated", counters.aggregated),
            ("store hits", counters.cs_hits),
            ("store misses", counters.cs_misses),
            ("unsatisfied", counters.unsatisfied),
            ("drops", counters.dropped_total()),
        ];
        results.nodes.push((node.name.clone(), named.map(|(name, value)| (name.to_owned(), value)).to_vec()));
    }
    results.packets = sum.in_interests + sum.in_data + sum.in_nacks;
    let network = "network";
    results.put(network, "packets that routers took", "packets", results.packets as f64);
    let satisfied: u64 = results.groups.iter().flat_map(|group| &group.bins).map(|bin| bin.satisfied).sum();
    let answered: u64 =
        world.producers.iter().map(|app| world.net.application::<Producer>(*app).tally().answered).sum();
    if satisfied > 0 {
        results.put(network, "Data of producers per request", "Data", answered as f64 / satisfied as f64);
    }
    results.put(
        network,
        "store hits of all nodes",
        "%",
        percent(sum.cs_hits as f64, (sum.cs_hits + sum.cs_misses) as f64),
    );
    let mut drops: BTreeMap<&str, u64> = BTreeMap::new();
    for reason in DropReason::ALL {
        drops.insert(reason.name(), sum.dropped(reason));
    }
    for (reason, count) in drops.into_iter().filter(|drop| drop.1 > 0) {
        results.put(network, &format!("dropped: {reason}"), "packets", count as f64);
    }
    let full = [DropReason::PitFull, DropReason::PitShareUsed, DropReason::FaceShareUsed, DropReason::PitOverflowFull];
    for reason in full.into_iter().filter(|reason| sum.dropped(*reason) > 0) {
        let count = sum.dropped(reason);
        results
            .warnings
            .push(format!("Routers dropped {count} Interests ({}): set node_defaults.pit_entries.", reason.name()));
    }
}

fn count_links(world: &World, results: &mut Results) {
    let mut frames = 0;
    let mut lost_by_reason = [0; 6];
    for wire in &world.wires {
        let [a, b] = wire.ends.map(|place| world.nodes[place].name.clone());
        for (tally, sender) in world.net.link_tally(wire.link).into_iter().zip([&a, &b]) {
            let [random, down, full] = tally.lost;
            results.links.push(LinkRow {
                link: format!("{a} {b}"),
                sender: sender.clone(),
                sent: tally.sent,
                arrived: tally.arrived,
                lost: [random, down, full, 0, 0, 0],
            });
        }
    }
    for air in &world.airs {
        for &(place, _) in &air.members {
            let Some(tally) = world.net.air_tally(air.link, world.nodes[place].id) else { continue };
            let [collision, faded, full] = tally.lost;
            results.links.push(LinkRow {
                link: air.name.clone(),
                sender: world.nodes[place].name.clone(),
                sent: tally.sent,
                arrived: tally.received,
                lost: [0, 0, 0, collision, faded, full],
            });
        }
    }
    for row in &results.links {
        frames += row.sent;
        lost_by_reason.iter_mut().zip(row.lost).for_each(|(sum, lost)| *sum += lost);
    }
    results.put("network", "frames sent", "frames", frames as f64);
    for (reason, lost) in LOSSES.iter().zip(lost_by_reason).filter(|(_, lost)| *lost > 0) {
        results.put("network", &format!("frames lost: {reason}"), "frames", lost as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_the_nearest_rank() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert_eq!([50, 95, 99, 1].map(|share| rank(&sorted, share)), [Some(2.0), Some(4.0), Some(4.0), Some(1.0)]);
        assert_eq!(rank(&[], 50), None);
    }
}
