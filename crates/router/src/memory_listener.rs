//! The listener for applications that share memory with the router (memif). It accepts, shakes hands, and gives the
//! connection to control as a face.
//!
//! Limits: [`HANDSHAKES_MAX`] handshakes at once, each of at most [`HANDSHAKE_TIMEOUT`]; the descriptors of each user
//! (`descriptors.rs`). A failed handshake ends only its connection; the peer gets the reason.

use crate::{
    descriptors::{Descriptors, OF_MEMORY, TakenDescriptors},
    messages::{AcceptedConnection, Connection, ToControl},
};
use namewire_faces::memory::{self, Handshake, Listener, Port, Progress};
use namewire_packet::nfd::FaceUri;
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::Interest,
    net::UnixDatagram,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc::UnboundedSender},
    task::spawn_local,
    time::{sleep, timeout},
};

/// Connections that are not faces yet.
const HANDSHAKES_MAX: usize = 64;

/// A handshake is a few messages between processes of one machine.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after a failed accept. It fails when descriptors run out, and an immediate retry would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An open listener.
pub(crate) struct MemoryListener {
    listener: Listener,
    path: PathBuf,
}

impl MemoryListener {
    /// Errors: another process listens there; the socket cannot be made.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(MemoryListener { listener: memory::listen(path)?, path: path.to_owned() })
    }

    pub(crate) fn uri(&self) -> FaceUri {
        FaceUri::memif(&self.path)
    }

    /// Lets the runtime, in which it is called, watch the listener.
    pub(crate) fn register(self) -> io::Result<Acceptor> {
        Ok(Acceptor { readiness: readiness(self.listener.as_fd())?, listener: self.listener, path: self.path.into() })
    }
}

/// A listener that the runtime watches.
pub(crate) struct Acceptor {
    listener: Listener,
    readiness: UnixDatagram,
    path: Arc<Path>,
}

impl Acceptor {
    /// Serves it until the runtime ends.
    pub(crate) async fn serve(self, events: UnboundedSender<ToControl>, descriptors: Descriptors) {
        let places = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        loop {
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match self.accept().await {
                Ok(handshake) => {
                    let (events, descriptors, path) = (events.clone(), descriptors.clone(), Arc::clone(&self.path));
                    spawn_local(async move {
                        let accepted = connect(handshake, &path, &descriptors, place).await;
                        // Control is gone only when the router stops.
                        let _ = events.send(accepted.map_or(ToControl::AcceptFailed, ToControl::Accepted));
                    });
                }
                Err(_) => {
                    let _ = events.send(ToControl::AcceptFailed);
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn accept(&self) -> io::Result<Handshake> {
        when_ready(&self.readiness, || self.listener.accept()).await
    }
}

/// Shakes hands. `None`: the peer has left, is too slow, has broken the rules or has short buffers, or its user has
/// enough descriptors.
async fn connect(
    handshake: Handshake,
    path: &Path,
    descriptors: &Descriptors,
    place: OwnedSemaphorePermit,
) -> Option<AcceptedConnection> {
    let taken: TakenDescriptors = descriptors.take(&memory::holder(handshake.as_fd()), OF_MEMORY).ok()?;
    let port = timeout(HANDSHAKE_TIMEOUT, shake_hands(handshake)).await.ok()?.ok()?;
    if !memory::has_usable_buffers(&port) {
        return None;
    }
    let info = memory::face_info(&port, path);
    Some(AcceptedConnection { connection: Connection::Memory(Box::new(port)), info, place, descriptors: Some(taken) })
}

async fn shake_hands(mut handshake: Handshake) -> io::Result<Port> {
    let readiness = readiness(handshake.as_fd())?;
    let step = || {
        Ok(match handshake.step()? {
            Progress::Ready(port) => Some(port),
            Progress::Pending => None,
        })
    };
    when_ready(&readiness, step).await
}

/// Watches a socket for the runtime, in which it is called.
///
/// The runtime can watch Unix datagram sockets but not those of memif (`SOCK_SEQPACKET`). Here it only waits until the
/// socket is readable, which works the same for both.
fn readiness(socket: BorrowedFd<'_>) -> io::Result<UnixDatagram> {
    UnixDatagram::from_std(socket.try_clone_to_owned()?.into())
}

/// Calls `attempt` whenever the socket is readable, until it has a result.
async fn when_ready<T>(readiness: &UnixDatagram, mut attempt: impl FnMut() -> io::Result<Option<T>>) -> io::Result<T> {
    loop {
        readiness.readable().await?;
        let attempted = readiness.try_io(Interest::READABLE, || attempt()?.ok_or(io::ErrorKind::WouldBlock.into()));
        match attempted {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
}
