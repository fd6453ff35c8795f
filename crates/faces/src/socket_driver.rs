//! All sockets and faces of one worker thread.
//!
//! The driver has one epoll instance, level-triggered, and every socket is non-blocking. A worker's loop:
//!
//! ```text
//!   wait ─► receive (a batch into the arena) ─► [engine] ─► send or lend × n ─► finish, flush
//!    ▲                                                                                        │
//!    └────────────────── run_timers, events ◄─────────────────────────────────────────────────┘
//! ```
//!
//! The files in the order of the loop:
//!
//! * *wait*: `poller.rs` has epoll. [`namewire_shares::turns`] decides whose turn it is.
//! * *receive*: `receiving.rs` reads a socket by `stream.rs` or `datagram_socket.rs`; a face's `link_service.rs` makes
//!   packets of the frames. `inlet.rs` limits the input that is kept for later. `crowd.rs` (in `crates/faces/src`)
//!   limits each sender of a listener that overflows.
//! * *send*: `sending.rs` queues a packet, after the link service has made frames of it. `outlet.rs` limits the queues.
//! * *lend*, *finish*: `lending.rs` passes large packets to streams without a copy, and runs of small ones at once.
//! * *flush*: `sending.rs` writes each queue by `outlet.rs`, `stream.rs` or `datagram_socket.rs`, and `sys.rs`.
//!   `recovery.rs` adds Acks and retransmissions.
//!   `paths.rs` lets UDP faces follow the MTU of their paths.
//! * *run_timers*: `timers.rs` and `timer_queue.rs`; `outages.rs` has faces that are down, `rest.rs` gives
//!   memory back.
//! * `handover.rs` describes all faces for another process, and takes over those of another process.
//! * `lanes.rs` has this worker's part of faces that several workers serve.
//! * `captures.rs` lets link services show their frames to captures.
//!
//! Cost: a batch takes one read and one write per stream face, and one `recvmmsg` and one `sendmmsg` per 64 datagrams.
//! A packet takes one hash look-up of the face when it is sent, and one of the remote when it is received from a
//! listener. A packet is copied when it is sent, except a large packet that is lent to a stream. Nothing is allocated
//! per packet.
//!
//! Limits, each with a [`crate::LinkDrop`]: the number of faces ([`DriverConfig::max_faces`], `admission.rs`), the
//! bytes queued per stream, per UDP socket and in all, and those of the link service. What all faces share is a pool
//! with a share for each holder ([`SocketDriver::pools`]): faces, send queues, kept input, reassembly, unacknowledged
//! frames. Turns of reading are shared in the same way, between the holders of the ready sockets; a turn reads at most
//! 128 KiB. Input kept for later turns is also limited ([`DriverConfig::kept_input_bytes`], counted by
//! [`SocketDriver::short_reads`]).
//!
//! Linux only: it uses `epoll`, `eventfd`, `recvmmsg` and `sendmmsg`.

mod admission;
mod captures;
mod face;
mod face_table;
mod faceless;
mod handover;
mod inlet;
mod lane_table;
mod lanes;
mod lending;
mod links;
mod memory_faces;
mod outage;
mod outages;
mod outlet;
mod path;
mod paths;
mod poller;
mod receiving;
mod recovery;
mod rest;
mod sending;
mod socket_table;
mod timer_queue;
mod timers;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use namewire_links::LinkOptions;
use namewire_packet::{FaceId, MAX_PACKET_BYTES, nfd::FacePersistency};
use namewire_shares::{HolderId, Pool, PoolReader, Turns};

pub use handover::{HandedChannel, HandedFace, HandedListener};
pub use lending::Lent;
pub use rest::give_pages_back;
pub use sending::HolderOf;

use admission::Places;
use face::{Channel, Face};
use face_table::FaceTable;
use faceless::Faceless;
use inlet::Inlet;
use lane_table::LaneTable;
use outlet::Outlet;
use poller::{Poller, Source};
use rest::Rest;
use socket_table::SocketTable;
use timer_queue::TimerQueue;

use crate::datagram_port::DatagramPort;
use crate::datagram_socket::Peers;
use crate::remote::Remote;
use crate::scoped_captures::Captures;
use crate::stream::{Stream, StreamSocket};
use crate::sys;
use crate::{AddFaceError, CloseReason, DriverConfig, FaceCounters, FaceEvent, FaceInfo, LinkPolicy, Waker, udp};

