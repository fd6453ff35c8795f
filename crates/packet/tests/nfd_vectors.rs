//! The management elements of `test-vectors.json`, encoded by ndn-cxx. Each must decode to the fields below and encode
//! again to the same bytes.

use namewire_packet::{
    FaceId, NameBuf,
    nfd::{
        ChannelStatus, ControlParameters, ControlResponse, CsInfo, CsUsage, DatasetEntry, FaceCounters, FaceEventKind,
        FaceEventNotification, FacePersistency, FaceQueryFilter, FaceScope, FaceState, FaceStatus, FibEntry, FibUsage,
        ForwarderStatus, LinkType, NextHopRecord, NfdError, PacketCounts, PoolHolding, RibEntry, Route, StrategyChoice,
        TagBranch, TagRoute, TagServes, TagTree, decode_dataset, encode_dataset,
    },
    tag::{TagList, TagPacketError},
    tlv,
};
use proptest::prelude::*;
use std::fmt::Debug;

const REMOTE: &str = "udp4://192.0.2.1:6363";
const LOCAL: &str = "udp4://192.0.2.2:6363";

fn vector(id: &str) -> Vec<u8> {
    let file: serde_json::Value = serde_json::from_str(include_str!("test-vectors.json")).expect("JSON");
    let entries = file["management_tlvs"].as_array().expect("array");
    let entry = entries.iter().find(|entry| entry["id"] == id).unwrap_or_else(|| panic!("no vector {id}"));
    let hex = entry["hex"].as_str().expect("hex");
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect()
}

fn name(uri: &str) -> NameBuf {
    uri.parse().expect("name")
}

fn check<T: PartialEq + Debug>(
    id: &str,
    expected: &T,
    decode: impl Fn(&[u8]) -> Result<T, NfdError>,
    encode: impl Fn(&T, &mut Vec<u8>),
) {
    let wire = vector(id);
    assert_eq!(decode(&wire).as_ref(), Ok(expected), "{id}");
    let mut encoded = Vec::new();
    encode(expected, &mut encoded);
    assert_eq!(encoded, wire, "{id}");
}

fn check_entry<T: PartialEq + Debug + DatasetEntry>(id: &str, expected: &T) {
    check(id, expected, T::decode, T::encode);
}

fn all_parameters() -> ControlParameters {
    ControlParameters {
        name: Some(name("/example/A")),
        face_id: Some(FaceId(256)),
        uri: Some(REMOTE.into()),
        local_uri: Some(LOCAL.into()),
        origin: Some(255),
        cost: Some(10),
        capacity: Some(100),
        count: Some(7),
        flags: Some(3),
        mask: Some(3),
        strategy: Some(name("/localhost/nfd/strategy/best-route/54=%05")),
        expiration_period_ms: Some(60_000),
        face_persistency: Some(2),
        base_congestion_marking_interval_ns: Some(100_000_000),
        default_congestion_threshold_bytes: Some(65536),
        mtu: Some(1400),
        ..ControlParameters::default()
    }
}

#[test]
fn control_parameters() {
    check("M-params-all", &all_parameters(), ControlParameters::decode, ControlParameters::encode);
    let create = ControlParameters { uri: Some(REMOTE.into()), ..Default::default() };
    check("M-params-faces-create", &create, ControlParameters::decode, ControlParameters::encode);
    let register = ControlParameters { name: Some(name("/example/A")), ..Default::default() };
    check("M-params-rib-register", &register, ControlParameters::decode, ControlParameters::encode);
}

#[test]
fn control_responses() {
    let body = ControlParameters {
        name: Some(name("/example/A")),
        face_id: Some(FaceId(256)),
        origin: Some(0),
        cost: Some(0),
        flags: Some(1),
        ..Default::default()
    };
    check("M-response-rib-register", &ControlResponse::ok(body), ControlResponse::decode, ControlResponse::encode);
    let refused = ControlResponse::new(403, "authorization rejected");
    check("M-response-403", &refused, ControlResponse::decode, ControlResponse::encode);
}

