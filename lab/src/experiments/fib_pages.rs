//! What do larger pages save a FIB look-up, and what do precomputed hashes save?
//!
//! Source: Yuan15 Fig. 3.6 (4 KiB, 2 MiB, 1 GiB pages; hashes timed or precomputed), there with binary search over
//! lengths and up to a billion names. Here the papers' 13.5 million prefixes are looked up one by one and in batches.
//! There is one table per page size, all in memory at once, so that slices can take turns. The run reserves explicit
//! huge pages where the system allows it, and releases them at the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use namewire_tables::{Fib, FibConfig, HashKey, PageSize};

use crate::experiment::{Context, Experiment, Outcome, Samples, Scale};
use crate::fib_measurement::{FibLookup, FibLookups, SLICE_NAMES, populate};
use crate::papers;
use crate::synthetic_names::{NAME_COMPONENTS, PAPER_PREFIXES, SyntheticNames};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "fib-pages",
    source: "Yuan15 Fig. 3.6",
    question: "What do larger pages save a FIB look-up, and what do precomputed hashes save?",
    needs: "quick: 2 min, 1 GiB per page size; full: 5 min, the same memory; explicit huge pages need root",
    takes: None,
    run,
    sources: &[
        "lab/src/experiments/fib_pages.rs",
        "crates/tables/src/fib",
        "crates/designs/src/fib",
        "crates/tables/src/pages.rs",
    ],
};

/// Sizes of a run.
struct Size {
    prefixes: u64,
    repetitions: usize,
    /// Slices per variant, page size and repetition.
    slices: usize,
}

const fn size(scale: Scale) -> Size {
    match scale {
        Scale::Smoke => Size { prefixes: 20_000, repetitions: 3, slices: 4 },
        Scale::Quick => Size { prefixes: PAPER_PREFIXES, repetitions: 5, slices: 40 },
        Scale::Full => Size { prefixes: PAPER_PREFIXES, repetitions: 9, slices: 400 },
    }
}

fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size = size(context.scale);
    let names = SyntheticNames::new(context.seed, size.prefixes);
    context.plan_steps(PageSize::ALL.len() + size.repetitions);
    let mut notes = Vec::new();
    let mut reserved = Vec::new(); // released after the tables
    let mut tables: Vec<(PageSize, Result<Fib, String>)> = Vec::new();
    for pages in PageSize::ALL {
        context.begin_step(&format!("FIB on {} pages", pages.name()))?;
        let config = FibConfig { pages, entry_bytes: entry_bytes(names), ..FibConfig::new(size.prefixes as usize) };
        reserved.push(ReservedPages::reserve(&config));
        let check = || Ok(context.check_interrupt()?);
        let table = populate(names, config, HashKey::from_seed(context.seed), &check);
        context.check_interrupt()?;
        tables.push((pages, table.map_err(|error| format!("not available: {error:#}"))));
    }

    let mut samples: Vec<[Samples; FibLookup::ALL.len()]> = vec![Default::default(); tables.len()];
    let mut lookups = FibLookups::new(names, 0);
    for _ in 0..size.repetitions {
        context.begin_step("look-ups")?;
        let mut took_ns = vec![[const { Vec::new() }; FibLookup::ALL.len()]; tables.len()];
        for _ in 0..size.slices {
            for ((_, table), took_ns) in tables.iter().zip(&mut took_ns) {
                let Ok(fib) = table else { continue };
                for (lookup, took_ns) in FibLookup::ALL.into_iter().zip(took_ns) {
                    took_ns.push(lookups.slice(fib.view(), lookup, &context.clock)?);
                }
            }
        }
        for (((_, table), took_ns), samples) in tables.iter().zip(took_ns).zip(&mut samples) {
            for (took_ns, samples) in took_ns.into_iter().zip(samples) {
                match table {
                    Ok(_) => samples.add_resolved(context.clock.median_ns(took_ns, SLICE_NAMES)),
                    Err(reason) => samples.refuse(reason.clone()),
                }
            }
        }
    }

    let mut rows = Vec::new();
    let mut headline = BTreeMap::new();
    for ((pages, _), samples) in tables.iter().zip(&samples) {
        for (lookup, samples) in FibLookup::ALL.into_iter().zip(samples) {
            let row = samples.row(lookup.name(), pages.name(), "latency", "ns per look-up", None);
            if let Some(value) = &row.value {
                let key = format!("{} {} ns", lookup.name(), pages.name()).replace(", ", "_").replace([' ', '-'], "_");
                headline.insert(key, value.median);
            }
            rows.push(row);
        }
    }
    let small: [f64; 2] = papers::figures(papers::YUAN_15, "/figure_3_6/reduction_4kib_to_2mib_percent")?;
    let large: [f64; 2] = papers::figures(papers::YUAN_15, "/figure_3_6/reduction_2mib_to_1gib_percent")?;
    notes.push(format!(
        "Yuan15: latency falls by {} to {} % from 4 KiB to 2 MiB pages, by {} to {} % more to 1 GiB.",
        small[0], small[1], large[0], large[1]
    ));
    notes.push("Transparent pages are huge pages that the kernel assembles on request (madvise).".to_owned());
    notes.push("An array smaller than half a page of the requested size is on transparent pages.".to_owned());
    Ok(Outcome { rows, headline, notes })
}

/// Bytes for the entries of these names. Explicit huge pages are taken whole, so the estimate is tight.
fn entry_bytes(names: SyntheticNames) -> usize {
    // 8 bytes of header, 11 for each of 4 components on average, at most 3 of padding; one percent to spare.
    let mean = 8 + 11 * 4 + 3;
    (names.prefixes() as usize * mean / 100 * 101).max(NAME_COMPONENTS as usize * 11)
}

/// Huge pages that the kernel reserves for the run; released when dropped.
struct ReservedPages {
    file: PathBuf,
    before: String,
}

impl ReservedPages {
    /// `None` if the pages need no reservation or the system refuses.
    fn reserve(config: &FibConfig) -> Option<Self> {
        let (page_bytes, kib) = match config.pages {
            PageSize::Base | PageSize::Transparent => return None,
            PageSize::Huge2MiB | PageSize::Huge1GiB => (config.pages.bytes(), config.pages.bytes() >> 10),
        };
        let file = PathBuf::from(format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages"));
        let before = fs::read_to_string(&file).ok()?.trim().to_owned();
        // Entries and index, at 8 bytes an entry, each in whole pages.
        let pages = config.entry_bytes.div_ceil(page_bytes) + (config.capacity_entries * 8 + 64).div_ceil(page_bytes);
        let wanted = before.parse::<usize>().ok()? + pages;
        fs::write(&file, wanted.to_string()).ok()?;
        Some(Self { file, before })
    }
}

impl Drop for ReservedPages {
    fn drop(&mut self) {
        // If the kernel keeps the pages, nothing more can be done.
        let _ = fs::write(&self.file, &self.before);
    }
}
