//! `[fib]`: the design that holds the FIB, and its options.

use namewire_tables::fib::designs::catalogue::{FibDesign, FibDesignOptions, FibPrefetch, UnknownName};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::str::FromStr;

/// `[fib]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FibSection {
    /// The design.
    pub design: Choice<FibDesign>,
    /// What it fetches ahead; without it, what makes it fastest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Choice<FibPrefetch>>,
}

impl FibSection {
    /// The options as the catalogue of designs takes them.
    pub fn options(&self) -> FibDesignOptions {
        FibDesignOptions { prefetch: self.prefetch.map(|choice| choice.0), ..FibDesignOptions::default() }
    }
}

/// One of some things with names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice<T>(pub T);

/// What has a name in the catalogue of designs.
pub trait Named: Copy + FromStr<Err = UnknownName> {
    /// The name.
    fn name(self) -> &'static str;
}

impl Named for FibDesign {
    fn name(self) -> &'static str {
        self.name()
    }
}

impl Named for FibPrefetch {
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
        name.parse().map(Choice).map_err(|UnknownName(known)| {
            // In serde's words, so that the nearest known one is suggested.
            let known: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
            D::Error::custom(format!("unknown variant `{name}`, expected one of {}", known.join(", ")))
        })
    }
}
