//! Frames of an interface by AF_XDP: the kernel's driver puts NDN frames into memory that the worker reads. The frames
//! bypass the network stack.
//!
//! The XDP program of `namewire-afxdp` takes the frames of type 0x8624, also behind a priority tag; the kernel keeps
//! all others. Each receive queue of the interface has a socket. All sockets belong to one worker, and all frames are
//! sent through the first:
//!
//! ```text
//!   interface ─► program ─┬─ 0x8624 of queue 0 ─► port 0 ─┐
//!                         ├─ 0x8624 of queue 1 ─► port 1 ─┼─► worker ─► port 0 ─► interface
//!                         └─ all else ─► kernel           ┘
//! ```
//!
//! The kernel looks at frames to send only when the driver calls it. If the kernel does not take all frames, a timer
//! lets the driver call again ([`FramePort::needs_kick`]), also while a link is down.
//!
//! Cost: a system call for 32 frames to send in copy mode, and none to receive. Bytes: 16 MiB of shared memory per
//! queue. Limit: the size of a UMEM's frames; the router does not use AF_XDP on an interface with larger frames. Where
//! the MTU leaves no four bytes free, the kernel drops the longest frames with a priority tag.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use namewire_afxdp::{AttachMode, Options, Program, XdpSocket};
use namewire_packet::nfd::MacAddress;
use socket2::{Domain, Socket, Type};

use super::{FramePort, Queue};
use crate::remote::LinkAddress;
use crate::sys;

/// Sockets of one interface. NDN frames of further receive queues go to the kernel, which drops them.
const QUEUES_MAX: u32 = 64;

/// So often and so long the control thread waits for a former program on the interface.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// One receive queue of an interface.
pub(super) struct XdpQueue {
    pub(super) socket: XdpSocket,
    /// Makes the interface hear the group. It is bound to no protocol, so it receives nothing.
    membership: Option<OwnedFd>,
    /// Attached while one of the queues lives.
    _program: Arc<Program>,
}

impl XdpQueue {
    /// Makes the interface hear a group.
    pub(super) fn join(&mut self, interface: u32, group: MacAddress) -> io::Result<()> {
        let membership = Socket::new(Domain::PACKET, Type::RAW, None)?;
        sys::join_link_group(membership.as_fd(), interface, group)?;
        self.membership = Some(membership.into());
        Ok(())
    }
}

/// The ports of an interface, one for each queue, and in words how they work.
///
/// # Errors
///
/// The kernel, the driver or the lack of a privilege (CAP_NET_RAW with CAP_BPF and CAP_NET_ADMIN) does not allow it,
/// the interface is down, or its frames are too large.
pub(crate) fn open(interface: u32, own: MacAddress) -> io::Result<(Vec<FramePort>, String)> {
    let mut program = attach(interface)?;
    let options = Options { zero_copy: program.mode() == AttachMode::Native, ..Options::default() };
    let mut sockets = Vec::new();
    for queue in 0..QUEUES_MAX {
        let socket = match XdpSocket::open(interface, queue, options) {
            // How the kernel says that there is no such queue.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput && queue > 0 => break,
            opened => opened?,
        };
        program.insert(queue, &socket)?;
        sockets.push(socket);
    }
    let queues = sockets.len();
    let copies = if sockets.iter().all(XdpSocket::is_zero_copy) { "zero-copy" } else { "copy" };
    let how =
        format!("AF_XDP, {} mode, {copies}, {queues} queue{}", program.mode(), if queues == 1 { "" } else { "s" });
    let program = Arc::new(program);
    let own = LinkAddress { interface, address: own };
    let port = |socket| {
        let queue = XdpQueue { socket, membership: None, _program: program.clone() };
        FramePort::new(Queue::Xdp(Box::new(queue)), own, None)
    };
    Ok((sockets.into_iter().map(port).collect(), how))
}

/// A worker may be about to let go of a former program.
fn attach(interface: u32) -> io::Result<Program> {
    for _ in 0..BUSY_TRIES {
        match Program::attach(interface) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(BUSY_PAUSE),
            attached => return attached,
        }
    }
    Program::attach(interface)
}
