//! `faces/create`, `faces/update` and `faces/destroy`, with sockets behind them.

use crate::application::{Application, PATIENCE, name, start, start_with};
use namewire_packet::{
    FaceId, NackReason,
    lp::LpHeaders,
    nfd::{ControlParameters, FacePersistency, RibEntry, face_flags},
};
use std::net::{TcpListener, UdpSocket};

fn create(application: &mut Application, uri: &str) -> (u64, Option<FaceId>) {
    let parameters = ControlParameters { uri: Some(uri.to_owned()), ..Default::default() };
    let response = application.command("/faces/create", parameters);
    (response.code, response.body.and_then(|body| body.face_id))
}

#[test]
fn faces_are_made_once_and_refused_with_a_reason() {
    let (router, _directory) = start(4);
    let mut operator = Application::connect(&router);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let udp = format!("udp4://{}", peer.local_addr().unwrap());
    let (code, face) = create(&mut operator, &udp);
    assert_eq!(code, 200);
    assert_eq!(create(&mut operator, &udp), (409, face), "the same remote again");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = format!("tcp4://{}", listener.local_addr().unwrap());
    let (code, _) = create(&mut operator, &tcp);
    assert_eq!(code, 200);
    let _accepted = listener.accept().unwrap();

    assert_eq!(create(&mut operator, "unix:///run/nfd.sock").0, 400);
    assert_eq!(create(&mut operator, "udp4://224.0.23.170:56363").0, 406);
    let flags = Some(face_flags::LOCAL_FIELDS);
    let uri = Some("udp4://127.0.0.1:9".to_owned());
    let parameters = ControlParameters { uri, flags, mask: flags, ..Default::default() };
    assert_eq!(operator.command("/faces/create", parameters).code, 406, "what cannot be had is refused");

    drop(listener);
    assert_eq!(create(&mut operator, &tcp).0, 409, "the first connection remains");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(create(&mut operator, &format!("tcp4://{closed}")).0, 504);
    let faces = operator.faces();
    assert_eq!(faces.len(), 3, "two faces made, and the operator's own: {faces:#?}");
}

/// The story: an address without a route was answered with 500, as if the router were at fault, and the text had the
/// system's error number. NFD answers 504, for TCP and for UDP.
#[test]
fn an_address_that_no_route_leads_to_is_504() {
    let (router, _directory) = start(2);
    let mut operator = Application::connect(&router);
    // Link-local addresses have no route on the loopback interface.
    for (uri, what) in [("udp6://[fe80::1%lo]:6363", "Face creation"), ("tcp6://[fe80::1%lo]:6363", "Connection")] {
        let parameters = ControlParameters { uri: Some(uri.to_owned()), ..Default::default() };
        let response = operator.command("/faces/create", parameters);
        assert_eq!(response.code, 504, "{uri}: {response:?}");
        assert!(response.text.starts_with(&format!("{what} failed: ")), "{response:?}");
        assert!(!response.text.contains("os error"), "{response:?}");
    }
    assert_eq!(operator.faces().len(), 1, "the operator's own");
}

