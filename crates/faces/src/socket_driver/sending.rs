//! From packets to queues to sockets.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use namewire_packet::FaceId;
use namewire_packet::lp::LpHeaders;
use rustix::event::epoll;

use super::{Channel, DATAGRAM_TOKEN, SocketDriver};
use crate::buffer_pool::BufferPool;
use crate::datagram_socket::{DatagramSocket, Failure};
use crate::stream::Stream;
use crate::{CloseReason, DriverConfig, LinkDrop};

impl SocketDriver {
    /// Queues one network packet on `face`, with the link headers it needs;
    /// [`SocketDriver::flush`] sends it. `packet` is one Interest or Data. Queue limits are
    /// checked before the packet is added, so a queue exceeds its limit by one packet at
    /// most; a queue at its limit is flushed early if the kernel takes more. A refusal is
    /// counted.
    pub fn send(&mut self, now_ns: u64, face: FaceId, headers: &LpHeaders, packet: &[u8]) -> Result<(), LinkDrop> {
        self.now_ns = now_ns;
        let Some(face) = self.faces.get_mut(&face) else {
            self.faceless.count_drop(LinkDrop::NoSuchFace);
            return Err(LinkDrop::NoSuchFace);
        };
        if !face.is_touched {
            face.is_touched = true;
            self.touched.push(face.id);
        }
        face.look_at_queue(now_ns, &self.datagram_sockets);
        let mut outlet = Outlet {
            epoll: &self.epoll,
            pool: &mut self.pool,
            queued_octets: &mut self.queued_octets,
            config: &self.config,
        };
        let (id, link) = (face.id, &mut face.link);
        match &mut face.channel {
            Channel::Stream(stream) => {
                if let Err(reason) = outlet.make_room_on_stream(id, stream) {
                    link.count_drop(reason);
                    return Err(reason);
                }
                link.encode(now_ns, headers, packet, |header, slice| {
                    *outlet.queued_octets += header.len() + slice.len();
                    stream.queue(header, slice, outlet.pool);
                })
            }
            Channel::Datagram { socket: index, destination } => {
                let Some(Some(socket)) = self.datagram_sockets.get_mut(*index) else {
                    link.count_drop(LinkDrop::FaceDown);
                    return Err(LinkDrop::FaceDown);
                };
                let room = outlet.make_room_for_datagrams(*index, socket, &mut |face, reason| {
                    self.failed_datagrams.push((face, reason));
                });
                if let Err(reason) = room {
                    link.count_drop(reason);
                    return Err(reason);
                }
                if !socket.is_dirty {
                    socket.is_dirty = true;
                    self.dirty_sockets.push(*index);
                }
                link.encode(now_ns, headers, packet, |header, slice| {
                    *outlet.queued_octets += socket.queue(id, *destination, header, slice, outlet.pool);
                })
            }
            Channel::Down => {
                link.count_drop(LinkDrop::FaceDown);
                Err(LinkDrop::FaceDown)
            }
        }
    }

    /// Sends what was queued, one write per stream and one `sendmmsg` per 64 datagrams of a
    /// socket, and publishes the counters of every face used since the last call. What the
    /// kernel does not take now goes out in a later [`SocketDriver::wait`]. Call it once per
    /// batch, also if nothing was sent.
    pub fn flush(&mut self) {
        self.pump_touched();
        let mut dirty = std::mem::take(&mut self.dirty_sockets);
        for index in dirty.drain(..) {
            if let Some(Some(socket)) = self.datagram_sockets.get_mut(index) {
                socket.is_dirty = false;
                if !socket.is_blocked {
                    self.flush_datagrams(index);
                }
            }
        }
        self.dirty_sockets = dirty;
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            let Some(face) = self.faces.get_mut(&id) else { continue };
            face.is_touched = false;
            let flushable = matches!(&face.channel, Channel::Stream(stream) if !stream.is_blocked);
            if flushable {
                self.flush_face(id);
            }
            if let Some(face) = self.faces.get(&id) {
                face.publish();
                if face.outage.is_some() {
                    self.note_heard(id);
                }
            }
        }
        self.touched = touched;
        self.faceless_published.publish(&self.faceless);
    }

    /// Writes what a stream face has queued; closes it if its connection has failed.
    pub(super) fn flush_face(&mut self, id: FaceId) {
        if let Some(reason) = self.write_queued(id) {
            self.close(id, reason);
        }
    }

    /// Writes what a stream face has queued; returns why its connection has failed, if it has.
    pub(super) fn write_queued(&mut self, id: FaceId) -> Option<CloseReason> {
        let Channel::Stream(stream) = &mut self.faces.get_mut(&id)?.channel else { return None };
        let mut outlet = Outlet {
            epoll: &self.epoll,
            pool: &mut self.pool,
            queued_octets: &mut self.queued_octets,
            config: &self.config,
        };
        outlet.flush_stream(id, stream);
        stream.failure
    }

    /// Sends what a UDP socket has queued; each datagram given up is counted on its face, which may end
    /// by it.
    pub(super) fn flush_datagrams(&mut self, index: usize) {
        let mut failed = std::mem::take(&mut self.failed_datagrams);
        if let Some(Some(socket)) = self.datagram_sockets.get_mut(index) {
            let mut outlet = Outlet {
                epoll: &self.epoll,
                pool: &mut self.pool,
                queued_octets: &mut self.queued_octets,
                config: &self.config,
            };
            outlet.flush_datagrams(index, socket, &mut |face, reason| failed.push((face, reason)));
        }
        for (id, failure) in failed.drain(..) {
            self.note_failure(id, failure);
        }
        self.failed_datagrams = failed;
    }
}

