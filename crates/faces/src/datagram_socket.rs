//! One datagram socket with its send queue. It is a UDP listener that many on-demand faces share, the connected socket
//! of one face, one half of a multicast face, or an Ethernet interface. [`Peers`] says which remotes may send to the
//! socket, and to which faces these remotes belong.
//!
//! The socket queues the packets of one batch and sends them, to any remotes, with as few `sendmmsg` calls as their
//! number allows. While the kernel has no room, the queue of a socket that faces share is a separate pool, so that one
//! host's datagrams do not keep all others out. If the kernel refuses a datagram for good, the caller gets it back, so
//! that its face counts it. If the kernel has no room for a datagram now, the datagram waits in the queue, up to a
//! limit.
//!
//! Consecutive datagrams of one face and of equal size (the last may be shorter) form a *run*. A run passes through the
//! kernel's network stack as one message (UDP segmentation offload) and arrives as the same datagrams:
//!
//! ```text
//!   bytes │ A 60 │ A 60 │ A 60 │ A 43 │ A 60 │ B 60 │ B 60 │
//!   runs   └────────────1──────────────┴──2───┴──────3──────┘
//! ```
//!
//! [`Failure`] distinguishes failures of one datagram from failures of the face's link or path.
//!
//! A route or a device may refuse a run although it would take its datagrams one by one: segments larger than the
//! path's MTU are not fragmented, and some devices compute no checksums. Then the socket remembers the refused size.
//! From then on it sends datagrams of that size or larger one by one, until a path has become wider.
//!
//! Where the kernel discovers the path MTU, it sends a single datagram with "don't fragment", but not a run. So the
//! kernel learns the MTU of a path only from single datagrams. Now and then the socket sends one large datagram of a
//! face alone, as a *scout* ([`Sender::is_scout`]).

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use namewire_packet::FaceId;
use namewire_shares::{HolderId, Pool};

use crate::CloseReason;
use crate::LinkDrop;
use crate::buffer_pool::BufferPool;
use crate::crowd::Crowd;
use crate::datagram_port::DatagramPort;
use crate::ethernet::LEAST_PAYLOAD_BYTES;
use crate::path_mtu;
use crate::remote::Destination;
use crate::sys::{self, MAX_MESSAGE_BYTES, MAX_SEGMENTS, Outgoing};

/// Queue slots that an empty socket keeps, so that usual batches allocate nothing.
const KEPT_QUEUE_SLOTS: usize = 256;

/// What ICMP reports of a datagram on a connected socket: the kernel returns it once, from the next call. Also what a
/// firewall of this machine reports, which may concern one datagram (too many connections) or all.
const MAY_PASS: [rustix::io::Errno; 7] = {
    use rustix::io::Errno;
    [
        Errno::CONNREFUSED,
        Errno::MSGSIZE,
        Errno::HOSTUNREACH,
        Errno::NETUNREACH,
        Errno::HOSTDOWN,
        Errno::PERM,
        Errno::ACCESS,
    ]
};

/// A datagram that a socket did not send, or a report about one that it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A datagram was given up; others may still leave.
    Datagram(LinkDrop),
    /// A datagram was given up for a reason that applies to all datagrams to that peer ([`LinkDrop::SendFailed`]).
    Link(CloseReason),
    /// The network reports that an earlier datagram to the peer of this connected socket did not arrive.
    Report(CloseReason),
    /// A datagram, this one or an earlier one, is larger than the path takes in one piece.
    Size,
}

/// Why a face's link carries nothing, if the error means that. It does not if a datagram is too large, or if memory or
/// queue room is short for a moment.
pub(crate) fn link_fault(error: &io::Error) -> Option<CloseReason> {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error)?;
    match errno {
        Errno::MSGSIZE | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN | Errno::INTR => None,
        Errno::CONNREFUSED => Some(CloseReason::Refused),
        _ => Some(CloseReason::Io(error.kind())),
    }
}

/// True if the error says that a datagram, this one or an earlier one, is larger than the path takes in one piece.
pub(crate) fn is_about_size(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::MSGSIZE)
}

