//! How many hash look-ups does level pulling save, and how much time?
//!
//! Source: Yuan15 §4.1, Table 4.2. For each list of URLs in three conversions, the FIB holds all names of the list.
//! Each is looked up once, extended by three random components; α is the share of hash look-ups saved. There are two
//! kinds of counts: the paper's, in four readings of §4.1 ([`paper_count`]), and that of our tables, for three
//! searches; both with T = 64 first and then with other values. Look-ups with and without level pulling are timed in
//! slices; the variants take turns. Of several lists, the names of all are counted together, too: the paper's Blacklist
//! has domains and URLs.
//!
//! Every counted or timed look-up must find the prefix from which its name was made.
//!
//! Limits: a router's names repeat; lists have no popularity. The paper's lists (Alexa, Dmoz, Shallalist) are no longer
//! available, so a note says only whether α is within the range of Table 4.2 ([`table_4_2`]).

mod paper_count;
mod table_4_2;

use anyhow::ensure;
use namewire_designs::fib::hash_tables::{HashSearch, HashTableOptions, HashTables};
use namewire_designs::fib::level_pulling::{LevelPulling, LevelPullingOptions};
use namewire_packet::Name;
use namewire_tables::HashKey;
use namewire_tables::fib::{PrefixMatch, PrefixTable};

use self::paper_count::{PaperCount, Query, Reading};
use self::table_4_2::Table42;
use crate::design_measurement::{SLICE_NAMES, Slice};
use crate::experiment::{Context, Outcome, Samples};
use crate::name_arena::{NameArena, port};
use crate::name_sets::{NameConversion, NameSet, Records, record_sets};
use serde::Deserialize;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// T of Table 4.2.
const PAPER_THRESHOLD: u32 = 64;
/// The thresholds measured, including the paper's.
const THRESHOLDS: [u32; 5] = [16, PAPER_THRESHOLD, 256, 1024, 4096];
/// Random components behind a prefix, and their characters.
const RANDOM_COMPONENTS: usize = 3;
const RANDOM_CHARACTERS: usize = 9;

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Invented names, if no list is given.
    invented: usize,
    /// Most names used of a list.
    names_max: usize,
    repetitions: usize,
    /// Slices per variant and repetition.
    slices: usize,
    /// Most names counted, except for Table 4.2 itself.
    sample: usize,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let sets = record_sets(context.names.as_deref(), size.invented, context.seed)?;
    let cases: Vec<(&Records, NameConversion)> = sets
        .iter()
        .flat_map(|records| conversions(records).iter().map(move |&conversion| (records, conversion)))
        .collect();
    context.plan_steps(cases.len() * SEARCHES.len() + NameConversion::YUAN.len());
    let mut outcome = Outcome::default();
    let mut table = Table42::of_the_paper()?;
    for (records, conversion) in cases {
        let set = records.names(conversion, context.seed)?;
        let case = Case::new(set, conversion_name(records, conversion), &size)?;
        for search in SEARCHES {
            context.begin_step(&format!("{}, {}", case.title, search.name()))?;
            case.measure(search, context, &mut table, &mut outcome)?;
        }
    }
    let with_hosts: Vec<&Records> = sets.iter().filter(|records| records.begin_with_hosts()).collect();
    if with_hosts.len() > 1 {
        for conversion in NameConversion::YUAN {
            context.begin_step(&format!("all lists, {}", conversion.name()))?;
            let all: anyhow::Result<Vec<NameSet>> =
                with_hosts.iter().map(|records| records.names(conversion, context.seed)).collect();
            let set = NameSet { title: "all lists".to_owned(), ..NameSet::joined(&all?, context.seed) };
            Case::new(set, conversion.name(), &size)?.count_alone(context, &mut table, &mut outcome)?;
        }
    }
    outcome.add_notes(FILE)?;
    outcome.notes.extend(table.notes());
    Ok(outcome)
}

/// The orders in which the hash tables are searched.
const SEARCHES: [HashSearch; 3] = [HashSearch::Binary, HashSearch::LongestFirst, HashSearch::ShortestFirst];

/// The conversions that differ for these records.
fn conversions(records: &Records) -> &'static [NameConversion] {
    if records.begin_with_hosts() { &NameConversion::YUAN } else { &[NameConversion::Host] }
}

