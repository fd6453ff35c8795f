//! CsInfo: the Content Store's settings and counters (dataset `cs/info`).

use super::{
    DatasetEntry,
    field::{Field, Fields, NfdError},
    numbers::types::{CAPACITY, CS_HITS, CS_MISSES, DATASET_ENTRY, FLAGS, N_CS_ENTRIES},
};
use crate::tlv;

/// The Content Store, as `cs/info` shows it (management.md §6.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsInfo {
    /// Limit in packets.
    pub capacity: u64,
    /// [`super::cs_flags`].
    pub flags: u64,
    /// Data stored now.
    pub n_cs_entries: u64,
    /// Interests answered from the store.
    pub n_hits: u64,
    /// Interests looked up in vain.
    pub n_misses: u64,
}

impl DatasetEntry for CsInfo {
    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, DATASET_ENTRY, |out| {
            self.capacity.write(out, CAPACITY);
            self.flags.write(out, FLAGS);
            self.n_cs_entries.write(out, N_CS_ENTRIES);
            self.n_hits.write(out, CS_HITS);
            self.n_misses.write(out, CS_MISSES);
        });
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, DATASET_ENTRY)?;
        Ok(CsInfo {
            capacity: fields.required(CAPACITY)?,
            flags: fields.required(FLAGS)?,
            n_cs_entries: fields.required(N_CS_ENTRIES)?,
            n_hits: fields.required(CS_HITS)?,
            n_misses: fields.required(CS_MISSES)?,
        })
    }
}