/// Whose datagrams a socket receives.
pub(crate) enum Peers {
    /// All remotes on UDP: an unknown one becomes an on-demand face. `local` is our end.
    Anyone { local: SocketAddr },
    /// The remote of one face, to which the socket is connected. `local` is where it was bound, perhaps beside a
    /// listener.
    One { face: FaceId, local: SocketAddr, remote: SocketAddr },
    /// The lanes of one neighbour: each is a lane link. `local` is our end.
    Lane { local: SocketAddr },
    /// The members of a UDP group, all of one face, except `own`, the address that we send from.
    Group { face: FaceId, own: SocketAddr },
    /// None: it sends for the face whose receiving half is that socket.
    Nobody { receiver: usize },
    /// The stations on an Ethernet link.
    Link(LinkPeers),
    /// The same stations: another receive queue of that link's interface.
    Queue { link: usize },
    /// The application at the other end of shared memory: all frames are of one face.
    Application { face: FaceId },
}

impl Peers {
    /// The face of all that the socket receives, if it is always the same.
    pub(crate) fn only_face(&self) -> Option<FaceId> {
        match self {
            Peers::One { face, .. } | Peers::Group { face, .. } | Peers::Application { face } => Some(*face),
            Peers::Anyone { .. } | Peers::Lane { .. } | Peers::Nobody { .. } | Peers::Link(_) | Peers::Queue { .. } => {
                None
            }
        }
    }
}

/// The faces of an Ethernet interface.
pub(crate) struct LinkPeers {
    /// Its number.
    pub(crate) interface: u32,
    /// Its name.
    pub(crate) name: String,
    /// Largest frame that it takes, in bytes, without the Ethernet header.
    pub(crate) mtu: usize,
    /// Unknown stations become on-demand faces.
    pub(crate) listens: bool,
    /// The face of the group.
    pub(crate) group: Option<FaceId>,
}

pub(crate) struct DatagramSocket {
    pub(crate) port: DatagramPort,
    pub(crate) peers: Peers,
    /// In the driver's list of sources to read.
    pub(crate) is_ready: bool,
    /// In the driver's list of sockets to flush.
    pub(crate) is_dirty: bool,
    /// The kernel refused datagrams; wait until it says that the socket is writable.
    pub(crate) is_blocked: bool,
    /// Whether its senders overflow it.
    pub(crate) crowd: Crowd,
    /// Average number of datagrams in the last received messages, rounded up.
    pub(crate) datagrams_per_message: usize,
    /// Last pause before a [`DatagramPort::kick`]; 0 if none was needed.
    pub(crate) kick_pause_ns: u64,
    pub(crate) has_kick_timer: bool,
    /// The other end of shared memory has left; so many frames are still taken from there.
    pub(crate) last_frames: Option<usize>,
    /// Of [`DatagramPort::dropped`], what is counted.
    pub(crate) dropped_counted: u64,
    /// Shorter datagrams are padded to this.
    least_bytes: usize,
    bytes: Vec<u8>,
    queue: VecDeque<Queued>,
    /// On a socket that several faces share, the bytes that wait while the socket is blocked.
    waiting: Option<Box<Pool>>,
    /// Larger datagrams are sent one by one; 0 means that all are.
    run_datagram_bytes_max: usize,
    /// The same before any run was refused.
    run_datagram_bytes_first: usize,
}

/// One datagram, `bytes[start..start + len]`.
struct Queued {
    start: usize,
    len: usize,
    sender: Sender,
}

/// Whose datagram it is, and where it goes: `destination` is needed unless the socket is connected.
#[derive(Clone, Copy)]
pub(crate) struct Sender {
    pub(crate) face: FaceId,
    pub(crate) holder: HolderId,
    pub(crate) destination: Option<Destination>,
    /// If the datagram is large, it goes alone, so that the kernel hears if it is too large for the path.
    pub(crate) is_scout: bool,
}

