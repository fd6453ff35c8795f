//! What does binary search of hash tables cost, and what do matching, prefetching and linear search change?
//!
//! Source: Yuan15 §3.4: Fig. 3.7 (prefetch none, first, all), 3.8 and 3.9 (sizes, 7 and 15 components, precomputed
//! hashes), 3.10 (linear search, shortest first), 3.11 (threads), in the paper's worst case ([`worst_case`]); §3.3.1:
//! what updates cost with each way to keep markers ([`maintenance`]). CityA compares names at every match and hashes
//! with CityHash; SipE compares at the end and hashes with SipHash. The run adds the other two combinations, and
//! batches.
//!
//! All variants of a size take turns by slices of 256 names, which are written shortly before they are timed; every
//! answer is checked. Limits: names repeat after n / log₂(k + 1), and a router uses cache lines for other work too.

mod headlines;
mod maintenance;
mod paper;
mod slice;
mod threads;
pub(super) mod worst_case;

use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::hash_tables::{
    HashSearch, HashTableOptions, HashTables, MarkerMaintenance, PrefixHash, PrefixHashes, StringMatching,
};
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixTable as _};
use serde::Deserialize;

use crate::experiment::{Context, Outcome, Samples};
use headlines::Latencies;
use slice::{SLICE_NAMES, Slice};
use worst_case::WorstCase;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// One population and its tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    components: u64,
    names: u64,
    #[serde(default)]
    with: With,
}

/// What is measured beside binary search, or how.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum With {
    #[default]
    Nothing,
    /// Linear search, which takes twice the memory of binary search; and threads.
    LinearAndThreads,
    Linear,
    /// Threads. CityA and SipE one after the other: both tables together do not fit into memory.
    ThreadsApart,
}

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Cases of a set take turns: names of 7 and of 15 components are compared in tables of the same size. The first
    /// case of all gives the headline.
    sets: Vec<Vec<Case>>,
    repetitions: usize,
    /// Slices per variant and repetition.
    slices: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LookUp {
    FibPrefetch(FibPrefetch),
    /// Hashes are computed before the timed part; nothing is prefetched.
    Precomputed,
}

impl LookUp {
    const ALL: [Self; 5] = [
        Self::FibPrefetch(FibPrefetch::None),
        Self::FibPrefetch(FibPrefetch::First),
        Self::FibPrefetch(FibPrefetch::All),
        Self::FibPrefetch(FibPrefetch::Batch),
        Self::Precomputed,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::FibPrefetch(prefetch) => prefetch.name(),
            Self::Precomputed => "precomputed",
        }
    }
}

/// A table and the look-up variants that are timed on it.
pub(super) struct Subject {
    search: HashSearch,
    hash: PrefixHash,
    table: HashTables,
    pub(super) variants: Vec<Variant>,
}

pub(super) struct Variant {
    matching: StringMatching,
    pub(super) look_up: LookUp,
    pub(super) nanoseconds: Samples,
}

impl Subject {
    /// The table is looked up in these ways; of each, how names are compared.
    pub(super) fn new(table: HashTables, ways: impl IntoIterator<Item = (StringMatching, LookUp)>) -> Self {
        let variant = |(matching, look_up)| Variant { matching, look_up, nanoseconds: Samples::default() };
        let HashTableOptions { search, hash, .. } = table.options();
        Self { search, hash, table, variants: ways.into_iter().map(variant).collect() }
    }
}

impl Variant {
    /// The paper's name for the variant: "A" for matching always, "E" for matching at the end.
    fn subject(&self, subject: &Subject) -> String {
        let hash = if subject.hash == PrefixHash::City { "City" } else { "Sip" };
        let matching = if self.matching == StringMatching::Always { "A" } else { "E" };
        let search = if subject.search == HashSearch::Binary { "binary" } else { "linear" };
        format!("{hash}{matching} {search}")
    }
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let steps = |set: &Vec<Case>| {
        let threads = set.iter().filter(|case| case.has_threads()).count();
        set[0].groups().len() * (set.len() + size.repetitions + threads)
    };
    context.plan_steps(1 + size.sets.iter().map(steps).sum::<usize>());
    let mut outcome = Outcome { notes: paper::notes()?, ..Outcome::default() };
    context.begin_step("maintenance of markers")?;
    maintenance::measure(context, &mut outcome)?;
    for (number, set) in size.sets.iter().enumerate() {
        let latencies = measure_set(set, &size, context, &mut outcome)?;
        if number == 0 {
            headlines::of_one_case(&latencies[0], &mut outcome);
        }
        if let [seven, fifteen] = &latencies[..] {
            headlines::of_more_components(seven, fifteen, &mut outcome);
        }
    }
    Ok(outcome)
}

/// Gives the latencies of each case.
fn measure_set(set: &[Case], size: &Size, context: &Context, outcome: &mut Outcome) -> anyhow::Result<Vec<Latencies>> {
    let mut latencies: Vec<Latencies> = set.iter().map(|_| Latencies::default()).collect();
    for group in set[0].groups() {
        let mut tables = Vec::new();
        for case in set {
            context.begin_step(&case.label())?;
            tables.push((
                subjects(&group, case, case.worst_case(context), context)?,
                Lookups::new(case.worst_case(context)),
            ));
        }
        for _ in 0..size.repetitions {
            context.begin_step(&set[0].label())?;
            repetition(&mut tables, size.slices, context)?;
        }
        for ((case, latencies), (mut subjects, _)) in set.iter().zip(&mut latencies).zip(tables) {
            rows(&subjects, &case.label(), outcome);
            latencies.add(&subjects);
            if case.has_threads() {
                context.begin_step("threads")?;
                let rounds = size.slices / 4;
                threads::measure(&mut subjects, case.worst_case(context), &case.label(), rounds, context, outcome)?;
            }
        }
    }
    Ok(latencies)
}

