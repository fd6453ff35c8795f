//! WebSocket listeners: they accept, shake hands, and give the connection to control as a face.
//!
//! FaceUris are NFD's: remote `wsclient://` and local `ws://` with the addresses of the TCP connection (NFD
//! `websocket-transport.cpp`). Over TLS, the local FaceUri begins with `wss://`.
//!
//! Scope: NFD treats a connection between two loopback addresses as local (drop-in.md §9). With that rule, every web
//! page in a browser on this machine, and every client of a proxy on it, would have the rights of a local application.
//! Here a connection is not local if its request comes from a web page of another host (`Origin`) or through a proxy
//! (`Forwarded`, `X-Forwarded-For`, `X-Real-Ip`).
//!
//! Limits: [`crate::connections`] and [`crate::half_open`]. If there is no descriptor for a peer, the router answers
//! with this reason. It does so only if the peer sends its request within [`REFUSAL_TIMEOUT`], and for at most
//! [`REFUSED_AT_ONCE`] peers at a time.

use crate::{
    AcceptedWebSocket, Context, HANDSHAKE_SECONDS, WebSocketDrop, bridge,
    connections::ConnectionPlace,
    half_open::{HalfOpen, Place},
    tls::{ServerTls, TlsFiles},
};
use namewire_faces::{FaceInfo, StreamSocket, tcp};
use namewire_packet::{
    MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType, WebSocketUrl},
};
use namewire_shares::{Held, Refused};
use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener as StdTcpListener},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_local,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async_with_config,
    tungstenite::{
        Error,
        handshake::server::{ErrorResponse, Request, Response},
        http::{HeaderMap, HeaderValue, StatusCode, header},
    },
};

/// Connections whose handshake is complete and whose faces control does not know yet.
const ACCEPTED_AT_ONCE: usize = 64;

/// Connections without a descriptor of their own that are being answered 503.
const REFUSED_AT_ONCE: usize = 4;

/// Time for the request of such a connection.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause after a failed accept. It fails when descriptors run out, and an immediate retry would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a listener did not open.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {what}: {source}")]
pub struct ListenError {
    /// The address of the listener.
    pub what: FaceUri,
    /// What the system said.
    pub source: io::Error,
}

/// An open listener.
pub struct Listener {
    socket: StdTcpListener,
    address: SocketAddr,
    tls: Option<ServerTls>,
}

impl Listener {
    /// Errors: the address is taken or not allowed; a certificate that cannot be read.
    pub(crate) fn open(
        address: SocketAddr,
        files: Option<&TlsFiles>,
        handed: Option<StdTcpListener>,
    ) -> Result<Self, ListenError> {
        let failed = |source| ListenError { what: uri(address, files.is_some()), source };
        let tls = files.map(ServerTls::read).transpose().map_err(failed)?;
        let socket = handed.map_or_else(|| tcp::listen(address), Ok).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Listener { socket, address, tls })
    }

    /// Another descriptor of the socket.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn duplicate(&self) -> io::Result<StdTcpListener> {
        self.socket.try_clone()
    }

    /// The URI, with the port that the system gave for port 0.
    pub fn uri(&self) -> FaceUri {
        uri(self.address, self.tls.is_some())
    }
}

fn uri(address: SocketAddr, is_secure: bool) -> FaceUri {
    if !is_secure {
        return FaceUri::WebSocket(address); // with the scope of an IPv6 address
    }
    FaceUri::WebSocketUrl(WebSocketUrl {
        is_secure,
        host: address.ip().to_string(),
        port: address.port(),
        path: String::new(),
    })
}

/// Serves a listener until the router stops.
pub(crate) async fn serve(listener: Listener, context: Arc<Context>, half_open: HalfOpen) {
    let Listener { socket, mut tls, .. } = listener;
    let Ok(socket) = TcpListener::from_std(socket) else { return context.counters.count(WebSocketDrop::AcceptFailed) };
    let places = Arc::new(Semaphore::new(ACCEPTED_AT_ONCE));
    let refusals = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = context.stopped() => return,
        };
        let (connection, remote) = match accepted {
            Ok(accepted) => accepted,
            // Only this connection has failed, not the listener.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(_) => {
                context.counters.count(WebSocketDrop::AcceptFailed);
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let admission = match context.connections.accept(remote.ip()) {
            Ok(descriptors) => Admission::Open { _descriptors: descriptors },
            Err(refused) => match Arc::clone(&refusals).try_acquire_owned() {
                Ok(turn) => Admission::Closed { refused, _turn: turn },
                Err(_) => {
                    context.counters.count(WebSocketDrop::TooManyConnections);
                    continue;
                }
            },
        };
        let (place, has_displaced) = half_open.enter(remote.ip());
        if has_displaced {
            context.counters.count(WebSocketDrop::HandshakeDisplaced);
        }
        let acceptor = tls.as_mut().map(|tls| {
            if tls.refresh().is_err() {
                context.counters.count(WebSocketDrop::CertificateUnreadable);
            }
            TlsAcceptor::from(tls.config())
        });
        let connection = Connection { socket: connection, remote, place, admission };
        let (context, places) = (Arc::clone(&context), Arc::clone(&places));
        spawn_local(async move { connection.converse(acceptor, &context, places).await });
    }
}

