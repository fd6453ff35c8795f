//! A simulated NDN network from a file: `namewire-sim run scenario.toml`.
//!
//! Question answered: what would these consumers see in this network? Nodes run the real forwarding engine over the
//! simulator `namewire-sim`, whose links lose, delay and reorder frames; a scenario lists nodes, links and
//! applications, and the result is a record of the lab. The same file and seed give the same result on any machine.
//!
//! * [`Scenario`]: the file, checked. `lab/README.md` explains it by an example.
//! * [`run`]: builds the network, runs it, counts.
//!
//! Limits: a consumer asks for each name once; consumers with the same prefix ask for the same names, which is how
//! stores get hits. Routes are static.

mod routes;
mod run;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use namewire_configuration::units::{Bytes, Span};
use namewire_engine::StrategyTable;
use namewire_packet::NameBuf;
use serde::Deserialize;

use crate::network_graph::NetworkGraph;

pub use run::run;

/// Most nodes, links, and names of all consumers together.
const NODES_MAX: usize = 10_000;
const LINKS_MAX: usize = 100_000;
const NAMES_MAX: usize = 10_000_000;
/// Names of a consumer that says no number.
const NAMES: usize = 1_000;
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The longest simulated time: a year.
const DURATION_MAX_S: u64 = 366 * 24 * 3600;

/// A network and what happens in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about, for the record.
    #[serde(default)]
    pub question: String,
    /// Simulated time.
    pub duration: Span,
    /// Nodes with settings of their own; the ends of links are nodes in any case.
    #[serde(default)]
    pub node: Vec<Node>,
    /// A file with one link per line, beside those below; its nodes are called by their numbers in it.
    pub graph: Option<PathBuf>,
    /// What the links of the graph are like; without `a` and `b`.
    #[serde(default)]
    pub graph_link: Link,
    #[serde(default)]
    pub link: Vec<Link>,
    /// Beside the shortest paths to producers.
    #[serde(default)]
    pub route: Vec<Route>,
    /// Routes along the shortest paths (by delay) from every node to every producer.
    #[serde(default = "yes")]
    pub shortest_paths: bool,
    pub producer: Vec<ProducerOfScenario>,
    pub consumer: Vec<ConsumerOfScenario>,
    #[serde(default)]
    pub event: Vec<Event>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    pub name: String,
    #[serde(default = "one")]
    pub workers: u8,
    /// Data that its store holds; the default is the router's.
    pub store_packets: Option<u64>,
    /// Of the store: see docs/content-store.md.
    pub policy: Option<String>,
    pub admission: Option<String>,
    /// Strategies by prefix.
    #[serde(default)]
    pub strategy: BTreeMap<String, String>,
}

/// Two nodes, and what happens to frames between them.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    pub a: String,
    pub b: String,
    pub delay: Span,
    pub jitter: Span,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Bits per second; without a limit if there is none.
    pub bandwidth: Option<u64>,
    pub queue: Bytes,
    pub mtu: usize,
    /// Both ends retransmit lost frames (NDNLPv2).
    pub reliability: bool,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            a: String::new(),
            b: String::new(),
            delay: Span(std::time::Duration::from_millis(1)),
            jitter: Span::default(),
            loss: 0.0,
            bandwidth: None,
            queue: Bytes(256 << 10),
            mtu: 1452,
            reliability: false,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub node: String,
    pub prefix: String,
    /// A neighbour.
    pub to: String,
    #[serde(default)]
    pub cost: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProducerOfScenario {
    pub node: String,
    pub prefix: String,
    #[serde(default = "content")]
    pub content: Bytes,
    #[serde(default = "freshness")]
    pub freshness: Span,
    /// From an Interest to its Data.
    #[serde(default)]
    pub processing: Span,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsumerOfScenario {
    pub node: String,
    /// Asks for `PREFIX/0`, `PREFIX/1` and so on.
    pub prefix: Option<String>,
    /// How many: without it, [`NAMES`] under a prefix, and all of a file.
    pub names: Option<usize>,
    /// Asks for these names instead, one per line.
    pub names_file: Option<PathBuf>,
    /// When it begins.
    #[serde(default)]
    pub start: Span,
    /// Between two new names.
    #[serde(default = "interval")]
    pub interval: Span,
    /// Most names pending.
    #[serde(default = "window")]
    pub window: usize,
    #[serde(default = "lifetime")]
    pub lifetime: Span,
    /// How often a name is asked for at most, and after what time it is asked for again.
    #[serde(default = "transmissions")]
    pub transmissions: u32,
    #[serde(default = "retransmit_after")]
    pub retransmit_after: Span,
    #[serde(default)]
    pub must_be_fresh: bool,
}

/// What changes at a time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    pub at: Span,
    /// The ends of a link.
    pub a: String,
    pub b: String,
    /// Cut or mend it.
    pub up: Option<bool>,
    pub loss: Option<f64>,
}

