//! The new program's side of a hand-over: what the old one has said.
//!
//! Limits: [`FACES_MAX`], [`LISTENERS_MAX`], [`ENTRIES_MAX`]; beyond them the new program refuses, and the old one goes
//! on.

use crate::{
    Kind, Line, LineError, PROTOCOL,
    faces::OnLine,
    messages::{Face, Listener, Node, Ready, Stored, Taken},
};
use namewire_faces::face_uri;
use namewire_packet::{
    nfd::{FaceUri, FibEntry, NfdError, RibEntry, StrategyChoice, decode_dataset},
    tlv,
};
use std::{
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
    thread,
    time::Duration,
};

/// Most faces that are taken over.
const FACES_MAX: usize = 1 << 20;

/// Most listening sockets.
const LISTENERS_MAX: usize = 4096;

/// Most entries of each table.
const ENTRIES_MAX: usize = 2 << 20;

/// The longest silence while the state comes, and then until the old program says that it stops.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// All that the old program says before the new one goes on.
pub struct Handed {
    line: Line,
    /// What belongs to no face and no table.
    pub node: Node,
    /// Its listening sockets.
    pub listeners: HandedSockets,
    /// Its faces.
    pub faces: Vec<OnLine>,
    /// Its routes.
    pub routes: Vec<RibEntry>,
    /// Its next hops without a route.
    pub next_hops: Vec<FibEntry>,
    /// Its strategy choices.
    pub strategies: Vec<StrategyChoice>,
}

/// The new program's end of a line on which the old one has said [`Kind::HELLO`].
pub struct TakeOver {
    /// The line.
    pub line: Line,
    /// The version of this program, to tell the other one.
    pub version: String,
}

impl Handed {
    /// Says that this program is ready, waits for the old one to freeze, and takes what it says.
    ///
    /// # Errors
    ///.
    pub fn receive(take_over: TakeOver, workers: u16) -> Result<Self, LineError> {
        let TakeOver { line, version } = take_over;
        line.send(Kind::READY, &Ready { protocol: PROTOCOL, version, workers }, &[], &[])?;
        let mut handed = Handed {
            line,
            node: Node::default(),
            listeners: HandedSockets::default(),
            faces: Vec::new(),
            routes: Vec::new(),
            next_hops: Vec::new(),
            strategies: Vec::new(),
        };
        while handed.take_message()? {}
        Ok(handed)
    }

    /// Takes one message. False: that was the last.
    fn take_message(&mut self) -> Result<bool, LineError> {
        let message = self.line.receive()?;
        let malformed = |error: NfdError| LineError::Malformed(error.to_string());
        match message.kind {
            Kind::NODE => {
                self.node = message.read()?;
                // The old one has frozen, and is quick from now on.
                self.line.set_timeout(SILENCE_MAX)?;
            }
            Kind::LISTENER => {
                let listener: Listener = message.read()?;
                self.listeners.sockets.extend(message.descriptors.into_iter().next().map(|socket| (listener, socket)));
            }
            Kind::FACE => {
                let face: Face = message.read()?;
                let descriptor = message.descriptors.into_iter().next();
                self.faces.push(OnLine { face, bytes: message.bytes, descriptor });
            }
            Kind::ROUTES => self.routes.extend(decode_dataset(&message.bytes).map_err(malformed)?),
            Kind::NEXT_HOPS => self.next_hops.extend(decode_dataset(&message.bytes).map_err(malformed)?),
            Kind::STRATEGIES => self.strategies.extend(decode_dataset(&message.bytes).map_err(malformed)?),
            Kind::END => return Ok(false),
            _ => {}
        }
        let entries = [self.routes.len(), self.next_hops.len(), self.strategies.len()];
        let is_too_much = self.faces.len() > FACES_MAX
            || self.listeners.sockets.len() > LISTENERS_MAX
            || entries.iter().any(|entries| *entries > ENTRIES_MAX);
        if is_too_much { Err(LineError::TooLarge) } else { Ok(true) }
    }
}

/// The line after everything was taken.
pub struct Takers(Line);

impl Handed {
    /// The line, when everything else was taken.
    pub fn into_line(self) -> Takers {
        Takers(self.line)
    }
}

