//! How long does a FIB look-up alone take?
//!
//! The table is the papers' (see [`crate::synthetic_names`]) and larger than the caches;
//! names never repeat within a run, so that every look-up finds its bucket and its entry
//! in memory. A slice of names is written shortly before it is timed, as the names of
//! received packets would be, and stays in the second-level cache meanwhile. Variants
//! take turns by slices, so that whatever else the machine does falls on all of them.
//!
//! Every answer is checked: the entry found must be the prefix that the name was made of.
//!
//! What the numbers do not say: a router also spends lines on packets, PIT and store
//! (see `prefetch`), and its names repeat.

use anyhow::{Context as _, ensure};
use namewire_tables::{Fib, FibConfig, FibReader, FibView, HashKey, NameBatch, NameHashes, NextHop};
use std::ops::Range;

use crate::clock::Clock;
use crate::synthetic_names::{NAME_VALUE_OCTETS, SyntheticNames};

/// Names of a slice: 79 KB of them.
pub const SLICE_NAMES: usize = 1024;
/// Names that go through the stages together.
const BATCH_NAMES: usize = 64;
const _: () = assert!(SLICE_NAMES.is_multiple_of(BATCH_NAMES));
/// The face that every prefix leads to.
const FACE: u64 = 256;
/// Different next-hop sets.
const COSTS: u64 = 4;

/// How the look-ups of a slice are done, and whether hashing the names is part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FibLookup {
    /// One name after the other, longest prefix first, nothing prefetched.
    Naive,
    /// The same with hashes at hand.
    NaiveHashed,
    /// Batches, each stage over the whole batch.
    Batch,
    /// The same with hashes at hand.
    BatchHashed,
}

impl FibLookup {
    /// Every variant.
    pub const ALL: [Self; 4] = [Self::Naive, Self::NaiveHashed, Self::Batch, Self::BatchHashed];

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::NaiveHashed => "naive, precomputed hashes",
            Self::Batch => "batch",
            Self::BatchHashed => "batch, precomputed hashes",
        }
    }

    const fn hashes_beforehand(self) -> bool {
        matches!(self, Self::NaiveHashed | Self::BatchHashed)
    }
}

/// A FIB of `config` with every prefix of `names`, and four different next-hop sets.
///
/// # Errors
/// If it does not fit, or `check` says so (called now and then).
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

/// What prefix `number` leads to at first.
pub const fn next_hop(number: u64) -> NextHop {
    NextHop { face: FACE, cost: number % COSTS }
}

/// (All octets of the FIB − octets of the names) / entries.
pub fn overhead_bytes_per_entry(fib: &Fib) -> f64 {
    (fib.bytes() - fib.name_bytes()) as f64 / fib.len().max(1) as f64
}

/// The names of a batch, hashed as the search comes to them.
struct Names<'n> {
    octets: &'n [u8],
    hashes: &'n mut [NameHashes],
    /// `None`: they are hashed.
    key: Option<&'n HashKey>,
    refused: bool,
}

impl Names<'_> {
    fn octets(&self, name: usize) -> &[u8] {
        &self.octets[name * NAME_VALUE_OCTETS..][..NAME_VALUE_OCTETS]
    }
}

impl NameBatch for Names<'_> {
    fn make_ready(&mut self, names: Range<usize>) {
        let Some(key) = self.key else { return };
        for name in names {
            let octets = &self.octets[name * NAME_VALUE_OCTETS..][..NAME_VALUE_OCTETS];
            self.refused |= self.hashes[name].compute(key, octets).is_err();
        }
    }

    fn is_wanted(&mut self, _: usize) -> bool {
        true
    }

    fn hashes(&self, name: usize) -> &NameHashes {
        &self.hashes[name]
    }

    fn name_value(&self, name: usize) -> &[u8] {
        self.octets(name)
    }
}

/// Looks names up, slice by slice; buffers for one thread.
pub struct FibLookups {
    names: SyntheticNames,
    next_name: u64,
    octets: Vec<u8>,
    hashes: Vec<NameHashes>,
    matched_octets: Vec<u32>,
}

impl FibLookups {
    /// Names of this population from number `first_name` on.
    pub fn new(names: SyntheticNames, first_name: u64) -> Self {
        Self {
            names,
            next_name: first_name,
            octets: Vec::new(),
            hashes: vec![NameHashes::default(); SLICE_NAMES],
            matched_octets: vec![0; SLICE_NAMES],
        }
    }

    /// Looks the next [`SLICE_NAMES`] names up and says how many nanoseconds it took.
    ///
    /// # Errors
    /// If an answer is wrong.
    pub fn slice(&mut self, view: FibView<'_>, lookup: FibLookup, clock: &Clock) -> anyhow::Result<u64> {
        let first_name = self.next_name;
        self.prepare();
        if lookup.hashes_beforehand() {
            for (name, hashes) in self.octets.chunks_exact(NAME_VALUE_OCTETS).zip(&mut self.hashes) {
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

    /// The same in batches, hashing included, while the FIB may be written: the reader is
    /// pinned for each batch, as a worker is. The time is what `now_ns` tells.
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
        self.octets.clear();
        let mut name = Vec::with_capacity(NAME_VALUE_OCTETS);
        for _ in 0..SLICE_NAMES {
            self.names.write_name(self.next_name, &mut name);
            self.octets.extend_from_slice(&name);
            self.next_name += 1;
        }
    }

    fn one_by_one(&mut self, view: FibView<'_>, lookup: FibLookup, batch: usize) -> anyhow::Result<()> {
        for place in batch * BATCH_NAMES..(batch + 1) * BATCH_NAMES {
            let name = &self.octets[place * NAME_VALUE_OCTETS..][..NAME_VALUE_OCTETS];
            let hashes = &mut self.hashes[place];
            if !lookup.hashes_beforehand() {
                hashes.compute(view.key(), name)?;
            }
            let found = view.longest_prefix_match(name, hashes);
            self.matched_octets[place] = found.map_or(0, |found| found.prefix_octets as u32);
        }
        Ok(())
    }

    fn batch(&mut self, view: FibView<'_>, lookup: FibLookup, batch: usize) -> anyhow::Result<()> {
        let first = batch * BATCH_NAMES;
        let octets = &self.octets[first * NAME_VALUE_OCTETS..][..BATCH_NAMES * NAME_VALUE_OCTETS];
        // Those of a batch in the first-level cache, as a router has them, unless they were made before.
        let first_hashes = if lookup.hashes_beforehand() { first } else { 0 };
        let hashes = &mut self.hashes[first_hashes..][..BATCH_NAMES];
        let mut names =
            Names { octets, hashes, key: (!lookup.hashes_beforehand()).then_some(view.key()), refused: false };
        let mut candidates = [None; BATCH_NAMES];
        view.candidates(BATCH_NAMES, &mut names, &mut candidates);
        ensure!(!names.refused, "a synthetic name is too long");
        for (place, candidate) in candidates.into_iter().enumerate() {
            let found = view.longest_prefix_match_hinted(names.octets(place), names.hashes(place), candidate);
            self.matched_octets[first + place] = found.map_or(0, |found| found.prefix_octets as u32);
        }
        Ok(())
    }

    /// An entry was compared with the name, so that its length tells which prefix it is.
    fn check(&self, first_name: u64) -> anyhow::Result<()> {
        let mut prefix = Vec::new();
        for (number, &matched) in (first_name..).zip(&self.matched_octets) {
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
