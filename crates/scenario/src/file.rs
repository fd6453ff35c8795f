//! The scenario file: nodes, links, applications and what changes, as TOML.
//!
//! `docs/simulator.md` explains every key. [`Scenario::read`] refuses unknown keys, impossible values, and names of
//! nodes and media that do not exist; what a file of links or changes holds is checked when it is read.

use crate::bit_rate::BitRate;
use crate::{check, movement, topology};
use anyhow::{Context as _, ensure};
use namewire_configuration::units::{Bytes, Span};
use namewire_sim::Track;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a scenario file.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A network and what happens in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about, for the page.
    #[serde(default)]
    pub question: String,
    /// Simulated time.
    pub duration: Span,
    /// Width of a bin in `timeline.csv`.
    #[serde(default = "default_bin")]
    pub bin: Span,
    /// The strategy of all nodes for all names, unless a node has its own.
    pub strategy: Option<String>,
    /// How nodes get routes to producers.
    #[serde(default)]
    pub routing: Routing,
    /// Most next hops of a node to a producer.
    #[serde(default = "default_next_hops")]
    pub next_hops: usize,
    /// With recomputed routes: from a change of a link to the new routes.
    #[serde(default = "default_routing_delay")]
    pub routing_delay: Span,
    /// What a node has that says nothing else.
    #[serde(default)]
    pub node_defaults: NodeSettings,
    /// Nodes with settings of their own; the ends of links and the members of media are nodes in any case.
    #[serde(default)]
    pub node: Vec<Node>,
    /// Links that break and are mended at random times.
    pub failures: Option<RandomFailures>,
    /// A file of links, beside those below.
    pub links_file: Option<PathBuf>,
    /// What a link has that says nothing else.
    #[serde(default)]
    pub link_defaults: LinkSettings,
    #[serde(default)]
    pub link: Vec<Link>,
    /// Media that nodes share.
    #[serde(default)]
    pub air: Vec<Air>,
    /// Where nodes are at what time.
    pub movement_file: Option<PathBuf>,
    /// Changes of links.
    pub changes_file: Option<PathBuf>,
    /// Beside those of `routing`.
    #[serde(default)]
    pub route: Vec<Route>,
    #[serde(default)]
    pub producer: Vec<Producer>,
    #[serde(default)]
    pub consumer: Vec<Consumer>,
    #[serde(default)]
    pub sync: Vec<Sync>,
    #[serde(default)]
    pub event: Vec<Event>,
    /// Links whose frames are kept, each as `A B` or the name of a medium.
    #[serde(default)]
    pub capture: Vec<String>,
    /// What the movement file says.
    #[serde(skip)]
    pub tracks: BTreeMap<String, Track>,
}

/// How nodes get routes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// Shortest paths by delay at the beginning.
    #[default]
    ShortestPaths,
    /// The same, and again after each change of a link.
    Recomputed,
    /// No routes: producers announce their prefixes, and the strategy self-learning finds them.
    SelfLearning,
    /// Every node sends Interests to all its links and media.
    Flood,
    /// Only the routes of the file.
    None,
}

/// Settings of a router.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeSettings {
    pub workers: Option<u8>,
    /// Data that its store holds.
    pub store_packets: Option<u64>,
    /// Of the store: see docs/content-store.md.
    pub policy: Option<String>,
    pub admission: Option<String>,
    /// Pending Interests that it holds.
    pub pit_entries: Option<u32>,
    /// From the arrival of a packet to its processing.
    pub processing: Option<Span>,
    /// Strategies by prefix.
    pub strategy: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    pub name: String,
    /// Where it stays, in metres.
    pub x: Option<f64>,
    pub y: Option<f64>,
    // N.B. `flatten` would accept unknown keys.
    pub workers: Option<u8>,
    pub store_packets: Option<u64>,
    pub policy: Option<String>,
    pub admission: Option<String>,
    pub pit_entries: Option<u32>,
    pub processing: Option<Span>,
    #[serde(default)]
    pub strategy: BTreeMap<String, String>,
}

