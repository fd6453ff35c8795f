//! Reliability between routers: its effect over links that lose and reorder datagrams. It also works over TCP.

use crate::application::{Application, eventually, name, start_with};
use namewire_packet::{
    FaceId,
    nfd::{ControlParameters, face_flags},
};
use namewire_router::RouterHandle;
use std::{
    collections::BTreeSet,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Per cent of the datagrams that are lost, and that the next few overtake.
const LOST: u32 = 5;
const OVERTAKEN: u32 = 5;

/// After this long without any Data a consumer asks again. Links take less time to send a frame four times, even where
/// routers wait for a processor.
const SILENCE: Duration = Duration::from_secs(5);

/// A wire between two UDP addresses that loses and reorders datagrams. Each end sees the other as the address of one of
/// the wire's sockets.
struct LossyWire {
    ends: [SocketAddr; 2],
    lost: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl LossyWire {
    fn new(routers: [SocketAddr; 2], seed: u64) -> Self {
        let sockets = [(); 2].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let options = socket2::SockRef::from(&socket);
            // A burst must wait here; only the intended datagrams may be lost.
            options.set_recv_buffer_size(4 << 20).unwrap();
            options.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            socket
        });
        let ends = [0, 1].map(|end| sockets[end].local_addr().unwrap());
        let (lost, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let mut threads = Vec::new();
        for from in [0, 1] {
            let [source, exit] = [from, 1 - from].map(|end| sockets[end].try_clone().unwrap());
            let (lost, is_over) = (Arc::clone(&lost), Arc::clone(&is_over));
            let mut random = fastrand::Rng::with_seed(seed + from as u64);
            threads.push(std::thread::spawn(move || {
                let mut bytes = [0; 9000];
                let mut held: Vec<(u32, Vec<u8>)> = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let Ok(size) = source.recv(&mut bytes) else {
                        held.drain(..).for_each(|(_, late)| drop(exit.send_to(&late, routers[1 - from])));
                        continue;
                    };
                    match random.u32(..100) {
                        0..LOST => {
                            lost.fetch_add(1, Ordering::Relaxed);
                        }
                        number if number < LOST + OVERTAKEN => held.push((random.u32(1..6), bytes[..size].to_vec())),
                        _ => drop(exit.send_to(&bytes[..size], routers[1 - from])),
                    }
                    held.retain_mut(|(overtakers, late)| {
                        *overtakers -= 1;
                        let stays = *overtakers > 0;
                        if !stays {
                            let _ = exit.send_to(late, routers[1 - from]);
                        }
                        stays
                    });
                }
            }));
        }
        LossyWire { ends, lost, is_over, threads }
    }
}

impl Drop for LossyWire {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// A UDP face with reliability and an MTU that makes fragments.
fn reliable_face(operator: &mut Application, remote: SocketAddr) -> FaceId {
    let flags = Some(face_flags::LP_RELIABILITY);
    let uri = Some(format!("udp4://{remote}"));
    let parameters = ControlParameters { uri, flags, mask: flags, mtu: Some(1400), ..Default::default() };
    operator.succeed("/faces/create", parameters).face_id.unwrap()
}

fn route(operator: &mut Application, prefix: &str, face: FaceId) {
    let route = ControlParameters { name: Some(name(prefix)), face_id: Some(face), ..Default::default() };
    operator.succeed("/rib/register", route);
}

/// Asks for `segments` Data, `window` at once. Returns how many Interests had to be sent again.
fn fetch(consumer: &mut Application, prefix: &str, segments: usize, window: usize, content: &[u8]) -> usize {
    let mut missing: BTreeSet<usize> = (0..segments).collect();
    let (mut next, mut asked_again) = (0, 0);
    let ask = |consumer: &mut Application, segment: usize| {
        let interest = consumer.interest(name(&format!("{prefix}/{segment}"))).lifetime_ms(60_000).build();
        consumer.send(&interest);
    };
    while !missing.is_empty() {
        while next < segments && next < segments - missing.len() + window {
            ask(consumer, next);
            next += 1;
        }
        let Some(packet) = consumer.receive_within(SILENCE) else {
            for &segment in missing.iter().take_while(|segment| **segment < next) {
                ask(consumer, segment);
                asked_again += 1;
            }
            continue;
        };
        assert_eq!(packet.headers.nack, None);
        let data = packet.data();
        assert_eq!(data.content(), content);
        let number = data.name().to_string().rsplit('/').next().unwrap().parse().unwrap();
        missing.remove(&number);
    }
    asked_again
}

fn start_plain() -> (RouterHandle, tempfile::TempDir) {
    start_with(1, |config| config.settings.cs.admit = false)
}

/// Lets `producer` answer every Interest until it has answered `count` names.
fn serve_in_background(producer: Application, content: Vec<u8>) -> Arc<AtomicBool> {
    let is_over = Arc::<AtomicBool>::default();
    let until = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let mut producer = producer;
        while !until.load(Ordering::Relaxed) {
            producer.serve_for(Duration::from_millis(100), &content);
        }
    });
    is_over
}

