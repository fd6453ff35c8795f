//! `process`: an operator asks the process that runs the router to do something with itself.
//!
//! The module is ours. Its commands are left to root and to the user of the router, as the signals of the process are:
//! the kernel must say who is at the other end of the Unix socket.
//!
//! | verb | takes | answer |
//! | --- | --- | --- |
//! | `reload` | nothing | Report: the number of the task, as JSON |
//! | `upgrade` | Uri: the path of a program; Flags and Mask: [`FORCE`]; ExpirationPeriod: its time to start | the same |
//! | `outcome` | nothing | Report: what became of the last task, as JSON |
//!
//! Both tasks may take longer than a client waits for an answer, and after an upgrade another program answers.
//!
//! Limit: a report of [`MAX_REPORT_BYTES`].

use crate::{
    command::{CommandResult, Refusal, refusal},
    environment::Environment,
    process_plane::{ProcessPlane, ProcessTask, UpgradeTask},
};
use namewire_packet::nfd::ControlParameters;
use std::time::Duration;

/// The flag of `upgrade`: drop what cannot be handed over.
pub const FORCE: u64 = 1;

/// Most bytes of a report, so that it fits into a packet.
pub const MAX_REPORT_BYTES: usize = 6_000;

/// How long a program may take until it is ready, if the command does not say.
const TIMEOUT_MS: u64 = 30_000;

/// The most that a command may say.
const TIMEOUT_MS_MAX: u64 = 600_000;

/// `process/reload`.
pub(crate) fn reload(environment: &mut dyn Environment) -> CommandResult {
    begin(ProcessTask::Reload, environment)
}

/// `process/upgrade`.
pub(crate) fn upgrade(parameters: ControlParameters, environment: &mut dyn Environment) -> CommandResult {
    let timeout_ms = parameters.expiration_period_ms.unwrap_or(TIMEOUT_MS).clamp(1, TIMEOUT_MS_MAX);
    let task = UpgradeTask {
        program: parameters.uri,
        is_forced: parameters.flags.unwrap_or(0) & parameters.mask.unwrap_or(0) & FORCE != 0,
        timeout: Duration::from_millis(timeout_ms),
    };
    begin(ProcessTask::Upgrade(task), environment)
}

fn begin(task: ProcessTask, environment: &mut dyn Environment) -> CommandResult {
    let report = process_plane(environment)?.begin(task).map_err(|why| refusal(503, why))?;
    Ok(ControlParameters { report: Some(report), ..Default::default() })
}

/// `process/outcome`.
pub(crate) fn last_outcome(environment: &mut dyn Environment) -> CommandResult {
    let report = process_plane(environment)?.last_outcome();
    Ok(ControlParameters { report: Some(report), ..Default::default() })
}

fn process_plane(environment: &mut dyn Environment) -> Result<&mut dyn ProcessPlane, Refusal> {
    environment.process_plane().ok_or_else(|| refusal(503, "This forwarder cannot do that"))
}
