//! Builds the network of a scenario, runs it, and counts.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use namewire_engine::{EngineConfig, FaceId};
use namewire_packet::NameBuf;
use namewire_sim::{
    Attachment, Connection, Consumer, ConsumerOptions, LinkId, LinkOptions, Network, NodeId, NodeOptions, Outcome,
    Producer, RunEnd,
};

use super::routes::{Neighbour, next_hops};
use super::{ConsumerOfScenario, Link, NAMES, NAMES_MAX, Node, Scenario};
use crate::experiment::Outcome as Found;
use crate::statistics::Summary;
use crate::text_lines;

/// Events of the simulator after which a run ends: a loop of a scenario must not run for ever.
const EVENTS_MAX: u64 = 2_000_000_000;

/// # Errors
/// If a file of names cannot be read, or the run does not end.
pub fn run(scenario: &Scenario, seed: u64) -> anyhow::Result<Found> {
    let mut net = Network::new(seed, 0);
    net.set_event_limit(EVENTS_MAX);
    let names = scenario.node_names();
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
    let nodes = names
        .iter()
        .map(|name| Ok(net.add_node(node_options(scenario.node.iter().find(|node| node.name == *name))?)))
        .collect::<anyhow::Result<Vec<NodeId>>>()?;
    for node in &scenario.node {
        for (prefix, strategy) in &node.strategy {
            net.set_strategy(nodes[places[node.name.as_str()]], prefix, strategy);
        }
    }
    let mut links: Vec<Wire> = Vec::new();
    let mut neighbours: Vec<Vec<Neighbour>> = vec![Vec::new(); nodes.len()];
    for link in &scenario.link {
        let (a, b) = (places[link.a.as_str()], places[link.b.as_str()]);
        links.push(Wire { a, b, wire: net.connect(nodes[a], nodes[b], link_options(link)) });
        let delay_us = micros(link.delay.0);
        neighbours[a].push(Neighbour { node: b, delay_us });
        neighbours[b].push(Neighbour { node: a, delay_us });
    }
    let link_of = |a: usize, b: usize| links.iter().find(|link| link.joins(a, b));
    let face_to = |node: usize, neighbour: usize| link_of(node, neighbour).map(|link| link.face_of(node));
    for producer in &scenario.producer {
        let place = places[producer.node.as_str()];
        let application = Producer::of_content(producer.content.0 as usize, millis(producer.freshness.0));
        let attached = net.attach(nodes[place], application.processing_ns(nanos(producer.processing.0)));
        net.add_route(nodes[place], &producer.prefix, attached.face, 0);
        if scenario.shortest_paths {
            for hop in next_hops(&neighbours, place) {
                let face = face_to(hop.node, hop.neighbour).context("neighbours have a link")?;
                net.add_route(nodes[hop.node], &producer.prefix, face, hop.cost);
            }
        }
    }
    for route in &scenario.route {
        let (node, to) = (places[route.node.as_str()], places[route.to.as_str()]);
        let face = face_to(node, to).context("neighbours have a link")?;
        net.add_route(nodes[node], &route.prefix, face, route.cost);
    }
    for event in &scenario.event {
        let (a, b) = (places[event.a.as_str()], places[event.b.as_str()]);
        let link: LinkId = link_of(a, b).context("an event of a link")?.wire.link;
        let (up, loss) = (event.up, event.loss);
        net.at(nanos(event.at.0), move |net| {
            up.into_iter().for_each(|up| net.set_link_up(link, up));
            loss.into_iter().for_each(|loss| net.set_loss(link, loss));
        });
    }
    let (consumers, end) = run_consumers(&mut net, scenario, &nodes, &places)?;
    let mut outcome = Found::default();
    count_consumers(&net, scenario, &consumers, &mut outcome);
    count_nodes(&net, &names, &nodes, &mut outcome);
    count_links(&net, scenario, &links, &mut outcome);
    outcome.notes = notes(net.now_ns(), end);
    Ok(outcome)
}

/// A link of the network, by the places of its ends.
struct Wire {
    a: usize,
    b: usize,
    wire: Connection,
}

