//! Is NameTrie faster and smaller than the designs in its paper, and than our table?
//!
//! Source: NameTrie18 §III (Fig. 2), §V (Tables II to V, Figs. 9 to 12). The paper's URLs are no longer available.
//! Names are made of hosts and paths of the given lists, or of invented ones, in the proportions of Table II
//! ([`crate::name_sets::Corpus`]). The URLs of the lists themselves are measured, too. As in the paper, the table holds
//! each name once, inserted in random order; look-ups are for names of the table, whole, cut or extended
//! ([`workload`]).
//!
//! - [`comparison`]: NameTrie, HT (NFD's name tree), NPT and NCE, each one name after the other as in the paper; for
//!   comparison NameTrie and HT with interleaved batches, and our own table.
//! - [`findings`]: which of the paper's ratios are reproduced, and the accesses that explain the difference.
//! - [`granularity`]: tries of bits, characters, components.
//! - [`threads`]: look-ups by several threads in one table; [`shared_writers`]: insertions by several threads into one.
//! - [`parsing`]: the first components of names (three ways to make names of URLs).
//! - [`coding`]: the cost of minASCII, and the savings of frequent groups, which the paper leaves open.
//!
//! One table is in memory at a time, so that 12 million names fit in 24 GiB; only the tries that threads fill take
//! turns. NameTrie is measured first and again last; the ratio of the two shows how much the machine changed meanwhile.
//!
//! Limits: the paper's speeds are those of 8 threads (§V-B.3) on another machine. Compare ratios. HT, NPT and NCE are
//! reconstructions from short descriptions (see their modules), not the programs that the paper ran.

mod coding;
mod comparison;
mod findings;
mod granularity;
mod measured;
mod parsing;
mod shared_writers;
mod threads;
mod workload;

use anyhow::ensure;
use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_tables::{FibConfig, HashKey};
use serde::Deserialize;

use crate::design_measurement::{Queries, SLICE_NAMES, Subject};
use crate::experiment::{Context, Outcome, Samples};
use crate::name_arena::{NameArena, ReferenceModel};
use crate::name_sets::{Corpus, NameConversion, NameSet, NameStatistics, Records, Shape, record_sets};
use crate::papers;
use crate::record::Row;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Data sets of Table II, whose shape URLs are made in. The last is for methods, threads and codings, too.
    data_sets: Vec<String>,
    /// Names of a data set; as many as in the paper if `None`.
    names: Option<usize>,
    /// How many names are invented if no list is given.
    invented: usize,
    /// Most URLs of the lists.
    listed_names: usize,
    /// Most names for the tries compared by granularity, and for names of random bytes.
    side_names: usize,
    repetitions: usize,
    /// Slices per design and repetition.
    slices: usize,
    /// Most removals in a repetition; as many insertions follow.
    updates: usize,
}

/// Names of the lists' own URLs in cases.
const LISTED: &str = "listed URLs";

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let side_steps = granularity::STEPS + threads::STEPS + parsing::STEPS + coding::STEPS;
    context.plan_steps((size.data_sets.len() + 1) * (1 + comparison::STEPS) + side_steps);
    let mut outcome = Outcome::default();
    context.begin_step("lists")?;
    let lists = record_sets(context.names.as_deref(), size.invented, context.seed)?;
    let corpus = Corpus::of(&lists, context.seed);
    for (place, data_set) in size.data_sets.iter().enumerate() {
        context.begin_step(&format!("URLs like {data_set}"))?;
        let names = match size.names {
            Some(names) => names,
            None => papers::figures(papers::NAME_TRIE_18, &format!("/table_2/names/{data_set}"))?,
        };
        let records = corpus.urls(Shape::of_name_trie_18(data_set)?, names, context.seed)?;
        let population = Population::of_records(data_set, &records, context)?;
        population.add_statistics(&mut outcome);
        comparison::run(context, &size, &population, &mut outcome)?;
        if place == 0 {
            granularity::run(context, &size, &population.first(size.side_names, context), &mut outcome)?;
        }
        if place + 1 == size.data_sets.len() {
            threads::run(context, &size, &population, &mut outcome)?;
            coding::run(context, &size, &population, &mut outcome)?;
            drop(population);
            parsing::run(context, &size, &records, &mut outcome)?;
        }
    }
    add_mean_savings(&size.data_sets, &mut outcome);
    context.begin_step(LISTED)?;
    let listed = listed_urls(&lists, size.listed_names, context)?;
    drop((lists, corpus));
    listed.add_statistics(&mut outcome);
    comparison::run(context, &size, &listed, &mut outcome)?;
    for table in ["table_3_memory_mb", "table_4_million_names_per_s"] {
        let of_the_paper: String = papers::figures(papers::NAME_TRIE_18, &format!("/{table}/note"))?;
        outcome.notes.push(format!("NameTrie18, {table}: {of_the_paper}"));
    }
    Ok(outcome)
}

