//! Document: the JSON of answers and streams.
//!
//! [`status`] is for programs: the whole snapshot and all rates. [`event`] is for the page: the values that it draws,
//! once a second. It leaves the routes out (`routes_mark` changes when they do, and then the page asks for
//! `/routes.json`), and shows at most [`EVENT_FACES_MAX`] faces, the busiest, so that an event stays under about half a
//! megabyte. Prefixes of applications may add as much.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use namewire_network::summary::Summary;
use namewire_packet::nfd::{DropCounter, FaceRates, StrategyChoice};
use serde::Serialize;

use crate::snapshot::{ContentStore, Face, FaceAbout, Fib, LastDrop, Pit, Pool, Route, Snapshot, Worker};
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

/// The rates of the last ten seconds.
#[derive(Serialize)]
struct Rates {
    /// The longest time that a rate was measured over. 0: there is no rate yet.
    window_ms: u64,
    /// Those of the faces that have some, by face number.
    faces: Vec<FaceRate>,
}

#[derive(Serialize)]
struct FaceRate {
    face: u64,
    #[serde(flatten)]
    rates: FaceRates,
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
    drops: &'a [DropCounter],
    events: &'a [DropCounter],
    last_drops: Vec<&'a LastDrop>,
    pools: &'a [Pool],
    cs: EventStore,
    fib: &'a Fib,
    pit: &'a Pit,
    strategies: &'a [StrategyChoice],
    tags: &'a Option<serde_json::Value>,
    repo: &'a Option<serde_json::Value>,
    notes: &'a [String],
}

/// The Content Store with its busiest prefixes.
#[derive(Serialize)]
struct EventStore {
    #[serde(flatten)]
    store: ContentStore,
    prefix_count: usize,
}

#[derive(Serialize)]
struct EventFace<'a> {
    #[serde(flatten)]
    about: &'a FaceAbout,
    /// The first prefixes that an application has registered, and how many there are.
    registered: Vec<String>,
    registered_count: usize,
    in_packets: u64,
    out_packets: u64,
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

/// This router in short.
pub(crate) fn summary(summary: &Summary) -> Vec<u8> {
    json(summary)
}

/// The settings in force.
pub(crate) fn settings(settings: &SettingsInForce) -> Vec<u8> {
    json(settings)
}

/// The whole snapshot with the rates of faces.
pub(crate) fn status(snapshot: &Snapshot) -> Vec<u8> {
    let mut faces: Vec<FaceRate> = snapshot.faces.iter().filter_map(FaceRate::of).collect();
    faces.sort_unstable_by_key(|rate| rate.face);
    json(&Status { snapshot, rates: Rates { window_ms: window_ms(snapshot), faces } })
}

/// The routes, with the mark by which an event names them.
pub(crate) fn routes(snapshot: &Snapshot) -> Vec<u8> {
    json(&Routes { mark: routes_mark(snapshot), routes: &snapshot.routes })
}

