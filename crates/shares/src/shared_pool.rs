//! A pool that several threads use: process-wide things such as descriptors, which are seldom taken.
//!
//! A [`Taken`] is the amount that a holder took; dropping it gives the amount back.
//!
//! Cost: a lock per operation.

use crate::{HolderId, Pool, Refusal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module documentation. Clones are the same pool.
#[derive(Clone, Debug)]
pub struct SharedPool(Arc<Mutex<Pool>>);

impl SharedPool {
    /// Shares a pool.
    pub fn new(pool: Pool) -> Self {
        SharedPool(Arc::new(Mutex::new(pool)))
    }

    /// Takes `amount` for a holder.
    ///
    /// # Errors
    /// Why it may not; that is counted.
    pub fn try_take(&self, holder: HolderId, amount: u64) -> Result<Taken, Refusal> {
        self.lock().try_take(holder, amount)?;
        Ok(Taken { pool: self.clone(), holder, amount })
    }

    /// Counts `amount` for a holder without asking: for what must be taken in any case.
    pub fn take(&self, holder: HolderId, amount: u64) -> Taken {
        self.lock().take(holder, amount);
        Taken { pool: self.clone(), holder, amount }
    }

    /// The pool, locked.
    pub fn lock(&self) -> MutexGuard<'_, Pool> {
        // After a panic the sums are still those of the lines: no operation can fail half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a [`SharedPool`]; dropping it gives it back.
#[derive(Debug)]
pub struct Taken {
    pool: SharedPool,
    holder: HolderId,
    amount: u64,
}

impl Taken {
    /// Whose it is.
    pub fn holder(&self) -> HolderId {
        self.holder
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.pool.lock().give_back(self.holder, self.amount);
    }
}
