//! UDP faces over links that go down and up again.

use super::hosts::{Host, Segment};
use crate::application::{Application, eventually, name};
use namewire_packet::{
    FaceId,
    nfd::{ControlParameters, FaceEventKind, FacePersistency},
};
use std::{net::SocketAddr, time::Duration};

const REMOTE: &str = "udp4://10.77.0.2:6363";

fn face(host: &Host, persistency: FacePersistency) -> FaceId {
    let (uri, persistency) = (Some(REMOTE.to_owned()), Some(persistency.code()));
    let create = ControlParameters { uri, face_persistency: persistency, ..Default::default() };
    let face = host.application().succeed("/faces/create", create).face_id.unwrap();
    host.add_route("/far", face);
    face
}

fn listening(segment: &Segment, host: usize) -> Host {
    let address: SocketAddr = format!("10.77.0.{}:6363", host + 1).parse().unwrap();
    segment.start(host, |config| {
        (config.settings.faces.udp.enabled, config.settings.faces.udp.listen) = (true, Some(vec![address]))
    })
}

/// The bridge pulls the host's cable out. The host sends nothing that could fail.
#[test]
fn an_idle_persistent_face_closes_when_its_cable_is_pulled_out() {
    for far_end in [false, true] {
        let Some(segment) = Segment::new(2) else { return };
        let (near, _far) = (listening(&segment, 0), listening(&segment, 1));
        let face = face(&near, FacePersistency::Persistent);
        let mut watcher = near.application();
        let mut event = watcher.next_event(None);
        if far_end {
            segment.hub_ip("link set port0 down")
        } else {
            segment.ip(0, "link set eth0 down")
        }
        while (event.1.face_id, event.1.kind) != (face, FaceEventKind::Destroyed) {
            event = watcher.next_event(Some(event.0 + 1));
        }
        assert!(!near.has_face(REMOTE));
        assert_eq!(near.application().drops("face-closed.interface-down"), 1);
    }
}

#[test]
fn a_permanent_face_goes_down_and_up_with_its_cable() {
    let Some(segment) = Segment::new(2) else { return };
    let (near, far) = (listening(&segment, 0), listening(&segment, 1));
    let face = face(&near, FacePersistency::Permanent);
    let mut producer = far.application();
    producer.register("/far");
    let mut watcher = near.application();
    let mut event = watcher.next_event(None);
    let mut consumer = near.application();
    for round in 0..3 {
        fetch(&mut consumer, &mut producer, round);
        segment.ip(0, "link set eth0 down");
        for kind in [FaceEventKind::Down, FaceEventKind::Up] {
            while (event.1.face_id, event.1.kind) != (face, kind) {
                event = watcher.next_event(Some(event.0 + 1));
            }
            if kind == FaceEventKind::Down {
                segment.ip(0, "link set eth0 up");
            }
        }
    }
    fetch(&mut consumer, &mut producer, 9);
    assert_eq!(near.face(REMOTE).face_id, face);
}

/// The story: the face attracted Interests until one was sent and failed; without a carrier none fails.
#[test]
fn a_permanent_face_made_while_its_cable_is_out_is_down_from_the_start() {
    let Some(segment) = Segment::new(2) else { return };
    let (near, far) = (listening(&segment, 0), listening(&segment, 1));
    let mut producer = far.application();
    producer.register("/far");
    segment.hub_ip("link set port0 down");
    let mut watcher = near.application();
    let mut event = watcher.next_event(None);
    // The router learns of the change of an interface a little later.
    std::thread::sleep(Duration::from_secs(1));
    let face = face(&near, FacePersistency::Permanent);
    for kind in [FaceEventKind::Created, FaceEventKind::Down, FaceEventKind::Up] {
        while (event.1.face_id, event.1.kind) != (face, kind) {
            event = watcher.next_event(Some(event.0 + 1));
        }
        if kind == FaceEventKind::Down {
            segment.hub_ip("link set port0 up");
        }
    }
    fetch(&mut near.application(), &mut producer, 0);
}

fn fetch(consumer: &mut Application, producer: &mut Application, round: usize) {
    let mut attempt = 0;
    eventually("Data comes over the link", || {
        attempt += 1;
        let interest = consumer.interest(name(&format!("/far/{round}/{attempt}"))).lifetime_ms(500).build();
        consumer.send(&interest);
        producer.serve_for(Duration::from_millis(100), b"hello");
        consumer.receive_within(Duration::from_millis(100)).is_some_and(|reply| reply.headers.nack.is_none())
    });
}
