//! Ring: descriptors of buffers, in memory that both ends write.
//!
//! Source: `memif_ring_t` and `memif_desc_t` in `drivers/net/memif/memif.h` of DPDK. Numbers have the byte order of the
//! host:
//!
//! ```text
//!     0  cookie: u32 = 0x3E31F20   flags: u16 (1: do not ring my doorbell)   head: u16      the client writes head
//!    64  tail: u16                                                                          the server writes tail
//!   128  descriptor 0, descriptor 1, … of 16 bytes each:
//!          0 flags: u16 (1: the frame goes on in the next descriptor)   2 region: u16   4 length: u32
//!          8 offset: u32                                               12 metadata: u32
//! ```
//!
//! *head* and *tail* run on through 2¹⁶ and start again at 0. An entry is in slot `index mod n`. In the ring S2M, the
//! client fills slots up to head and the server takes them up to tail. In the ring M2S, the client gives empty buffers
//! up to head, and the server fills them up to tail. The receiver of a ring writes its flags.
//!
//! This file needs `unsafe` to reach the shared words. Each is accessed as an atomic; a descriptor is two words of 64
//! bits, each read once. So the peer can give any value, but the value cannot change after a check.
#![allow(unsafe_code, reason = "leaf: words shared with another process")]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::region::{Memory, Part};
use crate::{Broken, RING_LOG2_MAX};

const COOKIE: u32 = 0x3E3_1F20;
const FLAGS_AT: usize = 4;
const HEAD_AT: usize = 6;
const TAIL_AT: usize = 64;
const DESCRIPTORS_AT: usize = 128;
const DESCRIPTOR_BYTES: usize = 16;

/// The receiver needs no doorbell now.
const MASK_INTERRUPT: u16 = 1;
/// The frame goes on in the next descriptor.
const NEXT: u16 = 1;

/// Alignment of a ring. DPDK places the second ring after the last descriptor of the first.
const ALIGN: usize = DESCRIPTOR_BYTES;

/// A buffer, as a descriptor says. Not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) part: Part,
    /// The frame goes on in the next descriptor.
    pub(crate) has_next: bool,
}

/// The index that a side writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    /// Written by the client.
    Head,
    /// Written by the server.
    Tail,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Ring {
    start: NonNull<u8>,
    slots: u16,
    /// Keeps the pointer good.
    memory: Arc<Memory>,
}

// SAFETY: the pointer is into `memory`, which may move between threads, and all accesses are atomic.
unsafe impl Send for Ring {}

impl Ring {
    /// Bytes of a ring with 2^`ring_log2` slots.
    pub(crate) fn bytes(ring_log2: u8) -> u32 {
        DESCRIPTORS_AT as u32 + ((DESCRIPTOR_BYTES as u32) << ring_log2)
    }

