//! NDN over a byte stream: what Unix and TCP faces have in common.
//!
//! The stream is elements back to back; each is a bare Interest or Data or an LpPacket.
//! An element that cannot complete within 8800 octets, or a header that can never be
//! valid, closes the face, because the next boundary cannot be found (forwarding.md §5).
//! A complete element of unknown type is only dropped, unless a TCP connection begins with it:
//! an HTTP request reads as elements of unknown types (`P`, length `O`), and so every web page
//! could hide packets in what it lets a browser post to this machine's port, and speak as a
//! local application.
//!
//! ```text
//!   socket ─read─► arena: [ kept start | new octets ......... ]
//!                           └ element ┴ element ┴ elem│          the rest is kept in `input`
//! ```
//!
//! Cost: one read and one write per batch. Sending copies each packet into `output`, which
//! exists only while something is unwritten; large ones are lent, and copied only if need be.
//! A peer that does not read fills `output` to its limit; then new packets are refused and what
//! is queued stays.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use arrayvec::ArrayVec;
use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    tlv::{self, types},
};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use crate::buffer_pool::BufferPool;
use crate::socket_driver::MAX_SLICES;
use crate::{CloseReason, LinkService, Received, RxArena, RxPacket, sys};

/// Octets read from one face in its turn, at most.
///
/// N.B. a turn's fixed costs are shared by what it reads, as long as that stays in a core's
/// second-level cache (1 MiB where measured). The choice comes from throw-away runs of the whole
/// router, interleaved, with 8000-octet Data over Unix: CPU per packet with 32 KiB was 1.5 times
/// that with 128, with 64 KiB 1.1 to 1.2 times; 256 gained nothing. Small Data did not care.
const READ_OCTETS: usize = 128 << 10;

/// The same once the worker's streams keep all they may: nothing read so leaves more behind than
/// the start of an element.
const SHORT_READ_OCTETS: usize = MAX_PACKET_BYTES;

/// A connected stream socket, accepted or dialled by the router's control side.
#[derive(Debug)]
pub enum StreamSocket {
    /// A Unix socket: an application on this machine.
    Unix(UnixStream),
    /// A TCP connection.
    Tcp(TcpStream),
}

impl StreamSocket {
    /// Makes the socket fit for the driver: non-blocking, and without Nagle's delay on TCP.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        match self {
            StreamSocket::Unix(socket) => socket.set_nonblocking(true),
            StreamSocket::Tcp(socket) => {
                socket.set_nodelay(true)?;
                socket.set_nonblocking(true)
            }
        }
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            StreamSocket::Unix(socket) => (&*socket).read(buffer),
            StreamSocket::Tcp(socket) => (&*socket).read(buffer),
        }
    }

    fn write(&self, octets: &[u8]) -> io::Result<usize> {
        match self {
            StreamSocket::Unix(socket) => (&*socket).write(octets),
            StreamSocket::Tcp(socket) => (&*socket).write(octets),
        }
    }

    fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        // Not `writev`: a connection that the peer closed is to be an error and no signal.
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
    /// Nothing was read yet from a TCP connection, so that it may be of another protocol.
    may_be_foreign: bool,
    /// Octets read and not yet delivered, from `input_start`.
    input: Vec<u8>,
    input_start: usize,
    /// `input` starts with a complete element, left there because a batch was full.
    has_backlog: bool,
    /// Octets to write, from `output_start`.
    output: Vec<u8>,
    output_start: usize,
    /// The kernel refused octets; wait until it says that the socket is writable.
    pub(crate) is_blocked: bool,
    /// The connection failed while writing; the driver closes it when it can.
    pub(crate) failure: Option<CloseReason>,
}

/// How much more input the worker's streams may keep, of what they may in all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputRoom {
    /// More than half.
    Plenty,
    /// Less: who keeps an unfinished element gives the large buffer back for one of its size, or
    /// peers that fall silent in the midst of one would hold all of them.
    Little,
    /// Nothing.
    None,
}

