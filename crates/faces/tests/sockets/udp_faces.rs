//! UDP faces: on-demand and created by command, sharing one port, fragmentation.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use namewire_faces::{AddFaceError, CloseReason, DriverConfig, FaceEvent, LinkDrop, udp};

use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    lp::{LpHeaders, PitToken},
    nfd::{FacePersistency, FaceScope},
    tlv,
};

use crate::worker::*;

#[test]
fn datagrams_of_unknown_remotes_make_faces() {
    let (mut worker, address) = udp_worker(DriverConfig::default());
    let (one, two) = (peer(), peer());
    one.send_to(&interest(1), address).unwrap();
    let received = worker.receive(1);
    let events: Vec<FaceEvent> = worker.driver.events().collect();
    let FaceEvent::Created { face, info } = &events[0] else { panic!("{events:?}") };
    assert_eq!(received, [(*face, LpHeaders::default(), interest(1))]);
    assert!(*face >= FaceId::FIRST_DYNAMIC);
    assert_eq!(info.remote.to_string(), format!("udp4://{}", one.local_addr().unwrap()));
    assert_eq!(info.local.to_string(), format!("udp4://{address}"));
    assert_eq!((info.scope, info.persistency), (FaceScope::NonLocal, FacePersistency::OnDemand));

    two.send_to(&interest(2), address).unwrap();
    let other = created(worker.event());
    assert_ne!(other, *face);
    // Several remotes in one batch: each gets its own packet.
    for seed in 0..100 {
        worker.send(*face, &interest(1000 + seed)).unwrap();
        worker.send(other, &interest(2000 + seed)).unwrap();
    }
    worker.driver.flush();
    for (socket, base) in [(&one, 1000), (&two, 2000)] {
        for seed in 0..100 {
            let mut bytes = [0; 100];
            let (len, from) = socket.recv_from(&mut bytes).unwrap();
            assert_eq!((&bytes[..len], from), (&interest(base + seed)[..], address));
        }
    }
    assert!(worker.driver.remove_face(*face));
    one.send_to(&interest(3), address).unwrap();
    assert!(created(worker.event()) > other, "a new face, with a new id");
}

/// A listener on all addresses answers from the address that was asked, not from the one that the kernel prefers.
#[test]
fn the_address_that_was_asked_answers() {
    let mut worker = Worker::new(DriverConfig::default());
    let listener = udp::bind_listeners("0.0.0.0:0".parse().unwrap(), 1).unwrap().remove(0);
    let port = listener.local_addr().unwrap().port();
    worker.driver.add_udp_listener(listener).unwrap();
    for asked in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
        let (one, asked) = (peer(), SocketAddr::new(asked.parse().unwrap(), port));
        one.connect(asked).unwrap(); // it hears this address alone
        one.send(&interest(1)).unwrap();
        let FaceEvent::Created { face, info } = worker.event() else { panic!("a face") };
        assert_eq!(info.local.to_string(), format!("udp4://{asked}"));
        // One datagram, and a run that goes as one message.
        for count in [1, 20] {
            (0..count).for_each(|seed| worker.send(face, &interest(seed)).unwrap());
            worker.driver.flush();
            for seed in 0..count {
                let mut bytes = [0; 100];
                let len = one.recv(&mut bytes).unwrap();
                assert_eq!(bytes[..len], interest(seed), "{asked}");
            }
        }
    }
    let listener = udp::bind_listeners("[::]:0".parse().unwrap(), 1).unwrap().remove(0);
    let address = SocketAddr::new("::1".parse().unwrap(), listener.local_addr().unwrap().port());
    worker.driver.add_udp_listener(listener).unwrap();
    let one = UdpSocket::bind("[::1]:0").unwrap();
    one.send_to(&interest(1), address).unwrap();
    let FaceEvent::Created { info, .. } = worker.event() else { panic!("a face") };
    assert_eq!(info.local.to_string(), format!("udp6://{address}"));
}

