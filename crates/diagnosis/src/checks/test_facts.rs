//! Facts of a router in order, for tests to spoil.

use super::Checked;
use crate::{
    facts::{
        Answer, CertificateFacts, Facts, FileFacts, ForwarderFacts, HostFacts, IdentityFacts, KeyFacts, KeyOfIdentity,
        PortFacts, PortHolder, ProbeFacts, ProcessFacts, Sample, SocketFacts, UserFacts,
    },
    finding::{Finding, Outcome},
};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{
        ChannelStatus, FaceCounters, FaceHealth, FacePersistency, FaceScope, FaceState, FaceStatus, FibEntry, FibUsage,
        ForwarderStatus, LinkCounts, LinkType, NextHopRecord, NodeState, PacketCounts, RibEntry, Route, StrategyChoice,
        origin, route_flags,
    },
};

/// The face to the only neighbour, which has the default route.
pub(crate) const NEIGHBOUR: FaceId = FaceId(300);
/// A face to an application.
pub(crate) const APPLICATION: FaceId = FaceId(299);

/// Some time of 2026.
const NOW_MS: u64 = 1_780_000_000_000;
const START_MS: u64 = NOW_MS - 3_600_000;

/// What a check found; empty if all is well. Panics if the check was not made.
pub(crate) fn found(checked: Checked) -> Vec<Finding> {
    match checked {
        Ok(Outcome::Found(findings)) => findings,
        Ok(Outcome::Good(_)) => Vec::new(),
        other => panic!("{other:?}"),
    }
}

