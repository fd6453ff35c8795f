//! One WebSocket connection and the Unix socket of its face: turns messages into elements and back.
//!
//! Both directions run side by side, so that we go on sending even if the peer sends without reading. Besides the
//! kernel's buffers, each direction holds at most one read (64 KiB) or one message (8800 bytes). It waits for a slow
//! receiver.
//!
//! The router sends a ping every [`PING_INTERVAL`] (NFD: 10 s). A peer is dead if it is silent for [`SILENCE_MAX`], or
//! takes nothing for as long.
//!
//! The end is a handshake (RFC 6455 §7): the receiver of a Close frame answers with another one, and the server closes
//! the connection. The handshake may take [`CLOSE_TIMEOUT`]; a slower peer loses the connection. Codes: 1000 the face
//! is closed, 1001 the router stops, 1002, 1003, 1007 and 1009 for faults of the peer. The router answers a Close frame
//! of the peer with the same code, or with 1002 if no endpoint may send that code (§7.4). A dead peer gets no Close
//! frame.

use crate::{WebSocketCounters, WebSocketDrop};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use namewire_packet::{MAX_PACKET_BYTES, tlv};
use std::{cell::Cell, time::Duration};
use tokio::{
    io::{self, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::UnixStream,
    time::{Instant, interval_at, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
    },
};

/// Time between pings.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(10);

/// Longest silence; three pings go unanswered in it.
const SILENCE_MAX: Duration = Duration::from_secs(35);

/// Time for the closing handshake.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes read from the face at once.
const READ_BYTES: usize = 64 << 10;

/// Limits of the WebSocket layer.
pub(crate) fn limits() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(16 << 10)
        .write_buffer_size(16 << 10)
        .max_write_buffer_size(256 << 10)
        .max_message_size(Some(MAX_PACKET_BYTES))
        .max_frame_size(Some(MAX_PACKET_BYTES))
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The face is gone.
    FaceClosed,
    /// The peer sent a close frame.
    PeerClosed,
    /// The router stops.
    RouterStops,
    /// The peer broke the WebSocket protocol; this code says how.
    Violated(CloseCode),
    /// The connection was refused or failed, for this reason.
    Refused(WebSocketDrop),
}

impl End {
    /// The Close frame that tells the peer; `None` for a peer that is dead.
    fn goodbye(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            End::FaceClosed => (CloseCode::Normal, "the face is closed"),
            End::RouterStops => (CloseCode::Away, "the router stops"),
            End::Violated(code) => (code, "this breaks the WebSocket protocol"),
            End::Refused(WebSocketDrop::DeadPeer) => return None,
            End::Refused(WebSocketDrop::TextMessage) => (CloseCode::Unsupported, "NDN packets are binary messages"),
            End::Refused(WebSocketDrop::OversizeMessage) => (CloseCode::Size, "NDN packets have at most 8800 bytes"),
            End::PeerClosed | End::Refused(_) => (CloseCode::Normal, ""),
        };
        Some(CloseFrame { code, reason: reason.into() })
    }

    /// What counts the end, if it is the peer's fault.
    fn drop(self) -> Option<WebSocketDrop> {
        match self {
            End::FaceClosed | End::PeerClosed | End::RouterStops => None,
            End::Violated(_) => Some(WebSocketDrop::ConnectionFailed),
            End::Refused(drop) => Some(drop),
        }
    }
}

/// Carries packets until either end closes, or `stop` is ready because the router stops.
pub(crate) async fn bridge<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    face: UnixStream,
    counters: &WebSocketCounters,
    stop: impl Future<Output = ()>,
) {
    let (mut sink, mut messages) = socket.split();
    let (mut from_face, mut to_face) = face.into_split();
    let heard = Cell::new(Instant::now());
    let end = tokio::select! {
        end = receive(&mut messages, &mut to_face, &heard, counters) => end,
        end = transmit(&mut sink, &mut from_face, &heard) => end,
        () = stop => End::RouterStops,
    };
    // The face ends now, and not only when the peer has answered.
    drop((from_face, to_face));
    if let Some(drop) = end.drop() {
        counters.count(drop);
    }
    // They are halves of one connection.
    if let (Some(goodbye), Ok(mut socket)) = (end.goodbye(), sink.reunite(messages)) {
        close(&mut socket, goodbye).await;
    }
}

