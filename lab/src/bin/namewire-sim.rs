//! `namewire-sim`: runs a simulated NDN network that a file describes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use namewire_lab::clock::Clock;
use namewire_lab::machine::{Machine, memory_peak_mib, source_commit};
use namewire_lab::record::Record;
use namewire_lab::scenario::{self, Scenario};
use namewire_lab::terminal;

/// Simulates an NDN network of real forwarding engines
#[derive(Parser)]
#[command(name = "namewire-sim", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario and write DIR/SCENARIO.json, a record like those of namewire-lab
    Run {
        /// The scenario, a TOML file (lab/README.md explains it)
        scenario: PathBuf,
        /// Seed of all random choices
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Where to write the record
        #[arg(long, value_name = "DIR", default_value = "out")]
        out: PathBuf,
        /// Print every row, not only the headline
        #[arg(long)]
        all: bool,
    },
}

fn main() -> ExitCode {
    let Command::Run { scenario, seed, out, all } = Arguments::parse().command;
    match run(&scenario, seed, &out, all) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("namewire-sim: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &Path, seed: u64, out: &Path, all: bool) -> anyhow::Result<()> {
    let scenario = Scenario::read(file)?;
    let (started, started_unix_s) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs());
    let outcome = scenario::run(&scenario, seed)?;
    let name = file.file_stem().context("a scenario is a file")?.to_string_lossy().into_owned();
    let record = Record {
        command: format!("namewire-sim run {name}.toml --seed {seed}"),
        experiment: name,
        question: scenario.question,
        scale: "simulated".to_owned(),
        machine: Machine::describe(&Clock::calibrate()),
        commit: source_commit(),
        seed,
        started_unix_s,
        duration_s: started.elapsed().as_secs_f64(),
        memory_peak_mib: memory_peak_mib(),
        rows: outcome.rows,
        headline: outcome.headline,
        notes: outcome.notes,
    };
    let path = record.write(out)?;
    print!("{}", terminal::text(&record, all)?);
    println!("written to {}", path.display());
    Ok(())
}
