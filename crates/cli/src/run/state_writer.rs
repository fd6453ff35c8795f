//! State writer: when are the results of commands written to the state file, and how does the router learn of it?
//!
//! A change makes a write due; the write includes all changes made before it begins. One write runs at a time, in a
//! separate thread, so that a slow disk delays only the file. The writer retries a failed write until it succeeds, with
//! pauses from [`RETRY_FIRST`] up to [`RETRY_LAST`]. The writer reports each attempt to the router. The router counts
//! the attempts, and answers the commands that wait (`state.sync = "always"`).
//!
//! Limits: with `"1s"` there is one write a second. Reading the router's tables then takes at most 1/[`LOOK_SHARE`] of
//! a processor. With 100,000 routes, one reading takes some tenths of a second, so seconds pass between two readings.
//! With `"always"`, reading takes at most half a processor, and one write serves all commands that arrived during the
//! previous write.

use namewire_configuration::{
    Declarations,
    settings::{StateSection, StateSync},
    state_file,
};
use namewire_router::operator::{INVENTORY_ROUTES_MAX, Inventory, StateWritten};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Changes that come so close together are written at once.
const WRITE_DELAY: Duration = Duration::from_millis(100);

/// Least time between two writes, unless commands wait for them.
const WRITE_PAUSE: Duration = Duration::from_secs(1);

/// Reading the tables takes at most one part in this number of the time, unless commands wait for the write.
const LOOK_SHARE: u32 = 20;

/// First pause after a write that failed; it doubles up to the last.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_LAST: Duration = Duration::from_secs(30);

/// Longest wait for the disk at the end of the process.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// The state file, and what is in it.
pub(super) struct StateWriter {
    path: PathBuf,
    sync: StateSync,
    /// What is on disk, if that is known.
    written: Option<Arc<Declarations>>,
    /// When to write; `None`: nothing has changed.
    due: Option<Instant>,
    /// Not before.
    rest_until: Instant,
    running: Option<Running>,
    /// Why the last write failed.
    failure: Option<String>,
    retry_pause: Duration,
}

/// A write that has not ended.
struct Running {
    contents: Arc<Declarations>,
    revision: u64,
    routes_left_out: u64,
    outcome: oneshot::Receiver<io::Result<()>>,
}

