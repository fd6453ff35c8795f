//! Upgrading: this process starts another program and hands over to it (decision 0017).

use super::{keeping::Keeping, launcher::Launcher, parent};
use namewire_handover::{
    Kind, Line, PROTOCOL,
    messages::{Hello, Ready, Refused},
};
use namewire_router::operator::OperatorError;
use namewire_router::operator::UpgradeTask;
use namewire_tools::service::{EndSignals, notify};
use rustix::process::Signal;
use sd_notify::NotifyState;
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    os::unix::{net::UnixStream, process::ExitStatusExt as _},
    path::PathBuf,
    process::Child,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::oneshot;

/// How this process came to be, and how it may end.
pub(super) struct Succession {
    launcher: Launcher,
    /// Where to say who comes next, if the process that was started first has stayed.
    parent: Option<UnixStream>,
}

/// The program that forwards from now on.
pub(super) struct Successor {
    pub(super) child: Child,
    /// The line to it, if this process stays as its parent.
    pub(super) line: Option<UnixStream>,
}

/// Why there is no successor.
pub(super) enum NoSuccessor {
    /// Nothing has changed.
    Failed(String),
    /// This process is to end.
    Ended,
    /// The router has stopped.
    Router(OperatorError),
}

impl From<OperatorError> for NoSuccessor {
    fn from(error: OperatorError) -> Self {
        NoSuccessor::Router(error)
    }
}

impl Succession {
    pub(super) fn new(launcher: Launcher, parent: Option<UnixStream>) -> Self {
        Succession { launcher, parent }
    }

    /// Comes when the parent has ended; never, if there is none.
    pub(super) async fn parent_ended(&self) {
        let watched = self.parent.as_ref().and_then(|line| line.try_clone().ok());
        let watched = watched.and_then(|line| {
            line.set_nonblocking(true).ok()?;
            tokio::net::UnixStream::from_std(line).ok()
        });
        match watched {
            // The parent never says anything.
            Some(line) => _ = line.readable().await,
            None => std::future::pending().await,
        }
    }
}

/// True if systemd has started this process: then it is told which process is the main one.
pub(super) fn is_under_systemd() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

impl Keeping {
    /// Starts the program, waits until it is ready, and hands over.
    pub(super) async fn hand_over(
        &mut self,
        task: &UpgradeTask,
        end: &mut EndSignals,
        number: u64,
    ) -> Result<Successor, NoSuccessor> {
        if self.hosts_repo() {
            let why = "the router hosts a repository (repo.enabled), whose store has one process: stop the router and start it again";
            return Err(NoSuccessor::Failed(why.to_owned()));
        }
        let hindrances = self.operator().hindrances().await?;
        if !hindrances.is_empty() && !task.is_forced {
            let why = format!("cannot be handed over: {}; --force drops this", hindrances.join(", "));
            return Err(NoSuccessor::Failed(why));
        }
        let failed = |what: &str, error: &dyn std::fmt::Display| NoSuccessor::Failed(format!("{what}: {error}"));
        let own_program = self.succession().launcher.own_program();
        let program = task.program.as_ref().map(PathBuf::from).or(own_program);
        let program = program.ok_or_else(|| NoSuccessor::Failed("the path of this program is not known".to_owned()))?;
        let cannot_start = format!("cannot start {}", program.display());
        let (child, line) =
            self.succession().launcher.launch(program).await.map_err(|error| failed(&cannot_start, &error))?;
        let child = NewProgram::new(child);
        let (to_child, for_child) = self.line_of_parent().map_err(|error| failed("no descriptors", &error))?;
        let hello = Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            has_parent: for_child.is_some(),
            task: number,
            dropped: hindrances,
        };
        let ready = wait_ready(line, hello, for_child, task.timeout);
        let line = tokio::select! {
            ready = ready => ready,
            () = end.came() => {
                child.end();
                return Err(NoSuccessor::Ended);
            }
        };
        let workers = self.workers();
        let checked = line.and_then(|(line, ready)| check(&ready, workers).map(|()| line));
        let line = match checked {
            Ok(line) => line,
            Err(why) => {
                let ended = child.end();
                return Err(NoSuccessor::Failed(format!("{why}{ended}")));
            }
        };
        // The new program reads the state file after the hand-over.
        self.write_last_changes().await?;
        let end_program = child.clone();
        match self.operator().hand_over(line, move || _ = end_program.end()).await? {
            Ok(_) => Ok(Successor { child: child.into_child(), line: to_child }),
            Err(why) => {
                self.take_up_again()?;
                Err(NoSuccessor::Failed(why))
            }
        }
    }

    /// The line by which a parent hears of successors: this process's end if it will be the parent, and the new
    /// program's.
    fn line_of_parent(&self) -> io::Result<(Option<UnixStream>, Option<OwnedFd>)> {
        if is_under_systemd() {
            return Ok((None, None));
        }
        match &self.succession().parent {
            Some(parent) => Ok((None, Some(parent.as_fd().try_clone_to_owned()?))),
            None => parent::line().map(|(ours, theirs)| (Some(ours), Some(theirs))),
        }
    }

    /// Tells systemd, and the parent if there is one, who comes next.
    pub(super) fn tell_of(&self, successor: &Successor) {
        tracing::info!(target: "management", pid = successor.child.id(), "another program has taken over");
        if is_under_systemd() {
            // Before that program says anything: systemd listens to the main process only.
            notify(&[NotifyState::MainPid(successor.child.id())]);
        }
        if let Some(parent) = &self.succession().parent {
            let _ = parent::tell(parent, &successor.child); // it has ended
        }
    }
}