/// The story: a face to the router's own listener was a loop. Whatever the router sent came in again, by another face.
#[test]
fn a_face_to_this_router_itself_is_refused_and_one_to_another_router_of_this_machine_is_made() {
    let listeners = |text: [&str; 3]| text.map(|one| one.parse().unwrap()).to_vec();
    let (router, _directory) = start_with(2, |config| {
        config.settings.faces.udp.listen = Some(listeners(["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"]));
        config.settings.faces.tcp.listen = Some(listeners(["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"]));
        config.settings.faces.websocket.enabled = true;
        config.settings.faces.websocket.listen = vec!["127.0.0.1:0".parse().unwrap()];
    });
    let (other, _other_directory) = start(2);
    let mut operator = Application::connect(&router);
    let mut own = Vec::new();
    for (scheme, addresses) in [("udp", router.udp()), ("tcp", router.tcp())] {
        let [v4, v6, everywhere] = addresses else { panic!("three listeners") };
        let port = everywhere.port();
        own.extend([format!("{scheme}4://{v4}"), format!("{scheme}6://{v6}")]);
        // Any address of this machine leads to a listener on all addresses. So does an IPv4 address written as IPv6.
        own.extend([format!("{scheme}4://127.0.0.1:{port}"), format!("{scheme}4://127.8.9.10:{port}")]);
        own.push(format!("{scheme}6://[::ffff:127.0.0.1]:{port}"));
        match own_address() {
            Some(ip) => own.push(format!("{scheme}4://{ip}:{port}")),
            None => println!("this machine has no address but loopback: not tried"),
        }
    }
    own.push(router.websocket()[0].to_string());
    for uri in own {
        let parameters = ControlParameters { uri: Some(uri.clone()), ..Default::default() };
        let response = operator.command("/faces/create", parameters);
        assert_eq!(response.code, 406, "{uri}: {}", response.text);
        assert!(response.text.contains("this forwarder's own address"), "{uri}: {}", response.text);
    }
    for uri in [format!("udp4://{}", other.udp()[0]), format!("tcp4://{}", other.tcp()[0])] {
        assert_eq!(create(&mut operator, &uri).0, 200, "{uri}");
    }
    // The same port at another address of this machine, where this router does not listen.
    let beside = format!("udp4://127.0.0.2:{}", router.udp()[0].port());
    assert_eq!(create(&mut operator, &beside).0, 200, "{beside}");
}

