//! Packets between routers, and between workers of one router.

use crate::application::{Application, name, start};
use namewire_packet::{DataBuilder, nfd::ControlParameters};
use std::time::Duration;

#[test]
fn two_routers_fragment_large_data_over_udp() {
    let ((near, _near_directory), (far, _far_directory)) = (start(4), start(4));
    let mut producer = Application::connect(&far);
    producer.register("/far");
    let mut consumer = Application::connect(&near);
    // Commands make both ends, each with an MTU of 1400.
    let link = |application: &mut Application, remote: std::net::SocketAddr| {
        let parameters =
            ControlParameters { uri: Some(format!("udp4://{remote}")), mtu: Some(1400), ..Default::default() };
        application.succeed("/faces/create", parameters).face_id
    };
    let to_far = link(&mut consumer, far.udp()[0]);
    let mut operator = Application::connect(&far);
    link(&mut operator, near.udp()[0]);
    let route = ControlParameters { name: Some(name("/far")), face_id: to_far, ..Default::default() };
    consumer.succeed("/rib/register", route);
    let content: Vec<u8> = (0..8000).map(|i| i as u8).collect();
    let served = content.clone();
    let serving = std::thread::spawn(move || producer.serve(100, &served));
    for index in 0..100 {
        let reply = consumer.express(&format!("/far/{index}")).expect("Data");
        assert_eq!(reply.data().content(), content);
        assert!(reply.data().verify_digest_sha256());
    }
    serving.join().unwrap();
}

#[test]
fn a_pending_interest_reaches_a_next_hop_that_registers_later() {
    let (router, _directory) = start(4);
    let mut operator = Application::connect(&router);
    let strategy = Some(name("/localhost/nfd/strategy/multicast"));
    let choice = ControlParameters { name: Some(name("/example")), strategy, ..Default::default() };
    operator.succeed("/strategy-choice/set", choice);
    // An application that never answers; without it there would be no route at all.
    let mut silent = Application::connect(&router);
    silent.register("/example");
    let mut consumer = Application::connect(&router);
    for index in 0..8 {
        let interest = consumer.interest(name(&format!("/example/{index}"))).lifetime_ms(10_000).build();
        consumer.send(&interest);
    }
    for _ in 0..8 {
        silent.receive().expect("an Interest");
    }
    let mut late = Application::connect(&router);
    let parameters = ControlParameters { name: Some(name("/example")), ..Default::default() };
    let command = late.command_packet("/rib/register", &parameters);
    late.send(&command);
    let mut answered = 0;
    while answered < 8 {
        let packet = late.receive().expect("an Interest, or the reply");
        if packet.bytes[0] == 5 {
            late.send(&DataBuilder::new(packet.interest().name()).content(b"late").sign_digest());
            answered += 1;
        }
    }
    for _ in 0..8 {
        assert_eq!(consumer.receive().expect("Data").data().content(), b"late");
    }
}

#[test]
fn a_window_of_large_data_passes_between_workers_without_loss() {
    const COUNT: usize = 2000;
    const WINDOW: usize = 100;
    let (router, _directory) = start(4);
    let mut producer = Application::connect(&router);
    producer.register("/large");
    let mut consumer = Application::connect(&router);
    let serving = std::thread::spawn(move || {
        producer.serve(COUNT, &[7; 8000]);
        producer
    });
    let (mut sent, mut received) = (0, 0);
    while received < COUNT {
        while sent < COUNT && sent < received + WINDOW {
            let interest = consumer.interest(name(&format!("/large/{sent}"))).lifetime_ms(20_000).build();
            consumer.send(&interest);
            sent += 1;
        }
        let reply = consumer.receive_within(Duration::from_secs(2));
        if reply.is_none() {
            let mut operator = Application::connect(&router);
            panic!("{received} of {sent} came; ring-full {}", operator.drops("router.ring-full"));
        }
        received += 1;
    }
    serving.join().unwrap();
}
