//! The parent: a process that has handed over, and stays so that whoever started it sees no end (decision 0017).
//!
//! It passes signals to the program that forwards, and ends with its exit code. A program that hands over in turn says
//! who comes next, and ends; the next one becomes a child of this process (it is a *subreaper*). So there is one
//! parent, after any number of upgrades. If the parent is killed, the program that forwards ends too: it sees the line
//! close.

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};
use std::{io, os::fd::OwnedFd, os::unix::net::UnixStream as StdUnixStream, process::Child};
use tokio::{
    net::UnixStream,
    signal::unix::{Signal as Signals, SignalKind, signal},
};

/// The signals that are passed on.
const PASSED: [Signal; 6] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// The line between the parent and the program that forwards: both ends, before anyone has one.
pub(super) fn line() -> io::Result<(StdUnixStream, OwnedFd)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    Ok((ours, theirs.into()))
}

/// Tells the parent who forwards from now on.
pub(super) fn tell(line: &StdUnixStream, child: &Child) -> io::Result<()> {
    use io::Write;
    (&*line).write_all(&child.id().to_le_bytes())
}

/// Waits for the end of the program that forwards; returns its exit code.
pub(super) async fn stay(child: Child, line: StdUnixStream) -> io::Result<i32> {
    set_child_subreaper(Some(getpid()))?;
    line.set_nonblocking(true)?;
    let line = UnixStream::from_std(line)?;
    let mut ended = signal(SignalKind::child())?;
    let mut passed = Passed::listen()?;
    let mut forwards = child.id();
    loop {
        // A program says who comes next before it ends.
        while let Some(next) = next_in(&line) {
            forwards = next;
        }
        if let Some(code) = reap(forwards) {
            return Ok(code);
        }
        tokio::select! {
            _ = ended.recv() => {}
            _ = line.readable() => {}
            which = passed.came() => {
                if let Some(pid) = pid(forwards) {
                    let _ = kill_process(pid, which); // it has just ended
                }
            }
        }
    }
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// The next number on the line, if one is there.
fn next_in(line: &UnixStream) -> Option<u32> {
    let mut number = [0; 4];
    match line.try_read(&mut number) {
        Ok(4) => Some(u32::from_le_bytes(number)),
        _ => None,
    }
}

/// Takes note of all children that have ended. Returns the exit code of the one that forwards, if it is among them.
fn reap(forwards: u32) -> Option<i32> {
    loop {
        let (pid, status) = waitpid(None, WaitOptions::NOHANG).ok().flatten()?;
        if pid.as_raw_nonzero().get().cast_unsigned() == forwards {
            let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
            return Some(code.unwrap_or(1));
        }
    }
}

/// The signals that are passed on.
struct Passed([(Signal, Signals); PASSED.len()]);

impl Passed {
    fn listen() -> io::Result<Self> {
        let listen = |which: Signal| {
            let signals = signal(SignalKind::from_raw(which.as_raw()));
            signals.map(|signals| (which, signals))
        };
        let [a, b, c, d, e, f] = PASSED.map(listen);
        Ok(Passed([a?, b?, c?, d?, e?, f?]))
    }

    async fn came(&mut self) -> Signal {
        let [a, b, c, d, e, f] = &mut self.0;
        tokio::select! {
            _ = a.1.recv() => a.0,
            _ = b.1.recv() => b.0,
            _ = c.1.recv() => c.0,
            _ = d.1.recv() => d.0,
            _ = e.1.recv() => e.0,
            _ = f.1.recv() => f.0,
        }
    }
}