    /// The ring that starts here.
    ///
    /// # Errors
    /// The rule that its place breaks.
    pub(crate) fn new(memory: Arc<Memory>, region: u16, offset: u32, ring_log2: u8) -> Result<Self, Broken> {
        if ring_log2 > RING_LOG2_MAX {
            return Err(Broken("ring is too large"));
        }
        let place = memory.place(region, offset, Self::bytes(ring_log2), ALIGN);
        let start = place.ok_or(Broken("ring is not within its region, or not aligned"))?;
        Ok(Ring { start, slots: 1 << ring_log2, memory })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Number of slots, a power of two.
    #[inline]
    pub(crate) fn slots(&self) -> u16 {
        self.slots
    }

    /// Makes an empty ring in memory that only this process knows.
    pub(crate) fn initialize(&self) {
        self.cookie().store(COOKIE, Ordering::Relaxed);
        self.flags().store(0, Ordering::Relaxed);
        self.index(Index::Head).store(0, Ordering::Relaxed);
        self.index(Index::Tail).store(0, Ordering::Relaxed);
    }

    /// True if the memory says that it is a ring.
    pub(crate) fn has_cookie(&self) -> bool {
        self.cookie().load(Ordering::Relaxed) == COOKIE
    }

    /// An index, and with it what the peer wrote before it.
    #[inline]
    pub(crate) fn load(&self, index: Index) -> u16 {
        self.index(index).load(Ordering::Acquire)
    }

    /// Shows the peer an index, and with it what we wrote before it.
    #[inline]
    pub(crate) fn store(&self, index: Index, value: u16) {
        self.index(index).store(value, Ordering::Release);
    }

    /// True if the receiver needs no doorbell.
    pub(crate) fn is_masked(&self) -> bool {
        self.flags().load(Ordering::Relaxed) & MASK_INTERRUPT != 0
    }

    /// As the receiver: asks for the doorbell, or for none.
    pub(crate) fn set_masked(&self, masked: bool) {
        self.flags().store(if masked { MASK_INTERRUPT } else { 0 }, Ordering::Relaxed);
    }

    /// The descriptor of the entry with this index. Two loads.
    #[inline]
    pub(crate) fn read(&self, index: u16) -> Descriptor {
        let [first, second] = self.words(index);
        let [f0, f1, r0, r1, l0, l1, l2, l3] = first.load(Ordering::Relaxed).to_ne_bytes();
        let [o0, o1, o2, o3, ..] = second.load(Ordering::Relaxed).to_ne_bytes();
        Descriptor {
            part: Part {
                region: u16::from_ne_bytes([r0, r1]),
                offset: u32::from_ne_bytes([o0, o1, o2, o3]),
                bytes: u32::from_ne_bytes([l0, l1, l2, l3]),
            },
            has_next: u16::from_ne_bytes([f0, f1]) & NEXT != 0,
        }
    }

    /// Writes the flags, the region and the length of a descriptor, not the offset. One store.
    #[inline]
    pub(crate) fn write_length(&self, index: u16, descriptor: Descriptor) {
        let [f0, f1] = (if descriptor.has_next { NEXT } else { 0 }).to_ne_bytes();
        let [r0, r1] = descriptor.part.region.to_ne_bytes();
        let [l0, l1, l2, l3] = descriptor.part.bytes.to_ne_bytes();
        let first = u64::from_ne_bytes([f0, f1, r0, r1, l0, l1, l2, l3]);
        self.words(index)[0].store(first, Ordering::Relaxed);
    }

    /// Writes a whole descriptor. Two stores.
    #[inline]
    pub(crate) fn write(&self, index: u16, descriptor: Descriptor) {
        self.write_length(index, descriptor);
        let [o0, o1, o2, o3] = descriptor.part.offset.to_ne_bytes();
        let second = u64::from_ne_bytes([o0, o1, o2, o3, 0, 0, 0, 0]);
        self.words(index)[1].store(second, Ordering::Relaxed);
    }

    fn cookie(&self) -> &AtomicU32 {
        // SAFETY: see `word`; offset 0 has the alignment of the ring.
        unsafe { self.word(0) }
    }

    fn flags(&self) -> &AtomicU16 {
        // SAFETY: see `word`; offset 4 is even.
        unsafe { self.word(FLAGS_AT) }
    }

    #[inline]
    fn index(&self, index: Index) -> &AtomicU16 {
        let at = match index {
            Index::Head => HEAD_AT,
            Index::Tail => TAIL_AT,
        };
        // SAFETY: see `word`; both offsets are even and below 128.
        unsafe { self.word(at) }
    }

    /// The two words of a descriptor.
    #[inline]
    fn words(&self, index: u16) -> [&AtomicU64; 2] {
        let at = DESCRIPTORS_AT + DESCRIPTOR_BYTES * usize::from(index & (self.slots - 1));
        // SAFETY: see `word`; the slot is below `slots`, so both words are in the ring, and `at` is a multiple of 16.
        unsafe { [self.word(at), self.word(at + 8)] }
    }

    /// The atomic at this offset from the start of the ring.
    ///
    /// # Safety
    /// `T` is an atomic integer. `at` is a multiple of its size, and at most `Ring::bytes` minus its size.
    #[inline]
    unsafe fn word<T>(&self, at: usize) -> &T {
        // SAFETY:
        // - `new` checked that `Ring::bytes` bytes from `start` are in the mapping, and the alignment of `start`, which
        //   is a multiple of each atomic's; the caller chose `at` within and aligned;
        // - `memory` keeps the mapping alive as long as `self`, and its file cannot get shorter (`memfd`);
        // - any bytes are a value of an atomic integer, and this process accesses the bytes only atomically. A peer
        //   that places a buffer over a ring can make us copy bytes over it (`Span`). That changes values, and happens
        //   on the thread that uses the ring: no two accesses of ours are at the same time;
        // - the peer's accesses are those of another process: to us they are atomic loads and stores of any value.
        unsafe { self.start.add(at).cast::<T>().as_ref() }
    }
}

const _: () = assert!(align_of::<AtomicU64>() <= ALIGN);

#[cfg(test)]
pub(crate) mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::memfd;

    #[test]
    fn words_are_where_dpdk_has_them() {
        let file = memfd::create(4_096).expect("a file");
        let mut memory = Memory::default();
        memory.map(file.as_fd(), 4_096, false).expect("mapped");
        let ring = Ring::new(Arc::new(memory), 0, 64, 2).expect("a ring");
        assert_eq!(Ring::bytes(2), 192);
        ring.initialize();
        ring.set_masked(true);
        ring.store(Index::Head, 0x0102);
        ring.store(Index::Tail, 0x0304);
        let part = Part { region: 5, offset: 6, bytes: 7 };
        ring.write(9, Descriptor { part, has_next: true });
        assert_eq!(ring.read(1), Descriptor { part, has_next: true });
        assert!(ring.has_cookie() && ring.is_masked());

        let mut bytes = [0; 256];
        rustix::io::pread(&file, &mut bytes[..], 64).expect("readable");
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        assert_eq!((word(0), half(4), half(6), half(64)), (0x3E3_1F20, 1, 0x0102, 0x0304));
        assert_eq!((half(144), half(146), word(148), word(152), word(156)), (1, 5, 7, 6, 0));
    }

    #[test]
    fn rings_lie_within_their_region() {
        let file = memfd::create(4_096).expect("a file");
        let mut memory = Memory::default();
        memory.map(file.as_fd(), 4_096, false).expect("mapped");
        let memory = Arc::new(memory);
        let is_ring = |region, offset, log2| Ring::new(memory.clone(), region, offset, log2).is_ok();
        assert!(is_ring(0, 0, 7) && is_ring(0, 4_096 - 144, 0));
        assert!(!is_ring(0, 0, 8) && !is_ring(0, 4_096 - 128, 0) && !is_ring(1, 0, 0));
        assert!(!is_ring(0, 8, 0) && !is_ring(0, u32::MAX - 15, 0) && !is_ring(0, 0, 255));
    }
}
