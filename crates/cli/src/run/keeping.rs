//! What `namewire run` does while the router runs. On SIGHUP it reads the configuration again. It retries failed
//! declarations, makes closed declared faces again, and lets faces follow their host names. It keeps the state file up
//! to date ([`super::state_writer`]).

mod retry_clock;

use super::{
    Args,
    hosting::HostedServices,
    log,
    networks::KeptNetworks,
    state_writer::StateWriter,
    upgrading::{NoSuccessor, Succession, Successor},
};
use crate::outcome::{Outcome, State};
use namewire_configuration::{
    Configuration, Declarations, Settings, changed_keys,
    in_force::InForce,
    needs_restart,
    settings::{Choice, StateSection, StateSync},
    state_file::{self, StateError},
    text::Uri,
};
use namewire_declarations::{Addresses, Due, Keeper, Lost, Problem};
use namewire_router::{
    RouterHandle,
    operator::{CsChange, Operator, OperatorError, ProcessTask, StateWritten, Task},
};
use namewire_tools::{
    ExitCode, Failure, HostedRepo,
    service::{EndSignals, notify},
};
use retry_clock::{PAUSE_LAST, RetryClock};
use sd_notify::NotifyState;
use std::{
    collections::{HashMap, HashSet},
    time::Instant,
};
use tokio::{signal::unix::Signal, sync::mpsc::Receiver, task::JoinSet, time::sleep_until};

/// Says what of a configuration file is ignored.
pub(super) fn log_warnings(args: &Args, warnings: &[String]) {
    let path = args.source().map(|source| source.path().display().to_string()).unwrap_or_default();
    for warning in warnings {
        tracing::warn!(target: "management", "{path}: {warning}");
    }
}

/// What the state file says.
pub(super) fn read_state(args: &Args, settings: &Settings) -> Result<Declarations, Failure> {
    let Some(path) = &settings.state.file else { return Ok(Declarations::default()) };
    match state_file::remove_unfinished(path) {
        Ok(false) => {}
        Ok(true) => {
            tracing::warn!(target: "management", "what a write of {} that did not end had left was removed", path.display());
        }
        Err(error) => {
            tracing::warn!(target: "management", "what is beside {} cannot be removed: {error}", path.display());
        }
    }
    let error = match state_file::read(path) {
        Ok(state) => return Ok(state),
        Err(error) => error,
    };
    if !args.ignore_state {
        let hint = "with --ignore-state, the router renames it and starts without it";
        return Err(Failure::new(ExitCode::Failed, format!("{error}; {hint}")));
    }
    // Or the next write would destroy what somebody may want to mend.
    let place = match &error {
        StateError::Io { source, .. } => {
            return Err(Failure::new(ExitCode::Failed, format!("{error} ({source})")));
        }
        StateError::Damaged { .. } | StateError::Version { .. } => state_file::set_aside(path)?,
    };
    tracing::warn!(target: "management", "{error}; it is now {}", place.display());
    Ok(Declarations::default())
}

/// What the state file of another program says now, to know what it may need. That program still writes the file.
pub(super) fn peek_at_state(settings: &Settings) -> Declarations {
    let state = settings.state.file.as_deref().map(state_file::read);
    state.and_then(Result::ok).unwrap_or_default()
}

/// Everything that outlives the start.
pub(super) struct Keeping {
    args: Args,
    /// What the router was started with.
    started: Settings,
    /// What was read last.
    configuration: Configuration,
    operator: Operator,
    /// What the configuration declares.
    declared: Keeper,
    /// What the state file had.
    restored: Keeper,
    state: Option<StateWriter>,
    /// For what is declared but not made.
    missing: RetryClock,
    /// For the host names of faces that are down.
    down: RetryClock,
    /// For the host names of faces that hear nothing.
    silent: RetryClock,
    /// Look-ups of host names that run.
    look_ups: JoinSet<Addresses>,
    /// When declared faces closed last, or went down, if that is not longer ago than the longest pause.
    lost_at: HashMap<Uri, Instant>,
    /// Problems that were printed.
    told: HashSet<String>,
    /// The process ends, and not all that is declared is made.
    is_cut_short: bool,
    /// What commands want of the process.
    tasks: Receiver<Task>,
    succession: Succession,
    /// Services in this process that use the router.
    services: Option<HostedServices>,
    networks: Option<KeptNetworks>,
}

