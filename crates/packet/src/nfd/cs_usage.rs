//! CsUsage: the bytes that the Content Store takes, its policies of admission and eviction, and its counters by policy
//! and by prefix (dataset `cs/usage`).
//!
//! This dataset is ours: NFD's `cs/info` counts packets only, and its clients refuse unknown fields.

use super::{
    DatasetEntry,
    element::element,
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

/// The entry of `cs/usage`: 128 { 128 policy text, 131 limit, 132 bytes now, 133 admission text,
/// 134 bytes of the policy, 138 counts of a policy *, 139 counts of a prefix *, 140 prefixes looked up text,
/// 141 bytes of the prefix index }.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CsUsage {
    /// Eviction policy, for example `lru`.
    pub policy: String,
    /// Admission policy, for example `all`.
    pub admission: String,
    /// Limit in bytes.
    pub capacity_bytes: u64,
    /// Bytes of stored Data, as accounted.
    pub bytes: u64,
    /// Bytes of memory that the policy has mapped, beside the accounted ones.
    pub policy_bytes: u64,
    /// Counters by policy, in the order in which the policies were first in force.
    pub policies: Vec<CsPolicyUsage>,
    /// Counters of the prefixes that the configuration names.
    pub prefixes: Vec<CsPrefixUsage>,
    /// The prefixes under which the store finds Data: `own` or `all`.
    pub prefix_lookup: String,
    /// Bytes of memory mapped for `prefix_lookup`, beside the accounted ones.
    pub prefix_index_bytes: u64,
}

element! {
    element:
    /// 138 { 128 policy text, 133 admission text, 129 hits, 130 misses, 135 insertions, 136 not admitted,
    /// 137 evictions }: what happened while a policy was in force.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize))]
    pub struct CsPolicyUsage {
        /// Eviction policy.
        pub policy: String = CS_POLICY,
        /// Admission policy.
        pub admission: String = CS_ADMISSION,
        /// Interests answered.
        pub hits: u64 = CS_HITS,
        /// Interests not answered.
        pub misses: u64 = CS_MISSES,
        /// Data stored.
        pub insertions: u64 = CS_INSERTIONS,
        /// Data that the policy did not admit.
        pub not_admitted: u64 = CS_NOT_ADMITTED,
        /// Data evicted to make room.
        pub evictions: u64 = CS_EVICTIONS,
    }
}

element! {
    element:
    /// 139 { Name, 129 hits, 130 misses, 135 insertions }: what happened to names under a prefix.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize))]
    pub struct CsPrefixUsage {
        /// The prefix.
        pub prefix: NameBuf = NAME,
        /// Interests answered.
        pub hits: u64 = CS_HITS,
        /// Interests not answered.
        pub misses: u64 = CS_MISSES,
        /// Data stored.
        pub insertions: u64 = CS_INSERTIONS,
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
