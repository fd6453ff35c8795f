//! Making, changing and ending faces by command.

use crate::{
    environment::{ClosingFace, FaceRecord, Node},
    messages::{ToControl, ToWorker},
};
use namewire_engine::{FaceAttributes, FaceScope};
use namewire_faces::{AddFaceError, FaceCounters, FaceInfo, Persistency, StreamSocket, tcp};
use namewire_management::{CreateFace, FaceCommandError, FaceProperties, Ticket, UpdateFace};
use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceUri, face_flags},
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpStream, task::spawn_local, time::timeout};

/// A TCP connection that is not there after this long is given up (NFD: 8 s).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// First pause before a permanent TCP face connects again; it doubles up to the last.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_secs(300);

/// What a face sent before it closed may still lie in a ring for so long; engines must
/// know the face until then, or its last words would be dropped as a stranger's.
const CLOSING_NS: u64 = 100_000_000;

/// A TCP connection under way.
pub(crate) struct StreamRequest {
    pub(crate) remote: SocketAddr,
    pub(crate) persistency: Persistency,
    pub(crate) local_fields: bool,
    pub(crate) purpose: Purpose,
}

/// Why the connection is made.
pub(crate) enum Purpose {
    /// For a new face.
    Create(Ticket),
    /// For a permanent face whose connection failed; the pause to make if this one fails too.
    Reconnect(FaceId, Duration),
}

/// The worker's answer to an attempt at adding a face.
type Added = Result<(FaceInfo, Arc<FaceCounters>), AddFaceError>;

fn refusal(code: u64, text: impl Into<String>) -> FaceCommandError {
    FaceCommandError { code, text: text.into(), body: None }
}

/// In NFD's words: the operating system's reason without its number.
fn connection_failed(error: &io::Error) -> String {
    let reason = error.to_string();
    format!("Connection failed: {}", reason.split(" (os error").next().unwrap_or_default())
}

fn to_persistency(persistency: FacePersistency) -> Persistency {
    match persistency {
        FacePersistency::Persistent => Persistency::Persistent,
        FacePersistency::OnDemand => Persistency::OnDemand,
        FacePersistency::Permanent => Persistency::Permanent,
    }
}

/// What this version cannot switch on is refused, not silently left off.
fn unsupported_flag(flags: u64) -> Option<&'static str> {
    if flags & face_flags::LP_RELIABILITY != 0 {
        return Some("LpReliability is not supported by this version");
    }
    (flags & face_flags::CONGESTION_MARKING != 0).then_some("CongestionMarking is not supported by this version")
}

impl Node {
    /// Starts making a face. `Err` is the final answer; otherwise the answer follows
    /// as [`ToControl::FaceAdded`].
    pub(crate) fn create_face(&mut self, create: &CreateFace) -> Result<(), FaceCommandError> {
        if let Some(text) = unsupported_flag(create.flags) {
            return Err(refusal(406, text));
        }
        let persistency = to_persistency(create.persistency);
        match &create.remote {
            FaceUri::Udp4(_) | FaceUri::Udp6(_) => {
                let remote = socket_address(&create.remote)?;
                let mtu = create.mtu.map_or(MAX_PACKET_BYTES, |mtu| mtu.min(MAX_PACKET_BYTES as u64) as usize);
                let local = self.udp_local_address(&remote);
                let (face, worker) = self.reserve_face(FaceScope::NonLocal, true);
                let ticket = Some(create.ticket);
                self.worker(worker).send(ToWorker::AddUdp { face, local, remote, persistency, mtu, ticket });
                Ok(())
            }
            FaceUri::Tcp4(_) | FaceUri::Tcp6(_) => {
                let remote = socket_address(&create.remote)?;
                let local_fields = create.flags & face_flags::LOCAL_FIELDS != 0;
                self.connect(StreamRequest {
                    remote,
                    persistency,
                    local_fields,
                    purpose: Purpose::Create(create.ticket),
                });
                Ok(())
            }
            _ => Err(refusal(406, "Unsupported protocol")),
        }
    }

