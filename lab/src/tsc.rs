//! The processor's time-stamp counter.
//!
//! Question answered: how many cycles of the constant-rate counter passed?
//! Cost: one instruction a reading. Limits: the counter runs at the processor's
//! base rate, not at its present rate, so "cycles" here are units of time; and
//! [`read`] has no serializing instruction, so intervals under some tens of
//! cycles mean nothing (the lab refuses them, see [`crate::clock`]).
//! Elsewhere than on x86-64 the counter is not available and the lab says so.
#![allow(unsafe_code, reason = "leaf: the instruction has no safe wrapper in core")]

/// The counter's value, or `None` where this processor has none that we can read.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn read() -> Option<u64> {
    // SAFETY: RDTSC exists on every x86-64 processor, touches no memory, and
    // Linux leaves it enabled for user code (a process that disabled it with
    // PR_SET_TSC would get a signal, not undefined behaviour).
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The same once everything before it was executed and before anything after it begins, so that a wait for memory
/// counts where it is and a few cycles of work do not hide behind the reading; whoever reads so loses what would have
/// overlapped.
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

/// The counter's value, or `None` where this processor has none that we can read.
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
