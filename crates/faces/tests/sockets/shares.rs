//! How much one host or user can take from the others: faces, queues, memory.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use namewire_faces::{
    AddFaceError, CloseReason, DriverConfig, FaceEvent, LinkDrop, LinkPolicy, StreamSocket, tcp, unix,
};
use namewire_packet::{FaceId, lp::LpHeaders, nfd::FacePersistency, tlv};
use namewire_shares::HolderId;

use crate::worker::*;

const FIVE_SECONDS_NS: u64 = 5_000_000_000;

/// What all holders have of a pool.
fn used(worker: &Worker, pool: &str) -> u64 {
    let pools = worker.driver.pools();
    let reader = pools.iter().find(|reader| reader.config().name == pool).expect("a pool");
    reader.holdings().map(|holding| holding.held).sum()
}

fn faceless(worker: &Worker, reason: LinkDrop) -> u64 {
    worker.driver.faceless_counters().dropped(reason)
}

/// Adds an accepted TCP connection, and returns the other end.
fn connect_tcp(worker: &mut Worker, listener: &TcpListener, face: FaceId) -> Result<TcpStream, AddFaceError> {
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = listener.accept().unwrap().0;
    let info = tcp::face_info(&socket, FacePersistency::OnDemand).unwrap();
    worker.driver.add_stream(face, StreamSocket::Tcp(socket), info).map(|()| theirs)
}

fn add_application(worker: &mut Worker, face: FaceId) -> Result<UnixStream, AddFaceError> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let info = unix::face_info(&ours, Path::new("/run/nfd/nfd.sock"));
    worker.driver.add_stream(face, StreamSocket::Unix(ours), info).map(|()| theirs)
}

/// The story: 63,976 datagrams of two bytes, each from another port, took all faces for ten minutes.
#[test]
fn a_datagram_that_is_no_packet_makes_no_face() {
    let (mut worker, address) = udp_worker(DriverConfig::default());
    for (datagram, reason) in [
        (vec![5, 0], LinkDrop::MalformedPacket),
        (vec![6, 0], LinkDrop::MalformedPacket),
        (element(5, 30, 1), LinkDrop::MalformedPacket),
        (vec![100, 0], LinkDrop::NothingCarried),
        (vec![100, 4, 80, 2, 5, 0], LinkDrop::MalformedPacket),
        (vec![100, 4, 80, 2, 7, 0], LinkDrop::FragmentNotPacket),
        (vec![100, 7, 82, 1, 0, 83, 1, 2, 80], LinkDrop::MalformedLpHeader),
        (vec![100, 9, 82, 1, 0, 83, 1, 2, 80, 1, 5], LinkDrop::MissingSequence),
    ] {
        let peers: Vec<_> = (0..20).map(|_| peer()).collect();
        let before = faceless(&worker, reason);
        peers.iter().for_each(|peer| assert!(peer.send_to(&datagram, address).is_ok()));
        while faceless(&worker, reason) < before + 20 {
            assert!(worker.round().is_empty(), "{datagram:?}");
        }
    }
    assert_eq!(worker.driver.face_count(), 0);
    let newcomer = peer();
    newcomer.send_to(&interest(1), address).unwrap();
    assert_eq!(worker.receive(1).len(), 1);
    // A face that is there keeps its rights: it may send a frame without a packet.
    newcomer.send_to(&[100, 0], address).unwrap();
    created(worker.driver.events().next().unwrap());
    assert!(matches!(worker.event(), FaceEvent::SpokeLp { .. }));
}

