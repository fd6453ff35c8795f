//! Tasks of management for the process that runs the router, and what became of the last one.
//!
//! The process takes tasks from a channel ([`crate::operator::Operator::tasks`]) and says what becomes of each
//! ([`crate::operator::Operator::note_outcome`]). Without such a process (the router is a part of another program)
//! tasks are refused.
//!
//! Limit: [`WAITING_MAX`] tasks wait for the process.

use namewire_management::{MAX_REPORT_BYTES, ProcessPlane, ProcessTask};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Most tasks that wait.
const WAITING_MAX: usize = 16;

/// A task for the process.
pub struct Task {
    /// Its number; that of the next task is greater.
    pub number: u64,
    /// What to do.
    pub task: ProcessTask,
}

/// Control's side.
#[derive(Default)]
pub(crate) struct ProcessDesk {
    tasks: Option<Sender<Task>>,
    last_number: u64,
    last_outcome: Option<String>,
}

impl ProcessDesk {
    /// From now on, tasks go there.
    pub(crate) fn open(&mut self) -> Receiver<Task> {
        let (tasks, taken) = channel(WAITING_MAX);
        self.tasks = Some(tasks);
        taken
    }

    /// What has become of a task. The next one has a greater number.
    pub(crate) fn note_outcome(&mut self, number: u64, report: String) {
        self.last_number = self.last_number.max(number);
        // A report that is too long would not fit into a packet.
        self.last_outcome = Some(report).filter(|report| report.len() <= MAX_REPORT_BYTES);
    }
}

impl ProcessPlane for ProcessDesk {
    fn begin(&mut self, task: ProcessTask) -> Result<String, String> {
        let refused = "this router was not started by `namewire run`, so nothing can be done with its process";
        let tasks = self.tasks.as_ref().ok_or(refused)?;
        let number = self.last_number + 1;
        tasks.try_send(Task { number, task }).map_err(|_| format!("{WAITING_MAX} tasks wait for the process"))?;
        self.last_number = number;
        Ok(format!("{{\"number\":{number}}}"))
    }

    fn last_outcome(&self) -> String {
        self.last_outcome.clone().unwrap_or_else(|| "{}".to_owned())
    }
}
