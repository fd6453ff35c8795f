//! `[fib]`: the design that holds the FIB, and its options.

use namewire_tables::fib::designs::{
    FibPrefetch,
    catalogue::{FibDesign, FibDesignOptions},
    hash_tables::{MarkerMaintenance, PrefixHash, StringMatching},
    string_differentiation::DefaultRoute,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::num::{NonZeroU16, NonZeroU32};

/// `[fib]`. An option that is left out is what makes the design fastest; one that the design
/// does not have is an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FibSection {
    /// The design.
    pub design: Choice<FibDesign>,
    /// What it fetches ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Choice<FibPrefetch>>,
    /// Of Yuan15's tables: the hash of prefixes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Choice<PrefixHash>>,
    /// Of Yuan15's tables: when names are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string_matching: Option<Choice<StringMatching>>,
    /// Of Yuan15's tables: how markers are kept right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker_maintenance: Option<Choice<MarkerMaintenance>>,
    /// Of the 2-stage search: M, the length that it begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_components: Option<NonZeroU16>,
    /// Of Yuan15's tables: level pulling for prefixes with more children than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level_pulling: Option<NonZeroU32>,
    /// Of `fht`: bits of a fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint_bits: Option<u8>,
    /// Of `fht`: bits of what a prefix leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_bits: Option<u8>,
    /// Of lossy designs: what a route for the root prefix is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_route: Option<Choice<DefaultRoute>>,
}

impl FibSection {
    /// The options as the catalogue of designs takes them.
    pub fn options(&self) -> FibDesignOptions {
        FibDesignOptions {
            prefetch: self.prefetch.map(|choice| choice.0),
            hash: self.hash.map(|choice| choice.0),
            matching: self.string_matching.map(|choice| choice.0),
            maintenance: self.marker_maintenance.map(|choice| choice.0),
            first_components: self.first_components,
            level_pulling: self.level_pulling,
            fingerprint_bits: self.fingerprint_bits,
            port_bits: self.port_bits,
            default_route: self.default_route.map(|choice| choice.0),
        }
    }
}

/// One of some things with names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice<T>(pub T);

/// What has a name in the catalogue of designs.
pub trait Named: Copy + 'static {
    /// All that can be chosen.
    const ALL: &'static [Self];

    /// The name.
    fn name(self) -> &'static str;

    /// Which one has this name, also one that is not listed.
    fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }
}

impl Named for FibDesign {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }

    fn find(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

impl Named for FibPrefetch {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }
}

impl Named for PrefixHash {
    const ALL: &'static [Self] = &[Self::Sip, Self::City];

    fn name(self) -> &'static str {
        self.name()
    }
}

impl Named for DefaultRoute {
    const ALL: &'static [Self] = &[Self::Exact, Self::Speculative, Self::Followed];

    fn name(self) -> &'static str {
        self.name()
    }
}

impl Named for StringMatching {
    const ALL: &'static [Self] = &[Self::AtEnd, Self::Always];

    fn name(self) -> &'static str {
        self.name()
    }
}

impl Named for MarkerMaintenance {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }
}

impl<T: Named> Serialize for Choice<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de, T: Named> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        T::find(&name).map(Choice).ok_or_else(|| {
            // In serde's words, so that the nearest known one is suggested.
            let known: Vec<String> = T::ALL.iter().map(|known| format!("`{}`", known.name())).collect();
            D::Error::custom(format!("unknown variant `{name}`, expected one of {}", known.join(", ")))
        })
    }
}
