//! Bulk insertion: Data packets over a TCP connection, back to back.
//!
//! The protocol of repo-ng and ndn-python-repo has no acknowledgement. Here the end of the connection serves as one.
//! When the client has closed its direction, the repository stores every complete Data, and then closes its own
//! direction. If an element is not Data, or the store or the trust schema refuses it, the repository stores what came
//! before this element, and then resets the connection. So a client that sees an orderly end knows that all its Data is
//! stored.
//!
//! While the writer's queue is full, the repository does not read from the connection, and TCP slows the client.
//!
//! Source: repo-protocol §2, §6. Limits: [`BulkSettings`]; an element has at most 8800 bytes.

use crate::{
    jobs::Workshop,
    shares::Shares,
    statistics::Refusal,
    writer::{Outcome, OwnedChange, now_ms},
};
use namewire_packet::{Data, MAX_PACKET_BYTES, tlv};
use std::{
    collections::VecDeque,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
    time::timeout,
};

/// Bytes read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// How bulk insertion is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkSettings {
    /// Where to listen. By default only programs on this machine can connect: nothing else protects this door.
    pub address: SocketAddr,
    /// Connections at the same time, which client addresses share ([`crate::shares`]); further ones are closed.
    pub connections_max: usize,
    /// A connection that is silent for so long is closed.
    pub idle_max: Duration,
}

impl Default for BulkSettings {
    fn default() -> Self {
        BulkSettings {
            address: SocketAddr::from(([127, 0, 0, 1], 7376)),
            connections_max: 64,
            idle_max: Duration::from_secs(60),
        }
    }
}

/// Accepts connections. Dropping the future ends them.
pub(crate) async fn serve(listener: TcpListener, workshop: Arc<Workshop>, settings: BulkSettings) {
    let (places, mut connections) = (Shares::new(settings.connections_max), JoinSet::new());
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, client)) = listener.accept().await else {
            // Out of descriptors: some will be free later.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Some(place) = places.try_take(network_of(client.ip()), client.ip().to_canonical().is_loopback()) else {
            workshop.statistics.refuse(Refusal::BulkTooMany);
            reset(stream);
            continue;
        };
        workshop.statistics.add_bulk_connection();
        let workshop = Arc::clone(&workshop);
        connections.spawn(async move {
            receive(stream, &workshop, settings.idle_max).await;
            drop(place);
        });
    }
}

/// Of an IPv6 address the network: a host may use any address of it.
fn network_of(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// Closes so that the client sees an error.
fn reset(stream: TcpStream) {
    // If the option cannot be set, the client sees an early end instead.
    let _ = stream.set_zero_linger();
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client has sent everything.
    Complete,
    /// Something was not stored, or will not be.
    Broken,
}

async fn receive(mut stream: TcpStream, workshop: &Workshop, idle_max: Duration) {
    let mut connection = Connection { workshop, waiting: VecDeque::new(), failed: false };
    let end = connection.read(&mut stream, idle_max).await;
    let is_stored = connection.finish().await;
    if end == End::Broken || !is_stored {
        reset(stream);
    }
}

struct Connection<'a> {
    workshop: &'a Workshop,
    waiting: VecDeque<oneshot::Receiver<Outcome>>,
    failed: bool,
}

impl Connection<'_> {
    async fn read(&mut self, stream: &mut TcpStream, idle_max: Duration) -> End {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut filled = 0;
        loop {
            match timeout(idle_max, stream.read(&mut buffer[filled..])).await {
                Ok(Ok(0)) if filled == 0 => return End::Complete,
                Ok(Ok(0)) => {
                    self.workshop.statistics.refuse(Refusal::BulkMalformed);
                    return End::Broken;
                }
                Ok(Ok(count)) => filled += count,
                Ok(Err(_)) => return End::Broken,
                Err(_) => {
                    self.workshop.statistics.refuse(Refusal::BulkIdle);
                    return End::Broken;
                }
            }
            let Some(used) = self.store(&buffer[..filled]).await else { return End::Broken };
            buffer.copy_within(used..filled, 0);
            filled -= used;
        }
    }

    /// Gives the complete packets to the writer. Returns their bytes; `None` if the connection is to end.
    async fn store(&mut self, bytes: &[u8]) -> Option<usize> {
        let (now, mut changes, mut used, mut is_good) = (now_ms(), Vec::new(), 0, true);
        while is_good {
            let size = match tlv::element_size(&bytes[used..]) {
                Ok(None) => break,
                Ok(Some(size)) if size <= MAX_PACKET_BYTES && size > bytes.len() - used => break,
                Ok(Some(size)) if size <= MAX_PACKET_BYTES => size,
                Ok(Some(_)) | Err(_) => 0,
            };
            match Data::parse(&bytes[used..used + size]) {
                Ok(data) => {
                    is_good = !self.workshop.access.checks_data() || self.workshop.access.check_data(&data).await;
                    if is_good {
                        changes.push(OwnedChange::put(&data, now));
                        used += size;
                    }
                }
                Err(_) => {
                    self.workshop.statistics.refuse(Refusal::BulkMalformed);
                    is_good = false;
                }
            }
        }
        if !changes.is_empty() {
            self.workshop.statistics.add_bulk_packets(changes.len() as u64);
            self.waiting.push_back(self.workshop.queue.submit(changes).await.ok()?);
        }
        self.collect();
        (is_good && !self.failed).then_some(used)
    }

    /// Notes what the store has answered by now.
    fn collect(&mut self) {
        while let Some(outcome) = self.waiting.front_mut() {
            match outcome.try_recv() {
                Ok(Ok(())) => {}
                Err(oneshot::error::TryRecvError::Empty) => return,
                Ok(Err(_)) | Err(oneshot::error::TryRecvError::Closed) => self.failed = true,
            }
            self.waiting.pop_front();
        }
    }

    /// Waits for the store; true if it has everything.
    async fn finish(&mut self) -> bool {
        for outcome in std::mem::take(&mut self.waiting) {
            self.failed |= !matches!(outcome.await, Ok(Ok(())));
        }
        !self.failed
    }
}