fn conversion_name(records: &Records, conversion: NameConversion) -> &'static str {
    if records.begin_with_hosts() { conversion.name() } else { "Path" }
}

/// One list in one conversion.
struct Case<'s> {
    title: String,
    list: String,
    conversion: &'static str,
    names: NameArena,
    /// For each name, whether no other name is below it.
    is_leaf: Vec<bool>,
    /// Names without another below them, by number of components.
    leaf_entries: Vec<usize>,
    size: &'s Size,
}

/// A look-up variant: `None` is without level pulling.
type Variant = Option<LevelPullingOptions>;

/// Hash look-ups of all names.
#[derive(Default)]
struct Counts {
    built_with: usize,
    built_without: usize,
    /// For each reading.
    paper: [(usize, usize); Reading::ALL.len()],
}

impl<'s> Case<'s> {
    fn new(NameSet { title, mut names }: NameSet, conversion: &'static str, size: &'s Size) -> anyhow::Result<Self> {
        names.truncate(size.names_max);
        ensure!(names.len() >= SLICE_NAMES, "{title} has {} names, fewer than {SLICE_NAMES}", names.len());
        let is_leaf = leaves(&names);
        let mut leaf_entries = Vec::new();
        for (name, &is_leaf) in names.iter().zip(&is_leaf) {
            let components = components(name);
            leaf_entries.resize(leaf_entries.len().max(components + 1), 0);
            leaf_entries[components] += usize::from(is_leaf);
        }
        Ok(Self {
            title: format!("{title}, {conversion}"),
            list: title,
            conversion,
            names,
            is_leaf,
            leaf_entries,
            size,
        })
    }

    /// The counts for binary search and the paper's T.
    fn count_alone(&self, context: &Context, table: &mut Table42, outcome: &mut Outcome) -> anyhow::Result<()> {
        let tables = self.fill(HashSearch::Binary, context)?;
        let subject = subject(HashSearch::Binary, Some(LevelPullingOptions::default()));
        self.count(&tables, &subject, context, table, outcome)
    }

    fn measure(
        &self,
        search: HashSearch,
        context: &Context,
        table_4_2: &mut Table42,
        outcome: &mut Outcome,
    ) -> anyhow::Result<()> {
        let mut table = self.fill(search, context)?;
        let pulled = |threshold_children, pull_root| Some(LevelPullingOptions { threshold_children, pull_root });
        let mut variants = vec![None, pulled(PAPER_THRESHOLD, false)];
        if search == HashSearch::Binary {
            variants.push(pulled(PAPER_THRESHOLD, true));
            let others = THRESHOLDS.into_iter().filter(|&threshold| threshold != PAPER_THRESHOLD);
            variants.extend(others.map(|threshold| pulled(threshold, false)));
        }
        let latencies = self.time(&mut table, &variants, context)?;
        let mut best: Option<(f64, LevelPullingOptions)> = None;
        for (&variant, latency) in variants.iter().zip(&latencies) {
            let subject = subject(search, variant);
            outcome.rows.push(latency.row(&self.title, &subject, "latency", "ns per look-up", None));
            let median = latency.median();
            let Some(options) = variant else {
                self.headline(outcome, &format!("{}_ns", search.name()), median);
                continue;
            };
            table.set_options(options)?;
            self.count(&table, &subject, context, table_4_2, outcome)?;
            if options == LevelPullingOptions::default() {
                self.headline(outcome, &format!("{}_pulled_ns", search.name()), median);
            }
            if let Some(median) = median
                && best.is_none_or(|(least, _)| median < least)
            {
                best = Some((median, options));
            }
        }
        if let Some((median, options)) = best
            && search == HashSearch::Binary
        {
            self.headline(outcome, "best_threshold", Some(options.threshold_children.into()));
            self.headline(outcome, "best_pulls_root", Some(u8::from(options.pull_root).into()));
            self.headline(outcome, "binary_best_ns", Some(median));
        }
        Ok(())
    }

