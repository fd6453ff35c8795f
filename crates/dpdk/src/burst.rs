//! Frames of one port: bursts from its device, and bursts to it.
//!
//! This file needs `unsafe`: a buffer (mbuf) belongs to DPDK's pool, to the device or to this crate, and no type shows
//! its owner. [`Queues`] owns a buffer from the C call that returns it until the C call that takes it.
//!
//! ```text
//!   pool ──allocate (64)──► spare ──send: copy──► filled ──flush──► device ──► pool
//! ```
//!
//! Sizes come from the network. The shim checks that a frame is within its buffer. It joins frames in several pieces,
//! or drops and counts them.
//!
//! Cost: one C call per burst to receive, one to free it, one to send, and one to allocate for 64 frames sent. The pool
//! returns the buffers that this thread freed last (mempool cache), so their memory is mostly in the CPU's cache.
#![allow(unsafe_code, reason = "leaf: buffers that DPDK shares with devices")]

use std::ffi::{c_uint, c_void};
use std::ptr::{NonNull, null_mut};

use crate::BURST_FRAMES_MAX;
use crate::ffi::Pool;
use crate::gate::{Inside, Passage};

/// Shortest Ethernet frame, in bytes without checksum. Some cards stop when they must send a shorter one.
const FRAME_BYTES_MIN: usize = 60;

/// Most bursts that a port which closes takes from its device, to give their buffers back.
const CLOSING_BURSTS_MAX: usize = 1_024;

unsafe extern "C" {
    fn nw_dpdk_receive(port: u16, mbufs: *mut Mbuf, views: *mut View, count: u16, frames: *mut u16) -> u16;
    fn nw_dpdk_allocate(pool: *mut c_void, mbufs: *mut Mbuf, data: *mut *mut u8, count: u16) -> u16;
    fn nw_dpdk_send(port: u16, mbufs: *mut Mbuf, bytes: *const u16, count: u16) -> u16;
    fn rte_pktmbuf_free_bulk(mbufs: *mut Mbuf, count: c_uint);
}

/// A buffer's address. Only the shim looks behind it.
type Mbuf = *mut c_void;

/// `struct nw_dpdk_view`: where a frame is.
#[repr(C)]
#[derive(Clone, Copy)]
struct View {
    data: *const u8,
    bytes: usize,
}

/// Buffers of one burst that was received. Frees them when it is dropped, also if a visitor panics.
struct Received<'a> {
    mbufs: &'a mut [Mbuf],
}

impl Drop for Received<'_> {
    fn drop(&mut self) {
        // SAFETY: `nw_dpdk_receive` gave these buffers to this value alone, and it does not use them again.
        unsafe { rte_pktmbuf_free_bulk(self.mbufs.as_mut_ptr(), self.mbufs.len() as c_uint) }
    }
}

/// The receive queue and the transmit queue of one port.
pub(crate) struct Queues {
    port: u16,
    /// Of the pool whose buffers `spare` and `filled` are.
    pool: NonNull<c_void>,
    frame_bytes_max: usize,
    /// For devices that must not be used while DPDK's host thread runs.
    passage: Option<Passage>,
    arrays: Box<Arrays>,
    spares: usize,
    waiting: usize,
    pub(crate) malformed: u64,
    pub(crate) no_buffer: u64,
}

/// Each list has its length in [`Queues`], or is used within one call only.
struct Arrays {
    received: [Mbuf; BURST_FRAMES_MAX],
    views: [View; BURST_FRAMES_MAX],
    /// Buffers without a frame, and where their frames start.
    spare: [Mbuf; BURST_FRAMES_MAX],
    spare_data: [*mut u8; BURST_FRAMES_MAX],
    /// Buffers with a frame, and how many bytes it has.
    filled: [Mbuf; BURST_FRAMES_MAX],
    filled_bytes: [u16; BURST_FRAMES_MAX],
}

// SAFETY: all addresses are of buffers that this value alone owns; DPDK's functions for them work on any thread. A
// queue must not be used by two threads at a time: every method that uses one takes `&mut self`.
unsafe impl Send for Queues {}

impl Queues {
    /// # Safety
    /// - The port is started with queue 0 each way, and is neither stopped nor closed before this value is dropped.
    /// - There is no other `Queues` for the port.
    /// - A device of net_memif has a passage.
    /// - The pool outlives this value. Its buffers have room for `frame_bytes_max` bytes after their headroom, which is
    ///   at most 65,535.
    pub(crate) unsafe fn new(port: u16, pool: &Pool, frame_bytes_max: usize, passage: Option<Passage>) -> Queues {
        let arrays = Box::new(Arrays {
            received: [null_mut(); _],
            views: [View { data: null_mut(), bytes: 0 }; _],
            spare: [null_mut(); _],
            spare_data: [null_mut(); _],
            filled: [null_mut(); _],
            filled_bytes: [0; _],
        });
        let pool = NonNull::new(pool.address()).expect("a pool has an address");
        Queues { port, pool, frame_bytes_max, passage, arrays, spares: 0, waiting: 0, malformed: 0, no_buffer: 0 }
    }