/// Why a check was not made.
pub(crate) fn not_made(checked: Checked) -> String {
    match checked {
        Err(Outcome::NotMade(why)) => why,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn name(uri: &str) -> NameBuf {
    uri.parse().expect("a name")
}

pub(crate) fn fib_entry(prefix: &str, faces: &[FaceId]) -> FibEntry {
    FibEntry {
        name: name(prefix),
        next_hops: faces.iter().map(|face| NextHopRecord { face_id: *face, cost: 0 }).collect(),
    }
}

pub(crate) fn rib_entry(prefix: &str, faces: &[(FaceId, u64)]) -> RibEntry {
    let route = |(face_id, cost): &(FaceId, u64)| Route {
        face_id: *face_id,
        origin: origin::STATIC,
        cost: *cost,
        flags: route_flags::CHILD_INHERIT,
        expiration_period_ms: None,
        is_contested: None,
    };
    RibEntry { name: name(prefix), routes: faces.iter().map(route).collect() }
}

pub(crate) fn choice(prefix: &str, strategy: &str) -> StrategyChoice {
    StrategyChoice { name: name(prefix), strategy: name(&format!("/localhost/nfd/strategy/{strategy}/v=5")) }
}

pub(crate) fn application(face_id: FaceId) -> FaceStatus {
    FaceStatus {
        face_id,
        uri: "fd://18".to_owned(),
        local_uri: "unix:///run/nfd/nfd.sock".to_owned(),
        expiration_period_ms: None,
        face_scope: FaceScope::Local,
        face_persistency: FacePersistency::OnDemand,
        link_type: LinkType::PointToPoint,
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold_bytes: None,
        mtu: None,
        counters: FaceCounters::default(),
        flags: 0,
        port: None,
        state: Some(FaceState::Up),
        path_mtu: None,
        link: LinkCounts::default(),
    }
}

fn neighbour() -> FaceStatus {
    FaceStatus {
        uri: "udp4://192.0.2.9:6363".to_owned(),
        local_uri: "udp4://192.0.2.1:6363".to_owned(),
        face_scope: FaceScope::NonLocal,
        face_persistency: FacePersistency::Permanent,
        mtu: Some(8800),
        counters: FaceCounters {
            packets: PacketCounts { in_data: 7, ..PacketCounts::default() },
            ..FaceCounters::default()
        },
        ..application(NEIGHBOUR)
    }
}

fn state() -> NodeState {
    NodeState {
        general: Some(ForwarderStatus {
            nfd_version: "namewire-0.1.0".to_owned(),
            start_timestamp_ms: START_MS,
            current_timestamp_ms: NOW_MS,
            n_fib_entries: 2,
            ..ForwarderStatus::default()
        }),
        faces: vec![application(APPLICATION), neighbour()],
        health: vec![FaceHealth {
            face: NEIGHBOUR,
            since_ms: NOW_MS - 60_000,
            answered: 100,
            unanswered: 0,
            last_us: Some(1000),
            median_us: Some(1000),
            p99_us: Some(1000),
            recent: None,
        }],
        channels: ["udp4://0.0.0.0:6363", "tcp4://0.0.0.0:6363"]
            .map(|uri| ChannelStatus { local_uri: uri.to_owned() })
            .to_vec(),
        strategies: vec![choice("/", "best-route"), choice("/ndn/broadcast", "multicast")],
        fib_usage: Some(FibUsage { capacity_entries: 1000, ..FibUsage::default() }),
        ..NodeState::default()
    }
}

fn forwarder() -> ForwarderFacts {
    let sample = |ago_ms: u64| Sample { monotonic_ms: 10_000 - ago_ms, unix_ms: NOW_MS - ago_ms, state: state() };
    ForwarderFacts {
        transport: "unix:///run/nfd/nfd.sock".to_owned(),
        is_local: true,
        is_namewire: true,
        version: "namewire-0.1.0".to_owned(),
        before: sample(1000),
        after: sample(0),
        rib: vec![rib_entry("/", &[(NEIGHBOUR, 0)])],
        fib: vec![fib_entry("/", &[NEIGHBOUR])],
        ..ForwarderFacts::default()
    }
}

fn keys() -> KeyFacts {
    let certificate = CertificateFacts {
        name: "/alice/KEY/1/self/v=1".to_owned(),
        is_default: true,
        not_before_ms: NOW_MS - 1_000_000,
        not_after_ms: NOW_MS + 1_000_000_000_000,
    };
    let key = KeyOfIdentity {
        name: "/alice/KEY/1".to_owned(),
        is_default: true,
        has_private_key: true,
        certificates: vec![certificate],
    };
    KeyFacts {
        folder: "/home/alice/.ndn".to_owned(),
        exists: true,
        error: None,
        identities: vec![IdentityFacts { name: "/alice".to_owned(), is_default: true, keys: vec![key] }],
        files: vec![("/home/alice/.ndn/ndnsec-key-file/1.privkey".to_owned(), FileFacts { uid: 1000, mode: 0o600 })],
    }
}

/// A router in whose facts no check finds anything.
pub(crate) fn in_order() -> Facts {
    let mut facts = Facts {
        now_ms: NOW_MS,
        user: UserFacts { uid: 1000, name: Some("alice".to_owned()) },
        forwarder: Some(forwarder()),
        process: Some(ProcessFacts {
            pid: 100,
            uid: Some(1000),
            start_unix_ms: Some(START_MS),
            descriptors: Some((1 << 20, 1 << 20)),
            open_descriptors: Some(30),
            ..ProcessFacts::default()
        }),
        host: HostFacts {
            memory_bytes: Some(16 << 30),
            available_bytes: Some(8 << 30),
            has_ipv6: true,
            has_af_xdp: Some(true),
            ..HostFacts::default()
        },
        keys: keys(),
        ..Facts::default()
    };
    let file = Some(FileFacts { uid: 0, mode: 0o666 });
    let path = "/run/nfd/nfd.sock".to_owned();
    facts.approach.sockets = vec![SocketFacts { path, file, is_socket: true, refusal: None, can_be_made: false }];
    facts.ports = ["udp", "tcp"]
        .map(|protocol| {
            let holders = vec![PortHolder { pid: Some(100), program: Some("namewire".to_owned()) }];
            PortFacts { protocol, port: 6363, is_named: false, holders }
        })
        .to_vec();
    facts.probes = vec![ProbeFacts {
        face: NEIGHBOUR,
        small: Answer::Nack("NoRoute".to_owned()),
        large: Some((8000, Answer::Nack("NoRoute".to_owned()))),
        kernel_mtu: Some(1500),
        router: None,
    }];
    for (key, value) in [("router.workers", "1"), ("faces.max_per_worker", "16384"), ("cs.capacity", "\"64 MiB\"")] {
        facts.settings.values.insert(key.to_owned(), value.to_owned());
    }
    facts.configuration = Some(crate::facts::ConfigurationFacts { path: "/c".to_owned(), ..Default::default() });
    facts
}
