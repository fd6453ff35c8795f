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

mod maintenance;
mod paper;
mod slice;
mod threads;
mod worst_case;

use std::collections::BTreeMap;

use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::hash_tables::{
    HashSearch, HashTableOptions, HashTables, MarkerMaintenance, PrefixHash, PrefixHashes, StringMatching,
};
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixTable as _};

use crate::experiment::{Context, Experiment, Outcome, Samples, Scale};
use slice::{SLICE_NAMES, Slice};
use worst_case::WorstCase;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "fib-binary",
    source: "Yuan15 Fig. 3.7-3.11, §3.3.1",
    question: "What does binary search of hash tables cost, beside linear search, what does prefetching save, and what do updates cost?",
    needs: "quick: 1.5 min, 3.5 GiB (2 million names); full: 20 min, 20 GiB (32 million names, the paper's billion takes 200 GiB)",
    takes: None,
    run,
    sources: &["lab/src/experiments/fib_binary", "crates/tables/src/fib", "crates/designs/src/fib"],
};

/// One population and its tables.
struct Case {
    components: u64,
    names: u64,
    /// Includes linear search, which takes twice the memory of binary search.
    with_linear: bool,
    with_threads: bool,
}

/// Sizes of a run.
struct Size {
    cases: Vec<Case>,
    repetitions: usize,
    /// Slices per variant and repetition.
    slices: usize,
}

const fn case(components: u64, names: u64, with_linear: bool, with_threads: bool) -> Case {
    Case { components, names, with_linear, with_threads }
}

