//! Writes an unfinished copy and its index (file `part.rs`): how is a slow disk kept from slowing a fetch?
//!
//! A thread writes, up to 3 MiB behind the fetch.
//! N.B. Writing where segments are handled made fetches from a router of the same machine 18 % slower (median of 12
//! pairs), although a write into the page cache takes microseconds: that thread is the one that is never idle.
//!
//! A fetch of a folder has many such copies at a time. They are written where segments are handled: a thread and 4 MiB
//! of buffers for each would cost more than they bring.
//!
//! After the first failure nothing more is written: a line of the index must not follow bytes that are not there.

use crc32fast::Hasher;
use std::{
    fs::File,
    io::{self, Write},
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

/// Buffers that wait for the disk.
const BUFFERS_WAITING_MAX: usize = 2;

/// A line of the index.
pub(crate) struct Record {
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
    pub(crate) last_segment_bytes: usize,
}

/// What is written next.
pub(crate) enum Job {
    Content(Vec<u8>),
    Line(Record),
}

/// The writer of one copy.
pub(crate) enum Disk {
    Thread(DiskThread),
    /// Writes at once, and keeps a buffer that it has written.
    AtOnce(DiskWriter, Vec<u8>),
}

impl Disk {
    pub(crate) fn start(writer: DiskWriter, has_thread: bool) -> io::Result<Disk> {
        Ok(if has_thread { Disk::Thread(DiskThread::start(writer)?) } else { Disk::AtOnce(writer, Vec::new()) })
    }

    /// Waits while the disk is further behind than it may be.
    pub(crate) fn send(&mut self, job: Job) -> io::Result<()> {
        match self {
            Disk::Thread(thread) => thread.send(Work::Job(job)),
            Disk::AtOnce(writer, spare) => {
                writer.take(job).into_iter().for_each(|buffer| *spare = buffer);
                writer.result()
            }
        }
    }

    /// Waits until everything is written.
    pub(crate) fn report(&self) -> io::Result<()> {
        match self {
            Disk::Thread(thread) => thread.report(),
            Disk::AtOnce(writer, _) => writer.result(),
        }
    }

    /// A buffer that was written, or a new one.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        match self {
            Disk::Thread(thread) => thread.written.try_recv().unwrap_or_default(),
            Disk::AtOnce(_, spare) => std::mem::take(spare),
        }
    }
}

/// Why the disk takes no more: kind and words of the error.
type Failure = (io::ErrorKind, String);

fn as_error((kind, words): &Failure) -> io::Error {
    io::Error::new(*kind, words.clone())
}

enum Work {
    Job(Job),
    /// Tells how all jobs so far have ended.
    Report(SyncSender<io::Result<()>>),
}

/// The thread that writes. It ends when this is dropped, after what waits: its file holds the lock, too.
pub(crate) struct DiskThread {
    work: Option<SyncSender<Work>>,
    /// Once it is set, the thread does nothing more.
    failure: Arc<OnceLock<Failure>>,
    /// Buffers that are written. N.B. Fresh ones came from the kernel each time, page by page: 0.09 s for
    /// 300 MB.
    written: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for DiskThread {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // its panic has been printed, and a report would have told
        }
    }
}

impl DiskThread {
    fn start(writer: DiskWriter) -> io::Result<DiskThread> {
        let (work, queue) = sync_channel(BUFFERS_WAITING_MAX);
        // One more is being filled, and one written.
        let (recycler, written) = sync_channel(BUFFERS_WAITING_MAX + 2);
        let failure = Arc::clone(&writer.failure);
        let run = move || writer.run(&queue, &recycler);
        let thread = thread::Builder::new().name("download".to_owned()).spawn(run)?;
        Ok(DiskThread { work: Some(work), failure, written, thread: Some(thread) })
    }

    fn send(&self, work: Work) -> io::Result<()> {
        if let Some(failure) = self.failure.get() {
            return Err(as_error(failure));
        }
        let sent = self.work.as_ref().is_some_and(|queue| queue.send(work).is_ok());
        if sent { Ok(()) } else { Err(io::Error::other("the thread that writes has ended")) }
    }

    fn report(&self) -> io::Result<()> {
        let (report, reported) = sync_channel(1);
        self.send(Work::Report(report))?;
        reported.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that writes has ended")))
    }
}

/// What the disk is written with.
pub(crate) struct DiskWriter {
    file: File,
    index: File,
    /// Bytes that come next and that the index has already.
    counted: usize,
    /// Of the bytes since the last line.
    checksum: Hasher,
    failure: Arc<OnceLock<Failure>>,
}

impl DiskWriter {
    /// Writes to `file` and `index` from where they are. The index has the next `counted` bytes already.
    pub(crate) fn new(file: File, index: File, counted: usize) -> Self {
        DiskWriter { file, index, counted, checksum: Hasher::new(), failure: Arc::default() }
    }

    fn run(mut self, queue: &Receiver<Work>, recycler: &SyncSender<Vec<u8>>) {
        for work in queue {
            match work {
                // Whoever waits no longer does not need the answer.
                Work::Report(report) => drop(report.send(self.result())),
                Work::Job(job) => {
                    let buffer = self.take(job);
                    buffer.into_iter().for_each(|buffer| drop(recycler.try_send(buffer))); // without room, it is freed
                }
            }
        }
    }

    fn result(&self) -> io::Result<()> {
        self.failure.get().map_or(Ok(()), |failure| Err(as_error(failure)))
    }

    /// Does the job, and gives its empty buffer back.
    fn take(&mut self, job: Job) -> Option<Vec<u8>> {
        if self.failure.get().is_some() {
            return None;
        }
        let (done, buffer) = match job {
            Job::Content(mut content) => {
                let done = self.write(&content);
                content.clear();
                (done, Some(content))
            }
            Job::Line(record) => (self.record(&record), None),
        };
        if let Err(error) = done {
            self.failure.get_or_init(|| (error.kind(), error.to_string()));
        }
        buffer
    }

    fn write(&mut self, content: &[u8]) -> io::Result<()> {
        let counted = self.counted.min(content.len());
        self.counted -= counted;
        self.checksum.update(&content[counted..]);
        self.file.write_all(content)
    }

    fn record(&mut self, record: &Record) -> io::Result<()> {
        let checksum = std::mem::take(&mut self.checksum).finalize();
        let Record { segments, bytes, last_segment_bytes } = record;
        let line = format!("{segments} {bytes} {last_segment_bytes} {checksum:08x}\n");
        self.index.write_all(line.as_bytes())
    }
}
