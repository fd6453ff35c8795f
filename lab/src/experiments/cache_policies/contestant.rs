//! Contestants: the policies that are compared, and their names.
//!
//! A contestant is an admission before an eviction, written `admission/eviction`; an eviction that admits everything is
//! written alone. Every eviction of the catalogue is a contestant. Admissions are combined with the evictions of their
//! sources (Takemasa19 §5.4.1 and §5.4.2: Filter before FIFO and Random, TinyLFU before Random), and with modern
//! evictions.

use anyhow::Context as _;
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice, PolicyOptions};

/// A policy and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::experiments) struct Contestant {
    /// The name in records.
    pub(in crate::experiments) name: String,
    pub(in crate::experiments) policy: PolicyChoice,
}

/// Admissions and the evictions behind them.
const BEHIND: &[(&str, &[&str])] = &[
    ("filter", &["fifo", "random", "lru", "sieve"]),
    ("tiny-lfu", &["random", "fifo", "lru", "sieve"]),
    ("request-count", &["lru"]),
];

/// Window of TinyLFU per entry in Takemasa19 §5.4.2.
pub(super) const PAPERS_WINDOW_PER_ENTRY: u64 = 50;

impl Contestant {
    /// The contestant with this name.
    ///
    /// # Errors
    /// If there is no such policy.
    pub(in crate::experiments) fn named(name: &str) -> anyhow::Result<Self> {
        let (admission, eviction) = match name.split_once('/') {
            Some((admission, eviction)) => (admission.parse::<AdmissionName>()?, eviction),
            None => (AdmissionName::All, name),
        };
        let eviction = eviction.parse::<EvictionName>().with_context(|| format!("in '{name}'"))?;
        Ok(Self {
            name: name.to_owned(),
            policy: PolicyChoice { eviction, admission, options: PolicyOptions::default() },
        })
    }

    /// The same with the window of Takemasa19 §5.4.2, which halves TinyLFU's counts after 50 C requests.
    pub(in crate::experiments) fn with_papers_window(mut self, capacity: u32) -> Self {
        if self.policy.admission == AdmissionName::TinyLfu {
            self.policy.options.tiny_lfu.window = Some(PAPERS_WINDOW_PER_ENTRY * u64::from(capacity));
        }
        self
    }

    /// Whether the admission depends on the number of Interests that wait for a Data.
    pub(super) fn counts_waiting(&self) -> bool {
        self.policy.admission == AdmissionName::RequestCount
    }

    /// The router's default policy.
    pub(in crate::experiments) fn default_one() -> Self {
        let policy = PolicyChoice::default();
        let eviction = policy.eviction.name();
        let name = match policy.admission {
            AdmissionName::All => eviction.to_owned(),
            admission => format!("{}/{eviction}", admission.name()),
        };
        Self { name, policy }
    }

    /// All contestants, evictions first.
    ///
    /// # Errors
    /// If the catalogue lacks a policy of the table.
    pub(super) fn all() -> anyhow::Result<Vec<Self>> {
        let mut names: Vec<String> = EvictionName::ALL.iter().map(|eviction| eviction.name().to_owned()).collect();
        for (admission, evictions) in BEHIND {
            names.extend(evictions.iter().map(|eviction| format!("{admission}/{eviction}")));
        }
        let default = Self::default_one();
        if !names.contains(&default.name) {
            names.push(default.name.clone());
        }
        names.iter().map(|name| Self::named(name)).collect()
    }
}
