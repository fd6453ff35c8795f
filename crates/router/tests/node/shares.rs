//! How much one host can take from the applications: faces, by datagrams and by connections, and pending Interests.

use crate::application::{Application, eventually, name, start_with};
use namewire_configuration::units::Span;
use namewire_packet::{InterestBuilder, Nonce, nfd::PoolHolding};
use namewire_router::RouterHandle;
use std::{
    net::{TcpStream, UdpSocket},
    time::Duration,
};

const FACES_PER_WORKER: u32 = 64;

fn start_small(workers: usize) -> (RouterHandle, tempfile::TempDir) {
    start_with(workers, |config| config.settings.faces.max_per_worker = FACES_PER_WORKER)
}

/// More than all workers have places for.
fn enough(workers: usize) -> usize {
    (FACES_PER_WORKER as usize) * workers + 100
}

/// An application comes, commands and is answered.
fn assert_served(router: &RouterHandle) {
    let (mut producer, mut consumer) = (Application::connect(router), Application::connect(router));
    producer.register("/here");
    let interest = consumer.interest(name("/here/it/is")).build();
    consumer.send(&interest);
    producer.serve(1, b"hello");
    assert_eq!(consumer.receive().expect("Data").data().content(), b"hello");
}

fn of_pool(operator: &mut Application, pool: &str) -> Vec<PoolHolding> {
    let holdings: Vec<PoolHolding> = operator.dataset("/status/holders");
    holdings.into_iter().filter(|holding| holding.pool == pool).collect()
}

/// The story: 63,976 datagrams of two bytes, each from another port, made as many faces. For ten minutes, new Unix
/// connections were reset.
#[test]
fn datagrams_from_many_ports_lock_out_no_application() {
    for workers in [1, 4] {
        let (router, _directory) = start_small(workers);
        let mut operator = Application::connect(&router);
        let peers: Vec<UdpSocket> = (0..enough(workers)).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let send_all = |datagram: &[u8]| {
            peers.iter().for_each(|peer| assert!(peer.send_to(datagram, router.udp()[0]).is_ok()));
        };
        send_all(&[5, 0]);
        send_all(&[100, 0]);
        for reason in ["link.malformed-packet", "link.nothing-carried"] {
            eventually(reason, || operator.drops(reason) == peers.len() as u64);
        }
        assert!(operator.faces().iter().all(|face| !face.uri.starts_with("udp")), "no packet, no face");

        // Packets make faces, up to the share of one host.
        let interest = operator.interest(name("/flood")).build();
        send_all(&interest);
        eventually("a share", || operator.drops("link.holder-share") > 0);
        assert_served(&router);
        let faces = of_pool(&mut operator, "faces");
        assert_eq!(
            (faces[0].holder.as_deref(), faces[0].capacity),
            (None, u64::from(FACES_PER_WORKER) * workers as u64)
        );
        let flooder = faces[1..].iter().find(|of| of.holder.as_deref() == Some("loopback, not local")).expect("it");
        assert!(flooder.held <= faces[0].capacity * 4 / 5 && flooder.refused > 0, "{flooder:?}");
        assert_eq!(operator.drops("share-used.faces"), flooder.refused);
        assert!(faces.iter().any(|of| of.holder.as_deref().is_some_and(|holder| holder.starts_with("user "))));
    }
}

/// The story: 16,900 idle TCP connections did the same.
#[test]
fn idle_connections_lock_out_no_application_and_end() {
    for workers in [1, 4] {
        let (router, _directory) = start_with(workers, |config| {
            config.settings.faces.max_per_worker = FACES_PER_WORKER;
            config.settings.faces.tcp.first_packet_timeout = Span(Duration::from_secs(3));
        });
        let mut operator = Application::connect(&router);
        let connections: Vec<TcpStream> =
            (0..enough(workers)).map(|_| TcpStream::connect(router.tcp()[0]).unwrap()).collect();
        eventually("a share", || operator.drops("share-used.faces") > 0);
        assert_served(&router);
        eventually("connections without a packet end", || {
            operator.faces().iter().all(|face| !face.uri.starts_with("tcp4"))
        });
        assert!(operator.drops("face-closed.never-spoke") > 0);
        drop(connections);
    }
}

/// The story: 40 UDP ports of one host, each with 2,000 Interests that lived for an hour, filled share after share of
/// the PIT, until not even `namewire status` got an entry.
#[test]
fn interests_from_many_ports_lock_out_neither_applications_nor_the_operator() {
    const PIT: usize = 1_000;
    for workers in [1, 4] {
        let (router, _directory) = start_with(workers, |config| config.settings.tables.pit_capacity = PIT as u32);
        let mut silent = Application::connect(&router);
        silent.register("/nobody");
        std::thread::spawn(move || while silent.receive_within(Duration::from_secs(1)).is_some() {});
        let ports: Vec<UdpSocket> = (0..40).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let mut operator = Application::connect(&router);
        let mut number = 0;
        eventually("the host has its share", || {
            for _ in 0..4 * PIT {
                let interest = InterestBuilder::new(name(&format!("/nobody/{number}")));
                let wire = interest.nonce(Nonce::from_u32(number)).lifetime_ms(3_600_000).build();
                let _ = ports[number as usize % ports.len()].send_to(&wire, router.udp()[0]);
                number += 1;
            }
            operator.drops("engine.pit-share-used") + operator.drops("engine.face-share-used") > PIT as u64
        });
        assert_served(&router);
        let mut late = Application::connect(&router);
        assert!(late.status().n_pit_entries > 0);
        let pit = of_pool(&mut late, "pit");
        let host = pit[1..].iter().find(|of| of.holder.as_deref() == Some("loopback, not local")).expect("the host");
        // Each worker rounds its reserves down.
        assert!(host.held <= PIT as u64 * 13 / 16 * 4 / 5 + 5 * workers as u64, "{host:?}");
        assert_eq!(late.drops("share-used.pit"), late.drops("engine.pit-share-used"));
    }
}

#[test]
fn the_report_counts_routes_for_who_registers_them() {
    let (router, _directory) = start_with(1, |_| {});
    let mut operator = Application::connect(&router);
    operator.register("/one");
    operator.register("/another");
    let routes = of_pool(&mut operator, "routes");
    let user = routes.iter().find(|of| of.holder.as_deref().is_some_and(|holder| holder.starts_with("user ")));
    assert_eq!((routes[0].capacity, user.map(|user| (user.held, user.refused))), (1_000_000, Some((2, 0))));
    assert!(of_pool(&mut operator, "waiting-commands").iter().all(|of| (of.capacity, of.held) == (64, 0)));
}
