//! The launcher: the thread that starts the program that takes over (decision 0017).
//!
//! A router may execute no program. Landlock holds for threads, so this thread is made before that rule, and after the
//! privileges are reduced. It waits for requests and does nothing else.
//!
//! The program gets the arguments, the environment and the folder of this process, and the capabilities that it has
//! kept. Its standard input is the line to this program.

use namewire_handover::{Line, TAKE_OVER_VARIABLE};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
};
use std::{
    env, io,
    os::fd::OwnedFd,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{Sender, channel},
    thread,
};
use tokio::sync::oneshot;

/// A program to start.
struct Launch {
    program: PathBuf,
    line: OwnedFd,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// Requests to the thread.
#[derive(Clone)]
pub(super) struct Launcher {
    launches: Sender<Launch>,
    /// The file that this program was started from.
    own_program: Option<PathBuf>,
}

impl Launcher {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (launches, requests) = channel::<Launch>();
        let own_program = env::current_exe().ok();
        let wait = move || {
            for Launch { program, line, reply } in requests {
                pass_capabilities(true);
                let launched = launch(program, line);
                pass_capabilities(false);
                let _ = reply.send(launched); // the requester has given up
            }
        };
        thread::Builder::new().name("nw-launcher".to_owned()).spawn(wait)?;
        Ok(Launcher { launches, own_program })
    }

    /// The file of this program, also if another version is at its path now.
    pub(super) fn own_program(&self) -> Option<PathBuf> {
        let path = self.own_program.clone()?;
        // What the kernel says of a file that was replaced before this program asked.
        let text = path.to_str().and_then(|text| text.strip_suffix(" (deleted)"));
        Some(text.map_or(path.clone(), PathBuf::from))
    }

    /// Starts a program. The result is the program and this end of the line.
    pub(super) async fn launch(&self, program: PathBuf) -> io::Result<(Child, Line)> {
        let (line, theirs) = Line::pair()?;
        let (reply, started) = oneshot::channel();
        let ended = || io::Error::other("the launcher has ended");
        self.launches.send(Launch { program, line: theirs, reply }).map_err(|_| ended())?;
        Ok((started.await.map_err(|_| ended())??, line))
    }
}

fn launch(program: PathBuf, line: OwnedFd) -> io::Result<Child> {
    let mut words = env::args_os();
    let name = words.next().unwrap_or_else(|| program.clone().into());
    Command::new(&program)
        .arg0(name)
        .args(words)
        .env(TAKE_OVER_VARIABLE, "1")
        // The sockets of systemd were this process's; the program gets them by the line.
        .env_remove("LISTEN_FDS")
        .env_remove("LISTEN_PID")
        .env_remove("LISTEN_FDNAMES")
        .stdin(Stdio::from(line))
        .spawn()
}

/// What this process has kept passes to programs that this thread executes, or does not any more. Without capabilities
/// there is nothing to pass.
fn pass_capabilities(are_passed: bool) {
    let Ok(CapabilitySets { permitted: kept, .. }) = capabilities(None) else { return };
    let inheritable = if are_passed { kept } else { CapabilitySet::empty() };
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable };
    // Without inheritable ones, the ambient set is empty.
    if kept.is_empty() || set_capabilities(None, sets).is_err() || !are_passed {
        return;
    }
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if kept.contains(capability) {
            // An error: the program has one less, and says so.
            let _ = configure_capability_in_ambient_set(capability, true);
        }
    }
}
