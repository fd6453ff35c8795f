//! Datasets and face events as clients fetch them.

use namewire_management::Effect;
use namewire_packet::{
    Data, FaceId, Interest, InterestBuilder, NameBuf,
    nfd::{
        ChannelStatus, ControlParameters, ControlResponse, CsInfo, CsUsage, DatasetEntry, FaceEventKind,
        FaceEventNotification, FacePersistency, FaceQueryFilter, FaceScope, FaceState, FaceStatus, FibEntry, FibUsage,
        ForwarderStatus, LinkType, NameLook, NextHopRecord, Part, ProcessPrivileges, RibEntry, StrategyChoice,
        decode_dataset, face_flags,
    },
};
use namewire_testbed::{
    management::{Bench, LOCAL_FACE, REMOTE, UDP_FACE, for_prefix, fresh_fields, signed_command, udp_face},
    uri,
};

#[test]
fn every_dataset_reports_the_state_of_the_node() {
    let mut bench = Bench::new();
    let route = ControlParameters {
        face_id: Some(UDP_FACE),
        cost: Some(10),
        expiration_period_ms: Some(60_000),
        ..for_prefix("/a")
    };
    bench.command("rib/register", &route);
    bench.command("rib/register", &ControlParameters { cost: Some(3), ..for_prefix("/a") });
    bench.pass_ms(5_000);

    let rib: Vec<RibEntry> = decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).expect("decodes");
    assert_eq!(rib.len(), 1);
    let shown: Vec<_> = rib[0].routes.iter().map(|r| (r.face_id, r.cost, r.expiration_period_ms)).collect();
    assert_eq!(shown, [(LOCAL_FACE, 3, None), (UDP_FACE, 10, Some(55_000))]);

    let fib: Vec<FibEntry> = decode_dataset(&bench.fetch("/localhost/nfd/fib/list")).expect("decodes");
    let hop = |face_id, cost| NextHopRecord { face_id, cost };
    let a = FibEntry { name: uri("/a"), next_hops: vec![hop(LOCAL_FACE, 3), hop(UDP_FACE, 10)] };
    let own = FibEntry { name: uri("/localhost/nfd"), next_hops: vec![hop(FaceId::INTERNAL, 0)] };
    assert_eq!(fib, [a, own], "by cost, without hidden entries");

    let choices =
        decode_dataset::<StrategyChoice>(&bench.fetch("/localhost/nfd/strategy-choice/list")).expect("decodes");
    let shown: Vec<(NameBuf, NameBuf)> = choices.into_iter().map(|choice| (choice.name, choice.strategy)).collect();
    let strategy = |short| uri(&format!("/localhost/nfd/strategy/{short}/54=%05"));
    let expected = [
        (NameBuf::new(), strategy("best-route")),
        (uri("/ndn/broadcast"), strategy("multicast")),
        (uri("/localhost"), strategy("multicast")),
        (uri("/localhost/nfd"), strategy("best-route")),
    ];
    assert_eq!(shown, expected);

    let faces: Vec<FaceStatus> = decode_dataset(&bench.fetch("/localhost/nfd/faces/list")).expect("decodes");
    let numbers = faces.iter().map(|face| face.face_id.0).collect::<Vec<_>>();
    assert_eq!(numbers, [1, 254, 255, LOCAL_FACE.0, UDP_FACE.0], "the forwarder's own first");
    let faces = &faces[3..];
    assert_eq!(
        (faces[1].uri.as_str(), faces[1].mtu, faces[1].expiration_period_ms),
        (REMOTE, Some(8800), Some(600_000))
    );
    assert_eq!((faces[0].counters.packets.in_interests, faces[0].face_scope), (300, FaceScope::Local));

    let status = ForwarderStatus::decode(&bench.fetch("/localhost/nfd/status/general")).expect("decodes");
    assert_eq!((status.n_fib_entries, status.n_cs_entries, status.nfd_version.as_str()), (2, 7, "test"));
    assert_eq!(status.current_timestamp_ms, bench.now.unix_ms);

    let usage: Vec<CsUsage> = decode_dataset(&bench.fetch("/localhost/nfd/cs/usage")).expect("decodes");
    assert_eq!(Some(&usage[0]), bench.router.part(Part::CsUsage).cs_usage.as_ref());
    // The answer of an older router.
    let of_old = CsUsage::decode(&[128, 11, 128, 3, b'f', b'o', b'o', 131, 1, 9, 132, 1, 7]).expect("decodes");
    assert_eq!((&of_old.policy[..], of_old.capacity_bytes, of_old.bytes), ("foo", 9, 7));
    assert_eq!((&of_old.admission[..], of_old.policies.len()), ("all", 0));
    let usage: Vec<FibUsage> = decode_dataset(&bench.fetch("/localhost/nfd/fib/usage")).expect("decodes");
    let expected = FibUsage { design: "npt".to_owned(), capacity_entries: 100, bytes: 5_000, is_lossy: false };
    assert_eq!(usage, [expected]);
    let cs: Vec<CsInfo> = decode_dataset(&bench.fetch("/localhost/nfd/cs/info")).expect("decodes");
    assert_eq!(cs, [bench.router.cs]);
    let channels: Vec<ChannelStatus> = decode_dataset(&bench.fetch("/localhost/nfd/faces/channels")).expect("decodes");
    assert_eq!(channels.len(), 2);
}

