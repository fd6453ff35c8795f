//! Document: the JSON that is answered and streamed.
//!
//! [`status`] is for programs: the whole snapshot and all rates. [`event`] is for the page: what it draws, once a
//! second. It leaves the routes out (`routes_mark` changes when they do, and then the page asks for `/routes.json`),
//! and shows at most [`EVENT_FACES_MAX`] faces, the busiest, so that an event stays under about half a megabyte.
//! Prefixes of applications may add as much.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use crate::history::{FaceRate, Rates};
use crate::snapshot::{
    ContentStore, DropCount, Face, Fib, LastDrop, Pit, Pool, Route, Snapshot, StrategyChoice, Worker,
};
use crate::source::SettingsInForce;
use crate::timeline::Past;

/// How many faces an event shows.
pub(crate) const EVENT_FACES_MAX: usize = 1000;
/// How many prefixes of an application an event shows, and how much of each.
const EVENT_PREFIXES_MAX: usize = 5;
const EVENT_PREFIX_BYTES_MAX: usize = 100;
/// How many dropped packets an event shows.
const EVENT_DROPS_MAX: usize = 50;
/// How many strategy choices and how many prefixes of the Content Store an event shows.
const EVENT_ROWS_MAX: usize = 200;

#[derive(Serialize)]
struct Status<'a> {
    #[serde(flatten)]
    snapshot: &'a Snapshot,
    rates: Rates,
}

#[derive(Serialize)]
struct Routes<'a> {
    mark: String,
    routes: &'a [Route],
}

#[derive(Serialize)]
struct Event<'a> {
    version: &'a str,
    host: &'a str,
    start_unix_ms: u64,
    now_unix_ms: u64,
    window_ms: u64,
    workers: &'a [Worker],
    face_count: usize,
    faces: Vec<EventFace<'a>>,
    route_count: usize,
    routes_mark: String,
    drops: &'a [DropCount],
    events: &'a [DropCount],
    last_drops: Vec<&'a LastDrop>,
    pools: &'a [Pool],
    cs: EventStore<'a>,
    fib: &'a Fib,
    pit: &'a Pit,
    strategies: &'a [StrategyChoice],
    tags: &'a Option<serde_json::Value>,
    repo: &'a Option<serde_json::Value>,
    notes: &'a [String],
}

/// The Content Store with its busiest prefixes.
#[derive(Serialize)]
struct EventStore<'a> {
    policy: &'a str,
    admission: &'a str,
    entries: u64,
    bytes: u64,
    capacity_bytes: u64,
    hits: u64,
    misses: u64,
    prefix_count: usize,
    prefixes: Vec<&'a crate::snapshot::ContentPrefix>,
}

#[derive(Serialize)]
struct EventFace<'a> {
    id: u64,
    remote: &'a str,
    process: Option<&'a str>,
    /// The first prefixes that an application has registered, and how many there are.
    registered: Vec<String>,
    registered_count: usize,
    local: &'a str,
    scope: &'a str,
    persistency: &'a str,
    link_type: &'a str,
    state: &'a str,
    mtu: u64,
    since_unix_ms: Option<u64>,
    port: Option<&'a str>,
    rtt_ms: Option<f64>,
    loss: Option<f64>,
    idle_ms: Option<u64>,
    in_packets: u64,
    out_packets: u64,
    drops: Vec<&'a DropCount>,
    /// `None`: not known yet.
    rate: Option<FaceRate>,
}

/// The packets that were dropped last, the newest first.
fn newest(drops: &[LastDrop]) -> Vec<&LastDrop> {
    let mut drops: Vec<&LastDrop> = drops.iter().collect();
    drops.sort_by_key(|drop| std::cmp::Reverse(drop.time_unix_ms));
    drops.truncate(EVENT_DROPS_MAX);
    drops
}

/// Means since the start.
pub(crate) fn past(past: &Past<'_>) -> Vec<u8> {
    json(past)
}

/// The settings in force.
pub(crate) fn settings(settings: &SettingsInForce) -> Vec<u8> {
    json(settings)
}

/// The whole snapshot with the rates of faces.
pub(crate) fn status(snapshot: &Snapshot, rates: Rates) -> Vec<u8> {
    json(&Status { snapshot, rates })
}

/// The routes, with the mark by which an event names them.
pub(crate) fn routes(snapshot: &Snapshot) -> Vec<u8> {
    json(&Routes { mark: routes_mark(snapshot), routes: &snapshot.routes })
}