/// An address of this machine other than loopback, if it has one.
fn own_address() -> Option<std::net::IpAddr> {
    let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
    probe.connect("192.0.2.1:9").ok()?;
    Some(probe.local_addr().unwrap().ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

#[test]
fn a_face_that_a_worker_has_no_room_for_leaves_nothing_behind() {
    let (router, _directory) = start_with(2, |config| config.settings.faces.max_per_worker = 1);
    let mut operator = Application::connect(&router);
    operator.faces();
    assert_eq!(create(&mut operator, "udp4://127.0.0.1:9").0, 200);
    for _ in 0..3 {
        assert_eq!(create(&mut operator, "udp4://127.0.0.1:19").0, 500, "both workers are full");
    }
    let first = operator.faces().iter().find(|face| face.uri == "udp4://127.0.0.1:9").unwrap().face_id;
    operator.succeed("/faces/destroy", ControlParameters { face_id: Some(first), ..Default::default() });
    assert_eq!(create(&mut operator, "udp4://127.0.0.1:19").0, 200, "its place is free again");
}

#[test]
fn a_udp_face_leaves_from_the_listener_that_the_route_uses() {
    let (router, _directory) = start_with(4, |config| {
        config.settings.faces.udp.listen = Some(vec!["127.0.0.2:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap()])
    });
    let mut operator = Application::connect(&router);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("udp4://{}", peer.local_addr().unwrap());
    assert_eq!(create(&mut operator, &uri).0, 200);
    let face = operator.faces().into_iter().find(|face| face.uri == uri).unwrap();
    assert_eq!(face.local_uri, format!("udp4://{}", router.udp()[1]));
}

#[test]
fn a_udp_face_leaves_from_a_listener_on_a_secondary_address() {
    let (router, _directory) = start_with(1, |config| {
        config.settings.faces.udp.listen = Some(vec!["127.0.0.2:0".parse().unwrap()]);
    });
    let mut operator = Application::connect(&router);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    let uri = format!("udp4://{}", peer.local_addr().unwrap());
    let (_, face) = create(&mut operator, &uri);
    let parameters = ControlParameters { name: Some(name("/far")), face_id: face, ..Default::default() };
    operator.succeed("/rib/register", parameters);
    let interest = operator.interest(name("/far/1")).build();
    operator.send(&interest);
    let (_, from) = peer.recv_from(&mut [0; 100]).unwrap();
    assert_eq!(from, router.udp()[0]);
}

#[test]
fn local_fields_are_honoured_once_the_reply_is_there() {
    let (router, _directory) = start(4);
    let mut producers = [Application::connect(&router), Application::connect(&router)];
    let ids = [producers[0].register("/a"), producers[1].register("/b")];
    for round in 0..20 {
        let mut consumer = Application::connect(&router);
        let own = consumer.turn_on_local_fields();
        // To the second producer by NextHopFaceId, against the FIB.
        let interest = consumer.interest(name(&format!("/a/{round}"))).build();
        consumer.send_with(&LpHeaders { next_hop_face_id: Some(ids[1]), ..LpHeaders::default() }, &interest);
        producers[1].serve(1, b"b");
        let reply = consumer.receive().expect("Data");
        assert_eq!(reply.data().content(), b"b");
        assert_eq!(reply.headers.incoming_face_id, Some(ids[1]));
        // Reliability is off again: no header comes any more.
        let parameters =
            ControlParameters { flags: Some(0), mask: Some(face_flags::LOCAL_FIELDS), ..Default::default() };
        assert_eq!(consumer.succeed("/faces/update", parameters).face_id, Some(own));
        let interest = consumer.interest(name(&format!("/b/{round}"))).build();
        consumer.send(&interest);
        producers[1].serve(1, b"b");
        assert_eq!(consumer.receive().expect("Data").headers.incoming_face_id, None);
    }
}

#[test]
fn mtu_is_for_udp_and_refused_on_tcp() {
    let (router, _directory) = start(4);
    let mut operator = Application::connect(&router);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_, tcp) = create(&mut operator, &format!("tcp4://{}", listener.local_addr().unwrap()));
    let (_, udp) = create(&mut operator, "udp4://127.0.0.1:9");
    let mtu = |face| ControlParameters { face_id: face, mtu: Some(1400), ..Default::default() };
    assert_eq!(operator.command("/faces/update", mtu(tcp)).code, 409);
    assert_eq!(operator.command("/faces/update", mtu(udp)).code, 200);
    let permanent = Some(FacePersistency::Permanent.code());
    let parameters = ControlParameters { face_id: tcp, face_persistency: permanent, ..Default::default() };
    assert_eq!(operator.succeed("/faces/update", parameters).face_persistency, permanent);
    let faces = operator.faces();
    let shown = |id| faces.iter().find(|face| Some(face.face_id) == id).unwrap();
    assert_eq!(shown(udp).mtu, Some(1400));
    assert_eq!(shown(tcp).face_persistency, FacePersistency::Permanent);
}

#[test]
fn a_destroyed_face_has_lost_its_routes_when_the_reply_is_there() {
    let (router, _directory) = start(4);
    let mut operator = Application::connect(&router);
    for round in 0..50 {
        let mut producer = Application::connect(&router);
        let face = producer.register("/example");
        operator.succeed("/faces/destroy", ControlParameters { face_id: Some(face), ..Default::default() });
        let reply = operator.express(&format!("/example/{round}")).expect("a Nack");
        assert_eq!(reply.headers.nack, Some(NackReason::NoRoute));
        assert!(producer.receive().is_none(), "the connection is closed");
    }
    assert!(operator.dataset::<RibEntry>("/rib/list").is_empty());
    assert_eq!(operator.faces().len(), 1);
}

const BOTH: u64 = face_flags::LP_RELIABILITY | face_flags::CONGESTION_MARKING;

#[test]
fn link_settings_are_made_changed_and_shown() {
    let (router, _directory) = start(2);
    let mut operator = Application::connect(&router);
    let uri = Some("udp4://127.0.0.1:9".to_owned());
    let flags = Some(face_flags::LP_RELIABILITY);
    let create = ControlParameters { uri: uri.clone(), flags, mask: flags, mtu: Some(9000), ..Default::default() };
    let made = operator.succeed("/faces/create", create.clone());
    let expected = ControlParameters {
        face_id: made.face_id,
        uri,
        local_uri: made.local_uri.clone(),
        flags: Some(BOTH),
        face_persistency: Some(FacePersistency::Persistent.code()),
        base_congestion_marking_interval_ns: Some(100_000_000),
        default_congestion_threshold_bytes: Some(65_536),
        mtu: Some(8800),
        ..Default::default()
    };
    assert_eq!(made, expected, "marking is on unless the command says otherwise, and an MTU is at most 8800");
    assert!(made.local_uri.is_some_and(|uri| uri.starts_with("udp4://127.0.0.1:")));
    let again = operator.command("/faces/create", create);
    assert_eq!((again.code, again.body), (409, Some(expected.clone())), "all that a client needs to go on");

    let change = ControlParameters {
        face_id: expected.face_id,
        flags: Some(0),
        mask: Some(BOTH),
        face_persistency: Some(FacePersistency::Permanent.code()),
        base_congestion_marking_interval_ns: Some(5_000_000),
        default_congestion_threshold_bytes: Some(1000),
        mtu: Some(64),
        ..Default::default()
    };
    let changed = ControlParameters { mask: None, ..change.clone() };
    assert_eq!(operator.succeed("/faces/update", change), changed, "no Uri, no LocalUri, no Mask");
    let faces = operator.faces();
    let shown = faces.iter().find(|face| Some(face.face_id) == expected.face_id).unwrap();
    assert_eq!((shown.flags, shown.mtu), (0, Some(64)));
    assert_eq!(shown.base_congestion_marking_interval_ns, Some(5_000_000));
    assert_eq!(shown.default_congestion_threshold_bytes, Some(1000));
    assert_eq!((shown.face_persistency, shown.expiration_period_ms), (FacePersistency::Permanent, None));
    let own = faces.iter().find(|face| face.uri.starts_with("fd://")).unwrap();
    assert_eq!((own.flags, own.mtu), (face_flags::CONGESTION_MARKING, Some(8800)));
    assert_eq!(own.base_congestion_marking_interval_ns, Some(100_000_000));
}

#[test]
fn what_a_face_cannot_have_is_refused_and_changes_nothing() {
    let (router, _directory) = start(2);
    let mut operator = Application::connect(&router);
    let too_small =
        ControlParameters { uri: Some("udp4://127.0.0.1:9".to_owned()), mtu: Some(63), ..Default::default() };
    let refused = operator.command("/faces/create", too_small);
    assert_eq!((refused.code, refused.text.as_str()), (406, "Override MTU cannot be less than 64"));
    let (_, face) = create(&mut operator, "udp4://127.0.0.1:9");
    let update = ControlParameters {
        face_id: face,
        mtu: Some(63),
        flags: Some(BOTH | face_flags::LOCAL_FIELDS),
        mask: Some(BOTH | face_flags::LOCAL_FIELDS),
        ..Default::default()
    };
    let refused = operator.command("/faces/update", update);
    assert_eq!((refused.code, refused.text.as_str()), (409, "Invalid properties specified"));
    let local_fields = Some(face_flags::LOCAL_FIELDS);
    let body = ControlParameters { flags: local_fields, mask: local_fields, mtu: Some(63), ..Default::default() };
    assert_eq!(refused.body, Some(body), "what was refused and nothing else");
    let shown = operator.faces().into_iter().find(|shown| Some(shown.face_id) == face).unwrap();
    assert_eq!((shown.flags, shown.mtu), (face_flags::CONGESTION_MARKING, Some(8800)));

    // An application's own connection loses no packets, and no command can make it outlive the application.
    let reliability = Some(face_flags::LP_RELIABILITY);
    let permanent = Some(FacePersistency::Permanent.code());
    let update =
        ControlParameters { flags: reliability, mask: reliability, face_persistency: permanent, ..Default::default() };
    let refused = operator.command("/faces/update", update.clone());
    assert_eq!((refused.code, refused.body), (409, Some(update)));
}
