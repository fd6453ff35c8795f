//! Server: a socket that clients connect to, and the set-up of a connection.
//!
//! ```text
//!   server                                    client
//!   hello ──────────────────────────────────►
//!         ◄────────────────────────────────── init (interface, secret)
//!   ack   ──────────────────────────────────►
//!         ◄────────────────────────────────── add_region (memory file), and again for each region
//!   ack   ──────────────────────────────────►
//!         ◄────────────────────────────────── add_ring (doorbell), for S2M and for M2S
//!   ack   ──────────────────────────────────►
//!         ◄────────────────────────────────── connect
//!   connected ──────────────────────────────►
//! ```
//!
//! Source: `drivers/net/memif/memif_socket.c` of DPDK, for the order. The server checks every message. At the first
//! wrong message, it sends `disconnect` with the broken rule and gives up.
//!
//! Limits: 16 regions with 256 MiB together, one ring each way with at most 2¹⁴ slots. A region must be a memory file
//! that is sealed against shrinking (`memfd.rs`). The set-up has no time limit: the caller drops a [`Handshake`] that
//! takes too long.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
};

use crate::control::{self, Received};
use crate::message::{AddRing, Hello, Init, MODE_ETHERNET, Message, SECRET_BYTES, VERSION};
use crate::receiving::ReceiveRing;
use crate::region::Memory;
use crate::ring::Ring;
use crate::sending::TransmitRing;
use crate::{APPLICATION, Broken, Port, REGION_BYTES_MAX, REGIONS_MAX, RING_LOG2_MAX, doorbell, failed, memfd};

/// Connections that wait for [`Listener::accept`].
const BACKLOG: i32 = 16;

/// Which clients a server takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// Number of the interface that a client must ask for. Default `None`: any.
    pub id: Option<u32>,
    /// What a client must know, 1 to 24 bytes without a zero byte. Default `None`: nothing.
    pub secret: Option<Vec<u8>>,
}

/// A listening socket. See the module.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    /// Device and number of the file at `path`.
    file: (u64, u64),
    accept: Accept,
}

impl Listener {
    /// Listens at `path`. The file gets this mode (for example `0o660`) before a client can connect. Replaces a socket
    /// that no process listens on. The path is removed when the listener is dropped, if it still is this socket.
    ///
    /// # Errors
    /// `AddrInUse` if a process listens there, or the path is something else than a socket; `InvalidInput` if the
    /// secret has a wrong length; and others of the kernel.
    pub fn bind(path: &Path, mode: u32, accept: Accept) -> io::Result<Self> {
        if let Some(secret) = &accept.secret {
            padded(secret)?;
        }
        let address = SocketAddrUnix::new(path)?;
        remove_stale(path, &address)?;
        let socket = new_socket()?;
        bind(&socket, &address).map_err(|e| failed("binding", e))?;
        let metadata = std::fs::symlink_metadata(path)?;
        let listener = Listener { socket, path: path.into(), file: (metadata.dev(), metadata.ino()), accept };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        listen(&listener.socket, BACKLOG)?;
        Ok(listener)
    }

    /// The next connection, of which the set-up has begun. `None` if none waits. Does not block.
    ///
    /// # Errors
    /// Those of the kernel, for example too many open files. The listener stays good.
    pub fn accept(&self) -> io::Result<Option<Handshake>> {
        let socket = match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(None),
            Err(error) => return Err(failed("accepting", error)),
        };
        // A client that is gone already is found by the first step.
        let _ = control::send(socket.as_fd(), &hello(), None);
        Ok(Some(Handshake::new(socket, self.accept.clone())))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let now = std::fs::symlink_metadata(&self.path);
        if now.is_ok_and(|now| (now.dev(), now.ino()) == self.file) {
            // The error is of no use to anybody: the next server replaces the file.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A socket of the kind that memif uses.
pub(crate) fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Removes a socket that no process listens on.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let in_use = |text: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => return in_use("the path is no socket"),
        Ok(_) => {}
    }
    match connect(&new_socket()?, address) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path),
        Err(Errno::NOENT) => Ok(()),
        _ => in_use("a process listens on this socket"), // Also one of another kind, or one that we may not connect to.
    }
}

/// A secret as it is in `init`.
pub(crate) fn padded(secret: &[u8]) -> io::Result<[u8; SECRET_BYTES]> {
    let mut field = [0; SECRET_BYTES];
    match field.get_mut(..secret.len()) {
        Some(place) if !secret.is_empty() && !secret.contains(&0) => place.copy_from_slice(secret),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "a secret has 1 to 24 bytes, none of them zero")),
    }
    Ok(field)
}

/// What this server offers.
pub(crate) fn hello() -> Message {
    Message::Hello(Hello {
        name: APPLICATION.into(),
        version_min: VERSION,
        version_max: VERSION,
        region_max: REGIONS_MAX as u16 - 1,
        m2s_ring_max: 0,
        s2m_ring_max: 0,
        ring_log2_max: RING_LOG2_MAX,
    })
}

/// What a step came to.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "lives for a moment, once per connection")]
pub enum Progress {
    /// Wait until the control socket is readable, then step again.
    Pending,
    /// The connection is made. The port has the same control socket (the same number). Drop the handshake.
    Ready(Port),
}

/// A connection in set-up. Its control socket is readable if [`step`](Self::step) has something to do.
#[derive(Debug)]
pub struct Handshake {
    control: Arc<OwnedFd>,
    accept: Accept,
    init: Option<Init>,
    memory: Memory,
    s2m: Option<(AddRing, OwnedFd)>,
    m2s: Option<(AddRing, OwnedFd)>,
}

