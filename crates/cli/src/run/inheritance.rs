//! What a program that takes over was given: the line to the old program, and the line to the parent of both.

use namewire_handover::{
    Kind, Line, LineError, PROTOCOL, TAKE_OVER_VARIABLE,
    messages::{Hello, Refused},
};
use namewire_router::TakeOver;
use namewire_tools::{ExitCode, Failure};
use std::{fs::File, io, os::fd::AsFd, os::unix::net::UnixStream, time::Duration};

/// How long the old program may take to say hello.
const HELLO_MAX: Duration = Duration::from_secs(10);

/// How long it may take from this program's readiness until it freezes: it writes its state file before.
const FREEZE_MAX: Duration = Duration::from_secs(60);

/// See the module documentation.
pub(super) struct Inheritance {
    line: Line,
    /// Where to say who comes next, if the process that was started first has stayed.
    pub(super) parent: Option<UnixStream>,
    /// The number of the task that this is, over all programs.
    pub(super) task: u64,
    /// In words, what is not handed over.
    pub(super) dropped: Vec<String>,
    /// The version of the old program.
    pub(super) version: String,
}

impl Inheritance {
    /// What this process was given; `None` if it starts for itself.
    ///
    /// # Errors
    /// If the old program speaks another protocol.
    pub(super) fn of_process() -> Result<Option<Self>, Failure> {
        if std::env::var_os(TAKE_OVER_VARIABLE).is_none() {
            return Ok(None);
        }
        let failed = |error: LineError| Failure::new(ExitCode::Failed, format!("cannot take over: {error}"));
        let line = Line::of(io::stdin().as_fd().try_clone_to_owned().map_err(|error| failed(error.into()))?);
        // Nothing that this program starts or reads later may mistake the line for its input.
        let nothing = File::open("/dev/null").map_err(|error| failed(error.into()))?;
        rustix::stdio::dup2_stdin(&nothing).map_err(|error| failed(io::Error::from(error).into()))?;
        line.set_timeout(HELLO_MAX).map_err(|error| failed(error.into()))?;
        let message = line.receive().map_err(failed)?;
        let hello: Hello = message.read().map_err(failed)?;
        if message.kind != Kind::HELLO || hello.protocol != PROTOCOL {
            let why = format!("the old program speaks hand-over protocol {}, this one {PROTOCOL}", hello.protocol);
            refuse(&line, &why);
            return Err(Failure::new(ExitCode::Failed, why));
        }
        line.set_timeout(FREEZE_MAX).map_err(|error| failed(error.into()))?;
        let parent = message.descriptors.into_iter().next().filter(|_| hello.has_parent).map(UnixStream::from);
        Ok(Some(Inheritance { line, parent, task: hello.task, dropped: hello.dropped, version: hello.version }))
    }

    /// The line for the router, and one to say why nothing comes of it.
    pub(super) fn into_parts(self) -> io::Result<(TakeOver, Refuser, Option<UnixStream>)> {
        let refuser = Refuser(Line::of(self.line.as_fd().try_clone_to_owned()?));
        let take_over = TakeOver { line: self.line, version: env!("CARGO_PKG_VERSION").to_owned() };
        Ok((take_over, refuser, self.parent))
    }
}

/// Tells the old program why this one does not take over.
pub(super) struct Refuser(Line);

impl Refuser {
    pub(super) fn refuse(&self, why: &Failure) {
        refuse(&self.0, &why.to_string());
    }
}

fn refuse(line: &Line, why: &str) {
    // The old program may have ended, or does not listen any more.
    let _ = line.send(Kind::REFUSED, &Refused { why: why.to_owned() }, &[], &[]);
}
