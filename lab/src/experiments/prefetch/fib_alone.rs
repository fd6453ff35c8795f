//! The FIB of the experiment alone: look-ups without other work in between, hashing included.
//!
//! There is one table per search ([`FibSearch`]); the engines use the table of the default search. The searches take
//! turns of many slices each, because at the start of a turn no cache holds the page tables; see
//! [`crate::fib_measurement`].

use crate::clock::Clock;
use crate::experiment::{Outcome, Samples};
use crate::fib_measurement::{FibLookup, FibLookups, SLICE_NAMES, overhead_bytes_per_entry, populate};
use crate::statistics::Summary;
use crate::synthetic_names::SyntheticNames;
use namewire_tables::{Fib, FibConfig, FibSearch, HashKey};
use std::collections::BTreeMap;

/// The case of the rows.
const CASE: &str = "FIB alone";
/// First number of the names, far from those of the forwarders.
const FIRST_NAME: u64 = 255 << 37;
const LOOKUPS: &str = "look-ups";
const CYCLES: &str = "cycles";

pub(super) struct FibAlone {
    others: Vec<(FibSearch, Fib)>,
    lookups: FibLookups,
    /// In one turn of a search and a look-up: at least 20 ms, except at smoke scale.
    slices: usize,
    /// By search, look-up and metric.
    samples: BTreeMap<(&'static str, &'static str, &'static str), Samples>,
}

impl FibAlone {
    /// Makes the tables of the searches other than the default.
    pub(super) fn new(
        names: SyntheticNames,
        key: HashKey,
        slices: usize,
        check: &dyn Fn() -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let others = FibSearch::ALL.into_iter().filter(|&search| search != FibSearch::default());
        let others = others.map(|search| {
            let config = FibConfig { search, ..FibConfig::new(names.prefixes() as usize) };
            Ok((search, populate(names, config, key, check)?))
        });
        let lookups = FibLookups::new(names, FIRST_NAME);
        Ok(Self { others: others.collect::<anyhow::Result<_>>()?, lookups, slices, samples: BTreeMap::new() })
    }

    /// A repetition; `fib` has the default search.
    pub(super) fn measure(&mut self, fib: &Fib, clock: &Clock) -> anyhow::Result<()> {
        let mut took_ns: BTreeMap<(&'static str, &'static str), Vec<f64>> = BTreeMap::new();
        for (search, fib) in tables(fib, &self.others) {
            for lookup in [FibLookup::Naive, FibLookup::Batch] {
                for _ in 0..self.slices {
                    let took = self.lookups.slice(fib.view(), lookup, clock)?;
                    took_ns.entry((search.name(), lookup.name())).or_default().push(took as f64);
                }
            }
        }
        for ((search, lookup), took_ns) in took_ns {
            // The median ignores slices in which the thread waited for a processor.
            let Some(slice) = Summary::of(&took_ns) else { continue };
            let lookup_ns = slice.median / SLICE_NAMES as f64;
            self.samples.entry((search, lookup, LOOKUPS)).or_default().add(1e3 / lookup_ns);
            if let Some(hz) = clock.tsc_hz() {
                self.samples.entry((search, lookup, CYCLES)).or_default().add(lookup_ns * hz / 1e9);
            }
        }
        Ok(())
    }

    /// Adds all rows, and `fib_mlps` and `fib_overhead_bytes` of the default search.
    pub(super) fn add_to(&self, fib: &Fib, outcome: &mut Outcome) {
        for (&(search, lookup, metric), samples) in &self.samples {
            let unit = if metric == LOOKUPS { "M per s" } else { "TSC cycles per look-up" };
            outcome.rows.push(samples.row(&format!("{CASE}, {lookup}"), search, metric, unit, None));
        }
        for (search, fib) in tables(fib, &self.others) {
            let overhead = Samples::one(overhead_bytes_per_entry(fib));
            outcome.rows.push(overhead.row(CASE, search.name(), "bytes beyond the names", "per entry", None));
        }
        if let Some(mlps) = self.samples.get(&(FibSearch::default().name(), FibLookup::Batch.name(), LOOKUPS)) {
            outcome.add_steady("fib_mlps", mlps);
        }
        outcome.headline.insert("fib_overhead_bytes".to_owned(), overhead_bytes_per_entry(fib));
    }
}

/// All tables, the default first.
fn tables<'f>(fib: &'f Fib, others: &'f [(FibSearch, Fib)]) -> impl Iterator<Item = (FibSearch, &'f Fib)> {
    std::iter::once((FibSearch::default(), fib)).chain(others.iter().map(|(search, fib)| (*search, fib)))
}
