//! The closing handshake, by either end (RFC 6455 §5.5.1, §7).

use super::{peer::Peer, server::listening};
use crate::application::{Application, eventually, name, start};
use namewire_packet::{
    InterestBuilder,
    nfd::{ControlParameters, ControlResponse},
};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tokio_tungstenite::tungstenite::{
    Message, WebSocket, accept,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

/// A Close frame with this body, as a client sends it: masked, here with zeros.
fn close_of_client(body: &[u8]) -> Vec<u8> {
    [&[0x88, 0x80 | body.len() as u8, 0, 0, 0, 0][..], body].concat()
}

/// All that the router sends until it ends the connection.
fn rest(peer: &mut Peer) -> Vec<u8> {
    let mut bytes = Vec::new();
    peer.0.get_mut().read_to_end(&mut bytes).expect("an end, not a reset");
    bytes
}

/// Whether the router's answer to a Close frame with `body` starts with the frame `expected`.
fn is_answered(peer: &mut Peer, body: &[u8], expected: &[u8]) {
    peer.0.get_mut().write_all(&close_of_client(body)).unwrap();
    let answer = rest(peer);
    assert!(answer.starts_with(expected), "{body:?} is answered with {answer:?}");
    assert_eq!(answer.len(), 2 + usize::from(answer[1]), "{body:?}: one Close frame and nothing else");
}

/// A server of WebSocket, its URI, and the router's connection once it has one.
fn called() -> (String, JoinHandle<WebSocket<TcpStream>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("ws://{}", listener.local_addr().unwrap());
    let accepting = thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        accept(socket).unwrap()
    });
    (uri, accepting)
}

fn call(operator: &mut Application, uri: String) -> ControlResponse {
    operator.command("/faces/create", ControlParameters { uri: Some(uri), ..Default::default() })
}

/// The router read a peer's Close frame and ended the connection without one of its own. So each page that a browser
/// left said "code 1006, not clean": the library had made the answer, and nobody flushed it.
#[test]
fn a_close_frame_is_answered_whatever_its_code() {
    let (_router, address, _directory) = listening();
    is_answered(&mut Peer::connect(address, &[]), &[], &[0x88, 0]);
    // Codes that an endpoint may send come back (§5.5.1): defined ones, registered ones and those of applications.
    for code in [1000_u16, 1001, 1003, 1011, 3000, 4000, 4999] {
        let body = [&code.to_be_bytes()[..], b"bye"].concat();
        let echoed = [&[0x88, 5][..], &body].concat();
        is_answered(&mut Peer::connect(address, &[]), &body, &echoed);
    }
    // Codes that nobody may send (§7.4) are a protocol error: 1002. So is half a code (§5.5.1).
    for code in [0_u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, u16::MAX] {
        let answer = [0x88, 20, 0x03, 0xea];
        is_answered(&mut Peer::connect(address, &[]), &code.to_be_bytes(), &answer);
    }
    let mut half = Peer::connect(address, &[]);
    half.0.get_mut().write_all(&close_of_client(&[3])).unwrap();
    assert_eq!(half.goodbye(), Some(CloseCode::Protocol));
    // A reason that is no text: 1007 (§8.1).
    let mut unreadable = Peer::connect(address, &[]);
    unreadable.0.get_mut().write_all(&close_of_client(&[0x03, 0xe8, 0xff])).unwrap();
    assert_eq!(unreadable.goodbye(), Some(CloseCode::Invalid));
}

/// A socket that is closed with unread bytes resets the connection, and the goodbye goes with it: what a peer sends
/// behind a message that we refuse, or behind its own goodbye, must not cost it our Close frame.
#[test]
fn the_goodbye_arrives_though_the_peer_goes_on_sending() {
    let (_router, address, _directory) = listening();
    let mut peer = Peer::connect(address, &[]);
    let interests: Vec<u8> = (0..1000).flat_map(|_| [&[0x82, 0x82, 0, 0, 0, 0][..], &[5, 0]].concat()).collect();
    peer.0.get_mut().write_all(&[close_of_client(&[0x03, 0xe8]), interests].concat()).unwrap();
    assert_eq!(rest(&mut peer), [0x88, 2, 0x03, 0xe8]);

    let mut oversize = Peer::connect(address, &[]);
    for _ in 0..20 {
        oversize.0.write(Message::binary(vec![6; 60_000])).unwrap();
    }
    oversize.0.flush().unwrap();
    assert_eq!(oversize.goodbye(), Some(CloseCode::Size));
}

/// A router that stopped dropped all its connections without a word. Its peers, on both sides of the connection, could
/// not tell a restart from a broken network.
#[test]
fn a_router_that_stops_says_so_to_each_peer() {
    let (router, address, _directory) = listening();
    let (uri, accepting) = called();
    let created = call(&mut Application::connect(&router), uri);
    assert_eq!(created.code, 200, "{}", created.text);
    let mut server = accepting.join().unwrap();
    let mut peers: Vec<Peer> = (0..100).map(|_| Peer::connect(address, &[])).collect();
    for peer in &mut peers {
        peer.send(InterestBuilder::new(name("/nowhere")).build());
    }
    // This one answers no Close frame, and must not keep the router from its end.
    let _deaf = Peer::connect(address, &[]);
    let mut operator = Application::connect(&router);
    let websockets =
        |operator: &mut Application| operator.faces().iter().filter(|face| face.uri.starts_with("wsclient:")).count();
    eventually("all have faces", || websockets(&mut operator) == 101);
    let waiting = thread::spawn(move || {
        for peer in &mut peers {
            assert_eq!(peer.goodbye(), Some(CloseCode::Away));
            while peer.0.read().is_ok() {}
        }
        let Message::Close(Some(CloseFrame { code, .. })) = server.read().unwrap() else { panic!("no goodbye") };
        assert_eq!(code, CloseCode::Away);
    });
    let start = Instant::now();
    router.stop();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    waiting.join().unwrap();
}

/// As a client, the router must answer a server's Close frame too, in a frame with a mask.
#[test]
fn a_server_that_says_goodbye_is_answered() {
    let (router, _directory) = start(1);
    let (uri, accepting) = called();
    let mut operator = Application::connect(&router);
    assert_eq!(call(&mut operator, uri.clone()).code, 200);
    let mut server = accepting.join().unwrap();
    let goodbye = CloseFrame { code: CloseCode::Library(4000), reason: "moved".into() };
    server.close(Some(goodbye.clone())).unwrap();
    assert_eq!(server.read().unwrap(), Message::Close(Some(goodbye)));
    eventually("the face is gone", || operator.faces().iter().all(|face| face.uri != uri));
}
