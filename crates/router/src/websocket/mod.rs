//! WebSocket faces, `ws` and `wss`: a thread of their own, outside the packet path of others.
//!
//! ```text
//!   peer ══ TCP (TLS) ══ WebSocket ═ bridge ═ Unix socket pair ══ worker: an ordinary stream face
//!                        └───────── thread nw-websocket ──────┘
//! ```
//!
//! A binary message is one element, an Interest, a Data or an LpPacket, as in NFD and NDNts
//! (NFD `websocket-transport.cpp`). The worker sees a stream of elements and nothing of
//! WebSocket, so that masks, frames, pings and TLS never cost a packet of another face.
//!
//! Limits: [`CONNECTIONS_MAX`] connections, messages of 8800 octets, handshakes of
//! [`HANDSHAKE_SECONDS`]; the rest is in [`bridge`] and [`half_open`]. Each refusal is a
//! [`WebSocketDrop`].

mod bridge;
mod client;
mod half_open;
mod server;
mod tls;

use self::half_open::HalfOpen;
use crate::{StartError, link_config::WebSocketConfig, messages::ToControl};
use namewire_faces::StreamSocket;
use namewire_packet::nfd::{FaceUri, WebSocketUrl};
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{
    runtime,
    sync::{Semaphore, mpsc, oneshot},
    task::{LocalSet, spawn_local},
};

pub(crate) use server::Listener;

/// Connections at once, accepted and made, whose handshake is complete or, if made, under way.
const CONNECTIONS_MAX: usize = 4096;

/// Time for TLS and the WebSocket handshake together.
const HANDSHAKE_SECONDS: u64 = 10;

/// Calls that may wait for the thread.
const CALLS_MAX: usize = 256;

/// Why a connection or message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum WebSocketDrop {
    /// There are as many connections as may be.
    TooManyConnections,
    /// No descriptor or no memory for a connection.
    AcceptFailed,
    /// The peer did not complete the handshake, or not in time.
    HandshakeFailed,
    /// Too many handshakes were under way, and this one had been for longest.
    HandshakeDisplaced,
    /// A text message: NDN packets are binary. Ends the connection.
    TextMessage,
    /// A message of more than 8800 octets. Ends the connection.
    OversizeMessage,
    /// A message that is not one whole element. Dropped alone, as NFD does.
    MalformedMessage,
    /// Frames that violate the WebSocket protocol, or a connection that broke. Ends it.
    ConnectionFailed,
    /// The peer answered no ping, or took nothing for too long. Ends the connection.
    DeadPeer,
    /// A certificate or key file has changed and cannot be read; the old one stays in use.
    CertificateUnreadable,
}

