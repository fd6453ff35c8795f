//! Dataset entries that the tests of both printers show.

use namewire_packet::{
    FaceId,
    nfd::{
        FaceCounters, FacePersistency, FaceScope, FaceStatus, FibEntry, ForwarderStatus, LinkType, NextHopRecord,
        PacketCounts, RibEntry, Route, StrategyChoice,
    },
};

pub(crate) fn face() -> FaceStatus {
    FaceStatus {
        face_id: FaceId(259),
        uri: "udp4://192.0.2.77:6363".to_owned(),
        local_uri: "udp4://192.0.2.2:6363".to_owned(),
        expiration_period_ms: Some(59_900),
        face_scope: FaceScope::NonLocal,
        face_persistency: FacePersistency::Permanent,
        link_type: LinkType::PointToPoint,
        base_congestion_marking_interval_ns: Some(100_000_000),
        default_congestion_threshold_bytes: Some(65536),
        mtu: Some(1400),
        counters: FaceCounters {
            packets: PacketCounts {
                in_interests: 1,
                in_data: 2,
                in_nacks: 3,
                out_interests: 4,
                out_data: 5,
                out_nacks: 6,
            },
            in_bytes: 7,
            out_bytes: 8,
        },
        flags: 6,
        port: None,
        state: None,
        path_mtu: None,
        link: Default::default(),
    }
}

/// A face without anything optional.
pub(crate) fn plain_face() -> FaceStatus {
    FaceStatus {
        face_id: FaceId(1),
        uri: "internal://".to_owned(),
        local_uri: "internal://".to_owned(),
        expiration_period_ms: None,
        face_scope: FaceScope::Local,
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold_bytes: None,
        mtu: None,
        counters: FaceCounters::default(),
        flags: 1,
        ..face()
    }
}

pub(crate) fn rib_entry() -> RibEntry {
    let route = |face, origin, cost, flags, expiration_period_ms| Route {
        face_id: FaceId(face),
        origin,
        cost,
        flags,
        expiration_period_ms,
        is_contested: None,
    };
    let routes = vec![route(259, 255, 10, 1, None), route(260, 7, 0, 3, Some(59_999))];
    RibEntry { name: "/ex".parse().expect("a name"), routes }
}

pub(crate) fn fib_entry() -> FibEntry {
    let next_hop = |face, cost| NextHopRecord { face_id: FaceId(face), cost };
    FibEntry { name: "/ex".parse().expect("a name"), next_hops: vec![next_hop(259, 0), next_hop(260, 20)] }
}

pub(crate) fn strategy_choice() -> StrategyChoice {
    StrategyChoice {
        name: "/".parse().expect("a name"),
        strategy: "/localhost/nfd/strategy/best-route/v=5".parse().expect("a name"),
    }
}

pub(crate) fn general() -> ForwarderStatus {
    ForwarderStatus {
        nfd_version: "24.07".to_owned(),
        start_timestamp_ms: 1_795_212_138_488,
        current_timestamp_ms: 1_795_212_160_000,
        n_name_tree_entries: 11,
        n_satisfied_interests: 3,
        n_unsatisfied_interests: 4,
        ..ForwarderStatus::default()
    }
}
