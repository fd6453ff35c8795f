//! The ring that an end sends into.
//!
//! A client fills its own buffers of S2M in order and shows them by head. A server fills the buffers that the client
//! gave in M2S up to head, and shows them by tail. Frames are queued first, and shown all at once.
//!
//! A server reads each descriptor once and writes only into a buffer that is wholly in a region. If the buffer is not,
//! or is empty, the ring is *broken*: the server cannot skip a slot. A client remembers where its buffers are and
//! ignores the offsets in the shared memory.

use std::sync::atomic::{Ordering, fence};

use crate::region::Part;
use crate::ring::{Descriptor, Index, Ring};
use crate::{Broken, FRAME_BYTES_MAX};

/// Where a client has the buffers of one ring: one for each slot, in region 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffers {
    /// Bytes from the start of the region to the first buffer.
    pub(crate) offset: u32,
    /// Bytes from the start of a buffer to the next.
    pub(crate) stride: u32,
    /// Bytes of a buffer.
    pub(crate) bytes: u32,
}

impl Buffers {
    /// The buffer of a slot.
    pub(crate) fn part(&self, slot: u16) -> Part {
        Part { region: 0, offset: self.offset + self.stride * u32::from(slot), bytes: self.bytes }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct TransmitRing {
    ring: Ring,
    /// `None`: as a server.
    own: Option<Buffers>,
    /// Index of the next entry.
    next: u16,
    /// The index that the peer knows.
    shown: u16,
    /// Index up to which entries are free, as known last.
    limit: u16,
    /// Entries written since the connection was made.
    written: u64,
    /// Length of the client's first buffer when the connection was made.
    buffer_bytes: u32,
    broken: Option<Broken>,
    /// The buffers of the frame in work.
    chain: Box<[Part]>,
}

impl TransmitRing {
    /// As a server. Clients write the lengths of empty buffers before they connect.
    pub(crate) fn of_server(ring: Ring) -> Self {
        let next = ring.load(Index::Tail);
        let buffer_bytes = ring.read(next).part.bytes.min(FRAME_BYTES_MAX as u32);
        Self::new(ring, None, next, next, buffer_bytes)
    }

    /// As a client.
    pub(crate) fn of_client(ring: Ring, own: Buffers) -> Self {
        let next = ring.load(Index::Head);
        let limit = next.wrapping_add(ring.slots());
        Self::new(ring, Some(own), next, limit, own.bytes)
    }

    fn new(ring: Ring, own: Option<Buffers>, next: u16, limit: u16, buffer_bytes: u32) -> Self {
        let chain = vec![Part::default(); usize::from(ring.slots())].into();
        TransmitRing { ring, own, next, shown: next, limit, written: 0, buffer_bytes, broken: None, chain }
    }

    pub(crate) fn broken(&self) -> Option<Broken> {
        self.broken
    }

    pub(crate) fn buffer_bytes(&self) -> u32 {
        self.buffer_bytes
    }

    /// The index up to which entries are free, from the peer. `None` if it cannot be.
    fn load_limit(&self) -> Option<u16> {
        let limit = match self.own {
            Some(_) => self.ring.load(Index::Tail).wrapping_add(self.ring.slots()),
            None => self.ring.load(Index::Head),
        };
        (limit.wrapping_sub(self.next) <= self.ring.slots()).then_some(limit)
    }

    /// Entries free now.
    pub(crate) fn room(&self) -> u16 {
        match self.load_limit() {
            Some(limit) if self.broken.is_none() => limit.wrapping_sub(self.next),
            _ => 0,
        }
    }

    /// Entries written that the peer has not given back.
    pub(crate) fn waiting(&self) -> u16 {
        let Some(limit) = self.load_limit().filter(|_| self.broken.is_none()) else { return 0 };
        let used = self.ring.slots() - limit.wrapping_sub(self.next);
        used.min(u16::try_from(self.written).unwrap_or(u16::MAX))
    }

    /// See [`Port::send`](crate::Port::send).
    pub(crate) fn send(&mut self, parts: &[&[u8]]) -> bool {
        let bytes = parts.iter().try_fold(0usize, |bytes, part| bytes.checked_add(part.len()));
        let Some(bytes) = bytes.filter(|bytes| *bytes <= FRAME_BYTES_MAX) else { return false };
        let Some(count) = self.choose(bytes) else { return false };
        self.write(parts, count);
        true
    }

    /// Puts the next free buffers, as many as this many bytes need, into `chain`. `None` if they are not free now.
    fn choose(&mut self, bytes: usize) -> Option<u16> {
        let (mut count, mut bytes_of_buffers) = (0, 0);
        while bytes_of_buffers < bytes || count == 0 {
            let index = self.next.wrapping_add(count);
            if index == self.limit {
                self.limit = self.load_limit().or_else(|| self.fail("index of a ring is out of range"))?;
                if index == self.limit {
                    return None;
                }
            }
            let part = self.buffer(index)?;
            bytes_of_buffers += part.bytes as usize;
            // The chain is as long as the ring, and `limit` is at most a ring ahead of `next`.
            *self.chain.get_mut(usize::from(count))? = part;
            count += 1;
        }
        Some(count)
    }

    /// The empty buffer of an entry, checked.
    #[inline]
    fn buffer(&mut self, index: u16) -> Option<Part> {
        if let Some(own) = self.own {
            return Some(own.part(index & (self.ring.slots() - 1)));
        }
        let Part { region, offset, bytes } = self.ring.read(index).part;
        let part = Part { region, offset, bytes: bytes.min(FRAME_BYTES_MAX as u32) };
        if part.bytes == 0 || self.broken.is_some() || self.ring.memory().span(part).is_none() {
            return self.fail("a buffer is not within its region, or empty");
        }
        Some(part)
    }

    #[cold]
    fn fail<T>(&mut self, reason: &'static str) -> Option<T> {
        self.broken.get_or_insert(Broken(reason));
        None
    }

    /// Copies the parts into the chosen buffers and writes their descriptors.
    fn write(&mut self, parts: &[&[u8]], count: u16) {
        let mut parts = parts.iter();
        let mut rest: &[u8] = &[];
        for (ahead, buffer) in (0..count).zip(&self.chain) {
            let Some(mut span) = self.ring.memory().span(*buffer) else { break };
            let buffer_bytes = span.len();
            while span.len() > 0 {
                if rest.is_empty() {
                    let Some(part) = parts.next() else { break };
                    rest = part;
                }
                let left = span.copy_from(rest);
                span = span.skip(rest.len() - left.len());
                rest = left;
            }
            let part = Part { bytes: (buffer_bytes - span.len()) as u32, ..*buffer };
            let descriptor = Descriptor { part, has_next: ahead + 1 < count };
            let index = self.next.wrapping_add(ahead);
            match self.own {
                Some(_) => self.ring.write(index, descriptor),
                None => self.ring.write_length(index, descriptor),
            }
        }
        self.next = self.next.wrapping_add(count);
        self.written += u64::from(count);
    }

    /// Shows the entries to the peer. True if it wants the doorbell.
    pub(crate) fn show(&mut self) -> bool {
        if self.next == self.shown {
            return false;
        }
        let index = if self.own.is_some() { Index::Head } else { Index::Tail };
        self.ring.store(index, self.next);
        self.shown = self.next;
        // The peer unmasks, then looks at the index; we write the index, then look at the mask. With a full fence on
        // both sides, at least one sees the other's write.
        fence(Ordering::SeqCst);
        !self.ring.is_masked()
    }
}