/// What the page draws. Costs one pass over faces and routes.
pub(crate) fn event(snapshot: &Snapshot, rates: &Rates) -> Vec<u8> {
    json(&Event {
        version: &snapshot.version,
        host: &snapshot.host,
        start_unix_ms: snapshot.start_unix_ms,
        now_unix_ms: snapshot.now_unix_ms,
        window_ms: rates.window_ms,
        workers: &snapshot.workers,
        face_count: snapshot.faces.len(),
        faces: busiest_faces(snapshot, rates),
        route_count: snapshot.routes.len(),
        routes_mark: routes_mark(snapshot),
        drops: &snapshot.drops,
        events: &snapshot.events,
        last_drops: newest(&snapshot.last_drops),
        pools: &snapshot.pools,
        cs: event_store(&snapshot.cs),
        fib: &snapshot.fib,
        pit: &snapshot.pit,
        strategies: &snapshot.strategies[..snapshot.strategies.len().min(EVENT_ROWS_MAX)],
        tags: &snapshot.tags,
        repo: &snapshot.repo,
        notes: &snapshot.notes,
    })
}

fn event_store(cs: &ContentStore) -> EventStore<'_> {
    let mut prefixes: Vec<_> = cs.prefixes.iter().collect();
    prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.hits.saturating_add(prefix.misses)));
    prefixes.truncate(EVENT_ROWS_MAX);
    EventStore {
        policy: &cs.policy,
        admission: &cs.admission,
        entries: cs.entries,
        bytes: cs.bytes,
        capacity_bytes: cs.capacity_bytes,
        hits: cs.hits,
        misses: cs.misses,
        prefix_count: cs.prefixes.len(),
        prefixes,
    }
}

fn busiest_faces<'a>(snapshot: &'a Snapshot, rates: &Rates) -> Vec<EventFace<'a>> {
    let rate_of = |face: &Face| {
        let found = rates.faces.binary_search_by_key(&face.id, |rate| rate.face);
        found.ok().map(|index| rates.faces[index])
    };
    let registered = registered_prefixes(&snapshot.routes);
    let prefixes_of = |face: &Face| registered.get(&face.id).map(Vec::as_slice).unwrap_or_default();
    let mut faces: Vec<EventFace> =
        snapshot.faces.iter().map(|face| EventFace::of(face, rate_of(face), prefixes_of(face))).collect();
    let bits_per_s = |face: &EventFace| face.rate.map_or(0.0, |rate| rate.bits_per_s());
    faces.sort_by(|one, other| bits_per_s(other).total_cmp(&bits_per_s(one)).then(one.id.cmp(&other.id)));
    faces.truncate(EVENT_FACES_MAX);
    faces
}

/// What applications have registered, by face.
fn registered_prefixes(routes: &[Route]) -> HashMap<u64, Vec<&str>> {
    let mut prefixes: HashMap<u64, Vec<&str>> = HashMap::new();
    for route in routes {
        for hop in route.next_hops.iter().filter(|hop| hop.origin == "app") {
            prefixes.entry(hop.face).or_default().push(&route.prefix);
        }
    }
    prefixes
}

fn clipped(prefix: &str) -> String {
    match prefix.get(..EVENT_PREFIX_BYTES_MAX) {
        Some(start) if start.len() < prefix.len() => format!("{start}…"),
        _ => prefix.to_owned(),
    }
}

impl<'a> EventFace<'a> {
    fn of(face: &'a Face, rate: Option<FaceRate>, registered: &[&str]) -> Self {
        Self {
            id: face.id,
            remote: &face.remote,
            process: face.process.as_deref(),
            registered: registered.iter().take(EVENT_PREFIXES_MAX).map(|prefix| clipped(prefix)).collect(),
            registered_count: registered.len(),
            local: &face.local,
            scope: &face.scope,
            persistency: &face.persistency,
            link_type: &face.link_type,
            state: &face.state,
            mtu: face.mtu,
            since_unix_ms: face.since_unix_ms,
            port: face.port.as_deref(),
            rtt_ms: face.rtt_ms,
            loss: face.loss,
            idle_ms: face.idle_ms,
            in_packets: face.counters.packets.received(),
            out_packets: face.counters.packets.sent(),
            drops: face.drops.iter().filter(|drop| drop.count > 0).collect(),
            rate,
        }
    }
}

