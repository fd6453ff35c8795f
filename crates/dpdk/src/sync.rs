//! Locks that remain usable after a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The value behind a lock. A panic while it was held leaves nothing half done that matters: DPDK's state is its own.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
