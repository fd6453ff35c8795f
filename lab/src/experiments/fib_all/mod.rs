//! Which FIB design is the fastest, which is the smallest, and how do they take updates?
//!
//! Source: ours. The run calls every design of the papers, and our own, through one interface, with the best
//! prefetching that each allows, on real and on synthetic names. Each design takes turns with the default, slice by
//! slice, so that other load of the machine reaches both. If the ratios of the repetitions spread over
//! [`SPREAD_PERCENT_MAX`], all are repeated, up to [`ROUNDS_MAX`] times. Two tables at a time need memory.
//!
//! *Updates*: many random removals and insertions, then the look-ups again, which shows whether a design degrades.
//!
//! Limits: a router spends time elsewhere too (`prefetch`, `router-sockets`), holds a design of the papers twice, and
//! updates it while it forwards.

mod populations;

use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_tables::fib::PrefixTable;
use namewire_tables::{FibConfig, HashKey};
use serde::Deserialize;

use crate::design_measurement::{Subject, look_up_in_turn};
use crate::experiment::{Context, Outcome, SPREAD_PERCENT_MAX, Samples};
use crate::record::Row;
use populations::Population;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    real_names: usize,
    synthetic_names: usize,
    repetitions: usize,
    /// Slices per design and repetition.
    slices: usize,
    /// Number of random removals, and of insertions.
    updates: usize,
}

/// Kinds of names.
const KINDS: [&str; 3] = ["real", "urls", "synthetic"];

/// The figures of one design with one population.
struct Comparison {
    population: &'static str,
    design: FibDesign,
    /// Look-ups per second of the default ÷ those of the design, of each repetition; the two take turns.
    default_over: Samples,
    /// Bytes of memory per prefix ÷ those of the default.
    memory_over_default: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    context.plan_steps(KINDS.len() * FibDesign::ALL.len());
    let mut outcome = Outcome::default();
    let mut comparisons = Vec::new();
    for kind in KINDS {
        context.begin_step(&format!("{kind} names"))?;
        let population = population(context, &size, kind)?;
        outcome.notes.push(population.note());
        population.add_statistics(&mut outcome);
        compare(context, &size, &population, &mut outcome, &mut comparisons)?;
    }
    add_headline(&comparisons, &mut outcome);
    outcome.add_notes(FILE)?;
    Ok(outcome)
}

fn population(context: &Context, size: &Size, kind: &str) -> anyhow::Result<Population> {
    match kind {
        "real" => Population::real(context, size.real_names),
        "urls" => Population::urls(context, size.real_names),
        _ => Ok(Population::synthetic(context, size.synthetic_names)),
    }
}

/// Measures a design of another crate as this experiment measures those of the catalogue: on its populations, in turn
/// with the default. `make` gets the number of prefixes and the key of the hashes, and returns an empty table. A wrong
/// answer is an error.
///
/// # Errors
/// If a list cannot be read, or the table refuses a prefix or gives a wrong answer; or on an interrupt.
pub fn own_design(
    context: &Context,
    name: &str,
    make: impl Fn(&FibConfig, HashKey) -> Box<dyn PrefixTable>,
) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    context.plan_steps(KINDS.len());
    let mut outcome = Outcome::default();
    for kind in KINDS {
        context.begin_step(&format!("{name}, {kind} names"))?;
        let population = population(context, &size, kind)?;
        outcome.notes.push(population.note());
        let mut default = build(FibDesign::default(), context, &population)?;
        let table = make(&config(&population), HashKey::from_seed(context.seed));
        let mut own = Subject::fill(name, table, &population.prefixes, context)?;
        let ratios = in_turn(context, &size, &population, &mut default, &mut own, &mut outcome)?;
        outcome.add_steady(&format!("default_over_{name}_{kind}"), &ratios);
        outcome.rows.extend(default.rows(population.name));
        let memory = own.bytes_per_name() / default.bytes_per_name();
        outcome.headline.insert(format!("{name}_memory_over_default_{kind}"), memory);
    }
    Ok(outcome)
}

/// Measures every other design in turn with the default.
fn compare(
    context: &Context,
    size: &Size,
    population: &Population,
    outcome: &mut Outcome,
    comparisons: &mut Vec<Comparison>,
) -> anyhow::Result<()> {
    let mut default = build(FibDesign::default(), context, population)?;
    for design in FibDesign::ALL.into_iter().filter(|&design| design != FibDesign::default()) {
        context.begin_step(&format!("{}, {} names", design.name(), population.name))?;
        let mut subject = build(design, context, population)?;
        let default_over = in_turn(context, size, population, &mut default, &mut subject, outcome)?;
        let memory_over_default = subject.bytes_per_name() / default.bytes_per_name();
        comparisons.push(Comparison { population: population.name, design, default_over, memory_over_default });
    }
    outcome.rows.extend(update(context, size, population, &mut default)?);
    outcome.rows.extend(default.rows(population.name));
    Ok(())
}

