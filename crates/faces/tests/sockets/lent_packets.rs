//! Packets lent to streams arrive as if they had been sent.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use namewire_faces::{CloseReason, DriverConfig, FaceEvent, Lent, LinkDrop};
use namewire_packet::lp::{LpHeaders, PitToken};
use namewire_packet::{FaceId, lp};

use crate::worker::*;

/// Small packets, which are copied, and large ones, in stretches of random length.
fn packets(random: &mut fastrand::Rng, count: usize) -> Vec<Vec<u8>> {
    let size = |random: &mut fastrand::Rng| if random.bool() { random.usize(1..300) } else { random.usize(2500..8700) };
    (0..count).map(|i| element(6, size(random), i as u64)).collect()
}

/// Returns the socket too: closing it would close the face.
fn read_in_background(mut socket: UnixStream, bytes: usize) -> JoinHandle<(Vec<u8>, UnixStream)> {
    std::thread::spawn(move || {
        let mut read = vec![0; bytes];
        socket.read_exact(&mut read).unwrap();
        (read, socket)
    })
}

#[test]
fn every_face_receives_its_packets_whole_and_in_order() {
    let mut random = fastrand::Rng::with_seed(11);
    let token = LpHeaders { pit_token: PitToken::new(b"token!"), ..LpHeaders::default() };
    // More faces than can be lent to at once.
    for face_count in [1, 2, 12] {
        let mut worker = Worker::new(DriverConfig::default());
        let faces: Vec<FaceId> = (0..face_count).map(|i| FaceId(300 + i)).collect();
        let peers: Vec<UnixStream> = faces.iter().map(|&face| worker.application(face)).collect();
        let mut expected = vec![Vec::new(); faces.len()];
        let mut counts = vec![0; faces.len()];
        let batches: Vec<Vec<(usize, bool, Vec<u8>)>> = (0..30)
            .map(|_| {
                let packets = packets(&mut random, 90).into_iter();
                packets.map(|packet| (random.usize(..faces.len()), random.bool(), packet)).collect()
            })
            .collect();
        for (index, has_token, packet) in batches.iter().flatten() {
            counts[*index] += 1;
            if *has_token {
                lp::write_headers(&mut expected[*index], &token, &Default::default(), packet.len());
            }
            expected[*index].extend_from_slice(packet);
        }
        let readers: Vec<_> =
            peers.into_iter().zip(&expected).map(|(peer, bytes)| read_in_background(peer, bytes.len())).collect();
        for batch in &batches {
            // Some packets are queued before; they must come first.
            let (sent, lent_ones) = batch.split_at(5);
            for (index, has_token, packet) in sent {
                let headers = if *has_token { token } else { LpHeaders::default() };
                worker.driver.send(0, faces[*index], &headers, packet).unwrap();
            }
            let mut lent = Lent::default();
            for (index, has_token, packet) in lent_ones {
                let headers = if *has_token { token } else { LpHeaders::default() };
                worker.driver.lend(0, faces[*index], &headers, packet, &|_| None, &mut lent).unwrap();
            }
            worker.driver.finish(&mut lent);
            worker.driver.flush();
        }
        while !readers.iter().all(|reader| reader.is_finished()) {
            worker.round(); // what the kernel did not take at first
        }
        let read: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        for ((read, _), expected) in read.iter().zip(&expected) {
            assert!(read == expected);
        }
        assert_eq!(worker.driver.queued_bytes(), 0);
        for ((face, expected), count) in faces.iter().zip(&expected).zip(counts) {
            let counters = worker.driver.counters(*face).unwrap().snapshot();
            assert_eq!((counters.out_data, counters.out_bytes), (count, expected.len() as u64));
        }
    }
}

#[test]
fn a_slow_reader_is_lent_no_more_than_its_queue_holds() {
    const PACKET: usize = 8000;
    let config = DriverConfig { stream_queue_bytes: 100_000, ..DriverConfig::default() };
    let mut worker = Worker::new(config);
    let slow = worker.application(A);
    let packets: Vec<Vec<u8>> = (0..300).map(|seed| element(6, PACKET - 4, seed)).collect();
    let mut lent = Lent::default();
    let mut accepted = Vec::new();
    let mut refused = 0;
    for packet in &packets {
        match worker.driver.lend(0, A, &LpHeaders::default(), packet, &|_| None, &mut lent) {
            Ok(()) => accepted.extend_from_slice(packet),
            Err(LinkDrop::QueueFull) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    worker.driver.finish(&mut lent);
    worker.driver.flush();
    let queued = worker.driver.queued_bytes();
    assert!(refused > 200 && (100_000..100_000 + PACKET).contains(&queued), "{refused} refused, {queued} queued");
    assert_eq!(worker.dropped(A, LinkDrop::QueueFull), refused);
    let reader = read_in_background(slow, accepted.len());
    while !reader.is_finished() {
        worker.round();
    }
    assert!(reader.join().unwrap().0 == accepted);
}

#[test]
fn faces_that_cannot_be_lent_to() {
    let (mut worker, address) = udp_worker(DriverConfig::default());
    let (large, too_large) = (element(6, 8000, 1), element(6, 9000, 2));
    let none = LpHeaders::default();
    let mut lent = Lent::default();

    assert_eq!(worker.driver.lend(0, B, &none, &large, &|_| None, &mut lent), Err(LinkDrop::NoSuchFace));
    let gone = worker.application(A);
    assert_eq!(worker.driver.lend(0, A, &none, &too_large, &|_| None, &mut lent), Err(LinkDrop::PacketTooLarge));

    let peer = peer();
    peer.send_to(&interest(1), address).unwrap();
    let face = created(worker.event());
    worker.driver.lend(0, face, &none, &large, &|_| None, &mut lent).unwrap();

    drop(gone);
    worker.driver.lend(0, A, &none, &large, &|_| None, &mut lent).unwrap();
    worker.driver.finish(&mut lent);
    worker.driver.flush();
    let mut bytes = [0; 9000];
    let len = peer.recv(&mut bytes).unwrap();
    assert!(bytes[..len] == large, "a datagram is queued like any other");
    let event = worker.driver.events().next();
    let event = event.unwrap_or_else(|| worker.event());
    let FaceEvent::Closed { face: A, reason: CloseReason::Io(_) | CloseReason::PeerClosed } = event else {
        panic!("{event:?}")
    };
}
