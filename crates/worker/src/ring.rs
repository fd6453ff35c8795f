//! The ring by which a packet reaches another worker without a lock and without an allocation.
//!
//! Source: the bounded single-producer single-consumer queue of Lamport ("Specifying Concurrent Program Modules",
//! TOPLAS 1983). Each side caches the other's position (FastForward and its successors). The ring carries records of
//! bytes instead of pointers, so that no buffer ever changes owner.
//!
//! ```text
//!  bytes  0      head                      tail       capacity
//!          ├──────┼────────┬───────┬────────┼──────────┤
//!          │ free │ record │ rec.  │ record │ free     │      head, tail: count bytes for ever,
//!          └──────┴────────┴───────┴────────┴──────────┘      offset = position mod capacity
//!  record  ├ length u32 ┼ kind u32 ┼ payload … ┼ fill to 8 ┤  never wraps: when the end of the
//!                                                             buffer is too near, a PADDING record
//!                                                             covers it and the record starts at 0
//! ```
//!
//! Between two batches of some size lies a gap, which is also a PADDING record. The consumer's processor fetches cache
//! lines ahead of its reads. Without a gap it would take lines of the next batch from the producer that is writing
//! them. N.B. An Interest of 100 bytes cost 195 TSC cycles without the gap and 117 with it, in `namewire-lab run
//! ring-crossing` (batches of 64, cores that share a cache). Two alternatives were tried and not kept. PREFETCHW of the
//! lines before they are written gave no gain where the cores share a cache, and no reliable gain elsewhere. With
//! stores past the caches, a Data of 250 bytes took 286 cycles against 140.
//!
//! Cost: a record is copied into the ring; each side makes a store-release per batch. A side reads the other's cache
//! line only when the ring looks full (or empty) by its cached copy of the other's position. Bytes: a record takes 8
//! more and up to 7 of fill; a batch of 2 KiB or more takes 512 more.
//!
//! Limits: the capacity is fixed. A record has at most half the capacity less 8 bytes, so that a record and the padding
//! before it always fit in an empty ring ([`PushError::TooLarge`] otherwise). A push that does not fit now is refused
//! ([`PushError::Full`]) and changes nothing.
//!
//! [`Doorbell`] is the other half: a worker that found all its rings empty can sleep without missing the record
//! published a moment later.
//!
//! `crates/worker/tests/ring_stress.rs` checks the ring with real threads and a `VecDeque` as oracle. The loom models
//! in `crates/worker/loom` check every interleaving of small cases.

#![allow(unsafe_code)] // leaf: two threads write disjoint parts of one buffer, which `&mut` cannot say

#[cfg(loom)]
use loom::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering, fence},
};
use std::cell::UnsafeCell;
#[cfg(not(loom))]
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering, fence},
};

/// Smallest capacity of a ring in bytes: room for a header and 8 bytes of payload, twice.
pub const MIN_CAPACITY_BYTES: usize = 32;

/// Largest capacity of a ring in bytes: the length field of a record is 32 bits wide.
pub const MAX_CAPACITY_BYTES: usize = 1 << 30;

/// Bytes a record takes beyond its payload, before the fill.
pub const RECORD_HEADER_BYTES: usize = 8;

/// Bytes between two batches: as far as a processor fetches ahead. Under loom it is as small as possible.
const GAP_BYTES: usize = if cfg!(loom) { 8 } else { 512 };

/// A shorter batch has no gap behind it, so that at most a fifth of the ring is lost to gaps.
const GAP_AFTER_BYTES: usize = if cfg!(loom) { 32 } else { 4 * GAP_BYTES };

