//! Bad input against a real `namewire run`: whatever a peer sends or fails to read, a counter moves, memory stays
//! bounded, and the router continues to answer.
//!
//! Counters are those of `namewire status --json`: the sum of everything under the key `drops`. Needs the router:
//! `cargo build -p namewire-cli` first (`make test` does), or NAMEWIRE set to one.

use std::io::{self, Read, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use namewire_lab::process::{resident_kib, resident_kib_max};
use namewire_lab::router_process::{RouterProcess, find_program};
use namewire_packet::lp::LpPacket;
use namewire_packet::tlv::{types, write_nested, write_nni, write_tlv};
use namewire_packet::{Data, Interest, InterestBuilder, NameBuf, Nonce};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const VECTORS: &str = include_str!("../../crates/packet/tests/test-vectors.json");
/// No input may make the router grow by more than this.
const GROWTH_MIB_MAX: u64 = 128;
/// Time until a counter shows in the status (workers report between batches).
const COUNTER_LIMIT: Duration = Duration::from_secs(3);
const HALF_OPEN: usize = 1_000;

struct Victim {
    router: RouterProcess,
    program: PathBuf,
    idle_kib: u64,
    _alone: MutexGuard<'static, ()>,
}

impl Victim {
    fn start() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        raise_descriptor_limit();
        let program = find_program(Path::new(env!("CARGO_BIN_EXE_namewire-lab"))).expect("the router is built");
        let router = RouterProcess::start(&program, 1, None).expect("the router starts");
        let idle_kib = resident_kib(router.id()).expect("it lives");
        Self { router, program, idle_kib, _alone: alone }
    }

    /// All drops so far, as the command line shows them.
    fn drops(&self) -> u64 {
        let output = Command::new(&self.program)
            .args(["status", "--json"])
            .env("NDN_CLIENT_TRANSPORT", format!("unix://{}", self.router.socket().display()))
            .output()
            .expect("namewire status runs");
        assert!(output.status.success(), "namewire status: {}", String::from_utf8_lossy(&output.stderr));
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("status --json prints JSON");
        let drops = find_key(&status, "drops").and_then(|drops| drops.as_object());
        let drops = drops.expect("status --json has the key `drops`");
        // Other effects of limits, for example Data that is not stored, are no drops.
        drops.iter().filter(|(reason, _)| !reason.starts_with("limit.")).filter_map(|(_, count)| count.as_u64()).sum()
    }

    /// True once the drops have grown by `by` since `before`.
    fn drops_grow(&self, before: u64, by: u64) -> bool {
        let deadline = Instant::now() + COUNTER_LIMIT;
        loop {
            if self.drops() >= before + by {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn udp(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(self.router.udp()).expect("an address");
        socket
    }

    fn unix(&self) -> UnixStream {
        UnixStream::connect(self.router.socket()).expect("the router accepts")
    }

    /// The end of every test: the router is alive, answers on both transports' sockets, and has not grown.
    fn assert_well(&mut self) {
        assert!(self.router.is_alive().expect("the process can be asked"), "the router died");
        let mut control = self.router.control().expect("the router accepts");
        control.status().expect("the router answers");
        let grown_kib = resident_kib_max(self.router.id()).expect("it lives").saturating_sub(self.idle_kib);
        assert!(grown_kib / 1024 < GROWTH_MIB_MAX, "the router grew by {grown_kib} KiB");
        let report = self.router.load(
            Command::new(env!("CARGO_BIN_EXE_namewire-lab")),
            None,
            namewire_lab::load::Transport::Udp,
            &["--count".to_owned(), "100".to_owned()],
        );
        assert!(report.as_ref().is_ok_and(namewire_lab::load::LoadReport::is_clean), "afterwards: {report:?}");
    }
}

fn find_key<'a>(value: &'a serde_json::Value, key: &str) -> Option<&'a serde_json::Value> {
    let object = value.as_object()?;
    object.get(key).or_else(|| object.values().find_map(|inner| find_key(inner, key)))
}

/// A thousand connections need a thousand descriptors, in this process and in the router, which inherits the limit.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(8_192).min(8_192);
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })
        .expect("the limit can be raised");
}

