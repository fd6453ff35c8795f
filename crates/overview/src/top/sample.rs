//! Takes samples of a router, over the ordinary connection.

use super::rates::Sample;
use namewire_client::Client;
use namewire_node_model::counters::is_event;
use namewire_packet::nfd::Part;
use namewire_tools::Failure;
use std::time::Duration;

/// Name of the pool of PIT entries.
const PIT_POOL: &str = "pit";

/// What the screen shows.
const PARTS: [Part; 6] = [Part::Faces, Part::Strategies, Part::Cs, Part::CsUsage, Part::Drops, Part::Holders];

/// Asks for everything that the screen shows.
pub(super) async fn take(client: &Client, taken: Duration) -> Result<Sample, Failure> {
    let state = client.state(&PARTS).await?;
    let pit = state.holders.iter().find(|pool| pool.pool == PIT_POOL && pool.holder.is_none());
    let pit = pit.map(|pit| (pit.held, pit.capacity));
    let drops = state.is_of_namewire().then(|| {
        let counts = state.drops.into_iter().map(|drop| (drop.reason, drop.count));
        counts.filter(|(reason, _)| !is_event(reason)).collect()
    });
    Ok(Sample {
        taken,
        status: state.general.unwrap_or_default(),
        faces: state.faces,
        cs: state.cs.unwrap_or_default(),
        cs_usage: state.cs_usage,
        pit,
        drops,
        strategy_choices: state.strategies.len(),
    })
}
