//! Rest: the driver gives back the memory that a burst needed.
//!
//! Some time after a burst, the driver gives half of its spare buffers back to the allocator, then half of the rest,
//! and so on. It also counts what faces freed: unfinished packets, closed faces. When faces have freed much memory, the
//! allocator should give pages back to the kernel ([`give_pages_back`]): after a flood of fragments from 4000 ports, 87
//! of 89 MB stayed with the allocator. The caller decides when, because that takes milliseconds
//! ([`SocketDriver::take_freed`]).
//!
//! Cost: two comparisons per turn.

use super::SocketDriver;
use super::timer_queue::Timer;
use crate::sys;

/// Time between two steps: 1 s.
const STEP_NS: u64 = 1_000_000_000;

/// Freed bytes for which pages are given back.
const MUCH_BYTES: usize = 1 << 20;

/// Memory of a face, without its buffers.
const FACE_BYTES: usize = 1 << 10;

/// What has become free since pages were given back.
#[derive(Default)]
pub(super) struct Rest {
    freed_bytes: usize,
    has_timer: bool,
    /// The caller should give pages back.
    is_due: bool,
}

impl Rest {
    /// Notes that buffers were freed.
    pub(super) fn note_freed(&mut self, bytes: usize) {
        self.freed_bytes += bytes;
    }

    /// Notes that a face with these buffers is gone.
    pub(super) fn note_face(&mut self, buffer_bytes: u64) {
        self.freed_bytes += FACE_BYTES + buffer_bytes as usize;
    }
}

impl SocketDriver {
    /// True if enough was freed to make [`give_pages_back`] worth its time. Counting begins anew.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.rest.is_due)
    }

    /// Sets a timer if there is something to give back.
    #[inline]
    pub(super) fn schedule_rest(&mut self) {
        let has_much = self.outlet.pool.is_large() || self.rest.freed_bytes >= MUCH_BYTES;
        if has_much && !self.rest.has_timer {
            self.rest.has_timer = true;
            self.timers.set(self.now_ns + STEP_NS, Timer::Rest);
        }
    }

    pub(super) fn run_rest_timer(&mut self) {
        self.rest.has_timer = false;
        self.rest.freed_bytes += self.outlet.pool.rest();
        self.faces.rest();
        if !self.outlet.pool.is_large() && self.rest.freed_bytes >= MUCH_BYTES {
            (self.rest.freed_bytes, self.rest.is_due) = (0, true);
        }
        self.schedule_rest();
    }
}

/// Lets the allocator give free pages back to the kernel. Takes milliseconds for each 100 MB of heap; other threads
/// that allocate meanwhile wait.
///
/// N.B. The free end of a thread's heap stays, up to twice the largest block that was ever freed: after 30,000 routes
/// of a configuration had gone, a router had 42 MB, and after 50,000 it had 26. Fixed thresholds of glibc were no
/// gain. With 128 KiB for mapped blocks, every connection accepted beside 16,000 others mapped and unmapped a copy of
/// the face table, and the status took 1.4 s. With 32 MiB, and 8 MiB at the ends of heaps, the memory of a flood of
/// fragments did not come back. One heap for all threads kept 21 MB after 20,000 routes had gone.
pub fn give_pages_back() {
    sys::give_pages_back();
}
