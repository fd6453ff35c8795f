//! Statuses: how far each command is, for the clients that ask.
//!
//! The verb and the RequestNo identify a status. It exists from before the acknowledgement of the notification until 60
//! s after the command's end. A later command of the same bytes takes the place of an earlier one (repo-protocol §3.3).
//!
//! Limits: the caller bounds the commands in progress. [`ENDED_MAX`] statuses of ended commands are kept; beyond that
//! the oldest is dropped.

use crate::command::{CommandResult, RequestNo};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// How long a status is kept after the command's end.
const KEPT: Duration = Duration::from_secs(60);
/// Most statuses of ended commands.
const ENDED_MAX: usize = 4096;

namewire_packet::names! {
    /// What a command asks for.
    pub(crate) enum Verb {
        Insert = "insert",
        Delete = "delete",
        /// Namewire's own: all Data below each object's name.
        DeletePrefix = "delete prefix",
        /// Becomes a member of sync groups.
        Join = "sync/join",
        /// Is no longer a member of sync groups.
        Leave = "sync/leave",
    }
}

impl Verb {
    /// True if its commands are about sync groups, false if about objects.
    pub(crate) const fn is_about_groups(self) -> bool {
        matches!(self, Verb::Join | Verb::Leave)
    }
}

type Key = (Verb, RequestNo);

struct Entry {
    result: CommandResult,
    /// Distinguishes this command from earlier ones of the same bytes.
    run: u64,
}

#[derive(Default)]
struct Table {
    entries: HashMap<Key, Entry>,
    ended: VecDeque<(Instant, Key, u64)>,
    runs: u64,
}

impl Table {
    fn forget_old(&mut self, now: Instant) {
        while let Some((at, key, run)) = self.ended.front().copied() {
            if now.duration_since(at) < KEPT && self.ended.len() <= ENDED_MAX {
                return;
            }
            self.ended.pop_front();
            if self.entries.get(&key).is_some_and(|entry| entry.run == run) {
                self.entries.remove(&key);
            }
        }
    }
}

/// The statuses of all commands.
#[derive(Clone, Default)]
pub(crate) struct Statuses(Arc<Mutex<Table>>);

impl Statuses {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the status of a new command.
    pub(crate) fn begin(&self, verb: Verb, number: RequestNo, result: CommandResult) -> JobStatus {
        let mut table = self.lock();
        table.forget_old(Instant::now());
        table.runs += 1;
        let run = table.runs;
        table.entries.insert((verb, number), Entry { result, run });
        JobStatus { statuses: self.clone(), key: (verb, number), run }
    }

    /// The status of a command now.
    pub(crate) fn get(&self, verb: Verb, number: RequestNo) -> Option<CommandResult> {
        let mut table = self.lock();
        table.forget_old(Instant::now());
        table.entries.get(&(verb, number)).map(|entry| entry.result.clone())
    }
}

/// The status of one command. Dropping it ends the command.
pub(crate) struct JobStatus {
    statuses: Statuses,
    key: Key,
    run: u64,
}

impl JobStatus {
    /// Changes the status, unless a later command has taken its place.
    pub(crate) fn update(&self, change: impl FnOnce(&mut CommandResult)) {
        let mut table = self.statuses.lock();
        if let Some(entry) = table.entries.get_mut(&self.key).filter(|entry| entry.run == self.run) {
            change(&mut entry.result);
        }
    }
}

impl Drop for JobStatus {
    fn drop(&mut self) {
        let mut table = self.statuses.lock();
        table.ended.push_back((Instant::now(), self.key, self.run));
        table.forget_old(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::status;

    #[tokio::test(start_paused = true)]
    async fn statuses_live_a_minute_longer_than_their_commands() {
        let statuses = Statuses::default();
        let job = statuses.begin(Verb::Insert, [1; 32], CommandResult::of_code(status::RUNNING));
        assert_eq!(statuses.get(Verb::Delete, [1; 32]), None);
        tokio::time::advance(Duration::from_secs(3600)).await;
        job.update(|result| result.code = status::DONE);
        drop(job);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(statuses.get(Verb::Insert, [1; 32]).unwrap().code, status::DONE);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(statuses.get(Verb::Insert, [1; 32]), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_command_of_the_same_bytes_replaces_the_status() {
        let statuses = Statuses::default();
        let first = statuses.begin(Verb::Insert, [1; 32], CommandResult::of_code(status::RUNNING));
        let second = statuses.begin(Verb::Insert, [1; 32], CommandResult::of_code(status::QUEUED));
        first.update(|result| result.code = status::FAILED);
        assert_eq!(statuses.get(Verb::Insert, [1; 32]).unwrap().code, status::QUEUED);
        drop(first);
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(statuses.get(Verb::Insert, [1; 32]).unwrap().code, status::QUEUED);
        drop(second);
    }

    #[tokio::test(start_paused = true)]
    async fn ended_commands_are_bounded() {
        let statuses = Statuses::default();
        let number = |at: usize| {
            let mut number = [0; 32];
            number[..8].copy_from_slice(&at.to_le_bytes());
            number
        };
        for at in 0..ENDED_MAX + 10 {
            drop(statuses.begin(Verb::Delete, number(at), CommandResult::of_code(status::DONE)));
        }
        assert_eq!(statuses.lock().entries.len(), ENDED_MAX);
        assert_eq!(statuses.get(Verb::Delete, number(9)), None);
        assert!(statuses.get(Verb::Delete, number(10)).is_some());
    }
}
