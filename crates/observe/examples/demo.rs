//! An invented router with changing values, to try the page, and for the browser test.
//!
//! `cargo run -p namewire-observe --example demo -- [--large] [--listen ADDRESS]`
//!
//! It prints the address, and serves until it is stopped. All values depend only on the time since the start, so that
//! two runs show the same. `--large` shows 1,000 faces and 10,000 routes.

use std::net::IpAddr;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use namewire_node_model::observer_address::ObservedPeer;
use namewire_observe::snapshot::*;
use namewire_observe::source::{Admitted, Place, SettingsInForce};
use namewire_observe::{ObserveConfig, Observer, ObserverHandle, Source, TraceNews, TraceReader};
use namewire_packet::nfd::{
    CsInfo, CsPrefixUsage, CsUsage, DropCounter, FaceCounters, FaceRecent, FibUsage, LinkCounts, PacketCounts,
    StrategyChoice, WorkerLoad,
};
use serde_json::json;

const CONTENT_BYTES: u64 = 1100;

/// A trace with some packets in each look.
struct DemoTrace {
    prefix: String,
    packets: u64,
}

impl TraceReader for DemoTrace {
    fn take(&mut self, _most: usize) -> TraceNews {
        let packets = (0..3).map(|_| self.packet()).collect();
        TraceNews { packets, left_out: self.packets % 5, is_over: false }
    }
}

impl DemoTrace {
    fn packet(&mut self) -> serde_json::Value {
        self.packets += 1;
        let (number, time_ns) = (self.packets, unix_ms() * 1_000_000 + self.packets % 1000);
        let name = format!("{}/video/%00%01/seg={}", self.prefix.trim_end_matches('/'), number / 2);
        let interest = json!({ "time_ns": time_ns, "packet": "Interest", "name": name, "face_id": 300, "worker": 0 });
        let with = |more: serde_json::Value| {
            let mut packet = interest.clone();
            for (key, value) in more.as_object().into_iter().flatten() {
                packet[key] = value.clone();
            }
            packet
        };
        match number % 10 {
            9 => with(json!({ "verdict": "dropped", "reason": "no-route", "to": [] })),
            8 => with(json!({ "verdict": "no answer", "lifetime_ms": 4000, "face_id": null })),
            even if even % 2 == 0 => with(json!({ "verdict": "sent", "to": [256] })),
            _ => with(json!({ "packet": "Data", "verdict": "sent", "face_id": 256, "to": [300], "after_us": 1234 })),
        }
    }
}

struct Demo {
    faces: u64,
    routes: u64,
    start_unix_ms: u64,
}

impl Source for Demo {
    fn admit(&self, _client: IpAddr, _place: Place) -> Result<Admitted, String> {
        Ok(Box::new(()))
    }

    async fn snapshot(&self) -> Option<Snapshot> {
        let now_unix_ms = unix_ms();
        let seconds = (now_unix_ms - self.start_unix_ms) as f64 / 1000.0;
        let faces: Vec<Face> = (0..self.faces).map(|index| face(index, seconds, now_unix_ms)).collect();
        let data: u64 = faces.iter().map(|face| face.counters.packets.in_data).sum();
        Some(Snapshot {
            version: env!("CARGO_PKG_VERSION").into(),
            host: "router.example".into(),
            start_unix_ms: self.start_unix_ms,
            now_unix_ms,
            workers: (0..2).map(|number| worker(number, seconds, data)).collect(),
            routes: routes(self.routes, self.faces),
            drops: drops(seconds),
            pools: pools(seconds, self.faces),
            cs: content_store(seconds, data),
            fib: fib(self.routes),
            last_drops: last_drops(seconds, now_unix_ms),
            pit: Pit { entries: 300 + wave(seconds, 7.0, 250.0), capacity_entries: 65_536 },
            strategies: strategies(),
            repo: Some(json!({"path": "/var/lib/namewire/repo", "packets": 120_000 + data / 9, "read_only": false})),
            notes: vec!["eth1: AF_XDP in copy mode, because the driver has no zero copy".into()],
            faces,
            ..Default::default()
        })
    }

    async fn settings(&self) -> Option<SettingsInForce> {
        let seconds = (unix_ms() - self.start_unix_ms) / 1000;
        Some(SettingsInForce { settings: settings(seconds, self.faces), left_out: self.faces / 1000 })
    }

