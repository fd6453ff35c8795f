//! Puts packets into queues, and writes queues to sockets.

use namewire_packet::FaceId;
use namewire_packet::lp::LpHeaders;
use namewire_packet::tlv::types;
use namewire_shares::HolderId;

use super::SocketDriver;
use super::face::Channel;
use super::timer_queue::Timer;
use crate::datagram_socket::Sender;
use crate::path_mtu;
use crate::{CloseReason, LinkDrop};

/// First and longest pause between two attempts to send what a port of frames did not take.
const KICK_PAUSE_NS: u64 = 200_000;
const KICK_PAUSE_MAX_NS: u64 = 5_000_000;

/// Whose share of the pools a face uses, for all faces of the router.
pub type HolderOf<'a> = &'a dyn Fn(FaceId) -> Option<HolderId>;

impl SocketDriver {
    /// Queues one network packet on `face`, with the link headers it needs; [`SocketDriver::flush`] sends it. `packet`
    /// is one Interest or Data. Queue limits are checked before the packet is added, so a queue exceeds its limit by at
    /// most one packet; a queue at its limit is flushed early if the kernel takes more.
    ///
    /// # Errors
    /// [`LinkDrop::NoSuchFace`], [`LinkDrop::FaceDown`], or [`LinkDrop::PacketTooLarge`] for the MTU;
    /// [`LinkDrop::QueueFull`], [`LinkDrop::QueuesFull`] or [`LinkDrop::QueueShare`] if a queue is at its limit. The
    /// drop is counted.
    pub fn send(&mut self, now_ns: u64, face: FaceId, headers: &LpHeaders, packet: &[u8]) -> Result<(), LinkDrop> {
        self.send_for(now_ns, face, headers, packet, &|_| None)
    }

    /// The same. `holder_of` knows whose the face is that an Interest came from ([`LpHeaders::incoming_face_id`]); it
    /// is asked only if the peer of `face` does not read. Then the holders whose Interests wait take turns, and those
    /// with most there make room for others ([`LinkDrop::QueueDisplaced`], counted on `face`).
    ///
    /// # Errors
    /// Those of [`SocketDriver::send`].
    pub fn send_for(
        &mut self,
        now_ns: u64,
        face: FaceId,
        headers: &LpHeaders,
        packet: &[u8],
        holder_of: HolderOf<'_>,
    ) -> Result<(), LinkDrop> {
        self.now_ns = now_ns;
        let Some(face) = self.faces.touch(face) else {
            self.faceless.count_drop(LinkDrop::NoSuchFace);
            return Err(LinkDrop::NoSuchFace);
        };
        face.look_at_queue(now_ns, &self.sockets);
        let (id, holder, link, outlet) = (face.id, face.holder, &mut face.link, &mut self.outlet);
        let wants_scout = &mut face.path.wants_scout;
        match &mut face.channel {
            Channel::Stream(stream) => {
                let room = outlet.make_room_on_stream(&self.poller, id, stream);
                let cause = if stream.is_blocked { cause(headers, packet, holder_of) } else { None };
                if let Err(reason) = room {
                    let (displaced, has_room) = outlet.displace(stream, cause.unwrap_or(holder), packet.len(), reason);
                    link.count_drops(LinkDrop::QueueDisplaced, displaced);
                    if !has_room {
                        link.count_drop(reason);
                        return Err(reason);
                    }
                }
                link.encode(now_ns, headers, packet, |header, slice| {
                    outlet.queue_on_stream(stream, cause, header, slice);
                })
            }
            Channel::Datagram { socket: index, destination } => {
                let Some(socket) = self.sockets.get_mut(*index) else {
                    link.count_drop(LinkDrop::FaceDown);
                    return Err(LinkDrop::FaceDown);
                };
                if let Err(reason) = outlet.make_room_for_datagrams(&self.poller, *index, socket, holder) {
                    link.count_drop(reason);
                    return Err(reason);
                }
                let encoded = link.encode(now_ns, headers, packet, |header, slice| {
                    let sender = Sender { face: id, holder, destination: *destination, is_scout: *wants_scout };
                    let bytes = outlet.queue_datagram(socket, sender, header, slice);
                    *wants_scout &= bytes <= path_mtu::LEAST_BYTES;
                });
                self.sockets.mark_dirty(*index);
                encoded
            }
            Channel::Down => {
                link.count_drop(LinkDrop::FaceDown);
                Err(LinkDrop::FaceDown)
            }
        }
    }

