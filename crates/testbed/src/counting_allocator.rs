//! An allocator that counts, for tests of code that must not allocate, or must give back what it allocates. Such a test
//! has a separate file, because a process has only one allocator:
//!
//! ```
//! # use namewire_testbed::counting_allocator::{CountingAllocator, without_allocation};
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! fn main() {
//!     without_allocation("a sum", || assert_eq!([1, 2].iter().sum::<i32>(), 3));
//! }
//! ```
#![allow(unsafe_code, reason = "leaf: an allocator that counts, around the system's")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    hint::black_box,
};

/// The system's allocator, with a count of allocations for each thread.
pub struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(allocations: u64, bytes: i64) {
    // A thread that ends has no counters any more; no thread of such a test ends while it counts.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + allocations));
    let _ = LIVE_BYTES.try_with(|count| count.set(count.get() + bytes));
}

/// Bytes that this thread allocated, less those that it freed.
pub fn live_bytes() -> i64 {
    LIVE_BYTES.get()
}

// SAFETY: every call goes to the system's allocator with the arguments that the caller vouches for. Counting allocates
// nothing (a const thread local without a destructor).
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: as above; the block came from `System`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: as above; the block came from `System`.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Runs `work`, which must not allocate. The program's allocator must be a [`CountingAllocator`], which this checks.
pub fn without_allocation(what: &str, work: impl FnOnce()) {
    let before = ALLOCATIONS.get();
    drop(black_box(vec![1_u8; 100]));
    let start = ALLOCATIONS.get();
    assert!(start > before, "allocations are not counted");
    work();
    assert_eq!(ALLOCATIONS.get() - start, 0, "allocations: {what}");
}