    async fn trace(&self, prefix: String, _one_in: u64) -> Result<Box<dyn TraceReader>, String> {
        if !prefix.starts_with('/') {
            return Err(format!("{prefix:?} is no name: a name starts with a slash"));
        }
        Ok(Box::new(DemoTrace { prefix, packets: 0 }))
    }

    async fn explain(&self, name: String) -> Result<serde_json::Value, String> {
        if !name.starts_with('/') {
            return Err(format!("{name:?} is no name: a name starts with a slash"));
        }
        Ok(json!({
            "name": name,
            "content_store": "miss",
            "pending": false,
            "fib_prefix": "/example",
            "strategy": {"name": "/", "strategy": "/localhost/nfd/strategy/best-route/v=5"},
            "outcome": "it goes to face 256, the cheapest of 2 next hops of /example (best-route)",
            "next_hops": [
                {"face_id": 256, "cost": 10, "is_chosen": true, "remote_uri": "udp4://192.0.2.1:6363"},
                {"face_id": 261, "cost": 20, "is_chosen": false, "remote_uri": "udp4://192.0.2.6:6363"},
            ],
        }))
    }
}

/// A router beside the invented one: its faces are the other ends of links of its neighbours.
struct Neighbour {
    name: &'static str,
    /// Local address, remote address and state.
    faces: &'static [(&'static str, &'static str, &'static str)],
    /// The face that Interests go to; none: they are dropped.
    next_hop: Option<u64>,
    start_unix_ms: u64,
}

/// mid and south are linked with the invented router, and with east.
const NEIGHBOURS: [Neighbour; 3] = [
    Neighbour {
        name: "mid",
        faces: &[
            ("udp4://192.0.2.1:6363", "udp4://203.0.113.1:6363", "up"),
            ("udp4://192.0.2.1:6363", "udp4://198.51.100.9:6363", "up"),
        ],
        next_hop: Some(257),
        start_unix_ms: 0,
    },
    Neighbour {
        name: "south",
        faces: &[
            ("udp4://192.0.2.6:6363", "udp4://203.0.113.1:6363", "degraded"),
            ("udp4://192.0.2.6:6363", "udp4://198.51.100.9:6363", "down"),
        ],
        next_hop: Some(257),
        start_unix_ms: 0,
    },
    Neighbour {
        name: "east",
        faces: &[
            ("udp4://198.51.100.9:6363", "udp4://192.0.2.1:6363", "up"),
            ("udp4://198.51.100.9:6363", "udp4://192.0.2.6:6363", "down"),
        ],
        next_hop: None,
        start_unix_ms: 0,
    },
];

impl Source for Neighbour {
    fn admit(&self, _client: IpAddr, _place: Place) -> Result<Admitted, String> {
        Ok(Box::new(()))
    }

    async fn snapshot(&self) -> Option<Snapshot> {
        let now_unix_ms = unix_ms();
        let seconds = (now_unix_ms - self.start_unix_ms) as f64 / 1000.0;
        let face = |(index, (local, remote, state)): (u64, &(&str, &str, &str))| {
            let per_s = if *state == "down" { 0.0 } else { 700.0 * (index + 1) as f64 };
            let about = FaceAbout {
                id: 256 + index,
                local: (*local).into(),
                remote: (*remote).into(),
                scope: "non-local".into(),
                state: (*state).into(),
                ..FaceAbout::default()
            };
            let counters = counters(seconds, per_s);
            Face { about, counters, recent: recent(seconds, per_s), ..Face::default() }
        };
        let no_route = DropCounter { reason: "engine.no-route".into(), count: grown(seconds, 14.0, 9.0) };
        let drops_it = self.next_hop.is_none();
        Some(Snapshot {
            version: env!("CARGO_PKG_VERSION").into(),
            host: format!("{}.example", self.name),
            start_unix_ms: self.start_unix_ms,
            now_unix_ms,
            workers: vec![worker(0, seconds, 0)],
            faces: (0..).zip(self.faces).map(face).collect(),
            drops: if drops_it { vec![no_route] } else { Vec::new() },
            last_drops: if drops_it { last_drops(seconds, now_unix_ms) } else { Vec::new() },
            pit: Pit { entries: wave(seconds, 7.0, 250.0), capacity_entries: 65_536 },
            ..Default::default()
        })
    }

    async fn settings(&self) -> Option<SettingsInForce> {
        None
    }

