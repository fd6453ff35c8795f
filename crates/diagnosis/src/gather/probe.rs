//! Asks each neighbour something harmless: an Interest that goes one hop (`/localhop`), for a name that nobody has.
//!
//! A forwarder without a route answers with a Nack. So the answer shows that the neighbour lives, and an Interest as
//! large as a datagram may be shows whether the path takes such. Each Interest is sent a second time, under another
//! name, in case the first was lost. A traceroute (RFC 9507) whose HopLimit ends at the neighbour brings its name,
//! software and clock, if it is a router that answers such.
//!
//! Limit: [`NEIGHBOURS_MAX`]; five Interests for each.

use super::unix_ms;
use crate::facts::{Answer, ForwarderFacts, NeighbourRouter, ProbeFacts};
use namewire_client::{Client, ExpressError};
use namewire_packet::{
    FaceId, InterestBuilder, MAX_PACKET_BYTES, NameBuf,
    nfd::{FacePersistency, FaceScope, FaceState, FaceStatus, LinkType, ProbeReply, face_uri::FaceUri},
    probe::ProbeKind,
};
use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    time::Duration,
};
use tokio::{task::JoinSet, time::sleep};

/// Neighbours that are asked.
const NEIGHBOURS_MAX: usize = 32;

/// Time until the second Interest.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Shortest time for an answer, whatever the watch.
const PATIENCE_MIN: Duration = Duration::from_millis(500);

/// Longest time for an answer; below, it is nine tenths of the watch.
const PATIENCE_MAX: Duration = Duration::from_secs(4);

/// Bytes of a large Interest, beside its parameters: name, digest, nonce, lifetime, and headers of the link.
const INTEREST_OVERHEAD_BYTES: usize = 200;

/// Asks the neighbours.
///
/// # Errors
/// Why none can be asked, in words.
pub(super) async fn neighbours(
    client: &Client,
    forwarder: &ForwarderFacts,
    watch: Duration,
) -> Result<Vec<ProbeFacts>, String> {
    let faces: Vec<FaceStatus> =
        forwarder.after.state.faces.iter().filter(|face| is_asked(forwarder, face)).cloned().collect();
    if faces.is_empty() {
        return Ok(Vec::new());
    }
    client
        .use_local_fields()
        .await
        .map_err(|error| format!("the forwarder lets this user not choose next hops: {error}"))?;
    let patience = watch.mul_f64(0.9).clamp(PATIENCE_MIN, PATIENCE_MAX);
    let mut tasks = JoinSet::new();
    for face in faces.into_iter().take(NEIGHBOURS_MAX) {
        tasks.spawn(ask(client.clone(), face, patience));
    }
    let mut probes = tasks.join_all().await;
    probes.sort_by_key(|probe| probe.face);
    Ok(probes)
}

/// A neighbour that is meant to be one: programs of other machines that made a face by themselves are not forwarders.
fn is_asked(forwarder: &ForwarderFacts, face: &FaceStatus) -> bool {
    face.face_scope == FaceScope::NonLocal
        && face.state != Some(FaceState::Down)
        && face.link_type == LinkType::PointToPoint
        && (face.face_persistency != FacePersistency::OnDemand || forwarder.is_next_hop(face.face_id))
}

async fn ask(client: Client, face: FaceStatus, patience: Duration) -> ProbeFacts {
    let address = face.uri.parse::<FaceUri>().ok().filter(|uri| uri.scheme().starts_with("udp"));
    let address = address.and_then(|uri| Some(SocketAddr::new(uri.ip()?, uri.port()?)));
    let bytes = face
        .mtu
        .map_or(MAX_PACKET_BYTES, |mtu| (mtu as usize).min(MAX_PACKET_BYTES))
        .saturating_sub(INTEREST_OVERHEAD_BYTES);
    let large = async {
        address?;
        Some((bytes as u64, ask_twice(&client, face.face_id, bytes, patience).await))
    };
    let small = ask_twice(&client, face.face_id, 0, patience);
    let (small, large, router) = tokio::join!(small, large, router(&client, face.face_id, patience));
    ProbeFacts { face: face.face_id, small, large, kernel_mtu: address.and_then(kernel_mtu), router }
}

/// The HopLimit of an Interest that ends at the next router but the one at hand.
const TO_NEIGHBOUR: u8 = 2;

/// What the neighbour says of itself.
async fn router(client: &Client, face: FaceId, patience: Duration) -> Option<NeighbourRouter> {
    let mut unique = [0; 8];
    getrandom::fill(&mut unique).ok()?;
    let name = ProbeKind::Traceroute.name_for(probed_name().as_name(), u64::from_be_bytes(unique));
    let interest = InterestBuilder::new(name).must_be_fresh(true).hop_limit(TO_NEIGHBOUR).lifetime_ms(millis(patience));
    let data = client.express_by(&interest, face).await.ok()?;
    let reply = ProbeReply::parse_content(data.data().content()).ok()?;
    let clock_ahead_ms = reply.time_ms.map(|time_ms| time_ms as i64 - unix_ms() as i64);
    Some(NeighbourRouter { name: reply.sender.to_string(), software: reply.software, clock_ahead_ms })
}

/// A name that goes one hop, and that nobody has.
fn probed_name() -> NameBuf {
    "/localhop/namewire-doctor".parse().unwrap_or_default()
}

fn millis(span: Duration) -> u64 {
    span.as_millis().max(1) as u64
}

/// The first answer of two.
async fn ask_twice(client: &Client, face: FaceId, parameters_bytes: usize, patience: Duration) -> Answer {
    let first = ask_once(client, face, parameters_bytes, patience);
    let second = async {
        sleep(AGAIN_AFTER).await;
        ask_once(client, face, parameters_bytes, patience.saturating_sub(AGAIN_AFTER)).await
    };
    tokio::pin!(first, second);
    tokio::select! {
        answer = &mut first => if answer.is_answer() { answer } else { second.await },
        answer = &mut second => if answer.is_answer() { answer } else { first.await },
    }
}

async fn ask_once(client: &Client, face: FaceId, parameters_bytes: usize, patience: Duration) -> Answer {
    let mut unique = [0; 8];
    if getrandom::fill(&mut unique).is_err() {
        return Answer::Silence;
    }
    let mut name = probed_name();
    name.push_generic(&unique);
    let mut interest = InterestBuilder::new(name).lifetime_ms(millis(patience));
    if parameters_bytes > 0 {
        interest = interest.application_parameters(vec![0; parameters_bytes]);
    }
    match client.express_by(&interest, face).await {
        Ok(_) => Answer::Data,
        Err(ExpressError::Nack(reason)) => Answer::Nack(format!("{reason:?}")),
        Err(_) => Answer::Silence,
    }
}

/// What the kernel has learned of the path; connecting a UDP socket sends nothing.
fn kernel_mtu(address: SocketAddr) -> Option<u64> {
    let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(address).ok()?;
    let mtu = match address {
        SocketAddr::V4(_) => rustix::net::sockopt::ip_mtu(&socket),
        SocketAddr::V6(_) => rustix::net::sockopt::ipv6_mtu(&socket),
    };
    mtu.ok().map(u64::from)
}
