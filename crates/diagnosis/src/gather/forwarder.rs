//! What the forwarder says of itself.

use super::{ANSWER_TIMEOUT, unix_ms};
use crate::facts::{ForwarderFacts, Sample, SettingsFacts};
use namewire_certification::membership::keeper::{Kept, NetworkState, STATUS_NAME};
use namewire_client::{Client, DatasetError, InterestBuilder};
use namewire_packet::{
    NameBuf,
    nfd::{Dataset, LogRecord, NodeState, Part, RibEntry, SettingInForce},
};
use std::time::Instant;
use tokio::time::timeout;

/// The parts that a look has: all but the settings, which do not change meanwhile.
fn parts() -> Vec<Part> {
    Part::ALL.iter().copied().filter(|part| !matches!(part, Part::General | Part::Settings)).collect()
}

/// The state now; `None` if it does not come.
pub async fn look(client: &Client, start: Instant) -> Option<Sample> {
    let state = timeout(ANSWER_TIMEOUT, client.state(&parts())).await.ok()?.ok()?;
    Some(sample(state, start))
}

fn sample(state: NodeState, start: Instant) -> Sample {
    Sample { monotonic_ms: start.elapsed().as_millis() as u64, unix_ms: unix_ms(), state }
}

/// Everything that is asked once.
///
/// # Errors
/// Why the forwarder does not tell its state, in words.
pub(super) async fn first_look(client: &Client, start: Instant) -> Result<(ForwarderFacts, SettingsFacts), String> {
    let general = match timeout(ANSWER_TIMEOUT, client.state(&[])).await {
        Ok(Ok(state)) => state,
        Ok(Err(DatasetError::Fetch(error))) => {
            return Err(format!("it takes connections, and does not answer: {error}"));
        }
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err("it takes connections, and does not answer".to_owned()),
    };
    let is_namewire = general.is_of_namewire();
    let mut missing = Vec::new();
    let rib: Vec<RibEntry> = list(client, &mut missing).await;
    let fib = list(client, &mut missing).await;
    let (mut log, mut settings): (Vec<LogRecord>, Vec<SettingInForce>) = (Vec::new(), Vec::new());
    if is_namewire {
        log = list(client, &mut missing).await;
        settings = list(client, &mut missing).await;
    }
    let networks = networks(client, &rib).await;
    // After the long lists, whose transfer counts, too.
    let before = match look(client, start).await {
        Some(before) => before,
        None => return Err("it does not tell its state in time".to_owned()),
    };
    let facts = ForwarderFacts {
        transport: client.transport().map(|uri| uri.to_string()).unwrap_or_default(),
        is_local: client.is_local(),
        is_namewire,
        version: before.state.general.as_ref().map(|general| general.nfd_version.clone()).unwrap_or_default(),
        after: before.clone(),
        before,
        rib,
        fib,
        log,
        networks,
        missing,
    };
    Ok((facts, settings_facts(settings)))
}

/// The networks that the router keeps the host in; none if nobody tells them.
async fn networks(client: &Client, rib: &[RibEntry]) -> Vec<NetworkState> {
    let name: NameBuf = STATUS_NAME.parse().expect("a name in the source is well-formed");
    if !rib.iter().any(|entry| entry.name == name) {
        return Vec::new();
    }
    let question = InterestBuilder::new(name).must_be_fresh(true);
    let told = match timeout(ANSWER_TIMEOUT, client.express(&question)).await {
        Ok(Ok(data)) => serde_json::from_slice::<Kept>(data.data().content()).ok(),
        _ => None,
    };
    told.map(|kept| kept.networks).unwrap_or_default()
}

/// A list; empty and noted as missing if it does not come in time.
async fn list<T: Dataset>(client: &Client, missing: &mut Vec<String>) -> Vec<T> {
    match timeout(ANSWER_TIMEOUT, client.list::<T>()).await {
        Ok(Ok(entries)) => entries,
        _ => {
            missing.push(T::NAME.to_owned());
            Vec::new()
        }
    }
}

/// Settings by key.
pub(super) fn settings_facts(settings: Vec<SettingInForce>) -> SettingsFacts {
    let mut facts = SettingsFacts::default();
    for SettingInForce { key, value, source, place } in settings {
        let place = place.map_or_else(|| source.clone(), |place| format!("{source} {place}"));
        facts.places.insert(key.clone(), place);
        facts.values.insert(key, value);
    }
    facts
}
