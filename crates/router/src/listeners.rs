//! Listening sockets. The router opens them before it starts any thread, so that the caller gets the errors. On the
//! control thread, one task serves each listener.
//!
//! Limits: the descriptors of each host or user (`descriptors.rs`). A listener has at most [`ACCEPTED_AT_ONCE`]
//! accepted connections that are not faces yet. The others wait in the kernel's backlog. So in a storm, the listener
//! accepts connections as fast as control makes faces. If a peer closed its connection before the accept, the
//! connection waits until no open connection waits. At most [`PARTED_MAX`] closed connections wait. So after a storm,
//! each connection left in the backlog costs only an accept, and the backlog is seldom full. A full backlog refuses
//! applications that do not wait.

use crate::{
    StartError,
    descriptors::{Descriptors, OF_STREAM, TakenDescriptors},
    memory_listener::{self, MemoryListener},
    messages::{AcceptedConnection, Connection, ToControl},
};
use namewire_configuration::{Settings, settings::FacesSection};
use namewire_faces::{FaceInfo, StreamSocket, face_uri, tcp, udp, unix};
use namewire_handover::{HandedSockets, messages::Listener, place};
use namewire_packet::nfd::{FacePersistency, FaceUri};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{RecvFlags, recv},
};
use std::{
    collections::VecDeque,
    io,
    net::{SocketAddr, UdpSocket},
    os::fd::{AsFd, OwnedFd},
    os::unix::{fs::MetadataExt, net::UnixListener as StdUnixListener},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, UnixListener},
    runtime::Runtime,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc::UnboundedSender},
    task::spawn_local,
    time::sleep,
};

/// Connections that a listener accepted and whose faces control does not know yet.
const ACCEPTED_AT_ONCE: usize = 64;

/// Connections whose peers have closed them but left data to read.
const PARTED_MAX: usize = 256;

