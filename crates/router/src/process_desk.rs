//! Tasks of management for the process that runs the router, and what became of the last one.
//!
//! The process takes tasks from a channel ([`crate::operator::Operator::tasks`]) and answers each by its
//! [`TaskAnswer`]. Without such a process (the router is a part of another program) tasks are refused.

use namewire_management::{MAX_REPORT_BYTES, ProcessPlane, ProcessTask, TaskNumber};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// How an answer reaches control.
type Answer = Arc<dyn Fn(TaskNumber, Result<String, String>) + Send + Sync>;

/// A task for the process.
pub struct Task {
    /// What to do.
    pub task: ProcessTask,
    /// Where the answer goes.
    pub answer: TaskAnswer,
}

/// Answers a task. Without an answer, the client hears nothing.
pub struct TaskAnswer {
    number: TaskNumber,
    answer: Answer,
}

impl TaskAnswer {
    /// The report, as JSON, or why the task failed.
    pub fn send(self, answer: Result<String, String>) {
        // A report that is too long would not fit into a packet.
        let answer = answer.map(|report| if report.len() > MAX_REPORT_BYTES { "{}".to_owned() } else { report });
        (self.answer)(self.number, answer.map_err(|why| why.chars().take(MAX_REPORT_BYTES / 4).collect()));
    }
}

/// Control's side.
pub(crate) struct ProcessDesk {
    answer: Answer,
    tasks: Option<UnboundedSender<Task>>,
    last_outcome: String,
}

impl ProcessDesk {
    /// `answer` passes an answer to control.
    pub(crate) fn new(answer: impl Fn(TaskNumber, Result<String, String>) + Send + Sync + 'static) -> Self {
        ProcessDesk { answer: Arc::new(answer), tasks: None, last_outcome: "{}".to_owned() }
    }

    /// From now on, tasks go there.
    pub(crate) fn set_tasks(&mut self, tasks: UnboundedSender<Task>) {
        self.tasks = Some(tasks);
    }

    pub(crate) fn set_last_outcome(&mut self, report: String) {
        self.last_outcome = report;
    }
}

impl ProcessPlane for ProcessDesk {
    fn begin(&mut self, number: TaskNumber, task: ProcessTask) -> Result<(), String> {
        let refused = || "this router was not started by `namewire run`, so nothing can be done with its process";
        let tasks = self.tasks.as_ref().ok_or_else(|| refused().to_owned())?;
        let answer = TaskAnswer { number, answer: Arc::clone(&self.answer) };
        tasks.send(Task { task, answer }).map_err(|_| "the router stops".to_owned())
    }

    fn last_outcome(&self) -> String {
        self.last_outcome.clone()
    }
}
