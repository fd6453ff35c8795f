//! FibUsage: which design holds the FIB, and what it takes (dataset `fib/usage`).
//!
//! This dataset is ours: NFD's `status/general` has the number of entries only, and its clients
//! refuse fields that they do not know.

use super::{
    DatasetEntry,
    field::{Field, Fields, NfdError},
    numbers::types::{CAPACITY, DATASET_ENTRY, FIB_BYTES, FIB_DESIGN, FIB_LOSSY},
};
use crate::tlv;

/// The entry of `fib/usage`: 128 { 128 design text, 131 most entries, 132 octets now, 133 1 if lossy }.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FibUsage {
    /// Its name in the configuration.
    pub design: String,
    /// Most entries.
    pub capacity_entries: u64,
    /// Octets of memory, of a design of both its copies.
    pub bytes: u64,
    /// Names without a route may be forwarded as if they had one.
    pub is_lossy: bool,
}

impl DatasetEntry for FibUsage {
    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, DATASET_ENTRY, |out| {
            self.design.write(out, FIB_DESIGN);
            self.capacity_entries.write(out, CAPACITY);
            self.bytes.write(out, FIB_BYTES);
            u64::from(self.is_lossy).write(out, FIB_LOSSY);
        });
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, DATASET_ENTRY)?;
        Ok(FibUsage {
            design: fields.required(FIB_DESIGN)?,
            capacity_entries: fields.required(CAPACITY)?,
            bytes: fields.required(FIB_BYTES)?,
            is_lossy: fields.required::<u64>(FIB_LOSSY)? != 0,
        })
    }
}
