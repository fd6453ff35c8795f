//! Making, changing and ending faces by command. Ethernet faces are in [`crate::link_faces`].

use crate::{
    environment::{ClosingFace, FaceRecord, Node, Wanted},
    messages::{AcceptedConnection, FaceChange, ToControl, ToWorker},
    own_address,
};
use namewire_engine::{FaceAttributes, FaceScope};
use namewire_faces::{
    AddFaceError, FaceCounters, FaceInfo, LinkPolicy, LinkType, Persistency, StreamSocket, face_uri, tcp,
};
use namewire_management::{CreateFace, FaceCommandError, FaceProperties, Ticket, UpdateFace};
use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceUri, WebSocketUrl, face_flags},
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpStream, task::spawn_local, time::timeout};

/// A TCP or WebSocket connection that is not there after this long is given up (NFD: 8 s).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// First pause before a permanent stream face connects again; it doubles up to the last.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_secs(300);

/// What a face sent before it closed may still lie in a ring for so long; engines must
/// know the face until then, or its last words would be dropped as a stranger's.
const CLOSING_NS: u64 = 100_000_000;

/// A TCP or WebSocket connection under way.
pub(crate) struct StreamRequest {
    pub(crate) remote: StreamRemote,
    pub(crate) persistency: Persistency,
    pub(crate) wanted: Wanted,
    pub(crate) purpose: Purpose,
}

/// Where to.
#[derive(Clone)]
pub(crate) enum StreamRemote {
    Tcp(SocketAddr),
    WebSocket(WebSocketUrl),
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

/// A connection that was made, or why not.
type Connection = io::Result<(StreamSocket, FaceInfo)>;

fn of_scope(scope: namewire_faces::FaceScope, connection: Connection) -> Connection {
    connection.and_then(|(socket, info)| match info.scope == scope {
        true => Ok((socket, info)),
        false => Err(io::Error::other("the name leads to a place of another scope than before")),
    })
}

fn engine_scope(scope: namewire_faces::FaceScope) -> FaceScope {
    match scope {
        namewire_faces::FaceScope::Local => FaceScope::Local,
        namewire_faces::FaceScope::NonLocal => FaceScope::NonLocal,
    }
}

pub(crate) fn refusal(code: u64, text: impl Into<String>) -> FaceCommandError {
    FaceCommandError { code, text: text.into(), body: None }
}

/// In NFD's words.
fn connection_failed(error: &io::Error) -> String {
    format!("Connection failed: {}", without_number(error))
}

/// The operating system's reason without its number.
fn without_number(error: &impl std::fmt::Display) -> String {
    let reason = error.to_string();
    reason.split(" (os error").next().unwrap_or_default().to_owned()
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
        let unsupported = || refusal(406, "Unsupported protocol");
        match &create.remote {
            FaceUri::Udp4(_) | FaceUri::Udp6(_) if !self.outgoing_udp => Err(unsupported()),
            FaceUri::Tcp4(_) | FaceUri::Tcp6(_) if !self.outgoing_tcp => Err(unsupported()),
            FaceUri::Udp4(_) | FaceUri::Udp6(_) => {
                let remote = socket_address(&create.remote)?;
                own_address::check(remote, &self.udp_listeners, "UDP")?;
                let mtu = create.mtu.map_or(MAX_PACKET_BYTES, |mtu| mtu.min(MAX_PACKET_BYTES as u64) as usize);
                let local = self.udp_local_address(&remote);
                let (face, worker) = self.reserve_face(FaceScope::NonLocal, true);
                self.pending.insert(face, Wanted { local_fields: false, policy });
                let ticket = Some(create.ticket);
                self.worker(worker).send(ToWorker::AddUdp { face, local, remote, persistency, mtu, policy, ticket });
                Ok(())
            }
            FaceUri::Ether(address) => self.create_ethernet_face(create, *address, persistency, policy),
            FaceUri::Tcp4(_) | FaceUri::Tcp6(_) | FaceUri::WebSocket(_) | FaceUri::WebSocketUrl(_) => {
                let remote = stream_remote(&create.remote)?;
                if let (Some(ip), Some(port)) = (create.remote.literal_ip(), create.remote.port()) {
                    let protocol = if create.remote.scheme().starts_with("tcp") { "TCP" } else { "WebSocket" };
                    own_address::check(SocketAddr::new(ip, port), &self.stream_listeners(), protocol)?;
                }
                let local_fields = create.flags & face_flags::LOCAL_FIELDS != 0;
                self.connect(StreamRequest {
                    remote,
                    persistency,
                    wanted: Wanted { local_fields, policy },
                    purpose: Purpose::Create(create.ticket),
                })
            }
            _ => Err(unsupported()),
        }
    }