impl StateWriter {
    /// None if nothing is to be kept.
    pub(super) fn new(section: &StateSection) -> Option<Self> {
        Some(StateWriter {
            path: section.file.clone()?,
            sync: section.sync.0,
            written: None,
            due: None,
            rest_until: Instant::now(),
            running: None,
            failure: None,
            retry_pause: RETRY_FIRST,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn set_sync(&mut self, sync: StateSync) {
        self.sync = sync;
    }

    /// When [`StateWriter::write`] is to be called.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| self.running.is_none())
    }

    /// Whether a change would bring the next write forward. While one is due, what changes is
    /// written with it, and a storm of commands wakes no task; but commands that wait for an answer
    /// do not wait for the pause after a failure.
    pub(super) fn wants_changes(&self) -> bool {
        self.due.is_none() || (self.failure.is_some() && self.sync == StateSync::Always)
    }

    /// Something has changed.
    pub(super) fn plan(&mut self) {
        let now = Instant::now();
        let due = match self.sync {
            StateSync::Always => now,
            StateSync::OneSecond => now + WRITE_DELAY,
        };
        let due = due.max(self.rest_until);
        self.due = Some(self.due.map_or(due, |planned| planned.min(due)));
    }

    /// Begins to write `contents`, as read from the router's tables; `look` is the time that reading took. Returns what
    /// to tell the router if `contents` are on disk already.
    pub(super) fn write(
        &mut self,
        contents: Declarations,
        inventory: &Inventory,
        look: Duration,
    ) -> Option<StateWritten> {
        let rest = match self.sync {
            StateSync::Always => look,
            StateSync::OneSecond => (look * LOOK_SHARE).max(WRITE_PAUSE),
        };
        (self.due, self.rest_until) = (None, Instant::now() + rest);
        let Inventory { revision, routes_left_out, .. } = *inventory;
        if self.written.as_deref() == Some(&contents) {
            return Some(StateWritten { revision, failure: too_many(routes_left_out) });
        }
        let contents = Arc::new(contents);
        let (report, outcome) = oneshot::channel();
        let (path, of_thread) = (self.path.clone(), Arc::clone(&contents));
        let thread = thread::Builder::new().name("nw-state".to_owned());
        let spawned = thread.spawn(move || {
            let _ = report.send(state_file::write(&path, &of_thread)); // the process ends
        });
        self.running = Some(Running { contents, revision, routes_left_out, outcome });
        match spawned {
            Ok(_) => None,
            Err(error) => Some(self.take_note(Err(error))),
        }
    }

    /// Waits until the write that runs has ended, for ever if there is none; what to tell the router.
    pub(super) async fn ended(&mut self) -> StateWritten {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let outcome = (&mut running.outcome).await;
        self.take_note(outcome.unwrap_or_else(|_| Err(io::Error::other("the writing thread ended"))))
    }

    /// As [`StateWriter::ended`], but not for ever: the process is to end.
    pub(super) async fn ended_at_last(&mut self) -> Option<StateWritten> {
        self.running.as_ref()?;
        let ended = tokio::time::timeout(LAST_WAIT, self.ended()).await;
        if ended.is_err() {
            tracing::warn!(target: "management", "{} may lack the last changes: writing takes long", self.path.display());
        }
        ended.ok()
    }

    fn take_note(&mut self, outcome: io::Result<()>) -> StateWritten {
        let Some(Running { contents, revision, routes_left_out, .. }) = self.running.take() else {
            return StateWritten { revision: 0, failure: None };
        };
        let failure = match outcome {
            Ok(()) => {
                self.written = Some(contents);
                self.retry_pause = RETRY_FIRST;
                if self.failure.is_some() {
                    tracing::warn!(target: "management", "{} is written again", self.path.display());
                }
                too_many(routes_left_out).inspect(|why| self.say(why))
            }
            Err(error) => {
                // Perhaps the new one is there, and only its name is not durable.
                self.written = None;
                let why = error.to_string();
                self.say(&why);
                self.rest_until = self.rest_until.max(Instant::now() + RETRY_FIRST);
                self.due = Some(self.rest_until.max(Instant::now() + self.retry_pause));
                self.retry_pause = (self.retry_pause * 2).min(RETRY_LAST);
                Some(why)
            }
        };
        self.failure.clone_from(&failure);
        StateWritten { revision, failure }
    }

    /// Prints why the file is not what it should be, once.
    fn say(&self, why: &str) {
        if self.failure.as_deref() != Some(why) {
            tracing::error!(target: "management", "cannot write {}: {why}; it will be tried again", self.path.display());
        }
    }
}

/// Why a file that was written lacks something.
fn too_many(routes_left_out: u64) -> Option<String> {
    (routes_left_out > 0).then(|| format!("more than {INVENTORY_ROUTES_MAX} routes, {routes_left_out} are not kept"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_configuration::settings::Choice;

    fn writer(path: PathBuf, sync: StateSync) -> StateWriter {
        StateWriter::new(&StateSection { file: Some(path), sync: Choice(sync) }).expect("a file")
    }

    async fn write(writer: &mut StateWriter, revision: u64) -> StateWritten {
        let inventory = Inventory { revision, ..Inventory::default() };
        match writer.write(Declarations::default(), &inventory, Duration::ZERO) {
            Some(written) => written,
            None => writer.ended().await,
        }
    }

    /// A write that failed was tried again after five minutes, and a change in the meantime waited
    /// as long.
    #[tokio::test]
    async fn a_write_that_failed_is_tried_until_it_succeeds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.toml");
        let in_the_way = directory.path().join("state.toml.new");
        std::fs::create_dir(&in_the_way).unwrap();
        let mut writer = writer(path.clone(), StateSync::OneSecond);
        assert!(writer.due().is_none() && writer.wants_changes());
        let mut pause = Duration::ZERO;
        for attempt in 1..4 {
            let began = Instant::now();
            let written = write(&mut writer, attempt).await;
            assert!(written.revision == attempt && written.failure.is_some(), "{written:?}");
            let due = writer.due().expect("it is tried again");
            assert!(due >= began + pause && due <= Instant::now() + 8 * RETRY_FIRST, "attempt {attempt}");
            pause = RETRY_FIRST * 2_u32.pow(attempt as u32 - 1);
        }
        assert!(!writer.wants_changes());
        std::fs::remove_dir(&in_the_way).unwrap();
        assert_eq!(write(&mut writer, 4).await, StateWritten { revision: 4, failure: None });
        assert!(path.exists() && writer.due().is_none());
        assert_eq!(write(&mut writer, 5).await, StateWritten { revision: 5, failure: None }, "the same again");
    }

    #[tokio::test]
    async fn commands_that_wait_hasten_a_write_that_failed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("state.toml.new")).unwrap();
        let mut writer = writer(directory.path().join("state.toml"), StateSync::Always);
        for revision in 1..12 {
            write(&mut writer, revision).await;
        }
        let due = writer.due().expect("it is tried again");
        writer.plan();
        assert!(writer.wants_changes() && writer.due().is_some_and(|hastened| hastened < due));
    }
}