const fn yes() -> bool {
    true
}
const fn one() -> u8 {
    1
}
const fn content() -> Bytes {
    Bytes(1_000)
}
const fn freshness() -> Span {
    Span::from_secs(1)
}
const fn interval() -> Span {
    Span(std::time::Duration::from_millis(1))
}
const fn window() -> usize {
    64
}
const fn lifetime() -> Span {
    Span::from_secs(4)
}
const fn transmissions() -> u32 {
    3
}
const fn retransmit_after() -> Span {
    Span(std::time::Duration::from_millis(500))
}

impl Scenario {
    /// # Errors
    /// If the file cannot be read, is malformed, or names something that is not there.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::metadata(file).with_context(|| file.display().to_string())?.len();
        ensure!(bytes <= FILE_BYTES_MAX, "{}: more than {FILE_BYTES_MAX} bytes", file.display());
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let folder = file.parent().unwrap_or(Path::new("."));
        Self::parse(&text, folder).with_context(|| file.display().to_string())
    }

    /// `folder`: where the files are that the text names.
    ///
    /// # Errors
    /// If the text is malformed, or names something that is not there.
    pub fn parse(text: &str, folder: &Path) -> anyhow::Result<Self> {
        let mut scenario: Self = toml::from_str(text)?;
        if let Some(graph) = scenario.graph.take() {
            let graph = NetworkGraph::given_or_invented(Some(&folder.join(graph)), 0, 0)?;
            for (node, neighbours) in graph.neighbours.iter().enumerate() {
                for neighbour in neighbours.iter().filter(|neighbour| **neighbour as usize > node) {
                    let (a, b) = (node.to_string(), neighbour.to_string());
                    scenario.link.push(Link { a, b, ..scenario.graph_link.clone() });
                }
            }
        }
        for consumer in &mut scenario.consumer {
            if let Some(file) = &mut consumer.names_file {
                *file = folder.join(&*file);
            }
        }
        scenario.check()?;
        Ok(scenario)
    }

    /// Every node, those of links included, in the order in which they first come.
    pub fn node_names(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let ends = self.link.iter().flat_map(|link| [link.a.as_str(), link.b.as_str()]);
        self.node.iter().map(|node| node.name.as_str()).chain(ends).filter(|name| seen.insert(*name)).collect()
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.producer.is_empty() && !self.consumer.is_empty(), "a scenario has producers and consumers");
        ensure!(self.duration.0.as_secs() <= DURATION_MAX_S, "a scenario lasts a year at most");
        ensure!(self.link.len() <= LINKS_MAX, "{} links, {LINKS_MAX} are allowed", self.link.len());
        let nodes: HashSet<&str> = self.node_names().into_iter().collect();
        ensure!(nodes.len() <= NODES_MAX, "{} nodes, {NODES_MAX} are allowed", nodes.len());
        let known = |name: &str| ensure_known(&nodes, name);
        let mut pairs = HashSet::new();
        for Link { a, b, loss, bandwidth, mtu, .. } in &self.link {
            ensure!(!a.is_empty() && !b.is_empty(), "a link has two ends, `a` and `b`");
            ensure!(a != b, "a link joins {a} with itself");
            ensure!(pairs.insert((a.min(b), a.max(b))), "{a} and {b} have two links");
            ensure!((0.0..=1.0).contains(loss), "a loss is 0 to 1");
            ensure!(*mtu >= 64, "an MTU is at least 64");
            ensure!(*bandwidth != Some(0), "a bandwidth is at least a bit per second");
        }
        let mut described = HashSet::new();
        for node in &self.node {
            ensure!(described.insert(&node.name), "{} is described twice", node.name);
            ensure!((1..=64).contains(&node.workers), "a node has 1 to 64 workers");
            for (prefix, strategy) in &node.strategy {
                name_of(prefix)?;
                let full = if strategy.starts_with('/') {
                    strategy.clone()
                } else {
                    format!("/localhost/nfd/strategy/{strategy}")
                };
                let resolved = StrategyTable::default().resolve(&name_of(&full)?);
                resolved.with_context(|| format!("strategy {strategy}"))?;
            }
        }
        for Route { node, prefix, to, .. } in &self.route {
            known(node)?;
            name_of(prefix)?;
            ensure!(pairs.contains(&(node.min(to), node.max(to))), "{node} and {to} have no link");
        }
        for producer in &self.producer {
            known(&producer.node)?;
            name_of(&producer.prefix)?;
            ensure!(producer.content.0 <= 8_000, "a Data has 8000 bytes of content at most");
        }
        let mut names = 0;
        for consumer in &self.consumer {
            known(&consumer.node)?;
            match (&consumer.prefix, &consumer.names_file) {
                (Some(prefix), None) => drop(name_of(prefix)?),
                (None, Some(_)) => {}
                _ => bail!("a consumer has either `prefix` or `names_file`"),
            }
            ensure!(consumer.window >= 1 && consumer.transmissions >= 1, "a window and transmissions are at least 1");
            names += consumer.names.unwrap_or(NAMES);
        }
        ensure!(names <= NAMES_MAX, "{names} names, {NAMES_MAX} are allowed");
        for Event { a, b, loss, .. } in &self.event {
            ensure!(pairs.contains(&(a.min(b), a.max(b))), "{a} and {b} have no link");
            ensure!(loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)), "a loss is 0 to 1");
        }
        Ok(())
    }
}