impl Wire {
    fn joins(&self, one: usize, other: usize) -> bool {
        (self.a, self.b) == (one, other) || (self.b, self.a) == (one, other)
    }

    /// The face of one end.
    fn face_of(&self, node: usize) -> FaceId {
        if self.a == node { self.wire.face_a } else { self.wire.face_b }
    }
}

/// Runs to the end, with each consumer from its start on.
fn run_consumers(
    net: &mut Network,
    scenario: &Scenario,
    nodes: &[NodeId],
    places: &HashMap<&str, usize>,
) -> anyhow::Result<(Vec<Attachment>, RunEnd)> {
    let mut consumers: Vec<Option<Attachment>> = vec![None; scenario.consumer.len()];
    let mut starts: Vec<usize> = (0..scenario.consumer.len()).collect();
    starts.sort_by_key(|place| scenario.consumer[*place].start.0);
    let mut end = RunEnd::Idle;
    for place in starts {
        let consumer = &scenario.consumer[place];
        let start_ns = nanos(consumer.start.0).min(nanos(scenario.duration.0));
        end = net.run_for(start_ns.saturating_sub(net.now_ns()));
        let application = Consumer::new(plan(consumer)?, consumer_options(consumer));
        consumers[place] = Some(net.attach(nodes[places[consumer.node.as_str()]], application));
    }
    if end != RunEnd::EventLimit {
        end = net.run_for(nanos(scenario.duration.0).saturating_sub(net.now_ns()));
    }
    ensure!(end != RunEnd::EventLimit, "the run had {EVENTS_MAX} events without an end");
    Ok((consumers.into_iter().flatten().collect(), end))
}

fn notes(now_ns: u64, end: RunEnd) -> Vec<String> {
    let ended = if end == RunEnd::Idle { "nothing was left to do" } else { "the time was over" };
    vec![
        format!("The run ended after {:.3} s of simulated time: {ended}.", now_ns as f64 / 1e9),
        "Latencies are from the first Interest for a name to its Data, retransmissions included.".to_owned(),
    ]
}

fn node_options(node: Option<&Node>) -> anyhow::Result<NodeOptions> {
    let mut engine = EngineConfig::default();
    let Some(node) = node else { return Ok(NodeOptions { engine, ..NodeOptions::default() }) };
    if let Some(packets) = node.store_packets {
        engine.cs_capacity_packets = packets;
    }
    let mut policy = namewire_designs::policies::catalogue::PolicyChoice::default();
    if let Some(eviction) = &node.policy {
        policy.eviction = eviction.parse().with_context(|| format!("node {}", node.name))?;
    }
    if let Some(admission) = &node.admission {
        policy.admission = admission.parse().with_context(|| format!("node {}", node.name))?;
    }
    engine.cs_policy = policy.into();
    Ok(NodeOptions { workers: node.workers, engine, ..NodeOptions::default() })
}

fn link_options(link: &Link) -> LinkOptions {
    LinkOptions {
        delay_ns: nanos(link.delay.0),
        jitter_ns: nanos(link.jitter.0),
        loss: link.loss,
        bandwidth_bits_per_s: link.bandwidth,
        queue_bytes: link.queue.0,
        mtu: link.mtu,
        reliability: link.reliability,
        ..LinkOptions::default()
    }
}

fn consumer_options(consumer: &ConsumerOfScenario) -> ConsumerOptions {
    ConsumerOptions {
        window: consumer.window,
        interval_ns: nanos(consumer.interval.0),
        lifetime_ms: millis(consumer.lifetime.0),
        retransmit_after_ms: millis(consumer.retransmit_after.0),
        transmissions: consumer.transmissions,
        must_be_fresh: consumer.must_be_fresh,
        ..ConsumerOptions::default()
    }
}

