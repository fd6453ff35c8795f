//! Connections to WebSocket servers, made by `faces/create` with a `ws://` or `wss://` FaceUri. This is an extension:
//! NFD has servers only.
//!
//! Each connection resolves the host name again, so that a permanent face follows its server. A `wss` server must have
//! a certificate for that name, from an issuer that we trust.

use crate::{Call, Called, Context, HANDSHAKE_SECONDS, WebSocketDrop, bridge, connections::ConnectionPlace, tls};
use namewire_faces::StreamSocket;
use namewire_packet::nfd::WebSocketUrl;
use std::{io, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    task::spawn_local,
    time::timeout,
};
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Caller {
    trusted: Option<PathBuf>,
    context: Arc<Context>,
}

impl Caller {
    pub(crate) fn new(trusted: Option<PathBuf>, context: Arc<Context>) -> Self {
        Caller { trusted, context }
    }

    /// Connects, answers, and carries packets until the connection ends.
    pub(crate) async fn call(self, Call { url, answer }: Call) {
        let Ok(place) = self.context.connections.enter_for_operator() else {
            self.context.counters.count(WebSocketDrop::TooManyConnections);
            let _ = answer.send(Err(io::Error::other("too many WebSocket connections")));
            return;
        };
        let patience = Duration::from_secs(HANDSHAKE_SECONDS);
        let timed_out = || io::Error::new(io::ErrorKind::TimedOut, "Connection timed out");
        let result = tokio::select! {
            result = timeout(patience, self.connect(&url, place)) => result.unwrap_or_else(|_| Err(timed_out())),
            () = self.context.stopped() => return,
        };
        // The requester is gone when the router stops.
        let _ = answer.send(result);
    }

    async fn connect(&self, url: &WebSocketUrl, place: ConnectionPlace) -> io::Result<Called> {
        let tcp = TcpStream::connect((url.host.as_str(), url.port)).await?;
        let _ = tcp.set_nodelay(true); // only slower without
        let (local, remote) = (tcp.local_addr()?, tcp.peer_addr()?);
        let text = format!("{}://{url}", url.scheme());
        let socket = if url.is_secure {
            let name = ServerName::try_from(url.host.clone()).map_err(io::Error::other)?;
            let config = tls::client_config(self.trusted.as_ref())?;
            self.carry(shake_hands(TlsConnector::from(config).connect(name, tcp).await?, &text).await?, place)?
        } else {
            self.carry(shake_hands(tcp, &text).await?, place)?
        };
        Ok(Called { socket: StreamSocket::Unix(socket), local, remote })
    }

    /// Starts to carry packets; returns the worker's end.
    fn carry<S: AsyncRead + AsyncWrite + Unpin + 'static>(
        &self,
        socket: WebSocketStream<S>,
        place: ConnectionPlace,
    ) -> io::Result<std::os::unix::net::UnixStream> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let ours = UnixStream::from_std(ours)?;
        let context = Arc::clone(&self.context);
        spawn_local(async move {
            bridge::bridge(socket, ours, &context.counters, context.stopped()).await;
            drop(place);
        });
        Ok(theirs)
    }
}

async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(socket: S, url: &str) -> io::Result<WebSocketStream<S>> {
    let shaken = client_async_with_config(url, socket, Some(bridge::limits())).await;
    shaken.map(|(socket, _)| socket).map_err(io::Error::other)
}