    async fn explain(&self, name: String) -> Result<serde_json::Value, String> {
        let hops = self.next_hop.into_iter().map(|face| {
            let remote = self.faces[(face - 256) as usize].1;
            json!({"face_id": face, "cost": 0, "is_chosen": true, "remote_uri": remote})
        });
        let outcome = match self.next_hop {
            Some(_) => "it goes to the one next hop of /example, by best-route",
            None => "no route covers the name: a Nack (NoRoute) goes back",
        };
        let hints = ["namewire route add /example/name FACE makes a route; namewire route list shows all routes"];
        let hints = if self.next_hop.is_none() { &hints[..] } else { &[] };
        Ok(json!({"name": name, "outcome": outcome, "next_hops": hops.collect::<Vec<_>>(), "hints": hints}))
    }
}

/// Starts the neighbours. Their addresses, and one where none is.
fn neighbours() -> std::io::Result<(Vec<ObserverHandle>, Vec<ObservedPeer>)> {
    let (mut handles, mut peers) = (Vec::new(), Vec::new());
    for neighbour in NEIGHBOURS {
        let config = ObserveConfig { listen: vec![([127, 0, 0, 1], 0).into()], ..ObserveConfig::default() };
        let name = neighbour.name;
        let handle = Observer::bind(&config)?.serve(Neighbour { start_unix_ms: unix_ms(), ..neighbour })?;
        peers.push(format!("{name}=http://{}", handle.addresses()[0]));
        handles.push(handle);
    }
    peers.push("gone=http://127.0.0.1:1".to_owned());
    Ok((handles, peers.iter().filter_map(|peer| peer.parse().ok()).collect()))
}

fn setting(key: &str, value: &str, source: &str, place: Option<&str>) -> serde_json::Value {
    json!({"key": key, "value": value, "source": source, "place": place})
}

/// A command changes the policy every three seconds.
fn settings(seconds: u64, regions: u64) -> Vec<serde_json::Value> {
    let policy = if (seconds / 3).is_multiple_of(2) { "\"lru\"" } else { "\"fifo\"" };
    let regions: Vec<String> = (0..regions).map(|index| format!("/region/{index}")).collect();
    let changed = [
        setting("cs.capacity", "\"2 GiB\"", "file", Some("/etc/namewire/namewire.toml:7")),
        setting("cs.policy", policy, "command", None),
        setting("router.workers", "4", "option", Some("--workers")),
        setting("tables.regions", &json!(regions).to_string(), "file", Some("/etc/namewire/namewire.toml:19")),
    ];
    let defaults = (0..150).map(|index| setting(&format!("part{}.key{index}", index / 20), "true", "default", None));
    defaults.chain(changed).collect()
}

/// One packet dropped every two seconds.
fn last_drops(seconds: f64, now_unix_ms: u64) -> Vec<LastDrop> {
    let number = (seconds / 2.0) as u64;
    let drop = |ago: u64| LastDrop {
        time_unix_ms: now_unix_ms - 2000 * ago,
        reason: if (number - ago).is_multiple_of(3) { "engine.pit-full" } else { "engine.no-route" }.into(),
        packet: "Interest".into(),
        face: Some(256 + (number - ago) % 5),
        name: Some(format!("/example/lost/{}", number - ago)),
    };
    (0..number.min(40)).map(drop).collect()
}

/// A sum that grows: `per_s` on average, with waves.
fn grown(seconds: f64, per_s: f64, period_s: f64) -> u64 {
    let turn = std::f64::consts::TAU / period_s;
    (per_s * (seconds + 0.7 * (1.0 - (turn * seconds).cos()) / turn)) as u64
}

/// A value between 0 and `size` that goes up and down.
fn wave(seconds: f64, period_s: f64, size: f64) -> u64 {
    (size * (1.0 + (std::f64::consts::TAU / period_s * seconds).sin()) / 2.0) as u64
}

