//! A user-defined FIB design, compared with the default (docs/lab.md).
//!
//! The design is the simplest one: a hash map of prefixes, from the longest prefix of a name to the shortest. It is an
//! example of a design in a user's own crate, which depends on `namewire-tables` for the interface and on
//! `namewire-lab` to measure.
//!
//! `cargo run --release -p namewire-lab --example own_design -- [smoke|quick|full] [LIST OF NAMES]` writes
//! `out/own-design.json`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use namewire_lab::experiment::{Context, Experiment, Outcome, Scale};
use namewire_lab::experiments;
use namewire_lab::terminal;
use namewire_tables::fib::{FibRefusal, PrefixMatch, PrefixTable};

/// Prefixes as the bytes of their components, one TLV after the other.
#[derive(Default)]
struct LongestFirst {
    numbers: HashMap<Box<[u8]>, u32>,
    name_bytes: usize,
}

/// What the map has for each entry: key, number, control byte, at seven eighths full.
const ENTRY_BYTES: usize = (size_of::<(Box<[u8]>, u32)>() + 1) * 8 / 7;

impl PrefixTable for LongestFirst {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        let before = self.numbers.insert(prefix.into(), number);
        self.name_bytes += if before.is_none() { prefix.len() } else { 0 };
        Ok(before)
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let number = self.numbers.remove(prefix)?;
        self.name_bytes -= prefix.len();
        Some(number)
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        for (name, found) in names.iter().zip(out) {
            *found = prefix_ends(name).into_iter().rev().find_map(|bytes| {
                let number = *self.numbers.get(&name[..bytes])?;
                Some(PrefixMatch { number, prefix_bytes: u16::try_from(bytes).ok()? })
            });
        }
    }

    fn len(&self) -> usize {
        self.numbers.len()
    }

    fn bytes(&self) -> usize {
        self.numbers.capacity() * ENTRY_BYTES + self.name_bytes
    }
}

/// Where each prefix of a name ends, the root first. Types and lengths below 253 take a byte; so do all of the lab's.
fn prefix_ends(name: &[u8]) -> Vec<usize> {
    let mut ends = vec![0];
    while let Some(&[_, length]) = name.get(ends[ends.len() - 1]..).and_then(|rest| rest.first_chunk()) {
        ends.push(ends[ends.len() - 1] + 2 + usize::from(length));
    }
    ends
}

// experiment
fn run(context: &Context) -> anyhow::Result<Outcome> {
    experiments::own_design(context, "longest-first-map", |_, _| Box::<LongestFirst>::default())
}

const EXPERIMENT: Experiment = Experiment {
    id: "own-design",
    source: "mine",
    question: "Is a plain hash map fast enough?",
    needs: "quick: 2 min, 1 GiB",
    takes: None,
    run,
    sources: &[],
};
// end

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scale =
        arguments.first().map_or(Ok(Scale::Quick), |name| Scale::from_str(name, false)).map_err(anyhow::Error::msg)?;
    let mut context = Context::new(scale, 1, vec![1], std::env::current_exe()?);
    context.names = arguments.get(1).map(PathBuf::from);
    let record = EXPERIMENT.record(&context, format!("own_design {}", arguments.join(" ")))?;
    print!("{}", terminal::text(&record, false)?);
    println!("written to {}", record.write(Path::new("out"))?.display());
    Ok(())
}
