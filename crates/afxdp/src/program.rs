//! The XDP program on an interface: which frames go to our sockets.
//!
//! Source: Documentation/bpf/map_xskmap.rst of Linux. The program is `bpf/steer.c`, whose compiled form is part of this
//! library. It takes frames with the EtherType of NDN (0x8624) that come by a queue with a socket, also those with a
//! priority tag (a VLAN tag of VLAN 0), which stays in the frame. The kernel gets all other frames.
//!
//! A BPF link holds the program on the interface. The kernel removes it when the last descriptor of the link is closed,
//! so the end of the process also detaches it, whatever signal ended the process. (A process that is just being started
//! has copies of all descriptors; then the kernel detaches a moment later.) The link needs Linux 5.9.
//!
//! Modes: the driver runs the program before it makes a socket buffer (*native*), if it can. Otherwise the kernel runs
//! it afterwards (*generic*), which is slower and works with every driver.
//!
//! Cost: per NDN frame, one look-up in an array. To attach, three or four system calls; on a virtual cable they take 6
//! to 14 ms. The map takes 8 KiB of the kernel's memory.
//!
//! Limits: one XDP program per interface; `attach` fails if there is another. 1,024 queues. The object is for
//! little-endian processors; others refuse it. A card that removes VLAN tags before the program runs hides them from it
//! (`ethtool -K NAME rxvlan off` makes it leave them): then NDN frames of a VLAN come to the socket without their tag.

use std::fmt::{self, Display};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::socket::XdpSocket;
use crate::{bpf, failed, interface, steer};

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
    _link: OwnedFd,
    sockets: OwnedFd,
}

impl Program {
    /// Loads the program and attaches it: native if the driver can, otherwise generic.
    ///
    /// # Errors
    /// `ResourceBusy` if the interface has an XDP program, `PermissionDenied` without privileges,
    /// `Unsupported` if the kernel has no BPF links, and others that the kernel gives, with their text.
    pub fn attach(interface: u32) -> io::Result<Program> {
        let step = |e: io::Error| failed("loading the XDP program", &e);
        if cfg!(target_endian = "big") {
            let text = "it is for little-endian processors";
            return Err(step(io::Error::new(io::ErrorKind::Unsupported, text)));
        }
        let sockets = bpf::create_socket_map(steer::SOCKETS, steer::SOCKETS_MAX).map_err(step)?;
        let instructions = steer::instructions(sockets.as_fd());
        let program = bpf::load_xdp(steer::PROGRAM, &instructions, steer::LICENCE).map_err(step)?;
        let (link, mode) = match attach(program.as_fd(), interface, AttachMode::Native) {
            Ok(link) => (link, AttachMode::Native),
            // The reason why the driver cannot has no code of its own: drivers give various ones, for example for an
            // MTU or a number of queues that they cannot have with XDP.
            Err(native) => match attach(program.as_fd(), interface, AttachMode::Generic) {
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
        Ok(Program { mode, _link: link, sockets })
    }

    /// Steers the NDN frames of this queue into the socket, until the socket or the program is dropped. The socket must
    /// be that of the same interface and queue; others receive nothing.
    ///
    /// # Errors
    /// `InvalidInput` if the program has no place for this queue, and what the kernel gives.
    pub fn insert(&mut self, queue: u32, socket: &XdpSocket) -> io::Result<()> {
        if queue >= steer::SOCKETS_MAX {
            let text = format!("the XDP program has no place for queue {queue}, only for {}", steer::SOCKETS_MAX);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        bpf::set_socket(self.sockets.as_fd(), queue, socket.as_fd())
            .map_err(|e| failed("steering frames into a socket", &e))
    }

    /// Where the program runs.
    #[must_use]
    pub fn mode(&self) -> AttachMode {
        self.mode
    }
}

/// Attaches by a BPF link, never by the older way, which would leave the program behind if the process is killed.
fn attach(program: BorrowedFd<'_>, interface: u32, mode: AttachMode) -> io::Result<OwnedFd> {
    let flags = match mode {
        AttachMode::Native => bpf::XDP_FLAGS_DRV_MODE,
        AttachMode::Generic => bpf::XDP_FLAGS_SKB_MODE,
    };
    bpf::link_xdp(program, interface, flags).map_err(|error| {
        if error.kind() != io::ErrorKind::InvalidInput {
            return failed("the kernel refused", &error);
        }
        match (interface::name(interface), mode) {
            (Err(missing), _) => failed("the kernel refused", &missing),
            // Drivers have reasons of their own to say so, but in generic mode none is asked.
            (Ok(_), AttachMode::Generic) => {
                io::Error::new(io::ErrorKind::Unsupported, "the kernel has no BPF links for XDP")
            }
            (Ok(_), AttachMode::Native) => failed("the kernel refused", &error),
        }
    })
}