impl Takers {
    /// Says that all is taken, and waits until the old program says that it uses no socket any more. If that program
    /// has ended, nobody does.
    ///
    /// # Errors
    ///: the old one goes on.
    pub fn wait_for_go(&self, faces: u64, routes: u64) -> Result<(), LineError> {
        let before = rustix::process::getppid();
        let said = self.0.send(Kind::TAKEN, &Taken { faces, routes }, &[], &[]);
        match said.and_then(|()| self.0.receive()) {
            Ok(message) if message.kind == Kind::GO => Ok(()),
            Err(LineError::Closed) if rustix::process::getppid() != before => Ok(()),
            Ok(_) => Err(LineError::Malformed("it did not say that it stops".to_owned())),
            Err(error) => Err(error),
        }
    }

    /// Passes the Data that the old program had stored on, in a thread: batches, each with the milliseconds for which
    /// they are fresh. `pass` returns false when no more are wanted.
    pub fn pass_stored(self, mut pass: impl FnMut(Vec<(Vec<u8>, u64)>) -> bool + Send + 'static) {
        let listen = move || {
            while let Ok(message) = self.0.receive() {
                let (Kind::STORED, Ok(Stored { fresh_ms })) = (message.kind, message.read()) else { continue };
                let data = split(&message.bytes).zip(fresh_ms).map(|(data, ms)| (data.to_vec(), ms)).collect();
                if !pass(data) {
                    return;
                }
            }
        };
        // Without a thread, the Content Store begins empty.
        let _ = thread::Builder::new().name("nw-stored".to_owned()).spawn(listen);
    }
}

/// The elements in bytes, up to the first that is no element.
fn split(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let size = tlv::element_size(bytes).ok()??;
        let (element, rest) = bytes.split_at_checked(size)?;
        bytes = rest;
        Some(element)
    })
}

/// The listening sockets of the old program.
#[derive(Default)]
pub struct HandedSockets {
    sockets: Vec<(Listener, OwnedFd)>,
}

impl HandedSockets {
    /// The listening Unix socket, its path, and whether another process made it. With `wanted`, only that path.
    pub fn take_unix(&mut self, wanted: Option<&FaceUri>) -> Option<(FaceUri, bool, OwnedFd)> {
        let is_it = |uri: &FaceUri| matches!(uri, FaceUri::Unix(_)) && wanted.is_none_or(|wanted| wanted == uri);
        let at = self.sockets.iter().position(|(listener, _)| listener.uri.parse().is_ok_and(|uri| is_it(&uri)))?;
        let (Listener { uri, is_inherited, .. }, socket) = self.sockets.swap_remove(at);
        Some((uri.parse().ok()?, is_inherited, socket))
    }

    /// The listener of this kind at an address; for port 0, at any port of it.
    pub fn take_stream(&mut self, kind: &str, address: SocketAddr) -> Option<TcpListener> {
        let place = |port: u16| place(kind, SocketAddr::new(address.ip(), port));
        let is_it = |(listener, socket): &(Listener, OwnedFd)| match address.port() {
            0 => port_of(socket).is_some_and(|port| listener.uri == place(port)),
            port => listener.uri == place(port),
        };
        let at = self.sockets.iter().position(is_it)?;
        Some(self.sockets.swap_remove(at).1.into())
    }

    /// The sockets of a UDP listener by worker, and its address.
    pub fn take_udp(&mut self, wanted: SocketAddr) -> Option<(SocketAddr, Vec<(u8, OwnedFd)>)> {
        let found = self.sockets.iter().find_map(|(listener, socket)| {
            let port = if wanted.port() == 0 { port_of(socket)? } else { wanted.port() };
            let address = SocketAddr::new(wanted.ip(), port);
            (listener.uri == face_uri::udp(address).to_string()).then_some(address)
        })?;
        let uri = face_uri::udp(found).to_string();
        let (taken, others) = std::mem::take(&mut self.sockets).into_iter().partition(|(one, _)| one.uri == uri);
        self.sockets = others;
        let taken: Vec<(Listener, OwnedFd)> = taken;
        Some((found, taken.into_iter().map(|(listener, socket)| (listener.worker, socket)).collect()))
    }

    /// What no one has taken.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        self.sockets.iter().map(|(listener, _)| listener.uri.as_str())
    }
}

/// How the line names a stream listener at an address.
pub fn place(kind: &str, address: SocketAddr) -> String {
    format!("{kind}://{address}")
}

fn port_of(socket: &OwnedFd) -> Option<u16> {
    let address = rustix::net::getsockname(socket).ok()?;
    SocketAddr::try_from(address).ok().map(|address| address.port())
}
