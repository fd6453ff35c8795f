//! One design at a time: looks up and updates in a filled table, then drops it and keeps the figures.

use super::{Population, Size, ensure_full};
use crate::design_measurement::{Subject, look_up_in_turn};
use crate::experiment::{Context, Samples};
use crate::record::Row;

/// Most time for the updates of a repetition: some designs need a millisecond for each.
const UPDATES_NS_MAX: f64 = 2e8;
/// Updates that say how long one takes.
const TRIAL_UPDATES: usize = 32;

/// What is left of a design when its table is dropped.
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) bytes_per_name: f64,
    pub(super) lookup_ns: Samples,
    pub(super) warm_lookup_ns: Samples,
    pub(super) insert_ns: Samples,
    pub(super) reinsert_ns: Samples,
    pub(super) remove_ns: Samples,
    /// Bytes of the table after each tenth of the names.
    pub(super) bytes_by_tenth: Vec<usize>,
    /// The rows that every experiment with designs reports.
    pub(super) rows: Vec<Row>,
}

impl Measured {
    /// Measures a table that holds every name of the population.
    pub(super) fn of(
        mut subject: Subject,
        case: &str,
        population: &Population,
        size: &Size,
        context: &Context,
    ) -> anyhow::Result<Self> {
        let updates = updates(&mut subject, population, size, context)?;
        let mut rng = fastrand::Rng::with_seed(context.seed);
        for repetition in 0..size.repetitions {
            let first = repetition * size.slices;
            look_up_in_turn(&mut [&mut subject], &population.queries, first, size.slices, context)?;
            let numbers = rng.choose_multiple(0..population.prefixes.len(), updates);
            subject.update(&population.prefixes, &numbers, &context.clock)?;
            ensure_full(&subject, population)?;
        }
        Ok(Self {
            rows: subject.rows(case),
            bytes_per_name: subject.bytes_per_name(),
            name: subject.name,
            lookup_ns: subject.lookup_ns,
            warm_lookup_ns: subject.warm_lookup_ns,
            insert_ns: subject.insert_ns,
            reinsert_ns: subject.reinsert_ns,
            remove_ns: subject.remove_ns,
            bytes_by_tenth: subject.bytes_by_tenth,
        })
    }
}

/// How many removals and insertions a repetition makes.
fn updates(subject: &mut Subject, population: &Population, size: &Size, context: &Context) -> anyhow::Result<usize> {
    let names = population.prefixes.len();
    let most = size.updates.min(names / 2);
    let trial = TRIAL_UPDATES.min(most);
    let numbers = fastrand::Rng::with_seed(!context.seed).choose_multiple(0..names, trial);
    let started_ns = context.clock.now_ns();
    subject.update(&population.prefixes, &numbers, &context.clock)?;
    let each_ns = (context.clock.now_ns() - started_ns).max(1) as f64 / trial.max(1) as f64;
    (subject.remove_ns, subject.reinsert_ns) = Default::default();
    Ok(most.min((UPDATES_NS_MAX / each_ns) as usize).max(trial))
}
