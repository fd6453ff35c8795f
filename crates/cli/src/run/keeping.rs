//! What `namewire run` does while the router runs: it reads the configuration again on
//! SIGHUP, tries again what could not be made, makes declared faces again that closed, and keeps the
//! state file up to date.
//!
//! Limits: one write of the state file a second, and so much time between two looks at the
//! router's tables that these take one part in [`LOOK_SHARE`] of a processor at most (100,000
//! routes: a look takes some tenths of a second, so that seconds pass between two).

use super::{Args, EndSignals, notify};
use crate::{ExitCode, Failure};
use namewire_router::{
    RouterHandle,
    configuration::{Loaded, Settings, needs_restart},
    declarations::{Declarations, Keeper, Problem},
    operator::{CsChange, Operator, OperatorError},
    state_file::{self, StateError},
};
use sd_notify::NotifyState;
use std::{
    collections::HashSet,
    path::PathBuf,
    time::{Duration, Instant},
};
use tokio::{signal::unix::Signal, time::sleep_until};

/// First pause before something is tried again; it doubles up to the last.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_secs(300);

/// Changes that come so close together are written at once.
const WRITE_DELAY: Duration = Duration::from_millis(100);

/// Least time between two writes.
const WRITE_PAUSE: Duration = Duration::from_secs(1);

/// Looks at the tables take one part in so many of the time.
const LOOK_SHARE: u32 = 20;

/// Prints what of a configuration file is ignored.
pub(crate) fn warn(args: &Args, warnings: &[String]) {
    let path = args.source().map(|source| source.path().display().to_string()).unwrap_or_default();
    for warning in warnings {
        eprintln!("namewire: {path}: {warning}");
    }
}

/// What the state file says.
pub(super) fn read_state(args: &Args, settings: &Settings) -> Result<Declarations, Failure> {
    let Some(path) = &settings.state.file else { return Ok(Declarations::default()) };
    let error = match state_file::read(path) {
        Ok(state) => return Ok(state),
        Err(error) => error,
    };
    if !args.ignore_state {
        let hint = "--ignore-state puts it aside and starts without";
        return Err(Failure::new(ExitCode::Failed, format!("{error}; {hint}")));
    }
    // Or the next write would destroy what somebody may want to mend.
    let place = match &error {
        StateError::Io { source, .. } => {
            return Err(Failure::new(ExitCode::Failed, format!("{error} ({source})")));
        }
        StateError::Damaged { .. } | StateError::Version { .. } => state_file::set_aside(path)?,
    };
    eprintln!("namewire: {error}; it is now {}", place.display());
    Ok(Declarations::default())
}

/// The state file, and what stands in it.
struct StateWriter {
    path: PathBuf,
    written: Option<Declarations>,
    /// When to write; `None`: nothing has changed.
    due: Option<Instant>,
    /// Not before.
    rest_until: Instant,
}

/// Everything that outlives the start.
pub(super) struct Keeping {
    args: Args,
    /// What the router was started with.
    started: Settings,
    /// What was read last.
    loaded: Loaded,
    operator: Operator,
    /// What the configuration declares.
    declared: Keeper,
    /// What the state file had.
    restored: Keeper,
    state: Option<StateWriter>,
    retry_pause: Duration,
    retry_at: Option<Instant>,
    /// When a declared face closed last.
    lost_at: Option<Instant>,
    /// Problems that were printed.
    told: HashSet<String>,
    /// The process ends, and not all that is declared is made.
    is_cut_short: bool,
}

/// What [`Keeping::run`] does next.
enum Next {
    Reload,
    Retry,
    NoteLost,
    PlanWrite,
    Write,
}

