//! `namewire-budget`: counts the instructions of each stage of a packet, and fails if one takes more than its budget.
//!
//! It is a separate program, because it needs only one experiment of the lab and builds in a fraction of the time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use namewire_lab::budget;
use namewire_lab::experiment::{Context, Scale};

/// Counts the instructions of each stage of a packet; fails if one takes over 3 % more than FILE allows
#[derive(Parser)]
#[command(name = "namewire-budget", version)]
struct Arguments {
    /// The budget: lab/budget.json
    file: PathBuf,
    /// Write the counts to FILE instead
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    let Arguments { file, write } = Arguments::parse();
    match check(&file, write) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("namewire-budget: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check(file: &Path, write: bool) -> anyhow::Result<()> {
    let context = Context::new(Scale::Smoke, 1, vec![1], std::env::current_exe()?);
    let counts = match budget::count(&context) {
        Err(error) if budget::cannot_count(&error) => {
            println!("no instruction was counted: {error:#}");
            return Ok(());
        }
        counts => counts?,
    };
    if write {
        budget::write(file, &counts)?;
        println!("written to {}", file.display());
    } else {
        print!("{}", budget::compare(&budget::read(file)?, &counts)?);
    }
    Ok(())
}
