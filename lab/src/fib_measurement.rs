//! Measures the time of FIB look-ups alone.
//!
//! The table holds the papers' prefixes (see [`crate::synthetic_names`]) and exceeds the caches. Names never repeat
//! within a run, so every look-up fetches its bucket and its entry from memory. A slice of names is written shortly
//! before it is timed, as if the names had just been received, and stays in the L2 cache. Variants take turns slice by
//! slice, so that a disturbance of the machine affects all of them.
//!
//! Every answer is checked: the entry found must be the prefix from which the name was made.
//!
//! Limits: a router also spends cache lines on packets, PIT and Content Store (see `prefetch`), and its names repeat.

use std::array;

use anyhow::{Context as _, ensure};
use namewire_tables::fib::{BatchLookUp, steps};
use namewire_tables::{Fib, FibConfig, FibHint, FibReader, FibView, HashKey, NameHashes, NextHop};

use crate::clock::Clock;
use crate::synthetic_names::{NAME_VALUE_BYTES, SyntheticNames};

/// Names of a slice: 79 KB of them.
pub const SLICE_NAMES: usize = 1024;
/// Names that go through the stages together.
const BATCH_NAMES: usize = 64;
const _: () = assert!(SLICE_NAMES.is_multiple_of(BATCH_NAMES));
/// The face that every prefix leads to.
const FACE: u64 = 256;
/// Different next-hop sets.
const COSTS: u64 = 4;

namewire_packet::names! {
    /// How the look-ups of a slice run, and whether the time includes hashing the names.
    pub enum FibLookup {
        /// One name after the other, longest prefix first, without prefetching.
        Naive = "naive",
        /// The same with precomputed hashes.
        NaiveHashed = "naive, precomputed hashes",
        /// Batches: each stage runs over the whole batch.
        Batch = "batch",
        /// The same with precomputed hashes.
        BatchHashed = "batch, precomputed hashes",
    }
}

impl FibLookup {
    const fn hashes_beforehand(self) -> bool {
        matches!(self, Self::NaiveHashed | Self::BatchHashed)
    }
}

/// A FIB of `config` with every prefix of `names` and four different next-hop sets.
///
/// # Errors
/// If the prefixes do not fit, or if `check`, which is called regularly, fails.
pub fn populate(
    names: SyntheticNames,
    config: FibConfig,
    key: HashKey,
    check: &dyn Fn() -> anyhow::Result<()>,
) -> anyhow::Result<Fib> {
    let pages = config.pages.name();
    let mut fib = Fib::with_config(config, key).with_context(|| format!("a FIB on {pages} pages"))?;
    let mut prefix = Vec::new();
    for number in 0..names.prefixes() {
        names.write_prefix(number, &mut prefix);
        fib.insert(&prefix, &[next_hop(number)], 0, false)?;
        if number % 65_536 == 0 {
            check()?;
        }
    }
    ensure!(fib.len() as u64 == names.prefixes(), "two prefixes are the same");
    Ok(fib)
}

/// The first next hop of prefix `number`.
pub const fn next_hop(number: u64) -> NextHop {
    NextHop { face: FACE, cost: number % COSTS }
}

/// (All bytes of the FIB − bytes of the names) / entries.
pub fn overhead_bytes_per_entry(fib: &Fib) -> f64 {
    (fib.bytes() - fib.name_bytes()) as f64 / fib.len().max(1) as f64
}

/// Looks up names slice by slice; holds the buffers of one thread.
pub struct FibLookups {
    names: SyntheticNames,
    next_name: u64,
    bytes: Vec<u8>,
    hashes: Vec<NameHashes>,
    matched_bytes: Vec<u32>,
}

impl FibLookups {
    /// Names of this population from number `first_name` on.
    pub fn new(names: SyntheticNames, first_name: u64) -> Self {
        Self {
            names,
            next_name: first_name,
            bytes: Vec::new(),
            hashes: vec![NameHashes::default(); SLICE_NAMES],
            matched_bytes: vec![0; SLICE_NAMES],
        }
    }

    /// Looks up the next [`SLICE_NAMES`] names; returns the nanoseconds taken.
    ///
    /// # Errors
    /// If an answer is wrong.
    pub fn slice(&mut self, view: FibView<'_>, lookup: FibLookup, clock: &Clock) -> anyhow::Result<u64> {
        let first_name = self.next_name;
        self.prepare();
        if lookup.hashes_beforehand() {
            for (name, hashes) in self.bytes.chunks_exact(NAME_VALUE_BYTES).zip(&mut self.hashes) {
                hashes.compute(view.key(), name)?;
            }
        }
        let started_ns = clock.now_ns();
        for batch in 0..SLICE_NAMES / BATCH_NAMES {
            match lookup {
                FibLookup::Naive | FibLookup::NaiveHashed => self.one_by_one(view, lookup, batch)?,
                FibLookup::Batch | FibLookup::BatchHashed => self.batch(view, lookup, batch)?,
            }
        }
        let took_ns = clock.now_ns() - started_ns;
        self.check(first_name)?;
        Ok(took_ns)
    }