impl DatagramSocket {
    /// With `offload`, runs are sent and received as one message where the kernel can. `waiting`: how much of the queue
    /// each holder has, if several faces share the socket.
    pub(crate) fn new(port: DatagramPort, peers: Peers, offload: bool, waiting: Option<Pool>) -> Self {
        let is_link = matches!(peers, Peers::Link(_) | Peers::Queue { .. });
        let offload = offload && !is_link;
        if let DatagramPort::Socket(socket) = &port
            && offload
        {
            sys::coalesce_received(socket.as_fd());
        }
        let run_datagram_bytes_first = if offload { MAX_MESSAGE_BYTES / 2 } else { 0 };
        DatagramSocket {
            port,
            peers,
            is_ready: false,
            is_dirty: false,
            is_blocked: false,
            crowd: Crowd::default(),
            datagrams_per_message: 1,
            kick_pause_ns: 0,
            has_kick_timer: false,
            last_frames: None,
            dropped_counted: 0,
            least_bytes: if is_link { LEAST_PAYLOAD_BYTES } else { 0 },
            bytes: Vec::new(),
            queue: VecDeque::new(),
            waiting: waiting.map(Box::new),
            run_datagram_bytes_max: run_datagram_bytes_first,
            run_datagram_bytes_first,
        }
    }

