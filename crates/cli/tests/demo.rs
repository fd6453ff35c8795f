//! `make demo` as a user meets it: tools/demo.sh with the real binary, piped and in a pseudo-terminal.
//!
//! The demo gets a temporary directory of the test. Every process that the demo starts has that path among its
//! arguments, so the test finds processes that the demo leaves behind.

use crate::router_process::{NAMEWIRE, eventually, text};
use crate::terminal::Terminal;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const WIDTH: u16 = 100;
const BYTES: u64 = 30_000_000;
/// What a demo says, in this order.
const PHASES: [&str; 12] = [
    "1. Four routers",
    "used",
    "2. A file crosses",
    "SHA-256 is the same",
    "3. The same again",
    "SHA-256 is the same",
    "From the cache in ",
    "4. A router dies",
    "Router B is killed when ",
    "dead",
    "by router B, and then ",
    "5. A python-ndn application",
];

/// The demo, to be started; a leader of its session, so that Ctrl-C in its terminal reaches all of it.
fn demo(directory: &Path, is_in_terminal: bool) -> Command {
    let mut command = Command::new("setsid");
    command.args(is_in_terminal.then_some("-c"));
    // A test in the background of a script begins with Ctrl-C ignored, and a shell cannot trap what it began with.
    let heeds_ctrl_c = ["env", "--default-signal=INT,QUIT"];
    if Command::new(heeds_ctrl_c[0]).args([heeds_ctrl_c[1], "true"]).output().is_ok_and(|out| out.status.success()) {
        command.args(heeds_ctrl_c);
    }
    command.arg("tools/demo.sh").current_dir(REPOSITORY);
    command
        .env("NAMEWIRE", NAMEWIRE)
        .env("TMPDIR", directory)
        .env("DEMO_BYTES", BYTES.to_string())
        .env("LC_ALL", "C.UTF-8");
    command.env_remove("NO_COLOR").env_remove("NDN_CLIENT_TRANSPORT");
    command
}

/// The demo in a terminal. A test that fails ends it as a user would, so that it cleans up.
struct Shown(Terminal);

impl Drop for Shown {
    fn drop(&mut self) {
        if let Ok(None) = self.0.program.try_wait() {
            let _ = kill_process(Pid::from_child(&self.0.program), Signal::TERM);
            let _ = self.0.program.wait();
        }
    }
}

fn assert_phases(shown: &str) {
    let mut rest = shown;
    for phase in PHASES {
        let at = rest.find(phase).unwrap_or_else(|| panic!("{phase:?} is missing in\n{rest}\nof\n{shown}"));
        rest = &rest[at + phase.len()..];
    }
    // It says what it leaves out only where that cannot be had.
    let python = Path::new(REPOSITORY).join("interop/.venv/bin/python");
    let has_python_ndn = Command::new(python).args(["-c", "import ndn"]).output().is_ok_and(|out| out.status.success());
    let wanted = if has_python_ndn { "SHA-256 is the same" } else { "Left out: " };
    assert!(rest.contains(wanted), "{wanted:?} is missing in\n{rest}");
}

/// No file and no process of the demo.
fn assert_nothing_is_left(directory: &Path) {
    let files: Vec<_> = fs::read_dir(directory).unwrap().collect();
    assert!(files.is_empty(), "{files:?}");
    let path = directory.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        String::from_utf8(line).ok().filter(|line| line.contains(path))
    });
    assert_eq!(processes.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn piped_it_is_plain_text_and_ends_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let output = demo(directory.path(), false).stdin(Stdio::null()).output().unwrap();
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{shown}\n{}", text(&output.stderr));
    assert_phases(&shown);
    assert!(shown.is_ascii() && !shown.contains('\x1b'), "{shown:?}");
    assert!(shown.contains("| A +") && !shown.contains("6. Now you"), "{shown}");
    assert_nothing_is_left(directory.path());
}

#[test]
fn in_a_terminal_it_draws_and_then_runs_until_enter() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = Shown(Terminal::of_width(WIDTH, &mut demo(directory.path(), true)));
    let terminal = &mut demo.0;
    terminal.wait_for("the commands to try", |lines| lines.iter().any(|line| line.ends_with("namewire top")));
    let shown = terminal.written();
    assert_phases(&shown);
    for part in ["│ A ├", "┤ ✗ ├", "\x1b[32m", "█"] {
        assert!(shown.contains(part), "{part:?} is missing in\n{shown}");
    }
    assert_eq!(terminal.program.try_wait().unwrap(), None);

    // As in another terminal: the line to begin with, then each command.
    let (_, commands) = shown.split_once("6. Now you").unwrap();
    let mut commands = commands.lines().filter_map(|line| line.strip_prefix("  ")).map(str::trim_end);
    let first = commands.next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let in_shell = |line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-euc", &format!("{first}\n{line}")]).current_dir(&folder);
        shell
    };
    let [get, explain, top] = commands.collect::<Vec<_>>()[..] else { panic!("not three commands:\n{shown}") };
    let output = in_shell(get).output().unwrap();
    assert!(output.status.success(), "{get}: {}", text(&output.stderr));
    assert_eq!(fs::metadata(folder.path().join("copy")).unwrap().len(), BYTES);
    let output = in_shell(explain).output().unwrap();
    assert!(output.status.success() && text(&output.stdout).contains("next hop"), "{explain}: {output:?}");
    let mut live = Terminal::start(&mut in_shell(top));
    live.wait_for("the live view", |lines| lines[0].starts_with("namewire"));
    live.press("q");
    assert!(live.wait_for_end().success());

    terminal.press("\n");
    assert!(terminal.wait_for_end().success(), "{}", terminal.written());
    assert!(terminal.written().contains("Everything stopped"));
    assert_nothing_is_left(directory.path());
}

#[test]
fn a_narrow_terminal_without_colours_gets_its_lines_whole_and_ctrl_c_ends_the_network() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = Shown(Terminal::of_width(40, demo(directory.path(), true).env("NO_COLOR", "1")));
    let terminal = &mut demo.0;
    eventually("the commands to try", || terminal.written().contains("namewire top"));
    let shown = terminal.written();
    assert_phases(&shown);
    assert!(shown.contains("A ─ B ─ D  used"), "{shown}");
    assert!(!shown.contains("\x1b[3") && !shown.contains("\x1b[1m"), "{shown}");
    terminal.press("\u{3}");
    assert!(terminal.wait_for_end().success(), "{}", terminal.written());
    assert_nothing_is_left(directory.path());
}

#[test]
fn ctrl_c_in_the_middle_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = Shown(Terminal::of_width(WIDTH, &mut demo(directory.path(), true)));
    let terminal = &mut demo.0;
    // Its bar is there: before it has connected, a Ctrl-C that ends the routers first looks like a missing router.
    eventually("a fetch has begun", || {
        terminal.written().split_once("fetches it at router A").is_some_and(|(_, after)| after.contains('%'))
    });
    terminal.press("\u{3}");
    assert_eq!(terminal.wait_for_end().code(), Some(130), "{}", terminal.written());
    assert_nothing_is_left(directory.path());
}