impl Case {
    fn label(&self) -> String {
        format!("{} components, {} names", self.components, self.names)
    }

    fn worst_case(&self, context: &Context) -> WorstCase {
        WorstCase { seed: context.seed, names: self.names, components: self.components }
    }

    /// Tables that are in memory together.
    fn groups(&self) -> Vec<Vec<HashTableOptions>> {
        let both = [HashTableOptions::CITY_A, HashTableOptions::SIP_E];
        if self.with == With::ThreadsApart { both.map(|options| vec![options]).to_vec() } else { vec![both.to_vec()] }
    }

    fn searches(&self) -> &'static [HashSearch] {
        match self.with {
            With::Linear | With::LinearAndThreads => &[HashSearch::Binary, HashSearch::ShortestFirst],
            With::Nothing | With::ThreadsApart => &[HashSearch::Binary],
        }
    }

    fn has_threads(&self) -> bool {
        matches!(self.with, With::LinearAndThreads | With::ThreadsApart)
    }
}

fn subjects(
    group: &[HashTableOptions],
    case: &Case,
    worst_case: WorstCase,
    context: &Context,
) -> anyhow::Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for &search in case.searches() {
        for &options in group {
            let longest_components = case.components as usize;
            // No prefix is below another, so no marker ever changes, and none needs memory for changes.
            let options =
                HashTableOptions { search, longest_components, maintenance: MarkerMaintenance::Enumerate, ..options };
            let table = worst_case.populate(options, context)?;
            let own = LookUp::ALL.map(|look_up| (options.matching, look_up));
            let other = match options.matching {
                StringMatching::Always => StringMatching::AtEnd,
                StringMatching::AtEnd => StringMatching::Always,
            };
            let all = own.into_iter().chain([(other, LookUp::FibPrefetch(FibPrefetch::All))]);
            subjects.push(Subject::new(table, all));
        }
    }
    Ok(subjects)
}

/// Looks up names slice by slice.
pub(super) struct Lookups {
    worst_case: WorstCase,
    next: u64,
    names: Slice,
    hashes: Vec<PrefixHashes>,
}

impl Lookups {
    pub(super) fn new(worst_case: WorstCase) -> Self {
        let hashes = vec![PrefixHashes::default(); SLICE_NAMES / DESIGN_BATCH_NAMES];
        Self { worst_case, next: 0, names: Slice::default(), hashes }
    }

    fn slice(&mut self, subject: &mut Subject, variant: usize, context: &Context) -> anyhow::Result<u64> {
        let Variant { matching, look_up, .. } = subject.variants[variant];
        self.names.write(self.worst_case, self.next);
        self.next += SLICE_NAMES as u64;
        let table = &mut subject.table;
        let took_ns = match look_up {
            LookUp::FibPrefetch(prefetch) => {
                table.set_look_up(prefetch, matching);
                let started_ns = context.clock.now_ns();
                self.names.look_up(table);
                context.clock.now_ns() - started_ns
            }
            LookUp::Precomputed => {
                table.set_look_up(FibPrefetch::None, matching);
                for (batch, hashes) in self.hashes.iter_mut().enumerate() {
                    table.hash_names(&self.names.batch(batch), hashes);
                }
                let started_ns = context.clock.now_ns();
                self.names.look_up_hashed(table, &self.hashes);
                context.clock.now_ns() - started_ns
            }
        };
        self.names.check(self.worst_case)?;
        Ok(took_ns)
    }
}

/// One repetition of all variants of all cases, slice by slice in turn.
pub(super) fn repetition(
    cases: &mut [(Vec<Subject>, Lookups)],
    slices: usize,
    context: &Context,
) -> anyhow::Result<()> {
    let variants =
        |subjects: &[Subject]| subjects.iter().map(|subject| vec![Vec::new(); subject.variants.len()]).collect();
    let mut took_ns: Vec<Vec<Vec<Vec<u64>>>> = cases.iter().map(|(subjects, _)| variants(subjects)).collect();
    for _ in 0..slices {
        context.check_interrupt()?;
        for ((subjects, lookups), took_ns) in cases.iter_mut().zip(&mut took_ns) {
            for (subject, took_ns) in subjects.iter_mut().zip(took_ns) {
                for (variant, took_ns) in (0..subject.variants.len()).zip(took_ns) {
                    took_ns.push(lookups.slice(subject, variant, context)?);
                }
            }
        }
    }
    let subjects = cases.iter_mut().flat_map(|(subjects, _)| subjects);
    for (subject, took_ns) in subjects.zip(took_ns.into_iter().flatten()) {
        for (variant, took_ns) in subject.variants.iter_mut().zip(took_ns) {
            variant.nanoseconds.add_resolved(context.clock.median_ns(took_ns, SLICE_NAMES));
        }
    }
    Ok(())
}

fn rows(subjects: &[Subject], case: &str, outcome: &mut Outcome) {
    for subject in subjects {
        for variant in &subject.variants {
            let name = variant.subject(subject);
            outcome.rows.push(variant.nanoseconds.row(case, &name, variant.look_up.name(), "ns per look-up", None));
        }
        let names = subject.table.len() as f64;
        let sizes = [("memory", subject.table.bytes()), ("memory of fingerprints", subject.table.table_bytes())];
        for (metric, bytes) in sizes {
            let subject = subject.variants[0].subject(subject);
            outcome.add_value(case, &subject, (metric, "bytes per name"), bytes as f64 / names);
        }
    }
}
