//! Making, changing and ending faces by command.

use crate::{
    environment::{ClosingFace, FaceRecord, Node, Wanted},
    messages::{FaceChange, ToControl, ToWorker},
};
use namewire_engine::{FaceAttributes, FaceScope};
use namewire_faces::{AddFaceError, FaceCounters, FaceInfo, LinkPolicy, Persistency, StreamSocket, tcp};
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
    pub(crate) wanted: Wanted,
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

/// Changes the flags in `mask`, and what else is given.
fn change_policy(
    policy: LinkPolicy,
    (flags, mask): (u64, u64),
    interval_ns: Option<u64>,
    threshold_octets: Option<u64>,
) -> LinkPolicy {
    let flag = |bit: u64, before: bool| if mask & bit != 0 { flags & bit != 0 } else { before };
    LinkPolicy {
        reliability: flag(face_flags::LP_RELIABILITY, policy.reliability),
        congestion_marking: flag(face_flags::CONGESTION_MARKING, policy.congestion_marking),
        marking_interval_ns: interval_ns.unwrap_or(policy.marking_interval_ns),
        marking_threshold_octets: threshold_octets.unwrap_or(policy.marking_threshold_octets),
    }
}

impl Node {
    /// Starts making a face. `Err` is the final answer; otherwise the answer follows
    /// as [`ToControl::FaceAdded`].
    pub(crate) fn create_face(&mut self, create: &CreateFace) -> Result<(), FaceCommandError> {
        let persistency = to_persistency(create.persistency);
        let policy = change_policy(
            self.default_policy(&create.remote),
            (create.flags, create.mask),
            create.base_congestion_marking_interval_ns,
            create.default_congestion_threshold_bytes,
        );
        match &create.remote {
            FaceUri::Udp4(_) | FaceUri::Udp6(_) => {
                let remote = socket_address(&create.remote)?;
                let mtu = create.mtu.map_or(MAX_PACKET_BYTES, |mtu| mtu.min(MAX_PACKET_BYTES as u64) as usize);
                let local = self.udp_local_address(&remote);
                let (face, worker) = self.reserve_face(FaceScope::NonLocal, true);
                self.pending.insert(face, Wanted { local_fields: false, policy });
                let ticket = Some(create.ticket);
                self.worker(worker).send(ToWorker::AddUdp { face, local, remote, persistency, mtu, policy, ticket });
                Ok(())
            }
            FaceUri::Tcp4(_) | FaceUri::Tcp6(_) => {
                let remote = socket_address(&create.remote)?;
                let local_fields = create.flags & face_flags::LOCAL_FIELDS != 0;
                self.connect(StreamRequest {
                    remote,
                    persistency,
                    wanted: Wanted { local_fields, policy },
                    purpose: Purpose::Create(create.ticket),
                });
                Ok(())
            }
            _ => Err(refusal(406, "Unsupported protocol")),
        }
    }

    /// How a face to `remote` begins: NFD marks packets on Unix, TCP and UDP faces.
    fn default_policy(&self, remote: &FaceUri) -> LinkPolicy {
        let may_mark = matches!(
            remote,
            FaceUri::Unix(_)
                | FaceUri::Fd(_)
                | FaceUri::Tcp4(_)
                | FaceUri::Tcp6(_)
                | FaceUri::Udp4(_)
                | FaceUri::Udp6(_)
        );
        LinkPolicy { congestion_marking: self.congestion_marking && may_mark, ..LinkPolicy::default() }
    }

    /// What a face has that no command has asked for.
    pub(crate) fn wanted_by_default(&self, info: &FaceInfo) -> Wanted {
        let remote = info.remote_uri.parse().unwrap_or(FaceUri::Null);
        Wanted { local_fields: false, policy: self.default_policy(&remote) }
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
    pub(crate) fn add_stream(
        &mut self,
        socket: StreamSocket,
        info: FaceInfo,
        wanted: Option<Wanted>,
        ticket: Option<Ticket>,
    ) {
        let scope = match info.scope {
            namewire_faces::FaceScope::Local => FaceScope::Local,
            namewire_faces::FaceScope::NonLocal => FaceScope::NonLocal,
        };
        // A non-local face made by command leads to a router. Of one that was accepted
        // nothing is known until it shows NDNLPv2.
        let tokens = ticket.is_some() && scope == FaceScope::NonLocal;
        let (face, worker) = self.reserve_face(scope, tokens);
        let wanted = wanted.unwrap_or_else(|| self.wanted_by_default(&info));
        let policy = wanted.policy;
        self.pending.insert(face, wanted);
        self.worker(worker).send(ToWorker::AddStream { face, socket, info, policy, ticket });
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
                        let local_fields = request.wanted.local_fields && is_local;
                        let wanted = Wanted { local_fields, ..request.wanted };
                        self.add_stream(StreamSocket::Tcp(socket), info, Some(wanted), Some(ticket));
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
                if let Some(record) = self.faces.get_mut(&face) {
                    if let StreamSocket::Tcp(connected) = &socket
                        && let Ok(info) = tcp::face_info(connected, record.info.persistency)
                    {
                        record.info.local_uri = info.local_uri; // another port than before
                    }
                    let worker = record.worker;
                    self.worker(worker).send(ToWorker::Reconnect { face, socket });
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
            wanted: Wanted { local_fields: record.local_fields, policy: record.policy },
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
        let wanted = self.pending.remove(&face);
        match added {
            Ok((info, counters)) => {
                let Wanted { local_fields, policy } = wanted.unwrap_or_else(|| self.wanted_by_default(&info));
                self.faces.insert(face, FaceRecord { worker, info, counters, local_fields, policy });
                if local_fields {
                    let change = FaceChange { local_fields: Some(true), ..FaceChange::default() };
                    self.worker(worker).send(ToWorker::UpdateFace { face, change });
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
        record.policy = change_policy(
            record.policy,
            (update.flags, update.mask),
            update.base_congestion_marking_interval_ns,
            update.default_congestion_threshold_bytes,
        );
        let change = FaceChange { persistency, mtu, local_fields, policy: Some(record.policy) };
        let worker = record.worker;
        self.worker(worker).send(ToWorker::UpdateFace { face: update.face, change });
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
            self.closed_faces.merge(&closing.counters.snapshot());
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
