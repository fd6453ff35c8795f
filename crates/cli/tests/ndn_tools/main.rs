//! `ndnping`, `ndnpeek` and the other names of ndn-tools against the recorded output of the originals.
//!
//! The files of `tests/ndn_tools_golden` are sessions, in the form of those of `nfdc`, recorded with ndn-tools 24.07
//! and our router. Each test runs one session with our programs, through links with their names, and compares.
//!
//! A line `$ A + B` starts A, runs B as soon as A has its route, and waits for the end of A. `$ A & B` kills A instead,
//! because it ends by no other means. The output and the exit code of A come before those of B. `$ A < text` gives A
//! standard input. `''` is an empty word. `/nowhere` has no route, and `/silent` leads to a node that answers nothing.
//! Files of captured frames (file `frames.rs`) are in the folder of the session.
//!
//! To record again, with the programs of ndn-tools in a folder:
//!
//! ```sh
//! NDN_TOOLS=/usr/bin NDN_TOOLS_SESSION=ping cargo test -p namewire-cli --test commands ndn_tools::record -- --ignored
//! ```

mod frames;
mod masks;

use crate::{
    nfdc::{
        router,
        session::{Session, Step},
    },
    router_process::{NAMEWIRE, PATIENCE, Router},
};
use masks::Masks;
use namewire_ndn_tools::Program;
use std::{
    io::Write,
    net::UdpSocket,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

/// Time between two looks for a route.
const PAUSE: Duration = Duration::from_millis(20);

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ndn_tools_golden").join(format!("{name}.txt"))
}

/// A router, and where the programs are.
struct Stage {
    router: Router,
    programs: PathBuf,
    home: PathBuf,
    masks: Masks,
    /// Reads nothing.
    _silent: UdpSocket,
}

impl Stage {
    fn new(directory: &Path, programs: PathBuf) -> Stage {
        let (router, _) = router::start(directory);
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let uri = format!("udp4://{}", silent.local_addr().unwrap());
        router.ask(&["face", "create", &uri]);
        router.ask(&["route", "add", "/silent", &uri]);
        frames::write(directory);
        let masks = Masks::new(&programs);
        Stage { router, programs, home: directory.to_owned(), masks, _silent: silent }
    }

    /// Starts `ndnping /a < text`.
    fn start(&self, line: &str) -> Child {
        let (line, input) = line.split_once(" < ").unwrap_or((line, ""));
        let mut words = line.split_whitespace();
        let mut process = Command::new(self.programs.join(words.next().unwrap()))
            .args(words.map(|word| if word == "''" { "" } else { word }))
            .current_dir(&self.home)
            .env("NDN_CLIENT_TRANSPORT", self.router.uri())
            .env("HOME", &self.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that reads none of it may be gone already.
        let _ = process.stdin.take().unwrap().write_all(input.as_bytes());
        process
    }

    /// Waits until the last word of a line, without a version, is a prefix in the FIB. A route is in the RIB before.
    fn wait_for_route(&self, line: &str) {
        let line = line.split(" < ").next().unwrap();
        let name = line.split_whitespace().last().unwrap();
        let prefix = name.split("/v=").next().unwrap();
        let end = Instant::now() + PATIENCE;
        while !self.router.ask(&["fib", "list"]).contains(prefix) {
            assert!(Instant::now() < end, "{line}: no route");
            std::thread::sleep(PAUSE);
        }
    }

    fn run(&self, step: &Step) -> Step {
        let command = &step.command;
        let pair = command.split_once(" + ").or_else(|| command.split_once(" & "));
        let outputs = match pair {
            None => vec![self.start(command).wait_with_output().unwrap()],
            Some((first, second)) => {
                let mut process = self.start(first);
                self.wait_for_route(first);
                let second = self.start(second).wait_with_output().unwrap();
                if command.contains(" & ") {
                    process.kill().unwrap();
                }
                vec![process.wait_with_output().unwrap(), second]
            }
        };
        let mut result = step.clone();
        (result.out, result.err) = (Vec::new(), Vec::new());
        let mut codes = Vec::new();
        for Output { status, stdout, stderr } in outputs {
            result.out.extend(self.masks.lines(&stdout));
            result.err.extend(self.masks.lines(&stderr));
            codes.push(status.code().map_or_else(|| "signal".to_owned(), |code| code.to_string()));
        }
        result.code = codes.join(" ");
        result
    }
}

/// Runs a session with our programs; every step must print what those of ndn-tools printed.
fn replay(name: &str) {
    let directory = tempfile::tempdir().unwrap();
    let programs = directory.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    for (name, _) in Program::NAMES {
        symlink(NAMEWIRE, programs.join(name)).unwrap();
    }
    let golden = Session::read(&golden(name));
    let stage = Stage::new(directory.path(), programs);
    let mut differences = Vec::new();
    for step in &golden.steps {
        let found = stage.run(step);
        if found != *step {
            differences.push(format!("--- ndn-tools\n{step}--- ours\n{found}"));
        }
    }
    let steps = golden.steps.len();
    assert!(differences.is_empty(), "{} of {steps} steps:\n{}", differences.len(), differences.join("\n"));
    assert!(steps > 5, "the session was read");
}

#[test]
fn ping() {
    replay("ping");
}

#[test]
fn peek_and_poke() {
    replay("peek");
}

#[test]
fn catchunks_and_putchunks() {
    replay("chunks");
}

#[test]
fn dump() {
    replay("dump");
}

#[test]
fn get_and_serve() {
    replay("serve");
}

/// Writes down what the programs of ndn-tools print: see above.
#[test]
#[ignore = "needs ndn-tools"]
fn record() {
    let programs = std::env::var("NDN_TOOLS").expect("NDN_TOOLS: the folder of the programs");
    let name = std::env::var("NDN_TOOLS_SESSION").expect("NDN_TOOLS_SESSION: name of a session");
    let directory = tempfile::tempdir().unwrap();
    let stage = Stage::new(directory.path(), programs.into());
    let path = golden(&name);
    let mut session = Session::read(&path);
    for step in &mut session.steps {
        *step = stage.run(step);
    }
    std::fs::write(path, session.to_string()).unwrap();
}
