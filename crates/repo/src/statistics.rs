//! Statistics: what a repository has done since its start.
//!
//! Every thread adds to the same atomic counters, once for a batch. [`Statistics::snapshot`] reads them without a lock,
//! so its counts may differ by what happened while it read them.

use crate::{
    log_lines,
    store::{Store, StoreError},
};
use namewire_security::trust::Denial;
use serde_json::{Value, json};
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Durations by powers of two: bucket `n` holds those of less than 2^`n` µs, the last all others.
pub const LATENCY_BUCKETS: usize = 28;

/// Version of the statistics' JSON form; it grows when a field changes its meaning or goes.
const JSON_VERSION: u64 = 1;
/// Between two lines of the log about failures of the store.
const FAILURE_LINE_PAUSE: Duration = Duration::from_secs(10);

namewire_packet::reasons! {
    /// Why a packet, a command or a connection was refused or failed.
    pub enum Refusal {
        /// An Interest while too many waited: Nack Congestion.
        Overload = "overload",
        /// A read that the store failed to answer.
        ReadStoreFailed = "read-store-failed",
        /// A notification or a question for a status that cannot be read.
        CommandMalformed = "command-malformed",
        /// A notification whose nonce came before.
        CommandReplayed = "command-replayed",
        /// A command that its client did not send when it was asked for.
        CommandNotSent = "command-not-sent",
        /// A command without a signature that may do it.
        CommandDenied = "command-denied",
        /// A command while too many waited.
        CommandOverload = "command-overload",
        /// An object with a name that is the repository's own, or with segments in the wrong order.
        ObjectRefused = "object-refused",
        /// An object of which packets did not come.
        ObjectNotFetched = "object-not-fetched",
        /// Data that the trust schema does not accept.
        DataNotTrusted = "data-not-trusted",
        /// Data whose digest is wrong.
        DataDamaged = "data-damaged",
        /// The store is full.
        StoreFull = "store-full",
        /// The store did not answer.
        StoreUnavailable = "store-unavailable",
        /// The store failed otherwise.
        StoreFailed = "store-failed",
        /// A prefix that the router did not register.
        PrefixNotRegistered = "prefix-not-registered",
        /// A sync Interest that is no state vector of the group's version.
        SyncMalformed = "sync-malformed",
        /// A sync Interest with a bootstrap time more than a day ahead.
        SyncFarFuture = "sync-far-future",
        /// A producer of a sync group beyond the limit; nothing of it is stored.
        SyncTooManyProducers = "sync-too-many-producers",
        /// A command to join one sync group more than the limit.
        SyncTooManyGroups = "sync-too-many-groups",
        /// A publication of a sync group that did not come, or may not be stored.
        SyncPublicationLost = "sync-publication-lost",
        /// A connection for bulk insertion beyond the limit.
        BulkTooMany = "bulk-too-many",
        /// A connection for bulk insertion that sent something other than Data.
        BulkMalformed = "bulk-malformed",
        /// A connection for bulk insertion that was silent for too long.
        BulkIdle = "bulk-idle",
    }
}

/// The counters. Shared by all threads of a repository.
#[derive(Debug)]
pub struct Statistics {
    reads: AtomicU64,
    hits: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    deletes: AtomicU64,
    commits: AtomicU64,
    commands: AtomicU64,
    publications: AtomicU64,
    bulk_connections: AtomicU64,
    bulk_packets: AtomicU64,
    refusals: [AtomicU64; Refusal::COUNT],
    denials: [AtomicU64; Denial::NAMES.len()],
    read_latency: [AtomicU64; LATENCY_BUCKETS],
    write_latency: [AtomicU64; LATENCY_BUCKETS],
    failure: Mutex<Failure>,
}

