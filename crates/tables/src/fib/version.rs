//! Version: has a prefix come or gone since?
//!
//! A number that no other state of any FIB has. So a reader that finds the number of an earlier look-up knows
//! that no change has begun which it could see, and that the answer of the earlier look-up still holds.
//!
//! ```text
//!  writer   … v │ changing │ the index changes │ w …
//!  reader   pinned ─► reads v ─► what it found in an earlier pin, when it read v, too
//! ```
//!
//! Why this is enough:
//! - A reader that reads `w` sees the whole change, because the writer stores `w` last.
//! - A reader that has seen a part of the change never reads `v` afterwards, because the writer stored
//!   "changing" first. So what it found is not reused.
//! - What the change unlinks is freed after quiescence. A reader that is pinned and reads `v` afterwards went online
//!   before the writer looked at the readers, or it would have seen "changing". So the writer waits for it
//!   ([`crate::quiescence`]).
//!
//! Cost: a load for each batch, two stores for each change. The loom models in `crates/tables/loom` check this file.
//! Writers: the FIB's writer.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// The next number. Nothing is ordered by it.
static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(CHANGING + 1);

/// In place of a number while the FIB changes.
const CHANGING: u64 = 0;

/// The version of one FIB.
#[derive(Debug)]
pub(super) struct Version(AtomicU64);

impl Version {
    /// That of a new FIB.
    #[allow(clippy::new_without_default, reason = "each one is another")]
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(fresh()))
    }

    /// To be called before a prefix is linked or unlinked.
    #[inline]
    pub(super) fn begin_change(&self) {
        // The stores to the index, which come next, release this one.
        self.0.store(CHANGING, Ordering::Relaxed);
    }

    /// To be called after that.
    #[inline]
    pub(super) fn end_change(&self) {
        self.0.store(fresh(), Ordering::Release);
    }

    /// The number of the present state; `None` while it changes. For a reader that is pinned, before it looks.
    #[inline(always)]
    pub(super) fn read(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|&number| number != CHANGING)
    }
}

fn fresh() -> u64 {
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}
