//! DPDK's runtime (Environment Abstraction Layer): its start, its end, its threads, and the ports that are open.
//!
//! DPDK has one runtime per process and cannot start again after its end. We start it on a separate thread, which then
//! ends. DPDK pins the thread that starts it to a CPU, and DPDK's threads inherit the signal mask of that thread. So
//! the caller's CPUs and signals stay as they are.
//!
//! Threads: buffers come from a pool that all threads share. A thread with an *lcore id* has a cache of the pool, which
//! drivers use, too. DPDK has 128 ids. A thread gets one at its first burst and gives it back when it ends. Caches of
//! our own (`rte_mempool_cache_create`) would not help: drivers would not know them. Without an id, a burst costs
//! atomic operations, and all else is the same.
//!
//! Two threads must not attach, open or close at the same time, so one lock protects these functions.

use std::cell::Cell;
use std::ffi::CString;
use std::io;
use std::sync::{Arc, Mutex};

use crate::arguments::{complete, is_option};
use crate::ffi;
use crate::sync::lock;

/// Lines of DPDK's log that an error quotes.
const ERROR_LINES_MAX: usize = 4;

/// Whether DPDK runs. Locked while it starts, ends, or forgets a thread.
static STATE: Mutex<State> = Mutex::new(State::NotStarted);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    NotStarted,
    Running,
    Ended,
}

/// The DPDK runtime of this process; at most one. It ends when the last [`Port`](crate::Port) and the last `Arc` are
/// gone. See the module.
#[derive(Debug)]
pub struct Eal {
    pub(crate) ports: Mutex<crate::port::Ports>,
}

impl Eal {
    /// Starts DPDK. `args` are its options without the name of the program, for example
    /// `["--no-huge", "-m", "512", "--no-pci"]`.
    ///
    /// Unless they say otherwise, this call adds: `--in-memory` (no files; huge pages are given back at the end), or
    /// `--no-shconf` with `--no-huge`; `--no-telemetry`; `--log-level=warning`; `--file-prefix=namewire`, with the
    /// process id if there are files; and one lcore that may run on all CPUs of the calling thread. DPDK logs to stderr
    /// only if `args` have `--log-level`; see [`take_log`](Self::take_log). The call takes about 0.2 s: DPDK loads all
    /// its drivers.
    ///
    /// N.B. `rte_eal_init` ends the process in some cases that are not errors of options, for example if it cannot
    /// create a pipe or a thread (`rte_panic`).
    ///
    /// # Errors
    /// `AlreadyExists` after a call that succeeded; `InvalidInput` for options that DPDK refuses, or that make it print
    /// and exit (help, version); others that DPDK gives, mostly because there are no huge pages and no `--no-huge`, or
    /// no permission. The text quotes DPDK's log.
    pub fn init(args: &[String]) -> io::Result<Arc<Eal>> {
        let mut state = lock(&STATE);
        if *state != State::NotStarted {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "DPDK starts once per process"));
        }
        let all = complete(args, std::process::id(), &allowed_cpus())?;
        let all = all.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let shows_log = args.iter().any(|argument| is_option(argument, "--log-level"));
        let thread = std::thread::Builder::new().name("dpdk-start".into());
        let result = thread.spawn(move || ffi::init(&all, shows_log))?.join();
        result
            .unwrap_or_else(|_| Err(io::Error::other("the thread failed")))
            .map_err(|e| failed("starting DPDK", &e))?;
        *state = State::Running;
        Ok(Arc::new(Eal { ports: Mutex::default() }))
    }

    /// What DPDK logged since the last call, as lines: at most the newest 4 KB. Errors of this crate quote the end
    /// of it and forget it.
    #[must_use]
    pub fn take_log(&self) -> String {
        ffi::take_log()
    }
}

impl Drop for Eal {
    fn drop(&mut self) {
        let mut state = lock(&STATE);
        ffi::end();
        *state = State::Ended;
    }
}

/// The CPUs on which the calling thread may run.
fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// The error of a step, with the name of the step and the end of DPDK's log.
pub(crate) fn failed(step: &str, error: &io::Error) -> io::Error {
    let log = ffi::take_log();
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let quoted = lines[lines.len().saturating_sub(ERROR_LINES_MAX)..].join("; ");
    let colon = if quoted.is_empty() { "" } else { ": " };
    io::Error::new(error.kind(), format!("{step}: {error}{colon}{quoted}"))
}

/// An lcore id for the calling thread, given back when the thread ends.
struct Lcore {
    is_registered: Cell<bool>,
}

thread_local! {
    static LCORE: Lcore = Lcore { is_registered: Cell::new(ffi::register_thread()) };
}

impl Drop for Lcore {
    fn drop(&mut self) {
        let state = lock(&STATE);
        if self.is_registered.get() && *state == State::Running {
            ffi::unregister_thread();
        }
    }
}

/// Gives the calling thread an lcore id, unless it has one or tried before. Only while DPDK runs.
pub(crate) fn register_thread() {
    // A thread that is about to end has no variables any more; it works without an id.
    let _ = LCORE.try_with(|_| ());
}
