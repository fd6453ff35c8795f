//! Hand-over: another driver goes on with the faces of this one, and no byte is lost, repeated or out of order.

use std::io::{Read, Write};
use std::sync::Arc;

use namewire_faces::{DriverConfig, FaceCounters, HandedChannel, HandedFace, LinkPolicy, StreamRest};
use namewire_packet::{FaceId, nfd::FacePersistency};

use crate::worker::*;

/// Another worker with all faces and listeners of this one. The first one's sockets close afterwards.
fn successor(mut first: Worker) -> (Worker, Vec<FaceId>) {
    let (faces, listeners) = first.driver.hand_over(first.now_ns).unwrap();
    let mut second = Worker::new(DriverConfig::default());
    listeners.into_iter().for_each(|listener| second.driver.add_udp_listener(listener.socket).unwrap());
    let ids = faces.iter().map(|face| face.face).collect();
    for face in faces {
        second.driver.take_over(second.now_ns, face, Arc::default()).unwrap();
    }
    (second, ids)
}

/// The face as the driver would hand it over.
fn described(worker: &mut Worker, face: FaceId) -> HandedFace {
    let (faces, _) = worker.driver.hand_over(worker.now_ns).unwrap();
    faces.into_iter().find(|described| described.face == face).unwrap()
}

#[test]
fn a_stream_goes_on_in_the_middle_of_elements_both_ways() {
    let mut first = Worker::new(DriverConfig::default());
    let mut application = first.application(A);
    // In: whole elements that a turn has left behind, and the start of one more.
    let packets: Vec<Vec<u8>> = (0..100).map(interest).collect();
    let stream = packets.concat();
    let later = [&stream[stream.len() - 40..], &interest(100)].concat();
    application.write_all(&stream[..stream.len() - 40]).unwrap();
    let received = first.receive(1);
    // Out: more than the kernel takes while nobody reads.
    let answers: Vec<Vec<u8>> = (0..800).map(|seed| element(6, 2000, seed)).collect();
    answers.iter().for_each(|answer| first.send(A, answer).unwrap());
    first.driver.flush();
    assert!(first.driver.queued_bytes() > 0);
    let HandedChannel::Stream(_, StreamRest { input, output, has_backlog, is_new }) = described(&mut first, A).channel
    else {
        panic!("a stream");
    };
    assert!(!input.is_empty() && !output.is_empty() && has_backlog && !is_new);
    let counters = first.driver.counters(A).unwrap().snapshot();

    let (mut second, ids) = successor(first);
    assert_eq!(ids, [A]);
    assert_eq!(second.driver.counters(A).unwrap().snapshot(), counters);
    assert_eq!(second.driver.queued_bytes(), output.len(), "nothing is written before the first turn");
    let wanted = answers.concat();
    let reader = std::thread::spawn(move || {
        application.write_all(&later).unwrap();
        let mut bytes = vec![0; wanted.len()];
        application.read_exact(&mut bytes).unwrap();
        assert!(bytes == wanted, "the answers are not what was sent");
        application
    });
    let rest = second.receive(101 - received.len());
    let all: Vec<Vec<u8>> = received.into_iter().chain(rest).map(|(_, _, bytes)| bytes).collect();
    assert!(all == [packets, vec![interest(100)]].concat());
    while !reader.is_finished() {
        second.round();
    }
    let mut application = reader.join().unwrap();
    second.send(A, &interest(7)).unwrap();
    second.driver.flush();
    let mut bytes = vec![0; interest(7).len()];
    application.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, interest(7));
}

#[test]
fn datagram_faces_keep_their_numbers_and_their_sockets() {
    let (mut first, address) = udp_worker(DriverConfig::default());
    let (guest, neighbour) = (peer(), peer());
    guest.send_to(&interest(1), address).unwrap();
    let on_demand = created(first.event());
    let remote = neighbour.local_addr().unwrap();
    first.driver.add_udp_face(B, address, remote, FacePersistency::Permanent, 1400).unwrap();
    first.driver.set_policy(B, LinkPolicy { reliability: true, ..LinkPolicy::default() });
    first.send(B, &element(6, 3000, 1)).unwrap(); // fragments have numbers
    first.driver.flush();
    let sequence = described(&mut first, B).next_sequence;

    let (mut second, mut ids) = successor(first);
    ids.sort();
    assert_eq!(ids, [on_demand, B]);
    assert_eq!(described(&mut second, B).next_sequence, sequence, "a peer would take others for copies");
    assert!(described(&mut second, B).policy.reliability);
    assert_eq!(second.driver.info(B).unwrap().mtu, 1400);
    guest.send_to(&interest(2), address).unwrap();
    neighbour.send_to(&interest(3), address).unwrap();
    let mut received: Vec<_> = second.receive(2).into_iter().map(|(face, _, bytes)| (face, bytes)).collect();
    received.sort();
    let mut expected = [(on_demand, interest(2)), (B, interest(3))];
    expected.sort();
    assert_eq!(received, expected);
    assert!(second.driver.events().next().is_none(), "no face is new");
    second.send(on_demand, &element(6, 100, 4)).unwrap();
    second.driver.flush();
    let mut bytes = [0; 200];
    assert_eq!(guest.recv_from(&mut bytes).unwrap(), (element(6, 100, 4).len(), address));
}

#[test]
fn the_first_driver_goes_on_if_nobody_takes_over() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut application = worker.application(A);
    application.write_all(&interest(1)).unwrap();
    worker.receive(1);
    drop(worker.driver.hand_over(worker.now_ns).unwrap());
    application.write_all(&interest(2)).unwrap();
    assert_eq!(worker.receive(1)[0].2, interest(2));
    worker.send(A, &interest(3)).unwrap();
    worker.driver.flush();
    let mut bytes = vec![0; interest(3).len()];
    application.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, interest(3));
    // A face is not taken twice.
    let handed = described(&mut worker, A);
    assert!(worker.driver.take_over(worker.now_ns, handed, Arc::<FaceCounters>::default()).is_err());
}
