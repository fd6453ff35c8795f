//! The worst case of Yuan15 §3.4.1: names and tables in which every length that a search visits costs a bucket and
//! another name prefix entry.
//!
//! n names of k components of 6 to 10 random characters. Phase 1 inserts all but the first n / log₂(k + 1); their
//! markers share their entries. Phase 2 inserts the first ones, whose markers have separate entries; entries are stored
//! by length, so those of one name are far apart. Look-ups are for these names in random order: every search ends at a
//! leaf of k components.
//!
//! Deviation: the paper's phase 1 stores fingerprints without strings; such a table could not distinguish its names.
//! Here the table stores strings too, and is larger.

use anyhow::ensure;
use namewire_designs::fib::hash_tables::{HashTableOptions, HashTables, Sizes};
use namewire_tables::PageSize;
use namewire_tables::fib::{PrefixMatch, PrefixTable};

use crate::experiment::Context;
use crate::split_mix::split_mix;

/// Names that say how large entries are.
const SAMPLE_NAMES: u64 = 12_288;
/// Names that phase 2 stores together.
const PHASE_2_BATCH: u64 = 4096;
const COMPONENT_CHARACTERS: std::ops::RangeInclusive<u64> = 6..=10;
const ALPHABET: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
/// The paper's forwarding information: the number of an outgoing port, of 8 bits.
const PORTS: u64 = 256;

/// A data set: name number i is a function of (seed, i).
#[derive(Clone, Copy, Debug)]
pub(in crate::experiments) struct WorstCase {
    pub(in crate::experiments) seed: u64,
    /// n.
    pub(in crate::experiments) names: u64,
    /// k.
    pub(in crate::experiments) components: u64,
}

impl WorstCase {
    /// n / log₂(k + 1), the names of phase 2 and of the look-ups.
    pub(super) const fn looked_up(&self) -> u64 {
        self.names / (self.components + 1).ilog2() as u64
    }

    /// Appends name `number`.
    pub(super) fn push_name(&self, number: u64, out: &mut Vec<u8>) {
        let mut random = split_mix(self.seed ^ split_mix(number));
        for _ in 0..self.components {
            random = split_mix(random);
            let (least, most) = (*COMPONENT_CHARACTERS.start(), *COMPONENT_CHARACTERS.end());
            let characters = least + split_mix(!random) % (most - least + 1);
            out.extend_from_slice(&[8, characters as u8]);
            out.extend((0..characters).map(|place| ALPHABET[(random >> (6 * place)) as usize % 64]));
        }
    }

    /// The right answer for name `number` of `bytes` bytes.
    pub(super) fn answer(&self, number: u64, bytes: usize) -> PrefixMatch {
        PrefixMatch { number: (number % PORTS) as u32, prefix_bytes: bytes as u16 }
    }

    /// A table with all names, made for its names.
    pub(in crate::experiments) fn populate(
        &self,
        options: HashTableOptions,
        context: &Context,
    ) -> anyhow::Result<HashTables> {
        let sizes = self.sizes(options, context)?;
        let mut table = HashTables::with_sizes(self.names as usize, [self.seed, !self.seed], options, &sizes)?;
        self.fill(&mut table, context)?;
        Ok(table)
    }

    /// Room for all names: the fingerprints of one name n times, and entries as large as those of some names are on
    /// average, and a hundredth.
    pub(in crate::experiments) fn sizes(&self, options: HashTableOptions, context: &Context) -> anyhow::Result<Sizes> {
        let some = Self { names: self.names.min(SAMPLE_NAMES), ..*self };
        let options = HashTableOptions { pages: PageSize::Base, ..options };
        let mut table = HashTables::new(some.names as usize, [0, 0], options)?;
        some.fill(&mut table, context)?;
        let table_prefixes =
            (0..=options.longest_components).map(|length| table.fingerprints_of(length).div_ceil(some.names as usize));
        Ok(Sizes {
            table_prefixes: table_prefixes.map(|prefixes| prefixes * self.names as usize).collect(),
            entry_bytes: table.entry_bytes() * self.names / some.names / 100 * 101,
        })
    }

    fn fill(&self, table: &mut HashTables, context: &Context) -> anyhow::Result<()> {
        let mut name = Vec::new();
        for number in self.looked_up()..self.names {
            name.clear();
            self.push_name(number, &mut name);
            table.insert(&name, (number % PORTS) as u32)?;
            if number % PHASE_2_BATCH == 0 {
                context.check_interrupt()?;
            }
        }
        let mut first = 0;
        while first < self.looked_up() {
            let end = self.looked_up().min(first + PHASE_2_BATCH);
            let names: Vec<Vec<u8>> = (first..end)
                .map(|number| {
                    let mut name = Vec::new();
                    self.push_name(number, &mut name);
                    name
                })
                .collect();
            let batch: Vec<(&[u8], u32)> =
                names.iter().zip(first..end).map(|(name, number)| (&name[..], (number % PORTS) as u32)).collect();
            table.insert_with_marker_entries(&batch)?;
            context.check_interrupt()?;
            first = end;
        }
        ensure!(table.len() as u64 == self.names, "two names are the same");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;
    use namewire_designs::fib::hash_tables::HashSearch;

    #[test]
    fn the_population_is_the_paper_s() -> anyhow::Result<()> {
        let worst_case = WorstCase { seed: 3, names: 6_000, components: 7 };
        assert_eq!(worst_case.looked_up(), 2_000, "n / 3");
        let context = Context::new(Scale::Smoke, 1, vec![1], std::path::PathBuf::new());
        let options = HashTableOptions { longest_components: 7, ..HashTableOptions::CITY_A };
        let table = worst_case.populate(options, &context)?;
        assert_eq!(table.fingerprints(), 18_000, "3 n, at lengths 4, 6 and 7");
        assert_eq!([4, 6, 7].map(|length| table.fingerprints_of(length)), [6_000; 3]);
        let lines = 6_000 / 4 * 110 / 100;
        assert_eq!(table.table_bytes(), 3 * usize::next_multiple_of(lines * 64, 4096), "n / 4 and 10 %, none doubled");
        let linear = HashTableOptions { search: HashSearch::ShortestFirst, ..options };
        assert_eq!(worst_case.populate(linear, &context)?.fingerprints(), 42_000);
        let mut bytes = 0;
        for number in 0..6_000 {
            let mut name = Vec::new();
            worst_case.push_name(number, &mut name);
            bytes += name.len() - 14;
            let mut found = [None];
            table.longest_prefix_match_batch(&[&name], &mut found);
            assert_eq!(found, [Some(worst_case.answer(number, name.len()))]);
        }
        let characters = bytes as f64 / 42_000.0;
        assert!((characters - 8.0).abs() < 0.1, "6 to 10 characters, {characters} on average");
        Ok(())
    }
}
