//! Reads ready sockets into the arena and finds the packets.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use arrayvec::ArrayVec;
use namewire_links::{Received, check_introduction};
use namewire_packet::{FaceId, MAX_PACKET_BYTES, lp::LpHeaders, nfd::FacePersistency, tlv};
use namewire_shares::{Payer, Refusal};

use super::SocketDriver;
use super::face::{Channel, Face};
use super::face_table::FaceTable;
use super::outages::IDLE;
use super::poller::{Poller, Readiness, Source};
use crate::datagram_socket::Peers;
use crate::frame_port::RefusedFrames;
use crate::remote::{Destination, Remote};
use crate::rx_arena::RxBatch;
use crate::stream::{InputRoom, Turn};
use crate::sys::{Addressee, MAX_BATCH};
use crate::{FaceEvent, FaceInfo, LinkDrop, RxArena, RxPacket, ethernet, udp};

/// Elements or datagrams that a source may read in its turn while others wait: a batch of the engine. It is also what a
/// holder may cost in one round.
pub(super) const ELEMENTS_PER_TURN: usize = 64;

/// What a read costs, beside what it brings. An element or datagram costs 1, whatever is in it.
const READ_COST: usize = 1;

/// Bytes of packets that cost as much as one packet.
const BYTES_PER_COST: usize = 2048;

/// Datagrams refused unparsed that cost as much as one packet.
const REFUSALS_PER_COST: usize = 4;

/// Senders whose packets come together have at most so many quanta: others wait for them no longer than that, even if
/// they are one host that forges addresses.
const SENDERS_WEIGHT_MAX: u32 = 16;

