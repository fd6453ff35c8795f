//! The fingerprint hash table at all sizes: Table 4.4 and Fig. 4.14 (look-ups).

use std::collections::BTreeMap;

use anyhow::ensure;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_designs::fib::string_differentiation::SlotFormat;
use namewire_designs::fib::string_differentiation::fht_forwarding::expected_collisions;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, FibConfig, PrefixTable};
use namewire_tables::{HashKey, PageSize};

use super::controllers::updates;
use super::fht_load::{LoadedTable, LookUps, SLICE_NAMES};
use super::{Column, Cycles};
use crate::experiment::{Context, Outcome, Samples};
use crate::numbered_names::{NUMBERED_NAME_BYTES, NumberedNames, names_at_paper_load};

/// The number of names in the paper's figures.
const BILLION: u64 = 1_000_000_000;

/// Table 4.4: collision table and bytes by fingerprint length.
pub(super) fn memory(context: &Context, slots: u64, columns: &[Column], outcome: &mut Outcome) -> anyhow::Result<()> {
    let names = names_at_paper_load(slots);
    let to_billion = BILLION as f64 / names as f64;
    for column in columns {
        let bits = column.fingerprint_bits;
        context.begin_step(&format!("FHT of {names} names, w = {bits}"))?;
        let format = SlotFormat { fingerprint_bits: bits, ..SlotFormat::PAPER };
        let mut loaded = LoadedTable::fill(context, names, format, PageSize::Transparent)?;
        loaded.look_all_up(context)?;
        let table = loaded.load.table().differentiator();
        let model = expected_collisions(names as usize, table.slots().hashes());
        let mut row = |metric: &str, unit: &str, value: f64, remark: String| {
            let (case, subject) = (format!("Table 4.4, {names} names"), format!("FHT, w = {bits}"));
            outcome.rows.push(Samples::one(value).row(&case, &subject, metric, unit, Some(remark)));
        };
        let in_table = loaded.collision_table_names() as f64;
        let (taken, no_room) = (loaded.load.collisions(), loaded.load.overflows());
        row(
            "collision table",
            "names",
            in_table,
            format!("{taken} found their hash taken (expected: {model:.0}), {no_room} no slot"),
        );
        let remark = format!("as many of each as measured; paper {:.3e}", column.collision_table_names);
        row("collision table of a billion", "names", in_table * to_billion, remark);
        let per_slot = table.slots().slot_bytes() as f64 / table.slots().slots() as f64;
        row("slots", "bytes per slot", per_slot, format!("paper {} GiB of 2³⁰ slots", column.slots_gib));
        let bytes = loaded.load.table().bytes();
        let collision_mib = (bytes - table.slots().slot_bytes()) as f64 * to_billion / f64::from(1 << 20);
        row("collision table memory", "MiB", collision_mib, "all but the slots, of a billion names".to_owned());
        let per_name = bytes as f64 / names as f64;
        row("memory per name", "bytes", per_name, format!("all; paper {} GiB for 10⁹", column.total_gib));
    }
    Ok(())
}

/// Fig. 4.14: look-ups by size; the largest is the headline's.
pub(super) fn sizes(
    context: &Context,
    slots: &[u64],
    slices: usize,
    figures: &Cycles,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    for &slots in slots {
        let names = names_at_paper_load(slots);
        let mut tables = Vec::new();
        for pages in [PageSize::Transparent, PageSize::Base] {
            context.begin_step(&format!("FHT of {names} names on {} pages", pages.name()))?;
            tables.push(LoadedTable::fill(context, names, SlotFormat::PAPER, pages)?);
        }
        context.begin_step(&format!("look-ups of all {names} names"))?;
        let all_ns = tables[0].look_all_up(context)?;
        context.begin_step(&format!("look-ups among {names} names"))?;
        let mut samples = vec![[const { Vec::new() }; LookUps::ALL.len()]; tables.len()];
        for _ in 0..slices {
            for (table, samples) in tables.iter_mut().zip(&mut samples) {
                for (way, samples) in LookUps::ALL.into_iter().zip(samples) {
                    samples.push(table.look_some_up(way, context)?);
                }
            }
            context.check_interrupt()?;
        }
        let case = format!("{names} names");
        let cycles = |ns: f64| context.clock.cycles(ns as u64).map(|cycles| format!("{cycles:.0} TSC cycles"));
        outcome.headline.extend(headline(&tables[0]));
        for (table, samples) in tables.iter().zip(samples) {
            let pages = table.pages.name();
            let mut row = |metric: String, ns: f64| {
                outcome.rows.push(Samples::one(ns).row(&case, "FHT, w = 16", &metric, "ns", cycles(ns)));
            };
            row(format!("bulk load, {pages} pages"), table.insert_ns.median);
            row(format!("bulk load, mean, {pages} pages"), table.insert_ns.mean);
            for (way, mut samples) in LookUps::ALL.into_iter().zip(samples) {
                samples.sort_unstable();
                let median_ns = context.clock.resolve(samples[samples.len() / 2])? as f64 / SLICE_NAMES as f64;
                row(format!("look-up, {}, {pages} pages", way.name()), median_ns);
                if table.pages == PageSize::Transparent && way.prefetch {
                    let key = if way.collision_table { "fht_lookup_ns" } else { "fht_lookup_without_ct_ns" };
                    outcome.headline.insert(key.to_owned(), median_ns);
                }
            }
        }
        for (metric, ns) in [("look-up of all", all_ns.median), ("look-up of all, mean", all_ns.mean)] {
            let remark = "every name, in the order of their numbers; every answer was right".to_owned();
            outcome.rows.push(Samples::one(ns).row(&case, "FHT, w = 16", metric, "ns", Some(remark)));
        }
    }
    outcome.notes.push(format!(
        "Yuan15 (Xeon at {} GHz, DDR3), 10⁹ names, cycles of a look-up: FPT {} on 2 MiB pages; FHT {} without prefetch on \
         4 KiB pages, {} with prefetch on 2 MiB pages, {} if the collision table is asked elsewhere.",
        figures.processor_ghz,
        figures.fpt_lookup_cycles,
        figures.lookup_cycles_plain,
        figures.lookup_cycles_best,
        figures.lookup_cycles_best_without_ct
    ));
    Ok(())
}