/// What happens to frames of a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSettings {
    pub delay: Span,
    pub jitter: Span,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Bits per second; without a limit if there is none.
    pub bandwidth: Option<BitRate>,
    pub queue: Bytes,
    pub mtu: usize,
    /// Both ends retransmit lost frames (NDNLPv2).
    pub reliability: bool,
}

impl Default for LinkSettings {
    fn default() -> Self {
        LinkSettings {
            delay: Span(Duration::from_millis(1)),
            jitter: Span::default(),
            loss: 0.0,
            bandwidth: None,
            queue: Bytes(256 << 10),
            mtu: 1452,
            reliability: false,
        }
    }
}

/// Two nodes and what lies between them; what is not said is as in `link_defaults`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub a: String,
    pub b: String,
    pub delay: Option<Span>,
    pub jitter: Option<Span>,
    pub loss: Option<f64>,
    pub bandwidth: Option<BitRate>,
    pub queue: Option<Bytes>,
    pub mtu: Option<usize>,
    pub reliability: Option<bool>,
    /// Whether it works at the beginning.
    pub up: Option<bool>,
}

/// How links fail: each works and is down for random times with these means.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomFailures {
    pub mean_up: Span,
    pub mean_down: Span,
    /// Nothing fails before.
    #[serde(default)]
    pub start: Span,
}

/// A medium.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Air {
    pub name: String,
    /// Who is on it; without it, all nodes of the movement file and all nodes with a place.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// How far frames reach, in metres; without it, all nodes hear each other, as on an Ethernet segment.
    pub range: Option<f64>,
    /// Up to this distance, none is lost by distance; without it, half of the range.
    pub sure: Option<f64>,
    #[serde(default)]
    pub loss: f64,
    /// Bits per second.
    pub bandwidth: Option<BitRate>,
    pub queue: Option<Bytes>,
    pub mtu: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub node: String,
    pub prefix: String,
    /// A neighbour, or the name of a medium.
    pub to: String,
    #[serde(default)]
    pub cost: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Producer {
    pub node: String,
    pub prefix: String,
    #[serde(default = "default_content")]
    pub content: Bytes,
    #[serde(default = "default_freshness")]
    pub freshness: Span,
    /// From an Interest to its Data.
    #[serde(default)]
    pub processing: Span,
}

/// What a consumer asks for.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ConsumerKind {
    /// `PREFIX/0`, `PREFIX/1` and so on, as many as the window allows.
    #[default]
    Names,
    /// One name each `interval`, once: what is lost stays lost.
    Ping,
    /// One name each `interval`, asked for again while it is worth it: a live stream.
    Stream,
    /// The segments of one object, with a congestion window.
    File,
    /// Names of a catalogue, drawn by Zipf's law.
    Zipf,
    /// Names and times of a file.
    Requests,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumer {
    /// Where it is, and where others like it are.
    pub node: Option<String>,
    #[serde(default)]
    pub nodes: Vec<String>,
    #[serde(default)]
    pub kind: ConsumerKind,
    pub prefix: Option<String>,
    /// What it is called in the results; without it, kind and prefix.
    pub name: Option<String>,
    /// How many names or segments it asks for; a ping, stream or Zipf consumer asks to the end without it.
    pub names: Option<u64>,
    /// Of `requests`: lines of a time in seconds and a name; `names` without times also takes one name a line.
    pub file: Option<PathBuf>,
    #[serde(default)]
    pub start: Span,
    pub stop: Option<Span>,
    /// Between two names.
    pub interval: Option<Span>,
    /// Times between names are exponential (Poisson arrivals) and not equal.
    #[serde(default)]
    pub random_times: bool,
    /// Of `zipf`.
    pub catalogue: Option<u64>,
    pub exponent: Option<f64>,
    /// Most names pending.
    pub window: Option<usize>,
    pub lifetime: Option<Span>,
    pub transmissions: Option<u32>,
    pub retransmit_after: Option<Span>,
    pub must_be_fresh: Option<bool>,
}

/// A group that synchronises by State Vector Sync.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sync {
    pub prefix: String,
    pub nodes: Vec<String>,
    /// Between two publications of each member.
    pub interval: Span,
    #[serde(default)]
    pub start: Span,
    pub stop: Option<Span>,
    #[serde(default = "default_publication")]
    pub content: Bytes,
    /// Between sync Interests while nothing happens.
    #[serde(default = "default_sync_period")]
    pub period: Span,
}

