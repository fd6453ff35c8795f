//! Connections: from a listener to answers, within limits.
//!
//! Contract: a connection that breaks a limit ends, without effect on others. A connection for which the source has no
//! place gets a 503 with the reason and ends. A request head over 8 KiB gets 431. A connection also ends if a head does
//! not arrive in time, or after a long silence between requests.
//!
//! Closing a socket with unread bytes resets the connection, and the answer may be lost. So the observer reads a
//! refused connection until its client closes it, for [`REFUSAL_WAIT`] at most. It does so for [`REFUSED_AT_ONCE`]
//! connections at a time. Further ones get the answer and are closed at once.

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
use tokio::io::{self, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::site::{Ends, Site};
use crate::source::{Place, Source};
use crate::stall::Stall;

/// The largest request head: the least that hyper takes.
const HEAD_BYTES_MAX: usize = 8192;
const HEADERS_MAX: usize = 64;
/// How long to wait when the system gives no descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a refused connection stays, so that its client reads why.
const REFUSAL_WAIT: Duration = Duration::from_secs(1);
/// How many refused connections stay.
const REFUSED_AT_ONCE: usize = 8;

/// How long connections may wait. Tests have less patience.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long a request head may take, and silence between requests.
    pub(crate) head_wait: Duration,
    /// How long a client may take nothing of what is sent.
    pub(crate) write_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { head_wait: Duration::from_secs(10), write_wait: Duration::from_secs(30) }
    }
}

/// Serves all listeners. Never ends.
pub(crate) async fn serve<S: Source>(listeners: Vec<TcpListener>, site: Site<S>, limits: Limits) {
    let site = Rc::new(site);
    let refusals = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
    for listener in listeners {
        spawn_local(accept(listener, Rc::clone(&site), Arc::clone(&refusals), limits));
    }
    site.keeper.run().await;
}

async fn accept<S: Source>(listener: TcpListener, site: Rc<Site<S>>, refusals: Arc<Semaphore>, limits: Limits) {
    let bound = listener.local_addr().map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip());
    loop {
        let Ok((socket, client)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let ends = Ends { bound, client: client.ip() };
        match site.keeper.source.admit(ends.client, Place::Connection) {
            Ok(place) => {
                let site = Rc::clone(&site);
                spawn_local(async move {
                    serve_connection(socket, ends, site, limits).await;
                    drop(place);
                });
            }
            Err(why) => match Arc::clone(&refusals).try_acquire_owned() {
                Ok(turn) => {
                    spawn_local(async move {
                        let _ = timeout(REFUSAL_WAIT, refuse(socket, &why)).await;
                        drop(turn);
                    });
                }
                Err(_) => drop(socket.try_write(refusal(&why).as_bytes())),
            },
        }
    }
}

/// Answers a connection for which there is no place, whatever it asks for, and reads until the client closes it.
async fn refuse(mut socket: TcpStream, why: &str) -> io::Result<()> {
    socket.write_all(refusal(why).as_bytes()).await?;
    socket.shutdown().await?;
    io::copy(&mut socket.take(HEAD_BYTES_MAX as u64), &mut io::sink()).await.map(drop)
}

fn refusal(why: &str) -> String {
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Retry-After: 5\r\nConnection: close\r\n\r\n{why}\n",
        why.len() + 1
    )
}

async fn serve_connection<S: Source>(socket: TcpStream, ends: Ends, site: Rc<Site<S>>, limits: Limits) {
    let _ = socket.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let site = Rc::clone(&site);
        async move {
            let (parts, _) = request.into_parts();
            Ok::<_, Infallible>(site.answer(&parts, ends).await)
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
