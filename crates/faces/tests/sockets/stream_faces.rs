//! Unix and TCP faces: framing, limits, slow and vanished peers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use namewire_faces::{AddFaceError, CloseReason, DriverConfig, FaceEvent, LinkDrop, StreamSocket, tcp, unix};

use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    lp::{LpHeaders, PitToken},
    nfd::{FacePersistency, FaceScope},
};

use crate::worker::*;

#[test]
fn packets_cross_a_unix_face_both_ways() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut application = worker.application(A);
    application.write_all(&[interest(1), element(6, 500, 2)].concat()).unwrap();
    let received = worker.receive(2);
    assert_eq!(received[0], (A, LpHeaders::default(), interest(1)));
    assert_eq!(received[1], (A, LpHeaders::default(), element(6, 500, 2)));

    worker.send(A, &element(6, 200, 3)).unwrap();
    let headers = LpHeaders { pit_token: PitToken::new(b"token!"), ..LpHeaders::default() };
    worker.driver.send(0, A, &headers, &interest(4)).unwrap();
    worker.driver.flush();
    let mut bytes = vec![0; element(6, 200, 3).len() + 2 + 8 + 2 + interest(4).len()];
    application.read_exact(&mut bytes).unwrap();
    let (bare, wrapped) = bytes.split_at(element(6, 200, 3).len());
    assert_eq!(bare, element(6, 200, 3));
    assert_eq!(&wrapped[..10], [&[100, wrapped.len() as u8 - 2, 98, 6][..], b"token!"].concat());

    let counters = worker.driver.counters(A).unwrap().snapshot();
    assert_eq!((counters.in_interests, counters.in_data), (1, 1));
    assert_eq!((counters.out_interests, counters.out_data), (1, 1));
    assert_eq!(counters.out_bytes, bytes.len() as u64);
    assert_eq!(worker.driver.queued_bytes(), 0);
}

#[test]
fn elements_arrive_in_any_cut() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut application = worker.application(A);
    let packets: Vec<Vec<u8>> = (0..5).map(|i| element(6, 10 + 150 * i as usize, i)).collect();
    let stream = packets.concat();
    let mut received = Vec::new();
    for bytes in stream.chunks(7) {
        application.write_all(bytes).unwrap();
        received.extend(worker.round());
    }
    received.extend(worker.round());
    let received: Vec<Vec<u8>> = received.into_iter().map(|(_, _, bytes)| bytes).collect();
    assert_eq!(received, packets);
}

#[test]
fn a_batch_limit_delays_but_loses_nothing() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut application = worker.application(A);
    let packets: Vec<Vec<u8>> = (0..1500).map(|i| element(5, 20 + (i % 17) as usize, i)).collect();
    let stream = packets.concat();
    let writer = std::thread::spawn(move || application.write_all(&stream).map(|()| application));
    let received = worker.receive(1500); // `round` checks that no batch exceeds 64
    assert!(received.iter().map(|(_, _, bytes)| bytes).eq(packets.iter()));
    writer.join().unwrap().unwrap();
}

/// The story: a full read that does not fit the batch is kept, up to 128 KiB for each face. With thousands of flooding
/// faces nothing limited the sum.
#[test]
fn input_kept_of_many_floods_is_bounded_and_nothing_is_lost() {
    const FACES: usize = 24;
    let config = DriverConfig { kept_input_bytes: 256 << 10, ..DriverConfig::default() };
    // One more full read behind the start of an element, and for each face such a start, also where a buffer of the
    // pool is a little larger; a growing vector doubles.
    let most_bytes =
        config.kept_input_bytes + 2 * ((128 << 10) + MAX_PACKET_BYTES) + (FACES + 1) * 2 * MAX_PACKET_BYTES;
    let mut worker = Worker::new(config);
    let packets: Vec<Vec<u8>> = (0..1500).map(|i| element(5, 80 + (i % 17) as usize, i)).collect();
    let stream = packets.concat();
    assert!(FACES * stream.len() > 3 * most_bytes, "too little to be a flood");
    let writers: Vec<_> = (0..FACES)
        .map(|face| {
            let (mut application, stream) = (worker.application(FaceId(300 + face as u64)), stream.clone());
            std::thread::spawn(move || application.write_all(&stream).map(|()| application))
        })
        .collect();
    let mut received = vec![Vec::new(); FACES];
    let mut most_kept = 0;
    while received.iter().map(Vec::len).sum::<usize>() < FACES * packets.len() {
        for (face, _, bytes) in worker.round() {
            received[(face.0 - 300) as usize].push(bytes);
        }
        most_kept = most_kept.max(worker.driver.kept_bytes());
    }
    assert!(received.iter().all(|received| received == &packets));
    assert!(most_kept <= most_bytes, "{most_kept} bytes were kept");
    assert!(worker.driver.short_reads() > 0, "{most_kept} bytes were kept");
    assert_eq!(worker.driver.kept_bytes(), 0);
    writers.into_iter().for_each(|writer| drop(writer.join().unwrap().unwrap()));

    // When a face closes, its kept input no longer counts.
    let last = FaceId(300 + FACES as u64);
    let mut application = worker.application(last);
    application.write_all(&packets[0][..40]).unwrap();
    worker.round();
    assert!(worker.driver.kept_bytes() > 0);
    assert!(worker.driver.remove_face(last));
    assert_eq!(worker.driver.kept_bytes(), 0);
}

