//! What all threads of a router share.
//!
//! Workers take the read lock once per batch and hold it for that batch; the
//! control side takes the write lock once per command. A write lock is also taken
//! by a worker whose UDP listener has just made an on-demand face.

use crate::router_drop::RouterDrop;
use namewire_engine::{Counters, FaceTable, StrategyTable, View, dispatch::Dispatcher};
use namewire_tables::Fib;
use std::{
    sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Instant,
};

/// Tables that engines read and never write.
pub(crate) struct SharedTables {
    pub(crate) fib: Fib,
    pub(crate) strategies: StrategyTable,
    pub(crate) faces: FaceTable,
}

impl SharedTables {
    pub(crate) fn view(&self) -> View<'_> {
        View { fib: self.fib.view(), strategies: &self.strategies, faces: &self.faces }
    }
}

/// What a worker publishes of itself, at most some milliseconds old.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerStatus {
    pub(crate) counters: Counters,
    pub(crate) drops: [u64; RouterDrop::COUNT],
    pub(crate) pit_entries: u64,
    pub(crate) cs_entries: u64,
    pub(crate) name_groups: u64,
}

/// Shared by all threads.
pub(crate) struct Shared {
    tables: RwLock<SharedTables>,
    pub(crate) dispatcher: std::sync::Arc<Dispatcher>,
    statuses: Box<[Mutex<WorkerStatus>]>,
    start: Instant,
}

/// The clock starts here, so that 0 lies in the past of everything.
const CLOCK_START_NS: u64 = 1_000_000_000;

impl Shared {
    pub(crate) fn new(tables: SharedTables, dispatcher: std::sync::Arc<Dispatcher>) -> Self {
        let statuses = (0..dispatcher.workers()).map(|_| Mutex::default()).collect();
        Shared { tables: RwLock::new(tables), dispatcher, statuses, start: Instant::now() }
    }

    /// Monotonic nanoseconds, the same on every thread.
    pub(crate) fn now_ns(&self) -> u64 {
        CLOCK_START_NS + self.start.elapsed().as_nanos() as u64
    }

    // A panic while the lock was held ends the process in release builds; in tests
    // the tables are still whole, because every write is a single insert or remove.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, SharedTables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, SharedTables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn status(&self, worker: u8) -> MutexGuard<'_, WorkerStatus> {
        self.statuses[usize::from(worker)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sum over all workers.
    pub(crate) fn total_status(&self) -> WorkerStatus {
        let mut total = WorkerStatus::default();
        for worker in 0..self.statuses.len() {
            let status = *self.status(worker as u8);
            total.counters.merge(&status.counters);
            for (sum, drops) in total.drops.iter_mut().zip(status.drops) {
                *sum += drops;
            }
            total.pit_entries += status.pit_entries;
            total.cs_entries += status.cs_entries;
            total.name_groups += status.name_groups;
        }
        total
    }
}