/// What the page draws. Costs one pass over faces and routes.
pub(crate) fn event(snapshot: &Snapshot) -> Vec<u8> {
    json(&Event {
        version: &snapshot.version,
        host: &snapshot.host,
        start_unix_ms: snapshot.start_unix_ms,
        now_unix_ms: snapshot.now_unix_ms,
        window_ms: window_ms(snapshot),
        workers: &snapshot.workers,
        face_count: snapshot.faces.len(),
        faces: busiest_faces(snapshot),
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

fn event_store(cs: &ContentStore) -> EventStore {
    let mut store = cs.clone();
    let prefix_count = store.usage.prefixes.len();
    store.usage.prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.hits.saturating_add(prefix.misses)));
    store.usage.prefixes.truncate(EVENT_ROWS_MAX);
    EventStore { store, prefix_count }
}

/// The longest time that a rate is measured over.
fn window_ms(snapshot: &Snapshot) -> u64 {
    snapshot.faces.iter().filter_map(|face| face.recent).map(|recent| recent.span_ms).max().unwrap_or_default()
}

impl FaceRate {
    fn of(face: &Face) -> Option<Self> {
        face.recent.map(|recent| FaceRate { face: face.about.id, rates: recent.rates() })
    }
}

fn busiest_faces(snapshot: &Snapshot) -> Vec<EventFace<'_>> {
    let registered = registered_prefixes(&snapshot.routes);
    let prefixes_of = |face: &Face| registered.get(&face.about.id).map(Vec::as_slice).unwrap_or_default();
    let mut faces: Vec<EventFace> = snapshot.faces.iter().map(|face| EventFace::of(face, prefixes_of(face))).collect();
    let bits_per_s = |face: &EventFace| {
        face.rate.as_ref().map_or(0.0, |FaceRate { rates, .. }| rates.in_bits_per_s + rates.out_bits_per_s)
    };
    faces.sort_by(|one, other| bits_per_s(other).total_cmp(&bits_per_s(one)).then(one.about.id.cmp(&other.about.id)));
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
    fn of(face: &'a Face, registered: &[&str]) -> Self {
        Self {
            about: &face.about,
            registered: registered.iter().take(EVENT_PREFIXES_MAX).map(|prefix| clipped(prefix)).collect(),
            registered_count: registered.len(),
            in_packets: face.counters.packets.received(),
            out_packets: face.counters.packets.sent(),
            rate: FaceRate::of(face),
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
    use namewire_packet::nfd::FaceRecent;

    fn snapshot(faces: u64) -> Snapshot {
        let face = |id| Face { about: FaceAbout { id, ..Default::default() }, ..Default::default() };
        let route = Route { prefix: "/a".into(), ..Default::default() };
        Snapshot { faces: (0..faces).map(face).collect(), routes: vec![route], ..Default::default() }
    }

    fn event_of(snapshot: &Snapshot) -> Value {
        serde_json::from_slice(&event(snapshot)).unwrap()
    }

    #[test]
    fn an_event_shows_the_busiest_faces() {
        let mut snapshot = snapshot(EVENT_FACES_MAX as u64 + 500);
        for face in &mut snapshot.faces {
            face.recent = Some(FaceRecent { span_ms: 1000, in_bytes: face.about.id, ..Default::default() });
        }
        let event = event_of(&snapshot);
        let faces = event["faces"].as_array().unwrap();
        assert_eq!((faces.len(), &event["face_count"]), (EVENT_FACES_MAX, &Value::from(1500)));
        assert_eq!((&faces[0]["id"], &faces[999]["id"]), (&Value::from(1499), &Value::from(500)));
        assert_eq!((&event["window_ms"], &faces[0]["rate"]["in_bits_per_s"]), (&1000.into(), &(8.0 * 1499.0).into()));
        assert!(faces[0].get("counters").is_none(), "the page does without");
        let status: Value = serde_json::from_slice(&status(&snapshot)).unwrap();
        assert_eq!((&status["rates"]["window_ms"], &status["rates"]["faces"][7]["face"]), (&1000.into(), &7.into()));
    }

    #[test]
    fn a_face_without_a_rate_has_none() {
        let event = event_of(&snapshot(1));
        assert_eq!(event["faces"][0]["rate"], Value::Null);
    }

    /// The story: the page looked for routes in the event, which has none, and the details of a face did not open.
    #[test]
    fn an_application_has_its_process_and_its_first_prefixes() {
        let mut snapshot = snapshot(2);
        snapshot.faces[1].about.process = Some("ndnsec (7)".into());
        let route = |(index, origin): (usize, &str)| Route {
            prefix: format!("/p/{index}"),
            next_hops: vec![NextHop { face: 1, origin: origin.into(), ..Default::default() }],
        };
        let registered = vec!["app"; EVENT_PREFIXES_MAX + 2];
        snapshot.routes = ["static"].into_iter().chain(registered).enumerate().map(route).collect();
        snapshot.routes[2].prefix = format!("/{}", "x".repeat(8000));
        let event = event_of(&snapshot);
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
        let event = event_of(&snapshot);
        let drops = event["last_drops"].as_array().unwrap();
        assert_eq!((drops.len(), &drops[0]["time_unix_ms"]), (EVENT_DROPS_MAX, &Value::from(299)));
    }

    #[test]
    fn the_mark_changes_with_the_routes() {
        let (one, mut other) = (snapshot(0), snapshot(1));
        let mark = |snapshot: &Snapshot| event_of(snapshot)["routes_mark"].clone();
        assert_eq!(mark(&one), mark(&other));
        other.routes[0].next_hops.push(Default::default());
        assert_ne!(mark(&one), mark(&other));
        let routes: Value = serde_json::from_slice(&routes(&other)).unwrap();
        assert_eq!(routes["mark"], mark(&other));
    }

    #[test]
    fn a_number_that_json_lacks_is_null() {
        let mut snapshot = snapshot(1);
        snapshot.faces[0].about.rtt_ms = Some(f64::NAN);
        assert_eq!(event_of(&snapshot)["faces"][0]["rtt_ms"], Value::Null);
    }
}