/// How the store failed last, other than for want of room.
#[derive(Debug, Default)]
struct Failure {
    what: Option<String>,
    told_at: Option<Instant>,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Interests for Data.
    pub reads: u64,
    /// Those that were answered with Data.
    pub hits: u64,
    /// Bytes of these Data.
    pub read_bytes: u64,
    /// Data stored.
    pub writes: u64,
    /// Bytes of these Data.
    pub written_bytes: u64,
    /// Data deleted.
    pub deletes: u64,
    /// Batches that the store took.
    pub commits: u64,
    /// Commands received.
    pub commands: u64,
    /// Publications of sync groups that were stored.
    pub publications: u64,
    /// Connections for bulk insertion.
    pub bulk_connections: u64,
    /// Data that came over them.
    pub bulk_packets: u64,
    /// By reason.
    pub refusals: [u64; Refusal::COUNT],
    /// Why commands and Data were not trusted, in the order of [`Denial::NAMES`].
    pub denials: [u64; Denial::NAMES.len()],
    /// From taking an Interest to queueing its answer.
    pub read_latency: [u64; LATENCY_BUCKETS],
    /// From queueing a Data to its being stored.
    pub write_latency: [u64; LATENCY_BUCKETS],
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

impl Default for Statistics {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Statistics {
            reads: zero(),
            hits: zero(),
            read_bytes: zero(),
            writes: zero(),
            written_bytes: zero(),
            deletes: zero(),
            commits: zero(),
            commands: zero(),
            publications: zero(),
            bulk_connections: zero(),
            bulk_packets: zero(),
            refusals: zeros(),
            denials: zeros(),
            read_latency: zeros(),
            write_latency: zeros(),
            failure: Mutex::default(),
        }
    }
}

fn bucket(duration: Duration) -> usize {
    let micros = duration.as_micros().min(u128::from(u64::MAX)) as u64;
    ((u64::BITS - micros.leading_zeros()) as usize).min(LATENCY_BUCKETS - 1)
}

impl Statistics {
    /// A batch of reads: how many were asked, and what was found.
    pub(crate) fn add_reads(&self, reads: u64, hits: u64, bytes: u64, took: Duration) {
        self.reads.fetch_add(reads, Relaxed);
        self.hits.fetch_add(hits, Relaxed);
        self.read_bytes.fetch_add(bytes, Relaxed);
        self.read_latency[bucket(took)].fetch_add(reads, Relaxed);
    }

