//! The tables and counters that all threads of a router share.
//!
//! No worker waits while a table is copied or written. The FIB has one writer, the control side, and one reader per
//! worker; a worker pins its reader for a part of a turn ([`namewire_tables::fib`]). Faces and strategies change by
//! whole copies ([`Snapshots`]). When a worker pins the tables, it compares a version number and fetches the new copy
//! if there is one. It takes a lock only for that fetch; other threads hold this lock just long enough to copy or
//! replace a pointer. A worker that makes a face itself waits for any other thread that is changing the face table.
//!
//! Pinned tables show faces and strategies as they were at that moment, but the FIB as it is now. A route whose face or
//! strategy is newer acts as if that face or strategy did not exist, until the next pin. The face of a packet is never
//! newer: it is in the table before a worker takes the packet from a socket or publishes it to another worker. Both
//! workers pin after that.

use crate::{drop_log::DropLog, router_drop::RouterDrop};
use namewire_engine::{Counters, CsReport, FaceTable, StrategyTable, UpstreamTime, View, dispatch::Dispatcher};
use namewire_packet::{counters::Count, nfd::DroppedPacket};
use namewire_shares::{HolderTable, PoolReader};
use namewire_tables::{Fib, FibPin, FibReader};
use namewire_tagnet::forwarder::TagDrop;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

/// A small table that is read all the time and seldom changes. A change copies the table, which takes some microseconds
/// for a thousand faces.
pub struct Snapshots<T> {
    /// Held while a writer copies and changes.
    writing: Mutex<()>,
    /// Held only to copy or replace the pointer, so that workers read while a writer copies.
    present: Mutex<Arc<T>>,
    version: AtomicU64,
}

impl<T: Clone + Default> Snapshots<T> {
    fn new() -> Self {
        Snapshots { writing: Mutex::default(), present: Mutex::default(), version: AtomicU64::new(0) }
    }

    /// Lets `change` work on a copy. Every thread that pins after this returns sees the copy.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let _alone = lock(&self.writing);
        let before = Arc::clone(&lock(&self.present));
        let mut next = T::clone(&before);
        let result = change(&mut next);
        *lock(&self.present) = Arc::new(next);
        // Release: a thread that sees this version and then takes the lock finds this copy or a later one.
        self.version.fetch_add(1, Ordering::Release);
        result
    }

    /// What `look` says of the present table.
    pub fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let table = Arc::clone(&lock(&self.present));
        look(&table)
    }

    fn reader(&self) -> Snapshot<T> {
        // The version is read first: a table newer than its version only costs one more fetch.
        let version = self.version.load(Ordering::Acquire);
        Snapshot { version, table: Arc::clone(&lock(&self.present)) }
    }
}

/// One thread's copy of a [`Snapshots`].
struct Snapshot<T> {
    version: u64,
    table: Arc<T>,
}

impl<T: Clone + Default> Snapshot<T> {
    fn refresh(&mut self, snapshots: &Snapshots<T>) {
        if self.version != snapshots.version.load(Ordering::Acquire) {
            *self = snapshots.reader();
        }
    }
}

/// A worker's access to the tables that engines read and never write.
pub(crate) struct TableReader {
    shared: Arc<Shared>,
    fib: FibReader,
    strategies: Snapshot<StrategyTable>,
    faces: Snapshot<FaceTable>,
}

impl TableReader {
    /// The tables for one turn.
    pub(crate) fn pin(&mut self) -> Tables<'_> {
        self.strategies.refresh(&self.shared.strategies);
        self.faces.refresh(&self.shared.faces);
        Tables { fib: self.fib.pin(), strategies: &self.strategies.table, faces: &self.faces.table }
    }
}

/// The tables during one turn of a worker.
pub(crate) struct Tables<'a> {
    fib: FibPin<'a>,
    strategies: &'a StrategyTable,
    faces: &'a FaceTable,
}

impl Tables<'_> {
    pub(crate) fn view(&self) -> View<'_> {
        View { fib: self.fib.view(), strategies: self.strategies, faces: self.faces }
    }
}

namewire_packet::counters! {
    /// Packets of TagNet that a worker forwarded or dropped.
    pub struct TagCounters {
        /// Packets received that ask for no reply (push).
        pub in_pushes: u64 = "tag.in-pushes",
        /// Packets received that ask for replies (pull).
        pub in_pulls: u64 = "tag.in-pulls",
        /// Replies received.
        pub in_replies: u64 = "tag.in-replies",
        /// Packets sent.
        pub out_packets: u64 = "tag.out-packets",
        /// Packets whose search was longer than what one turn has for it, and went on in later turns.
        pub searches_parked: u64 = "tag.searches-parked",
        /// Packets dropped, by reason.
        pub drops: [u64; TagDrop::COUNT],
    }
}

