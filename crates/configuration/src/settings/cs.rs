//! `[cs]`: the Content Store, its policy and the policy's options.

use super::choice::Choice;
use super::ranges::{
    counted_prefixes, filter_counters, filter_counters_per_name, filter_history, filter_threshold, request_count_least,
    tiny_lfu_window, w_tiny_lfu_window,
};
use crate::{text::Prefix, units::Bytes};
use namewire_designs::policies::{
    catalogue::{AdmissionName, EvictionName, PolicyChoice, PolicyOptions},
    filter::FilterOptions,
    request_count::RequestCountOptions,
    tiny_lfu::TinyLfuOptions,
    w_tiny_lfu::WTinyLfuOptions,
};
use namewire_engine::{EngineConfig, UnsolicitedPolicy};
use namewire_packet::NameBuf;
use namewire_tables::PrefixLookup;
use serde::{Deserialize, Serialize};

/// `[cs]`. Options of other policies than the chosen one are kept, because a command may choose those policies later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CsSection {
    /// Memory for cached Data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Bytes>,
    /// Most cached packets. Without it, there is no such limit if `capacity` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Which Data goes when the store is full.
    pub policy: Choice<EvictionName>,
    /// Which Data comes in when the store is full.
    pub admission: Choice<AdmissionName>,
    /// For `filter`: Interests that it remembers, over all workers.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "filter_history")]
    pub filter_history: Option<u32>,
    /// For `filter`: counters of each worker, a power of two.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "filter_counters")]
    pub filter_counters: Option<u32>,
    /// For `filter`: counters of a name, 1 as in the paper or 2.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "filter_counters_per_name")]
    pub filter_counters_per_name: Option<u8>,
    /// For `filter`: how often the remembered Interests must have the name.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "filter_threshold")]
    pub filter_threshold: Option<u16>,
    /// For `tiny-lfu`: Interests after which frequencies are halved, over all workers.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "tiny_lfu_window")]
    pub tiny_lfu_window: Option<u32>,
    /// For `w-tiny-lfu`: its fixed window, in percent of the entries. Without it, the window adapts itself.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "w_tiny_lfu_window")]
    pub w_tiny_lfu_window: Option<u8>,
    /// For `request-count`: Interests that must have waited for the Data.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "request_count_least")]
    pub request_count_least: Option<u32>,
    /// The prefixes of its name under which stored Data is found.
    pub prefix_lookup: Choice<PrefixLookup>,
    /// Prefixes whose look-ups and insertions are counted.
    #[serde(deserialize_with = "counted_prefixes")]
    pub count: Vec<Prefix>,
    /// Store what arrives.
    pub admit: bool,
    /// Answer from the store.
    pub serve: bool,
    /// What happens to unsolicited Data.
    pub unsolicited: Choice<UnsolicitedPolicy>,
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
            filter_counters_per_name: None,
            filter_threshold: None,
            tiny_lfu_window: None,
            w_tiny_lfu_window: None,
            request_count_least: None,
            prefix_lookup: Choice::default(),
            count: Vec::new(),
            admit: true,
            serve: true,
            unsolicited: Choice::default(),
        }
    }
}

impl CsSection {
    /// Prefixes whose look-ups in the Content Store are counted.
    pub fn counted_prefixes(&self) -> Vec<NameBuf> {
        self.count.iter().map(|prefix| prefix.0.clone()).collect()
    }

    /// The bytes and packets that the Content Store may hold.
    pub fn capacity(&self) -> (u64, u64) {
        let defaults = EngineConfig::default();
        let bytes = self.capacity.map_or(defaults.cs_capacity_bytes, |bytes| bytes.0);
        // If only bytes are given, the default number of packets must not limit the store.
        let packets_default = if self.capacity.is_some() { u64::MAX } else { defaults.cs_capacity_packets };
        (bytes, self.packets.unwrap_or(packets_default))
    }

    /// The policy in the catalogue's form.
    pub fn policy(&self) -> PolicyChoice {
        PolicyChoice {
            eviction: self.policy.0,
            admission: self.admission.0,
            options: PolicyOptions {
                filter: FilterOptions {
                    history: self.filter_history,
                    counters_log2: self.filter_counters.map(|counters| counters.ilog2() as u8),
                    threshold: self.filter_threshold,
                    counters_per_name: self.filter_counters_per_name,
                },
                tiny_lfu: TinyLfuOptions { window: self.tiny_lfu_window.map(u64::from) },
                w_tiny_lfu: WTinyLfuOptions { window_percent: self.w_tiny_lfu_window },
                request_count: RequestCountOptions { least: self.request_count_least },
                ..PolicyOptions::default()
            },
        }
    }
}