/// They leave room to read in full from other faces.
#[test]
fn peers_that_fall_silent_in_an_element_hold_little() {
    const FACES: usize = 32;
    let config = DriverConfig { kept_input_bytes: 1 << 20, ..DriverConfig::default() };
    let mut worker = Worker::new(config);
    let packets: Vec<Vec<u8>> = (0..1200).map(|i| element(5, 80, i)).collect();
    let stream = [packets.concat(), packets[0][..40].to_vec()].concat();
    let applications: Vec<_> = (0..FACES)
        .map(|face| {
            let (mut application, stream) = (worker.application(FaceId(300 + face as u64)), stream.clone());
            std::thread::spawn(move || application.write_all(&stream).map(|()| application))
        })
        .collect();
    let mut received = 0;
    while received < FACES * packets.len() {
        received += worker.round().len();
    }
    let kept = worker.driver.kept_bytes();
    assert!(kept < (1 << 20) * 3 / 4, "{kept} bytes are kept for {} that are unfinished", FACES * 40);
    applications.into_iter().for_each(|application| drop(application.join().unwrap().unwrap()));
}

#[test]
fn a_flooding_face_does_not_starve_another() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut flooder = worker.application(A);
    let mut modest = worker.application(B);
    flooder.set_nonblocking(true).unwrap();
    let flood: Vec<u8> = (0..4000).flat_map(interest).collect();
    while flooder.write(&flood).is_ok() {}
    modest.write_all(&interest(1)).unwrap();
    let mut rounds = 0;
    while !worker.round().iter().any(|(face, ..)| *face == B) {
        rounds += 1;
        let _ = flooder.write(&flood);
        assert!(rounds < 5, "the second face waits for the first");
    }
}

#[test]
fn unknown_types_are_dropped_and_the_face_stays() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut application = worker.application(A);
    application.write_all(&[element(7, 20, 0), vec![0x64, 3, 98, 1, 9], interest(1)].concat()).unwrap();
    assert_eq!(worker.receive(1)[0].2, interest(1));
    assert_eq!(worker.dropped(A, LinkDrop::UnknownType), 1);
    assert_eq!(worker.driver.events().collect::<Vec<_>>(), [FaceEvent::SpokeLp { face: A }]);
}

#[test]
fn oversize_and_malformed_streams_close_their_face() {
    let closing = [
        (element(6, MAX_PACKET_BYTES - 3, 0), CloseReason::OversizeElement), // 8801 bytes
        (vec![6, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], CloseReason::OversizeElement),
        (vec![6, 0xFD, 0, 5], CloseReason::MalformedElement),
        (vec![0, 0], CloseReason::MalformedElement),
    ];
    for (bytes, reason) in closing {
        let mut worker = Worker::new(DriverConfig::default());
        let mut application = worker.application(A);
        application.write_all(&interest(1)).unwrap();
        application.write_all(&bytes).unwrap();
        let (mut packets, mut events) = (0, Vec::new());
        while events.is_empty() {
            packets += worker.round().len();
            events.extend(worker.driver.events());
        }
        assert_eq!(packets, 1, "what came before is delivered");
        assert_eq!(events, [FaceEvent::Closed { face: A, reason }]);
        assert_eq!(worker.driver.face_count(), 0);
        assert_eq!(worker.send(A, &interest(2)), Err(LinkDrop::NoSuchFace));
    }
    let mut worker = Worker::new(DriverConfig::default());
    let mut application = worker.application(A);
    application.write_all(&element(6, MAX_PACKET_BYTES - 4, 0)).unwrap();
    assert_eq!(worker.receive(1)[0].2.len(), MAX_PACKET_BYTES, "8800 bytes are fine");
}

