//! What do larger pages save a FIB look-up, and what do precomputed hashes save?
//!
//! Source: Yuan15 Fig. 3.6 (4 KiB, 2 MiB, 1 GiB pages; hashes timed or precomputed), there with binary search over
//! lengths and up to a billion names ([`thesis_tables`]). Beside it the router's own table: the papers' 13.5 million
//! prefixes are looked up one by one and in batches. There is one table per page size, all in memory at once, so that
//! slices can take turns. The run reserves explicit huge pages where the system allows it, and gives them back.

mod reserved_pages;
mod thesis_tables;

use namewire_tables::{Fib, FibConfig, HashKey, PageSize};
use serde::Deserialize;

use crate::experiment::{Context, Outcome, Samples};
use crate::fib_measurement::{FibLookup, FibLookups, SLICE_NAMES, populate};
use crate::synthetic_names::{NAME_COMPONENTS, SyntheticNames};
use reserved_pages::ReservedPages;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    prefixes: u64,
    repetitions: usize,
    /// Slices per variant, page size and repetition.
    slices: usize,
    thesis: thesis_tables::Size,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    context.plan_steps(PageSize::ALL.len() + size.repetitions + thesis_tables::steps(&size.thesis));
    let mut outcome = Outcome::default();
    thesis_tables::measure(&size.thesis, context, &mut outcome)?;
    router_table(&size, context, &mut outcome)?;
    outcome.add_notes(FILE)?;
    Ok(outcome)
}

fn router_table(size: &Size, context: &Context, outcome: &mut Outcome) -> anyhow::Result<()> {
    let names = SyntheticNames::new(context.seed, size.prefixes);
    let mut reserved = Vec::new(); // released after the tables
    let mut tables: Vec<(PageSize, Result<Fib, String>)> = Vec::new();
    for pages in PageSize::ALL {
        context.begin_step(&format!("FIB on {} pages", pages.name()))?;
        let config = FibConfig { pages, entry_bytes: entry_bytes(names), ..FibConfig::new(size.prefixes as usize) };
        // At 8 bytes an entry in the index.
        reserved.push(ReservedPages::reserve(pages, &[config.entry_bytes as u64, size.prefixes * 8 + 64]));
        let check = || Ok(context.check_interrupt()?);
        let table = populate(names, config, HashKey::from_seed(context.seed), &check);
        context.check_interrupt()?;
        tables.push((pages, table.map_err(|error| format!("not available: {error:#}"))));
    }

    let mut samples: Vec<[Samples; FibLookup::ALL.len()]> = vec![Default::default(); tables.len()];
    let mut lookups = FibLookups::new(names, 0);
    for _ in 0..size.repetitions {
        context.begin_step("look-ups")?;
        let mut took_ns = vec![[const { Vec::new() }; FibLookup::ALL.len()]; tables.len()];
        for _ in 0..size.slices {
            for ((_, table), took_ns) in tables.iter().zip(&mut took_ns) {
                let Ok(fib) = table else { continue };
                for (lookup, took_ns) in FibLookup::ALL.into_iter().zip(took_ns) {
                    took_ns.push(lookups.slice(fib.view(), lookup, &context.clock)?);
                }
            }
        }
        for (((_, table), took_ns), samples) in tables.iter().zip(took_ns).zip(&mut samples) {
            for (took_ns, samples) in took_ns.into_iter().zip(samples) {
                match table {
                    Ok(_) => samples.add_resolved(context.clock.median_ns(took_ns, SLICE_NAMES)),
                    Err(reason) => samples.refuse(reason.clone()),
                }
            }
        }
    }

    for ((pages, _), samples) in tables.iter().zip(&samples) {
        for (lookup, samples) in FibLookup::ALL.into_iter().zip(samples) {
            let row = samples.row(lookup.name(), pages.name(), "latency", "ns per look-up", None);
            if let Some(value) = &row.value {
                let key = format!("{} {} ns", lookup.name(), pages.name()).replace(", ", "_").replace([' ', '-'], "_");
                outcome.headline.insert(key, value.median);
            }
            outcome.rows.push(row);
        }
    }
    Ok(())
}

/// Bytes for the entries of these names. Explicit huge pages are taken whole, so the estimate is tight.
fn entry_bytes(names: SyntheticNames) -> usize {
    // 8 bytes of header, 11 for each of 4 components on average, at most 3 of padding; one percent to spare.
    let mean = 8 + 11 * 4 + 3;
    (names.prefixes() as usize * mean / 100 * 101).max(NAME_COMPONENTS as usize * 11)
}