/// (id, bytes) of every vector whose expectation is not "accept".
fn bad_vectors() -> Vec<(String, Vec<u8>)> {
    let vectors: serde_json::Value = serde_json::from_str(VECTORS).expect("the vectors are JSON");
    let packets = vectors["packets"].as_array().expect("a list of packets");
    let bad: Vec<_> = packets
        .iter()
        .filter(|packet| packet["expect"] != "accept")
        .map(|packet| {
            let text = |key: &str| packet[key].as_str().expect("a text").to_owned();
            let hex = text("hex");
            let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"));
            (text("id"), bytes.collect())
        })
        .collect();
    assert!(bad.len() >= 60, "only {} bad vectors found", bad.len());
    bad
}

fn good_vectors() -> Vec<Vec<u8>> {
    let vectors: serde_json::Value = serde_json::from_str(VECTORS).expect("the vectors are JSON");
    let packets = vectors["packets"].as_array().expect("a list of packets");
    let good = packets.iter().filter(|packet| packet["expect"] == "accept");
    good.map(|packet| {
        let hex = packet["hex"].as_str().expect("a text");
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
    })
    .collect()
}

/// True if the bytes are no packet. A forwarder forwards packets that some applications would refuse (a wrong
/// parameters digest).
fn is_malformed(wire: &[u8]) -> bool {
    Interest::parse(wire).is_err() && Data::parse(wire).is_err() && LpPacket::parse(wire).is_err()
}

fn interest(name: NameBuf) -> Vec<u8> {
    InterestBuilder::new(name).nonce(Nonce([1, 2, 3, 4])).build()
}

fn send(udp: &UdpSocket, datagram: &[u8]) {
    match udp.send(datagram) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => panic!("the router listens no more: it died"),
        Err(error) => panic!("the datagram cannot be sent: {error}"),
    }
}

fn lp_packet(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write_nested(&mut out, types::LP_PACKET, |out| {
        fill(out);
        let packet = interest("/bad/input".parse().expect("a name"));
        write_tlv(out, types::LP_FRAGMENT, &packet);
    });
    out
}

#[test]
fn every_malformed_vector_is_counted() {
    let mut victim = Victim::start();
    let udp = victim.udp();
    let mut uncounted = Vec::new();
    for (id, bytes) in bad_vectors() {
        let before = victim.drops();
        send(&udp, &bytes);
        if is_malformed(&bytes) && !victim.drops_grow(before, 1) {
            uncounted.push(id);
        }
    }
    assert!(uncounted.is_empty(), "no counter moved for {uncounted:?}");
    // On a stream each breaks at most its own connection.
    for (_, bytes) in bad_vectors() {
        // The router may close a connection during a write.
        let _ = victim.unix().write_all(&bytes);
    }
    victim.assert_well();
}

#[test]
fn truncated_packets_are_counted() {
    let mut victim = Victim::start();
    let udp = victim.udp();
    let before = victim.drops();
    let mut sent = 0;
    for bytes in good_vectors() {
        for length in 1..bytes.len() {
            if is_malformed(&bytes[..length]) {
                send(&udp, &bytes[..length]);
                sent += 1;
                // Loopback loses datagrams that exceed the router's socket buffer, without counting them.
                if sent % 64 == 0 {
                    assert!(victim.drops_grow(before, sent), "{sent} sent, {} counted", victim.drops() - before);
                }
            }
        }
    }
    assert!(sent > 1_000, "only {sent} truncations");
    assert!(victim.drops_grow(before, sent), "{sent} sent, {} counted", victim.drops() - before);
    victim.assert_well();
}

