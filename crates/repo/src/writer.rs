//! The writer: one thread that stores what all commands and connections bring.
//!
//! Question: how is every Data on the disk before it is acknowledged, without a disk write for each?
//!
//! By group commit. While the store writes one batch, the next one collects: the writer takes all [`Submission`]s that
//! wait, writes them with one call, and then acknowledges each. A submission that comes while the writer is idle is
//! written at once. Under load the writer gives a small batch a little more time ([`LINGER`]), because a commit costs
//! the same for one Data as for a thousand.
//!
//! ```text
//!   jobs, bulk ──► semaphore (bytes) ──► queue ──► batch ──► Store::write ──► acknowledgements
//!        ▲                                                                          │
//!        └──────────────────── room for as many bytes ◄─────────────────────────────┘
//! ```
//!
//! If the store refuses a batch because it is full, the writer tries each submission alone, so deletions and small
//! insertions still succeed.
//!
//! Limits: [`QUEUE_BYTES_MAX`] bytes wait. Jobs and connections with more Data wait for room, and meanwhile fetch or
//! read nothing. [`BATCH_CHANGES_MAX`] changes in a batch.

use crate::{
    statistics::Statistics,
    store::{Change, Record, Store, StoreError},
};
use namewire_packet::Data;
use std::{
    borrow::Cow,
    io,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Bytes of changes that may wait to be written, with [`CHANGE_BYTES`] for each.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Memory of one change beside its name and packet, about.
const CHANGE_BYTES: usize = 128;
/// Most changes in one batch.
const BATCH_CHANGES_MAX: usize = 8192;
/// A batch that has as many is not kept waiting.
const BATCH_CHANGES_ENOUGH: usize = 1024;
/// How long a smaller batch waits for more while the writer is busy. A commit follows within 10 ms of the first change.
const LINGER: Duration = Duration::from_millis(4);

/// A change that owns its bytes.
#[derive(Debug)]
pub(crate) enum OwnedChange {
    /// A record; its name is the part of it from `name_start` to `name_end`.
    Put {
        record: Vec<u8>,
        name_start: usize,
        name_end: usize,
    },
    Delete {
        name: Box<[u8]>,
    },
    Note {
        key: Cow<'static, [u8]>,
        /// Nothing to forget it.
        note: Option<Vec<u8>>,
    },
}

impl OwnedChange {
    /// The change that stores this Data now.
    pub(crate) fn put(data: &Data<'_>, now_ms: u64) -> Self {
        let freshness_ms = data.freshness_ms().min(u64::from(u32::MAX)) as u32;
        let record = Record { stored_ms: now_ms, freshness_ms, wire: data.wire() }.encode();
        let name = data.name();
        // The name is a part of the packet, which is the end of the record.
        let in_wire = name.value().as_ptr().addr() - data.wire().as_ptr().addr();
        let name_start = record.len() - data.wire().len() + in_wire;
        OwnedChange::Put { name_start, name_end: name_start + name.value().len(), record }
    }

    pub(crate) fn delete(name: &[u8]) -> Self {
        OwnedChange::Delete { name: name.into() }
    }

    fn borrow(&self) -> Change<'_> {
        match self {
            OwnedChange::Put { record, name_start, name_end } => {
                Change::Put { name: &record[*name_start..*name_end], record }
            }
            OwnedChange::Delete { name } => Change::Delete { name },
            OwnedChange::Note { key, note } => Change::Note { key, note: note.as_deref() },
        }
    }

    fn bytes(&self) -> usize {
        CHANGE_BYTES
            + match self {
                OwnedChange::Put { record, .. } => record.len(),
                OwnedChange::Delete { name } => name.len(),
                OwnedChange::Note { key, note } => key.len() + note.as_ref().map_or(0, Vec::len),
            }
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}

/// What became of a submission. The error is shared by all submissions of a batch.
pub(crate) type Outcome = Result<(), Arc<StoreError>>;

/// Changes that are acknowledged together.
struct Submission {
    changes: Vec<OwnedChange>,
    since: Instant,
    done: oneshot::Sender<Outcome>,
    _room: OwnedSemaphorePermit,
}

/// The writer's end is gone: the repository stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the repository is stopping")]
pub(crate) struct Stopping;

/// A way to submit changes. When all are dropped, the writer writes what waits and ends.
#[derive(Clone)]
pub(crate) struct WriteQueue {
    sender: Sender<Submission>,
    room: Arc<Semaphore>,
}

impl WriteQueue {
    /// Submits changes, waiting while the queue is full. The receiver gets their outcome.
    pub(crate) async fn submit(&self, changes: Vec<OwnedChange>) -> Result<oneshot::Receiver<Outcome>, Stopping> {
        let bytes: usize = changes.iter().map(OwnedChange::bytes).sum();
        let permits = bytes.min(QUEUE_BYTES_MAX) as u32;
        let room = Arc::clone(&self.room).acquire_many_owned(permits).await.map_err(|_| Stopping)?;
        let (done, outcome) = oneshot::channel();
        let submission = Submission { changes, since: Instant::now(), done, _room: room };
        self.sender.send(submission).map_err(|_| Stopping)?;
        Ok(outcome)
    }

    /// Submits changes and waits until the store has them.
    pub(crate) async fn write(&self, changes: Vec<OwnedChange>) -> Outcome {
        let gone = || Arc::new(StoreError::Other(Stopping.to_string()));
        let outcome = self.submit(changes).await.map_err(|Stopping| gone())?;
        outcome.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Starts the writer.
pub(crate) fn start(
    store: Arc<dyn Store>,
    statistics: Arc<Statistics>,
) -> io::Result<(WriteQueue, thread::JoinHandle<()>)> {
    let (sender, receiver) = channel();
    let queue = WriteQueue { sender, room: Arc::new(Semaphore::new(QUEUE_BYTES_MAX)) };
    let writer = Writer { store, statistics, receiver };
    let thread = thread::Builder::new().name("repo-writer".to_owned()).spawn(move || writer.run())?;
    Ok((queue, thread))
}

struct Writer {
    store: Arc<dyn Store>,
    statistics: Arc<Statistics>,
    receiver: Receiver<Submission>,
}

impl Writer {
    fn run(self) {
        let mut batch = Vec::new();
        while self.collect(&mut batch) {
            self.write(&mut batch);
        }
    }

    /// Fills the batch; false when no more will come.
    fn collect(&self, batch: &mut Vec<Submission>) -> bool {
        let is_busy = match self.receiver.try_recv() {
            Ok(waiting) => {
                batch.push(waiting);
                true
            }
            Err(_) => match self.receiver.recv() {
                Ok(first) => {
                    batch.push(first);
                    false
                }
                Err(_) => return false,
            },
        };
        let mut changes: usize = batch.iter().map(|one| one.changes.len()).sum();
        let deadline = Instant::now() + LINGER;
        while changes < BATCH_CHANGES_MAX {
            let wait = if is_busy && changes < BATCH_CHANGES_ENOUGH {
                deadline.saturating_duration_since(Instant::now())
            } else {
                Duration::ZERO
            };
            match self.receiver.recv_timeout(wait) {
                Ok(next) => {
                    changes += next.changes.len();
                    batch.push(next);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        true
    }

    fn write(&self, batch: &mut Vec<Submission>) {
        match self.commit(batch) {
            Err(StoreError::Full(_)) if batch.len() > 1 => {
                for submission in batch.drain(..) {
                    let outcome = self.commit(std::slice::from_ref(&submission)).map_err(Arc::new);
                    self.acknowledge(submission, outcome);
                }
            }
            outcome => {
                let outcome = outcome.map_err(Arc::new);
                batch.drain(..).for_each(|submission| self.acknowledge(submission, outcome.clone()));
            }
        }
    }

    fn commit(&self, batch: &[Submission]) -> Result<(), StoreError> {
        let changes: Vec<Change<'_>> =
            batch.iter().flat_map(|one| one.changes.iter().map(OwnedChange::borrow)).collect();
        self.store.write(&changes)?;
        self.statistics.add_commit();
        Ok(())
    }

    fn acknowledge(&self, submission: Submission, outcome: Outcome) {
        match &outcome {
            Err(error) => self.statistics.refuse_for(error),
            Ok(()) => {
                let (mut count, mut bytes, mut deletes) = (0, 0, 0);
                for change in &submission.changes {
                    match change {
                        OwnedChange::Put { record, .. } => (count, bytes) = (count + 1, bytes + record.len() as u64),
                        OwnedChange::Delete { .. } => deletes += 1,
                        OwnedChange::Note { .. } => {}
                    }
                }
                self.statistics.add_writes(count, bytes, deletes, submission.since.elapsed());
            }
        }
        // A client that has gone needs no acknowledgement.
        let _ = submission.done.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        statistics::Refusal,
        store::{Usage, Written, memory::MemoryStore},
    };
    use namewire_packet::{DataBuilder, NameBuf};
    use std::{
        ops::ControlFlow,
        sync::{Condvar, Mutex},
    };

    fn packet(uri: &str, size: usize) -> Vec<u8> {
        DataBuilder::new(uri.parse::<NameBuf>().unwrap()).freshness_ms(7).content(&vec![1; size]).sign_digest()
    }

    fn put(uri: &str, size: usize) -> OwnedChange {
        OwnedChange::put(&Data::parse(&packet(uri, size)).unwrap(), 5)
    }

    fn get(store: &dyn Store, uri: &str) -> Option<(u64, u32, Vec<u8>)> {
        let mut found = None;
        let name: NameBuf = uri.parse().unwrap();
        store
            .get(&[name.value()], &mut |_, record| {
                found = Some((record.stored_ms, record.freshness_ms, record.wire.to_vec()));
            })
            .unwrap();
        found
    }

    #[tokio::test]
    async fn acknowledged_data_is_stored() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(1 << 20));
        let statistics = Arc::new(Statistics::default());
        let (queue, thread) = start(Arc::clone(&store), Arc::clone(&statistics)).unwrap();
        queue.write(vec![put("/a/1", 10), put("/a/2", 20)]).await.unwrap();
        assert_eq!(get(&*store, "/a/2"), Some((5, 7, packet("/a/2", 20))));
        let name: NameBuf = "/a/1".parse().unwrap();
        queue.write(vec![OwnedChange::delete(name.value())]).await.unwrap();
        assert_eq!(get(&*store, "/a/1"), None);
        drop(queue);
        thread.join().unwrap();
        let snapshot = statistics.snapshot();
        assert_eq!((snapshot.writes, snapshot.deletes, snapshot.commits), (2, 1, 2));
    }

    #[tokio::test]
    async fn a_full_store_refuses_what_does_not_fit_and_takes_the_rest() {
        let store = Arc::new(GatedStore::new(1000));
        let statistics = Arc::new(Statistics::default());
        let (queue, _thread) = start(store.clone(), Arc::clone(&statistics)).unwrap();
        queue.write(vec![put("/first", 100)]).await.unwrap();
        let first: NameBuf = "/first".parse().unwrap();
        store.close();
        let mut outcomes = Vec::new();
        for changes in [
            vec![put("/plug", 1)],
            vec![put("/big", 5000)],
            vec![put("/small", 10)],
            vec![OwnedChange::delete(first.value())],
        ] {
            outcomes.push(queue.submit(changes).await.unwrap());
        }
        store.open();
        let big = outcomes.remove(1).await.unwrap();
        assert!(matches!(&*big.unwrap_err(), StoreError::Full(_)));
        for outcome in outcomes {
            outcome.await.unwrap().unwrap();
        }
        assert!(get(&*store, "/small").is_some() && get(&*store, "/first").is_none());
        assert_eq!(statistics.snapshot().refused(Refusal::StoreFull), 1);
    }

    /// A store whose writes the test lets pass.
    struct GatedStore {
        inner: MemoryStore,
        is_closed: Mutex<bool>,
        opened: Condvar,
        sizes: Mutex<Vec<usize>>,
    }

    impl GatedStore {
        fn new(bytes_max: u64) -> Self {
            GatedStore {
                inner: MemoryStore::new(bytes_max),
                is_closed: Mutex::default(),
                opened: Condvar::new(),
                sizes: Mutex::default(),
            }
        }

        fn close(&self) {
            *self.is_closed.lock().unwrap() = true;
        }

        fn open(&self) {
            *self.is_closed.lock().unwrap() = false;
            self.opened.notify_all();
        }
    }

    impl Store for GatedStore {
        fn kind(&self) -> &'static str {
            "gated"
        }

        fn is_ordered(&self) -> bool {
            true
        }

        fn get(&self, names: &[&[u8]], found: &mut dyn FnMut(usize, Record<'_>)) -> Result<(), StoreError> {
            self.inner.get(names, found)
        }

        fn scan(
            &self,
            prefix: &[u8],
            after: Option<&[u8]>,
            visit: &mut dyn FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
        ) -> Result<(), StoreError> {
            self.inner.scan(prefix, after, visit)
        }

        fn write(&self, changes: &[Change<'_>]) -> Result<Written, StoreError> {
            drop(self.opened.wait_while(self.is_closed.lock().unwrap(), |is_closed| *is_closed).unwrap());
            self.sizes.lock().unwrap().push(changes.len());
            self.inner.write(changes)
        }

        fn usage(&self) -> Result<Usage, StoreError> {
            self.inner.usage()
        }

        fn notes(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
            self.inner.notes(visit)
        }
    }

    #[tokio::test]
    async fn one_commit_serves_many_and_the_queue_is_bounded() {
        let store = Arc::new(GatedStore::new(1 << 30));
        store.close();
        let statistics = Arc::new(Statistics::default());
        let (queue, _thread) = start(store.clone(), Arc::clone(&statistics)).unwrap();
        let mut outcomes = vec![queue.submit(vec![put("/first", 1)]).await.unwrap()];
        let mut submitted = 0;
        while queue.room.available_permits() > 8300 {
            outcomes.push(queue.submit(vec![put(&format!("/{submitted}"), 8000)]).await.unwrap());
            submitted += 1;
        }
        let next = tokio::spawn({
            let queue = queue.clone();
            async move { queue.write(vec![put("/next", 16_000)]).await }
        });
        tokio::task::yield_now().await;
        assert!(!next.is_finished(), "there is no room");
        let most = QUEUE_BYTES_MAX / 8000;
        assert!(submitted > most * 9 / 10 && submitted <= most + 1, "{submitted} of {most}");
        store.open();
        next.await.unwrap().unwrap();
        for outcome in outcomes {
            outcome.await.unwrap().unwrap();
        }
        assert_eq!(store.inner.usage().unwrap().records, submitted as u64 + 2);
        let commits = store.sizes.lock().unwrap().len();
        assert!(commits < 20, "{commits} commits for {submitted} submissions");
    }
}
