//! From readiness to packets in the arena.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use namewire_packet::FaceId;
use rustix::event::{Timespec, epoll};

use super::{Channel, DATAGRAM_TOKEN, Face, SocketDriver, Source, WAKER_TOKEN};
use crate::datagram_socket::Peers;
use crate::link_service::check_shape;
use crate::remote::Remote;
use crate::rx_arena::MESSAGE_SLOT_OCTETS;
use crate::stream::{InputRoom, Turn};
use crate::sys::MAX_BATCH;
use crate::{FaceEvent, FaceInfo, LinkDrop, Persistency, Received, RxArena, RxPacket, ethernet, udp};

/// Sleeps longer than this end early, harmlessly: epoll counts milliseconds in 31 bits.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 3600);

/// Sockets whose readiness is told by one system call; the others have their turn next.
const EVENTS_PER_WAIT: usize = 256;

impl SocketDriver {
    /// Sleeps until a face is readable, a blocked face is writable, a [`crate::Waker`] wakes
    /// or `timeout` is over; `None` sleeps without end, zero only looks. Returns at once if
    /// an earlier batch left something to read. Blocked faces that became writable are flushed.
    /// True if there was something.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = if self.ready.is_empty() { timeout } else { Some(Duration::ZERO) };
        let timeout = timeout.map(|timeout| {
            let timeout = timeout.min(LONGEST_SLEEP);
            Timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos() as _ }
        });
        let mut space = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_PER_WAIT];
        match epoll::wait(&self.epoll, &mut space, timeout.as_ref()) {
            Ok((events, _)) => {
                let was_ready = !self.ready.is_empty() || !events.is_empty();
                for event in events {
                    let (flags, data) = (event.flags, event.data);
                    self.note_event(flags, data.u64());
                }
                Ok(was_ready)
            }
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads from ready faces, each in its turn, into `arena`, and lists the network packets
    /// found in `out`, in the order of their faces. No more than `max_packets`, but that
    /// datagrams which the kernel had coalesced come together. What the arena and `out` held
    /// before is gone. Drops are counted; closures and new faces are in [`SocketDriver::events`].
    pub fn receive(&mut self, now_ns: u64, arena: &mut RxArena, out: &mut Vec<RxPacket>, max_packets: usize) {
        self.now_ns = now_ns;
        arena.reset();
        out.clear();
        for _ in 0..self.ready.len() {
            if out.len() >= max_packets || !arena.has_room() {
                break;
            }
            let Some(source) = self.ready.pop_front() else { break };
            let has_more = match source {
                Source::Stream(face) => self.receive_stream(face, arena, out, max_packets),
                Source::Datagrams(socket) => self.receive_datagrams(socket, arena, out, max_packets),
            };
            if has_more {
                self.ready.push_back(source);
            } else {
                self.clear_ready(source);
            }
        }
    }

    fn note_event(&mut self, flags: epoll::EventFlags, token: u64) {
        if token == WAKER_TOKEN {
            self.waker.reset();
            return;
        }
        let readable = flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        let writable = flags.contains(epoll::EventFlags::OUT);
        if token & DATAGRAM_TOKEN != 0 {
            let index = (token & !DATAGRAM_TOKEN) as usize;
            if writable {
                self.flush_datagrams(index);
            }
            if let Some(Some(socket)) = self.datagram_sockets.get_mut(index)
                && readable
                && !socket.is_ready
            {
                socket.is_ready = true;
                self.ready.push_back(Source::Datagrams(index));
            }
            return;
        }
        let id = FaceId(token);
        if writable {
            self.flush_face(id);
        }
        if let Some(face) = self.faces.get_mut(&id)
            && readable
            && !face.is_ready
        {
            face.is_ready = true;
            self.ready.push_back(Source::Stream(id));
        }
    }

    fn clear_ready(&mut self, source: Source) {
        match source {
            Source::Stream(face) => {
                self.change(face, |face| face.is_ready = false);
            }
            Source::Datagrams(index) => {
                if let Some(Some(socket)) = self.datagram_sockets.get_mut(index) {
                    socket.is_ready = false;
                }
            }
        }
    }

    /// One turn of a stream face; true if it wants another.
    fn receive_stream(&mut self, id: FaceId, arena: &mut RxArena, out: &mut Vec<RxPacket>, max_packets: usize) -> bool {
        let Some(face) = self.faces.get_mut(&id) else { return false };
        let Channel::Stream(stream) = &mut face.channel else { return false };
        let batch = (arena, out, max_packets);
        let kept_before = stream.kept_octets();
        let room = match self.kept_octets {
            kept if kept >= self.config.kept_input_octets => InputRoom::None,
            kept if kept >= self.config.kept_input_octets / 2 => InputRoom::Little,
            _ => InputRoom::Plenty,
        };
        self.short_reads += u64::from(room == InputRoom::None && !stream.has_backlog());
        let turn = stream.receive(id, &mut face.link, self.now_ns, batch, room, &mut self.pool);
        self.kept_octets = self.kept_octets - kept_before + stream.kept_octets();
        face.last_received_ns = self.now_ns;
        note_received(face, &mut self.touched, &mut self.events);
        match turn {
            Turn::Drained => false,
            Turn::More => true,
            Turn::Closed(reason) => {
                self.close(id, reason);
                false
            }
        }
    }

    /// One `recvmmsg` from a UDP socket; true if there may be more.
    fn receive_datagrams(
        &mut self,
        index: usize,
        arena: &mut RxArena,
        out: &mut Vec<RxPacket>,
        max_packets: usize,
    ) -> bool {
        let Some(Some(socket)) = self.datagram_sockets.get_mut(index) else { return false };
        let base = arena.used();
        let free = arena.free_mut();
        let wanted = max_packets.saturating_sub(out.len()).div_ceil(socket.datagrams_per_message);
        let slots = wanted.min(MAX_BATCH).min(free.len() / MESSAGE_SLOT_OCTETS);
        // A pending error (a peer's port is closed) is told once, instead of datagrams.
        let received = match self.batch.receive(socket.socket.as_fd(), free, MESSAGE_SLOT_OCTETS, slots) {
            Ok(received) => received,
            Err(error) => {
                self.note_receive_error(index, &error);
                0
            }
        };
        let mut datagrams = 0;
        let mut last = None;
        for i in 0..received {
            let start = base + i * MESSAGE_SLOT_OCTETS;
            datagrams += self.receive_message(index, i, start, &mut last, arena, out);
        }
        arena.keep_slots(received);
        if let Some(Some(socket)) = self.datagram_sockets.get_mut(index)
            && received > 0
        {
            socket.datagrams_per_message = datagrams.div_ceil(received);
        }
        received == slots
    }

    /// Passes the datagrams of the i-th message of the batch, which lies at `start` of the
    /// arena, through the link service of their face; returns how many there were. `last` is
    /// who sent the message before and its face.
    fn receive_message(
        &mut self,
        index: usize,
        i: usize,
        start: usize,
        last: &mut Option<(Remote, FaceId)>,
        arena: &mut RxArena,
        out: &mut Vec<RxPacket>,
    ) -> usize {
        let (len, datagram_octets) = (self.batch.len(i), self.batch.segment_octets(i).max(1));
        let datagrams = len.div_ceil(datagram_octets).max(1); // an empty message is an empty datagram
        let Some(remote) = self.batch.source(i) else { return datagrams };
        for nth in 0..datagrams {
            let start = start + nth * datagram_octets;
            let octets = arena.octets(start, datagram_octets.min(len - nth * datagram_octets));
            let (id, octets) = match (*last, remote) {
                (Some((last_remote, id)), _) if last_remote == remote => (id, octets),
                (_, Remote::Udp(address)) => {
                    let Some(id) = self.face_of_datagram(index, address, octets) else { continue };
                    *last = Some((remote, id));
                    (id, octets)
                }
                // Not remembered: the next frame of that station may be to the group.
                (_, Remote::Ethernet(_)) => {
                    let octets = ethernet::without_padding(octets);
                    let Some(id) = self.face_of_frame(index, i, remote, octets) else { continue };
                    (id, octets)
                }
            };
            let Some(face) = self.faces.get_mut(&id) else { continue };
            face.last_received_ns = self.now_ns;
            let mut is_incomplete = false;
            match face.link.receive_from(self.now_ns, remote.sender(), octets) {
                Ok(Received::Packet { headers, start: offset, len }) => {
                    out.push(RxPacket { face: id, headers, start: (start + offset) as u32, len: len as u32 });
                }
                Ok(Received::Reassembled { headers, packet }) => {
                    let (start, len) = (arena.push_reassembled(packet), packet.len());
                    out.push(RxPacket { face: id, headers, start: start as u32, len: len as u32 });
                }
                Ok(Received::Incomplete) => is_incomplete = true,
                Ok(Received::Idle) | Err(_) => {}
            }
            note_received(face, &mut self.touched, &mut self.events);
            if is_incomplete {
                self.schedule_reassembly(id);
            }
        }
        datagrams
    }

    /// The face that a UDP datagram belongs to, made if need be.
    fn face_of_datagram(&mut self, index: usize, remote: SocketAddr, octets: &[u8]) -> Option<FaceId> {
        match &self.datagram_sockets.get(index)?.as_ref()?.peers {
            Peers::One { face, remote: expected } if is_same_remote(remote, *expected) => Some(*face),
            // Arrived between bind and connect, where the kernel cannot be told to give it to a listener.
            Peers::One { .. } => self.refuse_datagram(octets, LinkDrop::ForeignRemote),
            &Peers::Anyone { local } => match self.remotes.get(&(index, Remote::Udp(remote))) {
                Some(face) => Some(*face),
                None => {
                    let local = udp::local_address_towards(local, remote);
                    let info = udp::face_info(local, remote, Persistency::OnDemand, self.config.udp_mtu);
                    self.create_on_demand(index, Remote::Udp(remote), octets, info)
                }
            },
            // The kernel gives each member its copy, us as well.
            Peers::Group { own, .. } if is_same_remote(remote, *own) => None,
            Peers::Group { face, .. } => Some(*face),
            Peers::Nobody { .. } | Peers::Link(_) => None,
        }
    }

    /// Makes a face for a remote that sent something like an NDN packet. A port scan makes none.
    pub(super) fn create_on_demand(
        &mut self,
        index: usize,
        remote: Remote,
        octets: &[u8],
        info: FaceInfo,
    ) -> Option<FaceId> {
        if let Err(reason) = check_shape(octets) {
            return self.refuse_datagram(octets, reason);
        }
        if self.faces.len() >= self.config.max_faces {
            return self.refuse_datagram(octets, LinkDrop::FaceLimit);
        }
        let face = self.config.face_ids.allocate();
        let channel = Channel::Datagram { socket: index, destination: Some(remote) };
        let options = self.datagram_options(&remote, info.mtu);
        self.insert_face(face, channel, options, info.clone());
        self.remotes.insert((index, remote), face);
        self.events.push(FaceEvent::Created { face, info });
        Some(face)
    }

    pub(super) fn refuse_datagram(&mut self, octets: &[u8], reason: LinkDrop) -> Option<FaceId> {
        self.faceless.in_octets += octets.len() as u64;
        self.faceless.count_drop(reason);
        None
    }
}

/// Marks the face for publishing, and reports the first LpPacket of its peer.
fn note_received(face: &mut Face, touched: &mut Vec<FaceId>, events: &mut Vec<FaceEvent>) {
    if !face.is_touched {
        face.is_touched = true;
        touched.push(face.id);
    }
    if face.link.peer_speaks_lp() && !face.spoke_lp {
        face.spoke_lp = true;
        events.push(FaceEvent::SpokeLp { face: face.id });
    }
}

/// Compares addresses without the scope of link-local addresses, which one side may lack.
fn is_same_remote(a: SocketAddr, b: SocketAddr) -> bool {
    a.ip() == b.ip() && a.port() == b.port()
}
