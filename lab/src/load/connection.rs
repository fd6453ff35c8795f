//! Connects consumer and producer to the router (or to a relay), and checks that an Interest gets through before the
//! measurement.
//!
//! Over Unix sockets the producer registers its prefix with a signed command on its own face. A UDP face is never
//! local, so commands use the Unix socket: they create a face to the producer's socket and a route to that face. The
//! face is destroyed when the load ends.

use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use namewire_packet::{FaceId, Name, NameBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::exchange_packets::{ExchangePackets, Received};
use super::frame_port::FramePort;
use super::load_face::LoadFace;
use super::{LoadPlan, Transport};
use crate::router_control::RouterControl;

/// Limit for the path to come up: the router answers the command before it applies the route.
const PROBE_LIMIT: Duration = Duration::from_secs(5);
/// Time between two probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// Looks at shared memory between two looks at the clock.
const LOOKS_PER_CLOCK: u32 = 64;
/// First sequence number of the probes, above all others.
pub(super) const PROBE_BASE: u32 = 0xF000_0000;
/// An empty LpPacket: a relay takes its sender as the peer of that side.
pub(super) const HELLO: [u8; 2] = [0x64, 0];

/// Consumer and producer, connected and probed.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) consumer: LoadFace,
    pub(super) producer: LoadFace,
    pub(super) packets: ExchangePackets,
    /// The UDP or Ethernet face created for this load, and the connection that created it.
    made_face: Option<(RouterControl, FaceId)>,
}

impl Connection {
    /// Connects both sides as `plan` says.
    ///
    /// # Errors
    /// If the router cannot be reached, refuses, or passes no Interest within [`PROBE_LIMIT`].
    pub(super) fn open(plan: &LoadPlan, packets: ExchangePackets) -> anyhow::Result<Self> {
        let prefix = Name::parse_value(packets.prefix_value())?.to_buf();
        match (plan.transport, plan.relay) {
            (Transport::Unix, relay) => Self::open_unix(plan, packets, (!relay).then_some(prefix)),
            (Transport::Udp, false) => Self::open_udp(plan, packets, prefix),
            (Transport::Udp, true) => Self::open_udp_relay(plan, packets),
            (Transport::Memif, relay) => Self::open_memif(plan, packets, (!relay).then_some(prefix)),
            (Transport::Ethernet, relay) => Self::open_ethernet(plan, packets, (!relay).then_some(prefix)),
        }
    }

    /// Takes two connected faces.
    #[cfg(test)]
    pub(super) fn of_faces(consumer: LoadFace, producer: LoadFace, packets: ExchangePackets) -> Self {
        Self { consumer, producer, packets, made_face: None }
    }

    fn open_unix(plan: &LoadPlan, packets: ExchangePackets, prefix: Option<NameBuf>) -> anyhow::Result<Self> {
        let connect = || {
            UnixStream::connect(&plan.socket).with_context(|| format!("cannot connect to {}", plan.socket.display()))
        };
        let (consumer, producer) = (connect()?, connect()?);
        let producer = match prefix {
            Some(prefix) => {
                let mut control = RouterControl::over(producer);
                control.register(prefix, None)?;
                // Others may have asked for the prefix already.
                let (stream, read) = control.into_parts()?;
                LoadFace::stream_after(stream, &read)?
            }
            None => LoadFace::stream(producer)?,
        };
        let mut connection = Self { consumer: LoadFace::stream(consumer)?, producer, packets, made_face: None };
        connection.probe()?;
        Ok(connection)
    }