#[test]
fn our_datasets_report_the_state_of_the_router() {
    let mut bench = Bench::new();
    for part in [Part::Holders, Part::Dropped, Part::Health, Part::Workers] {
        let content = bench.fetch(&format!("/localhost/nfd/{}", part.name()));
        assert!(!content.is_empty() && content == bench.router.part(part).encode(part), "{part:?}");
    }
    let privileges: Vec<ProcessPrivileges> =
        decode_dataset(&bench.fetch("/localhost/nfd/status/privileges")).expect("decodes");
    let expected = ProcessPrivileges { user: 7, capabilities: "net-raw".to_owned(), no_new_privileges: true };
    assert_eq!(privileges, [expected]);
}

#[test]
fn a_large_dataset_comes_in_segments_of_one_snapshot() {
    let mut bench = Bench::new();
    for i in 0..2000 {
        bench.command("rib/register", &for_prefix(&format!("/prefix/{i}")));
    }
    let first: Vec<RibEntry> = decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).expect("decodes");
    assert_eq!(first.len(), 2000);
    // A change shows at once, even within the second in which requests share a snapshot.
    bench.command("rib/register", &for_prefix("/new"));
    let next: Vec<RibEntry> = decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).expect("decodes");
    assert_eq!(next.len(), 2001);
    assert!(bench.management.counters().segments > 10);
}

#[test]
fn versions_that_are_not_kept_are_not_answered() {
    let mut bench = Bench::new();
    bench.fetch("/localhost/nfd/fib/list");
    for request in ["/localhost/nfd/fib/list/v=1/seg=0", "/localhost/nfd/fib/list/v=1", "/localhost/nfd/fib/list/seg=0"]
    {
        bench.request(request);
        assert_eq!(bench.effects, []);
    }
    assert_eq!(bench.management.counters().not_kept, 3);
}

#[test]
fn queries_filter_and_bad_filters_are_answered_as_nacks() {
    let mut bench = Bench::new();
    let query = |filter: &FaceQueryFilter| {
        let mut query = uri("/localhost/nfd/faces/query");
        query.push_generic(&filter.to_wire());
        query.as_name().to_string()
    };
    let local = FaceQueryFilter { face_scope: Some(FaceScope::Local), ..Default::default() };
    let faces: Vec<FaceStatus> = decode_dataset(&bench.fetch(&query(&local))).expect("decodes");
    assert_eq!(faces.iter().map(|face| face.face_id.0).collect::<Vec<_>>(), [1, 254, 255, LOCAL_FACE.0]);
    let udp = FaceQueryFilter { uri_scheme: Some("udp4".into()), ..Default::default() };
    let faces: Vec<FaceStatus> = decode_dataset(&bench.fetch(&query(&udp))).expect("decodes");
    assert_eq!(faces.iter().map(|face| face.face_id).collect::<Vec<_>>(), [UDP_FACE]);
    let none = FaceQueryFilter { face_id: Some(FaceId(5)), ..Default::default() };
    assert!(bench.fetch(&query(&none)).is_empty());
    let all: Vec<FaceStatus> = decode_dataset(&bench.fetch("/localhost/nfd/faces/query")).expect("decodes");
    assert_eq!(all.len(), 5);

    let long = FaceQueryFilter { uri: Some("x".repeat(600)), ..Default::default() };
    for bad in ["/localhost/nfd/faces/query/x".to_owned(), query(&long)] {
        bench.request(&bad);
        let data = Data::parse(bench.reply()).expect("Data");
        assert_eq!((data.content_type(), data.freshness_ms()), (3, 0));
        assert_eq!(ControlResponse::decode(data.content()), Ok(ControlResponse::new(400, "Malformed filter")));
    }
}