    /// Bytes queued and not yet taken by the kernel.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.bytes.len() - self.queue.front().map_or(self.bytes.len(), |first| first.start)
    }

    /// Whether a blocked socket takes more for this holder.
    pub(crate) fn has_share(&self, holder: HolderId) -> bool {
        let may_take = |waiting: &Pool| waiting.may_take(holder, 1);
        let Some(Err(refusal)) = self.waiting.as_deref().map(may_take) else { return true };
        self.waiting.iter().for_each(|waiting| waiting.count_refusal(holder, refusal));
        false
    }

    /// Appends one datagram, or puts it into the memory from which it is sent. Returns how many bytes it takes in the
    /// queue.
    pub(crate) fn queue(&mut self, sender: Sender, header: &[u8], slice: &[u8], pool: &mut BufferPool) -> usize {
        if self.queue.is_empty() && !self.is_blocked {
            let padding = self.least_bytes.saturating_sub(header.len() + slice.len());
            if self.port.put(
                sender.destination.map(|to| to.remote),
                header,
                slice,
                &[0; LEAST_PAYLOAD_BYTES][..padding],
            ) {
                return 0;
            }
        }
        if self.bytes.capacity() == 0 {
            self.bytes = pool.take();
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(slice);
        let mut len = self.bytes.len() - start;
        if len < self.least_bytes {
            len = self.least_bytes;
            self.bytes.resize(start + len, 0);
        }
        let is_scout = sender.is_scout && len > path_mtu::LEAST_BYTES;
        self.queue.push_back(Queued { start, len, sender: Sender { is_scout, ..sender } });
        if self.is_blocked
            && let Some(waiting) = &mut self.waiting
        {
            waiting.take(sender.holder, len as u64);
        }
        len
    }

    /// Sends as much as the kernel takes; sets `is_blocked` if it does not take all. Calls `failed` for each datagram
    /// that was given up, and for each report.
    pub(crate) fn flush(&mut self, pool: &mut BufferPool, mut failed: impl FnMut(FaceId, Failure)) {
        self.unblock();
        self.port.send_put();
        let mut attempt = Attempt::Runs;
        while let Some(first_bytes) = self.queue.front().map(|first| first.len) {
            match self.send(attempt) {
                Ok(sent @ 1..) => {
                    self.queue.drain(..sent);
                    if attempt == Attempt::FirstAlone {
                        // Refused in a run and taken alone.
                        self.run_datagram_bytes_max = first_bytes - 1;
                    }
                    attempt = Attempt::Runs;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) => return self.block(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.block(),
                Err(error) => attempt = self.retry_or_give_up(&error, attempt, &mut failed),
            }
        }
        pool.give(&mut self.bytes);
        self.queue.shrink_to(KEPT_QUEUE_SLOTS);
    }

    /// Hands the front of the queue to the kernel; returns how many datagrams it took.
    fn send(&mut self, attempt: Attempt) -> io::Result<usize> {
        let mut rest = &*self.queue.make_contiguous();
        let mut runs = [0u8; sys::MAX_BATCH];
        let mut slots = if attempt == Attempt::FirstAlone { &mut runs[..1] } else { &mut runs[..] }.iter_mut();
        let messages = std::iter::from_fn(|| {
            let (first, slot) = (rest.first()?, slots.next()?);
            let run = if attempt == Attempt::FirstAlone { 1 } else { run_length(rest, self.run_datagram_bytes_max) };
            let last = &rest[run - 1];
            rest = &rest[run..];
            *slot = run as u8;
            Some(Outgoing {
                bytes: &self.bytes[first.start..last.start + last.len],
                segment_bytes: (run > 1).then_some(first.len as u16), // at most half of MAX_MESSAGE_BYTES
                destination: first.sender.destination,
            })
        });
        let sent = self.port.send(messages)?;
        Ok(runs[..sent].iter().map(|&run| usize::from(run)).sum())
    }

    /// Chooses what to try after an error that concerns the first run. Calls `failed` for each datagram that was given
    /// up.
    fn retry_or_give_up(
        &mut self,
        error: &io::Error,
        attempt: Attempt,
        failed: &mut impl FnMut(FaceId, Failure),
    ) -> Attempt {
        let errno = rustix::io::Errno::from_io_error(error);
        let failure = match link_fault(error) {
            Some(reason) => Failure::Link(reason),
            None if is_about_size(error) => Failure::Datagram(LinkDrop::DatagramTooLarge),
            None => Failure::Datagram(LinkDrop::SendFailed),
        };
        let run = run_length(self.queue.make_contiguous(), self.run_datagram_bytes_max);
        match attempt {
            // The kernel reports the fate of an earlier datagram (its port is closed, its path is narrower than
            // assumed) as an error of this one, which was not sent: try once more. By then the kernel knows the path,
            // and fragments what does not fit.
            Attempt::Runs if errno.is_some_and(|errno| MAY_PASS.contains(&errno)) => {
                // A shared socket gets no reports of earlier datagrams.
                if let (&Peers::One { face, .. }, Failure::Link(reason)) = (&self.peers, failure) {
                    failed(face, Failure::Report(reason));
                }
                if let Some(first) = self.queue.front().filter(|_| is_about_size(error)) {
                    failed(first.sender.face, Failure::Size);
                }
                return Attempt::RunsAgain;
            }
            Attempt::Runs | Attempt::RunsAgain if run > 1 && may_refuse_runs(error) => return Attempt::FirstAlone,
            // All datagrams of a run have one destination and one reason.
            Attempt::Runs | Attempt::RunsAgain => {
                self.queue.drain(..run).for_each(|queued| failed(queued.sender.face, failure))
            }
            Attempt::FirstAlone => self.queue.drain(..1).for_each(|queued| failed(queued.sender.face, failure)),
        }
        Attempt::Runs
    }

    /// Tries runs of every size again: a path is wider now.
    pub(crate) fn forget_refused_runs(&mut self) {
        self.run_datagram_bytes_max = self.run_datagram_bytes_first;
    }

    /// Bytes queued, the kernel's included.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.queued_bytes() as u64 + self.port.unsent_bytes()
    }

    /// Forgets the datagrams queued for a face that is being removed.
    pub(crate) fn forget_face(&mut self, face: FaceId) {
        let was_blocked = self.is_blocked;
        self.unblock();
        self.queue.retain(|queued| queued.sender.face != face);
        if was_blocked {
            self.block();
        }
    }

    /// Stops counting what waits.
    fn unblock(&mut self) {
        if std::mem::take(&mut self.is_blocked)
            && let Some(waiting) = &mut self.waiting
        {
            self.queue.iter().for_each(|queued| waiting.give_back(queued.sender.holder, queued.len as u64));
        }
    }

    /// Waits for room, and moves the remaining bytes to the front once they are the smaller part.
    fn block(&mut self) {
        self.is_blocked = true;
        if let Some(waiting) = &mut self.waiting {
            self.queue.iter().for_each(|queued| waiting.take(queued.sender.holder, queued.len as u64));
        }
        let Some(first) = self.queue.front().map(|queued| queued.start) else { return };
        if first * 2 >= self.bytes.len() {
            self.bytes.drain(..first);
            for queued in &mut self.queue {
                queued.start -= first;
            }
        }
    }
}