#[test]
fn oversized_packets_are_counted() {
    let mut victim = Victim::start();
    let udp = victim.udp();
    let mut large = Vec::new();
    write_nested(&mut large, types::INTEREST, |out| {
        write_nested(out, types::NAME, |name| write_tlv(name, types::GENERIC_COMPONENT, &[b'x'; 9_100]));
        write_tlv(out, types::NONCE, &[1, 2, 3, 4]);
    });
    let before = victim.drops();
    send(&udp, &large);
    assert!(victim.drops_grow(before, 1), "an oversized datagram was not counted");
    // On a stream: an element that is too large, and elements with absurd lengths.
    for bytes in [
        large,
        vec![0x05, 0xFE, 0x7F, 0xFF, 0xFF, 0xFF, 0x07],
        vec![0x64, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
    ] {
        let before = victim.drops();
        let mut stream = victim.unix();
        let _ = stream.write_all(&bytes);
        assert!(victim.drops_grow(before, 1), "an oversized element on a stream was not counted: {:02X?}", &bytes[..6]);
    }
    victim.assert_well();
}

#[test]
fn absurd_fragments_are_counted_and_take_no_memory() {
    let mut victim = Victim::start();
    let udp = victim.udp();
    for (index, count) in [(0, 1 << 63), ((1 << 63) - 1, 1 << 63), (u64::MAX, u64::MAX), (5, 2), (0, 0)] {
        let before = victim.drops();
        let fragment = lp_packet(|out| {
            write_tlv(out, types::LP_SEQUENCE, &77u64.to_be_bytes());
            write_nni(out, types::LP_FRAG_INDEX, index);
            write_nni(out, types::LP_FRAG_COUNT, count);
        });
        send(&udp, &fragment);
        assert!(victim.drops_grow(before, 1), "fragment {index} of {count} was not counted");
    }
    // Ten thousand messages of which only the first fragment comes.
    let before = victim.drops();
    for message in 0..10_000u64 {
        let fragment = lp_packet(|out| {
            write_tlv(out, types::LP_SEQUENCE, &(message * 1_000).to_be_bytes());
            write_nni(out, types::LP_FRAG_INDEX, 0);
            write_nni(out, types::LP_FRAG_COUNT, 400);
            write_tlv(out, types::LP_CONGESTION_MARK, &[0]);
        });
        send(&udp, &fragment);
        if message % 64 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(victim.drops_grow(before, 1), "no unfinished message was ever given up");
    victim.assert_well();
}

#[test]
fn tokens_of_no_and_of_33_bytes_are_counted() {
    let mut victim = Victim::start();
    let udp = victim.udp();
    for bytes in [0, 33] {
        let before = victim.drops();
        send(&udp, &lp_packet(|out| write_tlv(out, types::LP_PIT_TOKEN, &vec![7; bytes])));
        assert!(victim.drops_grow(before, 1), "a token of {bytes} bytes was not counted");
    }
    victim.assert_well();
}

#[test]
fn names_of_8000_bytes_are_counted() {
    let mut victim = Victim::start();
    let udp = victim.udp();
    let mut one = NameBuf::default();
    one.push_generic(&[b'x'; 7_996]);
    let mut many = NameBuf::default();
    for _ in 0..4_000 {
        many.push_generic(b"");
    }
    assert_eq!((one.value().len(), many.value().len()), (8_000, 8_000));
    for name in [one, many] {
        let components = name.len();
        let (drops, interests) = (victim.drops(), incoming_interests(&victim));
        for _ in 0..100 {
            send(&udp, &interest(name.clone()));
        }
        // These are legal packets: a limit refuses them, or they are Interests like any others. Each look at the
        // counters is an Interest too.
        let deadline = Instant::now() + COUNTER_LIMIT;
        let mut looks = 1;
        while victim.drops() == drops && incoming_interests(&victim) < interests + 100 {
            assert!(Instant::now() < deadline, "no counter moved for a name of {components} components");
            looks += 2;
            assert!(looks < 100, "the looks themselves would count");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    victim.assert_well();
}

fn incoming_interests(victim: &Victim) -> u64 {
    let mut control = victim.router.control().expect("the router accepts");
    control.status().expect("the router answers").packets.in_interests
}

#[test]
fn a_thousand_half_open_connections_leave_room_for_others() {
    let mut victim = Victim::start();
    // The first bytes of an Interest without the rest.
    let half: Vec<UnixStream> = (0..HALF_OPEN)
        .map(|_| {
            let mut stream = victim.unix();
            let _ = stream.write_all(&[0x05, 0x20, 0x07]);
            stream
        })
        .collect();
    let faces = |victim: &Victim| {
        let mut control = victim.router.control().expect("the router accepts another");
        control.faces().expect("the router answers").len() as u64
    };
    // Either they are faces now, or a limit refused and counted them.
    let deadline = Instant::now() + COUNTER_LIMIT;
    while faces(&victim) + victim.drops() < HALF_OPEN as u64 {
        assert!(Instant::now() < deadline, "{} faces, {} drops", faces(&victim), victim.drops());
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(half);
    let deadline = Instant::now() + COUNTER_LIMIT;
    while faces(&victim) > 50 {
        assert!(Instant::now() < deadline, "{} faces of closed connections remain", faces(&victim));
        std::thread::sleep(Duration::from_millis(20));
    }
    victim.assert_well();
}

#[test]
fn a_peer_that_never_reads_is_dropped_for_and_kept() {
    let mut victim = Victim::start();
    let mut deaf = victim.unix();
    // The exact name of one stored segment, so that every Interest has an answer.
    let segment = stored_segment(&mut victim.unix());
    let before = victim.drops();
    deaf.set_nonblocking(true).expect("it can");
    let mut nonce = 0u32;
    let deadline = Instant::now() + Duration::from_secs(4);
    let mut unsent: Vec<u8> = Vec::new();
    while Instant::now() < deadline && nonce < 200_000 {
        if unsent.is_empty() {
            for _ in 0..64 {
                nonce += 1;
                unsent.extend(InterestBuilder::new(segment.clone()).nonce(Nonce(nonce.to_be_bytes())).build());
            }
        }
        match deaf.write(&unsent) {
            Ok(bytes) => drop(unsent.drain(..bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("a slow peer was cut off: {error}"),
        }
    }
    assert!(nonce > 5_000, "the router stopped reading after {nonce} Interests");
    assert!(victim.drops_grow(before, 1), "nothing was dropped for a peer that reads nothing");
    victim.assert_well();
    // It was only slow: when it reads at last, the queue contains whole packets.
    deaf.set_nonblocking(false).expect("it can");
    deaf.set_read_timeout(Some(Duration::from_secs(2))).expect("it can");
    let mut header = [0; 1];
    deaf.read_exact(&mut header).expect("the connection still exists");
    assert!(header[0] == 0x06 || header[0] == 0x64, "the stream starts with {header:02X?}");
}

/// Name of segment 0 of the general status, which the router keeps for later Interests.
fn stored_segment(stream: &mut UnixStream) -> NameBuf {
    let name: NameBuf = "/localhost/nfd/faces/list".parse().expect("a name");
    let request = InterestBuilder::new(name).can_be_prefix(true).must_be_fresh(true).nonce(Nonce([9; 4])).build();
    stream.write_all(&request).expect("it leaves");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("it can");
    let mut bytes = vec![0; 16 * 1024];
    let mut length = 0;
    loop {
        length += stream.read(&mut bytes[length..]).expect("an answer");
        if let Ok(element) = namewire_packet::tlv::read_element(&bytes[..length]) {
            let wire = if element.type_number == types::LP_PACKET {
                LpPacket::parse(element.wire).expect("a packet").fragment.expect("a fragment").to_vec()
            } else {
                element.wire.to_vec()
            };
            return Data::parse(&wire).expect("a Data").name().to_buf();
        }
    }
}
