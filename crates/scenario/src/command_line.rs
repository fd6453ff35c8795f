//! What can be typed: `namewire-sim run`, `check` and `make`.

use crate::comparison::{Comparison, compare};
use crate::csv_files;
use crate::file::Scenario;
use crate::generate::constellation::{Constellation, Station};
use crate::generate::failures::Failures;
use crate::generate::{LinkRow, graphs};
use crate::page;
use crate::results::Results;
use crate::run::{self, RunOptions};
use crate::topology;
use crate::world::OwnStrategies;
use anyhow::{Context as _, ensure};
use clap::{Args, Parser, Subcommand};
use namewire_configuration::units::Span;
use namewire_drawing::figure;
use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Simulates NDN networks of real forwarding engines
#[derive(Parser)]
#[command(name = "namewire-sim", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario, once or in variants and with several seeds, and write CSV files and a page
    Run(Box<RunArguments>),
    /// Check a scenario without running it
    Check {
        /// The scenario, a TOML file
        scenario: PathBuf,
        /// Change a key of the scenario
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// Write the files of a large network
    #[command(subcommand)]
    Make(Make),
}

#[derive(Args)]
struct RunArguments {
    /// The scenario, a TOML file (docs/simulator.md explains it)
    scenario: PathBuf,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run with this many seeds, from --seed on, and compare means
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Change a key of the scenario, for example link_defaults.loss=0.01 or consumer.0.window=16
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Run with each of these values and compare, for example strategy=best-route,asf; all combinations if given again
    #[arg(long, value_name = "KEY=VALUE,VALUE")]
    vary: Vec<String>,
    /// Runs at a time; the default is the number of processors
    #[arg(long, value_name = "COUNT")]
    jobs: Option<usize>,
    /// Keep the frames of this link ("A B") or medium as pcapng
    #[arg(long, value_name = "LINK")]
    capture: Vec<String>,
    /// Where to write: results go to DIR/SCENARIO
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Where exactly to write the results of one run
    #[arg(long, value_name = "DIR", hide = true)]
    folder: Option<PathBuf>,
    /// End when standard input does: the process that compares is gone
    #[arg(long, hide = true)]
    child: bool,
}

