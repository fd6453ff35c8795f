//! Making and changing faces by command: from the FaceUri to the message for a worker.

use super::{
    faces::{PolicyChange, RETRY_FIRST},
    links::explain,
    node::Node,
    own_address,
};
use crate::{
    messages::ToControl,
    stream_request::{FaceOptions, Purpose, StreamRemote, StreamRequest},
};
use namewire_faces::{AddFaceError, FaceCounters, FaceInfo, LinkPolicy, StreamSocket, tcp};
use namewire_management::{CreateFace, FaceCommandError, FaceProperties, Ticket, UpdateFace};
use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType, MacAddress, WebSocketUrl, face_flags},
};
use namewire_shares::Holder;
use namewire_worker::{LaneEnds, ToWorker};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpStream, task::spawn_local, time::timeout};

/// A TCP or WebSocket connection that takes longer than this is given up (NFD: 8 s).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// Longest pause before a permanent stream face connects again. Each pause is twice as long as the one before.
const RETRY_LAST: Duration = Duration::from_secs(300);

/// The worker's answer to an attempt at adding a face.
type Added = Result<(FaceInfo, Arc<FaceCounters>), AddFaceError>;

/// A connection, or the reason why it failed.
type Connection = io::Result<(StreamSocket, FaceInfo)>;

fn of_scope(scope: FaceScope, connection: Connection) -> Connection {
    connection.and_then(|(socket, info)| match info.scope == scope {
        true => Ok((socket, info)),
        false => Err(io::Error::other("the name leads to a place of another scope than before")),
    })
}

/// The failure in NFD's words.
fn connection_failed(error: &io::Error) -> String {
    format!("Connection failed: {}", without_number(error))
}

/// The operating system's reason without its number.
fn without_number(error: &impl std::fmt::Display) -> String {
    let reason = error.to_string();
    reason.split(" (os error").next().unwrap_or_default().to_owned()
}