/// Ends a connection that has no face yet, because the router stops.
pub(crate) async fn turn_away<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>) {
    if let Some(goodbye) = End::RouterStops.goodbye() {
        close(&mut socket, goodbye).await;
    }
}

/// The closing handshake. Best effort: the connection may be gone.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>, goodbye: CloseFrame) {
    let handshake = async {
        // If the peer said goodbye first, the library has an answer ready, refuses ours, and waits for a flush.
        let _ = socket.send(Message::Close(Some(goodbye))).await;
        let _ = socket.flush().await;
        // Until the peer's goodbye; as a client, until the server ends the connection.
        while let Some(Ok(_)) = socket.next().await {}
        let connection = socket.get_mut();
        let _ = connection.shutdown().await;
        // A socket that is closed with unread bytes resets the connection, and our goodbye may be lost with it.
        let _ = io::copy(connection, &mut io::sink()).await;
    };
    let _ = timeout(CLOSE_TIMEOUT, handshake).await;
}

/// Turns messages into elements.
async fn receive(
    messages: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    to_face: &mut (impl AsyncWrite + Unpin),
    heard: &Cell<Instant>,
    counters: &WebSocketCounters,
) -> End {
    while let Some(message) = messages.next().await {
        heard.set(Instant::now());
        match message {
            Ok(Message::Binary(bytes)) => {
                // A cut element, or one with bytes behind it, would shift all that follow.
                if tlv::element_size(&bytes) != Ok(Some(bytes.len())) {
                    counters.count(WebSocketDrop::MalformedMessage);
                } else if to_face.write_all(&bytes).await.is_err() {
                    return End::FaceClosed;
                }
            }
            Ok(Message::Text(_)) => return End::Refused(WebSocketDrop::TextMessage),
            Ok(Message::Close(_)) | Err(Error::ConnectionClosed) => return End::PeerClosed,
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
            Err(Error::Capacity(_)) => return End::Refused(WebSocketDrop::OversizeMessage),
            Err(Error::Protocol(_)) => return End::Violated(CloseCode::Protocol),
            Err(Error::Utf8(_)) => return End::Violated(CloseCode::Invalid),
            Err(_) => return End::Refused(WebSocketDrop::ConnectionFailed),
        }
    }
    End::PeerClosed
}

/// Turns elements into messages, and sends pings.
async fn transmit(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    from_face: &mut (impl AsyncRead + Unpin),
    heard: &Cell<Instant>,
) -> End {
    let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    let mut bytes = Vec::new();
    loop {
        bytes.reserve(READ_BYTES);
        let sent = tokio::select! {
            read = from_face.read_buf(&mut bytes) => {
                if !matches!(read, Ok(1..)) {
                    return End::FaceClosed;
                }
                timeout(SILENCE_MAX, send_elements(sink, &mut bytes)).await
            }
            _ = pings.tick() => {
                if heard.get().elapsed() > SILENCE_MAX {
                    return End::Refused(WebSocketDrop::DeadPeer);
                }
                timeout(SILENCE_MAX, sink.send(Message::Ping(Vec::new().into()))).await
            }
        };
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(Error::ConnectionClosed | Error::AlreadyClosed)) => return End::PeerClosed,
            Ok(Err(_)) => return End::Refused(WebSocketDrop::ConnectionFailed),
            Err(_) => return End::Refused(WebSocketDrop::DeadPeer),
        }
    }
}

