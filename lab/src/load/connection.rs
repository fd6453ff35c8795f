//! Joins the consumer and the producer to the router (or to a relay) and makes
//! sure that an Interest gets through before anything is measured.
//!
//! Over Unix sockets the producer registers its prefix with a signed command on
//! its own face. Over UDP, which is never local, commands go over the Unix socket:
//! a face to the producer's socket, then a route to that face; the face is
//! destroyed again when the load ends.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use namewire_packet::{FaceId, Name, NameBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::exchange_packets::{ExchangePackets, Received};
use super::load_face::LoadFace;
use super::{LoadPlan, Transport};
use crate::router_control::RouterControl;

/// How long the path may take to come up: the route is applied after the command's answer.
const PROBE_LIMIT: Duration = Duration::from_secs(5);
/// How often the path is tried.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// Sequence numbers of the probes, clear of all others.
const PROBE_BASE: u32 = 0xF000_0000;
/// An LpPacket without anything in it: tells a relay who is on which side.
pub(super) const HELLO: [u8; 2] = [0x64, 0];

/// Consumer and producer, joined and tried.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) consumer: LoadFace,
    pub(super) producer: LoadFace,
    pub(super) packets: ExchangePackets,
    /// The UDP face that was made for this load, and the connection that made it.
    made_face: Option<(RouterControl, FaceId)>,
}

impl Connection {
    /// Connects both sides as `plan` says.
    ///
    /// # Errors
    /// If the router cannot be reached, refuses, or lets no Interest through in [`PROBE_LIMIT`].
    pub(super) fn open(plan: &LoadPlan, packets: ExchangePackets) -> anyhow::Result<Self> {
        let prefix = Name::parse_value(packets.prefix_value())?.to_buf();
        match (plan.transport, plan.relay) {
            (Transport::Unix, relay) => Self::open_unix(plan, packets, (!relay).then_some(prefix)),
            (Transport::Udp, false) => Self::open_udp(plan, packets, prefix),
            (Transport::Udp, true) => Self::open_udp_relay(plan, packets),
        }
    }

    /// Two faces that are joined already.
    #[cfg(test)]
    pub(super) fn of_faces(consumer: LoadFace, producer: LoadFace, packets: ExchangePackets) -> Self {
        Self { consumer, producer, packets, made_face: None }
    }

    fn open_unix(plan: &LoadPlan, packets: ExchangePackets, prefix: Option<NameBuf>) -> anyhow::Result<Self> {
        let connect = || {
            UnixStream::connect(&plan.socket).with_context(|| format!("cannot connect to {}", plan.socket.display()))
        };
        let (consumer, mut producer) = (connect()?, connect()?);
        if let Some(prefix) = prefix {
            let mut control = RouterControl::over(producer);
            control.register(prefix, None)?;
            producer = control.into_stream()?;
        }
        let mut connection = Self {
            consumer: LoadFace::stream(consumer)?,
            producer: LoadFace::stream(producer)?,
            packets,
            made_face: None,
        };
        connection.probe()?;
        Ok(connection)
    }

    fn open_udp(plan: &LoadPlan, mut packets: ExchangePackets, prefix: NameBuf) -> anyhow::Result<Self> {
        let router = plan.udp.context("--udp must say where the router listens")?;
        let mut control = RouterControl::connect(&plan.socket)
            .with_context(|| format!("cannot connect to {}", plan.socket.display()))?;
        let producer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let face = control.create_face(&format!("udp4://{}", producer.local_addr()?))?;
        control.register(prefix, Some(face))?;
        let consumer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
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
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
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

    /// Takes back what the load made in the router.
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

/// The router may send from another port than the one it listens on: the producer
/// answers to wherever the first Interest comes from.
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

/// Waits until one of `faces` has something to read, or can write what waits.
pub(super) fn wait_readable(faces: &[&LoadFace; 2], limit: Duration) -> anyhow::Result<[bool; 2]> {
    let interest_in = |face: &LoadFace| {
        if face.outbox.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
    };
    let mut descriptors = faces.map(|face| PollFd::from_borrowed_fd(face.descriptor(), interest_in(face)));
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    match poll(&mut descriptors, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let readable =
        |descriptor: &PollFd<'_>| descriptor.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
    Ok([readable(&descriptors[0]), readable(&descriptors[1])])
}
