//! WebSocket faces, `ws` and `wss`, on a separate thread outside the packet path of other faces.
//!
//! ```text
//!   peer ══ TCP (TLS) ══ WebSocket ═ bridge ═ Unix socket pair ══ worker: an ordinary stream face
//!                        └───────── thread nw-websocket ──────┘
//! ```
//!
//! A binary message is one element: an Interest, a Data or an LpPacket, as in NFD and NDNts (NFD
//! `websocket-transport.cpp`). The worker sees only a stream of elements, not WebSocket. So masks, frames, pings and
//! TLS never cost time on packets of other faces.
//!
//! When the router stops, each peer gets a Close frame; the thread waits [`STOP_TIMEOUT`] at most for their answers.
//!
//! Limits: messages of 8800 bytes, handshakes of [`HANDSHAKE_SECONDS`]. [`connections`], [`bridge`] and [`half_open`]
//! have more limits. Each refusal is a [`WebSocketDrop`].

mod bridge;
mod client;
mod connections;
mod half_open;
mod server;
mod tls;

use half_open::HalfOpen;
use namewire_configuration::settings::WebSocketSection;
use namewire_faces::{FaceInfo, StreamSocket};
use namewire_packet::nfd::{FaceUri, WebSocketUrl};
use namewire_shares::PoolReader;
use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{
    runtime,
    sync::{OwnedSemaphorePermit, mpsc, oneshot, watch},
    task::{LocalSet, spawn_local},
    time::timeout,
};

pub use connections::{Connections, Descriptors, OF_CONNECTION};
pub use server::{ListenError, Listener};
use tls::TlsFiles;

/// Time for TLS and the WebSocket handshake together.
const HANDSHAKE_SECONDS: u64 = 10;

/// Longest wait for the ends of all connections. Each takes [`bridge::CLOSE_TIMEOUT`] at most.
const STOP_TIMEOUT: Duration = bridge::CLOSE_TIMEOUT.saturating_mul(2);

/// Most calls that wait for the thread.
const CALLS_MAX: usize = 256;

namewire_packet::reasons! {
    /// Why a connection or message was refused.
    pub enum WebSocketDrop {
        /// A connection found no place or no descriptors, or its holder has its share. It was answered 503.
        TooManyConnections = "too-many-connections",
        /// No descriptor or no memory for a connection.
        AcceptFailed = "accept-failed",
        /// The peer did not complete the handshake, or not in time.
        HandshakeFailed = "handshake-failed",
        /// Too many handshakes were under way, and this was the oldest.
        HandshakeDisplaced = "handshake-displaced",
        /// A text message: NDN packets are binary. Ends the connection.
        TextMessage = "text-message",
        /// A message of more than 8800 bytes. Ends the connection.
        OversizeMessage = "oversize-message",
        /// A message that is not one whole element. Dropped alone, as NFD does.
        MalformedMessage = "malformed-message",
        /// Frames that violate the WebSocket protocol, or a connection that broke. Ends it.
        ConnectionFailed = "connection-failed",
        /// The peer answered no ping, or took nothing for too long. Ends the connection.
        DeadPeer = "dead-peer",
        /// A certificate or key file has changed and cannot be read; the old one stays in use.
        CertificateUnreadable = "certificate-unreadable",
    }
}

/// Counts of each [`WebSocketDrop`].
#[derive(Debug, Default)]
pub struct WebSocketCounters([AtomicU64; WebSocketDrop::COUNT]);

impl WebSocketCounters {
    fn count(&self, drop: WebSocketDrop) {
        self.0[drop as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Names and counts.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        WebSocketDrop::named(&self.0.each_ref().map(|count| count.load(Ordering::Relaxed)))
    }
}

/// A connection that a listener has accepted, and whose handshake is complete.
pub struct AcceptedWebSocket {
    /// The worker's end.
    pub socket: StreamSocket,
    /// Its face, as it will be.
    pub info: FaceInfo,
    /// The place that it holds at its listener until it is a face.
    pub place: OwnedSemaphorePermit,
}

/// Takes accepted connections.
type Accept = Arc<dyn Fn(AcceptedWebSocket) + Send + Sync>;

/// The result of a call: the worker's end, and the addresses of the TCP connection.
pub struct Called {
    /// The worker's end.
    pub socket: StreamSocket,
    /// Our address.
    pub local: SocketAddr,
    /// The server's address.
    pub remote: SocketAddr,
}

/// A call: a connection to make.
struct Call {
    url: WebSocketUrl,
    answer: oneshot::Sender<io::Result<Called>>,
}

/// What all connections of the thread share.
struct Context {
    counters: Arc<WebSocketCounters>,
    connections: Arc<Connections>,
    accept: Accept,
    /// Its sender is dropped when the router stops.
    stop: watch::Receiver<()>,
}

impl Context {
    /// Returns when the router stops.
    async fn stopped(&self) {
        let _ = self.stop.clone().changed().await;
    }
}

/// The thread, or the parts to start it with the first connection.
pub struct WebSockets {
    /// Certificates that `wss://` servers are checked against; the system's if there are none.
    trusted_certificates: Option<PathBuf>,
    accept: Accept,
    connections: Arc<Connections>,
    counters: Arc<WebSocketCounters>,
    running: Option<Running>,
    channels: Vec<FaceUri>,
    /// Listeners that are not served yet.
    waiting: Vec<Listener>,
}

/// The running thread. Dropping it says goodbye to all peers, and ends the thread.
struct Running {
    calls: Option<mpsc::Sender<Call>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // this fails only if the thread panicked, which was reported then
        }
    }
}

