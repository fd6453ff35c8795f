//! The XDP program on an interface: which frames go to our sockets.
//!
//! Source: Documentation/bpf/map_xskmap.rst of Linux. The program is `bpf/steer.c`, whose compiled form is part of this
//! library. It takes frames with the EtherType of NDN (0x8624) that come by a queue with a socket; the kernel gets all
//! others.
//!
//! A BPF link holds the program on the interface. The kernel removes it when the last descriptor of the link is closed,
//! so the end of the process also detaches it, by whatever signal. (A process that is just being started has copies of
//! all descriptors; then the kernel detaches a moment later.) The link needs Linux 5.9.
//!
//! Modes: the driver runs the program before it makes a socket buffer (*native*), if it can. Otherwise the kernel runs
//! it afterwards (*generic*), which is slower and works with every driver.
//!
//! Cost: per NDN frame, one look-up in an array. To attach, some 50 ms and, for that time, 16 MB: the loader (aya)
//! reads the kernel's description of its types, whether a program needs it or not.
//!
//! Limits: one XDP program per interface; `attach` fails if there is another. 1,024 queues. The object is for
//! little-endian processors; others refuse it. A card that removes VLAN tags before the program runs hides them from it
//! (`ethtool -K NAME rxvlan off` makes it leave them): then NDN frames with a tag come to the socket without it.

use std::error::Error;
use std::fmt::{self, Display};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use aya::maps::{MapError, XskMap};
use aya::programs::links::FdLink;
use aya::programs::{ProgramError, Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};

use crate::socket::XdpSocket;

const OBJECT: &[u8] = include_bytes_aligned!("../bpf/steer.o");

/// Names in `bpf/steer.c`.
const PROGRAM: &str = "steer";
const SOCKETS: &str = "sockets";

/// Where the program runs; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver.
    Native,
    /// In the kernel, with any driver.
    Generic,
}

impl Display for AttachMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AttachMode::Native => "native",
            AttachMode::Generic => "generic",
        })
    }
}

/// The XDP program on an interface. Dropping it, or the end of the process, detaches it.
#[derive(Debug)]
pub struct Program {
    mode: AttachMode,
    /// Closed first: then no frame comes to the map.
    _link: FdLink,
    loaded: Ebpf,
}

impl Program {
    /// Loads the program and attaches it: native if the driver can, otherwise generic.
    ///
    /// # Errors
    /// `ResourceBusy` if the interface has an XDP program, `PermissionDenied` without privileges,
    /// `Unsupported` if the kernel has no BPF links, and others that the kernel gives, with their text.
    pub fn attach(interface: u32) -> io::Result<Program> {
        let mut loaded = EbpfLoader::new().btf(None).load(OBJECT).map_err(|e| as_io("loading the XDP program", &e))?;
        let program: &mut Xdp = loaded
            .program_mut(PROGRAM)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the object has no XDP program"))?
            .try_into()
            .map_err(|e: ProgramError| as_io("loading the XDP program", &e))?;
        program.load().map_err(|e| as_io("loading the XDP program", &e))?;
        let (link, mode) = match attach(program, interface, XdpMode::Driver) {
            Ok(link) => (link, AttachMode::Native),
            // The reason why the driver cannot has no code of its own: drivers give various ones, for example for an
            // MTU or a number of queues that they cannot have with XDP.
            Err(native) => match attach(program, interface, XdpMode::Skb) {
                Ok(link) => (link, AttachMode::Generic),
                Err(generic) => {
                    let text = format!("attaching the XDP program: native: {native}; generic: {generic}");
                    // The mode of the program that is there says it is busy; the other mode says something else.
                    let is_busy = [&native, &generic].iter().any(|e| e.kind() == io::ErrorKind::ResourceBusy);
                    let kind = if is_busy { io::ErrorKind::ResourceBusy } else { generic.kind() };
                    return Err(io::Error::new(kind, text));
                }
            },
        };
        Ok(Program { mode, _link: link, loaded })
    }

    /// Steers the NDN frames of this queue into the socket, until the socket or the program is dropped. The socket must
    /// be that of the same interface and queue; others receive nothing.
    ///
    /// # Errors
    /// `InvalidInput` if the program has no place for this queue, and what the kernel gives.
    pub fn insert(&mut self, queue: u32, socket: &XdpSocket) -> io::Result<()> {
        let map = self.loaded.map_mut(SOCKETS).ok_or(io::ErrorKind::InvalidData)?;
        let mut sockets = XskMap::try_from(map).map_err(|e| as_io("opening the map of sockets", &e))?;
        sockets.set(queue, socket.as_fd().as_raw_fd(), 0).map_err(|e| match e {
            MapError::OutOfBounds { .. } => io::Error::new(io::ErrorKind::InvalidInput, e.to_string()),
            e => as_io("steering frames into a socket", &e),
        })
    }

    /// Where the program runs.
    #[must_use]
    pub fn mode(&self) -> AttachMode {
        self.mode
    }
}

/// Attaches by a BPF link, never by the older way, which would leave the program behind if the process is killed.
fn attach(program: &mut Xdp, interface: u32, mode: XdpMode) -> io::Result<FdLink> {
    let link = program.attach_to_if_index(interface, mode).map_err(|e| as_io("the kernel refused", &e))?;
    let link = program.take_link(link).map_err(|e| as_io("the link is lost", &e))?;
    FdLink::try_from(link)
        .map_err(|_| io::Error::new(io::ErrorKind::Unsupported, "the kernel has no BPF links for XDP"))
}

/// The texts of an error and of its causes, with the kind of the system's error if there is one among them.
fn as_io(step: &str, error: &(dyn Error + 'static)) -> io::Error {
    let (mut text, mut kind) = (step.to_string(), io::ErrorKind::Other);
    let mut cause = Some(error);
    while let Some(error) = cause {
        let line = error.to_string();
        if !text.ends_with(&line) {
            text = format!("{text}: {line}");
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            kind = error.kind();
        }
        cause = error.source();
    }
    io::Error::new(kind, text)
}
