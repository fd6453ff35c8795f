//! Self-learning over a link: announcements with Data that arrives through the multicast group of the link.

use super::hosts::{Host, Segment};
use crate::application::{eventually, name};
use namewire_configuration::Configuration;
use namewire_packet::{
    FaceId, Nonce, SignedInterestFields,
    nfd::{ControlParameters, ControlResponse, RibEntry, origin, prefix_announcement::announce_with_digest},
};
use namewire_security::trust::RulesOrAny;
use std::time::SystemTime;

const PREFIX: &str = "/learned";

/// Faces that a host has learned the prefix from.
fn learned_from(host: &Host) -> Vec<FaceId> {
    let entries: Vec<RibEntry> = host.application().dataset("/rib/list");
    let routes = entries.into_iter().filter(|entry| entry.name == name(PREFIX)).flat_map(|entry| entry.routes);
    routes.filter(|route| route.origin == origin::PREFIX_ANNOUNCEMENT).map(|route| route.face_id).collect()
}

/// A consumer on one host finds the producer on another: it asks the group and gets Data of `content_bytes`. The router
/// learns the route and uses it.
fn learn(group: &str, content_bytes: usize, change: impl Fn(&mut Configuration)) {
    let Some(segment) = Segment::new(2) else { return };
    let hosts = [0, 1].map(|host| {
        segment.start(host, |config| {
            config.trust.prefix_announcement = Some(RulesOrAny::Any);
            change(config);
        })
    });
    for host in &hosts {
        host.face(group);
        let strategy = Some(name("/localhost/nfd/strategy/self-learning"));
        let choice = ControlParameters { name: Some(name(PREFIX)), strategy, ..Default::default() };
        host.application().succeed("/strategy-choice/set", choice);
    }
    let [near, far] = &hosts;
    let mut producer = far.application();
    let unix_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
    let fields = SignedInterestFields { nonce: vec![7; 8], time_ms: Some(unix_ms), seq_num: None };
    let announcement = announce_with_digest(name(PREFIX).as_name(), 1, 3_600_000);
    let command = producer.interest(name("/localhost/nfd/rib/announce")).application_parameters(announcement);
    producer.send(&command.nonce(Nonce::from_u32(7)).sign_digest(&fields));
    let reply = producer.receive().expect("a reply");
    assert_eq!(ControlResponse::decode(reply.data().content()).unwrap().code, 200);

    let content: Vec<u8> = (0..content_bytes).map(|i| (i / 7) as u8).collect();
    let served = content.clone();
    let serving = std::thread::spawn(move || producer.serve(5, &served));
    let mut consumer = near.application();
    for index in 0..5 {
        let reply = consumer.express(&format!("{PREFIX}/{index}")).expect("Data");
        assert_eq!(reply.data().content(), content);
        assert!(reply.data().verify_digest_sha256());
        eventually("the route is learned", || learned_from(near) == [near.face(group).face_id]);
    }
    serving.join().unwrap();
}

#[test]
fn a_route_is_learned_from_an_ethernet_group_beside_fragments() {
    learn("ether://[01:00:5e:00:17:aa]", 4000, |config| config.settings.faces.ethernet.multicast = true);
}

#[test]
fn a_route_is_learned_from_a_udp_group() {
    learn("udp4://224.0.23.170:56363", 1000, |config| {
        (config.settings.faces.multicast.enabled, config.settings.faces.multicast.ipv6) = (true, false);
    });
}