    /// Puts all names of the list into the tables.
    fn fill(&self, search: HashSearch, context: &Context) -> anyhow::Result<LevelPulling<HashTables>> {
        let options = HashTableOptions { search, ..HashTableOptions::SIP_E };
        let below = HashTables::new(self.names.len(), [context.seed, !context.seed], options)?;
        let key = HashKey::from_seed(context.seed);
        let mut table = LevelPulling::new(below, LevelPullingOptions::default(), key, options.pages)?;
        for (number, name) in self.names.iter().enumerate() {
            ensure!(table.insert(name, port(number))?.is_none(), "{}: name {number} is there twice", self.title);
            if number % 65_536 == 0 {
                context.check_interrupt()?;
            }
        }
        Ok(table)
    }

    /// Nanoseconds per look-up of every variant; the variants take turns.
    fn time(
        &self,
        table: &mut LevelPulling<HashTables>,
        variants: &[Variant],
        context: &Context,
    ) -> anyhow::Result<Vec<Samples>> {
        let mut latencies = vec![Samples::default(); variants.len()];
        let mut queries = Queries::new(context.seed);
        for repetition in 0..self.size.repetitions {
            for (variant, latency) in variants.iter().zip(&mut latencies) {
                context.check_interrupt()?;
                if let &Some(options) = variant {
                    table.set_options(options)?;
                }
                let searched: &dyn PrefixTable = if variant.is_some() { &*table } else { table.below() };
                let mut took_ns = Vec::with_capacity(self.size.slices);
                for number in 0..self.size.slices {
                    queries.make(&self.names, (repetition * self.size.slices + number) * SLICE_NAMES);
                    took_ns.push(queries.slice.look_up(searched, &context.clock));
                    queries.check(&self.names, &self.title)?;
                }
                latency.add_resolved(context.clock.median_ns(took_ns, SLICE_NAMES));
            }
        }
        Ok(latencies)
    }

    /// Counts every name once: Table 4.2 for the current T.
    fn count(
        &self,
        table: &LevelPulling<HashTables>,
        subject: &str,
        context: &Context,
        table_4_2: &mut Table42,
        outcome: &mut Outcome,
    ) -> anyhow::Result<()> {
        let readings = Reading::ALL.map(|reading| PaperCount::new(reading, &self.leaf_entries));
        let (mut rng, mut name_value) = (fastrand::Rng::with_seed(context.seed), Vec::new());
        let mut counts = Counts::default();
        let is_table_4_2 = table.below().options().search == HashSearch::Binary
            && table.trie().options() == LevelPullingOptions::default();
        let counted = if is_table_4_2 { self.names.len() } else { self.size.sample.min(self.names.len()) };
        for (number, name) in self.names.iter().enumerate().take(counted) {
            write_query(name, &mut rng, &mut name_value);
            let (with, without) = table.hash_lookups(&name_value);
            (counts.built_with, counts.built_without) = (counts.built_with + with, counts.built_without + without);
            let matched = components(name);
            let query = Query { components: matched + RANDOM_COMPONENTS, matched, is_leaf: self.is_leaf[number] };
            let c_trie = table.c_trie_match(&name_value);
            for (reading, (sum_with, sum_without)) in readings.iter().zip(&mut counts.paper) {
                let without = reading.without(query);
                *sum_with += c_trie.map_or(without, |c_trie| reading.with(query, c_trie));
                *sum_without += without;
            }
            if number % 65_536 == 0 {
                context.check_interrupt()?;
            }
        }
        if is_table_4_2 {
            table_4_2.add(&self.list, self.conversion, counts.paper.map(|(with, without)| saved(with, without)));
        }
        self.report_counts(&counts, counted, table, subject, outcome);
        Ok(())
    }