/// The sockets and faces of one worker. The module page has the order of calls.
///
/// Each field has its own file, and only that file changes its content.
pub struct SocketDriver {
    config: DriverConfig,
    poller: Poller,
    faces: FaceTable,
    places: Places,
    sockets: SocketTable,
    /// The sockets with something to read.
    turns: Turns<Source>,
    inlet: Inlet,
    outlet: Outlet,
    /// Memory for unfinished fragmented packets.
    reassembly: Pool,
    /// Memory for unacknowledged frames.
    unacknowledged: Pool,
    timers: TimerQueue,
    rest: Rest,
    faceless: Faceless,
    captures: Captures,
    /// By the face that they are a part of.
    lanes: LaneTable,
    events: Vec<FaceEvent>,
    now_ns: u64,
}

impl SocketDriver {
    /// A driver without sockets.
    ///
    /// # Errors
    /// If no descriptor is left for epoll or eventfd.
    pub fn new(config: DriverConfig) -> io::Result<Self> {
        Ok(SocketDriver {
            poller: Poller::new()?,
            faces: FaceTable::default(),
            places: Places::new(&config),
            sockets: SocketTable::default(),
            turns: Turns::new(receiving::ELEMENTS_PER_TURN as u32, config.holders.groups()),
            inlet: Inlet::new(&config),
            outlet: Outlet::new(&config),
            reassembly: config.pool("reassembly", config.total_reassembly_bytes),
            unacknowledged: config.pool("unacknowledged", config.total_unacknowledged_bytes),
            timers: TimerQueue::default(),
            rest: Rest::default(),
            faceless: Faceless::default(),
            captures: Captures::default(),
            lanes: LaneTable::default(),
            events: Vec::new(),
            now_ns: 0,
            config,
        })
    }

    /// Wakes this driver's [`SocketDriver::wait`] from another thread.
    pub fn waker(&self) -> Waker {
        self.poller.waker()
    }

    /// Takes over a connected stream as `face`. The socket becomes non-blocking.
    ///
    /// # Errors
    /// [`AddFaceError::Exists`] if the id is in use; [`AddFaceError::FaceLimit`] if the worker has no room for a face;
    /// [`AddFaceError::Io`] if the socket cannot be watched.
    pub fn add_stream(&mut self, face: FaceId, socket: StreamSocket, info: FaceInfo) -> Result<(), AddFaceError> {
        self.check_room(face, &info)?;
        self.watch_stream(face, &socket)?;
        let options = LinkOptions { mtu: info.mtu, policy: self.config.link_policy, ..LinkOptions::default() };
        let holder = self.config.holders.enter(&info.holder());
        self.insert_face(face, Channel::Stream(Stream::new(socket, holder)), options, info);
        self.config.holders.leave(holder);
        Ok(())
    }

    /// Gives a new connection to a permanent stream face that is down.
    ///
    /// # Errors
    /// [`AddFaceError::NotDown`] if there is no such face, or if it is not down; [`AddFaceError::Io`] if the socket
    /// cannot be watched.
    pub fn reconnect(&mut self, face: FaceId, socket: StreamSocket) -> Result<(), AddFaceError> {
        if !self.faces.get(face).is_some_and(|face| matches!(face.channel, Channel::Down)) {
            return Err(AddFaceError::NotDown(face));
        }
        self.watch_stream(face, &socket)?;
        self.faces.change(face, |face| face.channel = Channel::Stream(Stream::new(socket, face.holder)));
        Ok(())
    }

    /// Creates a UDP face to `remote` with its own socket, bound to `local` (usually the listener's address, which it
    /// may share). Returns its facts. `mtu` is in bytes.
    ///
    /// # Errors
    /// [`AddFaceError::Exists`] if the id is in use; [`AddFaceError::FaceLimit`] if the worker has no room for a face;
    /// [`AddFaceError::Io`] if the socket cannot be bound, connected or watched.
    pub fn add_udp_face(
        &mut self,
        face: FaceId,
        local: SocketAddr,
        remote: SocketAddr,
        persistency: FacePersistency,
        mtu: usize,
    ) -> Result<FaceInfo, AddFaceError> {
        self.check_room(face, &udp::face_info(local, remote, persistency, mtu))?;
        let socket = udp::connect(local, remote)?;
        let info = udp::face_info(socket.local_addr()?, remote, persistency, mtu);
        let index = self.watch_datagrams(DatagramPort::Socket(socket.into()), Peers::One { face, local, remote })?;
        let channel = Channel::Datagram { socket: index, destination: None };
        let options = self.datagram_options(&Remote::Udp(remote), mtu);
        self.insert_face(face, channel, options, info.clone());
        self.look_at_path(face);
        Ok(info)
    }