/// How a turn of reading ended.
pub(crate) enum Turn {
    /// Nothing is left that is known of.
    Drained,
    /// More is there, or may be.
    More,
    /// The face cannot go on.
    Closed(CloseReason),
}

/// The outcome of cutting octets into elements.
struct Cut {
    /// Octets that were whole elements.
    consumed: usize,
    /// A whole element follows, but the batch is full.
    batch_is_full: bool,
    failure: Option<CloseReason>,
}

impl Stream {
    pub(crate) fn new(socket: StreamSocket) -> Self {
        Stream {
            may_be_foreign: matches!(socket, StreamSocket::Tcp(_)),
            socket,
            input: Vec::new(),
            input_start: 0,
            has_backlog: false,
            output: Vec::new(),
            output_start: 0,
            is_blocked: false,
            failure: None,
        }
    }

    /// Reads once, little if there is no `room`, and appends the packets found to `out`, up to
    /// `max_packets` in all. The arena must have room ([`RxArena::has_room`]).
    pub(crate) fn receive(
        &mut self,
        face: FaceId,
        link: &mut LinkService,
        now_ns: u64,
        batch: (&mut RxArena, &mut Vec<RxPacket>, usize),
        room: InputRoom,
        pool: &mut BufferPool,
    ) -> Turn {
        let (arena, out, max_packets) = batch;
        let base = arena.used();
        let free = arena.free_mut();
        if self.has_backlog {
            let turn = self.receive_backlog(face, link, now_ns, (arena, out, max_packets), pool);
            self.settle(room, pool);
            return turn;
        }
        let kept = self.input.len() - self.input_start;
        free[..kept].copy_from_slice(&self.input[self.input_start..]);
        // Without backlog what is kept is an unfinished element, so there is always room to read.
        let end = free.len().min(if room == InputRoom::None { SHORT_READ_OCTETS } else { kept + READ_OCTETS });
        let read = match self.socket.read(&mut free[kept..end]) {
            Ok(0) => return Turn::Closed(CloseReason::PeerClosed),
            Ok(read) => read,
            Err(error) if is_transient(&error) => return Turn::Drained,
            Err(error) => return Turn::Closed(CloseReason::Io(error.kind())),
        };
        let filled = kept + read;
        let octets = &free[..filled];
        if std::mem::take(&mut self.may_be_foreign) && !starts_packet(octets) {
            return Turn::Closed(CloseReason::ForeignProtocol);
        }
        let cut = cut_elements(face, link, now_ns, octets, base, out, max_packets);
        self.has_backlog = cut.batch_is_full;
        self.input_start = 0;
        if cut.consumed == filled {
            pool.give(&mut self.input);
        } else {
            if self.input.capacity() == 0 {
                self.input = pool.take();
            }
            self.input.clear();
            self.input.extend_from_slice(&octets[cut.consumed..]);
        }
        self.settle(room, pool);
        arena.keep_stream(cut.consumed);
        match cut.failure {
            Some(reason) => Turn::Closed(reason),
            None if self.has_backlog || filled == end => Turn::More,
            None => Turn::Drained,
        }
    }

    /// Delivers elements that were read in an earlier batch. Only what is delivered is
    /// copied, so a long backlog costs one copy in all, not one per batch.
    fn receive_backlog(
        &mut self,
        face: FaceId,
        link: &mut LinkService,
        now_ns: u64,
        batch: (&mut RxArena, &mut Vec<RxPacket>, usize),
        pool: &mut BufferPool,
    ) -> Turn {
        let (arena, out, max_packets) = batch;
        let base = arena.used();
        let backlog = &self.input[self.input_start..];
        let within = &backlog[..backlog.len().min(arena.free_mut().len())];
        let cut = cut_elements(face, link, now_ns, within, base, out, max_packets);
        arena.free_mut()[..cut.consumed].copy_from_slice(&backlog[..cut.consumed]);
        arena.keep_stream(cut.consumed);
        let cut_short = within.len() < backlog.len();
        self.has_backlog = cut.batch_is_full || cut_short;
        self.input_start += cut.consumed;
        if self.input_start == self.input.len() {
            self.input_start = 0;
            pool.give(&mut self.input);
        }
        cut.failure.map_or(Turn::More, Turn::Closed)
    }