/// The names that a consumer asks for, each once.
fn plan(consumer: &ConsumerOfScenario) -> anyhow::Result<Vec<NameBuf>> {
    let parse = |text: &str| text.parse::<NameBuf>().with_context(|| format!("{text:?} is no name"));
    if let Some(prefix) = &consumer.prefix {
        return (0..consumer.names.unwrap_or(NAMES))
            .map(|number| parse(&format!("{}/{number}", prefix.trim_end_matches('/'))))
            .collect();
    }
    let file = consumer.names_file.as_deref().context("a consumer without names")?;
    let (mut names, mut seen) = (Vec::new(), std::collections::HashSet::new());
    text_lines::for_each(text_lines::open(file).with_context(|| file.display().to_string())?, |line| {
        let text = String::from_utf8_lossy(line);
        let name = parse(text.trim())?;
        if consumer.names.is_none_or(|most| names.len() < most) && seen.insert(name.clone()) {
            ensure!(names.len() < NAMES_MAX, "{}: more than {NAMES_MAX} names", file.display());
            names.push(name);
        }
        Ok(())
    })?;
    Ok(names)
}

fn count_consumers(net: &Network, scenario: &Scenario, consumers: &[Attachment], outcome: &mut Found) {
    let (mut asked, mut satisfied, mut latencies) = (0, 0, Vec::new());
    for (place, (attached, described)) in consumers.iter().zip(&scenario.consumer).enumerate() {
        let consumer = net.application::<Consumer>(attached.app);
        let (case, tally) = (format!("consumer {}, {}", place + 1, described.node), consumer.tally());
        let mut own: Vec<f64> = Vec::new();
        let (mut nacked, mut expired) = (0, 0);
        for end in consumer.outcomes().values() {
            match end {
                Outcome::Satisfied { after_ns, .. } => own.push(*after_ns as f64 / 1e6),
                Outcome::Nacked(_) => nacked += 1,
                Outcome::Expired => expired += 1,
            }
        }
        own.sort_by(f64::total_cmp);
        let mut put = |metric: &str, unit: &str, value: f64| outcome.add_value(&case, "names", (metric, unit), value);
        put("satisfied", "names", own.len() as f64);
        put("ended by a Nack", "names", f64::from(nacked));
        put("expired", "names", f64::from(expired));
        put("pending at the end", "names", consumer.pending() as f64);
        put("Interests sent", "packets", tally.interests as f64);
        for (metric, percent) in [("latency, median", 50), ("latency, 99 of 100", 99)] {
            if !own.is_empty() {
                put(metric, "ms", own[(own.len() * percent / 100).min(own.len() - 1)]);
            }
        }
        asked += consumer.outcomes().len() + consumer.pending();
        satisfied += own.len();
        latencies.append(&mut own);
    }
    outcome.headline.insert("names_requested".to_owned(), asked as f64);
    outcome.headline.insert("satisfied_share".to_owned(), satisfied as f64 / asked.max(1) as f64);
    if let Some(summary) = Summary::of(&latencies) {
        outcome.headline.insert("latency_median_ms".to_owned(), summary.median);
        outcome.headline.insert("latency_most_ms".to_owned(), summary.high);
    }
}

fn count_nodes(net: &Network, names: &[&str], nodes: &[NodeId], outcome: &mut Found) {
    let (mut hits, mut asked) = (0, 0);
    for (name, node) in names.iter().zip(nodes) {
        let counters = net.counters(*node);
        let case = format!("node {name}");
        let drops: u64 = counters.drops.iter().sum();
        for (metric, value) in [
            ("Interests in", counters.in_interests),
            ("Interests out", counters.out_interests),
            ("Data in", counters.in_data),
            ("Data out", counters.out_data),
            ("Nacks out", counters.out_nacks),
            ("aggregated", counters.aggregated),
            ("hits", counters.cs_hits),
            ("misses", counters.cs_misses),
            ("drops", drops),
        ] {
            outcome.add_value(&case, "router", (metric, "packets"), value as f64);
        }
        hits += counters.cs_hits;
        asked += counters.cs_hits + counters.cs_misses;
    }
    outcome.headline.insert("hit_share".to_owned(), hits as f64 / asked.max(1) as f64);
}

