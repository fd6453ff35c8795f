//! Question: can bytes on any socket of a whole router make it panic, or keep it from answering its operator?
//!
//! Input: records {socket, two bytes of length, bytes}. Sockets are datagrams from a known and from a new port, streams
//! over Unix and TCP, and WebSocket listeners: before and after the handshake, as a binary message, and as TLS. Each
//! record of a stream is a connection. After the records, an application asks for the status and must get it.
//!
//! The router has one worker, small tables and a thread of its own for WebSocket. It lives as long as the process: an
//! input may depend on earlier ones. A finding that does not repeat alone needs the corpus in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_configuration::{Configuration, units::Bytes};
use namewire_packet::{Data, InterestBuilder, NameBuf, Nonce, lp::LpPacket, nfd::FaceUri, tlv};
use namewire_router::{Router, RouterHandle};
use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    os::unix::net::UnixStream,
    sync::{Mutex, OnceLock},
    time::Duration,
};

/// More sockets would take long: the kernel makes and ends each.
const RECORDS_MAX: usize = 12;
/// The router answers in a millisecond. This is less than the time that an input may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long the server's side of a WebSocket handshake may take.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(2);
const HANDSHAKE: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// The router under test, and the sockets that outlive an input.
struct Bench {
    router: RouterHandle,
    port: UdpSocket,
    operator: UnixStream,
    received: Vec<u8>,
    nonce: u32,
    connections: u16,
}

impl Bench {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory").keep();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (certificate, key) = (directory.join("certificate.pem"), directory.join("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).expect("a file");
        std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
        let any_port = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mut configuration = Configuration::default();
        let settings = &mut configuration.settings;
        (settings.router.workers, settings.router.seed) = (1, Some(1));
        settings.cs.capacity = Some(Bytes(1 << 20));
        settings.tables.pit_capacity = 256;
        let faces = &mut settings.faces;
        faces.max_per_worker = 64;
        faces.unix.path = Some(directory.join("nfd.sock"));
        (faces.tcp.listen, faces.udp.listen) = (Some(vec![any_port]), Some(vec![any_port]));
        let websocket = &mut faces.websocket;
        websocket.enabled = true;
        (websocket.listen, websocket.listen_tls) = (vec![any_port], vec![any_port]);
        (websocket.certificate, websocket.key) = (Some(certificate), Some(key));
        let router = Router::start(&configuration).expect("a router");
        let port = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let operator = UnixStream::connect(router.socket().expect("a socket")).expect("a connection");
        operator.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Bench { router, port, operator, received: Vec::new(), nonce: 0, connections: 0 }
    }

    /// Another loopback address for each connection, because ends of closed ones keep their ports for a minute.
    fn connect(&mut self, port: u16) -> Option<TcpStream> {
        self.connections = self.connections.wrapping_add(1);
        let [high, low] = self.connections.to_be_bytes();
        let stream = TcpStream::connect((Ipv4Addr::new(127, 1, high, low), port)).ok()?;
        stream.set_read_timeout(Some(HANDSHAKE_PATIENCE)).ok()?;
        stream.set_write_timeout(Some(HANDSHAKE_PATIENCE)).ok()?;
        Some(stream)
    }

    /// A socket that the router closes or refuses is no finding.
    fn send(&mut self, socket: u8, bytes: &[u8]) -> Option<()> {
        let (udp, tcp) = (self.router.udp()[0].port(), self.router.tcp()[0].port());
        match socket % 8 {
            0 => drop(self.port.send_to(bytes, (Ipv4Addr::LOCALHOST, udp))),
            1 => drop(UdpSocket::bind("127.0.0.1:0").ok()?.send_to(bytes, (Ipv4Addr::LOCALHOST, udp))),
            2 => self.connect(tcp)?.write_all(bytes).ok()?,
            3 => UnixStream::connect(self.router.socket()?).ok()?.write_all(bytes).ok()?,
            4 => self.connect(websocket_port(&self.router, false))?.write_all(bytes).ok()?,
            5 => self.shaken_hands()?.write_all(bytes).ok()?,
            6 => self.shaken_hands()?.write_all(&binary_message(bytes)).ok()?,
            _ => self.connect(websocket_port(&self.router, true))?.write_all(bytes).ok()?,
        }
        Some(())
    }

    /// A WebSocket connection.
    fn shaken_hands(&mut self) -> Option<TcpStream> {
        let mut stream = self.connect(websocket_port(&self.router, false))?;
        stream.write_all(HANDSHAKE).ok()?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            answer.push(byte[0]);
        }
        Some(stream)
    }

    fn ask_for_status(&mut self) {
        self.nonce += 1;
        let name: NameBuf = "/localhost/nfd/status/general".parse().expect("a name");
        let interest = InterestBuilder::new(name).can_be_prefix(true).must_be_fresh(true);
        let interest = interest.nonce(Nonce::from_u32(self.nonce)).build();
        self.operator.write_all(&interest).expect("the operator's connection stays");
        loop {
            if let Ok(Some(size)) = tlv::element_size(&self.received)
                && size <= self.received.len()
            {
                let element: Vec<u8> = self.received.drain(..size).collect();
                let packet = LpPacket::parse(&element).ok().and_then(|packet| packet.fragment).unwrap_or(&element);
                let data = Data::parse(packet).expect("nothing but Data comes to the operator");
                return assert!(data.name().to_string().starts_with("/localhost/nfd/status/general/"));
            }
            let mut bytes = [0; 9000];
            let count = match self.operator.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue, // by the fuzzer's alarm
                count => count.expect("the status in time"),
            };
            assert!(count > 0, "the router closed the operator's connection");
            self.received.extend_from_slice(&bytes[..count]);
        }
    }
}

fn websocket_port(router: &RouterHandle, is_secure: bool) -> u16 {
    let ports = router.websocket().iter().map(|uri| match uri {
        FaceUri::WebSocket(address) => (false, address.port()),
        FaceUri::WebSocketUrl(url) => (url.is_secure, url.port),
        other => panic!("{other}"),
    });
    ports.into_iter().find(|(secure, _)| *secure == is_secure).expect("a listener").1
}

/// A client's frame (RFC 6455 §5.2), with a mask of zeros.
fn binary_message(bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x82, 0x80 | 126];
    frame.extend((bytes.len() as u16).to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(bytes);
    frame
}

fuzz_target!(|input: &[u8]| {
    static BENCH: OnceLock<Mutex<Bench>> = OnceLock::new();
    let mut bench = BENCH.get_or_init(|| Mutex::new(Bench::start())).lock().expect("no finding yet");
    let mut rest = input;
    for _ in 0..RECORDS_MAX {
        let Some((&[socket, high, low], tail)) = rest.split_first_chunk::<3>() else { break };
        let (bytes, tail) = tail.split_at(usize::from(u16::from_be_bytes([high, low])).min(tail.len()));
        rest = tail;
        bench.send(socket, bytes);
    }
    bench.ask_for_status();
});