#[test]
fn a_datagram_is_one_element_and_a_port_scan_makes_no_face() {
    let (mut worker, address) = udp_worker(DriverConfig { max_faces: 1, ..DriverConfig::default() });
    let scanner = peer();
    let cases = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), LinkDrop::TruncatedElement),
        ([interest(1), vec![0]].concat(), LinkDrop::TrailingBytes),
        (element(7, 20, 0), LinkDrop::UnknownType),
        (element(6, 9000, 0), LinkDrop::OversizeElement),
    ];
    for (datagram, reason) in cases {
        scanner.send_to(&datagram, address).unwrap();
        while worker.driver.faceless_counters().dropped(reason) == 0 {
            assert!(worker.round().is_empty());
        }
    }
    assert_eq!(worker.driver.face_count(), 0);

    scanner.send_to(&interest(1), address).unwrap();
    scanner.send_to(&element(6, MAX_PACKET_BYTES - 4, 0), address).unwrap();
    assert_eq!(worker.receive(2)[1].2.len(), MAX_PACKET_BYTES);
    let face = created(worker.driver.events().next().unwrap());
    scanner.send_to(&[interest(1), vec![0]].concat(), address).unwrap();
    while worker.dropped(face, LinkDrop::TrailingBytes) == 0 {
        assert!(worker.round().is_empty());
    }
    peer().send_to(&interest(1), address).unwrap();
    while worker.driver.faceless_counters().dropped(LinkDrop::FaceLimit) == 0 {
        assert!(worker.round().is_empty());
    }
}

#[test]
fn silent_on_demand_faces_close_and_others_do_not() {
    let config = DriverConfig { udp_idle_timeout: Duration::from_millis(300), ..DriverConfig::default() };
    let (mut worker, address) = udp_worker(config);
    let (silent, talker) = (peer(), peer());
    silent.send_to(&interest(1), address).unwrap();
    let silent_face = created(worker.event());
    talker.send_to(&interest(1), address).unwrap();
    let talker_face = created(worker.event());
    let permanent = FaceId(5000);
    worker
        .driver
        .add_udp_face(permanent, address, "127.0.0.1:9".parse().unwrap(), FacePersistency::Permanent, MTU)
        .unwrap();
    let mut events = Vec::new();
    for _ in 0..700_000_000 / ROUND_NS {
        talker.send_to(&interest(2), address).unwrap();
        worker.round();
        events.extend(worker.driver.events());
    }
    assert_eq!(events, [FaceEvent::Closed { face: silent_face, reason: CloseReason::Idle }]);
    assert!(worker.driver.next_deadline_ns().is_some());
    // A face that becomes on-demand by command starts its own time-out.
    assert!(worker.driver.set_persistency(talker_face, FacePersistency::Persistent));
    assert!(worker.driver.set_persistency(permanent, FacePersistency::OnDemand));
    assert_eq!(worker.event(), FaceEvent::Closed { face: permanent, reason: CloseReason::Idle });
    assert_eq!(worker.driver.face_count(), 1);
}

#[test]
fn a_connected_face_shares_the_port_with_its_listener() {
    let (mut worker, address) = udp_worker(DriverConfig::default());
    let (remote, stranger) = (peer(), peer());
    let info =
        worker.driver.add_udp_face(A, address, remote.local_addr().unwrap(), FacePersistency::Persistent, MTU).unwrap();
    assert_eq!(info.local.to_string(), format!("udp4://{address}"));
    worker.send(A, &interest(1)).unwrap();
    worker.driver.flush();
    let mut bytes = [0; 100];
    let (len, from) = remote.recv_from(&mut bytes).unwrap();
    assert_eq!((&bytes[..len], from), (&interest(1)[..], address));
    remote.send_to(&interest(2), address).unwrap();
    assert_eq!(worker.receive(1)[0].0, A, "its datagrams come to its face");
    stranger.send_to(&interest(3), address).unwrap();
    assert_ne!(created(worker.event()), A, "others still reach the listener");
    assert!(worker.driver.remove_face(A));
    remote.send_to(&interest(4), address).unwrap();
    assert_ne!(created(worker.event()), A, "after removal they come to the listener");
}

