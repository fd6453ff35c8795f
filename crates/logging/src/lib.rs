//! The log of single events: the `tracing` events of all crates, by area, on standard error and in memory.
//!
//! ```text
//!   tracing event ─► filter (level of its area) ─► rate limit ─► record ─┬─► recent lines (dataset log/recent)
//!                                                                       └─► line ─► queue ─► writer ─► standard error
//! ```
//!
//! The target of an event is the name of its area. Events with other targets are not ours, and the log ignores them.
//! The caller's thread makes the record and the line; only the writer's thread waits for standard error. Workers log
//! nothing, so no packet waits for the log.
//!
//! Limits: [`rate_limit::LINES_PER_SECOND`] lines a second of each kind, further lines are counted;
//! [`recent::MAX_RECORDS`] records of [`recent::MAX_BYTES`] in memory; [`writer::QUEUE_LINES`] lines that wait for
//! standard error, others are counted ([`Log::lines_lost`]); [`record::MAX_VALUE_BYTES`] of each value.
//!
//! A process has one log, because it has one standard error.

mod layer;
mod levels;
mod plane;
mod rate_limit;
mod recent;
mod record;
mod writer;

pub use writer::{FutureWriter, LogWriter};

use layer::LogLayer;
use levels::LiveLevels;
use namewire_configuration::log_levels::{LogChange, LogLevels};
use namewire_node_model::log_line::LineForm;
use namewire_packet::nfd::LogRecord;
use rate_limit::{Kind, RateLimit, Verdict};
use recent::Recent;
use record::more_like_this;
use std::{
    io::Write,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicU64, atomic::Ordering},
    time::Instant,
};
use tracing_subscriber::{layer::SubscriberExt, registry::Registry};
use writer::{Message, Queue};

/// The log of this process, once there is one.
static INSTALLED: OnceLock<Log> = OnceLock::new();

/// See the module documentation.
pub struct Log {
    levels: LiveLevels,
    form: LineForm,
    kept: Mutex<Kept>,
    queue: Queue,
    lines_lost: AtomicU64,
    start: Instant,
}

/// What changes with each line.
#[derive(Default)]
struct Kept {
    limit: RateLimit,
    recent: Recent,
}

impl Log {
    /// Starts the log of this process, whose lines go to `output`. They wait until [`FutureWriter::start`].
    ///
    /// # Errors
    /// If there is a log already.
    pub fn install(
        levels: LogLevels,
        form: LineForm,
        output: impl Write + Send + 'static,
    ) -> std::io::Result<FutureWriter> {
        let exists = || std::io::Error::other("this process has a log already");
        let (queue, lines) = Queue::new();
        let log = Log {
            levels: LiveLevels::new(levels),
            form,
            kept: Mutex::default(),
            queue: queue.clone(),
            lines_lost: AtomicU64::new(0),
            start: Instant::now(),
        };
        INSTALLED.set(log).map_err(|_| exists())?;
        let log = INSTALLED.get().ok_or_else(exists)?;
        let subscriber = Registry::default().with(LogLayer::of(log));
        tracing::subscriber::set_global_default(subscriber).map_err(|_| exists())?;
        Ok(FutureWriter::new(log, queue, lines, output))
    }

    /// The log of this process, if it has one.
    pub fn installed() -> Option<&'static Log> {
        INSTALLED.get()
    }

    /// The level of each area.
    pub fn levels(&self) -> LogLevels {
        self.levels.get()
    }

    /// Sets the level of each area.
    pub fn set_levels(&self, levels: LogLevels) {
        self.levels.set(levels);
        // Otherwise a statement that was off would stay so.
        tracing::callsite::rebuild_interest_cache();
    }

    /// Changes levels, and returns all.
    pub fn change_levels(&self, change: &LogChange) -> LogLevels {
        let mut levels = self.levels();
        levels.take(change);
        self.set_levels(levels);
        levels
    }

    /// The lines that are kept and have a number greater than `after`.
    pub fn recent(&self, after: u64) -> Vec<LogRecord> {
        self.kept().recent.after(after)
    }

    /// Lines that were not written, because standard error took them too slowly.
    pub fn lines_lost(&self) -> u64 {
        self.lines_lost.load(Ordering::Relaxed)
    }

    /// Keeps and writes what an event says, unless there are too many of its kind.
    fn take(&self, kind: Kind, record: impl FnOnce() -> LogRecord) {
        let now_ns = self.now_ns();
        let mut kept = self.kept();
        // Here too: the writer may be stuck, and the lines that are kept must not wait for it.
        self.say_due(&mut kept, now_ns);
        match kept.limit.judge(&kind, now_ns) {
            Verdict::Write => self.say(&mut kept, record()),
            Verdict::CountFirst => {
                kept.limit.describe(&kind, record());
                // The writer looks when the second is over, also if nothing else happens.
                self.queue.send(Message::LookAgain);
            }
            Verdict::Count => {}
        }
    }

    /// Says how many lines of each kind were too many, for the seconds that are over. Returns the time until another
    /// is, in nanoseconds.
    fn say_more(&self) -> Option<u64> {
        let now_ns = self.now_ns();
        let mut kept = self.kept();
        self.say_due(&mut kept, now_ns);
        kept.limit.next_due_ns().map(|due_ns| due_ns.saturating_sub(now_ns))
    }

    fn say_due(&self, kept: &mut Kept, now_ns: u64) {
        for (record, count) in kept.limit.take_due(now_ns) {
            self.say(kept, more_like_this(&record, count));
        }
    }

    /// The last lines: how many of each kind were too many, also in the seconds that are not over.
    fn last_lines(&self) -> String {
        let due = self.kept().limit.take_due(u64::MAX);
        due.iter().map(|(record, count)| self.form.line(&more_like_this(record, *count))).collect()
    }

    fn say(&self, kept: &mut Kept, record: LogRecord) {
        let line = self.form.line(&record);
        kept.recent.add(record);
        if !self.queue.send(Message::Line(line)) {
            self.lines_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No statement under this lock can panic half-way through a change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