fn face(index: u64, seconds: f64, now_unix_ms: u64) -> Face {
    let (remote, local, scope) = match index % 5 {
        0 => (format!("udp4://192.0.2.{}:6363", index % 250 + 1), "udp4://203.0.113.1:6363".into(), "non-local"),
        1 => (format!("fd://{}", 20 + index), "unix:///run/nfd/nfd.sock".into(), "local"),
        2 => (format!("tcp6://[2001:db8::{index:x}]:6363"), "tcp6://[2001:db8::1]:43210".into(), "non-local"),
        3 => {
            (format!("ether://[02:00:00:00:{:02x}:{:02x}]", index / 256, index % 256), "dev://eth1".into(), "non-local")
        }
        _ => (format!("wsclient://198.51.100.{}:51234", index % 250 + 1), "ws://[::]:9696".into(), "non-local"),
    };
    let is_up = index % 17 != 8;
    let per_s = if is_up { 9000.0 / (1.0 + index as f64).powf(0.8) } else { 0.0 };
    let counters = counters(seconds, per_s);
    let (asked, answered) = (counters.packets.out_interests, counters.packets.in_data);
    let is_remote = scope == "non-local";
    let about = FaceAbout {
        id: 256 + index,
        remote,
        process: (!is_remote).then(|| format!("application ({})", 4000 + index)),
        local,
        scope: scope.into(),
        persistency: if is_remote { "persistent" } else { "on-demand" }.into(),
        link_type: "point-to-point".into(),
        mtu: if is_remote { 1420 } else { 8800 },
        state: if is_up { "up" } else { "down" }.into(),
        since_unix_ms: Some(now_unix_ms - (seconds * 1000.0) as u64 - 60_000 * (index + 1)),
        drops: vec![DropCounter { reason: "queue-full".into(), count: asked / 4000 }],
        port: (index % 5 == 3).then(|| "eth1".into()),
        rtt_ms: is_remote.then(|| 4.0 + index as f64 % 60.0 + wave(seconds, 5.0, 30.0) as f64 / 10.0),
        loss: (index % 10 == 2).then(|| wave(seconds + index as f64, 40.0, 60.0) as f64 / 1000.0),
        idle_ms: Some(if is_up { 1000 / (per_s as u64 + 1) } else { (seconds * 1000.0) as u64 }),
    };
    let answers = is_remote.then(|| Answers {
        buckets: vec![(0.005, answered - answered / 5), (0.05, answered / 5)],
        slower: 0,
        sum_s: answered as f64 / 200.0,
        unanswered: asked - answered,
    });
    Face { about, counters, link: LinkCounts::default(), answers, recent: recent(seconds, per_s) }
}

/// What a face has carried by now.
fn counters(seconds: f64, per_s: f64) -> FaceCounters {
    let (asked, answered) = (grown(seconds, per_s, 9.0), grown(seconds, per_s * 0.94, 9.0));
    FaceCounters {
        packets: PacketCounts {
            in_interests: asked / 3,
            in_data: answered,
            in_nacks: asked / 500,
            out_interests: asked,
            out_data: answered / 3,
            out_nacks: asked / 900,
        },
        in_bytes: answered * CONTENT_BYTES + asked * 30,
        out_bytes: asked * 90 + answered / 3 * CONTENT_BYTES,
    }
}

/// What it carried in the last ten seconds, once there was one.
fn recent(seconds: f64, per_s: f64) -> Option<FaceRecent> {
    let span_s = seconds.min(10.0);
    let (now, before) = (counters(seconds, per_s), counters(seconds - span_s, per_s));
    (span_s >= 1.0).then(|| FaceRecent {
        span_ms: (span_s * 1000.0) as u64,
        in_packets: now.packets.received() - before.packets.received(),
        in_bytes: now.in_bytes - before.in_bytes,
        out_packets: now.packets.sent() - before.packets.sent(),
        out_bytes: now.out_bytes - before.out_bytes,
        ..FaceRecent::default()
    })
}

fn fib(routes: u64) -> Fib {
    let usage = FibUsage { design: "hash".into(), bytes: routes * 96, capacity_entries: 65_536, is_lossy: false };
    Fib { entries: routes, usage }
}

fn worker(number: u64, seconds: f64, data: u64) -> Worker {
    let share = data / (2 + number);
    let busy_ratio = Some(0.15 + wave(seconds + number as f64 * 3.0, 11.0, 700.0) as f64 / 1000.0);
    let load = WorkerLoad {
        number,
        busy_ns: (seconds * 5e8) as u64,
        pit_entries: 150 + wave(seconds + number as f64, 7.0, 120.0),
        cs_entries: 20_000,
        cs_bytes: 20_000 * CONTENT_BYTES,
        packets: PacketCounts {
            in_interests: share + share / 3,
            in_data: share,
            in_nacks: share / 500,
            out_interests: share,
            out_data: share,
            out_nacks: share / 900,
        },
        satisfied: share,
        unsatisfied: share / 30,
        cs_hits: share / 3,
        cs_misses: share,
        polled_ns: (seconds * 1e8) as u64,
        polls: share,
        polls_found: share - share / 20,
        sleeps: share / 9,
        poll_window_ns: 18_000,
        crossed: share / 2,
        is_io_thread: false,
    };
    Worker { busy_ratio, poll_ratio: Some(0.1), load }
}