/// Sends the whole elements at the start of `bytes` and leaves the rest there.
async fn send_elements(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    bytes: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut start = 0;
    // The worker sends whole elements only; a read may end within one.
    while let Ok(Some(size)) = tlv::element_size(&bytes[start..])
        && bytes.len() - start >= size
    {
        sink.feed(Message::binary(bytes[start..start + size].to_vec())).await?;
        start += size;
    }
    bytes.drain(..start);
    sink.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio_tungstenite::tungstenite::protocol::Role;

    /// A bridge, its peer and its face.
    async fn connect(counters: &'static WebSocketCounters) -> (WebSocketStream<UnixStream>, UnixStream) {
        let (peer, ours) = UnixStream::pair().unwrap();
        let (face, far) = UnixStream::pair().unwrap();
        let server = WebSocketStream::from_raw_socket(ours, Role::Server, Some(limits())).await;
        tokio::task::spawn_local(async move { bridge(server, far, counters, pending()).await });
        (WebSocketStream::from_raw_socket(peer, Role::Client, None).await, face)
    }

    fn counters() -> &'static WebSocketCounters {
        Box::leak(Box::default())
    }

    fn counted(counters: &WebSocketCounters) -> Vec<(&'static str, u64)> {
        counters.counts().filter(|(_, count)| *count > 0).collect()
    }

    #[test]
    fn messages_are_elements_both_ways_and_malformed_ones_are_dropped_alone() {
        run(async {
            let counters = counters();
            let (mut peer, mut face) = connect(counters).await;
            for message in [vec![5, 1, 7], vec![], vec![5, 2, 7], vec![5, 1, 7, 0], vec![6, 0]] {
                peer.send(Message::binary(message)).await.unwrap();
            }
            let mut received = [0; 5];
            face.read_exact(&mut received).await.unwrap();
            assert_eq!(received, [5, 1, 7, 6, 0]);
            assert_eq!(counted(counters), [("malformed-message", 3)]);
            // Elements in two writes, cut within one of them.
            face.write_all(&[6, 2, 1, 2, 100]).await.unwrap();
            assert_eq!(peer.next().await.unwrap().unwrap(), Message::binary(vec![6, 2, 1, 2]));
            face.write_all(&[1, 9]).await.unwrap();
            assert_eq!(peer.next().await.unwrap().unwrap(), Message::binary(vec![100, 1, 9]));
            drop(face);
            let Message::Close(Some(frame)) = peer.next().await.unwrap().unwrap() else { panic!("a goodbye") };
            assert_eq!(frame.code, CloseCode::Normal);
        });
    }

    #[test]
    fn text_and_oversize_messages_end_the_connection_with_a_reason() {
        run(async {
            for (message, code, name) in [
                (Message::text("GET"), CloseCode::Unsupported, "text-message"),
                (Message::binary(vec![6; MAX_PACKET_BYTES + 1]), CloseCode::Size, "oversize-message"),
            ] {
                let counters = counters();
                let (mut peer, mut face) = connect(counters).await;
                peer.send(message).await.unwrap();
                let Message::Close(Some(frame)) = peer.next().await.unwrap().unwrap() else { panic!("a goodbye") };
                assert_eq!(frame.code, code);
                assert_eq!(face.read(&mut [0; 1]).await.unwrap(), 0, "nothing reached the face, which closed");
                assert_eq!(counted(counters), [(name, 1)]);
            }
        });
    }

    #[test]
    fn a_silent_peer_is_pinged_and_then_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let counters = counters();
            let (peer, ours) = UnixStream::pair().unwrap();
            let (_face, far) = UnixStream::pair().unwrap();
            let server = WebSocketStream::from_raw_socket(ours, Role::Server, Some(limits())).await;
            let start = Instant::now();
            bridge(server, far, counters, pending()).await;
            assert!(start.elapsed() >= SILENCE_MAX);
            assert_eq!(counted(counters), [("dead-peer", 1)]);
            let mut bytes = Vec::new();
            let _ = { peer }.read_to_end(&mut bytes).await;
            assert_eq!(bytes, [0x89, 0, 0x89, 0, 0x89, 0], "pings, and no goodbye to a dead one");
        });
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let patience = Duration::from_secs(10);
        runtime.block_on(tokio::task::LocalSet::new().run_until(async { timeout(patience, test).await.unwrap() }));
    }
}