impl SocketDriver {
    /// Sleeps until a face is readable, a blocked face is writable, a [`crate::Waker`] wakes it or `timeout` is over.
    /// `None` sleeps without limit; zero does not sleep. Returns at once if an earlier batch left something to read.
    /// Flushes blocked faces that became writable. True if there was an event or something to read.
    ///
    /// # Errors
    /// If epoll fails; an interrupted wait is no error.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let has_frames = self.queue_ready_ports();
        if has_frames && self.poller.may_skip_look() {
            return Ok(true);
        }
        if !has_frames && timeout != Some(Duration::ZERO) && !self.sockets.stop_polling() {
            return Ok(self.queue_ready_ports());
        }
        let had_turns = !self.turns.is_empty();
        let timeout = if had_turns { Some(Duration::ZERO) } else { timeout };
        let mut ready = ArrayVec::new();
        let has_events = self.poller.wait(timeout, &mut ready)?;
        let may_be_more = ready.is_full();
        ready.into_iter().for_each(|readiness| self.note_ready(readiness, may_be_more));
        Ok(had_turns || has_events)
    }

    /// Gives a turn to each port in whose memory something has come. True if there is one.
    fn queue_ready_ports(&mut self) -> bool {
        let SocketDriver { sockets, faces, turns, .. } = self;
        let mut has_frames = false;
        for (index, only_face) in sockets.take_ready_ports() {
            turns.push(payer(faces, index, only_face), Source::Datagrams(index));
            has_frames = true;
        }
        has_frames
    }

    /// Gives a turn to a datagram socket, which is marked ready.
    pub(super) fn queue_datagrams(&mut self, index: usize) {
        if let Some(socket) = self.sockets.get(index) {
            self.turns.push(payer(&self.faces, index, socket.peers.only_face()), Source::Datagrams(index));
        }
    }

    /// Reads from ready faces in turn into `arena`, and lists the network packets found in `out`, in the order of their
    /// faces. Whose turn it is, [`Turns`](namewire_shares::turns) decides. Reads no more than `max_packets`; only
    /// datagrams that the kernel has coalesced may exceed it, because they come together. Discards the earlier contents
    /// of the arena and `out`. Counts drops; closures and new faces are in [`SocketDriver::events`].
    pub fn receive(&mut self, now_ns: u64, arena: &mut RxArena, out: &mut Vec<RxPacket>, max_packets: usize) {
        self.now_ns = now_ns;
        arena.reset();
        out.clear();
        let mut batch = RxBatch { arena, packets: out, max_packets, left: 0, paid: 0 };
        for _ in 0..self.turns.len() {
            if !batch.has_room() {
                break;
            }
            let Some(source) = self.turns.begin() else { break };
            let has_more = self.serve(source, &mut batch);
            if !has_more {
                self.clear_ready(source);
            }
        }
    }

    /// One turn of a source; true if it wants another.
    fn serve(&mut self, source: Source, batch: &mut RxBatch<'_>) -> bool {
        let of_turn = ELEMENTS_PER_TURN.max(batch.max_packets / self.turns.len());
        batch.left = of_turn.min(batch.max_packets - batch.packets.len());
        let (may_read, before) = (batch.left, batch.packets.len());
        batch.paid = 0;
        let has_more = match source {
            Source::Stream(face) => self.receive_stream(face, batch),
            Source::Datagrams(socket) => self.receive_datagrams(socket, batch),
            Source::Peer(_) => false, // it has no turns
        };
        let cost = if self.others_wait() {
            let packets = &batch.packets[before..];
            let read = packets.len().max(may_read - batch.left);
            let bytes: usize = packets.iter().map(|packet| packet.len as usize).sum();
            let cost = read + bytes / BYTES_PER_COST;
            READ_COST + cost - cost * batch.paid.min(read) / read.max(1)
        } else {
            0
        };
        self.turns.end(cost as u32, has_more);
        has_more
    }

    /// Whether the present turn is not the only one that is wanted. If it is, it costs nothing.
    fn others_wait(&self) -> bool {
        self.turns.len() > 1
    }

    /// True if the face is a connected stream.
    pub fn is_stream(&self, face: FaceId) -> bool {
        self.faces.get(face).is_some_and(|face| matches!(face.channel, Channel::Stream(_)))
    }

    /// Does not read a stream face until [`SocketDriver::release`]: its packets have no way on. True if it was read
    /// before; false if it is no connected stream.
    pub fn hold(&mut self, face: FaceId) -> bool {
        let Some(Channel::Stream(stream)) = self.faces.get_mut(face).map(|face| &mut face.channel) else {
            return false;
        };
        if stream.is_held {
            return false;
        }
        stream.is_held = true;
        self.poller.watch_stream(stream, face);
        true
    }

    /// Reads a stream face again.
    pub fn release(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(id) else { return };
        let Channel::Stream(stream) = &mut face.channel else { return };
        stream.is_held = false;
        self.poller.watch_stream(stream, id);
        // What is read already makes no socket readable.
        if stream.has_backlog() && !face.is_ready {
            face.is_ready = true;
            self.turns.push(Payer::Holder(face.holder), Source::Stream(id));
        }
    }

    /// `may_be_more`: the kernel may have left out others that are ready.
    fn note_ready(&mut self, Readiness { source, is_readable, is_writable }: Readiness, may_be_more: bool) {
        match source {
            Source::Peer(index) => self.check_peer(index),
            Source::Stream(id) => {
                if is_writable {
                    self.flush_face(id);
                }
                let Some(face) = self.faces.get_mut(id).filter(|_| is_readable) else { return };
                if !std::mem::replace(&mut face.is_ready, true) {
                    self.turns.push(Payer::Holder(face.holder), source);
                } else if may_be_more {
                    set_muted(&self.poller, face, true);
                }
            }
            Source::Datagrams(index) => {
                if is_writable {
                    self.flush_datagrams(index);
                }
                if !is_readable {
                    return;
                }
                self.sockets.poll(index);
                if let Some(socket) = self.sockets.get_mut(index)
                    && !std::mem::replace(&mut socket.is_ready, true)
                {
                    self.queue_datagrams(index);
                }
            }
        }
    }

    fn clear_ready(&mut self, source: Source) {
        match source {
            Source::Stream(id) => {
                let Some(face) = self.faces.get_mut(id) else { return };
                face.is_ready = false;
                set_muted(&self.poller, face, false);
            }
            Source::Peer(_) => {}
            Source::Datagrams(index) => {
                if let Some(socket) = self.sockets.get_mut(index) {
                    socket.is_ready = false;
                }
            }
        }
    }

    /// One turn of a stream face; true if it wants another.
    fn receive_stream(&mut self, id: FaceId, batch: &mut RxBatch<'_>) -> bool {
        let Some(face) = self.faces.touch(id) else { return false };
        let Channel::Stream(stream) = &mut face.channel else { return false };
        if stream.is_held {
            return false;
        }
        let (left_before, before) = (batch.left, batch.packets.len());
        let (kept_before, room) = (stream.kept_bytes(), self.inlet.room(face.holder));
        if room == InputRoom::None && !stream.has_backlog() {
            self.inlet.count_short_read(face.holder);
        }
        let turn = stream.receive(id, &mut face.link, self.now_ns, batch, room, &mut self.outlet.pool);
        self.inlet.note_turn(face.holder, kept_before, stream.kept_bytes());
        face.last_received_ns = self.now_ns;
        batch.paid = face.spend_prepaid(left_before - batch.left);
        for packet in batch.packets[before..].iter_mut().take(batch.paid) {
            packet.is_paid = true;
        }
        report_lp(face, &mut self.events);
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
    fn receive_datagrams(&mut self, index: usize, batch: &mut RxBatch<'_>) -> bool {
        let others_wait = self.others_wait();
        let Some(socket) = self.sockets.get_mut(index) else { return false };
        self.inlet.tally.begin(&socket.crowd, others_wait);
        let base = batch.arena.used();
        let free = batch.arena.free_mut();
        let wanted = batch.left.div_ceil(socket.datagrams_per_message);
        let slots = wanted.min(MAX_BATCH).min(free.len() / socket.port.slot_bytes());
        // A pending error (a peer's port is closed) is returned once, instead of datagrams.
        let received = match socket.port.receive(&mut self.inlet.messages, free, slots) {
            Ok(received) => received,
            Err(error) => {
                self.note_receive_error(index, &error);
                0
            }
        };
        self.note_refused_frames(index);
        let mut datagrams = 0;
        let mut last = None;
        for number in 0..received {
            let message = Message { socket: index, number, start: base + self.inlet.messages.start(number) };
            datagrams += self.receive_message(message, &mut last, batch);
        }
        if let Some(last) = received.checked_sub(1) {
            batch.arena.keep_datagrams(self.inlet.messages.start(last) + self.inlet.messages.len(last));
        }
        batch.paid = self.inlet.tally.paid() as usize;
        let brought = self.inlet.tally.end();
        if let Some(socket) = self.sockets.get_mut(index) {
            if received > 0 {
                socket.datagrams_per_message = datagrams.div_ceil(received);
            }
            socket.crowd.note_read(received, received == slots, || socket.port.is_half_full());
            if let Some(brought) = brought {
                socket.crowd.note_senders(&brought);
                self.turns.set_weight((brought.senders as u32).min(SENDERS_WEIGHT_MAX));
                datagrams -= brought.refused as usize * (REFUSALS_PER_COST - 1) / REFUSALS_PER_COST;
            }
        }
        batch.left = batch.left.saturating_sub(datagrams);
        self.note_end(index, received);
        received == slots
    }

    /// Passes the datagrams of a message through the link service of their face; returns how many there were. `last` is
    /// the sender of the previous message.
    fn receive_message(&mut self, message: Message, last: &mut Option<LastSender>, batch: &mut RxBatch<'_>) -> usize {
        let Message { socket, number, start } = message;
        let (len, datagram_bytes) = (self.inlet.messages.len(number), self.inlet.messages.segment_bytes(number).max(1));
        let datagrams = len.div_ceil(datagram_bytes).max(1); // an empty message is an empty datagram
        let Some(remote) = self.inlet.messages.source(number) else { return datagrams };
        let is_frame = matches!(remote, Remote::Ethernet(_));
        let addressee = if is_frame { self.inlet.messages.addressee(number) } else { Addressee::Us };
        for nth in 0..datagrams {
            let start = start + nth * datagram_bytes;
            let bytes = batch.arena.bytes(start, datagram_bytes.min(len - nth * datagram_bytes));
            let bytes = if is_frame { ethernet::without_padding(bytes) } else { bytes };
            let id = match *last {
                Some(last) if last.remote == remote && last.addressee == addressee => last.face,
                _ => {
                    let found = match remote {
                        Remote::Udp(address) => self.face_of_datagram(socket, address, number, bytes),
                        Remote::Ethernet(_) => self.face_of_frame(socket, addressee, remote, bytes),
                    };
                    let Some(id) = found else { continue };
                    *last = Some(LastSender { remote, addressee, face: id });
                    id
                }
            };
            let Some(face) = self.faces.touch(id) else { continue };
            face.last_received_ns = self.now_ns;
            if !self.inlet.tally.admit(face.holder, || face.spend_prepaid(1) == 1) {
                face.link.count_drop(LinkDrop::TurnShare);
                continue;
            }
            let is_whole = bytes.len() <= MAX_PACKET_BYTES && tlv::element_size(bytes) == Ok(Some(bytes.len()));
            if is_whole && face.link.receive_bare(bytes) {
                let (headers, start, len) = (LpHeaders::default(), start as u32, bytes.len() as u32);
                batch.packets.push(RxPacket { face: face.part_of, headers, start, len, is_paid: false });
                continue;
            }
            let received = face.link.receive_from(self.now_ns, remote.sender(), bytes);
            let is_incomplete = matches!(received, Ok(Received::Incomplete));
            let is_idle = matches!(received, Ok(Received::Idle));
            let part_of = face.part_of;
            match received {
                Ok(Received::Packet { headers, start: offset, len }) => {
                    let (start, len) = ((start + offset) as u32, len as u32);
                    batch.packets.push(RxPacket { face: part_of, headers, start, len, is_paid: false });
                }
                Ok(Received::Reassembled { headers, packet }) => {
                    let (start, len) = (batch.arena.push_reassembled(packet) as u32, packet.len() as u32);
                    batch.packets.push(RxPacket { face: part_of, headers, start, len, is_paid: false });
                }
                Ok(Received::Incomplete | Received::Idle) | Err(_) => {}
            }
            face.settle_reassembly(&mut self.reassembly);
            report_lp(face, &mut self.events);
            if is_idle && let Some(hello) = face.link.take_lane_hello() {
                self.events.push(FaceEvent::LaneHello { face: id, hello });
            }
            if is_incomplete {
                self.schedule_reassembly(id);
            }
        }
        datagrams
    }

    /// Counts the frames that the port refused.
    fn note_refused_frames(&mut self, index: usize) {
        let Some(socket) = self.sockets.get_mut(index) else { return };
        let RefusedFrames { malformed, foreign } = socket.port.take_refused();
        if malformed + foreign > 0 {
            self.faceless.count_drops(LinkDrop::MalformedFrame, malformed);
            self.faceless.count_drops(LinkDrop::ForeignFrame, foreign);
        }
    }

    /// The face of a UDP datagram in this message, created if need be.
    fn face_of_datagram(&mut self, index: usize, remote: SocketAddr, message: usize, bytes: &[u8]) -> Option<FaceId> {
        match &self.sockets.get(index)?.peers {
            Peers::One { face, remote: expected, .. } if is_same_remote(remote, *expected) => Some(*face),
            // It arrived between bind and connect: the kernel could not steer it to the listener, or looked for a
            // socket while the connection began.
            &Peers::One { local, .. } => match self.sockets.listener(local) {
                Some(listener) => self.face_of_datagram(listener, remote, message, bytes),
                None => self.refuse_datagram(bytes, LinkDrop::ForeignRemote),
            },
            Peers::Lane { .. } => {
                let link = self.faces.of_remote(index, Remote::Udp(remote));
                // The neighbour greets lanes before they are linked to its own.
                let reason = if bytes == IDLE { LinkDrop::NothingCarried } else { LinkDrop::ForeignRemote };
                link.or_else(|| self.refuse_datagram(bytes, reason))
            }
            &Peers::Anyone { local } => match self.faces.of_remote(index, Remote::Udp(remote)) {
                Some(face) => Some(face),
                None => {
                    let ours = udp::local_address_towards(local, remote);
                    let asked = self.inlet.messages.own_address(message).filter(|_| local.ip().is_unspecified());
                    let from = asked.filter(|asked| *asked != ours.ip());
                    let ours = from.map_or(ours, |from| SocketAddr::new(from, local.port()));
                    let info = udp::face_info(ours, remote, FacePersistency::OnDemand, self.config.udp_mtu);
                    self.create_on_demand(index, Destination { remote: Remote::Udp(remote), from }, bytes, info)
                }
            },
            // The kernel gives each member a copy, also the sender.
            Peers::Group { own, .. } if is_same_remote(remote, *own) => None,
            Peers::Group { face, .. } => Some(*face),
            Peers::Nobody { .. } | Peers::Link(_) | Peers::Queue { .. } | Peers::Application { .. } => None,
        }
    }

    /// Creates a face for a remote that sent a valid packet. A port scan creates none.
    pub(super) fn create_on_demand(
        &mut self,
        index: usize,
        to: Destination,
        bytes: &[u8],
        info: FaceInfo,
    ) -> Option<FaceId> {
        if let Err(reason) = check_introduction(bytes) {
            return self.refuse_datagram(bytes, reason);
        }
        match self.find_place(&info.holder(), info.persistency) {
            Ok(()) => {}
            Err(Refusal::ShareUsed) => return self.refuse_datagram(bytes, LinkDrop::HolderShare),
            Err(Refusal::PoolFull) => return self.refuse_datagram(bytes, LinkDrop::FaceLimit),
        }
        let face = self.config.face_ids.allocate();
        let channel = Channel::Datagram { socket: index, destination: Some(to) };
        let options = self.datagram_options(&to.remote, info.mtu);
        self.insert_face(face, channel, options, info.clone());
        self.events.push(FaceEvent::Created { face, info });
        Some(face)
    }

    pub(super) fn refuse_datagram(&mut self, bytes: &[u8], reason: LinkDrop) -> Option<FaceId> {
        self.faceless.refuse(bytes, reason);
        None
    }
}