fn face_status() -> FaceStatus {
    FaceStatus {
        face_id: FaceId(261),
        uri: REMOTE.into(),
        local_uri: LOCAL.into(),
        expiration_period_ms: Some(600_000),
        face_scope: FaceScope::NonLocal,
        face_persistency: FacePersistency::OnDemand,
        link_type: LinkType::PointToPoint,
        base_congestion_marking_interval_ns: Some(100_000_000),
        default_congestion_threshold_bytes: Some(65536),
        mtu: Some(8800),
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

#[test]
fn faces() {
    check_entry("M-facestatus", &face_status());
    let port = Some("a packet socket".into());
    let with_our_fields = FaceStatus { port, state: Some(FaceState::Down), path_mtu: Some(1472), ..face_status() };
    let mut wire = Vec::new();
    with_our_fields.encode(&mut wire);
    assert_eq!(FaceStatus::decode(&wire), Ok(with_our_fields));
    check_entry("M-channelstatus", &ChannelStatus { local_uri: LOCAL.into() });
    let filter = FaceQueryFilter {
        face_id: Some(FaceId(261)),
        uri_scheme: Some("udp4".into()),
        uri: Some(REMOTE.into()),
        local_uri: Some(LOCAL.into()),
        face_scope: Some(FaceScope::NonLocal),
        face_persistency: Some(FacePersistency::OnDemand),
        link_type: Some(LinkType::PointToPoint),
    };
    check("M-facequeryfilter", &filter, FaceQueryFilter::decode, FaceQueryFilter::encode);
    assert!(filter.matches(&face_status()));
    let event = FaceEventNotification {
        kind: FaceEventKind::Created,
        face_id: FaceId(261),
        uri: REMOTE.into(),
        local_uri: LOCAL.into(),
        face_scope: FaceScope::NonLocal,
        face_persistency: FacePersistency::OnDemand,
        link_type: LinkType::PointToPoint,
        flags: 0,
    };
    check("M-faceevent", &event, FaceEventNotification::decode, FaceEventNotification::encode);
}

#[test]
fn a_face_must_match_every_given_field_of_a_filter() {
    let face = face_status();
    assert!(FaceQueryFilter::default().matches(&face));
    for filter in [
        FaceQueryFilter { face_id: Some(FaceId(2)), ..Default::default() },
        FaceQueryFilter { uri_scheme: Some("udp".into()), ..Default::default() },
        FaceQueryFilter { uri: Some(LOCAL.into()), ..Default::default() },
        FaceQueryFilter { local_uri: Some(REMOTE.into()), ..Default::default() },
        FaceQueryFilter { face_scope: Some(FaceScope::Local), ..Default::default() },
        FaceQueryFilter { face_persistency: Some(FacePersistency::Permanent), ..Default::default() },
        FaceQueryFilter { link_type: Some(LinkType::AdHoc), ..Default::default() },
    ] {
        assert!(!filter.matches(&face), "{filter:?}");
    }
}

#[test]
fn tables() {
    let fib = FibEntry {
        name: name("/example/A"),
        next_hops: vec![
            NextHopRecord { face_id: FaceId(261), cost: 10 },
            NextHopRecord { face_id: FaceId(262), cost: 20 },
        ],
    };
    check_entry("M-fibentry", &fib);
    let route = Route {
        face_id: FaceId(261),
        origin: 255,
        cost: 10,
        flags: 1,
        expiration_period_ms: Some(60_000),
        is_contested: None,
    };
    check_entry("M-ribentry", &RibEntry { name: name("/example/A"), routes: vec![route] });
    let strategy = name("/localhost/nfd/strategy/best-route/54=%05");
    check_entry("M-strategychoice", &StrategyChoice { name: NameBuf::new(), strategy });
    let cs = CsInfo { capacity: 65536, flags: 3, n_cs_entries: 4, n_hits: 5, n_misses: 6 };
    check_entry("M-csinfo", &cs);
    let joined = encode_dataset(&[fib.clone(), fib.clone()]);
    assert_eq!(decode_dataset(&joined), Ok(vec![fib.clone(), fib]));
    assert!(decode_dataset::<FibEntry>(&joined[..joined.len() - 1]).is_err());
}

#[test]
fn forwarder_status_has_no_outer_element() {
    let wire = vector("M-forwarderstatus");
    let content = tlv::read_element(&wire).expect("Content");
    assert_eq!(content.type_number, tlv::types::CONTENT);
    let status = ForwarderStatus {
        nfd_version: "24.07".into(),
        start_timestamp_ms: 1_700_000_000_000,
        current_timestamp_ms: 1_700_000_100_000,
        n_name_tree_entries: 1,
        n_fib_entries: 2,
        n_pit_entries: 3,
        n_measurements_entries: 4,
        n_cs_entries: 5,
        packets: PacketCounts {
            in_interests: 6,
            in_data: 7,
            in_nacks: 8,
            out_interests: 9,
            out_data: 10,
            out_nacks: 11,
        },
        n_satisfied_interests: 12,
        n_unsatisfied_interests: 13,
    };
    let decoded = ForwarderStatus::decode(content.value).expect("decodes");
    assert_eq!(decoded, ForwarderStatus { current_timestamp_ms: decoded.current_timestamp_ms, ..status });
    let mut encoded = Vec::new();
    decoded.encode(&mut encoded);
    assert_eq!(encoded, content.value);
}

fn tags(tags: &[&str]) -> TagList {
    TagList::new(tags.iter().copied()).expect("tags")
}

/// Our own elements have no vectors of others; these bytes are written by hand.
#[test]
fn tags_in_parameters() {
    let parameters =
        ControlParameters { flags: Some(TagServes::Push.code()), tags: Some(tags(&["a", "bc"])), ..Default::default() };
    let nested = [&[253, 0x9A, 0x17, 1, b'a'][..], &[253, 0x9A, 0x17, 2, b'b', b'c']].concat();
    let wire = [&[104, 18, 108, 1, 2, 253, 0x9A, 0x0F, 11][..], &nested].concat();
    assert_eq!(parameters.to_wire(), wire);
    assert_eq!(ControlParameters::decode(&wire), Ok(parameters));
    let descending = [&[104, 15, 253, 0x9A, 0x0F, 11][..], &nested[5..], &nested[..5]].concat();
    assert_eq!(ControlParameters::decode(&descending), Err(NfdError::Tags(TagPacketError::BadTags)));
    assert_eq!(TagList::new(["b", "a"]), Err(TagPacketError::BadTags));
}

fn tag_route() -> TagRoute {
    let neighbour = TagBranch {
        tree: 1,
        face_id: FaceId(300),
        serves: TagServes::Both,
        is_application: false,
        tag_sets: Vec::new(),
    };
    let tag_sets = vec![tags(&["classical", "concert"]), tags(&["x"])];
    let application =
        TagBranch { tree: 2, face_id: FaceId(301), serves: TagServes::Pull, is_application: true, tag_sets };
    TagRoute { descriptor: [7; 24], branches: vec![neighbour, application] }
}

#[test]
fn datasets_of_tags() {
    let tree = TagTree {
        tree: 1,
        epoch: 70_000,
        root: u64::MAX,
        router: 2,
        label: Box::new([0x80, 3]),
        parent: Some(FaceId(261)),
        children: vec![FaceId(262), FaceId(263)],
        routers_below: 5,
        descriptors: 6,
    };
    let wire = [
        &[128, 44, 128, 1, 1, 129, 4, 0, 1, 0x11, 0x70, 130, 8, 255, 255, 255, 255, 255, 255, 255, 255][..],
        &[131, 1, 2, 132, 2, 0x80, 3, 133, 2, 1, 5, 134, 2, 1, 6, 134, 2, 1, 7, 135, 1, 5, 136, 1, 6],
    ];
    assert_eq!(encode_dataset(std::slice::from_ref(&tree)), wire.concat());
    assert_eq!(decode_dataset(&wire.concat()), Ok(vec![tree]));
    let root = TagTree { label: Box::new([]), ..TagTree::default() };
    assert_eq!(decode_dataset(&encode_dataset(std::slice::from_ref(&root))), Ok(vec![root]));

    let content = encode_dataset(&[tag_route(), tag_route()]);
    assert_eq!(decode_dataset(&content), Ok(vec![tag_route(), tag_route()]));
    let short = [128, 4, 128, 2, 1, 2];
    assert_eq!(decode_dataset::<TagRoute>(&short), Err(NfdError::BadSize(128)));
}

#[test]
fn every_vector_is_used_above() {
    let file: serde_json::Value = serde_json::from_str(include_str!("test-vectors.json")).expect("JSON");
    let source = include_str!("nfd_vectors.rs");
    for entry in file["management_tlvs"].as_array().expect("array") {
        let id = entry["id"].as_str().expect("id");
        assert!(source.contains(&format!("\"{id}\"")), "{id} is not tested");
    }
}

#[test]
fn fields_come_in_any_order_and_unknown_ones_are_skipped() {
    // MTU, an unknown element (type 200), Name, then a second Name that is ignored.
    let mut value = Vec::new();
    tlv::write_nni(&mut value, 137, 1400);
    tlv::write_tlv(&mut value, 200, b"unknown");
    name("/first").as_name().write_tlv(&mut value);
    name("/second").as_name().write_tlv(&mut value);
    let mut wire = Vec::new();
    tlv::write_tlv(&mut wire, 104, &value);
    let parameters = ControlParameters::decode(&wire).expect("decodes");
    let expected = ControlParameters { name: Some(name("/first")), mtu: Some(1400), ..Default::default() };
    assert_eq!(parameters, expected);
}

#[test]
fn malformed_elements_are_refused() {
    let cases: [(&str, &[u8]); 8] = [
        ("empty", &[]),
        ("another type", &[101, 0]),
        ("truncated", &[104, 3, 105, 2]),
        ("byte after the element", &[104, 0, 0]),
        ("integer of three bytes", &[104, 5, 105, 3, 0, 0, 1]),
        ("text that is not UTF-8", &[104, 3, 114, 1, 0xFF]),
        ("name that runs over", &[104, 4, 7, 2, 8, 9]),
        ("strategy without a name", &[104, 2, 107, 0]),
    ];
    for (what, wire) in cases {
        assert!(ControlParameters::decode(wire).is_err(), "{what}");
    }
    assert_eq!(ControlResponse::decode(&[101, 3, 102, 1, 200]), Err(NfdError::Missing(103)));
    assert!(ControlResponse::decode(&[101, 8, 102, 1, 200, 103, 0, 104, 1, 105]).is_err());
    let scope_of_seven = [150, 3, 132, 1, 7];
    assert_eq!(FaceQueryFilter::decode(&scope_of_seven), Err(NfdError::BadValue { field: 132, value: 7 }));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(type_number in prop::sample::select(vec![101u32, 104, 128, 130, 150, 192]),
                                 value in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut wire = Vec::new();
        tlv::write_tlv(&mut wire, type_number, &value);
        for bytes in [&wire, &value] {
            let _ = ControlParameters::decode(bytes);
            let _ = ControlResponse::decode(bytes);
            let _ = FaceStatus::decode(bytes);
            let _ = FaceQueryFilter::decode(bytes);
            let _ = FaceEventNotification::decode(bytes);
            let _ = ChannelStatus::decode(bytes);
            let _ = FibEntry::decode(bytes);
            let _ = RibEntry::decode(bytes);
            let _ = StrategyChoice::decode(bytes);
            let _ = CsInfo::decode(bytes);
            let _ = CsUsage::decode(bytes);
            let _ = FibUsage::decode(bytes);
            let _ = PoolHolding::decode(bytes);
            let _ = ForwarderStatus::decode(bytes);
            let _ = TagTree::decode(bytes);
            let _ = TagRoute::decode(bytes);
        }
    }

    #[test]
    fn a_changed_byte_of_a_tag_route_never_panics(position: prop::sample::Index, byte: u8) {
        let mut wire = encode_dataset(&[tag_route()]);
        let position = position.index(wire.len());
        wire[position] = byte;
        if let Ok(routes) = decode_dataset::<TagRoute>(&wire) {
            prop_assert_eq!(decode_dataset(&encode_dataset(&routes)), Ok(routes));
        }
    }

    #[test]
    fn a_changed_byte_never_panics(position in 0usize..152, byte: u8) {
        let mut wire = all_parameters().to_wire();
        let position = position % wire.len();
        wire[position] = byte;
        if let Ok(parameters) = ControlParameters::decode(&wire) {
            prop_assert_eq!(ControlParameters::decode(&parameters.to_wire()), Ok(parameters));
        }
    }
}
