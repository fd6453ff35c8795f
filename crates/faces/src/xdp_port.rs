//! Ethernet frames of an interface by AF_XDP: the kernel's driver puts NDN frames into memory that the worker reads,
//! without the network stack between.
//!
//! The XDP program of `namewire-afxdp` takes the frames of type 0x8624; the kernel keeps all others. Each receive queue
//! of the interface has a socket. All sockets belong to one worker, and all frames are sent through the first:
//!
//! ```text
//!   interface ─► program ─┬─ 0x8624 of queue 0 ─► XdpPort 0 ─┐
//!                         ├─ 0x8624 of queue 1 ─► XdpPort 1 ─┼─► worker ─► XdpPort 0 ─► interface
//!                         └─ all else ─► kernel              ┘
//! ```
//!
//! Unlike a packet socket, this port writes and reads the Ethernet header itself, and knows the group of a frame.
//!
//! The kernel looks at frames to send only when it is called. If it does not take all, the driver calls again by a
//! timer ([`XdpPort::needs_kick`]), also while a link is down.
//!
//! Cost: a copy of each frame between its place in shared memory and the batch; a system call for 32 frames to send in
//! copy mode, and none to receive. Bytes: 16 MiB of shared memory per queue. Limit: a frame carries at most
//! [`XdpPort::payload_bytes_max`]; interfaces with larger frames have no AF_XDP.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use namewire_afxdp::{AttachMode, Options, Program, XdpSocket};
use namewire_packet::nfd::MacAddress;
use socket2::{Domain, Socket, Type};

use crate::remote::{LinkAddress, Remote};
use crate::sys::{self, Addressee, ETHERTYPE_NDN, MAX_BATCH, Outgoing, ReceivedBatch};

/// Two addresses and the type of a frame.
pub(crate) const HEADER_BYTES: usize = 14;

/// Sockets of one interface. NDN frames of further receive queues go to the kernel, which drops them.
const QUEUES_MAX: u32 = 64;

/// So often and so long the control thread waits for a former program on the interface.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// One receive queue of an interface, and the way to send.
pub(crate) struct XdpPort {
    socket: XdpSocket,
    own: LinkAddress,
    /// The group whose frames are for us.
    group: Option<MacAddress>,
    /// Makes the interface hear the group. It is bound to no protocol, so it receives nothing.
    membership: Option<OwnedFd>,
    /// The kernel did not send what is on the ring; the next call says why before it takes more.
    is_stuck: bool,
    /// Attached while one of the ports lives.
    _program: Arc<Program>,
}