#[test]
fn twenty_megabytes_cross_a_line_of_three_routers_over_lossy_links() {
    const SEGMENT_BYTES: usize = 8000;
    const SEGMENTS: usize = 20_000_000 / SEGMENT_BYTES;
    let routers = [start_plain(), start_plain(), start_plain()];
    let mut operators: Vec<Application> = routers.iter().map(|(router, _)| Application::connect(router)).collect();
    let mut wires = Vec::new();
    for left in 0..2 {
        let ends = [left, left + 1].map(|end| routers[end].0.udp()[0]);
        let wire = LossyWire::new(ends, 7 * left as u64);
        let onward = reliable_face(&mut operators[left], wire.ends[0]);
        reliable_face(&mut operators[left + 1], wire.ends[1]);
        route(&mut operators[left], "/far", onward);
        wires.push(wire);
    }
    let mut producer = Application::connect(&routers[2].0);
    producer.register("/far");
    let content: Vec<u8> = (0..SEGMENT_BYTES).map(|i| (i * i) as u8).collect();
    let is_over = serve_in_background(producer, content.clone());

    let mut consumer = Application::connect(&routers[0].0);
    let began = Instant::now();
    let asked_again = fetch(&mut consumer, "/far", SEGMENTS, 24, &content);
    let seconds = began.elapsed().as_secs_f64();
    is_over.store(true, Ordering::Relaxed);

    let lost: u64 = wires.iter().map(|wire| wire.lost.load(Ordering::Relaxed)).sum();
    let count = |operator: &mut Application, counter: &str| operator.drops(counter);
    let again: u64 = operators.iter_mut().map(|operator| count(operator, "reliability.frames-retransmitted")).sum();
    println!("20 MB in {seconds:.1} s; {lost} datagrams lost, {again} sent again, {asked_again} Interests asked again");
    assert!(lost > 1000, "{lost} datagrams lost of more than 30,000");
    assert!(again >= lost / 2, "most of them were frames with a packet: {again} sent again");
    assert!(asked_again <= 24, "reliability leaves next to nothing to the consumer: {asked_again}");
    // For one frame in 10,000, the frame or its Ack is lost four times in a row. If it was the Ack, the packet has
    // arrived all the same.
    let mut sum = |counter: &str| operators.iter_mut().map(|operator| count(operator, counter)).sum::<u64>();
    let (given_up, unfinished) = (sum("link.retransmissions-exhausted"), sum("link.reassembly-timeout"));
    assert!(given_up <= 50 && unfinished <= 50, "{given_up} packets given up, {unfinished} unfinished");
    assert_eq!((sum("link.reassembly-evicted"), sum("link.unacknowledged-evicted")), (0, 0));
    assert!(count(&mut operators[1], "reliability.acknowledged") > SEGMENTS as u64);
}

#[test]
fn a_tcp_link_is_reliable_when_both_ends_say_so() {
    let [(near, _near_directory), (far, _far_directory)] = [start_plain(), start_plain()];
    let [mut near_operator, mut far_operator] = [&near, &far].map(Application::connect);
    let flags = Some(face_flags::LP_RELIABILITY);
    let uri = Some(format!("tcp4://{}", far.tcp()[0]));
    let create = ControlParameters { uri, flags, mask: flags, ..Default::default() };
    let made = near_operator.succeed("/faces/create", create);
    assert_eq!(made.flags, Some(face_flags::LP_RELIABILITY | face_flags::CONGESTION_MARKING));
    route(&mut near_operator, "/far", made.face_id.unwrap());
    let mut accepted = None;
    eventually("the connection is a face there", || {
        let faces = far_operator.faces();
        accepted = faces.iter().find(|face| face.uri.starts_with("tcp4")).map(|face| face.face_id);
        accepted.is_some()
    });
    let update = ControlParameters { face_id: accepted, flags, mask: flags, ..Default::default() };
    far_operator.succeed("/faces/update", update);

    let mut producer = Application::connect(&far);
    producer.register("/far");
    let content = vec![7; 8000];
    let is_over = serve_in_background(producer, content.clone());
    let mut consumer = Application::connect(&near);
    assert_eq!(fetch(&mut consumer, "/far", 200, 8, &content), 0);
    is_over.store(true, Ordering::Relaxed);
    for operator in [&mut near_operator, &mut far_operator] {
        eventually("everything is acknowledged", || operator.drops("reliability.acknowledged") == 200);
        assert_eq!(operator.drops("link.retransmissions-exhausted"), 0);
    }
}
