//! How small and how fast is a FIB that stores only what distinguishes its names?
//!
//! Source: Yuan15 §4.3.4 to §4.3.7: Table 4.4 (bytes and collision table of the fingerprint hash table by fingerprint
//! length), Fig. 4.12 (insertions), Fig. 4.13 and 4.14 (look-ups by size, with and without large pages; for the hash
//! table also with and without prefetching and the collision table), up to 10⁹ names of one component.
//!
//! The collision table depends only on load and fingerprint length. So Table 4.4 is measured at a size that fits every
//! machine, and scaled to a billion names. The largest size of Fig. 4.13 and 4.14 is a billion at full scale. A route
//! controller would keep a billion full names, which exceed the memory of such machines (30 bytes each and an index:
//! 100 GB). So a bulk load makes names from their numbers and fills tables of those sizes ([`fht_load`],
//! [`patricia_load`]). [`controllers`] measures insertions into a RIB (Fig. 4.12) at smaller sizes; the time of a bulk
//! load is never compared with it.
//!
//! Beyond the source: the bytes per rule of the table that the router makes, whose ports have 16 bits, for a million
//! rules. The slots of a million rules are no power of two.
//!
//! Patricia tries of real names, without and with fingerprints, are in [`patricia`]: Fig. 4.4 (depth), Fig. 4.5
//! (look-ups).
//!
//! Limits: look-ups are for names in the table, in batches; a router spends time elsewhere too.

mod controllers;
mod fht;
mod fht_load;
mod patricia;
mod patricia_load;

use serde::Deserialize;

use crate::experiment::{Context, Outcome};
use crate::papers;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Slots of the tables of Table 4.4.
    memory_slots: u64,
    /// Slots of the tables of Fig. 4.12 and 4.14, ascending.
    slots: Vec<u64>,
    /// Slices per variant.
    slices: usize,
    /// Routes through each controller, ascending.
    routes: Vec<u64>,
    /// Rules of the table as the router makes it.
    router_rules: u64,
    patricia: patricia::Size,
}

/// The paper's figures.
#[derive(Deserialize)]
struct Column {
    fingerprint_bits: u32,
    collision_table_names: f64,
    slots_gib: f64,
    total_gib: f64,
}

#[derive(Deserialize)]
struct Cycles {
    processor_ghz: f64,
    insert_cycles: f64,
    fpt_insert_cycles: f64,
    fpt_lookup_cycles: f64,
    lookup_cycles_plain: f64,
    lookup_cycles_best: f64,
    lookup_cycles_best_without_ct: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let columns: Vec<Column> = papers::figures(papers::YUAN_15, "/table_4_4/columns")?;
    let cycles: Cycles = papers::figures(papers::YUAN_15, "/figure_4_12_and_4_14")?;
    context.plan_steps(
        columns.len()
            + (4 + patricia_load::STEPS_OF_SIZE) * size.slots.len()
            + controllers::STEPS_OF_SIZE * size.routes.len()
            + 1
            + patricia::STEPS,
    );
    let mut outcome = Outcome::default();
    fht::memory(context, size.memory_slots, &columns, &mut outcome)?;
    controllers::insertions(context, &size.routes, &cycles, &mut outcome)?;
    fht::router_table(context, size.router_rules, &mut outcome)?;
    fht::sizes(context, &size.slots, size.slices, &cycles, &mut outcome)?;
    patricia_load::sizes(context, &size.slots, size.slices, &mut outcome)?;
    patricia::tries(&size.patricia, context, &mut outcome)?;
    Ok(outcome)
}
