//! Faces that are made and closed without a command.

use crate::application::{Application, PATIENCE, eventually, name, start, start_with};
use namewire_configuration::{
    Settings,
    units::{Bytes, Span},
};
use namewire_packet::{
    DataBuilder, FaceId,
    nfd::{ControlParameters, ControlResponse, FaceEventKind, FacePersistency, FaceScope, FibEntry, RibEntry},
};
use namewire_router::{Router, RouterHandle};
use std::{
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    time::{Duration, Instant},
};

#[test]
fn two_hundred_applications_vanish_without_a_trace() {
    let (router, _directory) = start(4);
    let mut operator = Application::connect(&router);
    let fib_before = operator.dataset::<FibEntry>("/fib/list");
    for round in 0..4 {
        let mut applications: Vec<Application> = (0..50).map(|_| Application::connect(&router)).collect();
        for (index, application) in applications.iter_mut().enumerate() {
            let prefix = name(&format!("/example/{round}/{index}"));
            let parameters = ControlParameters { name: Some(prefix), ..Default::default() };
            let command = application.command_packet("/rib/register", &parameters);
            application.send(&command);
            // Every other one does not wait for the answer.
            if index % 2 == 0 {
                let reply = application.receive().expect("a reply");
                assert_eq!(ControlResponse::decode(reply.data().content()).unwrap().code, 200);
            }
        }
    }
    eventually("one face is left", || operator.faces().len() == 1);
    // Commands of the last connections may still have been waiting.
    std::thread::sleep(Duration::from_millis(50));
    eventually("no route is left", || {
        operator.dataset::<RibEntry>("/rib/list").is_empty() && operator.dataset::<FibEntry>("/fib/list") == fib_before
    });
}

/// A router that listens nowhere.
#[test]
fn applications_of_the_routers_process_need_no_socket() {
    let router = Router::start(&Settings::listening_nowhere().into()).unwrap();
    let [mut producer, mut consumer] = [(); 2].map(|()| Application::connect_inside(&router));
    producer.register("/example");
    let interest = consumer.interest(name("/example/a")).build();
    consumer.send(&interest);
    let asked = producer.receive().expect("an Interest");
    producer.send(&DataBuilder::new(asked.interest().name()).content(b"from inside").sign_digest());
    assert_eq!(consumer.receive().expect("Data").data().content(), b"from inside");
    let inside = |faces: &[namewire_packet::nfd::FaceStatus]| {
        let uris = faces.iter().map(|face| (face.uri.to_string(), face.local_uri.to_string(), face.face_scope));
        uris.filter(|(uri, local, scope)| {
            uri.starts_with("fd://") && local == "internal://" && *scope == FaceScope::Local
        })
        .count()
    };
    assert_eq!(inside(&consumer.faces()), 2);
    drop(producer);
    eventually("its face is gone", || inside(&consumer.faces()) == 1);
}

#[test]
fn the_last_words_of_an_application_are_heard() {
    let (router, _directory) = start(4);
    let mut consumer = Application::connect(&router);
    for round in 0..300 {
        let mut producer = Application::connect(&router);
        // A prefix for each connection, because the face before may still be closing.
        producer.register(&format!("/example/{round}"));
        let interest = consumer.interest(name(&format!("/example/{round}/a"))).lifetime_ms(60_000).build();
        consumer.send(&interest);
        producer.serve(1, b"last words");
        drop(producer);
        let reply = consumer.receive();
        assert!(reply.is_some_and(|reply| reply.headers.nack.is_none()), "lost the Data of round {round}");
    }
}

#[test]
fn connections_that_fail_at_once_do_not_hold_up_others() {
    let (router, _directory) = start(4);
    let address = router.tcp()[0];
    for _ in 0..200 {
        let socket = socket2::Socket::from(TcpStream::connect(address).unwrap());
        socket.set_linger(Some(Duration::ZERO)).unwrap(); // closes with a reset
    }
    let began = Instant::now();
    let mut client = Application::connect_tcp(address);
    client.register("/example");
    // A failed accept pauses a listener for 100 ms: 200 of them would take twice as long.
    assert!(began.elapsed() < Duration::from_secs(10), "took {:?}", began.elapsed());
}

