//! Applications, remote hosts and an operator that come and go.

use crate::{program, router_process::Router};
use namewire_client::next_signature_time_ms;
use namewire_packet::{
    Data, DataBuilder, Interest, InterestBuilder, NameBuf, Nonce, SignedInterestFields,
    lp::LpPacket,
    nfd::{ControlParameters, ControlResponse},
    tlv::element_size,
};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream, UdpSocket},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// Time between two deeds of one of them. Together they take a small part of a processor.
const PAUSE: Duration = Duration::from_millis(30);

/// How long an application waits for a packet: longer than anything takes here.
const WAIT: Duration = Duration::from_secs(20);

/// What was done since the last rest.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Interests of applications that were answered.
    pub(crate) answered: u64,
    /// Deeds of those who leave something behind.
    pub(crate) silent: u64,
    /// The operator's commands.
    pub(crate) commands: u64,
}

struct Place {
    ends: AtomicBool,
    answered: AtomicU64,
    silent: AtomicU64,
    commands: AtomicU64,
    socket: PathBuf,
    port: u16,
}

/// Running churn.
pub(crate) struct Churn {
    place: Arc<Place>,
    threads: Vec<JoinHandle<()>>,
}

impl Churn {
    pub(crate) fn start(router: &Router, port: u16, seed: u64) -> Churn {
        let zero = || AtomicU64::new(0);
        let (answered, silent, commands) = (zero(), zero(), zero());
        let ends = AtomicBool::new(false);
        let place = Arc::new(Place { ends, answered, silent, commands, socket: router.socket.clone(), port });
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        type Deed = fn(&Place, &mut fastrand::Rng);
        for (number, deed) in [exchange as Deed, leave_behind, command].into_iter().enumerate() {
            let place = Arc::clone(&place);
            let mut random = fastrand::Rng::with_seed(seed << 8 | number as u64);
            threads.push(std::thread::spawn(move || {
                while !place.ends.load(Ordering::Relaxed) {
                    deed(&place, &mut random);
                    std::thread::sleep(PAUSE);
                }
            }));
        }
        Churn { place, threads }
    }

    pub(crate) fn stop(self) -> Tally {
        self.place.ends.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("no panic in the churn");
        }
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Place { answered, silent, commands, .. } = &*self.place;
        Tally { answered: count(answered), silent: count(silent), commands: count(commands) }
    }
}

impl Place {
    fn udp(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.address()).unwrap();
        socket
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    fn unix(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        stream
    }

    fn tool(&self, arguments: &[&str]) -> bool {
        let transport = format!("unix://{}", self.socket.display());
        let output = Command::new(program()).args(["--transport", &transport]).args(arguments).output().unwrap();
        output.status.success()
    }
}

fn interest(name: &str, random: &mut fastrand::Rng, lifetime_ms: u64) -> InterestBuilder {
    let name: NameBuf = name.parse().unwrap();
    InterestBuilder::new(name).nonce(Nonce::from_u32(random.u32(..))).lifetime_ms(lifetime_ms)
}

/// A producer registers a prefix, and a consumer fetches some Data by any of the transports. Both go.
fn exchange(place: &Place, random: &mut fastrand::Rng) {
    let prefix = format!("/soak/{}", random.u64(..));
    let mut producer = place.unix();
    register(&mut producer, &prefix);
    let count = random.usize(1..40);
    let size = random.usize(1..8_000);
    let serve = std::thread::spawn(move || {
        for _ in 0..count {
            let element = read_element(|bytes| producer.read(bytes));
            let asked = LpPacket::parse(&element).ok().and_then(|packet| packet.fragment).unwrap_or(&element);
            let name = Interest::parse(asked).unwrap().name().to_owned();
            let data = DataBuilder::new(name).freshness_ms(1_000).content(&vec![7; size]).sign_digest();
            producer.write_all(&data).unwrap();
        }
    });
    let mut exchange_over = |send: &mut dyn FnMut(&[u8]), receive: &mut dyn FnMut() -> Vec<u8>| {
        for number in 0..count {
            send(&interest(&format!("{prefix}/{number}"), random, 4_000).build());
            receive();
            place.answered.fetch_add(1, Ordering::Relaxed);
        }
    };
    match size % 3 {
        0 => {
            let mut stream = TcpStream::connect(place.address()).unwrap();
            stream.set_read_timeout(Some(WAIT)).unwrap();
            let mut reader = stream.try_clone().unwrap();
            exchange_over(&mut |packet| stream.write_all(packet).unwrap(), &mut || {
                read_element(|bytes| reader.read(bytes))
            });
        }
        1 => {
            let socket = place.udp();
            socket.set_read_timeout(Some(WAIT)).unwrap();
            exchange_over(
                &mut |packet| {
                    socket.send(packet).unwrap();
                },
                &mut || {
                    let mut bytes = [0; 9_000];
                    let length = socket.recv(&mut bytes).expect("an answer");
                    bytes[..length].to_vec()
                },
            );
        }
        _ => {
            let mut stream = place.unix();
            let mut reader = stream.try_clone().unwrap();
            exchange_over(&mut |packet| stream.write_all(packet).unwrap(), &mut || {
                read_element(|bytes| reader.read(bytes))
            });
        }
    }
    serve.join().expect("the producer answered all");
}

