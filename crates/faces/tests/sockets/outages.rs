//! Datagram faces whose links carry nothing: closed, or down until they carry packets again.

use std::net::{SocketAddr, UdpSocket};

use namewire_faces::{CloseReason, FaceEvent};

use namewire_packet::{FaceId, nfd::FacePersistency};

use crate::worker::*;

const IDLE: [u8; 2] = [100, 0];

/// A worker with a face to a port that was open a moment ago.
fn face_to_a_closed_port(persistency: FacePersistency) -> (Worker, SocketAddr) {
    let (mut worker, address) = udp_worker(Default::default());
    let closed = peer().local_addr().unwrap();
    worker.driver.add_udp_face(A, address, closed, persistency, MTU).unwrap();
    (worker, closed)
}

fn send(worker: &mut Worker, seed: u64) {
    worker.send(A, &interest(seed)).unwrap();
    worker.driver.flush();
}

/// Rounds of the worker's clock, without waiting.
fn pass(worker: &mut Worker, ms: u64) -> Vec<FaceEvent> {
    let mut events = Vec::new();
    for _ in 0..ms * 1_000_000 / ROUND_NS {
        worker.round();
        events.extend(worker.driver.events());
    }
    events
}

/// A neighbour's forwarder that had stopped kept its face, and every Interest went there first.
#[test]
fn a_face_to_a_closed_port_closes_unless_it_is_permanent() {
    for (persistency, expected) in [
        (FacePersistency::Persistent, FaceEvent::Closed { face: A, reason: CloseReason::Refused }),
        (FacePersistency::Permanent, FaceEvent::Down { face: A, reason: CloseReason::Refused }),
    ] {
        let (mut worker, _) = face_to_a_closed_port(persistency);
        // One Interest is enough: the probe after it finds out whether the port is really closed.
        send(&mut worker, 1);
        assert_eq!(worker.event(), expected, "{persistency:?}");
        assert_eq!(worker.driver.face_count(), usize::from(persistency == FacePersistency::Permanent));
    }
}

#[test]
fn a_permanent_face_is_up_when_its_peer_is_back() {
    let (mut worker, closed) = face_to_a_closed_port(FacePersistency::Permanent);
    send(&mut worker, 1);
    assert_eq!(worker.event(), FaceEvent::Down { face: A, reason: CloseReason::Refused });
    assert_eq!(pass(&mut worker, 3500), [], "probes are refused");
    let back = UdpSocket::bind(closed).unwrap();
    assert_eq!(worker.event(), FaceEvent::Up { face: A }, "a probe was not refused");
    let mut bytes = [0; 100];
    let len = back.recv(&mut bytes).unwrap();
    assert_eq!(bytes[..len], IDLE);
    send(&mut worker, 2);
    let len = back.recv(&mut bytes).unwrap();
    assert_eq!(bytes[..len], interest(2));
    // Once more, but now the peer sends first.
    drop(back);
    let closed_again = loop {
        send(&mut worker, 3);
        if let Some(event) = pass(&mut worker, 40).pop() {
            break event;
        }
    };
    assert_eq!(closed_again, FaceEvent::Down { face: A, reason: CloseReason::Refused });
    assert_eq!(pass(&mut worker, 200), []);
    let back = UdpSocket::bind(closed).unwrap();
    back.send_to(&interest(4), local_of(&worker)).unwrap();
    assert_eq!(worker.event(), FaceEvent::Up { face: A });
    assert_eq!(pass(&mut worker, 3000), [], "and stays up");
}

fn local_of(worker: &Worker) -> SocketAddr {
    worker.driver.info(A).unwrap().local.to_string().strip_prefix("udp4://").unwrap().parse().unwrap()
}