#[test]
fn on_demand_udp_faces_serve_their_remote_and_go_when_idle() {
    let (router, _directory) =
        start_with(4, |config| config.settings.faces.udp.idle_timeout = Span(Duration::from_secs(2)));
    let mut producer = Application::connect(&router);
    producer.register("/example");
    let remotes: Vec<UdpSocket> = (0..20).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    for (index, remote) in remotes.iter().enumerate() {
        let interest = producer.interest(name(&format!("/example/{index}"))).build();
        remote.send_to(&interest, router.udp()[0]).unwrap();
    }
    producer.serve(remotes.len(), b"hello");
    for remote in &remotes {
        remote.set_read_timeout(Some(PATIENCE)).unwrap();
        let (size, _) = remote.recv_from(&mut [0; 9000]).expect("Data");
        assert!(size > 0);
    }
    let mut operator = Application::connect(&router);
    let on_demand = |operator: &mut Application| {
        let faces = operator.faces();
        faces.iter().filter(|face| face.uri.starts_with("udp4")).map(|face| face.face_persistency).collect::<Vec<_>>()
    };
    eventually("every remote has its face", || {
        // Every peer sends an IDLE packet, so its face lasts however long the others took. A face that has ended does
        // not come back by such a packet.
        remotes.iter().for_each(|remote| drop(remote.send_to(&[100, 0], router.udp()[0])));
        on_demand(&mut operator) == vec![FacePersistency::OnDemand; remotes.len()]
    });
    for status in operator.faces().iter().filter(|face| face.uri.starts_with("udp4")) {
        let left_ms = status.expiration_period_ms.expect("on-demand");
        assert!(left_ms <= 2000, "{left_ms} ms left of 2 s");
    }
    eventually("idle faces are gone", || on_demand(&mut operator).is_empty());
}

/// `unicast_mtu` of an nfd.conf was ignored: a peer behind a path that swallows large datagrams got one of 5055 bytes.
#[test]
fn an_on_demand_udp_face_has_the_mtu_of_the_configuration() {
    let (router, _directory) = start_with(2, |config| config.settings.faces.udp.mtu = Bytes(1300));
    let mut producer = Application::connect(&router);
    producer.register("/example");
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    peer.send_to(&producer.interest(name("/example/large")).build(), router.udp()[0]).unwrap();
    producer.serve(1, &[7; 5000]);
    let mut sizes = Vec::new();
    // Each frame has at most 1300 bytes of the packet.
    while sizes.iter().sum::<usize>() < 5000 {
        sizes.push(peer.recv_from(&mut [0; 9000]).expect("a fragment").0);
    }
    assert!(sizes.len() >= 4 && sizes.iter().all(|size| *size <= 1300), "{sizes:?}");
    let uri = format!("udp4://{}", peer.local_addr().unwrap());
    let faces = Application::connect(&router).faces();
    assert_eq!(faces.iter().find(|face| face.uri == uri).unwrap().mtu, Some(1300));
}

#[test]
fn a_datagram_puts_off_the_end_of_an_on_demand_face() {
    // The pause between two datagrams is a tenth of this: a loaded machine may make it much longer.
    const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
    let (router, _directory) = start_with(1, |config| config.settings.faces.udp.idle_timeout = Span(IDLE_TIMEOUT));
    let mut operator = Application::connect(&router);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("udp4://{}", peer.local_addr().unwrap());
    // An IDLE packet refreshes a face, but makes none.
    let interest = operator.interest(name("/first")).build();
    peer.send_to(&interest, router.udp()[0]).unwrap();
    for _ in 0..13 {
        peer.send_to(&[100, 0], router.udp()[0]).unwrap(); // an IDLE packet
        std::thread::sleep(Duration::from_millis(300));
        let faces = operator.faces();
        let face = faces.iter().find(|face| face.uri == uri).expect("the face stays");
        let left_ms = face.expiration_period_ms.expect("on-demand");
        assert!((1..3000).contains(&left_ms), "{left_ms} ms left of 3 s");
    }
}

/// Makes a face of this persistency to a port that was open a moment ago, with a route for `/far`. A route of higher
/// cost leads to an application, which is returned.
fn far_behind_a_closed_port(router: &RouterHandle, persistency: FacePersistency) -> (FaceId, SocketAddr, Application) {
    let mut operator = Application::connect(router);
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let uri = Some(format!("udp4://{closed}"));
    let parameters = ControlParameters { uri, face_persistency: Some(persistency.code()), ..Default::default() };
    let face = operator.succeed("/faces/create", parameters).face_id.unwrap();
    let route = ControlParameters { name: Some(name("/far")), face_id: Some(face), ..Default::default() };
    operator.succeed("/rib/register", route);
    let mut other_way = Application::connect(router);
    other_way
        .succeed("/rib/register", ControlParameters { name: Some(name("/far")), cost: Some(9), ..Default::default() });
    (face, closed, other_way)
}