/// Why [`Keeping::run`] has ended.
pub(super) enum Parting {
    /// The process is to end, or the router has stopped.
    Ends,
    /// Another program forwards now.
    Successor(Successor),
}

/// What [`Keeping::run`] does next.
enum Next {
    Reload,
    Task(Task),
    Retry,
    LookedUp(Addresses),
    NoteLost,
    PlanWrite,
    Write,
    Written(StateWritten),
}

impl Keeping {
    /// Fails if the router has stopped.
    pub(super) async fn new(
        args: Args,
        configuration: Configuration,
        operator: Operator,
        succession: Succession,
    ) -> Result<Self, OperatorError> {
        let tasks = operator.tasks().await?;
        let state = StateWriter::new(&configuration.settings.state);
        Ok(Keeping {
            args,
            started: configuration.settings.clone(),
            configuration,
            declared: Keeper::new(operator.clone()),
            restored: Keeper::new(operator.clone()),
            operator,
            state,
            missing: RetryClock::new(),
            down: RetryClock::new(),
            silent: RetryClock::slow(),
            look_ups: JoinSet::new(),
            lost_at: HashMap::new(),
            told: HashSet::new(),
            is_cut_short: false,
            tasks,
            succession,
            services: None,
            networks: None,
        })
    }

    pub(super) fn operator(&self) -> &Operator {
        &self.operator
    }

    pub(super) fn succession(&self) -> &Succession {
        &self.succession
    }

    /// A repository runs in this process.
    pub(super) fn hosts_repo(&self) -> bool {
        self.started.repo.enabled
    }

    /// Worker threads.
    pub(super) fn workers(&self) -> u16 {
        self.started.router.workers
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.configuration.settings.router.quiet
    }

    /// Starts the repository, if there is to be one.
    pub(super) async fn start_repo(&self, router: &RouterHandle) -> Result<Option<HostedRepo>, Failure> {
        match self.configuration.settings.repo.enabled {
            true => HostedRepo::start(&self.configuration, router.connect()).await.map(Some),
            false => Ok(None),
        }
    }

    /// Starts the services that are wanted in this process.
    pub(super) fn start_services(&mut self, router: &RouterHandle) {
        HostedServices::follow(&mut self.services, &self.configuration, router);
        KeptNetworks::follow(&mut self.networks, &self.configuration, router);
    }

    /// Ends them.
    pub(super) fn stop_services(&mut self) {
        self.services = None;
        self.networks = None;
    }

    /// Makes what the state file had and what is declared, in this order, so that the
    /// configuration has the last word.
    ///
    /// A program that has taken over goes on without what management refuses: nobody else forwards.
    pub(super) async fn set_up(&mut self, state: Declarations, has_taken_over: bool) -> Result<(), Failure> {
        let failed = |error: OperatorError| Failure::new(ExitCode::Failed, error.to_string());
        self.operator.hold_answers(holds_answers(&self.configuration.settings.state)).map_err(failed)?;
        let problems = self.restored.apply(state).await.map_err(failed)?;
        self.tell(&problems);
        let problems = self.declared.apply(Declarations::of(&self.configuration.settings)).await.map_err(failed)?;
        if let Some(problem) = problems.iter().find(|problem| !problem.is_postponed && !has_taken_over) {
            return Err(Failure::new(ExitCode::Failed, problem.message.clone()));
        }
        self.tell(&problems);
        self.plan_retries();
        self.operator.set_up_done().map_err(failed)?;
        self.operator.memory_freed().map_err(failed)
    }

