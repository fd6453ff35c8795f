//! Holder pool: a pool of the process, from which listeners take for whoever connects.
//!
//! What was taken is a value, [`Held`]; dropping it gives it back. A holder keeps its number while it has something.

use crate::{Holder, HolderId, HolderTable, Pool, PoolConfig, PoolReader, Refusal, SharedPool, Taken};

/// See the module documentation. Clones are the same pool.
#[derive(Clone)]
pub struct HolderPool {
    pool: SharedPool,
    holders: HolderTable,
}

/// A part of a pool; dropping it gives it back.
pub struct Held {
    taken: Taken,
    holders: HolderTable,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.holders.leave(self.taken.holder());
    }
}

/// A holder gets nothing more.
#[derive(Clone, Copy, Debug)]
pub struct Refused {
    /// Who.
    pub holder: HolderId,
    /// Why.
    pub why: Refusal,
}

impl Refused {
    /// Why, in words for the one who is refused a connection.
    pub fn text(self) -> &'static str {
        match self.why {
            Refusal::ShareUsed => "Your host or user has as many connections here as its share allows.",
            Refusal::PoolFull => "Too many connections are open here.",
        }
    }
}

impl HolderPool {
    /// A pool of which nothing is taken, for these holders.
    pub fn new(config: PoolConfig, holders: &HolderTable) -> Self {
        let pool = SharedPool::new(Pool::new(config, holders.groups()));
        HolderPool { pool, holders: holders.clone() }
    }

    /// For reports.
    pub fn reader(&self) -> PoolReader {
        self.pool.lock().reader()
    }

    /// Takes `amount` for a holder.
    ///
    /// # Errors
    /// Why it may not; that is counted.
    pub fn try_take(&self, holder: &Holder, amount: u64) -> Result<Held, Refused> {
        let id = self.holders.enter(holder);
        match self.pool.try_take(id, amount) {
            Ok(taken) => Ok(Held { taken, holders: self.holders.clone() }),
            Err(why) => {
                self.holders.leave(id);
                Err(Refused { holder: id, why })
            }
        }
    }

    /// Counts `amount` for a holder without asking: for what must be taken in any case.
    pub fn take(&self, holder: &Holder, amount: u64) -> Held {
        let taken = self.pool.take(self.holders.enter(holder), amount);
        Held { taken, holders: self.holders.clone() }
    }

    /// Who should give something up, so that a refused holder finds room when it tries again.
    pub fn who_makes_room(&self, Refused { holder, why }: Refused) -> HolderId {
        let other = match why {
            Refusal::ShareUsed => None,
            Refusal::PoolFull => self.pool.lock().heaviest_beside(holder),
        };
        other.unwrap_or(holder)
    }
}
