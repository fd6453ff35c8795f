//! The processor's time-stamp counter.
//!
//! Question answered: how many cycles of the constant-rate counter passed? Cost: a reading takes one instruction.
//! Limits: the counter runs at the processor's base rate, not at its present rate, so "cycles" here are units of time.
//! [`read`] has no serializing instruction, so intervals under some tens of cycles mean nothing; the lab refuses them
//! (see [`crate::clock`]). The counter is available on x86-64 only.
#![allow(unsafe_code, reason = "leaf: the instruction has no safe wrapper in core")]

use anyhow::Context as _;

/// The counter's value; `None` on a processor without a counter.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn read() -> Option<u64> {
    // SAFETY: RDTSC exists on every x86-64 processor, touches no memory, and
    // Linux leaves it enabled for user code (a process that disabled it with
    // PR_SET_TSC would get a signal, not undefined behaviour).
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The counter's value, for experiments that cannot do without it.
///
/// # Errors
/// On a processor without a counter.
pub fn required() -> anyhow::Result<u64> {
    read().context("this processor has no time stamp counter that we can read")
}

/// Reads the counter after everything before it has executed and before anything after it begins. So a wait for memory
/// counts where it occurs, and a few cycles of work do not hide behind the reading. The price: work that would have
/// overlapped no longer does.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn read_in_order() -> Option<u64> {
    // SAFETY: LFENCE is part of SSE2, which every x86-64 processor has; it touches no memory.
    unsafe { core::arch::x86_64::_mm_lfence() };
    let cycles = read();
    // SAFETY: as above.
    unsafe { core::arch::x86_64::_mm_lfence() };
    cycles
}

/// The counter's value; `None` on a processor without a counter.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn read() -> Option<u64> {
    None
}

/// As [`read`].
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn read_in_order() -> Option<u64> {
    read()
}