#[test]
fn a_peer_that_leaves_closes_its_face_after_its_last_packets() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut application = worker.application(A);
    application.write_all(&[interest(1), vec![5, 200, 1]].concat()).unwrap();
    drop(application);
    assert_eq!(worker.receive(1).len(), 1);
    assert_eq!(worker.event(), FaceEvent::Closed { face: A, reason: CloseReason::PeerClosed });
}

#[test]
fn a_slow_reader_fills_its_queue_and_keeps_its_face() {
    let config = DriverConfig { stream_queue_bytes: 100_000, ..DriverConfig::default() };
    let mut worker = Worker::new(config);
    let mut slow = worker.application(A);
    let mut other = worker.application(B);
    let mut accepted = Vec::new();
    let mut refused = 0;
    for seed in 0..2000 {
        match worker.send(A, &element(6, 1000, seed)) {
            Ok(()) => accepted.push(seed),
            Err(LinkDrop::QueueFull) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        if seed % 10 == 0 {
            worker.driver.flush();
        }
    }
    worker.driver.flush();
    assert!(refused > 1000 && accepted.len() > 100, "{refused} refused, {} accepted", accepted.len());
    assert_eq!(worker.dropped(A, LinkDrop::QueueFull), refused);
    assert!(worker.driver.queued_bytes() <= 100_000 + 1004, "{}", worker.driver.queued_bytes());

    worker.send(B, &interest(7)).unwrap();
    worker.driver.flush();
    let mut bytes = [0; 32];
    other.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes[..], interest(7), "others are not affected");

    // Once it reads, it gets all accepted packets, whole and in order.
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; accepted.len() * 1004];
        slow.read_exact(&mut bytes).unwrap();
        for (bytes, seed) in bytes.chunks(1004).zip(accepted) {
            assert_eq!(bytes, element(6, 1000, seed));
        }
        slow
    });
    while !reader.is_finished() {
        worker.round();
    }
    let mut reader = reader.join().unwrap();
    assert_eq!(worker.driver.queued_bytes(), 0);
    worker.send(A, &interest(8)).unwrap();
    worker.driver.flush();
    reader.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes[..], interest(8));
}

#[test]
fn all_queues_together_are_limited() {
    let config = DriverConfig { total_queue_bytes: 50_000, ..DriverConfig::default() };
    let mut worker = Worker::new(config);
    let (_silent, mut reading) = (worker.application(A), worker.application(B));
    let mut last = Ok(());
    for seed in 0..5000 {
        last = worker.send(A, &element(6, 1000, seed));
    }
    assert_eq!(last, Err(LinkDrop::QueueShare), "more would leave too little to others");
    let full = worker.driver.queued_bytes();
    let mut bytes = vec![0; interest(0).len()];
    for seed in 0..100 {
        worker.send(B, &interest(seed)).expect("who reads is served");
        assert!(worker.driver.queued_bytes() <= full + 2 * bytes.len(), "what others left unread stays bounded");
        if seed % 2 == 1 {
            worker.driver.flush();
            for seed in [seed - 1, seed] {
                reading.read_exact(&mut bytes).unwrap();
                assert_eq!(bytes, interest(seed));
            }
        }
    }
    while worker.send(B, &element(6, 1000, 0)).is_ok() {}
    assert_eq!(worker.send(B, &interest(1)), Err(LinkDrop::QueueShare), "the kernel takes no more");
    let both = worker.driver.queued_bytes();
    assert!(both > full + 5_000 && both < 50_000 * 4 / 5, "{full} and then {both}");
    assert!(worker.driver.remove_face(A));
    assert_eq!(worker.driver.queued_bytes(), both - full, "the queue of the other");
    worker.send(B, &interest(1)).unwrap();
}

#[test]
fn removing_a_face_sends_what_is_queued() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut application = worker.application(A);
    worker.send(A, &interest(1)).unwrap();
    assert!(worker.driver.remove_face(A));
    assert!(!worker.driver.remove_face(A));
    let mut bytes = Vec::new();
    application.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, interest(1));
    assert_eq!(worker.driver.events().count(), 0, "the caller knows");
}

