//! `namewire top` as a user meets it: the real binary in a pseudo-terminal, watching a real router.

use crate::router_process::{NAMEWIRE, Router, eventually, text};
use crate::terminal::Terminal;
use std::process::Command;

fn top(router: &Router) -> Terminal {
    Terminal::start(router.command().args(["top", "--interval", "100"]))
}

/// The cells of the line of a face.
fn face_line(lines: &[String], remote: &str) -> Option<Vec<String>> {
    let line = lines.iter().find(|line| line.contains(remote))?;
    Some(line.split("  ").map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect())
}

#[test]
fn shows_a_running_router_and_leaves_the_terminal_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &["--route", "/far=udp4://127.0.0.1:9"]);
    let face_count =
        |router: &Router| serde_json::from_str::<serde_json::Value>(&router.ask(&["face", "list", "--json"])).unwrap();
    let mut terminal = top(&router);
    let lines = terminal.wait_for("the face", |lines| face_line(lines, "udp4://127.0.0.1:9").is_some());
    assert!(terminal.has_alternate_screen() && !terminal.is_restored());
    assert!(lines[0].starts_with("namewire-0.1.0  up ") && lines[0].ends_with(&router.uri()), "{}", lines[0]);
    // The tool that counts has a face of its own.
    let expected = format!("{} faces", face_count(&router).as_array().unwrap().len() - 1);
    terminal.wait_for(&expected, |lines| lines.last().is_some_and(|line| line.ends_with(&expected)));

    // Interests to a port where none answers: they go out and count, without Data.
    let mut load = router.command();
    load.args(["traffic", "send", "/far", "--rate", "200", "--duration", "600"]);
    let mut load = load.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let is_moving = |lines: &[String]| {
        let cells = face_line(lines, "udp4://127.0.0.1:9");
        cells.is_some_and(|cells| cells.iter().any(|cell| cell.ends_with("kbit/s")))
    };
    terminal.wait_for("traffic of the face", is_moving);
    terminal.wait_for("Interests per second", |lines| !lines[1].starts_with("Per second: Interests 0 in 0 out"));
    load.kill().unwrap();
    load.wait().unwrap();

    terminal.press("?");
    terminal.wait_for("help", |lines| lines.iter().any(|line| line.contains("sort by the next column")));
    terminal.press("x");
    terminal.press("s");
    terminal.wait_for("the new order", |lines| lines.last().is_some_and(|line| line.contains("sort: in")));
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().code(), Some(0));
    assert!(terminal.is_restored());
    eventually("the first screen is back", || !terminal.has_alternate_screen());
}

#[test]
fn outlives_its_router_and_ends_with_ctrl_c() {
    let directory = tempfile::tempdir().unwrap();
    let mut router = Router::run(directory.path(), &[]);
    let mut terminal = top(&router);
    terminal.wait_for("the router", |lines| lines[0].starts_with("namewire"));
    router.terminate();
    terminal.wait_for("that it is gone", |lines| lines[0].starts_with("no connection, trying again"));
    assert!(terminal.has_colours());
    let _again = Router::run(directory.path(), &["--route", "/far=udp4://127.0.0.1:19"]);
    let lines = terminal.wait_for("the new one", |lines| face_line(lines, "udp4://127.0.0.1:19").is_some());
    assert!(lines[0].starts_with("namewire"), "{}", lines[0]);
    terminal.press("\u{3}");
    assert_eq!(terminal.wait_for_end().code(), Some(0));
    assert!(terminal.is_restored());
}

#[test]
fn a_signal_ends_it_with_the_terminal_restored() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let mut terminal = top(&router);
    terminal.wait_for("the router", |lines| lines[0].starts_with("namewire"));
    let pid = rustix::process::Pid::from_child(&terminal.program);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(terminal.wait_for_end().code(), Some(0));
    assert!(terminal.is_restored());
}

#[test]
fn follows_the_size_of_its_window() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let mut terminal = top(&router);
    let fills = |height: usize, width: usize| {
        move |lines: &[String]| {
            let first = lines[0].starts_with("namewire") && lines[1].starts_with("Per second") == (width >= 72);
            let last = lines.last().unwrap();
            let is_counted = last.starts_with("q quit") && last.ends_with("faces") && last.chars().count() == width;
            lines.len() == height && first && is_counted && lines.iter().filter(|l| l.contains("faces")).count() == 1
        }
    };
    for (height, width) in [(30, 100), (40, 120), (10, 50), (24, 80)] {
        terminal.resize(height, width);
        terminal.wait_for("the size", fills(height.into(), width.into()));
    }
    // Signals are no keys.
    (0..50).for_each(|_| terminal.resize(24, 80));
    terminal.press("s");
    terminal.wait_for("the new order", |lines| lines.last().is_some_and(|line| line.contains("sort: in")));
    terminal.press("\u{1b}[A\u{1b}");
    assert_eq!(terminal.wait_for_end().code(), Some(0));
    assert!(terminal.is_restored());
}

#[test]
fn without_colours_it_writes_none_and_nothing_typed_appears() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let mut terminal = Terminal::start(router.command().env("NO_COLOR", "1").args(["top", "--interval", "100"]));
    terminal.wait_for("the gauges", |lines| lines[3].contains('─') && lines[0].starts_with("namewire"));
    terminal.press("zzzs");
    terminal.wait_for("the new order", |lines| lines.last().is_some_and(|line| line.contains("sort: in")));
    assert!(!terminal.written().contains("zz"));
    let written = terminal.written();
    // The sequences for looks end in "m", those that place a line in "H".
    let last = |sequence: &str| sequence.chars().find(char::is_ascii_alphabetic);
    assert!(written.split("\u{1b}[").skip(1).all(|sequence| last(sequence) != Some('m')), "{written:?}");
    assert_eq!(written.matches("\u{1b}[2J").count(), 1, "it clears once, and then writes what changes");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().code(), Some(0));
}

#[test]
fn refuses_what_is_no_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    for arguments in [&["top"][..], &["top", "--json"]] {
        let output = router.tool(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("`namewire status") && output.stdout.is_empty(), "{message}");
    }
}

#[test]
fn without_a_router_it_says_so_and_draws_nothing() {
    let mut command = Command::new(NAMEWIRE);
    let mut terminal = Terminal::start(command.args(["--transport", "unix:///nowhere/nfd.sock", "top"]));
    assert_eq!(terminal.wait_for_end().code(), Some(4));
    terminal.wait_for("why", |lines| lines.iter().any(|line| line.contains("no forwarder answers")));
    assert!(!terminal.has_alternate_screen());
}
