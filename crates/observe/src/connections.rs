//! Connections: from a listener to answers, within limits.
//!
//! Contract: a connection that breaks a limit ends, and no other one notices. Over [`Limits::connections`], a new
//! connection gets a short 503 and ends. A request head over 8 KiB gets 431. A head that does not come in time ends
//! its connection, and so does silence between requests.

use std::convert::Infallible;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::site::Site;
use crate::source::Source;
use crate::stall::Stall;

/// The largest request head: the least that hyper takes.
const HEAD_BYTES_MAX: usize = 8192;
const HEADERS_MAX: usize = 64;
/// How long to wait when the system gives no descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 33\r\n\
    Retry-After: 5\r\nConnection: close\r\n\r\nToo many connections are open.  \n";

/// What connections may take. Tests have smaller ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections of all listeners together.
    pub(crate) connections: usize,
    /// How long a request head may take, and silence between requests.
    pub(crate) head_wait: Duration,
    /// How long a client may take nothing of what is sent.
    pub(crate) write_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 64, head_wait: Duration::from_secs(10), write_wait: Duration::from_secs(30) }
    }
}

/// Serves all listeners. Never ends.
pub(crate) async fn serve<S: Source>(listeners: Vec<TcpListener>, site: Site<S>, limits: Limits) {
    let site = Rc::new(site);
    let places = Arc::new(Semaphore::new(limits.connections));
    for listener in listeners {
        spawn_local(accept(listener, Rc::clone(&site), Arc::clone(&places), limits));
    }
    site.keeper.run().await;
}

async fn accept<S: Source>(listener: TcpListener, site: Rc<Site<S>>, places: Arc<Semaphore>, limits: Limits) {
    let bound = listener.local_addr().map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip());
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            let _ = socket.try_write(FULL);
            continue;
        };
        let site = Rc::clone(&site);
        spawn_local(async move {
            serve_connection(socket, bound, site, limits).await;
            drop(place);
        });
    }
}

async fn serve_connection<S: Source>(socket: TcpStream, bound: IpAddr, site: Rc<Site<S>>, limits: Limits) {
    let _ = socket.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let site = Rc::clone(&site);
        async move {
            let (parts, _) = request.into_parts();
            Ok::<_, Infallible>(site.answer(&parts, bound).await)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_wait)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(Stall::new(socket, limits.write_wait)), service);
    // A client that went away or broke the protocol is no error of ours.
    let _ = connection.await;
}
