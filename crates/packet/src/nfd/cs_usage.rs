//! CsUsage: what the Content Store takes in octets, and how it chooses what goes
//! (dataset `cs/usage`).
//!
//! This dataset is ours: NFD's `cs/info` counts packets only, and its clients refuse fields
//! that they do not know.

use super::{
    DatasetEntry,
    field::{Field, Fields, NfdError},
    numbers::types::{CAPACITY, CS_BYTES, CS_POLICY, DATASET_ENTRY},
};
use crate::tlv;

/// The entry of `cs/usage`: 128 { 128 policy text, 131 limit, 132 octets now }.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsUsage {
    /// Which Data goes first, for example `lru`.
    pub policy: String,
    /// Limit in octets.
    pub capacity_bytes: u64,
    /// What is stored, in octets as accounted.
    pub bytes: u64,
}

impl DatasetEntry for CsUsage {
    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, DATASET_ENTRY, |out| {
            self.policy.write(out, CS_POLICY);
            self.capacity_bytes.write(out, CAPACITY);
            self.bytes.write(out, CS_BYTES);
        });
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, DATASET_ENTRY)?;
        Ok(CsUsage {
            policy: fields.required(CS_POLICY)?,
            capacity_bytes: fields.required(CAPACITY)?,
            bytes: fields.required(CS_BYTES)?,
        })
    }
}
