//! Counts instructions one by one, for machines without hardware counters.
//!
//! Question answered: how many instructions did this code execute? The answer depends on code and data alone, not on
//! the machine's load: two runs of one program agree.
//!
//! `fork` copies this process with all its tables. The copy does the work; the parent steps it with `ptrace`, as a
//! debugger does. Both share one page of words:
//!
//! ```text
//! | 0: instructions so far | 1, 2: lines fetched and written so far | 3 … 511: results of the copy |
//! ```
//!
//! Only code under [`step`] is counted. A repeated string instruction traps at every iteration and counts once,
//! because its address stays the same. [`lines`] counts cache lines, if the caller asks for it. Cost: an instruction
//! takes 22 microseconds on a virtual machine. Limits: it needs x86-64 Linux that lets a process trace its child, and
//! gives an error elsewhere; the results fill one page.
#![allow(unsafe_code, reason = "leaf: fork, ptrace and a page shared with the copy")]

#[cfg(target_arch = "x86_64")]
pub mod lines;

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::interrupt;
use crate::process::on_cpu;

/// Most results that the copy can hand back.
pub const RESULTS_MAX: usize = WORDS - COUNTERS;

/// Words that the parent writes: [`INSTRUCTIONS`], [`FETCHED`], [`WRITTEN`].
const COUNTERS: usize = 3;
const INSTRUCTIONS: usize = 0;
const FETCHED: usize = 1;
const WRITTEN: usize = 2;

const WORDS: usize = 512;
const PAGE_BYTES: usize = WORDS * size_of::<u64>();
/// Instructions between two checks for an interrupt.
const STEPS_PER_LOOK: u64 = 1 << 14;

/// The shared page; null except in the copy.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// What a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Instructions,
    /// Lines of memory, too: see [`lines`].
    Lines,
}

/// Instructions counted so far; 0 outside of [`in_a_copy`].
pub fn clock() -> u64 {
    counted(INSTRUCTIONS)
}

/// Lines fetched so far; 0 outside of a run that counts lines.
pub fn fetched_lines() -> u64 {
    counted(FETCHED)
}

/// Lines written so far; 0 outside of a run that counts lines.
pub fn written_lines() -> u64 {
    counted(WRITTEN)
}