/// The story: valid datagrams of as many ports took all faces, too, and new Unix connections were reset.
#[test]
fn one_host_leaves_places_and_idle_faces_of_the_host_go_first() {
    let (mut worker, address) = udp_worker(DriverConfig { max_faces: 64, ..DriverConfig::default() });
    let peers: Vec<_> = (0..100).map(|_| peer()).collect();
    peers.iter().for_each(|peer| assert!(peer.send_to(&interest(1), address).is_ok()));
    while faceless(&worker, LinkDrop::HolderShare) + (worker.driver.face_count() as u64) < 100 {
        worker.round();
    }
    // 64 places, of which 4 are for management and 8 for local applications.
    assert_eq!(worker.driver.face_count(), 52 * 4 / 5 + 1);
    worker.driver.events().for_each(drop);
    let mut applications = Vec::new();
    while let Ok(application) = add_application(&mut worker, FaceId(1000 + applications.len() as u64)) {
        applications.push(application);
    }
    assert!(applications.len() >= 8, "{}", applications.len());
    let operators = FaceId(2000);
    worker.driver.add_udp_face(operators, loopback(), address, FacePersistency::Persistent, MTU).unwrap();

    // After some silence, a newcomer of the same host takes the place of an idle face of that host, and of no other.
    let count = worker.driver.face_count();
    worker.now_ns += FIVE_SECONDS_NS;
    let newcomer = peer();
    newcomer.send_to(&interest(2), address).unwrap();
    let received = worker.receive(1);
    let mut events: Vec<FaceEvent> = worker.driver.events().collect();
    assert_eq!(created(events.pop().unwrap()), received[0].0);
    assert_eq!(events.len(), 42);
    let is_displaced = |event: &FaceEvent| matches!(event, FaceEvent::Closed { face, reason: CloseReason::Displaced } if face.0 < 1000);
    assert!(events.iter().all(is_displaced), "{events:?}");
    assert_eq!(worker.driver.face_count(), count - 42 + 1);
    assert_eq!(used(&worker, "faces"), worker.driver.face_count() as u64);
}

/// The story: 16,900 idle TCP connections took all faces.
#[test]
fn idle_connections_leave_places_for_applications_and_end_if_they_bring_no_packet() {
    let first_packet_timeout = Duration::from_millis(500);
    let config = DriverConfig { max_faces: 64, first_packet_timeout, ..DriverConfig::default() };
    let mut worker = Worker::new(config);
    let listener = TcpListener::bind(loopback()).unwrap();
    let mut connections = Vec::new();
    let refused = loop {
        match connect_tcp(&mut worker, &listener, FaceId(1000 + connections.len() as u64)) {
            Ok(connection) => connections.push(connection),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, AddFaceError::HolderShare), "{refused}");
    assert!((40..60).contains(&connections.len()), "{}", connections.len());
    let application = add_application(&mut worker, A).expect("an application finds a place");

    // One brings a packet, one a part of a packet, the others nothing.
    connections[0].write_all(&interest(1)).unwrap();
    assert_eq!(worker.receive(1)[0].0, FaceId(1000));
    connections[1].write_all(&interest(1)[..9]).unwrap();
    let mut closed = Vec::new();
    for _ in 0..2 * 500_000_000 / ROUND_NS {
        worker.round();
        closed.extend(worker.driver.events());
    }
    let expected: Vec<FaceEvent> = (1001..1000 + connections.len() as u64)
        .map(|face| FaceEvent::Closed { face: FaceId(face), reason: CloseReason::NeverSpoke })
        .collect();
    closed.sort_by_key(|event| format!("{event:?}"));
    assert_eq!(closed, expected);
    assert_eq!(worker.driver.face_count(), 2, "the one that brought a packet, and the application");
    drop(application);
}

/// The story: 150 connections that never read filled all queues, and a consumer that read got one packet per turn.
#[test]
fn who_never_reads_costs_the_others_no_packet() {
    const SILENT: u64 = 60;
    let config = DriverConfig { total_queue_bytes: 16 << 20, stream_queue_bytes: 1 << 20, ..DriverConfig::default() };
    let mut worker = Worker::new(config);
    let silent: Vec<_> = (0..SILENT).map(|face| worker.application(FaceId(1000 + face))).collect();
    let large = element(6, 8000, 1);
    let mut refused = 0;
    while refused < 3 * SILENT {
        for face in (1000..1000 + SILENT).map(FaceId) {
            refused += u64::from(worker.send(face, &large).is_err());
        }
        worker.driver.flush();
    }
    assert!(worker.driver.queued_bytes() > 8 << 20, "{}", worker.driver.queued_bytes());
    let mut reading = worker.application(A);
    for turn in 0..20 {
        for seed in 0..20 {
            worker.send(A, &element(6, 1000, turn * 20 + seed)).expect("who reads is served");
        }
        worker.driver.flush();
        let mut bytes = vec![0; 1004];
        for seed in 0..20 {
            reading.read_exact(&mut bytes).unwrap();
            assert_eq!(bytes, element(6, 1000, turn * 20 + seed));
        }
    }
    // Even one that is slow for a moment: more than its socket takes.
    for seed in 0..40 {
        worker.send(A, &element(6, 8000, seed)).expect("there is a share for it");
    }
    drop(silent);
    while worker.driver.face_count() > 1 {
        worker.round();
    }
    let reader = std::thread::spawn(move || reading.read_exact(&mut vec![0; 40 * 8004]).unwrap());
    while !reader.is_finished() {
        worker.round();
    }
    reader.join().unwrap();
    assert_eq!((worker.driver.queued_bytes(), used(&worker, "send-queues")), (0, 0));
}

