//! What management asks of the process that runs the router: to read its configuration again, and to let another
//! program take over.
//!
//! Management decides who may command, and answers. The process does the work, and may take long.

use std::time::Duration;

/// Work for the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessTask {
    /// Read the configuration again.
    Reload,
    /// Let a program take over.
    Upgrade(UpgradeTask),
}

/// How to let a program take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeTask {
    /// The program; `None`: the file that this one was started from.
    pub program: Option<String>,
    /// Drop what cannot be handed over.
    pub is_forced: bool,
    /// How long the program may take until it is ready.
    pub timeout: Duration,
}

/// The process in which the router runs.
pub trait ProcessPlane {
    /// Gives a task to the process. Returns its report as of now, as JSON: it has a number.
    ///
    /// # Errors
    /// Why the process does not take it, in words.
    fn begin(&mut self, task: ProcessTask) -> Result<String, String>;

    /// What became of the last task, as JSON: see `namewire upgrade`.
    fn last_outcome(&self) -> String;
}
