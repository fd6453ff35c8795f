//! Takes samples of a router, over the ordinary connection.
//!
//! Other forwarders than Namewire lack some datasets, and leave an Interest for them without an answer. So they are not
//! asked.

use super::rates::Sample;
use crate::{
    Failure,
    cs::{is_namewire, own_usage},
};
use namewire_client::Client;
use namewire_node_model::counters::is_event;
use namewire_packet::nfd::{DropCounter, PoolHolding, StrategyChoice};
use std::time::Duration;

/// Name of the pool of PIT entries.
const PIT_POOL: &str = "pit";

/// Asks for everything that the screen shows.
pub(super) async fn take(client: &Client, taken: Duration) -> Result<Sample, Failure> {
    let status = client.forwarder_status().await?;
    let is_ours = is_namewire(&status.nfd_version);
    let drops: Option<Vec<DropCounter>> = match is_ours {
        true => Some(client.status_list("status", "drops").await?),
        false => None,
    };
    let pools: Vec<PoolHolding> = match is_ours {
        true => client.status_list("status", "holders").await?,
        false => Vec::new(),
    };
    let pit = pools.iter().find(|pool| pool.pool == PIT_POOL && pool.holder.is_none());
    Ok(Sample {
        taken,
        faces: client.status_list("faces", "list").await?,
        cs: client.status_list("cs", "info").await?.into_iter().next().unwrap_or_default(),
        cs_usage: own_usage(client, &status.nfd_version, "cs").await,
        pit: pit.map(|pit| (pit.held, pit.capacity)),
        drops: drops.map(|drops| {
            let counts = drops.into_iter().map(|drop| (drop.reason, drop.count));
            counts.filter(|(reason, _)| !is_event(reason)).collect()
        }),
        strategy_choices: client.status_list::<StrategyChoice>("strategy-choice", "list").await?.len(),
        status,
    })
}