impl Node {
    /// Starts making a face. `Err` is the final answer; otherwise the answer follows when the worker reports the face.
    pub(crate) fn create_face(&mut self, create: &CreateFace) -> Result<(), FaceCommandError> {
        let persistency = create.persistency;
        let change = PolicyChange {
            flags: create.flags,
            mask: create.mask,
            interval_ns: create.base_congestion_marking_interval_ns,
            threshold_bytes: create.default_congestion_threshold_bytes,
        };
        let policy = change.of(self.faces.default_policy(&create.remote));
        let unsupported = || FaceCommandError::new(406, "Unsupported protocol");
        match &create.remote {
            FaceUri::Udp4(_) | FaceUri::Udp6(_) if !self.listening.outgoing_udp => Err(unsupported()),
            FaceUri::Tcp4(_) | FaceUri::Tcp6(_) if !self.listening.outgoing_tcp => Err(unsupported()),
            FaceUri::Udp4(_) | FaceUri::Udp6(_) => {
                let remote = socket_address(&create.remote)?;
                own_address::check(remote, &self.listening.udp, "UDP")?;
                let mtu =
                    create.mtu.map_or(self.faces.default_udp_mtu(), |mtu| mtu.min(MAX_PACKET_BYTES as u64) as usize);
                let local = self.udp_local_address(&remote);
                let worker = self.faces.choose_worker();
                let holder = Holder::of_address(remote.ip(), false);
                let face = self.faces.reserve(worker, FaceScope::NonLocal, LinkType::PointToPoint, true, &holder);
                let lanes = create.flags & face_flags::LANES != 0;
                self.faces.expect(face, FaceOptions { local_fields: false, policy, lanes }, Some(create.ticket));
                self.faces.send(worker, ToWorker::AddUdp { face, local, remote, persistency, mtu, policy });
                Ok(())
            }
            FaceUri::Ether(address) => self.create_ethernet_face(create, *address, policy),
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
                    options: FaceOptions { local_fields, policy, lanes: false },
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
        self.listening.channels.iter().chain(self.websockets.channels()).filter_map(address).collect()
    }

    /// The local address of a new UDP face: that of a listener, so that packets leave from the port that the peer
    /// knows. The best is bound to all addresses, or to the address from which the route to `remote` leaves; the next
    /// best to another address of this host, because whoever chose it means it. Without a listener, any port serves.
    fn udp_local_address(&self, remote: &SocketAddr) -> SocketAddr {
        let any: IpAddr = if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        // Connecting a UDP socket sends nothing; it only asks the routing table.
        let route = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect(remote)?;
            socket.local_addr()
        });
        let route = route.map_or(any, |local| local.ip());
        let leads_there = |local: &&SocketAddr| local.ip() == any || local.ip() == route;
        // From a loopback address, no datagram leaves the host.
        let may_lead_there = |local: &&SocketAddr| {
            local.is_ipv4() == remote.is_ipv4() && local.ip().is_loopback() == route.is_loopback()
        };
        let (mut best, mut others) = (self.listening.udp.iter(), self.listening.udp.iter());
        let listener = best.find(leads_there).or_else(|| others.find(may_lead_there));
        listener.copied().unwrap_or(SocketAddr::new(any, 0))
    }

    /// Starts making a unicast Ethernet face.
    fn create_ethernet_face(
        &mut self,
        create: &CreateFace,
        address: MacAddress,
        policy: LinkPolicy,
    ) -> Result<(), FaceCommandError> {
        let Some(FaceUri::Dev(name)) = &create.local else {
            let text = "Creation of unicast Ethernet faces requires a LocalUri with dev:// scheme";
            return Err(FaceCommandError::new(406, text));
        };
        let failed =
            |error: io::Error| FaceCommandError::new(504, format!("Face creation failed: {}", explain(&error)));
        let link = self.links.open_device(&mut self.faces, name).map_err(failed)?;
        let Some((interface, worker)) = link else {
            let text = format!("No channels available to connect: {name} is no Ethernet interface of this machine");
            return Err(FaceCommandError::new(504, text));
        };
        self.links.watch(&self.events);
        let holder = Holder::Station { interface: name.clone(), address };
        let face = self.faces.reserve(worker, FaceScope::NonLocal, LinkType::PointToPoint, true, &holder);
        self.faces.expect(face, FaceOptions { local_fields: false, policy, lanes: false }, Some(create.ticket));
        self.faces.send(
            worker,
            ToWorker::AddEthernet {
                face,
                interface,
                address,
                persistency: create.persistency,
                link_type: LinkType::PointToPoint,
                mtu: create.mtu.map(|mtu| usize::try_from(mtu).unwrap_or(usize::MAX)),
                policy,
            },
        );
        Ok(())
    }

    fn connect(&mut self, request: StreamRequest) -> Result<(), FaceCommandError> {
        let events = self.events.clone();
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
                let failed = |error: io::Error| FaceCommandError::new(504, connection_failed(&error));
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

    /// A connection was made or has failed. `Some` is the command's final answer.
    pub(crate) fn connected(
        &mut self,
        request: StreamRequest,
        result: Connection,
    ) -> Option<(Ticket, FaceCommandError)> {
        match (request.purpose, result) {
            (Purpose::Create(ticket), Ok((socket, info))) => {
                let is_local = info.scope == FaceScope::Local;
                let local_fields = request.options.local_fields && is_local;
                let options = FaceOptions { local_fields, ..request.options };
                self.faces.add_stream(socket, info, options, ticket);
                None
            }
            (Purpose::Create(ticket), Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                Some((ticket, FaceCommandError::new(504, "Connection timed out")))
            }
            (Purpose::Create(ticket), Err(error)) => {
                Some((ticket, FaceCommandError::new(504, connection_failed(&error))))
            }
            (Purpose::Reconnect(face, _), Ok((socket, info))) => {
                if self.faces.get(face).is_some() {
                    self.faces.reconnected(face, socket, info.local);
                    self.note_link(face, true);
                }
                None
            }
            (Purpose::Reconnect(face, pause), Err(_)) => {
                // The face may have been destroyed meanwhile.
                if self.faces.get(face).is_some() {
                    self.faces.retry_later(face, pause);
                }
                None
            }
        }
    }

    /// The connection if it has the scope of its face, else an error. Engines learned the scope when the face was made.
    /// A name that once led to this machine may now lead to another one, which must not become a local application.
    pub(crate) fn of_scope(&self, purpose: &Purpose, result: Connection) -> Connection {
        match purpose {
            Purpose::Reconnect(face, _) => match self.faces.get(*face) {
                Some(record) => of_scope(record.info.scope, result),
                None => result,
            },
            Purpose::Create(_) => result,
        }
    }

    /// The link of a permanent face failed. A datagram face retries by itself.
    pub(crate) fn face_down(&mut self, face: FaceId) {
        let Some(record) = self.faces.get(face) else { return };
        let is_stream = !record.is_datagrams();
        self.note_link(face, false);
        if is_stream {
            self.faces.retry_later(face, RETRY_FIRST);
        }
    }

    /// Tries to connect a permanent face again.
    pub(crate) fn retry(&mut self, face: FaceId) {
        let Some(record) = self.faces.get(face) else { return };
        let Ok(remote) = stream_remote(&record.info.remote) else { return };
        let persistency = record.info.persistency;
        let options = FaceOptions { local_fields: record.local_fields, policy: record.policy, lanes: false };
        let next_pause = (self.faces.take_retry_pause(face) * 2).min(RETRY_LAST);
        let purpose = Purpose::Reconnect(face, next_pause);
        if self.connect(StreamRequest { remote, persistency, options, purpose }).is_err() {
            self.faces.retry_later(face, next_pause);
        }
    }

    /// A worker has added a face, or could not.
    pub(crate) fn face_added(
        &mut self,
        worker: u8,
        face: FaceId,
        added: Added,
    ) -> (Option<Ticket>, Result<FaceProperties, FaceCommandError>) {
        match added {
            Ok((info, counters)) => {
                let ticket = self.faces.added(worker, face, info, counters);
                self.link_states.look_at_local_end(&self.faces, face);
                self.follow_lanes(face);
                let failed = || FaceCommandError::new(500, "Face creation failed due to internal error");
                (ticket, self.faces.properties(face).ok_or_else(failed))
            }
            Err(error) => {
                let ticket = self.faces.not_added(worker, face);
                self.links.forget_face(face);
                // NFD's code where the system refuses the socket, for example for an address without a route.
                let code = if matches!(error, AddFaceError::Io(_)) { 504 } else { 500 };
                let text = format!("Face creation failed: {}", without_number(&error));
                (ticket, Err(FaceCommandError::new(code, text)))
            }
        }
    }

    /// Changes a face and returns its properties afterwards.
    pub(crate) fn update_face(&mut self, update: &UpdateFace) -> Result<FaceProperties, FaceCommandError> {
        let absent = || FaceCommandError::new(404, "Specified face does not exist");
        let record = self.faces.get(update.face).ok_or_else(absent)?;
        let mtu_max = self.links.mtu_of(&record.info.local).unwrap_or(MAX_PACKET_BYTES).min(MAX_PACKET_BYTES);
        self.faces.update(update, mtu_max);
        self.follow_lanes(update.face);
        self.faces.properties(update.face).ok_or_else(absent)
    }

    /// A face has lanes if it is to have some.
    fn follow_lanes(&mut self, face: FaceId) {
        let Some(record) = self.faces.get(face) else { return };
        let ends = (socket_address(&record.info.local), socket_address(&record.info.remote));
        match ends {
            (Ok(local), Ok(remote)) if record.wants_lanes => {
                let ends = LaneEnds { owner: record.worker, local, remote };
                self.lanes.begin(face, ends, || self.faces.take_descriptor());
            }
            _ => self.lanes.end(self.shared.now_ns(), face),
        }
    }

    /// Records that a face is gone; true if the face was known.
    pub(crate) fn forget_face(&mut self, face: FaceId) -> bool {
        self.lanes.forget(face);
        self.links.forget_face(face);
        self.faces.forget(face)
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
                    .ok_or_else(|| FaceCommandError::new(406, format!("There is no network interface {interface}")))?,
            };
            Ok(SocketAddr::V6(SocketAddrV6::new(v6.address, v6.port, 0, scope_id)))
        }
        _ => Err(FaceCommandError::new(406, "Unsupported protocol")),
    }
}

