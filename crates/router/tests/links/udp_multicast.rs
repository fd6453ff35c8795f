//! UDP multicast faces of real routers.

use super::hosts::{Host, Segment};
use crate::application::{eventually, name};
use namewire_configuration::Configuration;
use namewire_packet::{
    NackReason,
    lp::{LinkFields, LpHeaders, write_headers},
    nfd::{ControlParameters, FacePersistency, FaceScope, LinkType},
};
use std::{
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    time::Duration,
};

const DEFAULT_UDP4_GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(224, 0, 23, 170), 56363);

const GROUP4: &str = "udp4://224.0.23.170:56363";
const GROUP6: &str = "udp6://[ff02::1234%eth0]:56363";

fn both_groups(config: &mut Configuration) {
    config.settings.faces.multicast.enabled = true;
}

fn multicast_strategy(host: &Host, prefix: &str) {
    let strategy = Some(name("/localhost/nfd/strategy/multicast"));
    let choice = ControlParameters { name: Some(name(prefix)), strategy, ..Default::default() };
    host.application().succeed("/strategy-choice/set", choice);
}

#[test]
fn three_routers_find_data_by_asking_the_group() {
    let Some(segment) = Segment::new(3) else { return };
    let hosts: Vec<Host> = (0..3).map(|host| segment.start(host, both_groups)).collect();
    for group in [GROUP4, GROUP6] {
        let prefix = if group == GROUP4 { "/four" } else { "/six" };
        let face = hosts[0].face(group);
        assert_eq!(face.face_scope, FaceScope::NonLocal);
        assert_eq!(face.face_persistency, FacePersistency::Permanent);
        assert_eq!(face.link_type, LinkType::MultiAccess);
        let local = if group == GROUP4 { "udp4://10.77.0.1:" } else { "udp6://[fe80::ff:fe00:1%eth0]:" };
        assert!(face.local_uri.starts_with(local), "{}", face.local_uri);
        hosts[0].add_route(prefix, face.face_id);
        // Two hosts could answer; a third only hears.
        let mut producer = hosts[2].application();
        producer.register(prefix);
        hosts[1].face(group);
        let mut consumer = hosts[0].application();
        let serving = std::thread::spawn(move || producer.serve(20, b"found"));
        for index in 0..20 {
            let reply = consumer.express(&format!("{prefix}/{index}")).expect("Data");
            assert_eq!(reply.data().content(), b"found");
        }
        serving.join().unwrap();
        eventually("all is counted", || hosts[0].face(group).counters.packets.in_data == 20);
        // The one that only hears may be the last to run.
        eventually("everybody hears", || hosts[1].face(group).counters.packets.in_interests == 20);
        assert_eq!(hosts[0].face(group).counters.packets.in_interests, 0, "but no host hears itself");
    }
}

/// A program that is a member of the IPv4 group on a host.
fn member(segment: &Segment, host: usize) -> UdpSocket {
    segment.on_host(host, || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&std::net::SocketAddr::V4(DEFAULT_UDP4_GROUP).into()).unwrap();
        let local = format!("10.77.0.{}", host + 1).parse().unwrap();
        socket.join_multicast_v4(DEFAULT_UDP4_GROUP.ip(), &local).unwrap();
        socket.set_multicast_if_v4(&local).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        UdpSocket::from(socket)
    })
}

#[test]
fn nacks_of_a_group_are_not_believed_and_none_are_sent() {
    let Some(segment) = Segment::new(2) else { return };
    let (asking, silent) = (segment.start(0, both_groups), segment.start(1, both_groups));
    silent.face(GROUP4);
    asking.add_route("/nobody", asking.face(GROUP4).face_id);
    let contradicting = member(&segment, 1);
    let mut consumer = asking.application();
    let interest = consumer.interest(name("/nobody/here")).lifetime_ms(500).build();
    consumer.send(&interest);
    let mut bytes = [0; 2000];
    let len = contradicting.recv(&mut bytes).unwrap();
    let mut nack = Vec::new();
    let headers = LpHeaders { nack: Some(NackReason::NoRoute), ..LpHeaders::default() };
    write_headers(&mut nack, &headers, &LinkFields::default(), len);
    nack.extend_from_slice(&bytes[..len]);
    contradicting.send_to(&nack, DEFAULT_UDP4_GROUP).unwrap();
    assert!(consumer.receive_within(Duration::from_millis(700)).is_none(), "no Nack came");
    assert_eq!(asking.face(GROUP4).counters.packets.in_nacks, 1, "though one was received");
    let counters = silent.face(GROUP4).counters;
    assert_eq!((counters.packets.in_interests, counters.packets.out_nacks), (1, 0));
}

#[test]
fn other_programs_of_the_host_hear_and_are_heard() {
    let Some(segment) = Segment::new(1) else { return };
    let host = segment.start(0, |config| {
        both_groups(config);
        config.settings.faces.multicast.ad_hoc = true;
    });
    let face = host.face(GROUP4);
    assert_eq!(face.link_type, LinkType::AdHoc);
    multicast_strategy(&host, "/app");
    host.add_route("/app", face.face_id);
    let program = member(&segment, 0);
    let mut consumer = host.application();
    let interest = consumer.interest(name("/app/x")).build();
    consumer.send(&interest);
    let mut bytes = [0; 2000];
    let len = program.recv(&mut bytes).unwrap();
    let heard = namewire_packet::Interest::parse(&bytes[..len]).expect("bare, because who listens is not known");
    assert_eq!(heard.name(), name("/app/x").as_name());
    let data = namewire_packet::DataBuilder::new(heard.name()).content(b"by a program").sign_digest();
    program.send_to(&data, DEFAULT_UDP4_GROUP).unwrap();
    assert_eq!(consumer.receive().expect("Data").data().content(), b"by a program");
}

#[test]
fn faces_follow_their_interfaces() {
    let Some(segment) = Segment::new(1) else { return };
    let host = segment.start(0, |config| {
        both_groups(config);
        config.settings.faces.multicast.except = vec!["dum1".parse().unwrap()];
    });
    let first = host.face(GROUP4);
    segment.ip(0, "link set eth0 down");
    eventually("the face goes with its interface", || !host.has_face(GROUP4) && !host.has_face(GROUP6));
    segment.ip(0, "link set eth0 up");
    assert_ne!(host.face(GROUP4).face_id, first.face_id, "a new face");
    segment.ip(0, "addr del 10.77.0.1/24 dev eth0");
    segment.ip(0, "addr add 10.77.0.9/24 dev eth0");
    eventually("the face has the new address", || {
        let faces = host.application().faces();
        faces.iter().any(|face| face.uri == GROUP4 && face.local_uri.starts_with("udp4://10.77.0.9:"))
    });
    for interface in ["dum0", "dum1"] {
        segment.ip(0, &format!("link add {interface} type veth peer name {interface}p"));
        segment.ip(0, &format!("link set {interface}p up"));
        segment.ip(0, &format!("link set {interface} up"));
    }
    host.face("udp6://[ff02::1234%dum0]:56363");
    host.face("udp6://[ff02::1234%dum1p]:56363");
    assert!(!host.has_face("udp6://[ff02::1234%dum1]:56363"), "denied");
    segment.ip(0, "link del dum0");
    eventually("the interface is gone", || !host.has_face("udp6://[ff02::1234%dum0]:56363"));
}