/// One ICMP message can be forged by a host that knows addresses and ports, and these are well known.
#[test]
fn one_report_between_packets_of_the_peer_closes_nothing() {
    let (mut worker, address) = udp_worker(Default::default());
    let remote = peer();
    let to = remote.local_addr().unwrap();
    worker.driver.add_udp_face(A, address, to, FacePersistency::Persistent, MTU).unwrap();
    let mut remote = Some(remote);
    for seed in 0..20 {
        // The port is closed for a moment: the network reports once, and our probe, which asks whether it is closed,
        // finds it open.
        drop(remote.take());
        send(&mut worker, seed);
        let open = UdpSocket::bind(to).unwrap();
        assert_eq!(pass(&mut worker, 100), [], "round {seed}");
        open.send_to(&interest(seed), address).unwrap();
        assert_eq!(worker.receive(1).len(), 1);
        remote = Some(open);
    }
    assert_eq!(worker.driver.face_count(), 1);
}

#[test]
fn faces_of_an_interface_that_is_down_close_or_wait_for_it() {
    let (mut worker, address) = udp_worker(Default::default());
    let (remote, sender) = (peer(), peer());
    let to = remote.local_addr().unwrap();
    worker.driver.add_udp_face(A, address, to, FacePersistency::Permanent, MTU).unwrap();
    worker.driver.add_udp_face(B, address, sender.local_addr().unwrap(), FacePersistency::Persistent, MTU).unwrap();
    peer().send_to(&interest(1), address).unwrap();
    let on_demand = created(worker.event());
    let faces = [A, B, on_demand, FaceId(9999)];
    worker.driver.set_interface_up(worker.now_ns, &faces, true);
    assert_eq!(worker.driver.events().count(), 0, "it was up before");
    worker.driver.set_interface_up(worker.now_ns, &faces, false);
    let reason = CloseReason::InterfaceDown;
    let events: Vec<FaceEvent> = worker.driver.events().collect();
    let closed = |face| FaceEvent::Closed { face, reason };
    assert_eq!(events, [FaceEvent::Down { face: A, reason }, closed(B), closed(on_demand)]);
    remote.send_to(&interest(2), address).unwrap();
    assert_eq!(pass(&mut worker, 900), [], "what had waited in the socket is no news");
    assert_eq!(pass(&mut worker, 3000), [], "nothing is sent while the interface is down");
    remote.set_nonblocking(true).unwrap();
    assert!(remote.recv(&mut [0; 100]).is_err(), "not even a probe");
    worker.driver.set_interface_up(worker.now_ns, &[A], true);
    assert_eq!(pass(&mut worker, 1200), [FaceEvent::Up { face: A }]);
    let len = remote.recv(&mut [0; 100]).unwrap();
    assert_eq!(len, IDLE.len());
}

#[test]
fn a_datagram_face_that_is_down_ends_when_it_is_no_longer_permanent() {
    let (mut worker, _) = face_to_a_closed_port(FacePersistency::Permanent);
    send(&mut worker, 1);
    assert_eq!(worker.event(), FaceEvent::Down { face: A, reason: CloseReason::Refused });
    assert!(worker.driver.set_persistency(A, FacePersistency::Persistent));
    let events: Vec<FaceEvent> = worker.driver.events().collect();
    assert_eq!(events, [FaceEvent::Closed { face: A, reason: CloseReason::Refused }]);
}

/// On the socket that all on-demand faces share, one remote's failure does not affect the others.
#[test]
fn what_one_remote_of_a_listener_meets_closes_no_other_face() {
    let (mut worker, address) = udp_worker(Default::default());
    let (gone, present) = (peer(), peer());
    gone.send_to(&interest(1), address).unwrap();
    let gone_face = created(worker.event());
    present.send_to(&interest(2), address).unwrap();
    let present_face = created(worker.event());
    drop(gone);
    for seed in 0..50 {
        worker.send(gone_face, &interest(seed)).unwrap();
        worker.send(present_face, &interest(seed)).unwrap();
        worker.driver.flush();
        worker.round();
        let mut bytes = [0; 100];
        let len = present.recv(&mut bytes).unwrap();
        assert_eq!(bytes[..len], interest(seed));
    }
    assert_eq!(worker.driver.events().count(), 0, "the kernel tells a shared socket of no report");
}
