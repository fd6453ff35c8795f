//! The target of a generator's link: a router, as for any client, or an address that client programs do not have.
//!
//! The client library costs a task and a channel for each packet, so the generator does not use it to connect.

use namewire_client::TransportUri;
use namewire_load::{Link, LinkUri};
use std::{
    fmt, io,
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    str::FromStr,
};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Transport(TransportUri),
    Link(LinkUri),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("memif" | "ether" | "ws", _)) => text.parse().map(Target::Link),
            _ => text.parse::<TransportUri>().map(Target::Transport).map_err(|error| error.to_string()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Transport(uri) => uri.fmt(f),
            Target::Link(uri) => uri.fmt(f),
        }
    }
}

impl Target {
    /// Connects to a router, or to a generator that listens.
    pub(super) async fn connect(&self) -> io::Result<Link> {
        let uri = match self {
            Target::Transport(uri) => uri,
            Target::Link(uri) => return uri.connect("namewire traffic"),
        };
        match uri {
            TransportUri::Unix(path) => Link::stream(UnixStream::connect(path)?),
            TransportUri::Tcp { .. } => tcp(TcpStream::connect(&uri.resolve().await?[..])?),
            TransportUri::Udp { .. } => {
                let addresses = uri.resolve().await?;
                let any = if addresses[0].is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.connect(addresses[0])?;
                Link::datagrams(socket)
            }
        }
    }
}

/// Waits for one peer; over UDP, for its first packet.
pub(super) async fn accept(uri: &TransportUri) -> io::Result<Link> {
    match uri {
        TransportUri::Unix(path) => accept_unix(path),
        TransportUri::Tcp { .. } => tcp(TcpListener::bind(&uri.resolve().await?[..])?.accept()?.0),
        TransportUri::Udp { .. } => {
            let socket = UdpSocket::bind(&uri.resolve().await?[..])?;
            let (_, peer) = socket.peek_from(&mut [0])?;
            socket.connect(peer)?;
            Link::datagrams(socket)
        }
    }
}

fn tcp(stream: TcpStream) -> io::Result<Link> {
    stream.set_nodelay(true)?;
    Link::stream(stream)
}

fn accept_unix(path: &Path) -> io::Result<Link> {
    let listener = UnixListener::bind(path)?;
    let accepted = listener.accept();
    std::fs::remove_file(path)?;
    Link::stream(accepted?.0)
}
