//! All sockets and faces of one worker thread.
//!
//! One epoll instance, level-triggered, every socket non-blocking. A worker's loop:
//!
//! ```text
//!   wait ─► receive (a batch into the arena) ─► [engine] ─► send or lend × n ─► finish, flush
//!    ▲                                                                                        │
//!    └────────────────── run_timers, events ◄─────────────────────────────────────────────────┘
//! ```
//!
//! Cost: per batch one read and one write per stream face, one `recvmmsg` and one
//! `sendmmsg` per 64 datagrams; per packet one hash look-up of the face when sending, one
//! of the remote when receiving from a listener, one copy when sending (none of a large
//! packet lent to a stream), no allocation.
//!
//! Limits, each with a [`crate::LinkDrop`]: faces ([`DriverConfig::max_faces`]), octets queued
//! per stream, per UDP socket and in all, and those of the link service. Octets read per face and
//! turn: 128 KiB, after which the other ready faces have their turn; input kept for later turns
//! ([`DriverConfig::kept_input_octets`], with [`SocketDriver::short_reads`]).
//!
//! Linux only, by `epoll`, `eventfd`, `recvmmsg` and `sendmmsg`.

mod face;
mod lending;
mod links;
mod outages;
mod receiving;
mod recovery;
mod sending;
mod timers;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use hashbrown::HashMap;
use namewire_packet::{FaceId, MAX_PACKET_BYTES};
use rustix::event::epoll;

pub use lending::Lent;
pub(crate) use lending::MAX_SLICES;

use face::{Channel, Face, NO_TIMER};

use crate::buffer_pool::BufferPool;
use crate::datagram_socket::{DatagramSocket, Failure, Peers};
use crate::remote::Remote;
use crate::stream::{Stream, StreamSocket};
use crate::sys::ReceivedBatch;
use crate::{
    AddFaceError, CloseReason, DriverConfig, FaceCounters, FaceEvent, FaceInfo, LinkCounters, LinkOptions, LinkPolicy,
    LinkService, Persistency, Waker, udp,
};

/// The sockets and faces of one worker. See the module page for the order of calls.
pub struct SocketDriver {
    config: DriverConfig,
    epoll: OwnedFd,
    waker: Waker,
    // N.B. boxed: a face is about 700 octets, and the map moves its values as it grows.
    faces: HashMap<FaceId, Box<Face>>,
    datagram_sockets: Vec<Option<DatagramSocket>>,
    /// Faces of sockets that several share, by socket (index in `datagram_sockets`) and remote.
    remotes: HashMap<(usize, Remote), FaceId>,
    /// What has something to read, in order of turns.
    ready: VecDeque<Source>,
    /// Faces with something to publish or flush.
    touched: Vec<FaceId>,
    /// Sockets with datagrams to flush.
    dirty_sockets: Vec<usize>,
    /// Faces whose datagrams the kernel refused, to be counted.
    failed_datagrams: Vec<(FaceId, Failure)>,
    /// Faces with reliability on.
    reliable_faces: usize,
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    events: Vec<FaceEvent>,
    pool: BufferPool,
    batch: ReceivedBatch,
    /// Link headers of the last [`Lent`], whose memory the next one takes.
    lent_headers: Vec<u8>,
    queued_octets: usize,
    kept_octets: usize,
    short_reads: u64,
    now_ns: u64,
    /// Drops that belong to no face.
    faceless: LinkCounters,
    faceless_published: Arc<FaceCounters>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Stream(FaceId),
    Datagrams(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Idle(FaceId),
    Reassembly(FaceId),
    Acks(FaceId),
    Retransmission(FaceId),
    Probe(FaceId),
}

/// epoll data: a face id, or one of these.
const WAKER_TOKEN: u64 = u64::MAX;
const DATAGRAM_TOKEN: u64 = 1 << 63;

impl SocketDriver {
    /// A driver without sockets. Errors: no descriptor for epoll or eventfd.
    pub fn new(config: DriverConfig) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = Waker::new()?;
        let token = epoll::EventData::new_u64(WAKER_TOKEN);
        epoll::add(&epoll, waker.descriptor(), token, epoll::EventFlags::IN)?;
        Ok(SocketDriver {
            config,
            epoll,
            waker,
            faces: HashMap::new(),
            datagram_sockets: Vec::new(),
            remotes: HashMap::new(),
            ready: VecDeque::new(),
            touched: Vec::new(),
            dirty_sockets: Vec::new(),
            failed_datagrams: Vec::new(),
            reliable_faces: 0,
            timers: BinaryHeap::new(),
            events: Vec::new(),
            pool: BufferPool::default(),
            batch: ReceivedBatch::new(),
            lent_headers: Vec::new(),
            queued_octets: 0,
            kept_octets: 0,
            short_reads: 0,
            now_ns: 0,
            faceless: LinkCounters::default(),
            faceless_published: Arc::default(),
        })
    }

