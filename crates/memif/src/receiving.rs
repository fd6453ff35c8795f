//! The ring that an end receives from.
//!
//! A server takes frames from S2M up to head and gives the slots back by tail. A client takes frames from M2S up to
//! tail, resets their descriptors to those of empty buffers, and gives them back by head. Both read the peer's index
//! once and write their own once per call.
//!
//! A descriptor is used only after a check: its bytes are in a region, the frame has at most 65,535 bytes, and its last
//! buffer is before the peer's index. A frame that breaks this is skipped and counted. If the peer's index is more than
//! a ring ahead, no entry can be trusted: the ring is *broken*, and gives no frame.
//!
//! N.B. A server removes the mark "goes on" from descriptors that it has taken. DPDK 22.11 never removes it on its fast
//! path, so that the next short frame in such a slot would seem to go on.

use crate::region::{Memory, Part, Span};
use crate::ring::{Descriptor, Index, Ring};
use crate::{Broken, FRAME_BYTES_MAX};

/// Descriptors read, and payloads asked for, ahead of the frame in work.
const WINDOW: usize = 16;

/// A frame in shared memory. The peer may change its bytes at any time: copy it once, then look at the copy.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    memory: &'a Memory,
    first: Span<'a>,
    rest: &'a [Part],
    bytes: usize,
}

impl Frame<'_> {
    /// Bytes of the frame, at most [`FRAME_BYTES_MAX`]. This number does not change.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True if the frame has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies the frame to the start of `out`, or its start if `out` is shorter. Returns how many bytes.
    #[inline]
    pub fn copy_to(&self, out: &mut [u8]) -> usize {
        let mut copied = self.first.copy_to(out);
        for part in self.rest {
            let (Some(span), Some(out)) = (self.memory.span(*part), out.get_mut(copied..)) else { break };
            copied += span.copy_to(out);
        }
        copied
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ReceiveRing {
    ring: Ring,
    /// Bytes of an empty buffer. `None`: as a server.
    refill_bytes: Option<u32>,
    /// Index of the next entry.
    next: u16,
    /// Frames refused.
    malformed: u64,
    broken: Option<Broken>,
    /// The buffers of the frame in work.
    chain: Box<[Part]>,
}

impl ReceiveRing {
    /// As a server.
    pub(crate) fn of_server(ring: Ring) -> Self {
        let next = ring.load(Index::Tail);
        ring.set_masked(false);
        Self::new(ring, None, next)
    }

    /// As a client with buffers of this length. Gives all buffers to the server.
    pub(crate) fn of_client(ring: Ring, buffer_bytes: u32) -> Self {
        let next = ring.load(Index::Tail);
        ring.store(Index::Head, next.wrapping_add(ring.slots()));
        Self::new(ring, Some(buffer_bytes), next)
    }

    fn new(ring: Ring, refill_bytes: Option<u32>, next: u16) -> Self {
        let chain = vec![Part::default(); usize::from(ring.slots())].into();
        ReceiveRing { ring, refill_bytes, next, malformed: 0, broken: None, chain }
    }

    /// The index that the peer writes.
    #[inline]
    fn peer(&self) -> Index {
        if self.refill_bytes.is_some() { Index::Tail } else { Index::Head }
    }

    #[inline]
    pub(crate) fn has_input(&self) -> bool {
        self.ring.load(self.peer()) != self.next && self.broken.is_none()
    }

    pub(crate) fn malformed(&self) -> u64 {
        self.malformed
    }

    pub(crate) fn broken(&self) -> Option<Broken> {
        self.broken
    }

    pub(crate) fn set_masked(&self, masked: bool) {
        self.ring.set_masked(masked);
    }

    /// See [`Port::receive`](crate::Port::receive).
    pub(crate) fn receive(&mut self, at_most: usize, mut visit: impl FnMut(Frame<'_>)) -> usize {
        let available = self.ring.load(self.peer()).wrapping_sub(self.next);
        if available == 0 || self.broken.is_some() {
            return 0;
        }
        if available > self.ring.slots() {
            self.broken = Some(Broken("index of a ring is out of range"));
            return 0;
        }
        let mut reader = Reader::new(&self.ring, self.refill_bytes, self.next, available);
        let mut taken = 0;
        while taken < at_most
            && let Some(first) = reader.pop(at_most - taken)
        {
            let frame = if first.has_next {
                chained(&mut reader, first.part, &mut self.chain)
            } else {
                whole(self.ring.memory(), first.part)
            };
            match frame {
                Some(frame) => {
                    visit(frame);
                    taken += 1;
                }
                None => self.malformed += 1,
            }
        }
        self.next = reader.next;
        match self.refill_bytes {
            Some(_) => self.ring.store(Index::Head, self.next.wrapping_add(self.ring.slots())),
            None => self.ring.store(Index::Tail, self.next),
        }
        taken
    }
}

/// A frame in one buffer.
#[inline]
fn whole(memory: &Memory, part: Part) -> Option<Frame<'_>> {
    let bytes = part.bytes as usize;
    if bytes > FRAME_BYTES_MAX {
        return None;
    }
    Some(Frame { memory, first: memory.span(part)?, rest: &[], bytes })
}

/// A frame in several buffers, of which this is the first. Takes all its descriptors, also those of a wrong frame.
#[cold]
fn chained<'f, 'a: 'f>(reader: &mut Reader<'a>, first: Part, chain: &'f mut [Part]) -> Option<Frame<'f>> {
    let memory = reader.ring.memory();
    let (mut bytes, mut count, mut is_valid) = (u64::from(first.bytes), 0, true);
    loop {
        // Without a next descriptor before the peer's index, the frame has no end.
        let Descriptor { part, has_next } = reader.pop(1)?;
        bytes += u64::from(part.bytes);
        match chain.get_mut(count) {
            Some(place) => *place = part,
            None => is_valid = false,
        }
        count += 1;
        is_valid &= memory.span(part).is_some();
        if !has_next {
            break;
        }
    }
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= FRAME_BYTES_MAX && is_valid)?;
    Some(Frame { memory, first: memory.span(first)?, rest: chain.get(..count)?, bytes })
}

