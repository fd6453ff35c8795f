//! A worker for tests, with packets and peers for it.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use namewire_faces::{DriverConfig, FaceEvent, LinkDrop, RxArena, RxPacket, SocketDriver, StreamSocket, udp, unix};
use namewire_packet::{FaceId, MAX_PACKET_BYTES, lp::LpHeaders, tlv};

pub(crate) const MTU: usize = MAX_PACKET_BYTES;

/// How far one round advances a worker's clock.
pub(crate) const ROUND_NS: u64 = 20_000_000;

/// A driver with the buffers and the clock of a worker.
pub(crate) struct Worker {
    pub(crate) driver: SocketDriver,
    pub(crate) arena: RxArena,
    pub(crate) packets: Vec<RxPacket>,
    /// Virtual: a round takes [`ROUND_NS`], however busy this machine is.
    pub(crate) now_ns: u64,
}

impl Worker {
    pub(crate) fn new(config: DriverConfig) -> Self {
        Worker { driver: SocketDriver::new(config).unwrap(), arena: RxArena::default(), packets: Vec::new(), now_ns: 0 }
    }

    /// One round: waits a little, receives a batch of at most 64 packets (and those that the kernel has coalesced with
    /// them), flushes.
    pub(crate) fn round(&mut self) -> Vec<(FaceId, LpHeaders, Vec<u8>)> {
        self.now_ns += ROUND_NS;
        let now_ns = self.now_ns;
        self.driver.run_timers(now_ns);
        self.driver.wait(Some(Duration::from_millis(20))).unwrap();
        self.driver.receive(now_ns, &mut self.arena, &mut self.packets, 64);
        self.driver.flush();
        let is_stream =
            |packet: &RxPacket| self.driver.info(packet.face).is_some_and(|info| !info.remote.is_datagrams());
        assert!(self.packets.len() <= 64 || !self.packets.iter().all(is_stream));
        let lent: Vec<Vec<u8>> = self.arena.packets_mut(&self.packets).map(|bytes| bytes.to_vec()).collect();
        self.packets.iter().zip(lent).map(|(packet, bytes)| (packet.face, packet.headers, bytes)).collect()
    }

    /// Rounds until `count` packets were received.
    pub(crate) fn receive(&mut self, count: usize) -> Vec<(FaceId, LpHeaders, Vec<u8>)> {
        let mut received = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(10);
        while received.len() < count {
            assert!(Instant::now() < deadline, "{} of {count} packets", received.len());
            received.extend(self.round());
        }
        received
    }

    /// Rounds until a face has an event.
    pub(crate) fn event(&mut self) -> FaceEvent {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut events: Vec<FaceEvent>;
        loop {
            assert!(Instant::now() < deadline, "no event");
            self.round();
            events = self.driver.events().collect();
            if !events.is_empty() {
                break;
            }
        }
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    pub(crate) fn send(&mut self, face: FaceId, packet: &[u8]) -> Result<(), LinkDrop> {
        self.driver.send(self.now_ns, face, &LpHeaders::default(), packet)
    }

    /// Adds one end of a pair as an application face, returns the other.
    pub(crate) fn application(&mut self, face: FaceId) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let info = unix::face_info(&ours, Path::new("/run/nfd/nfd.sock"));
        self.driver.add_stream(face, StreamSocket::Unix(ours), info).unwrap();
        theirs.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        theirs
    }

    pub(crate) fn dropped(&self, face: FaceId, reason: LinkDrop) -> u64 {
        self.driver.counters(face).unwrap().dropped(reason)
    }
}

pub(crate) const A: FaceId = FaceId(300);
pub(crate) const B: FaceId = FaceId(301);

/// An element of this type whose value is `value_bytes` bytes that depend on `seed`.
pub(crate) fn element(type_number: u32, value_bytes: usize, seed: u64) -> Vec<u8> {
    let mut wire = Vec::new();
    let value: Vec<u8> = (0..value_bytes as u64).map(|i| (i * 7 + seed * 13) as u8).collect();
    tlv::write_tlv(&mut wire, type_number, &value);
    wire
}

/// An Interest of 32 bytes.
pub(crate) fn interest(seed: u64) -> Vec<u8> {
    let mut component = element(8, 20, seed);
    component[2..10].copy_from_slice(&seed.to_be_bytes());
    let value = [vec![7, 22], component, vec![10, 4, 1, 2, 3, 4]].concat();
    let mut wire = Vec::new();
    tlv::write_tlv(&mut wire, 5, &value);
    wire
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A UDP peer with a time-out.
pub(crate) fn peer() -> UdpSocket {
    let socket = UdpSocket::bind(loopback()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

/// A worker that listens, and its address.
pub(crate) fn udp_worker(config: DriverConfig) -> (Worker, SocketAddr) {
    let mut worker = Worker::new(config);
    let listener = udp::bind_listeners(loopback(), 1).unwrap().remove(0);
    let address = listener.local_addr().unwrap();
    worker.driver.add_udp_listener(listener).unwrap();
    (worker, address)
}

pub(crate) fn created(event: FaceEvent) -> FaceId {
    match event {
        FaceEvent::Created { face, .. } => face,
        other => panic!("{other:?}"),
    }
}