    /// Addresses of the TCP and WebSocket listeners.
    fn stream_listeners(&self) -> Vec<SocketAddr> {
        let address = |channel: &FaceUri| match channel {
            FaceUri::Tcp4(_) | FaceUri::Tcp6(_) => socket_address(channel).ok(),
            FaceUri::WebSocket(address) => Some(*address),
            FaceUri::WebSocketUrl(url) => Some(SocketAddr::new(url.host.parse().ok()?, url.port)),
            _ => None,
        };
        self.channels.iter().chain(self.websockets.channels()).filter_map(address).collect()
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
    fn add_stream(&mut self, socket: StreamSocket, info: FaceInfo, wanted: Wanted, ticket: Ticket) {
        let scope = engine_scope(info.scope);
        // A non-local face made by command leads to a router.
        let (face, worker) = self.reserve_face(scope, scope == FaceScope::NonLocal);
        let policy = wanted.policy;
        self.pending.insert(face, wanted);
        self.worker(worker).send(ToWorker::AddStream { face, socket, info, policy, ticket: Some(ticket) });
    }

    /// Gives connections that listeners accepted to workers.
    pub(crate) fn add_accepted(&mut self, connections: Vec<AcceptedConnection>) {
        if connections.is_empty() {
            return;
        }
        let mut allotted = Vec::with_capacity(connections.len());
        for connection in connections {
            let (face, worker) = (self.face_ids.allocate(), self.choose_worker());
            self.faces_per_worker[usize::from(worker)] += 1;
            allotted.push((face, worker, connection));
        }
        self.shared.faces.change(|faces| {
            for (face, worker, AcceptedConnection { info, .. }) in &allotted {
                // Whether it leads to a router is not known until it shows NDNLPv2.
                faces.insert(*face, FaceAttributes::new(engine_scope(info.scope), *worker, false));
            }
        });
        for (face, worker, AcceptedConnection { socket, info, place }) in allotted {
            let wanted = self.wanted_by_default(&info);
            let policy = wanted.policy;
            self.pending.insert(face, wanted);
            self.places.insert(face, place);
            self.worker(worker).send(ToWorker::AddStream { face, socket, info, policy, ticket: None });
        }
    }

    fn connect(&mut self, request: StreamRequest) -> Result<(), FaceCommandError> {
        let events = self.sender.events.clone();
        let persistency = request.persistency;
        match request.remote.clone() {
            StreamRemote::Tcp(remote) => spawn_local(async move {
                let result = match timeout(CONNECT_TIMEOUT, TcpStream::connect(remote)).await {
                    Ok(connected) => connected.and_then(TcpStream::into_std).and_then(|socket| {
                        let info = tcp::face_info(&socket, persistency)?;
                        Ok((StreamSocket::Tcp(socket), info))
                    }),
                    Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "Connection timed out")),
                };
                let _ = events.send(ToControl::Connected { request: Box::new(request), result });
            }),
            StreamRemote::WebSocket(url) => {
                let failed = |error: io::Error| refusal(504, connection_failed(&error));
                let answer = self.websockets.call(url.clone()).map_err(failed)?;
                spawn_local(async move {
                    let stopped = |_| io::Error::other("the router stops");
                    let result = answer.await.map_err(stopped).and_then(|called| {
                        let called = called?;
                        let info = web_socket_info(&url, called.local, called.remote, persistency);
                        Ok((called.socket, info))
                    });
                    let _ = events.send(ToControl::Connected { request: Box::new(request), result });
                })
            }
        };
        Ok(())
    }

    /// A connection was made or has failed. `Some`: the command's final answer.
    pub(crate) fn connected(
        &mut self,
        request: StreamRequest,
        result: Connection,
    ) -> Option<(Ticket, FaceCommandError)> {
        match (request.purpose, result) {
            (Purpose::Create(ticket), Ok((socket, info))) => {
                let is_local = info.scope == namewire_faces::FaceScope::Local;
                let local_fields = request.wanted.local_fields && is_local;
                let wanted = Wanted { local_fields, ..request.wanted };
                self.add_stream(socket, info, wanted, ticket);
                None
            }
            (Purpose::Create(ticket), Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                Some((ticket, refusal(504, "Connection timed out")))
            }
            (Purpose::Create(ticket), Err(error)) => Some((ticket, refusal(504, connection_failed(&error)))),
            (Purpose::Reconnect(face, _), Ok((socket, info))) => {
                if let Some(record) = self.faces.get_mut(&face) {
                    record.info.local_uri = info.local_uri; // another port than before
                    let worker = record.worker;
                    self.worker(worker).send(ToWorker::Reconnect { face, socket });
                    self.note_link(face, true);
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

    /// What came of a connection, once it is known to be of the face's scope: engines were told that
    /// when the face was made. A name that led to this machine may lead to another one now, which
    /// must not become a local application by that.
    pub(crate) fn of_scope(&self, purpose: &Purpose, result: Connection) -> Connection {
        match purpose {
            Purpose::Reconnect(face, _) => match self.faces.get(face) {
                Some(record) => of_scope(record.info.scope, result),
                None => result,
            },
            Purpose::Create(_) => result,
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

    /// The link of a permanent face failed. A datagram face tries it again by itself.
    pub(crate) fn face_down(&mut self, face: FaceId) {
        let Some(record) = self.faces.get(&face) else { return };
        let is_stream = !record.is_datagrams();
        self.note_link(face, false);
        if is_stream {
            self.retry_later(face, RETRY_FIRST);
        }
    }

    /// Tries a permanent face's connection again.
    pub(crate) fn retry(&mut self, face: FaceId) {
        let Some(record) = self.faces.get(&face) else { return };
        let uri = record.info.remote_uri.parse::<FaceUri>();
        let Some(remote) = uri.ok().and_then(|uri| stream_remote(&uri).ok()) else { return };
        let persistency = record.info.persistency;
        let pause = self.retry_pauses.remove(&face).unwrap_or(RETRY_FIRST);
        let wanted = Wanted { local_fields: record.local_fields, policy: record.policy };
        let next_pause = (pause * 2).min(RETRY_LAST);
        let purpose = Purpose::Reconnect(face, next_pause);
        if self.connect(StreamRequest { remote, persistency, wanted, purpose }).is_err() {
            self.retry_later(face, next_pause);
        }
    }

    /// A worker has added a face, or could not.
    pub(crate) fn face_added(
        &mut self,
        worker: u8,
        face: FaceId,
        added: Added,
    ) -> Result<FaceProperties, FaceCommandError> {
        let wanted = self.pending.remove(&face);
        self.places.remove(&face);
        match added {
            Ok((info, counters)) => {
                let Wanted { local_fields, policy } = wanted.unwrap_or_else(|| self.wanted_by_default(&info));
                self.faces.insert(face, FaceRecord { worker, info, counters, local_fields, policy });
                if local_fields {
                    let change = FaceChange { local_fields: Some(true), ..FaceChange::default() };
                    self.worker(worker).send(ToWorker::UpdateFace { face, change });
                }
                self.look_at_local_end(face);
                self.properties(face).ok_or_else(|| refusal(500, "Face creation failed due to internal error"))
            }
            Err(error) => {
                self.faces_per_worker[usize::from(worker)] -= 1;
                self.shared.faces.change(|faces| faces.remove(face));
                self.links.forget_face(face);
                // NFD's code where the system refuses the socket, as for an address that no route leads to.
                let code = if matches!(error, AddFaceError::Io(_)) { 504 } else { 500 };
                Err(refusal(code, format!("Face creation failed: {}", without_number(&error))))
            }
        }
    }

    /// Changes a face; its properties afterwards.
    pub(crate) fn update_face(&mut self, update: &UpdateFace) -> Result<FaceProperties, FaceCommandError> {
        let Some(record) = self.faces.get_mut(&update.face) else {
            return Err(refusal(404, "Specified face does not exist"));
        };
        let persistency = update.persistency.map(to_persistency);
        let mtu_max = self.links.mtu_of(&record.info.local_uri).unwrap_or(MAX_PACKET_BYTES).min(MAX_PACKET_BYTES);
        let mtu = update.mtu.map(|mtu| mtu.min(mtu_max as u64) as usize);
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
        self.links.forget_face(face);
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

/// Where the stream of a FaceUri leads.
fn stream_remote(uri: &FaceUri) -> Result<StreamRemote, FaceCommandError> {
    match uri {
        FaceUri::WebSocketUrl(url) => Ok(StreamRemote::WebSocket(url.clone())),
        FaceUri::WebSocket(address) => Ok(StreamRemote::WebSocket(WebSocketUrl {
            is_secure: false,
            host: address.ip().to_string(),
            port: address.port(),
            path: String::new(),
        })),
        uri => socket_address(uri).map(StreamRemote::Tcp),
    }
}

/// Facts about the face of a connection to a WebSocket server. Its FaceUri is the URL, by which
/// it is called again.
fn web_socket_info(url: &WebSocketUrl, local: SocketAddr, remote: SocketAddr, persistency: Persistency) -> FaceInfo {
    let both_loopback = local.ip().is_loopback() && remote.ip().is_loopback();
    FaceInfo {
        remote_uri: format!("{}://{url}", url.scheme()),
        local_uri: face_uri::web_socket_client(local),
        scope: if both_loopback { namewire_faces::FaceScope::Local } else { namewire_faces::FaceScope::NonLocal },
        persistency,
        link_type: LinkType::PointToPoint,
        mtu: MAX_PACKET_BYTES,
        credentials: None,
    }
}

fn interface_index(interface: &str) -> Option<u32> {
    // A name is one path component, so that no other file can be named.
    let is_name = !interface.is_empty() && !interface.contains(['/', '\0']) && interface != "..";
    let text = is_name.then(|| std::fs::read_to_string(format!("/sys/class/net/{interface}/ifindex")).ok())??;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_faces::FaceScope::{Local, NonLocal};

    #[test]
    fn a_face_is_not_connected_to_a_place_of_another_scope() {
        let url = WebSocketUrl { is_secure: false, host: "router.example".to_owned(), port: 9696, path: String::new() };
        let connection = |remote: &str| {
            let (ours, _) = std::os::unix::net::UnixStream::pair().unwrap();
            let local = if remote.starts_with("127") { "127.0.0.1:4000" } else { "192.0.2.1:4000" };
            let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
            Ok((StreamSocket::Unix(ours), web_socket_info(&url, local, remote, Persistency::Permanent)))
        };
        let (here, there) = ("127.0.0.1:9696", "192.0.2.9:9696");
        for (scope, remote, is_taken) in
            [(Local, here, true), (Local, there, false), (NonLocal, there, true), (NonLocal, here, false)]
        {
            assert_eq!(of_scope(scope, connection(remote)).is_ok(), is_taken, "{scope:?} {remote}");
        }
    }
}