fn ensure_known(nodes: &HashSet<&str>, name: &str) -> anyhow::Result<()> {
    if nodes.contains(name) {
        return Ok(());
    }
    bail!("no node is called {name:?}")
}

fn name_of(text: &str) -> anyhow::Result<NameBuf> {
    text.parse().with_context(|| format!("{text:?} is no name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> anyhow::Result<Scenario> {
        Scenario::parse(text, Path::new("."))
    }

    const SMALL: &str = "duration = \"10s\"\n[[link]]\na = \"x\"\nb = \"y\"\ndelay = \"5ms\"\n[[producer]]\nnode = \"y\"\n\
                         prefix = \"/p\"\n[[consumer]]\nnode = \"x\"\nprefix = \"/p\"\n";

    #[test]
    fn a_small_scenario_has_defaults() -> anyhow::Result<()> {
        let scenario = parsed(SMALL)?;
        assert_eq!(scenario.node_names(), ["x", "y"]);
        assert_eq!((scenario.consumer[0].names, scenario.link[0].mtu), (None, 1452));
        assert!(scenario.shortest_paths);
        Ok(())
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (more, reason) in [
            ("[[consumer]]\nnode = \"z\"\nprefix = \"/p\"\n", "no node is called \"z\""),
            ("[[consumer]]\nnode = \"x\"\n", "either `prefix` or `names_file`"),
            ("[[route]]\nnode = \"x\"\nprefix = \"/p\"\nto = \"z\"\n", "x and z have no link"),
            ("[[event]]\nat = \"1s\"\na = \"x\"\nb = \"z\"\nup = false\n", "have no link"),
            ("[[node]]\nname = \"n\"\nstrategy = { \"/\" = \"besst-route\" }\n", "besst-route"),
            ("[[link]]\na = \"y\"\nb = \"x\"\n", "have two links"),
            ("[[link]]\na = \"y\"\nb = \"w\"\nloss = 2.0\n", "0 to 1"),
            ("[[link]]\na = \"y\"\nb = \"w\"\ndelay = \"fast\"\n", "fast"),
            ("[[link]]\na = \"y\"\nb = \"w\"\ndely = \"1ms\"\n", "dely"),
            ("[[link]]\na = \"y\"\n", "two ends"),
            ("[[link]]\na = \"y\"\nb = \"w\"\nbandwidth = 0\n", "at least a bit"),
            ("[[node]]\nname = \"x\"\n[[node]]\nname = \"x\"\n", "x is described twice"),
        ] {
            let error = format!("{:#}", parsed(&format!("{SMALL}{more}")).unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
        assert!(parsed("duration = \"1s\"\nproducer = []\nconsumer = []\n").is_err());
    }
}
