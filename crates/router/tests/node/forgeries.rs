//! Forged Data: Data from a face that was not asked reaches no consumer, local or behind a neighbour, and no store
//! keeps it.

use crate::application::{Application, eventually, name, start};
use namewire_packet::{DataBuilder, InterestBuilder, Nonce};
use std::{
    net::UdpSocket,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// Asked for, one after the other; each is forged by two.
const NAMES: u64 = 200;

fn forged(uri: &str) -> Vec<u8> {
    DataBuilder::new(name(uri)).content(b"forged").freshness_ms(3_600_000).sign_digest()
}

#[test]
fn nobody_answers_in_place_of_the_producer() {
    for workers in [1, 4] {
        let (router, _directory) = start(workers);
        let mut producer = Application::connect(&router);
        producer.register("/p");
        let mut consumer = Application::connect(&router);
        let mut application = Application::connect(&router);
        let neighbour = UdpSocket::bind("127.0.0.1:0").expect("a port");
        neighbour.connect(router.udp()[0]).expect("loopback");
        // The neighbour has a face, as its own Interests are forwarded.
        neighbour.send(&InterestBuilder::new(name("/none")).nonce(Nonce::from_u32(1)).build()).expect("sent");
        let mut nack = [0; 1000];
        neighbour.recv(&mut nack).expect("a Nack");
        for number in 0..NAMES {
            let asked = format!("/p/{number}");
            let interest = consumer.interest(name(&asked)).lifetime_ms(60_000).build();
            consumer.send(&interest);
            let at_producer = producer.receive().expect("it is pending");
            neighbour.send(&forged(&asked)).expect("sent");
            application.send(&forged(&asked));
            application.status(); // so the router has read what was forged
            producer.answer(&at_producer, b"true");
            let answer = consumer.receive().expect("an answer");
            assert_eq!((answer.data().content(), answer.data().name()), (&b"true"[..], name(&asked).as_name()));
        }
        // Others get what the producer made, from the store.
        for number in 0..NAMES {
            assert_eq!(application.express(&format!("/p/{number}")).expect("Data").data().content(), b"true");
        }
        let mut operator = Application::connect(&router);
        eventually("each forgery is counted", || operator.drops("engine.data-not-asked") >= NAMES);
    }
}

#[test]
fn nobody_answers_in_place_of_management() {
    let (router, _directory) = start(4);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (router, is_over) = (&router, &is_over);
        for dataset in ["status/general", "faces/list", "rib/list"] {
            scope.spawn(move || {
                let mut forger = Application::connect(router);
                let packet = forged(&format!("/localhost/nfd/{dataset}/v=18446744073709551615/seg=0"));
                while !is_over.load(Ordering::Relaxed) {
                    forger.send(&packet);
                    thread::sleep(Duration::from_micros(50));
                }
            });
        }
        let mut operator = Application::connect(router);
        let mut honest = 0;
        eventually("many were forged", || {
            let dataset = ["status/general", "faces/list", "rib/list"][honest % 3];
            let asked = operator.interest(name(&format!("/localhost/nfd/{dataset}")));
            operator.send(&asked.can_be_prefix(true).must_be_fresh(true).build());
            let answer = operator.receive().expect("an answer");
            assert_ne!(answer.data().content(), b"forged", "{dataset}");
            honest += 1;
            honest >= 100 && operator.drops("engine.forged-management") >= 1000
        });
        is_over.store(true, Ordering::Relaxed);
    });
}
