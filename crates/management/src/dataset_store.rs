//! Datasets as versioned, segmented Data, kept until clients have fetched all segments.
//!
//! Source: management.md §6.1. A request gets segment 0 of a snapshot. A request soon afterwards gets the same snapshot
//! if nothing has changed. In NFD answers are up to a second old. Here a script that adds a route and then lists routes
//! sees the new route. Clients request later segments by exact name, and get them only from the snapshot. The store
//! keeps contents and makes packets on demand: signing 8000 bytes costs about as much as copying a few packets.
//!
//! The name of a request may have components after the dataset's name, for example a signature. Requests that differ
//! only in these components share one snapshot, and each gets packets below its own name.
//!
//! Limits: [`DatasetLimits`]; the oldest snapshots are dropped first. [`MAX_REQUEST_NAME_BYTES`]: longer requests are
//! refused.

use namewire_packet::{DataBuilder, MAX_PACKET_BYTES, Name, NameBuf};
use std::collections::VecDeque;

/// Bytes of a dataset per segment, unless the name of the request leaves less room in a packet.
const SEGMENT_BYTES: usize = 8000;
/// Longest name of a request in bytes: a name to look at (`name_looks.rs`), and a signature.
pub(crate) const MAX_REQUEST_NAME_BYTES: usize = 4096 + 512;
/// What a segment has beside the name of the request and content, in bytes: at most 89, and some to spare.
const ENVELOPE_BYTES: usize = 128;
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

/// A request for a dataset, or for a segment of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The part of the name that says which dataset: `/localhost/nfd/<module>/<verb>`, and a query if there is one.
    pub(crate) dataset: Name<'a>,
    /// The whole name.
    pub(crate) name: Name<'a>,
}

/// Bytes of content in each segment below `name`.
pub(crate) fn segment_bytes(name: Name<'_>) -> usize {
    SEGMENT_BYTES.min(MAX_PACKET_BYTES - ENVELOPE_BYTES - name.value().len().min(MAX_REQUEST_NAME_BYTES))
}

/// One version of one dataset.
#[derive(Debug)]
struct Snapshot {
    dataset: NameBuf,
    version: u64,
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

    /// Segment 0 of a snapshot that is up to date and at most `age_ms_max` old.
    pub(crate) fn shared(&self, asked: Asked<'_>, now_ns: u64, age_ms_max: u64) -> Option<Vec<u8>> {
        let snapshot = self.snapshots.iter().rev().find(|s| s.dataset.as_name() == asked.dataset)?;
        let age_ns = now_ns.saturating_sub(snapshot.created_ns);
        let is_current = snapshot.changes == self.changes && age_ns < age_ms_max * 1_000_000;
        is_current.then(|| snapshot.segment(asked.name, 0)).flatten()
    }

    /// Keeps a new snapshot and returns its segment 0; `None` if it is larger than the limit of the whole store.
    pub(crate) fn add(&mut self, asked: Asked<'_>, content: Vec<u8>, now_ns: u64, unix_ms: u64) -> Option<Vec<u8>> {
        if content.len() > self.limits.bytes {
            return None;
        }
        self.drop_old(now_ns);
        while self.bytes + content.len() > self.limits.bytes || self.snapshots.len() >= self.limits.snapshots {
            let Some(oldest) = self.snapshots.pop_front() else { break };
            self.bytes -= oldest.content.len();
        }
        self.bytes += content.len();
        let snapshot = Snapshot { created_ns: now_ns, used_ns: now_ns, ..self.next_version(asked, content, unix_ms) };
        let first = snapshot.segment(asked.name, 0);
        self.snapshots.push_back(snapshot);
        first
    }

    /// Segment 0 of a dataset that has no more than this one, without keeping it.
    pub(crate) fn pass(&mut self, asked: Asked<'_>, content: Vec<u8>, unix_ms: u64) -> Option<Vec<u8>> {
        debug_assert!(content.len() <= segment_bytes(asked.name));
        self.next_version(asked, content, unix_ms).segment(asked.name, 0)
    }

