//! The fingerprint-only PIT: how often do fingerprints collide, how many names overflow, how long does an operation
//! take?
//!
//! Source: Yuan15 §5.6. Table 5.4 is [`collisions`], Fig. 5.7 [`latency`]; both use the same [`churn`] of names
//! ([`requested_names`]). The table is `namewire_tables::fingerprint_pit`.
//!
//! Limits: the Data that collisions deliver to faces without a request (`pit-network`), and the other work of a router
//! (`prefetch`).

mod churn;
mod collisions;
mod latency;
mod requested_names;

use namewire_tables::FingerprintPit;
use namewire_tables::fingerprint_pit::FingerprintPitConfig;

use self::requested_names::RequestedNames;
use crate::experiment::{Context, Outcome};
use serde::Deserialize;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// N of Table 5.4.
    collision_tables: Vec<u32>,
    /// Times that phase two turns all names over; the table may still fill in the first 9.
    rounds: u64,
    /// N of Fig. 5.7.
    latency_tables: Vec<u32>,
    repetitions: usize,
    /// Slices per variant and repetition.
    slices: usize,
}

const MI: u32 = 1 << 20;

/// A size as the paper writes it: 1M is 2²⁰.
fn size_name(entries: u32) -> String {
    if entries.is_multiple_of(MI) { format!("{}m", entries / MI) } else { entries.to_string() }
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let names = RequestedNames::new(context)?;
    context.plan_steps(collisions::steps(&size) + latency::steps(&size));
    let mut outcome = Outcome::default();
    collisions::table_5_4(context, &names, &size, &mut outcome)?;
    latency::figure_5_7(context, &names, &size, &mut outcome)?;
    memory(&size, &mut outcome)?;
    outcome.notes = vec![
        format!("Names: a number appended to {}.", names.describe()),
        format!(
            "Second phase: {} times all pending names (Yuan15: 25). All pending names arrive in 80 ms; entries live 10 times \
         that.",
            size.rounds
        ),
    ];
    outcome.add_notes(FILE)?;
    Ok(outcome)
}

/// Memory of the tables of Table 5.4: the paper's entries have 44 bits, ours 64 with their share of a line.
fn memory(size: &Size, outcome: &mut Outcome) -> anyhow::Result<()> {
    for &entries in &size.collision_tables {
        let config = FingerprintPitConfig::new(entries);
        let pit = FingerprintPit::new(FingerprintPitConfig { overflow_entries: 0, ..config }, 0)?;
        for (subject, bytes) in [("44 bits an entry", f64::from(entries) * 5.5), ("ours", pit.bytes() as f64)] {
            outcome.add_value(&format!("memory, {}", size_name(entries)), subject, ("buckets", "MB"), bytes / 1e6);
        }
    }
    Ok(())
}
