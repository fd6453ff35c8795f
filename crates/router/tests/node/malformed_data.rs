//! Data that no router may accept, at the sockets: it is dropped, counted, and answers no Interest.

use crate::application::{Application, eventually, name, start};
use namewire_packet::{
    Component, Data, DataBuilder, Interest, NameBuf, lp::LpPacket, nfd::ControlParameters,
    tlv::types::IMPLICIT_SHA256_DIGEST,
};
use std::{net::UdpSocket, time::Duration};

/// Enough names for each of four workers to own some.
const NAMES: u64 = 16;

fn honest(prefix: &str, number: u64) -> Vec<u8> {
    DataBuilder::new(name(&format!("{prefix}/{number}"))).content(b"honest").sign_digest()
}

/// The name that asks for exactly this Data.
fn full_name(wire: &[u8]) -> NameBuf {
    let data = Data::parse(wire).unwrap();
    data.name().to_buf().join(Component { type_number: IMPLICIT_SHA256_DIGEST, value: &data.implicit_digest() })
}

/// Data that claims to be what was asked for.
fn claims(wire: &[u8]) -> Vec<u8> {
    DataBuilder::new(full_name(wire)).content(b"poison").sign_digest()
}

/// The defect: an application, or a neighbour over UDP, could answer an Interest for a digest with any Data that had
/// this digest in its name. The router kept that Data for later consumers.
#[test]
fn data_that_claims_a_digest_answers_nobody() {
    for workers in [1, 4] {
        let (router, _directory) = start(workers);
        let connect = || Application::connect(&router);
        let (mut operator, mut consumer, mut producer) = (connect(), connect(), connect());
        producer.register("/unix");
        let neighbour = UdpSocket::bind("127.0.0.1:0").unwrap();
        neighbour.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let uri = format!("udp4://{}", neighbour.local_addr().unwrap());
        let face_id =
            operator.succeed("/faces/create", ControlParameters { uri: Some(uri), ..Default::default() }).face_id;
        operator
            .succeed("/rib/register", ControlParameters { name: Some(name("/udp")), face_id, ..Default::default() });

        for number in 0..NAMES {
            let wire = honest("/unix", number);
            let interest = consumer.interest(full_name(&wire)).lifetime_ms(60_000).build();
            consumer.send(&interest);
            assert_eq!(producer.receive().expect("the Interest").interest().name(), full_name(&wire).as_name());
            producer.send(&claims(&wire));
            producer.send(&wire);
            assert_eq!(consumer.receive().expect("the answer").bytes, wire);
        }
        for number in 0..NAMES {
            let wire = honest("/udp", number);
            let interest = consumer.interest(full_name(&wire)).lifetime_ms(60_000).build();
            consumer.send(&interest);
            let mut frame = [0; 9000];
            let (size, from) = neighbour.recv_from(&mut frame).expect("the Interest");
            let asked = LpPacket::parse(&frame[..size]).map_or(&frame[..size], |lp| lp.fragment.unwrap());
            assert_eq!(Interest::parse(asked).unwrap().name(), full_name(&wire).as_name());
            neighbour.send_to(&claims(&wire), from).unwrap();
            neighbour.send_to(&wire, from).unwrap();
            assert_eq!(consumer.receive().expect("the answer").bytes, wire);
        }
        eventually("all were counted", || operator.drops("engine.malformed") == 2 * NAMES);
    }
}