/// The story: the socket of a new face belongs to the listener's port as soon as it is bound, but receives from its
/// remote alone only once it is connected. Between the two the kernel gave it a share of the listener's datagrams, and
/// these were lost.
#[test]
fn nothing_that_comes_to_the_listener_is_lost_while_faces_are_made() {
    const REMOTES: usize = 16;
    const FACES: u64 = 2000;
    /// Most datagrams sent at once: the socket's buffer surely holds them.
    const WINDOW: u64 = 64;
    let (mut worker, address) = udp_worker(DriverConfig::default());
    let (is_over, received) = (AtomicBool::new(false), AtomicU64::new(0));
    let flood = || {
        let peers: Vec<UdpSocket> = (0..REMOTES).map(|_| peer()).collect();
        let mut sent = 0;
        while !is_over.load(Ordering::Relaxed) {
            if sent - received.load(Ordering::Relaxed) < WINDOW {
                peers[sent as usize % REMOTES].send_to(&interest(1), address).unwrap();
                sent += 1;
            } else {
                std::thread::yield_now();
            }
        }
        let local = |peer: &UdpSocket| format!("udp4://{}", peer.local_addr().unwrap());
        let of = |nth: usize| (sent + REMOTES as u64 - 1 - nth as u64) / REMOTES as u64;
        (0..REMOTES).map(|nth| (local(&peers[nth]), of(nth))).collect::<BTreeMap<String, u64>>()
    };
    let mut by_remote: BTreeMap<String, u64> = BTreeMap::new();
    let mut take = |worker: &mut Worker| {
        for (face, ..) in worker.round() {
            *by_remote.entry(worker.driver.info(face).unwrap().remote.to_string()).or_default() += 1;
            received.fetch_add(1, Ordering::Relaxed);
        }
    };
    let sent = std::thread::scope(|scope| {
        let flooding = scope.spawn(flood);
        for number in 0..FACES {
            let remote = SocketAddr::from(([127, 0, 0, 1], 20_000 + number as u16));
            let face = FaceId(100_000 + number);
            worker.driver.add_udp_face(face, address, remote, FacePersistency::Persistent, MTU).unwrap();
            take(&mut worker);
            assert!(worker.driver.remove_face(face));
        }
        is_over.store(true, Ordering::Relaxed);
        flooding.join().unwrap()
    });
    let deadline = Instant::now() + Duration::from_secs(60);
    let (all, foreign) = (sent.values().sum::<u64>(), worker.driver.faceless_counters());
    while received.load(Ordering::Relaxed) + foreign.dropped(LinkDrop::ForeignRemote) < all && Instant::now() < deadline
    {
        take(&mut worker);
    }
    println!("{all} datagrams while {FACES} faces were made");
    assert_eq!(foreign.dropped(LinkDrop::ForeignRemote), 0, "of {all}");
    assert_eq!(by_remote, sent);
}