/// Whether a connection may ask for a place.
enum Admission {
    /// It has a descriptor until its request has come.
    Open { _descriptors: Held },
    /// It has none, and is told why.
    Closed { refused: Refused, _turn: OwnedSemaphorePermit },
}

/// An accepted connection, before its handshake.
struct Connection {
    socket: TcpStream,
    remote: SocketAddr,
    place: Place,
    admission: Admission,
}

impl Connection {
    /// The whole connection, from the handshake to the end.
    async fn converse(self, tls: Option<TlsAcceptor>, context: &Context, places: Arc<Semaphore>) {
        let Connection { socket, remote, place, admission } = self;
        let _ = socket.set_nodelay(true); // only slower without
        // This fails for a connection that was reset already.
        let Ok(local) = socket.local_addr() else { return context.counters.count(WebSocketDrop::HandshakeFailed) };
        let ends = Ends { local, remote, is_secure: tls.is_some() };
        let patience = match admission {
            Admission::Open { .. } => Duration::from_secs(HANDSHAKE_SECONDS),
            Admission::Closed { .. } => REFUSAL_TIMEOUT,
        };
        let admit = move |headers: &HeaderMap| match &admission {
            Admission::Open { .. } => {
                let info = ends.face_info(comes_from_elsewhere(headers));
                context.connections.enter(&info.holder()).map(|place| (info, place))
            }
            Admission::Closed { refused, .. } => Err(*refused),
        };
        match tls {
            None => {
                let Some(shaken) = in_time(shake_hands(socket, admit), patience, place, context).await else { return };
                carry(shaken, context, places).await;
            }
            Some(tls) => {
                let shaken = async {
                    let socket = tls.accept(socket).await.map_err(|_| WebSocketDrop::HandshakeFailed)?;
                    shake_hands(socket, admit).await
                };
                let Some(shaken) = in_time(shaken, patience, place, context).await else { return };
                carry(shaken, context, places).await;
            }
        }
    }
}

/// A connection whose handshake is complete.
struct Shaken<S> {
    socket: WebSocketStream<S>,
    info: FaceInfo,
    place: ConnectionPlace,
}

/// The result of a handshake. `None`, and counted, if it failed, took too long, was refused or lost its place.
async fn in_time<S>(
    handshake: impl Future<Output = Result<Shaken<S>, WebSocketDrop>>,
    patience: Duration,
    mut place: Place,
    context: &Context,
) -> Option<Shaken<S>> {
    let shaken = tokio::select! {
        biased;
        shaken = timeout(patience, handshake) => shaken.unwrap_or(Err(WebSocketDrop::HandshakeFailed)),
        () = place.taken_away() => return None, // counted when the place was taken
    };
    shaken.map_err(|drop| context.counters.count(drop)).ok()
}

/// Does the WebSocket handshake. `admit` decides by the headers of the request; who is refused is answered 503.
async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
    socket: S,
    admit: impl FnOnce(&HeaderMap) -> Result<(FaceInfo, ConnectionPlace), Refused> + Unpin,
) -> Result<Shaken<S>, WebSocketDrop> {
    let mut admitted = None;
    #[expect(clippy::result_large_err, reason = "the library's signature")]
    let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        admitted = Some(admit(request.headers()).map_err(unavailable)?);
        Ok(response)
    };
    let shaken = accept_hdr_async_with_config(socket, look, Some(bridge::limits())).await;
    match shaken {
        Ok(socket) => {
            let (info, place) = admitted.ok_or(WebSocketDrop::HandshakeFailed)?;
            Ok(Shaken { socket, info, place })
        }
        Err(Error::Http(_)) => Err(WebSocketDrop::TooManyConnections),
        Err(_) => Err(WebSocketDrop::HandshakeFailed),
    }
}