    /// The same in batches, hashing included, while another thread may write the FIB: the reader is pinned for each
    /// batch, as in a worker. `now_ns` is the clock.
    ///
    /// # Errors
    /// If an answer is wrong.
    pub fn slice_while_written(&mut self, reader: &mut FibReader, now_ns: impl Fn() -> u64) -> anyhow::Result<u64> {
        let first_name = self.next_name;
        self.prepare();
        let started_ns = now_ns();
        for batch in 0..SLICE_NAMES / BATCH_NAMES {
            let pin = reader.pin();
            self.batch(pin.view(), FibLookup::Batch, batch)?;
        }
        let took_ns = now_ns() - started_ns;
        self.check(first_name)?;
        Ok(took_ns)
    }

    fn prepare(&mut self) {
        self.bytes.clear();
        let mut name = Vec::with_capacity(NAME_VALUE_BYTES);
        for _ in 0..SLICE_NAMES {
            self.names.write_name(self.next_name, &mut name);
            self.bytes.extend_from_slice(&name);
            self.next_name += 1;
        }
    }

    fn one_by_one(&mut self, view: FibView<'_>, lookup: FibLookup, batch: usize) -> anyhow::Result<()> {
        for place in batch * BATCH_NAMES..(batch + 1) * BATCH_NAMES {
            let name = &self.bytes[place * NAME_VALUE_BYTES..][..NAME_VALUE_BYTES];
            let hashes = &mut self.hashes[place];
            if !lookup.hashes_beforehand() {
                hashes.compute(view.key(), name)?;
            }
            let found = view.longest_prefix_match(name, hashes);
            self.matched_bytes[place] = found.map_or(0, |found| found.prefix_bytes as u32);
        }
        Ok(())
    }

    fn batch(&mut self, view: FibView<'_>, lookup: FibLookup, batch: usize) -> anyhow::Result<()> {
        let first = batch * BATCH_NAMES;
        let bytes = &self.bytes[first * NAME_VALUE_BYTES..][..BATCH_NAMES * NAME_VALUE_BYTES];
        // Without precomputed hashes, all batches use the hashes of the first: they stay in the L1 cache, as in a
        // router.
        let first_hashes = if lookup.hashes_beforehand() { first } else { 0 };
        let hashes = &mut self.hashes[first_hashes..][..BATCH_NAMES];
        let name_value = |name: usize| &bytes[name * NAME_VALUE_BYTES..][..NAME_VALUE_BYTES];
        let matched_bytes = &mut self.matched_bytes[first..][..BATCH_NAMES];
        let mut compare = |hashes: &[NameHashes], found: &[Option<FibHint<'_>>]| {
            for (place, &candidate) in found.iter().enumerate() {
                let found = view.longest_prefix_match_hinted(name_value(place), &hashes[place], candidate);
                matched_bytes[place] = found.map_or(0, |found| found.prefix_bytes as u32);
            }
        };
        match view.batch_look_up() {
            BatchLookUp::Stepped(table) => {
                let mut search = table.search();
                for step in steps(BATCH_NAMES) {
                    if !lookup.hashes_beforehand() {
                        for name in step.ready {
                            hashes[name].compute(view.key(), name_value(name))?;
                        }
                    }
                    for name in step.begin {
                        hashes[name].make_known(table.wanted_lengths());
                        search.begin(name, &hashes[name]);
                    }
                    search.step(hashes);
                }
                search.finish(hashes);
                let mut found = [None; BATCH_NAMES];
                search.found().for_each(|(name, hint)| found[name] = Some(hint));
                compare(hashes, &found);
            }
            BatchLookUp::AtOnce(table) => {
                if !lookup.hashes_beforehand() {
                    for (name, hashes) in hashes.iter_mut().enumerate() {
                        hashes.compute(view.key(), name_value(name))?;
                    }
                }
                let mut found = [None; BATCH_NAMES];
                table.look_up(&array::from_fn::<_, BATCH_NAMES, _>(name_value), &mut found);
                compare(hashes, &found);
            }
        }
        Ok(())
    }

    /// The search compared the entry with the name, so the length of the match identifies the prefix.
    fn check(&self, first_name: u64) -> anyhow::Result<()> {
        let mut prefix = Vec::new();
        for (number, &matched) in (first_name..).zip(&self.matched_bytes) {
            self.names.write_prefix(self.names.prefix_of_name(number), &mut prefix);
            ensure!(matched as usize == prefix.len(), "name {number}: the longest match is another prefix");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_finds_what_is_there_and_notices_what_is_not() {
        let names = SyntheticNames::new(3, 5_000);
        let mut fib = populate(names, FibConfig::new(5_000), HashKey::from_seed(1), &|| Ok(())).expect("fits");
        let overhead = overhead_bytes_per_entry(&fib);
        assert!((16.0..40.0).contains(&overhead), "{overhead} bytes per entry");
        let clock = Clock::calibrate();
        let mut lookups = FibLookups::new(names, 0);
        for lookup in FibLookup::ALL {
            assert!(lookups.slice(fib.view(), lookup, &clock).is_ok_and(|took_ns| took_ns > 0), "{lookup:?}");
        }
        let mut prefix = Vec::new();
        names.write_prefix(names.prefix_of_name(lookups.next_name + 17), &mut prefix);
        assert_eq!(fib.remove(&prefix), Ok(true));
        for lookup in FibLookup::ALL {
            let mut again = FibLookups::new(names, lookups.next_name);
            assert!(again.slice(fib.view(), lookup, &clock).is_err(), "{lookup:?}");
        }
    }
}
