//! An application as the router sees it: a blocking Unix or TCP connection that sends packets, gives commands and reads
//! datasets.

#![allow(dead_code)] // each test file uses its part

use namewire_configuration::{Configuration, Settings};
use namewire_packet::{
    Data, DataBuilder, FaceId, Interest, InterestBuilder, NameBuf, Nonce, SignedInterestFields,
    lp::{LinkFields, LpHeaders, LpPacket, write_headers},
    nfd::{
        ControlParameters, ControlResponse, DatasetEntry, DropCounter, FaceEventNotification, FaceStatus,
        ForwarderStatus, decode_dataset, face_flags,
    },
    tlv,
};
use namewire_router::{Router, RouterHandle};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

/// How long a test waits for an expected packet. It is long, so that no test fails on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    Memory(Box<Memory>),
}

/// Memory that the application shares with the router.
struct Memory {
    port: namewire_memif::Port,
    header: [u8; FRAME_HEADER_BYTES],
    patience: std::cell::Cell<Duration>,
}

/// Two addresses and the type of a frame.
const FRAME_HEADER_BYTES: usize = 14;

impl Memory {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut frame = [0; 9_216];
        let mut bytes = 0;
        while bytes == 0 {
            self.port.receive(1, |received| bytes = received.copy_to(&mut frame));
            if bytes == 0 && !self.port.unmask_interrupts() {
                let doorbell = PollFd::from_borrowed_fd(self.port.doorbell(), PollFlags::IN);
                let control = PollFd::from_borrowed_fd(self.port.control(), PollFlags::IN);
                let patience = Timespec::try_from(self.patience.get()).unwrap();
                if poll(&mut [doorbell, control], Some(&patience))? == 0 {
                    return Err(std::io::ErrorKind::WouldBlock.into());
                }
                self.port.clear_doorbell();
                self.port.check_peer()?;
            }
        }
        let packet = &frame[FRAME_HEADER_BYTES..bytes];
        let packet = &packet[..tlv::element_size(packet).unwrap().unwrap()]; // the rest is padding
        buffer[..packet.len()].copy_from_slice(packet);
        Ok(packet.len())
    }

    /// Each call is one frame.
    fn write_all(&mut self, packet: &[u8]) -> std::io::Result<()> {
        while !self.port.send(&[&self.header, packet]) {
            self.port.check_peer()?;
            std::thread::yield_now();
        }
        self.port.flush()
    }
}

impl Socket {
    fn set_read_timeout(&self, timeout: Duration) {
        let set = match self {
            Socket::Unix(socket) => socket.set_read_timeout(Some(timeout)),
            Socket::Tcp(socket) => socket.set_read_timeout(Some(timeout)),
            Socket::Memory(memory) => {
                memory.patience.set(timeout);
                Ok(())
            }
        };
        set.unwrap();
    }

    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Socket::Unix(socket) => socket.read(buffer),
            Socket::Tcp(socket) => socket.read(buffer),
            Socket::Memory(memory) => memory.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Socket::Unix(socket) => socket.write_all(bytes),
            Socket::Tcp(socket) => socket.write_all(bytes),
            Socket::Memory(memory) => memory.write_all(bytes),
        }
    }
}

/// One connection.
pub(crate) struct Application {
    socket: Socket,
    buffer: Vec<u8>,
    nonce: u32,
}

/// A packet as it arrived: link headers, and the Interest or Data.
pub(crate) struct Packet {
    pub(crate) headers: LpHeaders,
    pub(crate) bytes: Vec<u8>,
}

impl Packet {
    pub(crate) fn data(&self) -> Data<'_> {
        Data::parse(&self.bytes).expect("Data")
    }

    pub(crate) fn interest(&self) -> Interest<'_> {
        Interest::parse(&self.bytes).expect("an Interest")
    }
}

impl Application {
    pub(crate) fn connect(router: &RouterHandle) -> Application {
        Application::over(Socket::Unix(UnixStream::connect(router.socket().expect("a socket")).unwrap()))
    }

    /// Connects from inside the router's process.
    pub(crate) fn connect_inside(router: &RouterHandle) -> Application {
        Application::over(Socket::Unix(router.connect().unwrap()))
    }

    pub(crate) fn connect_tcp(address: SocketAddr) -> Application {
        Application::over(Socket::Tcp(TcpStream::connect(address).unwrap()))
    }

    /// Shares memory with the router that listens at `path`. The router does not look at the frames' addresses.
    pub(crate) fn connect_memory(path: &Path) -> Application {
        Application::connect_station(path, [0; 6], [0; 6])
    }