    /// Listens for datagrams: an unknown remote whose datagram is an NDN packet becomes an on-demand face
    /// ([`FaceEvent::Created`]).
    ///
    /// # Errors
    /// If the socket cannot be made non-blocking or watched.
    pub fn add_udp_listener(&mut self, socket: UdpSocket) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        if local.ip().is_unspecified() {
            // Where the kernel does not tell, answers come from the address that it chooses.
            let _ = sys::tell_own_address(socket.as_fd(), local.is_ipv6());
        }
        self.watch_datagrams(DatagramPort::Socket(socket.into()), Peers::Anyone { local })?;
        Ok(())
    }

    /// Ends a face after one attempt to write its queue. False if there is none.
    pub fn remove_face(&mut self, face: FaceId) -> bool {
        self.write_queued(face);
        if let Some(Channel::Datagram { socket, .. }) = self.faces.get(face).map(|face| &face.channel) {
            self.flush_datagrams(*socket);
        }
        self.take_face(face).is_some()
    }

    /// Changes the largest frame that the face sends, in bytes; for an Ethernet face it is at most the interface's MTU.
    /// A UDP face sends smaller ones if its path takes no larger ones. False if there is no such face.
    pub fn set_mtu(&mut self, face: FaceId, mtu: usize) -> bool {
        let mtu = self.mtu_of_link(face).map_or(mtu, |link_mtu| mtu.min(link_mtu));
        self.faces.change(face, |face| {
            face.info.mtu = mtu.min(MAX_PACKET_BYTES);
            face.apply_mtu();
        })
    }

    /// Changes what happens on failure or idleness. False if there is no such face.
    pub fn set_persistency(&mut self, face: FaceId, persistency: FacePersistency) -> bool {
        let now_ns = self.now_ns;
        let changed = self.faces.change(face, |face| {
            face.info.persistency = persistency;
            face.last_received_ns = face.last_received_ns.max(now_ns);
        });
        let is_down = self.faces.get(face).is_some_and(|face| matches!(face.channel, Channel::Down));
        if is_down && persistency != FacePersistency::Permanent {
            // Only a permanent face outlives its connection.
            self.close(face, CloseReason::PeerClosed);
        }
        if let Some(reason) = self.outage_reason(face).filter(|_| persistency != FacePersistency::Permanent) {
            self.close(face, reason);
        }
        self.schedule_idle(face);
        changed
    }

    /// Turns local fields on or off. The caller checks that the face may have them (local scope). False if there is no
    /// such face.
    pub fn set_local_fields(&mut self, face: FaceId, on: bool) -> bool {
        self.faces.change(face, |face| face.link.set_local_fields(on))
    }

    /// Facts about a face.
    pub fn info(&self, face: FaceId) -> Option<&FaceInfo> {
        self.faces.get(face).map(|face| &face.info)
    }

    /// Whose share of the pools the face uses.
    pub fn holder(&self, face: FaceId) -> Option<HolderId> {
        self.faces.get(face).map(|face| face.holder)
    }

    /// The face's published counters; they stay readable after it has closed.
    pub fn counters(&self, face: FaceId) -> Option<Arc<FaceCounters>> {
        self.faces.get(face).map(|face| face.published.clone())
    }

    /// Published drops that belong to no face: datagrams that created no face, packets to unknown faces.
    pub fn faceless_counters(&self) -> Arc<FaceCounters> {
        self.faceless.published()
    }

    /// Faces of this worker.
    pub fn face_count(&self) -> usize {
        self.faces.len()
    }

    /// Whether a port has no descriptor to sleep on: then [`SocketDriver::wait`] does not sleep.
    pub fn never_sleeps(&self) -> bool {
        self.sockets.has_sleepless()
    }

    /// Bytes that wait to be sent, on all faces.
    pub fn queued_bytes(&self) -> usize {
        self.outlet.queued_bytes()
    }

    /// Memory of input kept for later batches, on all streams, in bytes.
    pub fn kept_bytes(&self) -> usize {
        self.inlet.kept_bytes()
    }

    /// How often a stream read little because [`DriverConfig::kept_input_bytes`] were kept.
    pub fn short_reads(&self) -> u64 {
        self.inlet.short_reads()
    }

    /// The pools of this driver: who holds how much.
    pub fn pools(&self) -> Vec<PoolReader> {
        let (reassembly, unacknowledged) = (self.reassembly.reader(), self.unacknowledged.reader());
        vec![self.places.pool.reader(), self.outlet.waiting(), self.inlet.kept(), reassembly, unacknowledged]
    }

    /// The events since the last call, oldest first.
    pub fn events(&mut self) -> std::vec::Drain<'_, FaceEvent> {
        self.events.drain(..)
    }

    fn watch_stream(&self, face: FaceId, socket: &StreamSocket) -> io::Result<()> {
        socket.prepare()?;
        self.poller.watch(socket, Source::Stream(face))
    }

    fn watch_datagrams(&mut self, port: DatagramPort, peers: Peers) -> io::Result<usize> {
        let is_shared = matches!(peers, Peers::Anyone { .. } | Peers::Link(_));
        let waiting = is_shared.then(|| self.config.pool("datagram-queue", self.config.udp_queue_bytes));
        self.sockets.add(&self.poller, port, peers, self.config.udp_offload, waiting)
    }

    /// Options of a face to `remote` whose frames are datagrams. Ethernet faces mark no congestion, as in NFD.
    fn datagram_options(&self, remote: &Remote, mtu: usize) -> LinkOptions {
        let policy = match remote {
            Remote::Udp(_) => self.config.link_policy,
            Remote::Ethernet(_) => LinkPolicy::default(),
        };
        LinkOptions {
            fragmentation: true,
            mtu,
            reassembly_bytes: self.config.reassembly_bytes,
            policy,
            // A restarted router must not continue the numbers of its last run.
            first_sequence: self.now_ns,
            ..LinkOptions::default()
        }
    }

    fn insert_face(&mut self, id: FaceId, channel: Channel, link: LinkOptions, info: FaceInfo) {
        let holder = self.config.holders.enter(&info.holder());
        self.insert_made(Face::new(id, holder, channel, link, info, self.now_ns));
    }

    fn insert_made(&mut self, mut face: Face) {
        let id = face.id;
        self.tap_new_face(&mut face);
        face.publish();
        self.places.pool.take(face.place, 1);
        self.faces.insert(face);
        self.schedule_idle(id);
    }

    /// Closes a face, or takes a permanent stream face down.
    fn close(&mut self, id: FaceId, reason: CloseReason) {
        let Some(face) = self.faces.get_mut(id) else { return };
        let is_permanent = face.info.persistency == FacePersistency::Permanent;
        if let Channel::Stream(stream) = &mut face.channel
            && is_permanent
        {
            forget_stream(&self.poller, &mut self.inlet, &mut self.outlet, stream);
            face.channel = Channel::Down;
            face.link.restart();
            face.settle_unacknowledged(&mut self.unacknowledged);
            self.events.push(FaceEvent::Down { face: id, reason });
        } else {
            face.link.end_taps(reason);
            self.take_face(id);
            self.events.push(FaceEvent::Closed { face: id, reason });
        }
    }

    /// Removes a face and its socket from every table and publishes its last counters. Entries in lists of turns,
    /// touched faces and timers become stale: ids are never reused.
    fn take_face(&mut self, id: FaceId) -> Option<Box<Face>> {
        let mut face = self.faces.remove(id)?;
        self.close_lane(id);
        if !face.is_part() {
            face.link.end_taps("closed by command");
        }
        self.config.holders.leave(face.holder);
        self.places.pool.give_back(face.place, 1);
        self.rest.note_face(face.reassembly_bytes);
        self.reassembly.give_back(face.holder, face.reassembly_bytes);
        self.unacknowledged.give_back(face.holder, face.unacknowledged_bytes);
        match &face.channel {
            Channel::Stream(stream) => forget_stream(&self.poller, &mut self.inlet, &mut self.outlet, stream),
            Channel::Down => {}
            Channel::Datagram { socket, destination: Some(_) } => {
                if let Some(shared) = self.sockets.get_mut(*socket) {
                    let before = shared.queued_bytes();
                    shared.forget_face(id);
                    self.outlet.forget_queued(before - shared.queued_bytes());
                    if let Peers::Link(link) = &mut shared.peers {
                        link.group = link.group.filter(|group| *group != id);
                    }
                }
            }
            Channel::Datagram { socket, destination: None } => self.close_datagrams(*socket),
        }
        face.publish();
        Some(face)
    }

    /// Closes a socket and, for a multicast face, its other half.
    fn close_datagrams(&mut self, index: usize) {
        let Some(own) = self.sockets.remove(index) else { return };
        self.outlet.forget_queued(own.queued_bytes());
        own.port.descriptor().into_iter().chain(own.port.peer()).for_each(|watched| self.poller.forget(watched));
        if let Peers::Nobody { receiver } = own.peers {
            self.close_datagrams(receiver);
        }
    }
}

/// Stops counting a closed connection's kept and queued bytes.
fn forget_stream(poller: &Poller, inlet: &mut Inlet, outlet: &mut Outlet, stream: &Stream) {
    outlet.forget_stream(stream);
    inlet.note_turn(stream.holder, stream.kept_bytes(), 0);
    poller.forget(&stream.socket);
}