/// Equal for equal routes in equal order, within one process.
fn routes_mark(snapshot: &Snapshot) -> String {
    let mut hasher = DefaultHasher::new();
    snapshot.routes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("text keys and plain values are JSON")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::snapshot::NextHop;

    fn snapshot(faces: u64) -> Snapshot {
        let face = |id| Face { id, drops: vec![DropCount::default()], ..Default::default() };
        let route = Route { prefix: "/a".into(), ..Default::default() };
        Snapshot { faces: (0..faces).map(face).collect(), routes: vec![route], ..Default::default() }
    }

    fn event_of(snapshot: &Snapshot, rates: &Rates) -> Value {
        serde_json::from_slice(&event(snapshot, rates)).unwrap()
    }

    #[test]
    fn an_event_shows_the_busiest_faces() {
        let snapshot = snapshot(EVENT_FACES_MAX as u64 + 500);
        let rate = |face| FaceRate { face, in_bits_per_s: face as f64, ..Default::default() };
        let rates = Rates { window_ms: 1000, faces: (0..1500).map(rate).collect() };
        let event = event_of(&snapshot, &rates);
        let faces = event["faces"].as_array().unwrap();
        assert_eq!((faces.len(), &event["face_count"]), (EVENT_FACES_MAX, &Value::from(1500)));
        assert_eq!((&faces[0]["id"], &faces[999]["id"]), (&Value::from(1499), &Value::from(500)));
        assert_eq!(faces[0]["drops"], Value::Array(vec![]), "a reason that dropped nothing");
    }

    #[test]
    fn a_face_without_a_rate_has_none() {
        let event = event_of(&snapshot(1), &Rates::default());
        assert_eq!(event["faces"][0]["rate"], Value::Null);
    }

    /// The story: the page looked for routes in the event, which has none, and the details of a face did not open.
    #[test]
    fn an_application_has_its_process_and_its_first_prefixes() {
        let mut snapshot = snapshot(2);
        snapshot.faces[1].process = Some("ndnsec (7)".into());
        let route = |(index, origin): (usize, &str)| Route {
            prefix: format!("/p/{index}"),
            next_hops: vec![NextHop { face: 1, origin: origin.into(), ..Default::default() }],
        };
        let registered = vec!["app"; EVENT_PREFIXES_MAX + 2];
        snapshot.routes = ["static"].into_iter().chain(registered).enumerate().map(route).collect();
        snapshot.routes[2].prefix = format!("/{}", "x".repeat(8000));
        let event = event_of(&snapshot, &Rates::default());
        let [other, face] = [0, 1].map(|index| event["faces"][index].clone());
        assert_eq!((&face["process"], &face["registered"][0]), (&"ndnsec (7)".into(), &"/p/1".into()));
        assert_eq!(face["registered"][1], format!("/{}…", "x".repeat(EVENT_PREFIX_BYTES_MAX - 1)));
        assert_eq!(face["registered"].as_array().unwrap().len(), EVENT_PREFIXES_MAX);
        assert_eq!(face["registered_count"], EVENT_PREFIXES_MAX + 2);
        assert_eq!((&other["process"], &other["registered_count"]), (&Value::Null, &0.into()));
    }

    #[test]
    fn an_event_shows_the_newest_drops() {
        let mut snapshot = snapshot(0);
        let drop = |time_unix_ms| LastDrop { time_unix_ms, ..Default::default() };
        snapshot.last_drops = [5, 7].into_iter().chain(100..300).chain([6]).map(drop).collect();
        let event = event_of(&snapshot, &Rates::default());
        let drops = event["last_drops"].as_array().unwrap();
        assert_eq!((drops.len(), &drops[0]["time_unix_ms"]), (EVENT_DROPS_MAX, &Value::from(299)));
    }

    #[test]
    fn the_mark_changes_with_the_routes() {
        let (one, mut other) = (snapshot(0), snapshot(1));
        let mark = |snapshot: &Snapshot| event_of(snapshot, &Rates::default())["routes_mark"].clone();
        assert_eq!(mark(&one), mark(&other));
        other.routes[0].next_hops.push(Default::default());
        assert_ne!(mark(&one), mark(&other));
        let routes: Value = serde_json::from_slice(&routes(&other)).unwrap();
        assert_eq!(routes["mark"], mark(&other));
    }

    #[test]
    fn a_number_that_json_lacks_is_null() {
        let mut snapshot = snapshot(1);
        snapshot.faces[0].rtt_ms = Some(f64::NAN);
        assert_eq!(event_of(&snapshot, &Rates::default())["faces"][0]["rtt_ms"], Value::Null);
    }
}
