//! CsUsage: the bytes that the Content Store takes, its policies of admission and eviction, and its counters by policy
//! and by prefix (dataset `cs/usage`).
//!
//! This dataset is ours: NFD's `cs/info` counts packets only, and its clients refuse unknown fields. An entry of an
//! older router has the first three fields only.

use super::element::element;
use crate::{NameBuf, tlv::types::NAME};

element! {
    dataset "cs/usage":
    /// The entry of `cs/usage`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CsUsage {
        /// Eviction policy, for example `lru`.
        pub policy: String = 128,
        pub capacity_bytes: u64 = 131 => Gauge: "Bytes that the Content Store may use.",
        pub bytes: u64 = 132 => Gauge: "Bytes that the Content Store uses.",
        /// Admission policy, for example `all`.
        pub admission: String = 133 or "all".to_owned(),
        /// Bytes of memory that the policy has mapped, beside the accounted ones.
        pub policy_bytes: u64 = 134 or 0,
        /// Counters by policy, in the order in which the policies were first in force.
        pub policies: Vec<CsPolicyUsage> = 138,
        /// Counters of the prefixes that the configuration names.
        pub prefixes: Vec<CsPrefixUsage> = 139,
        /// The prefixes under which the store finds Data: `own` or `all`.
        pub prefix_lookup: String = 140 or "own".to_owned(),
        /// Bytes of memory mapped for `prefix_lookup`, beside the accounted ones.
        pub prefix_index_bytes: u64 = 141 or 0,
    }
}

element! {
    element:
    /// What happened while a policy was in force.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CsPolicyUsage {
        /// Eviction policy.
        pub policy: String = 128,
        /// Admission policy.
        pub admission: String = 133,
        /// Interests answered.
        pub hits: u64 = 129,
        /// Interests not answered.
        pub misses: u64 = 130,
        /// Data stored.
        pub insertions: u64 = 135,
        /// Data that the policy did not admit.
        pub not_admitted: u64 = 136,
        /// Data evicted to make room.
        pub evictions: u64 = 137,
    }
}

element! {
    element:
    /// What happened to names under a prefix.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CsPrefixUsage {
        /// The prefix.
        pub prefix: NameBuf = NAME,
        pub hits: u64 = 129 => Counter: "Interests under the prefix that it answered.",
        pub misses: u64 = 130 => Counter: "Interests under the prefix not answered.",
        pub insertions: u64 = 135 => Counter: "Data packets stored under the prefix.",
    }
}
