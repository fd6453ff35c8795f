//! Table 4.5: a fingerprint hash table that stores a part of the names and recognises the others.
//!
//! Two phases as in the paper: the stored names are inserted, then every other name is looked up, and each one that
//! matches a stored fingerprint goes to the collision table. M is the memory of slots and collision table; Mp is M as a
//! share of the memory of a table that stores every name.

use anyhow::ensure;
use namewire_designs::fib::string_differentiation::bulk_load::BulkLoad;
use namewire_designs::fib::string_differentiation::{FhtOptions, FhtTable, ForwardingTable};
use namewire_tables::fib::DESIGN_BATCH_NAMES;
use namewire_tables::{HashKey, PageSize};
use serde::Deserialize;

use crate::experiment::{Context, Outcome, Samples};
use crate::numbered_names::{NUMBERED_NAME_BYTES, NumberedNames, names_at_paper_load};
use crate::papers;

/// N of the paper's columns, as a divisor of the slots for all names: 1/16 to 1/2.
const PARTS: [u64; 4] = [16, 8, 4, 2];
/// The port of default names; no stored name has it.
const DEFAULT: u32 = 255;

/// The steps that [`shares`] takes.
pub(super) const STEPS: usize = PARTS.len() + 1;

#[derive(Deserialize)]
struct Column {
    stored_percent: f64,
    memory_mib: f64,
    memory_percent: f64,
}

/// Table 4.5 for a billion names, or a billion divided by a power of two.
pub(super) fn shares(context: &Context, slots: u64, outcome: &mut Outcome) -> anyhow::Result<()> {
    let columns: Vec<Column> = papers::figures(papers::YUAN_15, "/table_4_5/columns")?;
    let names = names_at_paper_load(slots);
    let case = format!("Table 4.5, {names} names");
    context.begin_step(&format!("{case}, all of them"))?;
    let whole = Loaded::fill(context, names, names)?;
    whole.check(context)?;
    let whole_bytes = whole.bytes();
    outcome.add_value(&case, "all stored", ("M", "MiB"), whole_bytes / MIB);
    drop(whole);
    for (part, paper) in PARTS.into_iter().zip(&columns) {
        let stored = names_at_paper_load(slots / part);
        let percent = 100.0 * stored as f64 / names as f64;
        let subject = format!("Sp = {percent:.2} %");
        context.begin_step(&format!("{case}, {subject}"))?;
        let table = Loaded::fill(context, stored, names)?;
        table.check(context)?;
        let memory_percent = 100.0 * table.bytes() / whole_bytes;
        let collisions = table.load.table().differentiator().collisions().len();
        let mut row = |metric: &str, unit: &str, value: f64, remark: Option<String>| {
            outcome.rows.push(Samples::one(value).row(&case, &subject, metric, unit, remark));
        };
        let remark = format!("paper {} MiB at Sp = {} % of 10⁹", paper.memory_mib, paper.stored_percent);
        row("M", "MiB", table.bytes() / MIB, Some(remark));
        row("Mp", "%", memory_percent, Some(format!("paper {} %", paper.memory_percent)));
        row("collision table", "names", collisions as f64, None);
        row("recognise a default name", "ns", table.note_ns, Some("phase two, mean of all".to_owned()));
        let key = format!("{:.2}", paper.stored_percent).replace('.', "_");
        outcome.headline.insert(format!("distributed_fht_memory_percent_{key}"), memory_percent);
    }
    outcome.headline.insert("distributed_fht_names".to_owned(), names as f64);
    Ok(())
}

const MIB: f64 = (1 << 20) as f64;

/// A table that stores the first names; all others are default names.
struct Loaded {
    load: BulkLoad,
    names: NumberedNames,
    stored: u64,
    all: u64,
    note_ns: f64,
}

impl Loaded {
    fn fill(context: &Context, stored: u64, all: u64) -> anyhow::Result<Self> {
        let key = HashKey::from_seed(context.seed);
        let options = FhtOptions { pages: PageSize::Transparent, ..FhtOptions::default() };
        let table = ForwardingTable::new(key, FhtTable::new(stored as usize, options)?, options.pages)?;
        let names = NumberedNames::new(context.seed);
        let mut loaded = Self { load: BulkLoad::new(key, table, 1, Some(DEFAULT)), names, stored, all, note_ns: 0.0 };
        in_batches(context, 0..stored, names, |numbers, names| {
            let ports: Vec<u32> = numbers.map(|number| loaded.names.port(number)).collect();
            loaded.load.insert_batch(names, &ports);
            Ok(())
        })?;
        let started_ns = context.clock.now_ns();
        in_batches(context, stored..all, names, |_, names| {
            loaded.load.note_default_batch(names, DEFAULT);
            Ok(())
        })?;
        loaded.note_ns = (context.clock.now_ns() - started_ns) as f64 / (all - stored).max(1) as f64;
        Ok(loaded)
    }

    fn bytes(&self) -> f64 {
        self.load.table().bytes() as f64
    }

    /// Looks up every name.
    fn check(&self, context: &Context) -> anyhow::Result<()> {
        in_batches(context, 0..self.all, self.names, |numbers, names| {
            let mut found = [None; DESIGN_BATCH_NAMES];
            self.load.longest_prefix_match_batch(names, &mut found);
            for (number, found) in numbers.zip(found) {
                let expected = if number < self.stored { self.names.port(number) } else { DEFAULT };
                ensure!(found.is_some_and(|found| found.number == expected), "name {number} was confused with another");
            }
            Ok(())
        })
    }
}

/// Passes names on in batches.
fn in_batches(
    context: &Context,
    numbers: std::ops::Range<u64>,
    names: NumberedNames,
    mut take: impl FnMut(std::ops::Range<u64>, &[&[u8]]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut bytes = [[0; NUMBERED_NAME_BYTES]; DESIGN_BATCH_NAMES];
    for first in numbers.clone().step_by(DESIGN_BATCH_NAMES) {
        let batch = first..numbers.end.min(first + DESIGN_BATCH_NAMES as u64);
        let mut slices: [&[u8]; DESIGN_BATCH_NAMES] = [b""; DESIGN_BATCH_NAMES];
        for ((number, bytes), slice) in batch.clone().zip(&mut bytes).zip(&mut slices) {
            names.write(number, bytes);
            *slice = bytes;
        }
        let count = (batch.end - batch.start) as usize;
        take(batch, &slices[..count])?;
        if first % (1 << 16) == 0 {
            context.check_interrupt()?;
        }
    }
    Ok(())
}