const DATASETS: [&str; 19] = [
    "status/general",
    "status/drops",
    "status/dropped",
    "status/holders",
    "status/privileges",
    "faces/list",
    "faces/query",
    "faces/channels",
    "faces/health",
    "fib/list",
    "rib/list",
    "strategy-choice/list",
    "cs/info",
    "cs/usage",
    "fib/usage",
    "tags/trees",
    "tags/list",
    "log/levels",
    "log/recent",
];

/// The nfdc of python-ndn asks for datasets with signed Interests. It got 400 from each, because nothing might follow a
/// dataset's name; NFD answers below the name of the Interest, whatever follows the verb.
#[test]
fn a_request_may_have_components_after_the_name_of_the_dataset() {
    let mut bench = Bench::new();
    let request = |name: &NameBuf| InterestBuilder::new(name).can_be_prefix(true).must_be_fresh(true);
    let filter = FaceQueryFilter { face_id: Some(UDP_FACE), ..Default::default() };
    let mut queries: Vec<NameBuf> = DATASETS.iter().map(|one| uri(&format!("/localhost/nfd/{one}"))).collect();
    let mut query = uri("/localhost/nfd/faces/query");
    query.push_generic(&filter.to_wire());
    queries.push(query);
    for dataset in queries {
        bench.send(&request(&dataset).build());
        let plain = Data::parse(bench.reply()).expect("Data").content().to_vec();
        let mut commanded = dataset.clone();
        if dataset.as_name().last().expect("a verb").value != b"query" {
            commanded.push_generic(&ControlParameters::default().to_wire());
        }
        let signed = [&dataset, &commanded].map(|name| request(name).sign_digest(&fresh_fields()));
        let more = request(commanded.clone().push_version(3).push_generic(b"x")).build();
        for interest in signed.into_iter().chain([more]) {
            bench.send(&interest);
            let asked = Interest::parse(&interest).expect("an Interest");
            let data = Data::parse(bench.reply()).expect("Data");
            assert_eq!(data.content(), plain, "{}", asked.name());
            assert!(asked.matches(&data), "{} is no answer to {}", data.name(), asked.name());
        }
    }
}

/// Each signed request has another name. They share a snapshot, so whoever asks often does not displace those of
/// others.
#[test]
fn later_segments_come_below_the_name_of_the_request_too() {
    let mut bench = Bench::new();
    for i in 0..1000 {
        bench.command("rib/register", &for_prefix(&format!("/prefix/{i}")));
    }
    let plain = bench.fetch("/localhost/nfd/rib/list");
    assert!(plain.len() > 16_000);
    bench.request("/localhost/nfd/rib/list");
    let mut second = Data::parse(bench.reply()).expect("Data").name().parent().to_buf();
    second.push_segment(1);
    for i in 0..200 {
        bench.request(&format!("/localhost/nfd/rib/list/{i}"));
    }
    bench.send(&InterestBuilder::new(&second).build());
    assert_eq!(Data::parse(bench.reply()).expect("Data").content(), &plain[8000..16_000]);
    // A name that leaves less room has smaller segments; at some length there is no answer but a refusal.
    for length in [100, 1000, 4500] {
        assert_eq!(bench.fetch(&format!("/localhost/nfd/rib/list/{}", "x".repeat(length))), plain, "{length}");
    }
    bench.request(&format!("/localhost/nfd/rib/list/{}", "x".repeat(5000)));
    assert_eq!(bench.answer().code, 414);
    bench.request(&format!("{}/seg=0", second.as_name().parent().to_string().replace("rib/list", "fib/list")));
    assert_eq!(bench.effects, [], "a version belongs to one dataset");
}