/// The ports of an interface, one for each queue, and in words how they work.
///
/// # Errors
///
/// The kernel, the driver or the lack of a privilege (CAP_NET_RAW with CAP_BPF and CAP_NET_ADMIN) does not allow it,
/// the interface is down, or its frames are too large.
pub(crate) fn open(interface: u32, own: MacAddress) -> io::Result<(Vec<XdpPort>, String)> {
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
    let port =
        |socket| XdpPort { socket, own, group: None, membership: None, is_stuck: false, _program: program.clone() };
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

impl XdpPort {
    /// Most bytes of a frame after its header.
    pub(crate) fn payload_bytes_max(&self) -> usize {
        self.socket.frame_bytes_max() - HEADER_BYTES
    }

    /// Bytes that the kernel has not sent yet, at most: frames are not counted by their length.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        (self.socket.unsent() * self.socket.frame_bytes_max()) as u64
    }

    /// Makes the interface hear a group. Only frames to this group are for us from now on.
    pub(crate) fn join(&mut self, group: MacAddress) -> io::Result<()> {
        let membership = Socket::new(Domain::PACKET, Type::RAW, None)?;
        sys::join_link_group(membership.as_fd(), self.own.interface, group)?;
        self.membership = Some(membership.into());
        self.hear(group);
        Ok(())
    }

    /// Frames to this group are for us, if another port has joined it.
    pub(crate) fn hear(&mut self, group: MacAddress) {
        self.group = Some(group);
    }

    /// Whether frames wait that only [`XdpPort::kick`] sends.
    pub(crate) fn needs_kick(&self) -> bool {
        self.is_stuck || self.socket.has_waiting()
    }

    /// Sends what the kernel did not take before.
    pub(crate) fn kick(&mut self) -> io::Result<()> {
        self.socket.flush()?;
        self.is_stuck = false;
        Ok(())
    }

    /// Frames that the kernel dropped instead of sending them.
    pub(crate) fn dropped(&self) -> u64 {
        self.socket.dropped()
    }

    /// Receives at most `at_most` frames, the payload of the i-th into `buffer[i * slot_bytes..]`.
    pub(crate) fn receive(
        &mut self,
        messages: &mut ReceivedBatch,
        buffer: &mut [u8],
        slot_bytes: usize,
        at_most: usize,
    ) -> usize {
        let (own, group) = (self.own, self.group);
        let mut slots = buffer.chunks_exact_mut(slot_bytes);
        let mut received = 0;
        self.socket.receive(at_most.min(MAX_BATCH).min(slots.len()), |frame| {
            let (Some((header, payload)), Some(slot)) = (frame.split_first_chunk::<HEADER_BYTES>(), slots.next())
            else {
                return; // the program passes no frame without a header, and a batch is no longer than the buffer
            };
            let payload = &payload[..payload.len().min(slot_bytes)];
            slot[..payload.len()].copy_from_slice(payload);
            let [a, b, c, d, e, f, g, h, i, j, k, l, _, _] = *header;
            let (to, from) = (MacAddress([a, b, c, d, e, f]), MacAddress([g, h, i, j, k, l]));
            let from = LinkAddress { interface: own.interface, address: from };
            messages.note_frame(received, payload.len(), from, addressee(to, own.address, group));
            received += 1;
        });
        received
    }

    /// Sends frames as far as there is room, and returns how many.
    ///
    /// # Errors
    ///
    /// The interface sends nothing. What the call before took may still leave when it is up again.
    pub(crate) fn send<'a>(&mut self, outgoing: impl Iterator<Item = Outgoing<'a>>) -> io::Result<usize> {
        if self.is_stuck || self.socket.has_waiting() {
            self.kick()?;
        }
        let mut sent = 0;
        for Outgoing { bytes, destination, .. } in outgoing.take(MAX_BATCH) {
            let Some(Remote::Ethernet(LinkAddress { address, .. })) = destination else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            if bytes.len() > self.payload_bytes_max() {
                if sent == 0 {
                    return Err(rustix::io::Errno::MSGSIZE.into());
                }
                break;
            }
            if !self.socket.send(&[&address.0, &self.own.address.0, &ETHERTYPE_NDN.to_be_bytes(), bytes]) {
                break;
            }
            sent += 1;
        }
        match self.socket.flush() {
            Ok(()) => Ok(sent),
            Err(error) if sent == 0 => Err(error),
            Err(_) => {
                self.is_stuck = true;
                Ok(sent)
            }
        }
    }
}

impl AsFd for XdpPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn addressee(to: MacAddress, own: MacAddress, group: Option<MacAddress>) -> Addressee {
    if to == own {
        Addressee::Us
    } else if group == Some(to) || to == MacAddress([0xff; 6]) {
        Addressee::Group
    } else {
        Addressee::Others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_to_other_stations_and_groups_are_not_for_us() {
        let [own, other, group, foreign] =
            [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [1, 0, 0x5e, 0, 0x17, 0xaa], [1, 0, 0x5e, 0, 0, 1]]
                .map(MacAddress);
        for (to, joined, expected) in [
            (own, None, Addressee::Us),
            (other, Some(group), Addressee::Others),
            (group, Some(group), Addressee::Group),
            (group, None, Addressee::Others),
            (foreign, Some(group), Addressee::Others),
            (MacAddress([0xff; 6]), None, Addressee::Group),
        ] {
            assert_eq!(addressee(to, own, joined), expected, "{to}, {joined:?}");
        }
    }
}