fn routes(count: u64, faces: u64) -> Vec<Route> {
    let sites = ["edu/arizona", "edu/ucla", "com/example", "net/campus/lab", "org/archive"];
    let prefix = |index: u64| match index {
        0 => "/".to_owned(),
        _ => format!("/{}/set{}/object{}", sites[index as usize % sites.len()], index / 250, index % 250),
    };
    let hop = |index: u64, cost| NextHop { face: 256 + (index * cost) % faces, cost, origin: "nlsr".into() };
    // The second face is an application.
    let app = |index| Route {
        prefix: format!("/org/app{index}"),
        next_hops: vec![NextHop { face: 257, cost: 0, origin: "app".into() }],
    };
    (0..count)
        .map(|index| Route { prefix: prefix(index), next_hops: vec![hop(index, 10), hop(index + 1, 21)] })
        .chain((0..4).map(app))
        .collect()
}

fn drops(seconds: f64) -> Vec<DropCounter> {
    let rows = [
        ("no-route", 14.0, 13.0),
        ("duplicate-nonce", 3.0, 5.0),
        ("unsolicited-data", 0.8, 30.0),
        ("pit-full", 0.0, 1.0),
    ];
    rows.map(|(reason, per_s, period_s)| DropCounter { reason: reason.into(), count: grown(seconds, per_s, period_s) })
        .into()
}

fn pools(seconds: f64, faces: u64) -> Vec<Pool> {
    let pool = |name: &str, used, capacity| Pool { name: name.into(), used, capacity, holders: 7, refused: used / 300 };
    vec![
        pool("faces", faces, 4096),
        pool("descriptors", faces + 40, 1100),
        pool("pending Interests", 900 + wave(seconds, 9.0, 90.0), 1000),
        pool("send queues", wave(seconds, 5.0, 400.0), 1000),
    ]
}

fn content_store(seconds: f64, data: u64) -> ContentStore {
    let prefix = |prefix: &str, part: u64| CsPrefixUsage {
        prefix: prefix.parse().expect("a name"),
        hits: data / part,
        misses: data / (part + 3),
        insertions: data / (part + 4),
    };
    let usage = CsUsage {
        policy: "s3-fifo".into(),
        admission: "all".into(),
        bytes: 40_000 * CONTENT_BYTES + wave(seconds, 20.0, 9e6),
        capacity_bytes: 64 << 20,
        prefixes: vec![prefix("/edu/ucla", 4), prefix("/com/example/video", 6), prefix("/org/archive", 30)],
        ..CsUsage::default()
    };
    let info = CsInfo { n_cs_entries: 40_000, n_hits: data / 3, n_misses: data, ..CsInfo::default() };
    ContentStore { info, usage }
}

fn strategies() -> Vec<StrategyChoice> {
    let rows = [("/", "best-route/v=5"), ("/localhost", "best-route/v=5"), ("/ndn/broadcast", "multicast/v=5")];
    let choice = |(prefix, strategy): (&str, &str)| StrategyChoice {
        name: prefix.parse().expect("a name"),
        strategy: format!("/localhost/nfd/strategy/{strategy}").parse().expect("a name"),
    };
    rows.map(choice).into()
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn main() -> ExitCode {
    let mut config =
        ObserveConfig { listen: vec![([127, 0, 0, 1], 0).into()], page: true, trace: true, peers: Vec::new() };
    let mut demo = Demo { faces: 12, routes: 60, start_unix_ms: unix_ms() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--large" => (demo.faces, demo.routes) = (1000, 10_000),
            "--listen" => {
                config.listen = arguments.next().and_then(|address| address.parse().ok()).into_iter().collect()
            }
            _ => config.listen.clear(),
        }
    }
    if config.listen.is_empty() {
        eprintln!("usage: demo [--large] [--listen ADDRESS]");
        return ExitCode::from(2);
    }
    let served = neighbours().and_then(|(neighbours, peers)| {
        config.peers = peers;
        Ok((Observer::bind(&config)?.serve(demo)?, neighbours))
    });
    match served {
        Ok((handle, _neighbours)) => {
            println!("http://{}/", handle.addresses()[0]);
            loop {
                std::thread::park();
            }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
