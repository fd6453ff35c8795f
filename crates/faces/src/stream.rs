//! NDN over a byte stream: the common part of Unix and TCP faces.
//!
//! The stream is a sequence of elements; each is a bare Interest or Data, or an LpPacket. An element that cannot be
//! complete within 8800 bytes, or a header that can never become valid, closes the face: the next boundary cannot be
//! found (forwarding.md §5). A complete element of unknown type is only dropped, unless a TCP connection begins with
//! it. An HTTP request reads as elements of unknown types (`P`, length `O`). A web page could therefore hide packets in
//! a request that the browser posts to this machine's port, and act as a local application.
//!
//! ```text
//!   socket ─read─► arena: [ kept start | new bytes ......... ]
//!                           └ element ┴ element ┴ elem│          the rest is kept in `input`
//! ```
//!
//! Cost: a batch takes one read and one write. Sending copies each packet into `output`, which exists only while it has
//! unwritten bytes. Large packets are lent, and copied only if the kernel does not take them. If a peer does not read,
//! `output` fills up. If Interests wait, a queue behind `output` fills up, in which their holders take turns
//! (`fair_queue.rs`).

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use arrayvec::ArrayVec;
use namewire_links::{LinkService, Received};
use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    lp::LpHeaders,
    tlv::{self, types},
};
use namewire_shares::{Groups, HolderId};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use crate::buffer_pool::BufferPool;
use crate::fair_queue::FairQueue;
use crate::rx_arena::RxBatch;
use crate::{CloseReason, RxPacket, sys};

/// Slices that can be lent to a stream at once.
pub(crate) const MAX_SLICES: usize = 128;

/// Most bytes read from one face in its turn.
///
/// N.B. the fixed costs of a turn are shared by the bytes it reads, while these fit a core's second-level cache (1 MiB
/// where measured). The choice comes from throw-away runs of the whole router, interleaved, with 8000-byte Data over
/// Unix. CPU per packet was 1.5 times as high with 32 KiB as with 128, and 1.1 to 1.2 times with 64 KiB; 256 gained
/// nothing. Small Data made no difference.
const READ_BYTES: usize = 128 << 10;

/// The same once the worker's streams keep as much as they may: such a read leaves at most the start of an element
/// behind.
const SHORT_READ_BYTES: usize = MAX_PACKET_BYTES;

/// Bytes taken at a time from the queue behind the output: what holders that join wait for.
const REFILL_BYTES: usize = 64 << 10;

/// A connected stream socket, accepted or dialled by the router's control side.
#[derive(Debug)]
pub enum StreamSocket {
    /// A Unix socket: an application on this machine.
    Unix(UnixStream),
    /// A TCP connection.
    Tcp(TcpStream),
}

impl StreamSocket {
    /// Prepares the socket for the driver: non-blocking, and without Nagle's delay on TCP.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        match self {
            StreamSocket::Unix(socket) => socket.set_nonblocking(true),
            StreamSocket::Tcp(socket) => {
                socket.set_nodelay(true)?;
                socket.set_nonblocking(true)
            }
        }
    }

    /// Another descriptor of the same connection.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        Ok(match self {
            StreamSocket::Unix(socket) => StreamSocket::Unix(socket.try_clone()?),
            StreamSocket::Tcp(socket) => StreamSocket::Tcp(socket.try_clone()?),
        })
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            StreamSocket::Unix(socket) => (&*socket).read(buffer),
            StreamSocket::Tcp(socket) => (&*socket).read(buffer),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            StreamSocket::Unix(socket) => (&*socket).write(bytes),
            StreamSocket::Tcp(socket) => (&*socket).write(bytes),
        }
    }

    fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        // Not `writev`: writing to a connection that the peer closed must return an error, not raise a signal.
        Ok(sendmsg(self, slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?)
    }
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            StreamSocket::Unix(socket) => socket.as_fd(),
            StreamSocket::Tcp(socket) => socket.as_fd(),
        }
    }
}

/// The stream half of a face.
pub(crate) struct Stream {
    pub(crate) socket: StreamSocket,
    /// Nothing was read yet from a TCP connection: it may be of another protocol.
    may_be_foreign: bool,
    /// Bytes read and not yet delivered, from `input_start`.
    input: Vec<u8>,
    input_start: usize,
    /// `input` starts with a complete element, left there because a turn was over.
    has_backlog: bool,
    /// Bytes to write, from `output_start`.
    output: Vec<u8>,
    output_start: usize,
    /// What waits behind `output`, while the kernel takes no more.
    behind: Option<Box<FairQueue>>,
    /// The kernel refused bytes; wait until it says that the socket is writable.
    pub(crate) is_blocked: bool,
    /// It is not read: its packets have no way on.
    pub(crate) is_held: bool,
    /// It has turns to come, and is not watched for input until they have drained it.
    pub(crate) is_muted: bool,
    /// Whose share of the send queues it uses.
    pub(crate) holder: HolderId,
    /// Bytes of its queue that are counted as waiting for the peer.
    pub(crate) waiting_counted: u64,
    /// The connection failed while writing; the driver closes it when it can.
    pub(crate) failure: Option<CloseReason>,
}