    pub(crate) fn add_commit(&self) {
        self.commits.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_writes(&self, writes: u64, bytes: u64, deletes: u64, took: Duration) {
        self.writes.fetch_add(writes, Relaxed);
        self.written_bytes.fetch_add(bytes, Relaxed);
        self.deletes.fetch_add(deletes, Relaxed);
        self.write_latency[bucket(took)].fetch_add(writes + deletes, Relaxed);
    }

    pub(crate) fn add_command(&self) {
        self.commands.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_publication(&self) {
        self.publications.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_bulk_connection(&self) {
        self.bulk_connections.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_bulk_packets(&self, count: u64) {
        self.bulk_packets.fetch_add(count, Relaxed);
    }

    pub(crate) fn refuse(&self, why: Refusal) {
        self.refuse_many(why, 1);
    }

    pub(crate) fn refuse_many(&self, why: Refusal, count: u64) {
        self.refusals[why as usize].fetch_add(count, Relaxed);
    }

    /// Counts what went wrong with the store.
    pub(crate) fn refuse_for(&self, error: &StoreError) {
        self.note_failure(error);
        self.refuse(match error {
            StoreError::Full(_) => Refusal::StoreFull,
            StoreError::Unavailable(_) => Refusal::StoreUnavailable,
            _ => Refusal::StoreFailed,
        });
    }

    /// A batch of reads that the store failed to answer, or a part of it.
    pub(crate) fn fail_read(&self, error: &StoreError) {
        self.note_failure(error);
        self.refuse(Refusal::ReadStoreFailed);
    }

    /// Keeps how the store failed, and says it in the log, but not again and again.
    fn note_failure(&self, error: &StoreError) {
        if matches!(error, StoreError::Full(_) | StoreError::NotOrdered | StoreError::NoIndex) {
            return;
        }
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.what = Some(error.to_string());
        if failure.told_at.is_none_or(|told_at| told_at.elapsed() >= FAILURE_LINE_PAUSE) {
            failure.told_at = Some(Instant::now());
            log_lines::store_failed(error);
        }
    }

    /// How the store failed last, other than for want of room.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).what.clone()
    }

    pub(crate) fn deny(&self, denial: &Denial) {
        self.denials[denial.index()].fetch_add(1, Relaxed);
    }

    /// The counters now.
    pub fn snapshot(&self) -> Snapshot {
        let all = |counters: &[AtomicU64; LATENCY_BUCKETS]| std::array::from_fn(|at| counters[at].load(Relaxed));
        Snapshot {
            reads: self.reads.load(Relaxed),
            hits: self.hits.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            writes: self.writes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            deletes: self.deletes.load(Relaxed),
            commits: self.commits.load(Relaxed),
            commands: self.commands.load(Relaxed),
            publications: self.publications.load(Relaxed),
            bulk_connections: self.bulk_connections.load(Relaxed),
            bulk_packets: self.bulk_packets.load(Relaxed),
            refusals: std::array::from_fn(|at| self.refusals[at].load(Relaxed)),
            denials: std::array::from_fn(|at| self.denials[at].load(Relaxed)),
            read_latency: all(&self.read_latency),
            write_latency: all(&self.write_latency),
        }
    }
}

impl Snapshot {
    /// How often this was the reason of a refusal.
    pub fn refused(&self, why: Refusal) -> u64 {
        self.refusals[why as usize]
    }

    /// The counters and the store's usage, as clients of the repository get them.
    pub fn to_json(&self, store: &dyn Store) -> Value {
        let usage = store.usage();
        let (records, bytes) =
            usage.map_or((Value::Null, Value::Null), |usage| (usage.records.into(), usage.bytes.into()));
        let denials = Denial::NAMES.iter().zip(self.denials).map(|(name, count)| (format!("denied.{name}"), count));
        let refusals: serde_json::Map<String, Value> = Refusal::named(&self.refusals)
            .map(|(name, count)| (name.to_owned(), count))
            .chain(denials)
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name, count.into()))
            .collect();
        json!({
            "version": JSON_VERSION,
            "store": { "kind": store.kind(), "is_ordered": store.is_ordered(), "records": records, "bytes": bytes },
            "reads": self.reads,
            "hits": self.hits,
            "read_bytes": self.read_bytes,
            "writes": self.writes,
            "written_bytes": self.written_bytes,
            "deletes": self.deletes,
            "commits": self.commits,
            "commands": self.commands,
            "publications": self.publications,
            "bulk_connections": self.bulk_connections,
            "bulk_packets": self.bulk_packets,
            "refusals": refusals,
            "read_latency_us": quantiles(&self.read_latency),
            "write_latency_us": quantiles(&self.write_latency),
        })
    }
}

/// Upper bounds of the median and of the slowest percent, in µs, and the buckets; null if nothing was counted.
fn quantiles(buckets: &[u64; LATENCY_BUCKETS]) -> Value {
    let total: u64 = buckets.iter().sum();
    let below = |share: f64| {
        let wanted = (total as f64 * share).ceil() as u64;
        let mut seen = 0;
        let at = buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        at.map(|at| 1_u64 << at)
    };
    if total == 0 {
        return Value::Null;
    }
    json!({ "p50_below": below(0.50), "p99_below": below(0.99), "buckets": buckets.as_slice() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::MemoryStore;

    #[test]
    fn a_snapshot_shows_what_was_added() {
        let statistics = Statistics::default();
        statistics.add_reads(99, 90, 9000, Duration::from_micros(5));
        statistics.add_reads(1, 0, 0, Duration::from_millis(3));
        statistics.add_writes(10, 1000, 2, Duration::ZERO);
        statistics.refuse_many(Refusal::Overload, 3);
        let snapshot = statistics.snapshot();
        assert_eq!((snapshot.reads, snapshot.hits, snapshot.read_bytes), (100, 90, 9000));
        assert_eq!(snapshot.refused(Refusal::Overload), 3);
        let json = snapshot.to_json(&MemoryStore::new(1000));
        assert_eq!(json["refusals"], json!({ "overload": 3 }));
        assert_eq!(
            (&json["read_latency_us"]["p50_below"], &json["read_latency_us"]["p99_below"]),
            (&json!(8), &json!(8))
        );
        assert_eq!(
            (&json["store"]["kind"], &json["writes"], &json["deletes"]),
            (&json!("memory"), &json!(10), &json!(2))
        );
        assert_eq!(bucket(Duration::from_secs(1 << 40)), LATENCY_BUCKETS - 1);
    }
}