impl AsFd for Handshake {
    /// The control socket, for example to ask who the peer is (`SO_PEERCRED`).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Handshake {
    pub(crate) fn new(control: OwnedFd, accept: Accept) -> Self {
        let control = Arc::new(control);
        Handshake { control, accept, init: None, memory: Memory::default(), s2m: None, m2s: None }
    }

    /// Reads and answers every message that has come. Does not block. After an error, drop the handshake.
    ///
    /// # Errors
    /// `InvalidData` if the client broke a rule, which the text names and the client was told; `ConnectionReset` if it
    /// went away, with its reason if it gave one; and others of the kernel.
    pub fn step(&mut self) -> io::Result<Progress> {
        loop {
            let result = match control::receive(self.control.as_fd())? {
                Received::Nothing => return Ok(Progress::Pending),
                Received::End => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionReset, "client left during the set-up"));
                }
                Received::Message(Message::Disconnect { reason, .. }, _) => {
                    let text = format!("client disconnected: {reason}");
                    return Err(io::Error::new(io::ErrorKind::ConnectionReset, text));
                }
                Received::Broken(broken) => Err(broken),
                Received::Message(Message::Connect { .. }, _) => match self.finish() {
                    Ok(port) => return Ok(Progress::Ready(port)),
                    Err(broken) => Err(broken),
                },
                Received::Message(message, file) => self.take(message, file),
            };
            if let Err(broken) = result {
                control::send_disconnect(self.control.as_fd(), broken.0);
                return Err(broken.into());
            }
            control::send(self.control.as_fd(), &Message::Ack, None)?;
        }
    }

    fn take(&mut self, message: Message, file: Option<OwnedFd>) -> Result<(), Broken> {
        match message {
            Message::Init(init) => self.take_init(init),
            Message::AddRegion { index, bytes } if self.init.is_some() => self.take_region(index, bytes, file),
            Message::AddRing(ring) if self.init.is_some() => self.take_ring(ring, file),
            _ => Err(Broken("unexpected message")),
        }
    }

    fn take_init(&mut self, init: Init) -> Result<(), Broken> {
        if self.init.is_some() {
            return Err(Broken("unexpected message"));
        }
        if init.version != VERSION {
            return Err(Broken("incompatible memif version"));
        }
        if self.accept.id.is_some_and(|id| id != init.id) {
            return Err(Broken("unknown interface id"));
        }
        if init.mode != MODE_ETHERNET {
            return Err(Broken("only ethernet mode is supported"));
        }
        if let Some(secret) = &self.accept.secret {
            let secret = padded(secret).map_err(|_| Broken("incorrect secret"))?;
            // Compares all bytes, so that the time does not tell how many are right.
            let difference = secret.iter().zip(&init.secret).fold(0, |all, (a, b)| all | (a ^ b));
            if difference != 0 {
                return Err(Broken("incorrect secret"));
            }
        }
        self.init = Some(init);
        Ok(())
    }

    fn take_region(&mut self, index: u16, bytes: u64, file: Option<OwnedFd>) -> Result<(), Broken> {
        let file = file.ok_or(Broken("missing region file"))?;
        if usize::from(index) != self.memory.regions() || self.memory.regions() >= REGIONS_MAX {
            return Err(Broken("invalid region index"));
        }
        let limit = REGION_BYTES_MAX - self.memory.bytes();
        if bytes == 0 || bytes > limit {
            return Err(Broken("region is empty, or regions are too large together"));
        }
        memfd::check(file.as_fd(), bytes)?;
        // Not populated: the pages that the client never touched would count as ours.
        let mapped = self.memory.map(file.as_fd(), bytes as usize, false);
        mapped.map_err(|_| Broken("region cannot be mapped"))
    }

    fn take_ring(&mut self, ring: AddRing, file: Option<OwnedFd>) -> Result<(), Broken> {
        let file = file.ok_or(Broken("missing interrupt file"))?;
        let place = if ring.is_s2m { &mut self.s2m } else { &mut self.m2s };
        if ring.index != 0 || place.is_some() {
            return Err(Broken("only one ring each way is supported"));
        }
        if ring.private_header_bytes != 0 {
            return Err(Broken("private headers are not supported"));
        }
        *place = Some((ring, doorbell::adopt(file)?));
        Ok(())
    }

    fn finish(&mut self) -> Result<Port, Broken> {
        let (Some(init), Some(s2m), Some(m2s)) = (self.init.take(), self.s2m.take(), self.m2s.take()) else {
            return Err(Broken("connect before one ring each way"));
        };
        let memory = Arc::new(std::mem::take(&mut self.memory));
        let open = |ring: AddRing| {
            let ring = Ring::new(memory.clone(), ring.region, ring.offset, ring.ring_log2)?;
            if ring.has_cookie() { Ok(ring) } else { Err(Broken("ring has a wrong cookie")) }
        };
        let receiver = ReceiveRing::of_server(open(s2m.0)?);
        let transmitter = TransmitRing::of_server(open(m2s.0)?);
        let connected = Message::Connected { name: APPLICATION.into() };
        control::send(self.control.as_fd(), &connected, None).map_err(|_| Broken("client does not read"))?;
        Ok(Port {
            control: self.control.clone(),
            receiver,
            transmitter,
            receive_doorbell: s2m.1,
            transmit_doorbell: m2s.1,
            id: init.id,
            peer_name: init.name,
            ended: None,
        })
    }
}