/// What a stream holds beside its socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamRest {
    /// Nothing was read yet: a TCP connection may be of another protocol.
    pub is_new: bool,
    /// Input that is not delivered.
    pub input: Vec<u8>,
    /// The input starts with a complete element.
    pub has_backlog: bool,
    /// Output that the kernel has not taken.
    pub output: Vec<u8>,
}

/// How much more input the worker's streams may keep, compared with their limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputRoom {
    /// More than half.
    Plenty,
    /// Less. A stream with an unfinished element then swaps its large buffer for one of the element's size; otherwise
    /// peers that fall silent in the middle of an element would hold all large buffers.
    Little,
    /// Nothing.
    None,
}

/// The end of a turn of reading.
pub(crate) enum Turn {
    /// No more input is known of.
    Drained,
    /// More input is there, or may be.
    More,
    /// The face cannot go on.
    Closed(CloseReason),
}

/// The result of cutting bytes into elements.
struct Cut {
    /// Bytes that were whole elements.
    consumed: usize,
    /// A whole element follows, but the turn is over.
    turn_is_over: bool,
    failure: Option<CloseReason>,
}

impl Stream {
    pub(crate) fn new(socket: StreamSocket, holder: HolderId) -> Self {
        Stream {
            may_be_foreign: matches!(socket, StreamSocket::Tcp(_)),
            socket,
            input: Vec::new(),
            input_start: 0,
            has_backlog: false,
            output: Vec::new(),
            output_start: 0,
            behind: None,
            is_blocked: false,
            is_held: false,
            is_muted: false,
            holder,
            waiting_counted: 0,
            failure: None,
        }
    }

    /// What another process needs to go on with this stream: whether nothing was read yet, the input that is not
    /// delivered, and the output that the kernel has not taken. The stream stays as it is, but for the order in which
    /// its output waits.
    pub(crate) fn rest(&mut self) -> StreamRest {
        while let Some(behind) = &mut self.behind {
            let before = self.output.len();
            behind.take(REFILL_BYTES, &mut self.output);
            if self.output.len() == before {
                self.behind = None;
            }
        }
        StreamRest {
            is_new: self.may_be_foreign,
            input: self.input[self.input_start..].to_vec(),
            has_backlog: self.has_backlog,
            output: self.output[self.output_start..].to_vec(),
        }
    }

    /// Goes on with a stream of another process. Its output is queued by the caller.
    pub(crate) fn resume(&mut self, rest: &StreamRest) {
        self.may_be_foreign &= rest.is_new;
        self.input.extend_from_slice(&rest.input);
        self.has_backlog = rest.has_backlog;
    }

    /// Reads once, little if there is no `room`, and appends the packets found to the batch, at most as many as its
    /// turn has left. The batch must have room ([`RxBatch::has_room`]).
    pub(crate) fn receive(
        &mut self,
        face: FaceId,
        link: &mut LinkService,
        now_ns: u64,
        batch: &mut RxBatch<'_>,
        room: InputRoom,
        pool: &mut BufferPool,
    ) -> Turn {
        if self.has_backlog {
            let turn = self.receive_backlog(face, link, now_ns, batch, pool);
            self.settle(room, pool);
            return turn;
        }
        let base = batch.arena.used();
        let free = batch.arena.free_mut();
        let kept = self.input.len() - self.input_start;
        free[..kept].copy_from_slice(&self.input[self.input_start..]);
        // Without backlog, the kept bytes are an unfinished element, so there is always room to read.
        let end = free.len().min(if room == InputRoom::None { SHORT_READ_BYTES } else { kept + READ_BYTES });
        let read = match self.socket.read(&mut free[kept..end]) {
            Ok(0) => return Turn::Closed(CloseReason::PeerClosed),
            Ok(read) => read,
            Err(error) if is_transient(&error) => return Turn::Drained,
            Err(error) => return Turn::Closed(CloseReason::Io(error.kind())),
        };
        let filled = kept + read;
        let bytes = &free[..filled];
        if std::mem::take(&mut self.may_be_foreign) && !starts_packet(bytes) {
            return Turn::Closed(CloseReason::ForeignProtocol);
        }
        let cut = cut_elements(face, link, now_ns, bytes, base, batch.packets, &mut batch.left);
        self.has_backlog = cut.turn_is_over;
        self.input_start = 0;
        if cut.consumed == filled {
            pool.give(&mut self.input);
        } else {
            if self.input.capacity() == 0 {
                self.input = pool.take();
            }
            self.input.clear();
            self.input.extend_from_slice(&bytes[cut.consumed..]);
        }
        self.settle(room, pool);
        batch.arena.keep_stream(cut.consumed);
        match cut.failure {
            Some(reason) => Turn::Closed(reason),
            None if self.has_backlog || filled == end => Turn::More,
            None => Turn::Drained,
        }
    }

