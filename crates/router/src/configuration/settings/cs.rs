//! `[cs]`: the Content Store, its policy and what that is made with.

use super::super::{text::Prefix, units::Octets};
use super::fib::{Choice, Named};
use super::ranges::{
    counted_prefixes, filter_counters, filter_history, filter_threshold, request_count_least, tiny_lfu_window,
    w_tiny_lfu_window,
};
use namewire_tables::PrefixLookup;
use namewire_tables::cs_policy::{
    catalogue::{AdmissionName, CsPolicy, EvictionName, PolicyOptions},
    filter::FilterOptions,
    request_count::RequestCountOptions,
    tiny_lfu::TinyLfuOptions,
    w_tiny_lfu::WTinyLfuOptions,
};
use serde::{Deserialize, Serialize};

/// `[cs]`. An option of a policy that is not chosen waits for the day when it is, by a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CsSection {
    /// Memory for cached Data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Octets>,
    /// Most cached packets; without it, no limit of their own if `capacity` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Which Data goes when the store is full.
    pub policy: Choice<EvictionName>,
    /// Which Data comes in when the store is full.
    pub admission: Choice<AdmissionName>,
    /// Of `filter`: Interests that it remembers, over all workers.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "filter_history")]
    pub filter_history: Option<u32>,
    /// Of `filter`: counters of each worker, a power of two.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "filter_counters")]
    pub filter_counters: Option<u32>,
    /// Of `filter`: how often a name must be among the Interests remembered.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "filter_threshold")]
    pub filter_threshold: Option<u16>,
    /// Of `tiny-lfu`: Interests after which frequencies are halved, over all workers.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "tiny_lfu_window")]
    pub tiny_lfu_window: Option<u32>,
    /// Of `w-tiny-lfu`: its window, in percent of the entries, always; without it the window climbs.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "w_tiny_lfu_window")]
    pub w_tiny_lfu_window: Option<u8>,
    /// Of `request-count`: Interests that must have waited for the Data.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "request_count_least")]
    pub request_count_least: Option<u32>,
    /// Under which prefixes of its name stored Data is found.
    pub prefix_lookup: Choice<PrefixLookup>,
    /// Prefixes whose look-ups and insertions are counted.
    #[serde(deserialize_with = "counted_prefixes")]
    pub count: Vec<Prefix>,
    /// Store what arrives.
    pub admit: bool,
    /// Answer from the store.
    pub serve: bool,
    /// What becomes of Data that nobody asked for.
    pub unsolicited: Unsolicited,
}

impl Default for CsSection {
    fn default() -> Self {
        CsSection {
            capacity: None,
            packets: None,
            policy: Choice::default(),
            admission: Choice::default(),
            filter_history: None,
            filter_counters: None,
            filter_threshold: None,
            tiny_lfu_window: None,
            w_tiny_lfu_window: None,
            request_count_least: None,
            prefix_lookup: Choice::default(),
            count: Vec::new(),
            admit: true,
            serve: true,
            unsolicited: Unsolicited::default(),
        }
    }
}

impl CsSection {
    /// The policy as the catalogue takes it.
    pub fn policy(&self) -> CsPolicy {
        CsPolicy {
            eviction: self.policy.0,
            admission: self.admission.0,
            options: PolicyOptions {
                filter: FilterOptions {
                    history: self.filter_history,
                    counters_log2: self.filter_counters.map(|counters| counters.ilog2() as u8),
                    threshold: self.filter_threshold,
                },
                tiny_lfu: TinyLfuOptions { window: self.tiny_lfu_window.map(u64::from) },
                w_tiny_lfu: WTinyLfuOptions { window_percent: self.w_tiny_lfu_window },
                request_count: RequestCountOptions { least: self.request_count_least },
            },
        }
    }
}

impl Named for EvictionName {
    const ALL: &'static [Self] = EvictionName::ALL;

    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Named for PrefixLookup {
    const ALL: &'static [Self] = PrefixLookup::ALL;

    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Named for AdmissionName {
    const ALL: &'static [Self] = AdmissionName::ALL;

    fn name(self) -> &'static str {
        self.as_str()
    }
}

/// What becomes of Data that nobody asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsolicited {
    /// It is dropped.
    #[default]
    DropAll,
    /// What local faces send is kept.
    AdmitLocal,
    /// What the network sends is kept.
    AdmitNetwork,
    /// All is kept.
    AdmitAll,
}