/// The first fragment of a packet of two.
fn first_fragment(sequence: u64, bytes: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    tlv::write_nested(&mut frame, 100, |out| {
        tlv::write_tlv(out, 81, &sequence.to_be_bytes());
        tlv::write_tlv(out, 82, &[0]);
        tlv::write_tlv(out, 83, &[2]);
        tlv::write_tlv(out, 80, &vec![7; bytes]);
    });
    frame
}

/// The story: unfinished packets had a limit per face and none together: a host with many ports took 317 MB.
#[test]
fn unfinished_packets_of_all_faces_are_limited_and_their_memory_comes_back() {
    let config = DriverConfig { total_reassembly_bytes: 1 << 20, ..DriverConfig::default() };
    let (mut worker, address) = udp_worker(config);
    let peers: Vec<_> = (0..60).map(|_| peer()).collect();
    for sequence in 0..40 {
        for (peer, bytes) in peers.iter().zip([1, 1200, 4000].into_iter().cycle()) {
            peer.send_to(&first_fragment(sequence * 2, bytes), address).unwrap();
        }
        worker.round();
        // Not more than the share of one host, however small the fragments are.
        let share = (1 << 20) * 13 / 16 * 4 / 5;
        let reassembly = used(&worker, "reassembly");
        assert!(reassembly <= share + 20_000, "{reassembly}");
    }
    worker.round();
    let faces: Vec<FaceId> = worker
        .driver
        .events()
        .filter_map(|event| match event {
            FaceEvent::Created { face, .. } => Some(face),
            _ => None,
        })
        .collect();
    assert_eq!(faces.len(), 60);
    let discarded: u64 = faces.iter().map(|&face| worker.dropped(face, LinkDrop::ReassemblyShare)).sum();
    assert!(discarded > 100, "{discarded}");
    assert!(used(&worker, "reassembly") > 100_000);
    assert!(worker.driver.remove_face(faces[0]));
    for _ in 0..2_000_000_000 / ROUND_NS {
        worker.now_ns += ROUND_NS;
        worker.driver.run_timers(worker.now_ns);
    }
    assert_eq!(used(&worker, "reassembly"), 0);
}

#[test]
fn unacknowledged_frames_are_counted_and_come_back() {
    let mut worker = Worker::new(DriverConfig { total_unacknowledged_bytes: 1 << 20, ..DriverConfig::default() });
    let applications: Vec<_> = (0..4).map(|face| worker.application(FaceId(1000 + face))).collect();
    for face in (1000..1004).map(FaceId) {
        assert!(worker.driver.set_policy(face, LinkPolicy { reliability: true, ..LinkPolicy::default() }));
    }
    for _ in 0..100 {
        for face in (1000..1004).map(FaceId) {
            let _ = worker.send(face, &element(6, 8000, 1));
        }
        worker.driver.flush();
    }
    // Four links that each may keep 4 MiB, and a buffer of twice as much.
    let counted = used(&worker, "unacknowledged");
    assert!((500_000..2 << 20).contains(&counted), "{counted}");
    let evicted: u64 = (1000..1004).map(|face| worker.dropped(FaceId(face), LinkDrop::UnacknowledgedEvicted)).sum();
    assert!(evicted > 0);
    assert!(worker.driver.set_policy(FaceId(1000), LinkPolicy::default()));
    assert!(used(&worker, "unacknowledged") < counted);
    (1000..1004).for_each(|face| assert!(worker.driver.remove_face(FaceId(face))));
    assert_eq!(used(&worker, "unacknowledged"), 0);
    drop(applications);
}

