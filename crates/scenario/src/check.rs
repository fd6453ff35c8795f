//! What a scenario file must hold.

use crate::file::{Consumer, ConsumerKind, Event, Scenario};
use anyhow::{Context as _, bail, ensure};
use namewire_packet::NameBuf;
use std::collections::HashSet;

/// Most nodes, links, and names of one consumer.
const NODES_MAX: usize = 100_000;
const LINKS_MAX: usize = 1_000_000;
pub(crate) const NAMES_MAX: u64 = 100_000_000;
/// The longest simulated time: a year.
const DURATION_MAX_S: u64 = 366 * 24 * 3600;
const CONTENT_BYTES_MAX: u64 = 8_000;

/// # Errors
/// If a value is impossible, or something is named that is not there.
pub(crate) fn check(scenario: &Scenario) -> anyhow::Result<()> {
    let has_applications = !scenario.producer.is_empty() && !scenario.consumer.is_empty();
    ensure!(has_applications || !scenario.sync.is_empty(), "a scenario has producers and consumers, or a sync group");
    ensure!(scenario.duration.0.as_secs() <= DURATION_MAX_S, "a scenario lasts a year at most");
    ensure!(!scenario.duration.0.is_zero(), "a scenario lasts a while");
    ensure!(!scenario.bin.0.is_zero(), "a bin has a width");
    ensure!(scenario.next_hops >= 1, "a node has at least one next hop");
    let names = Names::of(scenario);
    ensure!(names.nodes.len() <= NODES_MAX, "{} nodes, {NODES_MAX} are allowed", names.nodes.len());
    check_nodes(scenario)?;
    check_links(scenario)?;
    check_air(scenario)?;
    if let Some(failures) = scenario.failures {
        let has_times = !failures.mean_up.0.is_zero() && !failures.mean_down.0.is_zero();
        ensure!(has_times, "links that fail are up and down for a time");
    }
    for route in &scenario.route {
        names.node(&route.node)?;
        name_of(&route.prefix)?;
        if !names.air.contains(route.to.as_str()) {
            names.link(&route.node, &route.to)?;
        }
    }
    for producer in &scenario.producer {
        names.node(&producer.node)?;
        name_of(&producer.prefix)?;
        ensure!(producer.content.0 <= CONTENT_BYTES_MAX, "a Data has {CONTENT_BYTES_MAX} bytes of content at most");
    }
    for consumer in &scenario.consumer {
        check_consumer(consumer, &names)?;
    }
    for sync in &scenario.sync {
        name_of(&sync.prefix)?;
        ensure!(sync.nodes.len() >= 2, "a sync group has at least two nodes");
        ensure!(!sync.interval.0.is_zero(), "members publish at an interval");
        sync.nodes.iter().try_for_each(|node| names.node(node))?;
    }
    for event in &scenario.event {
        check_event(event, &names)?;
    }
    for captured in &scenario.capture {
        if !names.air.contains(captured.as_str()) {
            let (a, b) = captured.split_once(' ').context("what is captured is a link, `A B`, or a medium")?;
            names.link(a, b)?;
        }
    }
    Ok(())
}

/// What the file names.
struct Names<'s> {
    nodes: HashSet<&'s str>,
    pairs: HashSet<(&'s str, &'s str)>,
    air: HashSet<&'s str>,
}

impl<'s> Names<'s> {
    fn of(scenario: &'s Scenario) -> Self {
        Names {
            nodes: scenario.node_names().into_iter().collect(),
            pairs: scenario.link.iter().map(|link| ends(&link.a, &link.b)).collect(),
            air: scenario.air.iter().map(|air| air.name.as_str()).collect(),
        }
    }

    fn node(&self, name: &str) -> anyhow::Result<()> {
        ensure!(self.nodes.contains(name), "no node is called {name:?}");
        Ok(())
    }

    fn link(&self, a: &str, b: &str) -> anyhow::Result<()> {
        ensure!(self.pairs.contains(&ends(a, b)), "{a} and {b} have no link");
        Ok(())
    }
}

fn ends<'n>(a: &'n str, b: &'n str) -> (&'n str, &'n str) {
    (a.min(b), a.max(b))
}

impl Scenario {
    /// Every node, in the order in which they are first named: nodes, links, media, and then movements.
    pub fn node_names(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let of_links = self.link.iter().flat_map(|link| [link.a.as_str(), link.b.as_str()]);
        let of_air = self.air.iter().flat_map(|air| air.nodes.iter().map(String::as_str));
        let own = self.node.iter().map(|node| node.name.as_str());
        let moving = self.tracks.keys().map(String::as_str);
        own.chain(of_links).chain(of_air).chain(moving).filter(|name| seen.insert(*name)).collect()
    }
}

fn check_nodes(scenario: &Scenario) -> anyhow::Result<()> {
    let mut described = HashSet::new();
    for node in &scenario.node {
        ensure!(described.insert(&node.name), "{} is described twice", node.name);
    }
    let workers = scenario.node.iter().map(|node| node.workers).chain([scenario.node_defaults.workers]);
    for count in workers.flatten() {
        ensure!((1..=64).contains(&count), "a node has 1 to 64 workers");
    }
    Ok(())
}