    fn next_version(&mut self, asked: Asked<'_>, content: Vec<u8>, unix_ms: u64) -> Snapshot {
        // Versions grow even if the clock is set back.
        self.last_version = unix_ms.max(self.last_version + 1);
        let (dataset, version) = (asked.dataset.to_buf(), self.last_version);
        Snapshot { dataset, version, content, created_ns: 0, changes: self.changes, used_ns: 0 }
    }

    /// The segment whose name (of the request, version, perhaps segment) is asked for.
    pub(crate) fn stored(&mut self, asked: Asked<'_>, now_ns: u64) -> Option<Vec<u8>> {
        self.drop_old(now_ns);
        let last = asked.name.last()?;
        let (versioned, segment) = match last.segment() {
            Some(segment) => (asked.name.parent(), segment),
            None => (asked.name, 0),
        };
        let (version, request) = (versioned.last()?.version()?, versioned.parent());
        let mut snapshots = self.snapshots.iter_mut();
        let snapshot = snapshots.find(|s| s.version == version && s.dataset.as_name() == asked.dataset)?;
        snapshot.used_ns = now_ns;
        snapshot.segment(request, segment)
    }

    fn drop_old(&mut self, now_ns: u64) {
        let age_ns = self.limits.age_ms.saturating_mul(1_000_000);
        self.snapshots.retain(|snapshot| now_ns.saturating_sub(snapshot.used_ns) <= age_ns);
        self.bytes = self.snapshots.iter().map(|snapshot| snapshot.content.len()).sum();
    }
}

