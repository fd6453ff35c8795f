//! The expectations of programs for NFD that no other test checks on a running router: the numbers and addresses of
//! faces, and the form of replies. Source: `docs/drop-in.md`.

use crate::application::{Application, PATIENCE, name, start};
use namewire_packet::{
    Data, FaceId, InterestBuilder, Nonce,
    lp::{LpHeaders, PitToken},
    nfd::{ControlParameters, FacePersistency, FaceScope, FaceStatus},
    signature::signature_type,
    tlv::types,
};
use std::{net::UdpSocket, time::Duration};

#[test]
fn the_forwarder_s_own_faces_are_listed_and_nobody_can_change_them() {
    let (router, _directory) = start(2);
    let mut operator = Application::connect(&router);
    // Two names are used, because a list under one name is shared for a second.
    let internal = |operator: &mut Application, dataset| {
        let faces: Vec<FaceStatus> = operator.dataset(dataset);
        assert_eq!(faces.iter().map(|face| face.face_id.0).collect::<Vec<_>>(), [1, 254, 255, 256]);
        faces[0].counters
    };
    let before = internal(&mut operator, "/faces/list");
    for own in [FaceId::INTERNAL, FaceId::CONTENT_STORE, FaceId::NULL] {
        let face = ControlParameters { face_id: Some(own), ..Default::default() };
        assert_eq!(operator.command("/faces/destroy", face.clone()).code, 403);
        let update = ControlParameters { mtu: Some(1000), ..face.clone() };
        assert_eq!(operator.command("/faces/update", update).code, 403);
        let route = ControlParameters { name: Some(name("/a")), ..face };
        assert_eq!(operator.command("/rib/register", route).code, 410);
    }
    // Nine commands and a list went out to management, and their answers came in.
    let after = internal(&mut operator, "/faces/query");
    assert_eq!(after.packets.out_interests - before.packets.out_interests, 10);
    assert_eq!(after.packets.in_data - before.packets.in_data, 10);
    assert!(after.in_bytes > before.in_bytes && after.out_bytes > before.out_bytes);
}

#[test]
fn an_application_s_face_looks_as_in_nfd() {
    let (router, _directory) = start(2);
    let mut application = Application::connect(&router);
    let faces = application.faces();
    let [face] = &faces[..] else { panic!("{faces:#?}") };
    assert_eq!(face.face_id, FaceId::FIRST_DYNAMIC);
    let number = face.uri.strip_prefix("fd://").expect("the descriptor");
    assert!(number.parse::<u32>().is_ok(), "{number}");
    assert_eq!(face.local_uri, format!("unix://{}", router.socket().unwrap().display()));
    assert_eq!((face.face_scope, face.face_persistency), (FaceScope::Local, FacePersistency::OnDemand));
}

#[test]
fn tcp_of_this_machine_is_local_and_udp_never_is() {
    let (router, _directory) = start(2);
    let mut tcp = Application::connect_tcp(router.tcp()[0]);
    assert!(tcp.faces().iter().any(|face| face.uri.starts_with("tcp4://") && face.face_scope == FaceScope::Local));
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.connect(router.udp()[0]).unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let ask = |uri: &str| {
        let interest =
            InterestBuilder::new(name(uri)).can_be_prefix(true).must_be_fresh(true).nonce(Nonce([1, 2, 3, 4])).build();
        udp.send(&interest).unwrap();
        udp.recv(&mut [0; 9000]).ok()
    };
    assert_eq!(ask("/localhost/nfd/status/general"), None);
    assert_eq!(tcp.drops("engine.scope-violation"), 1);
    assert!(ask("/nowhere").is_some(), "a Nack: the face is there");
    assert!(tcp.faces().iter().any(|face| face.uri.starts_with("udp4://") && face.face_scope == FaceScope::NonLocal));
}

#[test]
fn cached_data_comes_from_face_254() {
    let (router, _directory) = start(2);
    let mut producer = Application::connect(&router);
    let face = producer.register("/a");
    let mut consumer = Application::connect(&router);
    consumer.turn_on_local_fields();
    for (round, expected) in [face, FaceId::CONTENT_STORE].into_iter().enumerate() {
        let interest = consumer.interest(name("/a/1")).build();
        consumer.send(&interest);
        if round == 0 {
            producer.serve(1, b"x");
        }
        assert_eq!(consumer.receive().expect("Data").headers.incoming_face_id, Some(expected));
    }
}

/// ndn-cxx and ndnd refuse a dataset without version, segment and FinalBlockId, and any reply
/// without a signature.
#[test]
fn replies_are_signed_and_datasets_versioned_and_segmented() {
    let (router, _directory) = start(2);
    let mut operator = Application::connect(&router);
    let request = operator.interest(name("/localhost/nfd/status/general")).can_be_prefix(true).must_be_fresh(true);
    operator.send(&request.build());
    let reply = operator.receive().expect("a segment");
    let data = reply.data();
    let asked = name("/localhost/nfd/status/general");
    assert!(asked.as_name().is_prefix_of(&data.name()) && data.name().len() == asked.as_name().len() + 2);
    assert!(data.name().get(4).and_then(|component| component.version()).is_some());
    assert_eq!(data.name().last().and_then(|component| component.segment()), Some(0));
    assert_eq!(data.final_block_id(), data.name().last());
    let is_signed = |data: &Data<'_>| {
        data.signature_info().signature_type() == signature_type::DIGEST_SHA256 && data.verify_digest_sha256()
    };
    assert!(is_signed(&data) && data.freshness_ms() == 1000);

    let command =
        operator.command_packet("/rib/register", &ControlParameters { name: Some(name("/a")), ..Default::default() });
    operator.send(&command);
    let reply = operator.receive().expect("a reply");
    assert!(is_signed(&reply.data()) && reply.data().freshness_ms() == 1000);
}

#[test]
fn tokens_have_up_to_32_bytes_and_bare_packets_stay_bare() {
    let (router, _directory) = start(2);
    let mut application = Application::connect(&router);
    application.register("/a");
    let token = PitToken::new(&[7; 32]);
    let interest = application.interest(name("/nowhere")).build();
    application.send_with(&LpHeaders { pit_token: token, ..LpHeaders::default() }, &interest);
    let reply = application.receive().expect("a Nack");
    assert!(reply.headers.nack.is_some() && reply.headers.pit_token == token);

    let interest = application.interest(name("/localhost/nfd/status/general")).can_be_prefix(true).build();
    let mut frame = vec![types::LP_PACKET as u8, 0];
    frame.extend([types::LP_PIT_TOKEN as u8, 33]);
    frame.extend([7; 33]);
    frame.extend([types::LP_FRAGMENT as u8, interest.len() as u8]);
    frame.extend(&interest);
    frame[1] = u8::try_from(frame.len() - 2).unwrap();
    application.send(&frame);
    assert!(application.receive_within(Duration::from_millis(300)).is_none());
    assert_eq!(application.drops("link.malformed-lp-header"), 1);

    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(PATIENCE)).unwrap();
    udp.send_to(&InterestBuilder::new(name("/a/1")).nonce(Nonce([1, 2, 3, 4])).build(), router.udp()[0]).unwrap();
    application.serve(1, b"x");
    let mut reply = [0; 9000];
    let (size, _) = udp.recv_from(&mut reply).expect("Data");
    assert!(Data::parse(&reply[..size]).is_ok(), "without a link header around it");
}