/// The story: a neighbour's forwarder stopped, and from then on each new Interest went to it first. Its face stayed,
/// and so did its route.
#[test]
fn a_persistent_udp_face_to_a_closed_port_closes_with_its_routes() {
    let (router, _directory) = start(2);
    let mut watcher = Application::connect(&router);
    let mut next_event = watcher.next_event(None);
    let (face, _, mut other_way) = far_behind_a_closed_port(&router, FacePersistency::Persistent);
    let mut consumer = Application::connect(&router);
    let interest = consumer.interest(name("/far/1")).build();
    consumer.send(&interest);
    // Routing daemons follow these events.
    while (next_event.1.face_id, next_event.1.kind) != (face, FaceEventKind::Destroyed) {
        next_event = watcher.next_event(Some(next_event.0 + 1));
    }
    let mut operator = Application::connect(&router);
    assert!(!operator.faces().iter().any(|status| status.face_id == face));
    let rib = operator.dataset::<RibEntry>("/rib/list");
    assert!(rib.iter().all(|entry| entry.routes.iter().all(|route| route.face_id != face)), "{rib:?}");
    assert_eq!(operator.drops("face-closed.refused"), 1);
    // No Interest goes there any longer, not even at first.
    for number in 2..20 {
        let interest = consumer.interest(name(&format!("/far/{number}"))).build();
        consumer.send(&interest);
        let next = other_way.receive_within(Duration::from_secs(60)).expect("the other way");
        assert!(next.interest().name().to_string().starts_with("/far/"));
    }
}

/// The same for a permanent face: it keeps its routes, and strategies leave it out until its neighbour is back.
#[test]
fn a_permanent_udp_face_is_down_while_its_port_is_closed() {
    let (router, _directory) = start(2);
    let mut watcher = Application::connect(&router);
    let mut next_event = watcher.next_event(None);
    let (face, closed, mut other_way) = far_behind_a_closed_port(&router, FacePersistency::Permanent);
    let mut consumer = Application::connect(&router);
    let interest = consumer.interest(name("/far/1")).build();
    consumer.send(&interest);
    let mut wait_for = |kind| {
        while (next_event.1.face_id, next_event.1.kind) != (face, kind) {
            next_event = watcher.next_event(Some(next_event.0 + 1));
        }
    };
    wait_for(FaceEventKind::Down);
    let mut operator = Application::connect(&router);
    let rib = operator.dataset::<RibEntry>("/rib/list");
    assert!(rib.iter().any(|entry| entry.routes.iter().any(|route| route.face_id == face)), "{rib:?}");
    eventually("Interests go the other way at once", || {
        let unique = fastrand::u64(..);
        let interest = consumer.interest(name(&format!("/far/{unique}"))).build();
        consumer.send(&interest);
        other_way.receive_within(Duration::from_millis(100)).is_some()
    });
    let peer = UdpSocket::bind(closed).unwrap();
    wait_for(FaceEventKind::Up);
    peer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let interest = consumer.interest(name("/far/again")).build();
    eventually("Interests go there again", || {
        consumer.send(&interest);
        let mut bytes = [0; 9000];
        // Probes arrive here too.
        peer.recv_from(&mut bytes).is_ok_and(|(size, _)| size > 2)
    });
    assert_eq!(operator.drops("face-closed.refused"), 1);
}

