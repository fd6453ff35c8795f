//! A router that listens for WebSocket connections, and its peers.

use super::peer::{Peer, network_packet};
use crate::application::{Application, eventually, name, start_with};
use namewire_packet::{
    DataBuilder, Interest, InterestBuilder,
    nfd::{ChannelStatus, ControlParameters, FacePersistency, FaceScope, FaceStatus, FaceUri},
};
use namewire_router::RouterHandle;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};

pub(crate) fn listening() -> (RouterHandle, SocketAddr, tempfile::TempDir) {
    let (router, directory) = start_with(2, |config| {
        config.settings.faces.websocket.enabled = true;
        config.settings.faces.websocket.listen = vec!["127.0.0.1:0".parse().unwrap()];
    });
    let [FaceUri::WebSocket(address)] = router.websocket() else { panic!("{:?}", router.websocket()) };
    let address = *address;
    (router, address, directory)
}

fn websocket_faces(operator: &mut Application) -> Vec<FaceStatus> {
    operator.faces().into_iter().filter(|face| face.uri.starts_with("wsclient://")).collect()
}

#[test]
fn an_application_produces_and_consumes() {
    let (router, address, _directory) = listening();
    let mut peer = Peer::connect(address, &[]);
    let registered =
        peer.command("/rib/register", &ControlParameters { name: Some(name("/web")), ..Default::default() });
    assert_eq!(registered.code, 200);
    // The router's own end of a socket pair must not lend the peer the rights of the router's user.
    let uri = Some("udp4://127.0.0.1:6363".to_owned());
    let refused = peer.command("/faces/create", &ControlParameters { uri, ..Default::default() });
    assert!(refused.code == 403 && refused.text.contains("no peer credentials"), "{refused:?}");
    let mut other = Application::connect(&router);
    let interest = other.interest(name("/web/a")).build();
    other.send(&interest);
    let asked = network_packet(&peer.receive());
    let asked = Interest::parse(&asked).unwrap();
    peer.send(DataBuilder::new(asked.name()).content(&[7; 8000]).sign_digest());
    assert_eq!(other.receive().expect("Data").data().content(), [7; 8000]);

    other.register("/other");
    peer.send(InterestBuilder::new(name("/other/b")).build());
    other.serve(1, b"to the web");
    let data = network_packet(&peer.receive());
    assert_eq!(namewire_packet::Data::parse(&data).unwrap().content(), b"to the web");

    let faces = websocket_faces(&mut other);
    let [face] = faces.as_slice() else { panic!("{faces:?}") };
    assert_eq!(face.uri, format!("wsclient://{}", peer.0.get_ref().local_addr().unwrap()));
    assert_eq!(face.local_uri, format!("ws://{address}"));
    assert_eq!((face.face_scope, face.face_persistency), (FaceScope::Local, FacePersistency::OnDemand));
    let channels: Vec<ChannelStatus> = other.dataset("/faces/channels");
    assert!(channels.iter().any(|channel| channel.local_uri == format!("ws://{address}")));

    let parameters = ControlParameters { face_id: Some(face.face_id), ..Default::default() };
    other.succeed("/faces/destroy", parameters);
    assert_eq!(peer.goodbye(), Some(CloseCode::Normal));
}

#[test]
fn a_page_of_another_host_and_a_proxy_are_not_local() {
    let (router, address, _directory) = listening();
    let mut operator = Application::connect(&router);
    for headers in [("Origin", "https://example.net"), ("X-Forwarded-For", "192.0.2.1")] {
        let open = format!("/open/{}", headers.0);
        let mut peer = Peer::connect(address, &[headers]);
        eventually("it has a face", || websocket_faces(&mut operator).len() == 1);
        assert_eq!(websocket_faces(&mut operator)[0].face_scope, FaceScope::NonLocal);
        // The peer gets nothing under /localhost, and everything else.
        peer.send(InterestBuilder::new(name("/localhost/nfd/status/general")).can_be_prefix(true).build());
        operator.register(&open);
        peer.send(InterestBuilder::new(name(&open)).build());
        operator.serve(1, b"welcome");
        let data = network_packet(&peer.receive());
        assert_eq!(namewire_packet::Data::parse(&data).unwrap().content(), b"welcome");
        drop(peer);
        eventually("its face is gone", || websocket_faces(&mut operator).is_empty());
    }
    let page = Peer::connect(address, &[("Origin", "http://localhost:3000")]);
    eventually("it has a face", || websocket_faces(&mut operator).len() == 1);
    assert_eq!(websocket_faces(&mut operator)[0].face_scope, FaceScope::Local);
    drop(page);
}

#[test]
fn who_breaks_the_rules_is_told_and_counted_and_nobody_else_notices() {
    let (router, address, _directory) = listening();
    let mut operator = Application::connect(&router);
    let mut good = Peer::connect(address, &[]);
    let registered =
        good.command("/rib/register", &ControlParameters { name: Some(name("/good")), ..Default::default() });
    assert_eq!(registered.code, 200);

    let mut text = Peer::connect(address, &[]);
    text.0.send(Message::text("hello")).unwrap();
    assert_eq!(text.goodbye(), Some(CloseCode::Unsupported));
    let mut oversize = Peer::connect(address, &[]);
    oversize.send(vec![6; 8801]);
    assert_eq!(oversize.goodbye(), Some(CloseCode::Size));
    let mut malformed = Peer::connect(address, &[]);
    malformed.send(vec![6, 9, 0]);
    malformed.send(vec![]);
    malformed.0.send(Message::Ping(vec![1].into())).unwrap();
    assert_eq!(malformed.0.read().unwrap(), Message::Pong(vec![1].into()), "still connected");

    // A peer without WebSocket, one that stops half-way, and one whose frames are not masked.
    let mut http = TcpStream::connect(address).unwrap();
    http.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut garbage = TcpStream::connect(address).unwrap();
    garbage.write_all(&[0xff; 200]).unwrap();
    let gone = TcpStream::connect(address).unwrap();
    drop(gone);
    let mut unmasked = Peer::connect(address, &[]);
    unmasked.0.get_mut().write_all(&[0x82, 2, 6, 0]).unwrap();
    unmasked.goodbye();
    let mut broken = Peer::connect(address, &[]);
    broken.0.get_mut().write_all(&[0xff; 64]).unwrap();
    broken.goodbye();
    for (reason, count) in [
        ("websocket.text-message", 1),
        ("websocket.oversize-message", 1),
        ("websocket.malformed-message", 2),
        ("websocket.handshake-failed", 3),
        ("websocket.connection-failed", 2),
    ] {
        eventually(reason, || operator.drops(reason) == count);
    }
    http.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut answer = Vec::new();
    let _ = http.read_to_end(&mut answer);
    drop(malformed);
    eventually("only the good one is left", || websocket_faces(&mut operator).len() == 1);
    let interest = operator.interest(name("/good/x")).build();
    operator.send(&interest);
    assert_eq!(network_packet(&good.receive())[0], 5);
}
