//! One queue without system calls: the frames, and the four rings over which they go to the kernel and back.
//!
//! Source: Documentation/networking/af_xdp.rst of Linux.
//!
//! ```text
//!   receive half:  ours ──fill ring──► kernel ──RX ring──► ours (while `take` reads it) ──► fill ring again
//!   send half:     free ──TX ring──► kernel ──completion ring──► free
//! ```
//!
//! Every ring has as many slots as a half has frames, so none overflows: a frame is in one ring at most.
//!
//! Cost per received frame: two ring entries and the frame, nothing is copied. Per frame sent: one copy and two ring
//! entries. Indices are written once per batch.
//!
//! Limits: impossible descriptors are refused and counted ([`Queue::refused`]). A frame that the kernel never gives
//! back is missing from then on.

use crate::ring::{ConsumerRing, ProducerRing};
use crate::umem::Umem;

/// See the module.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) umem: Umem,
    pub(crate) fill: ProducerRing<u64>,
    pub(crate) completion: ConsumerRing<u64>,
    pub(crate) rx: ConsumerRing<libc::xdp_desc>,
    pub(crate) tx: ProducerRing<libc::xdp_desc>,
    pub(crate) refused: u64,
}

impl Queue {
    /// Lends all frames to receive to the kernel.
    pub(crate) fn fill(&mut self) {
        for frame in self.umem.to_receive() {
            if self.fill.push(self.umem.address(&frame)) {
                self.umem.lend(frame);
            }
        }
        self.fill.publish();
    }

    /// [`crate::XdpSocket::receive`] without waking the kernel.
    pub(crate) fn receive(&mut self, max: usize, mut take: impl FnMut(&[u8])) -> usize {
        let (mut taken, mut read) = (0, 0);
        // Refused descriptors count towards the limit, so that the loop ends.
        while read < max {
            let Some(descriptor) = self.rx.pop() else { break };
            read += 1;
            let Some(frame) = self.umem.take_back(descriptor.addr) else {
                self.refused += 1;
                continue;
            };
            match self.umem.content(&frame, descriptor) {
                Some(bytes) if descriptor.options & libc::XDP_PKT_CONTD == 0 => {
                    taken += 1;
                    take(bytes);
                }
                _ => self.refused += 1,
            }
            if self.fill.push(self.umem.address(&frame)) {
                self.umem.lend(frame);
            }
        }
        if read > 0 {
            self.rx.release();
            self.fill.publish();
        }
        taken
    }

    /// [`crate::XdpSocket::send`].
    pub(crate) fn send(&mut self, parts: &[&[u8]]) -> bool {
        let Some(descriptor) = self.umem.write(parts) else { return false };
        let is_queued = self.tx.push(descriptor);
        if !is_queued {
            // Only if the kernel's index cannot be. Nothing has the frame, so it is free again.
            let _ = self.umem.sent(descriptor.addr);
        }
        is_queued
    }

    /// Takes back the frames that were sent.
    pub(crate) fn reap(&mut self) {
        // At most as many as there are: the loop ends whatever the kernel writes meanwhile.
        let most = self.umem.sending();
        let mut read = 0;
        while read < most
            && let Some(address) = self.completion.pop()
        {
            read += 1;
            if !self.umem.sent(address) {
                self.refused += 1;
            }
        }
        if read > 0 {
            self.completion.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::ring::tests::{consumer, memory, producer};

    const HALF: u32 = 8;
    const FRAME_BYTES: u32 = 2_048;

    /// The other side of the rings, as the kernel plays it: it gives frames back in any order.
    struct Kernel {
        fill: ConsumerRing<u64>,
        completion: ProducerRing<u64>,
        rx: ProducerRing<libc::xdp_desc>,
        tx: ConsumerRing<libc::xdp_desc>,
        empty: Vec<u64>,
        sending: Vec<u64>,
    }

    impl Kernel {
        /// A packet of `len` bytes came. False if there is no frame for it.
        fn receive(&mut self, len: u32, pick: usize) -> bool {
            self.empty.extend(std::iter::from_fn(|| self.fill.pop()));
            self.fill.release();
            if self.empty.is_empty() {
                return false;
            }
            let addr = self.empty.swap_remove(pick % self.empty.len()) + 256;
            assert!(self.rx.push(libc::xdp_desc { addr, len, options: 0 }), "RX has room");
            self.rx.publish();
            true
        }

        /// The lengths of the packets on the TX ring.
        fn send(&mut self) -> Vec<u32> {
            let descriptors: Vec<_> = std::iter::from_fn(|| self.tx.pop()).collect();
            self.tx.release();
            self.sending.extend(descriptors.iter().map(|descriptor| descriptor.addr));
            descriptors.iter().map(|descriptor| descriptor.len).collect()
        }

        fn complete(&mut self, pick: usize) {
            if !self.sending.is_empty() {
                let address = self.sending.swap_remove(pick % self.sending.len());
                assert!(self.completion.push(address), "completion has room");
                self.completion.publish();
            }
        }
    }

    /// Both sides of a queue whose indices start at `start`.
    fn queue(start: u32) -> (Queue, Kernel) {
        let (fill, completion) = (memory::<u64>(HALF, start), memory::<u64>(HALF, start));
        let (rx, tx) = (memory::<libc::xdp_desc>(HALF, start), memory::<libc::xdp_desc>(HALF, start));
        let mut queue = Queue {
            umem: Umem::new(2 * HALF, FRAME_BYTES).expect("memory"),
            fill: producer(&fill, HALF),
            completion: consumer(&completion, HALF),
            rx: consumer(&rx, HALF),
            tx: producer(&tx, HALF),
            refused: 0,
        };
        queue.fill();
        let kernel = Kernel {
            fill: consumer(&fill, HALF),
            completion: producer(&completion, HALF),
            rx: producer(&rx, HALF),
            tx: consumer(&tx, HALF),
            empty: vec![],
            sending: vec![],
        };
        (queue, kernel)
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Come(u32),
        Receive(usize),
        Send(usize),
        Publish,
        Take,
        Complete,
        Reap,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..=1_792u32).prop_map(Step::Come),
            (0..12usize).prop_map(Step::Receive),
            (0..=1_792usize).prop_map(Step::Send),
            Just(Step::Publish),
            Just(Step::Take),
            Just(Step::Complete),
            Just(Step::Reap),
        ]
    }