impl WebSocketDrop {
    const ALL: [(WebSocketDrop, &'static str); 10] = [
        (WebSocketDrop::TooManyConnections, "too-many-connections"),
        (WebSocketDrop::AcceptFailed, "accept-failed"),
        (WebSocketDrop::HandshakeFailed, "handshake-failed"),
        (WebSocketDrop::HandshakeDisplaced, "handshake-displaced"),
        (WebSocketDrop::TextMessage, "text-message"),
        (WebSocketDrop::OversizeMessage, "oversize-message"),
        (WebSocketDrop::MalformedMessage, "malformed-message"),
        (WebSocketDrop::ConnectionFailed, "connection-failed"),
        (WebSocketDrop::DeadPeer, "dead-peer"),
        (WebSocketDrop::CertificateUnreadable, "certificate-unreadable"),
    ];
}

/// How often each [`WebSocketDrop`] occurred.
#[derive(Debug, Default)]
pub(crate) struct WebSocketCounters([AtomicU64; WebSocketDrop::ALL.len()]);

impl WebSocketCounters {
    fn count(&self, drop: WebSocketDrop) {
        self.0[drop as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Names and counts.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        WebSocketDrop::ALL.iter().map(|(drop, name)| (*name, self.0[*drop as usize].load(Ordering::Relaxed)))
    }
}

/// A connection made: the worker's end, and the addresses of the TCP connection.
pub(crate) struct Called {
    pub(crate) socket: StreamSocket,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// A connection to make.
struct Call {
    url: WebSocketUrl,
    answer: oneshot::Sender<io::Result<Called>>,
}

/// What all connections of the thread share.
struct Context {
    counters: Arc<WebSocketCounters>,
    connections: Arc<Semaphore>,
    events: mpsc::UnboundedSender<ToControl>,
}

/// The thread, or what it takes to start it with the first connection.
pub(crate) struct WebSockets {
    config: WebSocketConfig,
    events: mpsc::UnboundedSender<ToControl>,
    pub(crate) counters: Arc<WebSocketCounters>,
    running: Option<Running>,
    channels: Vec<FaceUri>,
}

/// Dropping it ends the thread, with all its connections.
struct Running {
    calls: Option<mpsc::Sender<Call>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // fails only if it panicked, which was reported then
        }
    }
}

impl WebSockets {
    /// Serves the listeners. Without any, the thread starts with the first call.
    pub(crate) fn start(
        config: WebSocketConfig,
        listeners: Vec<Listener>,
        events: mpsc::UnboundedSender<ToControl>,
    ) -> io::Result<Self> {
        let channels = listeners.iter().map(Listener::uri).collect();
        let mut websockets = WebSockets { config, events, counters: Arc::default(), running: None, channels };
        if !listeners.is_empty() {
            websockets.run(listeners)?;
        }
        Ok(websockets)
    }

    /// As management lists them.
    pub(crate) fn channels(&self) -> &[FaceUri] {
        &self.channels
    }

    /// Connects to a server; the answer comes when it is done.
    pub(crate) fn call(&mut self, url: WebSocketUrl) -> io::Result<oneshot::Receiver<io::Result<Called>>> {
        if self.running.is_none() {
            self.run(Vec::new())?;
        }
        let (answer, answered) = oneshot::channel();
        let calls = self.running.as_ref().and_then(|running| running.calls.as_ref());
        let busy = || io::Error::new(io::ErrorKind::WouldBlock, "too many connections are being made");
        calls.ok_or_else(busy)?.try_send(Call { url, answer }).map_err(|_| busy())?;
        Ok(answered)
    }

    fn run(&mut self, listeners: Vec<Listener>) -> io::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (calls, mut called) = mpsc::channel::<Call>(CALLS_MAX);
        let context = Arc::new(Context {
            counters: Arc::clone(&self.counters),
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            events: self.events.clone(),
        });
        let caller = client::Caller::new(self.config.trusted_certificates.clone(), Arc::clone(&context));
        let thread = thread::Builder::new().name("nw-websocket".to_owned()).spawn(move || {
            LocalSet::new().block_on(&runtime, async move {
                let half_open = HalfOpen::default();
                for listener in listeners {
                    spawn_local(server::serve(listener, Arc::clone(&context), half_open.clone()));
                }
                while let Some(call) = called.recv().await {
                    spawn_local(caller.clone().call(call));
                }
            });
            // A resolver that still waits for a name server must not hold the router up.
            runtime.shutdown_timeout(Duration::ZERO);
        })?;
        self.running = Some(Running { calls: Some(calls), thread: Some(thread) });
        Ok(())
    }
}

/// Opens the listeners of a configuration.
pub(crate) fn open_listeners(config: &WebSocketConfig) -> Result<Vec<Listener>, StartError> {
    config.listeners.iter().map(Listener::open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drop_has_its_place_and_name() {
        for (index, (drop, _)) in WebSocketDrop::ALL.iter().enumerate() {
            assert_eq!(*drop as usize, index);
        }
        let counters = WebSocketCounters::default();
        counters.count(WebSocketDrop::DeadPeer);
        assert_eq!(counters.counts().filter(|(_, count)| *count > 0).collect::<Vec<_>>(), [("dead-peer", 1)]);
    }
}
