//! Compression: the properties of a collection of tag sets, and how far the table of its descriptors shrinks (Fig. 9a).
//!
//! The paper's vector without compression has a cell of 8 bytes for each node of the trie; so the saving by bit
//! permutation is that of nodes.

use std::collections::BTreeMap;

use super::forms::{CELL_BYTES, Form, Table};
use crate::experiment::Outcome;
use crate::tag_sets::{StoredSets, TagSource};

/// Sets of which the tags are counted.
const TAGS_SAMPLE: usize = 100_000;

/// What is known of a set of tag sets.
#[derive(Clone, Debug, Default)]
pub(super) struct Compression {
    pub(super) descriptors: u64,
    pub(super) mean_tags: f64,
    pub(super) mean_weight: f64,
    pub(super) permutation_percent: f64,
    pub(super) chain_percent: f64,
    /// Bytes for each descriptor, by form.
    pub(super) bytes: BTreeMap<String, f64>,
}

impl Compression {
    pub(super) fn of_sets(source: &dyn TagSource, stored: &StoredSets) -> Self {
        Compression {
            descriptors: stored.numbered.len() as u64,
            mean_tags: stored.mean_tags(source, TAGS_SAMPLE),
            mean_weight: stored.mean_weight(),
            ..Self::default()
        }
    }

    /// Adds what the tables tell, of which two must be the paper's with and without permutation of bits.
    ///
    /// `unpermuted_nodes` are those of a trie whose bits are in the order of the descriptor.
    pub(super) fn add_tables(&mut self, unpermuted_nodes: u64, tables: &[Table]) {
        let saved_percent = |before: f64, after: f64| 100.0 * (1.0 - after / before);
        let per_descriptor = |nodes: u64| (nodes * CELL_BYTES) as f64 / self.descriptors as f64;
        let plain = per_descriptor(unpermuted_nodes);
        self.bytes.insert(Form::Plain.to_string(), plain);
        for table in tables {
            if let (Form::Paper, Some(nodes)) = (table.form, table.nodes) {
                let permuted = per_descriptor(nodes);
                self.bytes.insert(Form::BitPermutation.to_string(), permuted);
                self.permutation_percent = saved_percent(plain, permuted);
                self.chain_percent = saved_percent(permuted, table.bytes_per_descriptor());
            }
            self.bytes.insert(table.form.to_string(), table.bytes_per_descriptor());
        }
    }

    /// The rows of this set, and those of the parts of each table.
    pub(super) fn add_rows(&self, case: &str, tables: &[Table], outcome: &mut Outcome) {
        for (metric, unit, value) in [
            ("descriptors", "", self.descriptors as f64),
            ("mean tags", "of a set", self.mean_tags),
            ("mean 1-bits", "of 192", self.mean_weight),
            ("memory saved by bit permutation", "%", self.permutation_percent),
            ("memory saved then by chain removal", "%", self.chain_percent),
        ] {
            outcome.add_value(case, "sets", (metric, unit), value);
        }
        for (form, bytes) in &self.bytes {
            outcome.add_value(case, form, ("memory", "bytes per descriptor"), *bytes);
        }
        for table in tables {
            for (part, bytes) in &table.parts {
                let per_descriptor = *bytes as f64 / table.descriptors.max(1) as f64;
                outcome.add_value(case, &table.form.to_string(), (part, "bytes per descriptor"), per_descriptor);
            }
        }
    }
}

/// The exponent at which the saving by bit permutation reaches `percent`, between two neighbours of the sweep on a
/// straight line; `None` if the sweep does not cross it.
pub(super) fn exponent_of(percent: f64, sweep: &[(f64, f64)]) -> Option<f64> {
    sweep.windows(2).find_map(|pair| {
        let [(before, low), (after, high)] = [pair[0], pair[1]];
        let crosses = (low..=high).contains(&percent) || (high..=low).contains(&percent);
        (crosses && low != high).then(|| before + (after - before) * (percent - low) / (high - low))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_is_interpolated() {
        let sweep = [(0.0, 10.0), (1.0, 20.0), (1.5, 50.0), (2.0, 40.0)];
        assert_eq!(exponent_of(15.0, &sweep), Some(0.5));
        assert_eq!(exponent_of(35.0, &sweep), Some(1.25));
        assert_eq!(exponent_of(9.0, &sweep), None);
    }
}
