//! Turns of reading: how many one host or user takes from the others. The tests count packets in the order of their
//! arrival, so no test depends on time.

use std::collections::HashSet;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;

use namewire_faces::{DriverConfig, FaceInfo, StreamSocket, unix};
use namewire_packet::{
    FaceId,
    nfd::{FaceScope, FaceUri},
};

use crate::worker::*;

/// Packets that a turn of the worker reads.
const BATCH: usize = 256;

/// Two hosts.
const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const OTHER_HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// What a holder may cost in one round of turns (`ELEMENTS_PER_TURN`).
const QUANTUM: usize = 64;

/// Adds a stream from a host, and returns the other end. It is a Unix socket, for this machine has one address.
fn stream_from(worker: &mut Worker, face: FaceId, host: Ipv4Addr) -> UnixStream {
    let remote = FaceUri::tcp(SocketAddr::from((host, 6363)));
    let (ours, theirs) = UnixStream::pair().unwrap();
    let info = FaceInfo { remote, scope: FaceScope::NonLocal, ..unix::face_info(&ours, Path::new("/nfd.sock")) };
    worker.driver.add_stream(face, StreamSocket::Unix(ours), info).unwrap();
    theirs.set_nonblocking(true).unwrap();
    theirs
}

/// The same from a user of this machine.
fn stream_of(worker: &mut Worker, face: FaceId, uid: u32) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut info = unix::face_info(&ours, Path::new("/nfd.sock"));
    info.credentials.as_mut().unwrap().uid = uid;
    worker.driver.add_stream(face, StreamSocket::Unix(ours), info).unwrap();
    theirs.set_nonblocking(true).unwrap();
    theirs
}

/// A stream that always has Interests to read.
struct Flood {
    stream: UnixStream,
    interests: Vec<u8>,
    /// Where the next write goes on.
    at: usize,
}

impl Flood {
    fn new(stream: UnixStream) -> Self {
        Flood { stream, interests: (0..100).flat_map(interest).collect(), at: 0 }
    }

    /// Writes as much as the socket takes.
    fn fill(&mut self) {
        while let Ok(written) = self.stream.write(&self.interests[self.at..]) {
            self.at = (self.at + written) % self.interests.len();
        }
    }
}

/// One turn of a worker: how many packets came, and how many from `face`.
fn turn(worker: &mut Worker, face: FaceId) -> (usize, usize) {
    worker.driver.wait(Some(std::time::Duration::ZERO)).unwrap();
    worker.driver.receive(worker.now_ns, &mut worker.arena, &mut worker.packets, BATCH);
    worker.driver.flush();
    (worker.packets.len(), worker.packets.iter().filter(|packet| packet.face == face).count())
}

fn raise_descriptor_limit() {
    let mut descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    descriptors.current = descriptors.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, descriptors).unwrap();
}

/// The story: a host with 2,000 TCP connections (a user with 600 Unix connections) had 2,000 turns for each one of
/// another host, whose Interests waited for three seconds. The kernel reports 256 ready sockets at a time, so more of
/// them must not hide others.
#[test]
fn a_host_or_user_with_many_streams_has_the_turns_of_one() {
    const STREAMS: u64 = 600;
    const ROUNDS: usize = 20;
    /// Interests that the honest stream sends in each round.
    const SENT: usize = 20;
    raise_descriptor_limit();
    for is_local in [false, true] {
        let mut worker = Worker::new(DriverConfig::default());
        let add = |worker: &mut Worker, face: u64, who: u8| match is_local {
            true => stream_of(worker, FaceId(face), 1000 + u32::from(who)),
            false => stream_from(worker, FaceId(face), Ipv4Addr::new(192, 0, 2, who)),
        };
        let mut hostile: Vec<_> = (0..STREAMS).map(|stream| Flood::new(add(&mut worker, 1000 + stream, 1))).collect();
        let mut honest = add(&mut worker, A.0, 2);
        hostile.iter_mut().for_each(Flood::fill);
        // All are known to be ready.
        (0..8).for_each(|_| assert_eq!(turn(&mut worker, A), (BATCH, 0)));
        let (mut turns, mut packets) = (0, 0);
        for round in 0..ROUNDS as u64 {
            hostile.iter_mut().for_each(Flood::fill);
            honest.write_all(&(0..SENT as u64).flat_map(|n| interest(round << 32 | n)).collect::<Vec<_>>()).unwrap();
            let mut received = 0;
            while received < SENT {
                let (all, of_honest) = turn(&mut worker, A);
                turns += 1;
                packets += all - of_honest;
                received += of_honest;
            }
        }
        // At the end of each turn the greedy holder may be in the middle of its own round.
        assert!(turns <= 2 * ROUNDS, "{turns} turns of the worker");
        assert!(packets <= 2 * ROUNDS * BATCH, "{packets} packets of the other before {ROUNDS} times {SENT}");
    }
}