/// What NameTrie saves of the others' memory, on average over the data sets (§V-B.1).
fn add_mean_savings(data_sets: &[String], outcome: &mut Outcome) {
    for other in ["hash_table", "npt", "nce"] {
        let key = |data_set: &String| findings::key(&format!("nametrie_memory_over_{other}"), data_set);
        let ratios: Option<Vec<f64>> =
            data_sets.iter().map(|data_set| outcome.headline.get(&key(data_set)).copied()).collect();
        if let Some(ratios) = ratios.filter(|ratios| !ratios.is_empty()) {
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            outcome.headline.insert(format!("nametrie_saves_of_{other}_mean_percent"), 100.0 * (1.0 - mean));
        }
    }
}

/// The URLs of the lists that have a path, each once.
fn listed_urls(lists: &[Records], names_max: usize, context: &Context) -> anyhow::Result<Population> {
    let with_paths = lists.iter().map(Records::with_paths).filter(|records| !records.is_empty());
    let sets: Vec<NameSet> =
        with_paths.map(|records| records.names(NameConversion::Domain, context.seed)).collect::<anyhow::Result<_>>()?;
    let mut set = NameSet::joined(&sets, context.seed);
    if set.names.len() < SLICE_NAMES {
        // Lists of domains, or of paths.
        let invented = record_sets(None, 4 * SLICE_NAMES.max(names_max.min(400_000)), context.seed)?;
        let urls = invented.iter().map(Records::with_paths).find(|records| !records.is_empty());
        set = urls.map_or(Ok(set), |urls| urls.names(NameConversion::Domain, context.seed))?;
    }
    set.names.truncate(names_max);
    Ok(Population::new(LISTED, set, context))
}

/// Prefixes, and names to look up.
struct Population {
    /// What the names are like: a data set of Table II, or [`LISTED`].
    data_set: String,
    title: String,
    prefixes: NameArena,
    queries: Queries,
}

impl Population {
    /// The names of these records, domain first (method 3 of Table V).
    fn of_records(data_set: &str, records: &Records, context: &Context) -> anyhow::Result<Self> {
        Ok(Self::new(data_set, records.names(NameConversion::Domain, context.seed)?, context))
    }

    fn new(data_set: &str, NameSet { title, names }: NameSet, context: &Context) -> Self {
        let queries = Queries::new(workload::names(&names, context.seed), &ReferenceModel::new(&names));
        Self { data_set: data_set.to_owned(), title, prefixes: names, queries }
    }

    /// The first `names` of this population, which is shuffled.
    fn first(&self, names: usize, context: &Context) -> Self {
        let first = self.prefixes.iter().take(names).collect();
        Self::new(&self.data_set, NameSet { title: self.title.clone(), names: first }, context)
    }

    /// Table II, Fig. 9, and a note.
    fn add_statistics(&self, outcome: &mut Outcome) {
        let statistics = NameStatistics::of(&self.prefixes);
        let case = format!("statistics, {}", self.data_set);
        statistics.add_rows(&case, outcome);
        statistics.add_distributions(&case, outcome);
        outcome.notes.push(format!(
            "{}: {} names ({}) of {:.2} components of {:.2} bytes, {:.2} bytes of each shared; {} of {} names looked up \
             have a prefix.",
            self.data_set,
            self.prefixes.len(),
            self.title,
            statistics.components_per_name(),
            statistics.bytes_per_component(),
            statistics.shared_bytes_per_name(),
            self.queries.answered(),
            self.queries.len(),
        ));
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
    let name = format!("{}{prefetch}", design.name());
    if !has_sorted_children(design) {
        return Subject::fill(&name, table, prefixes, context);
    }
    let mut numbers: Vec<u32> = (0..prefixes.len() as u32).collect();
    numbers.sort_unstable_by_key(|&number| prefixes.get(number as usize));
    let numbers = numbers.into_iter().map(|number| number as usize);
    let mut subject = Subject::fill_in_order(&name, table, prefixes, numbers, context)?;
    subject.insert_ns = Samples::default();
    subject
        .insert_ns
        .refuse("filled in sorted order: in random order each new name moves half of its siblings".to_owned());
    Ok(subject)
}

/// Whether a node keeps its children in one sorted array: with millions of domains below the root, filling in random
/// order would take an hour (the paper, too, has below 0.01 million insertions per second).
fn has_sorted_children(design: FibDesign) -> bool {
    matches!(design, FibDesign::Npt | FibDesign::ComponentTrie)
}

/// Median ÷ median as a row and as a number; without a number if a time was below the clock's resolution.
fn ratio_row(case: &str, subject: &str, metric: &str, dividend: &Samples, divisor: &Samples) -> (Row, Option<f64>) {
    let ratio = dividend.median().zip(divisor.median()).map(|(dividend, divisor)| dividend / divisor);
    let samples = Samples::one_or(ratio, "one of the two times was not measured");
    (samples.row(case, subject, metric, "ratio", None), ratio)
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