    fn report_counts(
        &self,
        counts: &Counts,
        counted: usize,
        table: &LevelPulling<HashTables>,
        subject: &str,
        outcome: &mut Outcome,
    ) {
        let names = counted.max(1) as f64;
        let options = table.trie().options();
        let search = table.below().options().search;
        let built = saved(counts.built_with, counts.built_without);
        let mut row = |metric: &str, unit, value| outcome.add_value(&self.title, subject, (metric, unit), value);
        row("alpha as built", "%", built);
        row("hash look-ups with level pulling", "per name", counts.built_with as f64 / names);
        row("hash look-ups without", "per name", counts.built_without as f64 / names);
        if search != HashSearch::Binary {
            return;
        }
        for (reading, (with, without)) in Reading::ALL.iter().zip(counts.paper) {
            row(&format!("alpha {}", reading.name()), "%", saved(with, without));
            row(&format!("hash look-ups without, {}", reading.name()), "per name", without as f64 / names);
        }
        let prefixes = table.trie().c_trie_prefixes() as f64;
        row("C-Trie size", "prefixes", prefixes);
        row("C-Trie memory", "bytes", table.trie().c_trie_bytes() as f64);
        if options == LevelPullingOptions::default() {
            let (with, without) = counts.paper[0];
            self.headline(outcome, "names", Some(names));
            self.headline(outcome, "alpha_percent", Some(saved(with, without)));
            self.headline(outcome, "alpha_as_built_percent", Some(built));
            self.headline(outcome, "c_trie_size", Some(prefixes));
        }
    }

    fn headline(&self, outcome: &mut Outcome, key: &str, value: Option<f64>) {
        let Some(value) = value else { return };
        let key = format!("{} {key}", self.title).to_lowercase();
        let words: Vec<&str> = key.split(|character: char| !character.is_ascii_alphanumeric()).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        outcome.headline.insert(words.join("_"), value);
    }
}

/// α in percent.
fn saved(with: usize, without: usize) -> f64 {
    100.0 * (1.0 - with as f64 / without.max(1) as f64)
}

fn components(name: &[u8]) -> usize {
    Name::parse_value(name).map_or(0, |name| name.len())
}

/// For each name, whether no other name is below it.
fn leaves(names: &NameArena) -> Vec<bool> {
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    order.sort_unstable_by_key(|&number| names.get(number as usize));
    let mut is_leaf = vec![true; names.len()];
    // A TLV is no prefix of another: a name that begins with these bytes is below them.
    for pair in order.windows(2) {
        is_leaf[pair[0] as usize] = !names.get(pair[1] as usize).starts_with(names.get(pair[0] as usize));
    }
    is_leaf
}

fn subject(search: HashSearch, variant: Variant) -> String {
    let search = search.name();
    match variant {
        None => search.to_owned(),
        Some(LevelPullingOptions { threshold_children, pull_root: false }) => {
            format!("{search}, T = {threshold_children}")
        }
        Some(LevelPullingOptions { threshold_children, .. }) => {
            format!("{search}, T = {threshold_children} and the root")
        }
    }
}

/// Appends random components to `name`.
fn write_query(name: &[u8], rng: &mut fastrand::Rng, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(name);
    for _ in 0..RANDOM_COMPONENTS {
        out.extend([8, RANDOM_CHARACTERS as u8]);
        out.extend((0..RANDOM_CHARACTERS).map(|_| rng.alphanumeric() as u8));
    }
}

/// Names to look up, made from the prefixes from number `first` on.
struct Queries {
    rng: fastrand::Rng,
    query: Vec<u8>,
    slice: Slice,
    first: usize,
}

impl Queries {
    fn new(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed), query: Vec::new(), slice: Slice::default(), first: 0 }
    }

    /// Makes the names from number `first` on, wrapping around after the last.
    fn make(&mut self, names: &NameArena, first: usize) {
        self.first = first;
        self.slice.names.clear();
        for number in first..first + SLICE_NAMES {
            write_query(names.get(number % names.len()), &mut self.rng, &mut self.query);
            self.slice.names.push(&self.query);
        }
    }

    /// Checks that the longest prefix of each name is the one from which it was made.
    fn check(&self, names: &NameArena, title: &str) -> anyhow::Result<()> {
        for (number, found) in (self.first..).zip(&self.slice.found) {
            let number = number % names.len();
            let prefix_bytes = names.get(number).len() as u16;
            let right = PrefixMatch { number: port(number), prefix_bytes };
            ensure!(*found == Some(right), "{title}: name {number}: {found:?} instead of {right:?}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_has_no_name_below_it() {
        let names: NameArena =
            [&b"\x08\x01a"[..], b"\x08\x02ab", b"\x08\x01a\x08\x01b", b"\x08\x01a\x08\x02bc"].into_iter().collect();
        assert_eq!(leaves(&names), [false, true, true, true]);
    }
}
