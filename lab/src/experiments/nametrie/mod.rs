//! Is NameTrie faster and smaller than the designs in its paper, and than our table?
//!
//! Source: NameTrie18 §III (Fig. 2), §V (Tables III to V, Figs. 10 to 12). Names come from the given files or are
//! invented. As in the paper, the table holds each name once, inserted in random order; look-ups are for names of the
//! table, whole, cut or extended ([`workload`]).
//!
//! - [`comparison`]: NameTrie, HT (NFD's name tree), NPT and NCE, each one name after the other as in the paper; beside
//!   them NameTrie with interleaved batches, and our own table.
//! - [`granularity`]: tries of bits, characters, components.
//! - [`threads`]: look-ups by several threads in one table.
//! - [`parsing`]: the first components of names (three ways to make names of URLs).
//! - [`coding`]: the cost of minASCII, and the savings of frequent groups, which the paper leaves open.
//!
//! Limits: the paper's speeds are those of 8 threads (§V-B.3) on another machine, and its names are no longer
//! available. Compare ratios.

mod coding;
mod comparison;
mod granularity;
mod parsing;
mod threads;
mod workload;

use anyhow::ensure;
use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_tables::{FibConfig, HashKey};

use crate::design_measurement::{Queries, Subject};
use crate::experiment::{Context, Experiment, Input, Outcome, Samples, Scale};
use crate::name_arena::{NameArena, ReferenceModel};
use crate::name_sets::{NameConversion, NameSet, one_name_set};
use crate::record::Row;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "nametrie",
    source: "NameTrie18 Fig. 2, Tables III-V, Fig. 10-12",
    question: "Is NameTrie faster and smaller than the designs in its paper, and than our table?",
    needs: "quick: 2 min, 1 GiB; full: 15 min, 8 GiB (all names of the files given, 4 million at most)",
    takes: Some(Input::Names),
    run,
    sources: &["lab/src/experiments/nametrie", "crates/tables/src/fib", "crates/designs/src/fib"],
};

/// Sizes of a run.
struct Size {
    names: usize,
    /// Names for the tries compared by granularity, and for each way to make names.
    side_names: usize,
    repetitions: usize,
    /// Slices per design and repetition.
    slices: usize,
    /// Removals in a repetition; as many insertions follow.
    updates: usize,
}

const fn size(scale: Scale) -> Size {
    match scale {
        Scale::Smoke => Size { names: 4_000, side_names: 2_000, repetitions: 3, slices: 2, updates: 200 },
        Scale::Quick => Size { names: 500_000, side_names: 200_000, repetitions: 5, slices: 40, updates: 20_000 },
        Scale::Full => Size { names: 4_000_000, side_names: 4_000_000, repetitions: 9, slices: 100, updates: 100_000 },
    }
}

fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size = size(context.scale);
    context.plan_steps(comparison::STEPS + granularity::STEPS + threads::STEPS + parsing::STEPS + coding::STEPS);
    let mut outcome = Outcome::default();
    {
        context.begin_step("names")?;
        let set = one_name_set(context.names.as_deref(), size.names, NameConversion::Domain, context.seed)?;
        let population = Population::new(set, size.names, context);
        outcome.notes.push(population.note());
        comparison::run(context, &size, &population, &mut outcome)?;
        threads::run(context, &size, &population, &mut outcome)?;
        coding::run(context, &size, &population, &mut outcome)?;
        granularity::run(context, &size, &population.first(size.side_names, context), &mut outcome)?;
    }
    parsing::run(context, &size, &mut outcome)?;
    outcome.notes.push(
        "The advantage of NameTrie over the hash table (paper: 2.14 to 2.36) is confirmed for memory, not for look-ups. Our \
         hash table is leaner than the paper's (one pass hashes all prefixes, entries have 40 bytes, only existing \
         lengths are visited). A look-up in NameTrie is 2 d dependent accesses for d pieces; in the hash table it is \
         at most 3 for each length from the longest down, and real names have two to five lengths."
            .to_owned(),
    );
    outcome.notes.push(
        "The paper's hash table of 4 million names has 357.81 MB in Table III, but 85.15 % more than NameTrie's 143.2 \
         in the same row, which would be 964 MB; the ratios beside ours are of 12 million names."
            .to_owned(),
    );
    Ok(outcome)
}

/// Prefixes, and names to look up.
struct Population {
    title: String,
    prefixes: NameArena,
    queries: Queries,
}

impl Population {
    /// A population of the first `names` of a set, which is shuffled.
    fn new(set: NameSet, names: usize, context: &Context) -> Self {
        Self::of(set.title, set.names.iter().take(names).collect(), context)
    }

    fn of(title: String, prefixes: NameArena, context: &Context) -> Self {
        let queries = Queries::new(workload::names(&prefixes, context.seed), &ReferenceModel::new(&prefixes));
        Self { title, prefixes, queries }
    }

    /// The first `names` of this population.
    fn first(&self, names: usize, context: &Context) -> Self {
        Self::of(self.title.clone(), self.prefixes.iter().take(names).collect(), context)
    }

    fn note(&self) -> String {
        format!(
            "{} names of {:.1} bytes ({}); {} of {} names looked up have a prefix.",
            self.prefixes.len(),
            self.prefixes.bytes() as f64 / self.prefixes.len().max(1) as f64,
            self.title,
            self.queries.answered(),
            self.queries.len(),
        )
    }
}

/// The options for the paper's way: one name after the other.
fn naive() -> FibDesignOptions {
    FibDesignOptions { prefetch: Some(FibPrefetch::None), ..FibDesignOptions::default() }
}

/// A table of a design with every prefix.
fn fill(
    design: FibDesign,
    options: &FibDesignOptions,
    prefixes: &NameArena,
    context: &Context,
) -> anyhow::Result<Subject> {
    let size = FibConfig::for_prefixes(prefixes.len(), prefixes.bytes());
    let table = design.build(options, &size, HashKey::from_seed(context.seed))?;
    let prefetch = options.prefetch.map_or(String::new(), |prefetch| format!(", prefetch {}", prefetch.name()));
    Subject::fill(&format!("{}{prefetch}", design.name()), table, prefixes, context)
}

/// Median ÷ median as a row and as a number; without a number if a time was below the clock's resolution.
fn ratio_row(case: &str, subject: &str, metric: &str, dividend: &Samples, divisor: &Samples) -> (Row, Option<f64>) {
    let ratio = dividend.median().zip(divisor.median()).map(|(dividend, divisor)| dividend / divisor);
    let mut samples = Samples::default();
    match ratio {
        Some(ratio) => samples.add(ratio),
        None => samples.refuse("a time was below the clock's resolution".to_owned()),
    }
    (samples.row(case, subject, metric, "ratio", None), ratio)
}

impl Size {
    /// The first slice of a repetition.
    fn first_slice(&self, repetition: usize) -> usize {
        repetition * self.slices
    }
}

/// Puts a ratio into the headline, if there is one.
fn note_ratio(outcome: &mut Outcome, key: &str, (row, ratio): (Row, Option<f64>)) {
    outcome.rows.push(row);
    outcome.headline.extend(ratio.map(|ratio| (key.to_owned(), ratio)));
}

/// Checks that the table holds all names.
fn ensure_full(subject: &Subject, population: &Population) -> anyhow::Result<()> {
    ensure!(subject.table.len() == population.prefixes.len(), "{} has lost names", subject.name);
    Ok(())
}