    /// Keeps an unfinished element in a buffer of its size where room is short.
    fn settle(&mut self, room: InputRoom, pool: &mut BufferPool) {
        if room != InputRoom::Plenty && !self.has_backlog && self.input.capacity() > 2 * MAX_PACKET_BYTES {
            let unfinished = self.input[self.input_start..].to_vec();
            pool.give(&mut self.input);
            (self.input, self.input_start) = (unfinished, 0);
        }
    }

    /// Whether whole elements wait that need no reading.
    pub(crate) fn has_backlog(&self) -> bool {
        self.has_backlog
    }

    /// Memory that kept input takes, in octets.
    pub(crate) fn kept_octets(&self) -> usize {
        self.input.capacity()
    }

    /// Octets queued and not yet taken by the kernel.
    pub(crate) fn queued_octets(&self) -> usize {
        self.output.len() - self.output_start
    }

    /// Octets queued, the kernel's included.
    pub(crate) fn waiting_octets(&self) -> u64 {
        let is_tcp = matches!(self.socket, StreamSocket::Tcp(_));
        self.queued_octets() as u64 + sys::unsent_octets(self.socket.as_fd(), is_tcp)
    }

    /// Appends one frame to the queue.
    pub(crate) fn queue(&mut self, header: &[u8], slice: &[u8], pool: &mut BufferPool) {
        if self.output.capacity() == 0 {
            self.output = pool.take();
        }
        self.output.extend_from_slice(header);
        self.output.extend_from_slice(slice);
    }

    /// Writes as much as the kernel takes. Sets `is_blocked` or `failure` if it does not take all.
    pub(crate) fn flush(&mut self, pool: &mut BufferPool) {
        while self.output_start < self.output.len() {
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

    /// Writes what is queued and then `slices`, at most [`MAX_SLICES`]; queues what the kernel
    /// does not take of them.
    pub(crate) fn write_lent<'s>(&mut self, slices: impl Iterator<Item = IoSlice<'s>>, pool: &mut BufferPool) {
        let queued = self.queued_octets();
        let lent: ArrayVec<IoSlice<'s>, MAX_SLICES> = slices.collect();
        let written = {
            let first = IoSlice::new(&self.output[self.output_start..]);
            let all = std::iter::once(first).chain(lent.iter().copied());
            let all: ArrayVec<IoSlice<'_>, { MAX_SLICES + 1 }> = all.collect();
            // Of an error the flush below will know what follows from it.
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

    /// Moves what is left to the front once that is the smaller part: `output` never grows
    /// beyond twice the queue's limit, and each octet moves less than once on average.
    fn compact(&mut self) {
        if self.output_start * 2 >= self.output.len() {
            self.output.drain(..self.output_start);
            self.output_start = 0;
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Whether a packet of NDN can begin like this. The types are one octet long.
fn starts_packet(octets: &[u8]) -> bool {
    let starts = [types::INTEREST, types::DATA, types::LP_PACKET];
    octets.first().is_some_and(|&octet| starts.contains(&u32::from(octet)))
}

/// Cuts `octets` into elements and appends the packets in them, positioned as if
/// `octets` lay at `base` of the arena.
fn cut_elements(
    face: FaceId,
    link: &mut LinkService,
    now_ns: u64,
    octets: &[u8],
    base: usize,
    out: &mut Vec<RxPacket>,
    max_packets: usize,
) -> Cut {
    let mut cut = Cut { consumed: 0, batch_is_full: false, failure: None };
    loop {
        let rest = &octets[cut.consumed..];
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
        if out.len() >= max_packets {
            cut.batch_is_full = true;
            return cut;
        }
        // Fragments are refused on streams, so nothing is ever reassembled here.
        if let Ok(Received::Packet { headers, start, len }) = link.receive(now_ns, &rest[..size]) {
            out.push(RxPacket { face, headers, start: (base + cut.consumed + start) as u32, len: len as u32 });
        }
        cut.consumed += size;
    }
}
