//! Contestants: the policies that are compared, and their names.
//!
//! A contestant is an admission before an eviction, written `admission/eviction`; an eviction that admits everything is
//! written alone. Hit ratios: all pairs of the catalogue, 42 now. But `request-count` is only before LRU, because it
//! counts Interests that wait, and Data that comes at once leaves none waiting. Costs: the pairs of [`TIMED`].
//!
//! Two further Filters have no name in the router:
//! - [`PAPERS_FILTER`] has one counter for each name, as in Takemasa19 §5.2.3;
//! - [`CACHED_FILTER`] has so few counters that they stay in the processor's cache, for the cost of B2 alone.
//!
//! `w-tiny-lfu` with each of its windows fixed ([`Contestant::windows`]) shows what its adaptive window is worth. These
//! take no part in the choice of the default.

use anyhow::Context as _;
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice, PolicyOptions};
use namewire_designs::policies::filter::FilterOptions;
use namewire_designs::policies::w_tiny_lfu::{WINDOW_PERCENTS, WTinyLfuOptions};

/// A policy and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::experiments) struct Contestant {
    /// The name in records.
    pub(in crate::experiments) name: String,
    pub(in crate::experiments) policy: PolicyChoice,
}

/// The Filter of the paper before FIFO.
pub(super) const PAPERS_FILTER: &str = "filter-1/fifo";
/// A Filter of 2^12 counters, 8 KiB, before FIFO.
pub(super) const CACHED_FILTER: &str = "filter-cached/fifo";
/// See [`CACHED_FILTER`].
const CACHED_COUNTERS_LOG2: u8 = 12;

/// Pairs whose cost is measured: those of Takemasa19 §5.4, the modern ones and the default's neighbours.
const TIMED: [&str; 16] = [
    "fifo",
    "lru",
    "random",
    "clock",
    "sieve",
    "s3-fifo",
    "w-tiny-lfu",
    "adaptive-window",
    "arc",
    "lfu",
    "perfect-lfu",
    "filter/fifo",
    "filter/sieve",
    "tiny-lfu/random",
    PAPERS_FILTER,
    CACHED_FILTER,
];

/// Window of TinyLFU per entry in Takemasa19 §5.4.2.
pub(super) const PAPERS_WINDOW_PER_ENTRY: u64 = 50;

impl Contestant {
    /// The contestant with this name.
    ///
    /// # Errors
    /// If there is no such policy.
    pub(in crate::experiments) fn named(name: &str) -> anyhow::Result<Self> {
        let (admission, eviction) = name.split_once('/').unwrap_or((AdmissionName::All.name(), name));
        let filter = match name {
            PAPERS_FILTER => FilterOptions { counters_per_name: Some(1), ..FilterOptions::default() },
            CACHED_FILTER => FilterOptions { counters_log2: Some(CACHED_COUNTERS_LOG2), ..FilterOptions::default() },
            _ => FilterOptions::default(),
        };
        let is_filter = filter != FilterOptions::default();
        let admission = if is_filter { AdmissionName::Filter } else { admission.parse()? };
        let eviction = eviction.parse::<EvictionName>().with_context(|| format!("in '{name}'"))?;
        let options = PolicyOptions { filter, ..PolicyOptions::default() };
        Ok(Self { name: name.to_owned(), policy: PolicyChoice { eviction, admission, options } })
    }

    /// This eviction before this admission.
    fn pair(admission: AdmissionName, eviction: EvictionName) -> Self {
        let name = match admission {
            AdmissionName::All => eviction.name().to_owned(),
            admission => format!("{}/{}", admission.name(), eviction.name()),
        };
        Self { name, policy: PolicyChoice { eviction, admission, options: PolicyOptions::default() } }
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
        let PolicyChoice { eviction, admission, .. } = PolicyChoice::default();
        Self::pair(admission, eviction)
    }

    /// All pairs whose Data may come at once, evictions alone first.
    pub(super) fn pairs() -> Vec<Self> {
        let admissions = AdmissionName::ALL.into_iter().filter(|admission| *admission != AdmissionName::RequestCount);
        admissions.flat_map(|admission| EvictionName::ALL.map(|eviction| Self::pair(admission, eviction))).collect()
    }

    /// W-TinyLFU with a fixed window, for each window that the adaptive one may have.
    pub(super) fn windows() -> impl Iterator<Item = Self> {
        WINDOW_PERCENTS.into_iter().map(|percent| {
            let w_tiny_lfu = WTinyLfuOptions { window_percent: Some(percent) };
            let options = PolicyOptions { w_tiny_lfu, ..PolicyOptions::default() };
            let policy = PolicyChoice { eviction: EvictionName::WTinyLfu, options, ..PolicyChoice::default() };
            Self { name: format!("w-tiny-lfu, window {percent} %"), policy }
        })
    }

    /// Those that are simulated beside all pairs.
    ///
    /// # Errors
    /// If the catalogue lacks one of them.
    pub(super) fn beside() -> anyhow::Result<Vec<Self>> {
        ["request-count/lru", PAPERS_FILTER].into_iter().map(Self::named).collect()
    }

    /// Those whose cost is measured.
    ///
    /// # Errors
    /// If the catalogue lacks one of them.
    pub(super) fn timed() -> anyhow::Result<Vec<Self>> {
        TIMED.into_iter().map(Self::named).collect()
    }
}
