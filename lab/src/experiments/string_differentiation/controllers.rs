//! Insertions into a RIB: what does a route cost a controller and its table?
//!
//! Source: Yuan15 §4.3.6, Fig. 4.12 (1,991 cycles for the FHT, 13,838 for the FPT, 10⁹ names), by number of routes.
//! The controller keeps the full names; a table applies each change at once. The figure ends at the size whose names
//! fit the memory here.

use anyhow::ensure;
use namewire_designs::fib::string_differentiation::differentiator::DifferentiatorController;
use namewire_designs::fib::string_differentiation::{DefaultRoute, FhtOptions, PatriciaOptions, StringDifferentiation};
use namewire_tables::HashKey;
use namewire_tables::fib::PrefixTable;

use super::Cycles;
use super::fht_load::SLICE_NAMES;
use crate::experiment::{Context, Outcome};
use crate::numbered_names::{NUMBERED_NAME_BYTES, NumberedNames};

/// The steps of each number of routes.
pub(super) const STEPS_OF_SIZE: usize = 2;

/// Both controllers with each number of routes; the largest is the headline's.
pub(super) fn insertions(
    context: &Context,
    routes: &[u64],
    figures: &Cycles,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let key = HashKey::from_seed(context.seed);
    for &routes in routes {
        let capacity = routes as usize;
        let fht = FhtOptions::default();
        let mut fib = StringDifferentiation::with_fingerprint_hash_table(capacity, key, fht, DefaultRoute::Exact)?;
        controller(context, ("FHT, w = 16", "fht"), routes, &mut fib, outcome)?;
        drop(fib);
        let fpt = PatriciaOptions { rule_bytes_max: NUMBERED_NAME_BYTES, ..PatriciaOptions::fpt(capacity) };
        let mut fib = StringDifferentiation::with_patricia_trie(key, fpt, false, DefaultRoute::Exact)?;
        controller(context, ("FPT, 24 bits", "fpt"), routes, &mut fib, outcome)?;
    }
    outcome.notes.push(format!(
        "Yuan15 Fig. 4.12 (Xeon at {} GHz), 10⁹ names, cycles of an insertion: FHT {}, FPT {}. Ours end at {} names, whose \
         controller keeps them in full.",
        figures.processor_ghz,
        figures.insert_cycles,
        figures.fpt_insert_cycles,
        routes.last().copied().unwrap_or_default()
    ));
    Ok(())
}

fn controller<C: DifferentiatorController>(
    context: &Context,
    (title, key): (&str, &str),
    routes: u64,
    fib: &mut StringDifferentiation<C>,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    context.begin_step(&format!("{routes} routes through the controller of the {}", key.to_uppercase()))?;
    let names = NumberedNames::new(context.seed);
    let insert_ns = updates(context, 0..routes, 1, |number, name| {
        ensure!(fib.insert(name, names.port(number)) == Ok(None), "route {number} is there already");
        Ok(())
    })?;
    ensure!(fib.len() == routes as usize, "{} routes of {routes}", fib.len());
    // Removes every third from the full table.
    let remove_ns = updates(context, 0..routes, 3, |number, name| {
        ensure!(fib.remove(name) == Some(names.port(number)), "route {number} is not there");
        Ok(())
    })?;
    let insert_again_ns = updates(context, 0..routes, 3, |number, name| {
        ensure!(fib.insert(name, names.port(number)) == Ok(None), "route {number} was not removed");
        Ok(())
    })?;
    let case = format!("{routes} routes, one by one, controller and table");
    let mut row = |metric: &str, unit: &str, value: f64| {
        outcome.add_value(&case, title, (metric, unit), value);
    };
    row("insert", "ns", insert_ns);
    row("remove", "ns", remove_ns);
    row("insert into the full table", "ns", insert_again_ns);
    row("controller's memory per route", "bytes", (fib.bytes() - fib.forwarding_bytes()) as f64 / routes as f64);
    row("table's memory per route", "bytes", fib.forwarding_bytes() as f64 / routes as f64);
    let cycles = context.clock.cycles(insert_ns as u64);
    outcome.headline.insert(format!("{key}_controller_insert_ns"), insert_ns);
    outcome.headline.extend(cycles.map(|cycles| (format!("{key}_controller_insert_cycles"), cycles)));
    Ok(())
}

/// Nanoseconds of an update, the mean of all; names are made beforehand.
pub(super) fn updates(
    context: &Context,
    numbers: std::ops::Range<u64>,
    step: usize,
    mut update: impl FnMut(u64, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let names = NumberedNames::new(context.seed);
    let numbers: Vec<u64> = numbers.step_by(step).collect();
    let mut made = [[0; NUMBERED_NAME_BYTES]; SLICE_NAMES];
    let mut took_ns = 0;
    for numbers in numbers.chunks(SLICE_NAMES) {
        for (&number, name) in numbers.iter().zip(&mut made) {
            names.write(number, name);
        }
        let started_ns = context.clock.now_ns();
        for (&number, name) in numbers.iter().zip(&made) {
            update(number, name)?;
        }
        took_ns += context.clock.now_ns() - started_ns;
        context.check_interrupt()?;
    }
    Ok(context.clock.resolve(took_ns)? as f64 / numbers.len() as f64)
}
