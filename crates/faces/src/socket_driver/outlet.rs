//! The send queues: how many bytes may wait, and how they get to the kernel.
//!
//! A stream is blocked while its peer does not read. The bytes in the queues of blocked streams are a pool
//! ([`namewire_shares::pool`]), by holder. Within the limit of its holder, a stream may queue while it has less than a
//! quarter of what is left ([`PARTS_PER_STREAM`]). So 150 connections of one user that never read leave room for one
//! that reads. For bytes that a flush will write within the turn, the only limit is the sum of all queues. Within the
//! queue of one stream, the holders of the waiting Interests take turns. If the queue is full, the holder with the most
//! bytes in it makes room.
//!
//! The faces of a listener have one queue, which is blocked only if the network takes nothing. Then it is shared among
//! holders in the same way (`datagram_socket.rs`).

use std::io::IoSlice;

use namewire_packet::FaceId;
use namewire_shares::{Groups, HolderId, Pool, PoolReader, Refusal};

use super::poller::{Poller, Source};
use crate::buffer_pool::BufferPool;
use crate::datagram_port::DatagramPort;
use crate::datagram_socket::{DatagramSocket, Failure, Peers, Sender};
use crate::stream::Stream;
use crate::{DriverConfig, LinkDrop};

/// A blocked stream may queue a packet while it has less than this part of what its holder may still take.
const PARTS_PER_STREAM: u64 = 4;

/// What waits for an application that shares memory, beside its ring. Its queue counts for no holder, so it is small.
const APPLICATION_QUEUE_BYTES: usize = 64 << 10;

/// The queues of all sockets of a worker.
pub(super) struct Outlet {
    /// Buffers for queues, and for kept input.
    pub(super) pool: BufferPool,
    queued_bytes: usize,
    /// Bytes in the queues of blocked streams.
    waiting: Pool,
    groups: Groups,
    /// Refused datagrams, and reports, to be counted on their faces.
    failed: Vec<(FaceId, Failure)>,
    /// Link headers of the last [`super::Lent`], whose memory the next one reuses.
    pub(super) lent_headers: Vec<u8>,
    stream_limit_bytes: usize,
    socket_limit_bytes: usize,
    total_limit_bytes: usize,
}

impl Outlet {
    pub(super) fn new(config: &DriverConfig) -> Self {
        Outlet {
            pool: BufferPool::default(),
            queued_bytes: 0,
            waiting: config.pool("send-queues", config.total_queue_bytes),
            groups: config.holders.groups().clone(),
            failed: Vec::new(),
            lent_headers: Vec::new(),
            stream_limit_bytes: config.stream_queue_bytes,
            socket_limit_bytes: config.udp_queue_bytes,
            total_limit_bytes: config.total_queue_bytes,
        }
    }

    /// Bytes that wait in all queues.
    pub(super) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// The pool, for reports.
    pub(super) fn waiting(&self) -> PoolReader {
        self.waiting.reader()
    }

    /// Stops counting the queue of a stream, which is being removed.
    pub(super) fn forget_stream(&mut self, stream: &Stream) {
        self.queued_bytes -= stream.queued_bytes();
        self.waiting.give_back(stream.holder, stream.waiting_counted);
    }

    /// Stops counting a queue of this length, which was removed.
    pub(super) fn forget_queued(&mut self, bytes: usize) {
        self.queued_bytes -= bytes;
    }

    /// Queues a frame on a stream. `cause`: the holder whose Interest it is; `None` for answers to the peer.
    #[inline]
    pub(super) fn queue_on_stream(
        &mut self,
        stream: &mut Stream,
        cause: Option<HolderId>,
        header: &[u8],
        slice: &[u8],
    ) {
        let bytes = header.len() + slice.len();
        self.queued_bytes += bytes;
        if !stream.is_blocked {
            return stream.queue(header, slice, &mut self.pool);
        }
        self.waiting.take(stream.holder, bytes as u64);
        stream.waiting_counted += bytes as u64;
        stream.queue_behind(cause, header, slice, &self.groups, &mut self.pool);
    }

    /// Queues a datagram of `face`, and returns how many bytes it takes. The caller marks the socket dirty.
    #[inline]
    pub(super) fn queue_datagram(
        &mut self,
        socket: &mut DatagramSocket,
        sender: Sender,
        header: &[u8],
        slice: &[u8],
    ) -> usize {
        let bytes = socket.queue(sender, header, slice, &mut self.pool);
        self.queued_bytes += bytes;
        bytes
    }

    /// Makes room for a packet on a stream, or returns why there is none.
    pub(super) fn make_room_on_stream(
        &mut self,
        poller: &Poller,
        id: FaceId,
        stream: &mut Stream,
    ) -> Result<(), LinkDrop> {
        if self.is_full(stream.queued_bytes(), self.stream_limit_bytes).is_err() && !stream.is_blocked {
            self.flush_stream(poller, id, stream);
        }
        if stream.failure.is_some() {
            return Err(LinkDrop::FaceDown);
        }
        if stream.is_blocked && !self.has_share(stream) {
            return Err(LinkDrop::QueueShare);
        }
        self.is_full(stream.queued_bytes(), self.stream_limit_bytes)
    }