/// Lets the poller leave a stream out, or watch it again.
fn set_muted(poller: &Poller, face: &mut Face, is_muted: bool) {
    if let Channel::Stream(stream) = &mut face.channel
        && std::mem::replace(&mut stream.is_muted, is_muted) != is_muted
    {
        poller.watch_stream(stream, face.id);
    }
}

/// Who pays for the turns of a datagram socket: the holder of its only face, or its senders.
fn payer(faces: &FaceTable, index: usize, only_face: Option<FaceId>) -> Payer {
    let face = only_face.and_then(|face| faces.get(face));
    face.map_or(Payer::Senders(index), |face| Payer::Holder(face.holder))
}

/// The sender of a message, whom it addressed, and the face.
#[derive(Clone, Copy)]
struct LastSender {
    remote: Remote,
    addressee: Addressee,
    face: FaceId,
}

/// One message of datagrams from the kernel.
struct Message {
    /// Index of the socket.
    socket: usize,
    /// Its number in the batch of messages.
    number: usize,
    /// Its position in the arena.
    start: usize,
}

/// Reports the first LpPacket of a peer.
fn report_lp(face: &mut Face, events: &mut Vec<FaceEvent>) {
    if face.link.peer_speaks_lp() && !face.spoke_lp {
        face.spoke_lp = true;
        face.path.look_with_next_use();
        events.push(FaceEvent::SpokeLp { face: face.id });
    }
}