/// As NFD 24.07 shows them: the internal face has a link service, the others have none.
#[test]
fn the_forwarder_s_own_faces_are_listed() {
    let mut bench = Bench::new();
    let faces: Vec<FaceStatus> = decode_dataset(&bench.fetch("/localhost/nfd/faces/list")).expect("decodes");
    let expected = [
        (1, "internal://", face_flags::LOCAL_FIELDS, Some(100_000_000), Some(65_536)),
        (254, "contentstore://", 0, None, None),
        (255, "null://", 0, None, None),
    ];
    for (face, (number, uri, flags, interval_ns, threshold_bytes)) in faces.iter().zip(expected) {
        assert_eq!((face.face_id.0, face.uri.as_str(), face.local_uri.as_str()), (number, uri, uri));
        assert_eq!((face.face_scope, face.face_persistency), (FaceScope::Local, FacePersistency::Permanent));
        assert_eq!((face.link_type, face.flags, face.mtu), (LinkType::PointToPoint, flags, Some(8800)));
        assert_eq!(face.base_congestion_marking_interval_ns, interval_ns);
        assert_eq!(face.default_congestion_threshold_bytes, threshold_bytes);
        assert_eq!(face.expiration_period_ms, None);
    }
}

/// Lists had the smaller of the face's MTU and its path's as the MTU, 1472, where answers to commands had 8800: two
/// values for one thing, and another than NFD's. The path has a field of its own.
#[test]
fn a_face_is_listed_with_its_mtu_and_that_of_its_path_if_that_is_less() {
    let mut bench = Bench::new();
    for (path_mtu, shown) in [(None, None), (Some(65_507), None), (Some(8800), None), (Some(1172), Some(1172))] {
        bench.router.path_mtu = path_mtu;
        bench.pass_ms(10_000);
        let faces: Vec<FaceStatus> = decode_dataset(&bench.fetch("/localhost/nfd/faces/list")).expect("decodes");
        let face = faces.iter().find(|face| face.face_id == UDP_FACE).expect("the face");
        assert_eq!((face.mtu, face.path_mtu), (Some(8800), shown), "{path_mtu:?}");
        let unchanged = ControlParameters { face_id: Some(UDP_FACE), ..ControlParameters::default() };
        let answer = bench.command("faces/update", &unchanged);
        assert_eq!(answer.body.expect("the properties").mtu, Some(8800));
    }
}

fn event_in(effect: &Effect) -> (NameBuf, FaceEventKind, FaceId) {
    let Effect::Reply { packet, .. } = effect else { panic!("{effect:?}") };
    let data = Data::parse(packet).expect("Data");
    assert_eq!(data.freshness_ms(), 1000);
    let event = FaceEventNotification::decode(data.content()).expect("event");
    (data.name().to_buf(), event.kind, event.face_id)
}

#[test]
fn faces_are_listed_as_up_or_down() {
    let mut bench = Bench::new();
    let now = bench.now;
    let states = |bench: &mut Bench| -> Vec<(FaceId, Option<FaceState>)> {
        let faces: Vec<FaceStatus> = decode_dataset(&bench.fetch("/localhost/nfd/faces/list")).expect("decodes");
        faces.iter().map(|face| (face.face_id, face.state)).collect()
    };
    let all_up = states(&mut bench);
    assert!(all_up.iter().all(|(_, state)| *state == Some(FaceState::Up)), "{all_up:?}");
    bench.management.on_face_down(now, UDP_FACE, &mut bench.effects);
    assert!(states(&mut bench).contains(&(UDP_FACE, Some(FaceState::Down))));
    assert!(states(&mut bench).contains(&(LOCAL_FACE, Some(FaceState::Up))));
    bench.management.on_face_up(now, udp_face(), &mut bench.effects);
    assert_eq!(states(&mut bench), all_up);
    // A face that comes under the number of one that closed while it was down is up.
    bench.management.on_face_down(now, UDP_FACE, &mut bench.effects);
    bench.close(UDP_FACE);
    bench.management.on_face_created(now, udp_face(), &mut bench.effects);
    assert_eq!(states(&mut bench), all_up);
}

