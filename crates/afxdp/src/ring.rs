//! Ring: a queue of fixed length in shared memory. One side writes entries, the other reads them.
//!
//! Source: Documentation/networking/af_xdp.rst of Linux and the comments of net/xdp/xsk_queue.h. The other side of all
//! four rings of a socket is the kernel. It chooses where in the memory the parts are:
//!
//! ```text
//!   │ producer: u32 │ … │ consumer: u32 │ … │ flags: u32 │ … │ slot 0 │ slot 1 │ … │ slot n−1 │
//!     cache line 0        cache line 1        cache line 2     n is a power of two
//! ```
//!
//! *producer* counts the entries written, *consumer* those read; both run on through 2³² and start again at 0. An entry
//! is in slot `index mod n`. Each side writes only its own index, after the slots (release), and reads the other's
//! before the slots (acquire).
//!
//! Cost: each side has copies of both indices in its own memory. It reads the other's index (a cache miss if it
//! changed) only if the copy shows too little room, or too few entries. It writes its own index once per batch.
//!
//! Limits: a full ring takes no entry. If the other side writes an impossible index, the ring counts as full or as
//! empty. Nothing else depends on the writes of the other side: callers check the entries.
#![allow(unsafe_code, reason = "leaf: memory shared with the kernel")]

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::mapping::Mapping;

/// A ring's entry: integers only, so that any bytes are a value.
pub(crate) trait Entry: Copy {}

/// An address of a frame, in the fill ring and the completion ring.
impl Entry for u64 {}
/// A frame's address and length, in the RX ring and the TX ring.
impl Entry for libc::xdp_desc {}

/// Where in the shared memory the parts of a ring are, in bytes from its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) producer: u64,
    pub(crate) consumer: u64,
    pub(crate) flags: u64,
    pub(crate) slots: u64,
}

impl Layout {
    /// Bytes that a ring of `count` slots needs.
    pub(crate) fn bytes<T: Entry>(&self, count: u32) -> usize {
        (self.slots as usize).saturating_add((count as usize).saturating_mul(size_of::<T>()))
    }
}

/// The parts of a ring that both sides see.
#[derive(Debug)]
struct Shared<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    slots: NonNull<T>,
    count: u32,
    /// Keeps the pointers good.
    _memory: Arc<Mapping>,
}

// SAFETY: the pointers are into `_memory`, which may move between threads, and entries are integers. `&self` allows
// only atomic access; slots are accessed only by the side that owns them, through `&mut` of that side.
unsafe impl<T: Entry> Send for Shared<T> {}