    /// Wakes this driver's [`SocketDriver::wait`] from another thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Takes over a connected stream as `face`. The socket becomes non-blocking.
    pub fn add_stream(&mut self, face: FaceId, socket: StreamSocket, info: FaceInfo) -> Result<(), AddFaceError> {
        self.check_room(face)?;
        self.watch_stream(face, &socket)?;
        let options = LinkOptions { mtu: info.mtu, policy: self.config.link_policy, ..LinkOptions::default() };
        self.insert_face(face, Channel::Stream(Stream::new(socket)), options, info);
        Ok(())
    }

    /// Gives a permanent stream face that is down its new connection.
    pub fn reconnect(&mut self, face: FaceId, socket: StreamSocket) -> Result<(), AddFaceError> {
        let is_down = |face: &Face| matches!(face.channel, Channel::Down);
        if !self.faces.get(&face).is_some_and(|face| is_down(face)) {
            return Err(AddFaceError::NotDown(face));
        }
        self.watch_stream(face, &socket)?;
        if let Some(face) = self.faces.get_mut(&face) {
            face.channel = Channel::Stream(Stream::new(socket));
        }
        Ok(())
    }

    /// Makes a UDP face to `remote` with a socket of its own, bound to `local` (as a rule the
    /// listener's address, which it may share). Returns its facts.
    pub fn add_udp_face(
        &mut self,
        face: FaceId,
        local: SocketAddr,
        remote: SocketAddr,
        persistency: Persistency,
        mtu: usize,
    ) -> Result<FaceInfo, AddFaceError> {
        self.check_room(face)?;
        let socket = udp::connect(local, remote)?;
        let info = udp::face_info(socket.local_addr()?, remote, persistency, mtu);
        let index = self.watch_datagrams(socket.into(), Peers::One { face, remote })?;
        let channel = Channel::Datagram { socket: index, destination: None };
        let options = self.datagram_options(&Remote::Udp(remote), mtu);
        self.insert_face(face, channel, options, info.clone());
        Ok(info)
    }