    /// Ends with SIGTERM or SIGINT, if the router or its parent does, or if another program forwards.
    pub(super) async fn run(&mut self, router: &RouterHandle, mut hangup: Signal, end: &mut EndSignals) -> Parting {
        let mut losses = self.operator.clone();
        loop {
            let due = self.state.as_ref().and_then(StateWriter::due);
            let waits_for_change = self.state.as_ref().is_some_and(StateWriter::wants_changes);
            let retry_at = [&self.missing, &self.down, &self.silent].into_iter().filter_map(RetryClock::due).min();
            let next = tokio::select! {
                () = end.came() => return Parting::Ends,
                () = self.succession.parent_ended() => return Parting::Ends,
                Some(()) = hangup.recv() => Next::Reload,
                Some(task) = self.tasks.recv() => Next::Task(task),
                () = at(retry_at) => Next::Retry,
                Some(Ok(addresses)) = self.look_ups.join_next() => Next::LookedUp(addresses),
                changed = self.operator.changed(), if waits_for_change => match changed {
                    Ok(()) => Next::PlanWrite,
                    Err(_) => return Parting::Ends,
                },
                lost = losses.face_lost() => match lost {
                    Ok(()) => Next::NoteLost,
                    Err(_) => return Parting::Ends,
                },
                () = at(due) => Next::Write,
                written = ended(&mut self.state) => Next::Written(written),
            };
            let result = match next {
                Next::Reload => {
                    let reload = async |keeping: &mut Self| keeping.reload(router).await.map(drop);
                    self.unless_ended(end, reload).await
                }
                Next::Task(task) => match self.carry_out(task, router, end).await {
                    Ok(Some(successor)) => return Parting::Successor(successor),
                    Ok(None) => Ok(!self.is_cut_short),
                    Err(error) => Err(error),
                },
                Next::Retry => self.unless_ended(end, async |keeping| keeping.begin_retry().await).await,
                Next::LookedUp(addresses) => {
                    self.unless_ended(end, async |keeping| keeping.retry(&addresses).await).await
                }
                Next::NoteLost => self.note_lost().await.map(|()| true),
                Next::PlanWrite => {
                    self.plan_write();
                    Ok(true)
                }
                Next::Write => self.write_state().await.map(|()| true),
                Next::Written(written) => self.operator.state_written(written).map(|()| true),
            };
            if !matches!(result, Ok(true)) {
                return Parting::Ends;
            }
        }
    }

    /// Does what a command wants of the process. Returns the program that forwards from now on, if there is one.
    async fn carry_out(
        &mut self,
        task: Task,
        router: &RouterHandle,
        end: &mut EndSignals,
    ) -> Result<Option<Successor>, OperatorError> {
        let Task { number, task } = task;
        let kind = if task == ProcessTask::Reload { "reload" } else { "upgrade" };
        let mut outcome = Outcome { number, task: kind.to_owned(), ..Outcome::default() };
        self.operator.note_outcome(number, outcome.report())?;
        let upgrade = match task {
            ProcessTask::Reload => {
                let mut ended = None;
                let reload = async |keeping: &mut Self| {
                    ended = Some(keeping.reload(router).await?);
                    Ok(())
                };
                if self.unless_ended(end, reload).await? {
                    outcome = Outcome { number, task: outcome.task, ..ended.unwrap_or_default() };
                    self.operator.note_outcome(number, outcome.report())?;
                }
                return Ok(None);
            }
            ProcessTask::Upgrade(upgrade) => upgrade,
        };
        tracing::info!(target: "management", "another program is to take over");
        match self.hand_over(&upgrade, end, number).await {
            Ok(successor) => Ok(Some(successor)),
            Err(NoSuccessor::Failed(why)) => {
                tracing::error!(target: "management", "no program has taken over: {why}");
                self.operator.note_outcome(number, outcome.failed(why).report())?;
                Ok(None)
            }
            Err(NoSuccessor::Ended) => {
                self.is_cut_short = true;
                Ok(None)
            }
            Err(NoSuccessor::Router(error)) => Err(error),
        }
    }

    /// Writes what waits to be written, and then writes no more: the next program reads the file.
    pub(super) async fn write_last_changes(&mut self) -> Result<(), OperatorError> {
        for is_last in [false, true] {
            let Some(state) = &mut self.state else { return Ok(()) };
            if let Some(written) = state.ended_at_last().await {
                self.operator.state_written(written)?;
            }
            if !is_last {
                self.write_state().await?;
            }
        }
        Ok(())
    }