    fn open_udp(plan: &LoadPlan, mut packets: ExchangePackets, prefix: NameBuf) -> anyhow::Result<Self> {
        let router = plan.udp.context("--udp must say where the router listens")?;
        let mut control = RouterControl::connect(&plan.socket)
            .with_context(|| format!("cannot connect to {}", plan.socket.display()))?;
        let producer = UdpSocket::bind((plan.bind, 0))?;
        let face = control.create_face(&format!("udp4://{}", producer.local_addr()?), None)?;
        control.register(prefix, Some(face))?;
        let consumer = UdpSocket::bind((plan.bind, 0))?;
        consumer.connect(router)?;
        learn_peer(&producer, &consumer, &mut packets)?;
        let mut connection = Self {
            consumer: LoadFace::datagram(consumer)?,
            producer: LoadFace::datagram(producer)?,
            packets,
            made_face: Some((control, face)),
        };
        connection.probe()?;
        Ok(connection)
    }

    fn open_udp_relay(plan: &LoadPlan, packets: ExchangePackets) -> anyhow::Result<Self> {
        let connect = |relay| -> anyhow::Result<LoadFace> {
            let socket = UdpSocket::bind((plan.bind, 0))?;
            socket.connect(relay)?;
            socket.send(&HELLO)?;
            Ok(LoadFace::datagram(socket)?)
        };
        let consumer = connect(plan.udp.context("--udp must say where the relay listens")?)?;
        let producer = connect(plan.relay_producer.context("--relay-producer must say where the relay listens")?)?;
        let mut connection = Self { consumer, producer, packets, made_face: None };
        connection.probe()?;
        Ok(connection)
    }

    fn open_ethernet(plan: &LoadPlan, packets: ExchangePackets, prefix: Option<NameBuf>) -> anyhow::Result<Self> {
        let ([consumer, producer], [consumer_peer, producer_peer]) = (&plan.interfaces[..], &plan.stations[..]) else {
            bail!("Ethernet needs two --interfaces and two --stations");
        };
        let made_face = match (prefix, &plan.producer[..]) {
            (None, _) => None,
            (Some(prefix), [station, device]) => {
                let mut control = RouterControl::connect(&plan.socket)
                    .with_context(|| format!("cannot connect to {}", plan.socket.display()))?;
                let face = control.create_face(&format!("ether://[{station}]"), Some(&format!("dev://{device}")))?;
                control.register(prefix, Some(face))?;
                Some((control, face))
            }
            (Some(_), _) => bail!("--producer must say the station and the router's interface"),
        };
        let mut connection = Self {
            consumer: LoadFace::frames(FramePort::open(consumer, *consumer_peer)?),
            producer: LoadFace::frames(FramePort::open(producer, *producer_peer)?),
            packets,
            made_face,
        };
        connection.probe()?;
        Ok(connection)
    }

    /// Connects to the router's listener for shared memory, or to two devices of its own.
    fn open_memif(plan: &LoadPlan, packets: ExchangePackets, prefix: Option<NameBuf>) -> anyhow::Result<Self> {
        let [consumer_path, producer_path] = &plan.memif[..] else { bail!("memif needs two sockets in --memif") };
        let producer = FramePort::connect(producer_path)?;
        let made_face = match (prefix, &plan.producer[..]) {
            (None, _) => None,
            (Some(prefix), devices) => {
                let mut control = RouterControl::connect(&plan.socket)
                    .with_context(|| format!("cannot connect to {}", plan.socket.display()))?;
                let face = match devices {
                    [station, device] => {
                        control.create_face(&format!("ether://[{station}]"), Some(&format!("dev://{device}")))?
                    }
                    _ => newest_memif_face(&mut control)?,
                };
                control.register(prefix, Some(face))?;
                (devices.len() == 2).then_some((control, face))
            }
        };
        let consumer = FramePort::connect(consumer_path)?;
        let (consumer, producer) = (LoadFace::frames(consumer), LoadFace::frames(producer));
        let mut connection = Self { consumer, producer, packets, made_face };
        connection.probe()?;
        Ok(connection)
    }

