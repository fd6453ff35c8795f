//! AF_XDP: what does an operator expect of it, apart from forwarding? The tests in `ethernet.rs` run over it as well.

use super::hosts::{Host, Segment};
use crate::application::{eventually, name};
use namewire_configuration::settings::EthernetIo;
use namewire_packet::nfd::{ControlParameters, WorkerLoad};
use std::{net::UdpSocket, time::Duration};

const FAR: &str = "ether://[02:00:00:00:00:02]";
const NEAR: &str = "ether://[02:00:00:00:00:01]";

/// A near and a far host. The near one has a face to the far one, and a route for `/far`.
fn two_hosts(segment: &Segment) -> [Host; 2] {
    let near = segment.start(0, |_| ());
    let far = segment.start(1, |config| config.settings.faces.ethernet.listen = true);
    let (uri, local_uri) = (Some(FAR.to_owned()), Some("dev://eth0".to_owned()));
    let create = ControlParameters { uri, local_uri, ..Default::default() };
    let face = near.application().succeed("/faces/create", create).face_id.unwrap();
    near.add_route("/far", face);
    [near, far]
}

/// Fetches `/far/ROUND/0` and on.
fn exchange([near, far]: &[Host; 2], round: usize, count: usize) {
    let mut producer = far.application();
    producer.register("/far");
    let serving = std::thread::spawn(move || producer.serve(count, &[7; 3000]));
    let mut consumer = near.application();
    for index in 0..count {
        let reply = consumer.express(&format!("/far/{round}/{index}")).expect("Data");
        assert_eq!(reply.data().content().len(), 3000);
    }
    serving.join().unwrap();
}

fn xdp_segment() -> Option<Segment> {
    Segment::new(2)?.with(EthernetIo::Xdp)
}

/// A datagram from the near host to the far one.
fn datagram_arrives(segment: &Segment) -> bool {
    let socket =
        |host: usize| segment.on_host(host, move || UdpSocket::bind(format!("10.77.0.{}:7000", host + 1)).unwrap());
    let (from, to) = (socket(0), socket(1));
    to.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    from.send_to(b"not NDN", "10.77.0.2:7000").unwrap();
    let mut bytes = [0; 100];
    matches!(to.recv(&mut bytes), Ok(7))
}

#[test]
fn other_traffic_goes_on_and_the_end_of_the_router_is_the_end_of_the_program() {
    let Some(segment) = xdp_segment() else { return };
    let hosts = two_hosts(&segment);
    let is_attached = |host: usize| segment.output(host, "-d link show eth0").contains("prog/xdp");
    exchange(&hosts, 0, 20);
    assert!(datagram_arrives(&segment));
    assert!(is_attached(0) && is_attached(1));
    drop(hosts);
    // A process that this one starts meanwhile holds copies of the descriptors for a moment.
    eventually("the programs are gone", || !is_attached(0) && !is_attached(1));
    // The next routers find everything as the first ones did.
    exchange(&two_hosts(&segment), 0, 20);
}

#[test]
fn faces_say_how_their_frames_come() {
    let Some(segment) = xdp_segment() else { return };
    let hosts = two_hosts(&segment);
    exchange(&hosts, 0, 1);
    for (host, remote) in [(&hosts[0], FAR), (&hosts[1], NEAR)] {
        let port = host.face(remote).port.expect("an Ethernet face has a port");
        assert!(port.starts_with("AF_XDP, native mode, copy, 1 queue"), "{port}");
    }
    assert_eq!(hosts[1].router.ports(), ["dev://eth0: AF_XDP, native mode, copy, 1 queue"]);
}

