//! Knock: asks a listener that speaks HTTP for a connection, in a separate process (`namewire-lab knock`).
//!
//! Question answered: none here. `hostile` lets honest clients knock while one host takes as many connections as it
//! can ([`crate::attack`], `places`), and counts how many are let in.
//!
//! A client is let in if a WebSocket listener completes the handshake, or if the observer answers `/healthz` with 200.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use namewire_load::exchange::percentile;

/// Longest wait for an answer; the same as for the answers to Interests.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two clients.
const PAUSE: Duration = Duration::from_millis(5);
/// Most bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 4_096;

/// What listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[allow(missing_docs, reason = "names say it")]
pub enum Door {
    Websocket,
    Observer,
}

impl Door {
    const fn request(self) -> &'static [u8] {
        match self {
            Door::Websocket => {
                b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            }
            Door::Observer => b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        }
    }

    const fn welcome(self) -> &'static [u8] {
        match self {
            Door::Websocket => b"HTTP/1.1 101 ",
            Door::Observer => b"HTTP/1.1 200 ",
        }
    }

    /// Connects from an address and asks. `None`: not let in.
    pub fn knock(self, to: SocketAddr, from: Option<IpAddr>) -> Option<TcpStream> {
        let socket = socket2::Socket::new(socket2::Domain::for_address(to), socket2::Type::STREAM, None).ok()?;
        if let Some(from) = from {
            socket.bind(&SocketAddr::new(from, 0).into()).ok()?;
        }
        socket.connect_timeout(&to.into(), PATIENCE).ok()?;
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.write_all(self.request()).ok()?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.extend(byte);
        }
        head.starts_with(self.welcome()).then_some(stream)
    }
}

/// The options of `namewire-lab knock`.
#[derive(Clone, Debug, clap::Args)]
pub struct KnockPlan {
    /// What listens there
    #[arg(value_enum)]
    pub door: Door,
    /// Where it listens
    #[arg(long)]
    pub to: SocketAddr,
    /// Address to connect from
    #[arg(long)]
    pub bind: Option<IpAddr>,
    /// How many clients, one after the other
    #[arg(long, default_value_t = 100)]
    pub count: u32,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnockReport {
    /// Clients that were let in, of 1.
    pub let_in: f64,
    /// Time from connecting to the answer, of those that were let in.
    pub wait_ns_p99: u32,
}

/// Knocks, and leaves at once when let in.
pub fn run(plan: &KnockPlan) -> KnockReport {
    let mut waits_ns = Vec::new();
    for _ in 0..plan.count {
        let began = Instant::now();
        if plan.door.knock(plan.to, plan.bind).is_some() {
            waits_ns.push(began.elapsed().as_nanos() as u32);
        }
        std::thread::sleep(PAUSE);
    }
    let let_in = waits_ns.len() as f64 / f64::from(plan.count.max(1));
    waits_ns.sort_unstable();
    KnockReport { let_in, wait_ns_p99: percentile(&waits_ns, 99.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn who_is_refused_is_not_let_in() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for answer in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 503 Full\r\n\r\n", ""] {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut [0; 10]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let report = run(&KnockPlan { door: Door::Observer, to, bind: None, count: 3 });
        assert!((report.let_in - 1.0 / 3.0).abs() < 1e-9 && report.wait_ns_p99 > 0, "{report:?}");
    }
}
