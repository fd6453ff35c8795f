//! Connects consumer and producer to the router (or to a relay), and checks that an Interest gets through before the
//! measurement.
//!
//! Over Unix sockets the producer registers its prefix with a signed command on its own face. A UDP face is never
//! local, so commands use the Unix socket: they create a face to the producer's socket and a route to that face. The
//! face is destroyed when the load ends.

use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use namewire_load::exchange::{PROBE_BASE, PROBE_INTERVAL, PROBE_LIMIT};
use namewire_load::{Exchange, ExchangePackets, FramePort, Link};
use namewire_packet::{FaceId, Name, NameBuf};

use super::{LoadPlan, Transport};
use crate::router_control::RouterControl;

/// An empty LpPacket: a relay takes its sender as the peer of that side.
pub(super) const HELLO: [u8; 2] = [0x64, 0];

/// Consumer and producer, connected and probed.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) links: Exchange,
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

    /// Waits until Interests get through.
    fn probed(
        consumer: Link,
        producer: Link,
        packets: ExchangePackets,
        made_face: Option<(RouterControl, FaceId)>,
    ) -> anyhow::Result<Self> {
        let mut links = Exchange { consumer, producer, packets };
        links.probe()?;
        Ok(Self { links, made_face })
    }

    fn open_unix(plan: &LoadPlan, packets: ExchangePackets, prefix: Option<NameBuf>) -> anyhow::Result<Self> {
        let connect =
            |path: &Path| UnixStream::connect(path).with_context(|| format!("cannot connect to {}", path.display()));
        let producer = plan.producer_socket.as_ref().unwrap_or(&plan.socket);
        let (consumer, producer) = (connect(&plan.socket)?, connect(producer)?);
        let producer = match prefix {
            Some(prefix) => {
                let mut control = RouterControl::over(producer);
                control.register(prefix, None)?;
                // Others may have asked for the prefix already.
                let (stream, read) = control.into_parts()?;
                Link::stream_after(stream, &read)?
            }
            None => Link::stream(producer)?,
        };
        Self::probed(Link::stream(consumer)?, producer, packets, None)
    }

    fn open_udp(plan: &LoadPlan, mut packets: ExchangePackets, prefix: NameBuf) -> anyhow::Result<Self> {
        let router = plan.udp.context("--udp must say where the router listens")?;
        let mut control = control(plan)?;
        let producer = UdpSocket::bind((plan.bind, 0))?;
        let face = control.create_face(&format!("udp4://{}", producer.local_addr()?), None)?;
        control.register(prefix, Some(face))?;
        let consumer = UdpSocket::bind((plan.bind, 0))?;
        consumer.connect(router)?;
        learn_peer(&producer, &consumer, &mut packets)?;
        Self::probed(Link::datagrams(consumer)?, Link::datagrams(producer)?, packets, Some((control, face)))
    }

    fn open_udp_relay(plan: &LoadPlan, packets: ExchangePackets) -> anyhow::Result<Self> {
        let connect = |relay| -> anyhow::Result<Link> {
            let socket = UdpSocket::bind((plan.bind, 0))?;
            socket.connect(relay)?;
            socket.send(&HELLO)?;
            Ok(Link::datagrams(socket)?)
        };
        let consumer = connect(plan.udp.context("--udp must say where the relay listens")?)?;
        let producer = connect(plan.relay_producer.context("--relay-producer must say where the relay listens")?)?;
        Self::probed(consumer, producer, packets, None)
    }

    fn open_ethernet(plan: &LoadPlan, packets: ExchangePackets, prefix: Option<NameBuf>) -> anyhow::Result<Self> {
        let ([consumer, producer], [consumer_peer, producer_peer]) = (&plan.interfaces[..], &plan.stations[..]) else {
            bail!("Ethernet needs two --interfaces and two --stations");
        };
        let made_face = match (prefix, &plan.producer[..]) {
            (None, _) => None,
            (Some(prefix), [station, device]) => {
                let mut control = control(plan)?;
                let face = control.create_face(&format!("ether://[{station}]"), Some(&format!("dev://{device}")))?;
                control.register(prefix, Some(face))?;
                Some((control, face))
            }
            (Some(_), _) => bail!("--producer must say the station and the router's interface"),
        };
        let consumer = FramePort::open(consumer, *consumer_peer)?;
        let producer = FramePort::open(producer, *producer_peer)?;
        Self::probed(Link::frames(consumer), Link::frames(producer), packets, made_face)
    }

    /// Connects to the router's listener for shared memory, or to two devices of its own.
    fn open_memif(plan: &LoadPlan, packets: ExchangePackets, prefix: Option<NameBuf>) -> anyhow::Result<Self> {
        let [consumer_path, producer_path] = &plan.memif[..] else { bail!("memif needs two sockets in --memif") };
        let connect = |path: &Path| {
            FramePort::connect(path, "namewire").with_context(|| format!("memif does not work at {}", path.display()))
        };
        let producer = connect(producer_path)?;
        let made_face = match (prefix, &plan.producer[..]) {
            (None, _) => None,
            (Some(prefix), devices) => {
                let mut control = control(plan)?;
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
        Self::probed(Link::frames(connect(consumer_path)?), Link::frames(producer), packets, made_face)
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

fn control(plan: &LoadPlan) -> anyhow::Result<RouterControl> {
    RouterControl::connect(&plan.socket).with_context(|| format!("cannot connect to {}", plan.socket.display()))
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