    /// Sends Interests until a Data comes back.
    fn probe(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PROBE_LIMIT;
        let mut answered = false;
        for sequence in PROBE_BASE.. {
            ensure!(Instant::now() < deadline, "no Data came back within {PROBE_LIMIT:?}: does the route work?");
            self.consumer.outbox.push(|out| self.packets.write_interest(sequence, out));
            self.consumer.flush()?;
            let next = Instant::now() + PROBE_INTERVAL;
            while !answered && Instant::now() < next {
                let packets = &self.packets;
                wait_readable(&[&self.consumer, &self.producer], PROBE_INTERVAL)?;
                self.producer.receive(|wire, outbox| {
                    if let (Received::Interest(sequence), token) = packets.classify(wire) {
                        outbox.push(|out| packets.write_data(sequence, token, out));
                    }
                })?;
                self.producer.flush()?;
                self.consumer.receive(|wire, _| answered |= matches!(packets.classify(wire).0, Received::Data(_)))?;
            }
            if answered {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Removes what the load created in the router.
    ///
    /// # Errors
    /// If the router refuses.
    pub(super) fn close(&mut self) -> anyhow::Result<()> {
        match self.made_face.take() {
            Some((mut control, face)) => control.destroy_face(face),
            None => Ok(()),
        }
    }
}

/// The face of the last connection to the router's listener for shared memory.
fn newest_memif_face(control: &mut RouterControl) -> anyhow::Result<FaceId> {
    let deadline = Instant::now() + PROBE_LIMIT;
    loop {
        let faces = control.faces()?;
        let memif = faces.iter().filter(|face| face.local_uri.starts_with("memif:")).map(|face| face.face_id);
        if let Some(face) = memif.max() {
            return Ok(face);
        }
        ensure!(Instant::now() < deadline, "the router has no face to a memif connection");
        std::thread::sleep(PROBE_INTERVAL);
    }
}

/// The router may send from another port than the one it listens on: the producer answers the source of the first
/// Interest.
fn learn_peer(producer: &UdpSocket, consumer: &UdpSocket, packets: &mut ExchangePackets) -> anyhow::Result<()> {
    let deadline = Instant::now() + PROBE_LIMIT;
    producer.set_read_timeout(Some(PROBE_INTERVAL))?;
    for sequence in PROBE_BASE.. {
        let mut interest = Vec::new();
        packets.write_interest(sequence, &mut interest);
        match consumer.send(&interest) {
            Err(error) if error.kind() != std::io::ErrorKind::ConnectionRefused => return Err(error.into()),
            _ => {}
        }
        if let Ok((_, router)) = producer.peek_from(&mut [0; 1]) {
            producer.connect(router)?;
            break;
        }
        ensure!(Instant::now() < deadline, "no Interest reached the producer within {PROBE_LIMIT:?}");
    }
    Ok(())
}

/// Looks until one of `faces` has a frame, or has something to send for which there was no room.
fn look_for_frames<const N: usize>(faces: &[&LoadFace; N], limit: Duration) -> [bool; N] {
    let deadline = Instant::now() + limit;
    loop {
        for _ in 0..LOOKS_PER_CLOCK {
            let has_frames = faces.map(LoadFace::has_frames);
            if has_frames.contains(&true) || faces.iter().any(|face| !face.outbox.is_empty()) {
                return has_frames;
            }
            std::hint::spin_loop();
        }
        if Instant::now() >= deadline {
            return [false; N];
        }
    }
}

/// Waits until one of `faces` can be read, or can send what is waiting.
pub(crate) fn wait_readable<const N: usize>(faces: &[&LoadFace; N], limit: Duration) -> anyhow::Result<[bool; N]> {
    let interest_in = |face: &LoadFace| {
        if face.outbox.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
    };
    let descriptors = faces.map(|face| Some(PollFd::from_borrowed_fd(face.descriptor()?, interest_in(face))));
    if descriptors.iter().any(Option::is_none) {
        return Ok(look_for_frames(faces, limit));
    }
    let mut descriptors: Vec<PollFd<'_>> = descriptors.into_iter().flatten().collect();
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    match poll(&mut descriptors, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let readable =
        |descriptor: &PollFd<'_>| descriptor.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
    Ok(std::array::from_fn(|place| readable(&descriptors[place])))
}