/// Says hello and waits for the answer, in a thread of its own: the program may hang.
async fn wait_ready(
    line: Line,
    hello: Hello,
    for_child: Option<OwnedFd>,
    timeout: Duration,
) -> Result<(Line, Ready), String> {
    let (reply, answered) = oneshot::channel();
    let talk = move || {
        let talked = talk(&line, &hello, for_child.as_ref(), timeout).map(|ready| (line, ready));
        let _ = reply.send(talked); // the process ends
    };
    let thread = std::thread::Builder::new().name("nw-upgrade".to_owned()).spawn(talk);
    thread.map_err(|error| format!("cannot start a thread: {error}"))?;
    match tokio::time::timeout(timeout, answered).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err("the new program was not heard".to_owned()),
        Err(_) => Err(format!("the new program was not ready within {} s (--timeout)", timeout.as_secs_f64())),
    }
}

fn talk(line: &Line, hello: &Hello, for_child: Option<&OwnedFd>, timeout: Duration) -> Result<Ready, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the new program was not ready: {error}");
    // Longer than the wait of the caller, whose words name the option.
    line.set_timeout(2 * timeout).map_err(|error| failed(&error))?;
    let descriptors: Vec<_> = for_child.into_iter().map(AsFd::as_fd).collect();
    line.send(Kind::HELLO, hello, &[], &descriptors).map_err(|error| failed(&error))?;
    let message = line.receive().map_err(|error| failed(&error))?;
    match message.kind {
        Kind::READY => message.read().map_err(|error| failed(&error)),
        Kind::REFUSED => {
            let Refused { why } = message.read().map_err(|error| failed(&error))?;
            Err(format!("the new program refuses: {why}"))
        }
        Kind(other) => Err(format!("the new program was not ready: it sent a message of kind {other}")),
    }
}

fn check(ready: &Ready, workers: u16) -> Result<(), String> {
    if ready.protocol != PROTOCOL {
        let theirs = ready.protocol;
        return Err(format!("the new program speaks hand-over protocol {theirs}, this one {PROTOCOL}"));
    }
    if ready.workers != workers {
        let theirs = ready.workers;
        return Err(format!(
            "the new program has {theirs} workers, this one {workers}: router.workers needs a restart"
        ));
    }
    Ok(())
}

/// A program that may not come to anything. Clones are the same program.
#[derive(Clone)]
struct NewProgram(Arc<Mutex<Option<Child>>>);

impl NewProgram {
    fn new(child: Child) -> Self {
        NewProgram(Arc::new(Mutex::new(Some(child))))
    }

    /// Ends it, and waits for its end. Returns, in words, how it has ended if that was by itself.
    fn end(&self) -> String {
        let Some(mut child) = self.take() else { return String::new() };
        let before = child.try_wait().ok().flatten();
        let _ = child.kill(); // it has ended
        // A program that was ending, and had closed its line already, keeps the status of its own.
        let after = child.wait().ok().filter(|status| status.signal() != Some(Signal::KILL.as_raw()));
        before.or(after).map_or_else(String::new, |status| format!(" ({status})"))
    }

    fn into_child(self) -> Child {
        self.take().expect("it was ended by nobody")
    }

    fn take(&self) -> Option<Child> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
