//! Faces with lanes: every worker sends and receives the packets of its names (decision 0019).

use crate::application::{Application, eventually, name, start};
use namewire_packet::{
    FaceId,
    lane_hello::{LANES_MAX, LaneHello},
    lp::LpPacket,
    nfd::{ControlParameters, FaceStatus, WorkerLoad, face_flags},
};
use namewire_router::RouterHandle;
use std::{
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

const WORKERS: usize = 2;

/// Makes a permanent face to `remote`.
fn link(router: &RouterHandle, remote: SocketAddr, has_lanes: bool, mtu: Option<u64>) -> FaceId {
    let flags = if has_lanes { face_flags::LANES } else { 0 };
    let create = ControlParameters {
        uri: Some(format!("udp4://{remote}")),
        face_persistency: Some(2),
        mtu,
        flags: Some(flags),
        mask: Some(face_flags::LANES),
        ..Default::default()
    };
    Application::connect(router).succeed("/faces/create", create).face_id.expect("a face")
}

fn face(router: &RouterHandle, face: FaceId) -> FaceStatus {
    let faces = Application::connect(router).faces();
    faces.into_iter().find(|status| status.face_id == face).expect("the face")
}

fn lanes(router: &RouterHandle, id: FaceId) -> String {
    face(router, id).port.unwrap_or_default()
}

fn route(router: &RouterHandle, prefix: &str, face: FaceId) {
    let route = ControlParameters { name: Some(name(prefix)), face_id: Some(face), ..Default::default() };
    Application::connect(router).succeed("/rib/register", route);
}

/// Three routers in a line, and the faces of the middle one: to the near one, to the far one.
struct Line {
    routers: [(RouterHandle, tempfile::TempDir); 3],
    middle: [FaceId; 2],
}

impl Line {
    fn new(has_lanes: bool, mtu: Option<u64>) -> Line {
        let routers = [(); 3].map(|()| start(WORKERS));
        let link_both = |a: usize, b: usize| {
            let (a, b) = (&routers[a].0, &routers[b].0);
            (link(a, b.udp()[0], has_lanes, mtu), link(b, a.udp()[0], has_lanes, mtu))
        };
        let (near, middle_near) = link_both(0, 1);
        let (middle_far, far) = link_both(1, 2);
        route(&routers[0].0, "/far", near);
        route(&routers[1].0, "/far", middle_far);
        if has_lanes {
            for (router, face) in [(0, near), (1, middle_near), (1, middle_far), (2, far)] {
                eventually("lanes are in use", || lanes(&routers[router].0, face) == "2 lanes here, 2 there, in use");
            }
        }
        Line { middle: [middle_near, middle_far], routers }
    }

    /// Fetches `count` Data of `content_bytes` at the near end from the far end.
    fn exchange(&self, count: usize, content_bytes: usize) {
        let mut producer = Application::connect(&self.routers[2].0);
        producer.register("/far");
        let content = vec![7; content_bytes];
        let served = content.clone();
        let serving = std::thread::spawn(move || producer.serve(count, &served));
        let mut consumer = Application::connect(&self.routers[0].0);
        for index in 0..count {
            let reply = consumer.express(&format!("/far/{count}/{index}")).expect("Data");
            assert_eq!(reply.data().content(), content);
        }
        serving.join().unwrap();
    }

    /// Packets that the middle router has received by its links, and packets that its workers gave to each other.
    fn counted(&self) -> (u64, u64) {
        let middle = &self.routers[1].0;
        let loads: Vec<WorkerLoad> = Application::connect(middle).dataset("/status/workers");
        let received = |id| face(middle, id).counters.packets.received();
        (self.middle.into_iter().map(received).sum(), loads.iter().map(|load| load.crossed).sum())
    }

    /// Crossings of rings for each packet that the middle router receives while it passes `count` exchanges.
    fn crossings_per_packet(&self, count: usize) -> f64 {
        let (packets_before, crossings_before) = self.counted();
        self.exchange(count, 100);
        let mut crossings = 0;
        eventually("all is counted", || {
            let (packets, crossings_now) = self.counted();
            crossings = crossings_now - crossings_before;
            packets - packets_before >= 2 * count as u64
        });
        crossings as f64 / (2 * count) as f64
    }
}

#[test]
fn packets_between_lanes_cross_no_ring() {
    let with_lanes = Line::new(true, None).crossings_per_packet(500);
    let without = Line::new(false, None).crossings_per_packet(500);
    println!("crossings per packet: {with_lanes:.3} with lanes, {without:.3} without");
    // Management, which the test asks, crosses rings too.
    assert!(with_lanes <= 0.05, "{with_lanes} with lanes");
    assert!(without >= 0.5, "{without} without lanes, so the test shows nothing");
}

#[test]
fn large_packets_pass_lanes_in_fragments_and_counters_are_sums() {
    let line = Line::new(true, Some(1400));
    line.exchange(60, 7000);
    let middle = &line.routers[1].0;
    eventually("all is counted", || {
        let [near, far] = line.middle.map(|id| face(middle, id).counters);
        let packets = |of: namewire_packet::nfd::FaceCounters| (of.packets.received(), of.packets.sent());
        packets(near) == (60, 60) && packets(far) == (60, 60) && far.in_bytes > 60 * 7000 && near.out_bytes > 60 * 7000
    });
    // A change of the face concerns its lanes.
    for (router, id) in [(middle, line.middle[0]), (middle, line.middle[1])] {
        let reliable = Some(face_flags::LP_RELIABILITY);
        let update = ControlParameters { face_id: Some(id), flags: reliable, mask: reliable, ..Default::default() };
        Application::connect(router).succeed("/faces/update", update);
    }
    line.exchange(61, 7000);
    assert_eq!(lanes(middle, line.middle[0]), "2 lanes here, 2 there, in use");
}

#[test]
fn lanes_can_be_turned_off_and_on() {
    let line = Line::new(true, None);
    let middle = &line.routers[1].0;
    for (flags, words) in [(0, ""), (face_flags::LANES, "2 lanes here, 2 there, in use")] {
        let (flags, mask) = (Some(flags), Some(face_flags::LANES));
        let update = ControlParameters { face_id: Some(line.middle[1]), flags, mask, ..Default::default() };
        Application::connect(middle).succeed("/faces/update", update);
        eventually("it is so", || lanes(middle, line.middle[1]) == words);
        // The far router was told.
        line.exchange(20 + words.len(), 100);
    }
}

#[test]
fn a_neighbour_without_lanes_is_a_neighbour() {
    let ((near, _near_directory), (far, _far_directory)) = (start(WORKERS), start(WORKERS));
    let to_far = link(&near, far.udp()[0], true, None);
    route(&near, "/far", to_far);
    let mut producer = Application::connect(&far);
    producer.register("/far");
    let serving = std::thread::spawn(move || producer.serve(50, b"far"));
    let mut consumer = Application::connect(&near);
    for index in 0..50 {
        consumer.express(&format!("/far/{index}")).expect("Data");
    }
    serving.join().unwrap();
    assert_eq!(lanes(&near, to_far), "2 lanes; the neighbour has none");
}

/// A neighbour of which the test knows every datagram.
struct Neighbour {
    socket: UdpSocket,
    router: RouterHandle,
    face: FaceId,
    _directory: tempfile::TempDir,
}

impl Neighbour {
    fn new() -> Neighbour {
        let (router, _directory) = start(WORKERS);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let face = link(&router, socket.local_addr().unwrap(), true, None);
        socket.connect(router.udp()[0]).unwrap();
        Neighbour { socket, router, face, _directory }
    }

    /// The next hello of the router that `is_it`.
    fn hello(&self, is_it: impl Fn(&LaneHello) -> bool) -> LaneHello {
        let mut bytes = [0; 9000];
        loop {
            let count = self.socket.recv(&mut bytes).expect("a hello");
            let packet = LpPacket::parse(&bytes[..count]).expect("an LpPacket");
            if let Some(hello) = packet.lane_hello.map(|value| LaneHello::parse(value).expect("a hello"))
                && is_it(&hello)
            {
                return hello;
            }
        }
    }

    fn send(&self, hello: &LaneHello) {
        self.socket.send(&hello.to_frame()).unwrap();
    }

    fn dropped(&self, reason: &str) -> u64 {
        Application::connect(&self.router).drops(reason)
    }
}

#[test]
fn hostile_hellos_are_refused() {
    let neighbour = Neighbour::new();
    let theirs = neighbour.hello(|_| true);
    assert_eq!((theirs.echo, theirs.hears, theirs.ports.len()), (0, false, WORKERS));
    let ours = LaneHello { instance: 5, echo: 0, hears: false, key: [1; 16], ports: vec![7001, 7002] };
    let odd = [
        LaneHello { ports: vec![7001, 0], ..ours.clone() },
        LaneHello { ports: vec![7001, 7001], ..ours.clone() },
        LaneHello { ports: (1..=LANES_MAX as u16 + 1).collect(), ..ours.clone() },
        LaneHello { ports: Vec::new(), ..ours.clone() },
        LaneHello { instance: 0, ..ours.clone() },
    ];
    odd.iter().for_each(|hello| neighbour.send(hello));
    eventually("all are refused", || neighbour.dropped("link.lane-hello-refused") == odd.len() as u64);

    // Whoever does not return the router's instance gets an answer, and changes nothing.
    neighbour.send(&ours);
    neighbour.hello(|hello| hello.echo == 5);
    assert_eq!(lanes(&neighbour.router, neighbour.face), "2 lanes; the neighbour has none");
    neighbour.send(&LaneHello { echo: theirs.instance, ..ours.clone() });
    eventually("the neighbour has lanes", || {
        lanes(&neighbour.router, neighbour.face) == "2 lanes here, 2 there, not in use"
    });

    for _ in 0..50 {
        neighbour.send(&ours);
    }
    eventually("too many are refused", || neighbour.dropped("link.lane-hello-too-often") >= 20);
    assert_eq!(lanes(&neighbour.router, neighbour.face), "2 lanes here, 2 there, not in use");
}

/// It says that it hears everything, but from its lanes nothing comes, and nothing is sent there but idle packets.
#[test]
fn datagrams_of_strangers_are_refused_at_lanes_and_the_face_takes_its_sockets_along() {
    let neighbour = Neighbour::new();
    let theirs = neighbour.hello(|_| true);
    let lane_sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let ports = lane_sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
    let ours = LaneHello { instance: 5, echo: theirs.instance, hears: true, key: [1; 16], ports };
    neighbour.send(&ours);
    eventually("it uses the lanes that say so", || {
        lanes(&neighbour.router, neighbour.face) == "2 lanes here, 2 there, in use"
    });
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&[5, 5, 7, 3, 8, 1, b'a'], ("127.0.0.1", theirs.ports[0])).unwrap();
    eventually("it is refused", || neighbour.dropped("link.foreign-remote") == 1);
    let made = Application::connect(&neighbour.router).faces();
    assert!(!made.iter().any(|face| face.uri.contains(&stranger.local_addr().unwrap().to_string())));
    for port in &theirs.ports {
        UdpSocket::bind(("127.0.0.1", *port)).expect_err("the lane has it");
    }

    let destroy = ControlParameters { face_id: Some(neighbour.face), ..Default::default() };
    Application::connect(&neighbour.router).succeed("/faces/destroy", destroy);
    let farewell = neighbour.hello(|hello| hello.echo == 5 && !hello.hears);
    assert_eq!(farewell.ports, theirs.ports);
    for port in &theirs.ports {
        eventually("the port is free", || UdpSocket::bind(("127.0.0.1", *port)).is_ok());
    }
}

#[test]
fn only_udp_faces_have_lanes() {
    let (router, _directory) = start(WORKERS);
    let (flags, mask) = (Some(face_flags::LANES), Some(face_flags::LANES));
    let create = ControlParameters { uri: Some("tcp4://192.0.2.1:6363".to_owned()), flags, mask, ..Default::default() };
    let mut application = Application::connect(&router);
    let refused = application.command("/faces/create", create);
    assert_eq!((refused.code, refused.text.as_str()), (406, "TCP faces do not support lanes"));
    let own = application.turn_on_local_fields();
    let update = ControlParameters { face_id: Some(own), flags, mask, ..Default::default() };
    let refused = application.command("/faces/update", update);
    assert_eq!((refused.code, refused.body.and_then(|body| body.flags)), (409, flags));
}