    /// Becomes the station `own` at the device of this socket, and sends to the station `to`.
    pub(crate) fn connect_station(path: &Path, own: [u8; 6], to: [u8; 6]) -> Application {
        let mut header = [0; FRAME_HEADER_BYTES];
        header[..6].copy_from_slice(&to);
        header[6..12].copy_from_slice(&own);
        header[12..].copy_from_slice(&[0x86, 0x24]);
        let port = namewire_memif::connect(path, &namewire_memif::ClientOptions::default(), PATIENCE).unwrap();
        let patience = std::cell::Cell::new(PATIENCE);
        Application::over(Socket::Memory(Box::new(Memory { port, header, patience })))
    }

    /// Sends a frame as it is, by shared memory.
    pub(crate) fn send_frame(&mut self, frame: &[u8]) {
        let Socket::Memory(memory) = &mut self.socket else { panic!("no shared memory") };
        assert!(memory.port.send(&[frame]), "no room");
        memory.port.flush().unwrap();
    }

    fn over(socket: Socket) -> Application {
        Application { socket, buffer: Vec::new(), nonce: fastrand::u32(..) }
    }

    /// Another handle on the same Unix connection, to write while this one reads.
    pub(crate) fn split(&self) -> Application {
        match &self.socket {
            Socket::Unix(socket) => Application::over(Socket::Unix(socket.try_clone().unwrap())),
            Socket::Tcp(socket) => Application::over(Socket::Tcp(socket.try_clone().unwrap())),
            Socket::Memory(_) => panic!("a port has one owner"),
        }
    }

    /// Takes over an accepted connection.
    pub(crate) fn from_tcp(socket: TcpStream) -> Application {
        Application::over(Socket::Tcp(socket))
    }

    pub(crate) fn send(&mut self, packet: &[u8]) {
        self.socket.write_all(packet).unwrap();
    }

    /// Sends as much as the router takes; false once it takes no more.
    pub(crate) fn try_send(&mut self, packet: &[u8]) -> bool {
        self.socket.write_all(packet).is_ok()
    }

    pub(crate) fn send_with(&mut self, headers: &LpHeaders, packet: &[u8]) {
        let mut frame = Vec::new();
        write_headers(&mut frame, headers, &LinkFields::default(), packet.len());
        frame.extend_from_slice(packet);
        self.send(&frame);
    }