#[test]
fn listeners_of_two_workers_share_the_remotes() {
    let [mut one, mut two] = [(); 2].map(|()| Worker::new(DriverConfig::default()));
    let mut listeners = udp::bind_listeners(loopback(), 2).unwrap();
    let address = listeners[0].local_addr().unwrap();
    for worker in [&mut one, &mut two] {
        worker.driver.add_udp_listener(listeners.remove(0)).unwrap();
    }
    let peers: Vec<UdpSocket> = (0..64).map(|_| peer()).collect();
    for round in 0..3 {
        for peer in &peers {
            peer.send_to(&interest(round), address).unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut received = 0;
        while received < 64 {
            assert!(Instant::now() < deadline);
            received += one.round().len() + two.round().len();
        }
    }
    let (ones, twos) = (one.driver.face_count(), two.driver.face_count());
    assert_eq!(ones + twos, 64, "each remote has one face");
    assert!(ones > 10 && twos > 10, "{ones} and {twos}");
    // A face created by command receives from its remote only, on either worker.
    let remote = peer();
    let to = remote.local_addr().unwrap();
    two.driver.add_udp_face(A, address, to, FacePersistency::Persistent, MTU).unwrap();
    for peer in &peers {
        peer.send_to(&interest(4), address).unwrap();
    }
    remote.send_to(&interest(5), address).unwrap();
    let mut received = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(5);
    while received.len() < 65 {
        assert!(Instant::now() < deadline);
        received.extend(one.round());
        received.extend(two.round());
    }
    let to_a: Vec<_> = received.iter().filter(|(face, ..)| *face == A).collect();
    assert_eq!(to_a, [&(A, LpHeaders::default(), interest(5))]);
}

#[test]
fn an_unusable_remote_makes_no_face() {
    let (mut worker, address) = udp_worker(DriverConfig::default());
    // Broadcast needs a permission that the socket does not have.
    let forbidden = "255.255.255.255:6363".parse().unwrap();
    let refused = worker.driver.add_udp_face(A, address, forbidden, FacePersistency::Permanent, MTU);
    assert!(matches!(refused, Err(AddFaceError::Io(error)) if error.kind() == ErrorKind::PermissionDenied));
    assert_eq!(worker.driver.face_count(), 0);
    assert_eq!(worker.send(A, &interest(1)), Err(LinkDrop::NoSuchFace));
    worker.driver.flush();
    assert_eq!(worker.driver.faceless_counters().dropped(LinkDrop::NoSuchFace), 1);
}

#[test]
fn large_packets_are_fragmented_between_two_drivers() {
    let (mut left, left_address) = udp_worker(DriverConfig::default());
    let (mut right, right_address) = udp_worker(DriverConfig { udp_mtu: 1400, ..DriverConfig::default() });
    left.driver.add_udp_face(A, left_address, right_address, FacePersistency::Persistent, 1200).unwrap();
    let headers = LpHeaders { pit_token: PitToken::new(b"abcdef"), ..LpHeaders::default() };
    let packets: Vec<Vec<u8>> = (0..20).map(|i| element(6, 8000 + i as usize, i)).collect();
    for packet in &packets {
        left.driver.send(0, A, &headers, packet).unwrap();
    }
    left.driver.flush();
    let received = right.receive(20);
    for ((face, got, bytes), packet) in received.iter().zip(&packets) {
        assert_eq!((*face, got, bytes), (received[0].0, &headers, packet));
    }
    let back = received[0].0;
    let events: Vec<FaceEvent> = right.driver.events().collect();
    assert_eq!(events[1..], [FaceEvent::SpokeLp { face: back }]);

    // And back over the on-demand face, whose MTU a command changed.
    assert!(right.driver.set_mtu(back, 500));
    right.send(back, &packets[0]).unwrap();
    right.driver.flush();
    assert_eq!(left.receive(1)[0].2, packets[0]);

    // A lost fragment costs its packet and is counted.
    let lone = peer();
    let mut frame = Vec::new();
    tlv::write_nested(&mut frame, 100, |out| {
        tlv::write_tlv(out, 81, &[0; 8]);
        tlv::write_nni(out, 82, 0);
        tlv::write_nni(out, 83, 2);
        tlv::write_tlv(out, 80, b"first half");
    });
    lone.send_to(&frame, right_address).unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    let face = loop {
        assert!(Instant::now() < deadline);
        assert!(right.round().is_empty());
        if let Some(FaceEvent::Created { face, .. }) = right.driver.events().next() {
            break face;
        }
    };
    assert!(right.driver.next_deadline_ns().unwrap() <= right.now_ns + 500_000_000);
    while right.dropped(face, LinkDrop::ReassemblyTimeout) == 0 {
        assert!(Instant::now() < deadline);
        right.round();
    }
}
