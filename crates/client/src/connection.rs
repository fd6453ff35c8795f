//! The connection of a client, and how the client restores it.
//!
//! Question: what does an application notice when its forwarder starts again?
//!
//! ```text
//!   open ── lost: pending Interests fail with `Closed`, streams of Interests wait ──► closed
//!     ▲                                                                                 │
//!     └── the next Interest, or a stream after a pause, tries each candidate again ─────┘
//! ```
//!
//! A stream of Interests registers its prefix again; everything else that the application had with the old
//! forwarder (routes without a stream, face settings, tags) is gone with the old face. A client made from a stream of
//! bytes cannot connect again.
//!
//! Limits: [`CONNECT_TIMEOUT`] for each candidate; one attempt at a time, pauses from [`PAUSE_FIRST`] to
//! [`PAUSE_LAST`].

use crate::{close_reason::CloseReason, face::Face, transport_uri::TransportUri};
use std::{
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    net::{TcpStream, UdpSocket, UnixStream},
    sync::Semaphore,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// Pause before a busy listener is tried again.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// How long an attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);
/// Pauses between attempts of a stream of Interests; each is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LAST: Duration = Duration::from_secs(5);

/// The attempts of one stream, and what its listener was told. A forwarder that closes each new connection at once is
/// asked as seldom as one that is away.
#[derive(Default)]
pub(crate) struct Backoff {
    pause: Option<Duration>,
    restored: Option<Instant>,
    is_lost: bool,
    told: Option<String>,
}

impl Backoff {
    /// True for the first attempt after a loss.
    pub(crate) fn lost(&mut self) -> bool {
        !std::mem::replace(&mut self.is_lost, true)
    }

    /// True if an attempt failed for another reason than the one before. Each reason once: a forwarder that is away for
    /// an hour fills no log.
    pub(crate) fn failed(&mut self, reason: &str) -> bool {
        self.told.replace(reason.to_owned()).as_deref() != Some(reason)
    }

    pub(crate) async fn pause(&mut self) {
        if self.restored.take().is_some_and(|restored| restored.elapsed() > PAUSE_LAST) {
            self.pause = None;
        }
        let pause = self.pause.map_or(PAUSE_FIRST, |pause| (pause * 2).min(PAUSE_LAST));
        self.pause = Some(pause);
        sleep(pause).await;
    }

    pub(crate) fn restored(&mut self) {
        *self = Backoff { pause: self.pause, restored: Some(Instant::now()), ..Backoff::default() };
    }
}

/// What [`crate::Client::on_connection_event`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// A stream of Interests, notifications or tag packets has lost its connection, and tries again until it has
    /// another.
    Lost(CloseReason),
    /// An attempt failed, for another reason than the one before.
    StillLost(String),
    /// There is a connection again, and prefixes are registered, tags advertised.
    Restored,
}

/// One face and its address.
pub(crate) struct Link {
    pub(crate) face: Arc<Face>,
    pub(crate) transport: Option<TransportUri>,
    pub(crate) is_local: bool,
    reader: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.face.close_when_drained();
        self.reader.abort();
    }
}

impl Link {
    pub(crate) fn start(
        transport: Option<TransportUri>,
        is_local: bool,
        run: impl FnOnce(&Arc<Face>) -> [JoinHandle<()>; 2],
    ) -> Self {
        let face = Arc::new(Face::default());
        let [reader, _writer] = run(&face);
        Link { face, transport, is_local, reader }
    }

    async fn open(uri: &TransportUri) -> io::Result<Self> {
        let transport = Some(uri.clone());
        match uri {
            TransportUri::Unix(path) => {
                let (reader, writer) = connect_unix(path).await?.into_split();
                Ok(Link::start(transport, true, |face| face.run_stream(reader, writer)))
            }
            TransportUri::Tcp { .. } => {
                let stream = TcpStream::connect(uri.resolve().await?.as_slice()).await?;
                stream.set_nodelay(true)?;
                let is_local = stream.peer_addr()?.ip().is_loopback() && stream.local_addr()?.ip().is_loopback();
                let (reader, writer) = stream.into_split();
                Ok(Link::start(transport, is_local, |face| face.run_stream(reader, writer)))
            }
            TransportUri::Udp { .. } => {
                let address = uri.resolve().await?[0];
                let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any).await?;
                socket.connect(address).await?;
                Ok(Link::start(transport, false, |face| face.run_datagram(socket)))
            }
        }
    }
}

/// What all handles of a client share. It closes when the last one is dropped.
pub(crate) struct Connection {
    link: Mutex<Link>,
    /// Where forwarders may be; empty: the connection cannot be opened again.
    candidates: Vec<TransportUri>,
    /// Held by the one who opens it again.
    opening: tokio::sync::Mutex<()>,
    pub(crate) slots: Arc<Semaphore>,
}

impl Connection {
    pub(crate) fn new(link: Link, candidates: Vec<TransportUri>, slots: usize) -> Self {
        Connection {
            link: Mutex::new(link),
            candidates,
            opening: tokio::sync::Mutex::default(),
            slots: Arc::new(Semaphore::new(slots)),
        }
    }

    pub(crate) fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if it can be opened again.
    pub(crate) fn can_reopen(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// The face, of a new connection if the last one has ended.
    ///
    /// # Errors
    /// If no forwarder answers now.
    pub(crate) async fn open_face(&self) -> Result<Arc<Face>, NotReopened> {
        if let Ok(face) = self.face_if_open() {
            return Ok(face);
        }
        let _opening = self.opening.lock().await;
        let reason = match self.face_if_open() {
            Ok(face) => return Ok(face),
            Err(reason) => reason,
        };
        let link = open_first(&self.candidates).await.map_err(|tried| NotReopened { reason, tried })?;
        let face = Arc::clone(&link.face);
        *self.link() = link;
        Ok(face)
    }

    fn face_if_open(&self) -> Result<Arc<Face>, CloseReason> {
        let face = Arc::clone(&self.link().face);
        match face.close_reason() {
            None => Ok(face),
            Some(reason) => Err(reason),
        }
    }
}

/// Candidates, and what went wrong with each.
pub(crate) type Tried = Vec<(TransportUri, io::Error)>;

/// Why there is no other connection.
#[derive(Debug, thiserror::Error)]
#[error("no forwarder answers ({})", list_tried(tried))]
pub(crate) struct NotReopened {
    /// Why the last one ended.
    pub(crate) reason: CloseReason,
    tried: Tried,
}

pub(crate) fn list_tried(tried: &[(TransportUri, io::Error)]) -> String {
    tried.iter().map(|(uri, error)| format!("{uri}: {error}")).collect::<Vec<_>>().join("; ")
}

/// Connects to the first candidate that answers.
///
/// # Errors
/// Each candidate, and what went wrong.
pub(crate) async fn open_first(candidates: &[TransportUri]) -> Result<Link, Tried> {
    let mut tried = Vec::new();
    for uri in candidates {
        match timeout(CONNECT_TIMEOUT, Link::open(uri)).await {
            Ok(Ok(link)) => return Ok(link),
            Ok(Err(error)) => tried.push((uri.clone(), error)),
            Err(_) => tried.push((uri.clone(), io::ErrorKind::TimedOut.into())),
        }
    }
    Err(tried)
}

/// Connects to a socket whose listener may be busy. While the listener's queue is full, the kernel refuses a
/// non-blocking connection at once. Tries until it succeeds or the caller drops the future.
async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(BUSY_PAUSE).await,
            connected => return connected,
        }
    }
}