/// Compares addresses without the scope of link-local addresses, which one side may lack.
fn is_same_remote(a: SocketAddr, b: SocketAddr) -> bool {
    a.ip() == b.ip() && a.port() == b.port()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DriverConfig;
    use namewire_shares::Holder;

    /// An Interest for `/a`.
    const INTEREST: [u8; 7] = [5, 5, 7, 3, 8, 1, b'a'];

    /// Shows what tests with sockets see only once in many runs.
    #[test]
    fn what_a_faces_socket_gets_too_early_is_the_listeners() {
        let mut driver = SocketDriver::new(DriverConfig::default()).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = udp::bind_listeners(any, 1).unwrap().remove(0);
        let local = listener.local_addr().unwrap();
        driver.add_udp_listener(listener).unwrap();
        let [remote, stranger] = [9, 10].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        for (face, local) in [(FaceId(5000), local), (FaceId(5001), any)] {
            driver.add_udp_face(face, local, remote, FacePersistency::Persistent, 1400).unwrap();
        }
        assert_eq!(driver.face_of_datagram(1, remote, 0, &INTEREST), Some(FaceId(5000)));
        let new = driver.face_of_datagram(1, stranger, 0, &INTEREST).expect("a face, by the listener");
        assert_eq!(driver.face_of_datagram(0, stranger, 0, &INTEREST), Some(new), "the one that it has there");
        assert_eq!(driver.face_of_datagram(2, stranger, 0, &INTEREST), None, "no listener has that address");
        assert_eq!(driver.faceless.dropped(LinkDrop::ForeignRemote), 1);
    }

    /// The story: one sender that never stopped took the listener's buffer and turns from all others.
    #[test]
    fn a_sender_that_overflows_a_listener_is_cut_and_others_are_not() {
        let mut driver = SocketDriver::new(DriverConfig::default()).unwrap();
        let listener = udp::bind_listeners("127.0.0.1:0".parse().unwrap(), 1).unwrap().remove(0);
        let local = listener.local_addr().unwrap();
        driver.add_udp_listener(listener).unwrap();
        let (mut arena, mut packets) = (RxArena::new(), Vec::new());
        let mut turn = |driver: &mut SocketDriver, of: FaceId| {
            driver.wait(Some(Duration::ZERO)).unwrap();
            driver.receive(0, &mut arena, &mut packets, 256);
            driver.flush();
            packets.iter().filter(|packet| packet.face == of).count()
        };
        let [greedy, modest] = [1, 2].map(|host| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(local).unwrap();
            socket.send(&INTEREST).unwrap();
            let remote = Remote::Udp(socket.local_addr().unwrap());
            let face = loop {
                turn(&mut driver, FaceId(0));
                if let Some(face) = driver.faces.of_remote(0, remote) {
                    break face;
                }
            };
            // This machine has one loopback address, so the test says that they are different hosts.
            let holder = Holder::of_address(std::net::Ipv4Addr::new(192, 0, 2, host).into(), false);
            let holder = driver.config.holders.enter(&holder);
            driver.faces.change(face, |face| face.holder = holder);
            (socket, face)
        });
        let cut = |driver: &SocketDriver, face| driver.counters(face).unwrap().dropped(LinkDrop::TurnShare);
        let send = |count: usize| {
            (0..count).for_each(|_| _ = greedy.0.send(&INTEREST));
            (0..4).for_each(|_| _ = modest.0.send(&INTEREST));
        };
        // A burst is passed on, whoever sent it.
        send(200);
        let mut of_burst = 0;
        while of_burst < 200 {
            of_burst += turn(&mut driver, greedy.1);
        }
        assert_eq!(cut(&driver, greedy.1), 0);
        while cut(&driver, greedy.1) == 0 {
            send(2_000);
            turn(&mut driver, greedy.1);
        }
        for _ in 0..100 {
            send(300);
            assert!(turn(&mut driver, greedy.1) <= 16);
        }
        assert!(cut(&driver, greedy.1) > 100 * 32);
        assert_eq!(cut(&driver, modest.1), 0);
        // Who is alone again is cut no more, once the listener has been empty.
        while turn(&mut driver, greedy.1) > 0 {}
        let before = cut(&driver, greedy.1);
        (0..200).for_each(|_| _ = greedy.0.send(&INTEREST));
        while turn(&mut driver, greedy.1) > 0 {}
        assert_eq!(cut(&driver, greedy.1), before);
    }
}