fn check_links(scenario: &Scenario) -> anyhow::Result<()> {
    ensure!(scenario.link.len() <= LINKS_MAX, "{} links, {LINKS_MAX} are allowed", scenario.link.len());
    let defaults = &scenario.link_defaults;
    let mut pairs = HashSet::new();
    let losses = scenario.link.iter().filter_map(|link| link.loss).chain([defaults.loss]);
    for loss in losses.chain(scenario.air.iter().map(|air| air.loss)) {
        ensure!((0.0..=1.0).contains(&loss), "a loss is 0 to 1");
    }
    for link in &scenario.link {
        let (a, b) = (&link.a, &link.b);
        ensure!(!a.is_empty() && !b.is_empty(), "a link has two ends, `a` and `b`");
        ensure!(a != b, "a link joins {a} with itself");
        ensure!(pairs.insert(ends(a, b)), "{a} and {b} have two links");
        ensure!(link.mtu.unwrap_or(defaults.mtu) >= 64, "an MTU is at least 64");
    }
    Ok(())
}

fn check_air(scenario: &Scenario) -> anyhow::Result<()> {
    let mut names = HashSet::new();
    for air in &scenario.air {
        ensure!(names.insert(&air.name), "two media are called {}", air.name);
        let sure_is_less = air.range.is_none_or(|range| range > 0.0 && air.sure.is_none_or(|sure| sure < range));
        ensure!(sure_is_less, "medium {}: a range is above 0, and `sure` below it", air.name);
        ensure!(air.mtu.is_none_or(|mtu| mtu >= 64), "medium {}: an MTU is at least 64", air.name);
    }
    Ok(())
}

fn check_consumer(consumer: &Consumer, names: &Names<'_>) -> anyhow::Result<()> {
    ensure!(consumer.node.is_some() || !consumer.nodes.is_empty(), "a consumer has `node` or `nodes`");
    ensure!(consumer.node.is_none() || consumer.nodes.is_empty(), "a consumer has `node` or `nodes`, not both");
    let distinct: HashSet<&String> = consumer.nodes.iter().collect();
    ensure!(distinct.len() == consumer.nodes.len(), "a consumer names a node twice in `nodes`");
    let everywhere = consumer.nodes == ["*"];
    for node in consumer.node.iter().chain(consumer.nodes.iter().filter(|_| !everywhere)) {
        names.node(node)?;
    }
    match (&consumer.prefix, &consumer.file, consumer.kind) {
        (None, Some(_), ConsumerKind::Requests | ConsumerKind::Names) => {}
        (_, None, ConsumerKind::Requests) => bail!("a consumer of `requests` needs `file`"),
        (Some(_), Some(_), _) => bail!("a consumer has `prefix` or `file`, not both"),
        (Some(prefix), None, _) => drop(name_of(prefix)?),
        (None, _, kind) => bail!("a consumer of this kind ({kind:?}) needs `prefix`"),
    }
    ensure!(consumer.window != Some(0) && consumer.transmissions != Some(0), "window and transmissions are at least 1");
    ensure!(consumer.names.is_none_or(|names| names <= NAMES_MAX), "{NAMES_MAX} names are allowed");
    let is_zipf = consumer.kind == ConsumerKind::Zipf;
    let has_law = consumer.catalogue.is_some() || consumer.exponent.is_some();
    ensure!(is_zipf || !has_law, "`catalogue` and `exponent` are of consumers with kind = \"zipf\"");
    let catalogue = consumer.catalogue.unwrap_or(1);
    ensure!((1..=NAMES_MAX).contains(&catalogue), "a catalogue has 1 to {NAMES_MAX} names");
    ensure!(consumer.exponent.is_none_or(|it| it >= 0.0 && it.is_finite()), "an exponent is at least 0");
    Ok(())
}

fn check_event(event: &Event, names: &Names<'_>) -> anyhow::Result<()> {
    match (&event.a, &event.b, &event.node) {
        (Some(a), Some(b), None) => {
            names.link(a, b)?;
            let changes = event.up.is_some() || event.loss.is_some() || event.delay.is_some();
            ensure!(
                changes || event.bandwidth.is_some(),
                "an event of a link has `up`, `loss`, `delay` or `bandwidth`"
            );
        }
        (None, None, Some(node)) => {
            names.node(node)?;
            ensure!(event.restart || event.pause.is_some(), "an event of a node has `restart` or `pause`");
        }
        _ => bail!("an event is about a link, `a` and `b`, or a `node`"),
    }
    ensure!(event.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)), "a loss is 0 to 1");
    Ok(())
}

/// # Errors
/// If the text is no name.
pub(crate) fn name_of(text: &str) -> anyhow::Result<NameBuf> {
    text.parse().with_context(|| format!("{text:?} is no name"))
}