    /// Delivers elements that were read in an earlier batch. It copies only what it delivers, so a long backlog costs
    /// one copy in all, not one per batch.
    fn receive_backlog(
        &mut self,
        face: FaceId,
        link: &mut LinkService,
        now_ns: u64,
        batch: &mut RxBatch<'_>,
        pool: &mut BufferPool,
    ) -> Turn {
        let RxBatch { arena, packets, left, .. } = batch;
        let base = arena.used();
        let backlog = &self.input[self.input_start..];
        let within = &backlog[..backlog.len().min(arena.free_mut().len())];
        let cut = cut_elements(face, link, now_ns, within, base, packets, left);
        arena.free_mut()[..cut.consumed].copy_from_slice(&backlog[..cut.consumed]);
        arena.keep_stream(cut.consumed);
        let cut_short = within.len() < backlog.len();
        self.has_backlog = cut.turn_is_over || cut_short;
        self.input_start += cut.consumed;
        if self.input_start == self.input.len() {
            self.input_start = 0;
            pool.give(&mut self.input);
        }
        cut.failure.map_or(Turn::More, Turn::Closed)
    }

    /// Moves an unfinished element into a buffer of its size where room is short.
    fn settle(&mut self, room: InputRoom, pool: &mut BufferPool) {
        if room != InputRoom::Plenty && !self.has_backlog && self.input.capacity() > 2 * MAX_PACKET_BYTES {
            let unfinished = self.input[self.input_start..].to_vec();
            pool.give(&mut self.input);
            (self.input, self.input_start) = (unfinished, 0);
        }
    }

    /// Whether whole elements are already read.
    pub(crate) fn has_backlog(&self) -> bool {
        self.has_backlog
    }