#[test]
fn a_permanent_tcp_face_comes_back_with_its_routes() {
    let (router, _directory) = start(4);
    let mut operator = Application::connect(&router);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = Some(format!("tcp4://{}", listener.local_addr().unwrap()));
    let permanent = Some(FacePersistency::Permanent.code());
    let parameters = ControlParameters { uri, face_persistency: permanent, ..Default::default() };
    let face = operator.succeed("/faces/create", parameters).face_id;
    let route = ControlParameters { name: Some(name("/far")), face_id: face, ..Default::default() };
    operator.succeed("/rib/register", route);
    let mut watcher = Application::connect(&router);
    // The event of the watcher's own face, so that later events have the next numbers.
    let mut next_event = watcher.next_event(None);
    for round in 0..2 {
        let mut far = Application::from_tcp(listener.accept().unwrap().0);
        let interest = operator.interest(name(&format!("/far/{round}"))).build();
        eventually("the face is up", || {
            operator.send(&interest);
            far.receive_within(Duration::from_millis(50)).is_some()
        });
        let data = DataBuilder::new(name(&format!("/far/{round}"))).sign_digest();
        far.send(&data);
        operator.receive().expect("Data");
        drop(far);
        for kind in [FaceEventKind::Down, FaceEventKind::Up] {
            next_event = watcher.next_event(Some(next_event.0 + 1));
            let event = &next_event.1;
            assert_eq!((event.kind, Some(event.face_id)), (kind, face));
        }
    }
    let is_there = |operator: &mut Application| operator.faces().iter().any(|status| Some(status.face_id) == face);
    assert!(is_there(&mut operator));
    operator.succeed("/faces/destroy", ControlParameters { face_id: face, ..Default::default() });
    assert!(!is_there(&mut operator));
}

/// The story: while a connection was being made again, which may take minutes, every Interest went to it first.
#[test]
fn a_permanent_tcp_face_that_is_down_is_left_out_by_strategies() {
    let (router, _directory) = start(2);
    let mut operator = Application::connect(&router);
    let mut watcher = Application::connect(&router);
    let mut next_event = watcher.next_event(None);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = Some(format!("tcp4://{}", listener.local_addr().unwrap()));
    let permanent = Some(FacePersistency::Permanent.code());
    let parameters = ControlParameters { uri, face_persistency: permanent, ..Default::default() };
    let face = operator.succeed("/faces/create", parameters).face_id.unwrap();
    let route = ControlParameters { name: Some(name("/far")), face_id: Some(face), ..Default::default() };
    operator.succeed("/rib/register", route);
    let mut other_way = Application::connect(&router);
    let costly = ControlParameters { name: Some(name("/far")), cost: Some(9), ..Default::default() };
    other_way.succeed("/rib/register", costly);
    let connection = listener.accept().unwrap();
    drop((connection, listener));
    while (next_event.1.face_id, next_event.1.kind) != (face, FaceEventKind::Down) {
        next_event = watcher.next_event(Some(next_event.0 + 1));
    }
    // When a client has the answer to this command, the engines know the face.
    operator.faces();
    for number in 0..20 {
        let interest = operator.interest(name(&format!("/far/{number}"))).build();
        operator.send(&interest);
        assert!(other_way.receive_within(Duration::from_secs(60)).is_some());
    }
}

#[test]
fn a_face_that_is_down_ends_when_it_is_no_longer_permanent() {
    let (router, _directory) = start(1);
    let mut operator = Application::connect(&router);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = Some(format!("tcp4://{}", listener.local_addr().unwrap()));
    let persistent = Some(FacePersistency::Persistent.code());
    let parameters = ControlParameters { uri, face_persistency: persistent, ..Default::default() };
    let face = operator.succeed("/faces/create", parameters).face_id;
    let turn = |operator: &mut Application, face_persistency| {
        let parameters = ControlParameters { face_id: face, face_persistency, ..Default::default() };
        operator.succeed("/faces/update", parameters);
    };
    let is_there = |operator: &mut Application| operator.faces().iter().any(|status| Some(status.face_id) == face);
    turn(&mut operator, Some(FacePersistency::Permanent.code()));
    drop(listener.accept().unwrap());
    drop(listener);
    std::thread::sleep(Duration::from_millis(100));
    assert!(is_there(&mut operator), "it waits for its connection");
    turn(&mut operator, persistent);
    eventually("it is gone", || !is_there(&mut operator));
}

#[test]
fn stopping_ends_the_threads_and_removes_the_socket() {
    let (router, directory) = start(4);
    let (path, tcp, udp) = (router.socket().unwrap().clone(), router.tcp()[0], router.udp()[0]);
    let mut application = Application::connect(&router);
    application.register("/example");
    router.stop();
    assert!(!path.exists());
    assert!(application.receive().is_none(), "the connection is closed");
    // All sockets are free again: the router has closed them.
    TcpListener::bind(tcp).unwrap();
    UdpSocket::bind(udp).unwrap();
    drop(directory);
}
