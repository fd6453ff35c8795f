//! CsUsage: what the Content Store takes in octets, how it chooses what comes in and what goes,
//! and what it did under each of its policies and for prefixes (dataset `cs/usage`).
//!
//! This dataset is ours: NFD's `cs/info` counts packets only, and its clients refuse fields
//! that they do not know.

use super::{
    DatasetEntry,
    field::{Field, Fields, NfdError},
    numbers::types::{
        CAPACITY, CS_ADMISSION, CS_BY_POLICY, CS_BY_PREFIX, CS_BYTES, CS_EVICTIONS, CS_HITS, CS_INSERTIONS, CS_MISSES,
        CS_NOT_ADMITTED, CS_POLICY, CS_POLICY_BYTES, CS_PREFIX_INDEX_BYTES, CS_PREFIX_LOOKUP, DATASET_ENTRY,
    },
};
use crate::{
    NameBuf,
    tlv::{self, types::NAME},
};

/// The entry of `cs/usage`: 128 { 128 policy text, 131 limit, 132 octets now, 133 admission text,
/// 134 bytes of the policy, 138 counts of a policy *, 139 counts of a prefix *, 140 prefixes looked up text,
/// 141 bytes of the prefix index }.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsUsage {
    /// Which Data goes first, for example `lru`.
    pub policy: String,
    /// Which Data comes in, for example `all`.
    pub admission: String,
    /// Limit in octets.
    pub capacity_bytes: u64,
    /// What is stored, in octets as accounted.
    pub bytes: u64,
    /// Octets of memory that the policy has mapped, beside what is accounted.
    pub policy_bytes: u64,
    /// By policy, in the order in which they were first in force.
    pub policies: Vec<CsPolicyUsage>,
    /// By prefix, of those that are to be counted.
    pub prefixes: Vec<CsPrefixUsage>,
    /// Under which prefixes Data is found: `own` or `all`.
    pub prefix_lookup: String,
    /// Bytes of memory mapped for that, beside what is accounted.
    pub prefix_index_bytes: u64,
}

/// 138 { 128 policy text, 133 admission text, 129 hits, 130 misses, 135 insertions, 136 not admitted,
/// 137 evictions }: what happened while a policy was in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsPolicyUsage {
    /// Which Data went first.
    pub policy: String,
    /// Which Data came in.
    pub admission: String,
    /// Interests answered.
    pub hits: u64,
    /// Interests not answered.
    pub misses: u64,
    /// Data stored.
    pub insertions: u64,
    /// Data that the policy did not let in.
    pub not_admitted: u64,
    /// Data that went for others.
    pub evictions: u64,
}

/// 139 { Name, 129 hits, 130 misses, 135 insertions }: what happened to names under a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsPrefixUsage {
    /// The prefix.
    pub prefix: NameBuf,
    /// Interests answered.
    pub hits: u64,
    /// Interests not answered.
    pub misses: u64,
    /// Data stored.
    pub insertions: u64,
}

impl Field for CsPolicyUsage {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_nested(out, type_number, |out| {
            self.policy.write(out, CS_POLICY);
            self.admission.write(out, CS_ADMISSION);
            self.hits.write(out, CS_HITS);
            self.misses.write(out, CS_MISSES);
            self.insertions.write(out, CS_INSERTIONS);
            self.not_admitted.write(out, CS_NOT_ADMITTED);
            self.evictions.write(out, CS_EVICTIONS);
        });
    }
    fn read(_: u32, value: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_value(value)?;
        Ok(CsPolicyUsage {
            policy: fields.required(CS_POLICY)?,
            admission: fields.required(CS_ADMISSION)?,
            hits: fields.required(CS_HITS)?,
            misses: fields.required(CS_MISSES)?,
            insertions: fields.required(CS_INSERTIONS)?,
            not_admitted: fields.required(CS_NOT_ADMITTED)?,
            evictions: fields.required(CS_EVICTIONS)?,
        })
    }
}

impl Field for CsPrefixUsage {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_nested(out, type_number, |out| {
            self.prefix.write(out, NAME);
            self.hits.write(out, CS_HITS);
            self.misses.write(out, CS_MISSES);
            self.insertions.write(out, CS_INSERTIONS);
        });
    }
    fn read(_: u32, value: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_value(value)?;
        Ok(CsPrefixUsage {
            prefix: fields.required(NAME)?,
            hits: fields.required(CS_HITS)?,
            misses: fields.required(CS_MISSES)?,
            insertions: fields.required(CS_INSERTIONS)?,
        })
    }
}

impl DatasetEntry for CsUsage {
    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, DATASET_ENTRY, |out| {
            self.policy.write(out, CS_POLICY);
            self.capacity_bytes.write(out, CAPACITY);
            self.bytes.write(out, CS_BYTES);
            self.admission.write(out, CS_ADMISSION);
            self.policy_bytes.write(out, CS_POLICY_BYTES);
            self.policies.iter().for_each(|policy| policy.write(out, CS_BY_POLICY));
            self.prefixes.iter().for_each(|prefix| prefix.write(out, CS_BY_PREFIX));
            self.prefix_lookup.write(out, CS_PREFIX_LOOKUP);
            self.prefix_index_bytes.write(out, CS_PREFIX_INDEX_BYTES);
        });
    }

    /// An entry of an older router has the first three fields only.
    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, DATASET_ENTRY)?;
        Ok(CsUsage {
            policy: fields.required(CS_POLICY)?,
            admission: fields.optional(CS_ADMISSION)?.unwrap_or_else(|| "all".to_owned()),
            capacity_bytes: fields.required(CAPACITY)?,
            bytes: fields.required(CS_BYTES)?,
            policy_bytes: fields.optional(CS_POLICY_BYTES)?.unwrap_or_default(),
            policies: fields.all(CS_BY_POLICY)?,
            prefixes: fields.all(CS_BY_PREFIX)?,
            prefix_lookup: fields.optional(CS_PREFIX_LOOKUP)?.unwrap_or_else(|| "own".to_owned()),
            prefix_index_bytes: fields.optional(CS_PREFIX_INDEX_BYTES)?.unwrap_or_default(),
        })
    }
}
