//! Prefetch: begins to fetch a cache line that a later stage will read.
//!
//! Source: Takemasa19 §4.3 (fetches overlap with computation that does not depend on them). A prefetch is a
//! hint: it changes no value and no verdict. If no later stage reads the line, the prefetch has cost one
//! fetch and nothing else.
//!
//! Cost: a prefetch takes one instruction and one of the core's outstanding line fetches. On processors
//! other than x86-64 the calls do nothing: batches are then right but slow.
#![allow(unsafe_code, reason = "leaf: the instruction has no safe wrapper in core")]

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// Begins to fetch the line that `first` starts in.
#[inline(always)]
pub fn prefetch<T>(first: &T) {
    prefetch_address(std::ptr::from_ref(first).cast());
}

/// Begins to fetch every line that `value` lies in.
#[inline(always)]
pub fn prefetch_whole<T>(value: &T) {
    let address = std::ptr::from_ref(value).cast::<u8>();
    let mut offset = 0;
    while offset < size_of::<T>() {
        prefetch_address(address.wrapping_add(offset));
        offset += LINE_BYTES;
    }
    if align_of::<T>() < LINE_BYTES && size_of::<T>() > 0 {
        prefetch_address(address.wrapping_add(size_of::<T>() - 1));
    }
}

/// Begins to fetch `lines` lines, beginning with the line that `first` starts in.
#[inline(always)]
pub fn prefetch_lines<T>(first: &T, lines: usize) {
    let address = std::ptr::from_ref(first).cast::<u8>();
    for line in 0..lines {
        prefetch_address(address.wrapping_add(line * LINE_BYTES));
    }
}

/// Begins to fetch every line of the `bytes` bytes that begin at `first`, if there are any.
#[inline(always)]
pub fn prefetch_range(first: *const u8, bytes: usize) {
    let lines = (first.addr() % LINE_BYTES + bytes).div_ceil(LINE_BYTES);
    for line in 0..lines {
        prefetch_address(first.wrapping_add(line * LINE_BYTES));
    }
}

/// Begins to fetch the line of `address`, which need not be valid.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn prefetch_address(address: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY:
    // - SSE, which has the instruction, is part of every x86-64 processor.
    // - The instruction reads nothing into the program and cannot fault, whatever
    //   the address (Intel SDM vol. 2, PREFETCHh), so none needs to be valid.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
}

/// Begins to fetch the line of `address`, which need not be valid.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn prefetch_address(_address: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetches_change_nothing() {
        let bytes = [7_u8; 300];
        prefetch(&bytes);
        prefetch_whole(&bytes);
        prefetch_whole(&());
        prefetch_lines(&bytes[290], 4); // beyond the end: no access, no fault
        assert_eq!(bytes, [7; 300]);
    }
}
