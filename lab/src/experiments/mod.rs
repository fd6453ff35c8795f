//! Every experiment: one file each with a TOML file, and one line each in the table of this file.

mod cache_forwarding;
mod cache_policies;
mod distributed_fib;
mod dram_model;
mod fib_all;
mod fib_binary;
mod fib_forwarding;
mod fib_pages;
mod fib_updates;
mod filter_model;
mod hash_flood;
mod hostile;
mod interest_flood;
mod io;
mod lanes;
mod level_pulling;
mod lossy_line;
mod nametrie;
pub(crate) mod packet_costs;
mod pit_fingerprint;
mod pit_model;
#[cfg(feature = "complete")]
mod pit_network;
mod power;
mod prefetch;
#[cfg(feature = "complete")]
mod repo;
#[cfg(feature = "complete")]
pub mod ring_crossing;
mod router_observed;
mod router_sockets;
#[cfg(feature = "complete")]
mod simulator;
mod streams;
mod string_differentiation;
#[cfg(feature = "complete")]
mod tag_locators;
#[cfg(feature = "complete")]
mod tag_matching;
#[cfg(feature = "complete")]
mod tag_traffic;
mod trie_depth;

pub use fib_all::own_design;

use std::sync::LazyLock;

use crate::experiment::Experiment;
use crate::experiment_file::{FiledExperiment as Entry, NoSize};

/// The experiments of this build, in the order in which `namewire-lab list` shows them.
pub static TABLE: LazyLock<Vec<Experiment>> = LazyLock::new(|| ENTRIES.iter().map(Entry::experiment).collect());

const ENTRIES: &[Entry] = if cfg!(feature = "complete") {
    ALL
} else {
    &[Entry::new::<packet_costs::Size>(packet_costs::FILE, packet_costs::run)]
};

const ALL: &[Entry] = &[
    Entry::new::<router_sockets::Size>(router_sockets::FILE, router_sockets::run),
    Entry::new::<router_observed::Size>(router_observed::FILE, router_observed::run),
    Entry::new::<lossy_line::Size>(lossy_line::FILE, lossy_line::run),
    Entry::new::<NoSize>(io::FILE, io::run),
    Entry::new::<lanes::Size>(lanes::FILE, lanes::run),
    Entry::new::<prefetch::Size>(prefetch::FILE, prefetch::run),
    Entry::new::<packet_costs::Size>(packet_costs::FILE, packet_costs::run),
    Entry::new::<streams::Size>(streams::FILE, streams::run),
    #[cfg(feature = "complete")]
    Entry::new::<NoSize>(ring_crossing::FILE, ring_crossing::run),
    Entry::new::<fib_all::Size>(fib_all::FILE, fib_all::run),
    Entry::new::<fib_forwarding::Size>(fib_forwarding::FILE, fib_forwarding::run),
    Entry::new::<fib_updates::Size>(fib_updates::FILE, fib_updates::run),
    Entry::new::<fib_pages::Size>(fib_pages::FILE, fib_pages::run),
    Entry::new::<level_pulling::Size>(level_pulling::FILE, level_pulling::run),
    Entry::new::<fib_binary::Size>(fib_binary::FILE, fib_binary::run),
    Entry::new::<NoSize>(dram_model::FILE, dram_model::run),
    Entry::new::<NoSize>(power::FILE, power::run),
    Entry::new::<string_differentiation::Size>(string_differentiation::FILE, string_differentiation::run),
    Entry::new::<trie_depth::Size>(trie_depth::FILE, trie_depth::run),
    Entry::new::<distributed_fib::Size>(distributed_fib::FILE, distributed_fib::run),
    Entry::new::<hash_flood::Size>(hash_flood::FILE, hash_flood::run),
    Entry::new::<nametrie::Size>(nametrie::FILE, nametrie::run),
    Entry::new::<pit_fingerprint::Size>(pit_fingerprint::FILE, pit_fingerprint::run),
    Entry::new::<NoSize>(pit_model::FILE, pit_model::run),
    #[cfg(feature = "complete")]
    Entry::new::<NoSize>(pit_network::FILE, pit_network::run),
    Entry::new::<filter_model::Size>(filter_model::FILE, filter_model::run),
    Entry::new::<interest_flood::Size>(interest_flood::FILE, interest_flood::run),
    Entry::new::<NoSize>(hostile::FILE, hostile::run),
    Entry::new::<cache_policies::Size>(cache_policies::FILE, cache_policies::run),
    Entry::new::<cache_forwarding::Size>(cache_forwarding::FILE, cache_forwarding::run),
    #[cfg(feature = "complete")]
    Entry::new::<tag_locators::Size>(tag_locators::FILE, tag_locators::run),
    #[cfg(feature = "complete")]
    Entry::new::<tag_matching::Size>(tag_matching::FILE, tag_matching::run),
    #[cfg(feature = "complete")]
    Entry::new::<tag_traffic::Size>(tag_traffic::FILE, tag_traffic::run),
    #[cfg(feature = "complete")]
    Entry::new::<repo::Size>(repo::FILE, repo::run),
    #[cfg(feature = "complete")]
    Entry::new::<simulator::Size>(simulator::FILE, simulator::run),
];

/// The experiment with this id.
pub fn find(id: &str) -> Option<&'static Experiment> {
    TABLE.iter().find(|experiment| experiment.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_with_the_sizes_of_all_scales() {
        assert_eq!(TABLE.len(), ENTRIES.len());
    }

    #[test]
    fn ids_are_unique_and_name_files() {
        for (place, experiment) in TABLE.iter().enumerate() {
            assert!(TABLE.iter().skip(place + 1).all(|other| other.id != experiment.id), "{} twice", experiment.id);
            assert!(
                experiment.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            );
            assert!(find(experiment.id).is_some());
        }
        assert!(find("no-such-experiment").is_none());
    }
}