/// What changes at a time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    pub at: Span,
    /// The ends of a link.
    pub a: Option<String>,
    pub b: Option<String>,
    /// Cut or mend it.
    pub up: Option<bool>,
    pub loss: Option<f64>,
    pub delay: Option<Span>,
    pub bandwidth: Option<BitRate>,
    /// A node that loses its state, or stands still for a while.
    pub node: Option<String>,
    #[serde(default)]
    pub restart: bool,
    pub pause: Option<Span>,
}

const fn default_bin() -> Span {
    Span::from_secs(1)
}
const fn default_next_hops() -> usize {
    4
}
const fn default_routing_delay() -> Span {
    Span::from_secs(1)
}
const fn default_content() -> Bytes {
    Bytes(1_000)
}
const fn default_publication() -> Bytes {
    Bytes(100)
}
const fn default_freshness() -> Span {
    Span::from_secs(1)
}
const fn default_sync_period() -> Span {
    Span::from_secs(30)
}
impl Scenario {
    /// # Errors
    /// If the file cannot be read, is malformed, or names something that is not there. `settings` are changes of the
    /// file, each `KEY=VALUE` with a key like `strategy`, `link_defaults.loss` or `consumer.0.interval`.
    pub fn read(file: &Path, settings: &[String]) -> anyhow::Result<Self> {
        let bytes = std::fs::metadata(file).with_context(|| file.display().to_string())?.len();
        ensure!(bytes <= FILE_BYTES_MAX, "{}: more than {FILE_BYTES_MAX} bytes", file.display());
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let folder = file.parent().unwrap_or(Path::new("."));
        Self::parse(&text, folder, settings).with_context(|| file.display().to_string())
    }

    /// `folder`: where the files are that the text names.
    ///
    /// # Errors
    /// If the text is malformed, or names something that is not there.
    pub fn parse(text: &str, folder: &Path, settings: &[String]) -> anyhow::Result<Self> {
        let mut scenario: Self = if settings.is_empty() {
            toml::from_str(text)?
        } else {
            let mut table: toml::Table = toml::from_str(text)?;
            for setting in settings {
                set(&mut table, setting).with_context(|| format!("--set {setting}"))?;
            }
            table.try_into()?
        };
        scenario.find_files(folder);
        if let Some(file) = &scenario.links_file {
            scenario.link.append(&mut topology::links(file)?);
        }
        if let Some(file) = &scenario.movement_file {
            scenario.tracks = movement::tracks(file)?;
        }
        check::check(&scenario)?;
        Ok(scenario)
    }

    /// Paths in the file are from its own folder.
    fn find_files(&mut self, folder: &Path) {
        let of_consumers = self.consumer.iter_mut().map(|consumer| &mut consumer.file);
        let others = [&mut self.links_file, &mut self.movement_file, &mut self.changes_file];
        for path in of_consumers.chain(others).flatten() {
            *path = folder.join(&*path);
        }
    }
}

