//! A choice: one of several named values, as files and options write them.
//!
//! The types are those of the tables and the engine, so the word in a file becomes their value directly.

use super::ethernet_io::EthernetIo;
use crate::log_levels::{LogArea, LogFormat, LogLevel};
use namewire_designs::fib::{
    FibPrefetch,
    catalogue::{FibDesign, UnknownName},
    hash_tables::{MarkerMaintenance, PrefixHash, StringMatching},
    min_ascii::NameCodes,
    string_differentiation::DefaultRoute,
};
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName};
use namewire_engine::{AnswersProbes, DataFrom, Schedule, UnsolicitedPolicy};
use namewire_tables::{PageSize, PrefixLookup};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A value written by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice<T>(pub T);

/// A type whose values have names.
pub trait Named: Copy + 'static {
    /// All values that can be chosen.
    const ALL: &'static [Self];

    /// The name.
    fn name(self) -> &'static str;

    /// The value with this name, even if it is not listed.
    fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }

    /// What to say about a name that was known once.
    fn dropped(name: &str) -> Option<String> {
        let _ = name;
        None
    }
}

/// Types that know their names themselves.
macro_rules! named {
    ($($type:ty: $all:expr;)+) => {$(
        impl $crate::settings::choice::Named for $type {
            const ALL: &'static [Self] = $all;

            fn name(self) -> &'static str {
                self.name()
            }
        }
    )+};
}

pub(super) use named;

named! {
    EvictionName: &Self::ALL;
    Schedule: &Self::ALL;
    AdmissionName: &Self::ALL;
    PrefixLookup: &Self::ALL;
    UnsolicitedPolicy: &Self::ALL;
    DataFrom: &Self::ALL;
    AnswersProbes: &Self::ALL;
    LogArea: &Self::ALL;
    LogFormat: &Self::ALL;
    LogLevel: &Self::ALL;
    EthernetIo: &Self::ALL;
    FibPrefetch: &Self::ALL;
    PrefixHash: &[Self::Sip, Self::City];
    StringMatching: &[Self::AtEnd, Self::Always];
    MarkerMaintenance: &Self::ALL;
    NameCodes: &Self::ALL;
    DefaultRoute: &[Self::Exact, Self::Speculative, Self::Followed];
}

impl Named for FibDesign {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }

    fn find(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    fn dropped(name: &str) -> Option<String> {
        match name.parse::<FibDesign>() {
            Err(UnknownName::Dropped(design)) => Some(design.to_string()),
            _ => None,
        }
    }
}

impl Named for PageSize {
    const ALL: &'static [Self] = &[Self::Transparent, Self::Base, Self::Huge2MiB, Self::Huge1GiB];

    fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            other => other.name(),
        }
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
            if let Some(message) = T::dropped(&name) {
                return D::Error::custom(message);
            }
            // In serde's words, so that the nearest known one is suggested.
            let known: Vec<String> = T::ALL.iter().map(|known| format!("`{}`", known.name())).collect();
            D::Error::custom(format!("unknown variant `{name}`, expected one of {}", known.join(", ")))
        })
    }
}
