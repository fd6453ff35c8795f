//! How fast is the simulator, and how much memory does it need?
//!
//! Workload: routers at random places in a square, linked to those near by. Pairs of a producer and a consumer are 5
//! hops apart (as far as there are, if fewer); each consumer fetches its names with a window of 64, a name each
//! millisecond. Every Data is new, so each crosses the whole path. The scenario is a file as users write it, run by the
//! code that `namewire-sim run` runs.
//!
//! Subjects: stores of 1,000 Data by the router's own policy and by LRU, and no stores. A run in which not all Data
//! come is no result. Memory: what the process holds after it has made the routers of a network without links, divided
//! by their number.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use fastrand::Rng;
use namewire_scenario::generate::LinkRow;
use namewire_scenario::generate::graphs::geometric;
use namewire_scenario::results::Results;
use namewire_scenario::run::{RunOptions, run as run_scenario};
use namewire_scenario::{OwnStrategies, Scenario, default_node};
use namewire_sim::Network;
use serde::Deserialize;

use crate::experiment::{Context, Outcome};
use crate::process;
use crate::sample_table::SampleTable;

pub(super) const FILE: &str = include_str!("simulator.toml");

const HOPS: usize = 5;
const SIDE_KM: f64 = 1_000.0;
/// What is varied, as `--set` has it.
const SUBJECTS: [(&str, &str); 3] = [
    ("stores, the router's policy", "node_defaults.store_packets=1000"),
    ("stores, LRU", "node_defaults.policy=lru"),
    ("no stores", "node_defaults.store_packets=0"),
];
const SPEED: (&str, &str) = ("packets", "per second of processor time");

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    repetitions: u32,
    nodes: usize,
    links: usize,
    pairs: usize,
    names: u64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let size = &size;
    let mut outcome = Outcome::default();
    context.plan_steps(1 + size.repetitions as usize * SUBJECTS.len());
    let folder = tempfile::tempdir()?;
    let links = geometric(size.nodes, size.links, SIDE_KM, context.seed)?;
    let scenario = scenario(&links, size, context.seed, folder.path())?;
    context.begin_step("memory of idle routers")?;
    let idle_mb = idle_router_mb(size.nodes)?;
    outcome.add_value("idle router", "memory", ("memory", "MB"), idle_mb);
    let mut speeds = SampleTable::default();
    for _ in 0..size.repetitions {
        for (subject, setting) in SUBJECTS {
            context.begin_step(subject)?;
            let whole = timed(&scenario, folder.path(), &[setting], context.seed)?;
            let built = timed(&scenario, folder.path(), &[setting, "duration=1us"], context.seed)?;
            ensure!(whole.results.figure("all", "satisfied") == Some(100.0), "{subject}: not all Data came");
            let packets = (whole.results.packets - built.results.packets) as f64;
            let seconds = whole.cpu_ns.saturating_sub(built.cpu_ns).max(1) as f64 / 1e9;
            speeds.add("speed", subject, SPEED.0, SPEED.1, packets / seconds);
            if speeds.samples("speed", subject, SPEED.0, SPEED.1).taken().len() == 1 {
                outcome.add_value("work", subject, ("packets that routers took", "packets"), packets);
            }
        }
    }
    for ((subject, _), key) in SUBJECTS.iter().zip(["", "_lru", "_no_store"]) {
        if let Some(samples) = speeds.find("speed", subject, SPEED.0) {
            outcome.add_steady(&format!("simulator_packets_per_cpu_s{key}"), samples);
        }
    }
    outcome.rows.extend(speeds.rows());
    outcome.headline.insert("simulator_idle_router_mb".to_owned(), idle_mb);
    outcome.add_notes(FILE)?;
    Ok(outcome)
}

struct Timed {
    results: Results,
    cpu_ns: u64,
}

fn timed(scenario: &str, folder: &Path, settings: &[&str], seed: u64) -> anyhow::Result<Timed> {
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let cpu_ns = || process::cpu_time_ns(std::process::id()).context("Linux keeps schedstat");
    let before_ns = cpu_ns()?;
    let scenario = Scenario::parse(scenario, folder, &settings)?;
    let results = run_scenario(&scenario, seed, &OwnStrategies::default(), &mut RunOptions::default())?;
    Ok(Timed { results, cpu_ns: cpu_ns()? - before_ns })
}

/// The scenario, and its file of links.
fn scenario(links: &[LinkRow], size: &Size, seed: u64, folder: &Path) -> anyhow::Result<String> {
    let mut file = csv::Writer::from_path(folder.join("links.csv"))?;
    links.iter().try_for_each(|link| file.serialize(link))?;
    file.flush()?;
    let mut neighbours: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for LinkRow { a, b, .. } in links {
        neighbours.entry(a).or_default().push(b);
        neighbours.entry(b).or_default().push(a);
    }
    let nodes: Vec<&str> = neighbours.keys().copied().collect();
    let mut rng = Rng::with_seed(seed);
    let seconds = size.names.div_ceil(1_000) + 60;
    let mut text = format!("duration = \"{seconds}s\"\nlinks_file = \"links.csv\"\n");
    for pair in 0..size.pairs {
        let producer = nodes[rng.usize(0..nodes.len())];
        let consumers = apart(&neighbours, producer);
        let consumer = consumers[rng.usize(0..consumers.len())];
        write!(
            text,
            "[[producer]]\nnode = \"{producer}\"\nprefix = \"/p{pair}\"\n\
             [[consumer]]\nname = \"all\"\nnode = \"{consumer}\"\nprefix = \"/p{pair}\"\nnames = {}\n",
            size.names
        )?;
    }
    Ok(text)
}

/// The nodes at [`HOPS`] from one, or at the most that there are.
fn apart<'n>(neighbours: &BTreeMap<&'n str, Vec<&'n str>>, from: &'n str) -> Vec<&'n str> {
    let mut seen = std::collections::BTreeSet::from([from]);
    let mut ring = vec![from];
    for _ in 0..HOPS {
        let next: Vec<&str> =
            ring.iter().flat_map(|node| &neighbours[node]).copied().filter(|node| seen.insert(node)).collect();
        if next.is_empty() {
            break;
        }
        ring = next;
    }
    ring
}

fn idle_router_mb(nodes: usize) -> anyhow::Result<f64> {
    let held_kib = || process::resident_kib(std::process::id()).context("Linux says what a process holds");
    let before_kib = held_kib()?;
    let mut net = Network::new(1, 0);
    for _ in 0..nodes {
        net.add_node(default_node());
    }
    let after_kib = held_kib()?;
    ensure!(net.nodes().count() == nodes, "the routers are there");
    Ok(after_kib.saturating_sub(before_kib) as f64 * 1024.0 / nodes as f64 / 1e6)
}
