//! The tables of the thesis on each page size: CityA and SipE in their worst case, as in `fib-binary`.
//!
//! Source: Yuan15 Fig. 3.6. Names have seven components; look-ups are one by one without prefetching, hashes timed or
//! precomputed, and in batches. Tables are made at their full size, so that no array is copied. A table counts for
//! explicit huge pages only if the kernel's account of the process has as many as its large arrays need, but for a
//! twentieth: the end of an array may be unused, and is then on no page.
//!
//! Limits: the paper's half a billion names take 100 GB. With fewer names a table of fingerprints is smaller than half
//! of a 1 GiB page, and only the name prefix entries are on such pages.

use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::hash_tables::{HashTableOptions, MarkerMaintenance};
use namewire_tables::PageSize;
use serde::Deserialize;

use super::reserved_pages::ReservedPages;
use crate::experiment::{Context, Outcome, Samples};
use crate::experiments::fib_binary::worst_case::WorstCase;
use crate::experiments::fib_binary::{LookUp, Lookups, Subject, repetition};
use crate::{papers, process};

const COMPONENTS: u64 = 7;
/// Of a table of fingerprints: a bucket of a line for every four, and a tenth more.
const BYTES_PER_100_FINGERPRINTS: u64 = 64 * 110 / 4;

const NONE: LookUp = LookUp::FibPrefetch(FibPrefetch::None);
const WAYS: [LookUp; 3] = [NONE, LookUp::Precomputed, LookUp::FibPrefetch(FibPrefetch::Batch)];

/// Sizes of a run. From three million names on, the entries fill half of a 1 GiB page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    names: u64,
    repetitions: usize,
    slices: usize,
}

/// Steps of [`measure`].
pub(super) const fn steps(size: &Size) -> usize {
    2 * (PageSize::ALL.len() + size.repetitions)
}

/// Adds rows and headlines, with what the paper says.
pub(super) fn measure(size: &Size, context: &Context, outcome: &mut Outcome) -> anyhow::Result<()> {
    let figure = |name: &str| papers::figures::<f64>(papers::YUAN_15, &format!("/figure_3_6/{name}_percent"));
    let range = |name: &str| -> anyhow::Result<String> {
        let [least, most]: [f64; 2] = papers::figures(papers::YUAN_15, &format!("/figure_3_6/{name}_percent"))?;
        Ok(format!("{least} to {most} %"))
    };
    let (small, large) = (range("reduction_4kib_to_2mib")?, range("reduction_2mib_to_1gib")?);
    for (variant, options, hashes) in [
        ("CityA", HashTableOptions::CITY_A, figure("precomputed_reduction_city_always")?),
        ("SipE", HashTableOptions::SIP_E, figure("precomputed_reduction_sip_end")?),
    ] {
        let latencies = of_variant(variant, options, size, context, outcome)?;
        let ratio = |of: (PageSize, LookUp), over: (PageSize, LookUp)| {
            let find = |wanted| latencies.iter().find(|(which, _)| *which == wanted).map(|(_, samples)| samples);
            find(of).zip(find(over)).map(|(of, over)| of.over(over)).unwrap_or_default()
        };
        let [base, mid, huge] = [PageSize::Base, PageSize::Huge2MiB, PageSize::Huge1GiB];
        for (key, ratios, paper) in [
            ("2mib_over_4kib", ratio((mid, NONE), (base, NONE)), small.clone()),
            ("1gib_over_2mib", ratio((huge, NONE), (mid, NONE)), large.clone()),
            ("precomputed_over_timed", ratio((mid, LookUp::Precomputed), (mid, NONE)), format!("{hashes} %")),
        ] {
            let key = format!("{}_{key}", variant.to_lowercase());
            outcome.add_steady(&key, &ratios);
            if let Some(ratio) = outcome.headline.get(&key) {
                let saved = (1.0 - ratio) * 100.0;
                outcome.notes.push(format!("`{key}`: {saved:.0} % of the latency are saved; in Yuan15, {paper}."));
            }
        }
    }
    Ok(())
}

type Latencies = Vec<((PageSize, LookUp), Samples)>;

/// Look-ups in the tables of one variant on all pages, slice by slice in turn.
fn of_variant(
    variant: &str,
    options: HashTableOptions,
    size: &Size,
    context: &Context,
    outcome: &mut Outcome,
) -> anyhow::Result<Latencies> {
    let &Size { names, repetitions, slices } = size;
    let worst_case = WorstCase { seed: context.seed, names, components: COMPONENTS };
    // No prefix is below another, so no marker ever changes.
    let maintenance = MarkerMaintenance::Enumerate;
    let options = HashTableOptions { maintenance, longest_components: COMPONENTS as usize, ..options };
    let case = format!("{variant}, {names} names");
    let mut reserved = Vec::new(); // given back after the tables
    let (mut measured, mut subjects) = (Vec::new(), Vec::new());
    for pages in PageSize::ALL {
        context.begin_step(&format!("{variant} on {} pages", pages.name()))?;
        match on_pages(worst_case, HashTableOptions { pages, ..options }, context)? {
            Ok((pages_of_table, subject)) => {
                reserved.push(pages_of_table);
                measured.push(pages);
                subjects.push(subject);
            }
            Err(reason) => {
                let mut refused = Samples::default();
                refused.refuse(format!("not available: {reason}"));
                let row = |way: &LookUp| refused.row(&case, pages.name(), way.name(), "ns per look-up", None);
                outcome.rows.extend(WAYS.iter().map(row));
            }
        }
    }
    let mut tables = [(subjects, Lookups::new(worst_case))];
    for _ in 0..repetitions {
        context.begin_step(&format!("{variant}, look-ups"))?;
        repetition(&mut tables, slices, context)?;
    }
    let [(subjects, _)] = tables;
    let mut latencies = Vec::new();
    for (pages, subject) in measured.into_iter().zip(subjects) {
        for variant in subject.variants {
            let row = variant.nanoseconds.row(&case, pages.name(), variant.look_up.name(), "ns per look-up", None);
            outcome.rows.push(row);
            latencies.push(((pages, variant.look_up), variant.nanoseconds));
        }
    }
    Ok(latencies)
}

/// A table with all names, or the reason why the system gives no such pages.
fn on_pages(
    worst_case: WorstCase,
    options: HashTableOptions,
    context: &Context,
) -> anyhow::Result<Result<(Option<ReservedPages>, Subject), String>> {
    let HashTableOptions { pages, matching, .. } = options;
    let sizes = worst_case.sizes(options, context)?;
    let tables = sizes.table_prefixes.iter().map(|&prefixes| prefixes as u64 * BYTES_PER_100_FINGERPRINTS / 100);
    let arrays: Vec<u64> = tables.chain([sizes.entry_bytes]).collect();
    let reserved = match ReservedPages::reserve(pages, &arrays) {
        Ok(reserved) => reserved,
        Err(reason) => return Ok(Err(reason)),
    };
    let huge_bytes = || process::huge_pages_kib(std::process::id()).unwrap_or(0) << 10;
    let before = huge_bytes();
    let table = worst_case.populate(options, context)?;
    let (got, wanted) = (huge_bytes().saturating_sub(before), ReservedPages::bytes(pages, &arrays));
    if got < wanted / 100 * 95 {
        return Ok(Err(format!("{got} bytes of {wanted} are on {} pages", pages.name())));
    }
    Ok(Ok((reserved, Subject::new(table, WAYS.map(|way| (matching, way))))))
}