/// Both always have something to read: each has half, and neither waits for more than a round.
#[test]
fn two_holders_that_never_stop_have_half_each() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut hostile: Vec<_> =
        (0..40).map(|stream| Flood::new(stream_from(&mut worker, FaceId(1000 + stream), HOST))).collect();
    let mut greedy = Flood::new(stream_from(&mut worker, A, OTHER_HOST));
    let (mut all, mut of_one) = (0, 0);
    for _ in 0..200 {
        hostile.iter_mut().for_each(Flood::fill);
        greedy.fill();
        let (packets, own) = turn(&mut worker, A);
        all += packets;
        of_one += own;
    }
    assert_eq!(all, 200 * BATCH);
    assert!(of_one.abs_diff(all / 2) <= 4 * QUANTUM, "{of_one} of {all}");
}

/// The story: 150 streams asked the names of one application, whose answers had a share of the turns like any other
/// input. So its answers waited in the application, those for others too, up to a second.
#[test]
fn answers_are_paid_by_who_asked() {
    const ASKED: u64 = 1_000;
    /// What a driver's socket holds of the application's answers at a time.
    const WRITTEN: u64 = 500;
    let mut worker = Worker::new(DriverConfig::default());
    let mut greedy = Flood::new(stream_of(&mut worker, B, 1000));
    let mut application = stream_of(&mut worker, A, 1001);
    // How many packets of the greedy stream come while the application sends as many as it was asked.
    let mut between = |worker: &mut Worker| {
        let mut others = 0;
        for round in 0..ASKED / WRITTEN {
            greedy.fill();
            let answers: Vec<u8> = (0..WRITTEN).flat_map(|n| element(6, 20, round * WRITTEN + n)).collect();
            application.write_all(&answers).unwrap();
            let mut received = 0;
            while received < WRITTEN as usize {
                let (all, own) = turn(worker, A);
                received += own;
                others += all - own;
                greedy.fill();
            }
        }
        others
    };
    let unasked = between(&mut worker);
    for seed in 0..ASKED {
        worker.send(A, &interest(seed)).unwrap();
    }
    let asked = between(&mut worker);
    assert!(unasked as u64 >= ASKED - 4 * QUANTUM as u64, "{unasked} for {ASKED}: half each");
    // A turn of the worker ends with what the greedy stream has left of it.
    assert!(asked * 2 < unasked, "{asked} and {unasked}");
    // What nobody asked pays for itself again.
    let unasked = between(&mut worker);
    assert!(unasked as u64 >= ASKED - 4 * QUANTUM as u64, "{unasked} for {ASKED}: half each");
}

/// A stream of elements that carry no packet uses up its own turns, although it brings nothing.
#[test]
fn elements_without_a_packet_count() {
    let mut worker = Worker::new(DriverConfig::default());
    let mut hostile = stream_from(&mut worker, B, HOST);
    let mut honest = Flood::new(stream_from(&mut worker, A, OTHER_HOST));
    let unknown = [80, 0].repeat(30_000);
    hostile.write_all(&unknown).unwrap();
    honest.fill();
    let before = worker.driver.counters(B).unwrap();
    let mut received = 0;
    while received < 1_000 {
        received += turn(&mut worker, A).1;
    }
    let counted = before.dropped(namewire_faces::LinkDrop::UnknownType) as usize;
    assert!(counted <= received + 4 * QUANTUM, "{counted} elements were looked at for {received} packets");
}

/// The end of a stream is seen although it was not watched while others were read.
#[test]
fn a_stream_that_waited_long_ends_and_begins_as_any_other() {
    const STREAMS: u64 = 300;
    raise_descriptor_limit();
    let mut worker = Worker::new(DriverConfig::default());
    let mut streams: Vec<_> =
        (0..STREAMS).map(|stream| Flood::new(stream_from(&mut worker, FaceId(1000 + stream), HOST))).collect();
    streams.iter_mut().for_each(Flood::fill);
    (0..8).for_each(|_| assert_eq!(turn(&mut worker, A).0, BATCH));
    while turn(&mut worker, A).0 > 0 {}
    // All are drained: each is heard again, and each end is seen.
    for Flood { stream, interests, at } in &mut streams {
        stream.write_all(&interests[*at..]).unwrap();
    }
    let mut heard = HashSet::new();
    while heard.len() < STREAMS as usize {
        heard.extend(worker.round().into_iter().map(|(face, ..)| face));
    }
    while turn(&mut worker, A).0 > 0 {}
    drop(streams);
    let mut closed = 0;
    while closed < STREAMS as usize {
        turn(&mut worker, A);
        closed += worker.driver.events().count();
    }
    assert_eq!(worker.driver.face_count(), 0);
}
