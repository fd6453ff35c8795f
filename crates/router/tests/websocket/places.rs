//! One host that takes as many connections as it can.
//!
//! The story: it took all 4,096 places, and the router closed the connections of all others without a reason.

use super::{half_open::may_open, peer::Peer, server::listening};
use crate::application::{Application, name};
use namewire_packet::nfd::{ControlParameters, PoolHolding};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// More connections than the router has places.
const PILE: usize = 4200;

/// Connections whose requests are under way at the same time.
const AT_ONCE: usize = 64;

/// A request from a web page of another host, which counts as a remote one.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Origin: https://example.net\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

fn knock(server: SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(server).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.write_all(REQUEST).unwrap();
    socket
}

/// The head of the answer.
fn head(socket: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).expect("an answer, and no reset");
        answer.extend(byte);
    }
    String::from_utf8(answer).unwrap()
}

#[test]
fn one_host_leaves_places_for_applications_and_is_told_why_it_gets_no_more() {
    // The router takes three for each connection, and this process has the other end.
    if !may_open(6 * PILE as u64) {
        eprintln!("SKIPPED: this process may not have {} open files", 6 * PILE);
        return;
    }
    let (router, server, _directory) = listening();
    let (mut open, mut refused) = (Vec::new(), Vec::new());
    while refused.is_empty() && open.len() < PILE {
        for mut socket in (0..AT_ONCE).map(|_| knock(server)).collect::<Vec<_>>() {
            let head = head(&mut socket);
            match head.starts_with("HTTP/1.1 101 ") {
                true => open.push(socket),
                false => refused.push((head, socket)),
            }
        }
    }
    let (head, mut socket) = refused.pop().expect("a refusal");
    assert!(head.starts_with("HTTP/1.1 503 ") && head.to_lowercase().contains("retry-after: 5"), "{head}");
    let mut why = String::new();
    socket.read_to_string(&mut why).expect("an end without a reset");
    assert!(why.contains("as its share allows"), "{why}");

    let mut peer = Peer::connect(server, &[]);
    let parameters = ControlParameters { name: Some(name("/web")), ..Default::default() };
    assert_eq!(peer.command("/rib/register", &parameters).code, 200);
    let mut operator = Application::connect(&router);
    assert!(operator.drops("share-used.websocket-connections") > 0);
    assert!(operator.drops("websocket.too-many-connections") > 0);
    let holdings: Vec<PoolHolding> = operator.dataset("/status/holders");
    let of = |holder| holdings.iter().find(|of| of.pool == "websocket-connections" && of.holder.as_deref() == holder);
    assert_eq!(of(None).map(|all| all.capacity), Some(4096));
    assert!(of(Some("loopback, not local")).is_some_and(|of| (2000..2700).contains(&of.held) && of.refused > 0));
    assert_eq!(of(Some("loopback")).map(|of| of.held), Some(1));
    drop(open);
}