impl Snapshot {
    /// One segment as a signed Data below the name of the request; `None` past the end, and below a name that is too
    /// long. An empty dataset has one empty segment.
    fn segment(&self, request: Name<'_>, segment: u64) -> Option<Vec<u8>> {
        let bytes = segment_bytes(request);
        let last = (self.content.len().saturating_sub(1) / bytes) as u64;
        if segment > last || request.value().len() > MAX_REQUEST_NAME_BYTES {
            return None;
        }
        let start = segment as usize * bytes;
        let end = self.content.len().min(start + bytes);
        let mut name = request.to_buf();
        name.push_version(self.version).push_segment(segment);
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
    use namewire_packet::{Component, Data};

    const SECOND_NS: u64 = 1_000_000_000;

    fn name(uri: &str) -> NameBuf {
        uri.parse().expect("name")
    }

    /// A request whose name says nothing else.
    fn plain<'a>(name: &'a NameBuf) -> Asked<'a> {
        Asked { dataset: name.as_name(), name: name.as_name() }
    }

    /// A segment of `/d` by its name.
    fn stored(store: &mut DatasetStore, name: &NameBuf, now_ns: u64) -> Option<Vec<u8>> {
        store.stored(Asked { dataset: name.as_name().prefix(1), name: name.as_name() }, now_ns)
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
            packet = stored(store, &next, now_ns).expect("next segment");
        }
        content
    }

    #[test]
    fn datasets_of_every_size_come_back_whole() {
        for size in [0, 1, 7999, 8000, 8001, 16000, 40_001] {
            let mut store = DatasetStore::new(DatasetLimits::default());
            let content: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let first = store.add(plain(&name("/d")), content.clone(), 0, 1).expect("fits");
            assert_eq!(fetch_all(&mut store, first, SECOND_NS), content, "{size}");
        }
    }

    #[test]
    fn a_snapshot_is_shared_for_a_second_and_its_segments_live_ten() {
        let mut store = DatasetStore::new(DatasetLimits::default());
        let first = store.add(plain(&name("/d")), vec![1; 9000], 0, 5).expect("fits");
        let shared = |store: &DatasetStore, uri: &str, at_ns| store.shared(plain(&name(uri)), at_ns, 1000);
        assert_eq!(shared(&store, "/d", SECOND_NS - 1), Some(first));
        assert_eq!(shared(&store, "/d", SECOND_NS), None);
        assert_eq!(shared(&store, "/other", 0), None);
        store.note_change();
        assert_eq!(shared(&store, "/d", 0), None, "a change makes it old");
        let second_segment = name("/d/v=5/seg=1");
        assert!(stored(&mut store, &second_segment, 9 * SECOND_NS).is_some());
        assert!(stored(&mut store, &name("/d/v=5/seg=2"), 9 * SECOND_NS).is_none());
        assert!(stored(&mut store, &name("/d/v=6/seg=0"), 9 * SECOND_NS).is_none());
        assert!(stored(&mut store, &name("/d/v=5"), 9 * SECOND_NS).is_some());
        assert!(stored(&mut store, &second_segment, 19 * SECOND_NS).is_some(), "use keeps it");
        assert!(stored(&mut store, &second_segment, 30 * SECOND_NS).is_none());
    }

    /// A name of the greatest length leaves room for less content, and every packet still has its size.
    #[test]
    fn segments_fit_below_every_name() {
        let content: Vec<u8> = (0..20_000).map(|i| (i % 251) as u8).collect();
        for name_bytes in [100, 650, 700, MAX_REQUEST_NAME_BYTES] {
            let mut request = name("/d");
            // A component of 253 bytes and more has a header of 4 bytes.
            let header = if name_bytes < 256 { 2 } else { 4 };
            request.push_generic(&vec![b'x'; name_bytes - request.value().len() - header]);
            assert_eq!(request.value().len(), name_bytes);
            let mut store = DatasetStore::new(DatasetLimits::default());
            let dataset = name("/d");
            let asked = Asked { dataset: dataset.as_name(), name: request.as_name() };
            let first = store.add(asked, content.clone(), 0, u64::MAX >> 1).expect("fits");
            assert!(first.len() <= MAX_PACKET_BYTES, "{name_bytes}: {}", first.len());
            let first_bytes = Data::parse(&first).expect("Data").content().len();
            assert_eq!(first_bytes == 8000, name_bytes < 700, "{name_bytes}: {first_bytes}");
            assert_eq!(fetch_all(&mut store, first, 0), content, "{name_bytes}");
            let longer = request.join(Component::generic(b""));
            let is_answered = store.shared(Asked { name: longer.as_name(), ..asked }, 0, 1000).is_some();
            assert_eq!(is_answered, name_bytes < MAX_REQUEST_NAME_BYTES);
        }
    }

    #[test]
    fn versions_grow_even_when_the_clock_does_not() {
        let mut store = DatasetStore::new(DatasetLimits::default());
        let mut versions = Vec::new();
        for unix_ms in [1000, 1000, 500, 2000] {
            let packet = store.add(plain(&name("/d")), Vec::new(), 0, unix_ms).expect("fits");
            let data = Data::parse(&packet).expect("Data");
            versions.push(data.name().parent().last().and_then(|version| version.version()));
        }
        assert_eq!(versions, [Some(1000), Some(1001), Some(1002), Some(2000)]);
    }

    #[test]
    fn limits_drop_the_oldest_and_refuse_the_too_large() {
        let limits = DatasetLimits { bytes: 100, snapshots: 3, age_ms: 10_000 };
        let mut store = DatasetStore::new(limits);
        assert_eq!(store.add(plain(&name("/d")), vec![0; 101], 0, 1), None);
        for unix_ms in 1..=3 {
            store.add(plain(&name("/d")), vec![0; 40], 0, unix_ms).expect("fits");
        }
        assert_eq!((store.snapshots.len(), store.bytes), (2, 80));
        for unix_ms in 11..=14 {
            store.add(plain(&name("/d")), vec![0; 1], 0, unix_ms).expect("fits");
        }
        assert_eq!((store.snapshots.len(), store.bytes), (3, 3));
    }
}