impl WebSockets {
    /// Serves the listeners, and calls `accept` with each connection that they accept. Without listeners, the thread
    /// starts with the first call.
    ///
    /// # Errors
    /// There is no thread, or no descriptor for it.
    pub fn start(
        trusted_certificates: Option<PathBuf>,
        listeners: Vec<Listener>,
        accept: impl Fn(AcceptedWebSocket) + Send + Sync + 'static,
        connections: Connections,
    ) -> io::Result<Self> {
        let mut websockets = Self::before_start(trusted_certificates, listeners, accept, connections);
        websockets.listen()?;
        Ok(websockets)
    }

    /// The same, but the listeners are not served before [`WebSockets::listen`].
    pub fn before_start(
        trusted_certificates: Option<PathBuf>,
        listeners: Vec<Listener>,
        accept: impl Fn(AcceptedWebSocket) + Send + Sync + 'static,
        connections: Connections,
    ) -> Self {
        WebSockets {
            trusted_certificates,
            accept: Arc::new(accept),
            connections: Arc::new(connections),
            counters: Arc::default(),
            running: None,
            channels: listeners.iter().map(Listener::uri).collect(),
            waiting: listeners,
        }
    }

    /// Serves the listeners from now on.
    ///
    /// # Errors
    /// There is no thread, or no descriptor for it.
    pub fn listen(&mut self) -> io::Result<()> {
        let listeners = std::mem::take(&mut self.waiting);
        if listeners.is_empty() { Ok(()) } else { self.run(listeners) }
    }

    /// Reasons of refused connections and messages, with counts.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.counters.counts()
    }

    /// The pool of places for connections.
    pub fn pool(&self) -> PoolReader {
        self.connections.reader()
    }

    /// The channels, as management lists them.
    pub fn channels(&self) -> &[FaceUri] {
        &self.channels
    }

    /// Connects to a server. The receiver gets the answer when the call is complete.
    ///
    /// # Errors
    /// The thread does not start, or [`CALLS_MAX`] calls wait for it.
    pub fn call(&mut self, url: WebSocketUrl) -> io::Result<oneshot::Receiver<io::Result<Called>>> {
        if self.running.is_none() {
            self.run(Vec::new())?;
        }
        let (answer, answered) = oneshot::channel();
        let calls = self.running.as_ref().and_then(|running| running.calls.as_ref());
        let busy = || io::Error::new(io::ErrorKind::WouldBlock, "too many connections are being made");
        calls.ok_or_else(busy)?.try_send(Call { url, answer }).map_err(|_| busy())?;
        Ok(answered)
    }

    /// Tells all peers that the router stops, and ends the thread. To be called while workers run: a face that ends
    /// first is another goodbye.
    pub fn stop(&mut self) {
        self.running = None;
    }

    fn run(&mut self, listeners: Vec<Listener>) -> io::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (calls, mut called) = mpsc::channel::<Call>(CALLS_MAX);
        let (running, stop) = watch::channel(());
        let context = Arc::new(Context {
            counters: Arc::clone(&self.counters),
            connections: Arc::clone(&self.connections),
            accept: Arc::clone(&self.accept),
            stop,
        });
        let caller = client::Caller::new(self.trusted_certificates.clone(), Arc::clone(&context));
        let thread = thread::Builder::new().name("nw-websocket".to_owned()).spawn(move || {
            LocalSet::new().block_on(&runtime, async move {
                let half_open = HalfOpen::default();
                for listener in listeners {
                    spawn_local(server::serve(listener, Arc::clone(&context), half_open.clone()));
                }
                while let Some(call) = called.recv().await {
                    spawn_local(caller.clone().call(call));
                }
                drop(running);
                let _ = timeout(STOP_TIMEOUT, context.connections.ended()).await;
            });
            // A resolver that still waits for a name server must not delay the router's end.
            runtime.shutdown_timeout(Duration::ZERO);
        })?;
        self.running = Some(Running { calls: Some(calls), thread: Some(thread) });
        Ok(())
    }
}

/// Opens the listeners of a configuration.
///
/// # Errors
/// An address is in use or not allowed, or a certificate cannot be read.
pub fn open_listeners(section: &WebSocketSection) -> Result<Vec<Listener>, ListenError> {
    open_or_take_listeners(section, |_| None)
}

/// The same, but `handed` may have the socket of an address already.
///
/// # Errors
/// Those of [`open_listeners`].
pub fn open_or_take_listeners(
    section: &WebSocketSection,
    mut handed: impl FnMut(SocketAddr) -> Option<std::net::TcpListener>,
) -> Result<Vec<Listener>, ListenError> {
    if !section.enabled {
        return Ok(Vec::new());
    }
    let files = section.certificate.clone().zip(section.key.clone());
    let files = files.map(|(certificate, key)| TlsFiles { certificate, key });
    let plain = section.listen.iter().map(|&address| (address, None));
    let all = plain.chain(section.listen_tls.iter().map(|&address| (address, files.as_ref())));
    all.map(|(address, files)| Listener::open(address, files, handed(address))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_is_counted_under_its_name() {
        let counters = WebSocketCounters::default();
        counters.count(WebSocketDrop::DeadPeer);
        assert_eq!(counters.counts().filter(|(_, count)| *count > 0).collect::<Vec<_>>(), [("dead-peer", 1)]);
    }
}
