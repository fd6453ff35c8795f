//! The log of the process that runs a router: the form and the destination of its lines.
//!
//! Source: systemd.exec(5): if standard error goes to the journal, `JOURNAL_STREAM` has its device and inode. The
//! variable is inherited, so it counts only if standard error is still that file.

use namewire_configuration::{Settings, log_levels::LogFormat};
use namewire_logging::{FutureWriter, Log, LogWriter};
use namewire_node_model::log_line::LineForm;
use namewire_router::RouterHandle;
use namewire_tools::{ExitCode, Failure};
use std::io;

/// Starts the log; its lines wait for [`start_writing`].
pub(super) fn install(settings: &Settings) -> Result<FutureWriter, Failure> {
    let form = match settings.log.format.0 {
        LogFormat::Json => LineForm::Json,
        LogFormat::Text if goes_to_journal() => LineForm::Journal,
        LogFormat::Text => LineForm::Text,
    };
    Log::install(settings.log.levels(settings.router.quiet), form, io::stderr()).map_err(failed)
}

/// Writes the log from now on. The last lines are written when the result is dropped.
pub(super) fn start_writing(log: FutureWriter) -> Result<LogWriter, Failure> {
    log.start().map_err(failed)
}

fn failed(error: io::Error) -> Failure {
    Failure::new(ExitCode::Failed, format!("cannot start the log: {error}"))
}

/// Takes the levels of a configuration that was read again.
pub(super) fn take_levels(settings: &Settings) {
    if let Some(log) = Log::installed() {
        log.set_levels(settings.log.levels(settings.router.quiet));
    }
}

fn goes_to_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(io::stderr()).is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// Says what a router listens on, and how frames get to it.
pub(super) fn started(router: &RouterHandle) {
    let unix = router.socket().map(|path| path.display().to_string()).unwrap_or_default();
    let list = |addresses: Vec<String>| addresses.join(",");
    let tcp = list(router.tcp().iter().map(ToString::to_string).collect());
    let udp = list(router.udp().iter().map(ToString::to_string).collect());
    let websocket = list(router.websocket().iter().map(ToString::to_string).collect());
    let observer = list(router.observed_at().iter().map(ToString::to_string).collect());
    let (version, pid) = (env!("CARGO_PKG_VERSION"), std::process::id());
    tracing::info!(target: "management", version, pid, "router started");
    tracing::info!(target: "faces", unix, tcp, udp, websocket, observer, "listening");
    for port in router.ports() {
        tracing::info!(target: "faces", "{port}");
    }
    if let Some(why) = router.sleeps_at_once() {
        tracing::info!(target: "management", "idle workers sleep at once: {why}");
    }
    for warning in router.warnings() {
        tracing::warn!(target: "faces", "{warning}");
    }
}