/// The remote end of a stream FaceUri.
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

/// The facts about the face of a connection to a WebSocket server. Its FaceUri is the URL, which is used to connect
/// again.
fn web_socket_info(
    url: &WebSocketUrl,
    local: SocketAddr,
    remote: SocketAddr,
    persistency: FacePersistency,
) -> FaceInfo {
    let both_loopback = local.ip().is_loopback() && remote.ip().is_loopback();
    FaceInfo {
        remote: url.clone().into(),
        local: FaceUri::WebSocketClient(local),
        scope: if both_loopback { FaceScope::Local } else { FaceScope::NonLocal },
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
    use namewire_packet::nfd::FaceScope::{Local, NonLocal};

    #[test]
    fn a_face_is_not_connected_to_a_place_of_another_scope() {
        let url = WebSocketUrl { is_secure: false, host: "router.example".to_owned(), port: 9696, path: String::new() };
        let connection = |remote: &str| {
            let (ours, _) = std::os::unix::net::UnixStream::pair().unwrap();
            let local = if remote.starts_with("127") { "127.0.0.1:4000" } else { "192.0.2.1:4000" };
            let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
            Ok((StreamSocket::Unix(ours), web_socket_info(&url, local, remote, FacePersistency::Permanent)))
        };
        let (here, there) = ("127.0.0.1:9696", "192.0.2.9:9696");
        for (scope, remote, is_taken) in
            [(Local, here, true), (Local, there, false), (NonLocal, there, true), (NonLocal, here, false)]
        {
            assert_eq!(of_scope(scope, connection(remote)).is_ok(), is_taken, "{scope:?} {remote}");
        }
    }
}