/// Makes a ring of `capacity_bytes` bytes and returns its two ends, one for each thread.
///
/// The buffer is written once here, so that no page fault is left for the data plane.
///
/// # Panics
/// If `capacity_bytes` is not a power of two from [`MIN_CAPACITY_BYTES`] to [`MAX_CAPACITY_BYTES`].
pub fn channel(capacity_bytes: usize) -> (Producer, Consumer) {
    assert!(
        capacity_bytes.is_power_of_two() && (MIN_CAPACITY_BYTES..=MAX_CAPACITY_BYTES).contains(&capacity_bytes),
        "ring capacity must be a power of two from {MIN_CAPACITY_BYTES} to {MAX_CAPACITY_BYTES} bytes, not {capacity_bytes}",
    );
    let shared = Arc::new(Shared {
        tail: Line(AtomicUsize::new(0)),
        released: Line(Released { head: AtomicUsize::new(0), records: AtomicUsize::new(0) }),
        buffer: Buffer::new(capacity_bytes),
    });
    let producer = Producer {
        shared: Arc::clone(&shared),
        tail: 0,
        published_tail: 0,
        cached_head: 0,
        gap_due: false,
        pushed: 0,
        cached_released: 0,
    };
    let consumer = Consumer { shared, head: 0, cached_tail: 0, released: 0 };
    (producer, consumer)
}

/// Why a record was not taken; the ring is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The consumer has not released enough space yet.
    #[error("ring full: the consuming worker is behind")]
    Full,
    /// The record exceeds [`Producer::max_record_bytes`] and would never fit.
    #[error("record larger than half of the ring")]
    TooLarge,
}

/// The writing end: one thread holds it.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    /// Position after the last record written.
    tail: usize,
    /// What `shared.tail` holds: position after the last record the consumer may see.
    published_tail: usize,
    /// A former value of `shared.released.head`; the consumer can only have gone further.
    cached_head: usize,
    /// The last batch was long enough to need a gap behind it.
    gap_due: bool,
    /// Records pushed so far; it may wrap.
    pushed: usize,
    /// A former value of `shared.released.records`.
    cached_released: usize,
}

impl Producer {
    /// Appends one record made of `parts`, which the consumer sees after the next
    /// [`publish`](Self::publish) (or when the producer is dropped).
    ///
    /// Cost: one copy of the payload; the consumer's cache line is read only if the ring seemed full.
    ///
    /// # Errors
    /// [`PushError::Full`] if the consumer is behind; [`PushError::TooLarge`] if the record would never fit. The ring
    /// stays as it was.
    pub fn try_push(&mut self, parts: &[&[u8]]) -> Result<(), PushError> {
        let payload_len = parts.iter().fold(0usize, |sum, part| sum.saturating_add(part.len()));
        if payload_len > self.max_record_bytes() {
            return Err(PushError::TooLarge);
        }
        let record_bytes = record_span(payload_len);
        let mut padding_bytes = self.padding_bytes(record_bytes, if self.gap_due { GAP_BYTES } else { 0 });
        if self.gap_due && self.reserve(padding_bytes + record_bytes).is_err() {
            padding_bytes = self.padding_bytes(record_bytes, 0); // no room to be generous
        }
        self.reserve(padding_bytes + record_bytes)?;
        self.gap_due = false;

        if padding_bytes > 0 {
            // SAFETY: as `Buffer::write` asks, `reserve` granted the bytes from `tail` on to this thread;
            // `padding_bytes` is a multiple of 8, not 0 and at most what is left before the end of the
            // buffer, so a header fits.
            unsafe {
                let header = Header { length: padding_bytes - RECORD_HEADER_BYTES, kind: PADDING };
                self.shared.buffer.write(self.offset(self.tail), &header.to_bytes());
            }
            self.tail = self.tail.wrapping_add(padding_bytes);
        }
        let mut at = self.offset(self.tail);
        // SAFETY: as `Buffer::write` asks, `reserve` granted `record_bytes` bytes from `tail` on, after the
        // padding, to this thread; they do not cross the end of the buffer: either they fit between
        // the padding and the end, or `tail` is now at offset 0 and a record is at most half of the buffer.
        // The writes together take 8 + payload_len <= record_bytes bytes.
        unsafe {
            let header = Header { length: payload_len, kind: RECORD };
            self.shared.buffer.write(at, &header.to_bytes());
            at += RECORD_HEADER_BYTES;
            for part in parts {
                self.shared.buffer.write(at, part);
                at += part.len();
            }
        }
        self.tail = self.tail.wrapping_add(record_bytes);
        self.pushed = self.pushed.wrapping_add(1);
        Ok(())
    }