/// The story: Interests towards a producer were one line. A consumer that asked without end filled it, and others had
/// 69 % of their Interests answered, or 23 % beside many such consumers.
#[test]
fn consumers_of_one_producer_take_turns_and_who_has_most_waiting_makes_room() {
    const GREEDY: FaceId = FaceId(1000);
    const MODEST: FaceId = FaceId(1001);
    const MODEST_COUNT: u64 = 2_000;
    let holder_of = |face: FaceId| HolderId::from_index(300 + face.0 as usize % 10);
    let config = DriverConfig { stream_queue_bytes: 1 << 20, ..DriverConfig::default() };
    let mut worker = Worker::new(config);
    let mut producer = worker.application(A);
    let send = |worker: &mut Worker, from: FaceId, seed: u64| {
        let headers = LpHeaders { incoming_face_id: Some(from), ..LpHeaders::default() };
        let result = worker.driver.send_for(worker.now_ns, A, &headers, &interest(seed), &holder_of);
        worker.driver.flush();
        result
    };
    // The greedy consumer fills everything.
    let mut greedy = 0;
    while send(&mut worker, GREEDY, greedy).is_ok() {
        greedy += 1;
    }
    assert_eq!(worker.dropped(A, LinkDrop::QueueDisplaced), 0, "nobody has more than it");
    let queued = worker.driver.queued_bytes();
    for seed in 0..MODEST_COUNT {
        assert_eq!(send(&mut worker, MODEST, 1 << 32 | seed), Ok(()), "{seed}");
        assert!(send(&mut worker, GREEDY, greedy + seed).is_err(), "it has most");
    }
    worker.driver.flush();
    assert!(worker.driver.queued_bytes() <= queued, "one takes the place of another");
    assert_eq!(worker.dropped(A, LinkDrop::QueueDisplaced), MODEST_COUNT);
    // The producer reads: what was in the kernel, and then in turn.
    let in_kernel = greedy as usize * 32 - queued;
    let left = in_kernel + worker.driver.queued_bytes();
    let reader = std::thread::spawn(move || {
        let mut wire = vec![0; left];
        producer.read_exact(&mut wire).unwrap();
        wire
    });
    while !reader.is_finished() {
        worker.round();
    }
    let wire = reader.join().unwrap();
    let seeds: Vec<u64> =
        wire.chunks(32).map(|interest| u64::from_be_bytes(interest[6..14].try_into().unwrap())).collect();
    let of_modest: Vec<usize> = (0..seeds.len()).filter(|&place| seeds[place] >> 32 == 1).collect();
    assert_eq!(of_modest.len(), MODEST_COUNT as usize);
    assert!(of_modest.is_sorted_by_key(|&place| seeds[place]));
    let waited = (of_modest[of_modest.len() - 1] * 32).saturating_sub(in_kernel);
    // What was queued before the kernel refused more is one write, and then both take turns of 8,800 bytes.
    assert!(waited <= 2 * MODEST_COUNT as usize * 32 + 3 * 8_800 + (64 << 10), "it waited for {waited} bytes");
    assert_eq!(worker.driver.queued_bytes(), 0);
    assert_eq!(used(&worker, "send-queues"), 0);
}

/// A consumer that does not read its Data keeps them in their order, and an Interest to it does not wait behind them.
#[test]
fn data_for_a_peer_that_does_not_read_stays_in_order() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut application = worker.application(A);
    let holder_of = |_| HolderId::from_index(300);
    let mut count = 0_u64;
    while worker.driver.queued_bytes() < 500_000 {
        let headers = LpHeaders { incoming_face_id: Some(B), ..LpHeaders::default() };
        worker.driver.send_for(worker.now_ns, A, &headers, &element(6, 1000, count), &holder_of).unwrap();
        if count == 400 {
            worker.driver.send_for(worker.now_ns, A, &headers, &interest(7), &holder_of).unwrap();
        }
        worker.driver.flush();
        count += 1;
    }
    let bytes = count as usize * 1004 + 32;
    let reader = std::thread::spawn(move || {
        let mut wire = vec![0; bytes];
        application.read_exact(&mut wire).unwrap();
        wire
    });
    while !reader.is_finished() {
        worker.round();
    }
    let wire = reader.join().unwrap();
    let (mut rest, mut seed) = (&wire[..], 0);
    while let Ok(Some(size)) = tlv::element_size(rest) {
        if rest[0] == 6 {
            assert_eq!(rest[..size], element(6, 1000, seed));
            seed += 1;
        } else {
            assert_eq!(rest[..size], interest(7));
        }
        rest = &rest[size..];
    }
    assert_eq!((seed, rest.len()), (count, 0));
}
