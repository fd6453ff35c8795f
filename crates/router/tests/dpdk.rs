//! A router whose links are devices that it drives itself with DPDK: virtual ones, without huge pages.
//!
//! A process has one DPDK, so everything is one test. The stations at two devices of net_memif are threads of this
//! process. Where namespaces can be made, a third device is one end of a virtual cable (net_af_packet), and the kernel
//! has the other end, for a router with packet sockets.

mod application;
#[allow(dead_code, reason = "the tests of links use the rest")]
#[path = "links/hosts.rs"]
mod hosts;

use application::{Application, PATIENCE, eventually, name};
use hosts::{Host, Segment};
use namewire_configuration::{Configuration, Settings};
use namewire_packet::nfd::ControlParameters;
use namewire_router::{Router, RouterHandle};
use std::{path::Path, thread::spawn};

/// The addresses of the devices, and of the stations at them.
const DEVICES: [[u8; 6]; 2] = [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 1, 2]];
const STATIONS: [[u8; 6]; 2] = [[2, 0, 0, 0, 2, 1], [2, 0, 0, 0, 2, 2]];

const FAR: &str = "ether://[02:00:00:00:00:02]";

/// Bytes that a consumer fetches.
const FETCHED_BYTES: usize = 20 << 20;
const CONTENT_BYTES: usize = 1_200;

fn configuration(folder: &Path, cable: Option<&str>) -> Configuration {
    let mut config = Configuration::from(Settings::listening_nowhere());
    let faces = &mut config.settings.faces;
    (faces.unix.enabled, faces.unix.path) = (true, Some(folder.join("nfd.sock")));
    let device = |number: usize| {
        let [a, b, c, d, e, f] = DEVICES[number];
        let socket = folder.join(format!("{number}.sock"));
        format!(
            "net_memif{number},role=server,id=0,bsize=2048,socket={},socket-abstract=no,\
             mac={a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}",
            socket.display()
        )
    };
    let others = cable.into_iter().chain(["net_nothing0"]).map(str::to_owned);
    faces.dpdk.ports = (0..2).map(device).chain(others).collect();
    faces.dpdk.eal = ["--no-huge", "-m", "512", "--no-pci"].map(str::to_owned).to_vec();
    config
}

fn create_face(operator: &mut Application, uri: &str, device: &str) -> ControlParameters {
    let (uri, local_uri) = (Some(uri.to_owned()), Some(format!("dev://{device}")));
    operator.succeed("/faces/create", ControlParameters { uri, local_uri, ..Default::default() })
}

fn add_route(operator: &mut Application, prefix: &str, face: &ControlParameters) {
    let route = ControlParameters { name: Some(name(prefix)), face_id: face.face_id, ..Default::default() };
    operator.succeed("/rib/register", route);
}

/// A station fetches from another one, through the router.
fn fetch_between_stations(router: &RouterHandle, folder: &Path) {
    let mut operator = Application::connect(router);
    let face = create_face(&mut operator, "ether://[02:00:00:00:02:02]", "net_memif1");
    add_route(&mut operator, "/station", &face);
    let station = |number: usize| {
        Application::connect_station(&folder.join(format!("{number}.sock")), STATIONS[number], DEVICES[number])
    };
    let (mut consumer, mut producer) = (station(0), station(1));
    let count = FETCHED_BYTES / CONTENT_BYTES;
    let serving = spawn(move || {
        producer.serve(count, &[7; CONTENT_BYTES]);
        producer
    });
    for index in 0..count {
        let reply = consumer.express(&format!("/station/{index}")).expect("Data");
        assert_eq!(reply.data().content(), [7; CONTENT_BYTES]);
    }
    let _producer = serving.join().unwrap();
    let faces = operator.faces();
    let of = |uri: &str| faces.iter().find(|face| face.uri == uri).expect("a face");
    let (consumers, producers) = (of("ether://[02:00:00:00:02:01]"), of("ether://[02:00:00:00:02:02]"));
    assert_eq!(
        (consumers.counters.packets.in_interests, consumers.counters.packets.out_data),
        (count as u64, count as u64)
    );
    assert_eq!(
        (producers.counters.packets.out_interests, producers.counters.packets.in_data),
        (count as u64, count as u64)
    );
    assert_eq!(consumers.local_uri, "dev://net_memif0");
    assert_eq!(consumers.port.as_deref(), Some("DPDK, driver net_memif"));
    send_what_is_not_ndn(&mut operator, &mut consumer);
}