    /// Listens for datagrams: an unknown remote whose datagram is an NDN packet becomes an
    /// on-demand face ([`FaceEvent::Created`]).
    pub fn add_udp_listener(&mut self, socket: UdpSocket) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        self.watch_datagrams(socket.into(), Peers::Anyone { local })?;
        Ok(())
    }

    /// Ends a face after one attempt to write what is queued. False if there is none.
    pub fn remove_face(&mut self, face: FaceId) -> bool {
        self.write_queued(face);
        if let Some(Channel::Datagram { socket, .. }) = self.faces.get(&face).map(|f| &f.channel) {
            self.flush_datagrams(*socket);
        }
        self.take_face(face).is_some()
    }

    /// Changes the largest frame that the face sends, in octets; an Ethernet face has no more than
    /// its interface. False if there is no such face.
    pub fn set_mtu(&mut self, face: FaceId, mtu: usize) -> bool {
        let mtu = self.mtu_of_link(face).map_or(mtu, |link_mtu| mtu.min(link_mtu));
        self.change(face, |face| {
            face.info.mtu = mtu.min(MAX_PACKET_BYTES);
            face.link.set_mtu(mtu);
        })
    }

    /// Changes what happens on failure or silence. False if there is no such face.
    pub fn set_persistency(&mut self, face: FaceId, persistency: Persistency) -> bool {
        let now_ns = self.now_ns;
        let changed = self.change(face, |face| {
            face.info.persistency = persistency;
            face.last_received_ns = face.last_received_ns.max(now_ns);
        });
        let is_down = self.faces.get(&face).is_some_and(|face| matches!(face.channel, Channel::Down));
        if is_down && persistency != Persistency::Permanent {
            // Only a permanent face outlives its connection.
            self.close(face, CloseReason::PeerClosed);
        }
        if let Some(reason) = self.outage_reason(face).filter(|_| persistency != Persistency::Permanent) {
            self.close(face, reason);
        }
        self.schedule_idle(face);
        changed
    }

    /// Turns local fields on or off. Whether the face may have them (local scope) is the
    /// caller's to check. False if there is no such face.
    pub fn set_local_fields(&mut self, face: FaceId, on: bool) -> bool {
        self.change(face, |face| face.link.set_local_fields(on))
    }

    /// Facts about a face.
    pub fn info(&self, face: FaceId) -> Option<&FaceInfo> {
        self.faces.get(&face).map(|face| &face.info)
    }

    /// The face's published counters; they stay readable after it is gone.
    pub fn counters(&self, face: FaceId) -> Option<Arc<FaceCounters>> {
        self.faces.get(&face).map(|face| face.published.clone())
    }

    /// Published drops that belong to no face: datagrams that made none, packets to unknown faces.
    pub fn faceless_counters(&self) -> Arc<FaceCounters> {
        self.faceless_published.clone()
    }

    /// Faces of this worker.
    pub fn face_count(&self) -> usize {
        self.faces.len()
    }

    /// Octets that wait to be sent, on all faces.
    pub fn queued_octets(&self) -> usize {
        self.queued_octets
    }

    /// Memory that input kept for later batches takes, on all streams, in octets.
    pub fn kept_octets(&self) -> usize {
        self.kept_octets
    }

    /// Turns of streams that read little, because [`DriverConfig::kept_input_octets`] were kept.
    pub fn short_reads(&self) -> u64 {
        self.short_reads
    }

    /// What happened since the last call, oldest first.
    pub fn events(&mut self) -> std::vec::Drain<'_, FaceEvent> {
        self.events.drain(..)
    }

    fn check_room(&self, face: FaceId) -> Result<(), AddFaceError> {
        if self.faces.contains_key(&face) {
            return Err(AddFaceError::Exists(face));
        }
        if self.faces.len() >= self.config.max_faces {
            return Err(AddFaceError::FaceLimit(self.config.max_faces));
        }
        Ok(())
    }

    fn watch_stream(&self, face: FaceId, socket: &StreamSocket) -> io::Result<()> {
        socket.prepare()?;
        let token = epoll::EventData::new_u64(face.0);
        Ok(epoll::add(&self.epoll, socket.as_fd(), token, epoll::EventFlags::IN)?)
    }

    fn watch_datagrams(&mut self, socket: OwnedFd, peers: Peers) -> io::Result<usize> {
        let free = self.datagram_sockets.iter().position(Option::is_none);
        let index = free.unwrap_or(self.datagram_sockets.len());
        let token = epoll::EventData::new_u64(DATAGRAM_TOKEN | index as u64);
        epoll::add(&self.epoll, &socket, token, epoll::EventFlags::IN)?;
        let socket = Some(DatagramSocket::new(socket, peers, self.config.udp_offload));
        match free {
            Some(index) => self.datagram_sockets[index] = socket,
            None => self.datagram_sockets.push(socket),
        }
        Ok(index)
    }

    /// Options of a face to `remote` whose frames are datagrams. Ethernet faces mark no congestion, as
    /// NFD's do not.
    fn datagram_options(&self, remote: &Remote, mtu: usize) -> LinkOptions {
        let policy = match remote {
            Remote::Udp(_) => self.config.link_policy,
            Remote::Ethernet(_) => LinkPolicy::default(),
        };
        LinkOptions {
            fragmentation: true,
            mtu,
            reassembly_octets: self.config.reassembly_octets,
            policy,
            // A restarted router should not continue the numbers of its last run.
            first_sequence: self.now_ns,
            ..LinkOptions::default()
        }
    }

    fn insert_face(&mut self, id: FaceId, channel: Channel, link: LinkOptions, info: FaceInfo) {
        let face = Face {
            id,
            channel,
            link: LinkService::new(link),
            info,
            published: Arc::default(),
            last_received_ns: self.now_ns,
            is_touched: false,
            is_ready: false,
            has_idle_timer: false,
            has_reassembly_timer: false,
            acks_timer_ns: NO_TIMER,
            retransmission_timer_ns: NO_TIMER,
            spoke_lp: false,
            reported_ns: 0,
            outage: None,
        };
        face.publish();
        self.reliable_faces += usize::from(face.link.is_reliable());
        self.faces.insert(id, Box::new(face));
        self.schedule_idle(id);
    }

    fn change(&mut self, face: FaceId, change: impl FnOnce(&mut Face)) -> bool {
        self.faces.get_mut(&face).map(|face| change(face)).is_some()
    }

    /// Ends a face by itself, or takes a permanent stream down.
    fn close(&mut self, id: FaceId, reason: CloseReason) {
        let Some(face) = self.faces.get_mut(&id) else { return };
        let is_permanent = face.info.persistency == Persistency::Permanent;
        if let Channel::Stream(stream) = &mut face.channel
            && is_permanent
        {
            self.queued_octets -= stream.queued_octets();
            self.kept_octets -= stream.kept_octets();
            // Fails only if epoll has lost the socket already, which is what we want.
            let _ = epoll::delete(&self.epoll, stream.socket.as_fd());
            face.channel = Channel::Down;
            face.link.restart();
            self.events.push(FaceEvent::Down { face: id, reason });
        } else if self.take_face(id).is_some() {
            self.events.push(FaceEvent::Closed { face: id, reason });
        }
    }

    /// Removes a face and its socket from every table and publishes its last counters.
    /// Entries in `ready`, `touched` and `timers` go stale: ids are never reused.
    fn take_face(&mut self, id: FaceId) -> Option<Box<Face>> {
        let face = self.faces.remove(&id)?;
        self.reliable_faces -= usize::from(face.link.is_reliable());
        match &face.channel {
            Channel::Stream(stream) => {
                self.queued_octets -= stream.queued_octets();
                self.kept_octets -= stream.kept_octets();
                let _ = epoll::delete(&self.epoll, stream.socket.as_fd());
            }
            Channel::Down => {}
            Channel::Datagram { socket, destination: Some(remote) } => {
                self.remotes.remove(&(*socket, *remote));
                if let Some(Some(shared)) = self.datagram_sockets.get_mut(*socket) {
                    let before = shared.queued_octets();
                    shared.forget_face(id);
                    self.queued_octets -= before - shared.queued_octets();
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

    /// Closes a socket and, of a multicast face, its other half.
    fn close_datagrams(&mut self, index: usize) {
        let Some(own) = self.datagram_sockets.get_mut(index).and_then(Option::take) else { return };
        self.queued_octets -= own.queued_octets();
        let _ = epoll::delete(&self.epoll, &own.socket);
        if let Peers::Nobody { receiver } = own.peers {
            self.close_datagrams(receiver);
        }
    }
}
