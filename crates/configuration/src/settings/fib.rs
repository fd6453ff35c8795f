//! `[fib]`: the design that holds the FIB, and its options.

use super::choice::Choice;
use namewire_designs::fib::{
    FibPrefetch,
    catalogue::{FibDesign, FibDesignOptions},
    hash_tables::{MarkerMaintenance, PrefixHash, StringMatching},
    min_ascii::NameCodes,
    string_differentiation::DefaultRoute,
};
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU16, NonZeroU32};

/// `[fib]`. An omitted option has the value that makes the design fastest. An option that the design does not have is
/// an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FibSection {
    /// The design.
    pub design: Choice<FibDesign>,
    /// What the design fetches ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Choice<FibPrefetch>>,
    /// For Yuan15's tables: the hash of prefixes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Choice<PrefixHash>>,
    /// For Yuan15's tables: when names are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string_matching: Option<Choice<StringMatching>>,
    /// For Yuan15's tables: how markers are kept right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker_maintenance: Option<Choice<MarkerMaintenance>>,
    /// For the 2-stage search: M, the length with which it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_components: Option<NonZeroU16>,
    /// For Yuan15's tables: level pulling for prefixes with more children than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level_pulling: Option<NonZeroU32>,
    /// For `name-trie`: what its codes stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_codes: Option<Choice<NameCodes>>,
    /// For `fht` and `fpt`: bits of a fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint_bits: Option<u8>,
    /// For `fpt`: how many of the first components have a fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint_components: Option<u8>,
    /// For lossy designs: bits of what a prefix leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_bits: Option<u8>,
    /// For `sbpt` and `fpt`: how many components the prefixes in small leaves have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_components: Option<u16>,
    /// For `sbpt` and `fpt` with a default table: bits of a local fingerprint at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_bits: Option<u8>,
    /// For `sbpt` and `fpt`: bytes of the longest prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_bytes_max: Option<u16>,
    /// For lossy designs: what a route for the root prefix means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_route: Option<Choice<DefaultRoute>>,
}

impl FibSection {
    /// The options in the catalogue's form.
    pub fn options(&self) -> FibDesignOptions {
        FibDesignOptions {
            prefetch: self.prefetch.map(|choice| choice.0),
            hash: self.hash.map(|choice| choice.0),
            matching: self.string_matching.map(|choice| choice.0),
            maintenance: self.marker_maintenance.map(|choice| choice.0),
            first_components: self.first_components,
            level_pulling: self.level_pulling,
            name_codes: self.name_codes.map(|choice| choice.0),
            fingerprint_bits: self.fingerprint_bits,
            fingerprint_components: self.fingerprint_components,
            port_bits: self.port_bits,
            leaf_components: self.leaf_components,
            local_bits: self.local_bits,
            prefix_bytes_max: self.prefix_bytes_max,
            default_route: self.default_route.map(|choice| choice.0),
        }
    }
}
