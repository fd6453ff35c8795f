//! Is NameTrie faster and smaller than what it was compared with, and than our table?
//!
//! Source: NameTrie18 §III (Fig. 2), §V (Tables III to V, Figs. 10 to 12). Names are those of the files
//! given, or invented ones; as in the paper each is once in the table, in random order, and those
//! looked up are names of the table, whole, a part of them, or longer ([`workload`]).
//!
//! - [`comparison`]: NameTrie, HT (NFD's name tree), NPT, NCE, each one name after the other as
//!   in the paper; beside them NameTrie with batches in turns, and the house's table.
//! - [`granularity`]: tries of bits, characters, components.
//! - [`threads`]: look-ups by several threads in one table.
//! - [`parsing`]: what names begin with (three ways to make names of URLs).
//! - [`coding`]: what minASCII costs, and what frequent groups save, which the paper leaves open.
//!
//! What the numbers do not say: the paper's speeds are those of 8 threads (§V-B.3) on another
//! machine, and its names are not to be had any more. Compare ratios.

mod coding;
mod comparison;
mod granularity;
mod parsing;
mod threads;
mod workload;

use anyhow::ensure;
use namewire_tables::fib::designs::FibPrefetch;
use namewire_tables::fib::designs::catalogue::{FibDesign, FibDesignOptions};
use namewire_tables::{FibConfig, HashKey};

use crate::design_measurement::{Queries, Subject};
use crate::experiment::{Context, Experiment, Outcome, Samples, Scale};
use crate::name_arena::{NameArena, ReferenceModel};
use crate::name_sets::{NameConversion, NameSet, one_name_set};
use crate::record::Row;

/// Its line in the table.
pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "nametrie",
    source: "NameTrie18 Fig. 2, Tables III-V, Fig. 10-12",
    question: "Is NameTrie faster and smaller than what it was compared with, and than our table?",
    needs: "quick: 2 min, 1 GiB; full: 15 min, 8 GiB (all names of the files given, 4 million at most)",
    takes_names: true,
    takes_trace: false,
    run,
};

/// Sizes of a run.
struct Size {
    names: usize,
    /// Of the tries that are compared by granularity, and of each way to make names.
    side_names: usize,
    repetitions: usize,
    /// Slices of each design and repetition.
    slices: usize,
    /// Removals, and insertions after them, of a repetition.
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
        "NameTrie over the hash table (paper: 2.14 to 2.36) is not found again in look-ups, only in memory: our hash \
         table is leaner than the paper's (all prefixes hashed in one pass, entries of 40 octets, no more lengths asked \
         for than there are), and a look-up in NameTrie is 2 d dependent accesses for d pieces, in the hash table at \
         most 3 for each length from the longest down, of which real names have two to five."
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
    /// The first `names` of a set, which is in random order.
    fn new(set: NameSet, names: usize, context: &Context) -> Self {
        Self::of(set.title, set.names.iter().take(names).collect(), context)
    }

    fn of(title: String, prefixes: NameArena, context: &Context) -> Self {
        let queries = Queries::new(workload::names(&prefixes, context.seed), &ReferenceModel::new(&prefixes));
        Self { title, prefixes, queries }
    }

    /// A smaller one.
    fn first(&self, names: usize, context: &Context) -> Self {
        Self::of(self.title.clone(), self.prefixes.iter().take(names).collect(), context)
    }

    fn note(&self) -> String {
        format!(
            "{} names of {:.1} octets ({}); {} of {} names looked up have a prefix.",
            self.prefixes.len(),
            self.prefixes.octets() as f64 / self.prefixes.len().max(1) as f64,
            self.title,
            self.queries.answered(),
            self.queries.len(),
        )
    }
}

/// A design as the paper has it: one name after the other.
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
    let size = FibConfig::for_prefixes(prefixes.len(), prefixes.octets());
    let table = design.build(options, &size, HashKey::from_seed(context.seed))?;
    let prefetch = options.prefetch.map_or(String::new(), |prefetch| format!(", prefetch {}", prefetch.name()));
    Subject::fill(&format!("{}{prefetch}", design.name()), table, prefixes, context)
}

/// A row with median ÷ median, which is also what it gives; neither if a time was below the clock's
/// resolution.
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
    /// The slice that a repetition begins with.
    fn first_slice(&self, repetition: usize) -> usize {
        repetition * self.slices
    }
}

/// Notes a ratio among the numbers that matter, if there is one.
fn note_ratio(outcome: &mut Outcome, key: &str, (row, ratio): (Row, Option<f64>)) {
    outcome.rows.push(row);
    outcome.headline.extend(ratio.map(|ratio| (key.to_owned(), ratio)));
}

/// The same names in every table.
fn ensure_full(subject: &Subject, population: &Population) -> anyhow::Result<()> {
    ensure!(subject.table.len() == population.prefixes.len(), "{} has lost names", subject.name);
    Ok(())
}