fn count_links(net: &Network, scenario: &Scenario, links: &[Wire], outcome: &mut Found) {
    let mut frames = 0;
    for (link, joined) in scenario.link.iter().zip(links) {
        let [there, back] = net.link_tally(joined.wire.link);
        for (case, tally) in
            [(format!("link {} to {}", link.a, link.b), there), (format!("link {} to {}", link.b, link.a), back)]
        {
            outcome.add_value(&case, "frames", ("sent", "frames"), tally.sent as f64);
            outcome.add_value(&case, "frames", ("lost", "frames"), tally.lost_total() as f64);
            frames += tally.sent;
        }
    }
    outcome.headline.insert("frames_sent".to_owned(), frames as f64);
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn ran(text: &str, seed: u64) -> anyhow::Result<Found> {
        run(&Scenario::parse(text, Path::new("."))?, seed)
    }

    /// Two consumers ask for the same names, the second later: the store in the middle has them.
    const LINE: &str = r#"
        duration = "60s"
        [[link]]
        a = "left"
        b = "middle"
        delay = "2ms"
        [[link]]
        a = "middle"
        b = "right"
        delay = "20ms"
        [[producer]]
        node = "right"
        prefix = "/p"
        freshness = "1h"
        [[consumer]]
        node = "left"
        prefix = "/p"
        names = 100
        [[consumer]]
        node = "middle"
        prefix = "/p"
        names = 100
        start = "30s"
    "#;

    fn value(outcome: &Found, case: &str, metric: &str) -> f64 {
        let row = outcome.rows.iter().find(|row| row.case == case && row.metric == metric);
        row.and_then(|row| row.value.as_ref()).map_or(f64::NAN, |value| value.median)
    }

    #[test]
    fn data_comes_by_the_shortest_path_and_later_from_the_store() -> anyhow::Result<()> {
        let outcome = ran(LINE, 1)?;
        assert_eq!(outcome.headline["satisfied_share"], 1.0);
        let [far, near] =
            ["consumer 1, left", "consumer 2, middle"].map(|case| value(&outcome, case, "latency, median"));
        assert!((44.0..50.0).contains(&far) && near < 1.0, "{far} {near}");
        assert_eq!(value(&outcome, "node middle", "hits"), 100.0);
        assert_eq!(value(&outcome, "node right", "Interests in"), 100.0);
        assert_eq!(ran(LINE, 1)?.rows, outcome.rows, "the same seed, the same run");
        Ok(())
    }

    #[test]
    fn a_cut_link_ends_what_goes_over_it() -> anyhow::Result<()> {
        let cut = "\n[[event]]\nat = \"0s\"\na = \"middle\"\nb = \"right\"\nup = false\n";
        let outcome = ran(&format!("{LINE}{cut}"), 1)?;
        assert_eq!(outcome.headline["satisfied_share"], 0.0);
        assert!(value(&outcome, "link middle to right", "lost") >= 100.0);
        Ok(())
    }

    /// A name without an answer at the end counts as requested. The consumer asks for every name of its file.
    #[test]
    fn names_without_an_end_are_requested_too() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let names: String = (0..1_200).map(|number| format!("/far/{number}\n")).collect();
        std::fs::write(folder.path().join("names.txt"), names)?;
        let text = r#"
            duration = "10s"
            [[link]]
            a = "x"
            b = "y"
            delay = "30s"
            [[producer]]
            node = "y"
            prefix = "/far"
            [[consumer]]
            node = "x"
            names_file = "names.txt"
            window = 10000
            lifetime = "60s"
            retransmit_after = "60s"
        "#;
        let outcome = run(&Scenario::parse(text, folder.path())?, 1)?;
        assert_eq!((outcome.headline["names_requested"], outcome.headline["satisfied_share"]), (1_200.0, 0.0));
        assert_eq!(value(&outcome, "consumer 1, x", "pending at the end"), 1_200.0);
        Ok(())
    }

    #[test]
    fn loss_is_repaired_by_retransmission() -> anyhow::Result<()> {
        let lossy = LINE.replace("delay = \"20ms\"", "delay = \"20ms\"\nloss = 0.1");
        let outcome = ran(&lossy, 3)?;
        assert!(outcome.headline["satisfied_share"] > 0.98, "{:?}", outcome.headline);
        assert!(value(&outcome, "consumer 1, left", "Interests sent") > 100.0);
        Ok(())
    }
}