namewire_packet::counters! {
    /// How a worker waited for packets.
    pub struct PollCounters {
        /// Nanoseconds in which it looked for packets instead of sleeping.
        pub polled_ns: u64,
        /// How often it looked, each time until something came or the time was over.
        pub polls: u64,
        /// How often something came.
        pub polls_found: u64,
        /// How often it slept.
        pub sleeps: u64,
        /// How long it would look now, in nanoseconds.
        pub window_ns: u64,
    }
}

namewire_packet::counters! {
    /// What a worker publishes about itself; it is at most some milliseconds old.
    pub struct WorkerStatus {
        /// What its engine counts.
        pub counters: Counters,
        /// Packets lost between threads, by reason.
        pub drops: [u64; RouterDrop::COUNT],
        /// What it counts of TagNet.
        pub tags: TagCounters,
        /// Pending Interests.
        pub pit_entries: u64,
        /// Data in its Content Store.
        pub cs_entries: u64,
        /// Bytes of its Content Store.
        pub cs_bytes: u64,
        /// Names that the PIT and the Content Store hold.
        pub name_groups: u64,
        /// Prefixes with measurements.
        pub measurement_entries: u64,
        /// Time of turns that had packets.
        pub busy_ns: u64,
        /// How it waited for packets.
        pub polling: PollCounters,
        /// Packets that it gave to other threads.
        pub crossed: u64,
        /// Reads from streams that were cut short, because a face had reached the limit of what it may keep.
        pub short_reads: u64 = "limit.short-reads",
    }
}

/// Milliseconds since 1970, by the system's clock.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Shared by all threads.
pub struct Shared {
    fib: Mutex<Fib>,
    /// The strategies by number.
    pub strategies: Snapshots<StrategyTable>,
    /// What engines know of faces.
    pub faces: Snapshots<FaceTable>,
    /// Which worker owns a name.
    pub dispatcher: Arc<Dispatcher>,
    /// Who has faces here.
    pub holders: HolderTable,
    /// The pools of all threads.
    pools: Mutex<Vec<PoolReader>>,
    /// By thread: the workers, then the I/O threads.
    statuses: Box<[Mutex<WorkerStatus>]>,
    cs_reports: Box<[Mutex<CsReport>]>,
    upstream_times: Box<[Mutex<Vec<UpstreamTime>>]>,
    /// The last drops of each worker.
    drop_logs: Box<[Arc<Mutex<DropLog>>]>,
    /// Control wants to be told when there is traffic again.
    asks_for_traffic: AtomicBool,
    start: Instant,
}

/// The clock starts here, so that 0 is before every event.
const CLOCK_START_NS: u64 = 1_000_000_000;

impl Shared {
    /// With no face, no strategy and no traffic yet. `threads` are the dispatcher's workers and the I/O threads.
    pub fn new(fib: Fib, dispatcher: Arc<Dispatcher>, threads: usize) -> Self {
        let statuses = (0..threads).map(|_| Mutex::default()).collect();
        let cs_reports = (0..threads).map(|_| Mutex::default()).collect();
        let upstream_times = (0..threads).map(|_| Mutex::default()).collect();
        let drop_logs = (0..threads).map(|_| Arc::default()).collect();
        Shared {
            fib: Mutex::new(fib),
            strategies: Snapshots::new(),
            faces: Snapshots::new(),
            dispatcher,
            holders: HolderTable::default(),
            pools: Mutex::default(),
            statuses,
            cs_reports,
            upstream_times,
            drop_logs,
            asks_for_traffic: AtomicBool::new(false),
            start: Instant::now(),
        }
    }

    /// Workers and I/O threads.
    pub fn threads(&self) -> usize {
        self.statuses.len()
    }

    /// True if the thread is an I/O thread: no name is at home there.
    pub fn is_io_thread(&self, thread: u8) -> bool {
        usize::from(thread) >= self.dispatcher.workers()
    }

    /// Monotonic nanoseconds, the same on every thread.
    pub fn now_ns(&self) -> u64 {
        CLOCK_START_NS + self.start.elapsed().as_nanos() as u64
    }