    proptest! {
        /// Against two queues of lengths: packets arrive in order, on both sides; no frame is lost, whatever the order
        /// in which the kernel returns them; a packet is refused exactly if all frames of its half are in use.
        #[test]
        fn packets_keep_their_order_and_frames_are_not_lost(
            start in prop_oneof![Just(0), Just(u32::MAX - 3), any::<u32>()],
            steps in proptest::collection::vec((step(), any::<usize>()), 1..300),
        ) {
            let (mut queue, mut kernel) = queue(start);
            let (mut coming, mut hidden, mut going) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
            let (mut in_kernel, mut completed) = (0, 0);
            for (step, pick) in steps {
                match step {
                    Step::Come(len) => {
                        let has_room = coming.len() < HALF as usize;
                        prop_assert_eq!(kernel.receive(len, pick), has_room);
                        coming.extend(has_room.then_some(len as usize));
                    }
                    Step::Receive(max) => {
                        let expected: Vec<usize> = coming.drain(..max.min(coming.len())).collect();
                        let mut lengths = vec![];
                        prop_assert_eq!(queue.receive(max, |bytes| lengths.push(bytes.len())), expected.len());
                        prop_assert_eq!(lengths, expected);
                    }
                    Step::Send(len) => {
                        let used = hidden.len() + going.len() + in_kernel + completed;
                        let has_room = used < HALF as usize;
                        prop_assert_eq!(queue.send(&[&[1; 2_048][..len]]), has_room);
                        hidden.extend(has_room.then_some(len as u32));
                    }
                    Step::Publish => {
                        queue.tx.publish();
                        going.append(&mut hidden);
                    }
                    Step::Take => {
                        in_kernel += going.len();
                        prop_assert_eq!(kernel.send(), going.drain(..).collect::<Vec<_>>());
                    }
                    Step::Complete => {
                        kernel.complete(pick);
                        completed += in_kernel.min(1);
                        in_kernel -= in_kernel.min(1);
                    }
                    Step::Reap => {
                        queue.reap();
                        completed = 0;
                    }
                }
                prop_assert_eq!(queue.umem.sending(), hidden.len() + going.len() + in_kernel + completed);
            }
            prop_assert_eq!(queue.refused, 0);
        }

        /// A kernel that gives any descriptors: they are refused or name frames that it had, and each at most once.
        #[test]
        fn descriptors_that_cannot_be_are_refused(
            descriptors in proptest::collection::vec(((0..40_000u64).prop_union(0..u64::MAX), 0..5_000u32, 0..2u32), 1..8),
        ) {
            let (mut queue, mut kernel) = queue(0);
            while queue.send(&[b"packet"]) {}
            for (addr, len, options) in &descriptors {
                assert!(kernel.rx.push(libc::xdp_desc { addr: *addr, len: *len, options: *options }), "RX has room");
                assert!(kernel.completion.push(*addr), "completion has room");
            }
            kernel.rx.publish();
            kernel.completion.publish();
            let taken = queue.receive(usize::MAX, |bytes| assert!(bytes.len() <= FRAME_BYTES as usize));
            queue.reap();
            let back = HALF as usize - queue.umem.sending();
            let count = |within: std::ops::Range<u64>| {
                let frames = descriptors.iter().map(|(addr, ..)| addr / u64::from(FRAME_BYTES));
                frames.filter(|frame| within.contains(frame)).collect::<std::collections::BTreeSet<_>>().len()
            };
            let half = u64::from(HALF);
            prop_assert_eq!(back, count(half..2 * half));
            // A frame that came can come again: it went to the fill ring in between.
            prop_assert!(taken <= descriptors.len());
            prop_assert_eq!(queue.refused as usize, 2 * descriptors.len() - taken - back);
        }
    }
}