/// The answer to a request for which there is no place.
fn unavailable(refused: Refused) -> ErrorResponse {
    let text = format!("{}\n", refused.text());
    let mut response = ErrorResponse::new(None);
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, text.len().into());
    for (name, value) in
        [(header::CONTENT_TYPE, "text/plain"), (header::RETRY_AFTER, "5"), (header::CONNECTION, "close")]
    {
        headers.insert(name, HeaderValue::from_static(value));
    }
    *response.body_mut() = Some(text);
    response
}

async fn carry<S: AsyncRead + AsyncWrite + Unpin>(shaken: Shaken<S>, context: &Context, places: Arc<Semaphore>) {
    let Shaken { socket, info, place: _connection } = shaken;
    let pair = std::os::unix::net::UnixStream::pair().and_then(|(ours, theirs)| {
        ours.set_nonblocking(true)?;
        Ok((UnixStream::from_std(ours)?, theirs))
    });
    let Ok((ours, theirs)) = pair else { return context.counters.count(WebSocketDrop::AcceptFailed) };
    let place = tokio::select! {
        place = places.acquire_owned() => place,
        () = context.stopped() => return bridge::turn_away(socket).await,
    };
    let Ok(place) = place else { return }; // never: the semaphore is not closed
    (context.accept)(AcceptedWebSocket { socket: StreamSocket::Unix(theirs), info, place });
    bridge::bridge(socket, ours, &context.counters, context.stopped()).await;
}

/// The ends of the TCP connection.
#[derive(Clone, Copy)]
struct Ends {
    local: SocketAddr,
    remote: SocketAddr,
    is_secure: bool,
}

impl Ends {
    fn face_info(self, comes_from_elsewhere: bool) -> FaceInfo {
        let Ends { local, remote, is_secure } = self;
        let is_on_this_machine = local.ip().to_canonical().is_loopback() && remote.ip().to_canonical().is_loopback();
        FaceInfo {
            remote: FaceUri::WebSocketClient(remote),
            local: uri(local, is_secure),
            scope: if is_on_this_machine && !comes_from_elsewhere { FaceScope::Local } else { FaceScope::NonLocal },
            persistency: FacePersistency::OnDemand,
            link_type: LinkType::PointToPoint,
            mtu: MAX_PACKET_BYTES,
            credentials: None,
        }
    }
}

/// True if a web page of another host, or a proxy, made the request. Both say so in a header.
fn comes_from_elsewhere(headers: &HeaderMap) -> bool {
    let is_proxied = ["forwarded", "x-forwarded-for", "x-real-ip"].iter().any(|name| headers.contains_key(*name));
    let is_foreign = |origin: &[u8]| !std::str::from_utf8(origin).is_ok_and(is_origin_of_this_machine);
    is_proxied || headers.get_all("origin").iter().any(|origin| is_foreign(origin.as_bytes()))
}

/// True for `scheme://host[:port]` with a loopback host. A page from a file (`null`) is foreign too, because sandboxed
/// pages say the same.
fn is_origin_of_this_machine(origin: &str) -> bool {
    let Some((_, authority)) = origin.split_once("://") else { return false };
    let host = match authority.strip_prefix('[') {
        Some(inside) => inside.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn scope_is_local_only_for_who_is_here() {
        let here: SocketAddr = "127.0.0.1:9696".parse().unwrap();
        let mapped: SocketAddr = "[::ffff:127.0.0.1]:4000".parse().unwrap();
        let there: SocketAddr = "192.0.2.1:4000".parse().unwrap();
        let ends = |remote, is_secure| Ends { local: here, remote, is_secure };
        assert_eq!(ends(mapped, false).face_info(false).scope, FaceScope::Local);
        assert_eq!(ends(mapped, false).face_info(true).scope, FaceScope::NonLocal);
        assert_eq!(ends(there, false).face_info(false).scope, FaceScope::NonLocal);
        let info = ends(there, true).face_info(false);
        assert_eq!(
            (info.remote.to_string().as_str(), info.local.to_string().as_str()),
            ("wsclient://192.0.2.1:4000", "wss://127.0.0.1:9696")
        );
    }

    #[test]
    fn pages_of_other_hosts_and_proxies_come_from_elsewhere() {
        assert!(!comes_from_elsewhere(&HeaderMap::new()));
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:80"] {
            assert!(!comes_from_elsewhere(&headers("origin", origin)), "{origin}");
        }
        for origin in
            ["https://example.net", "http://localhost.example.net", "null", "http://127.0.0.1.example.net:80", ""]
        {
            assert!(comes_from_elsewhere(&headers("origin", origin)), "{origin}");
        }
        assert!(comes_from_elsewhere(&headers("x-forwarded-for", "192.0.2.1")));
        assert!(comes_from_elsewhere(&headers("forwarded", "for=192.0.2.1")));
    }
}