    /// Memory of kept input, in bytes.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.input.capacity()
    }

    /// Bytes queued and not yet taken by the kernel.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.output.len() - self.output_start + self.behind.as_ref().map_or(0, |behind| behind.bytes())
    }

    /// Bytes queued, the kernel's included.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let is_tcp = matches!(self.socket, StreamSocket::Tcp(_));
        self.queued_bytes() as u64 + sys::unsent_bytes(self.socket.as_fd(), is_tcp)
    }

    /// Appends one frame to the queue.
    pub(crate) fn queue(&mut self, header: &[u8], slice: &[u8], pool: &mut BufferPool) {
        if self.output.capacity() == 0 {
            self.output = pool.take();
        }
        if !header.is_empty() {
            self.output.extend_from_slice(header);
        }
        self.output.extend_from_slice(slice);
    }

    /// Appends one frame to the queue of a blocked stream. `cause`: the holder whose Interest it is; `None` for answers
    /// to the peer.
    pub(crate) fn queue_behind(
        &mut self,
        cause: Option<HolderId>,
        header: &[u8],
        slice: &[u8],
        groups: &Groups,
        pool: &mut BufferPool,
    ) {
        if cause.is_none() && self.behind.is_none() {
            return self.queue(header, slice, pool);
        }
        let behind = self.behind.get_or_insert_with(|| Box::new(FairQueue::new(groups)));
        behind.push(cause.unwrap_or(self.holder), header, slice);
    }

    /// Drops queued frames to make room for `bytes` that `cause` brings, newest first, each of the holder that has
    /// most. Returns how many frames and bytes; the latter are fewer than `bytes` if no holder has more than `cause`.
    pub(crate) fn displace(&mut self, cause: HolderId, bytes: usize) -> (u64, usize) {
        let (mut frames, mut freed) = (0, 0);
        while freed < bytes
            && let Some(more) = self.behind.as_mut().and_then(|behind| behind.displace(cause))
        {
            (frames, freed) = (frames + 1, freed + more);
        }
        (frames, freed)
    }

    /// Writes as much as the kernel takes. Sets `is_blocked` or `failure` if it does not take all.
    pub(crate) fn flush(&mut self, pool: &mut BufferPool) {
        while self.output_start < self.output.len() || self.refill() {
            match self.socket.write(&self.output[self.output_start..]) {
                Ok(0) => {
                    self.failure = Some(CloseReason::PeerClosed);
                    break;
                }
                Ok(written) => self.output_start += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    self.compact();
                    return;
                }
                Err(error) => {
                    self.failure = Some(CloseReason::Io(error.kind()));
                    break;
                }
            }
        }
        self.is_blocked = false;
        self.output_start = 0;
        pool.give(&mut self.output);
    }

    /// Writes the queue and then `slices`, at most [`MAX_SLICES`]; queues what the kernel does not take of them.
    pub(crate) fn write_lent<'s>(&mut self, slices: impl Iterator<Item = IoSlice<'s>>, pool: &mut BufferPool) {
        let queued = self.queued_bytes();
        let lent: ArrayVec<IoSlice<'s>, MAX_SLICES> = slices.collect();
        let written = {
            let first = IoSlice::new(&self.output[self.output_start..]);
            let all = std::iter::once(first).chain(lent.iter().copied());
            let all: ArrayVec<IoSlice<'_>, { MAX_SLICES + 1 }> = all.collect();
            // The flush below handles any error.
            self.socket.write_vectored(&all).unwrap_or(0)
        };
        self.output_start += written.min(queued);
        let mut taken = written.saturating_sub(queued);
        for slice in lent {
            let whole = taken.min(slice.len());
            taken -= whole;
            if whole < slice.len() {
                self.queue(&[], &slice[whole..], pool);
            }
        }
        self.flush(pool);
    }

    /// Moves some of what waits behind the output, which is all written, into it. False: nothing waits there.
    fn refill(&mut self) -> bool {
        let Some(behind) = &mut self.behind else { return false };
        self.output_start = 0;
        self.output.clear();
        behind.take(REFILL_BYTES, &mut self.output);
        if self.output.is_empty() {
            self.behind = None;
        }
        !self.output.is_empty()
    }

    /// Moves the remaining bytes to the front once they are the smaller part: `output` never grows beyond twice the
    /// queue's limit, and each byte moves less than once on average.
    fn compact(&mut self) {
        if self.output_start * 2 >= self.output.len() {
            self.output.drain(..self.output_start);
            self.output_start = 0;
        }
    }
}

/// The first byte of a type number of three bytes.
const TAG_PACKET_BYTE: u32 = 253;

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Whether a packet can begin like this. The types of NDN are one byte long, those of TagNet three.
fn starts_packet(bytes: &[u8]) -> bool {
    let starts = [types::INTEREST, types::DATA, types::LP_PACKET, TAG_PACKET_BYTE];
    bytes.first().is_some_and(|&byte| starts.contains(&u32::from(byte)))
}

/// Cuts `bytes` into elements, at most `left`, and appends the packets in them, positioned as if `bytes` lay at `base`
/// of the arena. Elements without a packet count, too, because they take time.
fn cut_elements(
    face: FaceId,
    link: &mut LinkService,
    now_ns: u64,
    bytes: &[u8],
    base: usize,
    out: &mut Vec<RxPacket>,
    left: &mut usize,
) -> Cut {
    let mut cut = Cut { consumed: 0, turn_is_over: false, failure: None };
    loop {
        let rest = &bytes[cut.consumed..];
        let size = match tlv::element_size(rest) {
            Ok(Some(size)) => size,
            Ok(None) => return cut,
            Err(_) => {
                cut.failure = Some(CloseReason::MalformedElement);
                return cut;
            }
        };
        if size > MAX_PACKET_BYTES {
            cut.failure = Some(CloseReason::OversizeElement);
            return cut;
        }
        if size > rest.len() {
            return cut;
        }
        let Some(left_after) = left.checked_sub(1) else {
            cut.turn_is_over = true;
            return cut;
        };
        *left = left_after;
        let (frame, at) = (&rest[..size], base + cut.consumed);
        if link.receive_bare(frame) {
            let (start, len) = (at as u32, size as u32);
            out.push(RxPacket { face, headers: LpHeaders::default(), start, len, is_paid: false });
        } else if let Ok(Received::Packet { headers, start, len }) = link.receive(now_ns, frame) {
            // Fragments are refused on streams, so nothing is ever reassembled here.
            out.push(RxPacket { face, headers, start: (at + start) as u32, len: len as u32, is_paid: false });
        }
        cut.consumed += size;
    }
}
