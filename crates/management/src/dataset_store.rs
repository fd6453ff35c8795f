//! Datasets as versioned, segmented Data, kept until clients have fetched all segments.
//!
//! Source: management.md §6.1. A request gets segment 0 of a snapshot. A request soon afterwards gets the same snapshot
//! if nothing has changed. In NFD answers are up to a second old. Here a script that adds a route and then lists routes
//! sees the new route. Clients request later segments by exact name, and get them only from the snapshot. The store
//! keeps contents and makes packets on demand: signing 8000 bytes costs about as much as copying a few packets.
//!
//! Limits: [`DatasetLimits`]; the oldest snapshots are dropped first.

use namewire_packet::{DataBuilder, Name, NameBuf};
use std::collections::VecDeque;

/// Bytes of a dataset per segment.
pub(crate) const SEGMENT_BYTES: usize = 8000;
/// Requests this close together get the same snapshot if nothing has changed.
pub(crate) const SNAPSHOT_SHARED_MS: u64 = 1000;
/// The same for datasets that change without management, as counters do with every packet.
pub(crate) const COUNTERS_SHARED_MS: u64 = 10;
/// FreshnessPeriod of dataset segments and command answers.
pub(crate) const FRESHNESS_MS: u64 = 1000;

/// The limits of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetLimits {
    /// Bytes of all snapshots together, and therefore of the largest dataset.
    pub bytes: usize,
    /// Snapshots.
    pub snapshots: usize,
    /// Age in milliseconds since a snapshot was last asked for.
    pub age_ms: u64,
}

impl Default for DatasetLimits {
    fn default() -> Self {
        DatasetLimits { bytes: 64 << 20, snapshots: 64, age_ms: 10_000 }
    }
}

/// One version of one dataset.
#[derive(Debug)]
struct Snapshot {
    /// Dataset name with version.
    name: NameBuf,
    content: Vec<u8>,
    created_ns: u64,
    /// The number of changes up to this snapshot.
    changes: u64,
    used_ns: u64,
}

/// The snapshots, oldest first.
#[derive(Debug)]
pub(crate) struct DatasetStore {
    snapshots: VecDeque<Snapshot>,
    bytes: usize,
    last_version: u64,
    changes: u64,
    limits: DatasetLimits,
}

impl DatasetStore {
    pub(crate) fn new(limits: DatasetLimits) -> Self {
        DatasetStore { snapshots: VecDeque::new(), bytes: 0, last_version: 0, changes: 0, limits }
    }

    /// Records that the contents of datasets have changed: no snapshot is shared any longer.
    pub(crate) fn note_change(&mut self) {
        self.changes += 1;
    }

    /// The number of changes so far.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Segment 0 of a snapshot of `dataset` that is up to date and at most `age_ms_max` old.
    pub(crate) fn shared(&self, dataset: Name<'_>, now_ns: u64, age_ms_max: u64) -> Option<Vec<u8>> {
        let snapshot = self.snapshots.iter().rev().find(|s| s.name.as_name().parent() == dataset)?;
        let age_ns = now_ns.saturating_sub(snapshot.created_ns);
        let is_current = snapshot.changes == self.changes && age_ns < age_ms_max * 1_000_000;
        is_current.then(|| snapshot.segment(0)).flatten()
    }

    /// Keeps a new snapshot and returns its segment 0; `None` if it is larger than the limit of the whole store.
    pub(crate) fn add(&mut self, dataset: Name<'_>, content: Vec<u8>, now_ns: u64, unix_ms: u64) -> Option<Vec<u8>> {
        if content.len() > self.limits.bytes {
            return None;
        }
        self.drop_old(now_ns);
        while self.bytes + content.len() > self.limits.bytes || self.snapshots.len() >= self.limits.snapshots {
            let Some(oldest) = self.snapshots.pop_front() else { break };
            self.bytes -= oldest.content.len();
        }
        let name = self.next_version(dataset, unix_ms);
        self.bytes += content.len();
        let snapshot = Snapshot { name, content, created_ns: now_ns, changes: self.changes, used_ns: now_ns };
        let first = snapshot.segment(0);
        self.snapshots.push_back(snapshot);
        first
    }

    /// Segment 0 of a dataset that has no more than this one, without keeping it.
    pub(crate) fn pass(&mut self, dataset: Name<'_>, content: Vec<u8>, unix_ms: u64) -> Option<Vec<u8>> {
        debug_assert!(content.len() <= SEGMENT_BYTES);
        let name = self.next_version(dataset, unix_ms);
        Snapshot { name, content, created_ns: 0, changes: 0, used_ns: 0 }.segment(0)
    }

    fn next_version(&mut self, dataset: Name<'_>, unix_ms: u64) -> NameBuf {
        // Versions grow even if the clock is set back.
        self.last_version = unix_ms.max(self.last_version + 1);
        let mut name = dataset.to_buf();
        name.push_version(self.last_version);
        name
    }

    /// The segment that `name` (dataset, version, perhaps segment) asks for.
    pub(crate) fn stored(&mut self, name: Name<'_>, now_ns: u64) -> Option<Vec<u8>> {
        self.drop_old(now_ns);
        let last = name.last()?;
        let (versioned, segment) = match last.segment() {
            Some(segment) => (name.parent(), segment),
            None => (name, 0),
        };
        let snapshot = self.snapshots.iter_mut().find(|s| s.name.as_name() == versioned)?;
        snapshot.used_ns = now_ns;
        snapshot.segment(segment)
    }