/// What flushing one face needs of the driver, beside the face.
pub(super) struct Outlet<'a> {
    pub(super) epoll: &'a OwnedFd,
    pub(super) pool: &'a mut BufferPool,
    pub(super) queued_octets: &'a mut usize,
    pub(super) config: &'a DriverConfig,
}

impl Outlet<'_> {
    fn make_room_on_stream(&mut self, id: FaceId, stream: &mut Stream) -> Result<(), LinkDrop> {
        let limit = self.config.stream_queue_octets;
        let is_full = |queued, total| self.is_full(queued, limit, total).is_some();
        if is_full(stream.queued_octets(), *self.queued_octets) && !stream.is_blocked {
            self.flush_stream(id, stream);
        }
        if stream.failure.is_some() {
            return Err(LinkDrop::FaceDown);
        }
        let full = self.is_full(stream.queued_octets(), limit, *self.queued_octets);
        full.map_or(Ok(()), Err)
    }

    fn make_room_for_datagrams(
        &mut self,
        index: usize,
        socket: &mut DatagramSocket,
        failed: &mut dyn FnMut(FaceId, Failure),
    ) -> Result<(), LinkDrop> {
        let limit = self.config.udp_queue_octets;
        let is_full = |queued, total| self.is_full(queued, limit, total).is_some();
        if is_full(socket.queued_octets(), *self.queued_octets) && !socket.is_blocked {
            self.flush_datagrams(index, socket, failed);
        }
        let full = self.is_full(socket.queued_octets(), limit, *self.queued_octets);
        full.map_or(Ok(()), Err)
    }

    /// Why nothing more may wait in a queue of `queued` octets, where all queues have `total`. What
    /// others do not read must not silence who does: an empty queue takes a packet.
    fn is_full(&self, queued: usize, limit: usize, total: usize) -> Option<LinkDrop> {
        if queued >= limit {
            Some(LinkDrop::QueueFull)
        } else if total >= self.config.total_queue_octets && queued > 0 {
            Some(LinkDrop::QueuesFull)
        } else {
            None
        }
    }

    fn flush_stream(&mut self, id: FaceId, stream: &mut Stream) {
        self.change_stream(id, stream, |stream, pool| stream.flush(pool));
    }

    /// Writes what is queued and then `slices`.
    pub(super) fn write_lent<'s>(
        &mut self,
        id: FaceId,
        stream: &mut Stream,
        slices: impl Iterator<Item = IoSlice<'s>>,
    ) {
        self.change_stream(id, stream, |stream, pool| stream.write_lent(slices, pool));
    }

    fn change_stream(&mut self, id: FaceId, stream: &mut Stream, change: impl FnOnce(&mut Stream, &mut BufferPool)) {
        let (was_blocked, before) = (stream.is_blocked, stream.queued_octets());
        change(stream, self.pool);
        *self.queued_octets = *self.queued_octets - before + stream.queued_octets();
        if stream.is_blocked != was_blocked {
            self.watch(stream.socket.as_fd(), id.0, stream.is_blocked);
        }
    }

    fn flush_datagrams(&mut self, index: usize, socket: &mut DatagramSocket, failed: &mut dyn FnMut(FaceId, Failure)) {
        let (was_blocked, before) = (socket.is_blocked, socket.queued_octets());
        socket.flush(self.pool, failed);
        *self.queued_octets -= before - socket.queued_octets();
        if socket.is_blocked != was_blocked {
            self.watch(socket.socket.as_fd(), DATAGRAM_TOKEN | index as u64, socket.is_blocked);
        }
    }

    /// Watches a socket for input, and for room to write while it is blocked.
    fn watch(&self, socket: BorrowedFd<'_>, token: u64, is_blocked: bool) {
        let mut flags = epoll::EventFlags::IN;
        if is_blocked {
            flags |= epoll::EventFlags::OUT;
        }
        // Fails only without memory for a watch that exists already: it cannot.
        let _ = epoll::modify(self.epoll, socket, epoll::EventData::new_u64(token), flags);
    }
}
