//! Counts instructions one by one, for machines without hardware counters.
//!
//! Question answered: how many instructions did this code execute? The answer depends on code and data alone, not on
//! the machine's load: two runs of one program agree.
//!
//! `fork` copies this process with all its tables. The copy does the work; the parent steps it with `ptrace`, as a
//! debugger does. Both share one page of words:
//!
//! ```text
//! | 0: instructions so far | 1 … 511: results of the copy |
//! ```
//!
//! Only code under [`step`] is counted. A repeated string instruction traps at every iteration and counts once,
//! because its address stays the same. Cost: an instruction takes 22 microseconds on a virtual machine. Limits: it
//! needs x86-64 Linux that lets a process trace its child, and gives an error elsewhere; the results fill one page.
#![allow(unsafe_code, reason = "leaf: fork, ptrace and a page shared with the copy")]

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::interrupt;
use crate::process::on_cpu;

/// Most results that the copy can hand back.
pub const RESULTS_MAX: usize = WORDS - 1;

const WORDS: usize = 512;
const PAGE_BYTES: usize = WORDS * size_of::<u64>();
/// Instructions between two checks for an interrupt.
const STEPS_PER_LOOK: u64 = 1 << 14;

/// The shared page; null except in the copy.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// Instructions counted so far; 0 outside of [`in_a_copy`].
pub fn clock() -> u64 {
    let page = PAGE.load(Ordering::Relaxed);
    if page.is_null() {
        return 0;
    }
    // SAFETY: set by `in_a_copy` to a page that stays mapped to the end of the copy.
    unsafe { &*page }.load(Ordering::Relaxed)
}

/// Counts the instructions of `work`; only in [`in_a_copy`].
pub fn step<T>(work: impl FnOnce() -> T) -> T {
    stop();
    let result = work();
    stop();
    result
}

/// Asks the parent to begin or end stepping.
fn stop() {
    // SAFETY: sends a signal to the calling thread; the tracing parent takes it away.
    let _ = unsafe { libc::raise(libc::SIGSTOP) };
}

/// Runs `work` in a copy of this process and returns the results that it fills in.
///
/// # Errors
/// If the system lets us make or trace no copy, if the copy fails, or on an interrupt.
pub fn in_a_copy(work: impl FnOnce(&mut [u64]) -> anyhow::Result<()>) -> anyhow::Result<Vec<u64>> {
    // On one processor: waking another one took as long as the step itself.
    on_cpu(rustix::thread::sched_getcpu(), || fork_and_trace(work))?
}

fn fork_and_trace(work: impl FnOnce(&mut [u64]) -> anyhow::Result<()>) -> anyhow::Result<Vec<u64>> {
    let page = Page::new()?;
    // SAFETY: the copy has the calling thread only. It allocates (the C library makes its
    // allocator usable after `fork`), takes no lock that another thread may have held, and
    // leaves by `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error().into()),
        0 => be_the_copy(&page, work),
        child => {
            let traced = trace(child, page.words());
            if traced.is_err() {
                // SAFETY: signals our child, which is not waited for yet or gone already.
                unsafe { libc::kill(child, libc::SIGKILL) };
                let _ = wait(child);
            }
            traced?;
            Ok(page.words()[1..].iter().map(|word| word.load(Ordering::Relaxed)).collect())
        }
    }
}

fn be_the_copy(page: &Page, work: impl FnOnce(&mut [u64]) -> anyhow::Result<()>) -> ! {
    PAGE.store(page.address, Ordering::Relaxed);
    let mut results = [0; RESULTS_MAX];
    // SAFETY: asks to be traced by the parent; the other arguments are ignored.
    let is_traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } == 0;
    if is_traced {
        stop(); // where the parent makes its settings
    }
    let done = if is_traced { work(&mut results) } else { Err(io::Error::last_os_error().into()) };
    for (word, result) in page.words()[1..].iter().zip(results) {
        word.store(result, Ordering::Relaxed);
    }
    if let Err(error) = &done {
        eprintln!("namewire-lab: counting instructions: {error:#}");
    }
    // SAFETY: ends the copy at once: nothing of the parent's may be flushed or removed by it.
    unsafe { libc::_exit(i32::from(done.is_err())) }
}