    fn drop_old(&mut self, now_ns: u64) {
        let age_ns = self.limits.age_ms.saturating_mul(1_000_000);
        self.snapshots.retain(|snapshot| now_ns.saturating_sub(snapshot.used_ns) <= age_ns);
        self.bytes = self.snapshots.iter().map(|snapshot| snapshot.content.len()).sum();
    }
}

impl Snapshot {
    /// One segment as a signed Data; `None` past the end. An empty dataset has one empty segment.
    fn segment(&self, segment: u64) -> Option<Vec<u8>> {
        let last = (self.content.len().saturating_sub(1) / SEGMENT_BYTES) as u64;
        if segment > last {
            return None;
        }
        let start = segment as usize * SEGMENT_BYTES;
        let end = self.content.len().min(start + SEGMENT_BYTES);
        let mut name = self.name.clone();
        name.push_segment(segment);
        let mut data = DataBuilder::new(name).freshness_ms(FRESHNESS_MS).content(&self.content[start..end]);
        if segment == last {
            data = data.final_segment(last);
        }
        Some(data.sign_digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::Data;

    const SECOND_NS: u64 = 1_000_000_000;

    fn name(uri: &str) -> NameBuf {
        uri.parse().expect("name")
    }

    fn fetch_all(store: &mut DatasetStore, first: Vec<u8>, now_ns: u64) -> Vec<u8> {
        let mut content = Vec::new();
        let mut packet = first;
        for segment in 0.. {
            let data = Data::parse(&packet).expect("Data");
            assert!(data.verify_digest_sha256() && data.freshness_ms() == 1000);
            let last = data.name().last().expect("segment");
            assert_eq!(last.segment(), Some(segment));
            content.extend_from_slice(data.content());
            if data.final_block_id() == Some(last) {
                break;
            }
            assert_eq!(data.final_block_id(), None, "only the last segment has a FinalBlockId");
            let mut next = data.name().parent().to_buf();
            next.push_segment(segment + 1);
            packet = store.stored(next.as_name(), now_ns).expect("next segment");
        }
        content
    }

    #[test]
    fn datasets_of_every_size_come_back_whole() {
        for size in [0, 1, 7999, 8000, 8001, 16000, 40_001] {
            let mut store = DatasetStore::new(DatasetLimits::default());
            let content: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let first = store.add(name("/d").as_name(), content.clone(), 0, 1).expect("fits");
            assert_eq!(fetch_all(&mut store, first, SECOND_NS), content, "{size}");
        }
    }

    #[test]
    fn a_snapshot_is_shared_for_a_second_and_its_segments_live_ten() {
        let mut store = DatasetStore::new(DatasetLimits::default());
        let first = store.add(name("/d").as_name(), vec![1; 9000], 0, 5).expect("fits");
        let shared = |store: &DatasetStore, uri: &str, at_ns| store.shared(name(uri).as_name(), at_ns, 1000);
        assert_eq!(shared(&store, "/d", SECOND_NS - 1), Some(first));
        assert_eq!(shared(&store, "/d", SECOND_NS), None);
        assert_eq!(shared(&store, "/other", 0), None);
        store.note_change();
        assert_eq!(shared(&store, "/d", 0), None, "a change makes it old");
        let second_segment = name("/d/v=5/seg=1");
        assert!(store.stored(second_segment.as_name(), 9 * SECOND_NS).is_some());
        assert!(store.stored(name("/d/v=5/seg=2").as_name(), 9 * SECOND_NS).is_none());
        assert!(store.stored(name("/d/v=6/seg=0").as_name(), 9 * SECOND_NS).is_none());
        assert!(store.stored(name("/d/v=5").as_name(), 9 * SECOND_NS).is_some());
        assert!(store.stored(second_segment.as_name(), 19 * SECOND_NS).is_some(), "use keeps it");
        assert!(store.stored(second_segment.as_name(), 30 * SECOND_NS).is_none());
    }

    #[test]
    fn versions_grow_even_when_the_clock_does_not() {
        let mut store = DatasetStore::new(DatasetLimits::default());
        let mut versions = Vec::new();
        for unix_ms in [1000, 1000, 500, 2000] {
            let packet = store.add(name("/d").as_name(), Vec::new(), 0, unix_ms).expect("fits");
            let data = Data::parse(&packet).expect("Data");
            versions.push(data.name().parent().last().and_then(|version| version.version()));
        }
        assert_eq!(versions, [Some(1000), Some(1001), Some(1002), Some(2000)]);
    }

    #[test]
    fn limits_drop_the_oldest_and_refuse_the_too_large() {
        let limits = DatasetLimits { bytes: 100, snapshots: 3, age_ms: 10_000 };
        let mut store = DatasetStore::new(limits);
        assert_eq!(store.add(name("/d").as_name(), vec![0; 101], 0, 1), None);
        for unix_ms in 1..=3 {
            store.add(name("/d").as_name(), vec![0; 40], 0, unix_ms).expect("fits");
        }
        assert_eq!((store.snapshots.len(), store.bytes), (2, 80));
        for unix_ms in 11..=14 {
            store.add(name("/d").as_name(), vec![0; 1], 0, unix_ms).expect("fits");
        }
        assert_eq!((store.snapshots.len(), store.bytes), (3, 3));
    }
}
