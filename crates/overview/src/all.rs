//! All named routers: read at once, each by its observer or, if it has none, by its management.
//!
//! A router without an observer is asked for its datasets over its transport, as `namewire status` does. So routers on
//! this machine, and other forwarders, need no observer. Routers of other machines do: a forwarder ignores what other
//! machines ask its management.
//!
//! Limits: as many routers as the file may name; each may take the caller's patience.

use namewire_client::{Client, TransportUri};
use namewire_network::{
    fate::Explained,
    reading::{self, Problem, Reason},
    summary::{Dropped, Drops, FaceSummary, Rates, Summary, Traffic},
};
use namewire_node_model::counters::is_event;
use namewire_packet::{
    NameBuf,
    nfd::{FaceHealth, FaceScope, FaceState, LinkType, NodeState, Part},
};
use namewire_routers::{NamedRouter, RoutersFile};
use namewire_tools::{Failure, explain};
use std::time::Duration;
use tokio::{task::JoinSet, time::timeout};

/// Name of the pool of PIT entries.
const PIT_POOL: &str = "pit";
/// What a summary is made of.
const PARTS: [Part; 5] = [Part::Faces, Part::Health, Part::Drops, Part::Dropped, Part::Holders];

/// A named router.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) router: NamedRouter,
}

/// The named routers of this user, by name.
///
/// # Errors
/// The file cannot be read, or names none.
pub(crate) fn named() -> Result<Vec<Named>, Failure> {
    let routers = RoutersFile::of_user()?.read()?.routers;
    let named: Vec<Named> = routers.into_iter().map(|(name, router)| Named { name, router }).collect();
    match named.is_empty() {
        true => Err(Failure::usage("--all is about routers with names: namewire router add NAME TRANSPORT")),
        false => Ok(named),
    }
}

impl Named {
    /// Where it is read.
    pub(crate) fn place(&self) -> String {
        self.router.observer.as_ref().map_or_else(|| self.router.transport.to_string(), ToString::to_string)
    }

    async fn summary(&self, patience: Duration) -> Result<Summary, Problem> {
        match &self.router.observer {
            Some(observer) => reading::summary(observer, patience).await,
            None => asked(&self.router.transport, patience, async |client| summary_of(&client).await).await,
        }
    }

    async fn explanation(&self, name: &NameBuf, patience: Duration) -> Result<Explained, Problem> {
        match &self.router.observer {
            Some(observer) => reading::explanation(observer, &name.to_string(), patience).await,
            None => {
                let explain = async |client: Client| {
                    let explanation = explain::explain(&client, name, None).await?;
                    let value = serde_json::to_value(explanation).and_then(serde_json::from_value::<Explained>);
                    value.map_err(|error| Failure::usage(error.to_string()))
                };
                asked(&self.router.transport, patience, explain).await
            }
        }
    }
}

/// What each router says of itself, in the order of `routers`.
pub(crate) async fn summaries(routers: &[Named], patience: Duration) -> Vec<Result<Summary, Problem>> {
    each(routers, async move |named: Named| named.summary(patience).await).await
}

/// What each router would do with an Interest for `name`.
pub(crate) async fn explanations(
    routers: &[Named],
    name: &NameBuf,
    patience: Duration,
) -> Vec<Result<Explained, Problem>> {
    let name = name.clone();
    each(routers, async move |named: Named| named.explanation(&name, patience).await).await
}

/// Asks all at once.
async fn each<T: 'static>(
    routers: &[Named],
    ask: impl AsyncFn(Named) -> Result<T, Problem> + Clone + 'static,
) -> Vec<Result<T, Problem>> {
    let local = tokio::task::LocalSet::new();
    let all = async {
        let mut asking = JoinSet::new();
        for (index, named) in routers.iter().cloned().enumerate() {
            let ask = ask.clone();
            asking.spawn_local(async move { (index, ask(named).await) });
        }
        let silent = || Err(Problem::new(Reason::Slow, "it did not answer"));
        let mut answers: Vec<Result<T, Problem>> = routers.iter().map(|_| silent()).collect();
        while let Some(Ok((index, answer))) = asking.join_next().await {
            answers[index] = answer;
        }
        answers
    };
    local.run_until(all).await
}

async fn asked<T>(
    transport: &TransportUri,
    patience: Duration,
    ask: impl AsyncFnOnce(Client) -> Result<T, Failure>,
) -> Result<T, Problem> {
    let answer = async {
        let client = Client::connect_to(transport.clone()).await?;
        ask(client).await
    };
    match timeout(patience, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(failure)) => Err(Problem::new(Reason::Unreachable, failure.first_line())),
        Err(_) => {
            let late = format!("{transport} did not answer within {} ms", patience.as_millis());
            Err(Problem::new(Reason::Slow, late))
        }
    }
}

/// The summary of a forwarder that is asked by management.
async fn summary_of(client: &Client) -> Result<Summary, Failure> {
    let state = client.state(&PARTS).await?;
    let general = state.general.clone().unwrap_or_default();
    let pit = state.holders.iter().find(|pool| pool.pool == PIT_POOL && pool.holder.is_none());
    let drops = state.drops.iter().filter(|drop| !is_event(&drop.reason) && drop.count > 0);
    let dropped = state.dropped.iter().filter(|packet| !packet.is_of_link());
    Ok(Summary {
        version: general.nfd_version.trim_start_matches("namewire-").to_owned(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        start_unix_ms: general.start_timestamp_ms,
        now_unix_ms: general.current_timestamp_ms,
        faces: faces(&state),
        pit_entries: general.n_pit_entries,
        pit_capacity: pit.map_or(0, |pit| pit.capacity),
        fib_entries: general.n_fib_entries,
        drops: drops.map(|drop| Drops { reason: drop.reason.clone(), count: drop.count }).collect(),
        last_drops: dropped
            .map(|packet| Dropped {
                time_unix_ms: packet.time_ms,
                reason: packet.reason.clone(),
                packet: packet.kind.to_string(),
                face: packet.face.map(|face| face.0),
                name: packet.name.as_ref().map(|name| format!("{name}{}", if packet.is_name_cut { "/…" } else { "" })),
            })
            .collect(),
        ..Summary::default()
    }
    .bounded())
}

fn faces(state: &NodeState) -> Vec<FaceSummary> {
    let face = |status: &namewire_packet::nfd::FaceStatus| {
        let health = state.health_of(status.face_id);
        let rates = health.and_then(|health| health.recent).map(|recent| recent.rates());
        let counters = status.counters;
        FaceSummary {
            id: status.face_id.0,
            remote: status.uri.clone(),
            local: status.local_uri.clone(),
            is_local: status.face_scope == FaceScope::Local,
            has_several_peers: status.link_type == LinkType::MultiAccess,
            process: None,
            state: FaceHealth::state_word(health, status.state.unwrap_or(FaceState::Up)).to_owned(),
            rtt_ms: health.and_then(|health| health.last_us).map(|us| us as f64 / 1000.0),
            traffic: Traffic {
                in_packets: counters.packets.received(),
                in_bytes: counters.in_bytes,
                out_packets: counters.packets.sent(),
                out_bytes: counters.out_bytes,
            },
            rates: rates.map(|rates| Rates {
                in_packets_per_s: rates.in_packets_per_s,
                in_bits_per_s: rates.in_bits_per_s,
                out_packets_per_s: rates.out_packets_per_s,
                out_bits_per_s: rates.out_bits_per_s,
            }),
        }
    };
    state.faces.iter().map(face).collect()
}