/// Look-ups in turn with the default, then updates. Returns the default's look-ups per second over those of the design,
/// of each repetition.
fn in_turn(
    context: &Context,
    size: &Size,
    population: &Population,
    default: &mut Subject,
    subject: &mut Subject,
    outcome: &mut Outcome,
) -> anyhow::Result<Samples> {
    let mut ratios = Samples::default();
    for _ in 0..ROUNDS_MAX {
        for subject in [&mut *default, &mut *subject] {
            (subject.lookup_ns, subject.warm_lookup_ns) = Default::default();
        }
        for repetition in 0..size.repetitions {
            let first = repetition * size.slices;
            look_up_in_turn(&mut [default, subject], &population.queries, first, size.slices, context)?;
        }
        ratios = subject.lookup_ns.over(&default.lookup_ns);
        if ratios.spread_percent().is_none_or(|spread| spread <= SPREAD_PERCENT_MAX) {
            break;
        }
    }
    let metric = "look-ups of the default over its own";
    outcome.rows.push(ratios.row(population.name, &subject.name, metric, "times", None));
    outcome.rows.extend(update(context, size, population, subject)?);
    outcome.rows.extend(subject.rows(population.name));
    Ok(ratios)
}

fn config(population: &Population) -> FibConfig {
    FibConfig::for_prefixes(population.prefixes.len(), population.prefixes.bytes())
}

/// A table with every prefix.
fn build(design: FibDesign, context: &Context, population: &Population) -> anyhow::Result<Subject> {
    let table = design.build(&FibDesignOptions::default(), &config(population), HashKey::from_seed(context.seed))?;
    Subject::fill(design.name(), table, &population.prefixes, context)
}

/// Random removals and insertions; then their effect on the time of a look-up and on the size of the table.
fn update(context: &Context, size: &Size, population: &Population, subject: &mut Subject) -> anyhow::Result<Vec<Row>> {
    let taken = (std::mem::take(&mut subject.lookup_ns), std::mem::take(&mut subject.warm_lookup_ns));
    let look_up = |subject: &mut Subject| {
        look_up_in_turn(&mut [subject], &population.queries, 0, size.slices, context)?;
        anyhow::Ok(std::mem::take(&mut subject.lookup_ns))
    };
    let (before, bytes_before) = (look_up(subject)?, subject.table.bytes() as f64);
    let mut rng = fastrand::Rng::with_seed(context.seed);
    let mut numbers: Vec<usize> = (0..population.prefixes.len()).collect();
    let mut left = size.updates;
    while left > 0 {
        rng.shuffle(&mut numbers);
        let some = left.min(numbers.len() / 2).min(UPDATES_AT_ONCE);
        subject.update(&population.prefixes, &numbers[..some], &context.clock)?;
        context.check_interrupt()?;
        left -= some;
    }
    let (after, grown) = (look_up(subject)?, subject.table.bytes() as f64 / bytes_before);
    (subject.lookup_ns, subject.warm_lookup_ns) = taken;
    let updates = 2 * size.updates;
    Ok(vec![
        row(ratio(&after, &before), population, subject, &format!("look-up after {updates} updates over before")),
        row(Some(grown), population, subject, &format!("memory after {updates} updates over before")),
    ])
}

/// How often the repetitions of a design are measured, at most.
const ROUNDS_MAX: usize = 3;
/// Prefixes that are removed at the same time.
const UPDATES_AT_ONCE: usize = 250_000;

fn add_headline(comparisons: &[Comparison], outcome: &mut Outcome) {
    let kinds = [
        ("default_over_best_other", Kind::Lossless),
        ("default_over_best_lossy", Kind::Lossy),
        ("default_over_best_variant_of_ours", Kind::Ours),
    ];
    for (key, kind) in kinds {
        let of_kind = comparisons.iter().filter(|other| Kind::of(other.design) == kind);
        let resolved = of_kind.filter_map(|other| Some((other, other.default_over.median()?)));
        if let Some((best, _)) = resolved.min_by(|one, other| one.1.total_cmp(&other.1)) {
            outcome.add_steady(key, &best.default_over);
            outcome.notes.push(format!("`{key}`: {} on {} names.", best.design.name(), best.population));
        }
    }
    for population in KINDS {
        let of = |name| {
            let mut all = comparisons.iter().filter(|other| other.population == population);
            all.find(|other| other.design.name() == name)
        };
        let Some((ours, theirs)) = of("compact").zip(of("name-trie")) else { continue };
        let ratios = theirs.default_over.over(&ours.default_over);
        outcome.add_steady(&format!("compact_over_name_trie_{population}"), &ratios);
        let memory = theirs.memory_over_default / ours.memory_over_default;
        outcome.headline.insert(format!("name_trie_memory_over_compact_{population}"), memory);
    }
}

/// Origin of a design, and whether it is lossless.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Our own table under another search, or with coded names.
    Ours,
    /// Of the literature.
    Lossless,
    /// Of the literature.
    Lossy,
}

impl Kind {
    fn of(design: FibDesign) -> Self {
        match (design.search(), design.is_lossless()) {
            (Some(_), _) => Self::Ours,
            (None, true) => Self::Lossless,
            (None, false) => Self::Lossy,
        }
    }
}

/// Median ÷ median.
fn ratio(dividend: &Samples, divisor: &Samples) -> Option<f64> {
    dividend.median().zip(divisor.median()).map(|(dividend, divisor)| dividend / divisor)
}

/// A row with a ratio, or without one where a time was below the clock's resolution.
fn row(ratio: Option<f64>, population: &Population, subject: &Subject, metric: &str) -> Row {
    let samples = Samples::one_or(ratio, "a time was below the clock's resolution");
    samples.row(population.name, &subject.name, metric, "times", None)
}