/// Pause after a failed accept. It fails when descriptors run out, and an immediate retry would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The file of a Unix listener. Dropping it removes the file if it is ours, unless another file has taken its place.
///
/// Drop it before the listener closes: until then the kernel gives the file's number to no other file.
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The router removes it at its end.
    is_ours: bool,
    /// Device and inode; `None` if the file is not to be removed.
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    /// The file to which a listener was bound just now.
    fn new(path: &Path) -> Self {
        SocketFile { path: path.to_owned(), is_ours: true, identity: identity(path) }
    }

    /// The file of a listener that another process made and keeps.
    fn of_another_process(path: &Path) -> Self {
        SocketFile { path: path.to_owned(), is_ours: false, identity: None }
    }

    /// The file of another program that may still go on. It becomes ours by [`SocketFile::claim`], unless it was not
    /// that program's.
    fn of_program_before(path: &Path, is_inherited: bool) -> Self {
        SocketFile { path: path.to_owned(), is_ours: !is_inherited, identity: None }
    }

    /// The program before has stopped.
    pub(crate) fn claim(&mut self) {
        self.identity = self.is_ours.then(|| identity(&self.path)).flatten();
    }

    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// From now on the file is another process's.
    pub(crate) fn leave(&mut self) {
        self.identity = None;
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another router may have taken the path over, and its applications connect there.
        if self.identity.is_some() && self.identity == identity(&self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Device and inode of the file at `path`.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// All listening sockets of a router.
pub(crate) struct Listeners {
    /// The file comes first, because it must be dropped first.
    unix: Option<(SocketFile, StdUnixListener)>,
    memory: Option<MemoryListener>,
    tcp: Vec<std::net::TcpListener>,
    /// Addresses of the UDP listeners.
    pub(crate) udp: Vec<SocketAddr>,
    /// For each worker, one socket per address: the kernel spreads remote addresses over them.
    pub(crate) udp_sockets: Vec<Vec<UdpSocket>>,
}

impl Listeners {
    /// `inherited` takes the place of a Unix listener on the configured path.
    pub(crate) fn open(settings: &Settings, inherited: Option<StdUnixListener>) -> Result<Self, StartError> {
        let failed = |what: FaceUri| move |source| StartError::Listen { what, source };
        // The Unix listener comes first: two routers on one machine meet here, and this is the error to report.
        let (faces, workers) = (&settings.faces, usize::from(settings.router.workers));
        let unix = match (faces.unix.socket(), inherited) {
            (None, _) => None,
            (Some(path), Some(listener)) => {
                listener.set_nonblocking(true).map_err(failed(FaceUri::unix(path)))?;
                Some((SocketFile::of_another_process(path), listener))
            }
            (Some(path), None) => {
                let listener = unix::listen(path).map_err(failed(FaceUri::unix(path)))?;
                Some((SocketFile::new(path), listener))
            }
        };
        let memory = match &faces.memif.path {
            None => None,
            Some(path) => Some(MemoryListener::open(path).map_err(failed(FaceUri::memif(path)))?),
        };
        let mut udp_addresses = Vec::new();
        let mut udp_sockets: Vec<Vec<UdpSocket>> = (0..workers).map(|_| Vec::new()).collect();
        for address in faces.udp.addresses() {
            let what = || face_uri::udp(address);
            let listeners = udp::bind_listeners(address, workers).map_err(failed(what()))?;
            let bound = listeners.first().map_or(Ok(address), UdpSocket::local_addr).map_err(failed(what()))?;
            udp_sockets.iter_mut().zip(listeners).for_each(|(sockets, listener)| sockets.push(listener));
            udp_addresses.push(bound);
        }
        let listen_tcp = |address: SocketAddr| tcp::listen(address).map_err(failed(face_uri::tcp(address)));
        let tcp = faces.tcp.addresses().into_iter().map(listen_tcp).collect::<Result<Vec<_>, _>>()?;
        Ok(Listeners { unix, memory, tcp, udp: udp_addresses, udp_sockets })
    }

    /// Takes the listeners of another program that the configuration names, too, and opens the others. Adds, in words,
    /// what is missing or has ended.
    pub(crate) fn take_over(
        settings: &Settings,
        handed: &mut HandedSockets,
        warnings: &mut Vec<String>,
    ) -> Result<Self, StartError> {
        let (faces, workers) = (&settings.faces, usize::from(settings.router.workers));
        let mut listeners = Listeners {
            unix: take_unix(settings, handed, warnings)?,
            memory: None,
            tcp: Vec::new(),
            udp: Vec::new(),
            udp_sockets: (0..workers).map(|_| Vec::new()).collect(),
        };
        let mut leave_out = |what: FaceUri, source: io::Error| {
            if !may_be_left_out(faces, &what) {
                return Err(StartError::Listen { what, source });
            }
            warnings.push(format!("not listening on {what}: {source}"));
            Ok(())
        };
        for address in faces.udp.addresses() {
            if let Some((bound, sockets)) = handed.take_udp(address) {
                listeners.udp.push(bound);
                for (worker, socket) in sockets {
                    let place = listeners.udp_sockets.get_mut(usize::from(worker));
                    if let Some(place) = place {
                        place.push(UdpSocket::from(socket));
                    }
                }
                continue;
            }
            match udp::bind_listeners(address, workers) {
                Ok(sockets) => {
                    let bound = sockets.first().map_or(Ok(address), UdpSocket::local_addr)?;
                    listeners.udp.push(bound);
                    let places = listeners.udp_sockets.iter_mut();
                    places.zip(sockets).for_each(|(sockets, socket)| sockets.push(socket));
                }
                Err(error) => leave_out(face_uri::udp(address), error)?,
            }
        }
        for address in faces.tcp.addresses() {
            match handed.take_stream("tcp", address).map_or_else(|| tcp::listen(address), Ok) {
                Ok(listener) => listeners.tcp.push(listener),
                Err(error) => leave_out(face_uri::tcp(address), error)?,
            }
        }
        Ok(listeners)
    }

    /// Other descriptors of the stream listeners.
    pub(crate) fn duplicates(&self) -> io::Result<Vec<(Listener, OwnedFd)>> {
        let mut duplicates = Vec::new();
        if let Some((file, listener)) = &self.unix {
            let uri = FaceUri::unix(file.path()).to_string();
            let listener_said = Listener { uri, worker: 0, is_inherited: !file.is_ours };
            duplicates.push((listener_said, listener.try_clone()?.into()));
        }
        for listener in &self.tcp {
            let uri = place("tcp", listener.local_addr()?);
            duplicates.push((Listener { uri, ..Listener::default() }, listener.try_clone()?.into()));
        }
        Ok(duplicates)
    }

    pub(crate) fn tcp_addresses(&self) -> Vec<SocketAddr> {
        self.tcp.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// The channels, as management lists them.
    pub(crate) fn channels(&self) -> Vec<FaceUri> {
        let unix = self.unix.iter().map(|(file, _)| FaceUri::unix(file.path()));
        let tcp = self.tcp_addresses().into_iter().map(FaceUri::tcp);
        let memory = self.memory.iter().map(MemoryListener::uri);
        unix.chain(memory).chain(tcp).chain(self.udp.iter().copied().map(FaceUri::udp)).collect()
    }

    /// Lets the runtime watch the stream listeners.
    pub(crate) fn register(self, runtime: &Runtime) -> io::Result<(Acceptors, Option<SocketFile>)> {
        let _inside = runtime.enter();
        let mut acceptors = Vec::new();
        for listener in self.tcp {
            acceptors.push(Acceptor::Tcp(TcpListener::from_std(listener)?));
        }
        let mut socket_file = None;
        if let Some((file, listener)) = self.unix {
            acceptors.push(Acceptor::Unix(UnixListener::from_std(listener)?, file.path().clone()));
            socket_file = Some(file);
        }
        let memory = self.memory.map(MemoryListener::register).transpose()?;
        Ok((Acceptors { streams: acceptors, memory }, socket_file))
    }
}

/// The Unix listener of another program, unless the configuration has another path or none.
fn take_unix(
    settings: &Settings,
    handed: &mut HandedSockets,
    warnings: &mut Vec<String>,
) -> Result<Option<(SocketFile, StdUnixListener)>, StartError> {
    let unix = &settings.faces.unix;
    if !unix.enabled {
        return Ok(None);
    }
    let wanted = unix.path.as_ref().map(|path| FaceUri::unix(path));
    if let Some((FaceUri::Unix(path), is_inherited, socket)) = handed.take_unix(wanted.as_ref()) {
        let path = PathBuf::from(path);
        return Ok(Some((SocketFile::of_program_before(&path, is_inherited), socket.into())));
    }
    let Some(path) = &unix.path else {
        warnings.push("no Unix socket: the program before had none".to_owned());
        return Ok(None);
    };
    let failed = |source| StartError::Listen { what: FaceUri::unix(path), source };
    Ok(Some((SocketFile::new(path), unix::listen(path).map_err(failed)?)))
}

/// True if the configuration leaves the addresses to the router, so that one that cannot be had is left out.
fn may_be_left_out(faces: &FacesSection, what: &FaceUri) -> bool {
    match what.scheme() {
        "udp4" | "udp6" => faces.udp.listen.is_none(),
        "tcp4" | "tcp6" => faces.tcp.listen.is_none(),
        _ => false,
    }
}

/// Listeners that the runtime watches.
pub(crate) struct Acceptors {
    streams: Vec<Acceptor>,
    memory: Option<memory_listener::Acceptor>,
}

impl Acceptors {
    /// Serves them until the runtime ends.
    pub(crate) fn serve(
        self,
        events: &UnboundedSender<ToControl>,
        counters: &Arc<AcceptCounters>,
        descriptors: &Descriptors,
    ) {
        if let Some(acceptor) = self.memory {
            spawn_local(acceptor.serve(events.clone(), descriptors.clone()));
        }
        for acceptor in self.streams {
            let accepted = Accepted {
                events: events.clone(),
                // Each listener has its own places, so that a storm on one takes no place from another.
                places: Arc::new(Semaphore::new(ACCEPTED_AT_ONCE)),
                counters: Arc::clone(counters),
                parted: VecDeque::new(),
                descriptors: descriptors.clone(),
            };
            spawn_local(acceptor.serve(accepted));
        }
    }
}

enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Acceptor {
    async fn serve(self, mut accepted: Accepted) {
        loop {
            let connection = tokio::select! {
                // Newcomers go before connections whose peers have gone.
                biased;
                connection = self.accept() => connection,
                Some((waiting, place)) = accepted.parted() => {
                    accepted.pass_on(waiting, place);
                    continue;
                }
            };
            match connection {
                Ok(socket) => accepted.take(&self, socket).await,
                // Only this connection has failed, not the listener.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    let _ = accepted.events.send(ToControl::AcceptFailed);
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn accept(&self) -> io::Result<StreamSocket> {
        match self {
            Acceptor::Tcp(listener) => listener.accept().await?.0.into_std().map(StreamSocket::Tcp),
            Acceptor::Unix(listener, _) => listener.accept().await?.0.into_std().map(StreamSocket::Unix),
        }
    }

    fn face_info(&self, socket: &StreamSocket) -> io::Result<FaceInfo> {
        match (self, socket) {
            (Acceptor::Unix(_, path), StreamSocket::Unix(socket)) => Ok(unix::face_info(socket, path)),
            (_, StreamSocket::Tcp(socket)) => tcp::face_info(socket, FacePersistency::OnDemand),
            (Acceptor::Tcp(_), StreamSocket::Unix(_)) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// The state of an accepted connection's peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Present,
    /// The peer has closed the connection and sent nothing. No face is necessary.
    Left,
    /// The peer has closed the connection, and what it sent can still be read.
    LeftWords,
}

impl Peer {
    fn of(socket: &StreamSocket) -> Self {
        let socket = socket.as_fd();
        let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        // A peer that has closed only its own half still waits for what we send.
        let has_hung_up = poll(&mut polled, Some(&Timespec::default())).is_ok()
            && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
        match has_hung_up {
            false => Peer::Present,
            true => match recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                Ok((_, 1..)) => Peer::LeftWords,
                _ => Peer::Left,
            },
        }
    }
}

/// Counts of accepted connections that did not become faces.
#[derive(Debug, Default)]
pub(crate) struct AcceptCounters {
    /// Times that a listener left connections to the kernel, because those it had accepted were not faces yet.
    pub(crate) held: AtomicU64,
    /// Connections whose peers had gone, without sending anything, before they were accepted.
    pub(crate) left: AtomicU64,
    /// The same for peers that had sent something. It is never read, because [`PARTED_MAX`] such connections waited
    /// already.
    pub(crate) left_unheard: AtomicU64,
}

/// The destination of a listener's accepted connections.
struct Accepted {
    events: UnboundedSender<ToControl>,
    places: Arc<Semaphore>,
    counters: Arc<AcceptCounters>,
    /// Connections with [`Peer::LeftWords`], which wait until no newcomer does.
    parted: VecDeque<Waiting>,
    descriptors: Descriptors,
}

/// An accepted connection that may become a face.
struct Waiting {
    socket: StreamSocket,
    info: FaceInfo,
    descriptors: TakenDescriptors,
}

impl Accepted {
    async fn take(&mut self, acceptor: &Acceptor, socket: StreamSocket) {
        match Peer::of(&socket) {
            Peer::Left => count(&self.counters.left),
            Peer::LeftWords if self.parted.len() >= PARTED_MAX => count(&self.counters.left_unheard),
            peer => {
                // A connection that was reset meanwhile has no facts; one beyond its share is counted there.
                let Ok(info) = acceptor.face_info(&socket) else { return };
                let Ok(descriptors) = self.descriptors.take(&info.holder(), OF_STREAM) else { return };
                let waiting = Waiting { socket, info, descriptors };
                match peer {
                    Peer::LeftWords => self.parted.push_back(waiting),
                    _ => {
                        if let Some(place) = self.place().await {
                            self.pass_on(waiting, place);
                        }
                    }
                }
            }
        }
    }

    /// Waits for a place for a newcomer. `None`: the router stops.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        count(&self.counters.held);
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// A connection whose peer has gone, when a place is free for it. `None` at once if there is no such connection.
    async fn parted(&mut self) -> Option<(Waiting, OwnedSemaphorePermit)> {
        if self.parted.is_empty() {
            return None;
        }
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        self.parted.pop_front().map(|waiting| (waiting, place))
    }

    fn pass_on(&self, waiting: Waiting, place: OwnedSemaphorePermit) {
        let Waiting { socket, info, descriptors } = waiting;
        let connection = Connection::Stream(socket);
        let accepted = AcceptedConnection { connection, info, place, descriptors: Some(descriptors) };
        // Control is gone only when the router stops.
        let _ = self.events.send(ToControl::Accepted(accepted));
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_shares::HolderTable;
    use std::{io::Write, net::Shutdown, os::unix::net::UnixStream};
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn who_left_without_a_word_gets_no_face() {
        let pair = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (StreamSocket::Unix(ours), theirs)
        };
        let (ours, theirs) = pair();
        assert_eq!(Peer::of(&ours), Peer::Present);
        theirs.shutdown(Shutdown::Write).unwrap();
        assert_eq!(Peer::of(&ours), Peer::Present, "it may listen still");
        drop(theirs);
        assert_eq!(Peer::of(&ours), Peer::Left);
        let (ours, mut theirs) = pair();
        theirs.write_all(b"Data").unwrap();
        drop(theirs);
        assert_eq!(Peer::of(&ours), Peer::LeftWords);
    }

    #[test]
    fn a_listener_waits_until_what_it_accepted_are_faces() {
        let (events, _queue) = unbounded_channel();
        let places = Arc::new(Semaphore::new(2));
        let descriptors = Descriptors::of_process(&HolderTable::default(), events.clone());
        let accepted = Accepted { events, places, counters: Arc::default(), parted: VecDeque::new(), descriptors };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let first = accepted.place().await;
            let _second = accepted.place().await;
            let hour = Duration::from_secs(3600);
            assert!(tokio::time::timeout(hour, accepted.place()).await.is_err());
            assert_eq!(accepted.counters.held.load(Ordering::Relaxed), 1);
            drop(first);
            assert!(accepted.place().await.is_some());
            assert_eq!(accepted.counters.held.load(Ordering::Relaxed), 1);
        });
    }
}