    /// The next packet, or `None` if none comes in time or the router hangs up.
    pub(crate) fn receive_within(&mut self, patience: Duration) -> Option<Packet> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(size) = tlv::element_size(&self.buffer).unwrap()
                && self.buffer.len() >= size
            {
                let wire: Vec<u8> = self.buffer.drain(..size).collect();
                return Some(match LpPacket::parse(&wire) {
                    Ok(lp) => Packet { headers: lp.headers, bytes: lp.fragment.expect("a fragment").to_vec() },
                    Err(_) => Packet { headers: LpHeaders::default(), bytes: wire },
                });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.socket.set_read_timeout(left);
            let mut chunk = [0; 65536];
            match self.socket.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(size) => self.buffer.extend_from_slice(&chunk[..size]),
            }
        }
    }

    pub(crate) fn receive(&mut self) -> Option<Packet> {
        self.receive_within(PATIENCE)
    }

    pub(crate) fn interest(&mut self, name: impl Into<NameBuf>) -> InterestBuilder {
        self.nonce = self.nonce.wrapping_add(1);
        InterestBuilder::new(name).nonce(Nonce::from_u32(self.nonce))
    }

    /// Asks for `uri` and waits for what comes back.
    pub(crate) fn express(&mut self, uri: &str) -> Option<Packet> {
        let interest = self.interest(name(uri)).build();
        self.send(&interest);
        self.receive()
    }

    pub(crate) fn command_packet(&mut self, verb: &str, parameters: &ControlParameters) -> Vec<u8> {
        let mut command = name("/localhost/nfd");
        command.append(name(verb).as_name()).push_generic(&parameters.to_wire());
        self.nonce = self.nonce.wrapping_add(1);
        let unix_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
        let fields =
            SignedInterestFields { nonce: self.nonce.to_be_bytes().to_vec(), time_ms: Some(unix_ms), seq_num: None };
        InterestBuilder::new(command).nonce(Nonce::from_u32(self.nonce)).lifetime_ms(20_000).sign_digest(&fields)
    }

    pub(crate) fn command(&mut self, verb: &str, parameters: ControlParameters) -> ControlResponse {
        let command = self.command_packet(verb, &parameters);
        self.send(&command);
        let reply = self.receive_within(Duration::from_secs(12)).unwrap_or_else(|| panic!("no reply to {verb}"));
        ControlResponse::decode(reply.data().content()).unwrap()
    }

    /// A command that must succeed.
    pub(crate) fn succeed(&mut self, verb: &str, parameters: ControlParameters) -> ControlParameters {
        let response = self.command(verb, parameters);
        assert_eq!((response.code, response.text.as_str()), (200, "OK"), "{verb}");
        response.body.expect("a body")
    }

    /// Registers `prefix` for this connection; returns the face's id.
    pub(crate) fn register(&mut self, prefix: &str) -> FaceId {
        let parameters = ControlParameters { name: Some(name(prefix)), ..Default::default() };
        self.succeed("/rib/register", parameters).face_id.unwrap()
    }

    pub(crate) fn turn_on_local_fields(&mut self) -> FaceId {
        let flags = Some(face_flags::LOCAL_FIELDS);
        let body = self.succeed("/faces/update", ControlParameters { flags, mask: flags, ..Default::default() });
        body.face_id.unwrap()
    }

    /// All entries of `/localhost/nfd` and `dataset`.
    pub(crate) fn dataset<T: DatasetEntry>(&mut self, dataset: &str) -> Vec<T> {
        decode_dataset(&self.dataset_bytes(dataset)).unwrap()
    }

    /// The general status.
    pub(crate) fn status(&mut self) -> ForwarderStatus {
        ForwarderStatus::decode(&self.dataset_bytes("/status/general")).unwrap()
    }

    /// `/localhost/nfd` and `dataset`, fetched segment by segment.
    fn dataset_bytes(&mut self, dataset: &str) -> Vec<u8> {
        let mut asked = name("/localhost/nfd");
        asked.append(name(dataset).as_name());
        let mut content = Vec::new();
        let mut interest = self.interest(asked).can_be_prefix(true).must_be_fresh(true).build();
        for segment in 1.. {
            self.send(&interest);
            let reply = self.receive().unwrap_or_else(|| panic!("no segment {} of {dataset}", segment - 1));
            let data = reply.data();
            content.extend_from_slice(data.content());
            if data.final_block_id() == data.name().last() {
                break;
            }
            let mut next = data.name().parent().to_buf();
            next.push_segment(segment);
            interest = self.interest(next).build();
        }
        content
    }

    /// All faces but the forwarder's own.
    pub(crate) fn faces(&mut self) -> Vec<FaceStatus> {
        let mut faces: Vec<FaceStatus> = self.dataset("/faces/list");
        faces.retain(|face| face.face_id >= FaceId::FIRST_DYNAMIC);
        faces
    }

    /// The face event of this number (waits for it), or the latest event; with its number.
    pub(crate) fn next_event(&mut self, number: Option<u64>) -> (u64, FaceEventNotification) {
        let mut asked = name("/localhost/nfd/faces/events");
        if let Some(number) = number {
            asked.push_typed_nni(tlv::types::SEQUENCE_NUM_COMPONENT, number);
        }
        let interest = self.interest(asked).can_be_prefix(number.is_none()).must_be_fresh(number.is_none());
        self.send(&interest.lifetime_ms(60_000).build());
        let reply = self.receive_within(Duration::from_secs(60)).expect("an event");
        let data = reply.data();
        let number = data.name().last().and_then(|last| last.as_nni()).expect("a number");
        (number, FaceEventNotification::decode(data.content()).unwrap())
    }

    /// How often packets were dropped for `reason`.
    pub(crate) fn drops(&mut self, reason: &str) -> u64 {
        let drops: Vec<DropCounter> = self.dataset("/status/drops");
        drops.iter().find(|drop| drop.reason == reason).map_or(0, |drop| drop.count)
    }

    /// Answers every Interest with `content` until none has come for `patience`.
    pub(crate) fn serve_for(&mut self, patience: Duration, content: &[u8]) {
        while let Some(packet) = self.receive_within(patience) {
            self.answer(&packet, content);
        }
    }

    pub(crate) fn answer(&mut self, packet: &Packet, content: &[u8]) {
        let data = DataBuilder::new(packet.interest().name()).content(content).freshness_ms(1000).sign_digest();
        let token = LpHeaders { pit_token: packet.headers.pit_token, ..LpHeaders::default() };
        if token.is_empty() { self.send(&data) } else { self.send_with(&token, &data) }
    }

    /// Answers `count` Interests with `content`.
    pub(crate) fn serve(&mut self, count: usize, content: &[u8]) {
        for _ in 0..count {
            let packet = self.receive().expect("an Interest");
            self.answer(&packet, content);
        }
    }
}

pub(crate) fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

/// Asks until `condition` holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A router with a Unix socket, and a TCP and a UDP listener on loopback.
pub(crate) fn start(workers: usize) -> (RouterHandle, tempfile::TempDir) {
    start_with(workers, |_| ())
}

pub(crate) fn start_with(workers: usize, change: impl FnOnce(&mut Configuration)) -> (RouterHandle, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let any_port: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut config = Configuration::default();
    let Settings { router, faces, .. } = &mut config.settings;
    (router.workers, router.seed) = (workers as u16, Some(workers as u64));
    faces.unix.path = Some(directory.path().join("nfd.sock"));
    (faces.tcp.listen, faces.udp.listen) = (Some(vec![any_port]), Some(vec![any_port]));
    change(&mut config);
    (Router::start(&config).unwrap(), directory)
}