fn send_what_is_not_ndn(operator: &mut Application, station: &mut Application) {
    let frame = |kind: u16, payload: &[u8]| [&DEVICES[0], &STATIONS[0], &kind.to_be_bytes()[..], payload].concat();
    let others = [[9; 6].as_slice(), &STATIONS[0], &[0x86, 0x24], &[5, 5, 7, 3, 8, 1, b'a']].concat();
    let before = operator.drops("link.foreign-frame");
    station.send_frame(&frame(0x0800, &[0x45; 46])); // IPv4
    station.send_frame(&frame(0x8100, &[0, 5, 0x86, 0x24, 5, 2, 7, 0])); // a VLAN's
    station.send_frame(&[1; 13]); // a runt
    station.send_frame(&frame(0x8624, &[6, 200, 1])); // truncated
    station.send_frame(&others); // for another station
    eventually("all are counted", || {
        operator.drops("link.foreign-frame") == before + 2
            && operator.drops("link.malformed-frame") == 1
            && operator.drops("link.truncated-element") == 1
            && operator.drops("link.foreign-remote") == 1
    });
}

/// A host on a cable, by the kernel's packet socket, serves an application of the router, and the other way round.
fn exchange_over_the_cable(router: &RouterHandle, segment: &Segment) {
    let far = segment.start(1, |config| config.settings.faces.ethernet.listen = true);
    let mut operator = Application::connect(router);
    let face = create_face(&mut operator, FAR, "net_af_packet0");
    add_route(&mut operator, "/far", &face);
    fetch(&far, router, 0, 50);
    // Packets find nobody while the cable is out, and go on when it is back.
    segment.ip(1, "link set eth0 down");
    let interest = operator.interest(name("/far/lost")).lifetime_ms(50).build();
    operator.send(&interest);
    segment.ip(1, "link set eth0 up");
    fetch(&far, router, 1, 50);
}

/// Fragments, too: the content is larger than the MTU.
fn fetch(far: &Host, router: &RouterHandle, round: usize, count: usize) {
    let mut producer = far.application();
    producer.register("/far");
    let _serving = spawn(move || producer.serve_for(PATIENCE, &[7; 3_000])); // ends with its router
    let mut consumer = Application::connect(router);
    for index in 0..count {
        // The first ones may be lost while the link comes up.
        let mut reply = None;
        eventually("Data", || {
            let interest = consumer.interest(name(&format!("/far/{round}/{index}"))).lifetime_ms(500).build();
            consumer.send(&interest);
            reply =
                consumer.receive_within(std::time::Duration::from_secs(1)).filter(|reply| reply.headers.nack.is_none());
            reply.is_some()
        });
        assert_eq!(reply.unwrap().data().content(), [7; 3_000]);
    }
}

#[test]
fn a_router_drives_its_devices_itself() {
    let folder = tempfile::tempdir().unwrap();
    let segment = Segment::new(2);
    let cable = segment.as_ref().map(|_| "net_af_packet0,iface=eth0");
    let config = configuration(folder.path(), cable);
    let start = || Router::start(&config).unwrap();
    let router = match &segment {
        Some(segment) => segment.on_host(0, start),
        None => start(),
    };
    // A device that does not exist leaves the router without it.
    let [missing] = router.warnings() else { panic!("{:?}", router.warnings()) };
    assert!(missing.starts_with("cannot open net_nothing0 with DPDK: "), "{missing}");
    assert_eq!(Application::connect(&router).drops("router.link-face-failed"), 1);
    let ports: Vec<&str> = router.ports().iter().map(String::as_str).collect();
    assert_eq!(ports[..2], ["dev://net_memif0: DPDK, driver net_memif", "dev://net_memif1: DPDK, driver net_memif"]);
    fetch_between_stations(&router, folder.path());
    if let Some(segment) = &segment {
        assert_eq!(ports[2], "dev://net_af_packet0: DPDK, driver net_af_packet");
        exchange_over_the_cable(&router, segment);
    }
    router.stop();
}