    /// Whether more records than these, or more bytes, wait for the consumer, published or not.
    ///
    /// Cost: two subtractions; the consumer's cache line is read only if more wait by the cached positions.
    pub fn holds_more_than(&mut self, records: usize, bytes: usize) -> bool {
        let is_more = |producer: &Self| {
            producer.pushed.wrapping_sub(producer.cached_released) > records
                || producer.tail.wrapping_sub(producer.cached_head) > bytes
        };
        if !is_more(self) {
            return false;
        }
        // Acquire: `reserve` relies on this position too. The count is at least the one that belongs to it.
        self.cached_head = self.shared.released.0.head.load(Ordering::Acquire);
        self.cached_released = self.shared.released.0.records.load(Ordering::Relaxed);
        is_more(self)
    }

    /// Lets the consumer see every record pushed so far; true if there was one it could not see.
    ///
    /// One store for a whole batch. Ring the consumer's [`Doorbell`] after a true answer.
    pub fn publish(&mut self) -> bool {
        if self.tail == self.published_tail {
            return false;
        }
        self.gap_due = self.tail.wrapping_sub(self.published_tail) >= GAP_AFTER_BYTES;
        // Release: the bytes of the records are written before the position that lends them.
        self.shared.tail.0.store(self.tail, Ordering::Release);
        self.published_tail = self.tail;
        true
    }

    /// Largest payload a record can have, in bytes: half of the capacity less the header.
    pub fn max_record_bytes(&self) -> usize {
        self.shared.buffer.capacity_bytes() / 2 - RECORD_HEADER_BYTES
    }

    /// Capacity of the ring in bytes, headers and fill included.
    pub fn capacity_bytes(&self) -> usize {
        self.shared.buffer.capacity_bytes()
    }

    /// Bytes between `tail` and the start of a record of `record_bytes`: `gap_bytes`, or whatever is
    /// left before the end of the buffer if the record would cross it.
    fn padding_bytes(&self, record_bytes: usize, gap_bytes: usize) -> usize {
        let to_end = self.shared.buffer.capacity_bytes() - self.offset(self.tail);
        if gap_bytes + record_bytes > to_end { to_end } else { gap_bytes }
    }

    /// Checks that `bytes` bytes from `tail` on are free, looking at the consumer's position only
    /// if the cached one does not suffice.
    fn reserve(&mut self, bytes: usize) -> Result<(), PushError> {
        let capacity = self.shared.buffer.capacity_bytes();
        if capacity - self.tail.wrapping_sub(self.cached_head) >= bytes {
            return Ok(());
        }
        // Acquire: the consumer's last access to the released bytes comes before our next write.
        self.cached_head = self.shared.released.0.head.load(Ordering::Acquire);
        if capacity - self.tail.wrapping_sub(self.cached_head) >= bytes {
            return Ok(());
        }
        Err(PushError::Full)
    }

    fn offset(&self, position: usize) -> usize {
        position & (self.shared.buffer.capacity_bytes() - 1)
    }
}

impl Drop for Producer {
    /// What was pushed is not lost: the consumer can still drain it.
    fn drop(&mut self) {
        self.publish();
    }
}

/// The reading end: one thread holds it.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
    /// Position of the first record not released.
    head: usize,
    /// A former value of `shared.tail`; the producer can only have gone further.
    cached_tail: usize,
    /// Records released so far; it may wrap.
    released: usize,
}