#[test]
fn face_events_are_sent_to_those_who_wait_and_kept_for_those_who_ask() {
    let mut bench = Bench::new();
    let event = |sequence: u64| uri(&format!("/localhost/nfd/faces/events/seq={sequence}"));
    // Two faces were created just now: the latest event is fresh.
    bench.request("/localhost/nfd/faces/events");
    assert_eq!(event_in(&bench.effects[0]), (event(1), FaceEventKind::Created, UDP_FACE));
    bench.request("/localhost/nfd/faces/events/seq=0");
    assert_eq!(event_in(&bench.effects[0]), (event(0), FaceEventKind::Created, LOCAL_FACE));
    // Later no event is fresh, and no Interest waits: a request waits for the next event.
    bench.pass_ms(2_000);
    bench.request("/localhost/nfd/faces/events");
    assert_eq!(bench.effects, []);
    bench.close(UDP_FACE);
    assert_eq!(event_in(&bench.effects[0]), (event(2), FaceEventKind::Destroyed, UDP_FACE));
    // Waiting ends with the Interest's lifetime of 4 s.
    bench.pass_ms(10_000);
    let now = bench.now;
    bench.effects.clear();
    bench.management.on_face_created(now, udp_face(), &mut bench.effects);
    assert_eq!(bench.effects, []);
    // Reporting a known face again is no event.
    bench.request("/localhost/nfd/faces/events/seq=4");
    bench.management.on_face_created(now, udp_face(), &mut bench.effects);
    assert_eq!(bench.effects, []);
    bench.send(&signed_command("faces/destroy", &ControlParameters { face_id: Some(UDP_FACE), ..Default::default() }));
    bench.close(UDP_FACE);
    assert_eq!(event_in(&bench.effects[0]), (event(4), FaceEventKind::Destroyed, UDP_FACE));
    // Only a limited number is kept.
    for _ in 0..300 {
        bench.management.on_face_created(now, udp_face(), &mut bench.effects);
        bench.close(UDP_FACE);
    }
    bench.request("/localhost/nfd/faces/events/seq=4");
    assert_eq!((bench.effects.len(), bench.management.counters().not_kept), (0, 1));
}

#[test]
fn a_look_at_a_name_is_answered_when_the_workers_have_looked() {
    let mut bench = Bench::new();
    let asked = uri("/a/b");
    let mut request = uri("/localhost/nfd/status/name");
    let mut component = Vec::new();
    asked.as_name().write_tlv(&mut component);
    request.push_generic(&component);
    bench.effects.clear();
    // Signed, as python-ndn does it; that is not part of the name that is looked at.
    let interest = InterestBuilder::new(&request).can_be_prefix(true).must_be_fresh(true);
    let interest = interest.sign_digest(&fresh_fields());
    let request = Interest::parse(&interest).expect("an Interest").name().to_buf();
    bench.send(&interest);
    let [Effect::LookAtName { ticket, name }] = &bench.effects[..] else { panic!("{:?}", bench.effects) };
    let (ticket, now) = (*ticket, bench.now);
    assert_eq!(*name, asked);
    let looks = [NameLook { worker: 0, is_owner: true, ..NameLook::default() }, NameLook::default()];
    bench.effects.clear();
    bench.management.on_name_looked(now, ticket, &looks, &mut bench.effects);
    let reply = Data::parse(bench.reply()).expect("Data");
    assert!(request.as_name().is_prefix_of(&reply.name()) && reply.final_block_id() == reply.name().last());
    assert_eq!(decode_dataset::<NameLook>(reply.content()).expect("decodes"), looks);
    let segment = InterestBuilder::new(reply.name()).build();
    bench.send(&segment);
    assert_eq!(decode_dataset(Data::parse(bench.reply()).expect("Data").content()), Ok(looks.to_vec()));
    bench.effects.clear();
    bench.management.on_name_looked(now, ticket, &looks, &mut bench.effects);
    assert!(bench.effects.is_empty(), "it was answered");
    for wrong in ["/localhost/nfd/status/name", "/localhost/nfd/status/name/x"] {
        bench.send(&InterestBuilder::new(uri(wrong)).can_be_prefix(true).build());
        assert_eq!(bench.answer().code, 400, "{wrong}");
    }
}