fn headline(table: &LoadedTable) -> BTreeMap<String, f64> {
    let forwarding = table.load.table();
    let slots = forwarding.differentiator().slots();
    let values = [
        ("fht_names", table.names() as f64),
        ("fht_bulk_load_ns", table.insert_ns.median),
        ("fht_bytes_per_slot", slots.slot_bytes() as f64 / slots.slots() as f64),
        ("fht_bytes_per_name", forwarding.bytes() as f64 / table.names() as f64),
        ("fht_collision_table_names", table.collision_table_names() as f64),
        ("fht_load", table.names() as f64 / slots.slots() as f64),
    ];
    values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The table of the design `fht` as the router makes it: bytes per rule when it is full, and after changes.
pub(super) fn router_table(context: &Context, rules: u64, outcome: &mut Outcome) -> anyhow::Result<()> {
    context.begin_step(&format!("{rules} rules in the router's table"))?;
    let (names, key) = (NumberedNames::new(context.seed), HashKey::from_seed(context.seed));
    let mut fib = FibDesign::Fht.build(&FibDesignOptions::default(), &FibConfig::new(rules as usize), key)?;
    let case = format!("{rules} rules, the router's table");
    let subject = "FHT, w = 16, ports of 16 bits";
    updates(context, 0..rules, 1, |number, name| {
        ensure!(fib.insert(name, names.port(number)) == Ok(None), "rule {number} is there already");
        Ok(())
    })?;
    finds_all(fib.as_ref(), names, 0..rules, context)?;
    let full = fib.forwarding_bytes() as f64 / rules as f64;
    outcome.add_value(&case, subject, ("memory per rule", "bytes"), full);
    outcome.headline.insert("fht_bytes_per_rule".to_owned(), full);
    // Each rule gives way to a new one.
    updates(context, 0..rules, 1, |number, name| {
        ensure!(fib.remove(name) == Some(names.port(number)), "rule {number} is not there");
        let mut newcomer = [0; NUMBERED_NAME_BYTES];
        names.write(rules + number, &mut newcomer);
        ensure!(fib.insert(&newcomer, names.port(rules + number)) == Ok(None), "rule {number} has come already");
        Ok(())
    })?;
    finds_all(fib.as_ref(), names, rules..2 * rules, context)?;
    let changed = fib.forwarding_bytes() as f64 / rules as f64;
    outcome.add_value(&case, subject, ("memory per rule, each replaced once", "bytes"), changed);
    Ok(())
}

/// Looks all these names up.
///
/// # Errors
/// If an answer is wrong, or on an interrupt.
fn finds_all(
    fib: &dyn PrefixTable,
    names: NumberedNames,
    mut numbers: std::ops::Range<u64>,
    context: &Context,
) -> anyhow::Result<()> {
    while !numbers.is_empty() {
        let batch: Vec<u64> = numbers.by_ref().take(DESIGN_BATCH_NAMES).collect();
        let mut made = [[0; NUMBERED_NAME_BYTES]; DESIGN_BATCH_NAMES];
        batch.iter().zip(&mut made).for_each(|(&number, name)| names.write(number, name));
        let slices: Vec<&[u8]> = made[..batch.len()].iter().map(|name| &name[..]).collect();
        let mut found = [None; DESIGN_BATCH_NAMES];
        fib.longest_prefix_match_batch(&slices, &mut found);
        for (number, found) in batch.into_iter().zip(found) {
            let is_right = found.is_some_and(|found| found.number == names.port(number));
            ensure!(is_right, "name {number} was confused with another");
        }
        context.check_interrupt()?;
    }
    Ok(())
}