impl Consumer {
    /// Lends up to `max_records` of the oldest records; their space returns to the producer when
    /// the [`Batch`] is dropped.
    ///
    /// It looks at the producer's position only if everything seen before is used up. So a batch may be shorter than
    /// what is waiting; an empty batch means that nothing was.
    pub fn batch(&mut self, max_records: usize) -> Batch<'_> {
        self.has_records();
        let (mut end, mut len) = (self.head, 0);
        while end != self.cached_tail && len < max_records {
            let header = self.header(end);
            end = end.wrapping_add(record_span(header.length));
            len += usize::from(header.kind == RECORD);
        }
        Batch { start: self.head, end, len, consumer: self }
    }

    /// True if a published record waits.
    pub fn has_records(&mut self) -> bool {
        if self.head == self.cached_tail {
            // Acquire: pairs with `publish`; the records before this position are complete.
            self.cached_tail = self.shared.tail.0.load(Ordering::Acquire);
        }
        self.head != self.cached_tail
    }

    fn offset(&self, position: usize) -> usize {
        position & (self.shared.buffer.capacity_bytes() - 1)
    }

    /// The header at `position`, which must be the start of a record in `head..cached_tail`.
    fn header(&self, position: usize) -> Header {
        // SAFETY: as `Buffer::slice_mut` asks, `position` lies in head..cached_tail, bytes that the producer
        // published and does not touch until they are released; headers start at multiples of 8
        // and take 8, so they end inside the buffer; `Records` lends only payloads, so that no
        // other reference covers a header.
        let bytes = unsafe { self.shared.buffer.slice_mut(self.offset(position), RECORD_HEADER_BYTES) };
        Header::from_bytes(bytes)
    }
}

/// Records lent for a while; dropping it releases all of them with one store.
///
/// A batch that is leaked (`std::mem::forget`) releases nothing: the same records come again.
#[derive(Debug)]
pub struct Batch<'a> {
    consumer: &'a mut Consumer,
    start: usize,
    end: usize,
    len: usize,
}

impl Batch<'_> {
    /// Number of records lent.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if nothing was waiting.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The payloads, oldest first, each 8-aligned and disjoint from the others, so that all of them can
    /// be held, and patched, at the same time.
    pub fn records(&mut self) -> Records<'_> {
        Records { consumer: self.consumer, next: self.start, end: self.end, remaining: self.len }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.start == self.end {
            return;
        }
        self.consumer
            .shared
            .buffer
            .trace_write_all(self.consumer.offset(self.start), self.end.wrapping_sub(self.start));
        self.consumer.head = self.end;
        self.consumer.released = self.consumer.released.wrapping_add(self.len);
        self.consumer.shared.released.0.records.store(self.consumer.released, Ordering::Relaxed);
        // Release: whatever was done with the lent slices comes before the producer's reuse.
        self.consumer.shared.released.0.head.store(self.end, Ordering::Release);
    }
}

