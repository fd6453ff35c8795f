//! Listening sockets: opened before any thread starts, so that errors are the
//! caller's, and served by one task per listener on the control thread.
//!
//! Limit: [`ACCEPTED_AT_ONCE`] connections between the kernel and the control thread;
//! the others wait in the kernel's backlogs.

use crate::{RouterConfig, StartError, messages::ToControl};
use namewire_faces::{FaceInfo, Persistency, StreamSocket, face_uri, tcp, udp, unix};
use namewire_packet::nfd::FaceUri;
use std::{
    io,
    net::{SocketAddr, UdpSocket},
    os::unix::net::UnixListener as StdUnixListener,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{TcpListener, UnixListener},
    runtime::Runtime,
    sync::{Semaphore, mpsc::UnboundedSender},
    task::spawn_local,
    time::sleep,
};

/// Connections accepted that control has not yet taken up.
const ACCEPTED_AT_ONCE: usize = 64;

/// Pause after a failed accept: it fails when descriptors run out, and trying at
/// once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The file of a Unix listener, removed when dropped.
pub(crate) struct SocketFile(PathBuf);

impl SocketFile {
    pub(crate) fn path(&self) -> &PathBuf {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // somebody else removed it: as well
    }
}

/// All listening sockets of a router.
pub(crate) struct Listeners {
    unix: Option<(StdUnixListener, SocketFile)>,
    tcp: Vec<std::net::TcpListener>,
    /// Addresses of the UDP listeners.
    pub(crate) udp: Vec<SocketAddr>,
    /// Per worker, one socket per address: the kernel spreads remotes over them.
    pub(crate) udp_sockets: Vec<Vec<UdpSocket>>,
}

impl Listeners {
    pub(crate) fn open(config: &RouterConfig) -> Result<Self, StartError> {
        let failed = |what: String| move |source| StartError::Listen { what, source };
        // First: two routers of one machine meet here, and that is the error to report.
        let unix = match &config.socket {
            None => None,
            Some(path) => {
                let listener = unix::listen(path).map_err(failed(face_uri::unix(path)))?;
                Some((listener, SocketFile(path.clone())))
            }
        };
        let mut udp_addresses = Vec::new();
        let mut udp_sockets: Vec<Vec<UdpSocket>> = (0..config.workers).map(|_| Vec::new()).collect();
        for &address in &config.udp {
            let mut address = address;
            for (index, sockets) in udp_sockets.iter_mut().enumerate() {
                let what = face_uri::udp(address);
                let socket = udp::bind_listener(address, index > 0).map_err(failed(what.clone()))?;
                address = socket.local_addr().map_err(failed(what))?;
                sockets.push(socket);
            }
            udp_addresses.push(address);
        }
        let listen_tcp = |&address: &SocketAddr| tcp::listen(address).map_err(failed(face_uri::tcp(address)));
        let tcp = config.tcp.iter().map(listen_tcp).collect::<Result<Vec<_>, _>>()?;
        Ok(Listeners { unix, tcp, udp: udp_addresses, udp_sockets })
    }

    pub(crate) fn tcp_addresses(&self) -> Vec<SocketAddr> {
        self.tcp.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// As management lists them.
    pub(crate) fn channels(&self) -> Vec<FaceUri> {
        let unix = self.unix.iter().map(|(_, file)| FaceUri::Unix(file.path().to_string_lossy().into_owned()));
        let tcp = self.tcp_addresses().into_iter().map(FaceUri::tcp);
        unix.chain(tcp).chain(self.udp.iter().copied().map(FaceUri::udp)).collect()
    }

    /// Lets the runtime watch the stream listeners.
    pub(crate) fn register(self, runtime: &Runtime) -> io::Result<(Acceptors, Option<SocketFile>)> {
        let _inside = runtime.enter();
        let tcp = self.tcp.into_iter().map(TcpListener::from_std).collect::<io::Result<Vec<_>>>()?;
        let (unix, file) = match self.unix {
            None => (None, None),
            Some((listener, file)) => (Some((UnixListener::from_std(listener)?, file.path().clone())), Some(file)),
        };
        Ok((Acceptors { unix, tcp }, file))
    }
}

/// Listeners that the runtime watches.
pub(crate) struct Acceptors {
    unix: Option<(UnixListener, PathBuf)>,
    tcp: Vec<TcpListener>,
}

impl Acceptors {
    /// Serves them until the runtime ends.
    pub(crate) fn serve(self, events: &UnboundedSender<ToControl>) {
        let places = Arc::new(Semaphore::new(ACCEPTED_AT_ONCE));
        for listener in self.tcp {
            let accepted = Accepted { events: events.clone(), places: Arc::clone(&places) };
            spawn_local(async move {
                loop {
                    let connection = listener.accept().await;
                    accepted.pass_on(connection, |(socket, _)| tcp_face(socket)).await;
                }
            });
        }
        if let Some((listener, path)) = self.unix {
            let accepted = Accepted { events: events.clone(), places };
            spawn_local(async move {
                loop {
                    let connection = listener.accept().await;
                    let face = |(socket, _): (tokio::net::UnixStream, _)| {
                        let socket = socket.into_std()?;
                        let info = unix::face_info(&socket, &path);
                        Ok((StreamSocket::Unix(socket), info))
                    };
                    accepted.pass_on(connection, face).await;
                }
            });
        }
    }
}

fn tcp_face(socket: tokio::net::TcpStream) -> io::Result<(StreamSocket, FaceInfo)> {
    let socket = socket.into_std()?;
    let info = tcp::face_info(&socket, Persistency::OnDemand)?;
    Ok((StreamSocket::Tcp(socket), info))
}

/// Where accepted connections go.
struct Accepted {
    events: UnboundedSender<ToControl>,
    places: Arc<Semaphore>,
}

impl Accepted {
    async fn pass_on<T>(
        &self,
        connection: io::Result<T>,
        face: impl FnOnce(T) -> io::Result<(StreamSocket, FaceInfo)>,
    ) {
        let connection = match connection {
            Ok(connection) => connection,
            // That connection has failed, not the listener.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => return,
            Err(_) => {
                let _ = self.events.send(ToControl::AcceptFailed);
                return sleep(ACCEPT_PAUSE).await;
            }
        };
        // Fails for a connection that was reset before we took it: no reason to wait.
        let Ok((socket, info)) = face(connection) else { return };
        // Neither is closed before the router stops.
        if let Ok(permit) = Arc::clone(&self.places).acquire_owned().await {
            let _ = self.events.send(ToControl::Accepted { socket, info, permit });
        }
    }
}
