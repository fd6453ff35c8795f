//! Descriptors: who holds how many of the process's file descriptors?
//!
//! Every accepted connection takes one descriptor. A WebSocket connection takes three (its socket, and the pair to its
//! face). Without a limit per host, idle connections use up the process's limit, and then applications cannot connect.
//! So descriptors are a pool ([`namewire_shares::pool`]) with a reserve for local applications and one for the
//! operator's faces. Listeners refuse connections beyond a holder's share before they become faces.
//!
//! The pool has the descriptors that remain after the start, up to the limit of the process. A reserve for files,
//! look-ups and other short uses is not part of the pool ([`files`]). The router counts open descriptors when all
//! threads have opened theirs. If the pool promised more than there are, connections would use up the reserves of
//! others.
//!
//! If no descriptor is free, workers close idle connections of the heaviest holder, at most every [`PAUSE`]. The
//! refused peer finds room when it tries again.

use crate::messages::ToControl;
use namewire_shares::{Held, Holder, HolderPool, HolderTable, PoolConfig, PoolReader, Refused};
use rustix::process::{Resource, getrlimit};
use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::mpsc::UnboundedSender;

/// Descriptors of a connection that a worker reads.
pub(crate) const OF_STREAM: u64 = 1;

/// Descriptors of an application that shares memory: its connection, the memory and two doorbells.
pub(crate) const OF_MEMORY: u64 = 4;

/// Part of the descriptors that one holder may have if no other has any, in percent.
const SHARE_PERCENT: u32 = 80;

/// Where there are fewer descriptors, the usual share would leave less than one to others, and [`SHARE_OF_FEW_PERCENT`]
/// holds.
const FEW: u64 = 128;
const SHARE_OF_FEW_PERCENT: u32 = 50;

/// Time between two searches for idle connections.
const PAUSE: Duration = Duration::from_millis(100);

/// What a process without a limit is taken to have.
const WITHOUT_LIMIT: u64 = 1 << 30;

/// See the module documentation. Clones are the same descriptors.
#[derive(Clone)]
pub(crate) struct Descriptors {
    /// Made when it is used first.
    pool: Arc<OnceLock<HolderPool>>,
    holders: HolderTable,
    events: UnboundedSender<ToControl>,
    last_search: Arc<Mutex<Option<Instant>>>,
}

/// Descriptors that a connection uses; dropping it gives them back.
pub(crate) type TakenDescriptors = Held;

impl Descriptors {
    /// Those that the process will have left when they are counted.
    pub(crate) fn of_process(holders: &HolderTable, events: UnboundedSender<ToControl>) -> Self {
        Descriptors { pool: Arc::default(), holders: holders.clone(), events, last_search: Arc::default() }
    }

    /// So many.
    #[cfg(test)]
    pub(crate) fn new(capacity: u64, holders: &HolderTable, events: UnboundedSender<ToControl>) -> Self {
        let descriptors = Self::of_process(holders, events);
        descriptors.pool.get_or_init(|| HolderPool::new(config(capacity), holders));
        descriptors
    }

    /// Counts those that the process has left now, unless that was done before. Returns their pool, for reports.
    pub(crate) fn count(&self) -> PoolReader {
        self.pool().reader()
    }

    fn pool(&self) -> &HolderPool {
        self.pool.get_or_init(|| HolderPool::new(config(left_to_process()), &self.holders))
    }

    /// Takes descriptors for a connection.
    ///
    /// # Errors
    /// Its holder has its share, or there are none. That is counted, and idle connections make room.
    pub(crate) fn take(&self, holder: &Holder, count: u64) -> Result<TakenDescriptors, Refused> {
        self.pool().try_take(holder, count).inspect_err(|refused| self.make_room(self.pool(), *refused))
    }

    /// Takes a descriptor for a face that the operator makes.
    pub(crate) fn take_for_operator(&self) -> TakenDescriptors {
        self.pool().take(&Holder::Management, OF_STREAM)
    }

    fn make_room(&self, pool: &HolderPool, refused: Refused) {
        let mut last_search = self.last_search.lock().unwrap_or_else(PoisonError::into_inner);
        if last_search.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        *last_search = Some(Instant::now());
        // Control is gone only when the router stops.
        let _ = self.events.send(ToControl::ShortOfConnections { holder: pool.who_makes_room(refused) });
    }
}

impl namewire_websocket::Descriptors for Descriptors {
    fn take(&self, holder: &Holder, count: u64) -> Result<TakenDescriptors, Refused> {
        Descriptors::take(self, holder, count)
    }

    fn make_room(&self, pool: &HolderPool, refused: Refused) {
        Descriptors::make_room(self, pool, refused);
    }
}

fn config(capacity: u64) -> PoolConfig {
    PoolConfig {
        name: "descriptors",
        capacity,
        share_percent: if capacity < FEW { SHARE_OF_FEW_PERCENT } else { SHARE_PERCENT },
        management_reserve: (capacity / 16).max(1),
        local_reserve: (capacity / 8).max(2),
    }
}

/// What the limit leaves for connections.
fn left_to_process() -> u64 {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(WITHOUT_LIMIT);
    // Without /proc, the usual number of a router with a few workers.
    let in_use = std::fs::read_dir("/proc/self/fd").map_or(64, |open| open.count() as u64);
    limit.saturating_sub(in_use + files(limit))
}

/// Descriptors kept for files and other things of a moment, of `limit` in all: each listener accepts a connection
/// before it can refuse it; a state file that is written and a name that is looked up take two.
fn files(limit: u64) -> u64 {
    (limit / 16).clamp(12, 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_websocket::OF_CONNECTION;
    use tokio::sync::mpsc::unbounded_channel;

    /// The story: under `ulimit -n 1024`, 1,224 idle TCP connections were enough to lock out every application.
    #[test]
    fn remote_connections_leave_descriptors_for_applications() {
        let (events, mut queue) = unbounded_channel();
        let descriptors = Descriptors::new(800, &HolderTable::default(), events);
        let remote = |number: u32| Holder::Ipv4(number.into());
        let began = Instant::now();
        let mut taken = Vec::new();
        while let Ok(connection) = descriptors.take(&remote(1), OF_STREAM) {
            taken.push(connection);
        }
        assert_eq!(taken.len(), (800 - 50 - 100) * 4 / 5);
        assert!(matches!(queue.try_recv(), Ok(ToControl::ShortOfConnections { .. })));
        for number in 2..10_000 {
            taken.extend(descriptors.take(&remote(number), OF_CONNECTION));
        }
        let searches = std::iter::from_fn(|| queue.try_recv().ok()).count() as u128;
        assert!(searches <= began.elapsed().as_millis() / PAUSE.as_millis(), "{searches} searches without pauses");
        let of_user = |user| descriptors.take(&Holder::User(user), OF_STREAM);
        let applications: Vec<_> = (0..80).map(|_| of_user(1000).expect("four fifths of the reserve")).collect();
        let _operators: Vec<_> = (0..50).map(|_| descriptors.take_for_operator()).collect();
        drop((taken, applications));
        assert_eq!(descriptors.count().holdings().map(|of| of.held).sum::<u64>(), 50);
    }
}
