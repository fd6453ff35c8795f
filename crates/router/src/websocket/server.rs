//! WebSocket listeners: they accept, shake hands, and give the connection to control as a face.
//!
//! FaceUris are NFD's: remote `wsclient://` and local `ws://` with the addresses of the TCP connection (NFD
//! `websocket-transport.cpp`). Over TLS the local FaceUri says `wss://`.
//!
//! Scope: NFD treats a connection between two loopback addresses as local (drop-in.md §9). With that rule, every web
//! page in a browser on this machine, and every client of a proxy on it, would have the rights of a local application.
//! Here a connection is not local if its request comes from a web page of another host (`Origin`) or through a proxy
//! (`Forwarded`, `X-Forwarded-For`, `X-Real-Ip`).

use super::{
    Context, HANDSHAKE_SECONDS, WebSocketDrop, bridge,
    half_open::{HalfOpen, Place},
    tls::{ServerTls, TlsFiles},
};
use crate::{
    StartError,
    descriptors::{OF_WEBSOCKET, TakenDescriptors},
    messages::{self, AcceptedConnection, ToControl},
};
use namewire_faces::{FaceInfo, StreamSocket, tcp};
use namewire_packet::{
    MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType, WebSocketUrl},
};
use namewire_shares::Holder;
use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener as StdTcpListener},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixStream},
    sync::Semaphore,
    task::spawn_local,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async_with_config,
    tungstenite::{
        handshake::server::{ErrorResponse, Request, Response},
        http::HeaderMap,
    },
};

/// Connections whose handshake is complete and whose faces control does not know yet.
const ACCEPTED_AT_ONCE: usize = 64;

/// Pause after a failed accept. It fails when descriptors run out, and an immediate retry would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An open listener.
pub(crate) struct Listener {
    socket: StdTcpListener,
    address: SocketAddr,
    tls: Option<ServerTls>,
}

impl Listener {
    /// Errors: the address is taken or not allowed; a certificate that cannot be read.
    pub(crate) fn open(address: SocketAddr, files: Option<&TlsFiles>) -> Result<Self, StartError> {
        let failed = |source| StartError::Listen { what: uri(address, files.is_some()), source };
        let tls = files.map(ServerTls::read).transpose().map_err(failed)?;
        let socket = tcp::listen(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Listener { socket, address, tls })
    }

    /// The URI, with the port that the system gave for port 0.
    pub(crate) fn uri(&self) -> FaceUri {
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
pub(super) async fn serve(listener: Listener, context: Arc<Context>, half_open: HalfOpen) {
    let Listener { socket, mut tls, .. } = listener;
    let Ok(socket) = TcpListener::from_std(socket) else { return context.counters.count(WebSocketDrop::AcceptFailed) };
    let places = Arc::new(Semaphore::new(ACCEPTED_AT_ONCE));
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
        // Counted as of a peer without local rights, because the request that decides has not come yet.
        let Some(descriptors) = context.descriptors.take(&Holder::of_address(remote.ip(), false), OF_WEBSOCKET) else {
            continue;
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
        let connection = Connection { socket: connection, remote, place, _descriptors: descriptors };
        let (context, places) = (Arc::clone(&context), Arc::clone(&places));
        spawn_local(async move { connection.converse(acceptor, &context, places).await });
    }
}

/// An accepted connection, before its handshake.
struct Connection {
    socket: TcpStream,
    remote: SocketAddr,
    place: Place,
    _descriptors: TakenDescriptors,
}

impl Connection {
    /// The whole connection, from the handshake to the end.
    async fn converse(self, tls: Option<TlsAcceptor>, context: &Context, places: Arc<Semaphore>) {
        let Connection { socket, remote, place, _descriptors } = self;
        let _ = socket.set_nodelay(true); // only slower without
        // This fails for a connection that was reset already.
        let Ok(local) = socket.local_addr() else { return context.counters.count(WebSocketDrop::HandshakeFailed) };
        let is_secure = tls.is_some();
        match tls {
            None => {
                let Some((socket, from)) = in_time(shake_hands(socket), place, context).await else { return };
                carry(socket, face_info(local, remote, is_secure, from), context, places).await;
            }
            Some(tls) => {
                let shaken = async { shake_hands(tls.accept(socket).await?).await };
                let Some((socket, from)) = in_time(shaken, place, context).await else { return };
                carry(socket, face_info(local, remote, is_secure, from), context, places).await;
            }
        }
    }
}

/// The result of a handshake. `None`, and counted, if it failed, took too long or lost its place.
async fn in_time<T>(handshake: impl Future<Output = io::Result<T>>, mut place: Place, context: &Context) -> Option<T> {
    let shaken = tokio::select! {
        biased;
        shaken = timeout(Duration::from_secs(HANDSHAKE_SECONDS), handshake) => shaken.ok().and_then(Result::ok),
        () = place.taken_away() => return None, // counted when the place was taken
    };
    if shaken.is_none() {
        context.counters.count(WebSocketDrop::HandshakeFailed);
    }
    shaken
}

/// Does the WebSocket handshake. Returns whether the request comes from elsewhere.
async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(socket: S) -> io::Result<(WebSocketStream<S>, bool)> {
    let mut is_from_elsewhere = false;
    #[expect(clippy::result_large_err, reason = "the library's signature")]
    let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        is_from_elsewhere = comes_from_elsewhere(request.headers());
        Ok(response)
    };
    let socket = accept_hdr_async_with_config(socket, look, Some(bridge::limits())).await;
    Ok((socket.map_err(io::Error::other)?, is_from_elsewhere))
}

async fn carry<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    info: FaceInfo,
    context: &Context,
    places: Arc<Semaphore>,
) {
    let Ok(_connection) = Arc::clone(&context.connections).try_acquire_owned() else {
        return context.counters.count(WebSocketDrop::TooManyConnections);
    };
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
    let connection = messages::Connection::Stream(StreamSocket::Unix(theirs));
    let accepted = AcceptedConnection { connection, info, place, descriptors: None };
    let _ = context.events.send(ToControl::Accepted(accepted));
    bridge::bridge(socket, ours, &context.counters, context.stopped()).await;
}

fn face_info(local: SocketAddr, remote: SocketAddr, is_secure: bool, comes_from_elsewhere: bool) -> FaceInfo {
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
        assert_eq!(face_info(here, mapped, false, false).scope, FaceScope::Local);
        assert_eq!(face_info(here, mapped, false, true).scope, FaceScope::NonLocal);
        assert_eq!(face_info(here, there, false, false).scope, FaceScope::NonLocal);
        let info = face_info(here, there, true, false);
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
