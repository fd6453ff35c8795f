//! A connection by WebSocket, on which each binary message is one packet.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use tungstenite::{Error, Message, WebSocket};

/// How long a router may take to connect.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Messages read in a row.
const MESSAGES_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct WebSocketLink {
    socket: WebSocket<TcpStream>,
    /// The last look at messages ended before they did: the library may have read ahead, which no descriptor shows.
    pub(crate) has_more: bool,
}

impl WebSocketLink {
    pub(crate) fn connect(url: &str) -> io::Result<Self> {
        let authority = url.trim_start_matches("ws://").split('/').next().unwrap_or_default();
        let address = authority.to_socket_addrs()?.next().ok_or(ErrorKind::NotFound)?;
        let stream = TcpStream::connect_timeout(&address, CONNECT_PATIENCE)?;
        stream.set_nodelay(true)?;
        let (socket, _) = tungstenite::client(url, stream).map_err(io::Error::other)?;
        socket.get_ref().set_nonblocking(true)?;
        Ok(WebSocketLink { socket, has_more: false })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }

    /// Sends one packet. False if there is no room: then nothing was sent.
    pub(crate) fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        match self.socket.write(Message::binary(packet.to_vec())) {
            Err(Error::WriteBufferFull(_)) => Ok(false),
            result => result.or_else(unless_blocked).map(|()| true), // it is in the buffer
        }
    }

    /// Lets the packets leave that were sent.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.socket.flush().or_else(unless_blocked)
    }

    /// Shows at most [`MESSAGES_MAX`] packets; returns their number.
    pub(crate) fn receive(&mut self, mut visit: impl FnMut(&[u8])) -> io::Result<usize> {
        for count in 0..MESSAGES_MAX {
            match self.socket.read() {
                Ok(Message::Binary(packet)) => visit(&packet),
                Ok(Message::Close(_)) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) => {
                    self.has_more = false;
                    return unless_blocked(error).map(|()| count);
                }
            }
        }
        self.has_more = true;
        Ok(MESSAGES_MAX)
    }
}

/// What the library says while a socket has nothing or no room is no error.
fn unless_blocked(error: Error) -> io::Result<()> {
    match error {
        Error::Io(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        Error::Io(error) => Err(error),
        Error::ConnectionClosed | Error::AlreadyClosed => Err(ErrorKind::UnexpectedEof.into()),
        error => Err(io::Error::other(error)),
    }
}