    /// No program has taken over: changes are written again.
    pub(super) fn take_up_again(&mut self) -> Result<(), OperatorError> {
        self.plan_write();
        Ok(())
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

    /// Prints what is new among problems.
    fn tell(&mut self, problems: &[Problem]) {
        for problem in problems {
            if self.told.insert(problem.message.clone()) {
                tracing::warn!(target: "management", "{}", line_of(problem));
            }
        }
    }

    fn tell_moved(&mut self) {
        for uri in self.declared.take_moved() {
            tracing::warn!(target: "faces", "face {uri}: the host has another address now; the face was made again");
        }
    }

    fn plan_retries(&mut self) {
        let now = Instant::now();
        self.missing.plan(self.declared.has_pending() || self.restored.has_pending(), now);
        self.down.plan(self.declared.has_down(), now);
        self.silent.plan(self.declared.has_names(), now);
    }

    /// Tries again what is due. Host names are looked up first, and everything else goes on meanwhile.
    async fn begin_retry(&mut self) -> Result<(), OperatorError> {
        let now = Instant::now();
        let due = Due { missing: self.missing.take(now), down: self.down.take(now), silent: self.silent.take(now) };
        let mut names = self.restored.names(due).await?;
        names.join(self.declared.names(due).await?);
        if names.is_empty() {
            return self.retry(&names.look_up().await).await;
        }
        self.look_ups.spawn(names.look_up());
        Ok(())
    }

    async fn retry(&mut self, addresses: &Addresses) -> Result<(), OperatorError> {
        let mut problems = self.restored.retry(addresses).await?;
        problems.extend(self.declared.retry(addresses).await?);
        self.tell(&problems);
        self.tell_moved();
        self.plan_retries();
        Ok(())
    }

    /// A face made by command has closed, or has gone down. If it is a declared one, it is made again, or its host name
    /// is looked up. This happens after a second. It happens later if the same face was lost within the last five
    /// minutes, because the pauses go on growing then.
    async fn note_lost(&mut self) -> Result<(), OperatorError> {
        let Lost { closed, down } = self.declared.note_lost().await?;
        let now = Instant::now();
        self.lost_at.retain(|_, lost_at| now.duration_since(*lost_at) < PAUSE_LAST);
        for (uris, clock) in [(&closed, &mut self.missing), (&down, &mut self.down)] {
            for uri in uris {
                if self.lost_at.insert(uri.clone(), now).is_none() {
                    clock.restart();
                }
            }
        }
        for uri in closed {
            tracing::warn!(target: "faces", "face {uri} closed; it will be made again");
        }
        self.plan_retries();
        Ok(())
    }

    /// Reads the configuration again; on any error the old one stays. Returns what came of it.
    async fn reload(&mut self, router: &RouterHandle) -> Result<Outcome, OperatorError> {
        let Some(source) = self.args.source() else {
            tracing::warn!(target: "management", "SIGHUP: there is no configuration file to read again");
            let why = "there is no configuration file to read again: the router was started without --config";
            return Ok(Outcome::default().failed(why));
        };
        let mut reloading = vec![NotifyState::Reloading];
        reloading.extend(NotifyState::monotonic_usec_now().ok());
        notify(&reloading);
        let taken = match self.args.load_aside().await {
            Ok(configuration) => self.take_over(configuration, router).await,
            Err(error) => {
                tracing::error!(target: "management", "SIGHUP: the configuration stays as it was: {error}");
                Ok(Outcome::default().failed(format!("the configuration stays as it was: {error}")))
            }
        };
        notify(&[NotifyState::Ready]);
        let outcome = taken?;
        if outcome.state == State::Done {
            let changed = outcome.changed.join(", ");
            tracing::info!(target: "management", changed, "SIGHUP: {} was read", source.path().display());
        }
        Ok(Outcome { file: Some(source.path().display().to_string()), ..outcome })
    }

    /// Returns what has changed.
    async fn take_over(
        &mut self,
        configuration: Configuration,
        router: &RouterHandle,
    ) -> Result<Outcome, OperatorError> {
        // Also where the rules stay: there may be other certificates in the files that they name.
        router.set_trust(configuration.trust.clone());
        log::take_levels(&configuration.settings);
        HostedServices::follow(&mut self.services, &configuration, router);
        KeptNetworks::follow(&mut self.networks, &configuration, router);
        log_warnings(&self.args, &configuration.warnings);
        let mut outcome = Outcome { state: State::Done, ..Outcome::default() };
        let changed = changed_keys(&self.configuration.settings, &configuration.settings);
        outcome.changed = changed;
        let keys = needs_restart(&self.started, &configuration.settings);
        if !keys.is_empty() {
            tracing::warn!(target: "management", "SIGHUP: not before the next start: {}", keys.join(", "));
        }
        outcome.needs_restart = keys;
        let change = CsChange::between(&self.configuration.settings, &configuration.settings);
        if change != CsChange::default() {
            self.operator.configure_cs(change)?;
        }
        if configuration.settings.state != self.configuration.settings.state {
            self.keep_state_as(&configuration.settings.state)?;
        }
        let problems = self.declared.apply(Declarations::of(&configuration.settings)).await?;
        self.operator.reloaded(InForce::new(&configuration.settings, &configuration.sources))?;
        self.configuration = configuration;
        outcome.problems = problems.iter().map(line_of).collect();
        self.told.clear();
        self.tell(&problems);
        self.tell_moved();
        self.missing.restart();
        self.plan_retries();
        self.operator.memory_freed()?; // the files were read
        Ok(outcome)
    }

    /// Takes over other settings of the state file.
    fn keep_state_as(&mut self, section: &StateSection) -> Result<(), OperatorError> {
        match &mut self.state {
            Some(state) if section.file == self.configuration.settings.state.file => state.set_sync(section.sync.0),
            state => {
                *state = StateWriter::new(section);
                self.operator.keep_commands(section.file.as_deref())?;
            }
        }
        self.plan_write();
        self.operator.hold_answers(holds_answers(section))
    }

    fn plan_write(&mut self) {
        if let Some(state) = &mut self.state {
            state.plan();
        }
    }

    /// Begins to write the state file if what it should hold has changed.
    async fn write_state(&mut self) -> Result<(), OperatorError> {
        let Some(state) = &mut self.state else { return Ok(()) };
        let began = Instant::now();
        let inventory = self.operator.inventory().await?;
        let mut wanted = self.declared.others(&inventory);
        let pending = self.restored.pending();
        wanted.faces.extend(pending.faces);
        wanted.routes.extend(pending.routes);
        match state.write(wanted, &inventory, began.elapsed()) {
            Some(written) => self.operator.state_written(written),
            None => Ok(()),
        }
    }

    /// Writes the last changes; nothing is held back if the disk hangs. Not if a change was cut short: what is
    /// declared could not be told from what commands made.
    pub(super) async fn finish(&mut self) {
        for is_last in [false, true] {
            let Some(state) = &mut self.state else { return };
            if let Some(written) = state.ended_at_last().await {
                let _ = self.operator.state_written(written); // the router has stopped by itself
            }
            if self.is_cut_short {
                tracing::warn!(
                    target: "management", "ended in the middle of a change: {} stays as it was", state.path().display()
                );
                return;
            }
            if !is_last && self.write_state().await.is_err() {
                return;
            }
        }
    }
}

/// What the write that runs comes to; never, if there is none.
async fn ended(state: &mut Option<StateWriter>) -> StateWritten {
    match state {
        Some(state) => state.ended().await,
        None => std::future::pending().await,
    }
}

fn line_of(problem: &Problem) -> String {
    let again = if problem.is_postponed { "; it will be tried again" } else { "" };
    format!("{}{again}", problem.message)
}

/// Whether commands are answered when what they changed is on disk.
fn holds_answers(section: &StateSection) -> bool {
    section.file.is_some() && section.sync == Choice(StateSync::Always)
}

/// Comes at an instant, or never.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
