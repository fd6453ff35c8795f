//! Keeps DPDK's host thread and the bursts of memif devices apart.
//!
//! The host thread of DPDK (`eal-intr-thread`) handles the events of devices. When the peer of a memif device leaves,
//! the host thread unmaps the shared memory, even while a worker copies from it. The worker then crashes the process:
//! with DPDK 22.11, after a few dozen leaving peers under load. No function of DPDK prevents this.
//!
//! So the host thread rests inside a timed callback of ours. While it rests, bursts run. Every [`REST`], our callback
//! closes the gate for bursts, waits until no burst is running, and returns to DPDK, which then handles its events. The
//! next callback, [`WORK`] later, opens the gate again. A burst that finds the gate closed does nothing, as if the
//! device were empty or full.
//!
//! ```text
//!   host thread:  ├── rests: gate open for bursts ──┤ handles peers ├── rests ...
//!   bursts:       ▌▌▌ ▌▌▌▌  ▌▌  ▌▌▌▌▌▌  ▌▌▌▌  ▌▌▌                  ▌▌▌▌  ▌▌▌
//! ```
//!
//! Cost: two atomic operations per burst of a memif device, half a percent of its time, and a thread that wakes 100
//! times a second while a memif device is open. Peers connect more slowly. Other events of DPDK wait up to [`REST`],
//! too.
//!
//! Source: DPDK 22.11, programmer's guide, "User Space Interrupt Event": one host thread runs the callbacks of devices
//! and of timers.

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::ffi;
use crate::sync::lock;

/// How long the host thread rests at a time.
const REST: Duration = Duration::from_millis(10);

/// After how long the host thread rests again, unless it is still busy. N.B. DPDK runs all timed callbacks that are due
/// before it looks at devices: with 1 µs, it came to rest again and again, and no peer could connect.
const WORK: Duration = Duration::from_micros(50);

/// How long a thread that must pass the gate sleeps before it tries again.
const RETRY: Duration = Duration::from_micros(20);

/// Whether the host thread may be in DPDK's code.
static IS_CLOSED: AtomicBool = AtomicBool::new(true);

static PASSAGES: Mutex<Passages> = Mutex::new(Passages { all: Vec::new(), has_callback: false });

struct Passages {
    all: Vec<Arc<Busy>>,
    /// Whether the host thread rests, or will.
    has_callback: bool,
}

/// True while a thread is inside the gate: from `enter` until it drops its `Inside`. Each burst writes it, so it has a
/// cache line of its own.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Busy(AtomicBool);

/// One device's way through the gate, for one thread at a time.
#[derive(Debug)]
pub(crate) struct Passage(Arc<Busy>, PhantomData<Cell<()>>);

/// The host thread stays out of DPDK's code until this is dropped.
pub(crate) struct Inside<'a>(&'a Busy);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

impl Passage {
    /// # Errors
    /// What DPDK gives if it cannot call the host thread.
    pub(crate) fn new() -> io::Result<Passage> {
        let busy = Arc::new(Busy::default());
        let mut passages = lock(&PASSAGES);
        if !passages.has_callback {
            ffi::call_host_thread(WORK, rest)?;
            passages.has_callback = true;
        }
        passages.all.push(Arc::clone(&busy));
        Ok(Passage(busy, PhantomData))
    }

    /// `None` while the gate is closed. Once at a time: the end of one `Inside` ends all.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        // The host thread closes the gate, then looks whether we are busy; we are busy, then look at the gate. Both
        // sequentially consistent, so that one of us sees the other.
        self.0.0.store(true, Ordering::SeqCst);
        let inside = Inside(&self.0);
        (!IS_CLOSED.load(Ordering::SeqCst)).then_some(inside)
    }

    /// Waits until the gate is open: about 0.1 ms if the host thread is not busy.
    pub(crate) fn enter_surely(&self) -> Inside<'_> {
        loop {
            match self.enter() {
                Some(inside) => return inside,
                None => std::thread::sleep(RETRY),
            }
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        lock(&PASSAGES).all.retain(|busy| !Arc::ptr_eq(busy, &self.0));
    }
}

/// The host thread's rest. It ends without a next one when no passage is left.
extern "C" fn rest(_: *mut c_void) {
    IS_CLOSED.store(false, Ordering::SeqCst);
    loop {
        std::thread::sleep(REST);
        let mut passages = lock(&PASSAGES);
        if passages.all.is_empty() {
            IS_CLOSED.store(true, Ordering::SeqCst);
            passages.has_callback = false;
            return;
        }
        IS_CLOSED.store(true, Ordering::SeqCst);
        while passages.all.iter().any(|busy| busy.0.load(Ordering::SeqCst)) {
            std::thread::yield_now();
        }
        if ffi::call_host_thread(WORK, rest).is_ok() {
            return;
        }
        // Without a next callback, the gate would stay closed.
        IS_CLOSED.store(false, Ordering::SeqCst);
    }
}
