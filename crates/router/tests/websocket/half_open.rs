//! Connections that never complete their handshake.
//!
//! The story: each held one of the 4096 places of all connections for the 10 s that a handshake may take. So 4096
//! silent or slow connections from one machine excluded all others.

use super::{peer::Peer, server::listening};
use crate::application::{Application, name};
use namewire_packet::nfd::ControlParameters;
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// More connections than the router has places.
const PILE: usize = 4200;

/// Half-open connections that one address may have.
const PER_ADDRESS: u64 = 128;

/// Longer than any step takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection from another address of this machine.
fn connect_from(address: Ipv4Addr, server: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((address, 0)).into())?;
    socket.connect(&server.into())?;
    Ok(socket.into())
}

/// True if this process may open this many files. It holds both ends of all connections.
pub(crate) fn may_open(files: u64) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    limit.maximum.is_none_or(|maximum| maximum >= files)
}

/// Sends the beginning of a request, a byte at a time and never to its end, over new connections again and again.
fn dribble(server: SocketAddr, address: Ipv4Addr, stop: &AtomicBool) -> Vec<TcpStream> {
    let request = b"GET / HTTP/1.1\r\nX: ";
    let mut kept: Vec<TcpStream> = Vec::new();
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if kept.len() < PILE / 4 {
            kept.extend(connect_from(address, server));
        }
        let count = kept.len();
        if let Some(socket) = kept.get_mut(turn % count.max(1)) {
            let _ = socket.write_all(&request[turn % request.len()..][..1]); // the router may have closed it meanwhile
        }
        if count >= PILE / 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    kept
}

#[test]
fn who_completes_a_handshake_is_served_among_many_who_do_not() {
    if !may_open(3 * PILE as u64) {
        eprintln!("SKIPPED: this process may not have {} open files", 3 * PILE);
        return;
    }
    let (router, server, _directory) = listening();
    let stop = Arc::new(AtomicBool::new(false));
    let dribbling: Vec<_> = (2..6)
        .map(|host| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || dribble(server, Ipv4Addr::new(127, 0, 0, host), &stop))
        })
        .collect();
    let mut operator = Application::connect(&router);
    let began = Instant::now();
    while operator.drops("websocket.handshake-displaced") < 1000 && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut took = Vec::new();
    let peers: Vec<Peer> = (0..20)
        .map(|number| {
            let began = Instant::now();
            let mut peer = Peer::connect(server, &[]);
            let parameters = ControlParameters { name: Some(name(&format!("/web/{number}"))), ..Default::default() };
            assert_eq!(peer.command("/rib/register", &parameters).code, 200);
            took.push(began.elapsed());
            peer
        })
        .collect();
    took.sort();
    println!("{} handshakes and commands: p50 {:?}, max {:?}", took.len(), took[took.len() / 2], took[took.len() - 1]);
    println!("{} displaced", operator.drops("websocket.handshake-displaced"));
    assert_eq!(operator.drops("websocket.too-many-connections"), 0);
    stop.store(true, Ordering::Relaxed);
    dribbling.into_iter().for_each(|thread| drop(thread.join().expect("a dribbler")));
    drop(peers);
}

#[test]
fn the_oldest_half_open_connection_of_an_address_goes_first() {
    let (router, server, _directory) = listening();
    let mut operator = Application::connect(&router);
    // Connections with a complete handshake are not half-open.
    let _complete: Vec<Peer> = (0..5).map(|_| Peer::connect(server, &[])).collect();
    let count = PER_ADDRESS + 5;
    let mut half_open: Vec<TcpStream> = (0..count).map(|_| TcpStream::connect(server).unwrap()).collect();
    for (number, socket) in half_open.iter_mut().enumerate() {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        if number < 5 {
            assert_eq!(socket.read(&mut [0]).unwrap_or(0), 0, "it is closed");
        }
    }
    assert_eq!(operator.drops("websocket.handshake-displaced"), 5);
    // The other connections may go on.
    let last = half_open.pop().unwrap();
    drop(half_open);
    let request =
        tokio_tungstenite::tungstenite::client::IntoClientRequest::into_client_request(format!("ws://{server}/"));
    tokio_tungstenite::tungstenite::client(request.unwrap(), last).expect("a handshake");
}