/// What to pass to the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Runs,
    /// The same runs once more.
    RunsAgain,
    /// Only the first datagram: did its run fail because it is a run?
    FirstAlone,
}

/// The number of datagrams at the front of `queue` that may go as one message; `queue` is not empty.
///
/// N.B. sorting a listener's queue by face first, so that remotes whose datagrams alternate have longer runs, gained
/// nothing. Four consumers of one neighbour's Data, router CPU: 360 ms sorted, 370 ms unsorted (medians of 4; 630 ms
/// without offload). Packets already arrive in bursts of one flow.
fn run_length(queue: &[Queued], datagram_bytes_max: usize) -> usize {
    let first = &queue[0];
    if first.len > datagram_bytes_max || first.sender.is_scout {
        return 1;
    }
    let mut run = 1;
    let mut end = first.start + first.len;
    for next in &queue[1..queue.len().min(MAX_SEGMENTS)] {
        // Bytes of a removed face may lie between.
        let follows = next.sender.face == first.sender.face && next.start == end && !next.sender.is_scout;
        end += next.len;
        if !follows || next.len > first.len || end - first.start > MAX_MESSAGE_BYTES {
            break;
        }
        run += 1;
        if next.len < first.len {
            break;
        }
    }
    run
}

/// Errors with which kernels refuse segmentation offload: segments beyond the path's MTU, no checksums by the device or
/// with IPsec, no offload at all. Other faults have some of these errors, too.
fn may_refuse_runs(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let refusals = [Errno::INVAL, Errno::MSGSIZE, Errno::IO, Errno::OPNOTSUPP, Errno::NOPROTOOPT];
    Errno::from_io_error(error).is_some_and(|errno| refusals.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Remote;
    use namewire_shares::{Holder, HolderTable, PoolConfig};
    use std::net::UdpSocket;
    use std::time::Duration;

    fn receiver() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    fn peerless() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").unwrap()
    }

    fn of(face: u64, destination: Option<SocketAddr>) -> Sender {
        let (face, destination) = (FaceId(face), destination.map(|to| Remote::from(to).into()));
        Sender { face, holder: HolderId::ANY_REMOTE, destination, is_scout: false }
    }

    fn sender() -> DatagramSocket {
        let socket = peerless();
        let local = socket.local_addr().unwrap();
        DatagramSocket::new(DatagramPort::Socket(socket.into()), Peers::Anyone { local }, true, None)
    }

    fn next(socket: &UdpSocket) -> Vec<u8> {
        let mut bytes = [0; 100];
        let len = socket.recv(&mut bytes).unwrap();
        bytes[..len].to_vec()
    }

    #[test]
    fn a_datagram_that_the_kernel_refuses_is_reported_and_the_rest_go() {
        let (receiver, address) = receiver();
        let unusable: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let (mut socket, mut pool) = (sender(), BufferPool::default());
        for (face, destination) in [(1, address), (2, unusable), (3, address), (2, unusable)] {
            socket.queue(of(face, Some(destination)), b"face", &[face as u8], &mut pool);
        }
        assert_eq!(socket.queued_bytes(), 20);
        let mut failed = Vec::new();
        socket.flush(&mut pool, |face, reason| failed.push((face, reason)));
        let is_link_failure =
            |(face, failure): &(FaceId, Failure)| *face == FaceId(2) && matches!(failure, Failure::Link(_));
        assert!(failed.len() == 2 && failed.iter().all(is_link_failure), "{failed:?}");
        assert_eq!(socket.queued_bytes(), 0);
        assert_eq!([next(&receiver), next(&receiver)], [b"face\x01".to_vec(), b"face\x03".to_vec()]);
        assert_eq!(socket.run_datagram_bytes_max, sender().run_datagram_bytes_max, "it was not the run's fault");
    }

    #[test]
    fn where_runs_are_refused_their_datagrams_go_alone() {
        let (receiver, address) = receiver();
        let (mut socket, mut pool) = (sender(), BufferPool::default());
        sys::turn_checksums_off(socket.port.descriptor().expect("a socket"));
        let text = |i: usize| vec![i as u8; [60, 60, 20, 60, 60][i % 5]];
        for i in 0..10 {
            socket.queue(of(1, Some(address)), b"", &text(i), &mut pool);
        }
        socket.flush(&mut pool, |_, _| panic!("given up"));
        assert_eq!(socket.run_datagram_bytes_max, 59, "smaller ones have not been refused yet");
        for i in 0..10 {
            assert_eq!(next(&receiver), text(i));
        }
        assert_eq!(socket.queued_bytes(), 0);
    }

    #[test]
    fn what_the_path_does_not_take_is_tried_again_and_then_counted() {
        let (mut socket, mut pool) = (sender(), BufferPool::default());
        for size in [1400, 1400, 9] {
            socket.queue(of(1, None), b"", &vec![0; size], &mut pool);
        }
        let too_large = io::Error::from_raw_os_error(libc::EMSGSIZE);
        let mut failed = Vec::new();
        let mut next =
            |attempt| socket.retry_or_give_up(&too_large, attempt, &mut |face, reason| failed.push((face, reason)));
        // It may be a report on an earlier datagram, then the fault of the run, then its own.
        assert!(next(Attempt::Runs) == Attempt::RunsAgain);
        assert!(next(Attempt::RunsAgain) == Attempt::FirstAlone);
        assert!(next(Attempt::FirstAlone) == Attempt::Runs);
        let given_up = Failure::Datagram(LinkDrop::DatagramTooLarge);
        assert_eq!(failed, [(FaceId(1), Failure::Size), (FaceId(1), given_up)]);
        assert_eq!(socket.queue.len(), 2, "the others have their own chance");
    }

    /// The story: a face that sent runs never heard that its path was narrow, because routers fragmented them.
    #[test]
    fn a_scout_goes_alone() {
        let (receiver, address) = receiver();
        sys::coalesce_received(receiver.as_fd());
        let (mut socket, mut pool) = (sender(), BufferPool::default());
        let mut messages = |scout: Option<usize>, bytes: usize| {
            for place in 0..4 {
                let sender = Sender { is_scout: scout == Some(place), ..of(1, Some(address)) };
                socket.queue(sender, b"", &vec![0; bytes], &mut pool);
            }
            socket.flush(&mut pool, |_, _| panic!("given up"));
            let mut left = 4 * bytes;
            let mut received = Vec::new();
            while left > 0 {
                let len = receiver.recv(&mut [0; 9000]).unwrap();
                received.push(len / bytes);
                left -= len;
            }
            received
        };
        assert_eq!(messages(None, 1000), [4]);
        assert_eq!(messages(Some(0), 1000), [1, 3]);
        assert_eq!(messages(Some(2), 1000), [2, 1, 1]);
        assert_eq!(messages(Some(0), 500), [4], "small ones pass everywhere");
    }

    #[test]
    fn what_one_datagram_meets_is_told_from_what_a_link_meets() {
        let fault = |errno| link_fault(&io::Error::from_raw_os_error(errno));
        for errno in [libc::EMSGSIZE, libc::ENOBUFS, libc::ENOMEM, libc::EAGAIN, libc::EINTR] {
            assert_eq!(fault(errno), None, "{errno}");
        }
        assert_eq!(fault(libc::ECONNREFUSED), Some(CloseReason::Refused));
        for errno in [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::ENETDOWN, libc::ENXIO, libc::EINVAL, libc::EPERM] {
            assert!(matches!(fault(errno), Some(CloseReason::Io(_))), "{errno}");
        }
    }

    #[test]
    fn only_a_connected_socket_knows_whom_a_report_is_about() {
        let refused = io::Error::from_raw_os_error(libc::ECONNREFUSED);
        let remote = "127.0.0.1:9".parse().unwrap();
        let one = DatagramSocket::new(
            DatagramPort::Socket(peerless().into()),
            Peers::One { face: FaceId(1), local: remote, remote },
            true,
            None,
        );
        for (mut socket, reports) in
            [(sender(), vec![]), (one, vec![(FaceId(1), Failure::Report(CloseReason::Refused))])]
        {
            socket.queue(of(1, None), b"", b"x", &mut BufferPool::default());
            let mut failed = Vec::new();
            let next = socket.retry_or_give_up(&refused, Attempt::Runs, &mut |face, what| failed.push((face, what)));
            assert!(next == Attempt::RunsAgain);
            assert_eq!(failed, reports);
        }
    }

    #[test]
    fn a_run_ends_where_a_message_must() {
        let queued = |face: u64, sizes: &[usize]| {
            let mut start = 0;
            let queued = |&len: &usize| {
                start += len;
                Queued { start: start - len, len, sender: of(face, None) }
            };
            sizes.iter().map(queued).collect::<Vec<_>>()
        };
        let run = |sizes: &[usize]| run_length(&queued(1, sizes), 9000);
        assert_eq!(run(&[60]), 1);
        assert_eq!(run(&[60, 60, 60]), 3);
        assert_eq!(run(&[60, 60, 20, 20]), 3, "the shorter one is the last");
        assert_eq!(run(&[60, 61]), 1);
        assert_eq!(run(&[60; 100]), MAX_SEGMENTS);
        assert_eq!(run(&[8800; 100]), MAX_MESSAGE_BYTES / 8800);
        assert_eq!(run(&[9001; 2]), 1, "refused before");
        let mut other_face = queued(1, &[60; 3]);
        other_face[2].sender.face = FaceId(2);
        assert_eq!(run_length(&other_face, 9000), 2);
        let mut gap = queued(1, &[60; 3]);
        gap.remove(1);
        assert_eq!(run_length(&gap, 9000), 1);
    }

    #[test]
    fn what_waits_keeps_its_place_and_a_removed_face_leaves_the_queue() {
        let (receiver, address) = receiver();
        let (mut socket, mut pool) = (sender(), BufferPool::default());
        for (face, text) in [(1, "one, which the kernel took"), (2, "two"), (3, "three"), (2, "four")] {
            socket.queue(of(face, Some(address)), b"", text.as_bytes(), &mut pool);
        }
        socket.queue.pop_front();
        socket.block();
        assert_eq!(socket.bytes, b"twothreefour");
        assert_eq!(socket.queued_bytes(), 12);
        socket.forget_face(FaceId(3));
        socket.flush(&mut pool, |_, _| panic!("refused"));
        assert_eq!([next(&receiver), next(&receiver)], [b"two".to_vec(), b"four".to_vec()]);
        assert!(!socket.is_blocked);
    }

    /// The story: while the network took nothing, one host's datagrams filled the queue of the listener, and those to
    /// all others were dropped.
    #[test]
    fn a_blocked_queue_is_shared_among_holders() {
        let holders = HolderTable::default();
        let [greedy, modest] = ["192.0.2.1", "192.0.2.2"]
            .map(|address| holders.enter(&Holder::of_address(address.parse().unwrap(), false)));
        let config = PoolConfig {
            name: "datagrams",
            capacity: 1000,
            share_percent: 80,
            management_reserve: 0,
            local_reserve: 0,
        };
        let (mut socket, mut pool) = (sender(), BufferPool::default());
        socket.waiting = Some(Box::new(Pool::new(config, holders.groups())));
        let queue = |socket: &mut DatagramSocket, face, holder, pool: &mut BufferPool| {
            let sender = Sender { face: FaceId(face), holder, destination: None, is_scout: false };
            socket.queue(sender, b"", &[0; 10], pool);
        };
        queue(&mut socket, 1, greedy, &mut pool);
        socket.block();
        let mut datagrams = 1;
        while socket.has_share(greedy) {
            queue(&mut socket, 1, greedy, &mut pool);
            datagrams += 1;
        }
        assert_eq!(datagrams, 80);
        assert!(socket.has_share(modest));
        queue(&mut socket, 2, modest, &mut pool);
        socket.forget_face(FaceId(1));
        assert_eq!(socket.waiting.as_ref().unwrap().used(), 10, "what is queued, and nothing else");
        socket.unblock();
        assert_eq!(socket.waiting.as_ref().unwrap().used(), 0);
    }
}