    /// Makes room for a packet of so many bytes on a stream that has none, by what other holders have more there.
    /// Returns how many frames were dropped, and whether there is room now.
    #[cold]
    pub(super) fn displace(
        &mut self,
        stream: &mut Stream,
        cause: HolderId,
        bytes: usize,
        reason: LinkDrop,
    ) -> (u64, bool) {
        let (frames, freed) = stream.displace(cause, bytes);
        self.queued_bytes -= freed;
        self.waiting.give_back(stream.holder, freed as u64);
        stream.waiting_counted -= freed as u64;
        if freed < bytes && reason == LinkDrop::QueueShare {
            self.waiting.count_refusal(stream.holder, Refusal::ShareUsed);
        }
        (frames, freed >= bytes)
    }

    /// Whether a blocked stream may queue more. An empty queue takes a packet in any case.
    fn has_share(&self, stream: &Stream) -> bool {
        let queued = stream.queued_bytes() as u64;
        queued == 0 || queued * PARTS_PER_STREAM < self.waiting.room(stream.holder)
    }

    /// Makes room for a datagram of `holder`, or returns why there is none.
    pub(super) fn make_room_for_datagrams(
        &mut self,
        poller: &Poller,
        index: usize,
        socket: &mut DatagramSocket,
        holder: HolderId,
    ) -> Result<(), LinkDrop> {
        if socket.is_blocked && !socket.has_share(holder) {
            return Err(LinkDrop::QueueShare);
        }
        let limit_bytes = match socket.peers {
            Peers::Application { .. } => self.socket_limit_bytes.min(APPLICATION_QUEUE_BYTES),
            _ => self.socket_limit_bytes,
        };
        if self.is_full(socket.queued_bytes(), limit_bytes).is_err() && !socket.is_blocked {
            self.flush_datagrams(poller, index, socket);
        }
        self.is_full(socket.queued_bytes(), limit_bytes)
    }

    /// Whether a stream has room for frames that no caller requested: Acks and retransmissions.
    pub(super) fn stream_has_room(&self, stream: &Stream) -> bool {
        stream.queued_bytes() < self.stream_limit_bytes
    }

    /// The same for a datagram socket.
    pub(super) fn socket_has_room(&self, socket: &DatagramSocket) -> bool {
        socket.queued_bytes() < self.socket_limit_bytes
    }

    /// True for a stream that probably takes bytes now, and could queue `lent_bytes` and one more packet if it does
    /// not.
    pub(super) fn takes_lent(&self, stream: &Stream, lent_bytes: usize) -> bool {
        !stream.is_blocked
            && stream.failure.is_none()
            && stream.queued_bytes() + lent_bytes < self.stream_limit_bytes
            && self.queued_bytes + lent_bytes < self.total_limit_bytes
    }

    /// Why nothing more may wait in a queue of `queued` bytes. A face that does not read must not block another one: an
    /// empty queue takes a packet even if all queues together are full.
    fn is_full(&self, queued: usize, limit: usize) -> Result<(), LinkDrop> {
        if queued >= limit {
            Err(LinkDrop::QueueFull)
        } else if self.queued_bytes >= self.total_limit_bytes && queued > 0 {
            Err(LinkDrop::QueuesFull)
        } else {
            Ok(())
        }
    }

    /// Writes a stream's queue.
    pub(super) fn flush_stream(&mut self, poller: &Poller, id: FaceId, stream: &mut Stream) {
        self.change_stream(poller, id, stream, |stream, pool| stream.flush(pool));
    }

    /// Writes a stream's queue and then `slices`.
    pub(super) fn write_lent<'s>(
        &mut self,
        poller: &Poller,
        id: FaceId,
        stream: &mut Stream,
        slices: impl Iterator<Item = IoSlice<'s>>,
    ) {
        self.change_stream(poller, id, stream, |stream, pool| stream.write_lent(slices, pool));
    }

    fn change_stream(
        &mut self,
        poller: &Poller,
        id: FaceId,
        stream: &mut Stream,
        change: impl FnOnce(&mut Stream, &mut BufferPool),
    ) {
        let (was_blocked, before) = (stream.is_blocked, stream.queued_bytes());
        change(stream, &mut self.pool);
        self.queued_bytes = self.queued_bytes - before + stream.queued_bytes();
        let counted = if stream.is_blocked { stream.queued_bytes() as u64 } else { 0 };
        if counted != stream.waiting_counted {
            self.waiting.give_back(stream.holder, stream.waiting_counted);
            self.waiting.take(stream.holder, counted);
            stream.waiting_counted = counted;
        }
        if stream.is_blocked != was_blocked {
            poller.watch_stream(stream, id);
        }
    }

    /// Sends a socket's queue. [`Outlet::take_failed`] returns what was given up.
    pub(super) fn flush_datagrams(&mut self, poller: &Poller, index: usize, socket: &mut DatagramSocket) {
        let (was_blocked, before) = (socket.is_blocked, socket.queued_bytes());
        socket.flush(&mut self.pool, |face, failure| self.failed.push((face, failure)));
        self.queued_bytes -= before - socket.queued_bytes();
        if socket.is_blocked != was_blocked
            && let DatagramPort::Socket(descriptor) = &socket.port
        {
            poller.watch_room(descriptor, Source::Datagrams(index), socket.is_blocked);
        }
    }

    /// What sockets gave up since the last call. [`Outlet::keep_list`] takes the list's memory back.
    pub(super) fn take_failed(&mut self) -> Vec<(FaceId, Failure)> {
        std::mem::take(&mut self.failed)
    }

    /// Keeps the memory of an empty list.
    pub(super) fn keep_list(&mut self, empty: Vec<(FaceId, Failure)>) {
        self.failed = empty;
    }
}