fn counted(word: usize) -> u64 {
    let page = PAGE.load(Ordering::Relaxed);
    if page.is_null() {
        return 0;
    }
    // SAFETY: set by `in_a_copy` to a page of `WORDS` words that stays mapped to the end of the copy; the callers'
    // words are below `COUNTERS`.
    unsafe { &*page.add(word) }.load(Ordering::Relaxed)
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
pub fn in_a_copy(counts: Counts, work: impl FnOnce(&mut [u64]) -> anyhow::Result<()>) -> anyhow::Result<Vec<u64>> {
    // On one processor: waking another one took as long as the step itself.
    on_cpu(rustix::thread::sched_getcpu(), || fork_and_trace(counts, work))?
}

fn fork_and_trace(counts: Counts, work: impl FnOnce(&mut [u64]) -> anyhow::Result<()>) -> anyhow::Result<Vec<u64>> {
    let page = Page::new()?;
    // SAFETY: the copy has the calling thread only. It allocates (the C library makes its
    // allocator usable after `fork`), takes no lock that another thread may have held, and
    // leaves by `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error().into()),
        0 => be_the_copy(&page, work),
        child => {
            let traced = trace(child, counts, page.words());
            if traced.is_err() {
                // SAFETY: signals our child, which is not waited for yet or gone already.
                unsafe { libc::kill(child, libc::SIGKILL) };
                let _ = wait(child);
            }
            traced?;
            Ok(page.words()[COUNTERS..].iter().map(|word| word.load(Ordering::Relaxed)).collect())
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
    for (word, result) in page.words()[COUNTERS..].iter().zip(results) {
        word.store(result, Ordering::Relaxed);
    }
    if let Err(error) = &done {
        eprintln!("namewire-lab: counting instructions: {error:#}");
    }
    // SAFETY: ends the copy at once: nothing of the parent's may be flushed or removed by it.
    unsafe { libc::_exit(i32::from(done.is_err())) }
}

/// Follows the copy to its end, and steps it between its two stop signals.
fn trace(child: libc::pid_t, counts: Counts, words: &[AtomicU64]) -> anyhow::Result<()> {
    let status = wait(child)?;
    // A copy that may not be traced ends by itself (`be_the_copy`); any other end is a fault.
    anyhow::ensure!(
        libc::WIFEXITED(status) || is_stopped_by(status, libc::SIGSTOP),
        "the copy died (status {status:#x})"
    );
    if !is_stopped_by(status, libc::SIGSTOP) {
        let refused = format!("the system lets us trace no copy (status {status:#x})");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, refused).into());
    }
    request(libc::PTRACE_SETOPTIONS, child, libc::PTRACE_O_EXITKILL as usize)?;
    let mut lines = if counts == Counts::Lines { Some(LineCounter::of(child)?) } else { None };
    let (mut is_stepping, mut last_address, mut signal) = (false, 0, 0);
    for stops in 0_u64.. {
        if let Some(lines) = lines.as_mut().filter(|_| is_stepping) {
            let [fetched, written] = lines.note(child)?;
            words[FETCHED].store(fetched, Ordering::Relaxed);
            words[WRITTEN].store(written, Ordering::Relaxed);
        }
        let go_on = if is_stepping { libc::PTRACE_SINGLESTEP } else { libc::PTRACE_CONT };
        request(go_on, child, signal as usize)?;
        let status = wait(child)?;
        signal = 0;
        if libc::WIFEXITED(status) {
            anyhow::ensure!(libc::WEXITSTATUS(status) == 0, "the copy failed");
            return Ok(());
        } else if is_stepping && is_stopped_by(status, libc::SIGTRAP) {
            let address = instruction_address(child)?;
            words[INSTRUCTIONS].fetch_add(u64::from(address != last_address), Ordering::Relaxed);
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

/// The line counter of a stopped copy.
#[cfg(target_arch = "x86_64")]
struct LineCounter(lines::Lines);

#[cfg(target_arch = "x86_64")]
impl LineCounter {
    fn of(child: libc::pid_t) -> io::Result<Self> {
        Ok(Self(lines::Lines::of(child)?))
    }

    fn note(&mut self, child: libc::pid_t) -> io::Result<[u64; 2]> {
        let mut registers = std::mem::MaybeUninit::<libc::user_regs_struct>::uninit();
        // SAFETY: the child is ours and stopped; the kernel writes one such struct, for which there is room.
        if unsafe { libc::ptrace(libc::PTRACE_GETREGS, child, 0_usize, registers.as_mut_ptr()) } == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has written it.
        self.0.note(&unsafe { registers.assume_init() })?;
        Ok(self.0.counts())
    }
}

#[cfg(not(target_arch = "x86_64"))]
struct LineCounter;

#[cfg(not(target_arch = "x86_64"))]
impl LineCounter {
    fn of(_child: libc::pid_t) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn note(&mut self, _child: libc::pid_t) -> io::Result<[u64; 2]> {
        Err(io::ErrorKind::Unsupported.into())
    }
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
        let results = in_a_copy(Counts::Instructions, |results| {
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
        assert!((100..20_000).contains(&(more - once)), "{} for 100 numbers", more - once);
        assert_eq!(clock(), 0, "the parent has no counter");
        Ok(())
    }

    #[test]
    fn a_copy_that_fails_is_an_error() {
        assert!(in_a_copy(Counts::Instructions, |_| anyhow::bail!("no")).is_err());
    }

    /// Lines of 64 bytes, each of them once, and none of those before again.
    #[test]
    fn lines_are_counted_when_they_are_touched_first() -> anyhow::Result<()> {
        const LINES: usize = 40;
        let mut memory = vec![1_u64; (LINES + 1) * 8];
        let start = memory.as_ptr().align_offset(64);
        let mut sum_of_lines = |writes: bool| {
            let lines = memory[start..].chunks_exact_mut(8).take(LINES);
            lines.fold(0, |sum, line| {
                if writes {
                    line[3] = black_box(sum);
                }
                black_box(sum + line[0])
            })
        };
        let counted = in_a_copy(Counts::Lines, |results| {
            let mut results = results.iter_mut();
            for writes in [false, false, true, true] {
                let [fetched, written] = step(|| {
                    let before = [fetched_lines(), written_lines()];
                    black_box(sum_of_lines(writes));
                    [fetched_lines() - before[0], written_lines() - before[1]]
                });
                for (count, result) in [fetched, written].into_iter().zip(results.by_ref()) {
                    *result = count;
                }
            }
            Ok(())
        })?;
        let few = 16; // lines of the stack, which is deeper without optimisation, and of code's constants
        let lines = LINES as u64;
        assert!((lines..lines + few).contains(&counted[0]) && counted[1] < few, "{:?}", &counted[..8]);
        assert!(counted[2] < few && counted[3] < few, "read again: {:?}", &counted[..8]);
        assert!(counted[4] < few && (lines..lines + few).contains(&counted[5]), "written: {:?}", &counted[..8]);
        assert!(counted[6] < few && counted[7] < few, "written again: {:?}", &counted[..8]);
        Ok(())
    }
}