    /// A new worker's access to the tables.
    pub(crate) fn table_reader(self: &Arc<Self>) -> TableReader {
        TableReader {
            shared: Arc::clone(self),
            fib: self.fib().reader(),
            strategies: self.strategies.reader(),
            faces: self.faces.reader(),
        }
    }

    /// Locks the FIB for writing; workers go on reading.
    pub fn fib(&self) -> MutexGuard<'_, Fib> {
        lock(&self.fib)
    }

    /// What a worker published of itself last.
    pub fn status(&self, worker: u8) -> MutexGuard<'_, WorkerStatus> {
        lock(&self.statuses[usize::from(worker)])
    }

    /// Replaces what a worker says of itself. True if the worker should tell control that there is traffic again.
    pub(crate) fn publish(&self, worker: u8, status: WorkerStatus) -> bool {
        let mut place = self.status(worker);
        let is_busy = place.busy_ns != status.busy_ns;
        *place = status;
        is_busy && self.asks_for_traffic.swap(false, Ordering::Relaxed)
    }

    /// Lets the first worker that has traffic tell control.
    pub fn ask_for_traffic(&self) {
        self.asks_for_traffic.store(true, Ordering::Relaxed);
    }

    /// Time that workers have spent with packets.
    pub fn busy_ns(&self) -> u64 {
        (0..self.statuses.len()).map(|worker| self.status(worker as u8).busy_ns).sum()
    }

    /// A worker's published report on its Content Store.
    pub fn cs_report(&self, worker: u8) -> MutexGuard<'_, CsReport> {
        lock(&self.cs_reports[usize::from(worker)])
    }

    /// What a worker has measured of faces that it sent Interests to.
    pub fn upstream_times(&self, worker: u8) -> MutexGuard<'_, Vec<UpstreamTime>> {
        lock(&self.upstream_times[usize::from(worker)])
    }

    /// A worker's last drops.
    pub(crate) fn drop_log(&self, worker: u8) -> &Arc<Mutex<DropLog>> {
        &self.drop_logs[usize::from(worker)]
    }

    /// The packets that workers dropped last, in no order.
    pub fn last_drops(&self) -> Vec<DroppedPacket> {
        self.drop_logs.iter().flat_map(|log| lock(log).all()).collect()
    }

    /// Adds pools to the report on who holds how much.
    pub fn add_pools(&self, pools: Vec<PoolReader>) {
        lock(&self.pools).extend(pools);
    }

    /// The pools of all threads.
    pub fn pools(&self) -> Vec<PoolReader> {
        lock(&self.pools).clone()
    }

    /// The sum over all workers. It has no policy until every worker has reported. I/O threads store nothing.
    pub fn total_cs_report(&self) -> CsReport {
        let mut total = CsReport::default();
        let mut is_whole = true;
        for report in &self.cs_reports[..self.dispatcher.workers()] {
            let report = lock(report);
            is_whole &= report.policy.is_some();
            total.merge(&report);
        }
        total.policy = total.policy.filter(|_| is_whole);
        total
    }

    /// The sum over all workers.
    pub fn total_status(&self) -> WorkerStatus {
        let mut total = WorkerStatus::default();
        for worker in 0..self.statuses.len() {
            total.merge(&self.status(worker as u8));
        }
        total
    }
}

// In release builds a panic under a lock ends the process. In tests the guarded value is still whole, because every
// change is a single insertion or removal.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_stays_as_it_is_until_it_is_refreshed() {
        let snapshots = Snapshots::<Vec<u8>>::new();
        let mut reader = snapshots.reader();
        assert_eq!(snapshots.change(|table| (table.push(1), table.len())).1, 1);
        assert!(reader.table.is_empty());
        reader.refresh(&snapshots);
        assert_eq!(*reader.table, [1]);
        let before = Arc::clone(&reader.table);
        reader.refresh(&snapshots);
        assert!(Arc::ptr_eq(&before, &reader.table), "nothing changed, nothing is fetched");
    }

    #[test]
    fn nobody_waits_to_read_while_a_copy_is_changed() {
        let snapshots = Snapshots::<Vec<u8>>::new();
        let (seen, sees) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            snapshots.change(|table| {
                table.push(1);
                scope.spawn(|| seen.send(snapshots.reader().table.len()));
                let read = sees.recv_timeout(std::time::Duration::from_secs(5));
                assert_eq!(read, Ok(0), "the reader waited for the writer, or saw half of its work");
            });
        });
        assert_eq!(*snapshots.reader().table, [1]);
    }
}