/// Follows the copy to its end, and steps it between its two stop signals.
fn trace(child: libc::pid_t, words: &[AtomicU64]) -> anyhow::Result<()> {
    let status = wait(child)?;
    anyhow::ensure!(is_stopped_by(status, libc::SIGSTOP), "the copy cannot be traced (status {status:#x})");
    request(libc::PTRACE_SETOPTIONS, child, libc::PTRACE_O_EXITKILL as usize)?;
    let (mut is_stepping, mut last_address, mut signal) = (false, 0, 0);
    for stops in 0_u64.. {
        let go_on = if is_stepping { libc::PTRACE_SINGLESTEP } else { libc::PTRACE_CONT };
        request(go_on, child, signal as usize)?;
        let status = wait(child)?;
        signal = 0;
        if libc::WIFEXITED(status) {
            anyhow::ensure!(libc::WEXITSTATUS(status) == 0, "the copy failed");
            return Ok(());
        } else if is_stepping && is_stopped_by(status, libc::SIGTRAP) {
            let address = instruction_address(child)?;
            words[0].fetch_add(u64::from(address != last_address), Ordering::Relaxed);
            last_address = address;
        } else if is_stopped_by(status, libc::SIGSTOP) {
            is_stepping = !is_stepping;
        } else if libc::WIFSTOPPED(status) {
            signal = libc::WSTOPSIG(status);
        } else {
            anyhow::bail!("the copy died (status {status:#x})");
        }
        if stops % STEPS_PER_LOOK == 0 {
            interrupt::check()?;
        }
    }
    Ok(())
}

fn is_stopped_by(status: i32, signal: i32) -> bool {
    libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == signal
}

fn wait(child: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: waits for our own child; `status` outlives the call.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn request(what: libc::c_uint, child: libc::pid_t, data: usize) -> io::Result<()> {
    // SAFETY: none of the requests used here reads or writes memory of ours.
    match unsafe { libc::ptrace(what, child, 0_usize, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The address of the stopped copy's next instruction.
#[cfg(target_arch = "x86_64")]
fn instruction_address(child: libc::pid_t) -> io::Result<i64> {
    let offset = std::mem::offset_of!(libc::user_regs_struct, rip); // `user` begins with the registers
    // SAFETY: reads a register of our stopped child; nothing of ours is touched. The result
    // is an address of user space, so -1 means failure.
    match unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, child, offset, 0_usize) } {
        -1 => Err(io::Error::last_os_error()),
        address => Ok(address),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn instruction_address(_child: libc::pid_t) -> io::Result<i64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// One page, the same memory for parent and copy.
struct Page {
    address: *mut AtomicU64,
}

impl Page {
    fn new() -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let address = unsafe { mmap_anonymous(std::ptr::null_mut(), PAGE_BYTES, access, MapFlags::SHARED) }?;
        Ok(Self { address: address.cast() })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds this many words, zeroed by the kernel, page-aligned, and
        // lives as long as `self`; it is only read and written as atomic words.
        unsafe { std::slice::from_raw_parts(self.address, WORDS) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and no slice of it outlives `self`.
        let _ = unsafe { munmap(self.address.cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;
    use std::hint::black_box;

    fn count_sum(numbers: u64) -> anyhow::Result<u64> {
        let results = in_a_copy(|results| {
            results[0] = step(|| {
                let before = clock();
                black_box((0..black_box(numbers)).fold(0, |sum, number| black_box(sum + number)));
                clock() - before
            });
            Ok(())
        })?;
        Ok(results[0])
    }

    #[test]
    fn the_count_depends_on_the_work_alone() -> anyhow::Result<()> {
        let once = count_sum(100)?;
        assert_eq!(count_sum(100)?, once, "twice the same");
        let (more, most) = (count_sum(200)?, count_sum(300)?);
        assert_eq!(most - more, more - once, "as many instructions for every number");
        assert!((100..2_000).contains(&(more - once)), "{} for 100 numbers", more - once);
        assert_eq!(clock(), 0, "the parent has no counter");
        Ok(())
    }

    #[test]
    fn a_copy_that_fails_is_an_error() {
        assert!(in_a_copy(|_| anyhow::bail!("no")).is_err());
    }
}