    /// Frames that wait for the next flush.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    /// Receives at most `at_most` frames, and at most [`BURST_FRAMES_MAX`], and returns how many it passed on.
    pub(crate) fn receive(&mut self, at_most: usize, mut visit: impl FnMut(&[u8])) -> usize {
        let count = at_most.min(BURST_FRAMES_MAX) as u16;
        let Arrays { received, views, .. } = &mut *self.arrays;
        let mut frames = 0;
        let Ok(inside) = enter(self.passage.as_ref()) else { return 0 };
        // SAFETY:
        // - the port is started, and `&mut self` means that no other thread receives from it (see `new`);
        // - both arrays have room for `count` entries.
        let taken =
            unsafe { nw_dpdk_receive(self.port, received.as_mut_ptr(), views.as_mut_ptr(), count, &raw mut frames) };
        drop(inside); // The frames are in our buffers now.
        if taken == 0 {
            return 0;
        }
        let (taken, frames) = (usize::from(taken), usize::from(frames));
        self.malformed += (taken - frames) as u64;
        let _buffers = Received { mbufs: &mut received[..taken] };
        for view in &views[..frames] {
            // SAFETY:
            // - the shim checked that these bytes are within their buffer, which holds them in one piece;
            // - `_buffers` owns the buffer until all frames were visited; the driver writes no frame that it gave us
            //   (`Port::open` refuses the one mode in which a peer could);
            // - pools are zeroed when made, so that all bytes have a value.
            visit(unsafe { std::slice::from_raw_parts(view.data, view.bytes) });
        }
        frames
    }

    /// Copies a frame, made of these parts, into a buffer. See `Port::send`.
    pub(crate) fn send(&mut self, parts: &[&[u8]]) -> bool {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes > self.frame_bytes_max || self.waiting == BURST_FRAMES_MAX {
            return false;
        }
        if self.spares == 0 && !self.allocate() {
            self.no_buffer += 1;
            return false;
        }
        self.spares -= 1;
        let arrays = &mut *self.arrays;
        // SAFETY:
        // - the buffer is ours: `allocate` got it from the pool, and only `flush` gives it away;
        // - frames start there, with room for `frame_bytes_max` bytes (see `new`), zeroed when the pool was made.
        let frame = unsafe { std::slice::from_raw_parts_mut(arrays.spare_data[self.spares], self.frame_bytes_max) };
        let mut end = 0;
        for part in parts {
            frame[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        if end < FRAME_BYTES_MIN {
            frame[end..FRAME_BYTES_MIN].fill(0);
            end = FRAME_BYTES_MIN;
        }
        arrays.filled[self.waiting] = arrays.spare[self.spares];
        arrays.filled_bytes[self.waiting] = end as u16;
        self.waiting += 1;
        true
    }

    /// Fills `spare`, which is empty. False if the pool has nothing.
    #[cold]
    fn allocate(&mut self) -> bool {
        let Arrays { spare, spare_data, .. } = &mut *self.arrays;
        let count = BURST_FRAMES_MAX as u16;
        // SAFETY: the pool is alive (see `new`); both arrays have room for `count` entries, none of them in use.
        let got = unsafe { nw_dpdk_allocate(self.pool.as_ptr(), spare.as_mut_ptr(), spare_data.as_mut_ptr(), count) };
        self.spares = usize::from(got);
        got > 0
    }

    /// Gives the frames that wait to the device, in order, and returns how many it took.
    pub(crate) fn flush(&mut self) -> usize {
        if self.waiting == 0 {
            return 0;
        }
        let Arrays { filled, filled_bytes, .. } = &mut *self.arrays;
        let Ok(inside) = enter(self.passage.as_ref()) else { return 0 };
        // SAFETY:
        // - the port is started, and `&mut self` means that no other thread sends to it (see `new`);
        // - `send` took the first `waiting` buffers from the pool and wrote as many bytes as `filled_bytes` says;
        // - the device owns the buffers that it takes, and the lines below remove them from the list.
        let taken = unsafe { nw_dpdk_send(self.port, filled.as_mut_ptr(), filled_bytes.as_ptr(), self.waiting as u16) };
        drop(inside);
        let taken = usize::from(taken);
        filled.copy_within(taken..self.waiting, 0);
        filled_bytes.copy_within(taken..self.waiting, 0);
        self.waiting -= taken;
        taken
    }
}

/// The gate is closed.
struct Closed;

fn enter(passage: Option<&Passage>) -> Result<Option<Inside<'_>>, Closed> {
    passage.map(|passage| passage.enter().ok_or(Closed)).transpose()
}

impl Drop for Queues {
    fn drop(&mut self) {
        // A device of net_ring keeps the buffers of frames that no port receives.
        for _ in 0..CLOSING_BURSTS_MAX {
            if self.receive(BURST_FRAMES_MAX, |_| ()) == 0 {
                break;
            }
        }
        // SAFETY: `send` and `allocate` took the first `waiting` and `spares` buffers from the pool; this is their last
        // use.
        unsafe {
            rte_pktmbuf_free_bulk(self.arrays.filled.as_mut_ptr(), self.waiting as c_uint);
            rte_pktmbuf_free_bulk(self.arrays.spare.as_mut_ptr(), self.spares as c_uint);
        }
    }
}