    /// Sends the queued packets, with one write per stream and one `sendmmsg` per 64 datagrams of a socket. Publishes
    /// the counters of every face used since the last call. A later [`SocketDriver::wait`] sends the bytes that the
    /// kernel does not take now. Call it once per batch, also if nothing was sent.
    pub fn flush(&mut self) {
        self.pump_touched();
        let mut dirty = self.sockets.take_dirty();
        for index in dirty.drain(..) {
            if let Some(socket) = self.sockets.get_mut(index) {
                socket.is_dirty = false;
                if !socket.is_blocked {
                    self.flush_datagrams(index);
                }
            }
        }
        self.sockets.keep_list(dirty);
        let mut touched = self.faces.take_touched();
        for id in touched.drain(..) {
            let Some(face) = self.faces.get_mut(id) else { continue };
            face.is_touched = false;
            let flushable = matches!(&face.channel, Channel::Stream(stream) if !stream.is_blocked);
            if flushable {
                self.flush_face(id);
            }
            if let Some(face) = self.faces.get(id) {
                face.publish();
                let (is_down, is_look_due) = (face.outage.is_some(), face.path.is_look_due(self.now_ns));
                if is_down {
                    self.note_heard(id);
                }
                if is_look_due {
                    self.look_at_path(id);
                }
            }
        }
        self.faces.keep_list(touched);
        self.faceless.publish();
        self.schedule_rest();
    }

    /// Writes a stream face's queue; closes the face if its connection has failed.
    pub(super) fn flush_face(&mut self, id: FaceId) {
        if let Some(reason) = self.write_queued(id) {
            self.close(id, reason);
        }
    }

    /// Writes a stream face's queue; returns why its connection has failed, if it has.
    pub(super) fn write_queued(&mut self, id: FaceId) -> Option<CloseReason> {
        let Channel::Stream(stream) = &mut self.faces.get_mut(id)?.channel else { return None };
        self.outlet.flush_stream(&self.poller, id, stream);
        stream.failure
    }

    /// Sends a UDP socket's queue. Each datagram given up is counted on its face, which may close.
    pub(super) fn flush_datagrams(&mut self, index: usize) {
        if let Some(socket) = self.sockets.get_mut(index) {
            let before = socket.queued_bytes();
            self.outlet.flush_datagrams(&self.poller, index, socket);
            if socket.queued_bytes() < before {
                socket.kick_pause_ns = 0; // it moves
            }
        }
        let mut failed = self.outlet.take_failed();
        for (id, failure) in failed.drain(..) {
            self.note_failure(id, failure);
        }
        self.outlet.keep_list(failed);
        self.schedule_kick(index);
    }

    /// Lets a timer try again what a port of frames did not send: soon, and then with longer pauses.
    fn schedule_kick(&mut self, index: usize) {
        let Some(socket) = self.sockets.get_mut(index).filter(|socket| !socket.port.reports_room()) else { return };
        let dropped = socket.port.dropped();
        let newly_dropped = dropped - std::mem::replace(&mut socket.dropped_counted, dropped);
        self.faceless.count_drops(LinkDrop::SendFailed, newly_dropped);
        if socket.port.is_broken() {
            return self.check_peer(index);
        }
        if !socket.is_blocked && !socket.port.needs_kick() {
            socket.kick_pause_ns = 0;
            return;
        }
        if !std::mem::replace(&mut socket.has_kick_timer, true) {
            socket.kick_pause_ns = (2 * socket.kick_pause_ns).clamp(KICK_PAUSE_NS, KICK_PAUSE_MAX_NS);
            self.timers.set(self.now_ns + socket.kick_pause_ns, Timer::Kick(index));
        }
    }

    pub(super) fn run_kick_timer(&mut self, index: usize) {
        if let Some(socket) = self.sockets.get_mut(index) {
            socket.has_kick_timer = false;
            self.flush_datagrams(index);
        }
    }
}

/// The holder whose Interest a packet is; `None` if the packet answers the peer.
fn cause(headers: &LpHeaders, packet: &[u8], holder_of: HolderOf<'_>) -> Option<HolderId> {
    let is_answer = packet.first() == Some(&(types::DATA as u8)) || headers.nack.is_some();
    headers.incoming_face_id.filter(|_| !is_answer).and_then(holder_of)
}
