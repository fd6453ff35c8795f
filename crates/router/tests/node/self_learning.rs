//! Self-learning between two routers on sockets: announce, discover, learn, pass on, forget.

use crate::application::{Application, eventually, name, start, start_with};
use namewire_packet::{
    DataBuilder, Name, Nonce, SignedInterestFields,
    nfd::{ControlParameters, ControlResponse, RibEntry, origin, prefix_announcement::announce_with_digest},
};
use namewire_router::RouterHandle;
use namewire_security::trust::RulesOrAny;
use std::time::SystemTime;

const PREFIX: &str = "/learned";
const STRATEGY: &str = "/localhost/nfd/strategy/self-learning";

/// A router that believes every announcement.
fn believing(workers: usize) -> (RouterHandle, tempfile::TempDir) {
    start_with(workers, |config| config.trust.prefix_announcement = Some(RulesOrAny::Any))
}

/// Gives a router its strategy and a face to the other router; returns the face.
fn prepare(operator: &mut Application, other: &RouterHandle) -> ControlParameters {
    let choice = ControlParameters { name: Some(name(PREFIX)), strategy: Some(name(STRATEGY)), ..Default::default() };
    operator.succeed("/strategy-choice/set", choice);
    let uri = Some(format!("udp4://{}", other.udp()[0]));
    operator.succeed("/faces/create", ControlParameters { uri, mtu: Some(1400), ..Default::default() })
}

fn announce(producer: &mut Application, parameters: &[u8]) -> ControlResponse {
    let unix_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
    let fields = SignedInterestFields { nonce: vec![7; 8], time_ms: Some(unix_ms), seq_num: None };
    let command = producer.interest(name("/localhost/nfd/rib/announce")).application_parameters(parameters.to_vec());
    producer.send(&command.nonce(Nonce::from_u32(7)).sign_digest(&fields));
    let reply = producer.receive().expect("a reply");
    ControlResponse::decode(reply.data().content()).unwrap()
}

fn announced_prefix() -> Vec<u8> {
    let prefix = name(PREFIX);
    let prefix: Name<'_> = prefix.as_name();
    announce_with_digest(prefix, 1, 3_600_000)
}

/// Origins of the routes for the prefix.
fn origins(operator: &mut Application) -> Vec<u64> {
    let entries: Vec<RibEntry> = operator.dataset("/rib/list");
    let routes = entries.into_iter().filter(|entry| entry.name == name(PREFIX)).flat_map(|entry| entry.routes);
    routes.map(|route| route.origin).collect()
}

/// Expresses a name. The producer answers with more than fits into a frame.
fn exchange(consumer: &mut Application, producer: &mut Application, uri: &str) {
    let interest = consumer.interest(name(uri)).build();
    consumer.send(&interest);
    let asked = producer.receive().unwrap_or_else(|| panic!("{uri} was not asked for"));
    assert_eq!(asked.interest().name().to_string(), uri);
    producer.send(&DataBuilder::new(name(uri)).content(&[7; 2000]).sign_digest());
    let answer = consumer.receive().unwrap_or_else(|| panic!("no answer to {uri}"));
    assert_eq!((answer.data().name().to_string(), answer.data().content().len()), (uri.to_owned(), 2000));
}

#[test]
fn a_route_is_learned_over_udp_and_lost_with_its_producer() {
    for workers in [1, 4] {
        let (near, _near_directory) = believing(workers);
        let (far, _far_directory) = start(workers);
        let (mut near_operator, mut far_operator) = (Application::connect(&near), Application::connect(&far));
        let to_far = prepare(&mut near_operator, &far).face_id.unwrap();
        prepare(&mut far_operator, &near);
        let mut producer = Application::connect(&far);
        assert_eq!(announce(&mut producer, &announced_prefix()).code, 200);
        let mut consumer = Application::connect(&near);

        exchange(&mut consumer, &mut producer, "/learned/1");
        eventually("the route is learned", || origins(&mut near_operator) == [origin::PREFIX_ANNOUNCEMENT]);
        let entries: Vec<RibEntry> = near_operator.dataset("/rib/list");
        let route = &entries.iter().find(|entry| entry.name == name(PREFIX)).unwrap().routes[0];
        assert_eq!((route.face_id, route.cost), (to_far, 2048));
        assert!(route.expiration_period_ms.is_some_and(|ms| (500_000..=600_000).contains(&ms)), "{route:?}");
        (2..10).for_each(|number| exchange(&mut consumer, &mut producer, &format!("/learned/{number}")));

        // The producer goes. Its router answers NoRoute, and the other router removes the route to it.
        drop(producer);
        eventually("the far route is gone", || origins(&mut far_operator).is_empty());
        let nack = consumer.express("/learned/gone").expect("a Nack");
        assert!(nack.headers.nack.is_some());
        eventually("the near route is gone", || origins(&mut near_operator).is_empty());
    }
}

/// Secure by default: Data flows, but the router does not believe announcements from the network.
#[test]
fn without_configuration_nothing_is_learned() {
    let (near, _near_directory) = start(2);
    let (far, _far_directory) = start(2);
    let (mut near_operator, mut far_operator) = (Application::connect(&near), Application::connect(&far));
    prepare(&mut near_operator, &far);
    prepare(&mut far_operator, &near);
    let mut producer = Application::connect(&far);
    assert_eq!(announce(&mut producer, &announced_prefix()).code, 200);
    assert_eq!(announce(&mut producer, b"no announcement").code, 400);
    let mut consumer = Application::connect(&near);
    (0..20).for_each(|number| exchange(&mut consumer, &mut producer, &format!("/learned/{number}")));
    assert_eq!(origins(&mut near_operator), [] as [u64; 0]);
    assert_eq!(origins(&mut far_operator), [origin::PREFIX_ANNOUNCEMENT]);
}

#[test]
fn measurements_are_counted_in_the_status() {
    let (router, _directory) = start_with(2, |_| ());
    let mut operator = Application::connect(&router);
    let strategy = Some(name("/localhost/nfd/strategy/asf/v=4"));
    let choice = ControlParameters { name: Some(name("/m")), strategy, ..Default::default() };
    let chosen = operator.succeed("/strategy-choice/set", choice.clone());
    assert_eq!(chosen.strategy, Some(name("/localhost/nfd/strategy/asf/v=5")), "the version that runs");
    let unknown = ControlParameters { strategy: Some(name("/localhost/nfd/strategy/asf/v=6")), ..choice };
    let refused = operator.command("/strategy-choice/set", unknown);
    assert_eq!(refused.code, 404);
    assert!(refused.text.contains("asf/v=5") && refused.text.contains("self-learning/v=1"), "{}", refused.text);
    assert_eq!(operator.status().n_measurements_entries, 0);
    let mut producer = Application::connect(&router);
    producer.register("/m");
    let mut consumer = Application::connect(&router);
    exchange(&mut consumer, &mut producer, "/m/1");
    eventually("one worker has measured", || operator.status().n_measurements_entries == 1);
}