impl<T: Entry> Shared<T> {
    fn new(memory: Arc<Mapping>, layout: Layout, count: u32) -> io::Result<Self> {
        let refused = || io::Error::new(io::ErrorKind::InvalidData, "the kernel describes a ring that cannot be");
        if !count.is_power_of_two() {
            return Err(refused());
        }
        Ok(Shared {
            producer: memory.place(layout.producer, 1).ok_or_else(refused)?,
            consumer: memory.place(layout.consumer, 1).ok_or_else(refused)?,
            flags: memory.place(layout.flags, 1).ok_or_else(refused)?,
            slots: memory.place(layout.slots, count as usize).ok_or_else(refused)?,
            count,
            _memory: memory,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: `place` checked bounds and alignment, `_memory` is alive as long as `self`, and both sides access the
        // four bytes only atomically.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for `producer`.
        unsafe { self.consumer.as_ref() }
    }

    fn flags(&self) -> &AtomicU32 {
        // SAFETY: as for `producer`.
        unsafe { self.flags.as_ref() }
    }

    /// The slot of the entry with this index.
    fn slot(&self, index: u32) -> NonNull<T> {
        let place = index & (self.count - 1);
        // SAFETY: `place` is below `count`, and `place()` has checked that `count` slots lie within the memory.
        unsafe { self.slots.add(place as usize) }
    }
}

/// A ring that we write.
#[derive(Debug)]
pub(crate) struct ProducerRing<T> {
    shared: Shared<T>,
    /// Index of the next entry. The other side may not know the last ones yet.
    next: u32,
    /// The other side's index, as read last.
    consumer: u32,
}

impl<T: Entry> ProducerRing<T> {
    pub(crate) fn new(memory: Arc<Mapping>, layout: Layout, count: u32) -> io::Result<Self> {
        let shared = Shared::new(memory, layout, count)?;
        let next = shared.producer().load(Ordering::Relaxed);
        let consumer = shared.consumer().load(Ordering::Acquire);
        Ok(ProducerRing { shared, next, consumer })
    }

    /// Writes an entry; false if the ring is full. The other side sees it after [`publish`](Self::publish).
    #[must_use]
    pub(crate) fn push(&mut self, entry: T) -> bool {
        if self.used() >= self.shared.count {
            self.consumer = self.shared.consumer().load(Ordering::Acquire);
            if self.used() >= self.shared.count {
                return false;
            }
        }
        // SAFETY:
        // - `slot` is within the memory and aligned;
        // - the entry is ours to write: the other side has read the one that was in the slot (`consumer`, loaded with
        //   acquire, is past it), and reads this one only after `publish`.
        unsafe { self.shared.slot(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Shows the entries to the other side.
    pub(crate) fn publish(&mut self) {
        self.shared.producer().store(self.next, Ordering::Release);
    }

    /// How many entries the other side has not read, whether it knows them or not. Reads its index.
    pub(crate) fn unread(&mut self) -> u32 {
        self.consumer = self.shared.consumer().load(Ordering::Acquire);
        self.used().min(self.shared.count)
    }

    /// True if the kernel reads the ring only after a system call that tells it to.
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.shared.flags().load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    fn used(&self) -> u32 {
        self.next.wrapping_sub(self.consumer)
    }
}

/// A ring that we read.
#[derive(Debug)]
pub(crate) struct ConsumerRing<T> {
    shared: Shared<T>,
    /// Index of the next entry to read. The other side may not know yet that we read the last ones.
    next: u32,
    /// The other side's index, as read last.
    producer: u32,
}

impl<T: Entry> ConsumerRing<T> {
    pub(crate) fn new(memory: Arc<Mapping>, layout: Layout, count: u32) -> io::Result<Self> {
        let shared = Shared::new(memory, layout, count)?;
        let next = shared.consumer().load(Ordering::Relaxed);
        Ok(ConsumerRing { shared, next, producer: next })
    }

    /// The next entry, copied. The other side may write its slot after [`release`](Self::release).
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.next == self.producer {
            let producer = self.shared.producer().load(Ordering::Acquire);
            if producer.wrapping_sub(self.next) > self.shared.count {
                return None; // An index that cannot be.
            }
            self.producer = producer;
            if self.next == producer {
                return None;
            }
        }
        // SAFETY:
        // - `slot` is within the memory and aligned, and any bytes are a value of an `Entry`;
        // - the other side wrote the entry before the index (loaded with acquire) that includes it, and writes the slot
        //   again only after `release`.
        let entry = unsafe { self.shared.slot(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Whether there is an entry to read: two loads.
    pub(crate) fn has_more(&self) -> bool {
        self.next != self.producer || self.next != self.shared.producer().load(Ordering::Relaxed)
    }

    /// Gives the slots of the entries read back to the other side.
    pub(crate) fn release(&mut self) {
        self.shared.consumer().store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, slots: 192 };

    /// Memory of a ring, both of whose indices are at `start`.
    pub(crate) fn memory<T: Entry>(count: u32, start: u32) -> Arc<Mapping> {
        let memory = Arc::new(Mapping::anonymous(LAYOUT.bytes::<T>(count)).expect("memory"));
        let shared = Shared::<T>::new(memory.clone(), LAYOUT, count).expect("a ring");
        shared.producer().store(start, Ordering::Relaxed);
        shared.consumer().store(start, Ordering::Relaxed);
        memory
    }

    pub(crate) fn producer<T: Entry>(memory: &Arc<Mapping>, count: u32) -> ProducerRing<T> {
        ProducerRing::new(memory.clone(), LAYOUT, count).expect("a ring")
    }

    pub(crate) fn consumer<T: Entry>(memory: &Arc<Mapping>, count: u32) -> ConsumerRing<T> {
        ConsumerRing::new(memory.clone(), LAYOUT, count).expect("a ring")
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(u8),
        Publish,
        Pop(u8),
        Release,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1..12u8).prop_map(Step::Push),
            Just(Step::Publish),
            (1..12u8).prop_map(Step::Pop),
            Just(Step::Release)
        ]
    }

    proptest! {
        /// Both sides against two queues of the standard library: entries written but not shown, and entries shown.
        #[test]
        fn a_ring_is_a_queue(
            start in prop_oneof![Just(0), Just(u32::MAX - 3), any::<u32>()],
            steps in proptest::collection::vec(step(), 1..200),
        ) {
            const COUNT: u32 = 8;
            let memory = memory::<u64>(COUNT, start);
            let (mut writes, mut reads) = (producer::<u64>(&memory, COUNT), consumer::<u64>(&memory, COUNT));
            let (mut hidden, mut shown, mut held, mut written) = (VecDeque::new(), VecDeque::new(), 0, 0u64);
            for step in steps {
                match step {
                    Step::Push(entries) => for _ in 0..entries {
                        let room = hidden.len() + shown.len() + held < COUNT as usize;
                        prop_assert_eq!(writes.push(written), room);
                        if room {
                            hidden.push_back(written);
                            written += 1;
                        }
                    },
                    Step::Publish => {
                        writes.publish();
                        shown.append(&mut hidden);
                    }
                    Step::Pop(entries) => for _ in 0..entries {
                        let expected = shown.pop_front();
                        prop_assert_eq!(reads.pop(), expected);
                        held += usize::from(expected.is_some());
                    },
                    Step::Release => {
                        reads.release();
                        held = 0;
                    }
                }
                prop_assert_eq!(writes.unread() as usize, hidden.len() + shown.len() + held);
            }
        }

        /// Whatever indices the other side writes, no entry is accepted beyond the ring's length and nothing panics.
        #[test]
        fn any_index_of_the_other_side_is_survived(indices in proptest::collection::vec(any::<u32>(), 1..50)) {
            const COUNT: u32 = 8;
            let memory = memory::<u64>(COUNT, 0);
            let other = Shared::<u64>::new(memory.clone(), LAYOUT, COUNT).expect("a ring");
            let (mut writes, mut reads) = (producer::<u64>(&memory, COUNT), consumer::<u64>(&memory, COUNT));
            for index in indices {
                other.consumer().store(index, Ordering::Relaxed);
                other.producer().store(index, Ordering::Relaxed);
                let pushed = (0..100).filter(|_| writes.push(1)).count();
                let popped = std::iter::from_fn(|| reads.pop()).take(100).count();
                // As many as the ring thought were free before, and as many as the new index allows.
                let most = 2 * COUNT as usize;
                prop_assert!(pushed <= most && popped <= most, "{} {}", pushed, popped);
                prop_assert!(writes.unread() <= COUNT);
            }
        }
    }

    /// Two threads, one ring, indices that pass 2³².
    #[test]
    fn entries_cross_threads_in_order() {
        const ENTRIES: u64 = 200_000;
        const COUNT: u32 = 64;
        let memory = memory::<libc::xdp_desc>(COUNT, u32::MAX - 1_000);
        let mut writes = producer::<libc::xdp_desc>(&memory, COUNT);
        let mut reads = consumer::<libc::xdp_desc>(&memory, COUNT);
        let writer = std::thread::spawn(move || {
            for addr in 0..ENTRIES {
                while !writes.push(libc::xdp_desc { addr, len: addr as u32, options: !addr as u32 }) {
                    writes.publish();
                    std::thread::yield_now();
                }
            }
            writes.publish();
        });
        let mut expected = 0;
        while expected < ENTRIES {
            let Some(entry) = reads.pop() else {
                reads.release();
                std::thread::yield_now();
                continue;
            };
            assert_eq!((entry.addr, entry.len, entry.options), (expected, expected as u32, !expected as u32));
            expected += 1;
        }
        writer.join().expect("the writer wrote all");
    }

    #[test]
    fn a_layout_beyond_the_memory_is_refused() {
        let memory = memory::<u64>(8, 0);
        for layout in [
            Layout { producer: 1 << 40, ..LAYOUT },
            Layout { consumer: 2, ..LAYOUT },
            Layout { flags: u64::MAX, ..LAYOUT },
            Layout { slots: 4_040, ..LAYOUT },
        ] {
            assert!(ProducerRing::<u64>::new(memory.clone(), layout, 8).is_err(), "{layout:?}");
        }
        assert!(ConsumerRing::<u64>::new(memory, LAYOUT, 7).is_err(), "not a power of two");
    }
}