#[test]
fn a_thousand_half_open_connections_are_held_and_the_share_of_their_user_holds() {
    // Both ends are in this process; the usual soft limit is 1024 descriptors.
    let mut descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    descriptors.current = descriptors.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, descriptors).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nfd.sock");
    let listener = unix::listen(&path).unwrap();
    listener.set_nonblocking(false).unwrap();
    let mut worker = Worker::new(DriverConfig { max_faces: 1333, ..DriverConfig::default() });
    let mut applications = Vec::new();
    for i in 0..1000 {
        let mut application = UnixStream::connect(&path).unwrap();
        application.write_all(&[5]).unwrap(); // half an element, and then nothing
        applications.push(application);
        let (socket, _) = listener.accept().unwrap();
        let info = unix::face_info(&socket, &path);
        assert!(info.remote.scheme() == "fd" && info.local.to_string().ends_with("/nfd.sock"));
        worker.driver.add_stream(FaceId(1000 + i), StreamSocket::Unix(socket), info).unwrap();
    }
    let (socket, _other) = UnixStream::pair().unwrap();
    let info = unix::face_info(&socket, &path);
    let refused = worker.driver.add_stream(FaceId(9000), StreamSocket::Unix(socket), info);
    assert!(matches!(refused, Err(AddFaceError::HolderShare)));
    for _ in 0..10 {
        assert!(worker.round().is_empty());
    }
    applications[999].write_all(&interest(1)[1..]).unwrap();
    let received = worker.receive(1);
    assert_eq!((received[0].0, &received[0].2), (FaceId(1999), &interest(1)));
    drop(applications);
    while worker.driver.face_count() > 0 {
        worker.round();
    }
}

#[test]
fn tcp_faces_are_local_over_loopback_and_carry_packets() {
    let mut worker = Worker::new(DriverConfig::default());
    let listener = tcp::listen(loopback()).unwrap();
    listener.set_nonblocking(false).unwrap();
    let address = listener.local_addr().unwrap();
    let mut peer = TcpStream::connect(address).unwrap();
    let (socket, from) = listener.accept().unwrap();
    let info = tcp::face_info(&socket, FacePersistency::OnDemand).unwrap();
    assert_eq!(info.remote.to_string(), format!("tcp4://{from}"));
    assert_eq!(info.local.to_string(), format!("tcp4://{address}"));
    assert_eq!(info.scope, FaceScope::Local);
    worker.driver.add_stream(A, StreamSocket::Tcp(socket), info).unwrap();
    peer.write_all(&interest(1)).unwrap();
    assert_eq!(worker.receive(1)[0].2, interest(1));
    worker.send(A, &interest(2)).unwrap();
    worker.driver.flush();
    let mut bytes = [0; 32];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes[..], interest(2));
}

/// The request that a web page can make a browser send: its first line and its headers read as one element of unknown
/// type, and a packet follows.
#[test]
fn an_http_request_carries_no_packets() {
    let mut worker = Worker::new(DriverConfig::default());
    let listener = tcp::listen(loopback()).unwrap();
    listener.set_nonblocking(false).unwrap();
    let mut browser = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    let info = tcp::face_info(&socket, FacePersistency::OnDemand).unwrap();
    worker.driver.add_stream(A, StreamSocket::Tcp(socket), info).unwrap();
    let (line, headers) = ("POST /", " HTTP/1.1\r\nHost: localhost:6363\r\n\r\n");
    let head = format!("{line}{}{headers}", "x".repeat(2 + usize::from(b'O') - line.len() - headers.len()));
    assert_eq!(namewire_packet::tlv::element_size(head.as_bytes()), Ok(Some(head.len())));
    browser.write_all(&[head.as_bytes(), &interest(1)].concat()).unwrap();
    let (mut packets, mut events) = (0, Vec::new());
    while events.is_empty() && packets == 0 {
        packets += worker.round().len();
        events.extend(worker.driver.events());
    }
    assert_eq!((packets, events), (0, vec![FaceEvent::Closed { face: A, reason: CloseReason::ForeignProtocol }]));
}

#[test]
fn a_permanent_stream_goes_down_and_comes_back() {
    let mut worker = Worker::new(DriverConfig::default());
    let listener = TcpListener::bind(loopback()).unwrap();
    let dial = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = dial();
    let (peer, _) = listener.accept().unwrap();
    let info = tcp::face_info(&socket, FacePersistency::Permanent).unwrap();
    worker.driver.add_stream(A, StreamSocket::Tcp(socket), info).unwrap();
    assert!(matches!(worker.driver.reconnect(A, StreamSocket::Tcp(dial())), Err(AddFaceError::NotDown(A))));
    let _ignored = listener.accept().unwrap();
    drop(peer);
    assert_eq!(worker.event(), FaceEvent::Down { face: A, reason: CloseReason::PeerClosed });
    assert_eq!(worker.send(A, &interest(1)), Err(LinkDrop::FaceDown));
    worker.driver.flush();
    assert_eq!(worker.dropped(A, LinkDrop::FaceDown), 1);
    worker.driver.reconnect(A, StreamSocket::Tcp(dial())).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    worker.send(A, &interest(2)).unwrap();
    worker.driver.flush();
    let mut bytes = [0; 32];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes[..], interest(2));
}
