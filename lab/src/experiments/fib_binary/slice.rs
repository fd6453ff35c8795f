//! Names of the worst case to look up, one slice at a time.

use anyhow::ensure;
use namewire_designs::fib::hash_tables::{HashTables, PrefixHashes};
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable as _};

use super::worst_case::WorstCase;
use crate::split_mix::split_mix;

/// Names of a slice. N.B. With 1,024 names a slice takes a millisecond. On a machine with other work (2 cores, load
/// 17), more than half of such slices were interrupted, so their median meant nothing.
pub(super) const SLICE_NAMES: usize = 256;
const _: () = assert!(SLICE_NAMES.is_multiple_of(DESIGN_BATCH_NAMES));

/// A slice of names in one buffer that was just written, and the results.
#[derive(Default)]
pub(super) struct Slice {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    numbers: Vec<u64>,
    found: Vec<Option<PrefixMatch>>,
}

impl Slice {
    /// Writes names from place `first` on of an endless random sequence of the names to look up.
    pub(super) fn write(&mut self, worst_case: WorstCase, first: u64) {
        self.bytes.clear();
        self.ends.clear();
        self.numbers.clear();
        for place in first..first + SLICE_NAMES as u64 {
            let number = split_mix(worst_case.seed.rotate_left(17) ^ place) % worst_case.looked_up();
            worst_case.push_name(number, &mut self.bytes);
            self.ends.push(self.bytes.len() as u32);
            self.numbers.push(number);
        }
        self.found.clear();
        self.found.resize(SLICE_NAMES, None);
    }

    pub(super) fn batch(&self, batch: usize) -> [&[u8]; DESIGN_BATCH_NAMES] {
        std::array::from_fn(|place| {
            let name = batch * DESIGN_BATCH_NAMES + place;
            let start = if name == 0 { 0 } else { self.ends[name - 1] };
            &self.bytes[start as usize..self.ends[name] as usize]
        })
    }

    pub(super) fn look_up(&mut self, table: &HashTables) {
        let mut found = std::mem::take(&mut self.found);
        for (batch, found) in found.chunks_exact_mut(DESIGN_BATCH_NAMES).enumerate() {
            table.longest_prefix_match_batch(&self.batch(batch), found);
        }
        self.found = found;
    }

    pub(super) fn look_up_hashed(&mut self, table: &HashTables, hashes: &[PrefixHashes]) {
        let mut found = std::mem::take(&mut self.found);
        for ((batch, found), hashes) in found.chunks_exact_mut(DESIGN_BATCH_NAMES).enumerate().zip(hashes) {
            table.longest_prefix_match_hashed(&self.batch(batch), hashes, found);
        }
        self.found = found;
    }

    pub(super) fn check(&self, worst_case: WorstCase) -> anyhow::Result<()> {
        let starts = std::iter::once(&0).chain(&self.ends);
        for (((&number, &found), start), end) in self.numbers.iter().zip(&self.found).zip(starts).zip(&self.ends) {
            let answer = Some(worst_case.answer(number, (end - start) as usize));
            ensure!(found == answer, "name {number}: {found:?} instead of {answer:?}");
        }
        Ok(())
    }
}