/// Reads descriptors, each once, a few ahead of their use.
struct Reader<'a> {
    ring: &'a Ring,
    refill_bytes: Option<u32>,
    /// Index of the next descriptor to give.
    next: u16,
    /// Descriptors from `next` on, up to the peer's index.
    left: u16,
    window: [Descriptor; WINDOW],
    /// What is left in the window.
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    fn new(ring: &'a Ring, refill_bytes: Option<u32>, next: u16, left: u16) -> Self {
        Reader { ring, refill_bytes, next, left, window: [Descriptor::default(); WINDOW], at: 0, end: 0 }
    }

    /// The next descriptor, copied. Its slot becomes what the peer expects once it gets it back. `soon`: how many more
    /// the caller is going to want.
    #[inline]
    fn pop(&mut self, soon: usize) -> Option<Descriptor> {
        if self.at == self.end {
            self.end = usize::from(self.left).min(soon).min(WINDOW);
            self.at = 0;
            let window = self.window.iter_mut().take(self.end);
            for (ahead, place) in (0..).zip(window) {
                *place = self.ring.read(self.next.wrapping_add(ahead));
                if let Some(span) = self.ring.memory().span(place.part) {
                    span.prefetch();
                }
            }
        }
        let descriptor = *self.window.get(self.at).filter(|_| self.at < self.end)?;
        let part = Part { bytes: self.refill_bytes.unwrap_or(descriptor.part.bytes), ..descriptor.part };
        if self.refill_bytes.is_some() || descriptor.has_next {
            self.ring.write_length(self.next, Descriptor { part, has_next: false });
        }
        self.at += 1;
        self.next = self.next.wrapping_add(1);
        self.left -= 1;
        Some(descriptor)
    }
}