/// Iterator over the payloads of a [`Batch`].
#[derive(Debug)]
pub struct Records<'a> {
    consumer: &'a Consumer,
    next: usize,
    end: usize,
    remaining: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a mut [u8];

    fn next(&mut self) -> Option<&'a mut [u8]> {
        while self.next != self.end {
            let position = self.next;
            let header = self.consumer.header(position);
            self.next = position.wrapping_add(record_span(header.length));
            if header.kind == RECORD {
                self.remaining -= 1;
                let offset = self.consumer.offset(position) + RECORD_HEADER_BYTES;
                // SAFETY: as `Buffer::slice_mut` asks:
                // - the bytes lie in head..cached_tail: the producer published them (Acquire in
                //   `has_records`) and keeps away until the head moves, which only `Batch::drop` does;
                // - `'a` borrows the batch mutably, so that this slice is dead before that drop and
                //   before another `Records` over the same bytes exists;
                // - each record is lent once by this iterator, records are disjoint, headers are not lent;
                // - `try_push` never lets a record cross the end of the buffer, and headers cannot
                //   have been changed since, so `length` is the one it wrote.
                return Some(unsafe { self.consumer.shared.buffer.slice_mut(offset, header.length) });
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Records<'_> {}

/// Lets one thread sleep until others have work for it, with no wake-up lost and no system call
/// while it is awake.
///
/// The sleeper calls [`may_sleep`](Self::may_sleep), blocks on something that `wake` below ends
/// (an eventfd in its epoll set), and calls [`awake`](Self::awake). A ringer publishes, then calls
/// [`ring`](Self::ring). Both sides write one variable and read the other's, with a SeqCst fence
/// between (Dekker): either the sleeper sees the record, or the ringer sees the sleeper.
/// `wake` must be remembered if it comes before the sleeper blocks, as eventfd and unpark do.
#[derive(Debug)]
pub struct Doorbell {
    asleep: Line<AtomicBool>,
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}

impl Doorbell {
    /// A doorbell whose owner is awake.
    pub fn new() -> Self {
        Self { asleep: Line(AtomicBool::new(false)) }
    }

    /// Called by the sleeper: announces sleep, then asks `has_work` a last time. True if the sleeper may block now.
    ///
    /// After false the sleeper counts as awake again.
    pub fn may_sleep(&self, has_work: impl FnOnce() -> bool) -> bool {
        self.asleep.0.store(true, Ordering::Relaxed);
        // Pairs with the fence in `ring`: the announcement comes before the look at the rings.
        fence(Ordering::SeqCst);
        if has_work() {
            self.awake();
            return false;
        }
        true
    }

    /// Called by the sleeper when it is back at work, whatever ended the sleep. From now on ringers need not wake it.
    pub fn awake(&self) {
        // N.B. A relaxed store would do: a ringer's exchange reads the announcement, so that it
        // comes before anything stored here. Loom keeps no total order of relaxed stores and lets
        // a ringer read its own old `false` for ever; the exchange spells the order out.
        self.asleep.0.swap(false, Ordering::Acquire);
    }

    /// Called by a ringer after publishing: runs `wake` if the owner sleeps or is about to, and returns whether it did.
    ///
    /// If several ringers ring at once, one of them runs `wake`. It may run although the sleeper found the work itself,
    /// so the sleeper must bear a spurious wake-up. Cost if the owner is awake: a fence and a load.
    pub fn ring(&self, wake: impl FnOnce()) -> bool {
        // Pairs with the fence in `may_sleep`: the publication comes before the look at the flag.
        fence(Ordering::SeqCst);
        if !self.asleep.0.load(Ordering::Relaxed) {
            return false;
        }
        let claim = self.asleep.0.compare_exchange(true, false, Ordering::Release, Ordering::Relaxed);
        if claim.is_ok() {
            wake();
        }
        claim.is_ok()
    }
}

/// Lets the producer of a full ring sleep until the consumer has made room, with no wake-up lost.
///
/// The producer makes the wish and tries to push once more. If the ring is still full, it sleeps on its [`Doorbell`]
/// while the wish stands. The consumer releases a batch, then calls [`take`](Self::take), and rings if there was a
/// wish. Both sides write one variable and read the other's, with a SeqCst fence between: either the producer sees the
/// room, or the consumer sees the wish.
#[derive(Debug)]
pub struct RoomWish(AtomicBool);

impl Default for RoomWish {
    fn default() -> Self {
        Self(AtomicBool::new(false))
    }
}

impl RoomWish {
    /// Called by the producer: asks for room. The producer must try to push once more after it.
    pub fn make(&self) {
        self.0.store(true, Ordering::Relaxed);
        // Pairs with the fence in `take`.
        fence(Ordering::SeqCst);
    }

    /// True if no room was made since the wish.
    pub fn is_made(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Called by the consumer after releasing a batch: whether the producer had the wish, which ends here.
    pub fn take(&self) -> bool {
        // Pairs with the fence in `make`.
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

/// A value alone in its cache lines: 128 bytes, because the neighbour line is fetched along.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T>(T);

#[derive(Debug)]
struct Shared {
    /// Written by the producer: position after the last published record.
    tail: Line<AtomicUsize>,
    /// Written by the consumer.
    released: Line<Released>,
    buffer: Buffer,
}

/// How far the consumer has come.
#[derive(Debug)]
struct Released {
    /// Position of the first record not released.
    head: AtomicUsize,
    /// Records before `head`; written first.
    records: AtomicUsize,
}

// SAFETY: all fields but the buffer are Sync. The buffer is reached through `Producer` (bytes in
// tail..head + capacity) and `Consumer` (bytes in head..tail) alone, there is one of each, neither
// can be cloned, and both take `&mut self` to touch bytes; the positions hand bytes over with
// release stores and acquire loads.
unsafe impl Sync for Shared {}

#[cfg(not(loom))]
const _: () = {
    assert!(align_of::<Shared>() == 128);
    assert!(std::mem::offset_of!(Shared, released) - std::mem::offset_of!(Shared, tail) == 128);
};

const RECORD: u32 = 1;
const PADDING: u32 = 2;

#[derive(Debug, Clone, Copy)]
struct Header {
    /// Bytes of payload. In a padding record: bytes of fill after the header, to the end of a gap or of the buffer.
    length: usize,
    kind: u32,
}

impl Header {
    fn to_bytes(self) -> [u8; RECORD_HEADER_BYTES] {
        // No truncation: `length` is below MAX_CAPACITY_BYTES.
        (self.length as u64 | u64::from(self.kind) << 32).to_ne_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut word = [0; RECORD_HEADER_BYTES];
        word.copy_from_slice(bytes);
        let word = u64::from_ne_bytes(word);
        Self { length: (word & 0xFFFF_FFFF) as usize, kind: (word >> 32) as u32 }
    }
}

/// Bytes from one header to the next.
fn record_span(payload_len: usize) -> usize {
    RECORD_HEADER_BYTES + payload_len.next_multiple_of(8)
}

/// The bytes of the ring. Under loom each word has a shadow cell, which shows loom the threads that touch it.
struct Buffer {
    words: Box<[UnsafeCell<u64>]>,
    #[cfg(loom)]
    shadow: Box<[loom::cell::UnsafeCell<()>]>,
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.capacity_bytes())
    }
}

impl Buffer {
    fn new(capacity_bytes: usize) -> Self {
        Self {
            words: (0..capacity_bytes / 8).map(|_| UnsafeCell::new(0)).collect(),
            #[cfg(loom)]
            shadow: (0..capacity_bytes / 8).map(|_| loom::cell::UnsafeCell::new(())).collect(),
        }
    }

    fn capacity_bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Safety
    /// `offset + bytes.len()` is within the capacity, and until the call returns the calling
    /// thread alone touches these bytes.
    unsafe fn write(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: both conditions are the caller's; `bytes` cannot overlap, since the slices that the
        // ring lends borrow the consumer and lie in bytes that the caller does not own.
        unsafe { self.slice_mut(offset, bytes.len()) }.copy_from_slice(bytes);
    }

    /// The `len` bytes at `offset`.
    ///
    /// # Safety
    /// `offset + len` is within the capacity, and for the life of the slice nothing else touches
    /// these bytes, in this thread or another.
    #[allow(clippy::mut_from_ref)] // that is what the safety condition is about
    unsafe fn slice_mut(&self, offset: usize, len: usize) -> &mut [u8] {
        debug_assert!(offset + len <= self.capacity_bytes());
        self.trace_write_all(offset, len);
        let base = self.words.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: the bytes are inside the allocation of `words` (caller), initialised (zeroed by
        // `new`), mutable through a shared reference (UnsafeCell), and not aliased (caller).
        unsafe { std::slice::from_raw_parts_mut(base.add(offset), len) }
    }

    /// Tells loom that the calling thread writes these bytes, which may wrap around.
    #[cfg(loom)]
    fn trace_write_all(&self, offset: usize, len: usize) {
        for word in offset / 8..(offset + len).div_ceil(8) {
            self.shadow[word % self.shadow.len()].with_mut(|_| ());
        }
    }

    #[cfg(not(loom))]
    #[inline(always)]
    fn trace_write_all(&self, _offset: usize, _len: usize) {}
}
