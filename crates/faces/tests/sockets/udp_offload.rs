//! Segmentation offload changes how datagrams pass through the kernel. A peer sees no difference.

use std::net::UdpSocket;

use namewire_faces::{DriverConfig, LinkDrop};

use namewire_packet::{lp::LpHeaders, nfd::FacePersistency};

use crate::worker::*;

fn config(udp_offload: bool) -> DriverConfig {
    DriverConfig { udp_offload, ..DriverConfig::default() }
}

/// Sizes that end runs for every reason: a shorter one, a longer one, more than 64 of a size, and more bytes than one
/// message holds.
fn packets_of_mixed_sizes(seed: u64) -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut sizes = vec![30; 7];
    sizes.extend([20, 30, 31, 31, 31, 40, 10, 10]);
    sizes.extend([25; 200]);
    sizes.extend([8000; 20]);
    for _ in 0..20 {
        let size = random.usize(1..3000);
        sizes.extend(std::iter::repeat_n(size, random.usize(1..12)));
    }
    sizes.iter().enumerate().map(|(i, &size)| element([5, 6][i % 2], size, i as u64)).collect()
}

/// Parts that fit the receive buffer of an ordinary socket, in which a small datagram takes 0.8 KiB and a large one
/// twice its size. They still exceed both limits of one message.
fn parts(packets: &[Vec<u8>]) -> Vec<&[Vec<u8>]> {
    let (mut parts, mut rest) = (Vec::new(), packets);
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take(130).take_while(|packet| {
            bytes += packet.len();
            bytes <= 9 * 8004
        });
        let (part, after) = rest.split_at(fits.count());
        parts.push(part);
        rest = after;
    }
    parts
}

fn receive_plainly(socket: &UdpSocket, packets: &[Vec<u8>]) {
    let mut bytes = [0; 9000];
    for packet in packets {
        let len = socket.recv(&mut bytes).unwrap();
        assert!(bytes[..len] == packet[..], "{len} bytes for {}", packet.len());
    }
}

#[test]
fn an_ordinary_peer_receives_the_datagrams_that_were_sent() {
    for offload in [true, false] {
        let (mut worker, address) = udp_worker(config(offload));
        // One face with a socket of its own, and two that share the listener.
        let (connected, one, two) = (peer(), peer(), peer());
        let remote = connected.local_addr().unwrap();
        worker.driver.add_udp_face(A, address, remote, FacePersistency::Persistent, MTU).unwrap();
        one.send_to(&interest(1), address).unwrap();
        let first = created(worker.event());
        two.send_to(&interest(2), address).unwrap();
        let second = created(worker.event());

        let packets = packets_of_mixed_sizes(1);
        for part in parts(&packets) {
            for packet in part {
                worker.send(A, packet).unwrap();
            }
            worker.driver.flush();
            receive_plainly(&connected, part);
            // Alternating destinations, and runs of each.
            for run in part.chunks(5) {
                for (face, packet) in run.iter().map(|p| (first, p)).chain(run.iter().map(|p| (second, p))) {
                    worker.send(face, packet).unwrap();
                }
            }
            worker.driver.flush();
            receive_plainly(&one, part);
            receive_plainly(&two, part);
        }
        for face in [A, first, second] {
            let counters = worker.driver.counters(face).unwrap().snapshot();
            assert_eq!(counters.out_interests + counters.out_data, packets.len() as u64);
            assert_eq!(counters.out_bytes, packets.iter().map(|packet| packet.len() as u64).sum::<u64>());
            assert_eq!(counters.dropped(LinkDrop::SendFailed), 0);
        }
        assert_eq!(worker.driver.queued_bytes(), 0);
    }
}

#[test]
fn drivers_with_and_without_offload_understand_each_other() {
    for (sends, receives) in [(true, true), (true, false), (false, true)] {
        let (mut left, left_address) = udp_worker(config(sends));
        let (mut right, right_address) = udp_worker(config(receives));
        left.driver.add_udp_face(A, left_address, right_address, FacePersistency::Persistent, MTU).unwrap();
        let packets = [vec![interest(1)], packets_of_mixed_sizes(2)].concat(); // the first one must be valid
        let (mut received, mut adjacent) = (Vec::new(), 0);
        for part in parts(&packets) {
            for packet in part {
                left.send(A, packet).unwrap();
            }
            left.driver.flush();
            let target = received.len() + part.len();
            while received.len() < target {
                received.extend(right.receive(1));
                let lent = right.packets.windows(2);
                adjacent += lent.filter(|pair| pair[0].start + pair[0].len == pair[1].start).count();
            }
        }
        assert_eq!(received.len(), packets.len());
        for ((face, headers, bytes), packet) in received.iter().zip(&packets) {
            assert_eq!((*face, headers), (received[0].0, &LpHeaders::default()));
            assert!(bytes == packet, "{} bytes for {}", bytes.len(), packet.len());
        }
        // Lent in place: many to a message, or one to a message.
        assert_eq!(adjacent > packets.len() / 2, sends && receives, "{adjacent} adjacent");
        let counters = right.driver.counters(received[0].0).unwrap().snapshot();
        assert_eq!(counters.in_interests + counters.in_data, packets.len() as u64);
        assert_eq!(counters.in_bytes, packets.iter().map(|packet| packet.len() as u64).sum::<u64>());

        // And back, over the face that the first packet created.
        for packet in &packets[..100] {
            right.send(received[0].0, packet).unwrap();
        }
        right.driver.flush();
        let back: Vec<Vec<u8>> = left.receive(100).into_iter().map(|(_, _, bytes)| bytes).collect();
        assert!(back == packets[..100]);
    }
}

#[test]
fn each_datagram_of_a_message_is_checked_alone() {
    let (mut left, left_address) = udp_worker(config(true));
    let (mut right, right_address) = udp_worker(config(true));
    left.driver.add_udp_face(A, left_address, right_address, FacePersistency::Persistent, MTU).unwrap();
    // Elements of an unknown type, of the size of the Interests around them; the first of them cannot create a face.
    for packet in [element(7, 30, 0), interest(1), interest(2), element(7, 30, 3), interest(4)] {
        left.send(A, &packet).unwrap();
    }
    left.driver.flush();
    let received: Vec<Vec<u8>> = right.receive(3).into_iter().map(|(_, _, bytes)| bytes).collect();
    assert_eq!(received, [interest(1), interest(2), interest(4)]);
    let face = created(right.driver.events().next().unwrap());
    assert_eq!(right.dropped(face, LinkDrop::UnknownType), 1);
    assert_eq!(right.driver.faceless_counters().dropped(LinkDrop::UnknownType), 1);
}

#[test]
fn fragments_of_many_packets_in_one_message_are_reassembled() {
    let (mut left, left_address) = udp_worker(config(true));
    let (mut right, right_address) = udp_worker(config(true));
    left.driver.add_udp_face(A, left_address, right_address, FacePersistency::Persistent, 500).unwrap();
    let mut packets: Vec<Vec<u8>> = (0..40).map(|i| element(6, 700 + 200 * (i as usize % 20), i)).collect();
    packets.extend((0..40).map(interest)); // whole ones among them
    fastrand::Rng::with_seed(3).shuffle(&mut packets);
    for packet in &packets {
        left.send(A, packet).unwrap();
    }
    left.driver.flush();
    let received: Vec<Vec<u8>> = right.receive(packets.len()).into_iter().map(|(_, _, bytes)| bytes).collect();
    assert!(received == packets);
}