    /// The address of a listener, so that packets leave from the port that the peer
    /// knows: one on all addresses, or on that from which the route to `remote` leaves.
    /// Without one, any port.
    fn udp_local_address(&self, remote: &SocketAddr) -> SocketAddr {
        let any: IpAddr = if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        // Connecting a UDP socket sends nothing; it only asks the routing table.
        let route = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect(remote)?;
            socket.local_addr()
        });
        let route = route.map_or(any, |local| local.ip());
        let leads_there = |local: &&SocketAddr| local.ip() == any || local.ip() == route;
        self.udp_listeners.iter().find(leads_there).copied().unwrap_or(SocketAddr::new(any, 0))
    }

    /// Allots an id and an owner, and lets engines know the face before its first packet.
    /// `tokens`: our PIT tokens may go out there.
    fn reserve_face(&mut self, scope: FaceScope, tokens: bool) -> (FaceId, u8) {
        let (face, worker) = (self.face_ids.allocate(), self.choose_worker());
        self.faces_per_worker[usize::from(worker)] += 1;
        self.shared.faces.change(|faces| faces.insert(face, FaceAttributes::new(scope, worker, tokens)));
        (face, worker)
    }

    /// Gives a connected stream to a worker.
    pub(crate) fn add_stream(&mut self, socket: StreamSocket, info: FaceInfo, ticket: Option<Ticket>) -> FaceId {
        let scope = match info.scope {
            namewire_faces::FaceScope::Local => FaceScope::Local,
            namewire_faces::FaceScope::NonLocal => FaceScope::NonLocal,
        };
        // A non-local face made by command leads to a router. Of one that was accepted
        // nothing is known until it shows NDNLPv2.
        let tokens = ticket.is_some() && scope == FaceScope::NonLocal;
        let (face, worker) = self.reserve_face(scope, tokens);
        self.worker(worker).send(ToWorker::AddStream { face, socket, info, ticket });
        face
    }

    fn connect(&self, request: StreamRequest) {
        let events = self.sender.events.clone();
        let remote = request.remote;
        spawn_local(async move {
            let result = match timeout(CONNECT_TIMEOUT, TcpStream::connect(remote)).await {
                Ok(connected) => connected.and_then(TcpStream::into_std).map(StreamSocket::Tcp),
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "Connection timed out")),
            };
            let _ = events.send(ToControl::Connected { request: Box::new(request), result });
        });
    }

    /// A TCP connection was made or has failed. `Some`: the command's final answer.
    pub(crate) fn connected(
        &mut self,
        request: StreamRequest,
        result: io::Result<StreamSocket>,
    ) -> Option<(Ticket, FaceCommandError)> {
        match (request.purpose, result) {
            (Purpose::Create(ticket), Ok(StreamSocket::Tcp(socket))) => {
                match tcp::face_info(&socket, request.persistency) {
                    Ok(info) => {
                        let is_local = info.scope == namewire_faces::FaceScope::Local;
                        let face = self.add_stream(StreamSocket::Tcp(socket), info, Some(ticket));
                        if request.local_fields && is_local {
                            self.pending_local_fields.insert(face);
                        }
                        None
                    }
                    Err(error) => Some((ticket, refusal(504, connection_failed(&error)))),
                }
            }
            (Purpose::Create(ticket), Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                Some((ticket, refusal(504, "Connection timed out")))
            }
            (Purpose::Create(ticket), Err(error)) => Some((ticket, refusal(504, connection_failed(&error)))),
            (Purpose::Create(ticket), Ok(StreamSocket::Unix(_))) => {
                Some((ticket, refusal(500, "Face creation failed due to internal error")))
            }
            (Purpose::Reconnect(face, _), Ok(socket)) => {
                if let Some(record) = self.faces.get(&face) {
                    self.worker(record.worker).send(ToWorker::Reconnect { face, socket });
                }
                None
            }
            (Purpose::Reconnect(face, pause), Err(_)) => {
                // It may have been destroyed meanwhile.
                if self.faces.contains_key(&face) {
                    self.retry_later(face, pause);
                }
                None
            }
        }
    }

    fn retry_later(&mut self, face: FaceId, pause: Duration) {
        self.retry_pauses.insert(face, pause);
        let events = self.sender.events.clone();
        spawn_local(async move {
            tokio::time::sleep(pause).await;
            let _ = events.send(ToControl::Retry { face });
        });
    }

    /// The connection of a permanent face failed.
    pub(crate) fn face_down(&mut self, face: FaceId) {
        if self.faces.contains_key(&face) {
            self.retry_later(face, RETRY_FIRST);
        }
    }

    /// Tries a permanent face's connection again.
    pub(crate) fn retry(&mut self, face: FaceId) {
        let Some(record) = self.faces.get(&face) else { return };
        let Ok(remote) =
            record.info.remote_uri.parse::<FaceUri>().map_err(drop).and_then(|uri| socket_address(&uri).map_err(drop))
        else {
            return;
        };
        let pause = self.retry_pauses.remove(&face).unwrap_or(RETRY_FIRST);
        self.connect(StreamRequest {
            remote,
            persistency: record.info.persistency,
            local_fields: record.local_fields,
            purpose: Purpose::Reconnect(face, (pause * 2).min(RETRY_LAST)),
        });
    }

    /// A worker has added a face, or could not.
    pub(crate) fn face_added(
        &mut self,
        worker: u8,
        face: FaceId,
        added: Added,
    ) -> Result<FaceProperties, FaceCommandError> {
        let local_fields = self.pending_local_fields.remove(&face);
        match added {
            Ok((info, counters)) => {
                self.faces.insert(face, FaceRecord { worker, info, counters, local_fields });
                if local_fields {
                    let on = Some(true);
                    self.worker(worker).send(ToWorker::UpdateFace {
                        face,
                        persistency: None,
                        mtu: None,
                        local_fields: on,
                    });
                }
                self.properties(face).ok_or_else(|| refusal(500, "Face creation failed due to internal error"))
            }
            Err(error) => {
                self.faces_per_worker[usize::from(worker)] -= 1;
                self.shared.faces.change(|faces| faces.remove(face));
                Err(refusal(500, format!("Face creation failed: {error}")))
            }
        }
    }

    /// Changes a face; its properties afterwards.
    pub(crate) fn update_face(&mut self, update: &UpdateFace) -> Result<FaceProperties, FaceCommandError> {
        if let Some(text) = unsupported_flag(update.flags) {
            return Err(refusal(409, text));
        }
        let Some(record) = self.faces.get_mut(&update.face) else {
            return Err(refusal(404, "Specified face does not exist"));
        };
        let persistency = update.persistency.map(to_persistency);
        let mtu = update.mtu.map(|mtu| mtu.min(MAX_PACKET_BYTES as u64) as usize);
        let sets_local_fields = update.mask & face_flags::LOCAL_FIELDS != 0;
        let local_fields = sets_local_fields.then_some(update.flags & face_flags::LOCAL_FIELDS != 0);
        record.info.persistency = persistency.unwrap_or(record.info.persistency);
        record.info.mtu = mtu.unwrap_or(record.info.mtu);
        record.local_fields = local_fields.unwrap_or(record.local_fields);
        let worker = record.worker;
        self.worker(worker).send(ToWorker::UpdateFace { face: update.face, persistency, mtu, local_fields });
        self.properties(update.face).ok_or_else(|| refusal(404, "Specified face does not exist"))
    }

    /// Takes note that a face is gone; true if it was known. Engines know it a little longer.
    pub(crate) fn forget_face(&mut self, face: FaceId) -> bool {
        let Some(record) = self.faces.remove(&face) else { return false };
        self.retry_pauses.remove(&face);
        self.faces_per_worker[usize::from(record.worker)] -= 1;
        // Rounded up, so that faces that close together are forgotten in one walk over the PITs.
        let due_ns = (self.shared.now_ns() + CLOSING_NS).next_multiple_of(CLOSING_NS);
        self.closing.push_back(ClosingFace { face, counters: record.counters, due_ns });
        true
    }

    /// When [`Node::forget_closed`] has something to do.
    pub(crate) fn next_forgetting_ns(&self) -> Option<u64> {
        self.closing.front().map(|closing| closing.due_ns)
    }

    /// Lets engines forget the faces that closed long enough ago.
    pub(crate) fn forget_closed(&mut self, now_ns: u64) {
        let due = self.closing.partition_point(|closing| closing.due_ns <= now_ns);
        if due == 0 {
            return;
        }
        self.shared.faces.change(|faces| {
            for closing in self.closing.iter().take(due) {
                faces.remove(closing.face);
            }
        });
        let mut faces: Vec<FaceId> = self.closing.iter().take(due).map(|closing| closing.face).collect();
        faces.sort();
        let faces: Arc<[FaceId]> = faces.into();
        for worker in &self.workers {
            worker.send(ToWorker::ForgetFaces(Arc::clone(&faces)));
        }
        for closing in self.closing.drain(..due) {
            for (sum, drops) in self.closed_face_drops.iter_mut().zip(&closing.counters.drops) {
                *sum += drops.load(std::sync::atomic::Ordering::Relaxed);
            }
        }
    }
}

/// The socket address in a UDP or TCP FaceUri.
fn socket_address(uri: &FaceUri) -> Result<SocketAddr, FaceCommandError> {
    match uri {
        FaceUri::Udp4(v4) | FaceUri::Tcp4(v4) => Ok(SocketAddr::V4(*v4)),
        FaceUri::Udp6(v6) | FaceUri::Tcp6(v6) => {
            let scope_id = match &v6.interface {
                None => 0,
                Some(interface) => interface_index(interface)
                    .ok_or_else(|| refusal(406, format!("There is no network interface {interface}")))?,
            };
            Ok(SocketAddr::V6(SocketAddrV6::new(v6.address, v6.port, 0, scope_id)))
        }
        _ => Err(refusal(406, "Unsupported protocol")),
    }
}

fn interface_index(interface: &str) -> Option<u32> {
    // A name is one path component, so that no other file can be named.
    let is_name = !interface.is_empty() && !interface.contains(['/', '\0']) && interface != "..";
    let text = is_name.then(|| std::fs::read_to_string(format!("/sys/class/net/{interface}/ifindex")).ok())??;
    text.trim().parse().ok()
}