impl Keeping {
    pub(super) fn new(args: Args, loaded: Loaded, operator: Operator) -> Self {
        let state = loaded.settings.state.file.clone().map(StateWriter::new);
        Keeping {
            args,
            started: loaded.settings.clone(),
            loaded,
            declared: Keeper::new(operator.clone()),
            restored: Keeper::new(operator.clone()),
            operator,
            state,
            retry_pause: RETRY_FIRST,
            retry_at: None,
            lost_at: None,
            told: HashSet::new(),
            is_cut_short: false,
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.loaded.settings.router.quiet
    }

    /// Makes what the state file had and what is declared, in this order, so that the
    /// configuration has the last word.
    pub(super) async fn set_up(&mut self, state: Declarations) -> Result<(), Failure> {
        let failed = |error: OperatorError| Failure::new(ExitCode::Failed, error.to_string());
        let problems = self.restored.apply(state).await.map_err(failed)?;
        self.tell(&problems);
        let problems = self.declared.apply(Declarations::of(&self.loaded.settings)).await.map_err(failed)?;
        if let Some(problem) = problems.iter().find(|problem| !problem.is_postponed) {
            return Err(Failure::new(ExitCode::Failed, problem.message.clone()));
        }
        self.tell(&problems);
        self.plan_retry();
        Ok(())
    }

    /// Ends with SIGTERM or SIGINT, or if the router does.
    pub(super) async fn run(&mut self, router: &RouterHandle, mut hangup: Signal, end: &mut EndSignals) {
        let mut losses = self.operator.clone();
        loop {
            let due = self.state.as_ref().and_then(|state| state.due);
            // What changes before a write is written with it: a storm of commands wakes nobody here.
            let waits_for_change = self.state.is_some() && due.is_none();
            let next = tokio::select! {
                () = end.came() => return,
                Some(()) = hangup.recv() => Next::Reload,
                () = at(self.retry_at) => Next::Retry,
                changed = self.operator.changed(), if waits_for_change => match changed {
                    Ok(()) => Next::PlanWrite,
                    Err(_) => return,
                },
                lost = losses.face_lost() => match lost {
                    Ok(()) => Next::NoteLost,
                    Err(_) => return,
                },
                () = at(due) => Next::Write,
            };
            let result = match next {
                Next::Reload => self.unless_ended(end, async |keeping| keeping.reload(router).await).await,
                Next::Retry => self.unless_ended(end, async |keeping| keeping.retry().await).await,
                Next::NoteLost => self.note_lost().await.map(|()| true),
                Next::PlanWrite => {
                    self.plan_write();
                    Ok(true)
                }
                // Not cut short: two writes at once would mix.
                Next::Write => {
                    self.write_state().await;
                    Ok(true)
                }
            };
            if !matches!(result, Ok(true)) {
                return;
            }
        }
    }

    /// Does what may take long: neighbours that do not answer, a pipe that stays silent. False if the process is to
    /// end before that is done.
    async fn unless_ended(
        &mut self,
        end: &mut EndSignals,
        work: impl AsyncFnOnce(&mut Self) -> Result<(), OperatorError>,
    ) -> Result<bool, OperatorError> {
        tokio::select! {
            result = work(self) => return result.map(|()| true),
            () = end.came() => {}
        }
        self.is_cut_short = true;
        Ok(false)
    }

    /// The last write of the state file. Not if a change was cut short: what is declared could not be told from what
    /// commands made.
    pub(super) async fn finish(&mut self) {
        if !self.is_cut_short {
            self.write_state().await;
        } else if let Some(state) = &self.state {
            eprintln!("namewire: ended in the middle of a change: {} stays as it was", state.path.display());
        }
    }

    /// Prints what is new among problems.
    fn tell(&mut self, problems: &[Problem]) {
        for problem in problems {
            if self.told.insert(problem.message.clone()) {
                let again = if problem.is_postponed { "; it will be tried again" } else { "" };
                eprintln!("namewire: {}{again}", problem.message);
            }
        }
    }

    fn plan_retry(&mut self) {
        let has_pending = self.declared.has_pending() || self.restored.has_pending();
        self.retry_at = has_pending.then(|| Instant::now() + self.retry_pause);
    }

    async fn retry(&mut self) -> Result<(), OperatorError> {
        let mut problems = self.restored.retry().await?;
        problems.extend(self.declared.retry().await?);
        self.tell(&problems);
        self.retry_pause = (self.retry_pause * 2).min(RETRY_LAST);
        self.plan_retry();
        Ok(())
    }

    /// A face made by command has closed; a declared one is made again. The pause before grows with each
    /// that closes, until none has for as long as the longest pause.
    async fn note_lost(&mut self) -> Result<(), OperatorError> {
        let lost = self.declared.note_lost().await?;
        if lost.is_empty() {
            return Ok(());
        }
        let is_first = self.lost_at.is_none_or(|last| last.elapsed() >= RETRY_LAST);
        if is_first && self.retry_at.is_none() {
            self.retry_pause = RETRY_FIRST;
        }
        self.lost_at = Some(Instant::now());
        for uri in lost {
            eprintln!("namewire: face {} closed; it will be made again", uri.as_str());
        }
        self.plan_retry();
        Ok(())
    }

    /// Reads the configuration again; on any error the old one stays.
    async fn reload(&mut self, router: &RouterHandle) -> Result<(), OperatorError> {
        let Some(source) = self.args.source() else {
            eprintln!("namewire: SIGHUP: there is no configuration file to read again");
            return Ok(());
        };
        let mut reloading = vec![NotifyState::Reloading];
        reloading.extend(NotifyState::monotonic_usec_now().ok());
        notify(&reloading);
        let taken = match self.args.load_aside().await {
            Ok(loaded) => self.take_over(loaded, router).await,
            Err(error) => {
                eprintln!("namewire: SIGHUP: the configuration stays as it was: {error}");
                Ok(false)
            }
        };
        notify(&[NotifyState::Ready]);
        let is_taken = taken?;
        if is_taken && !self.is_quiet() {
            eprintln!("namewire: SIGHUP: {} was read", source.path().display());
        }
        Ok(())
    }

    /// False if the configuration cannot be taken over; why not is said.
    async fn take_over(&mut self, loaded: Loaded, router: &RouterHandle) -> Result<bool, OperatorError> {
        // Also where the rules stay: there may be other certificates in the files that they name.
        if let Err(error) = router.set_trust(loaded.trust.clone()) {
            eprintln!("namewire: SIGHUP: the configuration stays as it was: {error}");
            return Ok(false);
        }
        warn(&self.args, &loaded.warnings);
        let keys = needs_restart(&self.started, &loaded.settings);
        if !keys.is_empty() {
            eprintln!("namewire: SIGHUP: not before the next start: {}", keys.join(", "));
        }
        let change = CsChange::between(&self.loaded.settings, &loaded.settings);
        if change != CsChange::default() {
            self.operator.configure_cs(change)?;
        }
        if loaded.settings.state.file != self.loaded.settings.state.file {
            self.state = loaded.settings.state.file.clone().map(StateWriter::new);
            self.plan_write();
        }
        let problems = self.declared.apply(Declarations::of(&loaded.settings)).await?;
        self.loaded = loaded;
        self.told.clear();
        self.tell(&problems);
        self.retry_pause = RETRY_FIRST;
        self.plan_retry();
        Ok(true)
    }

    fn plan_write(&mut self) {
        if let Some(state) = &mut self.state {
            let due = (Instant::now() + WRITE_DELAY).max(state.rest_until);
            state.due.get_or_insert(due);
        }
    }

    /// Writes the state file if what it should hold has changed.
    async fn write_state(&mut self) {
        let Some(state) = &mut self.state else { return };
        state.due = None;
        let began = Instant::now();
        let Ok(inventory) = self.operator.inventory().await else { return };
        let mut wanted = self.declared.others(&inventory);
        let pending = self.restored.pending();
        wanted.faces.extend(pending.faces);
        wanted.routes.extend(pending.routes);
        let rest = (began.elapsed() * LOOK_SHARE).max(WRITE_PAUSE);
        state.rest_until = Instant::now() + rest;
        if state.written.as_ref() == Some(&wanted) {
            return;
        }
        if inventory.routes_left_out > 0 {
            let count = inventory.routes_left_out;
            eprintln!("namewire: {count} routes are not kept in {}", state.path.display());
        }
        let (path, contents) = (state.path.clone(), wanted.clone());
        let written = tokio::task::spawn_blocking(move || state_file::write(&path, &contents)).await;
        match written {
            Ok(Ok(())) => state.written = Some(wanted),
            Ok(Err(error)) => {
                eprintln!("namewire: cannot write {}: {error}", state.path.display());
                state.due = Some(state.rest_until + RETRY_LAST);
            }
            Err(_) => {} // the process ends
        }
    }
}

impl StateWriter {
    fn new(path: PathBuf) -> Self {
        StateWriter { path, written: None, due: None, rest_until: Instant::now() }
    }
}

/// Comes at an instant, or never.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