/// Registers a prefix for the face of this connection.
fn register(producer: &mut UnixStream, prefix: &str) {
    let parameters = ControlParameters { name: Some(prefix.parse().unwrap()), ..ControlParameters::default() };
    let mut name: NameBuf = "/localhost/nfd/rib/register".parse().unwrap();
    name.push_generic(&parameters.to_wire());
    let time_ms = Some(next_signature_time_ms());
    let fields = SignedInterestFields { nonce: fastrand::u64(..).to_be_bytes().to_vec(), time_ms, seq_num: None };
    let command = InterestBuilder::new(name).nonce(Nonce::from_u32(fastrand::u32(..))).sign_digest(&fields);
    producer.write_all(&command).unwrap();
    let answer = read_element(|bytes| producer.read(bytes));
    let response = ControlResponse::decode(Data::parse(&answer).unwrap().content()).unwrap();
    assert_eq!(response.code, 200, "{}", response.text);
}

/// Somebody leaves something behind: half a packet, Interests that nobody answers, fragments, bytes.
fn leave_behind(place: &Place, random: &mut fastrand::Rng) {
    let unanswered = interest(&format!("/nobody/{}", random.u64(..)), random, 200).build();
    match random.u8(..6) {
        0 => drop(place.udp().send(&unanswered)),
        1 => {
            let mut stream = place.unix();
            let _ = stream.write_all(&[&unanswered[..], &unanswered[..unanswered.len() / 2]].concat());
        }
        2 => {
            let silent = TcpStream::connect(place.address());
            std::thread::sleep(PAUSE);
            drop(silent);
        }
        3 => {
            let socket = place.udp();
            for sequence in 0..4_u8 {
                // LpPacket: Sequence, FragIndex 0, FragCount 2, a Fragment of one byte.
                let _ = socket.send(&[100, 19, 81, 8, 0, 0, 0, 0, 0, 0, 0, sequence, 82, 1, 0, 83, 1, 2, 80, 1, 7]);
            }
        }
        4 => {
            let mut stream = place.unix();
            let bytes: Vec<u8> = (0..random.usize(1..300)).map(|_| random.u8(..)).collect();
            let _ = stream.write_all(&bytes);
        }
        _ => drop(place.udp().send(&[5, 0])),
    }
    place.silent.fetch_add(1, Ordering::Relaxed);
}

/// The operator makes and destroys; what was made is gone at the end.
fn command(place: &Place, random: &mut fastrand::Rng) {
    // None of the ports that applications get from the system: a face that is destroyed takes its Interests with it.
    let face = format!("udp4://127.0.0.1:{}", random.u16(10_000..30_000));
    let prefix = format!("/operator/{}", random.u64(..));
    let done = [
        place.tool(&["face", "create", &face]),
        place.tool(&["route", "add", &prefix, &face]),
        place.tool(&["strategy", "set", &prefix, "multicast"]),
        place.tool(&["cs", "erase", "/soak", "--count", "10"]),
        place.tool(&["strategy", "unset", &prefix]),
        place.tool(&["route", "remove", &prefix, &face]),
        place.tool(&["face", "destroy", &face]),
    ];
    place.commands.fetch_add(done.iter().filter(|&&done| done).count() as u64, Ordering::Relaxed);
}

/// The next element of a stream on which one must come.
fn read_element(mut read: impl FnMut(&mut [u8]) -> std::io::Result<usize>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut more = [0; 9_216];
    loop {
        if let Ok(Some(size)) = element_size(&bytes)
            && bytes.len() >= size
        {
            return bytes;
        }
        let length = read(&mut more).expect("a packet in time");
        assert!(length > 0, "the router closed the connection");
        bytes.extend_from_slice(&more[..length]);
    }
}
