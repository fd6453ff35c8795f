//! Every experiment: one file each, and one line each in [`TABLE`].

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
mod level_pulling;
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
mod string_differentiation;
#[cfg(feature = "complete")]
mod tag_locators;
#[cfg(feature = "complete")]
mod tag_matching;
#[cfg(feature = "complete")]
mod tag_traffic;

pub use fib_all::own_design;

use crate::experiment::Experiment;

/// The experiments of this build, in the order in which `namewire-lab list` shows them.
pub const TABLE: &[Experiment] = if cfg!(feature = "complete") { ALL } else { &[packet_costs::EXPERIMENT] };

const ALL: &[Experiment] = &[
    router_sockets::EXPERIMENT,
    router_observed::EXPERIMENT,
    io::EXPERIMENT,
    prefetch::EXPERIMENT,
    packet_costs::EXPERIMENT,
    #[cfg(feature = "complete")]
    ring_crossing::EXPERIMENT,
    fib_all::EXPERIMENT,
    fib_forwarding::EXPERIMENT,
    fib_updates::EXPERIMENT,
    fib_pages::EXPERIMENT,
    level_pulling::EXPERIMENT,
    fib_binary::EXPERIMENT,
    dram_model::EXPERIMENT,
    power::EXPERIMENT,
    string_differentiation::EXPERIMENT,
    distributed_fib::EXPERIMENT,
    hash_flood::EXPERIMENT,
    nametrie::EXPERIMENT,
    pit_fingerprint::EXPERIMENT,
    pit_model::EXPERIMENT,
    #[cfg(feature = "complete")]
    pit_network::EXPERIMENT,
    filter_model::EXPERIMENT,
    interest_flood::EXPERIMENT,
    hostile::EXPERIMENT,
    cache_policies::EXPERIMENT,
    cache_forwarding::EXPERIMENT,
    #[cfg(feature = "complete")]
    tag_locators::EXPERIMENT,
    #[cfg(feature = "complete")]
    tag_matching::EXPERIMENT,
    #[cfg(feature = "complete")]
    tag_traffic::EXPERIMENT,
    #[cfg(feature = "complete")]
    repo::EXPERIMENT,
];

/// The experiment with this id.
pub fn find(id: &str) -> Option<&'static Experiment> {
    TABLE.iter().find(|experiment| experiment.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

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