/// Two hosts whose ports belong to I/O threads, beside two workers.
#[test]
fn io_threads_own_the_ports_and_workers_own_the_names() {
    let Some(segment) = xdp_segment() else { return };
    let with_io_threads = |config: &mut namewire_configuration::Configuration| {
        (config.settings.router.workers, config.settings.router.io_threads) = (2, 1);
    };
    let near = segment.start(0, with_io_threads);
    let far = segment.start(1, |config| {
        with_io_threads(config);
        config.settings.faces.ethernet.listen = true;
    });
    let (uri, local_uri) = (Some(FAR.to_owned()), Some("dev://eth0".to_owned()));
    let create = ControlParameters { uri, local_uri, ..Default::default() };
    let face = near.application().succeed("/faces/create", create).face_id.unwrap();
    near.add_route("/far", face);
    let hosts = [near, far];
    exchange(&hosts, 0, 200);
    for (host, remote) in [(&hosts[0], FAR), (&hosts[1], NEAR)] {
        let passed = host.face(remote).counters.packets;
        let asked = passed.in_interests.max(passed.out_interests);
        assert!(asked >= 200 && passed.in_data.max(passed.out_data) >= 200, "{passed:?}");
        let mut threads: Vec<WorkerLoad> = Vec::new();
        eventually("all is counted", || {
            threads = host.application().dataset("/status/workers");
            threads[..2].iter().map(|load| load.packets.in_interests).sum::<u64>() >= 200
        });
        assert_eq!(threads.iter().map(|load| load.is_io_thread).collect::<Vec<_>>(), [false, false, true]);
        assert!(threads[..2].iter().all(|load| load.packets.in_interests > 20 && load.cs_entries > 20), "{threads:?}");
        let WorkerLoad { packets, pit_entries, cs_entries, cs_bytes, busy_ns, .. } = threads[2];
        assert_eq!((packets, pit_entries, cs_entries, cs_bytes), Default::default(), "no name is at home there");
        assert!(busy_ns > 0, "it has passed the frames on");
    }
}

#[test]
fn auto_takes_a_packet_socket_where_frames_are_too_large_and_says_why() {
    let Some(segment) = Segment::new(2).and_then(|segment| segment.with(EthernetIo::Auto)) else { return };
    segment.hub_ip("link set port0 mtu 9000");
    segment.ip(0, "link set eth0 mtu 9000");
    let hosts = two_hosts(&segment);
    let port = hosts[0].face(FAR).port.unwrap();
    assert!(port.starts_with("a packet socket, because AF_XDP does not work: "), "{port}");
    exchange(&hosts, 0, 5);
    assert!(hosts[1].face(NEAR).port.unwrap().starts_with("AF_XDP"), "the far interface has no such frames");
}

/// The rings wrap around many times. Some Interests find no answer: their frames leave the memory in other order.
#[test]
fn nothing_is_lost_over_many_turns_of_the_rings() {
    let Some(segment) = xdp_segment() else { return };
    let hosts = two_hosts(&segment);
    exchange(&hosts, 0, 3000);
    let mut consumer = hosts[0].application();
    eventually("all is counted", || {
        let counters = hosts[0].face(FAR).counters;
        (counters.packets.out_interests, counters.packets.in_data) == (3000, 3000)
    });
    for round in 0..300 {
        let interest = consumer.interest(name(&format!("/far/silent/{round}"))).lifetime_ms(10).build();
        consumer.send(&interest);
    }
    eventually("they are over", || {
        hosts[0].face(FAR).counters.packets.out_interests >= 3300 && hosts[0].application().status().n_pit_entries == 0
    });
    exchange(&hosts, 1, 3000);
}

/// The story: the router wrote the interface's old address into its frames, and took frames to the new one for others'.
#[test]
fn a_new_address_of_the_interface_is_used() {
    let Some(segment) = xdp_segment() else { return };
    let hosts = two_hosts(&segment);
    segment.ip(0, "link set eth0 address 02:00:00:00:00:09");
    let mut operator = hosts[0].application();
    let mut number = 0;
    eventually("the interface is opened anew, and frames have its new address", || {
        // The face closes with the former port.
        let (uri, local_uri) = (Some(FAR.to_owned()), Some("dev://eth0".to_owned()));
        let create = ControlParameters { uri, local_uri, ..Default::default() };
        let made = operator.command("/faces/create", create).body.and_then(|body| body.face_id);
        let route = ControlParameters { name: Some(name("/far")), face_id: made, ..Default::default() };
        if made.is_some() && operator.command("/rib/register", route).code == 200 {
            number += 1;
            let interest = operator.interest(name(&format!("/far/{number}"))).lifetime_ms(100).build();
            hosts[0].application().send(&interest);
        }
        // Nobody serves the name: the far router answers with Nacks, to the new address.
        let is_answered = operator.faces().iter().any(|face| face.uri == FAR && face.counters.packets.in_nacks > 0);
        is_answered && hosts[1].has_face("ether://[02:00:00:00:00:09]")
    });
}