/// Sets one key of the file. A value that is no TOML is a text.
fn set(table: &mut toml::Table, setting: &str) -> anyhow::Result<()> {
    let (key, value) = setting.split_once('=').context("a setting is KEY=VALUE")?;
    let parsed: Result<toml::Table, _> = toml::from_str(&format!("value = {value}"));
    let value = match parsed.ok().and_then(|mut table| table.remove("value")) {
        Some(value) => value,
        None => toml::Value::String(value.to_owned()),
    };
    let mut parts: Vec<&str> = key.trim().split('.').collect();
    let last = parts.pop().filter(|last| !last.is_empty()).context("a setting has a key")?;
    let mut place = table;
    let mut parts = parts.into_iter();
    while let Some(part) = parts.next() {
        let inner = place.entry(part.to_owned()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        place = match inner {
            toml::Value::Table(table) => table,
            toml::Value::Array(entries) => {
                let number: usize = parts.next().unwrap_or(last).parse().context("entries of a list have numbers")?;
                let entry = entries.get_mut(number).with_context(|| format!("there is no entry {number}"))?;
                entry.as_table_mut().with_context(|| format!("entry {number} has no keys"))?
            }
            _ => anyhow::bail!("{part} has no keys"),
        };
    }
    place.insert(last.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) const SMALL: &str = "duration = \"10s\"\n[[link]]\na = \"x\"\nb = \"y\"\ndelay = \"5ms\"\n\
        [[producer]]\nnode = \"y\"\nprefix = \"/p\"\n[[consumer]]\nnode = \"x\"\nprefix = \"/p\"\n";

    fn parsed(text: &str, settings: &[&str]) -> anyhow::Result<Scenario> {
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        Scenario::parse(text, Path::new("."), &settings)
    }

    #[test]
    fn a_small_scenario_has_defaults() -> anyhow::Result<()> {
        let scenario = parsed(SMALL, &[])?;
        assert_eq!((scenario.routing, scenario.bin), (Routing::ShortestPaths, Span::from_secs(1)));
        assert_eq!(scenario.link_defaults.mtu, 1452);
        Ok(())
    }

    #[test]
    fn settings_change_keys_of_tables_and_lists() -> anyhow::Result<()> {
        let settings = ["strategy=asf", "link_defaults.loss=0.25", "consumer.0.window=7", "duration=20s"];
        let scenario = parsed(SMALL, &settings)?;
        assert_eq!((scenario.strategy.as_deref(), scenario.link_defaults.loss), (Some("asf"), 0.25));
        assert_eq!((scenario.consumer[0].window, scenario.duration), (Some(7), Span::from_secs(20)));
        for wrong in ["strategy", "consumer.9.window=7", "duration.x=1", "=3"] {
            assert!(parsed(SMALL, &[wrong]).is_err(), "{wrong}");
        }
        Ok(())
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (more, reason) in [
            ("[[consumer]]\nnode = \"z\"\nprefix = \"/p\"\n", "no node is called \"z\""),
            ("[[consumer]]\nnode = \"x\"\n", "needs `prefix`"),
            ("[[consumer]]\nprefix = \"/p\"\n", "`node` or `nodes`"),
            ("[[route]]\nnode = \"x\"\nprefix = \"/p\"\nto = \"z\"\n", "x and z have no link"),
            ("[[event]]\nat = \"1s\"\na = \"x\"\nb = \"z\"\nup = false\n", "x and z have no link"),
            ("[[event]]\nat = \"1s\"\nup = false\n", "an event is about"),
            ("[[link]]\na = \"y\"\nb = \"x\"\n", "have two links"),
            ("[[link]]\na = \"y\"\nb = \"w\"\nloss = 2.0\n", "0 to 1"),
            ("[[link]]\na = \"y\"\nb = \"w\"\ndelay = \"fast\"\n", "fast"),
            ("[[link]]\na = \"y\"\nb = \"w\"\ndely = \"1ms\"\n", "dely"),
            ("[[link]]\na = \"y\"\nb = \"\"\n", "two ends"),
            ("[[link]]\na = \"y\"\nb = \"w\"\nbandwidth = 0\n", "at least a bit"),
            ("[[node]]\nname = \"x\"\n[[node]]\nname = \"x\"\n", "x is described twice"),
            ("[[consumer]]\nnode = \"x\"\nnodes = [\"y\"]\nprefix = \"/p\"\n", "not both"),
            ("[[consumer]]\nnodes = [\"x\", \"x\"]\nprefix = \"/p\"\n", "twice"),
            ("[[consumer]]\nnode = \"x\"\nprefix = \"/p\"\nexponent = 1.0\n", "zipf"),
            ("[[air]]\nname = \"w\"\nnodes = [\"x\", \"z\"]\nrange = 0\n", "range"),
            ("[[sync]]\nprefix = \"/s\"\nnodes = [\"x\", \"z\"]\ninterval = \"1s\"\n", "no node is called \"z\""),
        ] {
            let error = format!("{:#}", parsed(&format!("{SMALL}{more}"), &[]).unwrap_err());
            assert!(error.contains(reason), "{more}: {error}");
        }
        assert!(parsed("duration = \"1s\"\n", &[]).is_err());
        assert!(format!("{:#}", parsed(SMALL, &["capture=[\"x z\"]"]).unwrap_err()).contains("no link"));
    }
}
