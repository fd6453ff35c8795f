//! A WebSocket client, blocking, over plain TCP.

use namewire_packet::{
    InterestBuilder, NameBuf, Nonce, SignedInterestFields,
    lp::LpPacket,
    nfd::{ControlParameters, ControlResponse},
};
use std::{
    net::{SocketAddr, TcpStream},
    time::{Duration, SystemTime},
};
use tokio_tungstenite::tungstenite::{
    Error, Message, WebSocket, client,
    client::IntoClientRequest,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

pub(crate) struct Peer(pub(crate) WebSocket<TcpStream>);

impl Peer {
    /// Connects with these additional headers.
    pub(crate) fn connect(server: SocketAddr, headers: &[(&'static str, &str)]) -> Peer {
        let socket = TcpStream::connect(server).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut request = format!("ws://{server}/any/path").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        Peer(client(request, socket).unwrap().0)
    }

    pub(crate) fn send(&mut self, packet: Vec<u8>) {
        self.0.send(Message::binary(packet)).unwrap();
    }

    /// The next binary message.
    pub(crate) fn receive(&mut self) -> Vec<u8> {
        loop {
            match self.0.read().unwrap() {
                Message::Binary(bytes) => return bytes.to_vec(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The code of the router's close frame; `None` if it sends no such frame.
    pub(crate) fn goodbye(&mut self) -> Option<CloseCode> {
        loop {
            match self.0.read() {
                Ok(Message::Close(Some(CloseFrame { code, .. }))) => return Some(code),
                Ok(Message::Close(None)) | Err(Error::ConnectionClosed | Error::AlreadyClosed | Error::Io(_)) => {
                    return None;
                }
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The code of the answer to a signed command.
    pub(crate) fn command(&mut self, verb: &str, parameters: &ControlParameters) -> ControlResponse {
        let mut command: NameBuf = "/localhost/nfd".parse().unwrap();
        command.append(verb.parse::<NameBuf>().unwrap().as_name()).push_generic(&parameters.to_wire());
        let unix_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
        let nonce = fastrand::u32(..);
        let fields =
            SignedInterestFields { nonce: nonce.to_be_bytes().to_vec(), time_ms: Some(unix_ms), seq_num: None };
        self.send(InterestBuilder::new(command).nonce(Nonce::from_u32(nonce)).lifetime_ms(4000).sign_digest(&fields));
        let reply = network_packet(&self.receive());
        ControlResponse::decode(namewire_packet::Data::parse(&reply).unwrap().content()).unwrap()
    }
}

/// What a message holds, with or without link headers.
pub(crate) fn network_packet(message: &[u8]) -> Vec<u8> {
    LpPacket::parse(message).map_or(message.to_vec(), |lp| lp.fragment.expect("a fragment").to_vec())
}