#[derive(Subcommand)]
enum Make {
    /// Satellites with laser links and ground stations: DIR/links.csv, DIR/changes.csv and DIR/scenario.toml
    Constellation(Box<ConstellationArguments>),
    /// Routers at random places in a square, linked to those near by: DIR/links.csv
    Geometric {
        #[arg(long, default_value_t = 100)]
        nodes: usize,
        #[arg(long, default_value_t = 300)]
        links: usize,
        /// Side of the square, in km
        #[arg(long, value_name = "KM", default_value_t = 1_000.0)]
        side: f64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
    /// Routers on a grid: DIR/links.csv
    Grid {
        #[arg(long, default_value_t = 10)]
        width: usize,
        #[arg(long, default_value_t = 10)]
        height: usize,
        /// Distance of neighbours, in km
        #[arg(long, value_name = "KM", default_value_t = 100.0)]
        spacing: f64,
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
    /// Few routers with many links and many with few (preferential attachment): DIR/links.csv
    Hubs {
        #[arg(long, default_value_t = 100)]
        nodes: usize,
        /// Links of each new router
        #[arg(long, default_value_t = 3)]
        links: usize,
        /// Longest delay, in ms
        #[arg(long, value_name = "MS", default_value_t = 20.0)]
        delay: f64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
    /// Links that break and are mended at random times: DIR/changes.csv
    Failures(Box<FailuresArguments>),
}

#[derive(Args)]
struct FailuresArguments {
    /// The links, a file as a scenario has it
    #[arg(long, value_name = "FILE", default_value = "links.csv")]
    links: PathBuf,
    /// How long a link works, on average
    #[arg(long, default_value = "10min")]
    mean_up: Span,
    /// How long it is down, on average
    #[arg(long, default_value = "30s")]
    mean_down: Span,
    /// Nothing fails before
    #[arg(long, default_value = "0s")]
    start: Span,
    #[arg(long, default_value = "10min")]
    duration: Span,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

#[derive(Args)]
struct ConstellationArguments {
    #[arg(long, default_value_t = 40)]
    planes: usize,
    #[arg(long, default_value_t = 25)]
    per_plane: usize,
    #[arg(long, value_name = "KM", default_value_t = 550.0)]
    altitude: f64,
    /// In degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 53.0)]
    inclination: f64,
    /// Walker's F: the shift between neighbouring planes
    #[arg(long, default_value_t = 1)]
    phasing: usize,
    /// Shift every second plane by half a place, as Hypatia does
    #[arg(long, conflicts_with = "phasing")]
    stagger: bool,
    /// How high over the horizon a satellite must be
    #[arg(long, value_name = "DEGREES", default_value_t = 25.0)]
    elevation: f64,
    /// How far from a ground station a satellite may be, if it is above the horizon
    #[arg(long, value_name = "KM")]
    range: Option<f64>,
    /// How far the Earth has turned at the beginning (sidereal time of Greenwich)
    #[arg(long, value_name = "DEGREES", default_value_t = 0.0)]
    earth_angle: f64,
    /// Satellites that a ground station uses at a time
    #[arg(long, default_value_t = 1)]
    uplinks: usize,
    /// Between two looks at the sky
    #[arg(long, default_value = "15s")]
    step: Span,
    #[arg(long, default_value = "1h")]
    duration: Span,
    /// A delay is written again when it has changed by this much
    #[arg(long, value_name = "MS", default_value_t = 0.5)]
    delay_step: f64,
    /// A ground station, with degrees of latitude and longitude; the default is eight cities
    #[arg(long = "station", value_name = "NAME,LATITUDE,LONGITUDE", allow_hyphen_values = true)]
    stations: Vec<String>,
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// Where ground stations are, unless others are asked for.
const CITIES: [&str; 8] = [
    "paris,48.9,2.3",
    "tokyo,35.7,139.7",
    "new-york,40.7,-74.0",
    "sao-paulo,-23.6,-46.6",
    "nairobi,-1.3,36.8",
    "sydney,-33.9,151.2",
    "delhi,28.6,77.2",
    "los-angeles,34.1,-118.2",
];

/// The whole program. Strategies of `own` can be named in scenarios.
pub fn main(own: OwnStrategies) -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(arguments) => run_command(&arguments, &own),
        Command::Check { scenario, settings } => check_command(&scenario, &settings, &own),
        Command::Make(make) => make_command(&make),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("namewire-sim: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check_command(file: &Path, settings: &[String], own: &OwnStrategies) -> anyhow::Result<()> {
    let scenario = Scenario::read(file, settings)?;
    run::check(&scenario, own).with_context(|| file.display().to_string())?;
    println!("{}: {} nodes, {} links", file.display(), scenario.node_names().len(), scenario.link.len());
    Ok(())
}

fn run_command(arguments: &RunArguments, own: &OwnStrategies) -> anyhow::Result<()> {
    let title = arguments.scenario.file_stem().context("a scenario is a file")?.to_string_lossy().into_owned();
    let mut scenario = Scenario::read(&arguments.scenario, &arguments.settings)?;
    let folder = arguments.folder.clone().unwrap_or_else(|| arguments.out.join(&title));
    if !arguments.vary.is_empty() || arguments.seeds.is_some() {
        ensure!(arguments.capture.is_empty(), "frames are kept of one run, without --vary and --seeds");
        let count = arguments.seeds.unwrap_or(1).max(1);
        let comparison = Comparison {
            scenario: arguments.scenario.clone(),
            settings: arguments.settings.clone(),
            vary: arguments.vary.clone(),
            seeds: (arguments.seed..arguments.seed.saturating_add(count)).collect(),
            jobs: arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
            folder,
        };
        begin_folder(&comparison.folder)?;
        let page = compare(&comparison, &title, &scenario.question)?;
        println!("written to {}", page.display());
        return Ok(());
    }
    scenario.capture.extend(arguments.capture.iter().cloned());
    let folder = folder.as_path();
    begin_folder(folder)?;
    if arguments.child {
        end_with_the_parent();
    }
    let (started, mut shown) = (Instant::now(), false);
    let mut progress = |share: f64| {
        if std::io::stderr().is_terminal() && started.elapsed().as_secs() >= 1 {
            shown = true;
            eprint!("\r{:.0} % simulated ", share * 100.0);
            // Nothing is lost if it is not shown.
            let _ = std::io::stderr().flush();
        }
    };
    let mut options = RunOptions { captures: Some(folder), progress: Some(&mut progress) };
    let results = run::run(&scenario, arguments.seed, own, &mut options)?;
    if shown {
        eprintln!();
    }
    csv_files::write(&results, scenario.bin.0.as_secs_f64(), folder)?;
    let page = folder.join("index.html");
    fs::write(&page, page::of_run(&title, &scenario, arguments.seed, &results))
        .with_context(|| page.display().to_string())?;
    print_results(&results, &page, started);
    Ok(())
}

/// Standard input is a pipe of the process that started this one, which nobody writes to.
fn end_with_the_parent() {
    std::thread::spawn(|| {
        // Whatever ends the reading, the parent is gone.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

/// The file that says that a folder and all in it are of this program.
const MARK: &str = "made-by-namewire-sim";

/// A folder for results. Those of an earlier run go: they would be taken for this run's.
fn begin_folder(folder: &Path) -> anyhow::Result<()> {
    let what = || folder.display().to_string();
    let mark = folder.join(MARK);
    if mark.is_file() {
        fs::remove_dir_all(folder).with_context(what)?;
    }
    fs::create_dir_all(folder).with_context(what)?;
    fs::write(mark, "namewire-sim removes this folder when it writes new results here.\n").with_context(what)
}

fn print_results(results: &Results, page: &Path, started: Instant) {
    let width = results.figures.iter().map(|figure| figure.metric.chars().count()).max().unwrap_or(0);
    let mut about = "";
    for figure_of in &results.figures {
        if figure_of.about != about {
            about = &figure_of.about;
            println!("{about}");
        }
        println!("  {:width$} {:>14} {}", figure_of.metric, figure(figure_of.value), figure_of.unit);
    }
    for warning in &results.warnings {
        println!("! {warning}");
    }
    let took_s = started.elapsed().as_secs_f64();
    println!("{} packets in {took_s:.1} s; written to {}", results.packets, page.display());
}

fn make_command(make: &Make) -> anyhow::Result<()> {
    match make {
        Make::Constellation(arguments) => make_constellation(arguments),
        Make::Geometric { nodes, links, side, seed, out } => {
            write_links(&graphs::geometric(*nodes, *links, *side, *seed)?, out)
        }
        Make::Grid { width, height, spacing, out } => write_links(&graphs::grid(*width, *height, *spacing)?, out),
        Make::Failures(arguments) => make_failures(arguments),
        Make::Hubs { nodes, links, delay, seed, out } => {
            write_links(&graphs::hubs(*nodes, *links, *delay, *seed)?, out)
        }
    }
}

fn make_failures(arguments: &FailuresArguments) -> anyhow::Result<()> {
    let FailuresArguments { links, mean_up, mean_down, start, duration, seed, out } = arguments;
    let [mean_up_s, mean_down_s, start_s, duration_s] =
        [mean_up, mean_down, start, duration].map(|span| span.0.as_secs_f64());
    let failures = Failures { mean_up_s, mean_down_s, start_s, duration_s, seed: *seed };
    let changes = failures.of(&topology::links(links)?)?;
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    let file = out.join("changes.csv");
    csv_files::write_rows(&file, changes.iter())?;
    println!("{} failures; written to {}", changes.len() / 2, file.display());
    Ok(())
}

fn make_constellation(arguments: &ConstellationArguments) -> anyhow::Result<()> {
    let named: Vec<&str> = match arguments.stations.is_empty() {
        true => CITIES.to_vec(),
        false => arguments.stations.iter().map(String::as_str).collect(),
    };
    let stations = named.into_iter().map(Station::parse).collect::<anyhow::Result<Vec<Station>>>()?;
    let constellation = Constellation {
        planes: arguments.planes,
        per_plane: arguments.per_plane,
        altitude_km: arguments.altitude,
        inclination_deg: arguments.inclination,
        phasing: arguments.phasing,
        stagger: arguments.stagger,
        elevation_min_deg: arguments.elevation,
        range_max_km: arguments.range,
        earth_angle_deg: arguments.earth_angle,
        uplinks: arguments.uplinks,
        step_s: arguments.step.0.as_secs_f64(),
        duration_s: arguments.duration.0.as_secs_f64(),
        delay_step_ms: arguments.delay_step,
        stations: stations.clone(),
    };
    let files = constellation.files()?;
    let out = &arguments.out;
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    csv_files::write_rows(&out.join("links.csv"), files.links.iter())?;
    csv_files::write_rows(&out.join("changes.csv"), files.changes.iter())?;
    let scenario = out.join("scenario.toml");
    fs::write(&scenario, constellation_scenario(arguments, &stations))
        .with_context(|| scenario.display().to_string())?;
    println!("{} links, {} changes; written to {}", files.links.len(), files.changes.len(), scenario.display());
    Ok(())
}

/// A scenario to begin with: the first station serves, the others ask it.
fn constellation_scenario(arguments: &ConstellationArguments, stations: &[Station]) -> String {
    let first = &stations[0].name;
    let mut text = format!(
        "# Satellites, made by `namewire-sim make constellation`.\n\
         question = \"What do ground stations see of {first} over a moving constellation?\"\n\
         duration = \"{}\"\n\
         bin = \"{}\"\n\
         links_file = \"links.csv\"\n\
         changes_file = \"changes.csv\"\n\
         routing = \"recomputed\"\n\
         routing_delay = \"100ms\"\n\n\
         [[producer]]\nnode = \"{first}\"\nprefix = \"/{first}\"\n",
        arguments.duration, arguments.step
    );
    for station in &stations[1..] {
        text.push_str(&format!(
            "\n[[consumer]]\nname = \"{0}\"\nnode = \"{0}\"\nkind = \"ping\"\nprefix = \"/{first}\"\ninterval = \"1s\"\nrandom_times = true\n",
            station.name
        ));
    }
    text
}

fn write_links(links: &[LinkRow], out: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    let file = out.join("links.csv");
    csv_files::write_rows(&file, links.iter())?;
    println!("{} links; written to {}", links.len(), file.display());
    Ok(())
}