/// The first case gives the headline.
fn size(scale: Scale) -> Size {
    match scale {
        Scale::Smoke => {
            Size { cases: vec![case(7, 6_000, true, true), case(15, 4_000, false, false)], repetitions: 3, slices: 8 }
        }
        Scale::Quick => Size {
            cases: vec![
                case(7, 2_000_000, true, true),
                case(7, 250_000, false, false),
                case(15, 1_000_000, false, false),
            ],
            repetitions: 5,
            slices: 80,
        },
        Scale::Full => Size {
            cases: vec![
                case(7, 8_000_000, true, false),
                case(7, 1_000_000, false, false),
                case(7, 32_000_000, false, true),
                case(15, 8_000_000, false, false),
            ],
            repetitions: 7,
            slices: 400,
        },
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LookUp {
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

    const fn name(self) -> &'static str {
        match self {
            Self::FibPrefetch(prefetch) => prefetch.name(),
            Self::Precomputed => "precomputed",
        }
    }
}

/// A table and the look-up variants that are timed on it.
struct Subject {
    search: HashSearch,
    hash: PrefixHash,
    table: HashTables,
    variants: Vec<Variant>,
}

struct Variant {
    matching: StringMatching,
    look_up: LookUp,
    nanoseconds: Samples,
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

fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size = size(context.scale);
    let steps = |case: &Case| 1 + size.repetitions + usize::from(case.with_threads);
    context.plan_steps(1 + size.cases.iter().map(steps).sum::<usize>());
    let mut outcome = Outcome { notes: paper::notes()?, ..Outcome::default() };
    context.begin_step("maintenance of markers")?;
    maintenance::measure(context, &mut outcome)?;
    for (number, case) in size.cases.iter().enumerate() {
        let worst_case = WorstCase { seed: context.seed, names: case.names, components: case.components };
        let label = format!("{} components, {} names", case.components, case.names);
        context.begin_step(&label)?;
        let mut subjects = subjects(case, worst_case, context)?;
        let mut lookups = Lookups::new(worst_case);
        for _ in 0..size.repetitions {
            context.begin_step(&label)?;
            lookups.repetition(&mut subjects, size.slices, context)?;
        }
        rows(&subjects, &label, &mut outcome);
        if number == 0 {
            headline(&subjects, &mut outcome.headline);
        }
        if case.with_threads {
            context.begin_step("threads")?;
            threads::measure(&mut subjects, worst_case, &label, size.slices / 4, context, &mut outcome)?;
        }
    }
    Ok(outcome)
}

fn subjects(case: &Case, worst_case: WorstCase, context: &Context) -> anyhow::Result<Vec<Subject>> {
    let searches: &[HashSearch] =
        if case.with_linear { &[HashSearch::Binary, HashSearch::ShortestFirst] } else { &[HashSearch::Binary] };
    let mut subjects = Vec::new();
    for &search in searches {
        for options in [HashTableOptions::CITY_A, HashTableOptions::SIP_E] {
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
            let variants =
                all.map(|(matching, look_up)| Variant { matching, look_up, nanoseconds: Samples::default() }).collect();
            subjects.push(Subject { search, hash: options.hash, table, variants });
        }
    }
    Ok(subjects)
}

/// Looks up names slice by slice.
struct Lookups {
    worst_case: WorstCase,
    next: u64,
    names: Slice,
    hashes: Vec<PrefixHashes>,
}

impl Lookups {
    fn new(worst_case: WorstCase) -> Self {
        let hashes = vec![PrefixHashes::default(); SLICE_NAMES / DESIGN_BATCH_NAMES];
        Self { worst_case, next: 0, names: Slice::default(), hashes }
    }

    /// One repetition of all variants in turn.
    fn repetition(&mut self, subjects: &mut [Subject], slices: usize, context: &Context) -> anyhow::Result<()> {
        let mut took_ns: Vec<Vec<Vec<u64>>> =
            subjects.iter().map(|subject| vec![Vec::new(); subject.variants.len()]).collect();
        for _ in 0..slices {
            context.check_interrupt()?;
            for (subject, took_ns) in subjects.iter_mut().zip(&mut took_ns) {
                for (variant, took_ns) in (0..subject.variants.len()).zip(took_ns) {
                    took_ns.push(self.slice(subject, variant, context)?);
                }
            }
        }
        for (subject, took_ns) in subjects.iter_mut().zip(took_ns) {
            for (variant, took_ns) in subject.variants.iter_mut().zip(took_ns) {
                variant.nanoseconds.add_resolved(context.clock.median_ns(took_ns, SLICE_NAMES));
            }
        }
        Ok(())
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

fn rows(subjects: &[Subject], case: &str, outcome: &mut Outcome) {
    for subject in subjects {
        for variant in &subject.variants {
            let name = variant.subject(subject);
            outcome.rows.push(variant.nanoseconds.row(case, &name, variant.look_up.name(), "ns per look-up", None));
        }
        let names = subject.table.len() as f64;
        let sizes = [("memory", subject.table.bytes()), ("memory of fingerprints", subject.table.table_bytes())];
        for (metric, bytes) in sizes {
            let mut samples = Samples::default();
            samples.add(bytes as f64 / names);
            outcome.rows.push(samples.row(case, &subject.variants[0].subject(subject), metric, "bytes per name", None));
        }
    }
}

/// Ratios of look-up rates.
fn headline(subjects: &[Subject], headline: &mut BTreeMap<String, f64>) {
    let rate = |subject: &str, look_up: LookUp| {
        let variants = subjects.iter().flat_map(|of| of.variants.iter().map(move |variant| (of, variant)));
        let mut found = variants.filter(|(of, variant)| variant.subject(of) == subject && variant.look_up == look_up);
        let (_, variant) = found.next()?;
        variant.nanoseconds.row("", "", "", "", None).value.map(|value| 1e3 / value.median)
    };
    let mut ratio = |key: &str, over: Option<f64>, under: Option<f64>| {
        if let (Some(over), Some(under)) = (over, under) {
            headline.insert(key.to_owned(), over / under);
        }
    };
    let [none, first, all, batched] = FibPrefetch::ALL.map(LookUp::FibPrefetch);
    let precomputed = LookUp::Precomputed;
    for (suffix, subject) in [("", "CityA"), ("_sip_end", "SipE")] {
        let binary = |look_up| rate(&format!("{subject} binary"), look_up);
        let linear = |look_up| rate(&format!("{subject} linear"), look_up);
        ratio(&format!("binary_over_linear{suffix}"), binary(none), linear(none));
        ratio(&format!("binary_over_linear_all{suffix}"), binary(all), linear(all));
        ratio(&format!("first_over_none{suffix}"), binary(first), binary(none));
        ratio(&format!("all_over_none{suffix}"), binary(all), binary(none));
        ratio(&format!("batched_over_none{suffix}"), binary(batched), binary(none));
        ratio(&format!("precomputed_over_none{suffix}"), binary(precomputed), binary(none));
    }
    let (sip, city) = (rate("SipE binary", precomputed), rate("CityA binary", precomputed));
    ratio("sip_end_over_city_always_precomputed", sip, city);
    ratio("city_always_all_mlookups", rate("CityA binary", all), Some(1.0));
    ratio("city_always_batched_mlookups", rate("CityA binary", batched), Some(1.0));
}
